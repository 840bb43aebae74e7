"""A column of a piece as its distinct values and the place of every row among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.errors import InvalidInputError

__all__ = ["Coded", "coded", "family", "plain_objects"]

_SMALL_RANGE = 1 << 16
"""Whole numbers within such a range are counted in a table instead of being sorted."""

_FAMILIES = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "M": "times", "m": "durations"}


@dataclass(frozen=True, eq=False)
class Coded:
    """Distinct values, and the place of every row's value among them.

    Attributes
    ----------
    values : array
        Every one of them occurs, none twice. Missing values are one entry: None, NaN or NaT, whatever the type has.
    codes : int array (n_rows,)
    """

    values: NDArray[Any]
    codes: NDArray[Any]

    def decoded(self) -> NDArray[Any]:
        """The column itself."""
        column: NDArray[Any] = self.values[self.codes]
        return column

    def taken(self, rows: NDArray[np.bool_]) -> Coded:
        """Some of the rows, with the values that they have."""
        return _used(self.values, self.codes[rows])


def coded(values: NDArray[Any] | Coded, name: str) -> Coded:
    """Find the distinct values of a column; `name` is for errors."""
    if isinstance(values, Coded):
        return values
    kind = values.dtype.kind
    if kind == "b":
        return _used(np.array([False, True]), values.view(np.uint8))
    if kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _SMALL_RANGE:
            # In 64 bits that may wrap around, and that do so once more: all types have their ends.
            every = (np.arange(high - low + 1) + np.array(low, values.dtype).astype(np.int64)).astype(values.dtype)
            return _used(every, values.astype(np.int64) - every[:1].astype(np.int64) if low or kind == "i" else values)
    if kind in "Mm":
        found, codes = np.unique(values.view(np.int64), return_inverse=True)
        return Coded(found.view(values.dtype), codes.reshape(-1))
    if kind == "O":
        return _from_objects(values.tolist(), name)
    distinct, codes = np.unique(values, return_inverse=True)
    return Coded(distinct, codes.reshape(-1))


def _used(every: NDArray[Any], codes: NDArray[Any]) -> Coded:
    """Without the values that do not occur."""
    occurs = np.bincount(codes, minlength=len(every)) > 0
    if occurs.all():
        return Coded(every, codes)
    return Coded(every[occurs], (np.cumsum(occurs) - 1)[codes])


def _from_objects(values: list[Any], name: str) -> Coded:
    # True, 1 and 1.0 are equal and have one hash; their types decide how a column is read.
    mixed = len({type(value) for value in values}) > 1
    place: dict[Any, int] = {}
    found: list[Any] = []
    codes = np.empty(len(values), dtype=np.int64)
    nothing = -1
    try:
        for row, value in enumerate(values):
            key = (type(value), value) if mixed else value
            code = place.get(key)
            if code is None:
                if is_missing(value):
                    if nothing < 0:
                        nothing = len(found)
                        found.append(None)
                    code = nothing
                else:
                    code = place[key] = len(found)
                    found.append(value)
            codes[row] = code
    except TypeError:
        raise InvalidInputError(f"column {name!r} holds values that cannot be compared, such as lists") from None
    return Coded(plain_objects(found), codes)


def plain_objects(values: Iterable[Any]) -> NDArray[Any]:
    """An array of objects; where all but missing ones are booleans, whole numbers or floats, and none is missing, of
    their own type."""
    listed = list(values)
    kinds = {type(value) for value in listed}
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if kinds == {kind} and (kind is not int or all(-(2**63) <= value < 2**63 for value in listed)):
            return np.array(listed, dtype=dtype)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def family(values: NDArray[Any]) -> str | None:
    """What the known values of a column are, in a word; None where there is none.

    Pieces of a column must be of one family. Whole numbers and floats are one: a frame that has a missing value often
    holds floats where others hold whole numbers.
    """
    kind = values.dtype.kind
    if kind in _FAMILIES:
        unknown = kind in "fMm" and bool(np.all(values != values))
        return None if unknown and len(values) else _FAMILIES[kind]
    if kind != "O":
        return "text"
    # The types of the values, not what an encoder would make of them: a mixed column is one of its own.
    found = {_object_family(value) for value in values.tolist() if not is_missing(value)}
    return None if not found else found.pop() if len(found) == 1 else "mixed values"


def _object_family(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim:
        return type(value).__name__
    if array.dtype.kind == "O":  # dates, decimals, ...
        return type(value).__name__
    return _FAMILIES.get(array.dtype.kind, "text")
