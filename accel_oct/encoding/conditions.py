"""What a binary feature says about a row of the user's table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale
from accel_oct.encoding.values import EXACT, format_number
from accel_oct.errors import InvalidInputError, shown

__all__ = [
    "Condition",
    "as_limit",
    "beyond_single_precision",
    "changed_in_single_precision",
    "format_value",
    "missing_values",
]

Test = Literal["at_least", "between", "equals", "none_of", "is_true", "is_missing"]
_TESTS = ("at_least", "between", "equals", "none_of", "is_true", "is_missing")


@dataclass(frozen=True)
class Condition:
    """A yes/no question about one column.

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
        What a missing value answers; to `is_missing` it answers yes by itself, and the flag stays False.
    values : tuple of str, optional
    scale : Scale, optional
        What `low` and `high` stand for, where that is not a plain number.
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
        """The same question, to which a missing value answers no (unless it is asked for)."""
        return replace(self, missing=False) if self.missing else self

    @property
    def holds_if_missing(self) -> bool:
        """The answer of a missing value."""
        return self.missing or self.test == "is_missing"

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Answer for a column, as `as_numbers` or `as_categories` made it."""
        if self.test == "is_missing":
            return missing_values(values)
        if self.missing:
            return self.plain.holds(values) | missing_values(values)
        if self.test == "equals":
            return np.asarray(values == self.value, dtype=bool)
        if self.test == "none_of":
            named = frozenset(self.values or ())
            return np.array([value is not None and value not in named for value in values.tolist()], dtype=bool)
        if self.test == "is_true":
            return np.asarray(values == 1.0, dtype=bool)
        with np.errstate(invalid="ignore"):  # objects that are compared with NaN
            result = np.ones(len(values), dtype=bool) if self.low is None else values >= self.low
            return result if self.high is None else result & (values < self.high)

    def text(self, name: str) -> str:
        """The condition in words, such as ``petal width >= 1.75`` or ``petal width >= 1.75 or missing``."""
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
        """The negation in words, such as ``petal width < 1.75``; missing values belong here unless `missing` is set."""
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
        """Plain values, ready for JSON; what is None or False is left out, and so is the scale: it is the column's."""
        entries: dict[str, Any] = {"low": self.low, "high": self.high, "value": self.value}
        entries["values"] = None if self.values is None else list(self.values)
        given = {k: v for k, v in entries.items() if v is not None}
        return {"column": self.column, "test": self.test} | given | ({"missing": True} if self.missing else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Condition:
        """Inverse of `to_dict`, checking every entry."""
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
    """Which values of a column are missing, as `as_numbers` or `as_categories` made it."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    cells = values.tolist()
    if set(map(type, cells)) <= {str, type(None)}:
        return np.asarray(values == None, dtype=bool)  # noqa: E711 - cell by cell
    # Large whole numbers come with NaN.
    return np.array([value is None or value != value for value in cells], dtype=bool)


def as_limit(value: float) -> float:
    """A number as a float; whole numbers beyond 2**53 as they are."""
    return value if isinstance(value, int) and abs(value) > EXACT else float(value)


def format_value(value: str | float | None) -> str:
    """A category as text."""
    return value if isinstance(value, str) else format_number(float(value or 0.0))


#: Half of the largest power of two that overflows: values that were rounded down to fewer digits are noticed too.
_LARGE = 2.0**127


def beyond_single_precision(values: NDArray[Any]) -> bool:
    """Whether a number may overflow in single precision; NaN does not."""
    with np.errstate(invalid="ignore"):  # a comparison with NaN among Python integers
        return bool((abs(values) >= _LARGE).any())


def changed_in_single_precision(
    conditions: Sequence[Condition], columns: Mapping[int, NDArray[Any]]
) -> tuple[int, ...]:
    """Positions of the conditions with limits that some value answers otherwise when rounded.

    Parameters
    ----------
    conditions : sequence of Condition
    columns : mapping from positions in the table to columns
        As `as_numbers` or `as_categories` made them; all columns that are asked about.
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
        # Between its number and its rounded number of limits below lie those that a value changes sides of.
        every = np.unique([limit for place in places for limit in limits[place]])
        before, after = (np.searchsorted(every, side, side="right") for side in (values, rounded))
        crossed = np.zeros(len(every), dtype=bool)
        for one, other in zip(before[before != after].tolist(), after[before != after].tolist(), strict=True):
            crossed[min(one, other) : max(one, other)] = True
        wrong = set(every[crossed].tolist())
        found.update(place for place in places if wrong.intersection(limits[place]))
    return tuple(sorted(found))
