"""The best of many sets of groups of columns, for trees of depth three and four, without solving for each set.

Trees of depth three need one table: the best split *per group* on every side of every pair of columns. For a given set
of groups the last level is a maximum over the groups of the set, and the levels above run over its few columns. Trees
of depth four are searched root by root, with such tables for both sides of the root.

Kernels read columns in layers: layer j holds column number j of every group that has one, in the lane of its group;
groups with many columns have the first lanes. Of equal or complementary columns of a group one is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_oct import native
from accel_oct.data.dataset import equal_rows
from accel_oct.exact.counts import column_keys, padded_width
from accel_oct.exact.levels import Units
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import Stopper

_GATHERS = 2 * 10**7
"""Numbers that are read between two checks of the stopper."""

_PER_GATHER, _PER_VECTOR, _PER_PAIR = 0.8e-9, 0.4e-9, 150e-9
"""Approximate seconds for a number read from the tables, for a vector that is counted, and for a pair of columns."""


class GroupSets:
    """Search over sets of groups of columns.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    group : int array (n_features,)
        Group of every column, from zero; negative for columns that are left out.
    max_depth : int
        Three or four.
    """

    def __init__(
        self,
        X: BoolArray,
        y: IntArray,
        weights: FloatArray,
        n_classes: int,
        group: IntArray,
        leaf_price: float,
        max_depth: int,
    ) -> None:
        if max_depth not in (3, 4):
            raise ValueError(f"max_depth must be 3 or 4, got {max_depth}")
        self.signed, self.max_depth = n_classes == 2, max_depth
        self.units = Units(self.signed)
        self._price = self.units.price(leaf_price)
        self._data = GroupedColumns(X, y, weights, n_classes, group)
        self._samples = self._data.samples
        self._broad, self._dtype = self._samples.lanes, self._samples.amounts.dtype

    @property
    def n_columns(self) -> int:
        return self._data.n_columns

    @property
    def n_sides(self) -> int:
        return 1 if self.max_depth == 3 else 2

    @property
    def _n_pairs(self) -> int:
        return self.n_columns * (self.n_columns - 1) // 2

    @property
    def table_bytes(self) -> int:
        """Memory of the counts of triples, and of the tables of a root."""
        counts = self._samples.n_channels * self._samples.numbers.shape[1]
        return int(self._n_pairs * (4 * self.n_sides * (self._broad + 1) + counts) * self._dtype.itemsize)

    def seconds(self, n_sets: float, n_groups: int) -> float:
        """Estimate the seconds for `n_sets` sets of `n_groups` groups."""
        columns = self.n_columns / max(1, self._data.lane.size) * n_groups
        gathers = n_sets * 2 * columns**2 * n_groups
        share = self._samples.ones.mean() if self._samples.ones.size else 0.0
        vectors = len(self._samples.amounts) * share**2 * self._samples.numbers.shape[1] * self._dtype.itemsize / 64
        pairs = self._n_pairs * (_PER_PAIR * self.n_sides * self._samples.n_channels + _PER_VECTOR * vectors)
        if self.max_depth == 3:
            return float(pairs + gathers * _PER_GATHER)
        return float(self.n_columns * pairs + gathers * columns * 2 * _PER_GATHER)

    def search(self, sets: IntArray, best: float, stopper: Stopper, found: Callable[[int], float]) -> bool:
        """Search all sets; return False if stopped.

        Parameters
        ----------
        sets : int array (n_sets, most groups)
            Groups of each set, padded with -1.
        best : float
            Score minus price of leaves that a set has to beat.
        found : callable
            Called with the number of every set that is better; returns the best score known.
        """
        try:
            return self._search(sets, best, stopper, found)
        except native.Stopped:
            return False

    def _search(self, sets: IntArray, best: float, stopper: Stopper, found: Callable[[int], float]) -> bool:
        own = np.where(sets >= 0, self._data.lane[np.maximum(sets, 0)], -1)
        known = float(self.units.from_score(best, self._data.total_weight))
        tables, counts, work = self._room()
        native.count_triples(self._samples, counts, work, stopper)
        if self.max_depth == 3:
            native.group_tables(None, self._samples, counts, work, tables, stopper)
            return self._look(tables, None, own, np.arange(len(own)), known, stopper, found)[1]
        with_lane = [np.flatnonzero((own == lane).any(axis=1)) for lane in range(self._data.lane.size)]
        for root in self._by_score():
            numbers = with_lane[self._data.lane_of[root]]
            if not numbers.size:
                continue
            if stopper():
                return False
            native.group_tables(root, self._samples, counts, work, tables, stopper)
            known, finished = self._look(tables, root, own, numbers, known, stopper, found)
            if not finished:
                return False
        return True

    def _by_score(self) -> list[int]:
        """Return columns, best split into two leaves first."""
        samples = self._samples
        by_class = np.zeros((samples.n_channels, len(samples.amounts)))
        by_class[samples.channel, np.arange(len(samples.amounts))] = samples.amounts
        one = by_class @ samples.ones.T
        zero = by_class.sum(axis=1, keepdims=True) - one
        scores = np.abs(one) + np.abs(zero) if self.signed else one.max(axis=0) + zero.max(axis=0)
        order = np.argsort(-scores.max(axis=0) if self.signed else -scores, kind="stable")
        return [int(column) for column in order]

    def _room(self) -> tuple[native.GroupTables, native.GroupCounts, native.GroupWork]:
        sides, pairs, columns, dtype = self.n_sides, self._n_pairs, self.n_columns, self._dtype
        samples, n_rows = self._samples, len(self._samples.amounts)
        size = samples.n_channels * samples.numbers.shape[1]
        tables = native.GroupTables(
            np.zeros((sides, pairs, 4), dtype),
            np.zeros(sides * pairs * 4 * self._broad, dtype),
            np.zeros((sides, columns, 2), dtype),
            np.zeros((sides, 1), dtype),
            np.zeros(sides * columns * 2 * self._broad),
        )
        totals = np.bincount(samples.channel, samples.amounts, samples.n_channels).astype(dtype)
        counts = native.GroupCounts(totals, *(np.zeros(number * size, dtype) for number in (1, columns, pairs)))
        work = native.GroupWork(
            chosen=np.zeros(n_rows + 1, np.int64),
            chosen2=np.zeros(n_rows + 1, np.int64),
            chosen3=np.zeros(n_rows + 1, np.int64),
            once=np.zeros(2 * size, dtype),
            with_root=np.zeros(columns * size, dtype),
            without_root=np.zeros(columns * size, dtype),
            both=np.zeros(size, dtype),
            rest=np.zeros(size, dtype),
            sums=np.zeros(10 * samples.n_channels, dtype),
        )
        return tables, counts, work

    def _fill_reach(self, tables: native.GroupTables, root: int | None, stopper: Stopper) -> float:
        """Compute the bounds of the tables and return a bound on all sets together."""
        native.fill_reach(tables, self._samples, root, self._price, stopper)
        reach = tables.reach.reshape(self.n_sides, self.n_columns, 2, self._broad).max(axis=-1)
        sides = np.maximum(reach, tables.singles - self._price).sum(axis=-1).max(axis=-1, initial=-np.inf)
        return float(np.maximum(sides, tables.whole[:, 0] - self._price).sum())

    def _look(
        self,
        tables: native.GroupTables,
        root: int | None,
        sets: IntArray,
        numbers: IntArray,
        known: float,
        stopper: Stopper,
        found: Callable[[int], float],
    ) -> tuple[float, bool]:
        """Search the sets with these numbers; return the best value known and whether all sets were searched."""
        if self._fill_reach(tables, root, stopper) <= known:
            return known, True
        own = np.ascontiguousarray(sets[numbers])
        columns = self.n_columns / max(1, self._data.lane.size) * sets.shape[1]
        step = max(1, int(_GATHERS / (1 + 4 * columns**2 * sets.shape[1])))
        for first in range(0, len(own), step):
            if stopper():
                return known, False
            last = min(len(own), first + step)
            value, number = native.best_set(
                own, first, last, self._data.column, root, tables, self._broad, self._price, known
            )
            if number >= 0:
                known = float(self.units.from_score(found(int(numbers[number])), self._data.total_weight))
                if known < value - 1e-9 * self._data.total_weight:
                    return known, False  # `found` was stopped before it had built the tree
        return known, True


class GroupedColumns:
    """Data in groups of columns, without redundant rows and columns.

    Attributes
    ----------
    samples : GroupSamples
    total_weight : float
    lane : int array (groups,)
        The lane of every group.
    lane_of : int array (columns,)
        The lane of every column.
    column : int array (lanes that are used, layers)
        The columns of every lane, padded with -1.
    """

    def __init__(self, X: BoolArray, y: IntArray, weights: FloatArray, n_classes: int, group: IntArray) -> None:
        keep = weights > 0
        X, y, weights = X[keep], y[keep], weights[keep]
        rows = equal_rows(X, y)
        merged, X, y = rows.sums(weights), X[rows.first], y[rows.first]
        signed = n_classes == 2
        self.total_weight = float(merged.sum())
        size = int(group.max(initial=-1)) + 1
        members = [_distinct(X, np.flatnonzero(group == g)) for g in range(size)]
        by_size = np.argsort([-own.size for own in members], kind="stable")
        self.lane = np.empty(size, dtype=np.int64)
        self.lane[by_size] = np.arange(size)
        dtype = _counters(merged)
        broad = padded_width(size, dtype)
        sizes = np.array([members[g].size for g in by_size], dtype=np.int64)
        layers = np.array([int((sizes > j).sum()) for j in range(int(sizes.max(initial=0)))], dtype=np.int64)
        chosen = [int(members[by_size[a]][j]) for j, count in enumerate(layers) for a in range(count)]
        place = np.array([j * broad + a for j, count in enumerate(layers) for a in range(count)], dtype=np.int64)
        self.n_columns = len(chosen)
        self.lane_of = place % broad
        self.column = np.full((max(1, size), max(1, layers.size)), -1, dtype=np.int64)
        self.column[self.lane_of, place // broad] = np.arange(self.n_columns)
        columns = X[:, chosen]
        columns = columns ^ (2 * columns.sum(axis=0) > len(columns))  # ones are the minority
        amounts = (np.where(y == 0, -merged, merged) if signed else merged).astype(dtype)
        numbers = np.zeros((len(columns), max(1, layers.size) * broad), dtype=dtype)
        numbers[:, place] = columns * amounts[:, None]
        channels = 1 if signed else n_classes
        channel = np.zeros(len(y), np.int64) if signed else y.astype(np.int64)
        ones = np.ascontiguousarray(columns.T).view(np.uint8)
        self.samples = native.GroupSamples(numbers, ones, channel, amounts, place, layers, broad, channels)


def _distinct(X: BoolArray, columns: IntArray) -> IntArray:
    """Return the columns that split the rows, one of each set of equal or complementary ones."""
    own = X[:, columns]
    ones, seen = own.sum(axis=0), set()
    kept = []
    for place, key in enumerate(column_keys(own)):
        if 0 < ones[place] < len(X) and key not in seen:
            seen.add(key)
            kept.append(place)
    return columns[np.array(kept, dtype=np.int64)]


def _counters(weights: FloatArray) -> Any:
    """Return the narrowest type that holds twice the sum of the weights."""
    if not np.all(weights == np.floor(weights)):
        return np.dtype(np.float64)
    total = 2 * float(weights.sum())
    return np.dtype(np.int16 if total < 2**15 else np.int32 if total < 2**31 else np.float64)
