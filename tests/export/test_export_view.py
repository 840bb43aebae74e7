"""What exports say of thresholds, missing values and weights is true of every training row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import (
    AllThresholdsEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.conditions import Condition
from accel_oct.export import to_dot, to_html, to_text
from accel_oct.export.view import few_digits, question, view

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, st.lists(finite, max_size=6))
def test_few_digits_are_the_first_of_the_exact_ones(value: float, others: list[float]) -> None:
    """Either the number itself, or what all its digits begin with, and no other number of the list begins so."""
    short = few_digits(value, others)
    if "\u2026" not in short:
        assert float(short) == value
        return
    start, _, end = short.partition("\u2026")
    assert repr(value).startswith(start) and repr(value).endswith(end)
    assert len(start.replace(".", "").lstrip("-0")) >= 4
    assert all(few_digits(other, [value, *others]) != short for other in others if other != value)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40), st.integers(0, 9))
def test_printed_thresholds_separate_the_training_values_alike(values: list[float], digits: int) -> None:
    """A number printed without an ellipsis puts every training value on the side on which the condition puts it."""
    column = np.round(np.array(values), digits)
    encoder = AllThresholdsEncoder().fit(column[:, None])
    for condition in encoder.conditions_:
        printed = question(condition, "x", encoder.conditions_).removeprefix("x \u2265 ")
        if "\u2026" not in printed:
            np.testing.assert_array_equal(column >= float(printed), condition.holds(column))


def test_thresholds_of_a_column_look_different() -> None:
    """As many digits as that takes, but four when nothing is near."""
    assert few_digits(0.50123456) == "0.5012\u2026"
    assert few_digits(0.50123456, [0.50123999]) == "0.501234\u2026"
    assert few_digits(0.501234) == "0.501234"


def test_questions_of_every_kind() -> None:
    """As pictures write them."""
    assert question(Condition(0, "at_least", low=0.25), "x") == "x \u2265 0.25"
    assert question(Condition(0, "between", low=0.25, high=1 / 3), "x") == "0.25 \u2264 x < 0.3333\u2026"
    assert question(Condition(0, "between", high=2.0), "x") == "x < 2"
    assert question(Condition(0, "equals", value="red"), "x") == "x = red"
    assert question(Condition(0, "is_missing"), "x") == "x is missing"
    assert question(Condition(0, "at_least", low=0.25, missing=True), "x") == "x \u2265 0.25 or missing"


# ---------------------------------------------------------------- missing values


ENCODERS: list[Any] = [
    "auto",
    TableEncoder(AllThresholdsEncoder()),
    TableEncoder(QuantileBucketEncoder(4)),
    TableEncoder(TreeGuidedThresholdEncoder(n_estimators=3)),
    OneHotCategoryEncoder(missing="category"),
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int]]:
    cells = [
        st.sampled_from(pool) for pool in ([0.5, 1.5, 2.5, None], ["a", "b", "c", None], [True, False, None], [1, 2])
    ]
    rows = draw(st.lists(st.tuples(*cells), min_size=16, max_size=16))
    frame = pd.DataFrame(dict(zip("pqrs", zip(*rows, strict=True), strict=True)), dtype=object)
    return frame, draw(st.lists(st.integers(0, 2), min_size=16, max_size=16))


@given(tables(), st.sampled_from(ENCODERS))
def test_missing_values_go_where_it_is_said(data: tuple[pd.DataFrame, list[int]], encoder: Any) -> None:
    """A row that comes to a node with its column missing goes where "or missing" is said, and it is said once."""
    X, y = data
    model = OptimalTreeClassifier(3, 0.0, encoder=encoder).fit(X, y)
    tree, paths = view(model), model.decision_path(X).toarray()
    text = to_text(model)
    for node in tree.nodes:
        if node.is_leaf:
            continue
        assert node.condition is not None
        absent = X.iloc[:, node.condition.column].isna().to_numpy() & (paths[:, node.index] == 1)
        if node.condition.test == "is_missing":
            assert node.missing is None and paths[absent, node.right].all()
            continue
        assert node.missing or not absent.any()
        assert paths[absent, node.right if node.missing == "yes" else node.left].all()
        no, yes = (f"{answer} or missing" if node.missing == answer else answer for answer in ("no", "yes"))
        assert node.answers == (no, yes)
        assert (node.no.endswith(" or missing"), node.yes.endswith(" or missing")) == (no != "no", yes != "yes")
        assert f"if {node.no}:" in text and f"if {node.yes}:" in text
        assert not node.question.endswith(" or missing") and not node.brief.endswith(" or missing")


def test_a_value_that_must_be_known_is_not_called_missing() -> None:
    """Below "x >= 3: yes" and "x is missing: no" it cannot be; without missing values nothing is said."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.integers(0, 40, 300).astype(float)})
    y = np.where((X["x"] > 20) & (X["x"] < 30), "in", "out")
    whole = OptimalTreeClassifier(2, 0.0).fit(X, y)
    assert "missing" not in to_text(whole) + to_dot(whole) + to_html(whole)
    X.loc[:30, "x"] = np.nan
    model = OptimalTreeClassifier(2, 0.0).fit(X, y)
    root = view(model).nodes[0]
    assert root.missing
    for node in view(model).nodes:
        if not node.is_leaf and node.index != 0:
            on_yes_side = node.index >= root.right
            assert (node.missing is not None) == (on_yes_side == (root.missing == "yes"))
    for text in (to_text(model), to_html(model), to_dot(model)):
        assert "or missing" in text


# ---------------------------------------------------------------- weights


def test_weighted_shares_are_called_so() -> None:
    """Counts alone where all samples weigh the same, also with a weight other than 1; else the weight and the count."""
    X = pd.DataFrame({"a": [0, 0, 0, 1, 1, 1]})
    y = ["p", "p", "q", "q", "q", "q"]

    def fitted(weights: Any = None, **options: Any) -> OptimalTreeClassifier:
        return OptimalTreeClassifier(1, 0.0, encoder=None, **options).fit(X, y, weights)

    plain = to_text(fitted())
    assert "(66.7% of 3)" in plain
    assert to_text(fitted([0.1] * 6)) == plain
    assert to_text(fitted([5.0] * 6)) == plain
    heavy = fitted([2, 2, 1, 1, 1, 1])
    for text in (to_text(heavy), to_html(heavy), to_dot(heavy)):
        assert "80.0% of weight 5, 3 samples" in text
    assert "weight 8, 6 samples" in to_dot(heavy)
    assert "weight" in to_text(fitted(class_weight="balanced"))
    # Every class weighs a whole number of average samples here, and still not as many as there are.
    even = OptimalTreeClassifier(1, 0.0, encoder=None).fit([[0], [0], [1], [1]], list("ppqq"), [1, 1, 3, 3])
    assert "weight 2, 2 samples" in to_text(even)


@pytest.mark.parametrize("n", [1, 2])
def test_one_sample_is_no_samples(n: int) -> None:
    """Singular and plural."""
    tree = view(OptimalTreeClassifier(max_depth=0).fit([[1.0]] * n, [0] * n))
    assert tree.passing(tree.nodes[0]) == ("1 sample" if n == 1 else "2 samples")
