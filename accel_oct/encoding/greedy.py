"""Thresholds that greedy trees choose: CART at several criteria, and a few boosted rounds, on ranks of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from accel_oct.encoding.base import Column, FloatArray
from accel_oct.encoding.conditions import Condition, missing_values
from accel_oct.encoding.positions import Distinct
from accel_oct.encoding.scales import Scale

__all__ = ["GreedyTree", "RankedTable", "boosted_cuts", "greedy_trees"]

_CRITERIA = ("gini", "entropy")
"""log_loss is entropy by another name."""

_SEEDS = 3
"""Which of equally good splits CART takes is a matter of luck: so many trees of each criterion, on small tables."""

_SMALL, _LARGE = 2_000_000, 20_000_000
"""Cells of a table up to which all trees are grown, and up to which there is boosting."""

_MOST_ANSWERS = 200
"""Other features that the trees see, those of columns with few of them first."""

_BOOSTED = 50
"""Thresholds that boosting may add, those with the largest gain."""


@dataclass(frozen=True, eq=False)
class RankedTable:
    """Ranks instead of values: neither scale nor rounding to single precision matters.

    Attributes
    ----------
    matrix : float array (n, columns + answers)
        For each numeric column the rank of the value, -1 where it is missing; then answers of other features.
    y, weights : arrays (n,)
        Equal rows are merged and sorted, so that weights mean exactly the same as repeated rows, and order nothing.
    distinct : sequence of Distinct
    columns, others : conditions are about these
    scale_of : by column
    """

    matrix: NDArray[np.float32]
    y: NDArray[np.int64]
    weights: FloatArray
    columns: Sequence[Column]
    distinct: Sequence[Distinct]
    others: Sequence[Condition]
    scale_of: Mapping[int, Scale | None]

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        distinct: Sequence[Distinct],
        others: Sequence[Condition],
        every: Sequence[Column],
        labels: NDArray[np.int64],
        weights: FloatArray,
    ) -> RankedTable:
        """From numeric columns and other conditions; `every` column is there for these."""
        if len(others) > _MOST_ANSWERS:
            asked = Counter(condition.column for condition in others)
            others = sorted(others, key=lambda condition: asked[condition.column])[:_MOST_ANSWERS]
        values_of = {column.index: column.values for column in every}
        scales = {column.index: column.scale for column in every}
        answers = [condition.holds(values_of[condition.column]).astype(np.int64) for condition in others]
        ranks = [_ranks(column, values) for column, values in zip(columns, distinct, strict=True)]
        matrix = np.column_stack([*ranks, *answers, labels])
        rows, merged = np.unique(matrix, axis=0, return_inverse=True)
        total = np.bincount(merged.ravel(), weights).astype(np.float64)
        return cls(
            rows[:, :-1].astype(np.float32), rows[:, -1].astype(np.int64), total, columns, distinct, others, scales
        )

    @property
    def cells(self) -> int:
        return int(self.matrix.size)

    def question(self, feature: int, threshold: float) -> tuple[Condition, bool]:
        """A split of the matrix as a condition, and whether those that answer yes go right."""
        if feature >= len(self.columns):
            condition = self.others[feature - len(self.columns)]
            return replace(condition, scale=self.scale_of.get(condition.column)), True
        column, cut = self.columns[feature], int(np.floor(threshold))
        if cut < 0:
            return Condition(column.index, "is_missing", scale=column.scale), False
        (low,) = self.distinct[feature].thresholds(np.array([cut]))
        return Condition(column.index, "at_least", low=low, scale=column.scale), True


def _ranks(column: Column, distinct: Distinct) -> NDArray[np.int64]:
    """Places among the distinct values, -1 where a value is missing."""
    ranks = np.full(len(column.values), -1, dtype=np.int64)
    known = ~missing_values(column.values)
    ranks[known] = np.searchsorted(distinct.values, column.values[known])
    return ranks


@dataclass(frozen=True, eq=False)
class GreedyTree:
    """A fitted tree of scikit-learn's on a ranked table."""

    arrays: Any
    table: RankedTable

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """(place of the column, position of the threshold) of every split on a value."""
        inner = np.flatnonzero(self.arrays.children_left >= 0)
        found = zip(self.arrays.feature[inner].tolist(), np.floor(self.arrays.threshold[inner]).tolist(), strict=True)
        return [(f, int(cut)) for f, cut in found if f < len(self.table.columns) and cut >= 0]

    def nested(self, place: Mapping[Condition, int]) -> Any:
        """Over the features of an encoder; None where one of its questions is not among them."""
        arrays = self.arrays

        def below(node: int) -> Any:
            left, right = int(arrays.children_left[node]), int(arrays.children_right[node])
            if left < 0:
                return int(arrays.value[node, 0].argmax())
            condition, yes_is_right = self.table.question(int(arrays.feature[node]), float(arrays.threshold[node]))
            no, yes = (below(left), below(right)) if yes_is_right else (below(right), below(left))
            if condition not in place or no is None or yes is None:
                return None
            return place[condition], no, yes

        return below(0)


def greedy_trees(table: RankedTable, max_depth: int) -> list[GreedyTree]:
    """CART trees of some depth: every criterion, and several of each on small tables."""
    seeds = range(_SEEDS if table.cells <= _SMALL else 1)
    found = []
    for criterion in _CRITERIA:
        for seed in seeds:
            tree = DecisionTreeClassifier(criterion=criterion, max_depth=max(1, max_depth), random_state=seed)
            found.append(GreedyTree(tree.fit(table.matrix, table.y, table.weights).tree_, table))
    return found


def boosted_cuts(table: RankedTable) -> list[tuple[int, int]]:
    """(place of the column, position) of the thresholds that a few boosted trees gain most from."""
    if table.cells > _LARGE or len(np.unique(table.y)) < 2:
        return []
    rounds = 10 if table.cells <= _SMALL else 3
    boosted = GradientBoostingClassifier(n_estimators=rounds, max_depth=2, random_state=0)
    boosted.fit(table.matrix, table.y, table.weights)
    gains: dict[tuple[int, int], float] = {}
    for arrays in (estimator.tree_ for estimator in boosted.estimators_.ravel()):
        mass = arrays.weighted_n_node_samples * arrays.impurity
        for node in np.flatnonzero(arrays.children_left >= 0).tolist():
            cut = (int(arrays.feature[node]), int(np.floor(arrays.threshold[node])))
            if cut[0] < len(table.columns) and cut[1] >= 0:
                gain = mass[node] - mass[arrays.children_left[node]] - mass[arrays.children_right[node]]
                gains[cut] = gains.get(cut, 0.0) + float(gain)
    return sorted(gains, key=lambda cut: (-gains[cut], cut))[:_BOOSTED]
