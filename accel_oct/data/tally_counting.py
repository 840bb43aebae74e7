"""Counting the samples that have all columns of a set, for all sets: by compiled bit counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data.binary_matrix import BoolMatrix

__all__ = ["counted"]

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]

_BLOCK_ROWS = 2**16
"""Rows that are counted at a time: their columns stay in the cache of a core."""


def counted(X: BoolMatrix, cells: IntArray, weights: IntArray, n_cells: int, depth: int) -> tuple[IntArray, ...]:
    """Total weight (n_cells, number of sets) of the rows that have all columns of a set, by size of the sets.

    Every cell is counted on its own, and every bit of the weights; unit weights have one.
    """
    n_features = X.shape[1]
    sizes = [math.comb(n_features, size) for size in range(depth + 1)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    choose = np.array([[math.comb(c, size) for size in range(depth + 1)] for c in range(n_features + 1)])
    choose = np.ascontiguousarray(choose, dtype=np.int64)
    width = _BLOCK_ROWS // 64 + 8  # columns that were powers of two apart would share the same lines of a cache
    columns, found = _aligned(n_features, width), _aligned(depth, width)
    counts = np.zeros((n_cells, int(starts[-1])), dtype=np.int64)
    rows = packed(X)
    for cell in range(n_cells):
        inside = cells == cell
        mine, amounts = (rows[inside], weights[inside]) if n_cells > 1 else (rows, weights)
        for bit in range(int(amounts.max(initial=0)).bit_length()):
            part = mine[(amounts >> bit) & 1 == 1]
            for first in range(0, len(part), _BLOCK_ROWS):
                block = part[first : first + _BLOCK_ROWS]
                native.add_sets(block, n_features, starts, choose, 1 << bit, columns, found, counts[cell])
    return tuple(np.ascontiguousarray(counts[:, starts[s] : starts[s + 1]]) for s in range(depth + 1))


def _aligned(n_strings: int, width: int) -> Words:
    """Zeros (strings, words) from the start of a line of the cache on: no vector lies across two of them."""
    room = np.zeros(max(1, n_strings) * width + 8, dtype=np.uint64)
    skip = -room.ctypes.data % 64 // 8
    return room[skip : skip + max(1, n_strings) * width].reshape(-1, width)


def packed(X: BoolMatrix) -> Words:
    """Rows as words: bit c % 64 of word c // 64 is column c."""
    n_rows, n_features = X.shape
    padded = np.zeros((n_rows, 8 * max(1, -(-n_features // 64))), dtype=np.uint8)
    padded[:, : -(-n_features // 8)] = np.packbits(X, axis=1, bitorder="little")
    return padded.view("<u8").astype(np.uint64, copy=False)
