"""The best tree under a rule that every path from the root satisfies, by plain recursion over features and classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_oct.data import BinaryDataset
from oracles.ruled_trees import present

Path = tuple[int, ...]


def best_on_paths(dataset: BinaryDataset, max_depth: int, leaf_penalty: float, allows: Callable[[Path], bool]) -> float:
    """The largest objective of a tree whose splits separate samples and whose paths, and their beginnings, are allowed.

    `allows` takes the features of a path from the root on.
    """
    weights, total = dataset.weights, float(dataset.weights.sum())

    def best(rows: list[int], path: Path) -> float:
        sums = np.bincount(dataset.y[rows], weights[rows], dataset.n_classes)
        found = float(sums.max()) / total - leaf_penalty
        for feature in range(dataset.n_features if len(path) < max_depth else 0):
            sides = [[i for i in rows if dataset.X[i, feature] == side] for side in (0, 1)]
            if all(sides) and allows((*path, feature)):
                found = max(found, sum(best(side, (*path, feature)) for side in sides))
        return found

    return best(present(dataset), ())
