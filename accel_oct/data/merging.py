"""Equal rows: which samples agree in all features, and which in the class too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import BoolMatrix, pack_rows

__all__ = ["EqualRows", "equal_rows"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EqualRows:
    """The rows of a data set in groups of equal (x, y), in an order that does not depend on that of the rows.

    Attributes
    ----------
    order : int64 array
        Rows sorted lexicographically by features (feature 0 first), then by class.
    starts : int64 array
        Positions in `order` at which a group begins.
    new_point : bool array, one entry per group
        Whether the features of the group differ from those of the group before.
    """

    order: IntArray
    starts: IntArray
    new_point: NDArray[np.bool_]

    @property
    def first(self) -> IntArray:
        """One row of each group."""
        return self.order[self.starts]

    def sums(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Total of each group, for one amount per row."""
        return np.add.reduceat(amounts[self.order], self.starts) if amounts.size else amounts


def equal_rows(X: BoolMatrix, y: IntArray) -> EqualRows:
    """Group equal rows; rows that are sorted already, as in a merged data set, are not sorted again."""
    words = pack_rows(X)
    if _is_sorted(words, y):
        order = np.arange(len(y))
    else:
        order = np.lexsort((y, *words.T[::-1]))
        words, y = words[order], y[order]
    new_point = np.ones(len(y), dtype=bool)
    new_point[1:] = (words[1:] != words[:-1]).any(axis=1)
    new_row = new_point.copy()
    new_row[1:] |= y[1:] != y[:-1]
    starts = np.flatnonzero(new_row)
    return EqualRows(order, starts, new_point[starts])


def _is_sorted(words: NDArray[np.uint64], y: IntArray) -> bool:
    rows, first = np.arange(len(y) - 1), 0
    if words.shape[1] > 1:
        first = (words[1:] != words[:-1]).argmax(axis=1)
    after, before = words[rows + 1, first], words[rows, first]
    # Where no word differs these are equal too, and the class decides.
    rises = (after > before) | ((after == before) & (y[1:] >= y[:-1]))
    return bool(rises.all())
