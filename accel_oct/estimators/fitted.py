"""Prediction, description and export of a fitted tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix
from accel_oct.data.labels import as_labels
from accel_oct.encoding.base import BinaryEncoder, check_table
from accel_oct.encoding.spreads import ColumnSpread
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
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
from accel_oct.reasons.explanations import Explanations, explain
from accel_oct.reasons.leaves import LeafTable, held_out_counts, leaf_table
from accel_oct.solving.result import Result, Scope
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import exact_interval, node_probabilities

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
    smoothing_: float
    spreads_: dict[int, ColumnSpread]

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

    def predict_proba(self, X: Any, *, class_weights: bool = True) -> NDArray[np.float64]:
        """Return the probability of each class for each row: (n_samples, n_classes).

        The share of the class among the training samples of the leaf, moved towards its share among all training
        samples: ``(n * share + m * prior) / (n + m)`` in a leaf of n samples, with m = `smoothing_`. In a leaf that
        predicts its majority class m is lowered until this class also has the largest probability. Leaves that predict
        another class, because of constraints or costs, have probabilities that disagree with `predict`; see
        docs/probabilities.md.

        Parameters
        ----------
        X
            As in `predict`.
        class_weights : bool
            Whether shares use the weights with the factors of ``class_weight``. False estimates the probabilities of
            the classes as frequent as in the training data.
        """
        shares = node_probabilities(self._tree(), self.smoothing_, class_weights)
        return shares[self.apply(X)]

    def predict_interval(self, X: Any, confidence: float = 0.95) -> NDArray[np.float64]:
        """Return an exact interval for the share of each class in the leaf of each row: (n_samples, n_classes, 2).

        The Clopper-Pearson interval of the number of training rows of the class among those of the leaf, without any
        weights. The tree was chosen on the same rows, so the interval is too optimistic; `leaf_table` takes other rows.

        Parameters
        ----------
        X
            As in `predict`.
        confidence : float
            Between 0 and 1.
        """
        counts = self._tree().class_counts
        limits = exact_interval(counts, counts.sum(axis=1, keepdims=True), confidence)
        return np.stack(limits, axis=-1)[self.apply(X)]

    def leaf_table(self, X: Any = None, y: Any = None, *, confidence: float = 0.95) -> LeafTable:
        """Return the leaves as a table: rule, class, rows of each class, probability, exact interval.

        Parameters
        ----------
        X, y : optional
            Rows to count, which had no part in choosing the tree: then the interval of each leaf is a valid confidence
            interval. By default, the training rows are counted. y may be the name of a column of X. Rows of classes
            that the model does not know are left out; that all rows are is an error.
        confidence : float
            Between 0 and 1.
        """
        tree = self._tree()
        if X is None:
            return leaf_table(self, confidence=confidence)
        if y is None:
            raise InvalidInputError("leaf_table needs y beside X: the classes of the rows")
        given = given_data(X, y, like=self)
        if is_in_pieces(given.X, given.y):
            raise in_memory_only("leaf_table")
        with as_invalid_input():
            labels = np.asarray(as_labels(given.y)).reshape(-1)
            leaves = self.apply(given.X)
            check_consistent_length(leaves, labels)
        place = {label: code for code, label in enumerate(self.classes_.tolist())}
        codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
        if (codes < 0).all():
            raise InvalidInputError(
                f"y holds no class of the model, which are {shown(self.classes_.tolist())}; its first value is "
                f"{shown(labels.tolist()[0])}"
            )
        counts = held_out_counts(leaves, codes, tree.class_counts.shape)
        return leaf_table(self, counts, confidence=confidence)

    def explain(self, X: Any, *, fixed: Any = (), direction: Any = None, to: Any = None) -> Explanations:
        """Explain the prediction of each row: its path, up to four reasons, and the smallest change to another class.

        Parameters
        ----------
        X
            As in `predict`, in memory.
        fixed : list of str or int
            Columns that cannot change, by name or position.
        direction : mapping from str or int to int, optional
            1 for columns that can only rise, -1 for columns that can only fall.
        to : label, optional
            The class that the changed row must have; by default, any other class.

        Returns
        -------
        Explanations
            A sequence with an `Explanation` per row. ``print(model.explain(X))``; `to_frame`, `to_json`.

        Notes
        -----
        The smallest change is exact: of all values of all columns, the fewest columns are changed; among these changes
        the least sum of distances is taken, in interquartile ranges of the training data for numbers, times and ordered
        categories, and 1 for any other change. A known value never becomes missing. docs/guides/explain.md has the
        definitions.
        """
        check_is_fitted(self, "tree_")
        given = given_data(X, like=self).X
        if is_source(given):
            raise in_memory_only("explain")
        table = check_table(self, given, reset=False)
        leaves = self.apply(table if isinstance(self.encoder_, BinaryEncoder) else given)
        return explain(self, table, leaves, fixed=fixed, direction=direction, to=to)

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
        groups: Any = None,
        stability: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a report on the fitted tree as a self-contained HTML file; see `accel_oct.report.html_report`."""
        # Imported here to keep the import of the package fast.
        from accel_oct.report.page import write_report

        rows = self._reported("a report", X, y, sample_weight, test)
        shared = {"groups": groups, "stability": stability, "title": title}
        return write_report(self, path, **rows, near_optimal=near_optimal, certificate=certificate, **shared)

    def model_card(
        self,
        path: str | Path,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        test: tuple[Any, Any] | None = None,
        groups: Any = None,
        stability: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a model card in Markdown; see `accel_oct.report.model_card`."""
        # Imported here to keep the import of the package fast.
        from accel_oct.report.card import write_card

        rows = self._reported("a model card", X, y, sample_weight, test)
        return write_card(self, path, **rows, groups=groups, stability=stability, title=title)

    def _reported(self, what: str, X: Any, y: Any, sample_weight: Any, test: tuple[Any, Any] | None) -> dict[str, Any]:
        """Return the rows of a report, with columns given by name taken from the tables."""
        given = given_data(X, y, sample_weight, like=self)
        if is_in_pieces(given.X, given.y):
            raise in_memory_only(what)
        tested = None if test is None else given_data(*test, like=self)
        pair = None if tested is None else (tested.X, tested.y)
        return {"X": given.X, "y": given.y, "sample_weight": given.sample_weight, "test": pair}


def feature_names(encoder: Any) -> tuple[str, ...]:
    """Return the names of the output columns of a fitted encoder."""
    return tuple(map(str, encoder.get_feature_names_out()))


def transformed(encoder: Any, X: Any) -> Any:
    """Return the dense output of a fitted encoder, not checked yet."""
    binary = encoder.transform(X)
    return binary.toarray() if hasattr(binary, "toarray") else binary
