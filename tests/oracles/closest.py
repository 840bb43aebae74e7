"""The trees near the optimum that agree most with old predictions or splits, by listing every tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


def splits(nested: Any) -> Counter[int]:
    """How often a tree splits on each feature."""
    if not isinstance(nested, tuple):
        return Counter()
    return Counter([nested[0]]) + splits(nested[1]) + splits(nested[2])


def best_labelled_trees(dataset: BinaryDataset, rows: list[int], depth: int) -> Iterator[tuple[float, int, Any]]:
    """Weight that is right, leaves and nested form of every tree whose leaves have their heaviest class.

    Every split separates the rows, and sibling leaves differ.
    """
    by_class = [
        float(dataset.weights[[row for row in rows if dataset.y[row] == k]].sum()) for k in range(dataset.n_classes)
    ]
    yield max(by_class), 1, by_class.index(max(by_class))
    for feature in range(dataset.n_features if depth else 0):
        sides = [[row for row in rows if dataset.X[row, feature] == side] for side in (0, 1)]
        if not all(sides):
            continue
        below = [list(best_labelled_trees(dataset, side, depth - 1)) for side in sides]
        for zero_right, zero_leaves, zero in below[0]:
            for one_right, one_leaves, one in below[1]:
                if isinstance(zero, tuple) or isinstance(one, tuple) or zero != one:
                    yield zero_right + one_right, zero_leaves + one_leaves, (feature, zero, one)


def most_splits(
    dataset: BinaryDataset, max_depth: int, leaf_penalty: float, within: float, old: Any
) -> tuple[float, float, float]:
    """Share of the old splits and objective of the tree that shares most, and the optimum."""
    rows = [row for row in range(dataset.n_samples) if dataset.weights[row] > 0]
    total, wanted = float(dataset.weights.sum()), splits(old)
    listed = [
        (right / total - leaf_penalty * leaves, (splits(nested) & wanted).total() / max(1, wanted.total()))
        for right, leaves, nested in best_labelled_trees(dataset, rows, max_depth)
    ]
    optimum = max(value for value, _ in listed)
    near = [(share if wanted else 1.0, value) for value, share in listed if value >= optimum - within - 2e-9]
    return *max(near), optimum
