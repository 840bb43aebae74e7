"""Sets of columns in a fixed order, so that what is known of each can lie in an array.

The sets of one size s are in colexicographic order: {c_1 < ... < c_s} has the place C(c_1, 1) + ... + C(c_s, s). Sets
that differ in their smallest column only lie together, and further columns do not move any set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_sets", "given", "n_sets", "place_of", "places_of"]

Array = NDArray[Any]
IntArray = NDArray[np.int64]


def n_sets(n_columns: int, depth: int) -> int:
    """Number of sets with at most `depth` of the columns."""
    return sum(math.comb(n_columns, size) for size in range(depth + 1))


def place_of(columns: Iterable[int]) -> int:
    """Place of a set of distinct columns among those of its size."""
    return sum(math.comb(column, size) for size, column in enumerate(sorted(columns), start=1))


def places_of(sets: IntArray) -> IntArray:
    """The same for many sets (n, size), each with increasing columns."""
    places = np.zeros(len(sets), dtype=np.int64)
    for position in range(sets.shape[1]):
        factor = np.ones(len(sets), dtype=np.int64)
        for step in range(position + 1):  # exact at every step: a product of consecutive numbers
            factor = factor * (sets[:, position] - step) // (step + 1)
        places += np.maximum(factor, 0)
    return places


@lru_cache(maxsize=16)
def all_sets(n_columns: int, size: int) -> IntArray:
    """All sets (n, size) in their order, each with increasing columns."""
    found = np.zeros((1, 0), dtype=np.int64)
    for length in range(1, size + 1):
        # Those with a largest column are those with one column less among the columns before it.
        before = [math.comb(largest, length - 1) for largest in range(n_columns)]
        last = np.repeat(np.arange(n_columns), before)
        rest = np.concatenate([found[:number] for number in before]) if n_columns else found[:0]
        found = np.concatenate([rest, last[:, None]], axis=1)
    found.flags.writeable = False
    return found


def given(values: tuple[Array, ...], n_columns: int, column: int, side: int) -> tuple[Array, ...]:
    """What is known of all sets of columns (..., number of sets), by size, for the samples on one side of a column.

    The largest size is lost.
    """
    found = []
    for size in range(len(values) - 1):
        sets = all_sets(n_columns, size)
        own = (sets == column).any(axis=1)
        # The column goes in where it belongs; in sets that hold it already, twice, and that place is not used.
        places = places_of(np.sort(np.concatenate([sets, np.full((len(sets), 1), column)], axis=1), axis=1))
        one = values[size].copy()
        one[..., ~own] = values[size + 1][..., places[~own]]
        found.append(one if side else values[size] - one)
    return tuple(found)
