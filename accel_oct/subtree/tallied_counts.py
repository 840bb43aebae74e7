"""The counting core on a tally: counts of pairs are looked up, and the passes over them are those of all data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.subtree.layout import Layout, lanes_of
from accel_oct.subtree.pair_counts import LeafRule, PairCounts
from accel_oct.subtree.tallied_data import TalliedData

Floats = NDArray[np.float64]


class TalliedCounts(PairCounts):
    """Counts of pairs from a tally, always whole; see `CompiledCounts` for what the deeper levels read of it."""

    kept = True

    def __init__(self, data: TalliedData, compiled: bool) -> None:
        rules = data.rules
        least, apart = ((), None) if rules is None else (rules.least, rules.apart)
        super().__init__(data.X, LeafRule(data.signed, least), apart)
        self.data = data
        self._table = self._pairs()
        self.known[:] = True
        if compiled:
            self._compiled()
        else:
            self._by_arrays()

    # ---------------------------------------------------------------- looked up

    def _channels(self, size: int) -> Floats:
        """Counts (channels, number of sets) of sets of one size: signed for two classes, then the masses."""
        values = self.data.values[size]
        return np.concatenate([values[1:2] - values[:1], values[2:]]) if self.data.signed else values

    def _pairs(self) -> Floats:
        """Counts (channels, F, F) of both of two columns."""
        columns = self.data.feature
        totals, single = self._channels(0)[:, 0], self._channels(1)[:, columns]
        table = np.zeros((len(totals), columns.size, columns.size))
        if columns.size > 1 and len(self.data.values) > 2:  # trees of depth one need no pairs
            first, second = np.triu_indices(columns.size, 1)
            large = columns[second]
            found = self._channels(2)[:, columns[first] + large * (large - 1) // 2]
            table[:, first, second] = found
            table[:, second, first] = found
        diagonal = np.arange(columns.size)
        table[:, diagonal, diagonal] = single
        self.totals, self.single = totals, single
        return table

    def row(self, c: int) -> Floats:
        return self._table[:, c]

    # ---------------------------------------------------------------- scores

    def _by_arrays(self) -> None:
        """Best leaves, and best two leaves, by arrays, with any number of masses."""
        score, single, totals = self.rule.score, self.single, self.totals[:, None]
        self.one_leaf = np.array([score(totals - single), score(single)], dtype=np.float64)
        self.two_leaves = np.full((2, self.n_features), -np.inf)
        for side in (0, 1):
            ones = self._table if side else single[:, None, :] - self._table
            counts = single if side else totals - single
            scores = score(ones) + score(counts[:, :, None] - ones)
            if self.apart is not None:
                scores = np.where(self.apart, -np.inf, scores)
            self.two_leaves[side] = scores.max(axis=1, initial=-np.inf)

    def _compiled(self) -> None:
        """The same by the kernels, and what the deeper levels read."""
        self.layout = spread = _layout(self.data, len(self.totals))
        channels, blocks, F, lanes = spread.table_shape
        rules = self.data.rules
        total = float(np.abs(self.data.values[0]).sum())
        self.limits = None if rules is None else spread.limits(rules.least[0], rules.apart, total)
        wide = np.zeros((channels, F, spread.width), dtype=spread.dtype)
        wide[:, :, :F] = self._table
        self.blocked = np.ascontiguousarray(wide.reshape(channels, F, blocks, lanes).transpose(0, 2, 1, 3))
        self.table_bytes = self.blocked.nbytes
        self.totals = self.totals.astype(spread.dtype)
        single = np.zeros((channels, spread.width), dtype=spread.dtype)
        single[:, :F] = self.single
        self.single = single
        scores = native.Scores.of(2, spread.width, spread.dtype)
        self.one_leaf, self.two_leaves = scores.one_leaf, scores.two_leaves
        native.pass_block(self.whole, scores, 0, self.rule.signed, self.limits)
        self.members = np.zeros(0, dtype=np.int64)

    @property
    def whole(self) -> native.Counts:
        """All counts, as the deeper levels read them."""
        return native.Counts(self.blocked, self.single, self.totals)

    @property
    def entries(self) -> native.Sets:
        """All sets, as the deeper levels read them."""
        data, depth = self.data, min(self.data.depth, 4)
        parts = [self._channels(size) for size in range(depth + 1)]
        starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])]).astype(np.int64)
        values = np.zeros((len(self.totals), int(starts[-1])), dtype=self.layout.dtype)
        for size, part in enumerate(parts):
            values[:, starts[size] : starts[size + 1]] = part
        choose = [[math.comb(column, size) for size in range(depth + 1)] for column in range(data.n_columns)]
        return native.Sets(values, starts, np.array(choose, dtype=np.int64), data.feature.astype(np.int64))


def _layout(data: TalliedData, n_channels: int) -> Layout:
    """Without entries: what kernels write to. Counts of all tallies are real numbers, which hold 53 bits exactly."""
    dtype = np.dtype(np.float64)
    lanes = lanes_of(dtype)
    width = max(1, -(-data.n_features // lanes)) * lanes
    none = np.zeros(0, dtype=np.int32)
    return Layout(
        entries=np.zeros((0, width), dtype=np.uint8),
        channel=none,
        plane=none,
        marked=np.zeros(0, dtype=np.uint8),
        signs=np.zeros(0),
        row=np.zeros(0, dtype=np.int64),
        n_rows=0,
        n_channels=n_channels,
        n_features=data.n_features,
        width=width,
        dtype=dtype,
    )
