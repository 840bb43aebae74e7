"""Trees of depth at most two on one set of samples, and on both sides of each of its features: profiles and bounds."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree import engine
from accel_oct.subtree.kernels.workspace import Workspace
from accel_oct.subtree.pair_counts import CompiledCounts, NumpyCounts, PairCounts
from accel_oct.subtree.profiles import Units, convolve, with_leaf
from accel_oct.subtree.reduction import Reduced, both_sides
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PairLevel:
    """Everything about trees of depth at most two on one set: pair counts and the passes over them.

    Parameters
    ----------
    data : Reduced
    stopper : Stopper, optional
        Asked between some features and the next; then what is not known yet has bounds.
    table_limit : int
        Bytes that the table of pairs may take to be kept; small ones always are. The deeper levels need it.

    Attributes
    ----------
    profile : (4,) best known scores of depth two
    side_profiles : (F, 2, 2) best known scores of both sides of every feature, with one and with two leaves
    exact : bool
        Whether these are the best there are; false only when stopped.
    upper_profile, side_upper : bounds on them, equal to them when exact
    kept : bool
        Whether `blocked`, the table of pairs, is there.
    """

    def __init__(self, data: Reduced, stopper: Stopper | None = None, table_limit: int = 0) -> None:
        self.data = data
        self.units = Units(data.signed)
        self.n_features = data.n_features
        stopper = stopper or Stopper()
        self._counts: PairCounts
        if engine.numba_available():
            self._counts = counts = CompiledCounts(data, stopper, table_limit)
            self.layout, self.members, self.blocked = counts.layout, counts.members, counts.blocked
            self.kept, self.table_bytes = counts.kept, counts.table_bytes
        else:
            self._counts = NumpyCounts(data, stopper)
            self.kept, self.table_bytes = False, 0
        self.totals, self.single = self._counts.totals, self._counts.single
        self.exact = bool(self._counts.known.all())
        self.leaf = float(self._leaf(self.totals[:, None])[0])
        F = self.n_features
        sides = (
            self._counts.one_leaf[:, :F].astype(np.float64),
            self._counts.two_leaves[:, :F].astype(np.float64),
        )
        self.side_profiles = np.stack(sides, axis=-1).transpose(1, 0, 2)
        self.profile = self._joined(self.side_profiles)
        self.side_upper = self.side_profiles if self.exact else self._side_bounds()
        self.upper_profile = self.profile
        if not self.exact:
            ceiling = self.units.from_score(data.row_ceiling.sum(), data.total_weight)
            self.upper_profile = np.maximum(self.profile, np.minimum(self._joined(self.side_upper), ceiling))

    def _joined(self, sides: Floats) -> Floats:
        """Profile of depth two from those of all sides."""
        split = convolve(sides[:, 0], sides[:, 1])
        return with_leaf(split.max(axis=0, initial=-np.inf), np.asarray(self.leaf))

    def _side_bounds(self) -> Floats:
        """Two leaves on a side score at most its equivalent-point bound, and at most what two leaves score on all."""
        data, unknown = self.data, ~self._counts.known
        best = self.units.to_score(self.profile[1], data.total_weight)
        scores = np.minimum(both_sides(data.row_ceiling, data.X), best)
        numbers = np.asarray(self.units.from_score(scores, both_sides(data.weights, data.X)))
        bounds = self.side_profiles.copy()
        bounds[unknown, :, 1] = np.maximum(bounds[unknown, :, 1], numbers[unknown])
        return bounds

    @cached_property
    def table(self) -> Array:
        """The table (channels, F, F) without the blocks and the padding of the kernels; only when `kept`."""
        return self._dense(self.blocked)

    def weight_table(self) -> Floats:
        """Weight (F, F) of the samples with both features, whatever their class; only when `kept`."""
        if not self.data.signed:
            return np.asarray(self.table.sum(axis=0, dtype=np.float64))
        levels = engine.compiled_levels()
        spread = self.layout
        entries, channel, plane, marked, numbers, words, masks = Workspace(spread).counting(spread)
        table = np.zeros(spread.table_shape, dtype=spread.dtype)
        unmarked = np.zeros_like(marked)
        levels.level_two(self.members, entries, channel, plane, unmarked, np.abs(numbers), words, masks, table, 0)
        return np.asarray(self._dense(table)[0], dtype=np.float64)

    def _dense(self, blocked: Array) -> Array:
        channels, blocks, n_features, lanes = blocked.shape
        return blocked.transpose(0, 2, 1, 3).reshape(channels, n_features, blocks * lanes)[:, :, :n_features]

    def _leaf(self, counts: Array) -> Array:
        return np.asarray(np.abs(counts[0]) if self.data.signed else counts.max(axis=0))

    def tree(self, max_leaves: int) -> DecisionTree:
        """A best tree with at most `max_leaves` leaves, in the original features and in arrays for depth two."""
        feature = np.full(7, -1, dtype=np.int64)
        label = np.full(7, -1, dtype=np.int64)
        limit = min(max_leaves, 4)
        goal = self.profile[limit - 1]
        totals = self.totals.astype(np.float64)
        if goal == self.leaf:
            label[0] = self._label(totals)
            return DecisionTree(feature, label)
        splits = [(1, 1), (1, 2), (2, 1), (2, 2)]
        for zero, one in splits:
            sums = self.side_profiles[:, 0, zero - 1] + self.side_profiles[:, 1, one - 1]
            c = int(np.argmax(sums))
            if zero + one <= limit and sums[c] == goal:
                break
        flip = bool(self.data.flipped[c])
        feature[0] = self.data.feature[c]
        at_c = self.single[:, c].astype(np.float64)
        for side, leaves in ((0, zero), (1, one)):
            node = 1 + (side ^ flip)
            here = at_c if side else totals - at_c
            self._grow(here, c, side, leaves, node, feature, label)
        return DecisionTree(feature, label)

    def _grow(self, here: Floats, c: int, side: int, leaves: int, node: int, feature: Ints, label: Ints) -> None:
        if leaves == 1:
            label[node] = self._label(here)
            return
        F = self.n_features
        ones = self._counts.row(c)
        if side == 0:
            ones = self.single[:, :F] - ones
        zeros = here[:, None] - ones
        b = int(np.argmax(self._leaf(ones) + self._leaf(zeros)))
        flip = int(self.data.flipped[b])
        feature[node] = self.data.feature[b]
        label[2 * node + 1 + flip] = self._label(zeros[:, b])
        label[2 * node + 2 - flip] = self._label(ones[:, b])

    def _label(self, counts: Array) -> int:
        return int(counts[0] > 0) if self.data.signed else int(np.argmax(counts))
