"""What near-optimal trees are about: the points, what is earned there, and the columns that people know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pricing.problem import LimitedProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Setting:
    """Points with their gains and masses, and what columns are called.

    Attributes
    ----------
    dataset : BinaryDataset
        As the user gave it.
    X : bool array (n_points, n_features)
        Distinct rows of positive weight.
    gains : float array (n_points, n_classes)
        What predicting a class at a point earns.
    masses : float array (n_points,)
        Weight of the samples at each point.
    leaf_penalty, leaf_price : float
        Per leaf: in units of the objective, and in units of gains.
    max_depth : int
    column_names : tuple of str
        Of the columns that binary features were made from.
    column_of : int array (n_features,)
        Which of them each feature belongs to.
    """

    dataset: BinaryDataset
    X: BoolMatrix
    gains: FloatArray
    masses: FloatArray
    leaf_penalty: float
    leaf_price: float
    max_depth: int
    column_names: tuple[str, ...]
    column_of: IntArray

    @classmethod
    def of_accuracy(cls, dataset: BinaryDataset, leaf_penalty: Any, max_depth: int, groups: Any = None) -> Setting:
        """Gains are weights classified correctly."""
        leaf_price = dataset.leaf_price(leaf_penalty)
        points = LimitedProblem.of(dataset.merged(), [], leaf_price, max_depth)
        names, column_of = _columns(dataset, groups)
        return cls(
            dataset=dataset,
            X=points.X,
            gains=points.gains,
            masses=np.asarray(points.gains.sum(axis=1)),
            leaf_penalty=float(leaf_penalty),
            leaf_price=leaf_price,
            max_depth=max_depth,
            column_names=names,
            column_of=column_of,
        )

    @property
    def total(self) -> float:
        """What a share of one is of."""
        return self.dataset.total_weight


def _columns(dataset: BinaryDataset, groups: Any) -> tuple[tuple[str, ...], IntArray]:
    """Names of columns, and the column of every feature; every feature by itself without groups."""
    if groups is None:
        return dataset.feature_names, np.arange(dataset.n_features)
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise InvalidInputError(f"groups must have one name per feature, got {shown(groups)}")
    names = [str(name) for name in groups]
    if len(names) != dataset.n_features:
        raise InvalidInputError(
            f"groups must have one name per feature: {dataset.n_features} features, {len(names)} names"
        )
    place: dict[str, int] = {}
    column_of = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
    return tuple(place), column_of
