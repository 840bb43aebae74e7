"""A whole table, each column by its kind: what `OptimalTreeClassifier` uses."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray
from accel_oct.encoding.categorical import OneHotCategoryEncoder, check_categories
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.tables import Table
from accel_oct.encoding.thresholds import Distinct, QuantileThresholdEncoder, is_zero_one, quantile_positions
from accel_oct.encoding.values import Kind, as_categories, infer_kind
from accel_oct.errors import InvalidInputError, shown

__all__ = ["DEFAULT_CATEGORIES", "DEFAULT_QUANTILES", "TableEncoder"]

#: Twice as fine as the paper's QT-5, whose aim was to compare solvers: see docs/encoders.md for what it brings.
DEFAULT_QUANTILES = 10
#: Features of one column of categories, unless told otherwise: a tree asks for few, and each costs the search time.
DEFAULT_CATEGORIES = 50

_THRESHOLDS = ("numeric", "datetime", "duration")
_OTHERS = ("categorical", "boolean", "zero_one", "ordered")


class TableEncoder(BinaryEncoder):
    """Numbers, dates and times by thresholds, ordered categories by their order, others one-hot, booleans as they are.

    Parameters
    ----------
    numeric : encoder or None
        For columns of numbers, times and durations; None is ``QuantileThresholdEncoder(10)``. A column of 0 and 1
        becomes one feature ``x = 1``.
    categorical : OneHotCategoryEncoder or None
        For all other columns; None is ``OneHotCategoryEncoder(max_categories=50)``, with a warning about columns that
        have more. Its `max_categories` limits the thresholds of ordered categories too.
    missing : {"category", "error"}
        In each column that has missing values (None, NaN, pandas.NA), ask for them, and ask everything else in two
        forms, one of which they fulfil; or refuse them. It takes the place of the same parameter of the two encoders.

    Notes
    -----
    What a column is, is decided once, in `fit`: by its type, or by its values where the type is ``object``. Integers
    that are names of categories should be made strings first.
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
        """Columns by the way in which they are encoded; "numeric" are all that have thresholds and no fixed order."""
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
        """Those of booleans, of columns of 0 and 1, and of categories without an order."""
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
        """Those of numeric columns, where the others are known."""
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
    """A threshold between any two neighbouring categories that occur; where they are too many, at quantiles."""
    distinct = Distinct.of(column.values, weights, column.scale)
    positions = np.arange(len(distinct.values) - 1)
    if most is not None and len(positions) > most:
        positions = quantile_positions(distinct, most + 1)
    for threshold in distinct.thresholds(positions):
        yield Condition(column.index, "at_least", low=threshold)
