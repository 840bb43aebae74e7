"""Linear rows as arrays: the representation of all constraints and cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_oct.mip.errors import ModelError
from accel_oct.support.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of rows ``lower <= A x <= upper``, with A in compressed sparse row form.

    Parameters
    ----------
    starts : int array of length n_rows + 1
        Row r owns the entries ``starts[r]:starts[r + 1]``.
    columns, values : arrays of length n_nonzeros
        Column index and coefficient of each entry. The columns of a row are distinct.
    lower, upper : float arrays of length n_rows
        ``-inf`` and ``inf`` for one-sided rows.
    """

    starts: IntArray
    columns: IntArray
    values: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        for name, dtype in _FIELDS:
            array: npt.NDArray[Any] = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            if array.ndim != 1:
                raise ModelError(f"rows: `{name}` must be one-dimensional, got shape {array.shape}")
            object.__setattr__(self, name, array)
        n_rows = self.lower.size
        if self.upper.size != n_rows or self.starts.size != n_rows + 1:
            raise ModelError(
                f"rows: {n_rows} lower bounds need {n_rows} upper bounds and {n_rows + 1} starts, "
                f"got {self.upper.size} and {self.starts.size}"
            )
        if self.columns.size != self.values.size:
            raise ModelError(
                f"rows: {self.columns.size} column indices but {self.values.size} coefficients; lengths must match"
            )
        if self.starts[0] != 0 or self.starts[-1] != self.columns.size or np.any(np.diff(self.starts) < 0):
            raise ModelError("rows: `starts` must rise from 0 to the number of non-zeros")

    @classmethod
    def empty(cls) -> Rows:
        """Return a batch without rows."""
        none = np.empty(0)
        return cls(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), none, none, none)

    @classmethod
    def from_entries(
        cls,
        row: npt.ArrayLike,
        column: npt.ArrayLike,
        value: npt.ArrayLike,
        *,
        n_rows: int,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
    ) -> Rows:
        """Build from (row, column, value) triples in any order; scalars are broadcast."""
        row_, column_, value_ = np.broadcast_arrays(
            np.asarray(row, dtype=np.int64),
            np.asarray(column, dtype=np.int64),
            np.asarray(value, dtype=np.float64),
        )
        row_, column_, value_ = row_.ravel(), column_.ravel(), value_.ravel()
        if row_.size and not (row_.min() >= 0 and row_.max() < n_rows):
            raise ModelError(f"rows: an entry is in row {row_.min()} or {row_.max()}, outside of 0 to {n_rows - 1}")
        order = np.lexsort((column_, row_))
        starts = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(row_, minlength=n_rows), out=starts[1:])
        return cls(
            starts,
            column_[order],
            value_[order],
            np.broadcast_to(np.asarray(lower, dtype=np.float64), (n_rows,)),
            np.broadcast_to(np.asarray(upper, dtype=np.float64), (n_rows,)),
        )

    @classmethod
    def single(
        cls,
        columns: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        lower: float = -np.inf,
        upper: float = np.inf,
    ) -> Rows:
        """Build one row; a scalar coefficient is used for every column."""
        columns_ = np.asarray(columns, dtype=np.int64).ravel()
        return cls.from_entries(
            np.zeros(columns_.size, dtype=np.int64), columns_, values, n_rows=1, lower=lower, upper=upper
        )

    @classmethod
    def concatenate(cls, batches: Sequence[Rows]) -> Rows:
        """Stack batches."""
        batches = [batch for batch in batches if batch.n_rows]
        if not batches:
            return cls.empty()
        if len(batches) == 1:
            return batches[0]
        offsets = np.cumsum([0] + [batch.n_nonzeros for batch in batches])
        return cls(
            np.concatenate(
                [[0]] + [batch.starts[1:] + offset for batch, offset in zip(batches, offsets[:-1], strict=True)]
            ),
            np.concatenate([batch.columns for batch in batches]),
            np.concatenate([batch.values for batch in batches]),
            np.concatenate([batch.lower for batch in batches]),
            np.concatenate([batch.upper for batch in batches]),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.lower.size)

    @property
    def n_nonzeros(self) -> int:
        """Number of coefficients."""
        return int(self.columns.size)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def row_of_entry(self) -> IntArray:
        """Row of each entry."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.starts))

    def take(self, selection: npt.ArrayLike) -> Rows:
        """Return the rows selected by a boolean mask or by indices, in that order."""
        rows = np.arange(self.n_rows)[np.asarray(selection)]
        if rows.size == self.n_rows and np.all(rows[1:] > rows[:-1]):
            return self
        lengths = np.diff(self.starts)[rows]
        starts = np.zeros(rows.size + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], lengths)
        return Rows(starts, self.columns[entries], self.values[entries], self.lower[rows], self.upper[rows])

    def scaled_up(self) -> Rows:
        """Scale rows whose coefficients are all below 1, so that the largest is between 1 and 2.

        Solvers satisfy rows up to an absolute tolerance, which can be as large as all terms of such a row. The factors
        are powers of two, so nothing is rounded. Rows with larger coefficients are unchanged: scaling them down would
        relax them.
        """
        exponents = self.exponents
        if not exponents.any():
            return self
        with np.errstate(over="ignore"):
            sides = [np.ldexp(side, exponents) for side in (self.lower, self.upper)]
        return Rows(self.starts, self.columns, np.ldexp(self.values, exponents[self.row_of_entry]), *sides)

    @property
    def exponents(self) -> IntArray:
        """Power of two by which `scaled_up` multiplies each row."""
        sizes = np.zeros(self.n_rows)
        filled = self.starts[:-1] < self.starts[1:]
        if filled.any():
            sizes[filled] = np.maximum.reduceat(np.abs(self.values), self.starts[:-1][filled])
        small = (sizes > 0.0) & (sizes < 1.0)
        return np.where(small, np.minimum(1 - np.frexp(sizes)[1], _LARGEST_EXPONENT), 0)

    @property
    def is_uneven(self) -> bool:
        """Whether some coefficient is close to the tolerance of solvers."""
        return bool(np.any((self.values != 0.0) & (np.abs(self.values) < _LEAST_COEFFICIENT)))

    def activity(self, x: FloatArray) -> FloatArray:
        """``A x``."""
        result = np.zeros(self.n_rows)
        filled = self.starts[:-1] < self.starts[1:]
        if filled.any():
            result[filled] = np.add.reduceat(self.values * x[self.columns], self.starts[:-1][filled])
        return result

    def violation(self, x: FloatArray) -> FloatArray:
        """Return the violation of each row at x; 0 if it holds."""
        activity = self.activity(x)
        return np.maximum(np.maximum(self.lower - activity, activity - self.upper), 0.0)

    def check(self, n_columns: int, what: str = "rows") -> None:
        """Raise `ModelError` unless the batch is well formed for a model of `n_columns` columns."""
        if not np.isfinite(self.values).all():
            row = int(self.row_of_entry[~np.isfinite(self.values)][0])
            raise ModelError(f"{what}: row {row} has a NaN or infinite coefficient")
        if self.n_nonzeros and not (self.columns.min() >= 0 and self.columns.max() < n_columns):
            entry = int(np.argmax((self.columns < 0) | (self.columns >= n_columns)))
            raise ModelError(
                f"{what}: row {int(self.row_of_entry[entry])} refers to column {int(self.columns[entry])}, "
                f"but the model has columns 0 to {n_columns - 1}"
            )
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            row = int(np.argmax(np.isnan(self.lower) | np.isnan(self.upper)))
            raise ModelError(f"{what}: row {row} has a NaN bound")
        crossed = (self.lower > self.upper) | (self.lower == np.inf) | (self.upper == -np.inf)
        if crossed.any():
            row = int(np.argmax(crossed))
            raise ModelError(f"{what}: row {row} has lower bound {self.lower[row]} above upper bound {self.upper[row]}")
        self._check_duplicates(n_columns, what)

    def _check_duplicates(self, n_columns: int, what: str) -> None:
        if self.n_nonzeros < 2:
            return
        rising = self.columns[1:] > self.columns[:-1]
        boundaries = self.starts[1:-1]
        boundaries = boundaries[(boundaries > 0) & (boundaries < self.n_nonzeros)]
        rising[boundaries - 1] = True
        if rising.all():  # columns increase within every row
            return
        small = self.n_rows * n_columns <= _BITMAP_SHARE * self.n_nonzeros
        if small and self._count_distinct(n_columns) == self.n_nonzeros:  # cheaper than sorting
            return
        key = self.row_of_entry * n_columns + self.columns
        key.sort()
        twice = key[1:] == key[:-1]
        if twice.any():
            row, column = divmod(int(key[:-1][twice][0]), n_columns)
            raise ModelError(f"{what}: row {row} holds column {column} more than once")

    def _count_distinct(self, n_columns: int) -> int:
        """Count the distinct (row, column) positions, in blocks that fit the cache."""
        step, count = max(_BITMAP_BYTES // n_columns, 1), 0
        for first in range(0, self.n_rows, step):
            starts = self.starts[first : first + step + 1]
            n_rows = starts.size - 1
            seen = np.zeros(n_rows * n_columns, dtype=bool)
            offsets = np.repeat(np.arange(n_rows) * n_columns, np.diff(starts))
            seen[self.columns[starts[0] : starts[-1]] + offsets] = True
            count += int(np.count_nonzero(seen))
        return count


#: Largest scaling exponent: coefficients below 2**-40 are mostly noise.
_LARGEST_EXPONENT = 40

#: A hundred times the tolerance of solvers for rows.
_LEAST_COEFFICIENT = 1e-4

#: Distinct entries are counted in a bitmap of all positions if it has at most this many bytes per entry.
_BITMAP_SHARE = 64
_BITMAP_BYTES = 2**20

_FIELDS: tuple[tuple[str, type], ...] = (
    ("starts", np.int64),
    ("columns", np.int64),
    ("values", np.float64),
    ("lower", np.float64),
    ("upper", np.float64),
)
