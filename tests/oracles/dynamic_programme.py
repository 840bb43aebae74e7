"""Optimal values by recursion over sample subsets, remembered by bit mask.

Deliberately plain: Python integers as sets and, in units of a common denominator, as weights; nothing shared with the
library. Good for some tens of samples and up to depth four.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from accel_oct.data import BinaryDataset


def optimal_value(dataset: BinaryDataset, max_depth: int, leaf_price: float) -> float:
    """Largest score minus leaf_price times leaves over all trees of depth at most `max_depth`."""
    splits, leaf_score, everyone, unit = _prepare(dataset, Fraction(leaf_price))
    price = int(Fraction(leaf_price) * unit)

    @cache
    def value(subset: int, depth: int) -> int:
        best = leaf_score(subset) - price
        if depth > 0:
            for mask in splits:
                one = subset & mask
                if one and one != subset:
                    best = max(best, value(subset ^ one, depth - 1) + value(one, depth - 1))
        return best

    return float(Fraction(value(everyone, max_depth), unit))


def optimal_score(dataset: BinaryDataset, max_depth: int, max_leaves: int) -> float:
    """Largest score over all trees of depth at most `max_depth` with at most `max_leaves` leaves."""
    return optimal_scores(dataset, max_depth, min(max_leaves, 2**max_depth))[-1]


def optimal_scores(dataset: BinaryDataset, max_depth: int, max_leaves: int) -> list[float]:
    """The same for at most 1, 2, ... `max_leaves` leaves."""
    splits, leaf_score, everyone, unit = _prepare(dataset)

    @cache
    def score(subset: int, depth: int, n_leaves: int) -> int:
        best = leaf_score(subset)
        if depth > 0:
            for mask in splits:
                one = subset & mask
                if one and one != subset:
                    for n_zero in range(1, n_leaves):
                        zero = score(subset ^ one, depth - 1, n_zero)
                        best = max(best, zero + score(one, depth - 1, n_leaves - n_zero))
        return best

    scores = [score(everyone, max_depth, n_leaves) for n_leaves in range(1, max_leaves + 1)]
    return [float(Fraction(found, unit)) for found in scores]


def _prepare(dataset: BinaryDataset, *numbers: Fraction) -> tuple[list[int], Callable[[int], int], int, int]:
    """Samples that have each feature, the score of a subset as a leaf, all samples, and the unit of scores."""
    n_samples, n_features = dataset.X.shape
    splits = {sum(1 << i for i in range(n_samples) if dataset.X[i, feature]) for feature in range(n_features)}
    weights = [Fraction(float(weight)) for weight in dataset.weights]
    unit = math.lcm(*(number.denominator for number in (*weights, *numbers)))
    units = [int(weight * unit) for weight in weights]
    # Per class and weight: samples, so that a leaf is a few bit counts.
    groups: dict[int, dict[int, int]] = {}
    for i, (label, weight) in enumerate(zip(dataset.y.tolist(), units, strict=True)):
        own = groups.setdefault(label, {})
        own[weight] = own.get(weight, 0) | 1 << i

    @cache
    def leaf_score(subset: int) -> int:
        sums = (sum(weight * (subset & mask).bit_count() for weight, mask in own.items()) for own in groups.values())
        return max(sums, default=0)

    return sorted(splits), leaf_score, (1 << n_samples) - 1, unit
