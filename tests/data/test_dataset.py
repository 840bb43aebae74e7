"""Training data: what is accepted, what is refused, and that sums are exact."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.instances import Instance, instances

from accel_oct.data import BinaryDataset, pack_rows
from accel_oct.data.merging import equal_rows
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.tree import DecisionTree

X = np.array([[0, 1], [1, 1], [0, 0]])
Y = np.array(["b", "a", "b"])


def test_plain_arrays() -> None:
    """Labels are sorted into classes, values become bool, weights one."""
    data = BinaryDataset.from_arrays(X, Y)
    assert data.X.dtype == bool
    assert data.X.flags.c_contiguous
    assert data.classes.tolist() == ["a", "b"]
    assert data.y.tolist() == [1, 0, 1]
    assert data.y.dtype == np.int64
    assert data.weights.tolist() == [1.0, 1.0, 1.0]
    assert (data.n_samples, data.n_features, data.n_classes) == (3, 2, 2)
    assert data.feature_names == ("x0", "x1")
    assert data.class_names == ("a", "b")
    assert data.total_weight == 3.0
    assert data.integral
    assert data.class_weights().tolist() == [1.0, 2.0]
    assert data.class_weights(np.array([0, 1])).tolist() == [1.0, 1.0]
    assert data.class_weights(np.array([True, False, True])).tolist() == [0.0, 2.0]
    assert data.class_weights(np.array([], dtype=int)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "table",
    [X.tolist(), X.astype(bool), X.astype(float), X.astype(np.uint8), X.astype(object), np.asfortranarray(X)],
)
def test_kinds_of_binary_tables(table: object) -> None:
    """Every kind of 0/1 table gives the same data set."""
    assert np.array_equal(BinaryDataset.from_arrays(table, Y).X, X.astype(bool))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 1, 3], [1, 3]),
        ([True, False, True], [False, True]),
        ([1.5, -2.0, 1.5], [-2.0, 1.5]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        ([1, 0, True], [0, 1]),
        (("z", "y", "z"), ["y", "z"]),
    ],
)
def test_kinds_of_labels(labels: object, classes: list[object]) -> None:
    """Integers, floats, bools and strings all work as labels."""
    data = BinaryDataset.from_arrays(X, labels)
    assert data.classes.tolist() == classes
    assert data.y.tolist() == [1, 0, 1]


def test_a_single_class() -> None:
    """Data with one class is a data set like any other."""
    data = BinaryDataset.from_arrays(X, [7, 7, 7])
    assert data.n_classes == 1
    assert DecisionTree.leaf(0).score(data) == 3


def test_data_frames() -> None:
    """Column names of a data frame become feature names; nullable and bool columns work."""
    pandas = pytest.importorskip("pandas", reason="reads a DataFrame")
    frame = pandas.DataFrame({"p": [0, 1, 0], "q": [True, True, False]}, index=[5, 6, 7])
    weights = pandas.Series([1.0, 2.0, 3.0], index=[9, 8, 7])
    data = BinaryDataset.from_arrays(frame, pandas.Series(Y), weights)
    assert data.feature_names == ("p", "q")
    assert np.array_equal(data.X, X.astype(bool))
    assert data.classes.tolist() == ["a", "b"]
    assert data.weights.tolist() == [1.0, 2.0, 3.0]
    nullable = frame.astype({"p": "Int64"})
    assert np.array_equal(BinaryDataset.from_arrays(nullable, pandas.Categorical(Y)).X, X.astype(bool))
    nullable.loc[6, "p"] = pandas.NA
    with pytest.raises(InvalidInputError, match=r"X has a missing value in column 0 \('p'\), row 1"):
        BinaryDataset.from_arrays(nullable, Y)
    with pytest.raises(InvalidInputError, match="y has a missing value in row 1"):
        BinaryDataset.from_arrays(frame, pandas.Series(["a", pandas.NA, "b"], dtype=object))
    with pytest.raises(InvalidInputError, match=r"X must hold only 0 and 1.*'r'.*'yes'"):
        BinaryDataset.from_arrays(frame.assign(r=["yes", "no", "yes"]), Y)
    with pytest.raises(InvalidInputError, match="feature_names must be distinct, but 'p' occurs"):
        BinaryDataset.from_arrays(frame.set_axis(["p", "p"], axis=1), Y)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 1], [2, 1], [0, 0]], "column 0, row 1 holds 2.*OptimalTreeClassifier"),
        ([[0, 1], [1, 0.5], [0, 0]], "column 1, row 1 holds 0.5"),
        ([[0, 1], [-1, 1], [0, 0]], "column 0, row 1 holds -1"),
        ([[0, np.nan], [1, 1], [0, 0]], "missing value in column 1, row 0"),
        ([[0, None], [1, 1], [0, 0]], "missing value in column 1, row 0"),
        ([[0, np.inf], [1, 1], [0, 0]], "column 1, row 0 holds inf"),
        ([["0", "1"], ["1", "1"], ["0", "0"]], "column 0, row 0 holds '0'"),
        (np.array([[0, "red"], [1, 1], [0, 0]], dtype=object), "column 1, row 0 holds 'red'"),
        ([[0, 1], [1], [0, 0]], "X must be a rectangular table"),
        ([0, 1, 1], "X must be two-dimensional"),
        (np.zeros((3, 2, 2)), "X must be two-dimensional"),
        (5, "X must be two-dimensional"),
        ("text", "X must be two-dimensional"),
        (np.zeros((0, 2)), "X is empty"),
        (np.zeros((3, 0)), "X is empty"),
        ([], "X must be two-dimensional"),
        (np.array([["2020-01-01"]] * 3, dtype="datetime64[D]"), "X must hold 0 and 1, got the type"),
        (np.zeros((3, 1), dtype=complex), "X must hold 0 and 1, got the type complex"),
    ],
)
def test_bad_tables(table: object, message: str) -> None:
    """A table that is not binary is refused with the column, the row and the value."""
    with pytest.raises(InvalidInputError, match=message):
        BinaryDataset.from_arrays(table, Y)


def test_a_view_of_other_bytes_as_bools() -> None:
    """What is not zero is one: kernels count with the bytes, and must not see a 254."""
    odd = np.array([[0, 254], [7, 1], [0, 0]], dtype=np.uint8).view(bool)
    dataset = BinaryDataset.from_arrays(odd, Y)
    assert dataset.X.view(np.uint8).tolist() == [[0, 1], [1, 1], [0, 0]]


def test_sparse_matrix() -> None:
    """A sparse matrix is refused with what to do instead."""
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidInputError, match=r"X\.toarray\(\)"):
        BinaryDataset.from_arrays(sparse.csr_matrix(X), Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "y has 2 entries, but X has 3 rows"),
        ([["a"], ["b"], ["a"]], "y must be one-dimensional"),
        ([0.0, np.nan, 1.0], "y has a missing or infinite value in row 1"),
        ([0.0, 1.0, np.inf], "y has a missing or infinite value in row 2"),
        (["a", None, "b"], "y has a missing value in row 1"),
        (["a", float("nan"), "b"], "y has a missing value in row 1"),
        (["a", 1, "b"], "y mixes"),
        ("abc", "y must be a sequence"),
        (None, "y must be one-dimensional"),
        (3, "y must be one-dimensional"),
    ],
)
def test_bad_labels(labels: object, message: str) -> None:
    """Labels that are missing, too few or cannot be ordered are refused by name."""
    with pytest.raises(InvalidInputError, match=message):
        BinaryDataset.from_arrays(X, labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "sample_weight has 2 entries"),
        ([[1], [2], [3]], "sample_weight must be one-dimensional"),
        ([1, -2, 3], "row 1 has -2.0"),
        ([1, np.nan, 3], "row 1 has nan"),
        ([1, 2, np.inf], "row 2 has inf"),
        ([1, None, 3], "row 1 has nan"),
        ([0, 0, 0], "sample_weight is zero"),
        (["a", "b", "c"], "sample_weight must hold numbers"),
        (["1", "2", "3"], "sample_weight must hold numbers"),
        ([1, "2", 3], "sample_weight must hold numbers"),
        (2.0, "sample_weight must be one-dimensional"),
        ([1e308, 1e308, 1e308], "more than a float can hold"),
    ],
)
def test_bad_weights(weights: object, message: str) -> None:
    """Weights that are negative, not finite, all zero or no numbers are refused by name."""
    with pytest.raises(InvalidInputError, match=message):
        BinaryDataset.from_arrays(X, Y, weights)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"feature_names": ["p"]}, "feature_names has 1 entries, expected 2"),
        ({"feature_names": ["p", "p"]}, "feature_names must be distinct, but 'p'"),
        ({"feature_names": "pq"}, "feature_names must be a sequence"),
        ({"class_names": ["no"]}, "class_names has 1 entries, expected 2"),
        ({"class_names": ["no", "no"]}, "class_names must be distinct"),
    ],
)
def test_bad_names(names: dict[str, list[str]], message: str) -> None:
    """Names of the wrong number, or names that are not distinct, are refused."""
    with pytest.raises(InvalidInputError, match=message):
        BinaryDataset.from_arrays(X, Y, **names)


@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf"), "a", None])
def test_bad_leaf_penalty(penalty: object) -> None:
    """A leaf penalty that is negative, not finite or no number is refused by name."""
    with pytest.raises(InvalidInputError, match="leaf_penalty"):
        BinaryDataset.from_arrays(X, Y).leaf_price(penalty)  # type: ignore[arg-type]


def test_errors_are_value_errors() -> None:
    """Callers may catch ValueError, or everything of this library."""
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(InvalidInputError, AccelOctError)


def test_arrays_are_copied_and_read_only() -> None:
    """The data set does not change with the arrays it came from, and cannot be changed."""
    table = X.astype(bool)
    data = BinaryDataset.from_arrays(table, Y)
    table[0, 0] = True
    assert not data.X[0, 0]
    for array in (data.X, data.y, data.weights, data.merged().inverse):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- the grid ----------------------------------------------------------------------------------------------

positive = st.floats(min_value=1e-12, max_value=1e12, allow_nan=False)


@given(st.lists(positive, min_size=1, max_size=40), st.floats(0, 1), st.randoms(use_true_random=False))
def test_sums_are_exact_in_any_order(weights: list[float], penalty: float, random) -> None:  # type: ignore[no-untyped-def]
    """On the grid, float sums of weights and of 64 leaf prices equal the sums of fractions, in any order."""
    data = BinaryDataset.from_arrays(np.zeros((len(weights), 1)), np.zeros(len(weights)), weights)
    price = data.leaf_price(penalty)
    parts = [*data.weights.tolist(), *([-price] * 64)]
    exact = sum(map(Fraction, parts))
    for _ in range(3):
        random.shuffle(parts)
        assert sum(parts) == exact
    assert np.sum(parts) == exact
    step = Fraction(2) ** -data.grid_bits
    assert all((Fraction(part) / step).denominator == 1 for part in parts)
    assert 2**45 - len(weights) <= Fraction(data.total_weight) / step <= 2**46 + len(weights)


@given(st.lists(positive, min_size=1, max_size=40), st.floats(0, 1))
def test_rounding_error_is_within_the_stated_tolerance(weights: list[float], penalty: float) -> None:
    """Normalised weights move by at most 2**-46 each in total, and so does the leaf penalty."""
    data = BinaryDataset.from_arrays(np.zeros((len(weights), 1)), np.zeros(len(weights)), weights)
    total = sum(map(Fraction, weights))
    moved = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(weights, data.weights.tolist(), strict=True))
    assert moved / total <= Fraction(len(weights), 2**46)
    drift = abs(Fraction(data.leaf_price(penalty)) - Fraction(penalty) * Fraction(data.total_weight))
    rounding_of_the_product = Fraction(penalty) / 2**52
    assert drift / total <= Fraction(1, 2**46) + rounding_of_the_product + Fraction(1, 2**70)


@given(st.lists(st.integers(0, 2**44), min_size=1, max_size=40).filter(any))
def test_integer_weights_are_unchanged(weights: list[int]) -> None:
    """Integer weights are on the grid already, even very large ones."""
    data = BinaryDataset.from_arrays(np.zeros((len(weights), 1)), np.zeros(len(weights)), weights)
    assert data.weights.tolist() == weights
    assert data.integral
    assert data.leaf_price(1.0) == sum(weights)


def test_prices_snap_to_what_was_meant() -> None:
    """A price that misses an integer by floating-point noise is put on it: 0.07 of 100 samples is 7."""
    data = BinaryDataset.from_arrays(np.zeros((100, 1)), np.zeros(100))
    assert 0.07 * 100 != 7
    assert data.leaf_price(0.07) == 7
    assert data.leaf_price(0) == 0
    tenths = BinaryDataset.from_arrays(np.zeros((3, 1)), np.zeros(3), [0.1, 0.2, 0.3])
    assert not tenths.integral
    assert abs(tenths.total_weight - 0.6) < 1e-13


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e300])
def test_extreme_scales(scale: float) -> None:
    """Weights of any magnitude keep their proportions."""
    data = BinaryDataset.from_arrays(X, Y, [scale, 2 * scale, 4 * scale])
    assert data.weights[1] == pytest.approx(data.total_weight * 2 / 7, rel=1e-3)


# --- merging -----------------------------------------------------------------------------------------------


@given(instances(max_samples=30, max_features=5, max_classes=4), st.randoms(use_true_random=False))
def test_merging(instance: Instance, random) -> None:  # type: ignore[no-untyped-def]
    """Merged rows are distinct, carry the summed weight, are found by inverse, and ignore sample order."""
    data = instance.dataset
    merged = data.merged()
    expected: dict[tuple[tuple[bool, ...], int], float] = {}
    for x, label, weight in zip(data.X.tolist(), data.y.tolist(), data.weights.tolist(), strict=True):
        expected[tuple(x), label] = expected.get((tuple(x), label), 0.0) + weight
    expected = {key: weight for key, weight in sorted(expected.items()) if weight > 0}
    rows = [(tuple(x), label) for x, label in zip(merged.X.tolist(), merged.y.tolist(), strict=True)]
    assert rows == list(expected)
    assert merged.weights.tolist() == list(expected.values())
    for i, target in enumerate(merged.inverse.tolist()):
        if target >= 0:
            assert np.array_equal(merged.X[target], data.X[i])
            assert merged.y[target] == data.y[i]
        else:
            assert data.weights[i] == 0
            assert (tuple(data.X[i].tolist()), int(data.y[i])) not in expected
    assert merged.total_weight == data.total_weight
    assert merged.classes is data.classes
    again = merged.merged()
    assert np.array_equal(again.inverse, np.arange(merged.n_samples))
    order = list(range(data.n_samples))
    random.shuffle(order)
    weights = None if instance.sample_weight is None else instance.sample_weight[order]
    shuffled = BinaryDataset.from_arrays(instance.X[order], instance.y[order], weights).merged()
    assert np.array_equal(shuffled.X, merged.X)
    assert np.array_equal(shuffled.weights, merged.weights)


@given(st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_packed_rows_compare_like_rows(n_features: int, seed: int) -> None:
    """Words of two rows compare as the rows do, whatever the number of features."""
    table = np.random.default_rng(seed).random((6, n_features)) < 0.1
    words = pack_rows(table)
    for a in range(6):
        for b in range(6):
            assert (words[a].tolist() < words[b].tolist()) == (table[a].tolist() < table[b].tolist())


@given(st.integers(1, 150), st.integers(0, 2**32 - 1), st.booleans())
def test_equal_rows_of_many_words(n_features: int, seed: int, is_sorted: bool) -> None:
    """Groups come in lexicographic order, sorted before or not, and rows of a group are equal."""
    rng = np.random.default_rng(seed)
    X = (rng.random((4, n_features)) < 0.1)[rng.integers(0, 4, 12)]
    y = rng.integers(0, 2, 12)
    rows = [(tuple(x), label) for x, label in zip(X.tolist(), y.tolist(), strict=True)]
    if is_sorted:
        rows.sort()
        X, y = np.array([x for x, _ in rows]), np.array([label for _, label in rows])
    groups = equal_rows(X, y)
    assert [rows[i] for i in groups.order.tolist()] == sorted(rows)
    assert [rows[i] for i in groups.first.tolist()] == sorted(set(rows))
    points = [rows[i][0] for i in groups.first.tolist()]
    assert groups.new_point.tolist() == [i == 0 or points[i] != points[i - 1] for i in range(len(points))]
    assert groups.sums(np.ones(12)).tolist() == [float(rows.count(row)) for row in sorted(set(rows))]


def test_merging_is_fast() -> None:
    """A million rows of fifty features merge in seconds, not minutes."""
    rng = np.random.default_rng(0)
    data = BinaryDataset.from_arrays(rng.random((1_000_000, 50)) < 0.02, rng.integers(0, 2, 1_000_000))
    started = time.perf_counter()
    merged = data.merged()
    assert time.perf_counter() - started < 10
    assert merged.total_weight == 1_000_000
