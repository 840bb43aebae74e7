"""Bounds that prune deep trees, on the data where they are tight: a leaf too many in any of them is an error here.

Decision lists (`chain_instance`) have as few leaves as their depth allows. Everything is compared with the dynamic
programme, for all ways of computing: tables, small tables only (no memory for others), and root by root.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.subtree_support import keep_no_tables
from oracles.dynamic_programme import optimal_scores, optimal_value
from oracles.instances import Instance, chain_instances, fork_instances

from accel_oct.data import BinaryDataset
from accel_oct.exact import SubtreeBounds, best_tree, frontier_table
from accel_oct.exact.levels import PairLevel, side_ceilings
from accel_oct.exact.price_search import PriceSearch
from accel_oct.exact.samples import reduce_data
from accel_oct.objectives import Accuracy
from accel_oct.solving.problem import BoundRounding, Problem

STEPS = (*range(12), 20)
#: More than any search below needs: one that forgets to end fails instead of hanging.
ENOUGH = 20_000


@pytest.fixture(params=["tables", "roots", "no tables"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With tables, with small ones only, and root by root from the top."""
    if request.param == "no tables":
        keep_no_tables(monkeypatch)
    return str(request.param)


def _memory(way: str) -> int:
    return 2**30 if way == "tables" else 0


def _arrays(dataset: BinaryDataset) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return dataset.X, dataset.y, dataset.weights, dataset.n_classes


def _stop_after(steps: int) -> Callable[[], bool]:
    left = iter([False] * steps)
    return lambda: next(left, True)


def _check_best_tree(instance: Instance, depth: int, memory: int) -> None:
    data, price = instance.dataset, instance.leaf_price
    optimum = optimal_value(data, depth, price)
    reported: list[tuple[float, float]] = []
    found = best_tree(
        *_arrays(data),
        depth,
        price,
        memory_limit=memory,
        should_stop=_stop_after(ENOUGH),
        on_improvement=lambda seconds, value, bound: reported.append((value, bound)),
    )
    assert found.exact and found.value == optimum, (depth, instance)
    assert found.tree.value(data, price) == optimum
    assert all(value <= optimum <= bound for value, bound in reported), (depth, reported, instance)
    for steps in STEPS:
        found = best_tree(*_arrays(data), depth, price, memory_limit=memory, should_stop=_stop_after(steps))
        assert found.value <= optimum <= found.bound, (depth, steps, instance)


@pytest.mark.daily(4)
@pytest.mark.parametrize("length", [3, 4, 5, 6])
def test_best_tree(way: str, length: int) -> None:
    """One price: the optimum, bounds above it on the way and when stopped, for a level less and more than the chain."""
    for instance in chain_instances((length,))[:: 1 if length < 5 else 2]:
        for depth in (length - 1, length, length + 1) if length < 5 else (length,):
            _check_best_tree(instance, depth, _memory(way))


@pytest.mark.daily(4)
@pytest.mark.parametrize("lengths", [(3, 2), (3, 1), (3, 3), (2, 1), (4, 2)])
def test_best_tree_of_a_fork(way: str, lengths: tuple[int, int]) -> None:
    """A chain on either side of the root, of other lengths: sides, pairs and their bounds are not mixed up."""
    for instance in fork_instances(lengths)[:: 1 if way == "tables" else 2]:
        _check_best_tree(instance, instance.max_depth, _memory(way))


def test_best_tree_of_a_wide_fork() -> None:
    """With more columns, where pairs of features are served a few at a time."""
    for instance in fork_instances((3, 2), noise=(3, 4)):
        _check_best_tree(instance, 4, _memory("tables"))


def test_a_side_is_measured_against_the_other(way: str) -> None:
    """Found by a search: here a pair of features is needed because of what the *other* side of the root can reach."""
    X = ["1100", "0001", "0111", "0010", "0011", "1011", "0011", "0011", "0011", "0011", "1100"]
    y = np.array([1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1])
    instance = Instance(np.array([[digit == "1" for digit in row] for row in X]), y, None, 0.9 / 11, 4)
    _check_best_tree(instance, 4, _memory(way))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
def test_best_tree_at_length(way: str, seed: int) -> None:
    """The same on more chains."""
    for instance in chain_instances((3, 4, 5, 6), seed):
        for depth in range(instance.max_depth - 1, min(instance.max_depth + 1, 6) + 1):
            _check_best_tree(instance, depth, _memory(way))


@pytest.mark.daily(3)
@pytest.mark.parametrize("depth", [3, 4, 5])
def test_parity(way: str, depth: int) -> None:
    """Every leaf that a depth has room for is needed, at every place of the tree."""
    rng = np.random.default_rng(depth)
    X = np.array([[row >> place & 1 for place in range(depth)] for row in range(2**depth)], dtype=bool)
    y = X.sum(axis=1) % 2
    for weights in (None, rng.integers(1, 4, y.size)):
        instance = Instance(X ^ (rng.random(depth) < 0.5), y, weights, 0.2 / y.size, depth)
        _check_best_tree(instance, depth, _memory(way))
        table = frontier_table(reduce_data(*_arrays(instance.dataset)), depth, memory_limit=_memory(way))
        assert table.exact and table.scores[-1] == instance.dataset.total_weight > table.scores[-2]
        assert table.tree(2**depth).score(instance.dataset) == table.scores[-1]


@pytest.mark.daily(3)
@pytest.mark.parametrize("length", [3, 4, 5])
def test_targets(way: str, length: int) -> None:
    """A search that must beat a value finds what is above it, and else a bound that holds without that value."""
    for instance in chain_instances((length,), seed=2)[:: 1 if length < 5 else 2]:
        dataset, price = instance.dataset, instance.leaf_price
        data = reduce_data(*_arrays(dataset))
        optimum = optimal_value(dataset, length, price)
        for distance in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0):
            search = PriceSearch(price, data.signed, memory_limit=_memory(way))
            goal = float(search.units.from_score(optimum + distance * price, dataset.total_weight))
            found = search.search(data, length, goal)
            value, upper = (
                search.units.to_score(number, dataset.total_weight) for number in (found.value, found.upper)
            )
            assert value <= optimum <= upper, (distance, instance)
            assert distance >= 0 or value == optimum, (distance, instance)


@pytest.mark.daily(3)
@pytest.mark.parametrize("length", [3, 4, 5])
def test_frontier(way: str, length: int) -> None:
    """All numbers of leaves around that of the chain: exact when finished, enclosed when stopped anywhere."""
    for instance in chain_instances((length,), seed=3)[:: 1 if length < 5 else 3]:
        data = instance.dataset
        exact = np.array(optimal_scores(data, length, min(length + 3, 2**length)))
        shown = slice(1, exact.size + 1)
        reported: list[tuple[np.ndarray, np.ndarray]] = []
        table = frontier_table(
            reduce_data(*_arrays(data)),
            length,
            memory_limit=_memory(way),
            progress=lambda seconds, scores, bounds, to=reported: to.append((scores, bounds)),
        )
        assert table.exact
        for scores, bounds in reported:
            assert np.all(scores[shown] <= exact) and np.all(bounds[shown] >= exact), instance
        np.testing.assert_array_equal(table.scores[shown], exact)
        for leaves in range(1, exact.size + 1):
            assert table.tree(leaves).score(data) == exact[leaves - 1]
        for steps in STEPS:
            table = frontier_table(
                reduce_data(*_arrays(data)), length, memory_limit=_memory(way), should_stop=_stop_after(steps)
            )
            assert np.all(table.scores[shown] <= exact) and np.all(table.upper_bounds[shown] >= exact), (
                steps,
                instance,
            )


def test_one_thread_stopped_is_stopped() -> None:
    """Of two threads one may find nothing left to do where the other was told to stop: that is not the whole pass."""
    parity = np.array([[row >> place & 1 for place in range(4)] for row in range(16)], dtype=bool)
    X, y = np.column_stack([np.eye(16, 4, dtype=bool), parity]), parity.sum(axis=1) % 2  # sparse columns are first
    for steps in range(14):
        table = frontier_table(reduce_data(X, y, np.ones(16), 2), 4, threads=2, should_stop=_stop_after(steps))
        assert table.scores[16] <= 16 <= table.upper_bounds[16], steps


def test_a_root_with_one_side_unfinished_stays_open() -> None:
    """Found by a search: stopped inside the first side of a root whose second side is proven at once."""
    X = np.array(
        [
            [digit == "1" for digit in row]
            for row in ("01100", "11000", "01000", "00000", "10101", "01001", "01010", "01110", "10000")
        ]
    )
    dataset = BinaryDataset.from_arrays(
        X,
        [1, 1, 0, 2, 2, 1, 0, 1, 2],
        [
            0.8101524012210223,
            0.3333333333333333,
            1.7303553306111956,
            0.3333333333333333,
            0.8751134573901599,
            0.3333333333333333,
            1.9077435672985148,
            0.3333333333333333,
            0.8244097075443576,
        ],
    )
    exact = np.array(optimal_scores(dataset, 4, 8))
    for steps in range(40):
        table = frontier_table(reduce_data(*_arrays(dataset)), 4, memory_limit=0, should_stop=_stop_after(steps))
        assert np.all(table.scores[1:9] <= exact) and np.all(table.upper_bounds[1:9] >= exact), steps


def test_ceilings_of_sides() -> None:
    """The equivalent-point bound of every side of every feature, from its definition."""
    for instance in chain_instances((3,), seed=9):
        dataset = instance.dataset
        doubled = BinaryDataset.from_arrays(  # some points in two classes
            np.concatenate([dataset.X, dataset.X[::3]]),
            np.concatenate([dataset.y, (dataset.y[::3] + 1) % dataset.n_classes]),
            np.concatenate([dataset.weights, dataset.weights[::3]]),
        )
        data = reduce_data(*_arrays(doubled))
        pairs = PairLevel(data)
        sides = side_ceilings(data)
        for f, a in np.ndindex(data.n_features, 2):
            assert sides[f, a] == _ceiling(pairs, data.X[:, f] == a)


def _ceiling(pairs: PairLevel, rows: np.ndarray) -> float:
    data = pairs.data
    points: dict[bytes, np.ndarray] = {}
    for i in np.flatnonzero(rows):
        points.setdefault(data.X[i].tobytes(), np.zeros(data.n_classes))[data.y[i]] += data.weights[i]
    majorities = sum(float(weights.max()) for weights in points.values())
    return float(pairs.units.from_score(majorities, data.weights[rows].sum()))


@pytest.mark.daily(3)
@pytest.mark.parametrize("length", [3, 4, 5])
def test_subtree_bounds(way: str, length: int) -> None:
    """Upper profiles of roots and paths, refined or not, are nowhere below what trees there can score."""
    for instance in chain_instances((length,), seed=4)[:: 2 if length < 5 else 6]:
        data = instance.dataset
        bounds = SubtreeBounds(*_arrays(data), length, memory_limit=_memory(way))
        leaves = min(length + 2, 2 ** (length - 1))
        exact = np.array(
            [[_scores(data, f, side, length - 1, leaves) for side in (0, 1)] for f in range(data.n_features)]
        )
        assert np.all(bounds.root_profiles()[:, :, :leaves] >= exact), instance
        for height in (3, 4):
            for f, side in np.ndindex(data.n_features, 2):
                below = _scores(data, f, side, height, 6)
                assert np.all(bounds.path_profile([(f, side)], height)[:6] >= below), (f, side, instance)
                np.testing.assert_array_equal(bounds.path_profile([(f, side)], height, exact=True)[:6], below)
        everyone = optimal_scores(data, length, leaves)
        assert np.all(bounds.path_profile((), length)[:leaves] >= everyone), instance
        for feature in range(bounds.exact.size):
            bounds.refine(feature)
        np.testing.assert_array_equal(bounds.root_profiles()[:, :, :leaves], exact)


def test_stopped_refinement_claims_nothing(way: str) -> None:
    """What `refine` was stopped at is not called exact, and every bound still holds."""
    for instance in chain_instances((4,), seed=5)[::3]:
        data = instance.dataset
        exact = np.array([[_scores(data, f, side, 3, 8) for side in (0, 1)] for f in range(data.n_features)])
        unfinished = 0
        for steps in range(24):
            bounds = SubtreeBounds(*_arrays(data), 4, memory_limit=_memory(way), should_stop=_stop_after(steps))
            for feature in range(data.n_features):
                assert bounds.refine(feature) == bounds.exact[feature]
            profiles = bounds.root_profiles()
            assert np.all(profiles >= exact), (steps, instance)
            np.testing.assert_array_equal(profiles[bounds.exact], exact[bounds.exact])
            unfinished += not bounds.exact.all()
        assert unfinished


def _scores(data: BinaryDataset, feature: int, side: int, height: int, leaves: int) -> list[float]:
    rows = data.X[:, feature] == bool(side)
    return optimal_scores(BinaryDataset.from_arrays(data.X[rows], data.y[rows], data.weights[rows]), height, leaves)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_lattice_of_a_solve_has_every_optimum(depth: int) -> None:
    """Parity needs all the leaves that a depth has: the optimum as a solver's bound is not rounded below itself."""
    X = np.array([[row >> place & 1 for place in range(depth)] for row in range(2**depth)], dtype=bool)
    for price in (0.3, 0.4, 0.45):
        dataset = BinaryDataset.from_arrays(X, X.sum(axis=1) % 2, None)
        optimum = optimal_value(dataset, depth, price)
        problem = Problem(dataset, Accuracy().bind(dataset), dataset, depth, price / dataset.total_weight, price)
        rounding = BoundRounding(dataset.total_weight, price, problem.most_leaves, integral=True)
        assert rounding.valid(optimum) == pytest.approx(optimum)
