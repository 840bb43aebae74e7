"""Encoders: which binary features come out, what they are called, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from accel_oct.encoding import (
    AllThresholdsEncoder,
    Condition,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.positions import Distinct, quantile_positions, readable_threshold
from accel_oct.errors import InvalidInputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


@given(FINITE, FINITE)
def test_a_readable_threshold_separates_its_neighbours(a: float, b: float) -> None:
    """low < t <= high for any two floats, neighbouring and huge ones included."""
    low, high = min(a, b), max(a, b)
    if low < high:
        threshold = readable_threshold(low, high)
        assert low < threshold <= high


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [(1.7, 1.8, False, 1.75), (0.1, 0.2, False, 0.15), (35, 36, True, 36.0), (1, 100, False, 50.0), (-1, 0, True, 0.0)],
)
def test_readable_thresholds_are_short(low: float, high: float, whole: bool, expected: float) -> None:
    """The number written is the one compared with, without digits that say nothing."""
    assert readable_threshold(low, high, whole) == expected


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60), st.integers(2, 12))
def test_quantile_cuts_are_those_of_numpy(values: list[int], q: int) -> None:
    """Each cut separates what "x > numpy.quantile(x, m/q)" separates, computed in exact arithmetic."""
    data = np.array(values, dtype=float)
    distinct = Distinct.of(data, np.ones(len(data)))
    encoded = {tuple(data > distinct.values[p]) for p in quantile_positions(distinct, q)}
    ordered = np.sort(data)
    expected = set()
    for m in range(1, q):
        whole, part = divmod(m * (len(data) - 1), q)
        following = ordered[min(whole + 1, len(data) - 1)]
        quantile = ordered[whole] + (following - ordered[whole]) * part / q
        if (data > quantile).any():
            expected.add(tuple(data > quantile))
    assert encoded == expected


def test_thresholds_are_named_in_the_users_terms() -> None:
    """'petal width >= 1.75' rather than a number of a feature."""
    frame = pd.DataFrame({"petal width": [1.6, 1.7, 1.8, 1.9]})
    names = AllThresholdsEncoder().fit(frame).get_feature_names_out()
    assert names.tolist() == ["petal width >= 1.65", "petal width >= 1.75", "petal width >= 1.85"]


def test_buckets_cover_every_number_exactly_once() -> None:
    """Also numbers outside of the training range."""
    encoder = QuantileBucketEncoder(4).fit(column(*range(20)))
    assert (encoder.transform(column(-100, 3, 7.5, 1e9)).sum(axis=1) == 1).all()
    assert encoder.get_feature_names_out()[0] == "x0 < 5"


def test_all_thresholds_tell_apart_all_distinct_rows() -> None:
    """Exact on the data: equal codes mean equal rows."""
    X = np.random.default_rng(0).integers(0, 9, (60, 3)).astype(float)
    Z = AllThresholdsEncoder().fit_transform(X)
    assert len(np.unique(Z, axis=0)) == len(np.unique(X, axis=0))


def test_tree_guided_thresholds_find_the_one_that_matters() -> None:
    """A label decided at 0.5 gives a threshold there, and the limit on their number holds."""
    X = np.random.default_rng(0).random((300, 4))
    encoder = TreeGuidedThresholdEncoder(max_thresholds=1).fit(X, X[:, 2] > 0.5)
    (condition,) = encoder.conditions_
    assert condition.column == 2
    assert condition.low == pytest.approx(0.5, abs=0.02)


def test_a_constant_column_gives_no_feature() -> None:
    """Whatever the encoder."""
    X = np.ones((6, 1))
    for encoder in (QuantileThresholdEncoder(), QuantileBucketEncoder(), AllThresholdsEncoder(), TableEncoder()):
        assert encoder.fit_transform(X).shape == (6, 0)
    assert OneHotCategoryEncoder().fit_transform(X).shape == (6, 0)


def test_two_categories_give_one_feature_and_more_give_one_each() -> None:
    """As in the published files: the second in sorted order stands for both."""
    X = pd.DataFrame({"two": ["a", "b", "a"], "three": ["r", "g", "b"]})
    names = OneHotCategoryEncoder().fit(X).get_feature_names_out()
    assert names.tolist() == ["two = b", "three = b", "three = g", "three = r"]


def test_numbers_as_categories_match_however_they_are_written() -> None:
    """3, 3.0 and "3" are one category."""
    encoder = OneHotCategoryEncoder().fit(np.array([["1"], ["2"], ["3"]], dtype=object))
    expected = [[0, 0, 1]]
    for value in (3, 3.0, "3"):
        assert encoder.transform(np.array([[value]], dtype=object)).tolist() == expected


@pytest.mark.parametrize("unknown", ["ignore", "warn", "error"])
def test_unseen_categories(unknown: str) -> None:
    """None of the known ones, with a warning or an error where asked for."""
    encoder = OneHotCategoryEncoder(unknown=unknown).fit(pd.DataFrame({"colour": ["red", "green", "blue"]}))
    new = pd.DataFrame({"colour": ["violet"]})
    if unknown == "error":
        with pytest.raises(InvalidInputError, match=r"'colour'.*'violet'"):
            encoder.transform(new)
    elif unknown == "warn":
        with pytest.warns(UserWarning, match="'violet'"):
            assert not encoder.transform(new).any()
    else:
        assert not encoder.transform(new).any()


def test_max_categories_keeps_the_most_frequent() -> None:
    """Rare ones look alike."""
    X = pd.DataFrame({"c": ["a"] * 5 + ["b"] * 4 + ["c", "d"]})
    assert OneHotCategoryEncoder(2).fit(X).get_feature_names_out().tolist() == ["c = a"]


def test_table_encoder_takes_each_column_by_its_kind() -> None:
    """Numbers, 0/1, booleans, strings, categories of numbers, missing values, a constant."""
    frame, _ = mixed_frame()
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    for expected in ("smoker", "region = north", "plan is missing", "income is missing", "grade = 2", "flag = 1"):
        assert expected in names
    assert not any(name.startswith("constant") for name in names)
    assert encoder.kinds_[:6] == ("numeric", "numeric", "boolean", "categorical", "categorical", "categorical")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_every_mark_of_a_missing_value_is_understood(missing: object) -> None:
    """None, NaN, pandas.NA and NaT answer "is missing" and "or missing", and nothing else."""
    X = pd.DataFrame({"c": pd.Series(["a", "b", "c", missing], dtype=object)})
    encoder = TableEncoder().fit(X)
    plain = ["c = a", "c = b", "c = c"]
    names = [*plain, "c is missing", *(f"{name} or missing" for name in plain)]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.transform(X)[-1].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert encoder.transform(X)[0].tolist() == [1, 0, 0, 0, 1, 0, 0]


def test_missing_values_can_be_refused() -> None:
    """The error names the column and the row."""
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]})
    with pytest.raises(InvalidInputError, match="'b', row 1"):
        TableEncoder(missing="error").fit(X)


def test_nullable_pandas_types_are_read() -> None:
    """Int64, boolean and string columns with pandas.NA."""
    X = pd.DataFrame(
        {
            "i": pd.array([1, 2, None, 4], dtype="Int64"),
            "b": pd.array([True, None, False, True], dtype="boolean"),
            "s": pd.array(["x", "y", None, "x"], dtype="string"),
        }
    )
    encoder = TableEncoder().fit(X)
    assert encoder.kinds_ == ("numeric", "boolean", "categorical")
    assert {"i is missing", "b is missing", "s is missing"} <= set(encoder.get_feature_names_out())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [1.0, np.inf]}), "infinite value.*'a', row 1"),
        (pd.DataFrame({"a": []}), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.array([1.0, 2.0]), "Reshape your data"),
        (np.array([[1j]]), "Complex data"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
        ([[1, 2], [3]], "rectangular"),
    ],
)
def test_tables_that_cannot_be_used(X: object, message: str) -> None:
    """Each with an error that says why."""
    with pytest.raises(InvalidInputError, match=message):
        TableEncoder().fit(X)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (QuantileThresholdEncoder(1), "n_quantiles"),
        (QuantileThresholdEncoder(True), "n_quantiles"),
        (QuantileBucketEncoder(missing="maybe"), "missing"),
        (OneHotCategoryEncoder(0), "max_categories"),
        (OneHotCategoryEncoder(unknown="guess"), "unknown"),
        (TreeGuidedThresholdEncoder(n_estimators=0), "n_estimators"),
        (TableEncoder(numeric="quantile"), "numeric"),
    ],
)
def test_bad_parameters_are_named(encoder: object, message: str) -> None:
    """By fit, as scikit-learn asks for."""
    with pytest.raises(InvalidInputError, match=message):
        encoder.fit([[1.0], [2.0]], [0, 1])  # type: ignore[attr-defined]


def test_numbers_that_become_strings_at_transform() -> None:
    """A column keeps the kind it had in fit."""
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0]}))
    with pytest.raises(InvalidInputError, match=r"numbers in column 'a'.*'many'"):
        encoder.transform(pd.DataFrame({"a": ["many"]}))


def test_whole_weights_are_repetitions() -> None:
    """And weight zero is absence."""
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(40, 2)), rng.integers(0, 4, 40)
    weighted = QuantileThresholdEncoder(7).fit(X, sample_weight=weights)
    assert weighted.conditions_ == QuantileThresholdEncoder(7).fit(np.repeat(X, weights, axis=0)).conditions_


def test_pandas_output_pipelines_and_column_transformers() -> None:
    """set_output, transform_output="pandas", a Pipeline and a ColumnTransformer."""
    frame, y = mixed_frame()
    assert list(TableEncoder().set_output(transform="pandas").fit_transform(frame).columns)
    parts = ColumnTransformer(
        [("n", QuantileThresholdEncoder(4), ["age"]), ("c", OneHotCategoryEncoder(), ["region"])],
        verbose_feature_names_out=False,
    )
    with config_context(transform_output="pandas"):
        encoded = parts.fit_transform(frame)
    assert "region = north" in encoded.columns
    assert any(name.startswith("age >= ") for name in encoded.columns)
    assert make_pipeline(TableEncoder(), LogisticRegression()).fit(frame, y).score(frame, y) > 0.9


@pytest.mark.parametrize(
    "data",
    [
        {"column": -1, "test": "is_true"},
        {"column": 0, "test": "eval"},
        {"column": 0, "test": "at_least"},
        {"column": 0, "test": "at_least", "low": "1"},
        {"column": 0, "test": "equals", "value": [1]},
        {"column": 0, "test": "is_true", "code": "x"},
        {"column": 0, "test": "is_true", "missing": 1},
        {"column": 0, "test": "is_missing", "missing": True},
    ],
)
def test_conditions_check_what_they_are_made_of(data: dict[str, object]) -> None:
    """Anything else than a condition is refused."""
    with pytest.raises(InvalidInputError):
        Condition.from_dict(data)
