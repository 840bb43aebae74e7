"""Numeric columns at thresholds other than quantiles: all that the data can tell apart, or those a forest would use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray, check_whole
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.positions import Distinct
from accel_oct.errors import InvalidInputError, as_invalid_input

__all__ = ["AllThresholdsEncoder", "TreeGuidedThresholdEncoder"]


class AllThresholdsEncoder(BinaryEncoder):
    """A threshold between any two neighbouring values: a tree on these features is optimal on the raw data.

    Parameters
    ----------
    missing : {"error", "category"}
        Refuse missing values, or ask for them and let them answer yes as well as no: see ``docs/encoders.md``.

    Notes
    -----
    A column with n distinct values gives n - 1 features, so this is for small data or few distinct values.
    """

    exact_ = True

    def __init__(self, *, missing: str = "error") -> None:
        self.missing = missing

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            distinct = Distinct.of(column.values, weights, column.scale)
            for threshold in distinct.thresholds(np.arange(len(distinct.values) - 1)):
                yield Condition(column.index, "at_least", low=threshold)


class TreeGuidedThresholdEncoder(BinaryEncoder):
    """The thresholds that a boosted ensemble of small trees finds useful for predicting y.

    Parameters
    ----------
    max_thresholds : int or None
        Keep this many, those with the largest total gain; None keeps every threshold that was used.
    n_estimators, max_depth : int
        Size of the ensemble.
    missing : {"error", "category"}
        Refuse missing values, or ask for them and let them answer yes as well as no: see ``docs/encoders.md``.
    random_state : int, RandomState or None
        For ties between equally good splits of the ensemble.

    Notes
    -----
    The ensemble sees ranks instead of values, so neither scale nor rounding to single precision matters. The labels
    used here are those of the training data: inside cross-validation, keep the encoder inside the pipeline.
    """

    def __init__(
        self,
        max_thresholds: int | None = 50,
        *,
        n_estimators: int = 30,
        max_depth: int = 2,
        missing: str = "error",
        random_state: Any = 0,
    ) -> None:
        self.max_thresholds = max_thresholds
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.missing = missing
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_thresholds is not None:
            check_whole(self.max_thresholds, "max_thresholds", 1)
        check_whole(self.n_estimators, "n_estimators", 1)
        check_whole(self.max_depth, "max_depth", 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        if y is None:
            raise InvalidInputError(
                "TreeGuidedThresholdEncoder requires y to be passed, but the target y is None: it looks for "
                "thresholds that predict y"
            )
        with as_invalid_input():
            y = column_or_1d(y, warn=True)
            check_consistent_length(weights, y)
            check_classification_targets(y)
        if not columns:
            return
        distinct = [Distinct.of(column.values, weights, column.scale) for column in columns]
        # The rank of a missing value is -1: a split there asks whether it is missing, which has its own feature.
        ranks = [np.searchsorted(d.values, c.values) for c, d in zip(columns, distinct, strict=True)]
        matrix = np.column_stack([np.where(c.values != c.values, -1, r) for c, r in zip(columns, ranks, strict=True)])
        gains = self._gains(matrix, y, weights)
        best = sorted(gains, key=lambda cut: (-gains[cut], cut))[: self.max_thresholds]
        for place, (column, values) in enumerate(zip(columns, distinct, strict=True)):
            positions = np.array(sorted(cut for p, cut in best if p == place), dtype=np.int64)
            for threshold in values.thresholds(positions):
                yield Condition(column.index, "at_least", low=threshold)

    def _gains(self, ranks: Any, y: Any, weights: FloatArray) -> dict[tuple[int, int], float]:
        """Total impurity decrease of each (column, cut position) in the ensemble."""
        gains: dict[tuple[int, int], float] = defaultdict(float)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return gains
        # Merged and sorted, so that weights mean exactly the same as repeated rows, and their order nothing.
        rows, merged = np.unique(np.column_stack([ranks, codes.ravel()]), axis=0, return_inverse=True)
        ranks, y = rows[:, :-1], rows[:, -1]
        weights = np.bincount(merged.ravel(), weights).astype(np.float64)
        ensemble = GradientBoostingClassifier(
            n_estimators=self.n_estimators, max_depth=self.max_depth, random_state=self.random_state
        )
        ensemble.fit(ranks, y, weights)
        for tree in (estimator.tree_ for estimator in ensemble.estimators_.ravel()):
            mass = tree.weighted_n_node_samples * tree.impurity
            for node in np.flatnonzero(tree.children_left >= 0).tolist():
                cut = (int(tree.feature[node]), int(np.floor(tree.threshold[node])))
                if cut[1] >= 0:
                    gains[cut] += mass[node] - mass[tree.children_left[node]] - mass[tree.children_right[node]]
        return gains
