"""Rules about single leaves and paths: tables, frontier and solve against a recursion over paths, in every way.

Ways to compute: tables, small tables only (no memory for others), and root by root from the top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.selection import daily
from helpers.subtree_support import keep_no_tables
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import enumerate_trees
from oracles.instances import WEIGHT_KINDS, Instance, chain_instance, fork_instance, random_instance
from oracles.ruled import Minimum, ruled_scores, ruled_value

import accel_oct
from accel_oct import Solver
from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    ForbiddenPairs,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    Traits,
)
from accel_oct.cuts import path_bound
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.exact import LocalRules, best_tree, frontier_table
from accel_oct.exact.counts import layout
from accel_oct.exact.frontier import ProfileSolver
from accel_oct.exact.levels import Units
from accel_oct.exact.samples import reduce_data
from accel_oct.formulation import Master
from accel_oct.objectives import Accuracy
from accel_oct.solving.config import Config
from accel_oct.solving.problem import Problem
from accel_oct.tree import DecisionTree


@pytest.fixture(params=["tables", "roots", "no tables"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With tables, with small ones only, and root by root from the top."""
    if request.param == "no tables":
        keep_no_tables(monkeypatch)
    return str(request.param)


def _memory(way: str) -> int:
    return 2**30 if way == "tables" else 0


def _stop_after(steps: int) -> Callable[[], bool]:
    left = iter([False] * steps)
    return lambda: next(left, True)


@dataclass(frozen=True)
class Rules:
    """The same rules for the oracle and for the library."""

    minima: tuple[Minimum, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    def local(self, data: BinaryDataset) -> LocalRules | None:
        rules = [LocalRules.leaves(mass, least) for mass, least in self.minima]
        return LocalRules.joined([*rules, LocalRules.pairs(*data.X.shape, self.pairs)])


def _draw(rng: np.random.Generator, data: BinaryDataset, kind: str = "any") -> Rules:
    """Masses that are the weights or have nothing to do with them, minima that often equal what leaves have."""
    minima: list[Minimum] = []
    for _ in range(int(rng.choice([1, 1, 1, 2])) if kind == "leaves" or (kind == "any" and rng.random() < 0.75) else 0):
        mass = data.weights if rng.random() < 0.6 else rng.integers(0, 4, data.n_samples).astype(float)
        total = float(mass.sum())
        least = float(rng.choice([0, 1, 2, 3, 0.05 * total, 0.1 * total, 0.25 * total, total, total + 1]))
        if rng.random() < 0.3:  # what some side has, exactly
            least = float(mass[data.X[:, int(rng.integers(data.n_features))]].sum())
        minima.append((mass, least))
    F, pairs = data.n_features, []
    if kind == "pairs" or (kind == "any" and rng.random() < 0.6):
        pairs = [(f, g) for f in range(F) for g in range(f) if rng.random() < 0.4]
    return Rules(tuple(minima), tuple(pairs))


def _instance(rng: np.random.Generator, max_features: int = 4) -> Instance:
    """Rich in ties, or a chain or fork; sometimes so heavy that wider counters are needed."""
    if rng.random() < 0.35:
        n_classes, weights = int(rng.integers(2, 5)), str(rng.choice(WEIGHT_KINDS))
        if rng.random() < 0.5:
            drawn = chain_instance(rng, int(rng.integers(2, 4)), n_classes=n_classes, n_noise=1, weights=weights)
        else:
            drawn = fork_instance(rng, (2, int(rng.integers(1, 3))), n_classes=n_classes, weights=weights)
    else:
        drawn = random_instance(rng, max_samples=20, max_features=max_features, max_depth=4)
    weights = np.ones(len(drawn.y)) if drawn.sample_weight is None else drawn.sample_weight
    scale = float(rng.choice([1.0, 1.0, 1.0, 5000.0, 2.0**12, 2.0**20]))
    return Instance(drawn.X, drawn.y, weights * scale, drawn.leaf_penalty, drawn.max_depth)


def _check(instance: Instance, rules: Rules, depth: int, memory: int, steps: tuple[int, ...] = ()) -> None:
    """Scores, values, trees and bounds of the tables, finished and stopped, against the oracle."""
    data, local = instance.dataset, rules.local(instance.dataset)
    arrays = (data.X, data.y, data.weights, data.n_classes)
    exact = np.array(ruled_scores(data, depth, rules.minima, rules.pairs))
    optimum, price = ruled_value(exact, instance.leaf_price), instance.leaf_price
    table = frontier_table(reduce_data(*arrays, local), depth, memory_limit=memory)
    np.testing.assert_array_equal(table.scores[1:], exact, err_msg=repr((rules, depth, instance)))
    assert table.exact
    found = best_tree(*arrays, depth, price, rules=local, memory_limit=memory)
    assert found.value == found.bound == optimum, (found, optimum, rules, depth, instance)
    if optimum == -np.inf:
        assert found.found is None
        with pytest.raises(NoTreeError):
            found.tree  # noqa: B018
        with pytest.raises(NoTreeError):
            table.tree(1)
    else:
        trees = [(found.tree, optimum + price * found.tree.n_leaves)]
        trees += [(table.tree(h), exact[h - 1]) for h in range(1, exact.size + 1)]
        for tree, score in trees:
            assert tree.score(data) == score and _keeps(tree, data, rules), (rules, depth, instance)
        assert all(table.tree(h).n_leaves <= h for h in range(1, exact.size + 1))
    for count in steps:
        table = frontier_table(reduce_data(*arrays, local), depth, memory_limit=memory, should_stop=_stop_after(count))
        assert np.all(table.scores[1:] <= exact) and np.all(table.upper_bounds[1:] >= exact), (count, rules, instance)
        found = best_tree(*arrays, depth, price, rules=local, memory_limit=memory, should_stop=_stop_after(count))
        assert found.value <= optimum <= found.bound, (count, rules, depth, instance)


def _keeps(tree: DecisionTree, data: BinaryDataset, rules: Rules) -> bool:
    """Walked sample by sample and path by path."""
    leaf_of = tree.apply(data.X)
    for leaf in tree.leaves.tolist():
        if any(sum(mass[i] for i in np.flatnonzero(leaf_of == leaf)) < least for mass, least in rules.minima):
            return False
        used = {feature for feature, _ in tree.path(leaf)}
        if any({f, g} <= used for f, g in rules.pairs):
            return False
    return True


# ---------------------------------------------------------------- tables


@pytest.mark.daily(3)
@pytest.mark.parametrize("seed", daily(range(3), 1))
@pytest.mark.parametrize("kind", ["leaves", "pairs", "any"])
def test_tables(way: str, kind: str, seed: int) -> None:
    """Every number of leaves and one price; bounds hold when stopped."""
    rng = np.random.default_rng([len(way), len(kind), seed])
    for _ in range(20):
        instance = _instance(rng)
        depth = int(rng.integers(0, 5 if instance.X.shape[1] <= 4 else 4))
        _check(instance, _draw(rng, instance.dataset, kind), depth, _memory(way), (0, 1, 2, 4, 7))


@pytest.mark.daily(2)
@pytest.mark.parametrize("depth", [4, 5])
def test_deep_tables(way: str, depth: int) -> None:
    """Where root features are opened one by one, with what similar sides allow."""
    rng = np.random.default_rng([depth, len(way)])
    for _ in range(12):
        instance = _instance(rng, 4 if depth == 4 else 3)
        if instance.X.shape[1] <= 4:
            _check(instance, _draw(rng, instance.dataset), depth, _memory(way), (1, 3, 9, 27))


@pytest.mark.parametrize("length", daily([3, 4, 5], 2))
def test_no_room_to_spare(way: str, length: int) -> None:
    """A decision list all of whose leaves have exactly the least mass: every set has just as many leaves as fit."""
    for n_classes in (2, 3):
        X, y, weights = [np.ones(length, dtype=bool)], [length % n_classes], [2.0]
        for step in range(length):
            for rest in (0, 1):  # two rows that every column behind the step tells apart, so that nothing else fits
                row = np.arange(length) % 2 == rest
                row[:step], row[step] = True, False
                X.append(row)
                y.append(step % n_classes)
                weights.append(1.0)
        instance = Instance(np.array(X), np.array(y), np.array(weights), 0.01 / length, length)
        exact = ruled_scores(instance.dataset, length, [(weights, 2.0)])
        assert exact[length] == sum(weights) > exact[length - 1]
        _check(instance, Rules(((np.array(weights), 2.0),)), length, _memory(way), (1, 2, 4, 8))


@pytest.mark.parametrize("light", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_either_part_of_a_split_may_be_too_light(way: str, light: int, n_classes: int) -> None:
    """Of the minority of one column all but one are on one side of another, and that one is of another class."""
    inside = [(1, 1 - light)] * 3 + [(1, light)]
    X = np.array(inside + [(0, 0)] * 5 + [(0, 1)] * (light * 3), dtype=bool)
    y = np.zeros(len(X), dtype=int)
    y[3] = 1
    X, y = np.concatenate([X, X[:1]]), np.append(y, n_classes - 1)  # the last class is there, and cannot be told apart
    for depth in (1, 2, 3, 4):
        instance = Instance(X, y, None, 0.01, depth)
        for least in (1.0, 2.0):
            _check(instance, Rules(((np.ones(len(y)), least),)), depth, _memory(way))


def test_tables_of_more_columns() -> None:
    """More columns than a vector of wide counters has lanes."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        X = rng.random((14, 10)) < 0.5
        weights = rng.integers(1, 4, 14) * float(rng.choice([1.0, 0.25, 2.0**14]))
        instance = Instance(X, rng.integers(0, int(rng.integers(2, 4)), 14), weights, 0.01, 3)
        _check(instance, _draw(rng, instance.dataset), 3, 2**30)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 2**30]))
def test_tables_of_anything(seed: int, memory: int) -> None:
    """The same for whatever hypothesis comes upon."""
    rng = np.random.default_rng(seed)
    instance = _instance(rng)
    _check(instance, _draw(rng, instance.dataset), int(rng.integers(0, 4)), memory, (2, 5))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_tables_at_length(way: str, seed: int) -> None:
    """On thousands of instances."""
    rng = np.random.default_rng([seed, len(way)])
    for _ in range(150):
        instance = _instance(rng)
        depth = int(rng.integers(0, 5 if instance.X.shape[1] <= 4 else 4))
        _check(instance, _draw(rng, instance.dataset), depth, _memory(way), (0, 1, 2, 3, 5, 8, 13))


@pytest.mark.parametrize(("heaviest", "dtype"), [(2**14 - 1, np.int16), (2**14, np.int32), (2**30, np.float64)])
def test_counters_have_room_for_what_is_not_allowed(heaviest: int, dtype: Any) -> None:
    """At the edges of the types: the sum of all weights, and a mass of leaves, as large as fits."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=bool)
    for y in (X.sum(axis=1) % 2, np.arange(8) % 3):
        weights = np.full(8, float(heaviest // 8))
        weights[0] += heaviest - weights.sum()
        data = BinaryDataset.from_arrays(X, y, weights)
        assert layout(data.X, data.y, data.weights, data.n_classes, data.weights[None]).dtype == (
            dtype if weights.max() < 2**14 else np.float64
        )
        for least in (0.5, 1.0, 1.5, 2.0, 3.0):
            for pairs in ((), ((0, 1),)):
                rules = Rules(((data.weights, least * heaviest // 8),), pairs)
                _check(Instance(X, y, weights, 0.01, 4), rules, 4, 2**30)


# ---------------------------------------------------------------- parts


def test_reduction_keeps_what_rules_need() -> None:
    """Masses add up, weightless rows with mass stay, light columns go, equal columns only with equal partners."""
    X = np.array([[0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    y, weights, mass = np.array([0, 0, 1, 1, 0]), np.array([1.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 2, 3, 4, 5])
    rules = LocalRules.leaves(mass, 6.0)
    data = reduce_data(X, y, weights, 2, rules)
    assert data.rules is not None and sorted(data.rules.masses[0].tolist()) == [3, 3, 4, 5]
    assert data.total_weight == 4 and sorted(data.feature.tolist()) == [0, 2]
    assert reduce_data(X, y, weights, 2, LocalRules.leaves(mass, 7.0)).feature.tolist() == [0]
    assert reduce_data(X, y, weights, 2, LocalRules.leaves(mass, 16.0)).n_features == 0
    apart = LocalRules.pairs(5, 4, [(1, 2)])
    both = LocalRules.joined([rules, apart])
    assert sorted(reduce_data(X, y, weights, 2, both).feature.tolist()) == [0, 1, 2]  # 0 and 3 are complements
    child = reduce_data(X, y, weights, 2, apart)
    column = child.feature.tolist().index(1)
    assert 2 not in child.restricted(child.X[:, column] == 0, column).feature


def test_rules_are_joined() -> None:
    """The strictest minimum of each mass; nothing where nothing is forbidden."""
    mass, other = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    assert LocalRules.joined([]) is None
    assert LocalRules.joined([LocalRules.leaves(mass, 0.0), LocalRules.pairs(2, 3, [])]) is None
    joined = LocalRules.joined([LocalRules.leaves(*each) for each in ((mass, 1.0), (mass, 2.0), (other, 1.0))])
    assert joined is not None and joined.least == (2.0, 1.0) and joined.masses.shape == (2, 2)
    joined = LocalRules.joined([LocalRules.pairs(2, 3, [(0, 1)]), LocalRules.pairs(2, 3, [(1, 2)])])
    assert joined is not None and joined.apart is not None and joined.apart.sum() == 4


@pytest.mark.parametrize("masses", [[-1.0, 1.0], [np.nan, 1.0], [[1.0]], [0.1, 2.0**60], [np.inf, 1.0]])
def test_masses_that_cannot_be_summed(masses: Any) -> None:
    """Refused: a leaf of exactly the least mass could not be told from a lighter one."""
    with pytest.raises(InvalidInputError, match="mass"):
        LocalRules.leaves(masses, 1.0)


def test_similar_sides() -> None:
    """Bounds are carried over only to sides on which no leaf is heavier, and below which nothing more is allowed."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        instance = _instance(rng)
        dataset = instance.dataset
        rules = _draw(rng, dataset)
        data = reduce_data(dataset.X, dataset.y, dataset.weights, dataset.n_classes, rules.local(dataset))
        for f in range(data.n_features if data.rules is not None else 0):
            for side in (0, 1):
                beyond = data.beyond(f, side)
                known = data.at((f, side))
                for g, other in np.argwhere(np.isfinite(beyond)).tolist():
                    there = data.at((g, other))
                    lost = data.weights[(data.X[:, g] == other) & (data.X[:, f] != side)].sum()
                    assert beyond[g, other] == lost
                    units = Units(data.signed)
                    known_best, best = (
                        units.to_score(ProfileSolver().solve(part, 2).lower[-1], part.total_weight)
                        for part in (known, there)
                    )
                    assert best <= known_best + lost, (f, side, g, other, rules, instance)


def test_a_side_that_loses_mass_is_not_similar() -> None:
    """Four samples that split in halves of the least mass, and three of them that do not: 4 > 2 + 1."""
    rows = [(1, 1, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1), (0, 0, 0), (0, 0, 0)]
    X, y = np.array(rows, dtype=bool), np.array([0, 0, 1, 1, 0, 0])
    data = reduce_data(X, y, np.ones(6), 2, LocalRules.leaves(np.ones(6), 2.0))
    four, three = (data.feature.tolist().index(feature) for feature in (0, 1))
    sides = [int(not data.flipped[column]) for column in (four, three)]
    assert data.beyond(three, sides[1])[four, sides[0]] == np.inf
    assert data.beyond(four, sides[0])[three, sides[1]] == 0.0


# ---------------------------------------------------------------- solve, frontier and path


def _constraints(rng: np.random.Generator, instance: Instance, kind: str) -> list[Any]:
    constraints: list[Any] = []
    if "leaves" in kind or kind == "all":
        amount = {"share": float(rng.choice([0.05, 0.1, 0.25, 1 / 3, 0.5, 1.0]))}
        constraints.append(MinLeafWeight(**amount) if rng.random() < 0.7 else MinLeafWeight(amount=2.0))
    if "pairs" in kind or kind == "all":
        F = instance.X.shape[1]
        constraints.append(ForbiddenPairs([(f, g) for f in range(F) for g in range(f) if rng.random() < 0.5]))
    if kind == "all":
        constraints.append(MaxLeaves(int(rng.integers(1, 6))))
    return constraints


def _expected(instance: Instance, constraints: list[Any]) -> list[float]:
    """Scores by number of leaves, from what the constraints say of themselves."""
    data = instance.dataset
    bound = [constraint.bind(data) for constraint in constraints if type(constraint) is MinLeafWeight]
    minima = [(each.masses, each._enough) for each in bound]
    pairs = [pair for constraint in constraints if type(constraint) is ForbiddenPairs for pair in constraint.pairs]
    limit = min([constraint.n for constraint in constraints if type(constraint) is MaxLeaves], default=None)
    return ruled_scores(data, instance.max_depth, minima, pairs, limit)


@pytest.mark.daily(4)
@pytest.mark.parametrize("kind", ["leaves", "pairs", "leaves and pairs", "all"])
def test_solve_frontier_and_path_agree(way: str, kind: str) -> None:
    """With each other and with the oracle, without a solver; the tree keeps what the constraints measure."""
    rng = np.random.default_rng([len(kind), len(way)])
    config = Config.from_mapping({"subtree_bounds": {"memory_limit": _memory(way)}}, Config.preset("default"))
    for _ in range(12):
        instance = _instance(rng)
        constraints = _constraints(rng, instance, kind)
        data, total = instance.dataset, instance.dataset.total_weight
        scores = np.array(_expected(instance, constraints))
        optimum = ruled_value(scores, instance.leaf_price) / total
        given_data = {"sample_weight": instance.sample_weight, "max_depth": instance.max_depth}
        common: dict[str, Any] = given_data | {"constraints": constraints}
        solved = accel_oct.solve(instance.X, instance.y, leaf_penalty=instance.leaf_penalty, config=config, **common)
        common["memory_limit"] = _memory(way)
        table = accel_oct.frontier(instance.X, instance.y, **common)
        read = accel_oct.solve_path(instance.X, instance.y, leaf_penalties=[instance.leaf_penalty], **common)[0]
        np.testing.assert_array_equal(table.scores, scores / total)
        assert table.max_leaves == len(scores) and np.array_equal(table.scores, table.bounds)
        for result in (solved, read, table.best(instance.leaf_penalty)):
            assert "branch and cut" not in result.stats["decided_by"], (constraints, instance)
            assert result.objective == pytest.approx(optimum, abs=1e-9) and result.bound == result.objective
            if optimum == -np.inf:
                assert result.status == table.status == "infeasible" and result.found is None
                assert result.constraints == ()
                continue
            assert result.status == table.status == "optimal"
            assert all(rule.bind(data).violation(result.tree) <= 0 for rule in constraints)
            assert [report.name for report in result.constraints] == [rule.bind(data).name for rule in constraints]
            assert all(report.slack >= 0 for report in result.constraints)


def test_no_tree_at_all() -> None:
    """Data lighter than the least leaf: every way says so, and points have no trees."""
    X, y = [[0, 1], [1, 0], [1, 1]], [0, 1, 1]
    rule = [MinLeafWeight(amount=4)]
    for depth in (0, 2, 4):
        assert accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.1, constraints=rule).status == "infeasible"
        table = accel_oct.frontier(X, y, max_depth=depth, constraints=rule)
        assert table.status == "infeasible" and np.all(table.scores == -np.inf)
        for point in table:
            assert point.found is None and point.is_proven
            with pytest.raises(NoTreeError):
                point.tree  # noqa: B018
        with pytest.raises(NoTreeError):
            table.tree(1)
        (result,) = accel_oct.solve_path(X, y, max_depth=depth, leaf_penalties=[0.1], constraints=rule)
        assert result.status == "infeasible" and result.objective == result.bound == -np.inf


def test_the_frontier_refuses_what_ties_subtrees_together() -> None:
    """Naming the constraint, and who can take it."""
    for rule in (MaxFeatures(1), ForbiddenPairs([(0, 1)], on="tree")):
        for call in (accel_oct.frontier, lambda *a, **k: accel_oct.solve_path(*a, leaf_penalties=[0.1], **k)):
            with pytest.raises(InvalidInputError, match=r"(feature|forbidden pairs).*couples subtrees.*solve"):
                call([[0, 1], [1, 0]], [0, 1], max_depth=1, constraints=[MinLeafWeight(amount=1), rule])


@dataclass(frozen=True)
class ClassSupport(Constraint, BoundConstraint):
    """Every leaf has so many samples of class 1: a rule of a user's own, that the master knows nothing of."""

    least: float
    dataset: BinaryDataset | None = None
    name = "support of class 1"

    def bind(self, dataset: BinaryDataset) -> ClassSupport:
        return ClassSupport(self.least, dataset)

    @property
    def traits(self) -> Traits:
        assert self.dataset is not None
        return Traits(local=LocalRules.leaves((self.dataset.y == 1).astype(float), self.least), reads={"class", "rows"})

    def violation(self, tree: DecisionTree) -> float:
        assert self.dataset is not None
        leaves = tree.apply(self.dataset.X)[self.dataset.y == 1]
        return self.least - min(int(np.sum(leaves == leaf)) for leaf in tree.leaves)

    def add_to(self, master: Master) -> None:
        pass


def test_a_rule_of_ones_own(way: str) -> None:
    """Offered as `local` like those that come with the library, alone and beside them."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        instance = _instance(rng, 3)
        data, rules = instance.dataset, [ClassSupport(2), MinLeafWeight(share=0.1)]
        mine = ((data.y == 1).astype(float), 2.0)
        for constraints in (rules[:1], rules):
            share = rules[1].bind(data)
            minima = [mine, (share.masses, share._enough)][: len(constraints)]
            scores = np.array(ruled_scores(data, instance.max_depth, minima))
            common: dict[str, Any] = {"sample_weight": instance.sample_weight, "max_depth": instance.max_depth}
            table = accel_oct.frontier(instance.X, instance.y, constraints=constraints, **common)
            np.testing.assert_array_equal(table.scores, scores / data.total_weight)
            solved = accel_oct.solve(
                instance.X, instance.y, leaf_penalty=instance.leaf_penalty, constraints=constraints, **common
            )
            assert solved.status == ("infeasible" if scores[0] == -np.inf else "optimal")
            optimum = ruled_value(scores, instance.leaf_price) / data.total_weight
            assert solved.objective == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize("wrong", [3, LocalRules.leaves([1.0], 1.0), LocalRules.pairs(2, 3, [(0, 1)])])
def test_local_must_be_rules_for_the_data(wrong: Any) -> None:
    """A trait that is something else, or is about other data, is an error, not silence."""

    class Wrong(ClassSupport):
        @property
        def traits(self) -> Traits:
            return Traits(local=wrong)

        def bind(self, dataset: BinaryDataset) -> Wrong:
            return Wrong(self.least, dataset)

    with pytest.raises(InvalidInputError, match=r"(constraints\[0\]|Traits): local"):
        accel_oct.solve([[0], [1]], [0, 1], max_depth=1, leaf_penalty=0.0, constraints=[Wrong(1)])


def test_what_a_problem_knows() -> None:
    """Independence, limits on leaves and the number of leaves, under local and other constraints."""
    data = BinaryDataset.from_arrays([[0, 1], [1, 0], [1, 1]], [0, 1, 0])

    def problem(*constraints: Any) -> Problem:
        return Problem.of(Accuracy().bind(data), 4, 0.0, constraints, merge=False)

    light, pairs = MinLeafWeight(amount=1), ForbiddenPairs([(0, 1)])
    assert problem(light, pairs).subtrees_are_independent and problem(light).most_leaves == 3
    assert problem(light, MaxLeaves(2)).max_leaves == 2 and not problem(light, MaxLeaves(2)).subtrees_are_independent
    assert problem(light, MaxLeaves(2), MaxFeatures(1)).max_leaves is None
    assert problem(light, MaxFeatures(1)).rules is not None and problem(light, MaxFeatures(1)).most_leaves == 3
    assert not problem(ForbiddenPairs([(0, 1)], on="tree")).subtrees_are_independent
    assert problem(MinLeafWeight(amount=0)).rules is None and problem(MinLeafWeight(amount=0)).subtrees_are_independent


@pytest.mark.parametrize("preset", ["paper", "bendoct:all", "default"])
def test_the_master_without_tables(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables switched off: no OPTIMALITY cut is made, which would not know the rule, and the optimum is found."""
    skip_unless_available("highs")

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("path-bound cuts must be off")

    monkeypatch.setattr(path_bound.PathBoundCuts, "__init__", refuse)
    switches = {"subtree_bounds": {"tables": False}, "path_bound": {"enabled": True}}
    config = Config.from_mapping(switches, Config.preset(preset))
    rng = np.random.default_rng(len(preset))
    for _ in range(8):
        drawn = random_instance(rng, max_samples=14, max_features=3, max_depth=2, max_classes=3)
        instance = Instance(drawn.X, drawn.y, drawn.sample_weight, 0.01, 2)
        data = instance.dataset
        constraints = _constraints(rng, instance, str(rng.choice(["leaves", "pairs", "leaves and pairs"])))
        bound = [constraint.bind(data) for constraint in constraints]
        values = [
            tree.value(data, instance.leaf_price)
            for tree in enumerate_trees(data, 2)
            if all(rule.violation(tree) <= 0 for rule in bound)
        ]
        result = accel_oct.solve(
            instance.X,
            instance.y,
            sample_weight=instance.sample_weight,
            max_depth=2,
            leaf_penalty=0.01,
            config=config,
            constraints=constraints,
        )
        if not values:
            assert result.status == "infeasible"
            continue
        assert result.status == "optimal", (result, constraints, instance)
        assert result.objective == pytest.approx(max(values) / data.total_weight, abs=1e-8)


def test_rules_tighten_the_bound_beside_other_constraints() -> None:
    """Where something else ties subtrees together, tables still bound, and better with the local rule known."""
    rng = np.random.default_rng(3)
    X = rng.random((60, 6)) < 0.5
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(60) < 0.2)
    common: dict[str, Any] = {"max_depth": 3, "leaf_penalty": 0.0, "solver": Solver(node_limit=1)}
    free = accel_oct.solve(X, y, constraints=[MaxFeatures(5), MaxLeaves(8)], **common)
    ruled = accel_oct.solve(X, y, constraints=[MaxFeatures(5), MaxLeaves(8), MinLeafWeight(share=0.2)], **common)
    alone = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=[MinLeafWeight(share=0.2)])
    assert min(row.bound for row in ruled.history) <= alone.objective < min(row.bound for row in free.history)
