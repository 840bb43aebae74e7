"""Small instances of robust accuracy: data with ties and chains, the objective, and every perturbed point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from oracles.robust import best_robust, flipped, shifted

from accel_oct.data import BinaryDataset
from accel_oct.objectives import Robust
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class RobustInstance:
    """Data, objective, and for each sample the set of its perturbed points."""

    data: BinaryDataset
    objective: Robust
    points: list[set[tuple[int, ...]]]
    max_depth: int
    leaf_penalty: float

    def best(self, allows: Callable[[DecisionTree], bool] = lambda tree: True) -> float:
        """The optimum, by listing every labelled tree and every perturbed sample."""
        return best_robust(self.data, self.max_depth, self.leaf_penalty, self.points, allows)


def robust_instance(rng: np.random.Generator, kind: str = "any") -> RobustInstance:
    """Return a random instance: "flips", "radius", or any of the two."""
    if kind == "any":
        kind = "flips" if rng.random() < 0.5 else "radius"
    n, n_classes = int(rng.integers(3, 11)), int(rng.choice([2, 2, 3]))
    weights = None if rng.random() < 0.6 else rng.integers(0, 4, n) + (np.arange(n) == 0)
    penalty = float(rng.choice([0.0, 0.02, 0.1]))
    y = rng.integers(0, n_classes, n)
    y[:2] = 0, 1
    if kind == "flips":
        data, objective, points = _flips(rng, y, weights)
    else:
        data, objective, points = _radius(rng, y, weights)
    # All labelled trees are listed: fewer levels where there are more classes or features.
    depth = 2 if data.n_features <= (4 if len(data.classes) == 2 else 3) else 1
    return RobustInstance(data, objective, points, depth, penalty)


def _flips(rng: np.random.Generator, y: Any, weights: Any) -> tuple[BinaryDataset, Robust, list[Any]]:
    n, budget = len(y), int(rng.integers(0, 3))
    n_features = int(rng.integers(2, 5))
    X = rng.integers(0, 2, (n, n_features)).astype(bool)
    if rng.random() < 0.5:  # labels that follow the features: robust trees with splits
        y = np.where(rng.random(n) < 0.9, X[:, 0] & X[:, -1], y).astype(int)
    data, sources = BinaryDataset.from_arrays(X, y, weights), None
    if rng.random() < 0.5:  # a column with two thresholds, or of three categories
        low = X[:, 0] | X[:, 1]
        X = np.column_stack([low, low & X[:, 1], X[:, 2:]]) if rng.random() < 0.5 else X
        sources = ("a", "a", *(f"b{f}" for f in range(n_features - 2)))
        data = replace(BinaryDataset.from_arrays(X, y, weights), sources=sources)
    points = [set(flipped(data.X, i, sources, budget)) for i in range(n)]
    return data, Robust(flips=budget), points


def _radius(rng: np.random.Generator, y: Any, weights: Any) -> tuple[BinaryDataset, Robust, list[Any]]:
    n, n_columns = len(y), int(rng.integers(1, 3))
    step = float(rng.choice([0.1, 0.25, 1.0]))
    table = rng.integers(0, 5, (n, n_columns)) * step
    if rng.random() < 0.5:
        y = np.where(rng.random(n) < 0.9, table[:, 0] > 1.5 * step, y).astype(int)
    conditions = []
    for column in range(n_columns):
        for cut in sorted(rng.choice(np.arange(1, 10), int(rng.integers(1, 4 - n_columns + 1)), replace=False)):
            between = rng.random() < 0.2
            conditions.append((column, cut / 2 * step, (cut / 2 + 1) * step if between else math.inf))
    names = [f"c{column}" for column in range(n_columns)]
    X = np.column_stack([(low <= table[:, c]) & (table[:, c] < high) for c, low, high in conditions])
    radii = [float(rng.choice([0.0, 0.5, 1.0, 1.3]) * step) for _ in names]
    if rng.random() < 0.5:
        radii = [radii[0]] * n_columns
        radius: Any = radii[0]
    else:
        radius = dict(zip(names, radii, strict=True))
    data = replace(
        BinaryDataset.from_arrays(X, y, weights),
        sources=tuple(names[c] for c, _, _ in conditions),
        numbers={name: table[:, c] for c, name in enumerate(names)},
        intervals=tuple((low, high) for _, low, high in conditions),
    )
    return data, Robust(radius=radius), [set(shifted(row, radii, conditions)) for row in table.tolist()]
