"""Reading a table column by column, whatever it came as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.encoding.frames import as_frame, frame_columns
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.values import Kind, as_categories, as_numbers, format_number, infer_kind
from accel_oct.errors import InvalidInputError

__all__ = ["Kind", "Table", "as_categories", "as_numbers", "format_number", "infer_kind", "is_missing"]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, with names or without.

    Parameters
    ----------
    columns : tuple of one-dimensional arrays
    names : tuple of str or None
        None when the data came without (string) names.
    n_rows : int
    scales : tuple of Scale or None, optional
        By column, what its array cannot say itself: the time zone of times, the order of categories.
    """

    columns: tuple[NDArray[Any], ...]
    names: tuple[str, ...] | None
    n_rows: int
    scales: tuple[Scale | None, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.n_rows, len(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def name(self, column: int) -> str:
        """The name of a column, ``x3`` when it has none."""
        return self.names[column] if self.names is not None else f"x{column}"

    def scale(self, column: int) -> Scale | None:
        """What is known of a column besides its values."""
        return self.scales[column] if self.scales else None

    def select(self, names: Sequence[str]) -> Table:
        """These columns, in this order; an error names the first one that is missing."""
        if self.names is None:
            raise InvalidInputError("X has no column names to select by")
        place = {name: j for j, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                raise InvalidInputError(f"X has no column {name!r}; it has {', '.join(map(repr, self.names))}")
        columns = tuple(self.columns[place[name]] for name in names)
        scales = tuple(self.scale(place[name]) for name in names)
        return Table(columns, tuple(names), self.n_rows, scales)

    def rows(self, chosen: NDArray[Any]) -> Table:
        """The rows that an index array or a mask selects."""
        columns = tuple(column[chosen] for column in self.columns)
        return Table(columns, self.names, len(np.arange(self.n_rows)[chosen]), self.scales)

    @classmethod
    def read(cls, X: Any) -> Table:
        """Take a data frame (pandas, polars, Arrow and others), an array, a sparse matrix or nested sequences apart.

        Raises
        ------
        InvalidInputError
            For complex or one-dimensional data, and tables without a row or a column.
        """
        frame = None if isinstance(X, Table) else as_frame(X)
        if isinstance(X, Table):
            table = X
        elif frame is not None:
            columns, names, scales = frame_columns(frame)
            for column in columns:
                _refuse_complex(column)
            table = cls(columns, names, len(frame), scales)
        else:
            table = cls._from_array(X.toarray() if hasattr(X, "toarray") else X)
        n_rows, n_columns = table.shape
        if n_columns == 0:
            raise InvalidInputError(f"X has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required.")
        if n_rows == 0:
            raise InvalidInputError(f"X has 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.")
        return table

    @classmethod
    def _from_array(cls, X: Any) -> Table:
        if isinstance(X, list | tuple) and any(isinstance(v, str) for row in X if _is_row(row) for v in row):
            X = np.array(X, dtype=object)  # NumPy would make strings of the numbers beside a string
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise InvalidInputError(f"X must be a rectangular table: {error}") from None
        _refuse_complex(array)
        if array.ndim != 2:
            raise InvalidInputError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data with X.reshape(-1, 1) if it "
                "has a single feature, or X.reshape(1, -1) if it contains a single sample."
            )
        return cls(tuple(array.T), None, len(array))


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple)


def _refuse_complex(array: NDArray[Any]) -> None:
    if array.dtype.kind == "c":
        raise InvalidInputError("Complex data not supported: X has the type " + str(array.dtype))
