"""Encoders that are fitted on counted values or a sample of rows, and applied batch by batch."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from accel_oct.data.binary_matrix import as_binary_matrix
from accel_oct.data.value_sets import ValueSet
from accel_oct.encoding import (
    AllThresholdsEncoder,
    AutoEncoder,
    BinaryEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    Table,
    TableEncoder,
)
from accel_oct.encoding.base import PassthroughEncoder
from accel_oct.encoding.conditions import value_sets
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.batches import Batch, Coded, coded
from accel_oct.pieces.counting import Counted
from accel_oct.pieces.sources import Roles

_BY_COLUMN = (
    AllThresholdsEncoder,
    OneHotCategoryEncoder,
    PassthroughEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
)


def looks_at_columns(encoder: Any) -> bool:
    """Return whether an encoder uses each column separately, so that it can be fitted on counted values."""
    if type(encoder) is TableEncoder:
        return encoder.numeric is None or looks_at_columns(encoder.numeric)
    return type(encoder) in _BY_COLUMN


@dataclass(frozen=True, eq=False)
class EncoderChoice:
    """Encoder of the columns, fitted or not.

    Attributes
    ----------
    is_fitted : bool
        Whether the encoder is fitted already.
    """

    encoder: Any
    is_fitted: bool

    @classmethod
    def of(cls, encoder: Any, depth: int) -> EncoderChoice:
        """Create the choice from the argument of `gather`."""
        if encoder is None:
            return cls(PassthroughEncoder(), False)
        if isinstance(encoder, str) and encoder == "auto":
            return cls(AutoEncoder(int(depth)), False)
        if isinstance(encoder, type) or not (hasattr(encoder, "transform") and hasattr(encoder, "fit")):
            raise InvalidInputError(f"encoder must be 'auto', None or a transformer, got {shown(encoder)}")
        try:
            check_is_fitted(encoder)
        except NotFittedError:
            if isinstance(encoder, BinaryEncoder):
                encoder._check_parameters()
            return cls(encoder, False)
        return cls(encoder, True)

    @property
    def needs_rows(self) -> bool:
        """Whether the encoder must be fitted on rows instead of counted values."""
        return not self.is_fitted and not looks_at_columns(self.encoder)

    def counted(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns whose values must be counted."""
        if self.is_fitted or self.needs_rows or isinstance(self.encoder, PassthroughEncoder):
            return ()
        return tuple(name for place, name in enumerate(names) if place not in self.encoder._ignored)

    def fitted(self, counted: Counted, roles: Roles, named: bool) -> Any:
        """Return the fitted encoder after the first pass."""
        names = roles.features
        if self.is_fitted:
            known = getattr(self.encoder, "feature_names_in_", None)
            if (known is not None and list(known) != list(names)) or self.encoder.n_features_in_ != len(names):
                expected = self.encoder.n_features_in_ if known is None else shown([str(name) for name in known])
                raise InvalidInputError(
                    f"encoder was fitted on other columns than the features: {expected}, and not {shown(list(names))}"
                )
            return self.encoder
        if self.needs_rows:
            found = fitted_on_sample(self.encoder, counted, names, roles.target, roles.weight is not None)
        elif isinstance(self.encoder, PassthroughEncoder):
            # Any row suffices: the second pass checks that all values are 0 and 1.
            found = clone(self.encoder).ignoring(self.encoder._ignored)
            found.fit(Table(tuple(np.zeros(1) for _ in names), tuple(names), 1))
        else:
            found = fitted_on_counts(self.encoder, counted, names)
        if not named and hasattr(found, "feature_names_in_"):
            del found.feature_names_in_
        return found


def fitted_on_counts(encoder: BinaryEncoder, counted: Counted, names: Sequence[str]) -> BinaryEncoder:
    """Fit an encoder on the distinct values of each column and their weights; equals the fit on all rows."""
    whole: Any = clone(encoder).ignoring(encoder._ignored)
    whole.kinds_, whole.conditions_, whole.scales_, whole.inexact_, whole.oversized_ = (), (), {}, (), ()
    categories: dict[int, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        if place in encoder._ignored:
            whole.kinds_ += ("ignored",)
            continue
        counts = counted.columns[name]
        values, weights = counts.with_missing()
        one: Any = clone(encoder).standing_for(counted.totals.n_positive)
        one.fit(Table((values,), (name,), len(values), (counts.scale,)), sample_weight=weights)
        inexact = range(len(one.conditions_)) if counts.level else one.inexact_
        whole.inexact_ += tuple(len(whole.conditions_) + position for position in inexact)
        whole.oversized_ += (place,) * len(one.oversized_)
        whole.kinds_ += one.kinds_
        whole.conditions_ += tuple(replace(condition, column=place) for condition in one.conditions_)
        if one.scales_:
            whole.scales_[place] = one.scales_[0]
        if 0 in getattr(one, "categories_", {}):
            categories[place] = one.categories_[0]
        if hasattr(one, "unknown_"):
            whole.unknown_ = one.unknown_
    if isinstance(encoder, OneHotCategoryEncoder | TableEncoder):
        whole.categories_ = categories
    whole.n_features_in_ = len(names)
    whole.feature_names_in_ = np.array(names, dtype=object)
    return whole  # type: ignore[no-any-return]


def fitted_on_sample(encoder: Any, counted: Counted, names: Sequence[str], target: str, weighted: bool) -> Any:
    """Fit an encoder that uses whole rows on the sample."""
    table, weights = counted.sample.rows(names)
    y, _ = counted.sample.rows([target])
    found = clone(encoder)
    X: Any = table
    if isinstance(encoder, BinaryEncoder):
        # The budget of thresholds depends on the search time on all rows, not on the sample.
        found.ignoring(encoder._ignored).standing_for(counted.totals.n_positive)
    else:
        X = _frame(table)
    if weighted and has_fit_parameter(found, "sample_weight"):
        return found.fit(X, y.columns[0], sample_weight=weights)
    return found.fit(X, y.columns[0])


@dataclass(frozen=True, eq=False)
class BatchEncoder:
    """Applies a fitted encoder to batches.

    Parameters
    ----------
    names : tuple of str
        Columns of the encoder.
    complete : bool
        Whether the encoder has seen all categories, so that an unknown one is an error.
    """

    encoder: Any
    names: tuple[str, ...]
    complete: bool = False

    @cached_property
    def _parts(self) -> list[tuple[str, Any]]:
        """Columns with conditions, each with an encoder of that column alone."""
        found = []
        for place, name in enumerate(self.names):
            asked = tuple(replace(c, column=0) for c in self.encoder.conditions_ if c.column == place)
            if not asked and self.encoder.kinds_[place] == "ignored":
                continue
            part = copy.copy(self.encoder)
            part.n_features_in_, part.feature_names_in_ = 1, np.array([name], dtype=object)
            part.kinds_, part.conditions_ = (self.encoder.kinds_[place],), asked
            part.scales_ = _of_column(self.encoder.scales_, place)
            if hasattr(part, "categories_"):
                part.categories_ = _of_column(self.encoder.categories_, place)
                if self.complete:
                    part.unknown = part.unknown_ = "error"
            found.append((name, part))
        return found

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the binary features."""
        return tuple(map(str, self.encoder.get_feature_names_out()))

    @property
    def sources(self) -> tuple[str, ...] | None:
        """Source column of each feature, if known."""
        if not isinstance(self.encoder, BinaryEncoder):
            return None
        return tuple(self.names[condition.column] for condition in self.encoder.conditions_)

    @property
    def value_sets(self) -> tuple[ValueSet, ...] | None:
        """Values of its column that have each feature, if known."""
        return value_sets(self.encoder.conditions_) or None if isinstance(self.encoder, BinaryEncoder) else None

    def __call__(self, batch: Batch) -> NDArray[np.bool_]:
        """Return the features (n_features, n_rows) of a batch; each feature is contiguous in memory."""
        if not isinstance(self.encoder, BinaryEncoder):
            output = self.encoder.transform(_frame(batch.table(self.names)))
            output = output.toarray() if hasattr(output, "toarray") else output
            return np.ascontiguousarray(as_binary_matrix(output, name="encoder output").T)
        result = np.zeros((len(self.encoder.conditions_), batch.n_rows), dtype=bool)
        start = 0
        for name, part in self._parts if batch.n_rows else ():
            stop = start + len(part.conditions_)
            _answer(part, batch, name, result[start:stop])
            start = stop
        return result


def _of_column(known: dict[int, Any], place: int) -> dict[int, Any]:
    return {0: known[place]} if place in known else {}


def _answer(part: Any, batch: Batch, name: str, result: NDArray[np.bool_]) -> None:
    """Write the features of one column into `result`."""
    column = batch.columns[name]
    plain = len(part.conditions_) == 1 and part.conditions_[0].test == "is_true"
    if plain and not isinstance(column, Coded) and _is_binary(column):
        result[0] = column  # fast path for binary columns, which are common in large tables
        return
    scale = batch.scales.get(name)
    if isinstance(column, Coded) or column.dtype == object or any(c.test == "equals" for c in part.conditions_):
        found = coded(column, name)
        if len(found.values):
            answers = part.transform(Table((found.values,), (name,), len(found.values), (scale,)))
            result[:] = answers.T.astype(bool)[:, found.codes]
    else:
        result[:] = part.transform(Table((column,), (name,), batch.n_rows, (scale,))).T


def _is_binary(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "b":
        return True
    return values.dtype.kind in "iu" and len(values) > 0 and int(values.min()) >= 0 and int(values.max()) <= 1


def _frame(table: Table) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise InvalidInputError(
            "encoder: transformers of other libraries need the pieces as pandas data frames, but pandas is not "
            "installed: pip install 'accel-oct[pandas]'"
        ) from None
    return pd.DataFrame({table.name(j): column for j, column in enumerate(table.columns)})


def encoding_fingerprint(encoder: Any, names: Sequence[str]) -> str:
    """Return a text that identifies the encoding of the columns."""
    said = repr(encoder.conditions_) if isinstance(encoder, BinaryEncoder) else repr(encoder)
    return hashlib.sha256(repr((tuple(names), said)).encode("utf-8", "surrogatepass")).hexdigest()
