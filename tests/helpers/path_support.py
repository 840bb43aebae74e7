"""Paths of small trees, and the cache of subtrees at their ends."""

from __future__ import annotations

import itertools

from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, SubtreeCache
from accel_oct.formulation import TreePath


def cache_for(dataset: BinaryDataset) -> SubtreeCache:
    return SubtreeCache(DepthTwoSolver(dataset.X, dataset.y, dataset.weights, dataset.n_classes))


def all_paths(n_features: int, max_depth: int) -> list[TreePath]:
    """Every path that can end at a node of height two or more, the empty one included."""
    return [
        TreePath(end, features)
        for length in range(max(max_depth - 1, 1))
        for end in range(1 << length, 2 << length)
        for features in itertools.product(range(n_features), repeat=length)
    ]
