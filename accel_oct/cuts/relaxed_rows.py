"""Rows that hold while some sum of columns is zero, and are relaxed where it is not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel_oct.mip import Rows
from accel_oct.mip.rows import FloatArray, IntArray


class Part(NamedTuple):
    """A row ``values @ x[columns] <= upper + slack * relax``."""

    columns: IntArray
    values: FloatArray
    slack: float
    upper: float


def without(columns: IntArray, place: int) -> list[IntArray]:
    """The columns before and after one of them."""
    return [columns[:place], columns[place + 1 :]]


def relaxed_rows(parts: list[Part], relax: IntArray) -> Rows:
    """The parts as rows, each with columns in increasing order."""
    if not parts:
        return Rows.empty()
    columns, values = [], []
    for part in parts:
        joined = np.concatenate([relax, part.columns])
        coefficients = np.concatenate([np.full(relax.size, -part.slack), part.values])
        if (joined[1:] < joined[:-1]).any():  # theta comes after b and p; a structure is mixed with them
            order = joined.argsort()
            joined, coefficients = joined[order], coefficients[order]
        columns.append(joined)
        values.append(coefficients)
    starts = np.cumsum([0, *(row.size for row in columns)])
    upper = np.array([part.upper for part in parts])
    return Rows(starts, np.concatenate(columns), np.concatenate(values), np.full(len(parts), -np.inf), upper)
