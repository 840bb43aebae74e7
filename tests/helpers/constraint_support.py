"""Random linear constraints, what they mean in plain loops, and the best tree that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from oracles.instances import WEIGHT_KINDS, Instance, chain_instance, random_instance
from oracles.outcomes import predictions

from accel_oct.constraints import (
    ConditionalParity,
    EqualisedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    Linear,
    MaxLeaves,
    PositiveBudget,
    Precision,
    PredictiveEquality,
    Recall,
    Specificity,
    StatisticalParity,
)
from accel_oct.exact.limited_points import LimitedProblem

KINDS = (
    StatisticalParity,
    EqualOpportunity,
    PredictiveEquality,
    EqualisedOdds,
    ConditionalParity,
    Recall,
    FalsePositiveRate,
    Specificity,
    Precision,
    PositiveBudget,
    MaxLeaves,
    Linear,
)
_SHARES = (0.0, 0.0, 0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5)

Tree = tuple[tuple[int, ...], int]
"""What is predicted for every row, and how many leaves do so."""


def small_instance(rng: np.random.Generator, *, max_depth: int = 4) -> Instance:
    """At least two classes and two rows, at most eight points with two classes and five with more."""
    while True:
        if rng.random() < 0.2:
            n_classes = int(rng.integers(2, 4))
            instance = chain_instance(rng, 2, n_classes=n_classes, weights=str(rng.choice(WEIGHT_KINDS)))
        else:
            instance = random_instance(rng, max_samples=16, max_features=4, max_depth=4)
        n_classes, n_points = len(set(instance.y.tolist())), len(np.unique(instance.X, axis=0))
        if n_classes >= 2 and n_points <= (8 if n_classes == 2 else 5 if n_classes == 3 else 4):
            return replace(instance, max_depth=int(rng.integers(1, max_depth + 1)))


def random_constraint(rng: np.random.Generator, kind: type, instance: Instance) -> Any:
    """With limits that bind or break often, and such that rates equal to the limit occur."""
    n, dataset = len(instance.y), instance.dataset
    positive = dataset.classes.tolist()[int(rng.integers(dataset.n_classes))]
    share = float(rng.choice([*_SHARES, rng.random()]))
    if kind is MaxLeaves:
        return MaxLeaves(int(rng.integers(1, 6)))
    if kind is PositiveBudget:
        if rng.random() < 0.5:
            return PositiveBudget(int(rng.integers(0, n)), positive, count=True)
        return PositiveBudget(share, positive)
    if kind is Linear:
        return _random_linear(rng, instance)
    if kind in (Recall, FalsePositiveRate, Specificity, Precision):
        low, high = sorted(map(float, rng.choice([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.9, 1.0, rng.random()], 2)))
        which = int(rng.integers(3))
        return kind(positive, low if which != 1 else None, high if which != 0 else None)
    group = _random_groups(rng, instance)
    if kind is ConditionalParity:
        return ConditionalParity(group, share, positive, _random_groups(rng, instance))
    return kind(group, share, positive)


def _random_groups(rng: np.random.Generator, instance: Instance) -> Any:
    column = instance.X[:, int(rng.integers(instance.X.shape[1]))]
    if rng.random() < 0.3 and 0 < column.sum() < len(column):
        return column
    group = rng.integers(0, int(rng.integers(2, 4)), len(instance.y))
    group[rng.permutation(len(group))[:2]] = 0, 1
    return np.array(["a", "b", "c"])[group] if rng.random() < 0.5 else group


def _random_linear(rng: np.random.Generator, instance: Instance) -> Linear:
    """Whole numbers times some unit, or real ones; around what some tree uses."""
    dataset = instance.dataset
    shape = (dataset.n_samples, dataset.n_classes)
    unit = float(rng.choice([1.0, 0.1, 1 / 3, 1e-12, 1e5]))
    values = rng.normal(size=shape) if rng.random() < 0.3 else rng.integers(-2, 3, shape) * unit
    labels = instance.X[:, 0] * int(rng.integers(dataset.n_classes))
    used = float(values[np.arange(len(labels)), labels].sum())
    room = float(rng.choice([0.0, 0.0, 1.0, 2.0])) * unit
    which, leaf = int(rng.integers(3)), float(rng.choice([0.0, 1.0, 0.5])) * unit
    if which == 0:
        return Linear(values, leaf, upper=used + room + 2 * leaf)
    return Linear(values, lower=used - room, upper=used + room if which == 2 else None)


def random_prices(rng: np.random.Generator, problem: LimitedProblem) -> Any:
    """None, some or all of them, from a thousandth of a sample to far too much."""
    size = problem.total_weight * 10.0 ** rng.uniform(-3, rng.choice([0.0, 0.5, 6.0]))
    return size * rng.random(problem.n_limits) * (rng.random(problem.n_limits) < rng.choice([0.5, 1.0]))


# ---------------------------------------------------------------- what constraints mean


def measured(constraint: Any, instance: Instance, tree: Tree) -> list[tuple[float, float, float, float]]:
    """What is limited: (value, lower, upper, size to which rounding is relative), in plain loops over rows."""
    predicted, n_leaves = tree
    dataset = instance.dataset
    y, w = dataset.y.tolist(), dataset.weights.tolist()
    rows = range(len(y))
    if isinstance(constraint, MaxLeaves):
        return [(n_leaves, -np.inf, constraint.n, 0.0)]
    if isinstance(constraint, Linear):
        total, size = constraint.leaves * n_leaves, 0.0
        for i in rows if constraint.predictions is not None else ():
            total += constraint.predictions[i][predicted[i]]
            size += max(map(abs, constraint.predictions[i]))
        low = -np.inf if constraint.lower is None else constraint.lower
        return [(total, low, np.inf if constraint.upper is None else constraint.upper, max(size, constraint.leaves))]
    classes = dataset.classes.tolist()
    positive = 1 if constraint.positive is None else classes.index(constraint.positive)

    def rate(among: Callable[[int], bool], of: Callable[[int], bool]) -> float | None:
        part = whole = 0.0
        for i in rows:
            if among(i):
                whole += w[i]
                part += w[i] if of(i) else 0.0
        return part / whole if whole > 0 else None

    def chosen(i: int) -> bool:
        return predicted[i] == positive

    def own(i: int) -> bool:
        return y[i] == positive

    if isinstance(constraint, PositiveBudget):
        amount = sum(w[i] for i in rows if chosen(i))
        limit = constraint.at_most if constraint.count else constraint.at_most * sum(w)
        return [(amount, -np.inf, limit, sum(w))]
    low = getattr(constraint, "at_least", None)
    high = constraint.at_most
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    value = {
        Recall: lambda: rate(own, chosen),
        FalsePositiveRate: lambda: rate(lambda i: not own(i), chosen),
        Specificity: lambda: rate(lambda i: not own(i), lambda i: not chosen(i)),
        Precision: lambda: rate(chosen, own),
    }.get(type(constraint))
    if value is not None:
        found = value()
        return [] if found is None else [(found, low, high, 1.0)]
    group = np.asarray(constraint.group).tolist()
    given = np.asarray(constraint.given).tolist() if isinstance(constraint, ConditionalParity) else [0] * len(y)
    families: list[Callable[[int], bool]] = {
        StatisticalParity: [lambda i: True],
        EqualOpportunity: [own],
        PredictiveEquality: [lambda i: not own(i)],
        EqualisedOdds: [own, lambda i: not own(i)],
        ConditionalParity: [lambda i, value=value: given[i] == value for value in sorted(set(given))],
    }[type(constraint)]
    found = []
    for family in families:
        rates = [rate(lambda i, g=g, family=family: family(i) and group[i] == g, chosen) for g in sorted(set(group))]
        rates = [value for value in rates if value is not None]
        found += [(a - b, -np.inf, high, 1.0) for a in rates for b in rates]
    return found


def keeps(constraint: Any, instance: Instance, tree: Tree) -> bool:
    """Within the tolerance that is promised."""
    return all(
        low - 1e-9 * size <= value <= high + 1e-9 * size
        for value, low, high, size in measured(constraint, instance, tree)
    )


def best_value(instance: Instance, constraints: Sequence[Any]) -> float:
    """The largest normalised value of the trees that keep them, by going through everything trees can predict."""
    dataset = instance.dataset
    y, w = dataset.y.tolist(), dataset.weights.tolist()
    best = -np.inf
    for predicted, n_leaves, _ in predictions(instance.X, dataset.n_classes, instance.max_depth):
        value = sum(w[i] for i in range(len(y)) if predicted[i] == y[i]) - instance.leaf_price * n_leaves
        if value > best and all(keeps(constraint, instance, (predicted, n_leaves)) for constraint in constraints):
            best = value
    return best / sum(w)
