"""The tree near the optimum that agrees most with old predictions, by listing every labelled tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from oracles.ruled_trees import all_trees


def predicted(nested: Any, X: Any) -> list[int]:
    """Class index of every row."""

    def follow(node: Any, row: Any) -> int:
        while isinstance(node, tuple):
            node = node[2] if row[node[0]] else node[1]
        return int(node)

    return [follow(nested, row) for row in X]


def closest(
    dataset: BinaryDataset,
    max_depth: int,
    leaf_penalty: float,
    within: float,
    old: Sequence[int],
    allows: Callable[[Sequence[int], int], bool] = lambda predictions, leaves: True,
) -> tuple[float, float, float] | None:
    """Agreement and objective of the tree, and the optimum; None without a tree.

    `allows` takes the predictions and the number of leaves.
    """
    total, weights = float(dataset.weights.sum()), dataset.weights
    found: dict[tuple[int, ...], int] = {}
    for _, leaves, nested in all_trees(dataset, list(range(dataset.n_samples)), max_depth):
        key = tuple(predicted(nested, dataset.X))
        found[key] = min(leaves, found.get(key, leaves))  # more leaves with equal predictions are never better
    listed = []
    for key, leaves in found.items():
        if allows(key, leaves):
            right = float(weights[np.array(key) == dataset.y].sum()) / total
            agreed = float(weights[np.array(key) == np.array(old)].sum()) / total
            listed.append((agreed, right - leaf_penalty * leaves))
    if not listed:
        return None
    optimum = max(value for _, value in listed)
    near = [(agreed, value) for agreed, value in listed if value >= optimum - within - 2e-9]
    most = max(agreed for agreed, _ in near)
    return most, max(value for agreed, value in near if agreed >= most - 2e-9), optimum
