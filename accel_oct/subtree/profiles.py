"""Score profiles: the best score for every number of leaves, of one set and of all its sides.

A profile of depth d is an array of 2**d numbers: entry h - 1 is the best score of a tree of depth at most d with at
most h leaves. Profiles do not know the leaf price, so one computation serves all of them. They add up: the profile of a
split is the max-plus convolution of the profiles of its sides.

Numbers are kept in the units of the counting tables: with two classes the sum of |d| over the leaves, which is
twice the score minus the weight; with more classes the score itself. `Units` converts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree import engine
from accel_oct.subtree.prepare import Layout, Reduced, layout
from accel_oct.subtree.workspace import Workspace

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """Conversion between table units and scores."""

    signed: bool

    def to_score(self, number: Any, weight: Any) -> Any:
        """Score of trees with this number on samples of this total weight."""
        return (number + weight) / 2 if self.signed else number

    def from_score(self, score: Any, weight: Any) -> Any:
        """The reverse."""
        return 2 * score - weight if self.signed else score

    def price(self, leaf_price: float) -> float:
        """Leaf price in table units."""
        return 2 * leaf_price if self.signed else leaf_price


def convolve(left: Array, right: Array) -> Array:
    """Max-plus convolution along the last axis: entry h - 1 is the best sum over leaves i + j = h, h >= 2.

    Entry 0 (a single leaf) is not a split and stays minus infinity.
    """
    n_left, n_right = left.shape[-1], right.shape[-1]
    result = np.full((*left.shape[:-1], n_left + n_right), -np.inf)
    for i in range(n_left):
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right, out=part)
    return result


def with_leaf(split: Array, leaf: Array) -> Array:
    """Profile from the best splits and the score of a single leaf: made monotone."""
    split[..., 0] = leaf
    return np.asarray(np.maximum.accumulate(split, axis=-1))


class PairLevel:
    """Everything about trees of depth at most two on one set: pair counts and the passes over them.

    Attributes
    ----------
    profile : (4,) profile of depth two
    one_leaf, two_leaves : (2, P) best scores of both sides of every feature with one and with two leaves
    """

    def __init__(self, data: Reduced) -> None:
        self.data = data
        self.units = Units(data.signed)
        self.n_features = data.n_features
        if engine.numba_available():
            self.layout: Layout = layout(data)
            self._count_compiled()
        else:
            self._count_numpy()
        totals = self.totals
        self.leaf = float(abs(totals[0]) if data.signed else totals.max())
        F = self.n_features
        sides = self.one_leaf[:, :F].astype(np.float64), self.two_leaves[:, :F].astype(np.float64)
        self.side_profiles = np.stack(sides, axis=-1).transpose(1, 0, 2)  # (F, 2, 2)
        split = convolve(self.side_profiles[:, 0], self.side_profiles[:, 1])
        self.profile = with_leaf(split.max(axis=0, initial=-np.inf), np.asarray(self.leaf))

    def _count_compiled(self) -> None:
        from accel_oct.subtree import levels

        spread = self.layout
        self.blocked: Array = np.zeros(spread.table_shape, dtype=spread.dtype)
        self.work = Workspace(spread)
        self.members = np.arange(spread.entries.shape[0], dtype=np.int64)
        levels.level_two(self.members, *self.work.counting(spread), self.blocked)
        self.table: Array = self._dense(self.blocked)
        self.single: Array = np.zeros((spread.n_channels, spread.width), dtype=spread.dtype)
        diagonal = np.arange(self.n_features)
        self.single[:, : self.n_features] = self.table[:, diagonal, diagonal]
        self.totals: Array = np.bincount(spread.channel, spread.signs, spread.n_channels).astype(spread.dtype)
        self.one_leaf: Array = np.zeros((2, spread.width), dtype=spread.dtype)
        self.two_leaves: Array = np.zeros((2, spread.width), dtype=spread.dtype)
        levels.pass_all(
            self.blocked, self.single, self.totals, self.one_leaf, self.two_leaves, self.n_features, self.data.signed
        )

    def weight_table(self) -> Floats:
        """Weight (F, F) of the samples with both features, whatever their class."""
        if not self.data.signed:
            return np.asarray(self.table.sum(axis=0, dtype=np.float64))
        if not engine.numba_available():
            X = self.data.X.astype(np.float64)
            return np.asarray(X.T @ (X * self.data.weights[:, None]))
        from accel_oct.subtree import levels

        spread = self.layout
        entries, channel, plane, marked, numbers, words, masks = self.work.counting(spread)
        table = np.zeros(spread.table_shape, dtype=spread.dtype)
        unmarked = np.zeros_like(marked)
        levels.level_two(self.members, entries, channel, plane, unmarked, np.abs(numbers), words, masks, table)
        return np.asarray(self._dense(table)[0], dtype=np.float64)

    def _dense(self, blocked: Array) -> Array:
        """Table (channels, F, F) without the blocks and the padding of the kernels."""
        channels, blocks, n_features, lanes = blocked.shape
        return blocked.transpose(0, 2, 1, 3).reshape(channels, n_features, blocks * lanes)[:, :, :n_features]

    def _count_numpy(self) -> None:
        data = self.data
        X = data.X.astype(np.float64)
        if data.signed:
            rewards = np.where(data.y == 1, data.weights, -data.weights)[:, None]
        else:
            rewards = data.weights[:, None] * (data.y[:, None] == np.arange(data.n_classes))
        self.table = np.stack([X.T @ (X * rewards[:, k : k + 1]) for k in range(rewards.shape[1])])
        self.single = (X.T @ rewards).T
        self.totals = rewards.sum(axis=0)
        self.one_leaf = np.zeros((2, self.n_features))
        self.two_leaves = np.zeros((2, self.n_features))
        if self.n_features == 0:
            return
        for side in (0, 1):
            here, ones = self._side(side)
            self.one_leaf[side] = self._leaf(here)
            self.two_leaves[side] = (self._leaf(ones) + self._leaf(here[:, :, None] - ones)).max(axis=1)

    def _leaf(self, counts: Array) -> Array:
        return np.asarray(np.abs(counts[0]) if self.data.signed else counts.max(axis=0))

    def _side(self, side: int) -> tuple[Array, Array]:
        """Counts (k, c) of one side of every feature c, and (k, c, b) of its part with b = 1."""
        if side == 1:
            return self.single, self.table
        return self.totals[:, None] - self.single, self.single[:, None, :] - self.table

    def tree(self, max_leaves: int) -> tuple[Ints, Ints]:
        """Heap arrays (length 7, original features, classes) of a best tree with at most `max_leaves` leaves."""
        feature = np.full(7, -1, dtype=np.int64)
        label = np.full(7, -1, dtype=np.int64)
        limit = min(max_leaves, 4)
        goal = self.profile[limit - 1]
        totals = self.totals.astype(np.float64)
        if goal == self.leaf:
            label[0] = self._label(totals)
            return feature, label
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
        return feature, label

    def _grow(self, here: Floats, c: int, side: int, leaves: int, node: int, feature: Ints, label: Ints) -> None:
        if leaves == 1:
            label[node] = self._label(here)
            return
        F = self.n_features
        ones = self.table[:, c].astype(np.float64)
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
