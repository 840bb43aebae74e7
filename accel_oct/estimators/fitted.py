"""What a fitted tree can do as a scikit-learn classifier, however it was found."""

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
from accel_oct.estimators.in_pieces import answered, in_memory_only
from accel_oct.export import to_html, to_json, to_sklearn, to_text
from accel_oct.pieces.recognising import is_in_pieces, is_source
from accel_oct.solving.result import Result, Scope
from accel_oct.tree.fitted_tree import FittedTree

__all__ = ["FittedClassifier", "feature_names", "transformed"]

_ALL_SUBSETS = 3
"""Up to so many categories, each of them against the others is every way to split them in two."""


class FittedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts, tells and stores; has `tree_`, `encoder_`, `classes_` and what is proven."""

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
        """The class of each row.

        X may be whatever `fit` takes, data in pieces among it: a path, a dask DataFrame and so on. From these, and from
        files, columns are taken by the names that there were in `fit`. The answers are in memory, in the order of the
        rows.
        """
        leaves = self.apply(X)
        return np.asarray(self.classes_[self.tree_.label[leaves]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The shares of the classes among the (weighted) training samples of the leaf that each row falls into."""
        return np.asarray(self._answers(X, self._tree().predict))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The leaf that each row falls into, as numbered in `tree_`."""
        return np.asarray(self._answers(X, self._tree().apply))

    def decision_path(self, X: Any) -> Any:
        """Sparse indicator matrix of the nodes that each row passes."""
        return self._answers(X, self._tree().decision_path)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`: y and weights may be names of columns where X has names.
        """
        from sklearn.metrics import accuracy_score

        given = given_data(X, y, sample_weight, like=self)
        labels, weights = given.y, given.sample_weight
        if is_in_pieces(given.X, labels):
            answers, columns = answered(self, given.X, self._tree().apply, labels, weights)
            predicted = self.classes_[self.tree_.label[np.concatenate(answers)]]
            labels, weights = columns if len(columns) == 2 else (columns[0], weights)
        else:
            predicted = self.predict(given.X)
        with as_invalid_input():
            return float(accuracy_score(as_labels(labels), predicted, sample_weight=weights))

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

    @property
    def exact_(self) -> bool:
        """Whether `bound_` holds for every threshold of the table and each category against the others."""
        check_is_fitted(self, "tree_")
        return self._holds_for_table(self.result_)

    @property
    def table_bound_(self) -> float | None:
        """What no tree over any split of the table exceeds: `bound_` where `exact_`; None where it is not known."""
        check_is_fitted(self, "tree_")
        bound = self.result_.stats.get("table_bound")
        return self.bound_ if self.exact_ else float(bound) if isinstance(bound, int | float) else None

    def _holds_for_table(self, result: Result | None) -> bool:
        """Whether what is proven of a result is proven of all splits."""
        if result is None or getattr(self.encoder_, "exact_", False):
            return bool(getattr(self.encoder_, "exact_", False))
        bound = result.stats.get("table_bound")
        return isinstance(bound, int | float) and bound <= result.objective

    @property
    def proof_(self) -> str:
        """What is proven, and over which trees, in words."""
        check_is_fitted(self, "tree_")
        scope = self._scope(self.result_)
        over = f"over {scope.splits}, {scope.depth}"
        if scope.max_depth is None:
            over += f" (searched to depth {self.result_.stats.get('searched_depth')})"
        if self.status_ == "optimal":
            return f"proven optimal {over}{self._beyond_chosen()}"
        gap = "below 0.01%" if 0 < self.gap_ < 5e-5 else f"{self.gap_:.2%}"
        return f"not proven ({self.status_}): gap {gap} {over}{self._beyond_chosen()}"

    def _beyond_chosen(self) -> str:
        """How much better a tree over other splits could be, where that is known."""
        bound = self.table_bound_
        if self.exact_ or bound is None:
            return ""
        return f"; a tree over other splits of the table is better by {bound - self.objective_:.4g} at most"

    def _scope(self, result: Result | None = None) -> Scope:
        """The trees that the proof of a result is about; without one, those that the encoder can ask for."""
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
        """The tree as indented rules; see `accel_oct.export` for other forms."""
        return to_text(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """The fitted classifier as JSON text, written to a file when `path` is given."""
        return to_json(self, path)

    def to_sklearn(self, *, encoded: bool | None = None, values: str = "shares") -> Any:
        """A fitted `DecisionTreeClassifier`, or a pipeline with one, that predicts the same: see `accel_oct.export`."""
        return to_sklearn(self, encoded=encoded, values=values)

    def report(
        self,
        path: str | Path,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        test: tuple[Any, Any] | None = None,
        near_optimal: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a report on the fitted tree, one HTML file that needs nothing else: see `accel_oct.report`."""
        # Few ask for it, and nobody should wait for it.
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
            title=title,
        )

    # ---------------------------------------------------------------- helpers

    def _tree(self) -> FittedTree:
        check_is_fitted(self, "tree_")
        return self.tree_

    def _answers(self, X: Any, answer: Callable[[BoolMatrix], Any]) -> Any:
        """What the tree says of the rows, piece by piece where they come in pieces."""
        X = given_data(X, like=self).X
        if not is_source(X):
            return answer(self._encoded(X))
        parts, _ = answered(self, X, answer)
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


def feature_names(encoder: Any) -> tuple[str, ...]:
    """Return the names of the columns that a fitted encoder gives."""
    return tuple(map(str, encoder.get_feature_names_out()))


def transformed(encoder: Any, X: Any) -> Any:
    """Return what a fitted encoder makes of a table, dense and not checked yet."""
    binary = encoder.transform(X)
    return binary.toarray() if hasattr(binary, "toarray") else binary
