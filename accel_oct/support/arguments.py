"""Checks of arguments that several public functions share."""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping
from typing import Any

from accel_oct.errors import InvalidInputError, shown

#: 2**21 nodes: far beyond anything that can be solved, small enough never to exhaust memory by a typing error.
MAX_SUPPORTED_DEPTH = 20


def checked_depth(max_depth: Any, name: str = "max_depth") -> int:
    """Return a depth as an int, or raise InvalidInputError that names the argument."""
    if isinstance(max_depth, bool):
        raise InvalidInputError(f"{name} must be a whole number, got {shown(max_depth)}")
    try:
        depth = operator.index(max_depth)
    except TypeError:
        raise InvalidInputError(f"{name} must be a whole number, got {shown(max_depth)}") from None
    if not 0 <= depth <= MAX_SUPPORTED_DEPTH:
        raise InvalidInputError(f"{name} must lie between 0 and {MAX_SUPPORTED_DEPTH}, got {shown(max_depth)}")
    return depth


def checked_solver_options(options: Any) -> dict[str, Any]:
    """Return `solver_options` as a dictionary, or raise InvalidInputError."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InvalidInputError(
            f"solver_options must be a mapping from the solver's option names to values, got {options!r}"
        )
    return dict(options)


def time_left(time_limit: float | None, began: float) -> float | None:
    """Return the remaining seconds of a limit that began at a reading of `time.perf_counter`.

    Invalid limits are returned unchanged; the callee rejects them.
    """
    if time_limit is None or not time_limit > 0:
        return time_limit
    return max(time_limit - (time.perf_counter() - began), 0.0)
