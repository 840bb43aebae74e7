"""Sets of columns in a fixed order, so that what is known of each can lie in an array.

The sets of one size s are in colexicographic order: {c_1 < ... < c_s} has the place C(c_1, 1) + ... + C(c_s, s). Sets
that differ in their smallest column only lie together, and further columns do not move any set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_sets", "n_sets", "place_of", "places_of"]

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


def all_sets(n_columns: int, size: int) -> IntArray:
    """All sets (n, size) in their order, each with increasing columns."""
    found = list(_sets(n_columns, size))
    return np.array(found, dtype=np.int64).reshape(len(found), size)


def _sets(n_columns: int, size: int) -> Iterator[tuple[int, ...]]:
    if size == 0:
        yield ()
        return
    for last in range(size - 1, n_columns):
        for before in _sets(last, size - 1):
            yield (*before, last)
