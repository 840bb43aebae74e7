"""Scales of times, durations and ordered categories.

Their values are converted to whole numbers (counts of a unit, or positions in the order), which conditions compare like
other numbers. A `Scale` defines the meaning of the numbers, and formats thresholds.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.errors import InvalidInputError, shown

MeasuredKind = Literal["datetime", "duration", "ordered"]

#: Units of time, the coarsest first, in nanoseconds.
NANOSECONDS = {"D": 86_400_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_SECOND, _DAY = NANOSECONDS["s"], NANOSECONDS["D"]
_CALENDAR = ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns")
_DURATIONS = [_DAY * 10**k for k in range(6, -1, -1)] + [
    _SECOND * k for k in (6 * 3600, 3600, 600, 60, 10, 1)
]  # then powers of ten
_FIXED = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)(?::?(\d\d))?\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_+\-/:.()]{1,64}\Z")


@dataclass(frozen=True)
class Scale:
    """Meaning of the whole numbers of a column.

    Parameters
    ----------
    unit : {"D", "s", "ms", "us", "ns"} or ""
        Unit of a datetime (counted from 1970) or a duration.
    zone : str or None
        Time zone in which a datetime is formatted, "UTC" if the zone is unknown to this machine; None without zone.
    categories : tuple of str
        All ordered categories, in order.
    """

    kind: MeasuredKind
    unit: str = ""
    zone: str | None = None
    categories: tuple[str, ...] = ()

    def text(self, value: float) -> str:
        """Format a whole number as a time, a duration or a category."""
        if self.kind == "ordered":
            return self.categories[int(value)]
        nanoseconds = int(value) * NANOSECONDS[self.unit]
        return _duration_text(nanoseconds) if self.kind == "duration" else _datetime_text(nanoseconds, self.zone)

    def threshold(self, low: int, high: int) -> int:
        """Return a whole number t with low < t <= high near the middle that has a short text."""
        if self.kind == "ordered":
            return (low + high + 1) // 2
        per = NANOSECONDS[self.unit]
        if self.kind == "datetime":
            candidates: Iterable[int] = _calendar_candidates(low, high, self.unit, self.zone)
        else:
            steps = [step // per for step in (*_DURATIONS, *(10**k for k in range(8, -1, -1))) if step % per == 0]
            candidates = ((low + high + step) // (2 * step) * step for step in steps)
        return next(
            (c for c in candidates if low < c <= high and 5 * abs(2 * c - low - high) <= high - low),
            (low + high + 1) // 2,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        if self.kind == "ordered":
            return {"kind": self.kind, "categories": list(self.categories)}
        return {"kind": self.kind, "unit": self.unit} | ({} if self.zone is None else {"zone": self.zone})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scale:
        """Return the scale of `to_dict` output; every entry is checked."""
        kind: Any = data.get("kind")
        unit, zone = data.get("unit", ""), data.get("zone")
        categories = data.get("categories", [])
        unknown = set(data) - {"kind", "unit", "zone", "categories"}
        if unknown:
            raise InvalidInputError(f"a scale has no entry {shown(sorted(unknown)[0])}")
        if kind not in get_args(MeasuredKind):
            raise InvalidInputError(f"the kind of a scale must be one of {', '.join(get_args(MeasuredKind))}")
        if not isinstance(unit, str) or (unit in NANOSECONDS) != (kind != "ordered"):
            raise InvalidInputError(f"the unit of a scale must be one of {', '.join(NANOSECONDS)}, got {shown(unit)}")
        if zone is not None and (kind != "datetime" or not isinstance(zone, str) or not _NAME.match(zone)):
            raise InvalidInputError(f"the zone of a scale must be the name of a time zone, got {shown(zone)}")
        if not isinstance(categories, list) or not all(isinstance(value, str) for value in categories):
            raise InvalidInputError("the categories of a scale must be strings")
        if len(set(categories)) < len(categories) or bool(categories) != (kind == "ordered"):
            raise InvalidInputError("the categories of a scale must be distinct, and belong to an ordered one")
        return cls(kind, unit, zone, tuple(categories))


def zone_of(name: str) -> str:
    """Return the name of a time zone if this machine knows it, else "UTC"."""
    return name if _NAME.match(name) and _zone(name) is not None else "UTC"


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo | None:
    fixed = _FIXED.match(name)
    if fixed:
        sign, hours, minutes, seconds = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
        return timezone(-offset if sign == "-" else offset) if offset < timedelta(days=1) else None
    try:
        return ZoneInfo(name)
    except Exception:  # unknown, no name of a zone at all, a file that is none
        return None


def _offset(seconds: int, zone: str | None) -> int:
    """Return the UTC offset of a zone in seconds at a moment; 0 if unknown."""
    if zone is None:
        return 0
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
        offset = moment.astimezone(_zone(zone) or timezone.utc).utcoffset()
    except (OverflowError, ValueError):
        return 0
    return 0 if offset is None else offset // timedelta(seconds=1)


def _datetime_text(nanoseconds: int, zone: str | None) -> str:
    seconds, rest = divmod(nanoseconds, _SECOND)
    offset = _offset(seconds, zone)
    text = str(np.datetime64(seconds + offset, "s")).replace("T", " ") + _fraction(rest)
    if zone is None:
        return text.removesuffix(" 00:00:00")
    hours, minutes = divmod(abs(offset) // 60, 60)
    tail = f":{abs(offset) % 60:02d}" if offset % 60 else ""
    return f"{text}{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}{tail}"


def _duration_text(nanoseconds: int) -> str:
    days, rest = divmod(abs(nanoseconds), _DAY)
    seconds, fraction = divmod(rest, _SECOND)
    parts = [f"{days} day{'' if days == 1 else 's'}"] if days else []
    if rest or not days:
        parts.append(f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(fraction)}")
    return ("-" if nanoseconds < 0 else "") + " ".join(parts)


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""


def _calendar_candidates(low: int, high: int, unit: str, zone: str | None) -> Iterable[int]:
    """Return starts of a year, month, day, ... in the zone that are near the middle."""
    middle = (low + high) // 2
    per = NANOSECONDS[unit]
    ahead = _offset(middle * per // _SECOND, zone) * _SECOND
    if ahead % per or max(abs(low), abs(high)) > 2**61 // max(1, per // _SECOND):
        return
    local: Any = np.array(middle + ahead // per, dtype=np.int64).astype(f"M8[{unit}]")
    for step in _CALENDAR[: _CALENDAR.index(unit) + 1]:
        before = local.astype(f"M8[{step}]")
        found = [int(c.astype(f"M8[{unit}]").astype(np.int64)) - ahead // per for c in (before, before + 1)]
        yield from sorted(found, key=lambda c: (abs(2 * c - low - high), c))


_EPOCH = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_NO_MONTHS = "X has intervals in column {!r} with months or years, which have no fixed length; give durations in days"
#: Fields of an interval with a fixed length, in nanoseconds.
_LENGTHS = {f"{word}s": NANOSECONDS["s"] * 60**k for k, word in enumerate(("second", "minute", "hour"))}
_LENGTHS |= {"days": NANOSECONDS["D"], "weeks": 7 * NANOSECONDS["D"]}
_LENGTHS |= {f"{word}seconds": NANOSECONDS[unit] for word, unit in (("milli", "ms"), ("micro", "us"), ("nano", "ns"))}
#: Units of NumPy that are multiples of the units above.
_COARSER = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}


@dataclass(frozen=True, eq=False)
class Counts:
    """A column as counts of a unit.

    Attributes
    ----------
    values : integers, of 64 bits or Python's own
        0 for missing values.
    unit : str
        A key of `NANOSECONDS`.
    zone : str or None
        Time zone of the input; None without zone.
    """

    values: NDArray[Any]
    known: NDArray[np.bool_]
    unit: str
    zone: str | None = None

    def coarsest_unit(self) -> str:
        """Return the largest unit in which all known values are whole."""
        known = self.values[self.known]
        for unit, nanoseconds in NANOSECONDS.items():
            factor = nanoseconds // NANOSECONDS[self.unit]
            if factor >= 1 and not (known % factor).any():
                return unit
        return self.unit

    def floored(self, unit: str) -> NDArray[Any]:
        """Return the counts in another unit, rounded down, which preserves comparisons with whole numbers."""
        own, wanted = NANOSECONDS[self.unit], NANOSECONDS[unit]
        if wanted >= own:
            return np.asarray(self.values // (wanted // own))
        factor = own // wanted
        if self.values.dtype != object and len(self.values) and int(np.abs(self.values).max()) >= 2**62 // factor:
            return self.values.astype(object) * factor
        return np.asarray(self.values * factor)


def is_instant(kind: type) -> bool:
    """Return whether objects of a type are dates, datetimes or periods."""
    return issubclass(kind, dt.date | np.datetime64) or (hasattr(kind, "start_time") and hasattr(kind, "to_timestamp"))


def is_duration(kind: type) -> bool:
    """Return whether objects of a type are durations; a time of day is one since midnight."""
    return issubclass(kind, dt.timedelta | np.timedelta64 | dt.time) or _is_interval(kind)


def _is_interval(kind: type) -> bool:
    """Return whether a type is an SQL interval in Arrow or pandas: months, days and a part of a day."""
    return any(base.__name__ in ("MonthDayNano", "DateOffset") for base in kind.__mro__)


def read_instants(values: NDArray[Any], name: str, given: Scale | None = None) -> Counts:
    """Return dates and times as counts since 1970, in UTC if they have a zone.

    Parameters
    ----------
    name : str
        Name of the column in errors.
    given : Scale, optional
        Scale of the column in the table: the zone of datetime64 values, which do not hold it.

    Raises
    ------
    InvalidInputError
        For other values, and if only some values have a zone.
    """
    if values.dtype.kind == "M":
        counts = _from_numpy(values, name)
        return counts if given is None else Counts(counts.values, counts.known, counts.unit, given.zone)
    found = np.zeros(len(values), dtype=object)
    known = np.zeros(len(values), dtype=bool)
    zones: set[str | None] = set()
    for row, value in enumerate(values if values.dtype.kind == "O" else values.tolist()):
        if is_missing(value):
            continue
        if not is_instant(type(value)):
            raise InvalidInputError(f"X must hold dates or times in column {name!r}, but row {row} holds {value!r:.60}")
        known[row] = True
        found[row], zone = _instant(value, name)
        zones.add(zone)
    if None in zones and len(zones) > 1:
        raise InvalidInputError(f"X has times with and without a time zone in column {name!r}")
    zone = None if zones <= {None} else zone_of(next(iter(zones)) or "") if len(zones) == 1 else "UTC"
    return Counts(found, known, "ns", zone)


def read_durations(values: NDArray[Any], name: str) -> Counts:
    """Return durations as counts; times of day count from midnight.

    Raises
    ------
    InvalidInputError
        For other values.
    """
    if values.dtype.kind == "m":
        return _from_numpy(values, name)
    found = np.zeros(len(values), dtype=object)
    known = np.zeros(len(values), dtype=bool)
    for row, value in enumerate(values if values.dtype.kind == "O" else values.tolist()):
        if is_missing(value):
            continue
        if not is_duration(type(value)):
            raise InvalidInputError(f"X must hold durations in column {name!r}, but row {row} holds {value!r:.60}")
        known[row] = True
        found[row] = _duration(value, name)
    return Counts(found, known, "ns")


def _from_numpy(values: NDArray[Any], name: str) -> Counts:
    unit, _ = np.datetime_data(values.dtype)
    known = ~np.isnat(values)
    if unit == "generic":
        unit = "D"
    if values.dtype.kind == "m" and unit in ("Y", "M"):
        raise InvalidInputError(f"X has durations in months or years in column {name!r}; give days")
    unit = _COARSER.get(unit, unit)
    if unit not in NANOSECONDS:
        raise InvalidInputError(f"X has times finer than nanoseconds in column {name!r}")
    same = values.astype(f"{values.dtype.kind}8[{unit}]")
    if np.datetime_data(values.dtype)[0] != "generic" and not (same[known].astype(values.dtype) == values[known]).all():
        raise InvalidInputError(f"X has times out of range in column {name!r}")
    return Counts(np.where(known, same.view(np.int64), 0), known, unit)


def _instant(value: Any, name: str) -> tuple[int, str | None]:
    """Return the nanoseconds since 1970, and the zone."""
    if isinstance(value, np.datetime64):
        counts = _from_numpy(np.array([value]), name)
        return int(counts.values[0]) * NANOSECONDS[counts.unit], None
    if not isinstance(value, dt.date):
        value = value.start_time  # a period of pandas
    seconds = (value.toordinal() - _EPOCH) * 86_400
    if not isinstance(value, dt.datetime):
        return seconds * 10**9, None
    seconds += value.hour * 3600 + value.minute * 60 + value.second
    nanoseconds = seconds * 10**9 + value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    offset = value.utcoffset()
    if offset is None:
        return nanoseconds, None
    return nanoseconds - offset // _MICROSECOND * 1000, str(value.tzinfo)


def _duration(value: Any, name: str) -> int:
    """Return a duration in nanoseconds."""
    if isinstance(value, np.timedelta64):
        counts = _from_numpy(np.array([value]), name)
        return int(counts.values[0]) * NANOSECONDS[counts.unit]
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise InvalidInputError(f"X has times of the day with a time zone in column {name!r}")
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return (seconds * 10**6 + value.microsecond) * 1000
    if _is_interval(type(value)):
        return _interval(value, name)
    # Not value // _MICROSECOND: a Timedelta of pandas has nanoseconds, and divides differently.
    seconds = int(value.days) * 86_400 + int(value.seconds)
    return (seconds * 10**6 + int(value.microseconds)) * 1000 + int(getattr(value, "nanoseconds", 0))


def intervals(arrow: Any, name: str) -> NDArray[Any]:
    """Convert an Arrow column of type ``month_day_nano_interval``, which DuckDB uses for INTERVAL, to durations.

    A day has 24 hours, as in comparisons of intervals.

    Raises
    ------
    InvalidInputError
        For months, which have no fixed length, and for durations that 64 bits cannot hold.
    """
    layout = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    chunks = [chunk for chunk in (arrow.chunks if hasattr(arrow, "chunks") else [arrow]) if len(chunk)]
    if not chunks:
        return np.empty(0, dtype="m8[us]")
    found = [np.frombuffer(c.buffers()[1], dtype=layout)[c.offset : c.offset + len(c)] for c in chunks]
    known = np.concatenate([np.asarray(chunk.is_valid()) for chunk in chunks])
    fields = np.where(known, np.concatenate(found), np.zeros(1, dtype=layout))
    if fields["months"].any():
        raise InvalidInputError(_NO_MONTHS.format(name))
    unit = "us" if not (fields["nanoseconds"] % 1000).any() else "ns"
    per, days = NANOSECONDS["D"] // NANOSECONDS[unit], fields["days"].astype(np.int64)
    rest = fields["nanoseconds"] // NANOSECONDS[unit]
    # The part of a day may exceed a day: the sum fits into 64 bits, with room for a day.
    most = 2**63 // per - 1 - int(np.abs(rest // per).max())
    if int(np.abs(days).max()) > most:
        raise InvalidInputError(f"X has durations in column {name!r} that are too long to be counted in {unit}")
    return np.asarray(np.where(known, days * per + rest, np.iinfo(np.int64).min).view(f"m8[{unit}]"))


def _interval(value: Any, name: str) -> int:
    """Return the nanoseconds of an interval of Arrow or pandas."""
    times = int(getattr(value, "n", 1))
    fields = value.kwds if hasattr(value, "kwds") else dict(zip(("months", "days", "nanoseconds"), value, strict=True))
    if any(amount and field not in _LENGTHS for field, amount in fields.items()):
        raise InvalidInputError(_NO_MONTHS.format(name))
    exact = {field: Fraction(amount) for field, amount in fields.items() if amount}
    found = times * sum((_LENGTHS[field] * amount for field, amount in exact.items()), Fraction(0))
    if not fields:  # a plain DateOffset() is a day
        found = Fraction(times * NANOSECONDS["D"])
    if found.denominator != 1:
        raise InvalidInputError(f"X has times finer than nanoseconds in column {name!r}")
    return int(found)
