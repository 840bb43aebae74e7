"""The counting core: counts of all pairs of features of one set of samples, and the best further split of each side.

The profile of depth two (`PairLevel`), which all tables and bounds build on, is computed from these counts. There are
three implementations of `PairCounts`: compiled kernels (`CompiledCounts`), matrix products (`ProductCounts`), and
lookup in a tally (`TallyCounts`).

A table of pairs has F**2 counters per channel. It is filled in steps of some features, with a check of the stopper
between steps, and kept whole only if it is small or within the caller's memory limit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import Stopper

_CONVERTED = 2**22
"""Entries of X that are converted to floating point at a time."""


def column_keys(X: Array) -> list[bytes]:
    """Return a key for every column; two columns have the same key if and only if they are equal or complementary."""
    n_samples, n_features = X.shape
    if n_samples == 0:
        return [b""] * n_features
    # Packing before the transposition moves an eighth of the bytes.
    eights = np.ascontiguousarray(np.packbits(X, axis=1).T)
    step = max(1, _CONVERTED // (8 * n_samples))
    keys: list[bytes] = []
    for first in range(0, len(eights), step):
        columns = np.unpackbits(eights[first : first + step, None], axis=1).reshape(-1, n_samples)
        columns ^= columns[:, :1]  # represent a column and its complement by the one that starts with zero
        keys += [column.tobytes() for column in np.packbits(columns, axis=1)]
    return keys[:n_features]


def weighted_sums(amounts: FloatArray, X: Array, rows: Array | None = None) -> FloatArray:
    """Return ``amounts @ X`` (for the selected rows of X) without a floating-point copy of X, eight times its size."""
    if X.dtype == np.float64 and rows is None:
        return np.asarray(amounts @ X)
    # Sums are exact in any order. Blocks of whole rows are contiguous in memory.
    chosen = np.flatnonzero(rows) if rows is not None and rows.dtype == bool else rows
    n_features, n_rows = X.shape[1], len(X) if chosen is None else len(chosen)
    step = max(1, _CONVERTED // max(1, n_features))
    result = np.zeros((*amounts.shape[:-1], n_features))
    for first in range(0, n_rows, step):
        part = X[first : first + step] if chosen is None else X[chosen[first : first + step]]
        result += amounts[..., first : first + step] @ part.astype(np.float64)
    return result


def as_factor(X: Array) -> Array:
    """Return X as floating-point numbers for repeated `weighted_sums`, or X itself if the copy would be too large."""
    return X.astype(np.float64) if X.size <= 4 * _CONVERTED else X


def both_sides(amounts: FloatArray, X: Array) -> FloatArray:
    """Return the sums (F, 2) of the amounts on the zero side and the one side of every column."""
    one = weighted_sums(amounts, X)
    return np.stack([amounts.sum() - one, one], axis=1)


def pair_sums(amounts: FloatArray, X: Array) -> FloatArray:
    """Return the sums (F, F) of the amounts over the rows in which both of two columns are one."""
    step = max(1, _CONVERTED // max(1, X.shape[1]))
    result = np.zeros((X.shape[1], X.shape[1]))
    for first in range(0, len(X), step):
        part = X[first : first + step].astype(np.float64)
        result += (part.T * amounts[first : first + step]) @ part
    return result


_MAX_PLANES = 14


@dataclass(frozen=True)
class Layout:
    """Rows as the kernels read them: one entry per row and bit of its weight, entries grouped by channel and bit.

    A *channel* is a table of counts: one signed table for two classes, else one per class; then one per mass of the
    local rules. Real weights are not split into bits: there is one entry per row, and kernels read `numbers` instead
    of packed words.
    """

    entries: NDArray[np.uint8]  # (E, P)
    channel: NDArray[np.int32]  # (E,)
    plane: NDArray[np.int32]  # (E,)
    marked: NDArray[np.uint8]  # (E,) class 0 of a signed table
    signs: FloatArray  # (E,) weight of the entry in its channel
    row: IntArray  # (E,) the row it belongs to
    n_rows: int
    n_channels: int
    n_features: int
    width: int  # P
    dtype: Any

    @classmethod
    def without_entries(cls, n_channels: int, n_features: int) -> Layout:
        """Return the layout of tables whose counts come from a tally, as real numbers."""
        dtype = np.dtype(np.float64)
        width = padded_width(n_features, dtype)
        none = np.zeros(0, dtype=np.int32)
        return cls(
            entries=np.zeros((0, width), dtype=np.uint8),
            channel=none,
            plane=none,
            marked=np.zeros(0, dtype=np.uint8),
            signs=np.zeros(0),
            row=np.zeros(0, dtype=np.int64),
            n_rows=0,
            n_channels=n_channels,
            n_features=n_features,
            width=width,
            dtype=dtype,
        )

    @cached_property
    def numbers(self) -> FloatArray:
        """Signed weight times the features (E, P) for real weights, else empty."""
        bits = self.dtype != np.float64
        return np.zeros((0, self.width)) if bits else self.entries * self.signs[:, None]

    @property
    def by_row(self) -> IntArray:
        """Entry (n, bits) of every row for each bit of its weight, -1 where there is none."""
        result = np.full((self.n_rows, int(self.plane.max(initial=0)) + 1), -1, dtype=np.int64)
        result[self.row, self.plane] = np.arange(self.row.size)
        return result

    @property
    def table_shape(self) -> tuple[int, int, int, int]:
        """Shape of a table of pair counts: channels, blocks, features, lanes of a block."""
        lanes = lanes_of(self.dtype)
        return self.n_channels, self.width // lanes, self.n_features, lanes

    def words(self) -> native.Words:
        """Allocate the array of packed samples."""
        return native.Words.of(self.entries.shape[0], self.width, self.dtype.itemsize)

    def work(self) -> native.Work:
        """Allocate the work arrays that one thread needs on the deeper levels."""
        return native.Work.of(self.entries.shape[0], self.table_shape, self.dtype)

    def limits(self, least: float, apart: BoolArray | None, total: float | None = None) -> native.Limits:
        """Return local rules of one mass as the kernels read them; `total` weight for a layout without entries."""
        dtype, F = self.dtype, self.n_features
        never = np.inf if dtype == np.float64 else np.iinfo(dtype).max
        total = float(np.abs(self.signs).sum()) if total is None else total
        enough = least if dtype == np.float64 else min(np.ceil(least), never)
        _, blocks, _, lanes = self.table_shape
        rows = np.full((F, self.width), never, dtype=dtype)
        rows[:, :F] = enough if apart is None else np.where(apart, never, enough)
        below = np.full(self.width, never, dtype=dtype)
        below[:F] = enough
        # Added to any score the sum is negative; twice this number still fits into the counters.
        lowest = -2 * total - 1 if dtype == np.float64 else np.iinfo(dtype).min // 2
        blocked = np.ascontiguousarray(rows.reshape(F, blocks, lanes).transpose(1, 0, 2))
        return native.Limits(blocked, rows, below, np.array([enough], dtype), np.array([lowest], dtype))


def lanes_of(dtype: Any) -> int:
    """Return the number of counters in a block of a kernel."""
    return native.BLOCK_BYTES // int(np.dtype(dtype).itemsize)


def padded_width(n_columns: int, dtype: Any) -> int:
    """Return the number of columns rounded up to whole blocks, at least one block."""
    lanes = lanes_of(dtype)
    return max(1, -(-n_columns // lanes)) * lanes


def layout(X: Array, y: IntArray, weights: FloatArray, n_classes: int, masses: FloatArray | None = None) -> Layout:
    """Return the layout of rows, with counters wide enough for exact sums.

    With `masses` (J, n) of local rules, sums of two "not allowed" markers fit into the counters too.
    """
    n_rows, n_features = X.shape
    dtype = counter_type(weights, masses)
    bits = dtype is not np.float64
    width = padded_width(n_features, dtype)
    signed = n_classes == 2
    class_channel = np.zeros(n_rows, dtype=np.int64) if signed else y
    n_channels = 1 if signed else n_classes
    row, plane, amount = _spread(weights, bits)
    channel = class_channel[row]
    marked = (y[row] == 0) & signed
    for place, mass in enumerate(() if masses is None else masses):
        rows, planes, parts = _spread(mass, bits)
        row, plane, amount = np.append(row, rows), np.append(plane, planes), np.append(amount, parts)
        channel = np.append(channel, np.full(rows.size, n_channels + place))
        marked = np.append(marked, np.zeros(rows.size, dtype=bool))
    order = np.lexsort((row, plane, channel))
    row, plane, amount = row[order], plane[order], amount[order]
    channel, marked = channel[order], marked[order]
    entries = np.zeros((row.size, width), dtype=np.uint8)
    entries[:, :n_features] = X[row]
    return Layout(
        entries=entries,
        channel=channel.astype(np.int32),
        plane=plane.astype(np.int32),
        marked=marked.astype(np.uint8),
        signs=np.where(marked, -amount, amount),
        row=row,
        n_rows=n_rows,
        n_channels=n_channels + (0 if masses is None else len(masses)),
        n_features=n_features,
        width=width,
        dtype=np.dtype(dtype),
    )


def counter_type(weights: FloatArray, masses: FloatArray | None = None) -> Any:
    """Return the narrowest counter type in which sums are exact; float64 for real weights."""
    amounts = weights[None] if masses is None else np.concatenate([weights[None], masses])
    total = float(amounts.sum(axis=1).max())
    integral = bool(np.all(amounts == np.floor(amounts)))
    heaviest = int(amounts.max()) if integral and amounts.size else 0
    spare = 0 if masses is None else 1
    if not integral or total >= 2 ** (31 - spare) or heaviest >= 2**_MAX_PLANES:
        return np.float64
    return np.int16 if total < 2 ** (15 - spare) else np.int32


def _spread(amounts: FloatArray, bits: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Return row, bit and amount of every entry."""
    if not bits:
        return np.arange(amounts.size), np.zeros(amounts.size, dtype=np.int64), amounts
    whole = amounts.astype(np.int64)
    heaviest = int(whole.max(initial=0))
    rows = [np.flatnonzero((whole >> bit) & 1) for bit in range(max(1, heaviest.bit_length()))]
    plane = np.repeat(np.arange(len(rows)), [part.size for part in rows])
    return np.concatenate(rows), plane, np.exp2(plane)


class LeafStatistic(ABC):
    """Score and label of a leaf from additive channels.

    Every sample (or cell of a tally) has an amount in each channel, and a set of samples has the sums of them, so the
    sums of both sides of a split add up to those of the set.
    """

    @abstractmethod
    def score(self, sums: Array) -> Array:
        """Return scores (...) of leaves with these sums (channels, ...), minus infinity for leaves not allowed."""

    @abstractmethod
    def label(self, sums: Array) -> float:
        """Return the prediction of a leaf with these sums (channels,)."""


@dataclass(frozen=True)
class ClassRewards(LeafStatistic):
    """The reward of the best class, the statistic of the kernels.

    With the weights of the samples as amounts the score is accuracy, weighted or not. Amounts may be any nonnegative
    rewards per sample and class.

    Attributes
    ----------
    signed : bool
        One channel d, class 1 minus class 0; the score is |d|, twice the reward minus the weight. Else one channel per
        class.
    least : tuple of float
        Least masses of a leaf. Each adds a channel that holds the mass; lighter leaves are not allowed.
    """

    signed: bool
    least: tuple[float, ...] = ()

    @staticmethod
    def amounts(y: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
        """Return the amounts (channels, n) of samples that earn their weight if their class is predicted."""
        if n_classes == 2:
            return np.where(y == 1, weights, -weights)[None]
        return np.asarray(weights * (y == np.arange(n_classes)[:, None]))

    def score(self, sums: Array) -> Array:
        """Return scores (...) of leaves with these sums (channels, ...), minus infinity for leaves that are too light.

        Scores are in table units, see `Units`.
        """
        if not self.least:
            return np.asarray(np.abs(sums[0]) if self.signed else sums.max(axis=0))
        classes, masses = sums[: -len(self.least)], sums[-len(self.least) :]
        scores = np.abs(classes[0]) if self.signed else classes.max(axis=0)
        enough = np.all([mass >= least for mass, least in zip(masses, self.least, strict=True)], axis=0)
        return np.where(enough, scores, -np.inf)

    def label(self, sums: Array) -> int:
        """Return the best class of a leaf with these sums (channels,), the smallest index of equally good ones."""
        if self.signed:
            return int(sums[0] > 0)
        return int(np.argmax(sums[: -len(self.least)] if self.least else sums))


_NUMPY_STEP = 2**21
"""Entries of X that a step of matrix products multiplies at a time."""

_STEP_BYTES = 2**25
_STEP_WORK = 10**8
"""Vector operations of a step, some tenths of a second."""


@dataclass(frozen=True)
class TableSource:
    """A whole table of pairs and its input, as the kernels of the deeper levels read them.

    Attributes
    ----------
    members : int64 array
        Entries of the set; empty for a tally.
    limits : Limits or None
        Local rules.
    """

    layout: Layout
    members: IntArray
    entries: native.Entries | native.Sets
    whole: native.Counts
    limits: native.Limits | None


class PairCounts(ABC):
    """Counts of one set of samples that decide its trees of depth two.

    Attributes
    ----------
    statistic : LeafStatistic
        Score of a leaf by its counts.
    totals : (channels,) and single : (channels, F or more)
        Counts of the set and of the one-side of every feature.
    one_leaf, two_leaves : (2, F or more)
        Best scores of both sides of every feature as a leaf and with one more split, in table units; `two_leaves` is
        undefined where `known` is false.
    known : bool (F,)
        All true unless the computation was stopped.
    apart : bool (F, F) or None
        Features that may not share a path.
    kept : bool
        Whether the table of pairs was kept for the deeper levels, see `source`.
    table_bytes : int
        Size of that table, kept or not; zero if the implementation has no table.
    """

    totals: Array
    single: Array
    one_leaf: Array
    two_leaves: Array
    kept = False
    table_bytes = 0

    def __init__(self, n_features: int, statistic: LeafStatistic, apart: BoolArray | None = None) -> None:
        self.n_features = n_features
        self.statistic = statistic
        self.apart = apart
        self.known = np.zeros(n_features, dtype=bool)

    @abstractmethod
    def row(self, c: int) -> FloatArray:
        """Return the counts (channels, F) of the samples with feature c and every other feature."""

    @property
    def source(self) -> TableSource:
        """The table and its input, for the deeper levels; only if `kept`."""
        raise ValueError("no table of pairs was kept")

    def side(self, c: int, side: int) -> FloatArray:
        """Return the counts (channels,) of one side of a feature."""
        at_c = self.single[:, c].astype(np.float64)
        return at_c if side else self.totals - at_c

    def best_split(self, c: int, side: int) -> tuple[int, FloatArray, FloatArray]:
        """Return the first best split of one side of feature c, with the counts of its zero side and its one side."""
        ones = self.row(c)
        if side == 0:
            ones = self.single[:, : self.n_features] - ones
        zeros = self.side(c, side)[:, None] - ones
        scores = self.statistic.score(ones) + self.statistic.score(zeros)
        if self.apart is not None:
            scores = np.where(self.apart[c], -np.inf, scores)
        b = int(np.argmax(scores))
        return b, zeros[:, b], ones[:, b]

    def _two_leaves(self, both: FloatArray, here: slice, other: slice) -> FloatArray:
        """Return best scores (2, here) of the sides of some features with a split on some others, from pair counts."""
        single, totals, score = self.single, self.totals[:, None], self.statistic.score
        best = []
        for side in (0, 1):
            counts = single[:, here] if side else totals - single[:, here]
            ones = both if side else single[:, None, other] - both
            scores = score(ones) + score(counts[:, :, None] - ones)
            if self.apart is not None:
                scores = np.where(self.apart[here, other], -np.inf, scores)
            best.append(scores.max(axis=1, initial=-np.inf))
        return np.array(best)


class RowCounts(PairCounts):
    """Counts of rows.

    Attributes
    ----------
    X : (n, F) and amounts : (channels, n)
        Features of the samples, and their amounts by channel.
    """

    def __init__(self, X: Array, statistic: LeafStatistic, apart: BoolArray | None) -> None:
        super().__init__(X.shape[1], statistic, apart)
        self.X = X

    @property
    @abstractmethod
    def amounts(self) -> FloatArray: ...

    def row(self, c: int) -> FloatArray:
        rows = self.X[:, c] == 1
        return weighted_sums(self.amounts[:, rows], self.X, rows)

    def _leaves_only(self) -> None:
        """Compute the scores of both sides of every feature as leaves only."""
        F = self.n_features
        single = self.single[:, :F]
        single[:] = weighted_sums(self.amounts, self.X)
        self.one_leaf[1, :F] = self.statistic.score(single)
        self.one_leaf[0, :F] = self.statistic.score(self.totals[:, None] - single)

    def _best_first(self, step: int) -> Iterator[tuple[int, int]]:
        """Return ranges of features, best single split first, so that a stopped computation has seen it."""
        F = self.n_features
        stumps = self.one_leaf[:, :F].sum(axis=0, dtype=np.float64)
        ranges = [(first, min(first + step, F)) for first in range(0, F, step)]
        return iter(sorted(ranges, key=lambda part: -stumps[part[0] : part[1]].max()))


class ProductCounts(RowCounts):
    """Counts by matrix products, under any number of masses; tables are never kept.

    Parameters
    ----------
    X, amounts, statistic
        See `RowCounts`.
    pairs : bool
        False: trees of depth one only, no further splits.
    apart : bool (F, F), optional
        Features that may not share a path.
    """

    def __init__(
        self,
        X: Array,
        amounts: FloatArray,
        statistic: LeafStatistic,
        stopper: Stopper | None = None,
        *,
        pairs: bool = True,
        apart: BoolArray | None = None,
    ) -> None:
        super().__init__(X, statistic, apart)
        self._amounts = amounts
        F = self.n_features
        self.totals = amounts.sum(axis=1)
        self.single = np.zeros((amounts.shape[0], F))
        self.one_leaf = np.zeros((2, F))
        self.two_leaves = np.full((2, F), -np.inf)
        self._leaves_only()
        if pairs:
            self._in_steps(stopper or Stopper())

    @property
    def amounts(self) -> FloatArray:
        return self._amounts

    def _in_steps(self, stopper: Stopper) -> None:
        F = self.n_features
        step = int(np.clip(_NUMPY_STEP // max(1, self.X.shape[0]), 16, 512))
        for first, last in self._best_first(step):
            for other in range(0, F, step):
                if stopper():
                    self.two_leaves[:, first:last] = -np.inf
                    return
                self._multiply(slice(first, last), slice(other, other + step))
            self.known[first:last] = True

    def _multiply(self, here: slice, other: slice) -> None:
        """Raise the two-leaf scores of some features by splits on some others."""
        X = self.X[:, other].astype(np.float64, copy=False)
        both = (self.X[:, here].T * self._amounts[:, None, :]) @ X  # (channels, here, other)
        target = self.two_leaves[:, here]
        np.maximum(target, self._two_leaves(both, here, other), out=target)


class CompiledCounts(RowCounts):
    """Counts by compiled kernels, with or without the whole table; local rules may have at most one mass.

    Parameters
    ----------
    X, y, weights, n_classes
        Rows, see `RowSamples`.
    table_limit : int
        Bytes up to which the table is kept.
    masses : (1, n), optional
    apart : bool (F, F), optional

    Attributes
    ----------
    layout, entries, members
        Input of the kernels: all entries are members of the set.
    blocked : array of ``layout.table_shape``
        The whole table if `kept` and not stopped; else empty or incomplete.
    limits : Limits or None
        Local rules, as the kernels read them.
    """

    statistic: ClassRewards

    def __init__(
        self,
        X: Array,
        y: IntArray,
        weights: FloatArray,
        n_classes: int,
        statistic: ClassRewards,
        stopper: Stopper,
        table_limit: int = 0,
        *,
        masses: FloatArray | None = None,
        apart: BoolArray | None = None,
    ) -> None:
        super().__init__(X, statistic, apart)
        self._rows = y, weights, n_classes, masses
        self.layout: Layout = layout(X, y, weights, n_classes, masses)
        spread = self.layout
        self.entries = native.Entries(spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers)
        self.limits = spread.limits(statistic.least[0], apart) if statistic.least else None
        channels, blocks, F, lanes = spread.table_shape
        n_entries = spread.entries.shape[0]
        self.members = np.arange(n_entries, dtype=np.int64)
        self.totals = np.bincount(spread.channel, spread.signs, spread.n_channels).astype(spread.dtype)
        self.single = np.zeros((channels, spread.width), dtype=spread.dtype)
        self._scores = native.Scores.of(2, spread.width, spread.dtype)
        self.one_leaf, self.two_leaves = self._scores.one_leaf, self._scores.two_leaves
        self.table_bytes = channels * F * spread.width * spread.dtype.itemsize
        # A word holds at least sixteen samples; real weights are added one by one.
        self._block_work = int(X.sum(dtype=np.int64)) if spread.dtype == np.float64 else n_entries * F // 16
        narrow = self.table_bytes <= _STEP_BYTES and self._block_work * blocks <= _STEP_WORK
        self.kept = narrow or self.table_bytes <= table_limit
        shape = spread.table_shape if self.kept else (channels, 0, F, lanes)
        self.blocked: Array = np.zeros(shape, dtype=spread.dtype)
        if narrow and not stopper():
            self._whole()
        else:
            self._leaves_only()
            self._in_steps(stopper)

    @cached_property
    def amounts(self) -> FloatArray:
        y, weights, n_classes, masses = self._rows
        amounts = ClassRewards.amounts(y, weights, n_classes)
        return amounts if masses is None else np.concatenate([amounts, masses])

    @property
    def source(self) -> TableSource:
        if not self.kept:
            return super().source
        whole = native.Counts(self.blocked, self.single, self.totals)
        return TableSource(self.layout, self.members, self.entries, whole, self.limits)

    def row(self, c: int) -> FloatArray:
        if not self.kept or not self.known.all():
            return super().row(c)
        channels, _, F, _ = self.blocked.shape
        return np.asarray(self.blocked[:, :, c].reshape(channels, -1)[:, :F], dtype=np.float64)

    def _whole(self) -> None:
        native.level_two(self.members, self.entries, self.layout.words(), self.blocked, 0)
        F, lanes = self.blocked.shape[2:]
        diagonal = np.arange(F)
        self.single[:, :F] = self.blocked[:, diagonal // lanes, diagonal, diagonal % lanes]
        self._pass(self.blocked, 0)
        self.known[:] = True

    def _in_steps(self, stopper: Stopper) -> None:
        """Fill the table in steps of some blocks of features."""
        if stopper():
            return
        spread = self.layout
        channels, blocks, F, lanes = spread.table_shape
        step = max(1, _STEP_BYTES * blocks // self.table_bytes)
        words, ones = spread.words(), _ones(spread) if _is_sparse(self.X, spread) else None
        if ones is None:
            step = max(1, min(step, _STEP_WORK // max(1, self._block_work)))
        scratch = np.zeros((channels, min(step, blocks), F, lanes), dtype=spread.dtype)
        for first, last in self._best_first(step * lanes):
            if stopper():
                return
            begin, end = first // lanes, -(-last // lanes)
            # With one channel, adjacent blocks of the whole table are contiguous and can be written in place.
            table = self.blocked[:, begin:end] if self.kept and channels == 1 else scratch[:, : end - begin]
            table = table if table.flags.c_contiguous else np.zeros_like(table, order="C")
            try:
                if ones is None:
                    native.level_two(self.members, self.entries, words, table, first, stopper)
                else:
                    native.level_two_sparse(ones, table, first, stopper)
            except native.Stopped:
                return
            self._pass(table, first)
            if self.kept and channels > 1:
                self.blocked[:, begin:end] = table
            self.known[first:last] = True

    def _pass(self, table: Array, base: int) -> None:
        counts = native.Counts(table, self.single, self.totals)
        native.pass_block(counts, self._scores, base, self.statistic.signed, self.limits)


def _ones(spread: Layout) -> native.Ones:
    """Return the ones of all entries as lists, by feature and by entry."""
    entries = spread.entries
    rows, features = np.nonzero(entries)
    by_feature = np.argsort(features, kind="stable")
    return native.Ones(
        entries=rows[by_feature],
        entries_start=np.searchsorted(features[by_feature], np.arange(entries.shape[1] + 1)),
        features=np.ascontiguousarray(features),  # nonzero gives columns of one array
        features_start=np.searchsorted(rows, np.arange(entries.shape[0] + 1)),
        channel=spread.channel,
        amounts=spread.signs.astype(spread.dtype),
    )


def _is_sparse(X: Array, spread: Layout) -> bool:
    """Return whether counting the pairs of ones within samples takes less work than vector operations on all pairs."""
    ones = X.sum(axis=1, dtype=np.float64)
    pairs, n_entries = float(ones @ ones), spread.entries.shape[0]
    return bool(pairs < n_entries / 16 * X.shape[1] * spread.width / 32)


class TallyCounts(PairCounts):
    """Counts read from a tally; the table is always whole.

    Parameters
    ----------
    values : tuple of float arrays (channels, number of sets)
        Counts of the sets of columns of a tally, by their size.
    columns : int64 array (F,)
        Columns of the tally that are features here.
    total : float
        Upper bound on all counts.
    kernels : bool
        Whether the kernels compute the scores, which the deeper levels need; else NumPy does, under any number of
        masses.
    apart : bool (F, F), optional
    """

    statistic: ClassRewards

    def __init__(
        self,
        values: tuple[FloatArray, ...],
        columns: IntArray,
        statistic: ClassRewards,
        total: float,
        *,
        kernels: bool,
        apart: BoolArray | None = None,
    ) -> None:
        super().__init__(columns.size, statistic, apart)
        self._values, self._columns = values, columns
        self.totals, self.single = values[0][:, 0], values[1][:, columns]
        self._table = self._pairs()
        self.known[:] = True
        if kernels:
            self._by_kernels(total)
        else:
            self._by_arrays()

    def _pairs(self) -> FloatArray:
        """Return the counts (channels, F, F) of all pairs of columns."""
        columns, F = self._columns, self.n_features
        table = np.zeros((len(self.totals), F, F))
        if F > 1 and len(self._values) > 2:  # trees of depth one need no pairs
            first, second = np.triu_indices(F, 1)
            large = columns[second]
            found = self._values[2][:, columns[first] + large * (large - 1) // 2]
            table[:, first, second] = found
            table[:, second, first] = found
        diagonal = np.arange(F)
        table[:, diagonal, diagonal] = self.single
        return table

    def row(self, c: int) -> FloatArray:
        return self._table[:, c]

    def _by_arrays(self) -> None:
        """Compute the scores of one and of two leaves with NumPy."""
        score, totals = self.statistic.score, self.totals[:, None]
        self.one_leaf = np.array([score(totals - self.single), score(self.single)], dtype=np.float64)
        self.two_leaves = self._two_leaves(self._table, slice(None), slice(None))

    def _by_kernels(self, total: float) -> None:
        """Compute the same scores and the input of the deeper levels. Counts are float64, exact up to 53 bits."""
        self._layout = spread = Layout.without_entries(len(self.totals), self.n_features)
        channels, blocks, F, lanes = spread.table_shape
        least = self.statistic.least
        limits = spread.limits(least[0], self.apart, total) if least else None
        wide = np.zeros((channels, F, spread.width), dtype=spread.dtype)
        wide[:, :, :F] = self._table
        blocked = np.ascontiguousarray(wide.reshape(channels, F, blocks, lanes).transpose(0, 2, 1, 3))
        self.kept, self.table_bytes = True, blocked.nbytes
        self.totals = self.totals.astype(spread.dtype)
        single = np.zeros((channels, spread.width), dtype=spread.dtype)
        single[:, :F] = self.single
        self.single = single
        scores = native.Scores.of(2, spread.width, spread.dtype)
        self.one_leaf, self.two_leaves = scores.one_leaf, scores.two_leaves
        self._whole, self._limits = native.Counts(blocked, single, self.totals), limits
        native.pass_block(self._whole, scores, 0, self.statistic.signed, limits)

    @cached_property
    def source(self) -> TableSource:
        if not self.kept:
            return super().source
        return TableSource(self._layout, np.zeros(0, dtype=np.int64), self._sets(), self._whole, self._limits)

    def _sets(self) -> native.Sets:
        """Return all sets of columns as the deeper levels read them."""
        depth = min(len(self._values) - 1, 4)
        parts = self._values[: depth + 1]
        starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])]).astype(np.int64)
        values = np.concatenate(parts, axis=1).astype(self._layout.dtype, copy=False)
        n_columns = self._values[1].shape[1]
        choose = [[math.comb(column, size) for size in range(depth + 1)] for column in range(n_columns)]
        return native.Sets(values, starts, np.array(choose, dtype=np.int64), self._columns.astype(np.int64))
