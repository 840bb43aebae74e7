"""Monotone trees against the definition on all points, in solves and in fitted classifiers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.monotone_support import random_case
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import to_decision_tree
from oracles.instances import Instance, instances
from oracles.monotone import binary_columns, has_empty_leaf, is_monotone
from oracles.ruled_trees import all_trees, best_allowed
from programs.fuzz_rules import check_monotone

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Constraint, MaxLeaves, Monotone, StatisticalParity, bind_all
from accel_oct.data import BinaryDataset
from accel_oct.encoding.conditions import Condition, value_sets
from accel_oct.errors import InvalidInputError

# ---------------------------------------------------------------- the definition


@pytest.mark.daily(15, slow=40)
@pytest.mark.parametrize("seed", range(150))
def test_violation_is_the_definition(seed: int) -> None:
    """A tree is allowed exactly if no leaf is empty and no two points of the whole space contradict the order."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    bound = bind_all(case.constraints, case.dataset)
    trees = all_trees(case.dataset, list(range(case.dataset.n_samples)), min(2, case.instance.max_depth))
    for place in rng.permutation(len(trees))[:100].tolist():
        nested = trees[place][2]
        tree = to_decision_tree(nested, 2)
        assert all(each.violation(tree) <= 0 for each in bound) == case.allows(nested), (nested, case)


def test_violation_counts_pairs_of_leaves() -> None:
    """The reported value is the number of contradicting pairs of leaves; both directions, on one tree."""
    data = BinaryDataset.from_arrays(np.array(list(product((0, 1), repeat=3))), [0, 1] * 4)
    tree = to_decision_tree((0, (1, 1, 0), (2, 0, 1)), 2)
    falls, rises = (bind_all([Monotone("x0", way)], data)[0].value(tree) for way in ("increasing", "decreasing"))
    assert (falls, rises) == (1.0, 1.0)


def test_leaves_that_no_value_reaches_do_not_count() -> None:
    """``age >= 30`` below ``age < 20`` is no leaf of the space; a threshold in the wrong order is."""
    age = np.array([10.0, 25.0, 40.0] * 2)
    conditions = [Condition(0, "at_least", low=low) for low in (20.0, 30.0)]
    X = np.column_stack([condition.holds(age) for condition in conditions])
    plain = BinaryDataset.from_arrays(X, [0, 1, 1, 0, 1, 0])
    (bound,) = bind_all([Monotone("age", "increasing")], _described(plain, ("age", "age"), conditions))
    rising, falling = (0, 0, (1, 1, 1)), (0, 0, (1, 1, 0))
    below = (0, (1, 0, 1), 1)  # its leaf with 30 below 20 is empty: no pair, but a leaf without rows
    found = [bound.violation(to_decision_tree(nested, 2)) for nested in (rising, falling, below)]
    assert found == [0.0, 1.0, 1.0]


def _described(data: BinaryDataset, sources: tuple[str, ...], conditions: list[Condition]) -> BinaryDataset:
    return replace(data, sources=sources, value_sets=value_sets(conditions))


# ---------------------------------------------------------------- solves


@pytest.mark.daily(40, slow=80)
@pytest.mark.parametrize("number", range(400))
def test_solves_agree_with_a_list_of_all_trees(number: int) -> None:
    """Alone and with fairness, leaf limits, forbidden pairs: status, objective, tree and every row of the history."""
    check_monotone(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 60, 3))
def test_branch_and_cut_gives_the_same(number: int) -> None:
    """Without the enumeration, trees that are not monotone are cut off one by one."""
    check_monotone(number, config="baseline")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(instance=instances(max_samples=8, max_features=3, max_depth=2), data=st.data())
def test_solves_on_instances_with_ties(instance: Instance, data: Any) -> None:
    """Copied, complemented and constant columns, repeated rows."""
    if instance.dataset.n_classes < 2:
        return
    signs = [data.draw(st.sampled_from([1, -1, 0])) for _ in range(instance.X.shape[1])]
    ways = {1: "increasing", -1: "decreasing"}
    constraints: list[Constraint] = [Monotone(place, ways[sign]) for place, sign in enumerate(signs) if sign]
    columns, rows = binary_columns(len(signs)), instance.dataset.X[instance.dataset.weights > 0]
    ranks = range(instance.dataset.n_classes)

    def allows(tree: Any, nested: Any) -> bool:
        kept = all(
            is_monotone(nested, columns, place, [sign * rank for rank in ranks]) for place, sign in enumerate(signs)
        )
        return kept and not (constraints and has_empty_leaf(nested, rows))

    best = best_allowed(instance.dataset, instance.max_depth, instance.leaf_penalty, allows)
    result = accel_oct.solve(
        *(instance.X, instance.y),
        sample_weight=instance.sample_weight,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        constraints=constraints,
    )
    assert result.status == "optimal" and result.objective == pytest.approx(best, abs=1e-9)


def test_subtrees_are_judged_where_they_stand() -> None:
    """A split on a bucket that is in order only below another bucket, in lists that another path shares.

    Below ``not x < 1`` the sides of ``1 <= x < 3`` are in order, elsewhere they are not. Column h separates the same
    rows as ``x < 1``, and is the first feature, so its sides are listed first.
    """
    rows = [(x, g) for x in (0.0, 2.0, 4.0) for g in (0, 1)] * 2
    x, g = np.array(rows).T
    conditions = [
        Condition(1, "equals", value=1.0),
        Condition(0, "between", high=1.0),
        Condition(0, "between", low=1.0, high=3.0),
        Condition(2, "equals", value=1.0),
    ]
    y = np.where(x < 1, g, np.where(x < 3, 1, 2)).astype(int)
    X = np.column_stack([x >= 1, x < 1, (x >= 1) & (x < 3), g == 1])
    data = _described(BinaryDataset.from_arrays(X, y), ("h", "x", "x", "g"), conditions)
    result = accel_oct.solve(data, max_depth=2, leaf_penalty=0.001, constraints=[Monotone("x", "increasing")])
    assert result.objective == pytest.approx(0.996, abs=1e-12) and result.tree.feature[0] == 1


# ---------------------------------------------------------------- values of columns


def test_value_sets_hold_every_combination_once() -> None:
    """Thresholds, buckets, missing values, categories: the combinations that values of a column fulfil."""
    at = [Condition(0, "at_least", low=low) for low in (1.0, 3.0)]
    cases = [
        (at, {(0, 0), (1, 0), (1, 1)}, True),
        ([*at, Condition(0, "is_missing")], {(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1)}, False),
        ([Condition(0, "between", high=1.0), Condition(0, "between", low=3.0)], {(1, 0), (0, 0), (0, 1)}, False),
        ([Condition(0, "equals", value="a"), Condition(0, "equals", value="b")], {(1, 0), (0, 1), (0, 0)}, True),
        ([Condition(0, "equals", value=1.0)], {(0,), (1,)}, True),
        ([Condition(0, "is_true"), Condition(0, "is_missing")], {(0, 0), (1, 0), (0, 1)}, False),
    ]
    for conditions, expected, simple in cases:
        sets = value_sets(conditions)
        found = {tuple(each.holds >> value & 1 for each in sets) for value in range(sets[0].n_values)}
        assert found == expected and {each.is_simple for each in sets} == {simple}, conditions


# ---------------------------------------------------------------- classifiers


def _frame(rng: np.random.Generator, n: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    size = pd.Categorical(rng.choice(["small", "middle", "large"], n), ["small", "middle", "large"], ordered=True)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.15, np.nan, rng.integers(18, 70, n).astype(float)),
            "income": rng.integers(1, 9, n).astype(float),
            "size": size,
            "own": rng.random(n) < 0.5,
            "region": rng.choice(["n", "s", "w"], n),
        }
    )
    score = np.nan_to_num(frame["age"], nan=60) / 20 + frame["income"] * 0.15 + rng.normal(0, 1.2, n)
    return frame, (score + frame["own"] > np.median(score)).to_numpy().astype(int)


def _grid() -> pd.DataFrame:
    ages, incomes = [0.0, *np.arange(17.75, 72, 2.25), 99.0, np.nan], [-5.0, *np.arange(0.5, 10, 0.5)]
    rows = list(product(ages, incomes, ["small", "middle", "large"], [False, True], ["n", "s", "elsewhere", None]))
    frame = pd.DataFrame(rows, columns=["age", "income", "size", "own", "region"])
    frame["size"] = pd.Categorical(frame["size"], ["small", "middle", "large"], ordered=True)
    return frame


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("depth", "signs"), [(2, {"age": 1, "income": -1}), (3, {"income": 1, "size": -1, "own": 1})])
def test_fitted_classifiers_are_monotone_on_a_grid(seed: int, depth: int, signs: dict[str, int]) -> None:
    """Predictions for a grid of raw values, seen or not, missing or not, never go against the signs."""
    frame, y = _frame(np.random.default_rng(seed))
    model = OptimalTreeClassifier(depth, 0.005, monotonic_cst=signs).fit(frame, y)
    grid = _grid()
    shape = [grid[name].nunique(dropna=False) for name in grid]
    predicted = model.predict(grid).reshape(shape)
    for name, sign in signs.items():
        axis = grid.columns.get_loc(name)
        known = predicted[: shape[0] - 1] if name == "age" else predicted
        assert (sign * np.diff(known, axis=axis) >= 0).all(), name
    free = OptimalTreeClassifier(depth, 0.005, encoder=model.encoder_).fit(frame, y)
    assert model.status_ == "optimal" and model.objective_ <= free.objective_ + 1e-9
    assert model.table_bound_ is None or model.table_bound_ >= model.objective_ - 1e-9


def test_signs_as_a_list_and_as_constraints_are_the_same() -> None:
    """A dict, a list and explicit constraints give the same trees; zeros constrain nothing."""
    frame, y = _frame(np.random.default_rng(3))
    ways: list[dict[str, Any]] = [
        {"monotonic_cst": {"age": 1, "income": 0}},
        {"monotonic_cst": np.array([1, 0, 0, 0, 0])},
        {"constraints": [Monotone("age", "increasing")]},
    ]
    models = [OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, **way).fit(frame, y) for way in ways]
    assert len({model.objective_ for model in models}) == 1
    none = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, monotonic_cst=[0] * 5).fit(frame, y)
    assert none.exact_ and not len(none.constraints_)


def test_reported_cost_is_the_difference_of_two_optima() -> None:
    """`constraints_` names the best objective without the constraint, over the same splits."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 4))
    y = (X[:, 0] ^ X[:, 1]) | X[:, 2]
    model = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.01, encoder=None, monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    free = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.01, encoder=None).fit(X, y)
    cost = free.objective_ - model.objective_
    assert cost > 0.01
    assert f"they cost {cost:.4g}" in str(model.constraints_) and "increasing in x0" in str(model.constraints_)
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert str(again.constraints_) == str(model.constraints_) and again.monotonic_cst == [1, 0, 0, 0]


def test_cross_validation_and_other_constraints() -> None:
    """The folds are solved under the same constraints, together with a leaf limit and a fairness constraint."""
    frame, y = _frame(np.random.default_rng(4), 90)
    more = [MaxLeaves(4), StatisticalParity("own", 0.3, 1)]
    model = OptimalTreeClassifierCV(
        2, [0.02, 0.005], cv=2, monotonic_cst={"income": 1}, constraints=more, exclude=["region"]
    ).fit(frame, y)
    assert [report.name for report in model.constraints_][-1] == "increasing in income"
    assert all(report.slack >= 0 for report in model.constraints_)


def test_ordered_classes() -> None:
    """Three numbers are in their order; three texts need `classes`."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (60, 3))
    y = X.sum(axis=1).clip(0, 2)
    texts = np.array(["low", "middle", "high"])[y]
    by_number = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, constraints=[Monotone(0, "decreasing")])
    rule = Monotone("x0", "decreasing", classes=["low", "middle", "high"])
    by_text = accel_oct.solve(X, texts, max_depth=2, leaf_penalty=0.0, constraints=[rule])
    assert by_number.objective == pytest.approx(by_text.objective, abs=1e-12)
    with pytest.raises(InvalidInputError, match=r"Monotone: classes must be given, lowest first"):
        accel_oct.solve(X, texts, max_depth=2, leaf_penalty=0.0, constraints=[Monotone("x0", "decreasing")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"monotonic_cst": {"region": 1}}, "Monotone: column: 'region' holds categories without an order"),
        ({"monotonic_cst": {"agee": 1}}, "monotonic_cst: X has no column 'agee'; did you mean 'age'"),
        ({"monotonic_cst": [1, 0]}, "monotonic_cst has 2 entries, but X has 5 columns"),
        ({"monotonic_cst": {"age": 2}}, "monotonic_cst must be 1, 0 or -1 for each column, got 2 for 'age'"),
        ({"monotonic_cst": "age"}, "monotonic_cst must map names of columns"),
        ({"constraints": [Monotone(0, "increasing")]}, "Monotone: column must be the name of a column"),
        ({"constraints": [Monotone("size", "increasing", [0])]}, "Monotone: classes must hold every class once"),
        ({"monotonic_cst": {"age": 1}, "max_depth": None}, "max_depth"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    """Every invalid argument is refused before the search."""
    frame, y = _frame(np.random.default_rng(6), 40)
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier(**{"max_depth": 2, **arguments}).fit(frame, y)


def test_direction_must_be_a_word() -> None:
    """1 and -1 belong to `monotonic_cst`."""
    with pytest.raises(InvalidInputError, match="Monotone: direction must be 'increasing' or 'decreasing', got 1"):
        Monotone("age", 1)  # type: ignore[arg-type]
