# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled counting of trees: how many there are of every value, down to a threshold.

Values are whole numbers. What belongs to one set of samples is a table from values to numbers of trees. `count_two`
fills it for the trees of depth at most two on one set, `count_pairs` adds the trees of a split whose sides are known.
The same in NumPy, with numbers of any size: `accel_oct.near_optimal.reference`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.compiled.jit import entry_point, kernel

Array = NDArray[Any]


class CountStore(NamedTuple):
    """Room for values and their numbers of trees, and the open-addressing table that finds them."""

    values: Array  # (room,)
    counts: Array  # (room,)
    slots: Array  # (4 * room,) place + 1, or 0; room is a power of two


@kernel
def _new_store(room):
    return CountStore(
        np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.zeros(4 * room, dtype=np.int64)
    )


@kernel
def _slot(store, value):
    """The slot of a value: its own, or the free one where it belongs."""
    h = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    last = store.slots.size - 1
    slot = np.int64(h & np.uint64(last))
    while store.slots[slot] > 0 and store.values[store.slots[slot] - 1] != value:
        slot = (slot + 1) & last
    return slot


@kernel
def _with_room(store, size):
    """The store, or one with twice the room if it is full."""
    if size < store.values.size:
        return store
    bigger = _new_store(2 * store.values.size)
    for place in range(size):
        bigger.values[place] = store.values[place]
        bigger.counts[place] = store.counts[place]
        bigger.slots[_slot(bigger, store.values[place])] = place + 1
    return bigger


@kernel
def _add(store, size, value, count):
    """Add to the number of trees of a value; there must be room. Returns how many values there are then."""
    slot = _slot(store, value)
    place = store.slots[slot] - 1
    if place >= 0:
        store.counts[place] += count
        return size
    store.values[size] = value
    store.counts[size] = count
    store.slots[slot] = size + 1
    return size + 1


@kernel
def _sorted(store, size):
    """Values, largest first, and their counts: a shell sort, which takes numba no time to compile."""
    values, counts = store.values[:size].copy(), store.counts[:size].copy()
    gap = size // 2
    while gap > 0:
        for place in range(gap, size):
            value, count, hole = values[place], counts[place], place
            while hole >= gap and values[hole - gap] < value:
                values[hole], counts[hole] = values[hole - gap], counts[hole - gap]
                hole -= gap
            values[hole], counts[hole] = value, count
        gap = gap // 2 if gap != 2 else 1
    return values, counts


@kernel
def _clear(store, size):
    """Forget everything, at the cost of what is in it."""
    for place in range(size):
        # Slots are found in any order while the values are still there, so all are marked before any is freed.
        store.counts[place] = _slot(store, store.values[place])
    for place in range(size):
        store.slots[store.counts[place]] = 0


@kernel
def _first_best(sums):
    best = 0
    for k in range(1, sums.size):
        if sums[k] > sums[best]:
            best = k
    return best


@kernel
def _split_values(both, totals, price):
    """Best value (C, 2, C + 1) of both sides of every column: with a split by another one, and, last, of all."""
    K, C = both.shape[0], both.shape[1]
    result = np.empty((C, 2, C + 1), dtype=np.int64)
    whole = np.empty(K, dtype=np.int64)
    for c in range(C):
        for side in range(2):
            for k in range(K):
                whole[k] = both[k, c, c] if side else totals[k] - both[k, c, c]
            best = whole[_first_best(whole)] - price
            for d in range(C):
                top_zero, top_one = np.int64(0), np.int64(0)  # no sum is negative
                for k in range(K):
                    one = both[k, c, d] if side else both[k, d, d] - both[k, c, d]
                    top_one = max(top_one, one)
                    top_zero = max(top_zero, whole[k] - one)
                value = top_zero + top_one - 2 * price
                result[c, side, d] = value
                best = max(best, value)
            result[c, side, C] = best
    return result


@kernel
def _stumps(store, both, totals, multiplicity, price, any_label, c, side, splits, threshold):
    """The trees of depth at most one on one side of column c: the store and its size.

    A split counts where both its sides have samples, that is a positive sum.
    """
    K, C = both.shape[0], both.shape[1]
    zero, one = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    size = 0
    for k in range(K):
        zero[k] = both[k, c, c] if side else totals[k] - both[k, c, c]
    best = _first_best(zero)
    for k in range(K):
        if zero[k] - price >= threshold and (any_label or k == best):
            store = _with_room(store, size)
            size = _add(store, size, zero[k] - price, 1)
    for d in range(C):
        if splits[d] < threshold or d == c:
            continue
        left, right = np.int64(0), np.int64(0)
        for k in range(K):
            one[k] = both[k, c, d] if side else both[k, d, d] - both[k, c, d]
            zero[k] = (both[k, c, c] if side else totals[k] - both[k, c, c]) - one[k]
            left += zero[k]
            right += one[k]
        if left == 0 or right == 0:
            continue
        best_zero, best_one = _first_best(zero), _first_best(one)
        for k in range(K):
            for m in range(K):
                value = zero[k] + one[m] - 2 * price
                if k != m and value >= threshold and (any_label or (k == best_zero and m == best_one)):
                    store = _with_room(store, size)
                    size = _add(store, size, value, multiplicity[d])
    return store, size


@kernel
def _add_pairs(store, size, zero, zero_counts, one, one_counts, threshold, factor, first, most):
    """All pairs of two sides, values largest first, from place `first` of the zero side on, about `most` of them.

    Returns the store, its size, where to go on, and how many pairs were made.
    """
    made = np.int64(0)
    i = first
    while i < zero.size and made <= most:
        for j in range(one.size):
            value = zero[i] + one[j]
            if value < threshold:
                break
            store = _with_room(store, size)
            size = _add(store, size, value, factor * zero_counts[i] * one_counts[j])
            made += 1
        i += 1
    return store, size, i, made


@kernel
def _drop_leaf_pairs(store, size, zero, one, price, threshold, factor, any_label):
    """Take away the pairs of leaves of the same class; sums of the sides by class are given."""
    best = _first_best(zero)
    for k in range(zero.size):
        value = zero[k] + one[k] - 2 * price
        if value >= threshold and (any_label or (k == best and k == _first_best(one))):
            store = _with_room(store, size)
            size = _add(store, size, value, -factor)
    return store, size


@entry_point
def count_store():
    """An empty table."""
    return _new_store(64)


@entry_point
def count_two(both, totals, multiplicity, price, threshold, any_label, store, size, first, most):
    """Count the trees of depth at most two on a set that are worth at least `threshold`.

    `both` (K, C, C) has the gains of every class over the samples that have both of two columns, `totals` (K,) over
    all; column c stands for ``multiplicity[c]`` features. Begins with root column `first` and makes `most` pairs, or a
    few more: returns the store, its size, and the column to go on with.
    """
    K, C = both.shape[0], both.shape[1]
    values = _split_values(both, totals, price)
    zero_sums, one_sums = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    if first == 0:
        best = _first_best(totals)
        for k in range(K):
            if totals[k] - price >= threshold and (any_label or k == best):
                store = _with_room(store, size)
                size = _add(store, size, totals[k] - price, 1)
    made = np.int64(0)
    scratch = _new_store(64)
    c = first
    while c < C and made <= most:
        top_zero, top_one = values[c, 0, C], values[c, 1, C]
        if top_zero + top_one >= threshold:
            scratch, found = _stumps(
                scratch, both, totals, multiplicity, price, any_label, c, 0, values[c, 0], threshold - top_one
            )
            zero, zero_counts = _sorted(scratch, found)
            _clear(scratch, found)
            scratch, found = _stumps(
                scratch, both, totals, multiplicity, price, any_label, c, 1, values[c, 1], threshold - top_zero
            )
            one, one_counts = _sorted(scratch, found)
            _clear(scratch, found)
            factor = multiplicity[c]
            store, size, _, pairs = _add_pairs(
                store, size, zero, zero_counts, one, one_counts, threshold, factor, 0, np.int64(1) << 62
            )
            for k in range(K):
                one_sums[k] = both[k, c, c]
                zero_sums[k] = totals[k] - both[k, c, c]
            store, size = _drop_leaf_pairs(store, size, zero_sums, one_sums, price, threshold, factor, any_label)
            made += pairs
        c += 1
    return store, size, c


@entry_point
def count_pairs(zero, zero_counts, one, one_counts, threshold, factor, store, size, first, most):
    """Add all pairs of two sides to a table, see `_add_pairs`: the store, its size, where to go on."""
    store, size, first, _ = _add_pairs(store, size, zero, zero_counts, one, one_counts, threshold, factor, first, most)
    return store, size, first
