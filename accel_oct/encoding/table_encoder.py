"""Encoder of tables with columns of different kinds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from accel_oct.encoding.base import BinaryEncoder, Column
from accel_oct.encoding.categorical import OneHotCategoryEncoder, check_categories
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.tables import Table
from accel_oct.encoding.thresholds import Distinct, QuantileThresholdEncoder, is_zero_one, quantile_positions
from accel_oct.encoding.values import Kind, as_categories, infer_kind
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import FloatArray

#: Twice as fine as QT-5 of the paper, which compares solvers; docs/encoders.md has the effect.
DEFAULT_QUANTILES = 10
#: Default limit on the features of a categorical column: a tree uses few, and each costs search time.
DEFAULT_CATEGORIES = 50

_THRESHOLDS = ("numeric", "datetime", "duration")
_OTHERS = ("categorical", "boolean", "zero_one", "ordered")


class TableEncoder(BinaryEncoder):
    """Encoder with thresholds for numbers, times and ordered categories, and one-hot features for other categories.

    Parameters
    ----------
    numeric : encoder or None
        Encoder of columns of numbers, times and durations; None means ``QuantileThresholdEncoder(10)``. A column of 0
        and 1 becomes one feature ``x = 1``.
    categorical : OneHotCategoryEncoder or None
        Encoder of all other columns; None means ``OneHotCategoryEncoder(max_categories=50)``, with a warning for
        columns that have more. Its `max_categories` also limits the thresholds of ordered categories.
    missing : {"category", "error"}
        For each column with missing values (None, NaN, pandas.NA), add the condition "is missing" and two forms of all
        other conditions, one of which missing values fulfil; or raise. Overrides this parameter of the two encoders.

    Notes
    -----
    `fit` determines the kind of a column by its type, or by its values if the type is ``object``. Convert integers that
    are names of categories to strings first.
    """

    def __init__(self, numeric: Any = None, categorical: Any = None, *, missing: str = "category") -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.missing = missing

    def _kind(self, values: NDArray[Any], name: str) -> Kind:
        return infer_kind(values, name)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, allowed in (("numeric", BinaryEncoder), ("categorical", OneHotCategoryEncoder)):
            encoder = getattr(self, name)
            if encoder is not None and not isinstance(encoder, allowed):
                raise InvalidInputError(f"{name} must be a {allowed.__name__} or None, got {shown(encoder)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = self.numeric is not None and self.numeric.__sklearn_tags__().target_tags.required
        return tags

    _orders = True

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        numeric = QuantileThresholdEncoder(DEFAULT_QUANTILES) if self.numeric is None else clone(self.numeric)
        numeric.missing = self.missing
        numeric._check_parameters()
        parts = self._by_kind(columns)
        categorical = self._category_encoder()
        others = self._other_conditions(parts, categorical, weights)
        for column in parts["ordered"]:
            others += _by_order(column, weights, categorical.max_categories)
        return [*others, *self._numeric_conditions(numeric, parts["numeric"], others, columns, y, weights)]

    def _by_kind(self, columns: Sequence[Column]) -> dict[str, list[Column]]:
        """Return the columns by kind of encoding; "numeric" includes times and durations."""
        parts: dict[str, list[Column]] = {kind: [] for kind in ("numeric", *_OTHERS)}
        for column in columns:
            zero_one = column.kind == "numeric" and is_zero_one(column.values)
            part = "numeric" if column.kind in _THRESHOLDS else column.kind
            parts["zero_one" if zero_one else part].append(column)
        return parts

    def _category_encoder(self) -> OneHotCategoryEncoder:
        by_default = OneHotCategoryEncoder(DEFAULT_CATEGORIES)
        encoder: OneHotCategoryEncoder = by_default if self.categorical is None else clone(self.categorical)
        encoder.missing = self.missing
        encoder._check_parameters()
        return encoder

    def _other_conditions(
        self, parts: dict[str, list[Column]], categorical: OneHotCategoryEncoder, weights: FloatArray
    ) -> list[Condition]:
        """Return the conditions of booleans, columns of 0 and 1, and unordered categories."""
        found = [Condition(c.index, "is_true") for c in parts["boolean"] if len(np.unique(c.values)) > 1]  # NaN counts
        found += [Condition(column.index, "equals", value=1.0) for column in parts["zero_one"]]
        found += categorical._find_conditions(parts["categorical"], None, weights)
        self.categories_ = categorical.categories_
        self.unknown_ = categorical.unknown
        if self.categorical is None:
            self._warn_of_many({column.index: column.name for column in parts["categorical"]})
        return found

    def _numeric_conditions(
        self,
        encoder: BinaryEncoder,
        numeric: Sequence[Column],
        others: Sequence[Condition],
        columns: Sequence[Column],
        y: Any,
        weights: FloatArray,
    ) -> Iterable[Condition]:
        """Return the conditions of numeric columns, given the other conditions."""
        return encoder._find_conditions(numeric, y, weights)

    def _warn_of_many(self, names: dict[int, str]) -> None:
        many = [index for index, known in self.categories_.items() if len(known) > DEFAULT_CATEGORIES]
        if many:
            listed = ", ".join(f"{names[index]!r} ({len(self.categories_[index])})" for index in many[:5])
            warnings.warn(
                f"X has more than {DEFAULT_CATEGORIES} categories in column {listed}{', ...' if many[5:] else ''}: the "
                f"{DEFAULT_CATEGORIES - 1} most frequent of a column get a feature each, the others share one; "
                "OneHotCategoryEncoder(max_categories=...) sets another limit",
                UserWarning,
                stacklevel=4,
            )

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        texts = list(columns)
        for index, scale in self.scales_.items():
            if scale.kind == "ordered" and self.unknown_ != "ignore":
                texts[index] = as_categories(table.columns[index], table.name(index))
        ordered = {index: scale.categories for index, scale in self.scales_.items() if scale.kind == "ordered"}
        check_categories(self.categories_ | ordered, table, texts, self.unknown_)


def _by_order(column: Column, weights: FloatArray, most: int | None) -> Iterable[Condition]:
    """Return thresholds between all neighbouring categories that occur; if they are too many, at quantiles."""
    distinct = Distinct.of(column.values, weights, column.scale)
    positions = np.arange(len(distinct.values) - 1)
    if most is not None and len(positions) > most:
        positions = quantile_positions(distinct, most + 1)
    for threshold in distinct.thresholds(positions):
        yield Condition(column.index, "at_least", low=threshold)
