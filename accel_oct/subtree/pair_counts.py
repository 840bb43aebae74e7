"""Counts of all pairs of features and what one further split makes of each side, in steps that look at the clock.

A table of pairs has F**2 counters per channel. It is worked through some features at a time, and a table is only kept
whole when it is small or when the caller has room for it: trees of depth two do not need it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree import engine
from accel_oct.subtree.kernels.workspace import Workspace
from accel_oct.subtree.layout import Layout, layout
from accel_oct.subtree.reduction import Reduced, weighted_sums
from accel_oct.subtree.stopping import Stopper

Array = NDArray[Any]
Floats = NDArray[np.float64]

_STEP_BYTES = 2**25
_STEP_WORK = 10**8
"""Vector operations of a step, some tenths of a second."""

_NUMPY_STEP = 2**21
"""Entries of X that a step without compiled code multiplies at a time."""


class PairCounts:
    """What trees of depth two need to know of one set.

    Attributes
    ----------
    totals : (channels,) and single : (channels, F or more)
        Counts of the set and of the one-side of every feature.
    one_leaf, two_leaves : (2, F or more)
        Best scores of both sides of every feature with one and with two leaves, in table units. Where `known` is false
        the latter is the former.
    known : bool (F,)
        All true unless the stopper struck.
    """

    totals: Array
    single: Array
    one_leaf: Array
    two_leaves: Array

    def __init__(self, data: Reduced) -> None:
        self.data = data
        self.known = np.zeros(data.n_features, dtype=bool)

    def row(self, c: int) -> Floats:
        """Counts (channels, F) of the samples with feature c and every other feature."""
        return weighted_sums(self._rewards(self.data.X[:, c] == 1), self.data.X, self.data.X[:, c] == 1)

    def _rewards(self, rows: Any = slice(None)) -> Floats:
        """Weight (channels, n) that every sample has in each channel."""
        data = self.data
        y, weights = data.y[rows], data.weights[rows]
        if data.signed:
            return np.asarray(np.where(y == 1, weights, -weights)[None])
        return np.asarray(weights * (y == np.arange(data.n_classes)[:, None]))

    def _leaf(self, counts: Array) -> Array:
        return np.asarray(np.abs(counts[0]) if self.data.signed else counts.max(axis=0))

    def _leaves_only(self) -> None:
        """Scores of both sides of every feature as leaves, and nothing more."""
        F = self.data.n_features
        self.single[:, :F] = weighted_sums(self._rewards(), self.data.X)
        self.one_leaf[1] = self._leaf(self.single)
        self.one_leaf[0] = self._leaf(self.totals[:, None] - self.single)
        self.two_leaves[:] = self.one_leaf

    def _best_first(self, step: int) -> Iterator[tuple[int, int]]:
        """Ranges of features, those with the best single split first: a stop then leaves the best tree it can."""
        F = self.data.n_features
        stumps = self.one_leaf[:, :F].sum(axis=0, dtype=np.float64)
        ranges = [(first, min(first + step, F)) for first in range(0, F, step)]
        return iter(sorted(ranges, key=lambda part: -stumps[part[0] : part[1]].max()))


class CompiledCounts(PairCounts):
    """Tables by compiled kernels.

    Attributes
    ----------
    layout, members, work
        What the kernels read.
    blocked : array of ``layout.table_shape``
        The whole table, when `kept` and not stopped; else empty or incomplete.
    table_bytes : int
        Size of the whole table, kept or not.
    """

    def __init__(self, data: Reduced, stopper: Stopper, table_limit: int) -> None:
        super().__init__(data)
        self.layout: Layout = layout(data)
        spread = self.layout
        channels, blocks, F, lanes = spread.table_shape
        n_entries = spread.entries.shape[0]
        self.members = np.arange(n_entries, dtype=np.int64)
        self.totals = np.bincount(spread.channel, spread.signs, spread.n_channels).astype(spread.dtype)
        self.single = np.zeros((channels, spread.width), dtype=spread.dtype)
        self.one_leaf = np.zeros((2, spread.width), dtype=spread.dtype)
        self.two_leaves = np.zeros((2, spread.width), dtype=spread.dtype)
        self.table_bytes = channels * F * spread.width * spread.dtype.itemsize
        # Words hold sixteen samples at least; real weights are added one by one, for the ones.
        self._block_work = int(data.X.sum(dtype=np.int64)) if spread.dtype == np.float64 else n_entries * F // 16
        narrow = self.table_bytes <= _STEP_BYTES and self._block_work * blocks <= _STEP_WORK
        self.kept = narrow or self.table_bytes <= table_limit
        shape = spread.table_shape if self.kept else (channels, 0, F, lanes)
        self.blocked: Array = np.zeros(shape, dtype=spread.dtype)
        if narrow and not stopper():
            self._whole()
        else:
            self._leaves_only()
            self._in_steps(stopper)

    def row(self, c: int) -> Floats:
        if not self.kept or not self.known.all():
            return super().row(c)
        channels, _, F, _ = self.blocked.shape
        return np.asarray(self.blocked[:, :, c].reshape(channels, -1)[:, :F], dtype=np.float64)

    def _whole(self) -> None:
        levels = engine.compiled_levels()
        self.work = Workspace(self.layout)
        levels.level_two(self.members, *self.work.counting(self.layout), self.blocked, 0)
        F, lanes = self.blocked.shape[2:]
        diagonal = np.arange(F)
        self.single[:, :F] = self.blocked[:, diagonal // lanes, diagonal, diagonal % lanes]
        self._pass(self.blocked, 0)
        self.known[:] = True

    def _in_steps(self, stopper: Stopper) -> None:
        """Some blocks of features at a time."""
        if stopper():
            return
        spread = self.layout
        channels, blocks, F, lanes = spread.table_shape
        count = _SparseCounts(spread) if _is_sparse(self.data, spread) else _DenseCounts(spread, self.members)
        step = max(1, _STEP_BYTES * blocks // self.table_bytes)
        if isinstance(count, _DenseCounts):
            step = max(1, min(step, _STEP_WORK // max(1, self._block_work)))
        scratch = np.zeros((channels, min(step, blocks), F, lanes), dtype=spread.dtype)
        for first, last in self._best_first(step * lanes):
            if stopper():
                return
            begin, end = first // lanes, -(-last // lanes)
            # With one channel, some blocks of the whole table lie in one piece and can be written in place.
            table = self.blocked[:, begin:end] if self.kept and channels == 1 else scratch[:, : end - begin]
            table = table if table.flags.c_contiguous else np.zeros_like(table, order="C")
            count(table, first)
            self._pass(table, first)
            if self.kept and channels > 1:
                self.blocked[:, begin:end] = table
            self.known[first:last] = True

    def _pass(self, table: Array, base: int) -> None:
        levels = engine.compiled_levels()
        levels.pass_block(
            table, self.single, self.totals, self.one_leaf, self.two_leaves, self.data.n_features, base,
            self.data.signed,
        )  # fmt: skip


class _DenseCounts:
    """Counting by words of samples."""

    def __init__(self, spread: Layout, members: Array) -> None:
        self._arguments = (members, *Workspace(spread).counting(spread))

    def __call__(self, table: Array, base: int) -> None:
        levels = engine.compiled_levels()
        levels.level_two(*self._arguments, table, base)


class _SparseCounts:
    """Counting by lists of the ones."""

    def __init__(self, spread: Layout) -> None:
        entries = spread.entries
        rows, features = np.nonzero(entries)
        by_feature = np.argsort(features, kind="stable")
        self._arguments = (
            rows[by_feature],
            np.searchsorted(features[by_feature], np.arange(entries.shape[1] + 1)),
            features,
            np.searchsorted(rows, np.arange(entries.shape[0] + 1)),
            spread.channel,
            spread.signs.astype(spread.dtype),
        )

    def __call__(self, table: Array, base: int) -> None:
        levels = engine.compiled_levels()
        levels.level_two_sparse(*self._arguments, table, base)


def _is_sparse(data: Reduced, spread: Layout) -> bool:
    """Whether the pairs of ones within samples are fewer than the vector operations on all pairs."""
    ones = data.X.sum(axis=1, dtype=np.float64)
    pairs, n_entries = float(ones @ ones), spread.entries.shape[0]
    return bool(pairs < n_entries / 16 * data.n_features * spread.width / 32)


class NumpyCounts(PairCounts):
    """The same by matrix products; tables are never kept."""

    kept = False
    table_bytes = 0

    def __init__(self, data: Reduced, stopper: Stopper) -> None:
        super().__init__(data)
        F = data.n_features
        rewards = self._rewards()
        self.totals = rewards.sum(axis=1)
        self.single = np.zeros((rewards.shape[0], F))
        self.one_leaf = np.zeros((2, F))
        self.two_leaves = np.zeros((2, F))
        self._leaves_only()
        step = int(np.clip(_NUMPY_STEP // max(1, data.n_samples), 16, 512))
        for first, last in self._best_first(step):
            for other in range(0, F, step):
                if stopper():
                    self.two_leaves[:, first:last] = self.one_leaf[:, first:last]
                    return
                self._multiply(rewards, slice(first, last), slice(other, other + step))
            self.known[first:last] = True

    def _multiply(self, rewards: Floats, here: slice, other: slice) -> None:
        """Raise the two-leaf scores of some features by splits on some others."""
        X = self.data.X[:, other].astype(np.float64)
        both = (self.data.X[:, here].T * rewards[:, None, :]) @ X  # (channels, here, other)
        single, totals = self.single, self.totals[:, None]
        for side in (0, 1):
            counts = single[:, here] if side else totals - single[:, here]
            ones = both if side else single[:, None, other] - both
            best = (self._leaf(ones) + self._leaf(counts[:, :, None] - ones)).max(axis=1)
            target = self.two_leaves[side, here]
            np.maximum(target, best, out=target)
