"""A second computation of optima: all trees of a small depth by counting, with NumPy alone.

It shares no code with the library and is short enough to be checked by reading. All values are whole numbers: for each
k, how many samples a tree of at most k leaves can classify correctly. The penalty per leaf is applied at the end, so
one count serves all penalties.

Depth 0 is the largest class. Depth 2 takes, for every class, how many samples have feature f and feature g: from these
numbers follow the class counts of all four corners of every pair of features. A deeper tree tries every feature at
the root.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OutOfTimeError", "best_counts", "best_objective"]

#: Whole numbers below 2**24: exact.
Floats = NDArray[np.float32]
_NONE = -np.inf
_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


class OutOfTimeError(Exception):
    """The time limit ended the count."""


def best_objective(counts: list[int], n_samples: int, leaf_penalty: float) -> float:
    """Return the largest accuracy minus penalty per leaf, from the counts of `best_counts`."""
    return max(correct / n_samples - leaf_penalty * leaves for leaves, correct in enumerate(counts, start=1))


def best_counts(X: Any, y: Any, max_depth: int, time_limit: float | None = None) -> list[int]:
    """Return how many samples the best tree with at most 1, 2, ... leaves classifies correctly.

    Parameters
    ----------
    X : bool array (n_samples, n_features)
    y : array
        Labels of any kind.
    max_depth : int
    time_limit : float, optional
        Seconds.

    Raises
    ------
    OutOfTimeError
    """
    X = np.asarray(X, dtype=bool)
    assert len(X) < 2**24, "single precision counts no further"
    _, codes = np.unique(y, return_inverse=True)
    # Equal rows are one row with a number of samples of each class.
    points, place = np.unique(X, axis=0, return_inverse=True)
    weights = np.zeros((len(points), int(codes.max()) + 1), dtype=np.float32)
    np.add.at(weights, (place.reshape(-1), codes.reshape(-1)), 1.0)
    # A column and its complement split alike, equal columns too, and a constant one does not split.
    columns = np.unique(np.where(points[0], ~points, points).T, axis=0)
    columns = columns[columns.any(axis=1)]
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    found = _Count(columns.T.astype(np.float32), weights, deadline).of(np.arange(len(points)), max_depth)
    return [int(value) for value in np.maximum.accumulate(found[1:])]


class _Count:
    """Best counts of subsets of the points, computed once each."""

    def __init__(self, X: Floats, weights: Floats, deadline: float) -> None:
        self.X, self.weights, self.deadline = X, weights, deadline
        self.known: dict[tuple[bytes, int], Floats] = {}

    def of(self, rows: NDArray[np.int64], depth: int) -> Floats:
        """Return the most correct samples with k leaves at position k; minus infinity if no tree has k leaves."""
        key = (rows.tobytes(), depth)
        if key not in self.known:
            if time.monotonic() > self.deadline:
                raise OutOfTimeError
            self.known[key] = self._counted(rows, depth)
        return self.known[key]

    def _counted(self, rows: NDArray[np.int64], depth: int) -> Floats:
        totals = self.weights[rows].sum(axis=0)
        best = np.full(2**depth + 1, _NONE, dtype=np.float32)
        best[1] = totals.max()
        if depth == 0 or self.X.shape[1] == 0:
            return best
        if depth <= 2:
            return self._shallow(rows, totals, best)
        for feature in range(self.X.shape[1]):
            ones = self.X[rows, feature] > 0
            if ones.all() or not ones.any():
                continue
            best = np.maximum(best, _together(self.of(rows[~ones], depth - 1), self.of(rows[ones], depth - 1)))
        return best

    def _shallow(self, rows: NDArray[np.int64], totals: Floats, best: Floats) -> Floats:
        """Return the best counts of depth 1 and 2, from the numbers of samples with features f and g in each class."""
        X, n_features = self.X[rows], self.X.shape[1]
        leaf = np.zeros((2, n_features), dtype=np.float32)  # the largest class where f is 0, and where it is 1
        corner = np.zeros((2, 2, n_features, n_features), dtype=np.float32)  # the same where f and g are 0 or 1
        for label, total in enumerate(totals):
            both = (X * self.weights[rows, label, None]).T @ X
            ones = both.diagonal()
            leaf = np.maximum(leaf, [total - ones, ones])
            if len(best) > 3:
                f, g = ones[:, None], ones[None, :]
                for (a, b), here in zip(_CORNERS, (total - f - g + both, g - both, f - both, both), strict=True):
                    np.maximum(corner[a, b], here, out=corner[a, b])
        pair = corner.sum(axis=1).max(axis=2)  # two leaves below the branch of f, by the best g
        if len(best) > 3:
            best[3] = max((pair[0] + leaf[1]).max(), (leaf[0] + pair[1]).max())
            best[4] = (pair[0] + pair[1]).max()
        best[2] = (leaf[0] + leaf[1]).max()
        return best


def _together(zero: Floats, one: Floats) -> Floats:
    """Combine the best counts of the two sides of a branch."""
    best = np.full(len(zero) + len(one) - 1, _NONE, dtype=np.float32)
    for leaves in range(1, len(zero)):
        best[leaves + 1 : leaves + len(one)] = np.maximum(best[leaves + 1 : leaves + len(one)], zero[leaves] + one[1:])
    return best
