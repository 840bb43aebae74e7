"""Values of trees as integers that contain the number of leaves, for points of the data and for a tally.

Gains and the leaf price are multiples of one unit, so every value is an integer number of units. The *code* of a tree
is its value times a power of two, minus its number of leaves. So of trees of equal value those with fewer leaves have
larger codes, and both the value and the number of leaves follow from the code.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data import TallySets
from accel_oct.data.binary_matrix import BoolMatrix, pack_rows
from accel_oct.data.tally import Path
from accel_oct.errors import InvalidInputError
from accel_oct.exact.enumeration import PathSets, PointSets, SampleSet, SampleSets
from accel_oct.exact.limited import PricedProblem, SideTables
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.limited_points import LimitedProblem, PointTables
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree.tallied import TalliedTrees

_CODE_BITS = 61
"""Most bits of codes: their sums and differences fit into 64 bits."""


class Columns(NamedTuple):
    """Columns that split a set of samples; equal and complementary features form one column.

    Attributes
    ----------
    feature : int array (C,)
        The first feature of each column.
    multiplicity : int array (C,)
        Number of features of each column.
    features : int array
        All features that split the set, increasing.
    column : int array
        The column of each of these features.
    flipped : bool array
        Whether each of them is the complement of the first feature of its column.
    """

    feature: IntArray
    multiplicity: IntArray
    features: IntArray
    column: IntArray
    flipped: BoolArray


class CodeScale(NamedTuple):
    """Numbers of a `CodedProblem`."""

    price: int
    max_depth: int
    bits: int
    bonus: int
    slack: int

    @classmethod
    def of(cls, total: int, price: int, slack: int | None, max_depth: int, deepest: int, n_samples: int) -> CodeScale:
        """Return the scale of integer gains of all samples, leaf price and slack (None for all trees).

        Trees are at most `deepest` deep, and have at most `n_samples` leaves.
        """
        allowed = total + price * 2**max_depth  # the largest possible loss
        if slack is not None:
            allowed = min(allowed, slack)
        bonus = 0
        if price > total + allowed:  # no tree with a second leaf is within the slack
            deepest, bonus, price, allowed = 0, price, 0, min(allowed, total)
        bits = min(2**deepest, max(n_samples, 1)).bit_length()
        if (total + allowed + 8 * price).bit_length() + bits > _CODE_BITS:
            raise InvalidInputError(
                "within, leaf_penalty and max_depth: the range of values is too large for exact counting in 64 bits"
            )
        return cls((price << bits) + 1, deepest, bits, bonus, allowed)


@dataclass(frozen=True, eq=False)
class CodedProblem(SampleSets):
    """Codes of trees, and gains of sets of samples in coded units.

    Attributes
    ----------
    price : int
        Code of the leaf price.
    max_depth : int
        Largest depth of a tree.
    bits : int
        Bits of the code that hold the number of leaves.
    unit : float
        Size of an uncoded unit, in the units of the given gains and price.
    bonus : int
        Constant added to every uncoded value; `earned` subtracts it.
    slack : int
        Largest difference to the best uncoded value.
    any_label : bool
        Whether leaves may predict any class; else only the one with the largest gain, the first of equal ones.
    """

    price: int
    max_depth: int
    bits: int
    unit: float
    bonus: int
    slack: int
    any_label: bool

    # ---------------------------------------------------------------- codes

    def value(self, code: int) -> int:
        """Return the uncoded value of the trees with a code."""
        return -(-code >> self.bits)

    def leaves(self, code: int) -> int:
        """Return the number of leaves of the trees with a code."""
        return (self.value(code) << self.bits) - code

    def least_code(self, value: int) -> int:
        """Return the least code of all trees with at least this uncoded value."""
        return (value << self.bits) - (1 << self.bits) + 1

    @property
    def table_bits(self) -> int:
        """Codes are the values in `side_tables` times two to this power."""
        return self.bits

    @property
    def code_slack(self) -> int:
        """Upper bound on the difference of the codes of two trees within the slack of each other."""
        return (self.slack + 1) << self.bits

    def earned(self, value: int) -> float:
        """Convert an uncoded value to the units of the given gains."""
        return (value - self.bonus) * self.unit

    # ---------------------------------------------------------------- sets of samples

    @abstractmethod
    def totals(self, samples: SampleSet) -> IntArray:
        """Return the gains (K,) of every class."""

    @abstractmethod
    def columns(self, samples: SampleSet) -> Columns:
        """Return the columns that split a set."""

    @abstractmethod
    def ones(self, samples: SampleSet, features: IntArray) -> IntArray:
        """Return the gains (K, C) of every class over the samples in which a feature is one."""

    @abstractmethod
    def set_gains(self, samples: SampleSet, features: IntArray) -> native.SetGains:
        """Return the gains of every class over the set, and over the samples in which two features are one."""

    @abstractmethod
    def side_tables(
        self, samples: SampleSet, height: int, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> SideTables | None:
        """Return the best codes of the sides of all columns, in units of ``2**table_bits``; None if not available.

        Exact for codes below 2**53.
        """

    def leaf_codes(self, samples: SampleSet) -> list[tuple[int, int]]:
        """Return codes and classes of the leaves, best first."""
        totals = self.totals(samples)
        codes = (totals - self.price).tolist()
        if not self.any_label:
            best = int(totals.argmax())
            return [(codes[best], best)]
        return sorted(((code, label) for label, code in enumerate(codes)), key=lambda leaf: (-leaf[0], leaf[1]))


def common_exponent(numbers: FloatArray) -> int:
    """Return the largest e such that all numbers are multiples of ``2**e``."""
    mantissa, exponent = np.frexp(numbers[numbers != 0.0])
    if not mantissa.size:
        return 0
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = whole & -whole
    return int((np.frexp(lowest.astype(np.float64))[1] - 1 + exponent - 53).min())


def scaled(number: float, exponent: int) -> int:
    """Return a number in units of ``2**exponent``, rounded down."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator << max(-exponent, 0)) // (denominator << max(exponent, 0))


_FLOAT_BITS = 52
"""Integers of up to this number of bits are exact in matrix products."""

_MOST_PLANES = 16
"""Most binary digits of gains for counting bits; matrix products are faster beyond."""

_SMALL = 10_000
"""Most cells of a set for NumPy; compiled code is faster beyond."""

_MANY_FEATURES = 200
"""Fewest features for which tables keep the values below the sides of features: few sets are met twice then."""


@dataclass(frozen=True, eq=False)
class CodedPoints(PointSets, CodedProblem):
    """Points with gains of every class in coded units; made by `of`.

    Attributes
    ----------
    X : bool array (n_points, n_features)
    gains : int array (n_points, n_classes)
        Positive for some class at every point, so that a set with points has a positive sum.
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
        superfluous: bool = False,
    ) -> CodedPoints:
        """Return the problem of gains and a leaf price on a common dyadic grid.

        Parameters
        ----------
        X : bool array (n_points, n_features)
            Points need not be distinct.
        gains : float array (n_points, n_classes)
            Reward of predicting a class at a point: not negative, on a dyadic grid on which sums are exact.
        leaf_price : float
            Not negative, on the same grid.
        max_depth : int
        slack : float
            Largest difference to the best value; infinite for all trees.
        any_label : bool
            Whether leaves may predict any class, or only the one with the largest gain, the first of equal ones.
        superfluous : bool
            Whether trees may have splits with an empty side, and so more leaves than points.

        Raises
        ------
        InvalidInputError
            If the range of the numbers is too large for exact values in 64 bits.
        """
        exponent = common_exponent(np.append(gains.ravel(), leaf_price))
        with np.errstate(over="ignore"):
            amounts = np.ldexp(gains, -exponent)
        if not float(amounts.sum()) < 2.0**_FLOAT_BITS:
            raise InvalidInputError("gains: the range from the smallest to the largest is too large for exact sums")
        units = amounts.astype(np.int64)
        price = scaled(leaf_price, exponent)
        factor = math.gcd(price, int(np.gcd.reduce(units, axis=None))) or 1
        units, price = units // factor, price // factor
        nothing = ~units.any(axis=1)
        units[nothing] = 1  # the same for every tree; makes every point visible in sums
        bonus, total = int(nothing.sum()), int(units.sum())
        allowed = None if slack == math.inf else scaled(slack, exponent) // factor
        depth = min(max_depth, max(len(X) - 1, 0), X.shape[1])
        leaves = len(X)
        if superfluous:
            depth, leaves = max_depth, 2**max_depth
        scale = CodeScale.of(total, price, allowed, max_depth, depth, leaves)
        return cls(
            X=np.ascontiguousarray(X),
            gains=units << scale.bits,
            unit=math.ldexp(float(factor), exponent),
            any_label=any_label,
            **scale._replace(bonus=bonus + scale.bonus)._asdict(),
        )

    # ---------------------------------------------------------------- sets of points

    def totals(self, points: IntArray) -> IntArray:
        return np.asarray(self.gains[points].sum(axis=0))

    def ones(self, points: IntArray, features: IntArray) -> IntArray:
        if points.size * features.size <= _SMALL:
            return np.asarray(self.gains[points].T @ self.X[points[:, None], features].astype(np.int64))
        return native.column_gains(self._by_bits(points, features))

    def columns(self, points: IntArray) -> Columns:
        mask = self._as_words(points)
        words, present = self._words[:, mask != 0], mask[mask != 0]
        starts = self.X[points[0]] if len(points) else np.zeros(len(words), dtype=bool)
        words = (words & present) ^ np.where(starts[:, None], present, np.uint64(0))  # all start with zero
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
        """Return the gains (K, C, C) of every class over the points with both columns, by matrix products."""
        # Sums of integers below 2**24 are exact in single precision, in any order.
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
        """Number of trailing zero bits of all gains; the grid of the price may be much finer than that of weights."""
        return (self._grain & -self._grain).bit_length() - 1

    @cached_property
    def _grain(self) -> int:
        """Greatest common divisor of all gains."""
        return int(np.gcd.reduce(self.gains, axis=None)) or 1

    @cached_property
    def _grains(self) -> IntArray:
        return np.asarray(self.gains // self._grain)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        """Features as bits of 64-bit words, (n_features, words)."""
        return pack_rows(np.ascontiguousarray(self.X.T))

    @cached_property
    def _digits(self) -> tuple[NDArray[np.uint64], IntArray, IntArray]:
        """Bit masks of the points whose gain of a class has a binary digit; the class and the digit of each mask."""
        planes = np.arange(int(self._grains.max(initial=0)).bit_length())
        digits = ((self._grains[:, :, None] >> planes) & 1).astype(bool)  # (n, K, planes)
        label, plane = (np.ascontiguousarray(place) for place in np.nonzero(digits.any(axis=0)))
        return pack_rows(np.ascontiguousarray(digits[:, label, plane].T)), label, plane

    def _as_words(self, points: IntArray) -> NDArray[np.uint64]:
        own = np.zeros(len(self.X), dtype=bool)
        own[points] = True
        words: NDArray[np.uint64] = pack_rows(own[None])[0]
        return words


def _first_equal(rows: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Return the places of the first of each set of equal rows, increasing, and the number of the set of each row."""
    if not rows.size:
        return np.arange(min(len(rows), 1)), np.zeros(len(rows), dtype=np.int64)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel().tolist()
    first: dict[object, int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    rank = {key: place for place, key in enumerate(first)}
    return np.array(list(first.values())), np.array([rank[key] for key in keys])


@dataclass(frozen=True, eq=False)
class CodedTally(PathSets, CodedProblem):
    """Counts of a tally in coded units; made by `of`. A set of samples is a path.

    Attributes
    ----------
    shift : int
        A count is two to this power of uncoded units.
    """

    trees: TalliedTrees
    sets: TallySets
    shift: int

    @classmethod
    def of(
        cls, trees: TalliedTrees, leaf_price: float, max_depth: int, slack: float, any_label: bool = True
    ) -> CodedTally:
        """Return the problem in which the gain of a tree is the weight that it classifies correctly.

        Raises
        ------
        InvalidInputError
            If the range of the numbers is too large for exact values in 64 bits.
        """
        tally = trees.tally
        exponent = min(tally.unit, common_exponent(np.array([leaf_price])) if leaf_price else tally.unit)
        total, price = tally.total << (tally.unit - exponent), scaled(leaf_price, exponent)
        allowed = None if slack == math.inf else scaled(slack, exponent)
        depth = min(max_depth, tally.n_features)
        scale = CodeScale.of(total, price, allowed, max_depth, depth, 2**depth)
        return cls(
            trees=trees,
            sets=TallySets(tally),
            shift=tally.unit - exponent,
            unit=math.ldexp(1.0, exponent),
            any_label=any_label,
            **scale._asdict(),
        )

    def totals(self, samples: Path) -> IntArray:
        return self._gains(self.sets.totals(samples))

    def ones(self, samples: Path, features: IntArray) -> IntArray:
        return self._gains(self.sets.singles(samples)[:, features])

    def set_gains(self, samples: Path, features: IntArray) -> native.SetGains:
        both = self._gains(self.sets.pairs(samples)[:, features[:, None], features])
        return native.SetGains.of_pairs(self.totals(samples), both)

    def columns(self, samples: Path) -> Columns:
        """Return the columns that split a set; at the last level, without counts of pairs, each feature is a column."""
        total, single = int(self.sets.totals(samples).sum()), self.sets.singles(samples).sum(axis=0)
        features = np.flatnonzero((single > 0) & (single < total))
        column, first = np.arange(features.size), np.arange(features.size)
        flipped = np.zeros(features.size, dtype=bool)
        if len(samples) + 2 <= self.sets.tally.depth and features.size:
            own = single[features]
            both = self.sets.pairs(samples).sum(axis=0)[features[:, None], features]
            equal = (both == own) & (both == own[:, None])
            opposite = (both == 0) & (own + own[:, None] == total)
            alike = (equal | opposite).argmax(axis=1)  # the first feature of each column
            first, column = np.unique(alike, return_inverse=True)
            flipped = opposite[np.arange(features.size), alike]
        return Columns(
            feature=features[first],
            multiplicity=np.bincount(column, minlength=first.size).astype(np.int64),
            features=features,
            column=column.astype(np.int64),
            flipped=flipped,
        )

    def side_tables(
        self, samples: Path, height: int, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> SideTables | None:
        """Return the tables of all samples; None for other sets."""
        if height != self.max_depth or samples:
            return None
        tally = self.trees.tally
        weights = np.zeros((tally.n_cells, tally.n_classes))
        weights[np.arange(tally.n_cells), np.arange(tally.n_cells) // tally.n_groups] = math.ldexp(1.0, self.shift)
        price = self.price / 2**self.bits
        problem = CellProblem.of(self.trees, weights, [], price, self.max_depth)
        return problem.side_tables(PricedProblem(np.empty(0), weights, price, 0.0, 0.0), None, should_stop)

    def _gains(self, counts: IntArray) -> IntArray:
        """Return gains by class from counts by cell (n_cells, ...)."""
        tally = self.sets.tally
        by_class = counts.reshape(tally.n_classes, tally.n_groups, *counts.shape[1:]).sum(axis=1)
        return np.ascontiguousarray(by_class << (self.shift + self.bits))
