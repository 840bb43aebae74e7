"""All trees that count as near-optimal on tiny data, one by one, in fractions.

A tree is nested, as in `oracles.enumeration`: ``k`` is a leaf of class k, ``(f, zero, one)`` a branch on feature f.
Every split separates samples of positive weight, and no two sibling leaves have the same class.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np

from accel_oct.data import BinaryDataset


def all_trees(X, gains, max_depth: int, labels: str = "any") -> list[tuple[Fraction, int, object]]:
    """What predictions earn, number of leaves, and the tree; `gains` (n, K) are numbers, each row is a sample."""
    rows = [tuple(bool(cell) for cell in row) for row in X]
    earned = [[Fraction(float(cell)) for cell in row] for row in gains]
    return _below(rows, earned, list(range(len(rows))), max_depth, labels)


def _below(rows, earned, here, depth, labels):
    n_classes = len(earned[0])
    sums = [sum((earned[i][k] for i in here), Fraction(0)) for k in range(n_classes)]
    allowed = range(n_classes) if labels == "any" else [sums.index(max(sums))]
    found = [(sums[k], 1, k) for k in allowed]
    for feature in range(len(rows[0]) if depth else 0):
        zero, one = [i for i in here if not rows[i][feature]], [i for i in here if rows[i][feature]]
        if not zero or not one:
            continue
        right = _below(rows, earned, one, depth - 1, labels)
        for score, leaves, tree in _below(rows, earned, zero, depth - 1, labels):
            for more, others, other in right:
                if isinstance(tree, tuple) or isinstance(other, tuple) or tree != other:
                    found.append((score + more, leaves + others, (feature, tree, other)))
    return found


def near_optimal_trees(
    dataset: BinaryDataset, max_depth: int, leaf_penalty: float, within: float, labels: str = "any"
) -> list[tuple[Fraction, int, object]]:
    """Value in units of weight, leaves and tree of all that count, with the tolerance that is documented."""
    kept = dataset.weights > 0
    gains = np.zeros((int(kept.sum()), dataset.n_classes))
    gains[np.arange(len(gains)), dataset.y[kept]] = dataset.weights[kept]
    price = Fraction(dataset.leaf_price(leaf_penalty))
    trees = [
        (score - price * leaves, leaves, tree)
        for score, leaves, tree in all_trees(dataset.X[kept], gains, max_depth, labels)
    ]
    slack = (Fraction(within) + Fraction(1e-9)) * Fraction(dataset.total_weight)
    least = max(value for value, _, _ in trees) - slack
    return [found for found in trees if found[0] >= least]


def in_order(dataset: BinaryDataset, leaf_penalty: float, trees) -> list:
    """The trees in the documented order."""
    kept = np.flatnonzero(dataset.weights > 0).tolist()
    price = Fraction(dataset.leaf_price(leaf_penalty))

    def key(here, tree):
        if not isinstance(tree, tuple):
            earned = sum((Fraction(float(dataset.weights[i])) for i in here if dataset.y[i] == tree), Fraction(0))
            return (price - earned, 1, -1, (tree,), ())
        zero, one = (key([i for i in here if dataset.X[i, tree[0]] == side], tree[1 + side]) for side in (0, 1))
        return (zero[0] + one[0], zero[1] + one[1], tree[0], zero, one)

    return sorted(trees, key=lambda tree: key(kept, tree))


def count_of_values(X, gains, leaf_price, max_depth: int) -> Counter:
    """How many trees with any labels have each value, and number of leaves: no bound, no threshold, no tree."""
    rows = [tuple(bool(cell) for cell in row) for row in X]
    earned = [[Fraction(float(cell)) for cell in row] for row in gains]
    price = Fraction(leaf_price)

    def leaves(here):
        return [sum((earned[i][k] for i in here), -price) for k in range(len(earned[0]))]

    @cache
    def counted(here, depth):
        found = Counter((value, 1) for value in leaves(here))
        for feature in range(len(rows[0]) if depth else 0):
            zero = tuple(i for i in here if not rows[i][feature])
            one = tuple(i for i in here if rows[i][feature])
            if not zero or not one:
                continue
            for (left, few), times in counted(zero, depth - 1).items():
                for (right, more), again in counted(one, depth - 1).items():
                    found[left + right, few + more] += times * again
            for left, right in zip(leaves(zero), leaves(one), strict=True):
                found[left + right, 2] -= 1
        return found

    return counted(tuple(range(len(rows))), max_depth)
