"""Data in groups of columns, laid out for the kernels of `accel_oct.subtree.group_sets`.

Columns lie in layers: layer j holds the column number j of every group that has one, in the lane of its group; groups
with many columns have the first lanes. Of equal or complementary columns of a group one is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data.merging import equal_rows
from accel_oct.subtree.layout import lanes_of
from accel_oct.subtree.reduction import column_keys

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class GroupedColumns:
    """The data without redundant rows and columns.

    Attributes
    ----------
    samples : GroupSamples
    total_weight : float
    lane : int array (groups,)
        Where the columns of a group lie.
    lane_of : int array (columns,)
        The lane of every column.
    column : int array (lanes that are used, layers)
        The columns of every lane, then -1.
    """

    def __init__(self, X: NDArray[np.bool_], y: Ints, weights: Floats, n_classes: int, group: Ints) -> None:
        keep = weights > 0
        X, y, weights = X[keep], y[keep], weights[keep]
        rows = equal_rows(X, y)
        merged, X, y = rows.sums(weights), X[rows.first], y[rows.first]
        signed = n_classes == 2
        self.total_weight = float(merged.sum())
        size = int(group.max(initial=-1)) + 1
        members = [_distinct(X, np.flatnonzero(group == g)) for g in range(size)]
        by_size = np.argsort([-own.size for own in members], kind="stable")
        self.lane = np.empty(size, dtype=np.int64)
        self.lane[by_size] = np.arange(size)
        dtype = _counters(merged)
        lanes = lanes_of(dtype)
        broad = max(1, -(-size // lanes)) * lanes
        sizes = np.array([members[g].size for g in by_size], dtype=np.int64)
        layers = np.array([int((sizes > j).sum()) for j in range(int(sizes.max(initial=0)))], dtype=np.int64)
        chosen = [int(members[by_size[a]][j]) for j, count in enumerate(layers) for a in range(count)]
        place = np.array([j * broad + a for j, count in enumerate(layers) for a in range(count)], dtype=np.int64)
        self.n_columns = len(chosen)
        self.lane_of = place % broad
        self.column = np.full((max(1, size), max(1, layers.size)), -1, dtype=np.int64)
        self.column[self.lane_of, place // broad] = np.arange(self.n_columns)
        columns = X[:, chosen]
        columns = columns ^ (2 * columns.sum(axis=0) > len(columns))  # ones are the minority
        amounts = (np.where(y == 0, -merged, merged) if signed else merged).astype(dtype)
        numbers = np.zeros((len(columns), max(1, layers.size) * broad), dtype=dtype)
        numbers[:, place] = columns * amounts[:, None]
        channels = 1 if signed else n_classes
        channel = np.zeros(len(y), np.int64) if signed else y.astype(np.int64)
        ones = np.ascontiguousarray(columns.T).view(np.uint8)
        self.samples = native.GroupSamples(numbers, ones, channel, amounts, place, layers, broad, channels)


def _distinct(X: NDArray[np.bool_], columns: Ints) -> Ints:
    """Columns that split the rows, one of each set of equal or complementary ones."""
    own = X[:, columns]
    ones, seen = own.sum(axis=0), set()
    kept = []
    for place, key in enumerate(column_keys(own)):
        if 0 < ones[place] < len(X) and key not in seen:
            seen.add(key)
            kept.append(place)
    return columns[np.array(kept, dtype=np.int64)]


def _counters(weights: Floats) -> Any:
    """The narrowest type that sums of the weights, and twice them, fit into."""
    if not np.all(weights == np.floor(weights)):
        return np.dtype(np.float64)
    total = 2 * float(weights.sum())
    return np.dtype(np.int16 if total < 2**15 else np.int32 if total < 2**31 else np.float64)
