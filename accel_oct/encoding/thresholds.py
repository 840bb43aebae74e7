"""Thresholds of numeric columns: positions between neighbouring values, and readable numbers for them.

Every threshold encoder selects *positions*: cut i lies between the i-th and the (i+1)-th distinct value in the data.
All numbers strictly between the two separate the data in the same way; the most readable one is used.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from accel_oct.data.weights import whole_where_close
from accel_oct.encoding.base import BinaryEncoder, Column
from accel_oct.encoding.conditions import Condition, as_limit
from accel_oct.encoding.scales import Scale
from accel_oct.errors import InvalidInputError, as_invalid_input
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct known values of a column, increasing, and their weights."""

    values: NDArray[Any]
    weights: FloatArray
    scale: Scale | None = None

    @classmethod
    def of(cls, column: NDArray[Any], weights: FloatArray, scale: Scale | None = None) -> Distinct:
        """Count the values of a numeric column, which may have a scale; missing values are ignored."""
        known = np.asarray(column == column, dtype=bool)
        values, codes = np.unique(column[known], return_inverse=True)
        return cls(values, np.bincount(codes.ravel(), weights[known], len(values)).astype(np.float64), scale)

    def thresholds(self, positions: IntArray) -> list[float]:
        """Return a readable number for each cut."""
        pairs = [(self.values[i], self.values[i + 1]) for i in positions.tolist()]
        if self.scale is not None:
            return [as_limit(self.scale.threshold(int(low), int(high))) for low, high in pairs]
        if self.values.dtype == object:
            return [as_limit(_exact_threshold(low, high)) for low, high in pairs]
        whole = bool(np.all(self.values == np.floor(self.values)))
        return [readable_threshold(low, high, whole) for low, high in pairs]


def is_zero_one(column: NDArray[Any]) -> bool:
    """Return whether the known values of a column are 0 and 1, and both occur."""
    for part in (column[:100], column):  # fast: the first values exclude most columns
        zero, one = part == 0, part == 1
        if not np.all(zero | one | (part != part)):
            return False
    return bool(np.any(zero) and np.any(one))


def _exact_threshold(low: Any, high: Any) -> float:
    """Return a threshold between numbers too large for floats; whole if both are."""
    if isinstance(low, int) and isinstance(high, int):
        for digits in range(len(str(max(-low, high))), -1, -1):
            candidate = (low + high + 10**digits) // (2 * 10**digits) * 10**digits
            if low < candidate <= high and 5 * abs(2 * candidate - low - high) <= high - low:
                return int(candidate)
        return (low + high + 1) // 2
    middle = readable_threshold(low, high)
    return (
        middle if low < middle <= high else float(high) if isinstance(high, float) else int(high)
    )  # Python compares whole numbers with floats exactly


def quantile_positions(distinct: Distinct, n_quantiles: int) -> IntArray:
    """Return cuts at the q-quantiles, q = `n_quantiles`: cut m follows sample floor(m (n - 1) / q) in sorted order.

    This is "x > the m-th quantile" with the default quantile of NumPy and pandas: its interpolation between that sample
    and the next never reaches the next distinct value. Equal quantiles give one cut; one at the largest value gives
    none. A weight counts as that many samples.
    """
    weights = distinct.weights
    if len(weights) == 0:
        return np.empty(0, dtype=np.int64)
    upto = np.cumsum(weights)
    # A product of whole numbers: rounding would move a quantile that falls on a sample.
    index = np.arange(1, n_quantiles) * (upto[-1] - 1) / n_quantiles
    if not np.all(weights == np.floor(weights)):
        upto, index = whole_where_close(upto), whole_where_close(index)
    index = np.floor(index)
    positions = np.unique(np.searchsorted(upto, np.maximum(index, 0), side="right"))
    return positions[positions < len(weights) - 1].astype(np.int64)


def readable_threshold(low: float, high: float, whole: bool = False) -> float:
    """Return a short number t with low < t <= high from the middle fifth of the gap.

    The middle leaves a margin on both sides for unseen values. With `whole` (a column of whole numbers) the result is
    rounded up to a whole number, which separates whole numbers in the same way.
    """
    low, high = float(low), float(high)
    middle = low / 2 + high / 2  # low + high may overflow
    slack = high / 10 - low / 10
    result = high  # there is nothing between neighbouring floats
    for digits in range(1, 18):
        candidate = float(f"{middle:.{digits}g}")
        if low < candidate <= high and abs(candidate - middle) <= slack:
            result = candidate
            break
    return float(math.ceil(result)) if whole and abs(result) < 2**53 else result


class _QuantileEncoder(BinaryEncoder):
    def __init__(self, n_quantiles: int = 5, *, missing: str = "error") -> None:
        self.n_quantiles = n_quantiles
        self.missing = missing

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number(self.n_quantiles, "n_quantiles", 2)


class QuantileThresholdEncoder(_QuantileEncoder):
    """QT-q: binary feature m is 1 when the value is at least the m-th of q - 1 quantile thresholds.

    Parameters
    ----------
    n_quantiles : int
        q; 5 gives the paper's QT-5.
    missing : {"error", "category"}
        Reject missing values, or add conditions for them; see ``docs/encoders.md``.

    Notes
    -----
    Thresholds lie halfway between two neighbouring values of the data. Quantiles that coincide give one threshold; a
    constant column gives none. See ``docs/encoders.md`` for the exact rule and how it compares to the paper's files.
    """

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            distinct = Distinct.of(column.values, weights, column.scale)
            positions = quantile_positions(distinct, self.n_quantiles)
            for threshold in distinct.thresholds(positions):
                yield Condition(column.index, "at_least", low=threshold)


class QuantileBucketEncoder(_QuantileEncoder):
    """QB-q: binary feature m is 1 when the value falls into the m-th of q quantile buckets.

    The outer buckets are open, so every number falls into exactly one.

    Parameters
    ----------
    n_quantiles : int
        q; 5 gives the paper's QB-5.
    missing : {"error", "category"}
        Reject missing values, or add conditions for them; see ``docs/encoders.md``.

    Notes
    -----
    A bucket edge at the smallest value is dropped, as `pandas.qcut` does; a column with fewer than two buckets gives
    no binary feature.
    """

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            distinct = Distinct.of(column.values, weights, column.scale)
            positions = quantile_positions(distinct, self.n_quantiles)
            edges = distinct.thresholds(positions[positions > 0])
            if edges:
                for low, high in zip([None, *edges], [*edges, None], strict=True):
                    yield Condition(column.index, "between", low=low, high=high)


class AllThresholdsEncoder(BinaryEncoder):
    """Encoder with a threshold between any two neighbouring values: an optimal tree is optimal on the raw data.

    Parameters
    ----------
    missing : {"error", "category"}
        Reject missing values, or add conditions for them; see ``docs/encoders.md``.

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
    """Encoder with the thresholds of a boosted ensemble of small trees that predicts y.

    Parameters
    ----------
    max_thresholds : int or None
        Number of thresholds, by largest total gain; None means all thresholds of the ensemble.
    n_estimators, max_depth : int
        Size of the ensemble.
    missing : {"error", "category"}
        Reject missing values, or add conditions for them; see ``docs/encoders.md``.
    random_state : int, RandomState or None
        Breaks ties between equally good splits of the ensemble.

    Notes
    -----
    The ensemble is fitted on ranks instead of values, so neither scale nor rounding to single precision matters. The
    labels used here are those of the training data: inside cross-validation, keep the encoder inside the pipeline.
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
            whole_number(self.max_thresholds, "max_thresholds", 1)
        whole_number(self.n_estimators, "n_estimators", 1)
        whole_number(self.max_depth, "max_depth", 1)

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
        # The rank of a missing value is -1: a split there is the condition "is missing", which has its own feature.
        ranks = [np.searchsorted(d.values, c.values) for c, d in zip(columns, distinct, strict=True)]
        matrix = np.column_stack([np.where(c.values != c.values, -1, r) for c, r in zip(columns, ranks, strict=True)])
        gains = self._gains(matrix, y, weights)
        best = sorted(gains, key=lambda cut: (-gains[cut], cut))[: self.max_thresholds]
        for place, (column, values) in enumerate(zip(columns, distinct, strict=True)):
            positions = np.array(sorted(cut for p, cut in best if p == place), dtype=np.int64)
            for threshold in values.thresholds(positions):
                yield Condition(column.index, "at_least", low=threshold)

    def _gains(self, ranks: Any, y: Any, weights: FloatArray) -> dict[tuple[int, int], float]:
        """Return the total impurity decrease of each (column, cut position) in the ensemble."""
        from sklearn.ensemble import GradientBoostingClassifier

        gains: dict[tuple[int, int], float] = defaultdict(float)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return gains
        # Merged and sorted, so that weights equal repeated rows, and the order of rows has no effect.
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
