"""What a fitted tree can do as a scikit-learn classifier, however it was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.encoding.base import BinaryEncoder, check_table
from accel_oct.export import to_html, to_json, to_sklearn, to_text
from accel_oct.solving.result import Scope
from accel_oct.tree.fitted_tree import FittedTree

__all__ = ["FittedClassifier"]

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

    @property
    def exact_(self) -> bool:
        """Whether every threshold of the table, and each category against the others, was among the features."""
        check_is_fitted(self, "tree_")
        return bool(getattr(self.encoder_, "exact_", False))

    @property
    def proof_(self) -> str:
        """What is proven, and over which trees, in words."""
        check_is_fitted(self, "tree_")
        scope = self._scope()
        over = f"over {scope.splits}, depth at most {scope.max_depth}"
        if self.status_ == "optimal":
            return f"proven optimal {over}"
        gap = "below 0.01%" if 0 < self.gap_ < 5e-5 else f"{self.gap_:.2%}"
        return f"not proven ({self.status_}): gap {gap} {over}"

    def _scope(self) -> Scope:
        """The trees that are searched."""
        columns = "the table" if getattr(self, "exclude", None) is None else "the columns that are not excluded"
        exact = bool(getattr(self.encoder_, "exact_", False))
        if not exact:
            splits = f"{len(self._binary_names())} chosen splits of {columns}"
        elif any(len(known) > _ALL_SUBSETS for known in getattr(self.encoder_, "categories_", {}).values()):
            splits = f"every threshold of {columns} and each category against the others"
        else:
            splits = f"all splits of {columns}"
        return Scope(int(self.max_depth_ if hasattr(self, "max_depth_") else self.max_depth), splits, exact)

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

        more = {"sample_weight": sample_weight, "test": test, "near_optimal": near_optimal, "title": title}
        return write_report(self, path, X, y, **more)

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
