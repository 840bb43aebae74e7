"""First trees of depth at most two by matrix products: one product for both sides of every root.

Shares no code with the library. Sums of weights must be exact in floating point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Nested = int | tuple[int, "Nested", "Nested"]


class FirstTree(NamedTuple):
    """Value, best scores with at most one, two, ... leaves, and the tree: a class, or (feature, zero, one)."""

    value: float
    scores: list[float]
    tree: Nested


def first_tree(
    X: NDArray[np.bool_], y: NDArray[np.int64], weights: Floats, n_classes: int, leaf_price: float, depth: int
) -> FirstTree:
    """The first of the best trees: a leaf before a branch, then by class or feature, then by the sides."""
    rewards = weights[:, None] * (y[:, None] == np.arange(n_classes))
    return _first(X, rewards, leaf_price, depth)


def _first(X: NDArray[np.bool_], rewards: Floats, leaf_price: float, depth: int) -> FirstTree:
    sums = rewards.sum(axis=0)
    leaf = FirstTree(float(sums.max()) - leaf_price, [float(sums.max())] * 2**depth, int(sums.argmax()))
    if depth == 0 or X.shape[1] == 0:
        return leaf
    if depth == 1:
        ones = X.T.astype(float) @ rewards
        zeros = sums - ones
        scores = zeros.max(axis=1) + ones.max(axis=1)
        root = int(scores.argmax())
        stump = (root, int(zeros[root].argmax()), int(ones[root].argmax()))
        branch = FirstTree(float(scores[root]) - 2 * leaf_price, [leaf.scores[0], float(scores[root])], stump)
    else:
        branch = leaf
        for root in range(X.shape[1]):
            side = X[:, root]
            zero, one = (_first(X[rows], rewards[rows], leaf_price, depth - 1) for rows in (~side, side))
            scores_here = list(branch.scores)
            for m, score in enumerate(zero.scores):
                for n, other in enumerate(one.scores):
                    scores_here[m + n + 1] = max(scores_here[m + n + 1], score + other)
            value, tree = zero.value + one.value, (root, zero.tree, one.tree)
            branch = (
                FirstTree(value, scores_here, tree) if value > branch.value else branch._replace(scores=scores_here)
            )
    most = np.maximum.accumulate(np.maximum(leaf.scores, branch.scores)).tolist()
    return (leaf if leaf.value >= branch.value else branch)._replace(scores=most)
