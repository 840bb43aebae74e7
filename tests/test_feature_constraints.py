"""Rules about features and leaves that are not linear in the predictions, against all labelled trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mip_support import skip_unless_available
from oracles.instances import Instance, random_instance
from test_constraints import check

from accel_oct.constraints import (
    FeatureCosts,
    ForbiddenFeatures,
    ForbiddenPairs,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    StatisticalParity,
)

Make = Callable[[np.random.Generator, Instance], Any]


def _groups(rng: np.random.Generator, instance: Instance) -> Any:
    n_features = instance.X.shape[1]
    return None if rng.random() < 0.5 else rng.choice(["a", "b", "c"], n_features)


def max_features(rng: np.random.Generator, instance: Instance) -> Any:
    return MaxFeatures(int(rng.integers(0, 3)), _groups(rng, instance))


def feature_costs(rng: np.random.Generator, instance: Instance) -> Any:
    groups = _groups(rng, instance)
    n_groups = instance.X.shape[1] if groups is None else len(set(groups.tolist()))
    return FeatureCosts(rng.choice([0.0, 0.1, 0.2, 0.3], n_groups), groups, at_most=float(rng.choice([0.0, 0.3, 0.5])))


def forbidden_features(rng: np.random.Generator, instance: Instance) -> Any:
    n_features = instance.X.shape[1]
    return ForbiddenFeatures(np.flatnonzero(rng.random(n_features) < 0.4))


def _pairs(rng: np.random.Generator, instance: Instance) -> list[tuple[int, int]]:
    n_features = instance.X.shape[1]
    pairs = [(f, g) for f in range(n_features) for g in range(f + 1, n_features)]
    return [pair[:: rng.choice([-1, 1])] for pair in pairs if rng.random() < 0.6]


def pairs_on_path(rng: np.random.Generator, instance: Instance) -> Any:
    return ForbiddenPairs(_pairs(rng, instance))


def pairs_in_tree(rng: np.random.Generator, instance: Instance) -> Any:
    return ForbiddenPairs(_pairs(rng, instance), on="tree")


def min_leaf_weight(rng: np.random.Generator, instance: Instance) -> Any:
    if rng.random() < 0.5:
        return MinLeafWeight(amount=float(rng.choice([0.0, 0.5, 1, 2, 3])))
    return MinLeafWeight(share=float(rng.choice([0.0, 0.1, 0.2, 1 / 3, 1.0])))


def max_leaves(rng: np.random.Generator, instance: Instance) -> Any:
    return MaxLeaves(int(rng.integers(2, 4)))


def parity(rng: np.random.Generator, instance: Instance) -> Any:
    group = rng.integers(0, 2, len(instance.y))
    group[0] = 1 - group[-1]
    return StatisticalParity(group, 0.2, positive=instance.y[0]) if len(group) > 1 else MaxLeaves(2)


OWN: tuple[Make, ...] = (
    max_features,
    feature_costs,
    forbidden_features,
    pairs_on_path,
    pairs_in_tree,
    min_leaf_weight,
)


def _instance(rng: np.random.Generator, max_features: int = 3) -> Instance:
    """Three features with two classes, two with three: all labelled trees can be listed."""
    n_classes = int(rng.integers(2, 4))
    n_features = max_features if n_classes == 2 else min(max_features, 2)
    drawn = random_instance(rng, max_samples=14, max_features=n_features, max_classes=n_classes, max_depth=2)
    return replace(drawn, max_depth=int(rng.choice([1, 2, 2])))


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("backend", ["highs", "gurobi"])
@pytest.mark.parametrize("make", OWN)
def test_alone(make: Make, backend: str, preset: str) -> None:
    """Equal to enumeration: value, bound, status, and the tree keeps the rule."""
    skip_unless_available(backend)
    rng = np.random.default_rng(sum(map(ord, make.__name__ + backend + preset)))
    for _ in range(8):
        instance = _instance(rng)
        check(instance, [make(rng, instance)], backend=backend, preset=preset)


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize("make", OWN)
def test_together(make: Make, preset: str) -> None:
    """Each with another one at random, twice with itself included, a limit on leaves or parity."""
    rng = np.random.default_rng(sum(map(ord, make.__name__ + preset)))
    others = (*OWN, max_leaves, parity)
    for _ in range(8):
        instance = _instance(rng)
        other = others[int(rng.integers(len(others)))]
        check(instance, [make(rng, instance), other(rng, instance)], preset=preset)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("preset", ["default", "paper", "baseline", "bendoct:all"])
def test_together_at_length(preset: str, seed: int) -> None:
    """One to three of them, on many instances."""
    rng = np.random.default_rng([seed, len(preset)])
    makers = (*OWN, max_leaves, parity)
    for _ in range(30):
        instance = _instance(rng)
        chosen = rng.integers(0, len(makers), int(rng.integers(1, 4)))
        check(instance, [makers[place](rng, instance) for place in chosen], preset=preset)
