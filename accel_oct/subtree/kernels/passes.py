# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled max-plus passes: from tables of pair counts to the best leaf and the best two leaves of every set.

A pass looks at sets of samples S and, for all features c at once (the lanes), at both sides of S under c. For each of
these it writes `one_leaf` (the score as a leaf) and `two_leaves` (the best score over all splits b).

Two classes need one signed table only, of d, the weight of class 1 minus that of class 0. A leaf scores (N + |d|) / 2
and leaves partition the samples, so maximising the score is maximising the sum of |d|, the table's unit. Over all
splits of a set with difference d into x and d - x the best is max(|d|, |2x - d|), so the largest and the smallest x
over b are all that is kept. More classes need one table of counts per class.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import kernel
from accel_oct.compiled.lanes import fill, least, load, most, spread, store


@kernel
def _finish(difference, largest, smallest, scores, place, zero):
    """Leaf and two-leaf scores of one vector of sets from their differences and extreme splits."""
    leaf = most(difference, zero - difference)
    high = (largest + largest) - difference
    low = (smallest + smallest) - difference
    store(scores.one_leaf, place, leaf)
    store(scores.two_leaves, place, most(leaf, most(most(high, zero - high), most(low, zero - low))))


@kernel
def _pass_signed(counts, scores, first_lane, base, row):
    table, single, total = counts.table, counts.single, counts.totals[0]
    one_leaf, n_features = scores.one_leaf, table.shape[2]
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    zero = fill(one_leaf, 0)
    for c in range(first_lane, base + table.shape[1] * lanes, lanes):
        most1 = least1 = most0 = least0 = zero
        for b in range(n_features):
            x = load(table, (c - base) * n_features + b * lanes)
            z = spread(single, b) - x
            most1, least1 = most(most1, x), least(least1, x)
            most0, least0 = most(most0, z), least(least0, z)
        d1 = load(single, c)
        _finish(fill(one_leaf, total) - d1, most0, least0, scores, row * width + c, zero)
        _finish(d1, most1, least1, scores, (row + 1) * width + c, zero)


@kernel
def pass_signed_pair(all_, with_f, with_g, both, singles, totals, scores, first_lane):
    """The four sets of a pair of features (f, g) at once, from the tables of all, f = 1, g = 1 and f = g = 1.

    Result rows are numbered 4 f + 2 g + c. The sixteen running extremes stay in registers.
    """
    one_leaf, n_features = scores.one_leaf, both.shape[2]
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    zero = fill(one_leaf, 0)
    for c in range(first_lane, width, lanes):
        m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = zero
        l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = zero
        for b in range(n_features):
            place = c * n_features + b * lanes
            x3, f, g = load(both, place), load(with_f, place), load(with_g, place)
            x2, x1 = f - x3, g - x3
            x0 = load(all_, place) - f - x1
            z3 = spread(singles, 3 * width + b) - x3
            z2 = spread(singles, 2 * width + b) - x2
            z1 = spread(singles, width + b) - x1
            z0 = spread(singles, b) - x0
            m0, l0, m1, l1 = most(m0, z0), least(l0, z0), most(m1, x0), least(l1, x0)
            m2, l2, m3, l3 = most(m2, z1), least(l2, z1), most(m3, x1), least(l3, x1)
            m4, l4, m5, l5 = most(m4, z2), least(l4, z2), most(m5, x2), least(l5, x2)
            m6, l6, m7, l7 = most(m6, z3), least(l6, z3), most(m7, x3), least(l7, x3)
        d1, d3 = load(singles, c), load(singles, width + c)
        d5, d7 = load(singles, 2 * width + c), load(singles, 3 * width + c)
        _finish(spread(totals, 0) - d1, m0, l0, scores, c, zero)
        _finish(d1, m1, l1, scores, width + c, zero)
        _finish(spread(totals, 1) - d3, m2, l2, scores, 2 * width + c, zero)
        _finish(d3, m3, l3, scores, 3 * width + c, zero)
        _finish(spread(totals, 2) - d5, m4, l4, scores, 4 * width + c, zero)
        _finish(d5, m5, l5, scores, 5 * width + c, zero)
        _finish(spread(totals, 3) - d7, m6, l6, scores, 6 * width + c, zero)
        _finish(d7, m7, l7, scores, 7 * width + c, zero)


@kernel
def _pass_classes(counts, scores, first_lane, base, row):
    table, single, totals = counts.table, counts.single, counts.totals
    one_leaf, two_leaves = scores.one_leaf, scores.two_leaves
    channels, n_features = table.shape[0], table.shape[2]
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    height = table.shape[1] * lanes
    zero = fill(one_leaf, 0)
    for c in range(first_lane, base + height, lanes):
        leaf1 = leaf0 = zero
        for k in range(channels):
            at_c = load(single, k * width + c)
            leaf1, leaf0 = most(leaf1, at_c), most(leaf0, spread(totals, k) - at_c)
        best1, best0 = leaf1, leaf0
        for b in range(n_features):
            c11 = c10 = c01 = c00 = zero
            for k in range(channels):
                x = load(table, (k * height + c - base) * n_features + b * lanes)
                at_c, at_b = load(single, k * width + c), spread(single, k * width + b)
                x10, x01 = at_c - x, at_b - x
                c11, c10, c01 = most(c11, x), most(c10, x10), most(c01, x01)
                c00 = most(c00, spread(totals, k) - at_c - x01)
            best1, best0 = most(best1, c11 + c10), most(best0, c01 + c00)
        store(one_leaf, row * width + c, leaf0)
        store(two_leaves, row * width + c, best0)
        store(one_leaf, (row + 1) * width + c, leaf1)
        store(two_leaves, (row + 1) * width + c, best1)


@kernel
def pass_set(counts, scores, first_lane, base, row, signed):
    """One set: rows `row` (side 0) and `row + 1` (side 1) of the scores, for the lanes from `base` on in the table.

    Without local rules; `ruled_passes` has the same with them.
    """
    if signed:
        _pass_signed(counts, scores, first_lane, base, row)
    else:
        _pass_classes(counts, scores, first_lane, base, row)


@kernel
def fold(scores, side0, side1, best, place, first_lane):
    """Raise, lane by lane, the best scores with two, three and four leaves at ``best[place:]`` by one split."""
    one_leaf, two_leaves = scores.one_leaf, scores.two_leaves
    width = one_leaf.shape[1]
    lanes = 64 // one_leaf.itemsize
    for c in range(first_lane, width, lanes):
        leaf0, leaf1 = load(one_leaf, side0 * width + c), load(one_leaf, side1 * width + c)
        two0, two1 = load(two_leaves, side0 * width + c), load(two_leaves, side1 * width + c)
        target = place + c
        store(best, target, most(load(best, target), leaf0 + leaf1))
        target += width
        store(best, target, most(load(best, target), most(two0 + leaf1, leaf0 + two1)))
        target += width
        store(best, target, most(load(best, target), two0 + two1))


@kernel
def fold_over_lanes(scores, side0, side1, best, place, scratch, first_lane):
    """The same with the maximum over all lanes, for one set: writes at ``best[place]``, one width apart."""
    width = scores.one_leaf.shape[1]
    for h in range(3):
        for c in range(first_lane, width):
            scratch[h * width + c] = 0
    fold(scores, side0, side1, scratch, np.int64(0), first_lane)
    for h in range(3):
        largest = best[place + h * width]
        for c in range(first_lane, width):
            largest = max(largest, scratch[h * width + c])
        best[place + h * width] = largest
