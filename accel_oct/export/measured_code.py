"""Conditions on times, durations and ordered categories in generated code."""

from __future__ import annotations

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError

__all__ = ["TIME_HELPERS", "python_measured", "sql_measured"]

#: By kind, what the generated function asks of a value: microseconds, as a whole number.
TIME_HELPERS = {
    "datetime": """\
def {name}(value, has_zone):
    if {is_missing}(value):
        return float("nan")
    import datetime
    if not isinstance(value, datetime.date):
        raise TypeError("a date or a time is needed, not " + repr(value))
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if (value.utcoffset() is not None) != has_zone:
        raise ValueError("times with and without a time zone cannot be compared")
    if has_zone:
        value = value.astimezone(datetime.timezone.utc)
    seconds = (value.toordinal() - 719163) * 86400 + value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1000000 + value.microsecond
""",
    "duration": """\
def {name}(value):
    if {is_missing}(value):
        return float("nan")
    import datetime
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000000 + value.microsecond
    if not isinstance(value, datetime.timedelta):
        raise TypeError("a duration is needed, not " + repr(value))
    return (value.days * 86400 + value.seconds) * 1000000 + value.microseconds
""",
}


def python_measured(condition: Condition, value: str, names: dict[str, str]) -> str:
    """The test of a condition that has a scale."""
    scale = _scale(condition)
    if scale.kind == "ordered":
        return f"{names['text']}({value}) in {_categories(condition, scale)!r}"
    if scale.unit == "ns":
        raise InvalidInputError("to_python cannot write times that are finer than microseconds, as Python's own are")
    given = value if scale.kind == "duration" else f"{value}, {scale.zone is not None}"
    factor = NANOSECONDS[scale.unit] // 1000
    low = "" if condition.low is None else f"{int(condition.low) * factor} <= "
    high = "" if condition.high is None else f" < {int(condition.high) * factor}"
    return f"{low}{names[scale.kind]}({given}){high}"


def sql_measured(condition: Condition, name: str) -> str:
    """The same in standard SQL, with literals of DATE, TIMESTAMP or INTERVAL."""
    scale = _scale(condition)
    if scale.kind == "ordered":
        listed = ", ".join("'" + category.replace("'", "''") + "'" for category in _categories(condition, scale))
        return f"{name} IN ({listed})"
    tests = []
    if condition.low is not None:
        tests.append(f"{name} >= {_sql_time(int(condition.low), scale)}")
    if condition.high is not None:
        tests.append(f"{name} < {_sql_time(int(condition.high), scale)}")
    return " AND ".join(tests)


def _sql_time(count: int, scale: Scale) -> str:
    if scale.kind == "duration":
        nanoseconds = abs(count) * NANOSECONDS[scale.unit]
        days, rest = divmod(nanoseconds, NANOSECONDS["D"])
        seconds, fraction = divmod(rest, NANOSECONDS["s"])
        part = f".{fraction:09d}".rstrip("0") if fraction else ""
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{part}"
        return f"INTERVAL {'-' if count < 0 else ''}'{days} {clock}' DAY TO SECOND"
    text = Scale("datetime", scale.unit, None if scale.zone is None else "UTC").text(count)
    if scale.unit == "D" and scale.zone is None:
        return f"DATE '{text}'"
    return f"TIMESTAMP '{text if ':' in text else text + ' 00:00:00'}'"


def _categories(condition: Condition, scale: Scale) -> tuple[str, ...]:
    """Those that answer yes."""
    low = 0 if condition.low is None else int(condition.low)
    return scale.categories[low : None if condition.high is None else int(condition.high)]


def _scale(condition: Condition) -> Scale:
    assert condition.scale is not None
    return condition.scale
