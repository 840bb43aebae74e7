"""How many trees there are, without looking at any of them alone.

For a set of samples and a height there is a table from codes (see `problem`) to numbers of trees, down to a threshold.
That of a set follows from those of the sides of its splits: pairs of codes add up, pairs of numbers multiply. A side
needs trees only down to the threshold minus the best of the other side, so little of each table is ever needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.near_optimal import reference
from accel_oct.near_optimal.coded import Coded, SampleSet
from accel_oct.near_optimal.stopping import OutOfMemory, Stopped
from accel_oct.near_optimal.values import SideValues

IntArray = NDArray[np.int64]
Path = tuple[tuple[int, bool], ...]

_MOST_PAIRS = 2_000_000
"""Pairs of codes that are made between two looks at the clock."""

_SAFE = 1 << 62
"""Numbers of trees below this are added up in 64 bits."""


class CodeTable:
    """Codes, largest first, and how many trees have each."""

    __slots__ = ("codes", "counts", "total")

    def __init__(self, codes: NDArray[Any], counts: NDArray[Any]) -> None:
        kept = np.flatnonzero(counts)
        order = kept[np.argsort(-codes[kept], kind="stable")]
        self.codes, self.counts = codes[order], counts[order]
        self.total = int(self.counts.sum()) if self.is_small else sum(self.counts.tolist())
        """Python's whole number: it is what tells that others are small enough."""

    @classmethod
    def of(cls, table: reference.Table) -> CodeTable:
        small = sum(table.values()) < _SAFE
        codes, counts = np.array(list(table), dtype=np.int64), list(table.values())
        return cls(codes, np.array(counts, dtype=np.int64 if small else object))

    def as_table(self) -> reference.Table:
        return dict(zip(self.codes.tolist(), self.counts.tolist(), strict=True))

    @property
    def is_small(self) -> bool:
        return self.counts.dtype != object

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.counts.nbytes * (1 if self.is_small else 6))


_NOTHING_MORE = CodeTable.of({0: 1})


class TreeCounter:
    """Counts the trees within the slack.

    Parameters
    ----------
    problem : Coded
    values : SideValues
    should_stop : callable
        Asked now and then; then `Stopped` is raised.
    memory_limit : int
        Bytes that all tables together may take; beyond that `OutOfMemory` is raised.

    Attributes
    ----------
    count : int
        Trees counted so far: a lower bound until `run` has returned.
    by_leaves : dict of int to int
        The same by number of leaves.
    sets : int
        Sets of samples that were looked at.
    """

    def __init__(
        self,
        problem: Coded,
        values: SideValues,
        should_stop: Callable[[], bool],
        memory_limit: int,
        on_count: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.problem, self.values = problem, values
        self.count, self.sets = 0, 0
        self.by_leaves: dict[int, int] = {}
        self._should_stop, self._on_count = should_stop, on_count
        self._memory_left = memory_limit
        self._known: dict[tuple[bytes, int], tuple[int, CodeTable]] = {}

    def run(self, best: int) -> None:
        """Count all trees that are worth at least `best`, a value before coding, minus the slack."""
        problem, everyone = self.problem, self.problem.everyone()
        threshold = problem.least_code(best - problem.slack)
        if problem.max_depth <= 2:
            self._note(self._table(everyone, problem.max_depth, threshold, ()))
            return
        for code, _ in problem.leaf_codes(everyone):
            if code >= threshold:
                self._add(problem.leaves(code), 1)
        for factor, zero, one, pairs in self._splits(everyone, problem.max_depth, threshold, ()):
            self._count_pairs(zero, one, threshold, factor)
            for code in pairs:
                self._add(problem.leaves(code), -factor)
            self._on_count(self.count)

    def table(self, samples: SampleSet, height: int, threshold: int) -> CodeTable:
        """Codes of all trees of depth at most `height` on a set, down to a threshold and maybe beyond."""
        return self._table(samples, height, threshold, ())

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

    def _by_number_of_leaves(self, table: CodeTable, kind: Any) -> dict[int, tuple[IntArray, NDArray[Any]]]:
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

    def _table(self, samples: SampleSet, height: int, threshold: int, path: Path) -> CodeTable:
        key = (self.problem.key(samples), height)
        done = self._known.get(key)
        if done is not None and done[0] <= threshold:
            return done[1]
        self._look()
        self.sets += 1
        if height == 0:
            table = CodeTable.of(self._leaves(samples, threshold))
        elif height == 1:
            table = CodeTable.of(reference.count_one(self.problem, samples, threshold))
        elif height == 2:
            table = self._two(samples, threshold)
        else:
            table = self._joined(samples, height, threshold, path)
        self._take(table.nbytes + len(key[0]) - (0 if done is None else done[1].nbytes + len(key[0])))
        self._known[key] = (threshold, table)
        return table

    def _leaves(self, samples: SampleSet, threshold: int) -> reference.Table:
        return Counter(code for code, _ in self.problem.leaf_codes(samples) if code >= threshold)

    def _take(self, n_bytes: int) -> None:
        self._memory_left -= n_bytes
        if self._memory_left < 0:
            raise OutOfMemory

    def _splits(
        self, samples: SampleSet, height: int, threshold: int, path: Path
    ) -> Iterator[tuple[int, CodeTable, CodeTable, list[int]]]:
        """Splits within the threshold, best first: factor, tables of both sides, codes of equal leaves."""
        problem = self.problem
        columns, zero, one, split = self.values.sides(samples, height, path)
        # Best first: the sides that sets share are counted with the most slack when they are met first.
        for place in np.argsort(-split, kind="stable").tolist():
            if split[place] < threshold:
                return
            feature = int(columns.feature[place])
            sides = problem.sides(samples, feature)
            tables = [
                self._table(side, height - 1, threshold - int(other), (*path, (feature, bool(which))))
                for which, (side, other) in enumerate(zip(sides, (one[place], zero[place]), strict=True))
            ]
            alone = [{label: code for code, label in problem.leaf_codes(side)} for side in sides]
            pairs = [alone[0][label] + alone[1][label] for label in alone[0].keys() & alone[1].keys()]
            yield (
                int(columns.multiplicity[place]),
                tables[0],
                tables[1],
                [code for code in pairs if code >= threshold],
            )

    def _joined(self, samples: SampleSet, height: int, threshold: int, path: Path) -> CodeTable:
        """Trees of depth at most three and more."""
        leaves = self._leaves(samples, threshold)
        total = sum(leaves.values())
        large: reference.Table = {}  # in Python's whole numbers, where 64 bits may not be enough
        store = self._store()
        for factor, zero, one, pairs in self._splits(samples, height, threshold, path):
            total += zero.total * one.total * factor
            if total >= _SAFE:
                reference.add_pairs(large, zero.as_table(), one.as_table(), threshold, factor)
            else:
                self._add_joined(store, zero, one, threshold, factor)
            for code in pairs:
                leaves[code] = leaves.get(code, 0) - factor
        if total < _SAFE:
            self._add_joined(store, CodeTable.of(leaves), _NOTHING_MORE, threshold, 1)
            return CodeTable(*store.sorted())
        reference.add_pairs(large, CodeTable(*store.sorted()).as_table(), {0: 1}, threshold, 1)
        reference.add_pairs(large, leaves, {0: 1}, threshold, 1)
        return CodeTable.of({code: count for code, count in large.items() if count})

    def _store(self) -> native.TreeCounts:
        with _out_of_memory():
            return native.TreeCounts(self._memory_left)

    def _add_joined(
        self, store: native.TreeCounts, zero: CodeTable, one: CodeTable, threshold: int, factor: int
    ) -> None:
        first = 0
        while first < zero.codes.size:
            with _out_of_memory():
                first = store.add_joined(
                    zero.codes, zero.counts, one.codes, one.counts, threshold, factor, first, _MOST_PAIRS
                )
            self._look()

    def _two(self, samples: SampleSet, threshold: int) -> CodeTable:
        problem = self.problem
        columns = problem.columns(samples)
        features, n_classes = sum(columns.multiplicity.tolist()), problem.totals(samples).size
        stumps = n_classes + features * n_classes**2
        if n_classes + features * stumps**2 >= _SAFE:
            return CodeTable.of(reference.count_two(problem, samples, threshold, self._look))
        both, totals = problem.pair_sums(samples, columns.feature), problem.totals(samples)
        store, first = self._store(), 0
        while True:
            with _out_of_memory():
                first = store.add_two(
                    *(both, totals, columns.multiplicity, problem.price, threshold, problem.any_label),
                    *(first, _MOST_PAIRS),
                )
            if first >= columns.feature.size:
                return CodeTable(*store.sorted())
            self._look()


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """Turn the end of the memory of a table into that of the whole search."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory from error
