"""Best values of the sides of every split: what trees are measured from before they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.near_optimal.problem import Columns, CountingProblem
from accel_oct.near_optimal.stopping import Stopped
from accel_oct.pricing.problem import LimitedProblem, PricedProblem
from accel_oct.pricing.values import RootValues
from accel_oct.subtree import engine

IntArray = NDArray[np.int64]

_EXACT_BITS = 52
"""Values up to this size are exact in the tables, which are in floating point."""


class Sides(NamedTuple):
    """Columns that split a set, and the largest codes of their zero sides and one sides."""

    columns: Columns
    zero: IntArray
    one: IntArray


class SideValues:
    """Best codes of trees of some height on both sides of every column of a set.

    Heights three and four are read off the tables of `accel_oct.subtree` where these are there (compiled code, room in
    memory); else all sides are looked at one by one.

    Parameters
    ----------
    problem : CountingProblem
    should_stop : callable
        Asked now and then; then `Stopped` is raised.
    threads, memory_limit : int
        For the tables.
    """

    def __init__(
        self, problem: CountingProblem, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> None:
        self.problem = problem
        self._should_stop = should_stop
        self._threads, self._memory_limit = threads, memory_limit
        self._known: dict[tuple[bytes, int], Sides] = {}
        self._below: RootValues | None = None
        most = int(problem.gains.sum() >> problem.bits) + (problem.price >> problem.bits) * 2**problem.max_depth
        self._tables = most.bit_length() <= _EXACT_BITS and engine.numba_available()

    def sides(self, points: IntArray, height: int, path: tuple[tuple[int, bool], ...] = ()) -> Sides:
        """Of trees of depth at most `height` on some points, which is at least one.

        `path` are features and sides that lead to the points from all of them, for tables that go down further.
        """
        if self._should_stop():
            raise Stopped
        if height <= 2:
            return self._by_sums(points, height)
        key = (self.key(points), height)
        if key not in self._known:
            self._known[key] = self._found(points, height, path)
        return self._known[key]

    def key(self, points: IntArray) -> bytes:
        """Tells sets of points apart, in as many bits as there are points."""
        mask = np.zeros(len(self.problem.X), dtype=bool)
        mask[points] = True
        return np.packbits(mask).tobytes()

    def best(self, points: IntArray, height: int) -> int:
        """The largest code of all trees of depth at most `height`."""
        best = int(self.problem.totals(points).max()) - self.problem.price
        if height > 0:
            sides = self.sides(points, height)
            best = max(best, int((sides.zero + sides.one).max(initial=best)))
        return best

    # ---------------------------------------------------------------- how

    def _found(self, points: IntArray, height: int, path: tuple[tuple[int, bool], ...]) -> Sides:
        columns = self.problem.columns(points)
        if not columns.feature.size:
            return Sides(columns, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        if self._below is not None and height == 3 and len(path) == 1 and self.problem.max_depth == 4:
            return self._from_table(columns, *self._below.sides_below(*self._known_by_table(*path[0])))
        if self._tables and height <= 4:
            table = self._root_values(points, height)
            if table.known:
                if height == 4 and len(points) == len(self.problem.X):
                    self._below = table
                return self._from_table(columns, *table.sides())
            if self._should_stop():
                raise Stopped
        return self._one_by_one(points, columns, height)

    def _root_values(self, points: IntArray, height: int) -> RootValues:
        problem = self.problem
        gains = (problem.gains[points] >> problem.bits).astype(np.float64)
        nothing = np.zeros((0, *gains.shape))
        price = float(problem.price >> problem.bits)
        limited = LimitedProblem(
            problem.X[points], gains, nothing, np.empty(0), np.empty(0), price, height, np.empty(0)
        )
        priced = PricedProblem(np.empty(0), gains, price, 0.0, 0.0)
        return RootValues(limited, priced, self._should_stop, self._threads, self._memory_limit)

    def _known_by_table(self, feature: int, side: bool) -> tuple[int, bool]:
        """A side of a root feature as one of the feature that stands for it."""
        columns = self.problem.columns(np.arange(len(self.problem.X)))
        position = int(np.searchsorted(columns.features, feature))
        return int(columns.feature[columns.column[position]]), side ^ bool(columns.flipped[position])

    def _from_table(self, columns: Columns, feature: IntArray, zero: NDArray[np.float64], one: NDArray[np.float64]) -> Sides:
        """The tables know one feature of each set of equal or complementary ones: the first, or any of those here."""
        place = np.full(self.problem.X.shape[1], -1)
        place[feature] = np.arange(feature.size)
        known = np.flatnonzero(place[columns.features] >= 0)
        best = np.full((columns.feature.size, 2), np.iinfo(np.int64).min)
        for position in known.tolist():
            at = place[columns.features[position]]
            both = int(zero[at]), int(one[at])
            best[columns.column[position]] = both[::-1] if columns.flipped[position] else both
        if (best == np.iinfo(np.int64).min).any():
            raise AssertionError("a column that splits the points is missing from the tables")
        return Sides(columns, *self.problem.best_code(best, 1).T)

    def _one_by_one(self, points: IntArray, columns: Columns, height: int) -> Sides:
        best = np.empty((2, columns.feature.size), dtype=np.int64)
        for place, feature in enumerate(columns.feature.tolist()):
            split = self.problem.X[points, feature]
            for side in (0, 1):
                best[side, place] = self.best(points[split == side], height - 1)
        return Sides(columns, best[0], best[1])

    def _by_sums(self, points: IntArray, height: int) -> Sides:
        problem = self.problem
        columns = problem.columns(points)
        totals = problem.totals(points)[:, None]
        if height == 1:
            ones = problem.gains[points].T @ problem.X[points][:, columns.feature].astype(np.int64)
            return Sides(columns, (totals - ones).max(axis=0) - problem.price, ones.max(axis=0) - problem.price)
        both = problem.pair_sums(points, columns.feature)
        single = np.diagonal(both, axis1=1, axis2=2)  # (K, C)
        best = []
        for whole, inside in ((totals - single, single[:, None, :] - both), (single, both)):
            split = (whole[:, :, None] - inside).max(axis=0) + inside.max(axis=0)  # (C, C)
            leaf = whole.max(axis=0) - problem.price
            best.append(np.maximum(leaf, split.max(axis=1, initial=0) - 2 * problem.price))
        return Sides(columns, best[0], best[1])
