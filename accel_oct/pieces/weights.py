"""Weights of samples as whole numbers of a unit, the same in every piece."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.weights import ExactWeights, grid_bits_of
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.sources import BESIDE

__all__ = ["WeightTotals", "WeightUnit", "read_weights"]

FloatArray = NDArray[np.float64]

_USUAL_EXPONENT = 500
"""As in `accel_oct.data.weights.as_weights`: beyond this power of two, all weights are multiplied by one of them."""


def read_weights(values: NDArray[Any], column: str, piece: str) -> FloatArray:
    """Finite weights that are not negative; an error names the column and the piece."""
    where = f"sample_weight in {piece}" if column in BESIDE else f"sample_weight: column {column!r} of {piece}"
    if values.dtype.kind not in "biufO":
        raise InvalidInputError(f"{where} must hold numbers, got the type {values.dtype}")
    try:
        if values.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in values.tolist()):
            raise ValueError("it holds text")
        weights = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{where} must hold numbers: {error}") from None
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InvalidInputError(f"{where} must be finite and not negative, but holds {weights[bad][0]}")
    return weights


@dataclass
class WeightTotals:
    """What all weights together say: `total` is exact, so it does not depend on the order of the pieces."""

    n_rows: int = 0
    n_positive: int = 0
    total: Fraction = Fraction(0)
    largest: float = 0.0
    whole: bool = True

    def add(self, n_rows: int, weights: FloatArray | None) -> None:
        """Count a batch; every sample weighs 1 where there are no weights."""
        self.n_rows += n_rows
        if weights is None:
            self.n_positive += n_rows
            self.total += n_rows
            self.largest = max(self.largest, 1.0 if n_rows else 0.0)
        elif n_rows:
            self.n_positive += int(np.count_nonzero(weights))
            exact = ExactWeights(weights)
            self.total += exact.total() * exact.unit
            self.largest = max(self.largest, float(weights.max()))
            self.whole = self.whole and bool(np.all(weights == np.floor(weights)))

    def merge(self, other: WeightTotals) -> None:
        self.n_rows += other.n_rows
        self.n_positive += other.n_positive
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        self.whole = self.whole and other.whole

    def unit(self) -> WeightUnit:
        """The unit in which `BinaryDataset` would hold these weights."""
        if not self.total:
            raise InvalidInputError("sample_weight is zero for every sample")
        exponent = math.frexp(self.largest)[1]
        shift = -exponent if abs(exponent) > _USUAL_EXPONENT else 0
        try:
            total = float(self.total * Fraction(2) ** shift)
        except OverflowError:
            raise InvalidInputError("sample_weight adds up to more than a float can hold") from None
        bits = grid_bits_of(total, self.whole)
        return WeightUnit(shift, bits, 0 if self.whole and bits >= 0 and not shift else -bits)


@dataclass(frozen=True)
class WeightUnit:
    """Weights, multiplied by ``2.0 ** shift``, are whole multiples of ``2.0 ** exponent``.

    Attributes
    ----------
    shift : int
    grid_bits : int
        As in `BinaryDataset`.
    exponent : int
    """

    shift: int
    grid_bits: int
    exponent: int

    def whole(self, weights: FloatArray) -> NDArray[np.int64]:
        """Weights as multiples of the unit, each rounded to the nearest that is not zero."""
        return np.maximum(np.rint(np.ldexp(weights, self.shift - self.exponent)), weights > 0).astype(np.int64)

    def real(self, units: NDArray[np.int64]) -> FloatArray:
        """The weights that these multiples stand for, exactly."""
        return np.ldexp(units.astype(np.float64), self.exponent)
