"""Weights on a dyadic grid, where they add up without rounding: see `BinaryDataset`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError

__all__ = ["grid_bits_of", "on_grid", "round_to_grid"]

FloatArray = NDArray[np.float64]

# The total weight fills this many bits of the grid; 52 - 46 = 6 more bits leave room for 64 leaf prices.
_TOTAL_WEIGHT_BITS = 46


def on_grid(weights: FloatArray) -> tuple[FloatArray, int]:
    """Weights on the dyadic grid of `BinaryDataset`, and its bits."""
    total = math.fsum(weights)  # the plain sum may be an ulp off at a power of two
    grid_bits = grid_bits_of(total, bool(np.all(weights == np.floor(weights))))
    rounded = round_to_grid(weights, grid_bits)
    if not rounded.any():
        raise InvalidInputError("sample_weight is too small to be told from zero")
    return rounded, grid_bits


def grid_bits_of(total: float, whole: bool) -> int:
    """The bits of the grid for weights with this total; `whole`: all are integers."""
    # total <= 2**exponent with room to spare of less than a factor of two
    mantissa, exponent = math.frexp(total)
    grid_bits = _TOTAL_WEIGHT_BITS - (exponent - 1 if mantissa == 0.5 else exponent)
    return 0 if grid_bits < 0 and total < 2.0**51 and whole else grid_bits


def round_to_grid(values: FloatArray, grid_bits: int) -> FloatArray:
    """The nearest multiples of ``2.0 ** -grid_bits``."""
    # ldexp instead of a product with 2.0**grid_bits, which may overflow where the result does not.
    return np.ldexp(np.rint(np.ldexp(values, grid_bits)), -grid_bits)
