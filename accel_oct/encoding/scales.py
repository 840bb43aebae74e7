"""Columns that are measured in something else than plain numbers: times, durations, ordered categories.

Their values become whole numbers (counts of a unit, positions in the order), so that conditions compare them as any
other number; a `Scale` says what the numbers stand for, and writes a threshold in the user's terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np

from accel_oct.errors import InvalidInputError, shown

__all__ = ["NANOSECONDS", "MeasuredKind", "Scale", "zone_of"]

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
    """What the whole numbers of a column stand for.

    Parameters
    ----------
    kind : {"datetime", "duration", "ordered"}
    unit : {"D", "s", "ms", "us", "ns"} or ""
        Of a datetime (counted from 1970) or a duration.
    zone : str or None
        Of a datetime: the zone in which it is written, "UTC" where that zone is not known here; None: without zone.
    categories : tuple of str
        Of ordered categories: all of them, in their order.
    """

    kind: MeasuredKind
    unit: str = ""
    zone: str | None = None
    categories: tuple[str, ...] = ()

    def text(self, value: float) -> str:
        """A whole number in the user's terms."""
        if self.kind == "ordered":
            return self.categories[int(value)]
        nanoseconds = int(value) * NANOSECONDS[self.unit]
        return _duration_text(nanoseconds) if self.kind == "duration" else _datetime_text(nanoseconds, self.zone)

    def threshold(self, low: int, high: int) -> int:
        """A whole number t with low < t <= high that is short in the user's terms, near the middle."""
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
        """Plain values, ready for JSON."""
        if self.kind == "ordered":
            return {"kind": self.kind, "categories": list(self.categories)}
        return {"kind": self.kind, "unit": self.unit} | ({} if self.zone is None else {"zone": self.zone})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scale:
        """Inverse of `to_dict`, checking every entry."""
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
    """A time zone by the name to keep: the one given where this machine knows it, else UTC."""
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
    """Seconds by which a zone is ahead of UTC at a moment; 0 where that cannot be said."""
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
    """Near the middle: the beginning of a year, a month, a day, ..., as clocks in the zone show it."""
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
