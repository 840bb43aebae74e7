"""Random constraints on features and leaves, alone and beside linear ones, and the best tree that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from oracles.instances import Instance
from oracles.outcomes import predictions

from accel_oct.constraints import FeatureCosts, ForbiddenFeatures, ForbiddenPairs, MaxFeatures, MinLeafWeight
from helpers.constraint_support import KINDS, keeps, random_constraint

Score = Callable[[tuple[int, ...]], float]
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


OWN: tuple[Make, ...] = (
    max_features,
    feature_costs,
    forbidden_features,
    pairs_on_path,
    pairs_in_tree,
    min_leaf_weight,
)


def some_constraints(rng: np.random.Generator, instance: Instance) -> list[Any]:
    """One, two or three, of any kind."""
    found = []
    for choice in rng.integers(0, len(KINDS) + 2 * len(OWN), int(rng.integers(1, 4))).tolist():
        if choice < len(KINDS):
            found.append(random_constraint(rng, KINDS[choice], instance))
        else:
            found.append(OWN[(choice - len(KINDS)) % len(OWN)](rng, instance))
    return found


def best_value_by_columns(instance: Instance, constraints: list[Any], score: Score | None = None) -> float:
    """The largest normalised value, by going through all sets of columns and all that trees on them can predict.

    `score` is what predictions are worth: accuracy by default.
    """
    dataset, n_features = instance.dataset, instance.X.shape[1]
    y, w = dataset.y.tolist(), dataset.weights.tolist()
    penalty = instance.leaf_price / sum(w) if score is None else instance.leaf_penalty
    if score is None:
        score = lambda predicted: sum(w[i] for i in range(len(y)) if predicted[i] == y[i]) / sum(w)  # noqa: E731
    minima = [
        rule.amount if rule.amount is not None else rule.share * sum(w)
        for rule in constraints
        if isinstance(rule, MinLeafWeight)
    ]
    pairs = [pair for rule in constraints if is_on_paths(rule) for pair in rule.pairs]
    others = [rule for rule in constraints if type(rule) in KINDS]

    def is_leaf(rows: tuple[int, ...]) -> bool:
        return all(sum(w[i] for i in rows) >= least - 1e-9 * sum(w) for least in minima)

    best = -np.inf
    for columns in (c for size in range(n_features + 1) for c in combinations(range(n_features), size)):
        if not all(may_use(rule, columns, n_features) for rule in constraints):
            continue
        apart = [(columns.index(f), columns.index(g)) for f, g in pairs if f in columns and g in columns]
        part = instance.X[:, list(columns)]
        for predicted, leaves, _ in predictions(part, dataset.n_classes, instance.max_depth, is_leaf, apart):
            value = score(predicted) - penalty * leaves
            if value > best and all(keeps(rule, instance, (predicted, leaves)) for rule in others):
                best = value
    return best


def is_on_paths(rule: Any) -> bool:
    return isinstance(rule, ForbiddenPairs) and rule.on == "path"


def may_use(rule: Any, columns: tuple[int, ...], n_features: int) -> bool:
    """What rules about the set of columns say."""
    if isinstance(rule, ForbiddenFeatures):
        return not set(columns) & set(rule.features)
    if isinstance(rule, ForbiddenPairs):
        return rule.on == "path" or not any(set(pair) <= set(columns) for pair in rule.pairs)
    if not isinstance(rule, (MaxFeatures, FeatureCosts)):
        return True
    names = list(range(n_features)) if rule.groups is None else list(rule.groups)
    used = {names[column] for column in columns}
    if isinstance(rule, MaxFeatures):
        return len(used) <= rule.n
    prices = dict(zip(sorted(set(names)), rule.prices, strict=True))
    return sum(prices[name] for name in used) <= rule.at_most + 1e-9
