"""Conditions on a row of the user's table: the meaning of binary features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.value_sets import ValueSet
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.values import EXACT, format_number
from accel_oct.errors import InvalidInputError, shown

Test = Literal["at_least", "between", "equals", "none_of", "is_true", "is_missing"]
_TESTS = ("at_least", "between", "equals", "none_of", "is_true", "is_missing")


@dataclass(frozen=True)
class Condition:
    """A condition on one column.

    Parameters
    ----------
    column : int
        Position in the user's table.
    test : {"at_least", "between", "equals", "none_of", "is_true", "is_missing"}
        ``x >= low``; ``low <= x < high`` (either may be None); ``x == value``; x is known and none of `values`; ``x``;
        ``x`` is missing.
    low, high : float, or int beyond 2**53, optional
    value : str or float, optional
    missing : bool
        Whether a missing value fulfils the condition; must be False for "is_missing", which it always fulfils.
    values : tuple of str, optional
    scale : Scale, optional
        Meaning of `low` and `high`, if they are not plain numbers.
    """

    column: int
    test: Test
    low: float | None = None
    high: float | None = None
    value: str | float | None = None
    missing: bool = False
    values: tuple[str, ...] | None = None
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if self.test not in _TESTS:
            raise InvalidInputError(f"test must be one of {', '.join(_TESTS)}, got {shown(self.test)}")
        if not isinstance(self.missing, bool) or (self.missing and self.test == "is_missing"):
            raise InvalidInputError(
                f"missing must be True or False, and False in a condition 'is_missing', got {shown(self.missing)}"
            )
        for limit in (self.low, self.high):
            if limit is not None and not math.isfinite(limit):
                raise InvalidInputError(f"the limits of a condition must be finite, got {limit!r}")
        complete = {
            "at_least": self.low is not None,
            "between": self.low is not None or self.high is not None,
            "equals": self.value is not None,
            "none_of": bool(self.values),
        }
        if not complete.get(self.test, True):
            raise InvalidInputError(f"a condition {self.test!r} lacks its limit or value")

    @property
    def plain(self) -> Condition:
        """The same condition with ``missing=False``."""
        return replace(self, missing=False) if self.missing else self

    @property
    def interval(self) -> tuple[float, float] | None:
        """``(low, high)`` if the condition is ``low <= x < high`` for known numbers; None if it is another one."""
        if self.test not in ("at_least", "between") or self.scale is not None:
            return None
        low, high = (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)
        return float(low), float(high)

    @property
    def holds_if_missing(self) -> bool:
        """Whether a missing value fulfils the condition."""
        return self.missing or self.test == "is_missing"

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each value of a column, as of `as_numbers` or `as_categories`, fulfils the condition."""
        if self.test == "is_missing":
            return missing_values(values)
        if self.missing:
            return self.plain.holds(values) | missing_values(values)
        if self.test == "equals":
            # As an object: NumPy would drop NUL characters at the end of a text.
            return np.asarray(values == np.array(self.value, dtype=object), dtype=bool)
        if self.test == "none_of":
            named = frozenset(self.values or ())
            return np.array([value is not None and value not in named for value in values.tolist()], dtype=bool)
        if self.test == "is_true":
            return np.asarray(values == 1.0, dtype=bool)
        with np.errstate(invalid="ignore"):  # objects may be compared with NaN
            result = np.ones(len(values), dtype=bool) if self.low is None else values >= self.low
            return result if self.high is None else result & (values < self.high)

    def text(self, name: str) -> str:
        """Return the condition as text, such as ``petal width >= 1.75`` or ``petal width >= 1.75 or missing``."""
        if self.missing:
            return f"{self.plain.text(name)} or missing"
        if self.test == "is_missing":
            return f"{name} is missing"
        if self.test == "is_true":
            return name
        if self.test == "equals":
            return f"{name} = {format_value(self.value)}"
        if self.test == "none_of":
            return f"{name} is infrequent"
        if self.low is not None and self.high is not None:
            return f"{self._shown(self.low)} <= {name} < {self._shown(self.high)}"
        if self.low is not None:
            return f"{name} >= {self._shown(self.low)}"
        assert self.high is not None
        return f"{name} < {self._shown(self.high)}"

    def opposite(self, name: str) -> str:
        """Return the negation as text, such as ``petal width < 1.75``; includes missing values unless `missing`."""
        if self.test == "is_missing":
            return f"{name} is known"
        if self.test == "is_true":
            return f"not {name}"
        if self.test == "equals":
            return f"{name} != {format_value(self.value)}"
        if self.test == "none_of":
            return f"{name} is frequent"
        if self.low is not None and self.high is not None:
            return f"not {self._shown(self.low)} <= {name} < {self._shown(self.high)}"
        if self.low is not None:
            return f"{name} < {self._shown(self.low)}"
        assert self.high is not None
        return f"{name} >= {self._shown(self.high)}"

    def _shown(self, limit: float) -> str:
        if self.scale is not None:
            return self.scale.text(limit)
        return str(int(limit)) if abs(limit) <= EXACT and limit == int(limit) else format_number(limit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without None, False and the scale, which is stored with the column."""
        entries: dict[str, Any] = {"low": self.low, "high": self.high, "value": self.value}
        entries["values"] = None if self.values is None else list(self.values)
        given = {k: v for k, v in entries.items() if v is not None}
        return {"column": self.column, "test": self.test} | given | ({"missing": True} if self.missing else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Condition:
        """Return the condition of `to_dict` output; every entry is checked."""
        unknown = set(data) - {"column", "test", "low", "high", "value", "missing", "values"}
        if unknown:
            raise InvalidInputError(f"a condition has no entry {shown(sorted(unknown)[0])}")
        column, value = data.get("column"), data.get("value")
        if isinstance(column, bool) or not isinstance(column, int) or column < 0:
            raise InvalidInputError(f"the column of a condition must be a whole number >= 0, got {shown(column)}")
        for key in ("low", "high"):
            limit = data.get(key)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
                raise InvalidInputError(f"{key!r} of a condition must be a number, got {shown(limit)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int | float)):
            raise InvalidInputError(f"'value' of a condition must be a string or a number, got {shown(value)}")
        values = data.get("values")
        if values is not None and not (isinstance(values, list) and all(isinstance(each, str) for each in values)):
            raise InvalidInputError(f"'values' of a condition must be a list of strings, got {shown(values)}")
        low, high = (None if data.get(k) is None else as_limit(data[k]) for k in ("low", "high"))
        if value is not None and not isinstance(value, str):
            value = float(value)
        named = None if values is None else tuple(values)
        # __post_init__ checks the test and the flag.
        flag = data.get("missing", False)
        return cls(column, data.get("test"), low, high, value, flag, named)  # type: ignore[arg-type]


def missing_values(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values of a column, as of `as_numbers` or `as_categories`, are missing."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    cells = values.tolist()
    if set(map(type, cells)) <= {str, type(None)}:
        return np.asarray(values == None, dtype=bool)  # noqa: E711 - cell by cell
    # Columns of large whole numbers hold NaN.
    return np.array([value is None or value != value for value in cells], dtype=bool)


def as_limit(value: float) -> float:
    """Return a number as a float; whole numbers beyond 2**53 are unchanged."""
    return value if isinstance(value, int) and abs(value) > EXACT else float(value)


def format_value(value: str | float | None) -> str:
    """Return a category as text."""
    return value if isinstance(value, str) else format_number(float(value or 0.0))


#: Half of the smallest power of two that overflows, to include values that were rounded down to fewer digits.
_LARGE = 2.0**127


def beyond_single_precision(values: NDArray[Any]) -> bool:
    """Return whether a number may overflow in single precision; NaN does not."""
    with np.errstate(invalid="ignore"):  # a comparison with NaN among Python integers
        return bool((abs(values) >= _LARGE).any())


def changed_in_single_precision(
    conditions: Sequence[Condition], columns: Mapping[int, NDArray[Any]]
) -> tuple[int, ...]:
    """Return the positions of conditions whose result changes for some value rounded to single precision.

    Parameters
    ----------
    columns : mapping from positions in the table to columns
        Output of `as_numbers` or `as_categories` for all columns of the conditions.
    """
    limits = {
        place: [limit for limit in (condition.low, condition.high) if limit is not None]
        for place, condition in enumerate(conditions)
    }
    asking: dict[int, list[int]] = {}
    for place, condition in enumerate(conditions):
        if limits[place]:
            asking.setdefault(condition.column, []).append(place)
    found: set[int] = set()
    for column, places in asking.items():
        if columns[column].dtype.kind != "f":  # whole numbers too large for any float
            found.update(places)
            continue
        values = np.unique(columns[column][~np.isnan(columns[column])])
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32).astype(np.float64)
        # A value changes sides of the limits between its position and that of its rounded value.
        every = np.unique([limit for place in places for limit in limits[place]])
        before, after = (np.searchsorted(every, side, side="right") for side in (values, rounded))
        crossed = np.zeros(len(every), dtype=bool)
        for one, other in zip(before[before != after].tolist(), after[before != after].tolist(), strict=True):
            crossed[min(one, other) : max(one, other)] = True
        wrong = set(every[crossed].tolist())
        found.update(place for place in places if wrong.intersection(limits[place]))
    return tuple(sorted(found))


# ---------------------------------------------------------------- the values that conditions tell apart


def value_sets(conditions: Sequence[Condition]) -> tuple[ValueSet, ...]:
    """Return, for each condition, which values of its column fulfil it.

    A column of numbers may hold any number, a column of categories any text, whether or not it was seen, a column of
    booleans or of 0 and 1 these two values, and every column a missing value.
    """
    places: dict[int, list[int]] = {}
    for place, condition in enumerate(conditions):
        places.setdefault(condition.column, []).append(place)
    found: dict[int, ValueSet] = {}
    for column, own in places.items():
        asked = [conditions[place] for place in own]
        values, n_ordered = _distinguished_values(asked)
        simple = len(asked) == 1 or _are_simple(asked)
        for place, condition in zip(own, asked, strict=True):
            bits = sum(1 << value for value, holds in enumerate(condition.holds(values).tolist()) if holds)
            found[place] = ValueSet(column, bits, len(values), n_ordered, simple)
    return tuple(found[place] for place in range(len(conditions)))


def _distinguished_values(conditions: Sequence[Condition]) -> tuple[NDArray[Any], int]:
    """Return a value for every combination of conditions on a column that some value fulfils, and how many are ordered.

    The ordered ones come first, the missing value last.
    """
    texts = {c.value for c in conditions if isinstance(c.value, str)}
    texts.update(*(c.values or () for c in conditions))
    if texts:
        known = sorted(texts)
        return np.array([*known, max(known, key=len) + "?", None], dtype=object), 0
    tests = {c.test for c in conditions} - {"is_missing"}
    numbers = {c.value for c in conditions if c.value is not None}
    if tests <= {"is_true", "equals"} and numbers <= {1.0}:
        return np.array([0.0, 1.0, np.nan] if tests else [0.0, np.nan]), 2 if tests else 1
    limits: set[Any] = {limit for c in conditions for limit in (c.low, c.high) if limit is not None}
    limits |= {limit for number in numbers for limit in (number, math.nextafter(float(number), math.inf))}
    ordered = [-math.inf, *sorted(limits)]  # what is below the first limit, and from each limit to the next
    exact = all(isinstance(limit, float) for limit in ordered)
    return np.array([*ordered, math.nan], dtype=np.float64 if exact else object), len(ordered)


def _are_simple(conditions: Sequence[Condition]) -> bool:
    """Return whether conditions on a column are thresholds alone, or categories alone; see `ValueSet`."""
    if any(condition.holds_if_missing for condition in conditions):
        return False
    tests = {condition.test for condition in conditions}
    return tests == {"at_least"} or (tests == {"equals"} and isinstance(conditions[0].value, str))
