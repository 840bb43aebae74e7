"""Types of text columns: numbers, booleans, dates, durations, ordered categories, or text."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.cells import Cells, TextColumn, column_numbers

_BOOLEANS = {"true": True, "false": False}
_ALIASES = {"str": "text", "string": "text", "category": "text", "float": "number", "int": "number", "bool": "boolean"}
_ALIASES |= {"date": "datetime", "timedelta": "duration"}
_TYPES = ("text", "number", "boolean", "datetime", "duration", "auto")
_ORDERED = "ordered:"
_INFINITE = re.compile(r"[+-]?(inf|infinity)\Z", re.IGNORECASE)
_LIKELY_MISSING = frozenset(
    {"?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "inf", "-inf", "infinity"}
)
_DURATION = re.compile(
    r"(?P<sign>-)?(?:(?P<days>\d{1,9}) days?)?(?:(?:^|(?<=-)|(?<=s) |(?<=y) )"
    r"(?P<hours>\d{1,9}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)(?:\.(?P<fraction>\d{1,6}))?)?\Z",
    re.ASCII,
)


def number_pattern(decimal: str) -> re.Pattern[str]:
    """Match plain decimal numbers: ``12``, ``-0.5``, ``1e-5``; not ``007``, ``1_0``, ``0x1F``, ``inf`` or ``nan``."""
    mark = re.escape(decimal)
    return re.compile(rf"[+-]?(?:(?:0|[1-9]\d*)(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)


_COMMA_NUMBER = number_pattern(",")


@dataclass(frozen=True)
class ColumnTypes:
    """Requested types of columns.

    Parameters
    ----------
    na_values : frozenset of str
        Texts that mean a missing value, besides the empty one.
    decimal : str
        Decimal mark.
    dtype : mapping from names of columns to types
        "text", "number", "boolean", "datetime", "duration", ``ordered:low<mid<high`` or "auto".
    expected : mapping from names of columns to types
        Types of columns that are not in `dtype`; these columns may be absent.
    """

    na_values: frozenset[str] = frozenset()
    decimal: str = "."
    dtype: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.decimal, str) or len(self.decimal) != 1 or self.decimal in "0123456789+-eE":
            raise InvalidInputError(f"decimal must be a single character such as '.' or ',', got {shown(self.decimal)}")
        for name in self.dtype:
            self.type_of(name)

    @property
    def missing(self) -> frozenset[str]:
        """All texts that mean a missing value."""
        return self.na_values | {""}

    def type_of(self, name: str) -> str:
        """Return the requested type, by default "auto"."""
        wanted = self.dtype.get(name, self.expected.get(name, "auto"))
        found = _ALIASES.get(wanted, wanted) if isinstance(wanted, str) else ""
        if found not in _TYPES and not found.startswith(_ORDERED):
            listed = ", ".join(_TYPES)
            raise InvalidInputError(
                f"dtype of column {name!r} must be {listed} or 'ordered:a<b<c', got {shown(wanted)}"
            )
        if found.startswith(_ORDERED):
            order_of(found, name)
        return found


def order_of(dtype: str, name: str) -> tuple[str, ...]:
    """Return the categories of ``ordered:low<mid<high``."""
    categories = tuple(part.strip() for part in dtype.removeprefix(_ORDERED).split("<"))
    if len(categories) < 2 or len(set(categories)) < len(categories) or "" in categories:
        raise InvalidInputError(
            f"dtype of column {name!r} must name two or more distinct categories, got {shown(dtype)}"
        )
    return categories


def typed(column: TextColumn, types: ColumnTypes) -> tuple[NDArray[Any], Scale | None, str | None]:
    """Return the values of a column, the scale of ordered categories, and a remark on a likely mistake, if any."""
    wanted = types.type_of(column.name)
    pattern = number_pattern(types.decimal)
    if wanted in ("auto", "number"):
        others = {text for text in column.texts() - types.missing if not pattern.match(text)}
        if not others:
            return _numbers(column, types), None, None
    texts, codes = column.coded()
    known = set(texts) - types.missing

    def refuse(bad: set[str], what: str) -> None:
        advice = "list texts that mean a missing value in na_values"
        _refuse(bad, texts, codes, f"column {column.name!r} must hold {what}", advice)

    def mapped(values: Mapping[str, Any]) -> NDArray[Any]:
        return _mapped(texts, codes, values)

    if wanted.startswith(_ORDERED):
        categories = order_of(wanted, column.name)
        refuse(known - set(categories), f"one of {', '.join(categories)}")
        return mapped({text: text for text in known}), Scale("ordered", categories=categories), None
    if wanted in ("datetime", "duration"):
        values, bad = _parsed(known, wanted)
        form = "2021-03-05 13:00:00" if wanted == "datetime" else "2 days 03:00:00"
        refuse(bad, f"a {wanted} such as {form}, no finer than microseconds")
        return mapped(values), None, None
    if wanted == "boolean" or (wanted == "auto" and known and all(text.lower() in _BOOLEANS for text in known)):
        refuse({text for text in known if text.lower() not in _BOOLEANS}, "true or false")
        return mapped({text: _BOOLEANS[text.lower()] for text in known}), None, None
    remark = None
    if wanted == "number":
        refuse(others, "numbers")
    elif wanted == "auto":
        remark = _remark(column.name, known, others, types.decimal)
    return mapped({text: text for text in known}), None, remark


def _remark(name: str, known: set[str], others: set[str], decimal: str) -> str | None:
    """Return a hint for a column that is text only because of `others`."""
    because = f"column {name!r} is text, not numbers, because of"
    if len(others) > 1 and decimal == "." and all(map(_COMMA_NUMBER.match, others)):
        return f"{because} {shown(min(others))}: set decimal to ',' if that is its decimal mark"
    if len(others) < len(known) and all(text.lower() in _LIKELY_MISSING for text in others):
        listed = ", ".join(repr(text) for text in sorted(others)[:3])
        return f"{because} {listed}: add it to the missing values if it means one"
    return None


def labels(column: TextColumn, types: ColumnTypes) -> NDArray[Any]:
    """Return class labels: booleans, or whole numbers of 64 bits if no two texts are the same number, else text.

    So ``7`` and ``007``, or ``inf`` and ``1e300``, are two classes. Numbers that are not whole are returned as floats,
    which the caller rejects: such a column holds measurements, not classes.
    """
    if column.name in types.dtype:
        return plain_labels(typed(column, types)[0])
    texts, codes = column.coded()
    known = set(texts) - types.missing
    pattern = number_pattern(types.decimal)
    if known and all(text.lower() in _BOOLEANS for text in known):
        return plain_labels(_mapped(texts, codes, {text: _BOOLEANS[text.lower()] for text in known}))
    as_text = _mapped(texts, codes, {text: text for text in known})
    if len(known) < len(texts) or not all(pattern.match(text) or _INFINITE.match(text) for text in known):
        return as_text
    try:
        numbers = [Decimal(text.replace(types.decimal, ".")) for text in texts]
    except InvalidOperation:  # an exponent beyond all limits
        return as_text
    if not all(not number.is_finite() or number == number.to_integral_value() for number in numbers):
        return np.array([float(number) for number in numbers])[codes]
    if len(set(numbers)) == len(texts):
        for kind in (np.int64, np.uint64):
            if all(np.iinfo(kind).min <= number <= np.iinfo(kind).max for number in numbers):
                return np.array([int(number) for number in numbers], dtype=kind)[codes]
    return as_text


def plain_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Convert objects that are all booleans, or all whole numbers of 64 bits, to an array of that type."""
    if values.dtype == object and len(values):
        kinds = {type(value) for value in values.tolist()}
        if kinds == {bool}:
            return values.astype(np.bool_)
        if kinds == {int} and values.min() >= -(2**63) and values.max() < 2**63:
            return values.astype(np.int64)
    return values


def _numbers(column: TextColumn, types: ColumnTypes) -> NDArray[Any]:
    """Return the numbers of a column whose texts are all numbers or missing values."""
    known = {text: text.replace(types.decimal, ".") for text in column.texts() - types.missing}
    floats = {text: float(plain) for text, plain in known.items()}
    if infinite := {text for text, number in floats.items() if math.isinf(number)}:
        what = f"column {column.name!r} must hold numbers up to the largest double (1.8e308)"
        _refuse(infinite, *column.coded(), what, "set its dtype to text if these are names")
    texts = {
        text: (floats[text], int(plain) if plain.lstrip("+-").isdigit() else None) for text, plain in known.items()
    }
    missing = [mark for text in types.na_values if (mark := Cells.decimal_of(text, types.decimal)) is not None]
    return column_numbers(column, texts, missing)


def _parsed(known: Iterable[str], wanted: str) -> tuple[dict[str, Any], set[str]]:
    """Return the dates or durations by text, and the texts that are none."""
    parse: Callable[[str], Any] = _instant if wanted == "datetime" else _duration
    values: dict[str, Any] = {}
    bad = set()
    for text in known:
        try:
            values[text] = parse(text)
        except (ValueError, OverflowError):
            bad.add(text)
    return values, bad


def _instant(text: str) -> dt.date:
    if re.search(r"[.,]\d{7}", text):
        raise ValueError(text)
    text = text.removesuffix("Z") + "+00:00" if text.endswith("Z") else text
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return dt.date.fromisoformat(text)
    if not re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", text, re.ASCII):
        raise ValueError(text)
    return dt.datetime.fromisoformat(text)


def _duration(text: str) -> dt.timedelta:
    found = _DURATION.match(text)
    if found is None or not (found["days"] or found["hours"]):
        raise ValueError(text)
    parts = {name: int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds")}
    result = dt.timedelta(**parts, microseconds=int((found["fraction"] or "0").ljust(6, "0")))
    return -result if found["sign"] else result


def _refuse(bad: set[str], texts: Sequence[str], codes: NDArray[np.int32], what: str, advice: str) -> None:
    """Raise for the first row with a bad text, if any."""
    if bad:
        is_bad = np.array([text in bad for text in texts], dtype=bool)
        row = int(is_bad[codes].argmax())
        raise InvalidInputError(f"{what}, but row {row + 1} of the data holds {shown(texts[codes[row]])}; {advice}")


def _mapped(texts: Sequence[str], codes: NDArray[np.int32], values: Mapping[str, Any]) -> NDArray[Any]:
    """Return the value of each cell by its text; None if it has none."""
    found = np.empty(len(texts), dtype=object)
    found[:] = [values.get(text) for text in texts]
    return found[codes]
