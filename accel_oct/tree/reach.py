"""Leaves that samples reach when the columns of the user's table change within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.tree.decision_tree import DecisionTree


@dataclass(frozen=True, eq=False)
class ColumnChanges:
    """The values of the features of one column, and which of them every sample can take.

    Attributes
    ----------
    features : int array (k,)
        The features that were made from the column.
    patterns : bool array (n_patterns, k)
        Values of these features that some value of the column gives.
    first, last : int arrays (n_samples,)
        A sample takes the patterns from `first` to `last` for free, its own among them, and the others at the cost of
        one change.
    """

    features: IntArray
    patterns: BoolMatrix
    first: IntArray
    last: IntArray

    def agreeing(self, literals: Sequence[tuple[int, int]]) -> BoolArray:
        """Return which patterns (n_patterns,) have the given values of some features."""
        place = {feature: k for k, feature in enumerate(self.features.tolist())}
        allowed = np.ones(len(self.patterns), dtype=bool)
        for feature, value in literals:
            allowed &= self.patterns[:, place[feature]] == bool(value)
        return allowed

    def free(self, allowed: BoolArray) -> BoolArray:
        """Return which samples take one of the allowed patterns for free."""
        before = np.concatenate([[0], np.cumsum(allowed)])
        taken: BoolArray = before[self.last + 1] > before[self.first]
        return taken


@dataclass(frozen=True, eq=False)
class Reach:
    """The perturbed samples: every column changes within its own limits, and `budget` columns to any of their values.

    Attributes
    ----------
    X : bool array (n_samples, n_features)
        The samples as they are.
    columns : tuple of ColumnChanges
        Every feature belongs to one of them.
    budget : int
        Largest number of changes that cost.
    """

    X: BoolMatrix
    columns: tuple[ColumnChanges, ...]
    budget: int

    def changes(self, tree: DecisionTree) -> IntArray:
        """Return the number of changes that take a sample to a leaf: (n_samples, n_leaves), at most `budget` + 1.

        ``budget + 1`` means that no perturbation within the budget reaches the leaf.
        """
        found = np.zeros((len(self.X), tree.n_leaves), dtype=np.int64)
        for place, leaf in enumerate(tree.leaves.tolist()):
            for column, allowed in self._demands(tree.path(leaf)):
                if allowed.any():
                    found[:, place] += ~column.free(allowed)
                else:  # no value of the column goes this way
                    found[:, place] = self.budget + 1
        return np.minimum(found, self.budget + 1)

    def right(self, tree: DecisionTree, y: IntArray) -> BoolArray:
        """Return which samples every perturbation leaves in leaves of their class y."""
        wrong = tree.label[tree.leaves - 1][None, :] != y[:, None]
        within: BoolArray = wrong & (self.changes(tree) <= self.budget)
        right: BoolArray = np.logical_not(np.any(within, axis=1))
        return right

    def moved(self, tree: DecisionTree, samples: IntArray, leaves: IntArray) -> BoolMatrix:
        """Return perturbed samples (len(samples), n_features) that reach the given leaves with fewest changes.

        Parameters
        ----------
        samples : int array
        leaves : int array
            Node number of a leaf per sample, within reach of it.
        """
        result = self.X[samples].copy()
        for leaf in np.unique(leaves).tolist():
            here = np.flatnonzero(leaves == leaf)
            rows = samples[here]
            for column, allowed in self._demands(tree.path(leaf)):
                own = self.X[rows[:, None], column.features]
                stays = (own[:, None, :] == column.patterns[None, allowed]).all(axis=2).any(axis=1)
                every = np.arange(len(allowed))
                outside = (every < column.first[rows, None]) | (every > column.last[rows, None])
                best = np.where(allowed, outside, 2).argmin(axis=1)  # a free pattern if there is one
                moved = np.where(stays[:, None], own, column.patterns[best])
                result[here[:, None], column.features] = moved
        return result

    def _demands(self, path: Sequence[tuple[int, int]]) -> list[tuple[ColumnChanges, BoolArray]]:
        """Return the columns that a path asks, and which of their patterns follow it."""
        asked: dict[int, list[tuple[int, int]]] = {}
        for feature, value in path:
            asked.setdefault(int(self._column_of[feature]), []).append((feature, value))
        return [(self.columns[c], self.columns[c].agreeing(literals)) for c, literals in asked.items()]

    @cached_property
    def _column_of(self) -> IntArray:
        found = np.full(self.X.shape[1], -1)
        for place, column in enumerate(self.columns):
            found[column.features] = place
        return found

    # ---------------------------------------------------------------- samples that can become equal

    def meeting(self, pairs: IntArray) -> tuple[BoolArray, BoolMatrix]:
        """Return which pairs of samples (n_pairs, 2) can be perturbed into the same point, and such a point each.

        Two samples meet if the columns in which their free patterns differ are at most twice the budget: each sample
        changes half of them. The points of other pairs have no meaning.
        """
        one, other = pairs.T
        points, differing = self.X[one].copy(), np.zeros(len(pairs), dtype=np.int64)
        for column in self.columns:
            low = np.maximum(column.first[one], column.first[other])
            apart = low > np.minimum(column.last[one], column.last[other])
            # The first sample changes as long as it can pay, to a free pattern of the second.
            differing += apart
            own = np.where(differing <= self.budget, column.first[other], column.first[one])
            points[:, column.features] = column.patterns[np.where(apart, own, low)]
        return differing <= 2 * self.budget, points
