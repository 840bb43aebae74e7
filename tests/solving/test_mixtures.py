"""Mixtures of constraints of every kind, under accuracy and robust accuracy, against a list of all trees.

The constraints of an instance are drawn from those with tables, prices, sets of features, single roots and lists of
trees behind them, so every phase meets what only the others support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.ruled_trees import all_trees

import accel_oct
from accel_oct.constraints import (
    Constraint,
    FirstSplit,
    ForbiddenPairs,
    InteractionGroups,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    Monotone,
    PredictionRule,
    Recall,
    SplitOrder,
    StatisticalParity,
    TreeRule,
    bind_all,
)
from accel_oct.data import BinaryDataset
from accel_oct.objectives import Accuracy, Robust
from accel_oct.tree import DecisionTree

TOLERANCE = 1e-6
"""Branch and cut decides some of the instances."""


def _constraints(rng: np.random.Generator, X: Any) -> list[Constraint]:
    n, n_features = X.shape
    group = X[:, 0] if np.unique(X[:, 0]).size == 2 else np.arange(n) % 2
    kinds: list[Callable[[], Constraint]] = [
        lambda: Monotone(int(rng.integers(n_features)), rng.choice(["increasing", "decreasing"])),
        lambda: FirstSplit([int(rng.integers(n_features))]),
        lambda: SplitOrder([0], [1]),
        lambda: InteractionGroups("no_interactions"),
        lambda: InteractionGroups([[place, (place + 1) % n_features] for place in range(n_features)]),
        lambda: MaxLeaves(int(rng.integers(1, 4))),
        lambda: MinLeafWeight(samples=int(rng.integers(1, 4))),
        lambda: StatisticalParity(group, float(rng.choice([0.0, 0.2, 0.4]))),
        lambda: Recall(at_least=float(rng.choice([0.5, 0.8]))),
        lambda: MaxFeatures(1),
        lambda: ForbiddenPairs([(0, 1)]),
        lambda: TreeRule(lambda tree, data: tree.n_leaves % 2 == 0, "even", reads=set()),
        lambda: PredictionRule(lambda predicted, data: bool((predicted == 1).mean() <= 0.7), "few"),
    ]
    chosen = rng.choice(len(kinds), int(rng.integers(1, 4)), replace=False)
    return [kinds[place]() for place in chosen.tolist()]


def _data(rng: np.random.Generator) -> BinaryDataset:
    while True:
        n, n_features = int(rng.integers(4, 11)), int(rng.integers(2, 4))
        X, y = rng.integers(0, 2, (n, n_features)), rng.integers(0, 2, n)
        weights = rng.choice([1.0, 2.0, 0.5, 0.0], n) if rng.random() < 0.4 else np.ones(n)
        if np.unique(y[weights > 0]).size == 2:
            return BinaryDataset.from_arrays(X.astype(bool), y, weights)


@pytest.mark.daily(60, slow=120)
@pytest.mark.parametrize("seed", range(600))
def test_mixtures_agree_with_a_list_of_all_trees(seed: int) -> None:
    """Status, objective, tree and every row of the history."""
    rng = np.random.default_rng(seed)
    data = _data(rng)
    depth, penalty = int(rng.integers(1, 3)), float(rng.choice([0.0, 0.02, 0.05, 0.1]))
    objective = Robust(flips=int(rng.integers(0, 3))) if rng.random() < 0.35 else Accuracy()
    constraints = _constraints(rng, data.X)
    score, bound = objective.bind(data), bind_all(constraints, data)
    best = -np.inf
    for *_, nested in all_trees(data, list(range(data.n_samples)), depth):
        tree = DecisionTree.from_nested(nested, depth)
        value = score.value(tree) - penalty * tree.n_leaves
        if value > best and all(each.violation(tree) <= 0 for each in bound):
            best = value
    result = accel_oct.solve(
        *(data.X, data.y),
        sample_weight=data.weights,
        max_depth=depth,
        leaf_penalty=penalty,
        constraints=constraints,
        objective=objective,
    )
    if best == -np.inf:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal" and result.tree is not None
    assert result.objective == pytest.approx(best, abs=TOLERANCE)
    assert all(each.violation(result.tree) <= 0 for each in bound)
    for row in result.history:
        assert row.objective <= best + TOLERANCE and best <= row.bound + TOLERANCE
