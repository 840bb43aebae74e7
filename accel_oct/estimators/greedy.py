"""CART trees over orders of rows: initial trees of a search over every split, or its fallback when stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.encoding.auto import SEEDS, SMALL, cart_trees
from accel_oct.exact.ordered import OrderedTree
from accel_oct.solving.every_split import EverySplit

_DEPTH = 12
"""Depth of the trees if there is no depth limit."""

_MOST_CELLS = 200_000_000
"""Largest tables, in cells, on which trees are grown, on a sample of the rows."""


_CELLS_PER_SECOND, _LEAST_CELLS = 500_000, 100_000
"""Cells per second of the time limit and level of depth on which trees are grown, so that they take about a tenth of
the time; tables of so few cells are never sampled for that."""


@dataclass(frozen=True, eq=False)
class GreedyTrees:
    """CART trees of a problem, grown once and pruned for each leaf penalty.

    They are grown on all rows of a small table and on a sample of a large one: scikit-learn cannot be stopped while it
    grows a tree. Labels and pruning are optimal on all rows.

    Attributes
    ----------
    space : EverySplit
    least : int
        Smallest number of rows in a leaf.
    seconds : float or None
        Time limit of the search that uses the trees; the shorter it is, the smaller the sample.
    """

    space: EverySplit
    least: int = 1
    seconds: float | None = None

    @property
    def is_sampled(self) -> bool:
        """Whether the trees are grown on a sample of the rows."""
        return self.space.ranks.size > self._most_cells

    @property
    def _depth(self) -> int:
        return _DEPTH if self.space.max_depth is None else self.space.max_depth

    @property
    def _most_cells(self) -> int:
        if self.seconds is None:
            return SMALL
        cells = self.seconds * _CELLS_PER_SECOND / max(1, self._depth)
        return int(min(max(cells, _LEAST_CELLS), SMALL))

    def pruned(self, leaf_penalty: float) -> Iterator[OrderedTree]:
        """Yield the trees that satisfy the constraints, with the best labels and the best pruning for the penalty."""
        price = self.space.score.rows.leaf_price(leaf_penalty, self.space.score.norm)
        for arrays, sums in self._grown:
            tree = _pruned(arrays, sums, price)
            if self.space.allows(tree):
                yield tree

    @cached_property
    def _grown(self) -> list[tuple[Any, Any]]:
        """Trees of scikit-learn, and what each label earns in each of their leaves."""
        space = self.space
        gains = space.gains[space.rows]
        weights = gains.max(axis=1) - gains.min(axis=1)
        if not 0 < space.ranks.size <= _MOST_CELLS or not weights.any() or space.max_depth == 0:
            return []
        matrix, labels = space.ranks.T.astype(np.float32), gains.argmax(axis=1)
        rows: Any = slice(None)
        if self.is_sampled:
            n_rows = max(1, self._most_cells // matrix.shape[1])
            rows = np.random.default_rng(0).choice(len(matrix), n_rows, replace=False)
        if not weights[rows].any():
            return []
        seeds = 1 if self.is_sampled else SEEDS
        found = []
        for arrays in cart_trees(matrix[rows], labels[rows], weights[rows], self._depth, seeds, self.least):
            place, n_nodes = arrays.apply(matrix), len(arrays.children_left)
            found.append((arrays, np.stack([np.bincount(place, part, n_nodes) for part in gains.T], axis=1)))
        return found


def _pruned(arrays: Any, earned: Any, price: float) -> OrderedTree:
    """Return the best pruning of a CART tree; `earned` is what each label earns in each leaf."""
    left, right = arrays.children_left.tolist(), arrays.children_right.tolist()
    sums = earned.copy()
    value = np.full(len(left), -np.inf)
    for node in reversed(range(len(left))):  # children come after their parents
        if left[node] >= 0:
            sums[node] = sums[left[node]] + sums[right[node]]
        value[node] = sums[node].max() - price
        if left[node] >= 0 and value[left[node]] + value[right[node]] > value[node]:
            value[node] = value[left[node]] + value[right[node]]
        else:
            left[node] = -1
    rows: list[list[int]] = []

    def add(node: int) -> int:
        number = len(rows)
        rows.append([-1, -1, -1, -1, int(sums[node].argmax())])
        if left[node] >= 0:
            rows[number][:2] = [int(arrays.feature[node]), int(np.floor(arrays.threshold[node]))]
            rows[number][2], rows[number][3] = add(left[node]), add(right[node])
        return number

    add(0)
    return OrderedTree.of_rows(np.array(rows, dtype=np.int32))
