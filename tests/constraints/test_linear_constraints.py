"""Linear constraints: what they measure, the best tree under them by every way of solving, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.constrained_solves import check_predictions, check_trees, optimum, solved
from helpers.constraint_support import KINDS, best_value, keeps, measured, random_constraint, small_instance
from helpers.mip_support import skip_unless_available
from helpers.selection import daily
from oracles.instances import Instance
from oracles.outcomes import reachable

import accel_oct
from accel_oct.constraints import (
    ConditionalParity,
    EqualisedOdds,
    EqualOpportunity,
    Linear,
    MaxLeaves,
    MinLeafWeight,
    PositiveBudget,
    Precision,
    Recall,
    StatisticalParity,
)
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.solving.config import Config
from accel_oct.tree import DecisionTree

MASTER_ONLY = replace(Config.preset("default"), prices=False)


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_plain_loops(kind: type) -> None:
    """The value and whether the limit is kept, for everything that a tree can predict."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(15):
        instance = small_instance(rng, max_depth=2)
        dataset, constraint = instance.dataset, random_constraint(rng, kind, instance)
        bound = constraint.bind(dataset)
        for predicted, n_leaves, tree in reachable(instance.X, dataset.n_classes, instance.max_depth):
            parts = measured(constraint, instance, (predicted, n_leaves))
            assert (bound.violation(tree) <= 0) == keeps(constraint, instance, (predicted, n_leaves)), constraint
            if kind is MaxLeaves:
                continue
            value = bound.value(tree)
            if not parts:
                assert np.isnan(value) or value == 0.0  # a rate of nothing, or no groups to compare
            else:
                size = parts[0][3]
                is_share = kind is PositiveBudget and not constraint.count
                expected = max(part[0] for part in parts) / (size if is_share else 1.0)
                assert value == pytest.approx(expected, rel=1e-9, abs=1e-12 * max(size, 1e-300))


@pytest.mark.parametrize("kind", KINDS)
def test_limits_hold_for_whatever_keeps_the_constraint(kind: type) -> None:
    """`limits` and `violation` are two ways to say the same."""
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for _ in range(15):
        instance = small_instance(rng, max_depth=2)
        dataset, rows = instance.dataset, np.arange(len(instance.y))
        bound: Any = random_constraint(rng, kind, instance).bind(dataset)
        for _, n_leaves, tree in reachable(instance.X, dataset.n_classes, instance.max_depth):
            within = True
            for limit in bound.traits.limits:
                used = limit.leaves * n_leaves
                if limit.predictions is not None:
                    used += limit.predictions[rows, tree.predictions(dataset.X)].sum()
                within &= bool(used <= limit.upper + limit.tolerance)
            assert within == (bound.violation(tree) <= 0)


# ---------------------------------------------------------------- the best tree


@pytest.mark.parametrize("kind", KINDS)
def test_one_constraint(kind: type) -> None:
    """By prices, at depths one to four."""
    rng = np.random.default_rng(200 + KINDS.index(kind))
    for _ in range(12):
        instance = small_instance(rng)
        check_predictions(instance, [random_constraint(rng, kind, instance)])


@pytest.mark.parametrize("seed", daily(range(8), 3))
def test_pairs_and_triples(seed: int) -> None:
    """By prices; limits on leaves together with all others are among them."""
    rng = np.random.default_rng([300, seed])
    for _ in range(20):
        _check_several(rng, int(rng.integers(2, 4)))


def _check_several(rng: np.random.Generator, count: int, **options: Any) -> None:
    instance = small_instance(rng, max_depth=options.pop("max_depth", 4))
    kinds = [KINDS[int(k)] for k in rng.integers(0, len(KINDS), count)]
    check_predictions(instance, [random_constraint(rng, kind, instance) for kind in kinds], **options)


@pytest.mark.parametrize("how", ["baseline", "master only"])
@pytest.mark.parametrize("backend", ["highs", "scip", "gurobi"])
def test_by_the_solver(backend: str, how: str) -> None:
    """Rows over predictions say the same as prices do."""
    skip_unless_available(backend)
    options = {"config": MASTER_ONLY} if how == "master only" else {"config": how}
    rng = np.random.default_rng([400, sum(map(ord, backend + how))])
    for _ in range(12):
        _check_several(rng, int(rng.integers(1, 4)), max_depth=2, solver=backend, **options)


@pytest.mark.parametrize("seed", daily(range(3), 1))
def test_going_through_predictions_is_going_through_trees(seed: int) -> None:
    """The oracle of this file against that of all labelled trees."""
    rng = np.random.default_rng([500, seed])
    for _ in range(5):
        instance = small_instance(rng, max_depth=2)
        if instance.X.shape[1] <= 3:
            constraints = [random_constraint(rng, kind, instance) for kind in rng.choice(KINDS, 2)]
            assert best_value(instance, constraints) == pytest.approx(optimum(instance, constraints), abs=1e-12)


@pytest.mark.parametrize("preset", ["default", "baseline"])
def test_branches_and_least_numbers_of_leaves(preset: str) -> None:
    """What cannot be priced goes to the solver: costs of branches, and trees that must not be too small."""
    rng = np.random.default_rng(6)
    for _ in range(6):
        instance = replace(small_instance(rng, max_depth=2), leaf_penalty=0.02)
        instance = replace(instance, X=instance.X[:, :2], max_depth=2)
        if instance.dataset.n_classes > 2:
            continue
        costs = rng.integers(0, 4, instance.X.shape[1]).astype(float)
        for constraint in (
            Linear(branches=costs, upper=3.0),
            Linear(branches=costs, leaves=1.0, lower=4.0),
            Linear(leaves=1.0, lower=3.0, upper=3.0),
        ):
            check_trees(instance, [constraint], config=preset)
            check_trees(instance, [constraint, PositiveBudget(0.5)], config=preset)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(50))
def test_at_length(seed: int) -> None:
    """Thousands, by prices and some by the solver."""
    rng = np.random.default_rng([600, seed])
    for _ in range(100):
        _check_several(rng, int(rng.integers(1, 4)))
    for _ in range(10):
        _check_several(rng, int(rng.integers(1, 4)), max_depth=2, config=MASTER_ONLY)


# ---------------------------------------------------------------- rounding

SQUARE = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def test_a_leaf_price_that_is_almost_a_sample() -> None:
    """Trees whose values differ by a millionth of a sample are told apart: the lattice is not rounded away."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(6, 14))
        X, y, group = rng.integers(0, 2, (n, 2)), rng.integers(0, 2, n), rng.integers(0, 2, n)
        y[:2] = group[:2] = 0, 1
        price = 1.0 + float(rng.choice([-3e-7, -1e-7, 1e-7, 3e-7]))
        instance, constraint = Instance(X, y, None, price / n, 2), StatisticalParity(group, 0.2)
        assert solved(instance, [constraint]).objective == pytest.approx(best_value(instance, [constraint]), abs=1.5e-9)


@pytest.mark.parametrize("options", [{}, {"config": MASTER_ONLY}])
def test_groups_that_cancel_out(options: dict[str, Any]) -> None:
    """Where both groups are alike at every point, what is left in floating point is no constraint."""
    rng = np.random.default_rng(1)
    group = np.tile([0, 1], 6)
    X = np.repeat(SQUARE[[0, 1, 2, 3, 0, 3]], 2, axis=0)
    weights = np.repeat([0.1, 0.2, 0.3, 0.7, 1 / 3, 1.7], 2) * np.where(group, 3.0, 1.0)
    for _ in range(10):
        y = rng.integers(0, 2, 12)
        y[:2] = 0, 1
        check_predictions(
            Instance(X, y, weights, 0.01, 2), [StatisticalParity(group, 0.0), PositiveBudget(0.5)], **options
        )


@pytest.mark.parametrize("options", [{}, {"config": MASTER_ONLY}])
@pytest.mark.parametrize("unit", [1e-200, 1e-13, 1e-9, 1e-3, 1e6, 1e100])
def test_units_do_not_matter(unit: float, options: dict[str, Any]) -> None:
    """A limit means the same in pounds and in tons."""
    rng = np.random.default_rng(2)
    for _ in range(4):
        y, counts = rng.integers(0, 2, 12), rng.integers(0, 3, (12, 2)).astype(float)
        y[:2] = 0, 1
        instance = Instance(SQUARE[np.arange(12) % 4], y, None, 0.01, 2)
        result = check_predictions(instance, [Linear(counts * unit, upper=8 * unit)], **options)
        plain = solved(instance, [Linear(counts, upper=8.0)], **options)
        assert result.status == plain.status and result.objective == pytest.approx(plain.objective)


@pytest.mark.parametrize("options", [{}, {"config": MASTER_ONLY}])
def test_limits_far_beyond_reach(options: dict[str, Any]) -> None:
    """They never bind, or no tree keeps them."""
    instance = Instance(SQUARE, np.array([0, 1, 1, 0]), None, 0.01, 2)
    ones = np.full((4, 2), 1e-10)
    assert check_predictions(instance, [Linear(ones, upper=1e308)], **options).status == "optimal"
    assert check_predictions(instance, [Linear(ones, upper=-1e308)], **options).status == "infeasible"
    assert check_predictions(instance, [Linear(leaves=1.0, upper=0.5)], **options).status == "infeasible"
    assert check_predictions(instance, [Linear(lower=1e-12)], **options).status == "infeasible"


def test_a_tree_that_was_merged_into_one_that_is_refused() -> None:
    """Uses that differ by less than rounding, on either side of what is forgiven: no wrong proof."""
    X = np.array([[0], [0], [0], [1]])
    y = np.array([1, 1, 0, 1])
    uses = np.array([[0.0, 1e-13], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    constraint = Linear(uses, upper=1.0 - 1e-9 + 3e-14)
    instance = Instance(X, y, None, 0.01, 1)
    bound = constraint.bind(instance.dataset)
    assert bound.violation(DecisionTree.leaf(1)) > 0 >= bound.violation(DecisionTree.leaf(0))
    result = solved(instance, [constraint])
    assert result.status == "optimal" and result.objective == pytest.approx(2 / 4 - 2 * 0.01)


def test_rows_without_weight_count_where_a_constraint_says_so() -> None:
    """Weight zero, and coefficients of their own."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        n = int(rng.integers(4, 12))
        X, y = rng.integers(0, 2, (n, 3)), rng.integers(0, 3, n)
        y[:3] = 0, 1, 2
        weights = rng.integers(0, 2, n).astype(float)
        weights[0] = 1.0
        counts = rng.integers(-1, 3, (n, 3)).astype(float)
        instance = Instance(X, y, weights, float(rng.choice([0.0, 0.02, 0.5])), int(rng.integers(1, 4)))
        if len(np.unique(X, axis=0)) <= 6:
            check_predictions(instance, [Linear(counts, upper=float(rng.integers(0, n)))])


def test_groups_without_weight_have_no_rate() -> None:
    """Nothing is compared where only one group is left; nor is a recall of nothing limited."""
    y = np.array([0, 1, 1, 0])
    instance = Instance(SQUARE, y, np.array([1.0, 1.0, 0.0, 0.0]), 0.01, 2)
    for options in ({}, {"config": MASTER_ONLY}):
        check_predictions(instance, [StatisticalParity([0, 0, 1, 1], 0.0), MaxLeaves(1)], **options)
        check_predictions(
            replace(instance, sample_weight=1.0 * (y == 0)), [Recall(at_least=0.5), PositiveBudget(0.1)], **options
        )


# ---------------------------------------------------------------- time and interruptions


def test_out_of_time() -> None:
    """The objective is that of a tree that satisfies the limit, and the bound is above the best."""
    rng = np.random.default_rng(4)
    X, group = rng.integers(0, 2, (300, 25)), rng.integers(0, 2, 300)
    y = (X[:, 0] ^ X[:, 1] ^ (rng.random(300) < 0.3)).astype(int)
    problem: dict[str, Any] = {"max_depth": 3, "leaf_penalty": 0.005}
    constraint = StatisticalParity(group, 0.01)
    best = accel_oct.solve(X, y, constraints=[constraint], **problem)
    assert best.status == "optimal"
    for seconds in (0.001, 0.05, 0.1, 0.2):
        result = accel_oct.solve(X, y, constraints=[constraint], time_limit=seconds, **problem)
        for row in result.history:
            assert row.objective <= best.objective + 1e-9 and row.bound >= best.objective - 1e-9


# ---------------------------------------------------------------- what is refused

Y3 = np.array([0, 1, 2, 0])


@pytest.mark.parametrize("kind", [StatisticalParity, EqualOpportunity, EqualisedOdds, ConditionalParity])
@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([0, 1], "one value per row"),
        ([[0, 1], [0, 1]], "one value per row"),
        (None, "must be given"),
        ("sex", "there is no column 'sex'"),
        ([1, 1, 1, 1], "at least two distinct values"),
        (["a", None, "b", "a"], "missing"),
        ([float("nan"), "a", "b", "a"], "missing"),
        (np.array([0.0, np.nan, 1.0, 1.0]), "missing"),
        ([0, "a", 1, "b"], "mixes"),
    ],
)
def test_groups_that_cannot_be_used(kind: type, group: Any, message: str) -> None:
    """The constraint and the argument are named."""
    more = {"given": [0, 1, 0, 1]} if kind is ConditionalParity else {}
    with pytest.raises(InvalidInputError, match=rf"{kind.__name__}: group.*{message}"):
        _solve(kind(group, 0.1, **more))


def _solve(constraint: Any, y: Any = (0, 1, 1, 0)) -> accel_oct.Result:
    return accel_oct.solve(SQUARE, list(y), max_depth=1, leaf_penalty=0.01, constraints=[constraint])


def test_groups_with_missing_values_of_pandas() -> None:
    """pandas.NA refuses to be compared."""
    pandas = pytest.importorskip("pandas", reason="the group is a pandas column")
    group = pandas.Series(["a", pandas.NA, "b", "a"], dtype="string")
    with pytest.raises(InvalidInputError, match=r"StatisticalParity: group.*missing"):
        _solve(StatisticalParity(group, 0.1))
    assert _solve(StatisticalParity(pandas.Series(list("abab")), 0.1)).status == "optimal"


@pytest.mark.parametrize("given", [None, [0, 1], [None, 1, 0, 0]])
def test_what_is_given_that_cannot_be_used(given: Any) -> None:
    """As groups."""
    with pytest.raises(InvalidInputError, match="ConditionalParity: given"):
        _solve(ConditionalParity([0, 1, 0, 1], 0.1, given=given))


@pytest.mark.parametrize("make", [lambda p: StatisticalParity([0, 1, 0, 1], 0.1, p), lambda p: Recall(p, 0.5)])
@pytest.mark.parametrize("positive", ["no", 7, [1], np.array([0, 1])])
def test_a_class_that_does_not_exist(make: Any, positive: Any) -> None:
    """Those that do are listed; with three classes one has to be named."""
    with pytest.raises(InvalidInputError, match=r"(StatisticalParity|Recall): positive .* known are \[0, 1"):
        _solve(make(positive))
    with pytest.raises(InvalidInputError, match=r"(StatisticalParity|Recall): positive must name a class, there are 3"):
        _solve(make(None), Y3)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "half", True, [0.1]])
def test_shares_that_are_none(value: Any) -> None:
    """Of every class, and every argument."""
    for make, where in (
        (lambda: StatisticalParity([0, 1, 0, 1], value), "StatisticalParity: at_most"),
        (lambda: EqualisedOdds([0, 1, 0, 1], value), "EqualisedOdds: at_most"),
        (lambda: Recall(at_least=value), "Recall: at_least"),
        (lambda: Precision(at_most=value), "Precision: at_most"),
        (lambda: PositiveBudget(value), "PositiveBudget: at_most"),
    ):
        with pytest.raises(InvalidInputError, match=where):
            make()


def test_amounts_are_told_as_amounts() -> None:
    """Limit, value and slack of a budget in samples are numbers of samples, its price is one per sample."""
    X = np.array([[0], [0], [0], [1], [1]])
    y = np.array([0, 0, 0, 1, 1])
    for budget in (PositiveBudget(1, 1, count=True), PositiveBudget(0.2, 1)):
        told = accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.0, constraints=[budget]).constraints[0]
        scale = 5 if budget.count else 1
        assert (told.upper, told.value, told.slack) == pytest.approx((0.2 * scale, 0.0, 0.2 * scale))
        assert told.multiplier == pytest.approx(1 / scale)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "three", True, None])
def test_amounts_that_are_none(value: Any) -> None:
    """An amount of weight is finite and not negative."""
    with pytest.raises(InvalidInputError, match="PositiveBudget: at_most"):
        PositiveBudget(value, count=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recall(), "Recall: at_least or at_most"),
        (lambda: Precision(at_least=0.6, at_most=0.5), "Precision: at_least 0.6 is above at_most 0.5"),
        (lambda: Linear(), "Linear: lower or upper"),
        (lambda: Linear(lower=2.0, upper=1.0), "Linear: lower 2.0 is above upper 1.0"),
        (lambda: Linear(upper=float("nan")), "Linear: upper"),
        (lambda: Linear(lower="a"), "Linear: lower"),
        (lambda: Linear(leaves=None, upper=1.0), "Linear: leaves"),
        (lambda: Linear(leaves=float("inf"), upper=1.0), "Linear: leaves"),
        (lambda: Linear(np.zeros((4, 3)), upper=1.0), r"Linear: predictions must have the shape \(4, 2\)"),
        (lambda: Linear(np.zeros(4), upper=1.0), "Linear: predictions must have the shape"),
        (lambda: Linear([["a", "b"]] * 4, upper=1.0), "Linear: predictions must hold numbers"),
        (lambda: Linear(np.full((4, 2), np.nan), upper=1.0), "Linear: predictions holds a NaN"),
        (
            lambda: Linear(np.full((4, 2), 1e308), upper=1.0),
            "Linear: the sum of predictions exceeds the range of a float",
        ),
        (lambda: Linear(branches=np.zeros(3), upper=1.0), r"Linear: branches must have the shape \(2,\)"),
        (lambda: Linear(branches=[np.inf, 0.0], upper=1.0), "Linear: branches holds a NaN"),
    ],
)
def test_limits_that_cannot_be_used(make: Any, message: str) -> None:
    """When they are made, or when they see the data."""
    with pytest.raises(InvalidInputError, match=message):
        _solve(make())


# ---------------------------------------------------------------- the estimator


@pytest.mark.parametrize("kind", ["strings", "numbers", "booleans"])
def test_the_estimator_knows_classes_by_their_labels(kind: str) -> None:
    """`positive` is a label of the user's, whatever its type, and the limit is kept on what is predicted."""
    rng = np.random.default_rng(5)
    X, group = rng.normal(size=(80, 3)), rng.choice(["f", "m"], 80)
    chosen = (X[:, 0] + (group == "m") + rng.normal(size=80) > 0.5).astype(int)
    labels = {"strings": np.array(["no", "yes"]), "numbers": np.array([5, 7]), "booleans": np.array([False, True])}
    y = labels[kind][chosen]
    for positive in labels[kind].tolist():
        constraint = StatisticalParity(group, at_most=0.1, positive=positive)
        fitted = accel_oct.OptimalTreeClassifier(2, 0.01, constraints=[constraint]).fit(X, y)
        rates = [float(np.mean(fitted.predict(X)[group == g] == positive)) for g in ("f", "m")]
        assert fitted.status_ == "optimal" and abs(rates[0] - rates[1]) <= 0.1 + 1e-9
        assert set(fitted.predict(X).tolist()) <= set(labels[kind].tolist())
        assert fitted.classes_.flags.writeable
    with pytest.raises(InvalidInputError, match="StatisticalParity: positive 'maybe' is not a class"):
        missing = StatisticalParity(group, at_most=0.1, positive="maybe")
        accel_oct.OptimalTreeClassifier(2, 0.01, constraints=[missing]).fit(X, y)


def test_an_infeasible_problem_names_who_is_to_blame() -> None:
    """The limits whose prices prove it, and not the others."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    y = X[:, 0]
    limits: dict[str, Any] = {"max_depth": 2, "leaf_penalty": 0.0}
    result = accel_oct.solve(X, y, constraints=[Recall(at_least=0.9), PositiveBudget(0.2), MaxLeaves(4)], **limits)
    assert result.status == "infeasible"
    assert result.stats["infeasible"] == ("Recall of class 1 at least 0.9", "PositiveBudget of class 1 at most 0.2")
    words = (
        "of depth at most 2 over 2 binary features satisfies `Recall of class 1 at least 0.9` and `Positive.* together$"
    )
    with pytest.raises(NoTreeError, match=words):
        _ = result.tree
    result = accel_oct.solve(X, y, constraints=[MinLeafWeight(amount=21), Recall(at_least=0.1)], **limits)
    assert result.status == "infeasible" and result.stats["infeasible"] == ("leaves of at least 21",)
