"""Whether the conditions and scales of a stored encoder fit the kinds of its columns."""

from __future__ import annotations

from typing import get_args

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, MeasuredKind, Scale
from accel_oct.errors import InvalidInputError

__all__ = ["check_condition", "check_scales"]

#: Of a time: beyond a million years NumPy cannot write it in seconds and years alike.
_MOST_NANOSECONDS = 10**9 * 86_400 * 366 * 10**6


def check_scales(scales: dict[int, Scale], kinds: list[str]) -> None:
    """Columns of a kind that needs a scale have one of this kind, and no others do."""
    wanted = {index: kind for index, kind in enumerate(kinds) if kind in get_args(MeasuredKind)}
    if {index: scale.kind for index, scale in scales.items()} != wanted:
        raise InvalidInputError("encoder.scales must tell of the columns of dates, durations and ordered categories")


def check_condition(condition: Condition, kind: str) -> None:
    numeric = condition.test in ("at_least", "between", "is_true")
    if kind == "ignored" or (numeric and kind == "categorical"):
        raise InvalidInputError(f"a condition {condition.test!r} does not fit a column of kind {kind!r}")
    if kind in get_args(MeasuredKind):
        limits = [limit for limit in (condition.low, condition.high) if limit is not None]
        if condition.test not in ("at_least", "between", "is_missing") or any(limit % 1 for limit in limits):
            raise InvalidInputError(f"a condition {condition.test!r} does not fit a column of kind {kind!r}")
        assert condition.scale is not None
        if kind == "ordered" and any(not 0 <= limit < len(condition.scale.categories) for limit in limits):
            raise InvalidInputError("a condition asks for a place that the order of its categories does not have")
        if any(abs(limit) * NANOSECONDS.get(condition.scale.unit, 0) > _MOST_NANOSECONDS for limit in limits):
            raise InvalidInputError("a condition asks for a time out of range")
    if condition.test == "none_of" and kind != "categorical":
        raise InvalidInputError(f"a condition {condition.test!r} does not fit a column of kind {kind!r}")
    if isinstance(condition.value, str) and kind != "categorical":
        raise InvalidInputError(f"a condition {condition.test!r} does not fit a column of kind {kind!r}")
