# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Priced sums of one set over all pairs of columns, and the best priced values that follow from them."""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import kernel
from accel_oct.subtree.kernels.arguments import Priced


@kernel
def priced_sums(points, columns, rewards):
    K, C = rewards.weights.shape[1], columns.size
    both = np.zeros((C, C, K + 1))
    totals = np.zeros(K + 1)
    ones = np.empty(C, dtype=np.int64)
    own = np.empty(K + 1)
    for p in points:
        for k in range(K):
            own[k] = rewards.weights[p, k]
        own[K] = rewards.mass[p]
        found = np.int64(0)
        for c in range(C):
            ones[found] = c
            found += np.int64(rewards.X[p, columns[c]])
        for k in range(K + 1):
            totals[k] += own[k]
        for i in range(found):
            for j in range(i, found):
                for k in range(K + 1):
                    both[ones[i], ones[j], k] += own[k]
    single = np.empty((C, K + 1))
    for c in range(C):
        for k in range(K + 1):
            single[c, k] = both[c, c, k]
            for d in range(c):
                both[c, d, k] = both[d, c, k]
    return Priced(both, single, totals)


@kernel
def leaf_value(sums, rewards):
    """Best priced value as a leaf; minus infinity where it would be too light."""
    K = sums.size - 1
    if sums[K] < rewards.least:
        return -np.inf
    best = sums[0]
    for k in range(1, K):
        best = max(best, sums[k])
    return best - rewards.leaf_price


@kernel
def half(priced, c, side, sums):
    """Sums over one side of the column at a place."""
    for k in range(sums.size):
        sums[k] = priced.single[c, k] if side else priced.totals[k] - priced.single[c, k]


@kernel
def quarters(priced, c, side, d, zero, one):
    """Sums over both sides of the column at place d, within one side of that at place c."""
    for k in range(zero.size):
        both, at_c, at_d = priced.both[c, d, k], priced.single[c, k], priced.single[d, k]
        one[k] = both if side else at_d - both
        zero[k] = at_c - both if side else priced.totals[k] - at_c - (at_d - both)


@kernel
def side_values(priced, columns, height, rewards):
    """Best priced values (C, 2, C + 1): of both sides of every column, split by another, and, last, the best of all.

    Further splits count where the height is two.
    """
    C = columns.size
    values = np.full((C, 2, C + 1), -np.inf)
    zero, one = np.empty(priced.totals.size), np.empty(priced.totals.size)
    for c in range(C):
        for side in range(2):
            half(priced, c, side, one)
            best = leaf_value(one, rewards)
            for d in range(C if height > 1 else 0):
                if d != c and not rewards.apart[columns[c], columns[d]]:
                    quarters(priced, c, side, d, zero, one)
                    value = leaf_value(zero, rewards) + leaf_value(one, rewards)
                    values[c, side, d] = value
                    best = max(best, value)
            values[c, side, C] = best
    return values
