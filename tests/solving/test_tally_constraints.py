"""Constraints on a tally: the same optimum, proven, as on the rows that were counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.constraint_support import best_value, keeps, small_instance
from helpers.selection import daily
from helpers.tally_support import TALLY_KINDS, exact_weights, random_case
from oracles.instances import random_instance

import accel_oct
from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    EqualisedOdds,
    EqualOpportunity,
    FeatureCosts,
    ForbiddenFeatures,
    ForbiddenPairs,
    Linear,
    LinearLimit,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    PositiveBudget,
    Precision,
    PredictiveEquality,
    Recall,
    Specificity,
    StatisticalParity,
    Traits,
)
from accel_oct.constraints.tallied import bind_to_tally, tallied_trees
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact.limited import Outcomes
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.pricing import Dual
from accel_oct.tree import DecisionTree


def solved(tally: Tally, constraints: list[Any], max_depth: int, leaf_penalty: float, **options: Any):
    return accel_oct.solve(tally, max_depth=max_depth, leaf_penalty=leaf_penalty, constraints=constraints, **options)


@pytest.mark.parametrize("seed", daily(range(60), 30))
def test_optima_are_those_of_everything_that_trees_can_predict(seed: int) -> None:
    """On small data rich in ties, one constraint of every kind and pairs of them: optimum or infeasibility, proven."""
    rng = np.random.default_rng([17, seed])
    instance = exact_weights(rng, small_instance(rng))
    kinds = [TALLY_KINDS[seed % len(TALLY_KINDS)]]
    if seed % 3 == 0:
        kinds.append(TALLY_KINDS[int(rng.integers(len(TALLY_KINDS)))])
    case = random_case(rng, instance, kinds)
    expected = best_value(instance, case.constraints)
    result = solved(case.tally, case.on_tally, instance.max_depth, instance.leaf_penalty)
    if expected == -np.inf:
        assert result.status == "infeasible" and result.found is None, instance
        return
    assert result.status == "optimal" and result.bound == result.objective, instance
    assert result.objective == pytest.approx(expected, abs=2e-9), instance
    tree = result.tree
    predicted = (tuple(tree.predictions(instance.X).tolist()), tree.n_leaves)
    assert all(keeps(constraint, instance, predicted) for constraint in case.constraints)


LISTS: dict[str, Any] = {
    "parity": lambda group: [StatisticalParity(group, at_most=0.03)],
    "opportunity and few leaves": lambda group: [EqualOpportunity(group, at_most=0.02), MaxLeaves(5)],
    "odds": lambda group: [EqualisedOdds(group, at_most=0.1)],
    "predictive equality and heavy leaves": lambda group: [
        PredictiveEquality(group, at_most=0.02),
        MinLeafWeight(amount=9),
    ],
    "recall without a column": lambda group: [Recall(at_least=0.9), ForbiddenFeatures(["x0"])],
    "precision with columns apart": lambda group: [
        Precision(at_least=0.9),
        Recall(at_least=0.5),
        ForbiddenPairs([(0, 2), (3, 4)]),
    ],
    "budget and specificity": lambda group: [PositiveBudget(0.2), Specificity(at_least=0.95), MinLeafWeight(share=0.1)],
    "leaves by price": lambda group: [Linear(leaves=1.0, upper=4.0), StatisticalParity(group, at_most=0.05)],
    "impossible": lambda group: [Recall(at_least=1.0), PositiveBudget(0.05)],
}


def wide_data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([5, seed])
    X = rng.random((150, 8)) < 0.5
    group = rng.integers(0, 2, 150)
    X[:, 1] |= X[:, 0]
    X[:, 5], X[:, 6] = ~X[:, 4], X[:, 3]
    X[:, 7] = rng.random(150) < 0.05  # too light for some leaves
    y = ((X[:, 0] & X[:, 2]) | ((group == 1) & X[:, 3]) | (rng.random(150) < 0.15)).astype(int)
    return X, y, group, rng.integers(0, 4, 150)


@pytest.mark.daily(9)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("name", LISTS)
def test_results_are_those_on_rows(name: str, depth: int) -> None:
    """Objective, bound and status to the last bit, constraints kept on the rows, on data with equal columns."""
    X, y, group, weights = wide_data(depth)
    tally = Tally.of(X, y, depth=4, sensitive_features=group, sample_weight=weights)
    on_rows = accel_oct.solve(
        X, y, sample_weight=weights, max_depth=depth, leaf_penalty=0.01, constraints=LISTS[name](group)
    )
    result = solved(tally, LISTS[name](None), depth, 0.01)
    assert (result.objective, result.bound, result.status) == (on_rows.objective, on_rows.bound, on_rows.status)
    if result.found is None:
        assert result.stats["infeasible"]
        return
    again = accel_oct.solve(
        X,
        y,
        sample_weight=weights,
        max_depth=depth,
        leaf_penalty=0.01,
        constraints=LISTS[name](group),
        start=[result.tree],
    )
    assert again.objective == result.objective
    if again.tree == result.tree:
        assert [report.value for report in again.constraints] == [report.value for report in result.constraints]


@pytest.mark.parametrize("seed", range(6))
def test_measures_are_those_on_rows(seed: int) -> None:
    """Value and violation of any tree, those that reuse a column included, are those on the rows."""
    rng = np.random.default_rng([6, seed])
    X, y, group, weights = wide_data(seed)
    tally = Tally.of(X, y, depth=4, sensitive_features=group, sample_weight=weights)
    dataset = BinaryDataset.from_arrays(X, y, weights)
    trees = tallied_trees(tally)
    for name, made in LISTS.items():
        bound = bind_to_tally(made(None), trees)
        for on_tally, stated in zip(bound, made(group), strict=True):
            on_rows = stated.bind(dataset)
            for _ in range(4):
                tree = random_tree(rng, 8, int(rng.integers(0, 5)))
                assert trees.score(tree) == tree.score(dataset)
                np.testing.assert_equal(on_tally.value(tree), on_rows.value(tree), err_msg=name)
                assert on_tally.violation(tree) == pytest.approx(on_rows.violation(tree), abs=1e-12)


def random_tree(rng: np.random.Generator, n_features: int, depth: int) -> DecisionTree:
    if depth == 0 or rng.random() < 0.1:
        return DecisionTree.leaf(int(rng.integers(2)))
    sides = [random_tree(rng, n_features, depth - 1) for _ in range(2)]
    return DecisionTree.branch(int(rng.integers(n_features)), *sides)


# ---------------------------------------------------------------- prices


def both_problems(seed: int, depth: int) -> tuple[LimitedProblem, CellProblem, np.ndarray]:
    """The same limits on rows and on cells, and prices for the limits as stated."""
    X, y, group, weights = wide_data(seed)
    there = weights > 0  # a tally does not know of others
    X, y, group, weights = X[there][:, [0, 1, 2, 3, 4, 5, 7]], y[there], group[there], weights[there]
    stated = [StatisticalParity, EqualOpportunity][seed % 2]
    extra = [MinLeafWeight(amount=12)] if seed % 3 == 0 else []
    if seed % 3 == 1:
        extra = [ForbiddenPairs([(0, 2), (3, 4)])]
    dataset = BinaryDataset.from_arrays(X, y, weights)
    limits = stated(group, at_most=0.02).bind(dataset).traits.limits
    rules = extra[0].bind(dataset).traits.local if extra else None
    price = dataset.leaf_price(0.01)
    rows = LimitedProblem.of(dataset, limits, price, depth, rules)
    trees = tallied_trees(Tally.of(X, y, depth=4, sensitive_features=group, sample_weight=weights))
    cells = trees.cells()
    on_cells = stated(None, at_most=0.02).bind(cells).traits.limits
    gains = np.eye(2)[cells.y]
    cell_rules = extra[0].bind(cells).traits.local if extra else None
    counted = CellProblem.of(trees, gains, on_cells, price, depth, cell_rules)
    prices = np.random.default_rng(seed).random(rows.n_limits) * 60
    return rows, counted, prices


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", daily(range(6), 2))
def test_best_values_are_those_of_the_points(seed: int, depth: int) -> None:
    """Of both sides of every column, below them, and of the best tree; with masses, with columns apart, and without."""
    rows, cells, stated = both_problems(seed, depth)
    priced, counted = rows.priced(stated * rows.scales), cells.priced(stated * cells.scales)
    table = rows.side_tables(priced, None, lambda: False)
    found = cells.side_tables(counted, None, lambda: False)
    constant, own = priced.constant, counted.constant
    assert found.value + own == pytest.approx(table.value + constant, abs=1e-8)
    assert found.columns.tolist() == table.columns.tolist()
    mine, expected = (_finite(*values.sides()) for values in (found, table))
    assert list(mine) == list(expected)
    np.testing.assert_allclose(np.array(list(mine.values())) + own, np.array(list(expected.values())) + constant)
    tree, bound = cells.best_priced(counted, None)
    value = cells.outcome(tree)
    np.testing.assert_allclose(value[0], rows.outcome(tree)[0])
    np.testing.assert_allclose(value[1:] * cells.scales, rows.outcome(tree)[1:] * rows.scales, atol=1e-9)
    at_prices = value[0] + (stated * cells.scales) @ (cells.upper - value[1:])
    assert at_prices == pytest.approx(bound + own, abs=1e-8)
    for root in expected:
        alone = cells.side_tables(counted, root, lambda: False)
        assert alone.value == pytest.approx(mine[root])
        tree, bound = cells.best_priced(counted, root)
        outcome = cells.outcome(tree)
        assert tree.feature[0] == root
        at_prices = outcome[0] + (stated * cells.scales) @ (cells.upper - outcome[1:])
        assert at_prices == pytest.approx(bound + own, abs=1e-8)
        for side in (False, True) if depth == 4 else ():
            below = [_finite(*values.sides_below(root, side)) for values in (found, table)]
            assert list(below[0]) == list(below[1])
            leaf = cells.priced_leaves(counted, ((root, side),)).max()
            other = rows.priced_leaves(priced, rows.side(rows.everyone(), root, side)).max()
            sums = [np.array(list(values.values())) for values in below]
            np.testing.assert_allclose(sums[0] - leaf, sums[1] - other, atol=1e-8)


def _finite(features: np.ndarray, zero: np.ndarray, one: np.ndarray) -> dict[int, float]:
    """Features that lead to trees, in order, and the best values of both sides together."""
    pairs = sorted(zip(features.tolist(), (zero + one).tolist(), strict=True))
    return {feature: value for feature, value in pairs if np.isfinite(value)}


@pytest.mark.parametrize("height", [0, 1, 2])
@pytest.mark.parametrize("seed", daily(range(6), 2))
def test_outcomes_are_those_of_the_points(seed: int, height: int) -> None:
    """Value, uses and loss of all trees within a slack, of sets at the end of paths."""
    rows, cells, stated = both_problems(seed, 4)
    priced, counted = rows.priced(stated * rows.scales), cells.priced(stated * cells.scales)
    columns, slack = cells.columns, 25.0
    for path in ((), ((0, True),), ((2, False), (3, True)), ((0, False), (2, True))):
        found = cells.outcomes(counted, lambda: False).two(path, columns, height, slack)
        expected = rows.outcomes(priced, lambda: False).two(rows.reached(path), columns, height, slack)
        scales = np.append(1.0, cells.scales), np.append(1.0, rows.scales)
        lists = [_sorted(one, scale) for one, scale in zip((found, expected), scales, strict=True)]
        assert len(lists[0]) == len(lists[1]) > 0
        np.testing.assert_allclose(lists[0], lists[1], atol=1e-7)


def _sorted(outcomes: Outcomes, scales: np.ndarray) -> np.ndarray:
    rows = np.column_stack([outcomes.results * scales, outcomes.loss])
    return rows[np.lexsort(np.round(rows, 6).T)]


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_prices_hold(seed: int) -> None:
    """However few prices were tried, the bound is not below the optimum, and the dual says so of each root."""
    _, cells, _ = both_problems(seed, 3)
    optimum: list[float] = []
    dual = Dual(cells, lambda tree: None)
    for price in (0.0, 0.3, 2.0):
        optimum.append(dual.evaluate(np.full(cells.n_limits, price)))
    best = min(optimum)
    for root in cells.columns.tolist():
        assert Dual(cells, lambda tree: None, root=root).evaluate(np.zeros(cells.n_limits)) <= optimum[0] + 1e-9
    assert dual.bound == best


@pytest.mark.parametrize("seed", [49, 65, 74, 80, 95, 100])
def test_weights_that_add_up_to_whole_cells(seed: int) -> None:
    """Quarters that make whole numbers of every cell are still quarters: no bound is rounded down to whole ones."""
    rng = np.random.default_rng(seed)
    X = rng.random((24, 5)) < 0.5
    y, group = rng.integers(0, 2, 24), rng.integers(0, 2, 24)
    weights = rng.integers(1, 9, 24) / 4
    for cell in range(4):
        rows = np.flatnonzero(2 * y + group == cell)
        weights[rows[0]] += -weights[rows].sum() % 1
    depth, at_most = 2 + seed % 2, float(rng.choice([0.02, 0.05, 0.1]))
    tally = Tally.of(X, y, depth=depth, sample_weight=weights, sensitive_features=group)
    assert (tally.counts[0] * 2.0**tally.unit % 1 == 0).all()
    expected = accel_oct.solve(
        X,
        y,
        sample_weight=weights,
        max_depth=depth,
        leaf_penalty=0.0,
        constraints=[StatisticalParity(group, at_most=at_most)],
    )
    result = solved(tally, [StatisticalParity(at_most=at_most)], depth, 0.0)
    assert result.status == "optimal" and result.objective == expected.objective


def test_other_objectives() -> None:
    """Balanced accuracy under parity, to the last bit as on rows."""
    X, y, group, weights = wide_data(3)
    tally = Tally.of(X, y, depth=3, sensitive_features=group, sample_weight=weights)
    on_rows = accel_oct.solve(
        X,
        y,
        sample_weight=weights,
        max_depth=3,
        leaf_penalty=0.01,
        objective="balanced_accuracy",
        constraints=[StatisticalParity(group, at_most=0.05)],
    )
    result = solved(tally, [StatisticalParity(at_most=0.05)], 3, 0.01, objective="balanced_accuracy")
    assert (result.status, result.objective) == ("optimal", on_rows.objective)


def test_pieces() -> None:
    """The sum of the tallies of pieces has the optimum of all rows, though a group is missing from a piece."""
    X, y, group, weights = wide_data(4)
    order = np.argsort(group, kind="stable")
    parts = [
        Tally.of(
            X[rows],
            y[rows],
            depth=3,
            sensitive_features=pd.Series(group[rows], name="sex"),
            sample_weight=weights[rows],
        )
        for rows in np.array_split(order, 4)
    ]
    whole = parts[0] + parts[1] + parts[2] + parts[3]
    expected = solved(
        Tally.of(X, y, depth=3, sensitive_features=group, sample_weight=weights),
        [StatisticalParity(at_most=0.02)],
        3,
        0.01,
    )
    assert solved(whole, [StatisticalParity("sex", at_most=0.02)], 3, 0.01).objective == expected.objective


# ---------------------------------------------------------------- limits and errors


def test_no_time() -> None:
    """The bound is valid when the time is up at once; a tree to begin with is kept."""
    X, y, group, weights = wide_data(1)
    tally = Tally.of(X, y, depth=4, sensitive_features=group, sample_weight=weights)
    optimum = solved(tally, [StatisticalParity(at_most=0.01)], 4, 0.001)
    result = solved(tally, [StatisticalParity(at_most=0.01)], 4, 0.001, time_limit=0.0)
    assert result.status == "time_limit" and result.objective <= optimum.objective <= result.bound
    begun = solved(tally, [StatisticalParity(at_most=0.01)], 4, 0.001, time_limit=0.0, start=[optimum.tree])
    assert begun.objective == optimum.objective


class CountsRows(Constraint):
    """A rule of a user's own that asks for rows: so many of them are predicted to be of the second class."""

    def bind(self, dataset: BinaryDataset) -> Any:
        predictions = np.zeros((dataset.n_samples, dataset.n_classes))
        predictions[:, 1] = 1.0
        return Linear(predictions, upper=10.0).bind(dataset)


class LooksAtColumns(Constraint):
    """A rule of a user's own that asks for columns: few that have one of the first two are of the second class."""

    def bind(self, dataset: BinaryDataset) -> Any:
        predictions = np.zeros((dataset.n_samples, dataset.n_classes))
        predictions[:, 1] = dataset.weights * (dataset.X[:, 0] != dataset.X[:, 1])
        return Linear(predictions, upper=10.0).bind(dataset)


class HeavyGroup(Constraint):
    """A rule of a user's own on cells: the weight of a group that is predicted to be of the second class."""

    def bind(self, dataset: BinaryDataset) -> Any:
        heavy = np.asarray(dataset.values_named("sex")) == 1
        return BoundWeight("few of group 1", dataset, dataset.weights * heavy, frozenset({"group", "weight"}))


@dataclass(frozen=True, eq=False)
class BoundWeight(BoundConstraint):
    """At most 20 of some amounts are predicted to be of the second class."""

    name: str
    dataset: BinaryDataset
    amounts: Any
    reads: frozenset[str]

    @property
    def traits(self) -> Traits:
        predictions = np.zeros((self.dataset.n_samples, self.dataset.n_classes))
        predictions[:, 1] = self.amounts
        return Traits(limits=(LinearLimit(self.name, predictions, 20.0),), reads=self.reads)

    def value(self, tree: DecisionTree) -> float:
        return float(self.amounts[tree.predictions(self.dataset.X) == 1].sum())

    def violation(self, tree: DecisionTree) -> float:
        return self.value(tree) - 20.0


class CountsRowsQuietly(Constraint):
    """Declares that it reads weights, and counts rows."""

    def bind(self, dataset: BinaryDataset) -> Any:
        return BoundWeight("quiet", dataset, np.ones(dataset.n_samples), frozenset({"weight"}))


class LooksAtColumnsQuietly(Constraint):
    """Declares that it reads weights, and looks at columns."""

    def bind(self, dataset: BinaryDataset) -> Any:
        chosen = dataset.X[:, 0] != dataset.X[:, 1]
        return BoundWeight("quiet", dataset, dataset.weights * chosen, frozenset({"weight"}))


def test_a_rule_of_ones_own() -> None:
    """What knows classes, groups and weights is taken, and is measured by its own words."""
    X, y, group, weights = wide_data(2)
    tally = Tally.of(X, y, depth=3, sensitive_features=pd.Series(group, name="sex"), sample_weight=weights)
    result = solved(tally, [HeavyGroup()], 3, 0.01)
    predicted = result.tree.predictions(X) == 1
    assert result.constraints[0].value == weights[predicted & (group == 1)].sum() <= 20
    predictions = np.zeros((150, 2))
    predictions[:, 1] = weights * (group == 1)
    on_rows = accel_oct.solve(
        X,
        y,
        sample_weight=weights,
        max_depth=3,
        leaf_penalty=0.01,
        constraints=[Linear(predictions, upper=20.0)],
    )
    assert result.objective == on_rows.objective


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (StatisticalParity(np.arange(150) % 2, at_most=0.1), "an array as group needs rows"),
        (StatisticalParity("race", at_most=0.1), "no column 'race'"),
        (StatisticalParity("x1", at_most=0.1), "no column 'x1'"),
        (MinLeafWeight(samples=3), r"MinLeafWeight\(samples=...\) needs rows"),
        (MaxFeatures(2), "is not supported on a tally"),
        (FeatureCosts(np.ones(8), at_most=2.0), "is not supported on a tally"),
        (Linear(np.ones((150, 2)), upper=3.0), r"shape \(4, 2\), a row per cell of the tally and a column per class"),
        (Linear(branches=np.ones(8), upper=3.0), "is not supported on a tally"),
        (Linear(leaves=1.0, lower=3.0), "is not supported on a tally"),
        (CountsRows(), "reads more than the classes, groups and weights of a tally"),
        (LooksAtColumns(), "reads more than the classes, groups and weights of a tally"),
        (CountsRowsQuietly(), "reads more than the classes, groups and weights of a tally"),
        (LooksAtColumnsQuietly(), "reads more than the classes, groups and weights of a tally"),
        (StatisticalParity, "did you mean StatisticalParity"),
        ("parity", "must be an accel_oct Constraint"),
        (Recall(positive=7, at_least=0.5), "positive 7 is not a class"),
    ],
)
def test_what_a_tally_cannot_keep(constraint: Any, message: str) -> None:
    """One sentence that names the constraint and what is wrong with it here."""
    X, y, group, weights = wide_data(0)
    tally = Tally.of(X, y, depth=2, sensitive_features=pd.Series(group, name="sex"), sample_weight=weights)
    with pytest.raises(InvalidInputError, match=message) as caught:
        solved(tally, [constraint], 2, 0.01)
    assert "\n" not in str(caught.value) and "\0" not in str(caught.value)


def test_bad_calls() -> None:
    """A tally without groups, too shallow, or beside y; constraints that are no list."""
    X, y, group, weights = wide_data(0)
    plain = Tally.of(X, y, depth=2, sample_weight=weights)
    with pytest.raises(InvalidInputError, match="group must be given"):
        solved(plain, [StatisticalParity(at_most=0.1)], 2, 0.01)
    with pytest.raises(InvalidInputError, match="no column 'sex'"):
        solved(plain, [StatisticalParity("sex", at_most=0.1)], 2, 0.01)
    with pytest.raises(InvalidInputError, match="made for trees of depth 2, and max_depth is 3"):
        solved(plain, [Recall(at_least=0.5)], 3, 0.01)
    with pytest.raises(InvalidInputError, match="y must be None when X is a Tally"):
        accel_oct.solve(plain, y, max_depth=2, leaf_penalty=0.01, constraints=[Recall(at_least=0.5)])
    with pytest.raises(InvalidInputError, match="must be a list of constraints"):
        solved(plain, Recall(at_least=0.5), 2, 0.01)  # type: ignore[arg-type]
    deep = Tally.of(X[:, :5], y, depth=5)
    with pytest.raises(InvalidInputError, match="max_depth must be at most 4 under constraints"):
        solved(deep, [Recall(at_least=0.5)], 5, 0.01)
    with pytest.raises(InvalidInputError, match="tallies by sex and by None do not add up"):
        named = Tally.of(X, y, depth=2, sensitive_features=pd.Series(group, name="sex"))
        named + Tally.of(X, y, depth=2, sensitive_features=group)


def test_random_data_of_several_groups() -> None:
    """Three groups and three classes, every pair compared, against rows."""
    for seed in range(4):
        rng = np.random.default_rng([9, seed])
        instance = exact_weights(rng, random_instance(rng, max_samples=60, max_features=5, max_classes=3))
        instance = replace(instance, max_depth=3)
        group = rng.integers(0, 3, len(instance.y))
        positive = int(instance.y[0])
        tally = Tally.of(
            instance.X, instance.y, depth=3, sample_weight=instance.sample_weight, sensitive_features=group
        )
        if tally.n_groups < 2:
            continue
        on_rows = accel_oct.solve(
            instance.X,
            instance.y,
            sample_weight=instance.sample_weight,
            max_depth=3,
            leaf_penalty=0.01,
            constraints=[EqualisedOdds(group, at_most=0.2, positive=positive)],
        )
        result = solved(tally, [EqualisedOdds(at_most=0.2, positive=positive)], 3, 0.01)
        assert (result.objective, result.status) == (on_rows.objective, on_rows.status), instance
