"""Trees of depth at most two on one set of samples, and on both sides of each of its features: profiles and bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.subtree.compiled_counts import CompiledCounts
from accel_oct.subtree.pair_counts import LeafRule, NumpyCounts, PairCounts, all_amounts
from accel_oct.subtree.profiles import Units, convolve, with_leaf
from accel_oct.subtree.reduction import Reduced, both_sides
from accel_oct.subtree.stopping import Stopper
from accel_oct.subtree.tallied_counts import TalliedCounts
from accel_oct.subtree.tallied_data import TalliedData
from accel_oct.tree import DecisionTree

Array = NDArray[Any]
Floats = NDArray[np.float64]
LevelCounts = CompiledCounts | TalliedCounts


class PairLevel:
    """Everything about trees of depth at most two on one set: pair counts and the passes over them.

    Parameters
    ----------
    data : Reduced
    stopper : Stopper, optional
        Asked between some features and the next; then what is not known yet has bounds.
    table_limit : int
        Bytes that the table of pairs may take to be kept; small ones always are. The deeper levels need it.
    depth : {1, 2}
        1: only what trees of depth one need. No pairs are counted, sides are leaves, and only the first two entries of
        the profile mean something; those are exact.

    Attributes
    ----------
    profile : (4,) best known scores of depth two
    side_profiles : (F, 2, 2) best known scores of both sides of every feature, with one and with two leaves
    exact : bool
        Whether these are the best there are; false only when stopped.
    upper_profile, side_upper : bounds on them, equal to them when exact
    compiled : CompiledCounts, TalliedCounts or None
        The counts behind all this, for the deeper levels; None under several masses.
    kept : bool
        Whether they hold the table of pairs.
    """

    def __init__(self, data: Reduced, stopper: Stopper | None = None, table_limit: int = 0, depth: int = 2) -> None:
        self.data = data
        self.units = Units(data.signed)
        self.n_features = data.n_features
        stopper = stopper or Stopper()
        self.compiled: LevelCounts | None = None
        # The kernels know one mass; several are counted by matrix products, and root features searched one by one.
        rules = data.rules
        code = depth > 1 and (rules is None or len(rules.least) == 1)
        least, apart = ((), None) if rules is None else (rules.least, rules.apart)
        self._counts: PairCounts
        if isinstance(data, TalliedData):
            self._counts = TalliedCounts(data, code)
            self.compiled = self._counts if code else None
        elif code:
            self._counts = self.compiled = CompiledCounts(data, stopper, table_limit)
        else:
            rule = LeafRule(data.signed, least)
            self._counts = NumpyCounts(data.X, all_amounts(data), rule, stopper, pairs=depth > 1, apart=apart)
        self.kept = self.compiled is not None and self.compiled.kept
        self.table_bytes = 0 if self.compiled is None else self.compiled.table_bytes
        self.totals, self.single = self._counts.totals, self._counts.single
        self.exact = depth == 1 or bool(self._counts.known.all())
        self.leaf = float(self._counts.rule.score(self.totals))
        one_leaf = self._counts.one_leaf[:, : self.n_features].astype(np.float64)
        two_leaves = np.maximum(one_leaf, self._counts.two_leaves[:, : self.n_features])
        self.side_profiles = np.stack([one_leaf, two_leaves], axis=-1).transpose(1, 0, 2)
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
        """Two leaves on a side score at most its equivalent-point bound, and at most what two leaves score on all.

        The latter under local rules too: leaves of all samples are heavier than those of a side.
        """
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
        assert self.compiled is not None
        return _dense(self.compiled.blocked)

    def weight_table(self) -> Floats:
        """Weight (F, F) of the samples with both features, whatever their class; only when `kept`."""
        if not self.data.signed:
            return np.asarray(self.table[: self.data.n_classes].sum(axis=0, dtype=np.float64))
        assert isinstance(self.compiled, CompiledCounts)
        spread, entries = self.compiled.layout, self.compiled.entries
        unsigned = replace(entries, marked=np.zeros_like(entries.marked), numbers=np.abs(entries.numbers))
        table = np.zeros(spread.table_shape, dtype=spread.dtype)
        native.level_two(self.compiled.members, unsigned, spread.words(), table, 0)
        return np.asarray(_dense(table)[0], dtype=np.float64)

    def scores(self, counts: Array) -> Array:
        """What leaves with these counts (channels, ...) are worth."""
        return self._counts.rule.score(counts)

    def tree(self, max_leaves: int) -> DecisionTree:
        """A best tree with at most `max_leaves` leaves, in the original features and in arrays for depth two."""
        limit = min(max_leaves, 4)
        goal = self.profile[limit - 1]
        if goal == self.leaf:
            return self._leaf(self.totals)
        for zero, one in ((1, 1), (1, 2), (2, 1), (2, 2)):
            sums = self.side_profiles[:, 0, zero - 1] + self.side_profiles[:, 1, one - 1]
            c = int(np.argmax(sums))
            if zero + one <= limit and sums[c] == goal:
                break
        return self.data.branch(c, self._side_tree(c, 0, zero), self._side_tree(c, 1, one)).with_max_depth(2)

    def _side_tree(self, c: int, side: int, leaves: int) -> DecisionTree:
        if leaves == 1:
            return self._leaf(self._counts.side(c, side))
        b, zeros, ones = self._counts.best_split(c, side)
        return self.data.branch(b, self._leaf(zeros), self._leaf(ones))

    def _leaf(self, counts: Array) -> DecisionTree:
        return DecisionTree.leaf(self._counts.rule.label(counts))


def _dense(blocked: Array) -> Array:
    channels, blocks, n_features, lanes = blocked.shape
    return blocked.transpose(0, 2, 1, 3).reshape(channels, n_features, blocks * lanes)[:, :, :n_features]
