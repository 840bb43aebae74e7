"""Checks of arguments that several public functions share."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import FloatArray

#: 2**21 nodes: far beyond anything that can be solved, small enough never to exhaust memory by a typing error.
MAX_SUPPORTED_DEPTH = 20

TieCriterion = Literal["purity", "support", "first"]
TIE_CRITERIA: tuple[TieCriterion, ...] = ("purity", "support", "first")
"""Which of the equally good trees is taken: see `accel_oct.exact.ties`."""


def as_whole(value: Any) -> int | None:
    """Return a whole number as an int; None for anything else, booleans included."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def whole_number(value: Any, where: str, least: int = 0) -> int:
    """Return a whole number of at least `least`, or raise InvalidInputError that begins with `where`."""
    number = as_whole(value)
    if number is None or number < least:
        raise InvalidInputError(f"{where} must be a whole number of at least {least}, got {shown(value)}")
    return number


def checked_depth(max_depth: Any, name: str = "max_depth") -> int:
    """Return a depth as an int, or raise InvalidInputError that names the argument."""
    depth = as_whole(max_depth)
    if depth is None:
        raise InvalidInputError(f"{name} must be a whole number, got {shown(max_depth)}")
    if not 0 <= depth <= MAX_SUPPORTED_DEPTH:
        raise InvalidInputError(f"{name} must lie between 0 and {MAX_SUPPORTED_DEPTH}, got {shown(max_depth)}")
    return depth


def number_array(values: Any, shape: tuple[int, ...], where: str, meaning: str = "") -> FloatArray:
    """Return finite numbers as an array of some shape, or raise InvalidInputError that begins with `where`.

    `meaning` explains the shape in the message.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{where} must hold numbers, got {shown(values)}") from None
    if array.shape != shape:
        raise InvalidInputError(f"{where} must have the shape {shape}{meaning}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{where} holds a NaN or infinite value")
    return array


def number_not_negative(value: Any, argument: str) -> float:
    """Return a nonnegative number, possibly infinite, or raise InvalidInputError."""
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 0:
        raise InvalidInputError(f"{argument} must be a number that is not negative, got {shown(value)}")
    return number


def class_index(label: Any, classes: Sequence[Any], where: str) -> int:
    """Return the place of a class among all classes; None is the second of two classes."""
    if label is None:
        if len(classes) != 2:
            raise InvalidInputError(f"{where} must name a class, there are {len(classes)}")
        return 1
    places = [k for k, known in enumerate(classes) if np.ndim(label) == 0 and known == label]
    if not places:
        raise InvalidInputError(f"{where} {shown(label)} is not a class; known are {shown(list(classes))}")
    return places[0]


def time_left(time_limit: float | None, began: float) -> float | None:
    """Return the remaining seconds of a limit that began at a reading of `time.perf_counter`.

    Invalid limits are returned unchanged; the callee rejects them.
    """
    if time_limit is None or not time_limit > 0:
        return time_limit
    return max(time_limit - (time.perf_counter() - began), 0.0)
