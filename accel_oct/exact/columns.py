"""Sums over the columns of a binary matrix, and which columns split alike."""

from __future__ import annotations

import numpy as np

from accel_oct.support.arrays import Array, FloatArray

_CONVERTED = 2**22
"""Entries of X that are turned into floating-point numbers at a time."""


def column_keys(X: Array) -> list[bytes]:
    """A key for every column that it shares with equal and complementary columns only."""
    n_samples, n_features = X.shape
    if n_samples == 0:
        return [b""] * n_features
    # Packed before they are turned over: that moves an eighth of the bytes across the memory.
    eights = np.ascontiguousarray(np.packbits(X, axis=1).T)
    step = max(1, _CONVERTED // (8 * n_samples))
    keys: list[bytes] = []
    for first in range(0, len(eights), step):
        columns = np.unpackbits(eights[first : first + step, None], axis=1).reshape(-1, n_samples)
        columns ^= columns[:, :1]  # of a column and its complement, the one that starts with zero
        keys += [column.tobytes() for column in np.packbits(columns, axis=1)]
    return keys[:n_features]


def weighted_sums(amounts: FloatArray, X: Array, rows: Array | None = None) -> FloatArray:
    """``amounts @ X`` (for the selected rows of X), which NumPy would do on a copy eight times the size of X."""
    if X.dtype == np.float64 and rows is None:
        return np.asarray(amounts @ X)
    # Sums are exact, so it does not matter in which order parts are added; whole rows lie together in the memory.
    chosen = np.flatnonzero(rows) if rows is not None and rows.dtype == bool else rows
    n_features, n_rows = X.shape[1], len(X) if chosen is None else len(chosen)
    step = max(1, _CONVERTED // max(1, n_features))
    result = np.zeros((*amounts.shape[:-1], n_features))
    for first in range(0, n_rows, step):
        part = X[first : first + step] if chosen is None else X[chosen[first : first + step]]
        result += amounts[..., first : first + step] @ part.astype(np.float64)
    return result


def as_factor(X: Array) -> Array:
    """X for many `weighted_sums`: as floating-point numbers unless that takes too much memory."""
    return X.astype(np.float64) if X.size <= 4 * _CONVERTED else X


def both_sides(amounts: FloatArray, X: Array) -> FloatArray:
    """Sums (F, 2) of the amounts on the zero side and the one side of every column."""
    one = weighted_sums(amounts, X)
    return np.stack([amounts.sum() - one, one], axis=1)


def pair_sums(amounts: FloatArray, X: Array) -> FloatArray:
    """Sums (F, F) of the amounts over the rows that have both of two columns."""
    step = max(1, _CONVERTED // max(1, X.shape[1]))
    result = np.zeros((X.shape[1], X.shape[1]))
    for first in range(0, len(X), step):
        part = X[first : first + step].astype(np.float64)
        result += (part.T * amounts[first : first + step]) @ part
    return result
