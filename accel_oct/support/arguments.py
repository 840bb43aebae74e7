"""Checks of arguments that several public functions share."""

from __future__ import annotations

import operator
import time
from typing import Any

from accel_oct.errors import InvalidInputError, shown

#: 2**21 nodes: far beyond anything that can be solved, small enough never to exhaust memory by a typing error.
MAX_SUPPORTED_DEPTH = 20


def checked_depth(max_depth: Any) -> int:
    """`max_depth` as an int, or an error that says what is wrong with it."""
    if isinstance(max_depth, bool):
        raise InvalidInputError(f"max_depth must be a whole number, got {shown(max_depth)}")
    try:
        depth = operator.index(max_depth)
    except TypeError:
        raise InvalidInputError(f"max_depth must be a whole number, got {shown(max_depth)}") from None
    if not 0 <= depth <= MAX_SUPPORTED_DEPTH:
        raise InvalidInputError(f"max_depth must lie between 0 and {MAX_SUPPORTED_DEPTH}, got {shown(depth)}")
    return depth


def time_left(time_limit: float | None, began: float) -> float | None:
    """What is left of a limit, from a reading of `time.perf_counter`; what is no limit is left to be refused."""
    if time_limit is None or not time_limit > 0:
        return time_limit
    return max(time_limit - (time.perf_counter() - began), 0.0)
