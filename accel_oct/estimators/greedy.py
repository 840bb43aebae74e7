"""CART trees over orders of rows: at hand whenever a search over every split is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from accel_oct.exact.ordered import OrderedTree
from accel_oct.solving.every_split import EverySplit

__all__ = ["greedy_trees"]

_CRITERIA, _SEEDS, _DEPTH = ("gini", "entropy"), 3, 6
"""Which of equally good splits CART takes is a matter of luck; the depth is that of trees without a limit."""

_SMALL, _LARGE = 2_000_000, 20_000_000
"""Cells up to which all trees are grown, and up to which there is one."""


def greedy_trees(space: EverySplit, leaf_penalty: float) -> Iterator[OrderedTree]:
    """CART trees with the best labels and prunings for the penalty; those that keep the constraints."""
    gains, price = space.gains[space.rows], space.score.rows.leaf_price(leaf_penalty, space.score.norm)
    weights = gains.max(axis=1) - gains.min(axis=1)
    if not space.ranks.size or space.ranks.size > _LARGE or not weights.any() or space.max_depth == 0:
        return
    matrix, labels = space.ranks.T.astype(np.float32), gains.argmax(axis=1)
    is_small = matrix.size <= _SMALL
    for criterion in _CRITERIA if is_small else _CRITERIA[:1]:
        for seed in range(_SEEDS if is_small else 1):
            depth = _DEPTH if space.max_depth is None else space.max_depth
            grown = DecisionTreeClassifier(criterion=criterion, max_depth=depth, random_state=seed)
            tree = _pruned(grown.fit(matrix, labels, weights).tree_, matrix, gains, price)
            if space.allows(tree):
                yield tree


def _pruned(arrays: Any, matrix: Any, gains: Any, price: float) -> OrderedTree:
    """The most valuable tree that turning branch nodes of CART's into leaves can give."""
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
