"""The search over sets of features, with and without other constraints, against everything that trees can predict."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constraint_support import KINDS, best_value, random_constraint, small_instance
from helpers.selection import daily
from oracles.instances import Instance

import accel_oct
from accel_oct.constraints import (
    FeatureCosts,
    ForbiddenFeatures,
    ForbiddenPairs,
    Linear,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    Recall,
    StatisticalParity,
)
from accel_oct.data import BinaryDataset
from accel_oct.exact.group_sets import GroupSets
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.formulation import Incumbent
from accel_oct.solving.phases.feature_sets import (
    FeatureSetSearch,
    NodeSolver,
    PricedNodes,
    SetLists,
    SetRules,
    TableNodes,
    on_columns,
)
from accel_oct.solving.problem import BoundRounding
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

LINEAR = tuple(kind for kind in KINDS if kind is not MaxLeaves)


@pytest.fixture(params=["listed", "branched"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sets are looked up in common tables as soon as possible, or never."""
    quicker = request.param == "listed"
    monkeypatch.setattr(SetLists, "is_quicker", lambda self, spent: quicker and np.isfinite(self.seconds))
    return request.param


def set_rule(rng: np.random.Generator, n_features: int, kind: int | None = None) -> Any:
    """One of the four kinds; by columns, or by groups of them."""
    groups = None if rng.random() < 0.5 else rng.integers(0, 3, n_features)
    kind = int(rng.integers(4)) if kind is None else kind
    if kind == 0:
        return MaxFeatures(int(rng.integers(0, 4)), groups)
    if kind == 1:
        n_groups = n_features if groups is None else len(set(groups.tolist()))
        prices = rng.choice([0.0, 0.1, 0.2, 0.3], n_groups)
        return FeatureCosts(prices, groups, at_most=float(rng.choice([0.0, 0.3, 0.5])))
    if kind == 2:
        return ForbiddenFeatures(np.flatnonzero(rng.random(n_features) < 0.4))
    pairs = [pair for pair in itertools.combinations(range(n_features), 2) if rng.random() < 0.5]
    return ForbiddenPairs(pairs, on="tree")


def allows(rule: Any, columns: Sequence[int], n_features: int) -> bool:
    """What each rule says of a set of columns, said once more."""
    if isinstance(rule, ForbiddenFeatures):
        return not set(columns) & set(rule.features)
    if isinstance(rule, ForbiddenPairs):
        return not any(set(pair) <= set(columns) for pair in rule.pairs)
    names = list(range(n_features)) if rule.sources is None else list(rule.sources)
    used = {names[column] for column in columns}
    if isinstance(rule, MaxFeatures):
        return len(used) <= rule.n
    price = dict(zip(sorted(set(names)), rule.prices, strict=True))
    return sum(price[name] for name in used) <= rule.at_most + 1e-7


def optimum(instance: Instance, rules: Sequence[Any], others: Sequence[Any]) -> float:
    """The best of all trees on each set of columns that the rules allow."""
    n_features = instance.X.shape[1]
    best = -np.inf
    for columns in itertools.chain.from_iterable(
        itertools.combinations(range(n_features), size) for size in range(n_features + 1)
    ):
        if all(allows(rule, columns, n_features) for rule in rules):
            X = instance.X[:, list(columns)] if columns else np.zeros_like(instance.X[:, :1])
            best = max(best, best_value(replace(instance, X=X), others))
    return best


def check(instance: Instance, rules: Sequence[Any], others: Sequence[Any] = ()) -> str:
    """Status, objective, bound and history agree with the oracle; returns who decided."""
    best = optimum(instance, rules, others)
    constraints = [*rules, *others]
    result = accel_oct.solve(
        instance.X,
        instance.y,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        sample_weight=instance.sample_weight,
        constraints=constraints,
    )
    for row in result.history:
        assert row.objective <= best + 1e-8 and row.bound >= best - 1e-8, (row, best, instance)
    if best == -np.inf:
        assert result.status == "infeasible" and result.found is None, instance
    else:
        assert result.status == "optimal" and abs(result.objective - best) <= 1e-8, (result, best, instance)
        assert all(rule.bind(instance.dataset).violation(result.tree) <= 0 for rule in constraints), instance
    return str(result.stats["decided_by"])


def linear(rng: np.random.Generator, instance: Instance) -> Any:
    return random_constraint(rng, LINEAR[int(rng.integers(len(LINEAR)))], instance)


@pytest.mark.daily(3)
@pytest.mark.parametrize("kind", range(4))
def test_a_rule_alone(kind: int, how: str) -> None:
    """Every kind, at depths one to four."""
    rng = np.random.default_rng([kind, len(how)])
    for _ in range(25):
        instance = small_instance(rng)
        decided = check(instance, [set_rule(rng, instance.X.shape[1], kind)])
        assert "branch and cut" not in decided


def test_rules_together(how: str) -> None:
    """Two or three at once."""
    rng = np.random.default_rng(len(how))
    for _ in range(40):
        instance = small_instance(rng)
        rules = [set_rule(rng, instance.X.shape[1]) for _ in range(int(rng.integers(2, 4)))]
        assert "branch and cut" not in check(instance, rules)


@pytest.mark.daily(2)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_all_sets_of_more_columns(n: int, how: str) -> None:
    """A rule on three of nine columns, and noise: as good as the best of all sets."""
    rng = np.random.default_rng(n)
    X = rng.integers(0, 2, (150, 9))
    y = (X[:, 0] & X[:, 3]) ^ X[:, 6] ^ (rng.random(150) < 0.2)
    limits: dict[str, Any] = {"max_depth": 3, "leaf_penalty": 0.0}
    sets = itertools.combinations(range(9), n)
    best = max(accel_oct.solve(X[:, columns], y, **limits).objective for columns in sets)
    result = accel_oct.solve(X, y, constraints=[MaxFeatures(n)], **limits)
    assert result.objective == pytest.approx(best, abs=1e-12) and result.stats["decided_by"] == "feature sets"
    assert (result.stats["feature_sets"]["sets"] > 0) == (how == "listed")


def test_with_few_leaves() -> None:
    """A limit on leaves besides, twice at times."""
    rng = np.random.default_rng(5)
    decided = []
    for _ in range(60):
        instance = small_instance(rng)
        others = [MaxLeaves(int(rng.integers(1, 6))) for _ in range(int(rng.integers(1, 3)))]
        decided.append(check(instance, [set_rule(rng, instance.X.shape[1])], others))
    assert "feature sets" in decided and not any("branch and cut" in by for by in decided)


@pytest.mark.parametrize("seed", daily(range(4), 2))
def test_with_limits(seed: int) -> None:
    """One or two linear limits besides, a limit on leaves at times."""
    rng = np.random.default_rng([seed, 7])
    decided = []
    for _ in range(15):
        instance = small_instance(rng)
        others = [linear(rng, instance) for _ in range(int(rng.integers(1, 3)))]
        if rng.random() < 0.3:
            others.append(MaxLeaves(int(rng.integers(1, 6))))
        rules = [set_rule(rng, instance.X.shape[1]) for _ in range(int(rng.integers(1, 3)))]
        decided.append(check(instance, rules, others))
    assert "feature sets" in decided and not any("branch and cut" in by for by in decided)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_all_sets_with_limits(depth: int) -> None:
    """Data on which sets have to be settled one by one: as good as the best of all pairs under the same limits."""
    nodes = []
    for seed in range(3):
        rng = np.random.default_rng([seed, depth])
        X = rng.integers(0, 2, (120, 7))
        y = (X[:, 0] & X[:, 3]) ^ X[:, 6] ^ (rng.random(120) < 0.2)
        limits: dict[str, Any] = {"max_depth": depth, "leaf_penalty": 0.0}
        for others in ([StatisticalParity(X[:, 1], 0.02)], [StatisticalParity(X[:, 3], 0.1), MaxLeaves(5)]):
            pairs = itertools.combinations(range(7), 2)
            best = max(accel_oct.solve(X[:, pair], y, constraints=others, **limits).objective for pair in pairs)
            result = accel_oct.solve(X, y, constraints=[MaxFeatures(2), *others], **limits)
            assert result.status == "optimal" and result.stats["decided_by"] == "feature sets"
            assert result.objective == pytest.approx(best, abs=1e-12)
            nodes.append(result.stats["feature_sets"]["nodes"])
    assert max(nodes) > 7


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_at_length(seed: int) -> None:
    """One to three rules with up to two limits, on many instances."""
    rng = np.random.default_rng([seed, 11])
    for _ in range(40):
        instance = small_instance(rng)
        others = [linear(rng, instance) for _ in range(int(rng.integers(0, 3)))]
        if rng.random() < 0.3:
            others.append(MaxLeaves(int(rng.integers(1, 6))))
        check(instance, [set_rule(rng, instance.X.shape[1]) for _ in range(int(rng.integers(1, 4)))], others)


# ---------------------------------------------------------------- stopped


@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("seed", daily(range(6), 2))
def test_stopped_at_any_moment(seed: int, priced: bool) -> None:
    """Every bound holds, every tree satisfies all rules, and without a stop the two meet."""
    rng = np.random.default_rng([seed, priced])
    instance = small_instance(rng)
    while instance.X.shape[1] < 3 or instance.max_depth < 2:
        instance = small_instance(rng)
    data, depth = instance.dataset, instance.max_depth
    stated = [MaxFeatures(2), ForbiddenPairs([(0, 1)], on="tree")]
    others = [linear(rng, instance)] if priced else []
    best = optimum(instance, stated, others) * data.total_weight
    constraints = [rule.bind(data) for rule in (*stated, *others)]
    ends = []
    for steps in [*range(0, 30, 3), *range(30, 400, 37), 10**9]:
        left = itertools.count(-steps)
        stopper = Stopper(should_stop=lambda left=left: next(left) >= 0)
        incumbent, bounds = Incumbent(data, instance.leaf_price, constraints), [data.total_weight]
        for label in range(data.n_classes):
            incumbent.offer(DecisionTree.leaf(label, depth))

        def offer(tree: DecisionTree, incumbent: Incumbent = incumbent) -> float:
            incumbent.offer(tree)
            return incumbent.value

        def tighten(bound: float, bounds: list[float] = bounds) -> bool:
            bounds.append(bound)
            return False

        solver: NodeSolver = TableNodes(data, depth, instance.leaf_price, stopper)
        if priced:
            limits = [limit for constraint in constraints[2:] for limit in constraint.traits.limits]
            problem = LimitedProblem.of(data, limits, instance.leaf_price, depth)
            rounding = BoundRounding(data.total_weight, instance.leaf_price, 2**depth, data.integral)
            solver = PricedNodes(data, problem, constraints[2:], rounding, stopper)
        rules = SetRules.of(constraints)
        FeatureSetSearch(data, rules, solver, offer, tighten, stopper).run(incumbent.value, bounds[0])
        assert incumbent.value <= best + 1e-8 and min(bounds) >= best - 1e-8, (steps, instance)
        ends.append(min(bounds))
    assert incumbent.value == pytest.approx(best, abs=1e-8) and ends[-1] == pytest.approx(best, abs=1e-6)


class Unwilling:
    """Solves nothing that can be branched on; and nothing at all if told so."""

    def __init__(self, solver: TableNodes, worth: float, never: bool = False) -> None:
        self.solver, self.worth, self.never = solver, worth, never

    def best(self, columns: Any, known: float, offer: Any, *, final: bool) -> tuple[float, DecisionTree | None]:
        if self.never or not final:
            return self.worth, None
        return self.solver.best(columns, known, offer, final=final)


def _unwillingly(never: bool) -> tuple[float, list[float], float]:
    """What a search found, the bounds that it told, and the optimum."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (80, 6))
    y = (X[:, 1] & X[:, 4]) ^ (rng.random(80) < 0.1)
    data, rule = BinaryDataset.from_arrays(X, y), MaxFeatures(2)
    best = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, constraints=[rule]).objective * 80
    incumbent, bounds = Incumbent(data, 0.0, [rule.bind(data)]), [80.0]
    incumbent.offer(DecisionTree.leaf(0, 2))

    def offer(tree: DecisionTree) -> float:
        incumbent.offer(tree)
        return incumbent.value

    solver = Unwilling(TableNodes(data, 2, 0.0), 79.0, never)
    FeatureSetSearch(data, SetRules.of([rule.bind(data)]), solver, offer, bounds.append).run(incumbent.value, 80.0)
    return incumbent.value, bounds, best


def test_what_cannot_be_solved_stays_open() -> None:
    """A node that is given up keeps its bound."""
    value, bounds, best = _unwillingly(never=True)
    assert value <= best and min(bounds) == 79.0


def test_what_is_not_solved_is_branched_on() -> None:
    """Groups in or out, until the solver is willing: every set is found in the end."""
    value, bounds, best = _unwillingly(never=False)
    assert value == min(bounds) == best


def test_lists_stopped_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not looked up is not taken for proven."""
    monkeypatch.setattr(SetLists, "is_quicker", lambda self, spent: True)
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (150, 9))
    instance = BinaryDataset.from_arrays(X, (X[:, 0] & X[:, 3]) ^ X[:, 6] ^ (rng.random(150) < 0.15))
    rules = SetRules.of([MaxFeatures(2).bind(instance)])
    best = {
        depth: max(
            accel_oct.solve(X[:, pair], instance.y, max_depth=depth, leaf_penalty=0.0).objective
            for pair in itertools.combinations(range(9), 2)
        )
        for depth in (3, 4)
    }
    proven = []
    for depth, steps in itertools.product((3, 4), [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 10**9]):
        left = itertools.count(-steps)
        stopper = Stopper(should_stop=lambda left=left: next(left) >= 0)
        incumbent, bounds = Incumbent(instance, 0.0, [MaxFeatures(2).bind(instance)]), [instance.total_weight]
        incumbent.offer(DecisionTree.leaf(0, depth))

        def offer(tree: DecisionTree, incumbent: Incumbent = incumbent) -> float:
            incumbent.offer(tree)
            return incumbent.value

        lists = SetLists(instance, rules, depth, 0.0, stopper, 1 << 30)
        solver = TableNodes(instance, depth, 0.0, stopper)
        search = FeatureSetSearch(
            instance,
            rules,
            solver,
            offer,
            lambda bound, bounds=bounds: bounds.append(bound) is not None,
            stopper,
            lists,
        )
        search.run(incumbent.value, bounds[0])
        assert incumbent.value <= best[depth] * 150 + 1e-9 and min(bounds) >= best[depth] * 150 - 1e-9
        proven.append(min(bounds) <= incumbent.value)
    assert proven[13] and proven[27] and not all(proven)


# ---------------------------------------------------------------- tables of groups


@pytest.mark.daily(3)
@pytest.mark.parametrize("weights", ["ones", "large", "real"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("depth", [3, 4])
def test_tables_of_groups(depth: int, n_classes: int, weights: str) -> None:
    """Every set of groups is worth what the tables of its columns say; columns repeat within and across groups."""
    rng = np.random.default_rng([depth, n_classes, len(weights)])
    for penalty in (0.0, 0.015625):
        X = rng.integers(0, 2, (60, 11)).astype(bool)
        X[:, 3], X[:, 7], X[:, 9] = X[:, 2], ~X[:, 0], True
        y = (X[:, 0].astype(int) + (X[:, 4] ^ X[:, 6]) + (rng.random(60) < 0.2)) % n_classes
        w = np.ones(60) if weights == "ones" else rng.integers(1, 2000, 60) * (1.0 if weights == "large" else 1 / 16)
        group = np.array([0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 1])
        tables = GroupSets(X, y, w, n_classes, group, penalty * w.sum(), depth)
        for chosen in [(0,), (1,), (5,), (0, 2), (1, 3), (2, 4, 5), (0, 1, 2), (0, 1, 3, 4), (0, 1, 2, 3, 4, 5)]:
            columns = np.flatnonzero(np.isin(group, chosen))
            best = (
                accel_oct.solve(X[:, columns], y, max_depth=depth, leaf_penalty=penalty, sample_weight=w).objective
                * w.sum()
            )
            leaf = np.bincount(y, w).max() - penalty * w.sum()
            told = []

            def found(number: int, told: list[int] = told, best: float = best) -> float:
                told.append(number)
                return best

            assert tables.search(np.array([[*chosen, *[-1] * (6 - len(chosen))]]), leaf, Stopper(), found)
            assert bool(told) == (best > leaf + 1e-9)
            told.clear()
            # A tree that is as good is not worth telling of, one that is a little worse is beaten.
            assert tables.search(np.array([[*chosen]]), best + 1e-6, Stopper(), found) and not told
            if best > leaf + 1e-9:
                assert tables.search(np.array([[*chosen]]), best - 1e-6, Stopper(), found) and told


@pytest.mark.parametrize("depth", [3, 4])
def test_a_tree_that_was_not_built(depth: int) -> None:
    """Whoever does not build the tree that was promised was stopped, and so was the search."""
    X = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(bool)
    tables = GroupSets(X, (X[:, 0] ^ X[:, 1]).astype(int), np.ones(60), 2, np.arange(4), 0.0, depth)
    assert not tables.search(np.array([[0, 1]]), 40.0, Stopper(), lambda number: 59.0)
    assert tables.search(np.array([[0, 1]]), 40.0, Stopper(), lambda number: 60.0)


def test_limits_on_some_columns() -> None:
    """A tree is worth and uses the same, whether points that its columns do not tell apart are one or many."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        instance = small_instance(rng)
        while instance.X.shape[1] < 2:
            instance = small_instance(rng)
        limits = linear(rng, instance).bind(instance.dataset).traits.limits
        problem = LimitedProblem.of(instance.dataset, limits, 0.25, 2)
        columns = np.array([instance.X.shape[1] - 1])
        small = problem.restricted(columns)
        assert len(small.X) == len(np.unique(instance.X[:, columns]))
        tree = DecisionTree.branch(0, DecisionTree.leaf(0), DecisionTree.leaf(1))
        assert small.outcome(tree) == pytest.approx(problem.outcome(on_columns(tree, columns)), abs=1e-9)


def test_largest_sets() -> None:
    """All that no group can be added to, each once; by formula, one by one, and not at all where they are many."""
    data = BinaryDataset.from_arrays(np.eye(6, dtype=int), [0, 1, 0, 1, 0, 1])
    everything = np.ones(6, dtype=bool)
    rules = SetRules.of([MaxFeatures(2).bind(data)])
    found = rules.largest(frozenset([1]), everything, 100)
    assert found is not None and sorted(map(tuple, found.tolist())) == [(1, 0), (1, 2), (1, 3), (1, 4), (1, 5)]
    assert rules.largest(frozenset(), everything, 14) is None and len(rules.largest(frozenset(), everything, 15)) == 15
    pairs = ForbiddenPairs([(0, 1), (1, 2)], on="tree").bind(data)
    rules = SetRules.of([pairs, FeatureCosts([0, 0, 0, 1, 1, 1], at_most=1).bind(data)])
    names = rules.of_column.tolist()
    found = rules.largest(rules.paid(frozenset()), np.ones(rules.size, dtype=bool), 100)
    sets = {frozenset(names.index(g) for g in row if g >= 0) for row in found.tolist()}
    assert sets == {frozenset([*ends, last]) for ends in ([0, 2], [1]) for last in (3, 4, 5)}
    assert len(found) == 6
    # Columns 1 and 2 pay for both parts of both groupings, so that 0 is free; what was excluded stays so.
    halves = [MaxFeatures(2, groups).bind(data) for groups in ([0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1])]
    rules = SetRules.of(halves)
    assert rules.paid(frozenset([1, 2])) == frozenset(range(4))
    found = rules.largest(frozenset(), np.array([False, True, True, True]), 100)
    assert found.tolist() == [[1, 2, 3]]


# ---------------------------------------------------------------- where it applies


def _with_branches(predictions: Any) -> Linear:
    return Linear(predictions, branches=[1.0, 0.0, 0.0, 0.0, 0.0], upper=1.0)


def test_what_it_leaves_to_others() -> None:
    """Constraints that it does not know."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 5))
    y = X[:, 0] ^ X[:, 1] ^ (rng.random(60) < 0.1)
    limits: dict[str, Any] = {"max_depth": 2, "leaf_penalty": 0.0}
    odd = np.zeros((60, 2))
    result = accel_oct.solve(X, y, constraints=[MaxFeatures(2), Recall(at_least=0.8), _with_branches(odd)], **limits)
    assert result.status == "optimal" and "feature_sets" not in result.stats
    for others in (
        [Recall(at_least=0.8)],
        [MaxLeaves(3)],
        [ForbiddenPairs([(0, 1)], on="tree")],
        [MinLeafWeight(amount=3)],
        [ForbiddenPairs([(0, 1)], on="path"), MaxLeaves(3), MinLeafWeight(amount=3)],
    ):
        result = accel_oct.solve(X, y, constraints=[MaxFeatures(2), *others], **limits)
        assert result.status == "optimal" and "feature_sets" in result.stats
