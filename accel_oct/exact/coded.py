"""Near-optimal trees as a problem in whole numbers.

Gains and the leaf price are multiples of one unit, so every value is a whole number of units. Values are *coded*: they
are multiplied by a power of two, and a leaf costs one more. So of trees of equal value those with fewer leaves are
worth more, and both the value and the number of leaves can be read off the code.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data import TallySets
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.tally import Path
from accel_oct.errors import InvalidInputError
from accel_oct.exact.enumeration import PathSets, PointSets, SampleSet, SampleSets
from accel_oct.exact.limited import PricedProblem, SideTables
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.limited_points import LimitedProblem, PointTables
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree.tallied import TalliedTrees

_CODE_BITS = 61
"""Codes of values, and their sums and differences, fit into 64 bits with room to spare."""


class Columns(NamedTuple):
    """Columns that split a set of points, equal and complementary ones together.

    Attributes
    ----------
    feature : int array (C,)
        The first feature of each.
    multiplicity : int array (C,)
        How many features each stands for.
    features : int array
        All features that split the set, increasing.
    column : int array
        For each of them, the column that it belongs to.
    flipped : bool array
        For each of them, whether it is the complement of the first one.
    """

    feature: IntArray
    multiplicity: IntArray
    features: IntArray
    column: IntArray
    flipped: BoolArray


class Scale(NamedTuple):
    """The numbers of a problem, coded: see `Coded`. The bonus comes on top of what there is already."""

    price: int
    max_depth: int
    bits: int
    bonus: int
    slack: int

    @classmethod
    def of(cls, total: int, price: int, slack: int | None, max_depth: int, deepest: int, n_samples: int) -> Scale:
        """From whole numbers: what all samples earn, the price of a leaf, and the slack, None for all trees.

        `deepest` trees are as deep as those of `max_depth` can be, and have no more than `n_samples` leaves.
        """
        allowed = total + price * 2**max_depth  # no tree can lose more
        if slack is not None:
            allowed = min(allowed, slack)
        bonus = 0
        if price > total + allowed:  # a second leaf would cost more than there is
            deepest, bonus, price, allowed = 0, price, 0, min(allowed, total)
        bits = min(2**deepest, max(n_samples, 1)).bit_length()
        if (total + allowed + 8 * price).bit_length() + bits > _CODE_BITS:
            raise InvalidInputError(
                "within, leaf_penalty and max_depth: values of trees are too far apart to be counted exactly"
            )
        return cls((price << bits) + 1, deepest, bits, bonus, allowed)


@dataclass(frozen=True, eq=False)
class Coded(SampleSets):
    """What trees are worth, in coded units, and what there is to know of sets of samples.

    Attributes
    ----------
    price : int
        Of a leaf.
    max_depth : int
        No tree that counts is deeper.
    bits : int
        Bits of the code that hold the number of leaves.
    unit : float
        What one is worth, before coding, in the units that gains and price were given in.
    bonus : int
        What every tree is worth too much here, before coding.
    slack : int
        How much less than the best a tree may be worth, before coding.
    any_label : bool
        Whether leaves may predict any class; else only the heaviest, the first of equal ones.
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
        """Of the trees with a code, before coding."""
        return -(-code >> self.bits)

    def leaves(self, code: int) -> int:
        """Of the trees with a code."""
        return (self.value(code) << self.bits) - code

    def least_code(self, value: int) -> int:
        """Trees are worth at least `value` if and only if their code is at least this."""
        return (value << self.bits) - (1 << self.bits) + 1

    @property
    def table_bits(self) -> int:
        """Codes are this power of two times what `side_tables` has."""
        return self.bits

    @property
    def code_slack(self) -> int:
        """No two trees within the slack of each other have codes further apart."""
        return (self.slack + 1) << self.bits

    def earned(self, value: int) -> float:
        """A value in the units that gains were given in."""
        return (value - self.bonus) * self.unit

    # ---------------------------------------------------------------- sets of samples

    @abstractmethod
    def totals(self, samples: SampleSet) -> IntArray:
        """Gains of every class."""

    @abstractmethod
    def most(self, samples: SampleSet) -> int:
        """No tree on a set gains more."""

    @abstractmethod
    def columns(self, samples: SampleSet) -> Columns:
        """What splits a set."""

    @abstractmethod
    def ones(self, samples: SampleSet, features: IntArray) -> IntArray:
        """Gains (K, C) of every class over the samples that have a feature."""

    @abstractmethod
    def set_gains(self, samples: SampleSet, features: IntArray) -> native.SetGains:
        """Gains of every class, over all samples and over those that have two of some features."""

    @abstractmethod
    def side_tables(
        self, samples: SampleSet, height: int, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> SideTables | None:
        """Best codes of the sides of all columns, in units of ``2**table_bits``; None where there are no tables.

        Exact while codes are below 2**53.
        """

    def leaf_codes(self, samples: SampleSet) -> list[tuple[int, int]]:
        """Codes and classes of the leaves that count, best first."""
        totals = self.totals(samples)
        codes = (totals - self.price).tolist()
        if not self.any_label:
            best = int(totals.argmax())
            return [(codes[best], best)]
        return sorted(((code, label) for label, code in enumerate(codes)), key=lambda leaf: (-leaf[0], leaf[1]))


def common_exponent(numbers: FloatArray) -> int:
    """The largest e for which all numbers are multiples of ``2**e``."""
    mantissa, exponent = np.frexp(numbers[numbers != 0.0])
    if not mantissa.size:
        return 0
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = whole & -whole
    return int((np.frexp(lowest.astype(np.float64))[1] - 1 + exponent - 53).min())


def scaled(number: float, exponent: int) -> int:
    """In units of ``2**exponent``, rounded down."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator << max(-exponent, 0)) // (denominator << max(exponent, 0))


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


@dataclass(frozen=True, eq=False)
class TallyCounting(PathSets, Coded):
    """Counts of a tally, and the price of a leaf, in coded units; made by `of`. A set of samples is a path.

    Attributes
    ----------
    trees : TalliedTrees
    sets : TallySets
    shift : int
        A count is two to this power, in units.
    """

    trees: TalliedTrees
    sets: TallySets
    shift: int

    @classmethod
    def of(
        cls, trees: TalliedTrees, leaf_price: float, max_depth: int, slack: float, any_label: bool = True
    ) -> TallyCounting:
        """For the weight that is classified correctly.

        Raises
        ------
        InvalidInputError
            When the numbers are so far apart in size that values cannot be told apart in 64 bits.
        """
        tally = trees.tally
        exponent = min(tally.unit, common_exponent(np.array([leaf_price])) if leaf_price else tally.unit)
        total, price = tally.total << (tally.unit - exponent), scaled(leaf_price, exponent)
        allowed = None if slack == math.inf else scaled(slack, exponent)
        depth = min(max_depth, tally.n_features)
        scale = Scale.of(total, price, allowed, max_depth, depth, 2**depth)
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

    def most(self, samples: Path) -> int:
        return int(self.totals(samples).sum())

    def ones(self, samples: Path, features: IntArray) -> IntArray:
        return self._gains(self.sets.singles(samples)[:, features])

    def set_gains(self, samples: Path, features: IntArray) -> native.SetGains:
        both = self._gains(self.sets.pairs(samples)[:, features[:, None], features])
        return native.SetGains.of_pairs(self.totals(samples), both)

    def columns(self, samples: Path) -> Columns:
        """Columns that agree are known together while pairs are: at the last level each stands for itself."""
        total, single = int(self.sets.totals(samples).sum()), self.sets.singles(samples).sum(axis=0)
        features = np.flatnonzero((single > 0) & (single < total))
        column, first = np.arange(features.size), np.arange(features.size)
        flipped = np.zeros(features.size, dtype=bool)
        if len(samples) + 2 <= self.sets.tally.depth and features.size:
            own = single[features]
            both = self.sets.pairs(samples).sum(axis=0)[features[:, None], features]
            equal = (both == own) & (both == own[:, None])
            opposite = (both == 0) & (own + own[:, None] == total)
            alike = (equal | opposite).argmax(axis=1)  # the first of those that are alike, which has no earlier one
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
        """Of all samples only."""
        if height != self.max_depth or samples:
            return None
        tally = self.trees.tally
        weights = np.zeros((tally.n_cells, tally.n_classes))
        weights[np.arange(tally.n_cells), np.arange(tally.n_cells) // tally.n_groups] = math.ldexp(1.0, self.shift)
        price = self.price / 2**self.bits
        problem = CellProblem.of(self.trees, weights, [], price, self.max_depth)
        return problem.side_tables(PricedProblem(np.empty(0), weights, price, 0.0, 0.0), None, should_stop)

    def _gains(self, counts: IntArray) -> IntArray:
        """From counts by cell (n_cells, ...) to gains by class."""
        tally = self.sets.tally
        by_class = counts.reshape(tally.n_classes, tally.n_groups, *counts.shape[1:]).sum(axis=1)
        return np.ascontiguousarray(by_class << (self.shift + self.bits))
