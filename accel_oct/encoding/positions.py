"""Where a numeric column is cut: positions between neighbouring values, and the numbers written there.

Every threshold encoder chooses *positions*: cut i lies between the i-th and the (i+1)-th distinct value that occurs in
the data. All numbers strictly between the two separate the data alike, so the one that is easiest to read is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.conditions import as_limit
from accel_oct.encoding.scales import Scale

__all__ = ["Distinct", "is_zero_one", "quantile_positions", "readable_threshold", "whole_where_close"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Sums of a million scaled weights err by about this, relatively.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct known values of a column, increasing, and their weights."""

    values: NDArray[Any]
    weights: FloatArray
    scale: Scale | None = None

    @classmethod
    def of(cls, column: NDArray[Any], weights: FloatArray, scale: Scale | None = None) -> Distinct:
        """Count a column of numbers, which may stand on a scale; missing values are left out."""
        known = np.asarray(column == column, dtype=bool)
        values, codes = np.unique(column[known], return_inverse=True)
        return cls(values, np.bincount(codes.ravel(), weights[known], len(values)).astype(np.float64), scale)

    def thresholds(self, positions: IntArray) -> list[float]:
        """A readable number for each cut."""
        pairs = [(self.values[i], self.values[i + 1]) for i in positions.tolist()]
        if self.scale is not None:
            return [as_limit(self.scale.threshold(int(low), int(high))) for low, high in pairs]
        if self.values.dtype == object:
            return [as_limit(_exact_threshold(low, high)) for low, high in pairs]
        whole = bool(np.all(self.values == np.floor(self.values)))
        return [readable_threshold(low, high, whole) for low, high in pairs]


def is_zero_one(column: NDArray[Any]) -> bool:
    """Whether of the numbers only 0 and 1 occur beside missing values, and both do."""
    for part in (column[:100], column):  # the first values rule out most columns
        zero, one = part == 0, part == 1
        if not np.all(zero | one | (part != part)):
            return False
    return bool(np.any(zero) and np.any(one))


def _exact_threshold(low: Any, high: Any) -> float:
    """Between two numbers of which one is too large for a float; whole where both are."""
    if isinstance(low, int) and isinstance(high, int):
        for digits in range(len(str(max(-low, high))), -1, -1):
            candidate = (low + high + 10**digits) // (2 * 10**digits) * 10**digits
            if low < candidate <= high and 5 * abs(2 * candidate - low - high) <= high - low:
                return int(candidate)
        return (low + high + 1) // 2
    middle = readable_threshold(low, high)
    return (
        middle if low < middle <= high else float(high) if isinstance(high, float) else int(high)
    )  # Python compares whole numbers with floats exactly


def quantile_positions(distinct: Distinct, n_quantiles: int) -> IntArray:
    """Cuts at the `n_quantiles`-quantiles, the cut m behind the sample number floor(m (n - 1) / q) in sorted order.

    That is "x > the m-th quantile", where the quantile is NumPy's and pandas' default: interpolating between that
    sample and the next never reaches the next distinct value. Equal quantiles give one cut; one at the largest value
    gives none. A weight counts as that many samples.
    """
    weights = distinct.weights
    if len(weights) == 0:
        return np.empty(0, dtype=np.int64)
    upto = np.cumsum(weights)
    # A product of whole numbers, so that no rounding moves a quantile that falls on a sample.
    index = np.arange(1, n_quantiles) * (upto[-1] - 1) / n_quantiles
    if not np.all(weights == np.floor(weights)):
        upto, index = whole_where_close(upto), whole_where_close(index)
    index = np.floor(index)
    positions = np.unique(np.searchsorted(upto, np.maximum(index, 0), side="right"))
    return positions[positions < len(weights) - 1].astype(np.int64)


def whole_where_close(values: FloatArray) -> FloatArray:
    """Whole numbers where rounding alone may have made another number of one, so that floor does not fall below it."""
    whole = np.rint(values)
    return np.where(np.abs(values - whole) <= _ROUNDING * np.maximum(1.0, np.abs(whole)), whole, values)


def readable_threshold(low: float, high: float, whole: bool = False) -> float:
    """A short number t with low < t <= high from the middle fifth of the gap.

    Half of the gap keeps the margin to both sides for values not seen yet. With `whole` (a column of whole numbers) it
    is rounded up to a whole number, which separates whole numbers alike.
    """
    low, high = float(low), float(high)
    middle = low / 2 + high / 2  # low + high may overflow
    slack = high / 10 - low / 10
    result = high  # neighbouring floats have nothing in between
    for digits in range(1, 18):
        candidate = float(f"{middle:.{digits}g}")
        if low < candidate <= high and abs(candidate - middle) <= slack:
            result = candidate
            break
    return float(math.ceil(result)) if whole and abs(result) < 2**53 else result
