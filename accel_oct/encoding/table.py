"""A whole table, each column by its kind: what `OptimalTreeClassifier` uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray
from accel_oct.encoding.categorical import OneHotCategoryEncoder, check_categories
from accel_oct.encoding.columns import Kind, Table, infer_kind
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.positions import Distinct
from accel_oct.encoding.quantile import QuantileThresholdEncoder
from accel_oct.errors import InvalidInputError, shown

__all__ = ["DEFAULT_QUANTILES", "TableEncoder"]

#: Twice as fine as the paper's QT-5, whose aim was to compare solvers: see docs/encoders.md for what it brings.
DEFAULT_QUANTILES = 10


class TableEncoder(BinaryEncoder):
    """Numbers by thresholds, strings and categories one-hot, booleans as they are.

    Parameters
    ----------
    numeric : encoder or None
        For numeric columns; None is ``QuantileThresholdEncoder(10)``. A column of 0 and 1 becomes one feature
        ``x = 1``.
    categorical : OneHotCategoryEncoder or None
        For all other columns; None is ``OneHotCategoryEncoder()``.
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

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        numeric = QuantileThresholdEncoder(DEFAULT_QUANTILES) if self.numeric is None else clone(self.numeric)
        categorical = OneHotCategoryEncoder() if self.categorical is None else clone(self.categorical)
        for encoder in (numeric, categorical):
            encoder.missing = self.missing
            encoder._check_parameters()
        parts: dict[str, list[Column]] = {"numeric": [], "categorical": [], "boolean": [], "zero_one": []}
        for column in columns:
            zero_one = column.kind == "numeric" and Distinct.of(column.values, weights).is_binary
            parts["zero_one" if zero_one else column.kind].append(column)
        others = [Condition(c.index, "is_true") for c in parts["boolean"] if len(np.unique(c.values)) > 1]  # NaN counts
        others += [Condition(column.index, "equals", value=1.0) for column in parts["zero_one"]]
        others += categorical._find_conditions(parts["categorical"], y, weights)
        self.categories_ = categorical.categories_
        self.unknown_ = categorical.unknown
        return [*others, *self._numeric_conditions(numeric, parts["numeric"], others, columns, y, weights)]

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

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        check_categories(self.categories_, table, columns, self.unknown_)
