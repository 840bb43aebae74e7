"""Python functions of the compiled kernels; only this package passes pointers.

Every function checks the relations between its arguments before it calls C++ (``source/``), so that a kernel never
reads or writes outside of an array. `records` defines the groups of arrays in arguments; `library` loads the code.

The calls release the GIL. Long calls evaluate `should_stop` about every 20 ms, when Python also handles signals. They
raise `Stopped`, or the error of `should_stop` or of a signal (Ctrl-C); their output is then undefined.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Generator
from ctypes import byref, c_double, c_int64
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.native.library import MAY_GO_ON, kernels
from accel_oct.native.records import (
    BLOCK_BYTES,
    COUNTERS,
    CellSums,
    CellTable,
    Counts,
    DepthTwo,
    Entries,
    GroupCounts,
    GroupSamples,
    GroupTables,
    GroupWork,
    Limits,
    Ones,
    Priced,
    Rewards,
    Scores,
    SetGains,
    Sets,
    View,
    Words,
    Work,
    read,
    view,
    written,
)

__all__ = [
    "BLOCK_BYTES",
    "CellSums",
    "CellTable",
    "Counts",
    "DepthTwo",
    "Entries",
    "GroupCounts",
    "GroupSamples",
    "GroupTables",
    "GroupWork",
    "Limits",
    "Ones",
    "Priced",
    "Rewards",
    "Scores",
    "SetGains",
    "Sets",
    "Stopped",
    "TreeCounts",
    "Words",
    "Work",
    "add_sets",
    "best_pair",
    "best_set",
    "best_sides",
    "cell_outcomes_two",
    "cell_values",
    "column_gains",
    "count_triples",
    "fill_reach",
    "first_tree",
    "group_tables",
    "joined",
    "level_four",
    "level_three",
    "level_two",
    "level_two_sparse",
    "outcomes_two",
    "pass_block",
    "two_sides",
]

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ShouldStop = Callable[[], bool]

_ANY_MEMORY = 2**62
_DONE, _OUT_OF_RANGE, _OUT_OF_MEMORY = 0, 1, 2


def _require(good: bool, what: str) -> None:
    if not good:
        raise ValueError(f"native kernels: {what}")


class Stopped(Exception):
    """A kernel was stopped before its end."""


def _never() -> bool:
    return False


def _answers(should_stop: ShouldStop, errors: list[BaseException]) -> Generator[int, None, None]:
    """Yield one while a kernel may continue, and zero if it must stop.

    Python runs signal handlers before the first statement of a function. A generator is resumed within its ``try``, so
    that exceptions of a handler are caught as well.
    """
    answer = 1
    while True:
        try:
            yield answer
            answer = int(not should_stop())
        except GeneratorExit:
            return
        except BaseException as error:
            errors.append(error)
            answer = 0


def _run(name: str, should_stop: ShouldStop, *arguments: Any) -> None:
    """Call a kernel that can be stopped, and raise its error."""
    errors: list[BaseException] = []
    answers = _answers(should_stop, errors)
    next(answers)
    status = getattr(kernels(), name)(*arguments, MAY_GO_ON(answers.__next__))
    if status == _DONE:
        return
    if status == _OUT_OF_RANGE:
        raise IndexError("native kernels: an index is out of range")
    if status == _OUT_OF_MEMORY:
        raise MemoryError("native kernels: out of memory")
    raise errors[0] if errors else Stopped


# ---------------------------------------------------------------- levels


def level_two(
    members: Ints, entries: Entries, words: Words, table: Array, base: int, should_stop: ShouldStop = _never
) -> None:
    """Count all pairs of features over the entries of a set, for the lanes of `table` from `base` on."""
    target = written("table", table, table.dtype, 4)
    _check_table(entries, words, table, base)
    indices = _members(members, entries)
    given = byref(indices), entries.address, words.address
    _run("level_two", should_stop, COUNTERS[table.dtype], *given, byref(target), base)


def _members(members: Ints, entries: Entries) -> View:
    n_entries = entries.rows.shape[0]
    _require(not members.size or (int(members.min()) >= 0 and int(members.max()) < n_entries), "members out of range")
    _require(members.size <= n_entries, "more members than entries")
    return read("members", members, np.int64, 1)


def _check_table(entries: Entries, words: Words, table: Array, base: int) -> None:
    channels, blocks, n_features, lanes = table.shape
    n_entries, width = entries.rows.shape
    _require(table.dtype in COUNTERS and lanes * table.itemsize == BLOCK_BYTES, "table of another layout")
    _require(base >= 0 and base % lanes == 0 and base + blocks * lanes <= width, "lanes beyond the entries")
    _require(n_features <= width and entries.n_channels <= channels, "table too small for the entries")
    _require(words.fits(width, table.itemsize), "words of another width")
    _require(table.dtype != np.float64 or entries.numbers.shape[0] == n_entries, "real counts need numbers")


def level_two_sparse(ones: Ones, table: Array, base: int, should_stop: ShouldStop = _never) -> None:
    """Count as `level_two`, from lists of ones, for sparse data."""
    target = written("table", table, ones.counter, 4)
    channels, _, n_features, lanes = table.shape
    _require(lanes * table.itemsize == BLOCK_BYTES and base >= 0 and base % lanes == 0, "table of another layout")
    width = ones.entries_start.size - 1
    _require(n_features <= width and int(ones.features.max(initial=-1)) < n_features, "features beyond the table")
    _require(ones.n_channels <= channels, "table too small for the entries")
    _run("level_two_sparse", should_stop, COUNTERS[table.dtype], ones.address, byref(target), base)


def pass_block(counts: Counts, scores: Scores, base: int, signed: bool, limits: Limits | None) -> None:
    """Compute the best leaf and the best two leaves of both sides of every feature, for lanes from `base` on."""
    channels, blocks, n_features, lanes = counts.table.shape
    width = counts.single.shape[1]
    _require(base >= 0 and base % lanes == 0 and base + blocks * lanes <= width, "lanes beyond the table")
    _require(scores.one_leaf.shape[0] >= 2 and scores.one_leaf.shape[1] == width, "scores of another width")
    _require(scores.counter == counts.counter, "scores of another type")
    _check_rules(limits, signed, channels, n_features, width, counts.counter)
    usable = np.ones(n_features, np.uint8)
    arguments = scores.address, base, signed, _address(limits), byref(read("usable", usable, np.uint8, 1))
    kernels().pass_block(COUNTERS[counts.counter], counts.address, *arguments)


def _check_rules(limits: Limits | None, signed: bool, channels: int, n_features: int, width: int, counter: Any) -> None:
    least = (1 if signed else 0) + (0 if limits is None else 1)
    _require(channels >= max(1, least) and (not signed or channels == least), "channels of another number")
    if limits is not None:
        _require(limits.counter == counter and limits.rows.shape == (n_features, width), "limits of another shape")


def _address(record: Any) -> int | None:
    return None if record is None else record.address


class _LevelArguments:
    """Common arguments of levels three and four, checked once for many features."""

    def __init__(
        self, signed: bool, members: Ints, source: Entries | Sets, whole: Counts, limits: Limits | None, sizes: int
    ) -> None:
        self.shape, self.counter = whole.table.shape, whole.counter
        channels, blocks, n_features, lanes = self.shape
        self.width, self.n_features = blocks * lanes, n_features
        _require(whole.single.shape[1] == self.width, "the whole table is needed")
        _check_rules(limits, signed, channels, n_features, self.width, self.counter)
        self.signed, self.number = signed, COUNTERS[self.counter]
        self.n_entries = 0
        self.entries: int | None = None
        self.sets: int | None = None
        if isinstance(source, Sets):
            _require(source.counter == self.counter and source.columns.size == n_features, "a tally of another kind")
            _require(source.values.shape[0] == channels and source.most_columns >= sizes, "a tally too shallow")
            self.sets = source.address
        else:
            self.n_entries, width = source.rows.shape
            _require(width == self.width and source.n_channels <= channels, "entries of another width")
            _require(self.counter != np.float64 or len(source.numbers) == self.n_entries, "real counts need numbers")
            self.entries = source.address
        self.members = _members(members, source) if isinstance(source, Entries) else View()
        self._kept = source, whole, limits, members
        self.whole, self.limits = whole.address, _address(limits)

    def check_work(self, work: Work, sweep: int) -> None:
        """Raise if the work arrays were created for data of another size."""
        good = work.fits(self.n_entries, self.shape, sweep) and work.counter == self.counter
        _require(good and work.words.fits(self.width, self.counter.itemsize), "work of other data")


class level_three:
    """Kernel for the sets of one feature and both its values; prepared for some data, called for every feature.

    Parameters
    ----------
    signed, members, source, whole, limits
        Set of samples, as entries or a tally, and its counts.
    """

    def __init__(
        self,
        signed: bool,
        members: Ints,
        source: Entries | Sets,
        whole: Counts,
        limits: Limits | None,
    ) -> None:
        self._set = _LevelArguments(signed, members, source, whole, limits, 3)

    def __call__(self, f: int, with_f: Array, work: Work, best: Array, should_stop: ShouldStop = _never) -> None:
        """Write the table of f = 1, and increase `best`, flat (2, 3, P), by side, leaves and feature."""
        own = self._set
        own.check_work(work, 1)
        _require(0 <= f < own.n_features, "no such feature")
        table = written("with_f", with_f, own.counter, 4, own.shape)
        target = written("best", best, own.counter, 1, (6 * own.width,))
        _run(
            "level_three",
            should_stop,
            *(own.number, f, own.signed, byref(own.members), own.entries, own.sets, own.whole, byref(table)),
            *(work.address, byref(target), own.limits),
        )


class level_four:
    """Kernel for the sets of pairs of features; prepared for some data, called for ranges of first features.

    Parameters
    ----------
    signed, members, source, whole, limits
        See `level_three`.
    tables : (F, channels, blocks, F, L)
        Tables of level three.
    wanted : (F, F) of uint8
        Pairs f < g that may share a path.
    """

    def __init__(
        self,
        signed: bool,
        members: Ints,
        source: Entries | Sets,
        whole: Counts,
        limits: Limits | None,
        tables: Array,
        wanted: NDArray[np.uint8],
    ) -> None:
        self._set = own = _LevelArguments(signed, members, source, whole, limits, 4)
        self._tables = view("tables", tables, own.counter, 5, (own.n_features, *own.shape))
        self._wanted = read("wanted", wanted, np.uint8, 2, (own.n_features, own.n_features))
        self._kept = tables, wanted

    def __call__(self, first: int, count: int, work: Work, best: Array, should_stop: ShouldStop = _never) -> None:
        """Increase `best`, flat (F, 4, 3, P), for pairs with f in ``first .. first + count - 1``.

        If stopped, `best` is a lower bound.
        """
        own = self._set
        own.check_work(work, count)
        _require(first >= 0 and count > 0 and first + count <= own.n_features and count <= 16, "no such features")
        target = written("best", best, own.counter, 1, (own.n_features * 12 * own.width,))
        _run(
            "level_four",
            should_stop,
            *(own.number, first, count, own.signed, byref(self._wanted), byref(own.members)),
            *(own.entries, own.sets, own.whole, byref(self._tables), work.address, byref(target), own.limits),
        )


class _FirstTree(ctypes.Structure):
    _fields_ = (
        ("value", c_double),
        ("score", c_double),
        ("scores", c_double * 4),
        ("feature", c_int64 * 7),
        ("label", c_int64 * 7),
    )


class FirstTree(NamedTuple):
    """Value, score, scores with one to four leaves, and the nodes in heap order."""

    value: float
    score: float
    scores: tuple[float, float, float, float]
    feature: Ints
    label: Ints


def first_tree(samples: Ints, setup: DepthTwo, signed: bool, leaf_price: float, max_depth: int) -> FirstTree:
    """Return the first of the best trees of depth at most `max_depth` (up to two) on distinct samples."""
    tree = _FirstTree()
    number = COUNTERS[setup.counter]
    given = byref(read("samples", samples, np.int64, 1))
    _require(not signed or setup.counts.table.shape[0] == 1, "signed counts have one channel")
    _require(math.isfinite(leaf_price), "the price of a leaf must be finite")
    # The kernel writes to `setup`: no `should_stop`, which could use it recursively.
    _run("first_tree", _never, number, given, setup.address, signed, leaf_price, max_depth, byref(tree))
    nodes = np.frombuffer(memoryview(tree), np.int64, 14, _FirstTree.feature.offset)
    return FirstTree(tree.value, tree.score, tuple(tree.scores), nodes[:7], nodes[7:])


# ---------------------------------------------------------------- groups of columns


def count_triples(
    samples: GroupSamples, counts: GroupCounts, work: GroupWork, should_stop: ShouldStop = _never
) -> None:
    """Count the samples that have each column, each pair and each triple of columns."""
    _check_groups(samples, counts, work)
    _run("count_triples", should_stop, COUNTERS[samples.counter], samples.address, counts.address, work.address)


def _check_groups(samples: GroupSamples, counts: GroupCounts, work: GroupWork) -> None:
    n_rows, columns = samples.numbers.shape[0], samples.ones.shape[0]
    size, pairs = samples.n_channels * samples.numbers.shape[1], columns * (columns - 1) // 2
    _require(samples.counter == counts.counter == work.counter, "counts of different types")
    sizes = [counts.totals.size, counts.once.size, counts.twice.size, counts.triples.size]
    _require(sizes == [samples.n_channels, size, columns * size, pairs * size], "counts of other samples")
    _require(all(chosen.size > n_rows for chosen in (work.chosen, work.chosen2, work.chosen3)), "work too small")
    sizes = [
        work.once.size,
        work.with_root.size,
        work.without_root.size,
        work.both.size,
        work.rest.size,
        work.sums.size,
    ]
    expected = [2 * size, columns * size, columns * size, size, size, 10 * samples.n_channels]
    _require(sizes == expected, "work of other samples")


def group_tables(
    root: int | None, samples: GroupSamples, counts: GroupCounts, work: GroupWork, tables: GroupTables,
    should_stop: ShouldStop = _never,
) -> None:  # fmt: skip
    """Compute depth-one scores on the four sides of every pair of columns by group, below a root or on all samples."""
    _check_groups(samples, counts, work)
    columns = samples.ones.shape[0]
    _require(root is None or 0 <= root < columns, "no such column")
    good = tables.counter == samples.counter and tables.singles.shape[1] == columns and tables.fits(samples.lanes)
    _require(good and len(tables.leaves) >= (1 if root is None else 2), "tables of other samples")
    number, place = COUNTERS[samples.counter], -1 if root is None else root
    given = samples.address, counts.address, work.address, tables.address
    _run("group_tables", should_stop, number, place, *given)


def fill_reach(
    tables: GroupTables, samples: GroupSamples, root: int | None, price: float, should_stop: ShouldStop = _never
) -> None:
    """Write ``tables.reach``: bounds on a side of a column if the next column is of a group, and the last of any."""
    _require(tables.fits(samples.lanes) and tables.singles.shape[1] == samples.place.size, "tables of other samples")
    place = byref(read("place", samples.place, np.int64, 1))
    given = tables.address, place, samples.lanes, -1 if root is None else root
    _run("fill_reach", should_stop, COUNTERS[tables.counter], *given, price)


def best_set(
    sets: Ints, first: int, last: int, column: Ints, root: int | None, tables: GroupTables, lanes: int, price: float,
    best: float,
) -> tuple[float, int]:  # fmt: skip
    """Return value and number of the best of the sets ``first .. last - 1`` if better than `best`, else number -1.

    `sets` (n, groups) holds lanes of groups, at least one, padded with -1. `column` (lanes, layers) holds the columns
    of every lane without that of the root, padded with -1.
    """
    n_columns = tables.singles.shape[1]
    _require(tables.fits(lanes) and 0 <= first <= last <= len(sets), "no such sets")
    _require(not sets.size or (int(sets[:, 0].min()) >= 0 and int(sets.max()) < len(column)), "no such groups")
    used = column[column >= 0]
    _require(np.unique(used).size == used.size and int(used.max(initial=-1)) < n_columns, "no such columns")
    _require(len(column) <= lanes, "more groups than lanes")
    value = c_double(best)
    # A group, with its columns, may occur twice in a set.
    size = max(1, sets.shape[1]) * max(1, column.shape[1])
    two, places = np.empty(2 * size), np.empty(size, np.int64)
    chosen = kernels().best_set(
        *(COUNTERS[tables.counter], byref(read("sets", sets, np.int64, 2)), first, last),
        *(byref(read("column", column, np.int64, 2)), -1 if root is None else root, tables.address, lanes, price),
        *(byref(value), byref(written("two", two, np.float64, 1)), byref(written("places", places, np.int64, 1))),
    )
    return value.value, int(chosen)


# ---------------------------------------------------------------- outcomes


class _Arena:
    """Memory of one call, released at the end."""

    def __init__(self, limit: int = _ANY_MEMORY) -> None:
        self.address = kernels().arena_new(limit)
        if not self.address:
            raise MemoryError("native kernels: out of memory")

    def __enter__(self) -> _Arena:
        return self

    def __exit__(self, *_: object) -> None:
        kernels().arena_free(self.address)


class _Found(ctypes.Structure):
    _fields_ = (
        ("loss", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("choice", ctypes.c_void_p),
        ("size", c_int64),
        ("made", c_int64),
    )


class FoundOutcomes(NamedTuple):
    """Outcomes in the order of discovery, and the number of pairs that were formed."""

    loss: Floats
    results: Floats  # (size, 1 + J)
    choice: NDArray[np.int32]  # (size, numbers of a choice)
    made: int


def _outcomes(found: _Found, n_results: int, n_choices: int) -> FoundOutcomes | None:
    if found.made < 0:
        return None
    size = found.size
    return FoundOutcomes(
        _copied(found.loss, (size,), np.float64),
        _copied(found.results, (size, n_results), np.float64),
        _copied(found.choice, (size, n_choices), np.int32),
        found.made,
    )


def _copied(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    result = np.empty(shape, dtype)
    if result.nbytes:
        ctypes.memmove(result.__array_interface__["data"][0], address, result.nbytes)
    return result


def outcomes_two(
    points: Ints, columns: Ints, height: int, slack: float, most_pairs: int, rewards: Rewards, memory: int,
    should_stop: ShouldStop = _never,
) -> FoundOutcomes | None:  # fmt: skip
    """Return outcomes within a slack of the trees of depth at most `height`, up to two, on a set of points.

    A choice is (feature, then for each side split, class, class); the feature is -1 for a leaf, whose class is the last
    of all. None if there would be more than `most_pairs` pairs, or more than `memory` bytes.
    """
    found = _Found()
    given = byref(read("points", points, np.int64, 1)), None, None, byref(read("columns", columns, np.int64, 1))
    _require(len(rewards.X) == len(rewards.weights), "points need their features")
    with _Arena(memory) as arena:
        room = rewards.address, arena.address, byref(found)
        _run("outcomes_two", should_stop, *given, height, slack, most_pairs, *room)
        return _outcomes(found, rewards.fixed.size, 7)


def cell_outcomes_two(
    table: CellTable, priced: Priced, columns: Ints, height: int, slack: float, most_pairs: int, rewards: Rewards,
    memory: int, should_stop: ShouldStop = _never,
) -> FoundOutcomes | None:  # fmt: skip
    """Return `outcomes_two` on a set of a tally, with its priced sums."""
    n_cells, n_classes = rewards.weights.shape
    _require(table.single.shape == (columns.size, n_cells), "a table of other columns")
    _require(priced.single.shape == (columns.size, n_classes + 1), "priced sums of other columns")
    found = _Found()
    given = None, table.address, priced.address, byref(read("columns", columns, np.int64, 1))
    with _Arena(memory) as arena:
        room = rewards.address, arena.address, byref(found)
        _run("outcomes_two", should_stop, *given, height, slack, most_pairs, *room)
        return _outcomes(found, rewards.fixed.size, 7)


def best_sides(points: Ints, columns: Ints, height: int, rewards: Rewards, should_stop: ShouldStop = _never) -> Floats:
    """Return best priced values (C, 2) of both sides of every column, with one more split if the height is two."""
    result = np.empty((columns.size, 2))
    _require(len(rewards.X) == len(rewards.weights), "points need their features")
    with _Arena() as arena:
        given = read("points", points, np.int64, 1), read("columns", columns, np.int64, 1)
        target = written("result", result, np.float64, 2)
        room = rewards.address, arena.address, byref(target)
        _run("best_sides", should_stop, byref(given[0]), byref(given[1]), height, *room)
    return result


def joined(
    lost: Floats, sides: Ints, losses: Floats, results: Floats, leaves: Floats, slack: float, most_pairs: int,
    per_grain: Floats, memory: int, should_stop: ShouldStop = _never,
) -> FoundOutcomes | None:  # fmt: skip
    """Return outcomes of a set from those of the sides of some splits, see `outcomes_two`.

    Split s loses lost[s]; it has the outcomes ``losses[sides[s, 0] : sides[s, 1]]`` on its zero side and those up to
    ``sides[s, 2]`` on its one side, both by loss. `leaves` (K, 2 + J) are the leaves of the set: loss and results. A
    choice is (split, place, place), and (-1, class, class) for a leaf.
    """
    n_results = results.shape[1]
    _require(sides.shape == (lost.size, 3) and results.shape[0] == losses.size, "sides of other splits")
    _require(leaves.shape[1] == 1 + n_results and per_grain.size + 1 == n_results, "results of another number")
    reals = [("lost", lost, 1), ("losses", losses, 1), ("results", results, 2), ("leaves", leaves, 2)]
    views = {name: read(name, array, np.float64, axes) for name, array, axes in [*reals, ("per_grain", per_grain, 1)]}
    places = read("sides", sides, np.int64, 2)
    found = _Found()
    with _Arena(memory) as arena:
        _run(
            "joined",
            should_stop,
            *(byref(views["lost"]), byref(places), byref(views["losses"])),
            *(byref(views["results"]), byref(views["leaves"]), slack, most_pairs, byref(views["per_grain"])),
            *(arena.address, byref(found)),
        )
        return _outcomes(found, n_results, 3)


class _BestPair(ctypes.Structure):
    _fields_ = (("value", c_double), ("zero", c_int64), ("one", c_int64), ("made", c_int64))


def best_pair(
    zero: Floats, zero_results: Floats, one: Floats, one_results: Floats, slack: float, limits: Floats, above: float,
    last: tuple[float, int, int], should_stop: ShouldStop = _never,
) -> tuple[float, int, int, int]:  # fmt: skip
    """Return the first of the best pairs of outcomes of two sides that satisfy the limits and exceed `above`.

    `last` (value, place, place) restricts the pairs to those of lower value, or of equal value and later place. Returns
    the value (`above` without such a pair), both places (-1 without a pair), and the number of pairs examined.
    """
    n_results = limits.size + 1
    _require(zero_results.shape == (zero.size, n_results), "results of another number")
    _require(one_results.shape == (one.size, n_results), "results of another number")
    arrays = ("zero", zero, 1), ("zero_results", zero_results, 2), ("one", one, 1), ("one_results", one_results, 2)
    given = [read(name, array, np.float64, axes) for name, array, axes in arrays]
    state = _BestPair(above, -1, -1, 0)
    _run(
        "best_pair",
        should_stop,
        *(*(byref(part) for part in given), slack),
        *(byref(read("limits", limits, np.float64, 1)), *last, byref(state)),
    )
    return state.value, state.zero, state.one, state.made


def cell_values(
    a: int, columns: Ints, height: int, begin: int, sums: CellSums, should_stop: ShouldStop = _never
) -> Floats:
    """Return best values (C, 2, 2) below column a of a tally, or of all samples if a is negative.

    `height` is the height of trees on all samples. Height four gives the trees of depth two on each side of a and each
    side of another column, for columns from place `begin` on; height three those on each side of a, in [0, side, 0];
    less height both sides of every column, in [c, 0, side]. Other entries are minus infinity.
    """
    _require(sums.reaches(min(height, 2) if a < 0 else height) and 1 <= height <= 4, "sums too shallow")
    _require(height > 2 or a < 0, "trees below a column have a height of three or four")
    _require(begin >= 0 and (columns.size > 0 or a < 0 or height > 3), "no columns")
    _require(bool((np.diff(columns) > 0).all()), "columns must increase")
    result = np.empty((columns.size, 2, 2))
    target = written("result", result, np.float64, 3)
    with _Arena() as arena:
        given = byref(read("columns", columns, np.int64, 1))
        _run("cell_values", should_stop, a, given, height, begin, sums.address, arena.address, byref(target))
    return result


# ---------------------------------------------------------------- counting


class TreeCounts:
    """Table from values to numbers of trees, in 64 bits, that grows up to a memory limit."""

    def __init__(self, memory_limit: int) -> None:
        self._address = kernels().count_store_new(memory_limit)
        if not self._address:
            raise MemoryError("native kernels: out of memory")

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            kernels().count_store_free(self._address)

    def add_two(
        self, gains: SetGains, multiplicity: Ints, bests: Ints | None, price: int, threshold: int, any_label: bool,
        should_stop: ShouldStop = _never,
    ) -> None:  # fmt: skip
        """Count the trees of depth at most two on a set with value at least `threshold`.

        Column c stands for ``multiplicity[c]`` features. `bests` (2, C) are the best values of the sides of every
        column, if known.
        """
        known = np.empty((2, 0), np.int64) if bests is None else bests
        _require(
            multiplicity.size == gains.n_columns and known.shape in ((2, gains.n_columns), (2, 0)), "shapes differ"
        )
        factor = read("multiplicity", multiplicity, np.int64, 1)
        sides = read("bests", known, np.int64, 2)
        given = gains.address, byref(factor), byref(sides)
        _run("count_two", should_stop, self._address, *given, price, threshold, any_label)

    def add_joined(
        self, zero: Ints, zero_counts: Ints, one: Ints, one_counts: Ints, threshold: int, factor: int,
        should_stop: ShouldStop = _never,
    ) -> None:  # fmt: skip
        """Add all pairs of values of two sides, both sorted largest first, `factor` times."""
        _require(zero.size == zero_counts.size and one.size == one_counts.size, "shapes differ")
        arrays = zero, zero_counts, one, one_counts
        given = [read("values and counts", array, np.int64, 1) for array in arrays]
        parts = (byref(part) for part in given)
        _run("count_joined", should_stop, self._address, *parts, threshold, factor)

    def sorted(self, should_stop: ShouldStop = _never) -> tuple[Ints, Ints]:
        """Return values, largest first, and their numbers of trees."""
        values, counts = np.empty((2, kernels().count_store_size(self._address)), np.int64)
        targets = written("values", values, np.int64, 1), written("counts", counts, np.int64, 1)
        _run("count_store_sorted", should_stop, self._address, byref(targets[0]), byref(targets[1]))
        return values, counts


def column_gains(gains: SetGains, should_stop: ShouldStop = _never) -> Ints:
    """Return gains (K, C) of every class over the samples that have a column."""
    result = np.empty((gains.totals.size, gains.n_columns), np.int64)
    target = written("result", result, np.int64, 2)
    _run("column_gains", should_stop, gains.address, byref(target))
    return result


def two_sides(gains: SetGains, price: int, any_label: bool, none: int, should_stop: ShouldStop = _never) -> Ints:
    """Return best values (3, C) of trees of depth at most one on both sides of every column, and of both combined.

    The last row has trees in which no two sibling leaves have the same class; `none` means no such tree.
    """
    result = np.empty((3, gains.n_columns), np.int64)
    target = written("result", result, np.int64, 2)
    _run("two_sides", should_stop, gains.address, price, any_label, none, byref(target))
    return result


def add_sets(
    rows: NDArray[np.uint64], n_columns: int, starts: Ints, choose: Ints, weight: int, columns: NDArray[np.uint64],
    found: NDArray[np.uint64], counts: Ints, should_stop: ShouldStop = _never,
) -> None:  # fmt: skip
    """Add `weight` to ``counts`` for every row and every set of its columns.

    `rows` (n, words of a row); `starts` (depth + 2,) where the sets of each size begin in `counts`; `choose`
    (n_columns + 1, depth + 1) binomial coefficients. Work arrays: `columns` (n_columns or more, words) with at
    least n bits in whole steps of eight words, `found` (depth or more, words).
    """
    depth = starts.size - 2
    _require(0 <= depth <= 64 and choose.shape == (n_columns + 1, depth + 1), "choose of another shape")
    pascal = (choose[:, :1] == 1).all() and not choose[0, 1:].any()
    pascal = pascal and np.array_equal(choose[1:, 1:], choose[:-1, 1:] + choose[:-1, :-1])
    _require(bool(pascal), "choose must hold binomial coefficients")
    _require(starts.tolist() == [0, *np.cumsum(choose[n_columns]).tolist()], "starts that do not fit the columns")
    _require(n_columns <= 64 * rows.shape[1] and counts.size >= int(starts[-1]), "counts too small")
    words = -(-len(rows) // 512) * 8
    _require(columns.shape[0] >= n_columns and columns.shape[1] >= words, "columns too small")
    _require(found.shape[0] >= depth and found.shape[1] == columns.shape[1], "found too small")
    given = [read("rows", rows, np.uint64, 2), read("starts", starts, np.int64, 1), read("choose", choose, np.int64, 2)]
    room = [written("columns", columns, np.uint64, 2), written("found", found, np.uint64, 2)]
    _run(
        "add_sets",
        should_stop,
        *(byref(given[0]), n_columns, byref(given[1]), byref(given[2]), weight),
        *(byref(room[0]), byref(room[1]), byref(written("counts", counts, np.int64, 1))),
    )
