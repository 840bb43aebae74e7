# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled counting: pairwise class counts of a list of entries, for every pair of features.

A table has shape (channels, blocks, F, L), with the second feature c split into a block and one of L lanes: entry
(k, c // L, b, c % L) is the weight of the listed samples of channel k with b = c = 1. The passes run through all b for
one block, so that is what lies together in memory. Integer weights are counted with bit operations, one word of
samples and one lane per feature c at a time; real weights are added up row by row. Only the blocks from `first_lane` on
are filled. A table may hold some of the blocks only: `base` is its first lane.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from accel_oct.compiled.jit import kernel
from accel_oct.compiled.lanes import as_dtype, fill, load, popcount, shifted, spread, store


def count_pairs(members, size, entries, words, table, first_lane, base):
    """Fill `table` with the counts over entries ``members[:size]`` (inside kernels only)."""
    raise NotImplementedError


@overload(count_pairs, jit_options={"nogil": True, "error_model": "numpy"})
def _count_pairs(members, size, entries, words, table, first_lane, base):
    if isinstance(table.dtype, types.Float):

        def by_sums(members, size, entries, words, table, first_lane, base):
            _sum_pairs(members, size, entries, table, first_lane, base)

        return by_sums

    def by_bits(members, size, entries, words, table, first_lane, base):
        _bit_pairs(members, size, entries, words, table, first_lane, base)

    return by_bits


@kernel
def _bit_pairs(members, size, entries, words, table, first_lane, base):
    """Counts by bit operations, one run of entries of equal channel and weight bit after the other."""
    limit = words.words.shape[0] * words.words.itemsize * 8
    channel, plane = entries.channel, entries.plane
    # Plain zeros would be literal types, and each helper be compiled once more for them.
    untouched, start = np.int64(0), np.int64(0)
    while start < size:
        k, bit = np.int64(channel[members[start]]), np.int64(plane[members[start]])
        stop = start + 1
        while stop < size and stop - start < limit and channel[members[stop]] == k and plane[members[stop]] == bit:
            stop += 1
        n_words, offset = _pack(members, start, stop, entries, words)
        fresh = k >= untouched
        if fresh:
            _clear(table, untouched, k, first_lane)
            untouched = k + 1
        _add_words(words, n_words, offset, bit, table, k, first_lane, base, fresh)
        start = stop
    _clear(table, untouched, table.shape[0], first_lane)


@kernel
def _clear(table, first, last, first_lane):
    lanes = table.shape[3]
    for k in range(first, last):
        for block in range(first_lane // lanes, table.shape[1]):
            table[k, block] = 0


@kernel
def _pack(members, start, stop, entries, words):
    """Turn rows into words laid out [word][feature]; returns the number of words and of marked samples."""
    rows, marked = entries.rows, entries.marked
    packed, masks = words.words, words.masks
    per_word = packed.itemsize * 8
    n_words = (stop - start + per_word - 1) // per_word
    width = packed.shape[1]
    n_marked = 0
    for word in range(n_words):
        target = packed[word]
        for c in range(width):
            target[c] = 0
        mask = 0
        first = start + per_word * word
        for shift in range(min(per_word, stop - first)):
            entry = members[first + shift]
            if marked[entry]:
                mask |= 1 << shift
                n_marked += 1
            row = rows[entry]
            for c in range(width):
                target[c] |= packed.dtype.type(row[c]) << shift
        masks[word] = mask
    return n_words, n_marked


@kernel
def _add_words(words, n_words, offset, bit, table, k, first_lane, base, fresh):
    """Add bit counts of packed samples of weight 2**bit to one channel.

    popcount(x ^ m) - popcount(m), with m the marked samples, is the number of unmarked minus marked samples in x.
    """
    _, blocks, n_features, lanes = table.shape
    packed, masks = words.words, words.masks
    width = packed.shape[1]
    for block in range(first_lane // lanes, blocks):
        c = base + block * lanes
        for b in range(n_features):
            total = fill(table, -offset)
            for word in range(n_words):
                both = load(packed, word * width + c) & spread(packed, word * width + b)
                total = total + as_dtype(popcount(both ^ spread(masks, word)), table)
            total = shifted(total, bit)
            place = ((k * blocks + block) * n_features + b) * lanes
            if fresh:
                store(table, place, total)
            else:
                store(table, place, load(table, place) + total)


@kernel
def _sum_pairs(members, size, entries, table, first_lane, base):
    """Sums of real weights: each row adds its numbers to the table rows of its ones."""
    rows, channel, numbers = entries.rows, entries.channel, entries.numbers
    channels, blocks, n_features, lanes = table.shape
    width = numbers.shape[1]
    _clear(table, np.int64(0), channels, first_lane)
    ones = np.empty(n_features + 1, dtype=np.int64)
    for position in range(size):
        entry = members[position]
        k = channel[entry]
        # A list first: a branch per feature would be mispredicted half of the time.
        found = np.int64(0)
        for b in range(n_features):
            ones[found] = b
            found += np.int64(rows[entry, b])
        for block in range(first_lane // lanes, blocks):
            added = load(numbers, entry * width + base + block * lanes)
            start = (k * blocks + block) * n_features * lanes
            for one in range(found):
                place = start + ones[one] * lanes
                store(table, place, load(table, place) + added)


@kernel
def scatter_pairs(ones, table, base):
    """The same from lists: ones of every feature, features of every entry. For data that are nearly all zeros."""
    channels, blocks, n_features, lanes = table.shape
    entries, entries_start, features, features_start, channel, amounts = ones
    _clear(table, np.int64(0), channels, np.int64(0))
    for c in range(base, min(base + blocks * lanes, n_features)):
        block, lane = (c - base) // lanes, (c - base) % lanes
        for place in range(entries_start[c], entries_start[c + 1]):
            entry = entries[place]
            k, amount = channel[entry], amounts[entry]
            for other in range(features_start[entry], features_start[entry + 1]):
                table[k, block, features[other], lane] += amount


@kernel
def select(members, size, rows, feature, chosen):
    """Those of the listed entries that have the feature; returns how many."""
    found = np.int64(0)
    for position in range(size):
        entry = members[position]
        chosen[found] = entry
        found += np.int64(rows[entry, feature])
    return found
