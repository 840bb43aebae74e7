"""Exact optima of tiny mixed-integer models in integer arithmetic: the oracle of the random checks.

Integer columns are enumerated. For each of their values, a simplex method whose tableau has integers over one common
denominator (with Bland's rule, so that it terminates) solves a linear programme over the continuous columns. Nothing is
rounded. It shares no code with the solvers or with the certificates of `accel_oct.mip`. Column bounds must be finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Numbers = Sequence[Fraction]


@dataclass(frozen=True)
class ExactRow:
    """``lower <= coefficients x <= upper``; None is no limit."""

    coefficients: Numbers
    lower: Fraction | None
    upper: Fraction | None


def best_value(
    objective: Numbers, lower: Numbers, upper: Numbers, integer: Sequence[bool], rows: Sequence[ExactRow]
) -> Fraction | None:
    """Return the largest objective of all feasible points, or None if there is none.

    Parameters
    ----------
    objective, lower, upper : sequences of Fraction
        One per column; the bounds are finite.
    integer : sequence of bool
        Columns to enumerate: the product of their numbers of values should be small.
    """
    if any(low > high for low, high in zip(lower, upper, strict=True)):
        return None
    whole = [column for column, flag in enumerate(integer) if flag]
    free = [column for column, flag in enumerate(integer) if not flag]
    order = [*whole, *free]
    # For z = x - lower >= 0 of the free columns: all row bounds and upper bounds as `A z <= b` in integers.
    sides = []
    for row in rows:
        moved = sum((row.coefficients[j] * lower[j] for j in free), Fraction(0))
        for sign, limit in ((1, row.upper), (-1, row.lower)):
            if limit is not None:
                sides.append(_whole([*(sign * row.coefficients[j] for j in order), sign * (limit - moved)]))
    sides += [_whole([*(Fraction(j == k) for j in order), upper[k] - lower[k]]) for k in free]
    offset = sum((objective[j] * lower[j] for j in free), Fraction(0))
    unit = math.lcm(*(value.denominator for value in objective))
    gain = [int(objective[j] * unit) for j in order]
    ranges = [range(math.ceil(lower[j]), math.floor(upper[j]) + 1) for j in whole]
    best: Fraction | None = None

    def extend(place: int, limits: list[int], gained: int) -> None:
        """Try every value of the integer columns from `place` on; `limits` are the remaining right sides."""
        nonlocal best
        if place < len(ranges):
            for number in ranges[place]:
                left = [limit - side[place] * number for side, limit in zip(sides, limits, strict=True)]
                extend(place + 1, left, gained + gain[place] * number)
            return
        value: Fraction | int | None = 0 if all(limit >= 0 for limit in limits) else None
        if free:
            matrix = [side[place:-1] for side in sides]
            value = _largest(gain[place:], matrix, limits)
        if value is not None and (best is None or gained + value > best):
            best = Fraction(gained + value)

    extend(0, [side[-1] for side in sides], 0)
    return None if best is None else best / unit + offset


def _largest(objective: Sequence[int], matrix: Sequence[Sequence[int]], limits: Sequence[int]) -> Fraction | None:
    """Return max c z over A z <= b, z >= 0, which is bounded, or None if there is no such z."""
    tableau = [[*row, limit] for row, limit in zip(matrix, limits, strict=True)]
    tableau.append([-value for value in objective] + [0])
    basic = [len(objective) + row for row in range(len(matrix))]
    nonbasic = list(range(len(objective)))
    denominator = 1
    while True:  # dual simplex for no objective: any entering column keeps it dual feasible
        leaving = min((row for row in range(len(basic)) if tableau[row][-1] < 0), key=lambda r: basic[r], default=None)
        if leaving is None:
            break
        entering = min(
            (column for column in range(len(nonbasic)) if tableau[leaving][column] < 0),
            key=lambda c: nonbasic[c],
            default=None,
        )
        if entering is None:
            return None
        denominator = _pivot(tableau, basic, nonbasic, leaving, entering, denominator)
    while True:  # primal simplex
        entering = min(
            (column for column in range(len(nonbasic)) if tableau[-1][column] < 0),
            key=lambda c: nonbasic[c],
            default=None,
        )
        if entering is None:
            return Fraction(tableau[-1][-1], denominator)
        rows = [row for row in range(len(basic)) if tableau[row][entering] > 0]
        leaving = min(rows, key=lambda r: (Fraction(tableau[r][-1], tableau[r][entering]), basic[r]))
        denominator = _pivot(tableau, basic, nonbasic, leaving, entering, denominator)


def _whole(values: Numbers) -> list[int]:
    """Multiply a row by the least positive number that makes it integral."""
    unit = math.lcm(*(value.denominator for value in values))
    return [int(value * unit) for value in values]


def _pivot(
    tableau: list[list[int]], basic: list[int], nonbasic: list[int], leaving: int, entering: int, denominator: int
) -> int:
    """Exchange a basic and a nonbasic variable; every division is exact. Returns the new common denominator."""
    pivot, row = tableau[leaving][entering], tableau[leaving]
    for index, other in enumerate(tableau):
        if index == leaving:
            continue
        factor = other[entering]
        for column, value in enumerate(row):
            if column != entering:
                other[column] = (other[column] * pivot - factor * value) // denominator
        other[entering] = -factor
    row[entering] = denominator
    basic[leaving], nonbasic[entering] = nonbasic[entering], basic[leaving]
    if pivot < 0:
        for other in tableau:
            other[:] = [-value for value in other]
    return abs(pivot)
