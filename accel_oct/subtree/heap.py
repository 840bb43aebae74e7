"""Trees as heap-order arrays: building blocks for the searches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.prepare import Reduced

Ints = NDArray[np.int64]
TreeArrays = tuple[Ints, Ints]
"""Branch features and leaf classes in heap order, -1 where a node is not one."""


def leaf_arrays(label: int, depth: int = 0) -> TreeArrays:
    """A single leaf, in arrays for this depth."""
    feature = np.full(2 ** (depth + 1) - 1, -1, dtype=np.int64)
    labels = feature.copy()
    labels[0] = label
    return feature, labels


def join(feature: int, zero: TreeArrays, one: TreeArrays) -> TreeArrays:
    """Tree with this root feature and these two subtrees."""
    depth = max(depth_of(zero), depth_of(one))
    root = leaf_arrays(-1, depth + 1)
    root[0][0] = feature
    for child, subtree in ((1, zero), (2, one)):
        for target, source in zip(root, resized(subtree, depth), strict=True):
            for level in range(depth + 1):
                start = (child + 1) * 2**level - 1
                target[start : start + 2**level] = source[2**level - 1 : 2 ** (level + 1) - 1]
    return root


def resized(tree: TreeArrays, depth: int) -> TreeArrays:
    """The same tree in arrays for another depth that still holds it."""
    size = 2 ** (depth + 1) - 1
    if tree[0].size >= size:
        return tree[0][:size], tree[1][:size]
    padding = np.full(size - tree[0].size, -1, dtype=np.int64)
    return np.concatenate([tree[0], padding]), np.concatenate([tree[1], padding])


def depth_of(tree: TreeArrays) -> int:
    """Depth the arrays are made for."""
    return int(tree[0].size + 1).bit_length() - 2


def split_on(data: Reduced, column: int, zero: TreeArrays, one: TreeArrays) -> TreeArrays:
    """Tree that splits on a reduced column; undoes the column's flip."""
    if data.flipped[column]:
        zero, one = one, zero
    return join(int(data.feature[column]), zero, one)


def score_of(tree: TreeArrays, X: NDArray[np.bool_], y: Ints, weights: NDArray[np.float64]) -> float:
    """Total weight classified correctly."""
    feature, label = tree
    node = np.zeros(y.size, dtype=np.int64)
    for _ in range(depth_of(tree)):
        active = np.flatnonzero(feature[node] >= 0)
        if active.size == 0:
            break
        node[active] = 2 * node[active] + 1 + X[active, feature[node[active]]]
    return float(weights[label[node] == y].sum())


def leaves_of(tree: TreeArrays) -> int:
    """Number of leaves."""
    return int(np.count_nonzero(tree[1] >= 0))
