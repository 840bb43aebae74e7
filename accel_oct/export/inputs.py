"""Typed inputs of trees in ONNX and PMML: how each column of the user's table is given to the exported tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import check_table
from accel_oct.encoding.conditions import Condition, missing_values
from accel_oct.encoding.scales import NANOSECONDS, MeasuredKind, Scale
from accel_oct.encoding.tables import Table, as_measured
from accel_oct.encoding.values import as_categories, as_numbers
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.view import TreeView, matching_categories

#: Stands for a missing cell among whole numbers, as NumPy's NaT does.
MISSING_WHOLE = -(2**63)
_LARGEST_WHOLE = 2**63 - 1
_MEASURES = {"datetime": "since 1970-01-01", "duration": "of a duration"}


@dataclass(frozen=True)
class Input:
    """A column that the tree asks about, as an input of the exported tree.

    Attributes
    ----------
    column : int
        Position in the user's table.
    name : str
        Name in the exported tree.
    kind : str
        As in `BinaryEncoder.kinds_`.
    storage : {"number", "whole", "text"}
        Doubles, whole numbers of 64 bits, or the text that `predict` compares.
    unit : {"us", "ns", ""}
        Unit of times and durations.
    zoned : bool
        Whether times have a zone; they are counted in UTC.
    conditions : tuple of Condition
        What the tree asks, without repetition.
    """

    column: int
    name: str
    kind: str
    storage: Literal["number", "whole", "text"]
    unit: str = ""
    zoned: bool = False
    conditions: tuple[Condition, ...] = ()

    @property
    def meaning(self) -> str:
        """Content of the input in words, without the mark of a missing cell."""
        if self.storage == "text":
            return "text"
        if self.kind in _MEASURES:
            unit = {"us": "microseconds", "ns": "nanoseconds"}[self.unit]
            return f"{unit} {_MEASURES[self.kind]}{' (UTC)' if self.zoned else ''}"
        if self.kind == "boolean":
            return "0 or 1"
        return "number" if self.storage == "number" else "whole number"

    def bounds(self, condition: Condition) -> tuple[int | float | None, int | float | None]:
        """Return the limits of a condition as values of this input; comparisons keep their meaning."""
        return self._bound(condition.low, condition), self._bound(condition.high, condition)

    def _bound(self, limit: float | None, condition: Condition) -> int | float | None:
        if limit is None or self.storage != "whole":
            return limit
        if condition.scale is None:
            whole = math.ceil(limit)
        else:
            whole = int(limit) * NANOSECONDS[condition.scale.unit] // NANOSECONDS[self.unit]
        if not MISSING_WHOLE < whole <= _LARGEST_WHOLE:
            raise InvalidInputError(f"the threshold {limit!r} of column {shown(self.name)} exceeds 64 bits")
        return whole

    def cells(self, table: Table) -> NDArray[Any]:
        """Return the column of a table: floats with NaN, whole numbers with `MISSING_WHOLE`, or text with None."""
        values, name = table.columns[self.column], table.name(self.column)
        if self.storage == "text":
            return as_categories(values, name)
        if self.kind not in _MEASURES:
            numbers = as_numbers(values, name)
            if self.storage == "number":
                return numbers.astype(np.float64)
        else:
            zone = "UTC" if self.zoned else None
            numbers = as_measured(table, self.column, Scale(cast(MeasuredKind, self.kind), self.unit, zone))
        missing = missing_values(numbers)
        result = np.full(len(numbers), MISSING_WHOLE, dtype=np.int64)
        for row in np.flatnonzero(~missing).tolist():
            value = numbers[row]
            if value != int(value) or not MISSING_WHOLE < value <= _LARGEST_WHOLE:
                raise InvalidInputError(f"X must hold whole numbers of 64 bits in column {name!r}, row {row}")
            result[row] = int(value)
        return result


def inputs_of(tree: TreeView, rename: Callable[[str], str]) -> tuple[Input, ...]:
    """Return the columns that the tree asks about, in the order of the table; `rename` gives their names."""
    asked: dict[int, dict[Condition, None]] = {}
    for node in tree.nodes:
        if node.condition is not None:
            asked.setdefault(node.condition.column, {})[node.condition] = None
    return tuple(_input(tree, column, tuple(asked[column]), rename) for column in sorted(asked))


def _input(tree: TreeView, column: int, conditions: tuple[Condition, ...], rename: Callable[[str], str]) -> Input:
    kind, name = tree.kinds[column], rename(tree.column_names[column])
    if kind in ("categorical", "ordered"):
        return Input(column, name, kind, "text", conditions=conditions)
    scales = [condition.scale for condition in conditions if condition.scale is not None]
    if kind in _MEASURES:
        fine = any(scale.unit == "ns" for scale in scales)
        zoned = any(scale.zone is not None for scale in scales)
        return Input(column, name, kind, "whole", "ns" if fine else "us", zoned, conditions)
    limits = [limit for condition in conditions for limit in (condition.low, condition.high)]
    large = any(isinstance(limit, int) for limit in limits)  # see `as_limit`
    return Input(column, name, kind, "whole" if large else "number", conditions=conditions)


def condition_texts(condition: Condition) -> tuple[str, ...]:
    """Return the categories that a condition names: those that fulfil it, or with "none_of" those that do not."""
    if condition.test == "is_missing":
        return ()
    if condition.scale is not None:
        return matching_categories(condition)
    return (condition.value,) if isinstance(condition.value, str) else condition.values or ()


def as_table(model: Any, X: Any) -> Table:
    """Read a table with the columns of `fit`."""
    return check_table(model.encoder_, X, reset=False)


def unique_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken, and add it to `taken`."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found
