"""Sample weights: checked user input, rounding to a grid or to whole numbers, and exact sums."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import one_dimensional
from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

_LOW_BITS = 26
"""Number of the 53 bits of a float that form the low half; the others form the high half."""

_BLOCK = 2**25
"""Number of rows whose halves of at most 27 bits have a sum below 2**53, which is exact as a float."""


class ExactWeights:
    """Exact sums of weights as whole multiples of `unit`, a power of two.

    A weight is a whole number of 53 bits times a power of two. Numbers with the same power are added as floats in two
    halves, without rounding. A sum over all powers is a Python integer.

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
        # Ignore the exponent of zero, which would only make the unit smaller.
        exponents = np.where(weights > 0, exponents, exponents.max(initial=0, where=weights > 0))
        self._mantissas, self._exponents = mantissas, exponents
        levels, self._level = np.unique(exponents, return_inverse=True)
        self._levels: list[int] = levels.tolist() or [0]

    @property
    def unit(self) -> Fraction:
        """Unit of the sums."""
        return Fraction(2) ** (self._levels[0] - 53)

    def sums(self, cells: IntArray, n_cells: int) -> list[int]:
        """Return the weight of each cell in units; `cells` holds the cell of every row."""
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
        """Return the weight of all rows, or of some, in units."""
        cells = np.zeros(len(self.weights), dtype=np.int64) if rows is None else (~rows).astype(np.int64)
        return self.sums(cells, 2)[0]

    def shares(self, rows: BoolArray) -> FloatArray:
        """Return the share of each selected row in their total weight as floats; zero for other rows."""
        present = rows & (self.weights > 0)
        if not present.any():
            return np.zeros(len(self.weights))
        # Divide by a power of two first, so that no digits are lost near the limits of floats.
        exponents = np.minimum(self._exponents - int(self._exponents[present].max()), 0)
        found = np.ldexp(np.where(rows, self._mantissas, 0.0), exponents)
        return np.asarray(found / found.sum())


def accurate_sums(amounts: FloatArray, cells: IntArray, n_cells: int) -> FloatArray:
    """Return sums (n_cells, K) of signed amounts (n, K) with an error of a few ulps of the largest total.

    Plain summation of n numbers has an error of up to n ulps. So multiples of a power of two, whose sums are exact, are
    added separately from the small remainders.
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


# Bits of the grid for the total weight; the other 52 - 46 = 6 bits leave room for 64 leaf prices.
_TOTAL_WEIGHT_BITS = 46


def on_grid(weights: FloatArray) -> tuple[FloatArray, int]:
    """Return the weights rounded to the dyadic grid of `BinaryDataset`, and its bits."""
    total = math.fsum(weights)  # exact: an error of one ulp matters at a power of two
    grid_bits = grid_bits_of(total, bool(np.all(weights == np.floor(weights))))
    rounded = round_to_grid(weights, grid_bits)
    if not rounded.any():
        raise InvalidInputError("sample_weight is too small to be distinguished from zero")
    return rounded, grid_bits


def grid_bits_of(total: float, whole: bool) -> int:
    """Return the bits of the grid for weights with this total; `whole` means that all are integers."""
    # the smallest power of two that is at least the total
    mantissa, exponent = math.frexp(total)
    grid_bits = _TOTAL_WEIGHT_BITS - (exponent - 1 if mantissa == 0.5 else exponent)
    return 0 if grid_bits < 0 and total < 2.0**51 and whole else grid_bits


def round_to_grid(values: FloatArray, grid_bits: int) -> FloatArray:
    """Return the nearest multiples of ``2.0 ** -grid_bits``."""
    # ldexp, because 2.0**grid_bits may overflow although the result does not.
    return np.ldexp(np.rint(np.ldexp(values, grid_bits)), -grid_bits)


_WEIGHT_BITS = 30
"""Bits to which real weights are rounded, relative to the largest weight of their piece."""

_TOTAL_BITS = 62
"""Exponent of the limit on totals, below which no sum overflows."""


def whole_weights(sample_weight: Any, n_rows: int) -> tuple[IntArray, int]:
    """Return weights in units, and the exponent of the unit: 0 if all are whole numbers."""
    if sample_weight is None or not n_rows:
        return np.ones(n_rows, dtype=np.int64), 0
    values = np.asarray(sample_weight)
    if values.shape == (n_rows,) and values.dtype.kind in "biuf" and not values.any():
        return np.zeros(n_rows, dtype=np.int64), 0  # allowed for a piece, not for all data
    weights = as_weights(sample_weight, n_rows)
    if np.max(np.asarray(sample_weight, dtype=np.float64)) != weights.max():
        # Scaling is not possible here: all pieces must have the same scale.
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
            f"sample_weight: row {lost[0]} has the weight {weights[lost[0]]:g}, which a tally would round to zero "
            f"beside the largest, {weights.max():g}; use rows, which keep every weight, or leave the row out"
        )
    return counts, unit


def fits(*totals: int) -> bool:
    """Return whether the sum of some totals is below the limit."""
    return sum(totals) < 1 << _TOTAL_BITS


# ---------------------------------------------------------------- reading

_USUAL_EXPONENT = 500


def as_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    """Return finite, non-negative weights that are not all zero, in the usual range; ones for None."""
    return in_usual_range(given_weights(sample_weight, n_samples))


def in_usual_range(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale weights by a power of two if the largest is beyond ``2**500`` or below ``2**-500``.

    Only ratios of weights matter in objectives. The scaling prevents overflow and underflow of products of weights:
    a leaf price or a mean below the normal floats would lose digits.
    """
    exponent = math.frexp(float(weights.max()))[1]
    return weights if abs(exponent) <= _USUAL_EXPONENT else np.ldexp(weights, -exponent)


def given_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    """Return finite, non-negative weights that are not all zero, without scaling; ones for None."""
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
        math.fsum(weights)  # a plain sum may overflow at an intermediate step
    except OverflowError:
        raise InvalidInputError("sample_weight adds up to more than a float can hold") from None
    return weights


#: Approximate relative error of a sum of a million scaled weights.
_ROUNDING = 1e-9


def whole_where_close(values: FloatArray) -> FloatArray:
    """Round values that differ from a whole number only by rounding errors, so that floor keeps them."""
    whole = np.rint(values)
    return np.where(np.abs(values - whole) <= _ROUNDING * np.maximum(1.0, np.abs(whole)), whole, values)
