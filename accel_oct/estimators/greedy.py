"""CART trees over orders of rows: initial trees of a search over every split, or its fallback when stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from accel_oct.encoding.auto import SEEDS, SMALL, cart_trees
from accel_oct.exact.ordered import OrderedTree
from accel_oct.solving.every_split import EverySplit

_DEPTH = 6
"""Depth of the trees if there is no depth limit."""

_MOST_CELLS = 200_000_000
"""Largest tables, in cells, on which trees are grown, on a sample of the rows."""


def is_large(space: EverySplit) -> bool:
    """Return whether trees are grown on a sample of the rows."""
    return space.ranks.size > SMALL


def greedy_trees(space: EverySplit, leaf_penalty: float) -> Iterator[OrderedTree]:
    """Yield CART trees that satisfy the constraints, with the best labels and the best pruning for the penalty.

    They are grown on all rows of a small table and on a sample of a large one. Labels and pruning are optimal on all
    rows.
    """
    gains, price = space.gains[space.rows], space.score.rows.leaf_price(leaf_penalty, space.score.norm)
    weights = gains.max(axis=1) - gains.min(axis=1)
    if not 0 < space.ranks.size <= _MOST_CELLS or not weights.any() or space.max_depth == 0:
        return
    matrix, labels = space.ranks.T.astype(np.float32), gains.argmax(axis=1)
    rows: Any = slice(None)
    if is_large(space):
        rows = np.random.default_rng(0).choice(len(matrix), max(1, SMALL // matrix.shape[1]), replace=False)
    if not weights[rows].any():
        return
    depth = _DEPTH if space.max_depth is None else space.max_depth
    for arrays in cart_trees(matrix[rows], labels[rows], weights[rows], depth, 1 if is_large(space) else SEEDS):
        tree = _pruned(arrays, matrix, gains, price)
        if space.allows(tree):
            yield tree


def _pruned(arrays: Any, matrix: Any, gains: Any, price: float) -> OrderedTree:
    """Return the best pruning of a CART tree."""
    left, right = arrays.children_left.tolist(), arrays.children_right.tolist()
    place = arrays.apply(matrix)
    sums = np.stack([np.bincount(place, part, len(left)) for part in gains.T], axis=1)
    value = np.full(len(left), -np.inf)
    for node in reversed(range(len(left))):  # children come after their parents
        if left[node] >= 0:
            sums[node] = sums[left[node]] + sums[right[node]]
        value[node] = sums[node].max() - price
        if left[node] >= 0 and value[left[node]] + value[right[node]] > value[node]:
            value[node] = value[left[node]] + value[right[node]]
        else:
            left[node] = -1
    rows: list[list[int]] = []

    def add(node: int) -> int:
        number = len(rows)
        rows.append([-1, -1, -1, -1, int(sums[node].argmax())])
        if left[node] >= 0:
            rows[number][:2] = [int(arrays.feature[node]), int(np.floor(arrays.threshold[node]))]
            rows[number][2], rows[number][3] = add(left[node]), add(right[node])
        return number

    add(0)
    return OrderedTree.of_rows(np.array(rows, dtype=np.int32))
