"""Counting the samples that have all columns of a set, for all sets: by matrix products."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import BoolMatrix

__all__ = ["counted"]

IntArray = NDArray[np.int64]

_EXACT = 2**53
"""Whole numbers up to this are exact in matrix products."""


def counted(X: BoolMatrix, cells: IntArray, weights: IntArray, n_cells: int, depth: int) -> tuple[IntArray, ...]:
    """Total weight (n_cells, number of sets) of the rows that have all columns of a set, by size of the sets."""
    n_features = X.shape[1]
    counts = tuple(np.zeros((n_cells, math.comb(n_features, size)), dtype=np.int64) for size in range(depth + 1))
    for cell in range(n_cells):
        rows = cells == cell
        _add(X[rows].astype(np.float64), weights[rows], counts, cell, ())
    return counts


def _add(
    X: NDArray[np.float64], weights: IntArray, counts: tuple[IntArray, ...], cell: int, path: tuple[int, ...]
) -> None:
    """Sets that hold the columns of a path, which decreases, and one column less than all of these."""
    size = len(path)
    if size == 0:
        counts[0][cell, 0] = weights.sum()
    if size + 1 >= len(counts) or not weights.size:
        return
    below = path[-1] if path else X.shape[1]
    offset = sum(math.comb(column, size + 1 - place) for place, column in enumerate(path))
    counts[size + 1][cell, offset : offset + below] = _sums(X[:, :below], weights)
    for column in range(1, below) if size + 2 < len(counts) else ():
        rows = X[:, column] == 1
        _add(X[rows], weights[rows], counts, cell, (*path, column))


def _sums(X: NDArray[np.float64], weights: IntArray) -> IntArray:
    if int(weights.sum()) < _EXACT:
        return np.asarray(weights.astype(np.float64) @ X).astype(np.int64)
    return np.asarray(weights @ X.astype(np.int64))
