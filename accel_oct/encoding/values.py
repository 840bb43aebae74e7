"""Values of one column: kind, and conversion to numbers or text."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.encoding.scales import is_duration, is_instant
from accel_oct.errors import InvalidInputError, InvalidTypeError

Kind = Literal["numeric", "categorical", "boolean", "ignored", "datetime", "duration", "ordered"]

#: Largest range of whole numbers that are exact as floats.
EXACT = 2**53

#: Python types whose values are never missing, and can be compared and converted in bulk.
_NEVER_MISSING = {str, int, bool}
_PLAIN_NUMBERS = {int, bool, float, type(None)}


def infer_kind(values: NDArray[Any], name: str) -> Kind:
    """Return the kind of a column by its type or, for objects, by its values."""
    kinds: dict[str, Kind] = {"b": "boolean", "i": "numeric", "u": "numeric", "f": "numeric"}
    kinds |= {"M": "datetime", "m": "duration"}
    if values.dtype.kind in kinds:
        return kinds[values.dtype.kind]
    if values.dtype.kind == "O":
        types = set(map(type, values.tolist())) - {type(None)}
        if not types <= _NEVER_MISSING:
            types = {type(value) for value in values if not is_missing(value)}
        if types and all(issubclass(t, bool | np.bool_) for t in types):
            return "boolean"
        if types and all(is_instant(t) for t in types):
            return "datetime"
        if types and all(is_duration(t) for t in types):
            return "duration"
        if all(issubclass(t, numbers.Real | Decimal) and not issubclass(t, bool | np.timedelta64) for t in types):
            return "numeric"
    return "categorical"


def as_numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return float64 with NaN for missing values; objects if whole numbers are too large to be exact as floats.

    Raises
    ------
    InvalidInputError
        If a value is not a finite number; the message names the column.
    """
    if values.dtype.kind == "O":
        return _numbers_from_objects(values, name)
    if values.dtype.kind not in "biuf":
        raise InvalidInputError(f"X must hold numbers in column {name!r}, got the type {values.dtype}")
    if values.dtype.kind in "iu":
        return exact_numbers(values, np.ones(len(values), dtype=bool))
    result = values.astype(np.float64)
    if np.isinf(result).any():
        row = int(np.flatnonzero(np.isinf(result))[0])
        raise InvalidInputError(f"X has an infinite value (inf) in column {name!r}, row {row}")
    return result


def exact_numbers(values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Return whole numbers as float64 if exact, else as Python integers; NaN if not known."""
    used = values[known]
    if not len(used) or (used.max() <= EXACT and used.min() >= -EXACT):
        return np.where(known, values, 0).astype(np.float64) if known.all() else _with_nan(values, known, np.float64)
    return _with_nan(values, known, object)


def _with_nan(values: NDArray[Any], known: NDArray[np.bool_], dtype: Any) -> NDArray[Any]:
    result = np.full(len(values), np.nan, dtype=dtype)
    result[known] = values[known].astype(dtype)
    return result


def _plain_numbers(values: NDArray[Any]) -> NDArray[Any] | None:
    """Convert Python numbers and None in bulk; return None if each value must be converted separately."""
    cells = values.tolist()
    types = set(map(type, cells))
    if not types <= _PLAIN_NUMBERS:
        return None
    try:
        result = np.array(cells, dtype=np.float64)
    except OverflowError:
        return None
    large = np.abs(result) >= EXACT if int in types else np.zeros(len(result), dtype=bool)
    if np.isinf(result).any() or (large.any() and float in types):
        return None
    if not large.any():
        return result
    exact = result.astype(object)
    exact[large] = values[large]
    return exact


def _numbers_from_objects(values: NDArray[Any], name: str) -> NDArray[Any]:
    quick = _plain_numbers(values)
    if quick is not None:
        return quick
    result = np.full(len(values), np.nan)
    large: dict[int, int] = {}
    decimals: dict[float, Decimal] = {}
    for row, value in enumerate(values):
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
        if np.isinf(result[row]):
            raise InvalidInputError(f"X has an infinite value (inf) in column {name!r}, row {row}")
        if abs(result[row]) >= EXACT and not isinstance(value, float | np.floating):
            large[row] = _whole(value, name, row)
        elif isinstance(value, Decimal) and decimals.setdefault(float(result[row]), value) != value:
            raise InvalidInputError(
                f"X has decimals in column {name!r} that differ by less than floats can represent, such as {value}"
            )
    if not large:
        return result
    exact = result.astype(object)
    for row, number in large.items():
        exact[row] = number
    return exact


def _whole(value: Any, name: str, row: int) -> int:
    """Return a number beyond 2**53 as an exact integer."""
    number = int(value)
    if number != value:
        raise InvalidInputError(f"X holds {value!r:.60} in column {name!r}, row {row}, which no float can hold")
    return number


def as_categories(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return categories as text, None if missing; 3, 3.0 and "3" are the same category."""
    result = np.empty(len(values), dtype=object)
    if values.dtype.kind in "Mm":
        known = ~np.isnat(values)
        result[known] = [str(value) for value in values[known]]
        return result
    cells = values.tolist()
    types = set(map(type, cells))
    if types <= {str, type(None)}:
        result[:] = cells
        return result
    if types <= {bool, type(None)}:
        result[:] = list(map({True: "True", False: "False"}.get, cells))
        return result
    for row, value in enumerate(cells):
        if is_missing(value):
            continue
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isinf(number):
                raise InvalidInputError(f"X has an infinite value (inf) in column {name!r}, row {row}")
            if isinstance(value, numbers.Integral) and number != value:
                result[row] = str(int(value))
            else:
                result[row] = format_number(number)
        else:
            result[row] = str(value)
    return result


def format_number(value: float) -> str:
    """Return the shortest text that is parsed as the same number; whole numbers have no decimal point."""
    if isinstance(value, int) and abs(value) > EXACT:
        return str(value)
    if value == math.floor(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))
