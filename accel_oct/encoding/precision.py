"""What becomes of numbers in single precision, which scikit-learn's trees round to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.conditions import Condition

__all__ = ["beyond_single_precision", "changed_in_single_precision"]

#: Half of the largest power of two that overflows: values that were rounded down to fewer digits are noticed too.
_LARGE = 2.0**127


def beyond_single_precision(values: NDArray[Any]) -> bool:
    """Whether a number may overflow in single precision; NaN does not."""
    with np.errstate(invalid="ignore"):  # a comparison with NaN among Python integers
        return bool((abs(values) >= _LARGE).any())


def changed_in_single_precision(
    conditions: Sequence[Condition], columns: Mapping[int, NDArray[Any]]
) -> tuple[int, ...]:
    """Positions of the conditions with limits that some value answers otherwise when rounded.

    Parameters
    ----------
    conditions : sequence of Condition
    columns : mapping from positions in the table to columns
        As `as_numbers` or `as_categories` made them; all columns that are asked about.
    """
    limits = {
        place: [limit for limit in (condition.low, condition.high) if limit is not None]
        for place, condition in enumerate(conditions)
    }
    asking: dict[int, list[int]] = {}
    for place, condition in enumerate(conditions):
        if limits[place]:
            asking.setdefault(condition.column, []).append(place)
    found: set[int] = set()
    for column, places in asking.items():
        if columns[column].dtype.kind != "f":  # whole numbers too large for any float
            found.update(places)
            continue
        values = np.unique(columns[column][~np.isnan(columns[column])])
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32).astype(np.float64)
        # Between its number and its rounded number of limits below lie those that a value changes sides of.
        every = np.unique([limit for place in places for limit in limits[place]])
        before, after = (np.searchsorted(every, side, side="right") for side in (values, rounded))
        crossed = np.zeros(len(every), dtype=bool)
        for one, other in zip(before[before != after].tolist(), after[before != after].tolist(), strict=True):
            crossed[min(one, other) : max(one, other)] = True
        wrong = set(every[crossed].tolist())
        found.update(place for place in places if wrong.intersection(limits[place]))
    return tuple(sorted(found))
