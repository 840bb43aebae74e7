"""What the texts of a column mean: numbers, true and false, dates, or the text that they are. Nothing is guessed."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale
from accel_oct.encoding.values import EXACT
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.delimited import TextColumn

__all__ = ["Rules", "labels", "number_pattern", "order_of", "plain_labels", "typed"]

_BOOLEANS = {"true": True, "false": False}
_ALIASES = {"str": "text", "string": "text", "category": "text", "float": "number", "int": "number", "bool": "boolean"}
_ALIASES |= {"date": "datetime", "timedelta": "duration"}
_TYPES = ("text", "number", "boolean", "datetime", "duration", "auto")
_ORDERED = "ordered:"
_INFINITE = re.compile(r"[+-]?(inf|infinity)\Z", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9.eE+\-\0]*\Z")
_WHOLE = re.compile(r"[0-9+\-\0]*\Z")
#: A cell that is empty, or has a zero before another digit.
_NOT_PLAIN = re.compile(r"(?:\A|\0)(?:\0|\Z|[+-]?0[0-9])")
_LONG_WHOLE = re.compile(r"(?:\A|\0)[+-]?[0-9]{15,}(?:\0|\Z)")
#: Whole numbers of so many characters are floats of their own.
_FLOAT_DIGITS = 15
_LIKELY_MISSING = frozenset(
    {"?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "inf", "-inf", "infinity"}
)
_DURATION = re.compile(
    r"(?P<sign>-)?(?:(?P<days>\d{1,9}) days?)?(?:(?:^|(?<=-)|(?<=s) |(?<=y) )"
    r"(?P<hours>\d{1,9}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)(?:\.(?P<fraction>\d{1,6}))?)?\Z",
    re.ASCII,
)


def number_pattern(decimal: str) -> re.Pattern[str]:
    """Plain decimal numbers: ``12``, ``-0.5``, ``1e-5``; not ``007``, ``1_0``, ``0x1F``, ``inf`` or ``nan``."""
    mark = re.escape(decimal)
    return re.compile(rf"[+-]?(?:(?:0|[1-9]\d*)(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)


_COMMA_NUMBER = number_pattern(",")


@dataclass(frozen=True)
class Rules:
    """How texts are to be read.

    Parameters
    ----------
    na_values : frozenset of str
        Texts that mean a missing value, besides the empty one.
    decimal : str
        The decimal mark.
    dtype : mapping from names of columns to types
        "text", "number", "boolean", "datetime", "duration", ``ordered:low<mid<high`` or "auto".
    expected : mapping from names of columns to types
        For columns that `dtype` does not name, and that need not be there.
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
        """The type that was asked for, "auto" if none was."""
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
    """The categories of ``ordered:low<mid<high``."""
    categories = tuple(part.strip() for part in dtype.removeprefix(_ORDERED).split("<"))
    if len(categories) < 2 or len(set(categories)) < len(categories) or "" in categories:
        raise InvalidInputError(
            f"dtype of column {name!r} must name two or more distinct categories, got {shown(dtype)}"
        )
    return categories


def typed(column: TextColumn, rules: Rules) -> tuple[NDArray[Any], Scale | None, str | None]:
    """A column by its rule; the scale of ordered categories; and a remark where something may not be what was meant."""
    wanted = rules.type_of(column.name)
    if wanted in ("auto", "number") and rules.decimal == "." and not rules.na_values:
        floats = _plain_numbers(column)
        if floats is not None:
            return floats, None, None
    known = column.distinct() - rules.missing
    if wanted.startswith(_ORDERED):
        categories = order_of(wanted, column.name)
        _refuse(known - set(categories), column, f"one of {', '.join(categories)}")
        return _mapped(column, {text: text for text in known}), Scale("ordered", categories=categories), None
    if wanted in ("datetime", "duration"):
        return _mapped(column, _parsed(column, known, wanted)), None, None
    pattern = number_pattern(rules.decimal)
    if wanted == "boolean" or (wanted == "auto" and known and all(text.lower() in _BOOLEANS for text in known)):
        _refuse({text for text in known if text.lower() not in _BOOLEANS}, column, "true or false")
        return _mapped(column, {text: _BOOLEANS[text.lower()] for text in known}), None, None
    others = set() if wanted == "text" else {text for text in known if not pattern.match(text)}
    if wanted == "number":
        _refuse(others, column, "numbers")
    if wanted == "number" or (wanted == "auto" and not others):
        return _numbers(column, known, rules.decimal), None, None
    remark = None
    if len(others) > 1 and wanted == "auto" and rules.decimal == "." and all(map(_COMMA_NUMBER.match, others)):
        remark = (
            f"column {column.name!r} is text, not numbers, because of {shown(min(others))}: set decimal to ',' if that "
            "is its decimal mark"
        )
    elif others and len(others) < len(known) and all(text.lower() in _LIKELY_MISSING for text in others):
        listed = ", ".join(repr(text) for text in sorted(others)[:3])
        remark = (
            f"column {column.name!r} is text, not numbers, because of {listed}: name it as a missing value if it is one"
        )
    return _mapped(column, {text: text for text in known}), None, remark


def labels(column: TextColumn, rules: Rules) -> NDArray[Any]:
    """Class labels: true and false, or whole numbers of 64 bits when no two texts would become the same number.

    Else they stay the text that they are, so that ``7`` and ``007``, or ``inf`` and ``1e300``, are two classes. Numbers
    that are not whole are left to the caller to refuse: such a column measures something and names nothing.
    """
    distinct = column.distinct()
    known = distinct - rules.missing
    pattern = number_pattern(rules.decimal)
    as_text = _mapped(column, {text: text for text in known})
    if column.name in rules.dtype:
        return plain_labels(typed(column, rules)[0])
    if known and all(text.lower() in _BOOLEANS for text in known):
        return plain_labels(_mapped(column, {text: _BOOLEANS[text.lower()] for text in known}))
    if len(known) < len(distinct) or not all(pattern.match(text) or _INFINITE.match(text) for text in known):
        return as_text
    try:
        numbers = {text: Decimal(text.replace(rules.decimal, ".")) for text in known}
    except InvalidOperation:  # an exponent beyond all limits
        return as_text
    if not all(not number.is_finite() or number == number.to_integral_value() for number in numbers.values()):
        return np.array([float(numbers[text]) for text in column])
    if len(set(numbers.values())) == len(known):
        for kind in (np.int64, np.uint64):
            if all(np.iinfo(kind).min <= number <= np.iinfo(kind).max for number in numbers.values()):
                return np.array([int(numbers[text]) for text in column], dtype=kind)
    return as_text


def plain_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all booleans, or all whole numbers of 64 bits, in an array of that type; others as they are."""
    if values.dtype == object and len(values):
        kinds = {type(value) for value in values.tolist()}
        if kinds == {bool}:
            return values.astype(np.bool_)
        if kinds == {int} and values.min() >= -(2**63) and values.max() < 2**63:
            return values.astype(np.int64)
    return values


def _plain_numbers(column: TextColumn) -> NDArray[Any] | None:
    """What `_numbers` would give, where no cell is missing and no number long: the quick way through most files."""
    if not column.blocks or not all(_DIGITS.match(block) and not _NOT_PLAIN.search(block) for block in column.blocks):
        return None
    texts = list(column)
    whole = all(_WHOLE.match(block) for block in column.blocks)
    if not whole and any(_LONG_WHOLE.search(block) for block in column.blocks):
        return None
    try:
        if whole and max(map(len, texts)) <= _FLOAT_DIGITS:
            return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
        floats = None if whole else np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:  # signs or points where none belong
        return None
    return None if floats is None or np.isinf(floats).any() else floats


def _numbers(column: TextColumn, known: set[str], decimal: str) -> NDArray[Any]:
    """int64 where all are whole and none is missing, else float64; Python's own where that would not be exact."""
    plain = {text: text if decimal == "." else text.replace(decimal, ".") for text in known}
    whole = {text for text in known if plain[text].lstrip("+-").isdigit()}
    _refuse_infinite({text for text in known if math.isinf(float(plain[text]))}, column)
    if max(map(len, whole), default=0) > _FLOAT_DIGITS:
        values: dict[str, Any] = {t: int(plain[t]) if t in whole else float(plain[t]) for t in known}
        if any(isinstance(value, int) and abs(value) > EXACT for value in values.values()):
            return _mapped(column, values)
    texts = list(column)
    complete = known.issuperset(texts)
    if whole == known and known and complete:
        return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
    if decimal == "." and complete:
        return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    floats = [float(plain[text]) if text in known else np.nan for text in texts]
    return np.array(floats, dtype=np.float64)


def _parsed(column: TextColumn, known: Iterable[str], wanted: str) -> dict[str, Any]:
    parse: Callable[[str], Any] = _instant if wanted == "datetime" else _duration
    values: dict[str, Any] = {}
    for text in known:
        try:
            values[text] = parse(text)
        except (ValueError, OverflowError):
            form = "2021-03-05 13:00:00" if wanted == "datetime" else "2 days 03:00:00"
            _refuse({text}, column, f"a {wanted} such as {form}, no finer than microseconds")
    return values


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


def _refuse(bad: set[str], column: TextColumn, wanted: str) -> None:
    if bad:
        row, text = next((row, text) for row, text in enumerate(column) if text in bad)
        raise InvalidInputError(
            f"column {column.name!r} must hold {wanted}, but row {row + 1} of the data holds {shown(text)}; "
            "na_values names texts that mean a missing value"
        )


def _refuse_infinite(bad: set[str], column: TextColumn) -> None:
    if bad:
        row, text = next((row, text) for row, text in enumerate(column) if text in bad)
        raise InvalidInputError(
            f"column {column.name!r} holds a number beyond the largest double (1.8e308) in row {row + 1} of the data, "
            f"{shown(text)}; set its dtype to text if it is a name"
        )


def _mapped(column: TextColumn, values: Mapping[str, Any]) -> NDArray[Any]:
    found = list(map(values.get, column))
    result = np.empty(len(found), dtype=object)
    result[:] = found
    return result
