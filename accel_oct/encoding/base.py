"""Base class of encoders: reading of tables, evaluation of conditions, feature names, scikit-learn conventions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from accel_oct.data.weights import as_weights, whole_where_close
from accel_oct.encoding.conditions import (
    Condition,
    beyond_single_precision,
    changed_in_single_precision,
    missing_values,
)
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.tables import Table, as_frame, as_measured, is_pandas, learn_scale
from accel_oct.encoding.values import Kind, as_categories, as_numbers, infer_kind
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.support.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the training data: numbers, or categories as text. Missing values are NaN or None.

    Numbers are float64, or Python integers if whole numbers are too large to be exact as floats.
    """

    index: int
    name: str
    kind: Kind
    values: NDArray[Any]
    scale: Scale | None = None

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return bool(missing_values(self.values).any())


class BinaryEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encoder of the columns of a table to columns of 0 and 1, one for each `Condition`.

    Attributes
    ----------
    conditions_ : tuple of Condition
        One condition per output column.
    exact_ : bool
        Whether the conditions include every split of the table: a threshold between any two neighbouring values, and
        every category. Then a tree that is optimal over the features is optimal on the table.
    inexact_ : tuple of int
        Positions of conditions on numbers whose result changes for some training value that is rounded to single
        precision.
    oversized_ : tuple of int
        Positions of numeric input columns whose training values may overflow in single precision.
    kinds_ : tuple of str
        "numeric", "datetime", "duration", "ordered", "categorical", "boolean" or "ignored" for each input column.
    scales_ : dict of int to Scale
        Meaning of the numbers in conditions on times, durations and ordered categories, by column.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    missing: str
    exact_: bool = False
    conditions_: tuple[Condition, ...]
    inexact_: tuple[int, ...]
    oversized_: tuple[int, ...]
    kinds_: tuple[Kind, ...]
    scales_: dict[int, Scale]
    _orders = False
    _ignored: frozenset[int] = frozenset()
    _n_samples: int | None = None

    # ---------------------------------------------------------------- what a subclass says

    def _kind(self, values: NDArray[Any], name: str) -> Kind:
        """Return the kind of a column."""
        kind = infer_kind(values, name)
        return kind if kind in ("datetime", "duration") else "numeric"

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        """Return the conditions for these columns, except those on missing values."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise for an invalid parameter."""
        if self.missing not in ("error", "category"):
            raise InvalidInputError(f"missing must be 'error' or 'category', got {shown(self.missing)}")

    # ---------------------------------------------------------------- scikit-learn's interface

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryEncoder:
        """Select the conditions.

        Parameters
        ----------
        X : data frame or array-like (n_samples, n_features)
        y : array-like (n_samples,), optional
            Used only by encoders that fit trees.
        sample_weight : array-like (n_samples,), optional
            A whole number counts as that many samples; samples of weight 0 are ignored.
        """
        columns, y, weights = self._learn_columns(X, y, sample_weight)
        found = list(self._find_conditions(columns, y, weights))
        if self.missing == "category":
            of_column: dict[int, list[Condition]] = {}
            for condition in found:
                of_column.setdefault(condition.column, []).append(condition)
            for column in columns:
                if column.has_missing:
                    found += _about_missing(column, of_column.get(column.index, []))
        self._set_conditions(found, columns)
        return self

    def transform(self, X: Any) -> NDArray[np.int8]:
        """Return the binary features, one column per condition.

        Parameters
        ----------
        X : data frame or array-like (n_samples, n_features)
        """
        check_is_fitted(self, "conditions_")
        table = check_table(self, X, reset=False)
        result = np.zeros((len(table), len(self.conditions_)), dtype=np.int8)
        columns = [
            np.empty(0) if kind == "ignored" else self._column(table, j, kind).values
            for j, kind in enumerate(self.kinds_)
        ]
        self._check_known(table, columns)
        places: dict[int, dict[Any, list[int]]] = {}
        thresholds: dict[int, list[int]] = {}
        for place, condition in enumerate(self.conditions_):
            numbers = columns[condition.column].dtype.kind == "f"
            if condition.test == "at_least" and not condition.missing and numbers and isinstance(condition.low, float):
                thresholds.setdefault(condition.column, []).append(place)
            elif condition.test == "equals":
                places.setdefault(condition.column, {}).setdefault(condition.value, []).append(place)
                if condition.missing:
                    result[:, place] = missing_values(columns[condition.column])
            else:
                result[:, place] = condition.holds(columns[condition.column])
        for column, asked in thresholds.items():  # all comparisons of a column at once
            result[:, asked] = columns[column][:, None] >= np.array([self.conditions_[place].low for place in asked])
        for column, of_value in places.items():
            _mark_equal(result, columns[column], of_value)
        return result

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Return the conditions as text, such as ``petal width >= 1.75``."""
        check_is_fitted(self, "conditions_")
        names = self._input_names(input_features)
        return np.array([condition.text(names[condition.column]) for condition in self.conditions_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "category"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # ---------------------------------------------------------------- helpers

    def numbers_of(self, table: Table) -> dict[int, FloatArray]:
        """Return the numeric columns of a table whose conditions are intervals: values by position, NaN if missing."""
        other = {c.column for c in self.conditions_ if c.interval is None and c.test != "is_missing"}
        found = {
            j: self._column(table, j, kind).values
            for j, kind in enumerate(self.kinds_)
            if kind == "numeric" and j not in other
        }
        return {j: values for j, values in found.items() if values.dtype.kind == "f"}

    def _learn_columns(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[Column], Any, FloatArray]:
        """Set the kinds of the columns; return the columns, y and weights of the rows with positive weight."""
        self._check_parameters()
        table = check_table(self, X, reset=True)
        weights = as_weights(sample_weight, len(table))
        kinds: list[Kind] = [
            "ignored" if j in self._ignored else self._kind_in(table, j) for j in range(len(table.columns))
        ]
        present = table if (weights > 0).all() else table.rows(weights > 0)
        learnt = {j: learn_scale(present, j, kind) for j, kind in enumerate(kinds)}
        self.scales_ = {j: scale for j, scale in learnt.items() if scale is not None}
        columns = [self._column(table, j, kind) for j, kind in enumerate(kinds) if kind != "ignored"]
        if (weights == 0).any():
            rows = weights > 0
            columns = [Column(c.index, c.name, c.kind, c.values[rows], c.scale) for c in columns]
            weights, y = weights[rows], None if y is None else np.asarray(y)[rows]
        if not np.all(weights == np.floor(weights)):
            weights = whole_where_close(weights * ((self._n_samples or len(weights)) / weights.sum()))
        self.kinds_ = tuple(kinds)
        return columns, y, weights

    def _set_conditions(self, conditions: Iterable[Condition], columns: Sequence[Column]) -> None:
        """Store the conditions on these columns."""
        found = [replace(c, scale=self.scales_[c.column]) if c.column in self.scales_ else c for c in conditions]
        self.conditions_ = tuple(sorted(found, key=lambda condition: condition.column))
        self.inexact_ = changed_in_single_precision(self.conditions_, {c.index: c.values for c in columns})
        self.oversized_ = tuple(c.index for c in columns if c.kind == "numeric" and beyond_single_precision(c.values))

    def ignoring(self, columns: Collection[int]) -> BinaryEncoder:
        """Return this encoder, set to ignore some input columns in `fit`."""
        self._ignored = frozenset(columns)
        return self

    def standing_for(self, n_samples: int) -> BinaryEncoder:
        """Return this encoder, set for a fit on counted values or a sample that stands for `n_samples` samples."""
        self._n_samples = n_samples
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.conditions_)

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        """Raise for values that `fit` has not seen, if they are not allowed."""

    def _kind_in(self, table: Table, index: int) -> Kind:
        kind, scale = self._kind(table.columns[index], table.name(index)), table.scale(index)
        ordered = self._orders and kind == "categorical" and scale is not None and scale.kind == "ordered"
        return "ordered" if ordered else kind

    def _column(self, table: Table, index: int, kind: Kind) -> Column:
        name, values = table.name(index), table.columns[index]
        scale = self.scales_.get(index)
        if scale is not None:
            column = Column(index, name, kind, as_measured(table, index, scale), scale)
        else:
            convert = as_categories if kind == "categorical" else as_numbers
            column = Column(index, name, kind, convert(values, name))
        if self.missing == "error" and column.has_missing:
            row = int(np.flatnonzero(missing_values(column.values))[0])
            raise InvalidInputError(
                f"X has a missing value (NaN) in column {name!r}, row {row}; "
                "missing='category' makes missing values a category of their own"
            )
        return column

    def _input_names(self, input_features: Sequence[str] | None) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        if input_features is None:
            return [str(v) for v in known] if known is not None else [f"x{j}" for j in range(self.n_features_in_)]
        names = [str(v) for v in input_features]
        if known is not None and names != [str(v) for v in known]:
            raise InvalidInputError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise InvalidInputError(
                f"input_features should have length equal to number of features ({self.n_features_in_})"
            )
        return names


def _mark_equal(result: NDArray[np.int8], values: NDArray[Any], places: Mapping[Any, Sequence[int]]) -> None:
    """Set the features of each sample's value to 1.

    One look-up per sample is faster than one comparison per sample and category if there are many categories.
    """
    code = {value: k for k, value in enumerate(places)}
    codes = np.fromiter(map(code.get, values.tolist(), repeat(-1)), dtype=np.int64, count=len(values))
    rows = np.flatnonzero(codes >= 0)
    for turn in range(max(map(len, places.values()))):
        place = np.array([own[turn] if turn < len(own) else own[0] for own in places.values()], dtype=np.int64)
        result[rows, place[codes[rows]]] = 1


def _about_missing(column: Column, plain: Sequence[Condition]) -> list[Condition]:
    """Return the condition "is missing", and the form of each condition in `plain` that missing values fulfil.

    That form is omitted if it is redundant: if there is only one known value, or if two conditions are each other's
    negation on the known values.
    """
    asked = Condition(column.index, "is_missing")
    known = column.values[~missing_values(column.values)]
    if len(known) == 0 or (known == known[0]).all():
        return [asked]
    if len(plain) == 2 and bool((plain[0].holds(known) ^ plain[1].holds(known)).all()):
        return [asked]
    return [asked, *(replace(condition, missing=True) for condition in plain)]


def check_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """Read X, and store (`reset`) or compare the number and names of its columns on the estimator."""
    table = Table.read(X)
    plain = reset and isinstance(X, np.ndarray)  # without names there is nothing to compare
    if plain or isinstance(X, Table) or not (is_pandas(X) or as_frame(X) is None):
        _check_own_table(estimator, table, reset)
    else:
        shaped = X if hasattr(X, "shape") else np.empty(table.shape)
        with as_invalid_input():
            validate_data(estimator, shaped, reset=reset, skip_check_array=True)
    return table


def _check_own_table(estimator: Any, table: Table, reset: bool) -> None:
    names = None if table.names is None else np.array(table.names, dtype=object)
    if reset:
        estimator.n_features_in_ = len(table.columns)
        if names is not None:
            estimator.feature_names_in_ = names
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and table.names is not None and list(known) != list(table.names):
        raise InvalidInputError("X must have the columns it had when fitting, in the same order: see Table.select")
    if len(table.columns) != estimator.n_features_in_:
        raise InvalidInputError(f"X has {len(table.columns)} columns, but there were {estimator.n_features_in_} in fit")


class PassthroughEncoder(BinaryEncoder):
    """Encoder that accepts only columns of 0 and 1, unchanged: ``OptimalTreeClassifier(encoder=None)``."""

    missing = "error"
    exact_ = True

    def _kind(self, values: NDArray[Any], name: str) -> Kind:
        return "boolean"

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            _check_binary(column.values, column.name)
            yield Condition(column.index, "is_true")

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        for index, values in enumerate(columns):
            if self.kinds_[index] != "ignored":
                _check_binary(values, table.name(index))


def _check_binary(values: NDArray[Any], name: str) -> None:
    bad = ~((values == 0) | (values == 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"X must hold only 0 and 1 when encoder is None, but column {name!r}, row {row} holds {values[row]:g}"
        )
