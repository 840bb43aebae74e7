"""Near-optimal trees: counts and lists equal exhaustive enumeration, whichever way they are computed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.instances import Instance, chain_instances, random_instance
from oracles.near_optimal import all_trees, count_of_values, in_order, near_optimal_trees
from oracles.tree_counts import count_two

import accel_oct
from accel_oct.exact import coded
from accel_oct.exact import near_optimal as near_optimal_search
from accel_oct.exact.coded import CodedPoints
from accel_oct.exact.near_optimal import NearOptimalSearch, SideValues, TreeCounter
from accel_oct.objectives import Accuracy
from accel_oct.solving.near_optimal import Setting


def search_of(instance: Instance, within: float, labels: str = "any", **options) -> NearOptimalSearch:
    setting = Setting.of(Accuracy().bind(instance.dataset), instance.leaf_penalty, instance.max_depth)
    slack = (within + 1e-9) * instance.dataset.total_weight
    problem = CodedPoints.of(setting.X, setting.gains, setting.leaf_price, instance.max_depth, slack, labels == "any")
    return NearOptimalSearch(problem, **options)


def counter_of(search: NearOptimalSearch, best: int) -> TreeCounter:
    problem = search.problem
    values = SideValues(problem, lambda: False, 1, 1 << 30)
    counter = TreeCounter(problem, values, lambda: False, 1 << 30)
    counter.run(best)
    return counter


def counters_of(search: NearOptimalSearch) -> list[TreeCounter]:
    """By compiled code, and by the code for counts beyond 64 bits alone."""
    best = best_of(search)
    with pytest.MonkeyPatch.context() as patch:
        compiled = counter_of(search, best)
        patch.setattr(near_optimal_search, "_SAFE", 0)
        return [compiled, counter_of(search, best)]


def best_of(search: NearOptimalSearch) -> int:
    """Before coding."""
    everyone = np.arange(len(search.problem.X))
    return search.problem.value(search.values.best(everyone, search.problem.max_depth))


def small_instance(rng: np.random.Generator) -> tuple[Instance, float, str]:
    """An instance that can be enumerated, how far from the optimum, and which labels."""
    instance = random_instance(rng, max_samples=14, max_features=int(rng.choice([3, 4, 5])), max_classes=3)
    labels = "any" if rng.random() < 0.7 else "best"
    if instance.max_depth == 3:
        instance = replace(instance, X=instance.X[:, : 3 if labels == "any" else 4])
    share = 1 / len(instance.y)
    return instance, float(rng.choice([0.0, 0.01, share, 2 * share, 0.1, 0.3, 5.0])), labels


def check(instance: Instance, within: float, labels: str) -> int:
    """List and count, in 64 bits and in Python's whole numbers; returns how many trees there are."""
    dataset, arguments = instance.dataset, (instance.max_depth, instance.leaf_penalty)
    expected = near_optimal_trees(dataset, *arguments, within, labels)
    values = {tree: (value, leaves) for value, leaves, tree in expected}
    search = search_of(instance, within, labels)
    found = search.run(None)
    assert found.complete and found.counted and found.count == len(expected), instance
    assert [listed.tree for listed in found.trees] == in_order(dataset, instance.leaf_penalty, values), instance
    assert [(listed.value, listed.n_leaves) for listed in found.trees] == [values[tree.tree] for tree in found.trees]
    by_leaves = np.bincount([leaves for _, leaves, _ in expected])
    assert found.by_leaves == {leaves: count for leaves, count in enumerate(by_leaves.tolist()) if count}
    for counter in counters_of(search):
        assert counter.count == len(expected), instance
        assert {leaves: count for leaves, count in counter.by_leaves.items() if count} == found.by_leaves
    return len(expected)


@pytest.mark.parametrize("seed", range(40))
def test_counts_and_lists_equal_enumeration(seed: int) -> None:
    """On small random data rich in ties, with copies and complements of columns and rows of weight zero."""
    check(*small_instance(np.random.default_rng(seed)))


@pytest.mark.parametrize("seed", range(40))
def test_ways_of_many_features_equal_enumeration(seed: int, monkeypatch) -> None:
    """The same with best values below the sides of features read off the tables, and gains added up from bits."""
    monkeypatch.setattr(coded, "_MANY_FEATURES", 0)
    monkeypatch.setattr(coded, "_SMALL", -1)
    check(*small_instance(np.random.default_rng([11, seed])))


@pytest.mark.long
def test_counts_and_lists_equal_enumeration_on_many() -> None:
    """The same on a thousand more."""
    sizes = [check(*small_instance(np.random.default_rng([7, seed]))) for seed in range(1000)]
    assert max(sizes) > 1000 and sizes.count(1) < 600


@pytest.mark.parametrize("instance", chain_instances((2, 3)), ids=str)
def test_chains(instance: Instance) -> None:
    """Decision lists, on which every level is needed."""
    small = replace(instance, X=instance.X[:, :3], max_depth=min(instance.max_depth, 3))
    check(small, 0.05, "best")


# ---------------------------------------------------------------- deeper, and other gains


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("tables", [True, False])
def test_other_gains_and_depths(seed: int, tables: bool, monkeypatch) -> None:
    """Gains that are no accuracy, points that earn nothing, depths up to five; with tables and without."""
    rng = np.random.default_rng([3, seed])
    n_features, n_classes, depth = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    X = np.unique(rng.random((int(rng.integers(2, 13)), n_features)) < 0.5, axis=0)
    X = np.column_stack([X, ~X[:, :1]])
    gains = rng.integers(0, 5, (len(X), n_classes)) * float(rng.choice([1.0, 0.25, 3.0]))
    gains[rng.random(len(X)) < 0.3] = 0.0
    price, slack = float(rng.choice([0.0, 0.25, 0.5, 1.0])), float(rng.choice([0.0, 1.0, 3.0, np.inf]))
    values = count_of_values(X, gains, price, depth)
    best = max(value for (value, _), count in values.items() if count)
    expected = {key: count for key, count in values.items() if count and key[0] >= best - Fraction(min(slack, 1e9))}
    search = NearOptimalSearch(CodedPoints.of(X, gains, price, depth, slack))
    if not tables:
        monkeypatch.setattr(search.values, "_tables", False)
    total = sum(expected.values())
    assert [counter.count for counter in counters_of(search)] == [total, total]
    found = search.run(300)
    assert found.best == best and found.count == total and found.complete is (total <= 300)
    for number, count in found.by_leaves.items():
        assert count == sum(times for (_, leaves), times in expected.items() if leaves == number)
    assert [-listed.value for listed in found.trees] == sorted(-listed.value for listed in found.trees)
    assert len({listed.tree for listed in found.trees}) == min(300, total)


def test_cost_seam_equals_enumeration_of_trees() -> None:
    """A core search on gains of its own lists the trees that enumeration finds."""
    rng = np.random.default_rng(5)
    X = np.unique(rng.random((9, 3)) < 0.5, axis=0)
    gains = rng.integers(0, 4, (len(X), 3)).astype(float)
    trees = {tree: score - leaves for score, leaves, tree in all_trees(X, gains, 2)}
    least = max(trees.values()) - 3
    found = NearOptimalSearch(CodedPoints.of(X, gains, 1.0, 2, 3.0)).run(None)
    assert {listed.tree: listed.value for listed in found.trees} == {
        tree: value for tree, value in trees.items() if value >= least
    }


def full_factorial(n_features: int) -> np.ndarray:
    return (np.arange(2**n_features)[:, None] >> np.arange(n_features) & 1).astype(bool)


@pytest.mark.parametrize("n_features", [3, 4, 5])
def test_numbers_beyond_64_bits(n_features: int) -> None:
    """All trees on all points, which has a formula: more than 2**64 for five features and three classes."""
    X, number = full_factorial(n_features), 3
    for used in range(1, n_features + 1):
        number = 3 + used * (number**2 - 3)
    y = np.arange(len(X)) % 3
    result = accel_oct.near_optimal(X, y, max_depth=n_features, leaf_penalty=0.0, within=np.inf, limit=5)
    assert result.count == number and (number > 2**64) is (n_features == 5)
    assert result.count_by_leaves is not None and sum(result.count_by_leaves.values()) == number


def test_large_numbers_take_the_other_way(monkeypatch) -> None:
    """Where 64 bits might not be enough, Python's whole numbers give the same counts."""
    instance = random_instance(np.random.default_rng(8), max_depth=3)
    instance = replace(instance, max_depth=4, leaf_penalty=0.01)
    search = search_of(instance, 0.1)
    expected = counter_of(search, best_of(search))
    for safe in (1, 200):
        monkeypatch.setattr(near_optimal_search, "_SAFE", safe)
        counter = counter_of(search, best_of(search))
        assert (counter.count, counter.by_leaves) == (expected.count, expected.by_leaves)


# ---------------------------------------------------------------- parts


def problem_of(seed: int, any_label: bool = True, weights: bool = False) -> CodedPoints:
    rng = np.random.default_rng(seed)
    X = np.unique(rng.random((150, 9)) < 0.4, axis=0)
    gains = rng.integers(0, 3, (len(X), 3)).astype(float)
    if weights:
        gains *= rng.integers(1, 1000, gains.shape) / 64
    return CodedPoints.of(X, gains, 0.5, 3, 20.0, any_label)


def small_trees(problem: CodedPoints, points: np.ndarray, height: int) -> list[tuple[int, int]]:
    """Codes of all trees of depth at most `height` (0 or 1), and the class of those that are a leaf, else -1."""

    def leaves(part: np.ndarray) -> list[tuple[int, int]]:
        totals = problem.gains[part].sum(axis=0).tolist()
        labels = range(len(totals)) if problem.any_label else [totals.index(max(totals))]
        return [(totals[label] - problem.price, label) for label in labels]

    found = leaves(points)
    for feature in range(problem.X.shape[1]) if height else ():
        side = problem.X[points, feature]
        if 0 < side.sum() < len(points):
            pairs = product(leaves(points[~side]), leaves(points[side]))
            found += [(a + b, -1) for (a, mine), (b, other) in pairs if mine != other]
    return found


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("any_label", [False, True])
def test_compiled_parts_equal_the_reference(any_label: bool, weights: bool) -> None:
    """Gains of pairs, best values, and tables of trees of depth two, on whole sets and parts of them."""
    problem = problem_of(0, any_label, weights)
    values = SideValues(problem, lambda: False, 1, 1 << 30)
    counter = TreeCounter(problem, values, lambda: False, 1 << 30)
    for points in (np.arange(len(problem.X)), np.flatnonzero(problem.X[:, 0]), np.array([3, 5, 11]), np.array([2])):
        columns = problem.columns(points)
        chosen = problem.X[points][:, columns.feature].astype(np.int64)
        assert np.array_equal(problem.ones(points, columns.feature), problem.gains[points].T @ chosen)
        threshold = values.best(points, 2) - problem.code_slack
        table = counter.table(points, 2, threshold).as_table()
        assert table == count_two(problem, points, threshold)
        for height in (1, 2):
            found = values.sides(points, height)
            for place, feature in enumerate(columns.feature.tolist()):
                zero, one = (
                    small_trees(problem, points[problem.X[points, feature] == side], height - 1)
                    for side in (False, True)
                )
                assert found.zero[place] == max(zero)[0] and found.one[place] == max(one)[0]
                both = [a + b for (a, mine), (b, other) in product(zero, one) if mine < 0 or mine != other]
                assert found.split[place] == max(both) if both else found.split[place] < -(1 << 60)


@pytest.mark.parametrize("height", [0, 1, 2, 3])
def test_tables_grow_with_the_slack(height: int) -> None:
    """A table that was made with little slack is made again when more is asked for, and serves when less is."""
    problem = problem_of(0)
    values = SideValues(problem, lambda: False, 1, 1 << 30)
    asked_often = TreeCounter(problem, values, lambda: False, 1 << 30)
    points = np.flatnonzero(problem.X[:, 0])
    best, sizes = values.best(points, height), []
    for slack in (0, 10, 3, 20):
        threshold = best - (slack << problem.bits)
        fresh = TreeCounter(problem, values, lambda: False, 1 << 30).table(points, height, threshold).as_table()
        table = asked_often.table(points, height, threshold).as_table()
        assert {code: count for code, count in table.items() if code >= threshold} == fresh
        sizes.append(sum(fresh.values()))
    assert sizes[0] <= sizes[2] <= sizes[1] <= sizes[3] and sizes[0] < sizes[3]


def test_best_values_are_those_of_single_sides() -> None:
    """Tables for heights three and four, and one level lower, say what looking at every side says."""
    rng = np.random.default_rng(2)
    X = np.unique(rng.random((60, 6)) < 0.5, axis=0)
    X = np.column_stack([X, ~X[:, 2], X[:, 1]])
    gains = rng.integers(0, 4, (len(X), 2)).astype(float)
    for depth in (3, 4):
        problem = CodedPoints.of(X, gains, 0.5, depth, 1.0)
        fast, slow = (SideValues(problem, lambda: False, 1, 1 << 30) for _ in range(2))
        slow._tables = False
        everyone = np.arange(len(X))
        for mine, other in zip(fast.sides(everyone, depth)[1:], slow.sides(everyone, depth)[1:], strict=True):
            assert np.array_equal(mine, other)
        for feature in range(X.shape[1]):
            for side in (False, True):
                points = everyone[X[:, feature] == side]
                mine = fast.sides(points, depth - 1, ((feature, side),))
                other = slow.sides(points, depth - 1)
                assert all(np.array_equal(a, b) for a, b in zip(mine[1:3], other[1:3], strict=True))
