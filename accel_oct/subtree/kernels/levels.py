# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled levels of the profile computation: all pairs, all triples, all quadruples of features.

Level two gives the best scores of depth two on all samples, level three those of depth two on every side of every
feature, level four on every side of every pair of features. The set reached by several splits does not depend on their
order, so level four visits unordered triples (f < g < c) and serves all three pairs inside it: the number
of visits is F**3 / 6, each a pass over all fourth features b.

Counts follow by inclusion and exclusion: only samples with f = g = 1 are counted for a pair (f, g), and every other
sign pattern follows from the tables of f, of g and of all samples.
"""

from __future__ import annotations

import numpy as np

from accel_oct.subtree.kernels.counts import count_pairs, scatter_pairs, select
from accel_oct.subtree.kernels.jit import entry_point, kernel
from accel_oct.subtree.kernels.lanes import load, store
from accel_oct.subtree.kernels.passes import fold, fold_over_lanes, pass_classes, pass_signed, pass_signed_pair


@entry_point
def level_two(members, entries, channel, plane, marked, numbers, words, masks, table, base):
    """Pair counts over all entries, for the lanes of `table` from `base` on."""
    count_pairs(members, members.size, entries, channel, plane, marked, numbers, words, masks, table, np.int64(0), base)


@entry_point
def level_two_sparse(ones, ones_start, features, features_start, channel, amounts, table, base):
    """The same for data that are nearly all zeros."""
    scatter_pairs(ones, ones_start, features, features_start, channel, amounts, table, base)


@kernel
def pass_set(table, single, totals, one_leaf, two_leaves, n_features, first_lane, base, row, signed):
    """Passes of one set, for two classes or more."""
    if signed:
        pass_signed(table, single, totals[0], one_leaf, two_leaves, n_features, first_lane, base, row)
    else:
        pass_classes(table, single, totals, one_leaf, two_leaves, n_features, first_lane, base, row)


@entry_point
def pass_block(table, single, totals, one_leaf, two_leaves, n_features, base, signed):
    """Passes of all samples, for the lanes of `table` from `base` on."""
    pass_set(table, single, totals, one_leaf, two_leaves, n_features, base, base, np.int64(0), signed)


@kernel
def _subtract(whole, part, result, first_lane):
    channels, blocks, n_features, lanes = result.shape
    for k in range(channels):
        start = (k * blocks + first_lane // lanes) * n_features * lanes
        for place in range(start, (k + 1) * blocks * n_features * lanes, lanes):
            store(result, place, load(whole, place) - load(part, place))


@entry_point
def level_three(
    f, signed, members, entries, channel, plane, marked, numbers, words, masks, chosen,
    all_, single, totals, with_f, rest, singles, sums, one_leaf, two_leaves, scratch, scores, splits,
):  # fmt: skip
    """Sets of one feature f and both its values; `with_f` receives the table of f = 1.

    `splits` (F, 4, P), or empty: receives the best two-leaf scores of the pairs (f, c), by sign pattern.

    `scores`, flat (2, 3, P): best scores of depth two with two to four leaves by side and feature.
    """
    channels, blocks, n_features, lanes = all_.shape
    width = blocks * lanes
    size = select(members, members.size, entries, f, chosen)
    count_pairs(chosen, size, entries, channel, plane, marked, numbers, words, masks, with_f, np.int64(0), np.int64(0))
    _subtract(all_, with_f, rest, np.int64(0))
    for k in range(channels):
        sums[1, k] = single[k, f]
        sums[0, k] = totals[k] - single[k, f]
        for c in range(width):
            singles[1, k, c] = all_[k, c // lanes, f, c % lanes]
            singles[0, k, c] = single[k, c] - singles[1, k, c]
    # Lanes before f were served when their own turn as f came.
    first_lane = f // lanes * lanes
    for side in range(2):
        table = with_f if side else rest
        pass_set(
            table, singles[side], sums[side], one_leaf, two_leaves, n_features, first_lane, np.int64(0), 2 * side,
            signed,
        )  # fmt: skip
    if splits.size:
        for side in range(4):
            for c in range(first_lane, width):
                splits[f, side, c] = two_leaves[side, c]
    for side in range(2):
        fold(one_leaf, two_leaves, side, 2 + side, scores, side * 3 * width, first_lane)
        fold_over_lanes(one_leaf, two_leaves, 2 * side, 2 * side + 1, scores, side * 3 * width + f, scratch, first_lane)


@entry_point
def level_four(
    first, count, signed, wanted, members, entries, channel, plane, marked, numbers, words, masks, chosen, chosen2,
    all_, single, totals, tables, both, rest, singles, sums, one_leaf, two_leaves, scratch, scores, symmetric,
):  # fmt: skip
    """Sets of all pairs (f, g) that are `wanted`, with f < g and f among `count` features from `first` on.

    `tables` (F, channels, blocks, F, L) holds the level-three tables. `scores`, flat (F, 4, 3, P): best scores of depth
    two with two to four leaves for the pair (row, lane), by sign pattern 2 * side of the row + side of the lane. With
    `symmetric` the third feature runs over c > g and serves all three pairs; without, it runs over all features, for
    pairs on their own. Several f share a sweep over g because the table of g has to come from far away.
    """
    n_features, lanes = all_.shape[2], all_.shape[3]
    sizes = [select(members, members.size, entries, first + j, chosen[j]) for j in range(count)]
    for g in range(first + 1, n_features):
        first_lane = g // lanes * lanes if symmetric else 0
        for f in range(first, min(g, first + count)):
            if not wanted[f, g]:
                continue
            size = select(chosen[f - first], sizes[f - first], entries, g, chosen2)
            count_pairs(
                chosen2, size, entries, channel, plane, marked, numbers, words, masks, both, first_lane, np.int64(0)
            )
            _count_sides(f, g, all_, single, totals, tables, singles, sums)
            if signed:
                pass_signed_pair(
                    all_, tables[f], tables[g], both, singles, sums, one_leaf, two_leaves, n_features, first_lane
                )
            else:
                _pass_classes_pair(
                    all_, tables[f], tables[g], both, rest, singles, sums, one_leaf, two_leaves, n_features, first_lane
                )
            _fold_pair(f, g, one_leaf, two_leaves, scores, scratch, first_lane, symmetric)


@kernel
def _count_sides(f, g, all_, single, totals, tables, singles, sums):
    """Counts of the four sides of a pair: their totals and, for every feature c, the part with c = 1."""
    channels, blocks, _, lanes = all_.shape
    for k in range(channels):
        sums[3, k] = all_[k, g // lanes, f, g % lanes]
        sums[2, k] = single[k, f] - sums[3, k]
        sums[1, k] = single[k, g] - sums[3, k]
        sums[0, k] = totals[k] - single[k, f] - sums[1, k]
        for block in range(blocks):
            for lane in range(lanes):
                c = block * lanes + lane
                together = tables[f, k, block, g, lane]
                singles[3, k, c] = together
                singles[2, k, c] = all_[k, block, f, lane] - together
                singles[1, k, c] = all_[k, block, g, lane] - together
                singles[0, k, c] = single[k, c] - all_[k, block, f, lane] - singles[1, k, c]


@kernel
def _pass_classes_pair(
    all_, with_f, with_g, both, rest, singles, sums, one_leaf, two_leaves, n_features, first_lane
):  # fmt: skip
    """The four sets of a pair of features with a table per class; overwrites `both`."""
    pass_classes(both, singles[3], sums[3], one_leaf, two_leaves, n_features, first_lane, np.int64(0), np.int64(6))
    _subtract(with_f, both, rest, first_lane)
    pass_classes(rest, singles[2], sums[2], one_leaf, two_leaves, n_features, first_lane, np.int64(0), np.int64(4))
    _subtract(with_g, both, rest, first_lane)
    pass_classes(rest, singles[1], sums[1], one_leaf, two_leaves, n_features, first_lane, np.int64(0), np.int64(2))
    _subtract(all_, with_f, both, first_lane)
    _subtract(both, rest, rest, first_lane)
    pass_classes(rest, singles[0], sums[0], one_leaf, two_leaves, n_features, first_lane, np.int64(0), np.int64(0))


@kernel
def _fold_pair(f, g, one_leaf, two_leaves, scores, scratch, first_lane, symmetric):
    """Raise the scores of the pair (f, g) over all c, and of (f, c) and (g, c) lane by lane."""
    width = one_leaf.shape[1]
    for side in range(4):
        place = (f * 4 + side) * 3 * width + g
        fold_over_lanes(one_leaf, two_leaves, 2 * side, 2 * side + 1, scores, place, scratch, first_lane)
        if symmetric:
            high, low = side >> 1, side & 1
            place = (f * 4 + side) * 3 * width
            fold(one_leaf, two_leaves, 4 * high + low, 4 * high + 2 + low, scores, place, first_lane)
            place = (g * 4 + side) * 3 * width
            fold(one_leaf, two_leaves, 2 * high + low, 4 + 2 * high + low, scores, place, first_lane)
