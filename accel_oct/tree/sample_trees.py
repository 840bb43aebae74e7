"""Trees for testing statements about all trees: a sample for large problems, all trees of small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accel_oct.data.dataset import BinaryDataset, weighted_bincount
from accel_oct.support.arrays import IntArray
from accel_oct.tree.decision_tree import DecisionTree
from accel_oct.tree.topology import Topology

_MOST_LEAVES, _MOST_STUMPS, _RANDOM_TREES = 4, 16, 12
"""Largest numbers of single leaves, stumps and random trees of `some_trees`."""

_MOST_WORK = 2_000_000
"""Limit on the sum over all trees of `some_trees` of rows, or of nodes times classes if that is more."""

_FEWEST_TREES = 6

_MOST_ROWS = 128
"""Labels of the majority are those among at most this number of rows, evenly spread."""

_MOST_CELLS = 1 << 24
"""Limit on trees times nodes times classes for labels of the majority."""


def every_tree(n_features: int, n_classes: int, max_depth: int) -> Iterator[DecisionTree]:
    """Yield all labelled trees of depth at most `max_depth`.

    With F features and K classes there are T(0) = K and T(d) = K + F T(d - 1)**2 of them: 590 for three features, two
    classes and depth two.
    """
    for label in range(n_classes):
        yield DecisionTree.leaf(label, max_depth)
    if max_depth > 0:
        below = list(every_tree(n_features, n_classes, max_depth - 1))
        for feature in range(n_features):
            for zero in below:
                for one in below:
                    yield DecisionTree.branch(feature, zero, one)


def some_trees(dataset: BinaryDataset, max_depth: int, seed: int = 0) -> Iterator[DecisionTree]:
    """Leaves, stumps and random trees, fewer of each on many rows; the same for the same data and seed.

    Stumps and every second random tree have the labels of the majority. Trees are made all at once: they are compared
    with the traits of constraints before every solve, and most solves take some milliseconds.
    """
    n_nodes, n_classes, n_features = Topology(max_depth).n_nodes, dataset.n_classes, dataset.n_features
    work = max(dataset.n_samples, n_nodes * n_classes) * (_MOST_LEAVES + _MOST_STUMPS + _RANDOM_TREES)

    def at_most(count: int, most: int) -> int:
        return min(count, max(_FEWEST_TREES // 3, round(min(1.0, _MOST_WORK / work) * most)))

    for number in range(at_most(n_classes, _MOST_LEAVES)):
        yield DecisionTree.leaf(number, max_depth)
    if max_depth == 0 or n_features == 0:
        return
    n_stumps, n_random = at_most(n_features, _MOST_STUMPS), at_most(_RANDOM_TREES, _RANDOM_TREES)
    feature, label = np.full((2, n_stumps + n_random, n_nodes), -1)
    feature[:n_stumps, 0] = np.arange(n_stumps) * (n_features - 1) // max(n_stumps - 1, 1)  # evenly spread
    label[:n_stumps, 1:3] = 0
    feature[n_stumps:], label[n_stumps:] = _random_trees(n_random, n_features, n_classes, max_depth, seed)
    chosen = np.r_[:n_stumps, n_stumps : n_stumps + n_random : 2]
    label[chosen] = _majority(feature[chosen], label[chosen], dataset)
    yield from DecisionTree.rows_of(feature, label)


def _random_trees(n: int, n_features: int, n_classes: int, max_depth: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return random features and labels (trees, nodes); in every other pair of trees all nodes above the last level
    branch."""
    rng, shape = np.random.default_rng(seed), (n, Topology(max_depth).n_nodes)
    branches = rng.random(shape) < 0.7
    branches[np.arange(n) % 4 < 2] = True
    branches[:, 0], branches[:, shape[1] // 2 :] = True, False
    exists = np.ones(shape, dtype=bool)
    for level in range(1, max_depth + 1):
        above, here = slice(2 ** (level - 1) - 1, 2**level - 1), slice(2**level - 1, 2 ** (level + 1) - 1)
        exists[:, here] = branches[:, above].repeat(2, axis=1)
        branches[:, here] &= exists[:, here]
    feature = np.where(branches, rng.integers(n_features, size=shape), -1)
    return feature, np.where(exists & ~branches, rng.integers(n_classes, size=shape), -1)


def _majority(feature: IntArray, label: IntArray, dataset: BinaryDataset) -> IntArray:
    """Return the heaviest class at every leaf of trees (trees, nodes), -1 elsewhere; the given labels of huge trees."""
    if feature.size * dataset.n_classes > _MOST_CELLS:
        return label
    rows = np.arange(0, dataset.n_samples, -(-dataset.n_samples // _MOST_ROWS))
    n_trees, n_nodes = feature.shape
    X, first_column = dataset.X[rows].ravel(), np.arange(rows.size) * dataset.n_features
    tree, node = np.arange(n_trees)[:, None], np.zeros((n_trees, rows.size), dtype=np.int64)
    for _ in range(n_nodes.bit_length() - 1):
        asked = feature[tree, node]
        node = np.where(asked >= 0, 2 * node + 1 + X[first_column + asked], node)
    cell = (tree * n_nodes + node) * dataset.n_classes + dataset.y[rows]
    weights = np.broadcast_to(dataset.weights[rows], cell.shape)
    sums = weighted_bincount(cell.ravel(), weights.ravel(), feature.size * dataset.n_classes)
    return np.where(label >= 0, sums.reshape(n_trees, n_nodes, -1).argmax(axis=2), -1)
