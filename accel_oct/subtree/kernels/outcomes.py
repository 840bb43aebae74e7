# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled enumeration: what all subtrees of a set come to that lose no more than some slack at given prices.

The *loss* of a choice is the best priced value at its place minus the best priced value after it. `outcomes_two` goes
through the trees of depth at most two on one set of points, `cell_outcomes_two` on one set of a tally, `joined` puts
the outcomes of the sides of several splits together, and `best_pair` finds the best pair that keeps the limits without
keeping any. See `accel_oct.pricing.closing`.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.subtree.kernels.arguments import Samples
from accel_oct.subtree.kernels.outcome_amounts import amounts, cell_set_amounts, no_table, set_amounts
from accel_oct.subtree.kernels.outcome_store import insert, new_store, order_by_loss, with_room
from accel_oct.subtree.kernels.outcome_sums import half, leaf_value, priced_sums, quarters, side_values


@entry_point
def best_sides(points, columns, height, rewards):
    """Best priced values (C, 2) of both sides of every column, with one more split where the height is two."""
    return side_values(priced_sums(points, columns, rewards), columns, height, rewards)[:, :, columns.size]


@kernel
def _stumps(samples, columns, c, side, values, slack, priced, rewards):
    """Outcomes of one side of the column at place c, a leaf or one split of it, and their order by loss.

    `values` are the side's, see `side_values`. A choice is (split, class, class); the split is -1 for a leaf, else a
    feature.
    """
    C, K, R = columns.size, rewards.weights.shape[1], rewards.fixed.size
    best, price = values[C], rewards.leaf_price
    # Which splits come close enough; behind them the leaf, as a split with nobody on its one side.
    close = np.empty(C + 1, dtype=np.int64)
    n_close = 0
    for d in range(C):
        if best - values[d] <= slack:
            close[n_close] = d
            n_close += 1
    close[n_close] = -1
    whole, at_one, splits = amounts(samples, columns, c, side, close[: n_close + 1], rewards)
    store, found = new_store(16, R, 3), 0
    zero, one = np.zeros(K + 1), np.zeros(K + 1)
    result, choice, key = np.empty(R), np.empty(3, dtype=np.int32), np.empty(R - 1)
    for i in range(n_close + 1):
        split = i < n_close
        if split:
            if not splits[i]:
                continue
            quarters(priced, c, side, close[i], zero, one)
        else:
            half(priced, c, side, zero)
            if zero[K] < rewards.least:
                continue
        choice[0] = columns[close[i]] if split else -1
        for k in range(K):
            for m in range(K):
                if not split and m != k:
                    continue
                loss = best - (zero[k] + one[m] - 2 * price if split else zero[k] - price)
                if not loss <= slack:
                    continue
                for r in range(R):
                    here = whole[k * R + r] + rewards.fixed[r]
                    if split:
                        here += at_one[i, m * R + r] - at_one[i, k * R + r] + rewards.fixed[r]
                    result[r] = here
                choice[1], choice[2] = k, m
                store = with_room(store, found)
                found = insert(store, found, loss, result, choice, rewards.per_grain, key)
    return store, order_by_loss(store.loss, found)


@entry_point
def outcomes_two(points, columns, height, slack, most, rewards):
    """Outcomes of the trees of depth at most `height`, up to two, on a set: the store, its size, the number of pairs.

    A choice is (feature, then for each side split, class, class); the feature is -1 for a leaf, whose class is the last
    of all. More than `most` pairs are not made: then their number is negative, and the rest means nothing.
    """
    whole, splits = set_amounts(points, columns, rewards)
    priced = priced_sums(points, columns, rewards)
    return _two(Samples(points, no_table()), columns, height, slack, most, rewards, priced, whole, splits)


@entry_point
def cell_outcomes_two(table, priced, columns, height, slack, most, rewards):
    """The same of a set of a tally, with its priced sums."""
    whole, splits = cell_set_amounts(table, columns, rewards)
    return _two(
        Samples(np.empty(0, dtype=np.int64), table), columns, height, slack, most, rewards, priced, whole, splits
    )


@kernel
def _two(samples, columns, height, slack, most, rewards, priced, whole, splits):
    """Outcomes of a set whose priced sums and amounts are known, and which columns split it."""
    K, R, C = rewards.weights.shape[1], rewards.fixed.size, columns.size if height > 0 else 0
    values = side_values(priced, columns, height, rewards)
    best = leaf_value(priced.totals, rewards)
    for c in range(C):
        best = max(best, values[c, 0, columns.size] + values[c, 1, columns.size])
    store, found = new_store(64, R, 7), 0
    result, choice, key = np.empty(R), np.full(7, -1, dtype=np.int32), np.empty(R - 1)
    made = np.int64(0)
    for k in range(K if priced.totals[K] >= rewards.least else 0):
        loss = best - (priced.totals[k] - rewards.leaf_price)
        if loss <= slack:
            for r in range(R):
                result[r] = whole[k * R + r] + rewards.fixed[r]
            choice[6] = k
            store = with_room(store, found)
            found = insert(store, found, loss, result, choice, rewards.per_grain, key)
    for c in range(C):
        lost = best - (values[c, 0, columns.size] + values[c, 1, columns.size])
        if not lost <= slack or not splits[c]:
            continue
        left = slack - lost
        zero, zero_order = _stumps(samples, columns, c, 0, values[c, 0], left, priced, rewards)
        one, one_order = _stumps(samples, columns, c, 1, values[c, 1], left, priced, rewards)
        choice[0] = columns[c]
        for i in zero_order:
            for t in range(3):
                choice[1 + t] = zero.choice[i, t]
            for j in one_order:
                loss = lost + zero.loss[i] + one.loss[j]
                if loss > slack:
                    break
                made += 1
                for t in range(3):
                    choice[4 + t] = one.choice[j, t]
                for r in range(R):
                    result[r] = zero.results[i, r] + one.results[j, r]
                store = with_room(store, found)
                found = insert(store, found, loss, result, choice, rewards.per_grain, key)
            if made > most:
                return store, found, np.int64(-1)
    return store, found, made


@entry_point
def joined(lost, sides, losses, results, leaves, slack, most, per_grain):
    """Outcomes of a set from those of the sides of some splits, returned like those of `outcomes_two`.

    Split s loses lost[s] and has the outcomes ``losses[sides[s, 0] : sides[s, 1]]`` on its zero side and those up to
    ``sides[s, 2]`` on its one side, both by loss. `leaves` (K, 2 + J) are the leaves of the set: loss and results. A
    choice is (split, place, place), and (-1, class, class) for a leaf.
    """
    R = results.shape[1]
    store, found = new_store(64, R, 3), 0
    result, choice, key = np.empty(R), np.empty(3, dtype=np.int32), np.empty(R - 1)
    for k in range(leaves.shape[0]):
        if leaves[k, 0] <= slack:
            choice[0], choice[1], choice[2] = -1, k, k
            for r in range(R):
                result[r] = leaves[k, 1 + r]
            store = with_room(store, found)
            found = insert(store, found, leaves[k, 0], result, choice, per_grain, key)
    made = np.int64(0)
    for s in range(lost.size):
        choice[0] = s
        for i in range(sides[s, 0], sides[s, 1]):
            choice[1] = i - sides[s, 0]
            for j in range(sides[s, 1], sides[s, 2]):
                loss = lost[s] + losses[i] + losses[j]
                if loss > slack:
                    break
                made += 1
                choice[2] = j - sides[s, 1]
                for r in range(R):
                    result[r] = results[i, r] + results[j, r]
                store = with_room(store, found)
                found = insert(store, found, loss, result, choice, per_grain, key)
            if made > most:
                return store, found, np.int64(-1)
    return store, found, made


@entry_point
def best_pair(zero, zero_results, one, one_results, slack, limits, above, last, first, most):
    """The first of the best pairs of outcomes of two sides that keep the limits, worth more than `above`.

    `last` (value, place, place): only pairs that are worth less, or as much and come later. Begins with outcome `first`
    of the zero side and looks at `most` pairs, or a few more: returns the value (`above` without such a pair), both
    places, where to go on, and how many pairs were looked at.
    """
    J = limits.size
    below, i_last, j_last = last
    best, i_best, j_best = above, np.int64(-1), np.int64(-1)
    made = np.int64(0)
    i = first
    while i < zero.size and made <= most:
        left = slack - zero[i]
        if left < 0:
            i = zero.size
            break
        stop = np.searchsorted(one, left, side="right")
        own = zero_results[i, 0]
        for j in range(stop):
            value = own + one_results[j, 0]
            if value > best and value <= below:
                keeps = value < below or i > i_last or (i == i_last and j > j_last)
                for k in range(J):
                    if zero_results[i, k + 1] + one_results[j, k + 1] > limits[k]:
                        keeps = False
                        break
                if keeps:
                    best, i_best, j_best = value, i, np.int64(j)
        made += stop
        i += 1
    return best, i_best, j_best, i, made
