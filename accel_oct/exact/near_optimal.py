"""All trees within a slack of the best one: counted, and listed best first.

`SideValues` has the best values of the sides of every split, which bound the enumeration. `TreeLister` lists trees in
order, `TreeCounter` counts them without listing, and `NearOptimalSearch` does both.

*Order of trees.* Trees are ordered by code (value, then fewer leaves, see `coded`); then a leaf precedes a branch,
leaves are ordered by class, branches by feature, then by the place of the zero side in its own list, then of the one
side. So the order depends on the samples only.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from accel_oct import native
from accel_oct.data.tally import Path
from accel_oct.exact.coded import CodedPoints, CodedProblem, Columns
from accel_oct.exact.enumeration import Enumeration, SampleSet, SideBests, Split
from accel_oct.exact.limited import SideTables, TableSides
from accel_oct.native import Stopped as Stopped
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, OutOfMemory

_EXACT_BITS = 52
"""Codes of up to this number of bits are exact in the tables, which are in floating point."""


NONE = -(1 << 61)
"""Less than any code: no such tree exists."""


class Sides(NamedTuple):
    """Columns that split a set, and the best codes of their zero sides and one sides.

    `split` bounds the codes of trees that branch on a column; it is below the sum of both sides if the best sides are
    leaves of the same class.
    """

    columns: Columns
    zero: IntArray
    one: IntArray
    split: IntArray


class SideValues:
    """Best codes of trees of some height on both sides of every column of a set.

    Heights three and four are read from tables if these fit into memory; else all sides are computed one by one.

    Parameters
    ----------
    should_stop : callable
        Called from time to time; if it returns true, `Stopped` is raised.
    threads, memory_limit : int
        For the tables.
    """

    def __init__(self, problem: CodedProblem, should_stop: Callable[[], bool], threads: int, memory_limit: int) -> None:
        self.problem = problem
        self._should_stop = should_stop
        self._threads, self._memory_limit = threads, memory_limit
        self._known: dict[tuple[bytes, int], Sides] = {}
        self._below: SideTables | None = None
        largest = int(problem.totals(problem.everyone()).sum()) + problem.price * 2**problem.max_depth
        self._tables = largest.bit_length() <= _EXACT_BITS

    def sides(self, samples: SampleSet, height: int, path: Path = ()) -> Sides:
        """Return the best codes for trees of depth at most `height` on a set, which is at least one.

        `path` are the features and sides that lead from all samples to the set, for tables that reach further down.
        """
        if self._should_stop():
            raise Stopped
        if height <= 2:
            return self.known_below(samples, height, path) or self._by_sums(samples, height)
        key = (self.problem.key(samples), height)
        if key not in self._known:
            self._known[key] = self._found(samples, height, path)
        return self._known[key]

    def known_below(self, samples: SampleSet, height: int, path: Path) -> Sides | None:
        """Return the same from the tables of all samples if available: for one side of a column."""
        below = self._below
        if below is None or height != self.problem.max_depth - 1 or len(path) != 1:
            return None
        feature, side = self._known_by_table(*path[0])
        branched = below.sides_below(feature, side, 2) if below.by_leaves else None
        return self._from_tables(samples, self.problem.columns(samples), below.sides_below(feature, side), branched)

    def best(self, samples: SampleSet, height: int) -> int:
        """Return the largest code of all trees of depth at most `height`."""
        best = int(self.problem.totals(samples).max()) - self.problem.price
        if height > 0:
            best = int(self.sides(samples, height).split.max(initial=best))
        return best

    # ---------------------------------------------------------------- how

    def _found(self, samples: SampleSet, height: int, path: Path) -> Sides:
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
            if height == self.problem.max_depth and table.has_values_below:
                self._below = table
            return self._from_tables(samples, columns, table.sides(), table.sides(2) if table.by_leaves else None)
        if self._should_stop():
            raise Stopped
        return self._one_by_one(samples, columns, height)

    @cached_property
    def _columns(self) -> Columns:
        return self.problem.columns(self.problem.everyone())

    def _known_by_table(self, feature: int, side: bool) -> tuple[int, bool]:
        """Return a side of a root feature as a side of the first feature of its column."""
        columns = self._columns
        position = int(np.searchsorted(columns.features, feature))
        return int(columns.feature[columns.column[position]]), side ^ bool(columns.flipped[position])

    def _from_tables(
        self, samples: SampleSet, columns: Columns, best: TableSides, branched: TableSides | None
    ) -> Sides:
        """Return the codes from best values of sides, and of sides with at least two leaves.

        Two leaves of the same class are no split, so one of them must differ. Without `branched` the sum of both sides
        is an upper bound.
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
        """Return the codes (2, C) by column from values of one feature of each column."""
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
        if not columns.feature.size:
            return Sides(columns, *np.empty((3, 0), dtype=np.int64))
        if height > 1:
            gains = problem.set_gains(samples, columns.feature)
            return Sides(columns, *native.two_sides(gains, price, any_label, NONE, self._should_stop))
        one = problem.ones(samples, columns.feature)
        zero = totals[:, None] - one
        best = [side.max(axis=0, initial=0) - price for side in (zero, one)]
        split = _different_leaves(zero, one, any_label) - 2 * price
        return Sides(columns, best[0], best[1], np.maximum(split, NONE))


def _different_leaves(zero: IntArray, one: IntArray, any_label: bool) -> IntArray:
    """Return the largest sums of the gains (K, ...) of two different classes on two sides."""
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


Nested = Any
"""A tree: a class, or (feature, zero side, one side); sides are shared."""

_ENTRY_BYTES = 400
"""Approximate bytes of a tree in a list, with its entries in the heap."""

#: Codes in place of a feature in the heap: a leaf with its class; a tree with one split; all splits, not yet computed.
_LEAF, _STUMP, _ALL_SPLITS = -1, -2, -3


class TreeFilter(Protocol):
    """Parts of trees that a list leaves out.

    Attributes
    ----------
    by_path : bool
        Whether `allows_split` depends on the path; else it is not called.
    """

    by_path: bool

    def context(self, path: Path) -> Hashable:
        """Return what the other methods use of a path; equal sets have one list for all paths with equal context."""

    def allows_set(self, samples: SampleSet) -> bool:
        """Return whether a set may be a leaf; if not, no tree on it is listed."""

    def allows_subtree(self, tree: Nested, path: Path) -> bool:
        """Return whether a subtree with at least one split may stand at the end of a path in a listed tree."""

    def allows_split(self, path: Path, feature: int) -> bool:
        """Return whether the node at the end of a path may branch on a feature."""


class TreeLister:
    """Lists the trees within the slack, best first, and builds none before it is requested.

    Every set of samples, with a height, has a list of its trees that grows on demand. A tree that branches is a pair of
    places in the lists of both sides; the pair (i, j) is followed by (i, j + 1) and, if j is the first place, by
    (i + 1, j). A heap holds the pairs that may be next, and for a split without pairs the best codes of its sides.

    Parameters
    ----------
    memory_limit : int
        Bytes that all lists may take; beyond that `OutOfMemory` is raised.
    kept : TreeFilter or None
        Leaves out parts of trees. The slack is relative to the best of all trees, listed or not.
    superfluous : bool
        Whether trees with superfluous splits are listed too: splits with an empty side, and splits with two leaves of
        the same class. Only for a problem on points that was made for such trees.
    """

    def __init__(
        self,
        problem: CodedProblem,
        values: SideValues,
        memory_limit: int,
        kept: TreeFilter | None = None,
        superfluous: bool = False,
    ) -> None:
        self.problem, self.values = problem, values
        self.kept, self.superfluous = kept, superfluous
        self._left = memory_limit // _ENTRY_BYTES
        self._lists: dict[Hashable, _TreeList] = {}

    def trees(self) -> Iterator[tuple[int, Nested]]:
        """Yield codes and trees, best first."""
        everyone, depth = self.problem.everyone(), self.problem.max_depth
        best = self.values.best(everyone, depth)
        least = self.problem.least_code(self.problem.value(best) - self.problem.slack)
        trees = self.list_of(everyone, depth, best, ())
        place = 0
        while (found := trees.get(place)) is not None and found[0] >= least:
            yield found
            place += 1

    def list_of(self, samples: SampleSet, height: int, best: int, path: Path) -> _TreeList:
        """Return the list of the trees of some height on a set; `best` is the code of the best of them."""
        key: Hashable = (self.problem.key(samples), height, () if self.kept is None else self.kept.context(path))
        found = self._lists.get(key)
        if found is None:
            self.spend(2)
            found = self._lists[key] = _TreeList(self, samples, height, best, path)
        return found

    def allowed_features(self, path: Path, features: IntArray) -> BoolArray:
        """Return which features the node at the end of a path may branch on."""
        kept = self.kept
        if kept is None or not kept.by_path:
            return np.ones(features.size, dtype=bool)
        return np.array([kept.allows_split(path, feature) for feature in features.tolist()], dtype=bool)

    def spend(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise OutOfMemory


class _TreeList:
    """The trees of one set, as far as they were requested."""

    __slots__ = (
        *("_found", "_height", "_least", "_lister", "_open", "_path", "_samples", "_sides", "_stumps", "_waiting"),
    )

    def __init__(self, lister: TreeLister, samples: SampleSet, height: int, best: int, path: Path) -> None:
        self._lister, self._samples, self._height, self._path = lister, samples, height, path
        self._least = best - lister.problem.code_slack
        self._found: list[tuple[int, Nested]] = []
        self._open: dict[int, tuple[_TreeList, _TreeList]] = {}
        # (-code, feature, place, place): a pair of places in the lists of both sides, -1 before these exist. Leaves and
        # splits differ in the number of leaves and so in their codes: they are never compared by feature.
        self._waiting: list[tuple[int, int, int, int]] = []
        if lister.kept is not None and not lister.kept.allows_set(samples):
            return
        self._waiting = [(-code, _LEAF, label, 0) for code, label in lister.problem.leaf_codes(samples)]
        if height > 0 and -self._waiting[0][0] < best:
            self._look_at_splits()
        elif height > 0:
            self._waiting.append((1 - best, _ALL_SPLITS, 0, 0))  # splits have more than one leaf
        heapq.heapify(self._waiting)

    def _look_at_splits(self) -> None:
        lister = self._lister
        if self._height == 1 and not lister.superfluous:
            self._waiting_stumps()
            return
        columns, zero, one, split = lister.values.sides(self._samples, self._height, self._path)
        codes = (zero + one if lister.superfluous else split)[columns.column]
        close = np.flatnonzero((codes >= self._least) & lister.allowed_features(self._path, columns.features))
        lister.spend(close.size // 4)
        self._sides = dict(
            zip(
                columns.features[close].tolist(),
                _by_feature(zero, one, columns.column[close], columns.flipped[close]),
                strict=True,
            )
        )
        for feature, code in zip(columns.features[close].tolist(), codes[close].tolist(), strict=True):
            heapq.heappush(self._waiting, (-code, feature, -1, -1))
        if lister.superfluous:
            self._look_at_empty_sides(columns.features)

    def _look_at_empty_sides(self, separating: IntArray) -> None:
        """Add the splits with an empty side to the heap."""
        lister, problem = self._lister, self._lister.problem
        assert isinstance(problem, CodedPoints)
        others = np.setdiff1d(np.arange(problem.X.shape[1]), separating)
        others = others[lister.allowed_features(self._path, others)]
        here = lister.values.best(self._samples, self._height - 1)
        code = here - problem.price
        if code < self._least:
            return
        lister.spend(others.size // 4)
        for feature in others.tolist():
            on_one = bool(self._samples.size) and bool(problem.X[self._samples[0], feature])
            self._sides[feature] = (-problem.price, here) if on_one else (here, -problem.price)
            heapq.heappush(self._waiting, (-code, feature, -1, -1))

    def _waiting_stumps(self) -> None:
        """Add all trees with one split to the heap."""
        found = stumps(self._lister.problem, self._samples, self._least)
        if self._lister.kept is not None and self._lister.kept.by_path:
            features = np.array([tree[0] for _, tree in found], dtype=np.int64)
            allowed = self._lister.allowed_features(self._path, features)
            found = [stump for stump, good in zip(found, allowed.tolist(), strict=True) if good]
        self._lister.spend(len(found) // 2)
        self._stumps = [tree for _, tree in found]
        self._waiting += [(-code, _STUMP, place, 0) for place, (code, _) in enumerate(found)]
        heapq.heapify(self._waiting)

    def get(self, place: int) -> tuple[int, Nested] | None:
        """Return the code and the tree at a place, counted from 0; None behind the last one within the slack."""
        while len(self._found) <= place:
            if not self._waiting or -self._waiting[0][0] < self._least:
                return None
            self._next()
        return self._found[place]

    def _next(self) -> None:
        """Process the first entry of the heap: a tree, or a pair that leads to others."""
        code, feature, i, j = heapq.heappop(self._waiting)
        if feature == _ALL_SPLITS:
            self._look_at_splits()
        elif feature == _LEAF:
            self._keep(-code, i)
        elif feature == _STUMP:
            self._keep(-code, self._stumps[i])
        elif i < 0:
            self._wait(feature, 0, 0)
        else:
            self._pair(code, feature, i, j)

    def _pair(self, code: int, feature: int, i: int, j: int) -> None:
        zero, one = (side.get(place) for side, place in zip(self._sides_of(feature), (i, j), strict=True))
        assert zero is not None and one is not None  # both existed when the pair was added to the heap
        if isinstance(zero[1], tuple) or zero[1] != one[1] or self._lister.superfluous:
            self._keep(-code, (feature, zero[1], one[1]))
        self._wait(feature, i, j + 1)
        if j == 0:
            self._wait(feature, i + 1, 0)

    def _keep(self, code: int, tree: Nested) -> None:
        kept = self._lister.kept
        if kept is not None and isinstance(tree, tuple) and not kept.allows_subtree(tree, self._path):
            return
        self._lister.spend(1)
        self._found.append((code, tree))

    def _wait(self, feature: int, i: int, j: int) -> None:
        zero, one = self._sides_of(feature)
        first, second = zero.get(i), one.get(j)
        if first is not None and second is not None:
            heapq.heappush(self._waiting, (-(first[0] + second[0]), feature, i, j))

    def _sides_of(self, feature: int) -> tuple[_TreeList, _TreeList]:
        found = self._open.get(feature)
        if found is None:
            zero, one = self._sides[feature]
            found = self._open[feature] = (self._side(feature, zero, False), self._side(feature, one, True))
        return found

    def _side(self, feature: int, best: int, side: bool) -> _TreeList:
        samples = self._lister.problem.side(self._samples, feature, side)
        return self._lister.list_of(samples, self._height - 1, best, (*self._path, (feature, side)))


def _by_feature(zero: IntArray, one: IntArray, column: IntArray, flipped: BoolArray) -> list[tuple[int, int]]:
    """Return the best codes of both sides of features that equal a column or its complement."""
    first, second = zero[column], one[column]
    return list(zip(np.where(flipped, second, first).tolist(), np.where(flipped, first, second).tolist(), strict=True))


def stumps(problem: CodedProblem, samples: SampleSet, least: int) -> list[tuple[int, Nested]]:
    """Return codes and trees with one split of a set, in order, down to a code."""
    columns = problem.columns(samples)
    ones = problem.ones(samples, columns.feature)
    zeros = problem.totals(samples)[:, None] - ones
    zero = np.where(columns.flipped, ones[:, columns.column], zeros[:, columns.column])  # (K, F)
    one = np.where(columns.flipped, zeros[:, columns.column], ones[:, columns.column])
    close = np.flatnonzero(zero.max(axis=0) + one.max(axis=0) >= least + 2 * problem.price)
    zero, one, features = zero[:, close], one[:, close], columns.features[close]
    codes = zero[:, None] + one[None] - 2 * problem.price
    allowed = codes >= least
    allowed[np.arange(len(zero)), np.arange(len(zero))] = False
    if not problem.any_label:
        best = [np.arange(len(zero))[:, None] == side.argmax(axis=0) for side in (zero, one)]
        allowed &= best[0][:, None] & best[1][None]
    k, m, f = np.nonzero(allowed)
    places = [np.argsort(np.argsort(-side, axis=0, kind="stable"), axis=0) for side in (zero, one)]
    feature, code = features[f], codes[k, m, f]
    order = np.lexsort((places[1][m, f], places[0][k, f], feature, -code))
    trees = zip(feature[order].tolist(), k[order].tolist(), m[order].tolist(), strict=True)
    return list(zip(code[order].tolist(), trees, strict=True))


Table = dict[int, int]
"""From codes to numbers of trees, as Python integers, which cannot overflow."""

_SAFE = 1 << 62
"""Numbers of trees below this are added in 64 bits."""


class CodeTable:
    """Codes, largest first, and the number of trees with each."""

    __slots__ = ("codes", "counts", "total")

    def __init__(self, codes: Array, counts: Array) -> None:
        kept = np.flatnonzero(counts)
        order = kept[np.argsort(-codes[kept], kind="stable")]
        self.codes, self.counts = codes[order], counts[order]
        self.total = int(self.counts.sum()) if self.is_small else sum(self.counts.tolist())
        """A Python integer: sums of totals decide whether 64 bits are enough."""

    @classmethod
    def of(cls, table: Table) -> CodeTable:
        small = sum(table.values()) < _SAFE
        codes, counts = np.array(list(table), dtype=np.int64), list(table.values())
        return cls(codes, np.array(counts, dtype=np.int64 if small else object))

    def as_table(self) -> Table:
        return dict(zip(self.codes.tolist(), self.counts.tolist(), strict=True))

    @property
    def is_small(self) -> bool:
        return self.counts.dtype != object

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.counts.nbytes * (1 if self.is_small else 6))


_NOTHING_MORE = CodeTable.of({0: 1})


class TreeCounter(Enumeration[CodeTable]):
    """Counts the trees within the slack without listing them.

    The table of a set of samples and a height maps codes to numbers of trees, down to a threshold. It follows from the
    tables of the sides of its splits: codes of pairs add up, numbers of pairs multiply.

    Parameters
    ----------
    should_stop : callable
        Called from time to time; if it returns true, `Stopped` is raised.
    memory_limit : int
        Bytes that all tables together may take; beyond that `OutOfMemory` is raised.

    Attributes
    ----------
    count : int
        Trees counted so far: a lower bound until `run` has returned.
    by_leaves : dict of int to int
        The same by number of leaves.
    """

    def __init__(
        self,
        problem: CodedProblem,
        values: SideValues,
        should_stop: Callable[[], bool],
        memory_limit: int,
        on_count: Callable[[int], None] = lambda count: None,
    ) -> None:
        super().__init__(problem)
        self.problem, self.values = problem, values
        self.count = 0
        self.by_leaves: dict[int, int] = {}
        self._should_stop, self._on_count = should_stop, on_count
        self._memory_left = memory_limit

    def run(self, best: int) -> None:
        """Count all trees with a value of at least `best`, uncoded, minus the slack."""
        problem, everyone = self.problem, self.problem.everyone()
        threshold = problem.least_code(best - problem.slack)
        if problem.max_depth <= 2:
            self._note(self.table(everyone, problem.max_depth, threshold))
            return
        for code, _ in problem.leaf_codes(everyone):
            if code >= threshold:
                self._add(problem.leaves(code), 1)
        for split in self.splits(everyone, problem.max_depth, threshold, ()):
            factor, pairs = self._repeats(everyone, problem.max_depth, split, threshold, ())
            self._count_pairs(split.zero, split.one, threshold, factor)
            for code in pairs:
                self._add(problem.leaves(code), -factor)
            self._on_count(self.count)

    def table(self, samples: SampleSet, height: int, threshold: int) -> CodeTable:
        """Return the table of all trees of depth at most `height` on a set, down to the threshold or below it."""
        return self.collected(samples, height, self.values.best(samples, height), threshold, ())

    # ---------------------------------------------------------------- at the root

    def _add(self, leaves: int, count: int) -> None:
        self.count += count
        self.by_leaves[leaves] = self.by_leaves.get(leaves, 0) + count

    def _note(self, table: CodeTable) -> None:
        for code, count in table.as_table().items():
            self._add(self.problem.leaves(code), count)

    def _count_pairs(self, zero: CodeTable, one: CodeTable, threshold: int, factor: int) -> None:
        """Count pairs without forming them: for each code of one side, the codes of the other above a bound."""
        kind = np.int64 if zero.total * one.total < _SAFE else object
        parts = [self._by_number_of_leaves(side, kind) for side in (zero, one)]
        for leaves, (codes, counts) in parts[0].items():
            for more, (others, numbers) in parts[1].items():
                upto = np.searchsorted(-others, codes - threshold, side="right")
                sums = np.concatenate([np.zeros(1, dtype=kind), np.cumsum(numbers)])
                self._add(leaves + more, factor * int((counts * sums[upto]).sum()))

    def _by_number_of_leaves(self, table: CodeTable, kind: Any) -> dict[int, tuple[IntArray, Array]]:
        bits = self.problem.bits
        leaves = (-(-table.codes >> bits) << bits) - table.codes
        return {
            int(number): (table.codes[leaves == number], table.counts[leaves == number].astype(kind))
            for number in np.unique(leaves)
        }

    # ---------------------------------------------------------------- below

    def _look(self) -> None:
        if self._should_stop():
            raise Stopped

    def _shallow(self, samples: SampleSet, height: int, best: int, threshold: int, path: Path) -> CodeTable:
        self._look()
        if height == 0:
            return CodeTable.of(self._leaves(samples, threshold))
        if height == 1:
            return CodeTable.of(
                self._leaves(samples, threshold) + Counter(code for code, _ in stumps(self.problem, samples, threshold))
            )
        return self._two(samples, best, threshold, path)

    def _leaves(self, samples: SampleSet, threshold: int) -> Counter[int]:
        return Counter(code for code, _ in self.problem.leaf_codes(samples) if code >= threshold)

    def _spend(self, key: Any, found: CodeTable, before: CodeTable | None) -> None:
        self._memory_left -= found.nbytes + (len(key[0]) if before is None else -before.nbytes)
        if self._memory_left < 0:
            raise OutOfMemory

    def _side_bests(self, samples: SampleSet, height: int, path: Path) -> SideBests:
        columns, zero, one, split = self.values.sides(samples, height, path)
        return SideBests(columns.feature, zero, one, split)

    def _repeats(
        self, samples: SampleSet, height: int, split: Split[CodeTable], threshold: int, path: Path
    ) -> tuple[int, list[int]]:
        """Return the number of features of the column, and the codes of pairs of equal leaves, which are no trees."""
        problem = self.problem
        columns = self.values.sides(samples, height, path).columns
        sides = problem.sides(samples, split.feature)
        alone = [{label: code for code, label in problem.leaf_codes(side)} for side in sides]
        pairs = [alone[0][label] + alone[1][label] for label in alone[0].keys() & alone[1].keys()]
        return int(columns.multiplicity[split.place]), [code for code in pairs if code >= threshold]

    def _deep(self, samples: SampleSet, height: int, best: int, threshold: int, path: Path) -> CodeTable:
        self._look()
        leaves = self._leaves(samples, threshold)
        total = sum(leaves.values())
        large: Table = {}  # for numbers that may exceed 64 bits
        store = self._store()
        for split in self.splits(samples, height, threshold, path):
            zero, one = split.zero, split.one
            factor, pairs = self._repeats(samples, height, split, threshold, path)
            total += zero.total * one.total * factor
            if total >= _SAFE:
                _add_pairs(large, zero.as_table(), one.as_table(), threshold, factor)
            else:
                self._add_joined(store, zero, one, threshold, factor)
            for code in pairs:
                leaves[code] = leaves.get(code, 0) - factor
        if total < _SAFE:
            self._add_joined(store, CodeTable.of(leaves), _NOTHING_MORE, threshold, 1)
            return CodeTable(*store.sorted(self._should_stop))
        found = CodeTable(*store.sorted(self._should_stop)).as_table()
        _add_pairs(large, found, {0: 1}, threshold, 1)
        _add_pairs(large, leaves, {0: 1}, threshold, 1)
        return CodeTable.of({code: count for code, count in large.items() if count})

    def _store(self) -> native.TreeCounts:
        with _out_of_memory():
            return native.TreeCounts(self._memory_left)

    def _add_joined(
        self, store: native.TreeCounts, zero: CodeTable, one: CodeTable, threshold: int, factor: int
    ) -> None:
        with _out_of_memory():
            store.add_joined(zero.codes, zero.counts, one.codes, one.counts, threshold, factor, self._should_stop)

    def _two(self, samples: SampleSet, best: int, threshold: int, path: Path) -> CodeTable:
        problem = self.problem
        known = self.values.known_below(samples, 2, path)
        columns = problem.columns(samples) if known is None else known.columns
        features, n_classes = sum(columns.multiplicity.tolist()), problem.totals(samples).size
        below = n_classes + features * n_classes**2
        if n_classes + features * below**2 >= _SAFE:
            return self._deep(samples, 2, best, threshold, path)
        bests = None if known is None else np.stack([known.zero, known.one])
        gains, store = problem.set_gains(samples, columns.feature), self._store()
        with _out_of_memory():
            store.add_two(
                gains, columns.multiplicity, bests, problem.price, threshold, problem.any_label, self._should_stop
            )
        return CodeTable(*store.sorted(self._should_stop))


def _add_pairs(table: Table, zero: Table, one: Table, threshold: int, factor: int) -> None:
    """Add all pairs of two sides with a code of at least the threshold."""
    ordered = sorted(one.items(), reverse=True)
    for code, count in zero.items():
        for other, times in ordered:
            if code + other < threshold:
                break
            table[code + other] = table.get(code + other, 0) + factor * count * times


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """Raise `OutOfMemory` for a `MemoryError` of a table."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory from error


_LOOK_EVERY = 256
"""Number of trees that are listed between two checks of `should_stop`."""


class ListedTree(NamedTuple):
    """A tree, its value in the units of the gains, and its number of leaves."""

    tree: Nested
    value: float
    n_leaves: int


@dataclass
class FoundTrees:
    """Result of a search, complete or stopped.

    Attributes
    ----------
    best : float or None
        The largest value; None if the search was stopped before it was known.
    trees : list of ListedTree
        Best first.
    complete : bool
        Whether these are all trees within the slack.
    count : int
        Number of trees within the slack; a lower bound unless `counted`.
    counted : bool
    by_leaves : dict of int to int
        The count by number of leaves.
    ended : {"finished", "stopped", "memory_limit"}
    """

    best: float | None = None
    trees: list[ListedTree] = field(default_factory=list)
    complete: bool = False
    count: int = 0
    counted: bool = False
    by_leaves: dict[int, int] = field(default_factory=dict)
    ended: Literal["finished", "stopped", "memory_limit"] = "finished"


class NearOptimalSearch:
    """Lists and counts all trees within the slack.

    The value of a tree is the gains of its predictions minus a price for each leaf. `accel_oct.near_optimal` defines
    which trees are distinct.

    Parameters
    ----------
    problem : CodedProblem
        `CodedPoints.of` or `CodedTally.of`.
    should_stop : callable, optional
        Called from time to time.
    threads : int
        For the tables of best values.
    memory_limit : int
        Bytes for these tables, and again for counts and for lists.
    on_progress : callable (listed, counted), optional
    """

    def __init__(
        self,
        problem: CodedProblem,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        threads: int = 1,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        on_progress: Callable[[int, int], Any] = lambda listed, counted: None,
    ) -> None:
        self.problem = problem
        self.values = SideValues(self.problem, should_stop, threads, memory_limit)
        self.found = FoundTrees()
        self._should_stop, self._on_progress = should_stop, on_progress
        self._memory_limit = memory_limit

    def run(self, limit: int | None = None, *, count: bool = True) -> FoundTrees:
        """List up to `limit` trees, then count all unless not wanted; a stopped search returns its results so far."""
        found = self.found
        try:
            self._list(limit)
            if found.complete:
                found.count, found.counted = len(found.trees), True
                for tree in found.trees:
                    found.by_leaves[tree.n_leaves] = found.by_leaves.get(tree.n_leaves, 0) + 1
            elif count:
                self._count()
        except Stopped:
            found.ended = "stopped"
        except (OutOfMemory, MemoryError):
            found.ended = "memory_limit"
        found.count = max(found.count, len(found.trees))
        found.by_leaves = {leaves: count for leaves, count in sorted(found.by_leaves.items()) if count}
        return found

    def _list(self, limit: int | None) -> None:
        found, problem = self.found, self.problem
        lister = TreeLister(problem, self.values, self._memory_limit)
        try:
            for code, tree in lister.trees():
                if limit is not None and len(found.trees) >= limit:
                    return
                value = problem.value(code)
                if found.best is None:
                    self._best, found.best = value, problem.earned(value)
                found.trees.append(ListedTree(tree, problem.earned(value), problem.leaves(code)))
                if len(found.trees) % _LOOK_EVERY == 0:
                    self._on_progress(len(found.trees), len(found.trees))
                    if self._should_stop():
                        raise Stopped
        except (OutOfMemory, MemoryError):
            found.ended = "memory_limit"
            return
        found.complete = True

    def _count(self) -> None:
        found, listed = self.found, len(self.found.trees)
        if found.best is None:
            return
        counter = TreeCounter(
            self.problem,
            self.values,
            self._should_stop,
            self._memory_limit,
            lambda count: self._on_progress(listed, max(listed, count)),
        )
        try:
            counter.run(self._best)
            found.counted = True
        finally:
            found.count, found.by_leaves = counter.count, counter.by_leaves
