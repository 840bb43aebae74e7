"""Optimal scores under rules about leaves and paths, by recursion over sets of samples and columns of a path.

Deliberately plain, like `oracles.dynamic_programme`: fractions, bit masks, no merging and no bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from accel_oct.data import BinaryDataset

#: Masses of the samples, and what every leaf must have of it.
Minimum = tuple[Sequence[float], float]


def ruled_scores(
    dataset: BinaryDataset,
    max_depth: int,
    minima: Sequence[Minimum] = (),
    pairs: Sequence[tuple[int, int]] = (),
    max_leaves: int | None = None,
) -> list[float]:
    """The largest score of a tree with at most 1, 2, ... leaves that satisfies the rules; minus infinity if none.

    Empty leaves are leaves: a rule about masses decides whether they are allowed.
    """
    n_samples, n_features = dataset.X.shape
    ones = [sum(1 << i for i in range(n_samples) if dataset.X[i, feature]) for feature in range(n_features)]
    weights = [Fraction(float(weight)) for weight in dataset.weights]
    masses = [([Fraction(float(mass)) for mass in mass_of], Fraction(float(least))) for mass_of, least in minima]
    partners = {f: {g for pair in pairs for g in pair if f in pair and g != f} for f in range(n_features)}

    @cache
    def leaf(subset: int) -> Fraction | None:
        members = [i for i in range(n_samples) if subset >> i & 1]
        if any(sum(mass_of[i] for i in members) < least for mass_of, least in masses):
            return None
        totals: dict[int, Fraction] = {}
        for i in members:
            totals[int(dataset.y[i])] = totals.get(int(dataset.y[i]), Fraction(0)) + weights[i]
        return max(totals.values(), default=Fraction(0))

    @cache
    def score(subset: int, path: frozenset[int], depth: int, n_leaves: int) -> Fraction | None:
        best = leaf(subset)
        for feature in range(n_features if depth else 0):
            if partners[feature] & path:
                continue
            below = path | {feature}
            for n_zero in range(1, n_leaves):
                zero = score(subset & ~ones[feature], below, depth - 1, n_zero)
                one = score(subset & ones[feature], below, depth - 1, n_leaves - n_zero)
                if zero is not None and one is not None and (best is None or zero + one > best):
                    best = zero + one
        return best

    most = 2**max_depth if max_leaves is None else min(max_leaves, 2**max_depth)
    found = [score((1 << n_samples) - 1, frozenset(), max_depth, n) for n in range(1, most + 1)]
    return [-np.inf if value is None else float(value) for value in found]


def ruled_value(scores: Sequence[float], leaf_price: float) -> float:
    """The largest value of a tree, from the scores of all numbers of leaves."""
    return max(score - leaf_price * leaves for leaves, score in enumerate(scores, 1))
