"""Sets of columns in a fixed order, for arrays with one entry per set.

Sets of one size s are in colexicographic order: {c_1 < ... < c_s} has the index C(c_1, 1) + ... + C(c_s, s). Sets that
differ only in their smallest column are adjacent, and the index does not depend on the number of columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from accel_oct.support.arrays import Array, IntArray


def n_sets(n_columns: int, depth: int) -> int:
    """Return the number of sets of at most `depth` columns."""
    return sum(math.comb(n_columns, size) for size in range(depth + 1))


def place_of(columns: Iterable[int]) -> int:
    """Return the index of a set of distinct columns among the sets of its size."""
    return sum(math.comb(column, size) for size, column in enumerate(sorted(columns), start=1))


def places_of(sets: IntArray) -> IntArray:
    """Return the indices of many sets (n, size), each with increasing columns."""
    places = np.zeros(len(sets), dtype=np.int64)
    for position in range(sets.shape[1]):
        factor = np.ones(len(sets), dtype=np.int64)
        for step in range(position + 1):  # each quotient is a binomial coefficient, so it is exact
            factor = factor * (sets[:, position] - step) // (step + 1)
        places += np.maximum(factor, 0)
    return places


@lru_cache(maxsize=16)
def all_sets(n_columns: int, size: int) -> IntArray:
    """Return all sets (n, size) in order, each with increasing columns."""
    found = np.zeros((1, 0), dtype=np.int64)
    for length in range(1, size + 1):
        # A set is its largest column and a set of one size less from the columns before it.
        before = [math.comb(largest, length - 1) for largest in range(n_columns)]
        last = np.repeat(np.arange(n_columns), before)
        rest = np.concatenate([found[:number] for number in before]) if n_columns else found[:0]
        found = np.concatenate([rest, last[:, None]], axis=1)
    found.flags.writeable = False
    return found


def given(values: tuple[Array, ...], n_columns: int, column: int, side: int) -> tuple[Array, ...]:
    """Restrict values of all sets of columns (..., number of sets), by size, to the samples on one side of a column.

    The result has no values for the largest size.
    """
    found = []
    for size in range(len(values) - 1):
        sets = all_sets(n_columns, size)
        own = (sets == column).any(axis=1)
        # Indices of the sets with the column added. They are not used for sets that hold the column already.
        places = places_of(np.sort(np.concatenate([sets, np.full((len(sets), 1), column)], axis=1), axis=1))
        one = values[size].copy()
        one[..., ~own] = values[size + 1][..., places[~own]]
        found.append(one if side else values[size] - one)
    return tuple(found)
