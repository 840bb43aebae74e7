"""Reading a table column by column, whatever it came as."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError, InvalidTypeError

__all__ = ["Kind", "Table", "as_categories", "as_numbers", "format_number", "infer_kind", "is_missing"]

Kind = Literal["numeric", "categorical", "boolean", "ignored"]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, with names or without.

    Parameters
    ----------
    columns : tuple of one-dimensional arrays
    names : tuple of str or None
        None when the data came without (string) names.
    n_rows : int
    """

    columns: tuple[NDArray[Any], ...]
    names: tuple[str, ...] | None
    n_rows: int

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.n_rows, len(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def name(self, column: int) -> str:
        """The name of a column, ``x3`` when it has none."""
        return self.names[column] if self.names is not None else f"x{column}"

    def select(self, names: Sequence[str]) -> Table:
        """These columns, in this order; an error names the first one that is missing."""
        if self.names is None:
            raise InvalidInputError("X has no column names to select by")
        place = {name: j for j, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                raise InvalidInputError(f"X has no column {name!r}; it has {', '.join(map(repr, self.names))}")
        return Table(tuple(self.columns[place[name]] for name in names), tuple(names), self.n_rows)

    def rows(self, chosen: NDArray[Any]) -> Table:
        """The rows that an index array or a mask selects."""
        columns = tuple(column[chosen] for column in self.columns)
        return Table(columns, self.names, len(np.arange(self.n_rows)[chosen]))

    @classmethod
    def read(cls, X: Any) -> Table:
        """Take a data frame, an array or nested sequences apart.

        Raises
        ------
        InvalidInputError
            For sparse matrices, complex or one-dimensional data, and tables without a row or a column.
        """
        if isinstance(X, Table):
            table = X
        elif hasattr(X, "columns") and hasattr(X, "to_numpy"):
            table = cls._from_frame(X)
        elif hasattr(X, "toarray"):
            raise InvalidInputError("X is a sparse matrix, but a dense one is needed: pass X.toarray()")
        else:
            table = cls._from_array(X)
        n_rows, n_columns = table.shape
        if n_columns == 0:
            raise InvalidInputError(f"X has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required.")
        if n_rows == 0:
            raise InvalidInputError(f"X has 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.")
        return table

    @classmethod
    def _from_frame(cls, X: Any) -> Table:
        labels = list(X.columns)
        names = tuple(labels) if all(isinstance(label, str) for label in labels) else None
        if names is not None and len(set(names)) < len(names):
            twice = next(name for j, name in enumerate(names) if name in names[:j])
            raise InvalidInputError(f"X has more than one column named {twice!r}")
        if hasattr(X, "iloc"):
            columns = tuple(_from_series(X.iloc[:, j]) for j in range(len(labels)))
        else:
            columns = tuple(np.asarray(X[label].to_numpy()) for label in labels)
        for column in columns:
            _refuse_complex(column)
        return cls(columns, names, len(X))

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


def _from_series(series: Any) -> NDArray[Any]:
    values = np.asarray(series)
    # The numbers of a categorical series are names; as text they stay so.
    return as_categories(values, str(series.name)) if str(series.dtype) == "category" else values


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple)


def _refuse_complex(array: NDArray[Any]) -> None:
    if array.dtype.kind == "c":
        raise InvalidInputError("Complex data not supported: X has the type " + str(array.dtype))


def is_missing(value: object) -> bool:
    """None, NaN, NaT and pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA refuses to be a truth value; an array is no NA


def infer_kind(values: NDArray[Any], name: str) -> Kind:
    """How a column is to be encoded, from its type or, for objects, from its values."""
    kind = values.dtype.kind
    if kind == "b":
        return "boolean"
    if kind in "iuf":
        return "numeric"
    if kind in "Mm":
        raise InvalidInputError(f"X has dates in column {name!r}; turn them into numbers or strings first")
    if kind == "O":
        types = {type(value) for value in values.tolist() if not is_missing(value)}
        if types and all(issubclass(t, bool | np.bool_) for t in types):
            return "boolean"
        if all(issubclass(t, numbers.Real) and not issubclass(t, bool) for t in types):
            return "numeric"
    return "categorical"


def as_numbers(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Float64 with NaN where a value is missing.

    Raises
    ------
    InvalidInputError
        Naming the column, when a value is not a finite number.
    """
    if values.dtype.kind == "O":
        values = _numbers_from_objects(values, name)
    elif values.dtype.kind not in "biuf":
        raise InvalidInputError(f"X must hold numbers in column {name!r}, got the type {values.dtype}")
    result = values.astype(np.float64)
    if np.isinf(result).any():
        row = int(np.flatnonzero(np.isinf(result))[0])
        raise InvalidInputError(f"X has an infinite value (inf) in column {name!r}, row {row}")
    return result


def _numbers_from_objects(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    result = np.full(len(values), np.nan)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            continue
        if isinstance(value, str | bytes):
            raise InvalidInputError(f"X must hold numbers in column {name!r}, but row {row} holds {value!r}")
        try:
            result[row] = float(value)
        except TypeError as error:
            raise InvalidTypeError(f"X must hold numbers in column {name!r}, row {row}: {error}") from None
        except (ValueError, OverflowError) as error:
            raise InvalidInputError(f"X must hold numbers in column {name!r}, row {row}: {error}") from None
    return result


def as_categories(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Categories as text, None where missing; whole numbers without a point, so that 3, 3.0 and "3" are the same."""
    result = np.empty(len(values), dtype=object)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            continue
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isinf(number):
                raise InvalidInputError(f"X has an infinite value (inf) in column {name!r}, row {row}")
            result[row] = format_number(number)
        else:
            result[row] = str(value)
    return result


def format_number(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    if value == math.floor(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))
