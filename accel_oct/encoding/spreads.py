"""Spread, precision and middle of ordered columns: the unit of changes of a value, and the decimals of new values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import as_limit, missing_values
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError, shown

ORDERED_KINDS = ("numeric", "datetime", "duration", "ordered")
MOST_DECIMALS = 15
_MOST_VALUES = 10_000
"""Number of distinct values from which the decimals of a column are determined."""
_FINEST = 3
"""Decimals of a column resolve its spread into about this power of ten, and no finer."""


@dataclass(frozen=True)
class ColumnSpread:
    """The unit of changes of a column of numbers, times, durations or ordered categories.

    Parameters
    ----------
    spread : float
        Interquartile range of the known training values; their range if that is 0; 1 for a single value. In the
        numbers of conditions: counts of a unit, or positions in the order.
    decimals : int
        Decimal places of the training values, at most as many as resolve the spread into a thousand parts.
    middle : float, or int beyond 2**53
        Median of the known training values, rounded to `decimals`.
    """

    spread: float
    decimals: int
    middle: float

    def __post_init__(self) -> None:
        if not 0 < self.spread < math.inf:
            raise InvalidInputError(f"a spread must be a finite number > 0, got {shown(self.spread)}")
        if isinstance(self.decimals, bool) or self.decimals not in range(MOST_DECIMALS + 1):
            raise InvalidInputError(f"decimals must be from 0 to {MOST_DECIMALS}, got {shown(self.decimals)}")
        if not math.isfinite(self.middle):
            raise InvalidInputError(f"the middle of a column must be finite, got {shown(self.middle)}")

    def around(self, limit: float) -> tuple[float, float]:
        """Return the largest number below a limit and the smallest one from it on, with the decimals of the column."""
        unit = Decimal(1).scaleb(-self.decimals)
        if isinstance(limit, int):
            return limit - 1, limit
        written = Decimal(repr(limit)) / unit
        if abs(written) >= 2**53:
            return math.nextafter(limit, -math.inf), limit
        steps = math.ceil(written)
        low, high = float((steps - 1) * unit), float(steps * unit)
        # A decimal may be rounded to the other side of the limit.
        return (low if low < limit else float((steps - 2) * unit)), (
            high if high >= limit else float((steps + 1) * unit)
        )


def ordered_columns(encoder: BinaryEncoder, features: Iterable[int]) -> dict[int, list[float]]:
    """Return the columns of some features whose values are in an order, with their limits in the conditions.

    Columns of 0 and 1 and of booleans are left out: they have two values.
    """
    asked: dict[int, list[float]] = {}
    two_values: set[int] = set()
    for condition in (encoder.conditions_[feature] for feature in features):
        if encoder.kinds_[condition.column] in ORDERED_KINDS:
            limits = [limit for limit in (condition.low, condition.high) if limit is not None]
            asked.setdefault(condition.column, []).extend(limits)
        if condition.test in ("equals", "is_true"):
            two_values.add(condition.column)
    return {column: asked[column] for column in sorted(asked) if column not in two_values}


def column_spreads(encoder: BinaryEncoder, features: Iterable[int], table: Table) -> dict[int, ColumnSpread]:
    """Return the spreads of the ordered columns of some features, from the training rows."""
    return {
        column: _of_values(encoder._column(table, column, encoder.kinds_[column]).values, column in encoder.scales_)
        for column in ordered_columns(encoder, features)
    }


def fallback_spreads(encoder: Any, features: Iterable[int]) -> dict[int, ColumnSpread]:
    """Return spreads without training rows: from the limits of all conditions of the encoder."""
    if not isinstance(encoder, BinaryEncoder):
        return {}
    every = ordered_columns(encoder, range(len(encoder.conditions_)))
    return {
        column: _of_limits(every.get(column, []), column in encoder.scales_)
        for column in ordered_columns(encoder, features)
    }


def spreads_to_list(spreads: Mapping[int, ColumnSpread]) -> list[list[Any]]:
    """Return plain values for JSON: column, spread, decimals and middle."""
    return [[column, entry.spread, entry.decimals, entry.middle] for column, entry in sorted(spreads.items())]


def spreads_from_list(entries: Sequence[Any], columns: Iterable[int]) -> dict[int, ColumnSpread]:
    """Return the spreads of `spreads_to_list` output for exactly these columns; every entry is checked."""
    found: dict[int, ColumnSpread] = {}
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 4 or any(isinstance(part, bool) for part in entry):
            raise InvalidInputError("spreads must hold a column, a spread, decimals and a middle each")
        column, spread, decimals, middle = entry
        numbers = isinstance(spread, int | float) and isinstance(middle, int | float)
        if not numbers or not isinstance(column, int) or not isinstance(decimals, int):
            raise InvalidInputError("spreads must hold a column, a spread, decimals and a middle each")
        found[column] = ColumnSpread(as_limit(spread), decimals, as_limit(middle))
    if sorted(found) != sorted(columns) or len(found) < len(entries):
        raise InvalidInputError("spreads must describe each ordered column of the tree once")
    return found


def _of_values(values: NDArray[Any], measured: bool) -> ColumnSpread:
    known = values[~missing_values(values)]
    if not len(known):
        return ColumnSpread(1.0, 0, 0.0)
    ordered = np.sort(known)
    n = len(ordered)
    spread = _positive(ordered[(3 * n) // 4], ordered[n // 4]) or _positive(ordered[-1], ordered[0]) or 1.0
    if measured or known.dtype.kind != "f":
        return ColumnSpread(spread, 0, as_limit(ordered[n // 2]))
    distinct = np.unique(known)
    decimals = _decimals(distinct[:: -(-len(distinct) // _MOST_VALUES)], spread)
    return ColumnSpread(spread, decimals, float(round(ordered[n // 2].item(), decimals)))


def _of_limits(limits: Sequence[float], measured: bool) -> ColumnSpread:
    if not limits:
        return ColumnSpread(1.0, 0, 0.0)
    spread = _positive(max(limits), min(limits)) or _positive(abs(limits[0]), 0.0) or 1.0
    if measured or not all(isinstance(limit, float) for limit in limits):
        return ColumnSpread(spread, 0, limits[0])
    return ColumnSpread(spread, _decimals(np.array(limits, dtype=np.float64), spread), limits[0])


def _positive(high: Any, low: Any) -> float | None:
    """Return the difference as a float if it is positive and finite."""
    try:
        found = float(high - low)
    except OverflowError:
        return None
    return found if 0 < found < math.inf else None


def _decimals(values: NDArray[np.float64], spread: float) -> int:
    most = min(MOST_DECIMALS, max(0, math.ceil(_FINEST - math.log10(spread))))
    return next((places for places in range(most) if np.all(np.round(values, places) == values)), most)
