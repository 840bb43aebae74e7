"""Trees on a tally: counts of its samples in the leaves, as small data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset, Tally
from accel_oct.data.weights import on_grid
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import IntArray
from accel_oct.tree.decision_tree import DecisionTree

#: Name of the row values that hold the cell; no column has this name.
CELL = "\0cell"


class TalliedRows(BinaryDataset):
    """Rows that represent all samples of a cell, or those of a cell in a leaf.

    Only the columns on the path to the leaf are known, so columns cannot be read as values of a row.
    """

    def values_named(self, name: str) -> Any:
        if name in self.row_values:
            return self.row_values[name]
        raise InvalidInputError(
            f"there is no column {shown(name)}: a tally has only classes and the groups it was made with"
        )


class TalliedTrees:
    """Counts and scores of trees on a tally.

    Parameters
    ----------
    names : collection of str
        Names of the groups in constraints.
    """

    def __init__(self, tally: Tally, names: tuple[str, ...] = ()) -> None:
        self.tally = tally
        cells = np.arange(tally.n_cells)
        groups = tally.group_labels[cells % tally.n_groups]
        self._values: Mapping[str, NDArray[Any]] = {CELL: cells} | {name: groups for name in names}
        self._last: tuple[DecisionTree, IntArray] | None = None

    def counts(self, tree: DecisionTree) -> IntArray:
        """Return the samples (n_leaves, n_cells) in the leaves of a tree, in units of the tally."""
        if self._last is None or self._last[0] is not tree:
            found = np.zeros((tree.n_leaves, self.tally.n_cells), dtype=np.int64)
            for place, node in enumerate(tree.leaves.tolist()):
                found[place] = self.tally.at(*_columns(tree, node))
            self._last = tree, found
        return self._last[1]

    def score(self, tree: DecisionTree) -> float:
        """Return the total weight of the correctly classified samples, summed in whole numbers."""
        tally = self.tally
        counts = self.counts(tree).reshape(-1, tally.n_classes, tally.n_groups)
        labels = tree.label[tree.leaves - 1]
        return math.ldexp(float(counts[np.arange(labels.size), labels].sum()), tally.unit)

    def rows(self, tree: DecisionTree) -> TalliedRows:
        """Return one row per leaf and cell, with the weight of its samples; each row falls into its leaf.

        A function of class, group and weight has the same value on these rows as on all samples.
        """
        X = np.zeros((tree.n_leaves, self.tally.n_cells, self.tally.n_features), dtype=bool)
        for place, node in enumerate(tree.leaves.tolist()):
            # An unreachable leaf, with a column at one and at zero, has no weight: its rows may fall anywhere.
            X[place][:, sorted(_columns(tree, node)[0])] = True
        cells = np.tile(np.arange(self.tally.n_cells), tree.n_leaves)
        weights = np.ldexp(self.counts(tree).ravel().astype(np.float64), self.tally.unit)
        return self._rows(X.reshape(cells.size, -1), cells, weights)

    def cells(self, parts: tuple[float, ...] = (1.0,)) -> TalliedRows:
        """Return one row per cell and part, with columns that differ between the parts.

        The columns are arbitrary: a function that depends on them differs between the parts and the whole.
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
    """Return the columns that are one, and those that are zero, on the path to a node."""
    path = tree.path(node)
    return {column for column, side in path if side}, {column for column, side in path if not side}
