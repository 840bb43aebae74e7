"""Conditions on times, durations and ordered categories in generated Python code."""

from __future__ import annotations

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError

__all__ = ["TIME_HELPERS", "categories_of", "python_measured", "scale_of"]

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
    scale = scale_of(condition)
    if scale.kind == "ordered":
        return f"{names['text']}({value}) in {categories_of(condition, scale)!r}"
    if scale.unit == "ns":
        raise InvalidInputError("to_python cannot write times that are finer than microseconds, as Python's own are")
    given = value if scale.kind == "duration" else f"{value}, {scale.zone is not None}"
    factor = NANOSECONDS[scale.unit] // 1000
    low = "" if condition.low is None else f"{int(condition.low) * factor} <= "
    high = "" if condition.high is None else f" < {int(condition.high) * factor}"
    return f"{low}{names[scale.kind]}({given}){high}"


def categories_of(condition: Condition, scale: Scale) -> tuple[str, ...]:
    """The ordered categories to which a condition answers yes."""
    low = 0 if condition.low is None else int(condition.low)
    return scale.categories[low : None if condition.high is None else int(condition.high)]


def scale_of(condition: Condition) -> Scale:
    """The scale of a condition that has one."""
    assert condition.scale is not None
    return condition.scale
