"""Sample weights: read from what users pass, rounded to a grid or to whole numbers, or with exact sums of any size."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import one_dimensional
from accel_oct.errors import InvalidInputError

__all__ = [
    "ExactWeights",
    "accurate_sums",
    "as_weights",
    "fits",
    "given_weights",
    "grid_bits_of",
    "in_usual_range",
    "on_grid",
    "round_to_grid",
    "whole_weights",
    "whole_where_close",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_LOW_BITS = 26
"""Of the 53 bits of a float, so many are in the low half and the others in the high half."""

_BLOCK = 2**25
"""Rows whose halves of at most 27 bits add up to less than 2**53, which a float holds exactly."""


class ExactWeights:
    """Sums of weights as whole numbers of one unit, the power of two `unit`.

    A weight is a whole number of 53 bits times a power of two. Numbers with the same power are added as floats, in two
    halves, without rounding; a sum over all powers is a whole number of any size.

    Parameters
    ----------
    weights : float array (n,)
        Finite, not negative.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        mantissas, exponents = np.frexp(weights)
        whole = np.ldexp(mantissas, 53)
        self._high = np.floor(np.ldexp(whole, -_LOW_BITS))
        self._low = whole - np.ldexp(self._high, _LOW_BITS)
        # The exponent of zero is none: it would only make the unit smaller.
        exponents = np.where(weights > 0, exponents, exponents.max(initial=0, where=weights > 0))
        self._mantissas, self._exponents = mantissas, exponents
        levels, self._level = np.unique(exponents, return_inverse=True)
        self._levels: list[int] = levels.tolist() or [0]

    @property
    def unit(self) -> Fraction:
        """What sums are multiples of."""
        return Fraction(2) ** (self._levels[0] - 53)

    def sums(self, cells: IntArray, n_cells: int) -> list[int]:
        """The weight in each cell, in units; `cells` has the cell of every row."""
        totals = [0] * n_cells
        place = self._level * n_cells + cells
        size = len(self._levels) * n_cells
        for begin in range(0, len(place), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            for half, shift in ((self._high, _LOW_BITS), (self._low, 0)):
                found = np.bincount(place[rows], half[rows], size).reshape(-1, n_cells)
                for level, amounts in zip(self._levels, found.tolist(), strict=True):
                    for cell, amount in enumerate(amounts):
                        if amount:
                            totals[cell] += int(amount) << (level - self._levels[0] + shift)
        return totals

    def total(self, rows: BoolArray | None = None) -> int:
        """The weight of all rows, or of some, in units."""
        cells = np.zeros(len(self.weights), dtype=np.int64) if rows is None else (~rows).astype(np.int64)
        return self.sums(cells, 2)[0]

    def shares(self, rows: BoolArray) -> FloatArray:
        """What each of some rows is of their weight together, in floating point; zero for the others."""
        present = rows & (self.weights > 0)
        if not present.any():
            return np.zeros(len(self.weights))
        # Over a power of two first, so that no digits are lost at either end of what a float can hold.
        exponents = np.minimum(self._exponents - int(self._exponents[present].max()), 0)
        found = np.ldexp(np.where(rows, self._mantissas, 0.0), exponents)
        return np.asarray(found / found.sum())


def accurate_sums(amounts: FloatArray, cells: IntArray, n_cells: int) -> FloatArray:
    """Sums (n_cells, K) of amounts (n, K) of either sign, off by a few units in the last place of the largest total.

    Adding n equal numbers one after the other is off by up to n such units. So what is added first are multiples of a
    power of two, whose sums are exact, and then the small remainders.
    """
    result = np.zeros((n_cells, amounts.shape[1]))
    largest = float(np.abs(amounts).sum())
    if not largest:
        return result
    bits = 52 - int(np.frexp(largest)[1])
    for k in range(amounts.shape[1]):
        coarse = np.ldexp(np.rint(np.ldexp(amounts[:, k], bits)), -bits)
        result[:, k] = np.bincount(cells, coarse, n_cells) + np.bincount(cells, amounts[:, k] - coarse, n_cells)
    return result


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


# ---------------------------------------------------------------- reading

_USUAL_EXPONENT = 500


def as_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    """Finite non-negative float64 weights, not all zero; ones when `sample_weight` is None. See `in_usual_range`."""
    return in_usual_range(given_weights(sample_weight, n_samples))


def in_usual_range(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply by one power of two where the largest weight is beyond ``2**500`` or below ``2**-500``.

    Only proportions of weights matter in objectives. So no product of a weight underflows or overflows later; below the
    normal numbers a leaf price or a mean would otherwise be lost.
    """
    exponent = math.frexp(float(weights.max()))[1]
    return weights if abs(exponent) <= _USUAL_EXPONENT else np.ldexp(weights, -exponent)


def given_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    """Finite non-negative float64 weights, not all zero, as they were given; ones when `sample_weight` is None."""
    if sample_weight is None:
        return np.ones(n_samples)
    raw = one_dimensional(sample_weight, "sample_weight", n_samples)
    if raw.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in raw.tolist()):
        raise InvalidInputError("sample_weight must hold numbers, but it holds strings")
    if raw.dtype.kind not in "Obiuf":
        raise InvalidInputError(f"sample_weight must hold numbers, got the type {raw.dtype}")
    try:
        weights = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers: {error}") from None
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(f"sample_weight must be finite and not negative, but row {row} has {weights[row]}")
    if not weights.any():
        raise InvalidInputError("sample_weight is zero for every sample")
    try:
        math.fsum(weights)  # the plain sum may overflow on the way
    except OverflowError:
        raise InvalidInputError("sample_weight adds up to more than a float can hold") from None
    return weights


#: Sums of a million scaled weights err by about this, relatively.
_ROUNDING = 1e-9


def whole_where_close(values: FloatArray) -> FloatArray:
    """Whole numbers where rounding alone may have made another number of one, so that floor does not fall below it."""
    whole = np.rint(values)
    return np.where(np.abs(values - whole) <= _ROUNDING * np.maximum(1.0, np.abs(whole)), whole, values)
