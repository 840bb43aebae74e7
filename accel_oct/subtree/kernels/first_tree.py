# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled depth-two subroutine: counts pairs like the tables do, and reads off the first of the best trees.

The counts, and the best scores of both sides of every feature, come from the kernels of the levels. What stands here is
the reader: it walks the features in their original order, so that of equally good trees it meets the first one, in the
order that `accel_oct.subtree.d2s` explains, first.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.subtree.kernels.counts import count_pairs
from accel_oct.subtree.kernels.passes import pass_set


@entry_point
def first_tree(samples, setup, leaf_price, max_depth, feature, label):
    """Write the first best tree on some samples into arrays filled with -1; returns its value, its score, CS_1 .. CS_4.

    Numbers are in table units on the way, see `passes`.
    """
    signed, counts, scores = setup.signed, setup.counts, setup.scores
    size, weight = _list_entries(samples, setup)
    count_pairs(setup.members, size, setup.entries, setup.words, counts.table, np.int64(0), np.int64(0))
    channels, _, n_features, lanes = counts.table.shape
    for k in range(channels):
        for b in range(n_features):
            counts.single[k, b] = counts.table[k, b // lanes, b, b % lanes]
    pass_set(counts, scores, np.int64(0), np.int64(0), np.int64(0), signed)
    # A tree of depth one has no second split, so what two leaves are worth is never asked for.
    one, two = scores.one_leaf, scores.two_leaves if max_depth == 2 else scores.one_leaf
    price = 2.0 * leaf_price if signed else leaf_price
    here = np.zeros(channels)
    for k in range(channels):
        here[k] = counts.totals[k]
    cs1 = abs(here[0]) if signed else here.max()
    cs2 = cs3 = cs4 = cs1
    best, root = -np.inf, -1
    for c in range(n_features if max_depth > 0 else 0):
        zero1, one1 = np.float64(one[0, c]), np.float64(one[1, c])
        zero2, one2 = np.float64(two[0, c]), np.float64(two[1, c])
        cs2 = max(cs2, zero1 + one1)
        cs3 = max(cs3, zero1 + one2, zero2 + one1)
        cs4 = max(cs4, zero2 + one2)
        value = max(zero1 - price, zero2 - 2 * price) + max(one1 - price, one2 - 2 * price)
        if value > best:
            best, root = value, c
    cs3 = max(cs2, cs3)
    cs4 = max(cs3, cs4)
    is_leaf = cs1 - price >= best
    if signed:
        cs1, cs2, cs3, cs4 = (weight + cs1) / 2, (weight + cs2) / 2, (weight + cs3) / 2, (weight + cs4) / 2
        best = (weight + best) / 2
    if is_leaf:
        label[0] = _label(here, signed)
        return cs1 - leaf_price, cs1, cs1, cs2, cs3, cs4
    feature[0] = root
    leaves = 0
    for side in range(2):
        leaves += _place(counts, one, two, root, side, price, signed, here, feature, label)
    return best, best + leaves * leaf_price, cs1, cs2, cs3, cs4


@kernel
def _list_entries(samples, setup):
    """Entries of the samples, grouped by channel and bit, and their totals; returns how many, and their weight."""
    by_row, channel, amounts = setup.by_row, setup.entries.channel, setup.amounts
    members, totals = setup.members, setup.counts.totals
    size = np.int64(0)
    weight = 0.0
    for k in range(totals.size):
        first = size
        for bit in range(by_row.shape[1]):
            for position in range(samples.size):
                entry = by_row[samples[position], bit]
                members[size] = entry
                size += np.int64((entry >= 0) & (channel[max(entry, 0)] == k))
        total = 0.0
        for position in range(first, size):
            total += amounts[members[position]]
            weight += abs(amounts[members[position]])
        totals[k] = totals.dtype.type(total)
    return size, weight


@kernel
def _place(counts, one_leaf, two_leaves, root, side, price, signed, here, feature, label):
    """Write one child of the root: a leaf where that is as good, else its first best split; returns its leaves."""
    table, single, totals = counts.table, counts.single, counts.totals
    channels, _, n_features, lanes = table.shape
    node = 1 + side
    for k in range(channels):
        at_root = np.float64(single[k, root])
        here[k] = at_root if side else totals[k] - at_root
    goal = np.float64(two_leaves[side, root])
    if one_leaf[side, root] - price >= goal - 2 * price:
        label[node] = _label(here, signed)
        return 1
    ones = np.zeros(channels)
    for b in range(n_features):
        best_one = best_zero = 0.0
        for k in range(channels):
            x = np.float64(table[k, root // lanes, b, root % lanes])
            ones[k] = x if side else single[k, b] - x
            if signed:
                best_one, best_zero = abs(ones[k]), abs(here[k] - ones[k])
            else:
                best_one, best_zero = max(best_one, ones[k]), max(best_zero, here[k] - ones[k])
        if best_one + best_zero == goal:
            feature[node] = b
            label[2 * node + 1] = _label(here - ones, signed)
            label[2 * node + 2] = _label(ones, signed)
            break
    return 2


@kernel
def _label(counts, signed):
    """Class of a leaf, the smallest of those that are as good."""
    return np.int64(counts[0] > 0) if signed else np.argmax(counts)
