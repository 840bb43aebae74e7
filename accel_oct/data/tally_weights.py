"""Weights as whole numbers of a unit, so that they add up exactly in any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import as_weights
from accel_oct.errors import InvalidInputError

__all__ = ["fits", "whole_weights"]

IntArray = NDArray[np.int64]

_WEIGHT_BITS = 30
"""Real weights are rounded to so many bits of the heaviest one of their piece."""

_TOTAL_BITS = 62
"""Totals stay below this power of two, so that no sum overflows."""


def whole_weights(sample_weight: Any, n_rows: int) -> tuple[IntArray, int]:
    """Weights in units, and the exponent of the unit: 0 where all are whole numbers."""
    if sample_weight is None or not n_rows:
        return np.ones(n_rows, dtype=np.int64), 0
    values = np.asarray(sample_weight)
    if values.shape == (n_rows,) and values.dtype.kind in "biuf" and not values.any():
        return np.zeros(n_rows, dtype=np.int64), 0  # a piece may be so, if not all of the data
    weights = as_weights(sample_weight, n_rows)
    if np.max(np.asarray(sample_weight, dtype=np.float64)) != weights.max():
        # Elsewhere only proportions matter, but pieces must be of one scale.
        raise InvalidInputError("sample_weight must have its largest weight between 2**-500 and 2**500")
    unit = 0
    if not np.all(weights == np.floor(weights)):
        unit = math.frexp(float(weights.max()))[1] - _WEIGHT_BITS
    units = np.ldexp(weights, -unit)
    if float(units.sum()) >= 2.0**_TOTAL_BITS:
        raise InvalidInputError("sample_weight adds up to more than can be counted exactly")
    counts = np.rint(units).astype(np.int64)
    lost = np.flatnonzero((counts == 0) & (weights > 0))
    if lost.size:
        raise InvalidInputError(
            f"sample_weight: row {lost[0]} weighs {weights[lost[0]]:g}, which a tally cannot tell from zero beside the "
            f"heaviest, {weights.max():g}: give rows, which keep every weight, or leave it out"
        )
    return counts, unit


def fits(*totals: int) -> bool:
    """Whether the sum of some totals can be counted."""
    return sum(totals) < 1 << _TOTAL_BITS
