"""Times and durations as exact whole numbers, whatever they came as."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.encoding.scales import NANOSECONDS, Scale, zone_of
from accel_oct.errors import InvalidInputError

__all__ = ["Counts", "intervals", "is_duration", "is_instant", "read_durations", "read_instants"]

_EPOCH = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_NO_MONTHS = "X has intervals in column {!r} with months or years, which have no fixed length; give durations in days"
#: Fields of an interval that have a fixed length, in nanoseconds.
_FIXED = {f"{word}s": NANOSECONDS["s"] * 60**k for k, word in enumerate(("second", "minute", "hour"))}
_FIXED |= {"days": NANOSECONDS["D"], "weeks": 7 * NANOSECONDS["D"]}
_FIXED |= {f"{word}seconds": NANOSECONDS[unit] for word, unit in (("milli", "ms"), ("micro", "us"), ("nano", "ns"))}
#: Units of NumPy that are multiples of ours.
_COARSER = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}


@dataclass(frozen=True, eq=False)
class Counts:
    """A column as counts of a unit.

    Attributes
    ----------
    values : integers, of 64 bits or Python's own
        0 where a value is missing.
    known : bool array
    unit : str
        A key of `NANOSECONDS`.
    zone : str or None
        Of times: the zone they were given in; None for times without.
    """

    values: NDArray[Any]
    known: NDArray[np.bool_]
    unit: str
    zone: str | None = None

    def coarsest_unit(self) -> str:
        """The largest unit in which all known values are whole."""
        known = self.values[self.known]
        for unit, nanoseconds in NANOSECONDS.items():
            factor = nanoseconds // NANOSECONDS[self.unit]
            if factor >= 1 and not (known % factor).any():
                return unit
        return self.unit

    def floored(self, unit: str) -> NDArray[Any]:
        """In another unit, rounded down: what is at least a whole number of it still is, and what is less still is."""
        own, wanted = NANOSECONDS[self.unit], NANOSECONDS[unit]
        if wanted >= own:
            return np.asarray(self.values // (wanted // own))
        factor = own // wanted
        if self.values.dtype != object and len(self.values) and int(np.abs(self.values).max()) >= 2**62 // factor:
            return self.values.astype(object) * factor
        return np.asarray(self.values * factor)


def is_instant(kind: type) -> bool:
    """Whether objects of a type are dates, times of a day of the calendar, or periods."""
    return issubclass(kind, dt.date | np.datetime64) or (hasattr(kind, "start_time") and hasattr(kind, "to_timestamp"))


def is_duration(kind: type) -> bool:
    """Whether objects of a type are lengths of time; a time of the day is one since midnight."""
    return issubclass(kind, dt.timedelta | np.timedelta64 | dt.time) or _is_interval(kind)


def _is_interval(kind: type) -> bool:
    """Whether it is what Arrow and pandas make of an interval in SQL: months, days and a part of a day."""
    return any(base.__name__ in ("MonthDayNano", "DateOffset") for base in kind.__mro__)


def read_instants(values: NDArray[Any], name: str, given: Scale | None = None) -> Counts:
    """Dates and times as counts since 1970, of UTC where they have a zone.

    Parameters
    ----------
    values : array of datetime64 or objects
    name : str
        Of the column, for errors.
    given : Scale, optional
        What the table says of the column: the zone of datetime64 values, which cannot hold it themselves.

    Raises
    ------
    InvalidInputError
        For other values, and where some have a zone and some have none.
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
    """Lengths of time as counts; times of the day count from midnight.

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
    """Nanoseconds since 1970, and the zone."""
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
    """Nanoseconds."""
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
    # Not value // _MICROSECOND: a Timedelta of pandas has nanoseconds, and its own idea of division.
    seconds = int(value.days) * 86_400 + int(value.seconds)
    return (seconds * 10**6 + int(value.microseconds)) * 1000 + int(getattr(value, "nanoseconds", 0))


def intervals(arrow: Any, name: str) -> NDArray[Any]:
    """A column of Arrow's type ``month_day_nano_interval``, which DuckDB has for INTERVAL, as durations.

    A day has 24 hours, as where intervals are compared.

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
    # The part of a day may be longer than one: together they stay within 64 bits, with room for a day.
    most = 2**63 // per - 1 - int(np.abs(rest // per).max())
    if int(np.abs(days).max()) > most:
        raise InvalidInputError(f"X has durations in column {name!r} that are too long to be counted in {unit}")
    return np.asarray(np.where(known, days * per + rest, np.iinfo(np.int64).min).view(f"m8[{unit}]"))


def _interval(value: Any, name: str) -> int:
    """Nanoseconds of an interval of Arrow or pandas."""
    times = int(getattr(value, "n", 1))
    fields = value.kwds if hasattr(value, "kwds") else dict(zip(("months", "days", "nanoseconds"), value, strict=True))
    if any(amount and field not in _FIXED for field, amount in fields.items()):
        raise InvalidInputError(_NO_MONTHS.format(name))
    exact = {field: Fraction(amount) for field, amount in fields.items() if amount}
    found = times * sum((_FIXED[field] * amount for field, amount in exact.items()), Fraction(0))
    if not fields:  # a plain DateOffset() is a day
        found = Fraction(times * NANOSECONDS["D"])
    if found.denominator != 1:
        raise InvalidInputError(f"X has times finer than nanoseconds in column {name!r}")
    return int(found)
