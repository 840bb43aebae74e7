"""Optimal trees over every threshold of ordered columns, by exhaustive search over sets of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from accel_oct.exact.ordered import LeafLimits, dense_ranks

BITS = 20
"""Of the grid that gains and prices lie on."""


@dataclass(frozen=True, eq=False)
class OrderedCase:
    """Samples, and what trees are allowed."""

    ranks: np.ndarray  # (columns, n)
    gains: np.ndarray  # (n, classes)
    price: float
    max_depth: int | None
    max_leaves: int | None
    limits: LeafLimits | None


def on_grid(numbers: np.ndarray | float) -> np.ndarray:
    """The nearest multiples of the step of the grid."""
    return np.ldexp(np.rint(np.ldexp(numbers, BITS)), -BITS)


def draw(seed: int) -> OrderedCase:
    """A random small case: ties, constant and repeated columns, limits, real and whole gains, chains of labels."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.2:
        return _chain(rng)
    max_depth: int | None = int(rng.integers(0, 5))
    n = int(rng.integers(1, 10 if max_depth == 4 else 13))
    n_columns, n_classes = int(rng.integers(0, 4)), int(rng.integers(1, 5))
    columns = [rng.integers(0, rng.integers(1, n + 2), n) for _ in range(n_columns)]
    if n_columns > 1 and rng.random() < 0.3:
        columns[1] = columns[0] if rng.random() < 0.5 else -columns[0]
    ranks = np.array([dense_ranks(column) for column in columns], dtype=np.int32).reshape(n_columns, n)
    labels = rng.integers(0, n_classes, n)
    if n_columns and rng.random() < 0.3:
        labels = (ranks[0] + rng.integers(0, 2, n) * (rng.random() < 0.5)) % n_classes  # alternate along a column
    plain = np.eye(n_classes)[labels]
    gains = [
        plain,
        plain * rng.integers(1, 5, n)[:, None],
        plain * rng.random(n)[:, None],
        plain * np.exp(rng.uniform(-9, 9, n))[:, None],
        rng.integers(0, 6, (n, n_classes)).astype(float),
    ][rng.integers(0, 5)]
    price = float(on_grid(rng.choice([0, 0.1, 0.3, 0.5, 1, 1.5, 2])))
    limits = _limits(rng, n, n_columns) if rng.random() < 0.4 else None
    max_leaves = int(rng.integers(1, 7)) if rng.random() < 0.3 else None
    if price > 0 and rng.random() < 0.2:
        max_depth = None
    return OrderedCase(ranks, on_grid(gains), price, max_depth, max_leaves, limits)


def _chain(rng: np.random.Generator) -> OrderedCase:
    """Labels that alternate along one column, for deep trees with many leaves."""
    n, n_classes = int(rng.integers(8, 15)), int(rng.integers(2, 4))
    values = np.sort(rng.integers(0, rng.integers(n // 2, 3 * n), n))
    labels = (np.arange(n) + (rng.random(n) < 0.2)) % n_classes
    weights = rng.integers(1, int(rng.choice([2, 4, 10])), n)
    if rng.random() < 0.5:
        weights = np.where(np.arange(n) < rng.integers(1, n), 1, 9)  # leaves are worth more at one end
    gains = np.eye(n_classes)[labels] * weights[:, None]
    max_leaves = int(n - rng.integers(0, 5)) if rng.random() < 0.7 else None
    price = float(on_grid(rng.choice([0, 0, 0.1, 0.5, 1])))
    return OrderedCase(dense_ranks(values)[None], gains, price, int(rng.integers(2, 7)), max_leaves, None)


def _best_of_one_column(case: OrderedCase) -> float:
    """The same for one column without limits on leaves, by a dynamic programme over intervals."""
    ranks = case.ranks[0]
    n, depth = int(ranks.max()) + 1, case.max_depth
    most = n if case.max_leaves is None else min(n, case.max_leaves)
    sums = np.zeros((n + 1, case.gains.shape[1]))
    np.add.at(sums, ranks + 1, case.gains)
    sums = sums.cumsum(axis=0)
    # best[q, i, j]: of the values i to j - 1, with at most q + 1 leaves
    best = np.broadcast_to((sums[None] - sums[:, None]).max(axis=2) - case.price, (most, n + 1, n + 1)).copy()
    for _ in range(n if depth is None else depth):
        deeper = best.copy()
        for left in range(most):
            for right in range(most - left - 1):
                for k in range(1, n):
                    pairs = best[left, :k, k, None] + best[right, k, None, k + 1 :]
                    np.maximum(deeper[left + right + 1, :k, k + 1 :], pairs, out=deeper[left + right + 1, :k, k + 1 :])
        best = np.maximum.accumulate(deeper, axis=0)
    return float(best[-1, 0, n])


def _limits(rng: np.random.Generator, n: int, n_columns: int) -> LeafLimits:
    n_masses = int(rng.integers(0, 3))
    apart = None
    if n_columns and rng.random() < 0.5:
        apart = rng.random((n_columns, n_columns)) < 0.3
        apart |= apart.T
    return LeafLimits(rng.integers(0, 3, (n_masses, n)), rng.integers(0, 4, n_masses), apart)


def best_value(case: OrderedCase) -> float:
    """Score minus leaf prices of the best tree; minus infinity where no tree is allowed."""
    n_columns, n = case.ranks.shape
    limits = case.limits
    if n_columns == 1 and limits is None:
        return _best_of_one_column(case)
    apart = np.zeros((n_columns, n_columns), bool) if limits is None or limits.apart is None else limits.apart

    @cache
    def best(members: frozenset[int], depth: int, forbidden: frozenset[int], most: int | None) -> float:
        rows = sorted(members)
        if limits is not None and (limits.masses[:, rows].sum(axis=1) < limits.least).any():
            return -math.inf
        value = float(case.gains[rows].sum(axis=0).max()) - case.price
        if depth == 0 or most == 1:
            return value
        for column in range(n_columns):
            if column in forbidden or apart[column, column]:
                continue
            below = forbidden | set(np.flatnonzero(apart[column]).tolist())
            ranks = case.ranks[column]
            for threshold in sorted({int(ranks[row]) for row in rows})[:-1]:
                left = frozenset(row for row in rows if ranks[row] <= threshold)
                ways = [(None, None)] if most is None else [(part, most - part) for part in range(1, most)]
                for one, other in ways:
                    sides = best(left, depth - 1, below, one), best(members - left, depth - 1, below, other)
                    value = max(value, sum(sides))
        return value

    return best(frozenset(range(n)), n if case.max_depth is None else case.max_depth, frozenset(), case.max_leaves)
