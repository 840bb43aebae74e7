"""Encoder of `OptimalTreeClassifier` if it cannot search every split: all thresholds within a budget, or a selection.

A tree is optimal only over the given conditions. If the search over all thresholds fits the budget, the encoder uses
all of them. Otherwise it selects quantiles, the thresholds of CART trees of the same depth, and those of a few boosted
trees. So the optimum over the selection is at least as good as these CART trees on the training data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder, Column
from accel_oct.encoding.conditions import Condition, missing_values
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.table_encoder import TableEncoder
from accel_oct.encoding.thresholds import Distinct, quantile_positions
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import FloatArray

#: Limit on the estimated seconds of the exact search; see `estimated_seconds`.
DEFAULT_BUDGET = 5.0

_QUANTILES = (100, 50, 30, 20, 15, 10, 7, 5, 4, 3)
"""Candidate numbers of quantiles, the finest first."""

_LEAST_QUANTILES = 3


def estimated_seconds(n_features: int, n_samples: int, n_classes: int, max_depth: int) -> float:
    """Return a rough upper estimate of the seconds that the exact tables take on one core of a small machine.

    Counting enumerates all sets of `max_depth` features, in words of 64 samples. The constants were fitted to runs on
    the data sets of scikit-learn (docs/encoders.md). Beyond depth four, each further level is assumed to multiply the
    time by a twentieth of the number of features.
    """
    per_set = (0.35 + 0.017 * n_samples / 64) * max(1, n_classes - 1) * 1e-9
    factor = {0: 0.0, 1: 100.0, 2: 5.0, 3: 1.0, 4: 0.3}.get(max_depth, 0.3)
    levels = min(max_depth, 4)
    deeper = (max(1.0, n_features / 20)) ** max(0, max_depth - 4)
    return float(factor * per_set * float(n_features) ** levels * deeper)


class AutoEncoder(TableEncoder):
    """Encoder with all thresholds of a table if the search fits a budget, else quantiles and those of greedy trees.

    Columns that are not numeric are encoded as in `TableEncoder`.

    Parameters
    ----------
    max_depth : int
        Maximum depth of the tree.
    budget : float
        Limit on the estimated seconds of the exact search, see `estimated_seconds`; more allow more thresholds.
    max_features : int or None
        Limit on the number of features, reached by fewer thresholds; None means no limit.
    missing : {"category", "error"}
        As in `TableEncoder`.

    Attributes
    ----------
    exact_ : bool
        Whether all thresholds are used: then a tree that is optimal over the features is optimal on the table.
    greedy_ : tuple of nested trees
        CART trees over the features whose thresholds were selected; empty if `exact_`. A leaf is the index of its
        class among the sorted classes with positive weight; a branch is ``(feature, tree for no, tree for yes)``.

    Notes
    -----
    The labels used here are those of the training data: inside cross-validation, keep the encoder inside the pipeline.
    """

    def __init__(
        self,
        max_depth: int = 3,
        *,
        budget: float = DEFAULT_BUDGET,
        max_features: int | None = None,
        missing: str = "category",
    ) -> None:
        super().__init__(missing=missing)
        self.max_depth = max_depth
        self.budget = budget
        self.max_features = max_features

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number(self.max_depth, "max_depth", 0)
        if self.max_features is not None:
            whole_number(self.max_features, "max_features", 0)
        number = isinstance(self.budget, int | float) and not isinstance(self.budget, bool)
        if not number or not self.budget >= 0:
            raise InvalidInputError(f"budget must be a number of seconds of at least 0, got {shown(self.budget)}")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AutoEncoder:
        """Select the conditions; see `BinaryEncoder.fit`. Without y, no thresholds of trees are used."""
        self._greedy: list[GreedyTree] = []
        super().fit(X, y, sample_weight)
        place = {condition: number for number, condition in enumerate(self.conditions_)}
        built = (tree.nested(place) for tree in self._greedy)
        self.greedy_ = tuple(dict.fromkeys(tree for tree in built if tree is not None))
        del self._greedy
        return self

    def _numeric_conditions(
        self,
        encoder: BinaryEncoder,
        numeric: Sequence[Column],
        others: Sequence[Condition],
        columns: Sequence[Column],
        y: Any,
        weights: FloatArray,
    ) -> Iterable[Condition]:
        distinct = [Distinct.of(column.values, weights, column.scale) for column in numeric]
        labels = None if y is None else np.unique(np.asarray(y).reshape(-1), return_inverse=True)[1].ravel()
        n_classes = 2 if labels is None else int(labels.max(initial=0)) + 1
        n_rows, n_others = self._n_samples or len(weights), len(others)

        # With missing values, there are two forms of each condition: a missing value fulfils one of them.
        times = [2 if column.has_missing and self.missing == "category" else 1 for column in numeric]

        def affordable(positions: Sequence[NDArray[np.int64]]) -> bool:
            n_features = n_others + sum(t * len(some) for t, some in zip(times, positions, strict=True))
            if self.max_features is not None and n_features > self.max_features:
                return False
            return estimated_seconds(n_features, n_rows, n_classes, self.max_depth) <= self.budget

        everything = [np.arange(max(0, len(d.values) - 1)) for d in distinct]
        self.exact_ = self.max_depth == 0 or affordable(everything)
        chosen = everything
        if not self.exact_:
            cuts: dict[int, NDArray[np.int64]] = {}
            if labels is not None:
                table = RankedTable.of(numeric, distinct, others, columns, labels, weights)
                cuts = self._greedy_cuts(table)
            for n_quantiles in _QUANTILES:
                chosen = [
                    np.union1d(quantile_positions(d, n_quantiles), cuts.get(place, np.empty(0, dtype=np.int64)))
                    for place, d in enumerate(distinct)
                ]
                if affordable(chosen) or n_quantiles == _LEAST_QUANTILES:
                    break
            self.exact_ = all(len(some) == len(every) for some, every in zip(chosen, everything, strict=True))
        self.exact_ = self.exact_ and _separates_all(others, columns, weights)
        for column, values, positions in zip(numeric, distinct, chosen, strict=True):
            for threshold in values.thresholds(positions.astype(np.int64)):
                yield Condition(column.index, "at_least", low=threshold)

    def _greedy_cuts(self, table: RankedTable) -> dict[int, NDArray[np.int64]]:
        """Return positions of thresholds by column index, and store the trees."""
        n_seeds = SEEDS if table.cells <= SMALL else 1
        grown = cart_trees(table.matrix, table.y, table.weights, max(1, self.max_depth), n_seeds)
        self._greedy = [GreedyTree(arrays, table) for arrays in grown]
        cuts: dict[int, set[int]] = {}
        for place, cut in [*(cut for tree in self._greedy for cut in tree.cuts), *boosted_cuts(table)]:
            cuts.setdefault(place, set()).add(cut)
        return {place: np.array(sorted(found), dtype=np.int64) for place, found in cuts.items()}


def _separates_all(others: Sequence[Condition], columns: Sequence[Column], weights: FloatArray) -> bool:
    """Return whether the conditions separate all categories: none share a feature, ordered ones have all thresholds."""
    asked = Counter(condition.column for condition in others if condition.test == "at_least")
    ordered = [column for column in columns if column.kind == "ordered"]
    return not any(condition.test == "none_of" for condition in others) and all(
        asked[column.index] >= len(Distinct.of(column.values, weights, column.scale).values) - 1 for column in ordered
    )


_CRITERIA = ("gini", "entropy")
"""Criteria of CART; log_loss equals entropy."""

SEEDS = 3
"""Number of trees per criterion on small tables: CART breaks ties between equal splits at random."""

SMALL, _LARGE = 2_000_000, 20_000_000
"""Largest tables, in cells, for all trees and for boosting."""

_MOST_ANSWERS = 200
"""Limit on other features in the trees; columns with few of them come first."""

_BOOSTED = 50
"""Number of thresholds, by largest gain, that boosting may add."""


@dataclass(frozen=True, eq=False)
class RankedTable:
    """Table of ranks instead of values, so that neither scale nor rounding to single precision matters.

    Attributes
    ----------
    matrix : float array (n, columns + answers)
        Rank of the value for each numeric column, -1 if missing; then the other features.
    y, weights : arrays (n,)
        Equal rows are merged and sorted, so weights equal repeated rows, and the order of rows has no effect.
    columns, others : columns and other conditions of the matrix
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
        """Create the table from numeric columns and other conditions, which refer to `every`."""
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

    def condition_of(self, feature: int, threshold: float) -> tuple[Condition, bool]:
        """Return a split of the matrix as a condition, and whether rows that fulfil it go right."""
        if feature >= len(self.columns):
            condition = self.others[feature - len(self.columns)]
            return replace(condition, scale=self.scale_of.get(condition.column)), True
        column, cut = self.columns[feature], int(np.floor(threshold))
        if cut < 0:
            return Condition(column.index, "is_missing", scale=column.scale), False
        (low,) = self.distinct[feature].thresholds(np.array([cut]))
        return Condition(column.index, "at_least", low=low, scale=column.scale), True


def _ranks(column: Column, distinct: Distinct) -> NDArray[np.int64]:
    """Return indices into the distinct values; -1 for missing values."""
    ranks = np.full(len(column.values), -1, dtype=np.int64)
    known = ~missing_values(column.values)
    ranks[known] = np.searchsorted(distinct.values, column.values[known])
    return ranks


@dataclass(frozen=True, eq=False)
class GreedyTree:
    """A fitted scikit-learn tree on a ranked table."""

    arrays: Any
    table: RankedTable

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """Return (column index, threshold position) of every split on a value."""
        inner = np.flatnonzero(self.arrays.children_left >= 0)
        found = zip(self.arrays.feature[inner].tolist(), np.floor(self.arrays.threshold[inner]).tolist(), strict=True)
        return [(f, int(cut)) for f, cut in found if f < len(self.table.columns) and cut >= 0]

    def nested(self, place: Mapping[Condition, int]) -> Any:
        """Return the tree over the features of an encoder as nested tuples; None if a condition is not a feature."""
        arrays = self.arrays

        def below(node: int) -> Any:
            left, right = int(arrays.children_left[node]), int(arrays.children_right[node])
            if left < 0:
                return int(arrays.value[node, 0].argmax())
            condition, yes_is_right = self.table.condition_of(int(arrays.feature[node]), float(arrays.threshold[node]))
            no, yes = (below(left), below(right)) if yes_is_right else (below(right), below(left))
            if condition not in place or no is None or yes is None:
                return None
            return place[condition], no, yes

        return below(0)


def cart_trees(
    matrix: Any, y: Any, weights: Any, max_depth: int, n_seeds: int, min_samples_leaf: int = 1
) -> Iterator[Any]:
    """Yield the `tree_` of fitted CART trees on ranks, for every criterion and seed."""
    from sklearn.tree import DecisionTreeClassifier

    for criterion in _CRITERIA:
        for seed in range(n_seeds):
            tree = DecisionTreeClassifier(
                criterion=criterion, max_depth=max_depth, min_samples_leaf=min_samples_leaf, random_state=seed
            )
            yield tree.fit(matrix, y, weights).tree_


def boosted_cuts(table: RankedTable) -> list[tuple[int, int]]:
    """Return (column index, position) of the thresholds with the largest gains in a few boosted trees."""
    if table.cells > _LARGE or len(np.unique(table.y)) < 2:
        return []
    from sklearn.ensemble import GradientBoostingClassifier

    rounds = 10 if table.cells <= SMALL else 3
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
