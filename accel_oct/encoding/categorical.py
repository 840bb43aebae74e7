"""One-hot encoding of categories."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder, Column
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.tables import Table
from accel_oct.encoding.values import Kind
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import FloatArray


class OneHotCategoryEncoder(BinaryEncoder):
    """One-hot encoding: a binary feature ``colour = red`` per category.

    Parameters
    ----------
    max_categories : int or None
        Maximum number of features per column, as in scikit-learn: the most frequent categories get one feature each,
        and all others share ``colour is infrequent``. None means no limit.
    missing : {"error", "category"}
        Reject missing values, or add conditions for them; see ``docs/encoders.md``.
    unknown : {"ignore", "warn", "error"}
        Treat a category that `fit` has not seen as none of the known ones, silently or with a warning, or raise.

    Notes
    -----
    Two categories give one feature, for the second in sorted order; the other would be its negation. Categories are
    compared as text, where 3, 3.0 and "3" are equal. A category that `fit` has not seen is infrequent in columns that
    have this feature.
    """

    def __init__(self, max_categories: int | None = None, *, missing: str = "error", unknown: str = "ignore") -> None:
        self.max_categories = max_categories
        self.missing = missing
        self.unknown = unknown

    def _kind(self, values: NDArray[Any], name: str) -> Kind:
        return "categorical"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_categories is not None:
            whole_number(self.max_categories, "max_categories", 1)
        if self.unknown not in ("ignore", "warn", "error"):
            raise InvalidInputError(f"unknown must be 'ignore', 'warn' or 'error', got {shown(self.unknown)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        self.categories_ = {}
        for column in columns:
            cells = column.values.tolist()
            code = {value: k for k, value in enumerate(dict.fromkeys(cells))}
            totals = np.bincount(np.fromiter(map(code.__getitem__, cells), np.int64, len(cells)), weights)
            counts = {value: total for value, total in zip(code, totals.tolist(), strict=True) if value is not None}
            categories = sorted(counts, key=_order)
            self.categories_[column.index] = tuple(categories)
            if len(categories) == 2 and not (self.missing == "category" and column.has_missing):
                categories = categories[1:]
            elif len(categories) == 1:
                categories = []
            if self.max_categories is not None and len(categories) > self.max_categories:
                yield from self._frequent(column, counts)
                continue
            for value in categories:
                yield Condition(column.index, "equals", value=value)

    def _frequent(self, column: Column, counts: dict[str, float]) -> Iterable[Condition]:
        assert self.max_categories is not None
        by_count = sorted(counts, key=lambda value: (-counts[value], _order(value)))
        frequent = tuple(sorted(by_count[: self.max_categories - 1], key=_order))
        for value in frequent:
            yield Condition(column.index, "equals", value=value)
        # With one frequent category, "infrequent" is its negation unless values are missing; with none, it is constant.
        if len(frequent) > 1 or (frequent and self.missing == "category" and column.has_missing):
            yield Condition(column.index, "none_of", values=frequent)

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        check_categories(self.categories_, table, columns, self.unknown)


def check_categories(
    categories: dict[int, tuple[str, ...]], table: Table, columns: Sequence[NDArray[Any]], unknown: str
) -> None:
    """Warn or raise for categories that `fit` has not seen."""
    if unknown == "ignore":
        return
    for index, known in categories.items():
        new = sorted(set(columns[index].tolist()) - {None} - set(known), key=_order)
        if new:
            listed = ", ".join(repr(value) for value in new[:3])
            message = f"X has categories in column {table.name(index)!r} that were not there when fitting: {listed}"
            if unknown == "error":
                raise InvalidInputError(message)
            warnings.warn(message + "; they are taken as none of the known ones", UserWarning, stacklevel=4)


def _order(value: str) -> tuple[bool, float, str]:
    """Return the sort key of a category: numbers by value, before other text."""
    try:
        return False, float(value), value
    except ValueError:
        return True, 0.0, value
