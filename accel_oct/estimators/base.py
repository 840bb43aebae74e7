"""What a fitted tree can do as a scikit-learn classifier, however it was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from accel_oct.constraints import Constraint
from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.data.dataset import weighted_bincount
from accel_oct.data.labels import as_labels, as_weights, encode_labels
from accel_oct.encoding.base import BinaryEncoder, check_table
from accel_oct.encoding.passthrough import PassthroughEncoder
from accel_oct.encoding.table import TableEncoder
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.estimators.constraint_table import ConstraintTable
from accel_oct.estimators.rules import all_constraints, excluded_columns, nested_parameters, with_nested
from accel_oct.estimators.training import RowValues, TrainingData, attached, training_data
from accel_oct.export import to_html, to_json, to_sklearn, to_text
from accel_oct.objectives import Accuracy, ClassWeights, Objective, as_objective
from accel_oct.objectives.shares import balancing
from accel_oct.solving.result import Result
from accel_oct.tree.fitted_tree import FittedTree

__all__ = ["TreeClassifier"]

_NESTED = ("constraints__", "objective__")


class TreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What a fitted tree can do, however it was found."""

    encoder: Any
    missing: str
    class_weight: Any
    objective: Any
    constraints: Any
    min_samples_leaf: Any
    max_leaf_nodes: Any
    max_features_used: Any
    exclude: Any

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

    def to_sklearn(self, *, encoded: bool | None = None, values: str = "shares") -> Any:
        """A fitted `DecisionTreeClassifier`, or a pipeline with one, that predicts the same: see `accel_oct.export`."""
        return to_sklearn(self, encoded=encoded, values=values)

    # ---------------------------------------------------------------- fitting

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any = None, costs: Any = None
    ) -> TrainingData:
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
        given = attached(sensitive_features, costs, len(table))
        ignored = excluded_columns(self.exclude, table)
        self.encoder_ = self._fitted_encoder(X, y, None if sample_weight is None else weights, ignored)
        factors = self._class_factors(labels, codes, weights)
        own = isinstance(self.encoder_, BinaryEncoder)
        columns = [table.name(condition.column) for condition in self.encoder_.conditions_] if own else None
        return training_data(
            self._transformed(X),
            codes,
            self.classes_,
            weights,
            sources=None if columns is None else tuple(columns),
            rows=RowValues(table, given),
            objective=self._objective(factors),
            class_factors=factors,
            names=tuple(map(str, self._binary_names())),
        )

    def _class_factors(self, labels: Any, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
        """By class, what `class_weight` multiplies weights with."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factors, norm = balancing(weighted_bincount(codes, weights, len(self.classes_)), integral=False)
            return factors * (float(weights.sum()) / norm)
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        with as_invalid_input("class_weight"):
            return compute_class_weight(self.class_weight, classes=self.classes_, y=labels)

    def _objective(self, class_factors: Any) -> Objective:
        if self.class_weight is None:
            return as_objective(self.objective)
        if not isinstance(as_objective(self.objective), Accuracy):
            raise InvalidInputError(
                f"class_weight cannot be combined with objective {shown(self.objective)}, which says itself what "
                "classes are worth; leave one of them out"
            )
        if isinstance(self.class_weight, str):
            return ClassWeights(self.class_weight)
        return ClassWeights(dict(zip(self.classes_.tolist(), class_factors.tolist(), strict=True)))

    def _fitted_encoder(self, X: Any, y: Any, weights: Any, ignored: frozenset[int]) -> Any:
        if self.encoder is None:
            encoder: Any = PassthroughEncoder()
        elif isinstance(self.encoder, str):
            if self.encoder != "auto":
                raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
            encoder = TableEncoder(missing=self.missing)
        elif hasattr(self.encoder, "transform"):
            encoder = clone(self.encoder)
        else:
            raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {self.encoder!r}")
        if ignored:
            if not isinstance(encoder, BinaryEncoder):
                raise InvalidInputError("exclude needs an encoder of accel_oct; leave the columns out of yours instead")
            encoder.ignoring(ignored)
        if weights is not None and has_fit_parameter(encoder, "sample_weight"):
            return encoder.fit(X, y, sample_weight=weights)
        return encoder.fit(X, y)

    def _all_constraints(self, data: TrainingData) -> list[Constraint]:
        return all_constraints(
            self.constraints,
            self.min_samples_leaf,
            self.max_leaf_nodes,
            self.max_features_used,
            data.dataset.weights > 0,
        )

    def _adopt(self, result: Result, data: TrainingData) -> None:
        """Keep the tree that was found, in the user's terms."""
        tree = result.tree
        if data.rows is not None and not self._all_constraints(data):
            # Among equally good labels the first; under constraints labels are part of the tree.
            tree = tree.relabelled(data.rows)
        self.result_ = replace(
            result,
            found=tree,
            feature_names=tuple(str(name) for name in self._binary_names()),
            class_names=tuple(str(label) for label in self.classes_),
        )
        arrays = FittedTree.from_training(tree, data.dataset)
        self.tree_ = replace(
            arrays, class_weights=arrays.class_weights * data.class_factors, n_features=data.n_features
        )
        self.objective_ = result.objective
        self.bound_ = result.bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.constraints_ = ConstraintTable(result.constraints)

    # ---------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, those of constraints and objective too, such as ``constraints__0__at_most``."""
        found: dict[str, Any] = super().get_params(deep=deep)
        return {**found, **nested_parameters(self.constraints, self.objective)} if deep else found

    def set_params(self, **params: Any) -> TreeClassifier:
        """Set parameters, ``constraints__0__at_most`` and the like among them: constraints themselves never change."""
        own = {name: value for name, value in params.items() if not name.startswith(_NESTED)}
        super().set_params(**own)
        changes = {name: value for name, value in params.items() if name not in own}
        if changes:
            self.constraints, self.objective = with_nested(self.constraints, self.objective, changes)
        return self

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
