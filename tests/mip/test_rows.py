"""Batches of rows: arithmetic against dense matrices, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.mip_support import dense_rows
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.mip import ModelError, Rows


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    """Sparse small-integer matrices, empty rows included."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(0, 6)), draw(st.integers(1, 6)))
    return generator.integers(-3, 4, size=shape) * (generator.random(shape) < draw(st.floats(0, 1))).astype(float)


def dense(rows: Rows, n_columns: int) -> np.ndarray:
    matrix = np.zeros((rows.n_rows, n_columns))
    matrix[rows.row_of_entry, rows.columns] = rows.values
    return matrix


@given(matrices(), st.integers(0, 2**32 - 1))
def test_activity_is_the_matrix_product(matrix: np.ndarray, seed: int) -> None:
    """``activity`` is A x and ``violation`` the distance to the bounds, rows without entries included."""
    generator = np.random.default_rng(seed)
    upper, x = generator.normal(size=len(matrix)), generator.normal(size=matrix.shape[1])
    rows = dense_rows(matrix, upper)
    np.testing.assert_allclose(rows.activity(x), matrix @ x, atol=1e-12)
    np.testing.assert_allclose(rows.violation(x), np.maximum(matrix @ x - upper, 0), atol=1e-12)


@given(matrices(), st.data())
def test_take_picks_rows_by_mask_or_index(matrix: np.ndarray, data: st.DataObject) -> None:
    """Taking rows is indexing the dense matrix, in the given order, with repetitions."""
    upper = np.arange(len(matrix), dtype=float)
    rows = dense_rows(matrix, upper)
    index = data.draw(st.lists(st.integers(0, len(matrix) - 1), max_size=8)) if len(matrix) else []
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(matrix), max_size=len(matrix))), dtype=bool)
    for selection in (np.array(index, dtype=int), mask):
        taken = rows.take(selection)
        np.testing.assert_array_equal(dense(taken, matrix.shape[1]), matrix[selection])
        np.testing.assert_array_equal(taken.upper, upper[selection])


@given(st.lists(matrices(), max_size=4))
def test_concatenate_stacks(parts: list[np.ndarray]) -> None:
    """Stacked batches are the stacked matrices."""
    parts = [part[:, :1] for part in parts]
    joined = Rows.concatenate([dense_rows(part, np.zeros(len(part))) for part in parts])
    np.testing.assert_array_equal(dense(joined, 1), np.vstack([np.zeros((0, 1)), *parts]))


@given(matrices(), st.randoms(use_true_random=False))
def test_from_entries_takes_any_order(matrix: np.ndarray, random: object) -> None:
    """Triples in any order give the same batch, which is well formed."""
    row, column = np.nonzero(matrix)
    order = np.random.default_rng(random.getrandbits(32)).permutation(len(row))  # type: ignore[attr-defined]
    value = matrix[row, column]
    rows = Rows.from_entries(row[order], column[order], value[order], n_rows=len(matrix), upper=1.0)
    np.testing.assert_array_equal(dense(rows, matrix.shape[1]), matrix)
    rows.check(matrix.shape[1])


def test_no_rows_are_rows() -> None:
    """The empty batch, and a row with no entries, are well formed."""
    Rows.empty().check(0)
    assert len(Rows.empty()) == 0 and Rows.concatenate([]).n_rows == 0
    blank = Rows.single([], 1.0, upper=-1.0)
    assert blank.n_rows == 1 and blank.violation(np.zeros(3)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Rows.single([0, 1], [1.0, np.nan], upper=1.0), "row 0 has a NaN or infinite coefficient"),
        (Rows.single([0, 1], [1.0, -np.inf], upper=1.0), "row 0 has a NaN or infinite coefficient"),
        (Rows.from_entries([0, 1], [0, 5], 1.0, n_rows=2), "row 1 refers to column 5, but the model has columns 0"),
        (Rows.single([-1], 1.0), "column -1"),
        (Rows.from_entries([0, 2, 2], [0, 3, 3], 1.0, n_rows=3), "row 2 holds column 3 more than once"),
        (Rows(np.array([0, 3]), [4, 1, 4], [1.0, 1.0, 1.0], [0.0], [1.0]), "row 0 holds column 4 more than once"),
        (Rows.single([0], 1.0, lower=2.0, upper=1.0), "row 0 has lower bound 2.0 above upper bound 1.0"),
        (Rows.single([0], 1.0, upper=np.nan), "row 0 has a NaN bound"),
        (Rows.single([0], 1.0, lower=np.inf), "row 0 has lower bound inf"),
        (Rows.single([0], 1.0, upper=-np.inf), "above upper bound -inf"),
    ],
)
def test_malformed_rows_are_named(rows: Rows, message: str) -> None:
    """Each fault is an error that says which row and what is wrong with it."""
    with pytest.raises(ModelError, match=message):
        rows.check(5)


@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_duplicates_are_found_in_any_order(n_rows: int, n_columns: int, seed: int) -> None:
    """Unsorted columns are fine; one column twice in a row is not."""
    generator = np.random.default_rng(seed)
    columns = np.concatenate([generator.permutation(n_columns) for _ in range(n_rows)])
    starts = np.arange(n_rows + 1) * n_columns
    bounds = np.zeros(n_rows)
    Rows(starts, columns, np.ones(columns.size), bounds, bounds).check(n_columns)
    row = int(generator.integers(n_rows))
    first, second = row * n_columns + generator.choice(n_columns, 2, replace=False)
    columns[first] = columns[second]
    with pytest.raises(ModelError, match=f"row {row} holds column {columns[second]} more than once"):
        Rows(starts, columns, np.ones(columns.size), bounds, bounds).check(n_columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [1.0, 2.0], [0.0], [1.0]), "1 column indices but 2 coefficients"),
        (([0, 1], [0], [1.0], [0.0], [1.0, 1.0]), "1 lower bounds need 1 upper bounds"),
        (([0], [0], [1.0], [0.0], [1.0]), "2 starts"),
        (([0, 2], [0], [1.0], [0.0], [1.0]), "`starts` must rise"),
        (([0, 1, 0, 1], [0], [1.0], [0.0] * 3, [1.0] * 3), "`starts` must rise"),
        (([0, 1], [[0]], [1.0], [0.0], [1.0]), "`columns` must be one-dimensional"),
    ],
)
def test_inconsistent_arrays_are_refused(arguments: tuple[list[float], ...], message: str) -> None:
    """Arrays that do not describe rows never become a batch."""
    with pytest.raises(ModelError, match=message):
        Rows(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", [-1, 2])
def test_entries_outside_of_the_batch_are_refused(row: int) -> None:
    """A triple whose row does not exist is an error, not a longer batch."""
    with pytest.raises(ModelError, match="outside of 0 to 1"):
        Rows.from_entries([0, row], [0, 1], 1.0, n_rows=2)
