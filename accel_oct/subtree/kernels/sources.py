# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Where the deeper levels take pair counts from: samples that are counted, or a tally in which they are looked up.

Chosen when code is compiled, by the type of `entries`: `Entries` or `Sets`.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from accel_oct.compiled.jit import kernel
from accel_oct.subtree.kernels.arguments import Sets
from accel_oct.subtree.kernels.counts import count_pairs, select

_OPTIONS = {"nogil": True, "error_model": "numpy"}


def count_with(f, members, entries, work, table):
    """Fill `table` with the pair counts of the samples that have f (inside kernels only)."""
    raise NotImplementedError


def begin_sweep(first, count, members, entries, work):
    """How many samples have each of `count` features from `first` on, and which, in `work` (inside kernels only)."""
    raise NotImplementedError


def count_with_both(f, g, place, size, entries, work, table, first_lane):
    """Pair counts of the samples that have f and g, where f is number `place` of the sweep (inside kernels only)."""
    raise NotImplementedError


@overload(count_with, jit_options=_OPTIONS)
def _count_with(f, members, entries, work, table):
    if entries.instance_class is Sets:

        def look_up(f, members, entries, work, table):
            _look_up(entries, f, f, table, np.int64(0))

        return look_up

    def count(f, members, entries, work, table):
        size = select(members, members.size, entries.rows, f, work.chosen[0])
        count_pairs(work.chosen[0], size, entries, work.words, table, np.int64(0), np.int64(0))

    return count


@overload(begin_sweep, jit_options=_OPTIONS)
def _begin_sweep(first, count, members, entries, work):
    if entries.instance_class is Sets:
        return lambda first, count, members, entries, work: [np.int64(0) for j in range(count)]

    def begin(first, count, members, entries, work):
        return [select(members, members.size, entries.rows, first + j, work.chosen[j]) for j in range(count)]

    return begin


@overload(count_with_both, jit_options=_OPTIONS)
def _count_with_both(f, g, place, size, entries, work, table, first_lane):
    if entries.instance_class is Sets:

        def look_up(f, g, place, size, entries, work, table, first_lane):
            _look_up(entries, f, g, table, first_lane)

        return look_up

    def count(f, g, place, size, entries, work, table, first_lane):
        both = select(work.chosen[place], size, entries.rows, g, work.chosen2)
        count_pairs(work.chosen2, both, entries, work.words, table, first_lane, np.int64(0))

    return count


@kernel
def _look_up(sets, f, g, table, first_lane):
    """Counts of the sets {f, g, b, c}, some of which may be the same, for all b and for c from a lane on; f <= g."""
    values, starts, choose, columns = sets
    channels, blocks, n_features, lanes = table.shape
    base = np.empty(3, dtype=np.int64)
    for b in range(n_features):
        size = _three(columns[f], columns[g], columns[b], base)
        own, place = starts[size], starts[size + 1]
        for i in range(size):
            own += choose[base[i], i + 1]
            place += choose[base[i], i + 2]
        rank = 0
        for c in range(first_lane, n_features):
            column = columns[c]
            while rank < size and base[rank] < column:
                # This one comes before c now.
                place += choose[base[rank], rank + 1] - choose[base[rank], rank + 2]
                rank += 1
            found = own if rank < size and base[rank] == column else place + choose[column, rank + 1]
            for k in range(channels):
                table[k, c // lanes, b, c % lanes] = values[k, found]
        for c in range(max(first_lane, n_features), blocks * lanes):
            for k in range(channels):
                table[k, c // lanes, b, c % lanes] = 0


@kernel
def _three(f, g, b, base):
    """Sort f <= g and b, each once; returns how many they are."""
    low, high = min(f, b), max(g, b)
    middle = f + g + b - low - high
    base[0] = low
    size = 1
    if middle != low:
        base[size] = middle
        size += 1
    if high != middle:
        base[size] = high
        size += 1
    return size
