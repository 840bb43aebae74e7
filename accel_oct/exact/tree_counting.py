"""How many trees there are, without looking at any of them alone.

For a set of samples and a height there is a table from codes (see `coded`) to numbers of trees, down to a threshold.
That of a set follows from those of the sides of its splits: pairs of codes add up, pairs of numbers multiply. A side
needs trees only down to the threshold minus the best of the other side, so little of each table is ever needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from accel_oct import native
from accel_oct.exact.coded import Coded
from accel_oct.exact.enumeration import Enumeration, Path, SideBests, Split
from accel_oct.exact.sample_sets import SampleSet
from accel_oct.exact.side_values import SideValues
from accel_oct.exact.tree_listing import stumps
from accel_oct.support.arrays import Array, IntArray
from accel_oct.support.stopping import OutOfMemory

Table = dict[int, int]
"""From codes to numbers of trees, in Python's whole numbers, which have no largest."""

_SAFE = 1 << 62
"""Numbers of trees below this are added up in 64 bits."""


class CodeTable:
    """Codes, largest first, and how many trees have each."""

    __slots__ = ("codes", "counts", "total")

    def __init__(self, codes: Array, counts: Array) -> None:
        kept = np.flatnonzero(counts)
        order = kept[np.argsort(-codes[kept], kind="stable")]
        self.codes, self.counts = codes[order], counts[order]
        self.total = int(self.counts.sum()) if self.is_small else sum(self.counts.tolist())
        """Python's whole number: it is what tells that others are small enough."""

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
    """Counts the trees within the slack.

    Parameters
    ----------
    problem : Coded
    values : SideValues
    should_stop : callable
        Asked now and then; then `native.Stopped` is raised.
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
        problem: Coded,
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
        """Count all trees that are worth at least `best`, a value before coding, minus the slack."""
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
        """Codes of all trees of depth at most `height` on a set, down to a threshold and maybe beyond."""
        return self.collected(samples, height, self.values.best(samples, height), threshold, ())

    # ---------------------------------------------------------------- at the root

    def _add(self, leaves: int, count: int) -> None:
        self.count += count
        self.by_leaves[leaves] = self.by_leaves.get(leaves, 0) + count

    def _note(self, table: CodeTable) -> None:
        for code, count in table.as_table().items():
            self._add(self.problem.leaves(code), count)

    def _count_pairs(self, zero: CodeTable, one: CodeTable, threshold: int, factor: int) -> None:
        """Pairs need not be made to be counted: for each code of one side, those of the other from some code on."""
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
            raise native.Stopped

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
        """How many features split alike, and codes of pairs of leaves of the same class, which are no trees."""
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
        large: Table = {}  # in Python's whole numbers, where 64 bits may not be enough
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
    """Add all pairs of two sides that are worth at least the threshold."""
    ordered = sorted(one.items(), reverse=True)
    for code, count in zero.items():
        for other, times in ordered:
            if code + other < threshold:
                break
            table[code + other] = table.get(code + other, 0) + factor * count * times


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """Turn the end of the memory of a table into that of the whole search."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory from error
