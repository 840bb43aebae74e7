"""Optimal values in exact integers, fast enough for a hundred thousand instances.

Nothing is shared with the library, not even its rounding of weights to a grid: weights and penalty are taken as the
binary fractions that they are, and brought to one denominator. Sets of samples are bit masks.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from oracles.instances import Instance


class _Problem:
    """An instance as integers: `unit` of them make the total weight."""

    def __init__(self, instance: Instance) -> None:
        X, y = instance.X, instance.y
        n_samples = len(y)
        given = np.ones(n_samples) if instance.sample_weight is None else instance.sample_weight
        weights = [Fraction(float(weight)) for weight in given]
        total = sum(weights)
        price = Fraction(float(instance.leaf_penalty)) * total
        scale = lcm(price.denominator, *(weight.denominator for weight in weights))
        self.price = int(price * scale)
        self.unit = int(total * scale)
        self._weights = [int(weight * scale) for weight in weights]
        self._classes = [sum(1 << i for i in np.flatnonzero(y == label).tolist()) for label in np.unique(y)]
        columns = {sum(1 << i for i in np.flatnonzero(column).tolist()) for column in X.T}
        self.everyone = (1 << n_samples) - 1
        # A column and its complement make the same split, and so do equal columns; a constant one makes none.
        self.splits = {min(column, self.everyone ^ column) for column in columns} - {0}

    def leaf(self, subset: int) -> int:
        """Weight of the heaviest class."""
        best = 0
        for members in self._classes:
            left, weight = subset & members, 0
            while left:
                lowest = left & -left
                weight += self._weights[lowest.bit_length() - 1]
                left ^= lowest
            best = max(best, weight)
        return best


def exact_value(instance: Instance) -> float:
    """The largest objective of a tree of depth at most `max_depth`, in normalised units."""
    problem = _Problem(instance)
    price, known, leaves = problem.price, {}, {}

    def value(subset: int, depth: int) -> int:
        if (subset, depth) in known:
            return known[subset, depth]
        if subset not in leaves:
            leaves[subset] = problem.leaf(subset) - price
        best = leaves[subset]
        if depth:
            for column in problem.splits:
                one = subset & column
                if one and one != subset:  # else one side is an empty leaf, which only costs
                    best = max(best, value(one, depth - 1) + value(subset ^ one, depth - 1))
        known[subset, depth] = best
        return best

    return float(Fraction(value(problem.everyone, instance.max_depth), problem.unit))


def exact_profile(instance: Instance) -> list[float]:
    """The largest accuracy of a tree with at most 1, 2, ..., ``2**max_depth`` leaves."""
    problem = _Problem(instance)
    known: dict[tuple[int, int], list[int]] = {}

    def profile(subset: int, depth: int) -> list[int]:
        if (subset, depth) in known:
            return known[subset, depth]
        best = [problem.leaf(subset)] * 2**depth
        if depth:
            for column in problem.splits:
                one = subset & column
                if one and one != subset:
                    left, right = profile(one, depth - 1), profile(subset ^ one, depth - 1)
                    for i, first in enumerate(left):
                        for j, second in enumerate(right):
                            best[i + j + 1] = max(best[i + j + 1], first + second)
            for leaves in range(1, len(best)):
                best[leaves] = max(best[leaves], best[leaves - 1])
        known[subset, depth] = best
        return best

    return [float(Fraction(score, problem.unit)) for score in profile(problem.everyone, instance.max_depth)]


def tree_value(instance: Instance, feature: list[int], label: list[int]) -> float:
    """Objective of a tree in heap order, walked sample by sample."""
    classes = np.unique(instance.y).tolist()
    weights = [1.0] * len(instance.y) if instance.sample_weight is None else instance.sample_weight.tolist()
    score = Fraction(0)
    for x, y, weight in zip(instance.X.tolist(), instance.y.tolist(), weights, strict=True):
        node = 0
        while feature[node] >= 0:
            node = 2 * node + 1 + bool(x[feature[node]])
        if classes[label[node]] == y:
            score += Fraction(weight)
    n_leaves = sum(entry >= 0 for entry in label)
    return float(score / sum(map(Fraction, weights)) - Fraction(float(instance.leaf_penalty)) * n_leaves)
