"""Counting the samples that have all columns of a set, for all sets: by compiled bit counts, or by matrix products."""

from __future__ import annotations

import math
from functools import lru_cache
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.compiled.availability import can_be_used
from accel_oct.data.binary_matrix import BoolMatrix

__all__ = ["Counting", "counted"]

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]
Counting = Literal["auto", "numpy", "numba"]

_EXACT = 2**53
"""Whole numbers up to this are exact in matrix products."""

_BLOCK_ROWS = 2**16
"""Rows that are counted at a time: their columns stay in the cache of a core."""

_WORTH_LOADING = 10**7
"""Rows times sets below which numba is not loaded for it."""


def counted(
    X: BoolMatrix, cells: IntArray, weights: IntArray, n_cells: int, depth: int, engine: Counting = "auto"
) -> tuple[IntArray, ...]:
    """Total weight (n_cells, number of sets) of the rows that have all columns of a set, by size of the sets."""
    n_rows, n_features = X.shape
    sizes = [math.comb(n_features, size) for size in range(depth + 1)]
    small = n_rows * sum(sizes) < _WORTH_LOADING
    if engine == "numpy" or (engine == "auto" and (small or not _available())):
        return _by_products(X, cells, weights, sizes, n_cells)
    return _by_bits(X, cells, weights, sizes, n_cells)


@lru_cache(maxsize=1)
def _available() -> bool:
    return can_be_used(_kernels)


def _kernels() -> ModuleType:
    # Loads numba: optional, and half a second that only users of compiled code should wait.
    from accel_oct.data.kernels import set_counts

    return set_counts


# ---------------------------------------------------------------- bit counts


def _by_bits(X: BoolMatrix, cells: IntArray, weights: IntArray, sizes: list[int], n_cells: int) -> tuple[IntArray, ...]:
    """Every cell on its own, and every bit of the weights; unit weights have one."""
    add_sets = _kernels().add_sets
    n_features, depth = X.shape[1], len(sizes) - 1
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
                add_sets.by("", block, n_features, starts, choose, 1 << bit, columns, found, counts[cell])
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


# ---------------------------------------------------------------- matrix products


def _by_products(
    X: BoolMatrix, cells: IntArray, weights: IntArray, sizes: list[int], n_cells: int
) -> tuple[IntArray, ...]:
    """The same without numba; slow, and the reference."""
    counts = tuple(np.zeros((n_cells, size), dtype=np.int64) for size in sizes)
    for first in range(0, len(X), _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        for cell in range(n_cells):
            rows = cells[block] == cell
            _add(X[block][rows].astype(np.float64), weights[block][rows], counts, cell, ())
    return counts


def _add(
    X: NDArray[np.float64], weights: IntArray, counts: tuple[IntArray, ...], cell: int, path: tuple[int, ...]
) -> None:
    """Sets that hold the columns of a path, which decreases, and one column less than all of these."""
    size = len(path)
    if size == 0:
        counts[0][cell, 0] += weights.sum()
    if size + 1 >= len(counts) or not weights.size:
        return
    below = path[-1] if path else X.shape[1]
    offset = sum(math.comb(column, size + 1 - place) for place, column in enumerate(path))
    counts[size + 1][cell, offset : offset + below] += _sums(X[:, :below], weights)
    for column in range(1, below) if size + 2 < len(counts) else ():
        rows = X[:, column] == 1
        _add(X[rows], weights[rows], counts, cell, (*path, column))


def _sums(X: NDArray[np.float64], weights: IntArray) -> IntArray:
    if int(weights.sum()) < _EXACT:
        return np.asarray(weights.astype(np.float64) @ X).astype(np.int64)
    return np.asarray(weights @ X.astype(np.int64))
