"""Best values of the sides of every split: what trees are measured from before they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel_oct import native
from accel_oct.exact.coded import Coded, Columns
from accel_oct.exact.sample_sets import SampleSet
from accel_oct.exact.side_tables import SideTables, TableSides
from accel_oct.support.arrays import FloatArray, IntArray

_EXACT_BITS = 52
"""Codes up to this size are exact in the tables, which are in floating point."""


NONE = -(1 << 61)
"""Less than any code: there is no such tree."""


class Sides(NamedTuple):
    """Columns that split a set, and the best codes of their zero sides and one sides.

    No tree that branches on a column has a code above `split`, which is less than the sum of both sides where the best
    ones are leaves of the same class.
    """

    columns: Columns
    zero: IntArray
    one: IntArray
    split: IntArray


class SideValues:
    """Best codes of trees of some height on both sides of every column of a set.

    Heights three and four are read off the tables of `accel_oct.exact` where these are there (compiled code, room in
    memory); else all sides are looked at one by one.

    Parameters
    ----------
    problem : Coded
    should_stop : callable
        Asked now and then; then `native.Stopped` is raised.
    threads, memory_limit : int
        For the tables.
    """

    def __init__(self, problem: Coded, should_stop: Callable[[], bool], threads: int, memory_limit: int) -> None:
        self.problem = problem
        self._should_stop = should_stop
        self._threads, self._memory_limit = threads, memory_limit
        self._known: dict[tuple[bytes, int], Sides] = {}
        self._below: SideTables | None = None
        largest = int(problem.totals(problem.everyone()).sum()) + problem.price * 2**problem.max_depth
        self._tables = largest.bit_length() <= _EXACT_BITS

    def sides(self, samples: SampleSet, height: int, path: tuple[tuple[int, bool], ...] = ()) -> Sides:
        """Of trees of depth at most `height` on a set, which is at least one.

        `path` are features and sides that lead to the set from all samples, for tables that go down further.
        """
        if self._should_stop():
            raise native.Stopped
        if height <= 2:
            return self.known_below(samples, height, path) or self._by_sums(samples, height)
        key = (self.problem.key(samples), height)
        if key not in self._known:
            self._known[key] = self._found(samples, height, path)
        return self._known[key]

    def known_below(self, samples: SampleSet, height: int, path: tuple[tuple[int, bool], ...]) -> Sides | None:
        """The same where the tables of all samples have it: below one side of a column."""
        below = self._below
        if below is None or height != self.problem.max_depth - 1 or len(path) != 1:
            return None
        feature, side = self._known_by_table(*path[0])
        branched = below.sides_below(feature, side, 2) if below.by_leaves else None
        return self._from_tables(samples, self.problem.columns(samples), below.sides_below(feature, side), branched)

    def best(self, samples: SampleSet, height: int) -> int:
        """The largest code of all trees of depth at most `height`."""
        best = int(self.problem.totals(samples).max()) - self.problem.price
        if height > 0:
            best = int(self.sides(samples, height).split.max(initial=best))
        return best

    # ---------------------------------------------------------------- how

    def _found(self, samples: SampleSet, height: int, path: tuple[tuple[int, bool], ...]) -> Sides:
        known = self.known_below(samples, height, path)
        if known is not None:
            return known
        columns = self.problem.columns(samples)
        if not columns.feature.size:
            return Sides(columns, *np.empty((3, 0), dtype=np.int64))
        table = None
        if self._tables and height <= 4:
            table = self.problem.side_tables(samples, height, self._should_stop, self._threads, self._memory_limit)
        if table is not None and table.known:
            if height == self.problem.max_depth and table.knows_below:
                self._below = table
            return self._from_tables(samples, columns, table.sides(), table.sides(2) if table.by_leaves else None)
        if self._should_stop():
            raise native.Stopped
        return self._one_by_one(samples, columns, height)

    @cached_property
    def _columns(self) -> Columns:
        return self.problem.columns(self.problem.everyone())

    def _known_by_table(self, feature: int, side: bool) -> tuple[int, bool]:
        """A side of a root feature as one of the feature that stands for it."""
        columns = self._columns
        position = int(np.searchsorted(columns.features, feature))
        return int(columns.feature[columns.column[position]]), side ^ bool(columns.flipped[position])

    def _from_tables(
        self, samples: SampleSet, columns: Columns, best: TableSides, branched: TableSides | None
    ) -> Sides:
        """From best values of sides, and of sides that are no leaves.

        Where the best of both sides are leaves of the same class, one of them must be something else; where the latter
        are not known, the sum of both is more than there is.
        """
        problem = self.problem
        codes = self._codes(columns, *best)
        if branched is None:
            return Sides(columns, codes[0], codes[1], codes[0] + codes[1])
        other = self._codes(columns, *branched)
        one = problem.ones(samples, columns.feature)
        leaves = _different_leaves(problem.totals(samples)[:, None] - one, one, True) - 2 * problem.price
        split = np.maximum(leaves, np.maximum(codes[0] + other[1], other[0] + codes[1]))
        return Sides(columns, codes[0], codes[1], split)

    def _codes(self, columns: Columns, feature: IntArray, zero: FloatArray, one: FloatArray) -> IntArray:
        """The tables know one feature of each set of equal or complementary ones: the first, or any of those here."""
        if not columns.feature.size:
            return np.empty((2, 0), dtype=np.int64)
        place = np.full(int(max(columns.features[-1], feature.max(initial=0))) + 1, -1)
        place[feature] = np.arange(feature.size)
        known = np.flatnonzero(place[columns.features] >= 0)
        best = np.full((2, columns.feature.size), -np.inf)
        at, column, flipped = place[columns.features[known]], columns.column[known], columns.flipped[known]
        best[0, column] = np.where(flipped, one[at], zero[at])
        best[1, column] = np.where(flipped, zero[at], one[at])
        assert np.isfinite(best).all(), "a column that splits the points is missing from the tables"
        return np.asarray(np.ldexp(best, self.problem.table_bits), dtype=np.int64)

    def _one_by_one(self, samples: SampleSet, columns: Columns, height: int) -> Sides:
        best = np.empty((2, columns.feature.size), dtype=np.int64)
        for place, feature in enumerate(columns.feature.tolist()):
            for side, part in enumerate(self.problem.sides(samples, feature)):
                best[side, place] = self.best(part, height - 1)
        return Sides(columns, best[0], best[1], best[0] + best[1])

    def _by_sums(self, samples: SampleSet, height: int) -> Sides:
        problem = self.problem
        price, any_label = problem.price, problem.any_label
        columns = problem.columns(samples)
        totals = problem.totals(samples)
        if height > 1:
            gains = problem.set_gains(samples, columns.feature)
            return Sides(columns, *native.two_sides(gains, price, any_label, NONE, self._should_stop))
        one = problem.ones(samples, columns.feature)
        zero = totals[:, None] - one
        best = [side.max(axis=0, initial=0) - price for side in (zero, one)]
        split = _different_leaves(zero, one, any_label) - 2 * price
        return Sides(columns, best[0], best[1], np.maximum(split, NONE))


def _different_leaves(zero: IntArray, one: IntArray, any_label: bool) -> IntArray:
    """Largest sums of the gains (K, ...) of two different classes on two sides."""
    best = [side.argmax(axis=0) for side in (zero, one)]
    top = [side.max(axis=0) for side in (zero, one)]
    second = np.full((2, *top[0].shape), NONE)
    for label in range(len(zero) if any_label else 0):
        for place, side in enumerate((zero, one)):
            np.maximum(second[place], side[label], out=second[place], where=best[place] != label)
    different: IntArray = np.where(
        best[0] != best[1], top[0] + top[1], np.maximum(top[0] + second[1], np.maximum(second[0] + top[1], NONE))
    )
    return different
