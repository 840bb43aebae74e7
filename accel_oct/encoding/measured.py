"""Columns that have a scale, as whole numbers: learnt from the training data, and applied to any table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table
from accel_oct.encoding.scales import MeasuredKind, Scale
from accel_oct.encoding.times import Counts, read_durations, read_instants
from accel_oct.encoding.values import Kind, as_categories, exact_numbers
from accel_oct.errors import InvalidInputError

__all__ = ["UNKNOWN", "as_measured", "learn_scale"]

#: The position of a category that is none of the order: below all thresholds, and not missing.
UNKNOWN = -1.0


def learn_scale(table: Table, index: int, kind: Kind) -> Scale | None:
    """What the whole numbers of a column are to stand for; None for columns that are plain numbers or text.

    Times and durations are counted in the largest unit in which all of them are whole.
    """
    if kind == "ordered":
        return table.scale(index)
    if kind not in ("datetime", "duration"):
        return None
    counts = _counts(table, index, kind)
    return Scale(kind, counts.coarsest_unit(), counts.zone)


def as_measured(table: Table, index: int, scale: Scale) -> NDArray[Any]:
    """A column in the whole numbers of a scale, NaN where missing: float64, or objects where that would not be exact.

    Times between two counts are rounded down, which no comparison with a whole number notices.

    Raises
    ------
    InvalidInputError
        For values of another kind, and for times with a zone where there was none in fit or the other way round.
    """
    if scale.kind == "ordered":
        place = {category: float(code) for code, category in enumerate(scale.categories)}
        texts = as_categories(table.columns[index], table.name(index)).tolist()
        return np.array([np.nan if text is None else place.get(text, UNKNOWN) for text in texts], dtype=np.float64)
    counts = _counts(table, index, scale.kind)
    if counts.known.any() and (counts.zone is None) != (scale.zone is None):
        has, had = ("no time zone", "one") if counts.zone is None else ("a time zone", "none")
        raise InvalidInputError(f"X has times with {has} in column {table.name(index)!r}, but there was {had} in fit")
    return exact_numbers(counts.floored(scale.unit), counts.known)


def _counts(table: Table, index: int, kind: MeasuredKind) -> Counts:
    values, name = table.columns[index], table.name(index)
    if values.dtype.kind == "f" and np.isnan(values).all():
        values = np.full(len(values), None, dtype=object)
    if kind == "duration":
        return read_durations(values, name)
    given = table.scale(index)
    return read_instants(values, name, given if given is not None and given.kind == "datetime" else None)
