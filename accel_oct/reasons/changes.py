"""The smallest change of a row that reaches a leaf, exact: over all leaves, column by column.

The path to a leaf demands something of some columns, and of each column on its own. So the least number of changed
columns is the number of columns whose value does not fulfil its demand, and the least change of each column can be
found separately.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.encoding.spreads import ColumnSpread
from accel_oct.encoding.tables import UNKNOWN
from accel_oct.encoding.values import Kind, format_number
from accel_oct.support.arrays import BoolArray
from accel_oct.tree.fitted_tree import FittedTree

MISSING = "missing"
"""Text of a missing value."""


@dataclass(frozen=True)
class NewValue:
    """A value that a column may be changed to.

    Attributes
    ----------
    number : float, int or str
        As conditions compare it.
    value : object
        As a table holds it.
    """

    number: Any
    value: Any
    text: str


@dataclass(frozen=True)
class ColumnUnit:
    """What is known of a column that the tree asks about.

    Attributes
    ----------
    spread : ColumnSpread or None
        Of ordered columns; None for categories and columns of two values.
    categories : tuple of str
        All known categories of a categorical column.
    plain : bool
        Whether the two values are written as 0 and 1 instead of False and True.
    precision : numpy dtype or None
        Type of the column if it holds numbers in less than double precision: new values are rounded to it.
    """

    column: int
    kind: Kind
    spread: ColumnSpread | None
    scale: Scale | None
    categories: tuple[str, ...] = ()
    plain: bool = False
    precision: Any = None

    def is_known(self, number: Any) -> bool:
        """Return whether a value is neither missing nor outside of the order of the column."""
        if number is None or number != number:
            return False
        return not (self.kind == "ordered" and number == UNKNOWN)

    def distance(self, old: Any, new: NewValue) -> float:
        """Return the size of a change: the difference in spreads; 1 for categories, two values and unknown old ones."""
        if self.spread is None or not self.is_known(old):
            return 1.0
        return float(abs(new.number - old) / self.spread.spread)

    def nearest(self, old: Any, choices: Sequence[NewValue]) -> NewValue:
        """Return the choice of least distance; for an unknown old value the one nearest to the middle of the column."""
        if self.spread is None:
            return choices[0]
        start = old if self.is_known(old) else self.spread.middle
        return min(choices, key=lambda choice: abs(choice.number - start))

    def moved(self, old: Any, choices: Sequence[NewValue], direction: int) -> Sequence[NewValue]:
        """Return the choices in a direction: 1 for larger values, -1 for smaller ones, 0 for all."""
        if direction == 0:
            return choices
        if not self.is_known(old):
            return ()
        return [choice for choice in choices if (choice.number - old) * direction > 0]

    def text(self, number: Any) -> str:
        """Return a value of the column as text."""
        if number is None or number != number:
            return MISSING
        if isinstance(number, str):
            return number
        if self.kind == "ordered" and number == UNKNOWN:
            return "another category"
        if self.scale is not None:
            return self.scale.text(number)
        if self.kind == "boolean" and not self.plain:
            return str(bool(number))
        return format_number(number)

    def span(self, low: float, high: float) -> str:
        """Return an interval of limits as text; limits of counts and positions are whole."""
        if self.scale is None:
            return f"{low:.4g} to {high:.4g}"
        ends = math.ceil(low), math.floor(high)
        if self.kind == "ordered":
            ends = max(ends[0], 0), min(ends[1], len(self.scale.categories) - 1)
        return f"{self.scale.text(ends[0])} to {self.scale.text(ends[1])}"

    def value(self, number: Any) -> Any:
        """Return a value as a table holds it."""
        if isinstance(number, str):
            return number
        if self.kind == "ordered":
            return self.text(number)
        if self.kind == "boolean" and not self.plain:
            return bool(number)
        if self.scale is not None:
            return _time(int(number), self.scale)
        whole = self.spread is None or self.spread.decimals == 0
        return int(number) if whole and number == int(number) else number

    def choices(self, asked: Sequence[tuple[Condition, bool]]) -> tuple[NewValue, ...]:
        """Return values that fulfil conditions (with their wanted answers), the nearest to any value among them.

        Numbers have the decimals of the column if one of these fulfils the conditions. A missing value is never a
        choice.
        """
        for candidates in self._candidates(asked):
            values = _array(candidates)
            fits = fulfilled(asked, values)
            if self.precision is not None:
                with np.errstate(over="ignore"):
                    fits &= fulfilled(asked, values.astype(self.precision).astype(np.float64))
            found = [candidate for candidate, good in zip(candidates, fits, strict=True) if good]
            if found:
                return tuple(NewValue(number, self.value(number), self.text(number)) for number in found)
        return ()

    def _candidates(self, asked: Sequence[tuple[Condition, bool]]) -> Iterable[list[Any]]:
        """Yield lists of values, the preferred one first."""
        if self.kind == "categorical":
            named = {c.value for c, _ in asked if isinstance(c.value, str)} | {
                v for c, _ in asked for v in c.values or ()
            }
            yield [*self.categories, *sorted(named - set(self.categories))]
            return
        if self.spread is None:
            yield [0.0, 1.0]
            return
        limits: list[Any] = [limit for c, _ in asked for limit in (c.low, c.high) if limit is not None]
        if self.kind == "ordered":
            assert self.scale is not None
            yield [float(place) for place in range(len(self.scale.categories))]
            return
        around = [number for limit in limits for number in self.spread.around(limit)]
        if self.precision is not None:  # a number beside the limit may be rounded to its other side
            beyond = [self.spread.around(number)[0] for number in around]
            above = [self.spread.around(math.nextafter(number, math.inf))[1] for number in around]
            around += [*beyond, *above]
        yield sorted({*around, self.spread.middle})
        if self.scale is None:
            yield sorted({number for limit in limits for number in _beside(limit, self.precision)})


def _beside(limit: float, precision: Any) -> tuple[float, float]:
    """Return the largest number below a limit and the smallest one from it on, of all numbers of a column."""
    if isinstance(limit, int):
        return limit - 1, limit
    if precision is None:
        return math.nextafter(limit, -math.inf), limit
    near = np.array(limit, dtype=precision)
    if float(near) < limit:
        return float(near), float(np.nextafter(near, near.dtype.type(math.inf)))
    return float(np.nextafter(near, near.dtype.type(-math.inf))), float(near)


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as encoders hold a column."""
    if values and all(isinstance(value, float) for value in values):
        return np.array(values, dtype=np.float64)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _time(count: int, scale: Scale) -> Any:
    """Return a count as a time or duration."""
    unit: Any = scale.unit
    if scale.kind == "duration":
        return np.timedelta64(count, unit)
    if scale.zone is None:
        return np.datetime64(count, unit)
    microseconds = count * NANOSECONDS[scale.unit] // NANOSECONDS["us"]
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)


def fulfilled(asked: Iterable[tuple[Condition, bool]], values: NDArray[Any]) -> BoolArray:
    """Return which values give all conditions their wanted answers."""
    result = np.ones(len(values), dtype=bool)
    for condition, answer in asked:
        result &= condition.holds(values) == answer
    return result


@dataclass(frozen=True)
class Demand:
    """What the path to a leaf demands of a column: conditions with their answers, and values that fulfil them."""

    unit: ColumnUnit
    asked: tuple[tuple[Condition, bool], ...]
    choices: tuple[NewValue, ...]


@dataclass(frozen=True)
class Route:
    """A leaf, its class, and the demands of its path, by column."""

    leaf: int
    label: int
    demands: tuple[Demand, ...]


@dataclass(frozen=True)
class FoundChange:
    """A change of some columns that reaches a leaf."""

    leaf: int
    edits: tuple[tuple[ColumnUnit, NewValue], ...]
    distance: float


@dataclass(frozen=True, eq=False)
class Routes:
    """The leaves of a fitted tree, for changes of rows.

    Parameters
    ----------
    tree : FittedTree
    encoder : BinaryEncoder
        Fitted.
    spreads : mapping from columns to ColumnSpread
    precisions : mapping from columns to numpy dtypes
        Columns of the rows that hold numbers in less than double precision.
    """

    tree: FittedTree
    encoder: BinaryEncoder
    spreads: Mapping[int, ColumnSpread]
    precisions: Mapping[int, Any] = field(default_factory=dict)

    @cached_property
    def units(self) -> dict[int, ColumnUnit]:
        """The columns that the tree asks about."""
        encoder = self.encoder
        columns = sorted({encoder.conditions_[feature].column for feature in self.tree.tree.features_used})
        known = getattr(encoder, "categories_", {})
        return {
            column: ColumnUnit(
                column,
                encoder.kinds_[column],
                self.spreads.get(column),
                encoder.scales_.get(column),
                tuple(known.get(column, ())),
                isinstance(encoder, PassthroughEncoder) or encoder.kinds_[column] == "numeric",
                self.precisions.get(column),
            )
            for column in columns
        }

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """The leaves with what their paths demand, in the order of ``tree_``."""
        found = []
        for leaf in np.flatnonzero(self.tree.label >= 0).tolist():
            asked: dict[int, list[tuple[Condition, bool]]] = {}
            for feature, answer in self.tree.tree.path(int(self.tree.heap_nodes[leaf])):
                condition = self.encoder.conditions_[feature]
                asked.setdefault(condition.column, []).append((condition, bool(answer)))
            demands = tuple(
                Demand(self.units[column], tuple(own), self.units[column].choices(own))
                for column, own in sorted(asked.items())
            )
            found.append(Route(leaf, int(self.tree.label[leaf]), demands))
        return tuple(found)

    def unmet(self, columns: Mapping[int, NDArray[Any]]) -> list[list[BoolArray]]:
        """Return, for each route and demand, which rows do not fulfil the demand."""
        return [
            [~fulfilled(demand.asked, columns[demand.unit.column]) for demand in route.demands] for route in self.routes
        ]

    def smallest(
        self,
        values: Mapping[int, Any],
        unmet: Sequence[Sequence[bool]],
        wanted: Sequence[bool],
        fixed: frozenset[int],
        direction: Mapping[int, int],
    ) -> FoundChange | None:
        """Return the smallest change of a row to one of the wanted classes; None if there is none.

        Fewest changed columns; then the least sum of their distances; then the first leaf.

        Parameters
        ----------
        values : mapping from columns to values
        unmet : for each route and demand, whether the row does not fulfil it
        wanted : bool array (n_classes,)
        fixed : set of columns that cannot change
        direction : mapping from columns to 1, -1 or 0
        """
        best: FoundChange | None = None
        for route, missed in zip(self.routes, unmet, strict=True):
            if not wanted[route.label] or (best is not None and sum(missed) > len(best.edits)):
                continue
            found = self._change(route, values, missed, fixed, direction)
            if found is not None and (best is None or _size(found) < _size(best)):
                best = found
        return best

    def _change(
        self,
        route: Route,
        values: Mapping[int, Any],
        missed: Sequence[bool],
        fixed: frozenset[int],
        direction: Mapping[int, int],
    ) -> FoundChange | None:
        edits, distance = [], 0.0
        for demand, changes in zip(route.demands, missed, strict=True):
            if not changes:
                continue
            unit = demand.unit
            old = values[unit.column]
            choices = unit.moved(old, demand.choices, direction.get(unit.column, 0))
            if unit.column in fixed or not choices:
                return None
            chosen = unit.nearest(old, choices)
            edits.append((unit, chosen))
            distance += unit.distance(old, chosen)
        return FoundChange(route.leaf, tuple(edits), distance)


def _size(change: FoundChange) -> tuple[int, float]:
    return len(change.edits), change.distance
