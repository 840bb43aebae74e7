"""A fitted tree as a scikit-learn tree."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.view import class_probabilities
from accel_oct.support.arrays import FloatArray
from accel_oct.tree.fitted_tree import FittedTree


def to_sklearn(model: Any, *, encoded: bool | None = None, values: str = "shares") -> Any:
    """Return a fitted `sklearn.tree.DecisionTreeClassifier` with the same predictions and node numbers.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    encoded : bool, optional
        False: a tree on the columns of X. Columns must be numeric or boolean, and splits must be thresholds or tests
        for missing values. True: a `Pipeline` of the encoder and a tree on its binary columns, which is always
        possible. None: the first if its predictions are the same, else the second.
    values : {"shares", "labels"}
        Values of the leaves. "shares": the probabilities of `predict_proba`. scikit-learn predicts the class with the
        largest one, so this is an error if a leaf predicts another class, as it may under constraints and costs.
        "labels": 1 for the predicted class and 0 for all others.

    Returns
    -------
    DecisionTreeClassifier or Pipeline

    Notes
    -----
    scikit-learn rounds numbers to single precision before it compares them. A tree on the columns of X is returned
    only if rounding moves no training value across a threshold, and if no training value in any column is too large
    for single precision (about 1.7e38), because scikit-learn rejects such rows. A new value closer to a threshold than
    single precision resolves may go to the other side. In a column with only 0 and 1 in training, ``x = 1`` becomes
    ``x > 0.5``.

    Missing values go to the same side as in the model; in columns without missing values in training, to the side of
    "no". A tree on the columns of X may accept rows that the model rejects (missing values with ``missing="error"``).
    """
    check_is_fitted(model, "tree_")
    if encoded is not None and not isinstance(encoded, bool):
        raise InvalidInputError(f"encoded must be True, False or None, got {shown(encoded)}")
    if values not in ("shares", "labels"):
        raise InvalidInputError(f"values must be 'shares' or 'labels', got {shown(values)}")
    arrays: FittedTree = model.tree_
    if values == "labels":
        held = _labels(arrays)
        impurity: FloatArray = 1.0 - (held[:, 0, :] ** 2).sum(axis=1)
    else:
        held, impurity = _probabilities(model), arrays.impurity
    reason = _why_encoded(model)
    if encoded is False and reason:
        raise InvalidInputError(f"encoded=False is not possible: {reason}")
    if reason or encoded:
        if arrays.n_features == 0:
            raise InvalidInputError(f"to_sklearn needs a column to ask about, but the encoder gives none, and {reason}")
        tree = _classifier(
            model, held, impurity, arrays.feature, arrays.threshold, np.ones(arrays.node_count), arrays.n_features
        )
        from sklearn.pipeline import Pipeline

        return Pipeline([("encoder", copy.deepcopy(model.encoder_)), ("tree", tree)])
    feature, threshold = arrays.feature.copy(), arrays.threshold.copy()
    missing_left = np.zeros(arrays.node_count)
    for node in np.flatnonzero(arrays.feature >= 0).tolist():
        condition = model.encoder_.conditions_[arrays.feature[node]]
        feature[node], threshold[node] = condition.column, _threshold(condition)
        missing_left[node] = not condition.holds_if_missing
    tree = _classifier(model, held, impurity, feature, threshold, missing_left, model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        tree.feature_names_in_ = model.feature_names_in_.copy()
    return tree


def _why_encoded(model: Any) -> str:
    """Return why a tree on the columns of X is impossible; empty if it is possible."""
    encoder = model.encoder_
    if not isinstance(encoder, BinaryEncoder):
        return f"the conditions of a {type(encoder).__name__} are unknown"
    for place, kind in enumerate(encoder.kinds_):
        if kind not in ("numeric", "boolean"):
            return f"scikit-learn's trees take numbers only, and column {_name(model, place)!r} is {kind}"
    if encoder.oversized_:
        large = _name(model, encoder.oversized_[0])
        return f"scikit-learn's trees refuse numbers beyond single precision, and column {large!r} may have some"
    for feature in sorted(model.tree_.tree.features_used):
        condition = encoder.conditions_[feature]
        said = condition.text(_name(model, condition.column))
        if not _is_threshold(condition):
            return f"{said!r} is no threshold"
        if feature in encoder.inexact_:
            return f"scikit-learn's trees use single precision, in which {said!r} may have another answer"
    return ""


def _name(model: Any, column: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return f"x{column}" if names is None else str(names[column])


def _is_threshold(condition: Condition) -> bool:
    if condition.test == "equals":
        return condition.value == 1.0
    return condition.high is None


def _threshold(condition: Condition) -> float:
    """Return the largest value that goes to the left, the side of "no"."""
    if condition.test == "is_missing":
        return float("inf")  # as in scikit-learn: every known value is below
    if condition.low is None:
        return 0.5
    return float(np.nextafter(condition.low, -np.inf))


def _probabilities(model: Any) -> FloatArray:
    arrays, classes = model.tree_, model.classes_
    held = class_probabilities(model)
    for leaf in np.flatnonzero(arrays.label >= 0).tolist():
        label, largest = int(arrays.label[leaf]), int(held[leaf].argmax())
        if label != largest:
            raise InvalidInputError(
                f"leaf {leaf} predicts {classes[label].item()!r}, but {classes[largest].item()!r} has the largest "
                "probability there, which scikit-learn would predict; values='labels' keeps the predictions, not the "
                "probabilities"
            )
    return _without_gaps(arrays, held[:, None, :])


def _labels(arrays: FittedTree) -> FloatArray:
    """Return the label of each leaf as shares; at a branch node, the shares of the labels below it."""
    weights = np.zeros_like(arrays.class_weights)
    for node in range(arrays.node_count - 1, -1, -1):  # children have larger numbers
        if arrays.label[node] >= 0:
            weights[node, arrays.label[node]] = arrays.weighted_n_node_samples[node]
        else:
            weights[node] = weights[arrays.children_left[node]] + weights[arrays.children_right[node]]
    total = weights.sum(axis=1, keepdims=True)
    held = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    leaves = np.flatnonzero(arrays.label >= 0)
    held[leaves] = np.eye(weights.shape[1])[arrays.label[leaves]]
    return _without_gaps(arrays, held[:, None, :])


def _without_gaps(arrays: FittedTree, held: FloatArray) -> FloatArray:
    """Fill the shares of branch nodes without training samples, so that they sum to one."""
    held = held.copy()
    for node in range(arrays.node_count - 1, -1, -1):
        if arrays.label[node] < 0 and not held[node].any():
            held[node] = (held[arrays.children_left[node]] + held[arrays.children_right[node]]) / 2
    return held


def _classifier(
    model: Any, held: FloatArray, impurity: FloatArray, feature: Any, threshold: Any, missing_left: Any, n_features: int
) -> Any:
    """Create a classifier by scikit-learn's `fit`, then replace its tree the way unpickling does."""
    from sklearn.tree import DecisionTreeClassifier

    arrays: FittedTree = model.tree_
    n_classes = len(model.classes_)
    classifier = DecisionTreeClassifier(max_depth=arrays.max_depth or None)
    classifier.fit(np.zeros((n_classes, n_features)), np.arange(n_classes))
    classifier.classes_ = model.classes_.copy()
    cls, arguments, state = classifier.tree_.__reduce__()
    nodes = np.zeros(arrays.node_count, dtype=state["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = arrays.children_left, arrays.children_right
    nodes["feature"], nodes["threshold"] = feature, threshold
    nodes["impurity"] = impurity
    nodes["n_node_samples"] = arrays.n_node_samples
    nodes["weighted_n_node_samples"] = arrays.weighted_n_node_samples
    nodes["missing_go_to_left"] = missing_left
    tree = cls(*arguments)
    tree.__setstate__(
        {
            **state,
            "max_depth": arrays.max_depth,
            "node_count": arrays.node_count,
            "nodes": nodes,
            "values": np.ascontiguousarray(held),
        }
    )
    classifier.tree_ = tree
    return classifier
