"""All trees that count as near-optimal on tiny data, one by one, in fractions.

A tree is nested, as in `oracles.enumeration`: ``k`` is a leaf of class k, ``(f, zero, one)`` a branch on feature f.
Every split separates samples of positive weight, and no two sibling leaves have the same class.
"""

from __future__ import annotations

from fractions import Fraction

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


def places(trees) -> dict[object, tuple]:
    """For every tree its place in the documented order: as a key to sort by."""
    return {tree: (-value, leaves) for value, leaves, tree in trees}
