"""Robust accuracy by its definition: every perturbed sample of every tree, one by one.

Independent of the library's reach of leaves: perturbed samples are listed, and each of them follows the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree
from oracles.enumeration import enumerate_trees


def flipped(X: np.ndarray, sample: int, sources: Sequence[str] | None, budget: int) -> Iterator[tuple[int, ...]]:
    """Every point that a sample becomes when up to `budget` columns take a value that occurs."""
    names = list(range(X.shape[1])) if sources is None else list(sources)
    columns = {name: [f for f, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}
    own = X[sample].astype(int).tolist()
    for number in range(min(budget, len(columns)) + 1):
        for chosen in itertools.combinations(columns, number):
            options = []
            for name in chosen:
                features = columns[name]
                values = {tuple(row) for row in X[:, features].astype(int).tolist()}
                options.append({(0,), (1,)} if len(features) == 1 else values)
            for values in itertools.product(*options):
                point = list(own)
                for name, value in zip(chosen, values, strict=True):
                    for feature, bit in zip(columns[name], value, strict=True):
                        point[feature] = bit
                yield tuple(point)


def shifted(
    row: Sequence[float], radii: Sequence[float], conditions: Sequence[tuple[int, float, float]]
) -> Iterator[tuple[int, ...]]:
    """Every point of features ``low <= x[column] < high`` that a row of numbers becomes when its numbers move.

    A number takes its own value, both ends of its interval, and every threshold in it and just below one.
    """
    options = []
    for column, (value, radius) in enumerate(zip(row, radii, strict=True)):
        low, high = value - radius, value + radius
        ends = {end for c, a, b in conditions if c == column for end in (a, b) if np.isfinite(end)}
        near = {value, low, high, *(end for end in ends if low <= end <= high)}
        near |= {np.nextafter(end, -np.inf) for end in ends if low < end <= high}
        options.append(sorted(near))
    for values in itertools.product(*options):
        yield tuple(int(low <= values[column] < high) for column, low, high in conditions)


def robust_value(tree: DecisionTree, y: np.ndarray, weights: np.ndarray, points: list[set[tuple[int, ...]]]) -> float:
    """Share of the weight of the samples whose points are all predicted to be of their class."""
    kept = 0.0
    for sample, perturbed in enumerate(points):
        kept += float(weights[sample]) * all(_predicted(tree, point) == y[sample] for point in perturbed)
    return kept / float(weights.sum())


def best_robust(
    data: BinaryDataset,
    max_depth: int,
    leaf_penalty: float,
    points: list[set[tuple[int, ...]]],
    allows: Callable[[DecisionTree], bool] = lambda tree: True,
) -> float:
    """The largest objective of all labelled trees that are allowed."""
    every = sorted(set().union(*points))
    place = {point: k for k, point in enumerate(every)}
    X = np.array(every, dtype=bool)
    own = [np.array([place[point] for point in perturbed]) for perturbed in points]
    best = -np.inf
    for tree in filter(allows, enumerate_trees(data, max_depth, labels="all")):
        predicted = np.array([_predicted(tree, row) for row in X])
        kept = sum(float(data.weights[i]) * bool((predicted[rows] == data.y[i]).all()) for i, rows in enumerate(own))
        best = max(best, kept / data.total_weight - leaf_penalty * tree.n_leaves)
    return best


def _predicted(tree: DecisionTree, point: Sequence[int]) -> int:
    node = 1
    while tree.feature[node - 1] >= 0:
        node = 2 * node + int(point[tree.feature[node - 1]])
    return int(tree.label[node - 1])
