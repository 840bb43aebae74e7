"""The best tree that a rule allows, by listing every labelled tree with its value.

Independent of the library's lists: plain recursion over features and classes, superfluous splits included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree
from oracles.enumeration import to_decision_tree


def all_trees(dataset: BinaryDataset, rows: list[int], depth: int, empty: bool = True) -> list[tuple[float, int, Any]]:
    """Score, number of leaves and nested form of every labelled tree on some rows; or of those without empty leaves."""
    w, y = dataset.weights, dataset.y
    found: list[tuple[float, int, Any]] = [
        (float(sum(w[i] for i in rows if y[i] == label)), 1, label) for label in range(dataset.n_classes)
    ]
    if depth > 0:
        for feature in range(dataset.n_features):
            sides = [[i for i in rows if dataset.X[i, feature] == side] for side in (0, 1)]
            if not empty and not all(sides):
                continue
            below = [all_trees(dataset, side, depth - 1, empty) for side in sides]
            for score, leaves, zero in below[0]:
                for more, others, one in below[1]:
                    found.append((score + more, leaves + others, (feature, zero, one)))
    return found


def is_proper(nested: Any, dataset: BinaryDataset, rows: list[int]) -> bool:
    """Whether every split separates rows of positive weight, and no sibling leaves are alike."""
    if not isinstance(nested, tuple):
        return True
    feature, zero, one = nested
    if zero == one and not isinstance(zero, tuple):
        return False
    sides = [[i for i in rows if dataset.X[i, feature] == side] for side in (0, 1)]
    return all(sides) and is_proper(zero, dataset, sides[0]) and is_proper(one, dataset, sides[1])


def best_allowed(
    dataset: BinaryDataset,
    max_depth: int,
    leaf_penalty: float,
    allows: Callable[[DecisionTree, Any], bool],
    empty: bool = True,
) -> float:
    """The largest objective of a tree that `allows(tree, nested)`; minus infinity without one.

    Without `empty`, every leaf must hold a row of positive weight.
    """
    total = float(dataset.weights.sum())
    rows = list(range(dataset.n_samples)) if empty else present(dataset)
    trees = all_trees(dataset, rows, max_depth, empty)
    values = np.array([score / total - leaf_penalty * leaves for score, leaves, _ in trees])
    for place in np.argsort(-values, kind="stable").tolist():
        nested = trees[place][2]
        if allows(to_decision_tree(nested, max_depth), nested):
            return float(values[place])
    return -np.inf


def present(dataset: BinaryDataset) -> list[int]:
    """Rows of positive weight."""
    return np.flatnonzero(dataset.weights > 0).tolist()
