"""Weights of all sets of columns, set by set, in Python's whole numbers. Shares no code with the library."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def set_weights(
    X: NDArray[np.bool_], cells: NDArray[np.int64], weights: NDArray[np.int64], n_cells: int, depth: int
) -> list[list[list[int]]]:
    """By size of the sets and by cell: the weight of the rows that have all columns of a set.

    Sets of one size are ordered by their largest column, then by the second largest, and so on.
    """
    heavy = weights.astype(object)
    by_size: list[list[list[int]]] = []
    for size in range(depth + 1):
        sets = sorted(combinations(range(X.shape[1]), size), key=lambda columns: columns[::-1])
        sums = [[0] * len(sets) for _ in range(n_cells)]
        for place, columns in enumerate(sets):
            rows = np.flatnonzero(X[:, list(columns)].all(axis=1))
            for cell, weight in zip(cells[rows].tolist(), heavy[rows].tolist(), strict=True):
                sums[cell][place] += weight
        by_size.append(sums)
    return by_size
