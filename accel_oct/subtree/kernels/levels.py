# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled levels of the profile computation: all pairs, all triples, all quadruples of features.

Level two gives the best scores of depth two on all samples, level three those of depth two on every side of every
feature, level four on every side of every pair of features. The set reached by several splits does not depend on their
order, so level four visits unordered triples (f < g < c) and serves all three pairs inside it: the number
of visits is F**3 / 6, each a pass over all fourth features b.

Counts follow by inclusion and exclusion: only samples with f = g = 1 are counted for a pair (f, g), and every other
sign pattern follows from the tables of f, of g and of all samples.

`limits` are the local rules, or None: numba leaves out what the other case would need, so neither is slower, nor takes
longer to compile, for the other's sake.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.compiled.lanes import load, store
from accel_oct.subtree.kernels.arguments import Counts
from accel_oct.subtree.kernels.counts import count_pairs, scatter_pairs
from accel_oct.subtree.kernels.passes import fold, fold_over_lanes, pass_set, pass_signed_pair
from accel_oct.subtree.kernels.ruled_passes import path_limits, ruled_set, ruled_signed_pair
from accel_oct.subtree.kernels.sources import begin_sweep, count_with, count_with_both


@entry_point
def level_two(members, entries, words, table, base):
    """Pair counts over all entries, for the lanes of `table` from `base` on."""
    count_pairs(members, members.size, entries, words, table, np.int64(0), base)


@entry_point
def level_two_sparse(ones, table, base):
    """The same for data that are nearly all zeros."""
    scatter_pairs(ones, table, base)


@entry_point
def pass_block(counts, scores, base, signed, limits):
    """Passes of all samples, for the lanes of the table from `base` on."""
    if limits is None:
        pass_set(counts, scores, base, base, np.int64(0), signed)
    else:
        usable = np.ones(counts.table.shape[2], dtype=np.bool_)
        ruled_set(counts, scores, base, base, np.int64(0), signed, limits, limits.lanes, usable)


@kernel
def _subtract(whole, part, result, first_lane):
    channels, blocks, n_features, lanes = result.shape
    for k in range(channels):
        start = (k * blocks + first_lane // lanes) * n_features * lanes
        for place in range(start, (k + 1) * blocks * n_features * lanes, lanes):
            store(result, place, load(whole, place) - load(part, place))


@entry_point
def level_three(f, signed, members, entries, whole, with_f, work, best, splits, limits):
    """Sets of one feature f and both its values; `with_f` receives the table of f = 1.

    `whole` are the counts of all samples. `splits` (F, 4, P), or empty: receives the best two-leaf scores of the pairs
    (f, c), by sign pattern. `best`, flat (2, 3, P): best scores of depth two with two to four leaves by side and
    feature.
    """
    all_, single, totals = whole.table, whole.single, whole.totals
    singles, sums, scores = work.singles, work.sums, work.scores
    channels, blocks, _, lanes = all_.shape
    width = blocks * lanes
    count_with(f, members, entries, work, with_f)
    _subtract(all_, with_f, work.rest, np.int64(0))
    for k in range(channels):
        sums[1, k] = single[k, f]
        sums[0, k] = totals[k] - single[k, f]
        for c in range(width):
            singles[1, k, c] = all_[k, c // lanes, f, c % lanes]
            singles[0, k, c] = single[k, c] - singles[1, k, c]
    # Lanes before f were served when their own turn as f came.
    first_lane = f // lanes * lanes
    if limits is not None:
        below, usable = np.empty_like(limits.lanes), np.ones(all_.shape[2], dtype=np.bool_)
        path_limits(limits, f, f, below, usable)
    for side in range(2):
        counts = Counts(with_f if side else work.rest, singles[side], sums[side])
        if limits is None:
            pass_set(counts, scores, first_lane, np.int64(0), 2 * side, signed)
        else:
            ruled_set(counts, scores, first_lane, np.int64(0), 2 * side, signed, limits, below, usable)
    if splits.size:
        for side in range(4):
            for c in range(first_lane, width):
                splits[f, side, c] = scores.two_leaves[side, c]
    for side in range(2):
        fold(scores, side, 2 + side, best, side * 3 * width, first_lane)
        fold_over_lanes(scores, 2 * side, 2 * side + 1, best, side * 3 * width + f, work.scratch, first_lane)


@entry_point
def level_four(first, count, signed, symmetric, wanted, members, entries, whole, tables, work, best, limits):
    """Sets of all pairs (f, g) that are `wanted`, with f < g and f among `count` features from `first` on.

    `tables` (F, channels, blocks, F, L) holds the level-three tables. `best`, flat (F, 4, 3, P): best scores of depth
    two with two to four leaves for the pair (row, lane), by sign pattern 2 * side of the row + side of the lane. With
    `symmetric` the third feature runs over c > g and serves all three pairs; without, it runs over all features, for
    pairs on their own. Several f share a sweep over g because the table of g has to come from far away.
    """
    n_features, lanes = whole.table.shape[2], whole.table.shape[3]
    sizes = begin_sweep(first, count, members, entries, work)
    if limits is not None:
        below, usable = np.empty_like(limits.lanes), np.ones(n_features, dtype=np.bool_)
    for g in range(first + 1, n_features):
        first_lane = g // lanes * lanes if symmetric else 0
        for f in range(first, min(g, first + count)):
            if not wanted[f, g]:
                continue
            count_with_both(f, g, f - first, sizes[f - first], entries, work, work.table, first_lane)
            _count_sides(f, g, whole, tables, work)
            if limits is not None:
                path_limits(limits, f, g, below, usable)
                _pass_ruled_pair(whole.table, tables[f], tables[g], work, first_lane, signed, limits, below, usable)
            elif signed:
                pass_signed_pair(
                    whole.table, tables[f], tables[g], work.table, work.singles, work.sums, work.scores, first_lane
                )
            else:
                _pass_classes_pair(whole.table, tables[f], tables[g], work, first_lane)
            _fold_pair(f, g, work, best, first_lane, symmetric)


@kernel
def _count_sides(f, g, whole, tables, work):
    """Counts of the four sides of a pair: their totals and, for every feature c, the part with c = 1."""
    all_, single, totals = whole.table, whole.single, whole.totals
    singles, sums = work.singles, work.sums
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
def _pass_classes_pair(all_, with_f, with_g, work, first_lane):
    """The four sets of a pair of features with a table per class; overwrites the table of f = g = 1."""
    both, rest = work.table, work.rest
    _pass_side(both, work, np.int64(3), first_lane)
    _subtract(with_f, both, rest, first_lane)
    _pass_side(rest, work, np.int64(2), first_lane)
    _subtract(with_g, both, rest, first_lane)
    _pass_side(rest, work, np.int64(1), first_lane)
    _subtract(all_, with_f, both, first_lane)
    _subtract(both, rest, rest, first_lane)
    _pass_side(rest, work, np.int64(0), first_lane)


@kernel
def _pass_side(table, work, side, first_lane):
    counts = Counts(table, work.singles[side], work.sums[side])
    pass_set(counts, work.scores, first_lane, np.int64(0), 2 * side, False)


@kernel
def _pass_ruled_pair(all_, with_f, with_g, work, first_lane, signed, limits, below, usable):
    """The same under local rules, for two classes or more."""
    both, rest = work.table, work.rest
    if signed:
        singles, sums, scores = work.singles, work.sums, work.scores
        ruled_signed_pair(all_, with_f, with_g, both, singles, sums, scores, first_lane, limits, below, usable)
        return
    _pass_ruled_side(both, work, np.int64(3), first_lane, limits, below, usable)
    _subtract(with_f, both, rest, first_lane)
    _pass_ruled_side(rest, work, np.int64(2), first_lane, limits, below, usable)
    _subtract(with_g, both, rest, first_lane)
    _pass_ruled_side(rest, work, np.int64(1), first_lane, limits, below, usable)
    _subtract(all_, with_f, both, first_lane)
    _subtract(both, rest, rest, first_lane)
    _pass_ruled_side(rest, work, np.int64(0), first_lane, limits, below, usable)


@kernel
def _pass_ruled_side(table, work, side, first_lane, limits, below, usable):
    counts = Counts(table, work.singles[side], work.sums[side])
    ruled_set(counts, work.scores, first_lane, np.int64(0), 2 * side, False, limits, below, usable)


@kernel
def _fold_pair(f, g, work, best, first_lane, symmetric):
    """Raise the scores of the pair (f, g) over all c, and of (f, c) and (g, c) lane by lane."""
    scores = work.scores
    width = scores.one_leaf.shape[1]
    for side in range(4):
        place = (f * 4 + side) * 3 * width + g
        fold_over_lanes(scores, 2 * side, 2 * side + 1, best, place, work.scratch, first_lane)
        if symmetric:
            high, low = side >> 1, side & 1
            place = (f * 4 + side) * 3 * width
            fold(scores, 4 * high + low, 4 * high + 2 + low, best, place, first_lane)
            place = (g * 4 + side) * 3 * width
            fold(scores, 2 * high + low, 4 + 2 * high + low, best, place, first_lane)
