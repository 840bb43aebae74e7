# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled search for the best of many sets of groups of columns, read off the tables of `group_tables`."""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.compiled.lanes import load, most, store
from accel_oct.subtree.kernels.group_tables import pair_number


@kernel
def _depth_three(tables, half, columns, n_columns, sets, first, n_groups, broad, price, two, four):
    """The best value of depth three with these columns, in rising order, of the groups ``sets[first:]`` (flat)."""
    leaves, stumps = tables.leaves, tables.stumps
    total, n_pairs = tables.singles.shape[1], leaves.shape[1]
    for i in range(n_columns):
        for side in range(2):
            two[i, side] = np.float64(tables.singles[half, columns[i], side]) - price
    for i in range(n_columns):
        row = pair_number(columns[i], np.int64(0), total)
        zero, one = two[i, 0], two[i, 1]
        for j in range(i + 1, n_columns):
            pair = row + columns[j]
            at = (half * n_pairs + pair) * 4 * broad
            best = load(stumps, at + 4 * sets[first])
            for a in range(first + 1, first + n_groups):
                best = most(best, load(stumps, at + 4 * sets[a]))
            store(four, np.int64(0), best)
            v0, v1, v2, v3 = np.float64(four[0]), np.float64(four[1]), np.float64(four[2]), np.float64(four[3])
            if price != 0.0:
                v0 = max(v0 - 2 * price, np.float64(leaves[half, pair, 0]) - price)
                v1 = max(v1 - 2 * price, np.float64(leaves[half, pair, 1]) - price)
                v2 = max(v2 - 2 * price, np.float64(leaves[half, pair, 2]) - price)
                v3 = max(v3 - 2 * price, np.float64(leaves[half, pair, 3]) - price)
            zero, one = max(zero, v0 + v1), max(one, v2 + v3)
            two[j, 0] = max(two[j, 0], v0 + v2)
            two[j, 1] = max(two[j, 1], v1 + v3)
        two[i, 0], two[i, 1] = zero, one
    value = np.float64(tables.whole[half, 0]) - price
    for i in range(n_columns):
        value = max(value, two[i, 0] + two[i, 1])
    return value


@entry_point
def fill_reach(tables, place, broad, root, price):
    """What a side of a column is worth at most if the next column is of some group, and the last of any.

    Writes flat `reach` (halves, columns, 2, lanes of groups).
    """
    leaves, stumps, reach = tables.leaves, tables.stumps, tables.reach
    halves, n_columns = tables.singles.shape[:2]
    lanes = 64 // stumps.itemsize
    four = np.empty(lanes, stumps.dtype)
    for at in range(reach.size):
        reach[at] = -np.inf
    for half in range(halves):
        pair = np.int64(-1)
        for g in range(n_columns):
            for c in range(g + 1, n_columns):
                pair += 1
                if g == root or c == root:
                    continue
                at = (half * leaves.shape[1] + pair) * 4 * broad
                best = load(stumps, at)
                for lane in range(lanes, 4 * broad, lanes):
                    best = most(best, load(stumps, at + lane))
                store(four, np.int64(0), best)
                for lane in range(4, lanes):
                    four[lane % 4] = max(four[lane % 4], four[lane])
                v0 = max(np.float64(four[0]) - 2 * price, np.float64(leaves[half, pair, 0]) - price)
                v1 = max(np.float64(four[1]) - 2 * price, np.float64(leaves[half, pair, 1]) - price)
                v2 = max(np.float64(four[2]) - 2 * price, np.float64(leaves[half, pair, 2]) - price)
                v3 = max(np.float64(four[3]) - 2 * price, np.float64(leaves[half, pair, 3]) - price)
                at = (half * n_columns + g) * 2 * broad + place[c] % broad
                reach[at], reach[at + broad] = max(reach[at], v0 + v1), max(reach[at + broad], v2 + v3)
                at = (half * n_columns + c) * 2 * broad + place[g] % broad
                reach[at], reach[at + broad] = max(reach[at], v0 + v2), max(reach[at + broad], v1 + v3)


@kernel
def _cap(tables, half, columns, n_columns, sets, first, n_groups, broad, price):
    """A bound on what `_depth_three` says: the last column is of any group."""
    reach, total = tables.reach, tables.singles.shape[1]
    value = np.float64(tables.whole[half, 0]) - price
    for i in range(n_columns):
        zero = np.float64(tables.singles[half, columns[i], 0]) - price
        one = np.float64(tables.singles[half, columns[i], 1]) - price
        at = (half * total + columns[i]) * 2 * broad
        for a in range(first, first + n_groups):
            zero, one = max(zero, reach[at + sets[a]]), max(one, reach[at + broad + sets[a]])
        value = max(value, zero + one)
    return value


@entry_point
def best_set(sets, length, first, last, column, root, tables, broad, price, best):
    """The best of the sets number `first` to `last`, if it is better than `best`: its value and number, or -1.

    Flat `sets` has `length` groups per set, or fewer and then -1. `column` (groups, layers) has the columns of every
    group, then -1; that of the root is left out.
    """
    chosen, halves = -1, tables.whole.shape[0]
    columns, two, caps = np.empty(column.size, np.int64), np.empty((column.size, 2)), np.zeros(halves)
    four = np.empty(64 // tables.stumps.itemsize, tables.stumps.dtype)
    for number in range(first, last):
        start = number * length
        n_groups, n_columns = np.int64(0), np.int64(0)
        while n_groups < length and sets[start + n_groups] >= 0:
            group = sets[start + n_groups]
            for layer in range(column.shape[1]):
                found = column[group, layer]
                if found < 0:
                    break
                if found == root:
                    continue
                # Few columns, nearly in order: put into their place one by one.
                place = n_columns
                while place > 0 and columns[place - 1] > found:
                    columns[place] = columns[place - 1]
                    place -= 1
                columns[place] = found
                n_columns += 1
            n_groups += 1
        value = 0.0
        for half in range(halves):
            caps[half] = _cap(tables, half, columns, n_columns, sets, start, n_groups, broad, price)
            value += caps[half]
        for half in range(halves):
            if value <= best:
                break
            value -= caps[half]
            value += _depth_three(tables, half, columns, n_columns, sets, start, n_groups, broad, price, two, four)
        if value > best:
            best, chosen = value, number
    return best, chosen
