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
    """A random small case: `_small`, `_chain`, `_tied`, `_long`, `_list` or `_grid`."""
    rng = np.random.default_rng(seed)
    kinds = [_small, _small, _chain, _tied, _long, _list, _grid]
    return kinds[rng.integers(0, len(kinds))](rng)


def _small(rng: np.random.Generator) -> OrderedCase:
    """All that the search knows: limits on leaves and paths, missing values, categories, any gains, any depth."""
    max_depth: int | None = int(rng.integers(0, 5))
    n = int(rng.integers(1, 10 if max_depth == 4 else 13))
    ranks = _orders(rng, n, int(rng.integers(0, 4)), n + 1)
    gains = _gains(rng, ranks, n)
    price = float(on_grid(rng.choice([0, 0.1, 0.3, 0.5, 1, 1.5, 2])))
    limits = _limits(rng, n, len(ranks)) if rng.random() < 0.4 else None
    max_leaves = int(rng.integers(1, 7)) if rng.random() < 0.3 else None
    if price > 0 and rng.random() < 0.2:
        max_depth = None
    return OrderedCase(ranks, gains, price, max_depth, max_leaves, limits)


def _tied(rng: np.random.Generator) -> OrderedCase:
    """Many rows with few values: large groups of equal values, of several classes each."""
    n, max_depth = int(rng.integers(14, 90)), int(rng.integers(1, 4))
    ranks = _orders(rng, n, int(rng.integers(1, 4)), 5 if max_depth < 3 else 3)
    limits = _limits(rng, n, len(ranks)) if rng.random() < 0.2 else None
    return OrderedCase(ranks, _gains(rng, ranks, n), _price(rng, n), max_depth, None, limits)


def _long(rng: np.random.Generator) -> OrderedCase:
    """Many rows with many values: many thresholds, and sums around the ends of narrow counters."""
    columns = int(rng.integers(1, 4))
    n = int(rng.integers(14, [0, 290, 60, 40][columns]))
    ranks = _orders(rng, n, columns, int(rng.choice([n // 2, n, 3 * n])))[:4]
    return OrderedCase(ranks, _gains(rng, ranks, n), _price(rng, n), int(rng.integers(1, 3)), None, None)


def _list(rng: np.random.Generator) -> OrderedCase:
    """Labels by the first of some conditions that holds: deep trees with few leaves."""
    n, columns, max_depth = int(rng.integers(10, 40)), int(rng.integers(3, 6)), int(rng.integers(3, 6))
    ranks = np.array([dense_ranks(rng.random(n) < rng.uniform(0.2, 0.6)) for _ in range(columns)])
    labels = np.where(ranks.any(axis=0), ranks.argmax(axis=0), columns) % int(rng.integers(2, 4))
    labels = np.where(rng.random(n) < 0.05, 0, labels)
    price = float(on_grid(rng.choice([0.3, 1, 1.5, 2])))
    return OrderedCase(ranks, np.eye(3)[labels], price, None if rng.random() < 0.3 else max_depth, None, None)


def _grid(rng: np.random.Generator) -> OrderedCase:
    """Two columns and deep trees: every set is a rectangle, and many sets are searched again with another budget."""
    n, most = int(rng.integers(12, 40)), int(rng.integers(3, 8))
    ranks = np.array([dense_ranks(rng.integers(0, most, n)) for _ in range(2)])
    price = float(on_grid(rng.choice([0, 0.1, 0.3, 0.5, 1])))
    return OrderedCase(ranks, _gains(rng, ranks, n), price, int(rng.integers(3, 6)), None, None)


def _price(rng: np.random.Generator, n: int) -> float:
    return float(on_grid(rng.choice([0, 0.002, 0.01, 0.05]) * n))


def _orders(rng: np.random.Generator, n: int, n_columns: int, most_values: int) -> np.ndarray:
    """The orders of columns of numbers and categories, some with missing values, some constant, some repeated."""
    orders: list[np.ndarray] = []
    for place in range(n_columns):
        values = rng.integers(0, rng.integers(1, most_values + 1), n)
        if rng.random() < 0.4:
            values = np.sort(values)  # runs of one class where labels follow a column
        if rng.random() < 0.15:
            orders += [values == value for value in np.unique(values)[:4]]  # each category against the rest
        elif rng.random() < 0.2:
            missing = rng.random(n) < rng.uniform(0, 0.6)
            orders += [np.where(missing, -1, values), np.where(missing, n * most_values, values)]
        elif place and rng.random() < 0.3:
            orders.append(orders[0] if rng.random() < 0.5 else -orders[0].astype(int))
        else:
            orders.append(values)
    return np.array([dense_ranks(order) for order in orders], dtype=np.int32).reshape(len(orders), n)


def _gains(rng: np.random.Generator, ranks: np.ndarray, n: int) -> np.ndarray:
    """One to five classes; plain, or with whole or real weights, or any gains."""
    n_classes = int(rng.integers(1, 6)) if rng.random() < 0.7 else 2
    labels = rng.integers(0, n_classes, n)
    if len(ranks) and rng.random() < 0.5:
        column = ranks[rng.integers(0, len(ranks))]
        along = column * int(rng.integers(1, 4)) // max(1, int(rng.choice([1, column.max() // 3 + 1])))
        labels = np.where(rng.random(n) < rng.choice([0, 0.1, 0.5]), labels, along % n_classes)
    plain = np.eye(n_classes)[labels]
    kinds = [
        plain,
        plain,
        plain * rng.integers(1, 5, n)[:, None],
        plain * rng.integers(0, 2000, n)[:, None],
        plain * rng.random(n)[:, None],
        plain * np.exp(rng.uniform(-9, 9, n))[:, None],
        rng.integers(0, 6, (n, n_classes)).astype(float),
    ]
    return on_grid(kinds[rng.integers(0, len(kinds))])


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
    most = min(n, n if case.max_leaves is None else case.max_leaves, n if depth is None else 2**depth)
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
    masses, least = (np.zeros((n, 0)), 0) if limits is None else (limits.masses.T, limits.least)
    order = np.argsort(case.ranks, axis=1, kind="stable")
    ends = np.diff(np.take_along_axis(case.ranks, order, axis=1), axis=1) > 0
    sorted_gains, sorted_masses = case.gains[order], masses[order]

    def best_stump(rows: np.ndarray, columns: list[int]) -> float:
        """Value of the best split into two leaves; one with an empty side is no better than a leaf."""
        inside = rows[order[columns]][:, :, None]
        gains = np.cumsum(sorted_gains[columns] * inside, axis=1)
        light = np.cumsum(sorted_masses[columns] * inside, axis=1)
        values = gains.max(axis=2) + (gains[:, -1:] - gains).max(axis=2)
        allowed = (light >= least).all(axis=2) & (light[:, -1:] - light >= least).all(axis=2)
        return float(np.where((allowed[:, :-1] & ends[columns]), values[:, :-1], -math.inf).max(initial=-math.inf))

    @cache
    def best(members: bytes, depth: int, forbidden: frozenset[int], most: int | None) -> float:
        rows = np.frombuffer(members, bool)
        if (masses[rows].sum(axis=0) < least).any():
            return -math.inf
        value = float(case.gains[rows].sum(axis=0).max()) - case.price
        columns = [column for column in range(n_columns) if column not in forbidden and not apart[column, column]]
        if depth == 0 or most == 1:
            return value
        if depth == 1 or most == 2:
            return max(value, best_stump(rows, columns) - 2 * case.price)
        for column in columns:
            below = forbidden | set(np.flatnonzero(apart[column]).tolist())
            ranks = case.ranks[column]
            for threshold in np.unique(ranks[rows])[:-1]:
                left = rows & (ranks <= threshold)
                ways = [(None, None)] if most is None else [(part, most - part) for part in range(1, most)]
                for one, other in ways:
                    sides = left.tobytes(), (rows & ~left).tobytes()
                    value = max(value, best(sides[0], depth - 1, below, one) + best(sides[1], depth - 1, below, other))
        return value

    return best(
        np.ones(n, bool).tobytes(), n if case.max_depth is None else case.max_depth, frozenset(), case.max_leaves
    )
