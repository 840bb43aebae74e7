"""How much trees rely on columns.

The *reliance* of a tree on a column is the training accuracy that it loses when the column's values are shuffled among
the samples: the expectation over all pairs (i, j) of samples, drawn by weight, of sample i with the column's values of
sample j. (Fisher, Rudin, Dominici 2019 call it model reliance, here as a difference.) Sample i then reaches a leaf if
it meets the conditions of the path that are not on the column and j meets those that are, so the expectation is

    sum over leaves of  gain of the leaf's class over the samples that meet the former
                        * share of the samples that meet the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError, shown
from accel_oct.near_optimal.setting import Setting
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
Conditions = frozenset[tuple[int, int]]


class ImportanceRow(NamedTuple):
    """Of one column: the smallest and the largest reliance of all trees, and the share of trees that use it."""

    name: str
    lowest: float
    highest: float
    share_used: float


@dataclass(frozen=True)
class ImportanceTable:
    """Ranges of reliance, one row per column, in the order of the data.

    Attributes
    ----------
    rows : tuple of ImportanceRow
    n_trees : int
        How many trees the ranges are over.
    complete : bool
        Whether these were all trees that are good enough: else some tree may lie outside of the ranges.
    """

    rows: tuple[ImportanceRow, ...]
    n_trees: int
    complete: bool
    score_name: str = "accuracy"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ImportanceRow]:
        return iter(self.rows)

    def __getitem__(self, which: int | str) -> ImportanceRow:
        """By place, or by name."""
        if not isinstance(which, str):
            return self.rows[which]
        for row in self.rows:
            if row.name == which:
                return row
        raise InvalidInputError(f"there is no column {shown(which)}")

    @property
    def title(self) -> str:
        """Which trees the ranges are over."""
        over = "all" if self.complete else "the listed"
        return f"{self.score_name} lost when a column is shuffled, over {over} {self.n_trees} trees"

    def __str__(self) -> str:
        width = max([len("column"), *(len(row.name) for row in self.rows)])
        lines = [self.title, f"{'column':<{width}}   lowest  highest  used by"]
        for row in self.rows:
            lines.append(f"{row.name:<{width}}  {row.lowest:7.4f}  {row.highest:7.4f}  {row.share_used:7.1%}")
        return "\n".join(lines)


class Reliance:
    """Reliances of many trees on the same samples; what paths have in common is added up once."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._sums: dict[Conditions, FloatArray] = {}
        self._all = self._sum(frozenset())

    def of(self, tree: DecisionTree) -> dict[int, float]:
        """By column that the tree uses, the accuracy that it loses when the column is shuffled."""
        column_of = self._setting.column_of
        leaves = [(tree.path(int(leaf)), int(tree.label[leaf - 1])) for leaf in tree.leaves]
        earned = sum(float(self._sum(frozenset(path))[label]) for path, label in leaves)
        columns = {int(column_of[feature]) for feature in tree.features_used}
        result = {}
        for column in sorted(columns):
            expected = 0.0
            for path, label in leaves:
                own = frozenset(step for step in path if column_of[step[0]] == column)
                gain = float(self._sum(frozenset(path) - own)[label])
                expected += gain * float(self._sum(own)[-1] / self._all[-1])
            result[column] = (earned - expected) / self._setting.score.norm
        return result

    def _sum(self, conditions: Conditions) -> FloatArray:
        """Gains of every class, and the mass, of the points that meet all conditions."""
        found = self._sums.get(conditions)
        if found is None:
            setting = self._setting
            here = np.ones(len(setting.X), dtype=bool)
            for feature, side in conditions:
                here &= setting.X[:, feature] == bool(side)
            found = np.append(setting.gains[here].sum(axis=0), setting.masses[here].sum())
            self._sums[conditions] = found
        return found


def importance_table(setting: Setting, trees: Iterable[DecisionTree], complete: bool) -> ImportanceTable:
    """Ranges over some trees."""
    n_columns = len(setting.column_names)
    lowest, highest, used = np.full(n_columns, np.inf), np.full(n_columns, -np.inf), np.zeros(n_columns)
    reliance, n_trees = Reliance(setting), 0
    for tree in trees:
        n_trees += 1
        own = np.zeros(n_columns)
        for column, lost in reliance.of(tree).items():
            own[column] = lost
            used[column] += 1
        np.minimum(lowest, own, out=lowest)
        np.maximum(highest, own, out=highest)
    if not n_trees:
        lowest[:] = highest[:] = np.nan
    rows = zip(setting.column_names, lowest.tolist(), highest.tolist(), (used / max(n_trees, 1)).tolist(), strict=True)
    return ImportanceTable(tuple(ImportanceRow(*row) for row in rows), n_trees, complete, setting.score.name)
