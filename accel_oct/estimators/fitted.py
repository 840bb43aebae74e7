"""Prediction, description and export of a fitted tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.data.labels import as_labels
from accel_oct.encoding.base import BinaryEncoder, check_table
from accel_oct.errors import as_invalid_input
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.in_pieces import in_memory_only, outputs_by_batch
from accel_oct.export import (
    DecisionTable,
    to_html,
    to_json,
    to_onnx,
    to_pmml,
    to_sklearn,
    to_sql,
    to_table,
    to_text,
)
from accel_oct.pieces.detection import is_in_pieces, is_source
from accel_oct.solving.result import Result, Scope
from accel_oct.tree.fitted_tree import FittedTree

_ALL_SUBSETS = 3
"""Largest number of categories for which one against the others covers every binary split."""


class FittedModel(BaseEstimator):  # type: ignore[misc]
    """A fitted tree: prediction, proof and export from `tree_`, `encoder_`, `classes_` and `result_`."""

    encoder: Any
    missing: str
    max_depth: Any
    tree_: FittedTree
    encoder_: Any
    classes_: NDArray[Any]
    result_: Result
    bound_: float
    objective_: float
    status_: str
    gap_: float

    # ---------------------------------------------------------------- prediction

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row.

        X may be any type that `fit` accepts, including a path and data in pieces such as a dask DataFrame. Columns of
        files and pieces are matched to those of `fit` by name. The result is an array in the order of the rows.
        """
        leaves = self.apply(X)
        return np.asarray(self.classes_[self.tree_.label[leaves]])

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index in `tree_` of the leaf of each row."""
        return np.asarray(self._outputs(X, self._tree().apply))

    def decision_path(self, X: Any) -> Any:
        """Return a sparse indicator matrix of the nodes on the path of each row."""
        return self._outputs(X, self._tree().decision_path)

    # ---------------------------------------------------------------- the tree

    def get_depth(self) -> int:
        """Return the depth of the tree; a single leaf has depth 0."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.max_depth)

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
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

    @property
    def exact_(self) -> bool:
        """Whether `bound_` holds for every threshold of the table and each category against the others."""
        check_is_fitted(self, "tree_")
        return self._holds_for_table(self.result_)

    @property
    def table_bound_(self) -> float | None:
        """Upper bound over every split of the table: `bound_` if `exact_`; None if no such bound is known."""
        check_is_fitted(self, "tree_")
        bound = self.result_.stats.get("table_bound")
        return self.bound_ if self.exact_ else float(bound) if isinstance(bound, int | float) else None

    def _holds_for_table(self, result: Result | None) -> bool:
        """Return whether the bound of a result holds for all splits."""
        if result is None or getattr(self.encoder_, "exact_", False):
            return bool(getattr(self.encoder_, "exact_", False))
        bound = result.stats.get("table_bound")
        return isinstance(bound, int | float) and bound <= result.objective

    @property
    def proof_(self) -> str:
        """Description of what is proven, and over which trees."""
        check_is_fitted(self, "tree_")
        scope = self._scope(self.result_)
        over = f"over {scope.splits}, {scope.depth}"
        if scope.max_depth is None:
            over += f" (searched to depth {self.result_.stats.get('searched_depth')})"
        near = getattr(self, "closest_", None)
        if near is not None and near.status == "optimal":
            most = "share most splits" if getattr(self, "agreement", "") == "splits" else "agree most"
            return f"proven to {most} with the old model within {near.within:g} of the optimum {over}"
        if self.status_ == "optimal":
            return f"proven optimal {over}{self._beyond_chosen()}"
        gap = "below 0.01%" if 0 < self.gap_ < 5e-5 else f"{self.gap_:.2%}"
        return f"not proven ({self.status_}): gap {gap} {over}{self._beyond_chosen()}"

    def _beyond_chosen(self) -> str:
        """Describe how much better a tree over other splits could be, if a bound is known."""
        bound = self.table_bound_
        if self.exact_ or bound is None:
            return ""
        return f"; a tree over other splits of the table is better by {bound - self.objective_:.4g} at most"

    def _scope(self, result: Result | None = None) -> Scope:
        """Return the trees that the proof of a result covers; without a result, those of the encoder's splits."""
        excluded = "ignored" in getattr(self.encoder_, "kinds_", ())
        columns = "the columns that are not excluded" if excluded else "the table"
        exact = self._holds_for_table(result)
        if not exact:
            splits = f"{len(feature_names(self.encoder_))} chosen splits of {columns}"
        elif any(len(known) > _ALL_SUBSETS for known in getattr(self.encoder_, "categories_", {}).values()):
            splits = f"every threshold of {columns} and each category against the others"
        else:
            splits = f"all splits of {columns}"
        depth = self.max_depth_ if hasattr(self, "max_depth_") else self.max_depth
        return Scope(None if depth is None else int(depth), splits, exact)

    def to_text(self) -> str:
        """Return the tree as indented rules; see `accel_oct.export` for other formats."""
        return to_text(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the fitted classifier as JSON text, written to a file if `path` is given."""
        return to_json(self, path)

    def to_onnx(self, path: str | Path | None = None, *, missing_text: str = "") -> bytes:
        """Return the tree as an ONNX model, written to a file if `path` is given; see `accel_oct.export.to_onnx`."""
        return to_onnx(self, path, missing_text=missing_text)

    def to_pmml(self, path: str | Path | None = None) -> str:
        """Return the tree as a PMML document, written to a file if `path` is given; see `accel_oct.export.to_pmml`."""
        return to_pmml(self, path)

    def to_sql(self, *, column: str | None = None, dialect: str = "ansi") -> str:
        """Return the tree as an SQL expression; see `accel_oct.export.to_sql`."""
        return to_sql(self, column=column, dialect=dialect)

    def to_table(self) -> DecisionTable:
        """Return the tree as a decision table, one row per leaf; see `accel_oct.export.to_table`."""
        return to_table(self)

    def to_sklearn(self, *, encoded: bool | None = None, values: str = "shares") -> Any:
        """Return an equivalent `DecisionTreeClassifier`, or a pipeline with one; see `accel_oct.export`."""
        return to_sklearn(self, encoded=encoded, values=values)

    # ---------------------------------------------------------------- helpers

    def _tree(self) -> FittedTree:
        check_is_fitted(self, "tree_")
        return self.tree_

    def _outputs(self, X: Any, answer: Callable[[BoolMatrix], Any]) -> Any:
        """Return the output of `answer` for the rows, piece by piece for data in pieces."""
        X = given_data(X, like=self).X
        if not is_source(X):
            return answer(self._encoded(X))
        parts, _ = outputs_by_batch(self, X, answer)
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def _encoded(self, X: Any) -> BoolMatrix:
        check_is_fitted(self, "tree_")
        table = check_table(self, X, reset=False)
        own = isinstance(self.encoder_, BinaryEncoder)
        return as_binary_matrix(transformed(self.encoder_, table if own else X), name="encoder output")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if isinstance(self.encoder, str):
            tags.input_tags.allow_nan = self.missing == "category"
            tags.input_tags.categorical = tags.input_tags.string = True
        elif hasattr(self.encoder, "__sklearn_tags__"):
            tags.input_tags = self.encoder.__sklearn_tags__().input_tags
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


class FittedClassifier(ClassifierMixin, FittedModel):  # type: ignore[misc]
    """A fitted classifier: a fitted tree with probabilities, accuracy and report."""

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the shares of the classes among the weighted training samples in the leaf of each row."""
        return np.asarray(self._outputs(X, self._tree().predict))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`: y and weights may be names of columns of X.
        """
        from sklearn.metrics import accuracy_score

        given = given_data(X, y, sample_weight, like=self)
        labels, weights = given.y, given.sample_weight
        if is_in_pieces(given.X, labels):
            answers, columns = outputs_by_batch(self, given.X, self._tree().apply, labels, weights)
            predicted = self.classes_[self.tree_.label[np.concatenate(answers)]]
            labels, weights = columns if len(columns) == 2 else (columns[0], weights)
        else:
            predicted = self.predict(given.X)
        with as_invalid_input():
            return float(accuracy_score(as_labels(labels), predicted, sample_weight=weights))

    def report(
        self,
        path: str | Path,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        test: tuple[Any, Any] | None = None,
        near_optimal: Any = None,
        certificate: str | Path | None = None,
        title: str | None = None,
    ) -> Path:
        """Write a report on the fitted tree as a self-contained HTML file; see `accel_oct.report`."""
        # Imported here to keep the import of the package fast.
        from accel_oct.report.page import write_report

        given = given_data(X, y, sample_weight, like=self)
        if is_in_pieces(given.X, given.y):
            raise in_memory_only("a report")
        tested = None if test is None else given_data(*test, like=self)
        return write_report(
            self,
            path,
            given.X,
            given.y,
            sample_weight=given.sample_weight,
            test=None if tested is None else (tested.X, tested.y),
            near_optimal=near_optimal,
            certificate=certificate,
            title=title,
        )


def feature_names(encoder: Any) -> tuple[str, ...]:
    """Return the names of the output columns of a fitted encoder."""
    return tuple(map(str, encoder.get_feature_names_out()))


def transformed(encoder: Any, X: Any) -> Any:
    """Return the dense output of a fitted encoder, not checked yet."""
    binary = encoder.transform(X)
    return binary.toarray() if hasattr(binary, "toarray") else binary
