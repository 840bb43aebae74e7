"""All optimal trees of a small data set, smallest first.

Nested trees as in `enumeration`. The order is the library's: a leaf before a branch, then by class or feature, then by
the left subtree, then by the right one. Weights lie on a dyadic grid, so sums of floats are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from accel_oct.data import BinaryDataset


def optimal_trees(dataset: BinaryDataset, max_depth: int, leaf_price: float) -> Iterator:
    """Every tree of largest value, every labelling included, one at a time."""
    n_samples, n_features = dataset.X.shape
    weights, classes = dataset.weights.tolist(), dataset.y.tolist()
    ones = [sum(1 << i for i in range(n_samples) if dataset.X[i, f]) for f in range(n_features)]

    @cache
    def totals(subset: int) -> list[float]:
        result = [0.0] * dataset.n_classes
        for i in range(n_samples):
            if subset >> i & 1:
                result[classes[i]] += weights[i]
        return result

    @cache
    def value(subset: int, depth: int) -> float:
        best = max(totals(subset)) - leaf_price
        if depth > 0:
            best = max(best, *(value(subset & ~mask, depth - 1) + value(subset & mask, depth - 1) for mask in ones))
        return best

    def trees(subset: int, depth: int) -> Iterator:
        best = value(subset, depth)
        for label, total in enumerate(totals(subset)):
            if total - leaf_price == best:
                yield label
        if depth == 0:
            return
        for feature, mask in enumerate(ones):
            if value(subset & ~mask, depth - 1) + value(subset & mask, depth - 1) == best:
                for zero in trees(subset & ~mask, depth - 1):
                    for one in trees(subset & mask, depth - 1):
                        yield (feature, zero, one)

    return trees((1 << n_samples) - 1, max_depth)


def n_leaves(nested) -> int:
    """Leaves of a nested tree."""
    return n_leaves(nested[1]) + n_leaves(nested[2]) if isinstance(nested, tuple) else 1
