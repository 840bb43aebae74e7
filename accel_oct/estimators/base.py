"""What a fitted tree can do as a scikit-learn classifier, however it was found."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.labels import as_labels, as_weights, encode_labels
from accel_oct.encoding.base import BinaryEncoder, check_table
from accel_oct.encoding.passthrough import PassthroughEncoder
from accel_oct.encoding.table import TableEncoder
from accel_oct.errors import InvalidInputError, as_invalid_input
from accel_oct.export import to_html, to_json, to_text
from accel_oct.solving.result import Result
from accel_oct.tree.fitted_tree import FittedTree

__all__ = ["TrainingData", "TreeClassifier"]


class TrainingData:
    """Checked and encoded training data.

    Weights are for the solver; times `unit` they are what scikit-learn would report.
    """

    def __init__(
        self, binary: Any, codes: NDArray[np.int64], classes: NDArray[Any], weights: NDArray[np.float64], unit: float
    ) -> None:
        self.n_features = binary.shape[1]
        # A table without a single useful column still has an optimal tree, the leaf; solvers want a column.
        X = binary if self.n_features else np.zeros((len(codes), 1), dtype=bool)
        dataset = BinaryDataset.from_arrays(X, codes, weights, name="encoder output")
        # Constraints name classes as the user does.
        self.dataset = replace(dataset, classes=classes.copy())
        self.unit = unit


class TreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What a fitted tree can do, however it was found."""

    encoder: Any
    missing: str
    class_weight: Any
    constraints: Any = None

    # ---------------------------------------------------------------- prediction

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        leaves = self.apply(X)
        return np.asarray(self.classes_[self.tree_.label[leaves]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The shares of the classes among the (weighted) training samples of the leaf that each row falls into."""
        binary = self._encoded(X)
        return self.tree_.predict(binary)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The leaf that each row falls into, as numbered in `tree_`."""
        binary = self._encoded(X)
        return self.tree_.apply(binary)

    def decision_path(self, X: Any) -> Any:
        """Sparse indicator matrix of the nodes that each row passes."""
        binary = self._encoded(X)
        return self.tree_.decision_path(binary)

    # ---------------------------------------------------------------- the tree

    def get_depth(self) -> int:
        """Depth of the tree; a single leaf has depth 0."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.max_depth)

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.n_leaves)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column of X in the decrease of Gini impurity.

        With an encoder of another library, the shares are those of its output columns.
        """
        check_is_fitted(self, "tree_")
        shares = self.tree_.importances()
        if not isinstance(self.encoder_, BinaryEncoder):
            return shares
        columns = np.array([condition.column for condition in self.encoder_.conditions_], dtype=np.int64)
        return np.bincount(columns, shares, self.n_features_in_).astype(np.float64)

    def to_text(self) -> str:
        """The tree as indented rules; see `accel_oct.export` for other forms."""
        return to_text(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """The fitted classifier as JSON text, written to a file when `path` is given."""
        return to_json(self, path)

    # ---------------------------------------------------------------- fitting

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Check the data, learn the encoding, and remember the classes."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it holds the classes"
            )
        table = check_table(self, X, reset=True)
        with as_invalid_input():
            labels = column_or_1d(as_labels(y), warn=True)
            check_consistent_length(table, labels)
        self.classes_, codes = encode_labels(labels, len(table))
        with as_invalid_input():
            check_classification_targets(labels)
        weights = as_weights(sample_weight, len(table))
        self.encoder_ = self._fitted_encoder(X, y, None if sample_weight is None else weights)
        unit = 1.0
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            weights, unit = _balanced(codes, weights)
        elif self.class_weight is not None:
            with as_invalid_input("class_weight"):
                weights = weights * compute_sample_weight(self.class_weight, labels)
        return TrainingData(self._transformed(X), codes, self.classes_, weights, unit)

    def _fitted_encoder(self, X: Any, y: Any, weights: Any) -> Any:
        if self.encoder is None:
            encoder = PassthroughEncoder()
        elif isinstance(self.encoder, str):
            if self.encoder != "auto":
                raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
            encoder = TableEncoder(missing=self.missing)
        elif hasattr(self.encoder, "transform"):
            encoder = clone(self.encoder)
        else:
            raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
        if weights is not None and has_fit_parameter(encoder, "sample_weight"):
            return encoder.fit(X, y, sample_weight=weights)
        return encoder.fit(X, y)

    def _adopt(self, result: Result, data: TrainingData) -> None:
        """Keep the tree that was found, in the user's terms."""
        tree = result.tree
        if not self.constraints:  # among equally good labels the first; under constraints labels are part of the tree
            tree = tree.relabelled(data.dataset)
        self.result_ = replace(
            result,
            found=tree,
            feature_names=tuple(str(name) for name in self._binary_names()),
            class_names=tuple(str(label) for label in self.classes_),
        )
        arrays = FittedTree.from_training(tree, data.dataset)
        self.tree_ = replace(arrays, class_weights=arrays.class_weights * data.unit, n_features=data.n_features)
        self.objective_ = result.objective
        self.bound_ = result.bound
        self.gap_ = result.gap
        self.status_ = result.status

    # ---------------------------------------------------------------- helpers

    def _encoded(self, X: Any) -> BoolMatrix:
        check_is_fitted(self, "tree_")
        check_table(self, X, reset=False)
        return as_binary_matrix(self._transformed(X), name="encoder output")

    def _transformed(self, X: Any) -> Any:
        """What the encoder makes of the columns, not checked yet."""
        binary = self.encoder_.transform(X)
        return binary.toarray() if hasattr(binary, "toarray") else binary

    def _binary_names(self) -> NDArray[Any]:
        return np.asarray(self.encoder_.get_feature_names_out())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.encoder, str):
            tags.input_tags.allow_nan = self.missing == "category"
            tags.input_tags.categorical = tags.input_tags.string = True
        elif hasattr(self.encoder, "__sklearn_tags__"):
            tags.input_tags = self.encoder.__sklearn_tags__().input_tags
            tags.input_tags.sparse = False
        return tags

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._tree_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._tree_html()
        return bundle

    def _tree_html(self) -> str:
        return to_html(self) if hasattr(self, "tree_") else ""


#: Below this total the data set keeps whole weights as they are.
_EXACT_TOTAL = 2**51


def _balanced(codes: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights that give every class the same total, and the unit that makes the grand total what it was.

    Whole sample weights stay whole: times the least common multiple of the class totals, over the total of the class.
    Sums are exact then, so ties between trees are broken alike whether a sample is repeated or has weight 2.
    """
    totals = np.bincount(codes, weights)
    present = totals[totals > 0]
    scale = float(totals.sum()) / len(present)
    if np.all(weights == np.floor(weights)) and present.max() < _EXACT_TOTAL:
        multiple = math.lcm(*(int(total) for total in present))
        if multiple * len(present) < _EXACT_TOTAL:
            scale = float(multiple)
    factors = np.divide(scale, totals, out=np.zeros(len(totals)), where=totals > 0)
    return weights * factors[codes], float(totals.sum()) / (scale * len(present))
