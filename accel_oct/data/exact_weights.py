"""Weights as they were given, with sums that are exact whatever their size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExactWeights", "accurate_sums"]

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
