"""Optimal values by recursion over sample subsets, remembered by bit mask.

Deliberately plain: Python integers as sets, fractions as weights, nothing shared with the library.
Good for some tens of samples and up to depth four.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from accel_oct.data import BinaryDataset


def optimal_value(dataset: BinaryDataset, max_depth: int, leaf_price: float) -> float:
    """Largest score minus leaf_price times leaves over all trees of depth at most `max_depth`."""
    ones, leaf_score, everyone = _prepare(dataset)
    price = Fraction(leaf_price)

    @cache
    def value(subset: int, depth: int) -> Fraction:
        best = leaf_score(subset) - price
        if depth > 0:
            for mask in ones:
                best = max(best, value(subset & ~mask, depth - 1) + value(subset & mask, depth - 1))
        return best

    return float(value(everyone, max_depth))


def optimal_score(dataset: BinaryDataset, max_depth: int, max_leaves: int) -> float:
    """Largest score over all trees of depth at most `max_depth` with at most `max_leaves` leaves."""
    return optimal_scores(dataset, max_depth, min(max_leaves, 2**max_depth))[-1]


def optimal_scores(dataset: BinaryDataset, max_depth: int, max_leaves: int) -> list[float]:
    """The same for at most 1, 2, ... `max_leaves` leaves."""
    ones, leaf_score, everyone = _prepare(dataset)

    @cache
    def score(subset: int, depth: int, n_leaves: int) -> Fraction:
        best = leaf_score(subset)
        if depth > 0:
            for mask in ones:
                for n_zero in range(1, n_leaves):
                    zero = score(subset & ~mask, depth - 1, n_zero)
                    best = max(best, zero + score(subset & mask, depth - 1, n_leaves - n_zero))
        return best

    return [float(score(everyone, max_depth, n_leaves)) for n_leaves in range(1, max_leaves + 1)]


def _prepare(dataset: BinaryDataset):
    n_samples, n_features = dataset.X.shape
    ones = [sum(1 << i for i in range(n_samples) if dataset.X[i, feature]) for feature in range(n_features)]
    weights = [Fraction(float(weight)) for weight in dataset.weights]

    @cache
    def leaf_score(subset: int) -> Fraction:
        totals: dict[int, Fraction] = {}
        for i in range(n_samples):
            if subset >> i & 1:
                totals[int(dataset.y[i])] = totals.get(int(dataset.y[i]), Fraction(0)) + weights[i]
        return max(totals.values(), default=Fraction(0))

    return ones, leaf_score, (1 << n_samples) - 1
