"""The counting core by compiled kernels, for accuracy, with or without local rules of one mass."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.subtree.layout import Layout, layout
from accel_oct.subtree.pair_counts import LeafRule, PairCounts, all_amounts
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.stopping import Stopper

Array = NDArray[Any]
Floats = NDArray[np.float64]

_STEP_BYTES = 2**25
_STEP_WORK = 10**8
"""Vector operations of a step, some tenths of a second."""


class CompiledCounts(PairCounts):
    """Counts by compiled kernels, with or without the whole table.

    Attributes
    ----------
    layout, entries, members
        What the kernels read: all entries are members of the set.
    blocked : array of ``layout.table_shape``
        The whole table, when `kept` and not stopped; else empty or incomplete.
    table_bytes : int
        Size of the whole table, kept or not.
    limits : Limits or None
        Local rules, as the kernels read them.
    """

    def __init__(self, data: Reduced, stopper: Stopper, table_limit: int) -> None:
        rules = data.rules
        least, apart = ((), None) if rules is None else (rules.least, rules.apart)
        super().__init__(data.X, LeafRule(data.signed, least), apart)
        self.data = data
        masses = None if rules is None else rules.masses
        self.layout: Layout = layout(data.X, data.y, data.weights, data.n_classes, masses)
        spread = self.layout
        self.entries = native.Entries(spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers)
        self.limits = None if rules is None else spread.limits(rules.least[0], rules.apart)
        channels, blocks, F, lanes = spread.table_shape
        n_entries = spread.entries.shape[0]
        self.members = np.arange(n_entries, dtype=np.int64)
        self.totals = np.bincount(spread.channel, spread.signs, spread.n_channels).astype(spread.dtype)
        self.single = np.zeros((channels, spread.width), dtype=spread.dtype)
        self._scores = native.Scores.of(2, spread.width, spread.dtype)
        self.one_leaf, self.two_leaves = self._scores.one_leaf, self._scores.two_leaves
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

    @cached_property
    def amounts(self) -> Floats:
        return all_amounts(self.data)

    @property
    def whole(self) -> native.Counts:
        """All counts, as the deeper levels read them."""
        return native.Counts(self.blocked, self.single, self.totals)

    def row(self, c: int) -> Floats:
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
        """Some blocks of features at a time."""
        if stopper():
            return
        spread = self.layout
        channels, blocks, F, lanes = spread.table_shape
        step = max(1, _STEP_BYTES * blocks // self.table_bytes)
        words, ones = spread.words(), _ones(spread) if _is_sparse(self.data, spread) else None
        if ones is None:
            step = max(1, min(step, _STEP_WORK // max(1, self._block_work)))
        scratch = np.zeros((channels, min(step, blocks), F, lanes), dtype=spread.dtype)
        for first, last in self._best_first(step * lanes):
            if stopper():
                return
            begin, end = first // lanes, -(-last // lanes)
            # With one channel, some blocks of the whole table lie in one piece and can be written in place.
            table = self.blocked[:, begin:end] if self.kept and channels == 1 else scratch[:, : end - begin]
            table = table if table.flags.c_contiguous else np.zeros_like(table, order="C")
            if ones is None:
                native.level_two(self.members, self.entries, words, table, first)
            else:
                native.level_two_sparse(ones, table, first)
            self._pass(table, first)
            if self.kept and channels > 1:
                self.blocked[:, begin:end] = table
            self.known[first:last] = True

    def _pass(self, table: Array, base: int) -> None:
        counts = native.Counts(table, self.single, self.totals)
        native.pass_block(counts, self._scores, base, self.rule.signed, self.limits)


def _ones(spread: Layout) -> native.Ones:
    """The ones of all entries as lists."""
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


def _is_sparse(data: Reduced, spread: Layout) -> bool:
    """Whether the pairs of ones within samples are fewer than the vector operations on all pairs."""
    ones = data.X.sum(axis=1, dtype=np.float64)
    pairs, n_entries = float(ones @ ones), spread.entries.shape[0]
    return bool(pairs < n_entries / 16 * data.n_features * spread.width / 32)
