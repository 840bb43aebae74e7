# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled levels of the profile computation: all pairs, all triples, all quadruples of features.

Level two gives the best scores of depth two on all samples, level three those of depth two on every side of every
feature, level four on every side of every pair of features. The set reached by several splits does not depend on their
order, so level four visits unordered triples (f < g < c) and serves all three pairs inside it: the number
of visits is F**3 / 6, each a pass over all fourth features b.

Counts follow by inclusion and exclusion: only samples with f = g = 1 are counted for a pair (f, g), and every other sign
pattern follows from the tables of f, of g and of all samples.
"""

from __future__ import annotations

from accel_oct.subtree.counts import count_pairs, select
from accel_oct.subtree.jit import kernel
from accel_oct.subtree.lanes import load, store
from accel_oct.subtree.passes import fold, fold_over_lanes, pass_classes, pass_signed, pass_signed_pair


@kernel
def level_two(members, entries, channel, plane, marked, numbers, words, masks, table):
    """Pair counts over all entries."""
    count_pairs(members, members.size, entries, channel, plane, marked, numbers, words, masks, table, 0)


@kernel
def pass_set(table, single, totals, one_leaf, two_leaves, n_features, first_lane, row, signed):
    """Passes of one set, for two classes or more."""
    if signed:
        pass_signed(table, single, totals[0], one_leaf, two_leaves, n_features, first_lane, row)
    else:
        pass_classes(table, single, totals, one_leaf, two_leaves, n_features, first_lane, row)


@kernel
def _subtract(whole, part, result, n_rows, width, first_lane):
    lanes = 64 // result.itemsize
    for b in range(n_rows):
        for c in range(first_lane, width, lanes):
            place = b * width + c
            store(result, place, load(whole, place) - load(part, place))


@kernel
def level_three(
    f, signed, members, entries, channel, plane, marked, numbers, words, masks, chosen,
    all_, single, totals, with_f, rest, singles, sums, one_leaf, two_leaves, scratch, scores,
):  # fmt: skip
    """Sets of one feature f and both its values; `with_f` receives the table of f = 1.

    `scores` (2, 3, P): best scores of depth two with two to four leaves by side and feature.
    """
    channels, n_features, width = all_.shape
    size = select(members, members.size, entries, f, chosen)
    count_pairs(chosen, size, entries, channel, plane, marked, numbers, words, masks, with_f, 0)
    first_lane = 0
    _subtract(all_, with_f, rest, channels * n_features, width, first_lane)
    for k in range(channels):
        sums[1, k] = single[k, f]
        sums[0, k] = totals[k] - single[k, f]
        for c in range(width):
            singles[1, k, c] = all_[k, f, c]
            singles[0, k, c] = single[k, c] - all_[k, f, c]
    # Lanes before f were served when their own turn as f came.
    first_lane = f // (64 // all_.itemsize) * (64 // all_.itemsize)
    pass_set(rest, singles[0], sums[0], one_leaf, two_leaves, n_features, first_lane, 0, signed)
    pass_set(with_f, singles[1], sums[1], one_leaf, two_leaves, n_features, first_lane, 2, signed)
    for side in range(2):
        fold(one_leaf, two_leaves, side, 2 + side, scores, side * 3 * width, first_lane)
        fold_over_lanes(
            one_leaf, two_leaves, 2 * side, 2 * side + 1, scores, side * 3 * width + f, scratch, first_lane
        )


@kernel
def level_four(
    f, signed, wanted, members, entries, channel, plane, marked, numbers, words, masks, chosen, chosen2,
    all_, single, totals, tables, both, rest, singles, sums, one_leaf, two_leaves, scratch, scores, symmetric,
):  # fmt: skip
    """Sets of all pairs (f, g) with f < g that are `wanted`, and all their sign patterns.

    `tables` (F, channels, F, P) holds the level-three tables. `scores` (F, 4, 3, P): best scores of depth two with two to four
    leaves for the pair (row, lane), by sign pattern 2 * side of the row + side of the lane. With `symmetric` the third
    feature runs over c > g and serves all three pairs; without, it runs over all features, for pairs on their own.
    Returns the number of pairs visited.
    """
    channels, n_features, width = all_.shape
    lanes = 64 // all_.itemsize
    size = select(members, members.size, entries, f, chosen)
    visited = 0
    for g in range(f + 1, n_features):
        if not wanted[g]:
            continue
        visited += 1
        first_lane = g // lanes * lanes if symmetric else 0
        size2 = select(chosen, size, entries, g, chosen2)
        count_pairs(chosen2, size2, entries, channel, plane, marked, numbers, words, masks, both, first_lane)
        for k in range(channels):
            sums[3, k] = all_[k, f, g]
            sums[2, k] = single[k, f] - all_[k, f, g]
            sums[1, k] = single[k, g] - all_[k, f, g]
            sums[0, k] = totals[k] - single[k, f] - sums[1, k]
            for c in range(width):
                together = tables[f, k, g, c]
                singles[3, k, c] = together
                singles[2, k, c] = all_[k, f, c] - together
                singles[1, k, c] = all_[k, g, c] - together
                singles[0, k, c] = single[k, c] - all_[k, f, c] - all_[k, g, c] + together
        if signed:
            pass_signed_pair(
                all_, tables[f], tables[g], both, singles, sums, one_leaf, two_leaves, n_features, first_lane
            )
        else:
            rows = channels * n_features
            pass_classes(both, singles[3], sums[3], one_leaf, two_leaves, n_features, first_lane, 6)
            _subtract(tables[f], both, rest, rows, width, first_lane)
            pass_classes(rest, singles[2], sums[2], one_leaf, two_leaves, n_features, first_lane, 4)
            _subtract(tables[g], both, rest, rows, width, first_lane)
            pass_classes(rest, singles[1], sums[1], one_leaf, two_leaves, n_features, first_lane, 2)
            _subtract(all_, tables[f], both, rows, width, first_lane)
            _subtract(both, rest, rest, rows, width, first_lane)
            pass_classes(rest, singles[0], sums[0], one_leaf, two_leaves, n_features, first_lane, 0)
        for side in range(4):
            place = (f * 4 + side) * 3 * width + g
            fold_over_lanes(one_leaf, two_leaves, 2 * side, 2 * side + 1, scores, place, scratch, first_lane)
            if symmetric:
                high, low = side >> 1, side & 1
                place = (f * 4 + side) * 3 * width
                fold(one_leaf, two_leaves, 4 * high + low, 4 * high + 2 + low, scores, place, first_lane)
                place = (g * 4 + side) * 3 * width
                fold(one_leaf, two_leaves, 2 * high + low, 4 + 2 * high + low, scores, place, first_lane)
    return visited
