"""Statements of limits by their meaning, exactly: shares of the weight of some rows that are predicted some classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accel_oct.constraints.traits import TOLERANCE


@dataclass(frozen=True, eq=False)
class RowSet:
    """The rows whose class, or whose value in a column, is one of some.

    Attributes
    ----------
    column : str or None
        Name for the column of values; None for the classes.
    values : sequence of str
        The value of every row; empty for the classes.
    chosen : tuple
        Values, or indices of classes.
    """

    column: str | None
    values: Sequence[str]
    chosen: tuple[str, ...] | tuple[int, ...]

    @classmethod
    def of_classes(cls, *chosen: int) -> RowSet:
        return cls(None, (), chosen)


@dataclass(frozen=True, eq=False)
class Share:
    """``times * (weight of some rows that are predicted one of some classes) / (weight of other rows)``.

    Attributes
    ----------
    rows, per : tuple of RowSet
        The rows that are in all of these sets.
    """

    times: Fraction
    predicted: tuple[int, ...]
    rows: tuple[RowSet, ...]
    per: tuple[RowSet, ...]


@dataclass(frozen=True, eq=False)
class Statement:
    """``sum of shares + leaves * (number of leaves) <= at_most``; the tolerance of the constraint is included."""

    shares: tuple[Share, ...]
    at_most: Fraction
    leaves: Fraction = Fraction(0)


def tolerated(limit: float, sign: int, total: Fraction, amount: bool = False) -> Fraction:
    """Return ``sign * limit``, as a share of the total if it is an amount, plus the tolerance.

    The decimal numbers that a user writes stand for the floats, unless some rate lies between both: rates of whole
    weights, and differences of two, have a denominator of at most the square of the total.
    """
    exact, simple = (
        sign * number / (total if amount else 1) + tolerance
        for number, tolerance in (
            (Fraction(limit), Fraction(TOLERANCE)),
            (Fraction(repr(float(limit))), Fraction(repr(TOLERANCE))),
        )
    )
    near = simple.limit_denominator(max(1, math.ceil(total)) ** 2)
    return exact if min(exact, simple) <= near <= max(exact, simple) else simple
