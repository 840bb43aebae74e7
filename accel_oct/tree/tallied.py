"""What trees do with the samples of a tally, as small data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset, Tally
from accel_oct.data.dataset import on_grid
from accel_oct.errors import InvalidInputError, shown
from accel_oct.tree.decision_tree import DecisionTree

__all__ = ["CELL", "TalliedRows", "TalliedTrees"]

IntArray = NDArray[np.int64]

#: The name under which rows tell their cell; no column has it.
CELL = "\0cell"


class TalliedRows(BinaryDataset):
    """Rows that stand for all samples of a cell, or for those of a cell in a leaf.

    Of the columns only those on the way to the leaf are known, so none of them is a value of the row.
    """

    def values_named(self, name: str) -> Any:
        if name in self.row_values:
            return self.row_values[name]
        raise InvalidInputError(
            f"there is no column {shown(name)}: of its rows a tally knows classes and the groups it was made with"
        )


class TalliedTrees:
    """A tally as trees see it.

    Parameters
    ----------
    tally : Tally
    names : collection of str
        What constraints may call the groups.
    """

    def __init__(self, tally: Tally, names: tuple[str, ...] = ()) -> None:
        self.tally = tally
        cells = np.arange(tally.n_cells)
        groups = tally.group_labels[cells % tally.n_groups]
        self._values: Mapping[str, NDArray[Any]] = {CELL: cells} | {name: groups for name in names}
        self._last: tuple[DecisionTree, IntArray] | None = None

    def counts(self, tree: DecisionTree) -> IntArray:
        """Samples (n_leaves, n_cells) in the leaves of a tree, in units of the tally."""
        if self._last is None or self._last[0] is not tree:
            found = np.zeros((tree.n_leaves, self.tally.n_cells), dtype=np.int64)
            for place, node in enumerate(tree.leaves.tolist()):
                found[place] = self.tally.at(*_columns(tree, node))
            self._last = tree, found
        return self._last[1]

    def score(self, tree: DecisionTree) -> float:
        """Total weight of the samples that are classified correctly; summed in whole numbers."""
        tally = self.tally
        counts = self.counts(tree).reshape(-1, tally.n_classes, tally.n_groups)
        labels = tree.label[tree.leaves - 1]
        return math.ldexp(float(counts[np.arange(labels.size), labels].sum()), tally.unit)

    def rows(self, tree: DecisionTree) -> TalliedRows:
        """One row per leaf and cell, with the weight of its samples; each falls into its leaf.

        So whatever knows classes, groups and weights, but no other columns, sees what it would see on all rows.
        """
        X = np.zeros((tree.n_leaves, self.tally.n_cells, self.tally.n_features), dtype=bool)
        for place, node in enumerate(tree.leaves.tolist()):
            # A leaf that nobody can reach, with a column at one and at zero, has no weight: its rows may fall anywhere.
            X[place][:, sorted(_columns(tree, node)[0])] = True
        cells = np.tile(np.arange(self.tally.n_cells), tree.n_leaves)
        weights = np.ldexp(self.counts(tree).ravel().astype(np.float64), self.tally.unit)
        return self._rows(X.reshape(cells.size, -1), cells, weights)

    def cells(self, parts: tuple[float, ...] = (1.0,)) -> TalliedRows:
        """One row per cell, with all columns zero, or one for each of some parts of it, with other columns each.

        The columns mean nothing: who looks at them says of parts something else than of the whole.
        """
        tally = self.tally
        cells = np.repeat(np.arange(tally.n_cells), len(parts))
        weights = np.ldexp(tally.counts[0][cells, 0].astype(np.float64), tally.unit)
        X = np.tile(np.arange(len(parts)) % 2 == 1, tally.n_cells)[:, None].repeat(tally.n_features, axis=1)
        if tally.n_features > 1:
            X[np.arange(cells.size), cells % tally.n_features] = False
        return self._rows(X, cells, weights * np.tile(parts, tally.n_cells))

    def _rows(self, X: NDArray[np.bool_], cells: IntArray, weights: NDArray[np.float64]) -> TalliedRows:
        tally = self.tally
        return TalliedRows(
            X=X,
            y=cells // tally.n_groups,
            weights=weights,
            classes=tally.classes,
            feature_names=tally.feature_names,
            class_names=tuple(str(label) for label in tally.classes.tolist()),
            grid_bits=on_grid(np.array([tally.total_weight]))[1],
            row_values={name: values[cells] for name, values in self._values.items()},
            sources=tally.sources,
            columns=tally.columns,
        )


def _columns(tree: DecisionTree, node: int) -> tuple[set[int], set[int]]:
    """Columns that are one, and that are zero, on the way to a node."""
    path = tree.path(node)
    return {column for column, side in path if side}, {column for column, side in path if not side}
