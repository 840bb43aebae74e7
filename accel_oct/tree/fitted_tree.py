"""A fitted tree in scikit-learn's layout: parallel arrays, nodes numbered depth first from 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from accel_oct.data import BinaryDataset
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree

#: scikit-learn's constants for the child of a leaf, and for its feature and threshold.
TREE_LEAF, TREE_UNDEFINED = -1, -2

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FittedTree:
    """The attributes of ``sklearn.tree._tree.Tree`` over the *binary* features.

    A sample goes left if ``x[feature] <= threshold``; every threshold is 0.5.

    Parameters
    ----------
    class_weights : float array (node_count, n_classes)
        Training weight of each class at each node, nodes depth first.
    n_node_samples : int array (node_count,)
        Training samples at each node.
    n_features : int
        Number of binary features.
    class_counts : int array (node_count, n_classes)
        Training samples of each class at each node, without weights.
    class_factors : float array (n_classes,) or None
        Factors by which ``class_weight`` multiplied the weights of each class, if any.
    rewards : float array (node_count, n_classes) or None
        Of a policy tree: mean reward of the training samples at each node if all of them are assigned the class.
    """

    tree: DecisionTree
    class_weights: FloatArray
    n_node_samples: IntArray
    n_features: int
    class_counts: IntArray
    class_factors: FloatArray | None = None
    rewards: FloatArray | None = None

    @classmethod
    def from_training(cls, tree: DecisionTree, dataset: BinaryDataset) -> FittedTree:
        """Count the training data at every node."""
        order = np.searchsorted(tree.nodes, _depth_first(tree))
        counts = tree.class_counts(dataset)[order]
        return cls(tree, tree.class_weights(dataset)[order], counts.sum(axis=1), dataset.n_features, counts)

    # ---------------------------------------------------------------- scikit-learn's names

    @cached_property
    def heap_nodes(self) -> IntArray:
        """Number of each node in the `DecisionTree`."""
        return _depth_first(self.tree)

    @cached_property
    def _ids(self) -> IntArray:
        """Number here of each node of the `DecisionTree`."""
        ids = np.full(len(self.tree.feature) + 1, TREE_LEAF)
        ids[self.heap_nodes] = np.arange(self.node_count)
        return ids

    @property
    def node_count(self) -> int:
        return len(self.heap_nodes)

    @property
    def n_leaves(self) -> int:
        return self.tree.n_leaves

    @property
    def max_depth(self) -> int:
        return self.tree.depth

    @property
    def n_classes(self) -> IntArray:
        return np.array([self.class_weights.shape[1]])

    @property
    def max_n_classes(self) -> int:
        return int(self.class_weights.shape[1])

    @cached_property
    def children_left(self) -> IntArray:
        return self._children(0)

    @cached_property
    def children_right(self) -> IntArray:
        return self._children(1)

    @cached_property
    def feature(self) -> IntArray:
        feature = self.tree.feature[self.heap_nodes - 1]
        return np.where(feature >= 0, feature, TREE_UNDEFINED)

    @cached_property
    def threshold(self) -> FloatArray:
        return np.where(self.feature >= 0, 0.5, float(TREE_UNDEFINED))

    @cached_property
    def label(self) -> IntArray:
        """Class index that a leaf predicts, -1 at branch nodes."""
        return self.tree.label[self.heap_nodes - 1]

    @cached_property
    def weighted_n_node_samples(self) -> FloatArray:
        return np.asarray(self.class_weights.sum(axis=1))

    @cached_property
    def value(self) -> FloatArray:
        """Share of each class, (node_count, 1, n_classes); a leaf without weight has share 1 of its label."""
        total = self.weighted_n_node_samples[:, None]
        shares = np.divide(self.class_weights, total, out=np.zeros_like(self.class_weights), where=total > 0)
        empty = np.flatnonzero((total[:, 0] == 0) & (self.label >= 0))
        shares[empty, self.label[empty]] = 1.0
        return shares[:, None, :]

    @cached_property
    def plain_weights(self) -> FloatArray:
        """`class_weights` without the factors of ``class_weight``; a class of factor 0 has weight 0."""
        if self.class_factors is None:
            return self.class_weights
        return np.asarray(self.class_weights / np.where(self.class_factors > 0, self.class_factors, 1.0))

    @cached_property
    def against_majority(self) -> NDArray[np.bool_]:
        """Whether a leaf predicts a class other than the majority class of its samples, without class weights.

        Never in a policy tree, whose classes are not predictions of what the samples have.
        """
        if self.rewards is not None:
            return np.zeros(self.node_count, dtype=bool)
        weights = self.plain_weights
        own = weights[np.arange(self.node_count), np.maximum(self.label, 0)]
        return np.asarray((self.label >= 0) & (own < weights.max(axis=1) * (1 - _ROUNDING)))

    @cached_property
    def impurity(self) -> FloatArray:
        """Gini impurity."""
        return np.asarray(1.0 - (self.value[:, 0, :] ** 2).sum(axis=1))

    # ---------------------------------------------------------------- samples

    def apply(self, X: Any) -> IntArray:
        """Return the leaf of each row of binary features."""
        return self._ids[self.tree.apply(X)]

    def predict(self, X: Any) -> FloatArray:
        """Return the class shares at the leaf of each row, (n_samples, n_classes)."""
        return np.asarray(self.value[self.apply(X), 0, :])

    def decision_path(self, X: Any) -> Any:
        """Return a sparse indicator of the nodes on the path of each row, (n_samples, node_count)."""
        return csr_matrix(self.tree.route(X, self.heap_nodes), dtype=np.int64)

    def importances(self) -> FloatArray:
        """Return the total decrease of Gini impurity by each binary feature, normalised to sum 1."""
        result = np.zeros(self.n_features)
        mass = self.weighted_n_node_samples * self.impurity
        branches = np.flatnonzero(self.feature >= 0)
        gains = mass[branches] - mass[self.children_left[branches]] - mass[self.children_right[branches]]
        np.add.at(result, self.feature[branches], gains)
        return result / result.sum() if result.sum() > 0 else result

    def with_rewards(self, X: Any, rewards: FloatArray, weights: FloatArray) -> FittedTree:
        """Return the tree with the mean rewards of weighted samples with binary features X at every node."""
        at_node = self.tree.route(X, self.heap_nodes).astype(np.float64)
        total = at_node.T @ weights
        sums = at_node.T @ (rewards * weights[:, None])
        return replace(self, rewards=np.divide(sums, total[:, None], out=np.zeros_like(sums), where=total[:, None] > 0))

    def _children(self, direction: int) -> IntArray:
        inner = self.tree.feature[self.heap_nodes - 1] >= 0
        children = np.minimum(2 * self.heap_nodes + direction, len(self._ids) - 1)
        return np.where(inner, self._ids[children], TREE_LEAF)


def _depth_first(tree: DecisionTree) -> IntArray:
    found, waiting = [], [1]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if tree.feature[node - 1] >= 0:
            waiting += [2 * node + 1, 2 * node]
    return np.array(found, dtype=np.int64)
