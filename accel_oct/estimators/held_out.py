"""Scores of a fitted tree on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from accel_oct.data.binary_matrix import as_binary_matrix
from accel_oct.data.dataset import BinaryDataset
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import value_sets
from accel_oct.encoding.tables import Table
from accel_oct.errors import as_invalid_input
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.fitted import feature_names, transformed
from accel_oct.estimators.training import Attached, RowValues, TrainingData
from accel_oct.tree import DecisionTree


def rows_of(X: Any, chosen: NDArray[Any]) -> Any:
    """Return some rows of a table of any type."""
    return X.rows(chosen) if isinstance(X, Table) else _safe_indexing(X, chosen)


def held_out_data(model: TreeClassifier, X: Any, y: NDArray[Any], weights: Any, given: Attached) -> BinaryDataset:
    """Return rows with the features and classes of a fitted model; labels that it has not seen follow its classes."""
    table, names = Table.read(X), feature_names(model.encoder_)
    sources, sets = None, None
    own = isinstance(model.encoder_, BinaryEncoder)
    if own:
        sources = tuple(table.name(condition.column) for condition in model.encoder_.conditions_) or ("",)
        sets = value_sets(model.encoder_.conditions_) or None
    binary = as_binary_matrix(transformed(model.encoder_, table if own else X), name="encoder output")
    if not binary.shape[1]:
        binary = np.zeros((len(y), 1), dtype=bool)
    known = model.classes_.tolist()
    unseen = sorted(set(y.tolist()) - set(known))
    place = {label: k for k, label in enumerate([*known, *unseen])}
    codes = np.array([place[label] for label in y.tolist()], dtype=np.int64)
    distinct = names if len(set(names)) == len(names) > 0 else None
    classes = np.array([*known, *unseen], dtype=object) if unseen else model.classes_
    names_of_classes = tuple(map(str, classes))
    dataset = BinaryDataset.from_arrays(
        binary, codes, weights, feature_names=distinct, class_names=names_of_classes, classes=classes
    )
    return replace(dataset, sources=sources, value_sets=sets, row_values=RowValues(table, given))


def objective_score(
    model: TreeClassifier, tree: DecisionTree, rows: BinaryDataset, class_factors: NDArray[np.float64]
) -> float:
    """Return the score of a tree on some rows by the model's objective; leaf penalties are not counted.

    Parameters
    ----------
    class_factors : float array (n_classes,)
        Factor of `class_weight` on the weights of each class.

    Raises
    ------
    InvalidInputError
        If the objective is not defined on the rows, such as F1 without a sample of the class.
    """
    return float(model._objective(class_factors).bind(rows).value(tree))


def held_out_score(
    model: TreeClassifier,
    scoring: Any,
    tree: DecisionTree,
    rows: BinaryDataset,
    data: TrainingData,
    X: Any,
    y: Any,
    weights: Any,
) -> float:
    """Return the score by a scikit-learn scorer, or by the objective if `scoring` is None."""
    if scoring is None:
        return objective_score(model, tree, rows, data.class_factors)
    if isinstance(scoring, str):
        from sklearn.metrics import get_scorer

        with as_invalid_input("scoring"):
            scorer = get_scorer(scoring)
        more = {} if weights is None else {"sample_weight": weights}
        return float(scorer(model, X, y, **more))
    return float(scoring(model, X, y))
