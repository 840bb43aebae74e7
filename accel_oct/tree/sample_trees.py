"""Trees for testing statements about all trees: a sample for large problems, all trees of small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accel_oct.data.dataset import BinaryDataset
from accel_oct.tree.decision_tree import DecisionTree
from accel_oct.tree.topology import Topology

_MOST_LEAVES, _MOST_STUMPS, _RANDOM_TREES = 8, 32, 16
"""Largest numbers of single leaves, stumps and random trees of `some_trees`."""

_MOST_ROWS = 2_000_000
"""Limit on the rows that all trees of `some_trees` together classify."""

_FEWEST_TREES = 6


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

    Stumps and every second random tree have the labels of the majority.
    """
    rng = np.random.default_rng(seed)
    share = min(1.0, _MOST_ROWS / dataset.n_samples / (_MOST_LEAVES + _MOST_STUMPS + _RANDOM_TREES))

    def at_most(count: int, most: int) -> int:
        return min(count, max(_FEWEST_TREES // 3, round(share * most)))

    for label in range(at_most(dataset.n_classes, _MOST_LEAVES)):
        yield DecisionTree.leaf(label, max_depth)
    if max_depth == 0:
        return
    n_stumps = at_most(dataset.n_features, _MOST_STUMPS)
    for feature in np.linspace(0, dataset.n_features - 1, n_stumps).round().astype(np.int64).tolist():
        stump = DecisionTree.branch(feature, DecisionTree.leaf(0), DecisionTree.leaf(0))
        yield stump.with_max_depth(max_depth).relabelled(dataset)
    for place in range(at_most(_RANDOM_TREES, _RANDOM_TREES)):
        tree = _random_tree(rng, dataset, max_depth, full=place % 4 < 2)
        yield tree.relabelled(dataset) if place % 2 == 0 else tree


def _random_tree(rng: np.random.Generator, dataset: BinaryDataset, max_depth: int, *, full: bool) -> DecisionTree:
    """Return a tree with random features and labels; with `full`, all nodes above the last level branch."""
    topology = Topology(max_depth)
    feature, label = np.full((2, topology.n_nodes), -1)
    nodes = [1]
    while nodes:
        node = nodes.pop()
        if node <= topology.n_internal and (full or node == 1 or rng.random() < 0.7):
            feature[node - 1] = rng.integers(dataset.n_features)
            nodes += [2 * node, 2 * node + 1]
        else:
            label[node - 1] = rng.integers(dataset.n_classes)
    return DecisionTree(feature, label)
