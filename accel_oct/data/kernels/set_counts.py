# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""Compiled counting of the rows that have all columns of a set, for all sets of limited size, by bit operations.

Rows come as words with a bit per column. For every column f in turn, the rows that have it are picked out and turned
over, so that each smaller column is a string of bits over these rows; the rest is bit counts of conjunctions of such
strings. So the work of all sets with f goes with the rows that have f, and a block of rows stays in the cache.
"""

from __future__ import annotations

import numpy as np

from accel_oct.compiled.jit import entry_point, kernel
from accel_oct.compiled.lanes import fill, load, popcount, store, total_of

WORD = 64
LANES = 8
"""Words of a vector."""


@entry_point
def add_sets(rows, n_columns, starts, choose, weight, columns, found, counts):
    """Add `weight` to ``counts`` for every row and every set of its columns.

    Parameters: `rows` (n, words of a row); `starts` (depth + 2,) where the sets of each size begin in `counts`;
    `choose` (n_columns + 1, depth + 1) binomial coefficients. Room to work in: `columns` (n_columns or more, words)
    with at least n bits in whole vectors, `found` (depth, words).
    """
    depth = starts.size - 2
    counts[0] += weight * rows.shape[0]
    if depth == 0:
        return
    path = np.zeros(depth, dtype=np.int64)
    for f in range(n_columns):
        size = _turn_over(rows, f, columns)
        counts[starts[1] + f] += weight * size
        if size and f and depth > 1:
            path[0] = f
            _add_below(path, size, starts, choose, weight, columns, found, counts)


@kernel
def _turn_over(rows, f, columns):
    """Strings of bits of all columns below f over the rows that have f; returns how many rows these are."""
    square = np.empty(WORD, dtype=np.uint64)
    shift, word, one = np.uint64(f % WORD), f // WORD, np.uint64(1)
    n_parts = (f + WORD - 1) // WORD
    chosen = np.empty(WORD + 1, dtype=np.int64)
    held, size = np.int64(0), np.int64(0)
    for row in range(rows.shape[0]):
        chosen[held] = row
        held += np.int64((rows[row, word] >> shift) & one)
        if held == WORD:
            _turn_square(rows, chosen, held, n_parts, f, columns, size // WORD, square)
            size += held
            held = np.int64(0)
    last = size // WORD
    if held:
        _turn_square(rows, chosen, held, n_parts, f, columns, last, square)
        size += held
        last += 1
    while last % LANES:
        for c in range(f):
            columns[c, last] = 0
        last += 1
    return size


@kernel
def _turn_square(rows, chosen, held, n_parts, f, columns, place, square):
    """Up to 64 rows as bits: a word of each column."""
    for part in range(n_parts):
        for row in range(held):
            square[row] = rows[chosen[row], part]
        for row in range(held, WORD):
            square[row] = 0
        half, mask = np.uint64(32), np.uint64(0x00000000FFFFFFFF)
        while half:
            step = np.int64(half)
            for first in range(0, WORD, 2 * step):
                for row in range(first, first + step):
                    # The upper half of the bits of one row changes places with the lower half of another's.
                    swap = ((square[row] >> half) ^ square[row + step]) & mask
                    square[row + step] ^= swap
                    square[row] ^= swap << half
            half >>= np.uint64(1)
            mask ^= mask << half
        for c in range(WORD * part, min(f, WORD * (part + 1))):
            columns[c, place] = square[c - WORD * part]


@kernel
def _add_below(path, n_rows, starts, choose, weight, columns, found, counts):
    """All sets of two columns or more whose largest is ``path[0]``; the path goes down from there."""
    depth = path.size
    width = columns.shape[1]
    stop = (n_rows + WORD * LANES - 1) // (WORD * LANES) * LANES
    _add_words(columns, np.int64(0), False, columns, path[0], stop, weight, counts, starts[2] + choose[path[0], 2])
    level = 1
    path[1:] = 0
    while level and depth > 2:
        # At level s the path has the columns 0 .. s, and counts are of sets of s + 2.
        path[level] += 1
        column = path[level]
        if column >= path[level - 1]:
            level -= 1
            continue
        offset = starts[level + 2]
        for place in range(level + 1):
            offset += choose[path[place], level + 2 - place]
        if level == 1:
            _add_words(columns, column * width, True, columns, column, stop, weight, counts, offset)
        else:
            if level == 2:
                some = _both(columns, path[1] * width, columns, column * width, found, level * width, stop)
            else:
                some = _both(found, (level - 1) * width, columns, column * width, found, level * width, stop)
            if not some:
                continue
            _add_words(found, level * width, True, columns, column, stop, weight, counts, offset)
        if level + 2 < depth:
            level += 1
            path[level] = 0


@kernel
def _both(first, first_place, second, second_place, result, place, stop):
    """The conjunction of two strings; whether anything is left."""
    some = fill(result, 0)
    for word in range(0, stop, LANES):
        both = load(first, first_place + word) & load(second, second_place + word)
        store(result, place + word, both)
        some = some | both
    return total_of(popcount(some)) > 0


@kernel
def _add_words(given, place, is_given, columns, below, stop, weight, counts, offset):
    """Bit counts of a string together with every column below some; four columns share what is loaded of it."""
    width = columns.shape[1]
    for c in range(0, below - 3, 4):
        first, second, third, fourth = c * width, (c + 1) * width, (c + 2) * width, (c + 3) * width
        n0 = n1 = n2 = n3 = fill(columns, 0)
        if is_given:
            for word in range(0, stop, LANES):
                mine = load(given, place + word)
                n0 = n0 + popcount(mine & load(columns, first + word))
                n1 = n1 + popcount(mine & load(columns, second + word))
                n2 = n2 + popcount(mine & load(columns, third + word))
                n3 = n3 + popcount(mine & load(columns, fourth + word))
        else:
            for word in range(0, stop, LANES):
                n0 = n0 + popcount(load(columns, first + word))
                n1 = n1 + popcount(load(columns, second + word))
                n2 = n2 + popcount(load(columns, third + word))
                n3 = n3 + popcount(load(columns, fourth + word))
        counts[offset + c] += weight * np.int64(total_of(n0))
        counts[offset + c + 1] += weight * np.int64(total_of(n1))
        counts[offset + c + 2] += weight * np.int64(total_of(n2))
        counts[offset + c + 3] += weight * np.int64(total_of(n3))
    for c in range(below // 4 * 4, below):
        n0 = fill(columns, 0)
        for word in range(0, stop, LANES):
            other = load(columns, c * width + word)
            n0 = n0 + popcount(other & load(given, place + word) if is_given else other)
        counts[offset + c] += weight * np.int64(total_of(n0))
