# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled gains of one set over all pairs of columns, in whole numbers, and the best values that follow from them.

The same in NumPy: `accel_oct.near_optimal.values`.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel, popcount64


@entry_point
def pair_gains(words, masks, label, plane, n_classes):
    """Gains (K, C, C) over the points that have both of two columns.

    `words` (C, W) has the points of every column as bits. Gains are given in binary digits: where ``masks[m]`` has a
    bit, class ``label[m]`` gains two to the power of ``plane[m]``.
    """
    C, W = words.shape
    result = np.zeros((n_classes, C, C), dtype=np.int64)
    own = np.empty((C, W), dtype=np.uint64)
    for m in range(label.size):
        n_words = 0
        for w in range(W):
            if masks[m, w] != 0:  # sets of points that are sorted have few words
                for c in range(C):
                    own[c, n_words] = words[c, w] & masks[m, w]
                n_words += 1
        for c in range(C):
            for d in range(c, C):
                found = np.uint64(0)
                for w in range(n_words):
                    found += popcount64(own[c, w] & own[d, w])
                result[label[m], c, d] += np.int64(found) << plane[m]
    for k in range(n_classes):
        for c in range(C):
            for d in range(c):
                result[k, c, d] = result[k, d, c]
    return result


@kernel
def _different(zero, one, any_label, none):
    """Largest sum of the gains of two different classes on two sides."""
    i, j = 0, 0
    for k in range(1, zero.size):
        if zero[k] > zero[i]:
            i = k
        if one[k] > one[j]:
            j = k
    if i != j:
        return zero[i] + one[j]
    best = none
    for k in range(zero.size if any_label else 0):
        if k != i:
            best = max(best, zero[k] + one[j], zero[i] + one[k])
    return best


@entry_point
def two_sides(both, totals, price, any_label, none):
    """Best values (3, C) of trees of depth at most one on both sides of every column, and of both with the column.

    The last are of trees in which no two sibling leaves have the same class; `none` stands for no such tree.
    """
    K, C = both.shape[0], both.shape[1]
    result = np.empty((3, C), dtype=np.int64)
    zero, one = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    branched, best = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for c in range(C):
        for side in range(2):
            branched[side] = none
            top = np.int64(0)
            for k in range(K):
                top = max(top, both[k, c, c] if side else totals[k] - both[k, c, c])
            for d in range(C):
                left, right = np.int64(0), np.int64(0)
                for k in range(K):
                    one[k] = both[k, c, d] if side else both[k, d, d] - both[k, c, d]
                    zero[k] = (both[k, c, c] if side else totals[k] - both[k, c, c]) - one[k]
                    left += zero[k]
                    right += one[k]
                if left > 0 and right > 0:
                    branched[side] = max(branched[side], _different(zero, one, any_label, none) - 2 * price)
            best[side] = max(top - price, branched[side])
        for k in range(K):
            one[k] = both[k, c, c]
            zero[k] = totals[k] - one[k]
        split = max(branched[0] + best[1], best[0] + branched[1])
        split = max(split, _different(zero, one, any_label, none) - 2 * price)
        result[0, c], result[1, c], result[2, c] = best[0], best[1], max(split, none)
    return result
