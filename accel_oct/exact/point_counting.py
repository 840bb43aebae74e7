"""Near-optimal trees of points, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.errors import InvalidInputError
from accel_oct.exact.coded import Coded, Columns, Scale, common_exponent, scaled
from accel_oct.exact.limited import PricedProblem
from accel_oct.exact.limited_points import LimitedProblem, PointTables
from accel_oct.exact.sample_sets import PointSets
from accel_oct.exact.side_tables import SideTables
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

_FLOAT_BITS = 52
"""Whole numbers up to this size are exact in matrix products."""

_MOST_PLANES = 16
"""Binary digits of gains up to which bits are counted; matrix products are faster beyond."""

_SMALL = 10_000
"""Cells of a set up to which NumPy adds gains up sooner than compiled code is called."""

_MANY_FEATURES = 200
"""Features from which on tables keep what they know below the sides of features: few sets are looked at twice then."""


@dataclass(frozen=True, eq=False)
class CountingProblem(PointSets, Coded):
    """Points, what predictions earn there, and the price of a leaf, all in coded units; made by `of`.

    Attributes
    ----------
    X : bool array (n_points, n_features)
    gains : int array (n_points, n_classes)
        Positive for some class at every point: where there are sums there are samples.
    """

    X: BoolMatrix
    gains: IntArray

    @classmethod
    def of(
        cls,
        X: BoolMatrix,
        gains: FloatArray,
        leaf_price: float,
        max_depth: int,
        slack: float,
        any_label: bool = True,
    ) -> CountingProblem:
        """From gains and a price on a common dyadic grid.

        Parameters
        ----------
        X : bool array (n_points, n_features)
            Each point counts as a sample: two equal ones are never separated, and do no harm.
        gains : float array (n_points, n_classes)
            What predicting a class at a point earns: not negative, on a dyadic grid on which sums are exact.
        leaf_price : float
            Not negative, on the same grid.
        max_depth : int
        slack : float
            How much less than the best a tree may be worth; infinite for all trees.
        any_label : bool
            Whether leaves may predict any class, or only the one that earns most there, the first of equal ones.

        Raises
        ------
        InvalidInputError
            When the numbers are so far apart in size that values cannot be told apart in 64 bits.
        """
        exponent = common_exponent(np.append(gains.ravel(), leaf_price))
        with np.errstate(over="ignore"):
            amounts = np.ldexp(gains, -exponent)
        if not float(amounts.sum()) < 2.0**_FLOAT_BITS:
            raise InvalidInputError("gains: the largest and the smallest are too far apart to be added up exactly")
        units = amounts.astype(np.int64)
        price = scaled(leaf_price, exponent)
        factor = math.gcd(price, int(np.gcd.reduce(units, axis=None))) or 1
        units, price = units // factor, price // factor
        nothing = ~units.any(axis=1)
        units[nothing] = 1  # a constant for every tree, so that no point is overlooked
        bonus, total = int(nothing.sum()), int(units.sum())
        allowed = None if slack == math.inf else scaled(slack, exponent) // factor
        depth = min(max_depth, max(len(X) - 1, 0), X.shape[1])
        scale = Scale.of(total, price, allowed, max_depth, depth, len(X))
        return cls(
            X=np.ascontiguousarray(X),
            gains=units << scale.bits,
            unit=math.ldexp(float(factor), exponent),
            any_label=any_label,
            **scale._replace(bonus=bonus + scale.bonus)._asdict(),
        )

    # ---------------------------------------------------------------- sets of points

    def totals(self, points: IntArray) -> IntArray:
        """Gains of every class."""
        return np.asarray(self.gains[points].sum(axis=0))

    def most(self, points: IntArray) -> int:
        return int(self.gains[points].max(axis=1).sum())

    def ones(self, points: IntArray, features: IntArray) -> IntArray:
        if points.size * features.size <= _SMALL:
            return np.asarray(self.gains[points].T @ self.X[points[:, None], features].astype(np.int64))
        return native.column_gains(self._by_bits(points, features))

    def columns(self, points: IntArray) -> Columns:
        """What splits a set."""
        mask = self._as_words(points)
        words, present = self._words[:, mask != 0], mask[mask != 0]
        starts = self.X[points[0]] if len(points) else np.zeros(len(words), dtype=bool)
        words = (words & present) ^ np.where(starts[:, None], present, np.uint64(0))  # all begin with zero
        features = np.flatnonzero(words.any(axis=1))
        first, column = _first_equal(words[features])
        return Columns(
            feature=features[first],
            multiplicity=np.bincount(column, minlength=first.size).astype(np.int64),
            features=features,
            column=column,
            flipped=starts[features] != starts[features[first]][column],
        )

    def set_gains(self, points: IntArray, features: IntArray) -> native.SetGains:
        if self._digits[2].max(initial=0) < _MOST_PLANES:
            return self._by_bits(points, features)
        gains = self._grains[points]
        return native.SetGains.of_pairs(self.totals(points), self._by_products(self.X[points][:, features], gains))

    def _by_bits(self, points: IntArray, features: IntArray) -> native.SetGains:
        totals, (masks, label, plane) = self.totals(points), self._digits
        both = np.empty((totals.size, 0, 0), np.int64)
        own = masks & self._as_words(points)
        return native.SetGains(totals, both, self._words[features], own, label, self._grain << plane)

    def _by_products(self, X: BoolMatrix, gains: IntArray) -> IntArray:
        """Gains (K, C, C) of every class over the points that have both of two columns, by matrix products."""
        # Sums of whole numbers below 2**24 are exact in single precision, in any order.
        kind = np.float32 if int(gains.sum()) < 1 << 24 else np.float64
        result = np.empty((gains.shape[1], X.shape[1], X.shape[1]), dtype=np.int64)
        for label in range(gains.shape[1]):
            rows = np.flatnonzero(gains[:, label])
            ones = X[rows].astype(kind)
            result[label] = ones.T @ (ones * gains[rows, label].astype(kind)[:, None])
        return result * self._grain

    def side_tables(
        self, points: IntArray, height: int, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> SideTables:
        gains = (self.gains[points] >> self.table_bits).astype(np.float64)  # small numbers make fast tables
        nothing, none = np.zeros((0, *gains.shape)), np.empty(0)
        price = math.ldexp(self.price, -self.table_bits)
        limited = LimitedProblem(
            X=self.X[points],
            gains=gains,
            uses=nothing,
            leaf_uses=none,
            upper=none,
            leaf_price=price,
            max_depth=height,
            scales=none,
        )
        priced = PricedProblem(none, gains, price, 0.0, 0.0)
        return PointTables(limited, priced, should_stop, threads, memory_limit, self.X.shape[1] >= _MANY_FEATURES)

    @cached_property
    def table_bits(self) -> int:
        """Zero bits at the end of all gains, which may be many: the grid of the price is finer than that of weights."""
        return (self._grain & -self._grain).bit_length() - 1

    @cached_property
    def _grain(self) -> int:
        """What all gains are multiples of."""
        return int(np.gcd.reduce(self.gains, axis=None)) or 1

    @cached_property
    def _grains(self) -> IntArray:
        return np.asarray(self.gains // self._grain)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        """Features as bits of whole words, (n_features, words)."""
        return _packed(self.X.T)

    @cached_property
    def _digits(self) -> tuple[NDArray[np.uint64], IntArray, IntArray]:
        """Points whose gain of a class has a binary digit, as words; which class, and which digit."""
        planes = np.arange(int(self._grains.max(initial=0)).bit_length())
        digits = ((self._grains[:, :, None] >> planes) & 1).astype(bool)  # (n, K, planes)
        label, plane = (np.ascontiguousarray(place) for place in np.nonzero(digits.any(axis=0)))
        return _packed(digits[:, label, plane].T), label, plane

    def _as_words(self, points: IntArray) -> NDArray[np.uint64]:
        own = np.zeros(len(self.X), dtype=bool)
        own[points] = True
        return _packed(own)


def _packed(bits: BoolArray) -> NDArray[np.uint64]:
    """Bits (..., n) in words (..., ceil(n / 64))."""
    whole = np.zeros((*bits.shape[:-1], -(-bits.shape[-1] // 64) * 64), dtype=bool)
    whole[..., : bits.shape[-1]] = bits
    return np.packbits(whole, axis=-1).view(np.uint64)


@cache
def _factors(size: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(1, 2**63, size, dtype=np.uint64)


def _first_equal(rows: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Places of the rows that no earlier one equals, increasing, and for each row which of them it equals."""
    hashes = (rows * _factors(rows.shape[1])).sum(axis=1, dtype=np.uint64)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][group], rows):  # different rows with equal hashes
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[group.reshape(-1)]
