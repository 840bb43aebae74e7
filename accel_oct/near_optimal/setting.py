"""What near-optimal trees are about: the points, what is earned there, and the columns that people know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset, ScoredDataset
from accel_oct.data.binary_matrix import BoolMatrix, pack_rows
from accel_oct.errors import InvalidInputError, shown
from accel_oct.objectives import Accuracy, LinearScore
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Setting:
    """Points with their gains and masses, and what columns are called.

    Attributes
    ----------
    dataset : BinaryDataset
        As the user gave it.
    score : LinearScore
        The objective.
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
    as_model : callable (tree, objective, optimum) or None
        Makes a fitted classifier of a tree, where one asked.
    splits : str
        What trees may split on, in words, where that is not everything.
    tallied : TalliedTrees or None
        In the place of points, where there is a tally: `dataset` has its cells then, and there are no points.
    """

    dataset: BinaryDataset
    score: LinearScore
    X: BoolMatrix
    gains: FloatArray
    masses: FloatArray
    leaf_penalty: float
    leaf_price: float
    max_depth: int
    column_names: tuple[str, ...]
    column_of: IntArray
    as_model: Callable[[DecisionTree, float, float], Any] | None = None
    tallied: TalliedTrees | None = None
    splits: str = ""

    @classmethod
    def of_tally(cls, trees: TalliedTrees, leaf_penalty: Any, max_depth: int, sources: Any = None) -> Setting:
        """What is earned is the weight classified correctly."""
        cells = trees.cells()
        names, column_of = _columns(cells, sources)
        return cls(
            dataset=cells,
            score=Accuracy().bind(cells),
            X=cells.X[:0],
            gains=np.empty((0, cells.n_classes)),
            masses=np.empty(0),
            leaf_penalty=float(leaf_penalty),
            leaf_price=cells.leaf_price(leaf_penalty),
            max_depth=max_depth,
            column_names=names,
            column_of=column_of,
            tallied=trees,
        )

    @classmethod
    def of(cls, score: LinearScore, leaf_penalty: Any, max_depth: int, sources: Any = None) -> Setting:
        """Gains are what predictions earn; for accuracy, weights classified correctly."""
        dataset, rows = score.dataset, score.rows
        leaf_price = rows.leaf_price(leaf_penalty, score.norm)
        present = dataset.weights > 0
        _, first, point = np.unique(pack_rows(dataset.X[present]), axis=0, return_index=True, return_inverse=True)
        point_of = np.full(dataset.n_samples, -1)
        point_of[present] = point.ravel()
        source = rows.source if isinstance(rows, ScoredDataset) else np.arange(dataset.n_samples)
        kept = present[source]
        gains = np.zeros((first.size, dataset.n_classes))
        np.add.at(gains, (point_of[source[kept]], rows.y[kept]), rows.weights[kept])
        names, column_of = _columns(dataset, sources)
        return cls(
            dataset=dataset,
            score=score,
            X=dataset.X[present][first],
            gains=gains,
            masses=np.bincount(point.ravel(), dataset.weights[present]).astype(np.float64),
            leaf_penalty=float(leaf_penalty),
            leaf_price=leaf_price,
            max_depth=max_depth,
            column_names=names,
            column_of=column_of,
        )


def _columns(dataset: BinaryDataset, sources: Any) -> tuple[tuple[str, ...], IntArray]:
    """Names of columns, and the column of every feature; every feature by itself without sources."""
    sources = dataset.sources if sources is None else sources
    if sources is None:
        return dataset.feature_names, np.arange(dataset.n_features)
    if isinstance(sources, str) or not isinstance(sources, Sequence | np.ndarray):
        raise InvalidInputError(f"sources must have one name per feature, got {shown(sources)}")
    names = [str(name) for name in sources]
    if len(names) != dataset.n_features:
        raise InvalidInputError(
            f"sources must have one name per feature: {dataset.n_features} features, {len(names)} names"
        )
    place: dict[str, int] = {}
    column_of = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
    return tuple(place), column_of
