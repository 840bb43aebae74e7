"""Near-optimal trees as a problem in whole numbers.

Gains and the leaf price are multiples of one unit, so every value is a whole number of units. Values are *coded*: they
are multiplied by a power of two, and a leaf costs one more. So of trees of equal value those with fewer leaves are
worth more, and both the value and the number of leaves can be read off the code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accel_oct import native
from accel_oct.errors import InvalidInputError
from accel_oct.exact.sample_sets import SampleSet, SampleSets
from accel_oct.exact.side_tables import SideTables
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

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
