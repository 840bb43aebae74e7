"""Random small LPs and MIPs with coefficients that differ by up to ten orders of magnitude, checked exactly.

A solver satisfies rows and integrality up to tolerances, so two different results may both be correct. A result is
therefore judged by two neighbours of the model, which are solved in exact arithmetic (`exact`):

- the *narrow* model, whose inequalities and continuous columns are tightened by `slack`. Its points satisfy the model
  with slack: if there is one, INFEASIBLE is wrong, and so is any bound that excludes its optimum;
- the *wide* model, whose rows and continuous columns are relaxed by `slack`. OPTIMAL is wrong with an objective or a
  point beyond it.

A termination that claims less (a failed solver, a limit) is not wrong, and neither is an `InvalidCutError` if
tolerances decide: a point that violates a cut by less than the tolerance of candidates is accepted, and later cut off.
`CaseCounts.unproven` counts both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.brute_force import RandomModel, solve
from accel_oct.mip.conformance.exact import ExactRow, best_value
from accel_oct.mip.conformance.suite import TOLERANCE, BackendFactory, check, check_with
from accel_oct.mip.errors import MipError, SolverError
from accel_oct.mip.exchange import MipResult, Termination
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray

#: Models per registered check.
CASES = 60
#: Powers of ten between which the sizes of coefficients are drawn.
SMALLEST, LARGEST = -7, 3
_MAX_COLUMNS = 5
_MAX_ROWS = 4
#: Bounds of scaled columns stay below this.
_LARGEST_BOUND = 1e5
_DECIMALS = (1.0, 2.0, 0.5, 0.1, 0.2, 0.3, 1.0 / 3.0)
#: Distances of a row's limit from the activity of a point, relative to the row: ties, and sizes close to tolerances.
_OFFSETS = (0.0, 0.0, 1e-8, 1e-7, 4e-7, 1e-6, 1e-3, 0.1, 1.0)
#: If the optima of the two neighbours differ by more than this, relatively, tolerances decide the optimum.
_NOTICEABLE = 1e-3
_SPREADS = ("none", "entries", "rows", "columns")


@dataclass
class CaseCounts:
    """Numbers of models by result."""

    optimal: int = 0
    infeasible: int = 0
    unproven: int = 0

    def __add__(self, other: CaseCounts) -> CaseCounts:
        return CaseCounts(
            self.optimal + other.optimal, self.infeasible + other.infeasible, self.unproven + other.unproven
        )


def random_model(rng: np.random.Generator, *, binary: bool = False, lazy: bool = False) -> RandomModel:
    """Draw an LP, a MIP or a model of integer columns only, whose feasibility does not depend on tolerances.

    Parameters
    ----------
    binary : bool
        Binary columns only, for backends that support no others.
    lazy : bool
        Hide some of the rows.
    """
    while True:
        drawn = _draw(rng, binary, lazy)
        narrow, wide = extremes(drawn)
        if (narrow is None) == (wide is None):
            return drawn


def _draw(rng: np.random.Generator, binary: bool, lazy: bool) -> RandomModel:
    n_columns = int(rng.integers(1, _MAX_COLUMNS + 1))
    share = 1.0 if binary else float(rng.choice([0.0, 0.4, 1.0]))
    integer = rng.random(n_columns) < share
    widest = 1 if binary or not integer.all() else 3
    low = np.zeros(n_columns) if binary else rng.integers(-2, 2, n_columns).astype(np.float64)
    high = low + rng.integers(1, widest + 1, n_columns)
    spread = str(rng.choice(_SPREADS))
    scale = np.ones(n_columns)
    if spread == "columns":
        exponents = rng.integers(SMALLEST, LARGEST + 1, n_columns)
        scale = np.where(integer, 1.0, 10.0**exponents)
        reach = np.maximum(np.abs(low), np.abs(high))
        scale = np.maximum(scale, reach / _LARGEST_BOUND)
        low, high = low / scale, high / scale
    rows = [_row(rng, low, high, integer, scale, spread) for _ in range(int(rng.integers(1, _MAX_ROWS + 1)))]
    joined = Rows.concatenate(rows)
    hidden = rng.random(joined.n_rows) < (0.5 if lazy else 0.0)
    return RandomModel(
        maximise=bool(rng.integers(2)),
        objective=rng.integers(-5, 6, n_columns) * scale * rng.choice([1.0, 1.0, 0.1]),
        integer=integer,
        lower=low,
        upper=high,
        box=(low, high),
        shown=joined.take(~hidden),
        hidden=joined.take(hidden),
    )


def _row(
    rng: np.random.Generator, low: FloatArray, high: FloatArray, integer: np.ndarray, scale: FloatArray, spread: str
) -> Rows:
    """Draw a row close to some point of the box."""
    n_columns = low.size
    values = rng.choice(_DECIMALS, n_columns) * rng.choice([-1.0, 1.0], n_columns)
    if rng.random() < 0.4:  # as the rows of a formulation: sums of columns
        values = rng.choice([-1.0, 1.0, 1.0], n_columns)
    elif spread == "entries":
        values = values * 10.0 ** rng.integers(SMALLEST, LARGEST + 1, n_columns)
    elif spread == "rows":
        values = values * 10.0 ** int(rng.integers(SMALLEST, LARGEST + 1))
    values = values * scale * (rng.random(n_columns) < 0.8)
    columns = np.flatnonzero(values)
    share = np.where(integer, rng.integers(0, 2, n_columns), rng.choice([0.0, 0.5, 1.0, rng.random()], n_columns))
    middle = float(values @ (low + share * (high - low)))
    size = float(np.abs(values).max(initial=0.0)) if rng.random() < 0.5 else 1.0
    middle += float(rng.choice(_OFFSETS)) * float(rng.choice([-1.0, 1.0])) * size
    lower, upper = {
        "at most": (-math.inf, middle),
        "at least": (middle, math.inf),
        "equation": (middle, middle),
        "ranged": (middle - size, middle),
    }[str(rng.choice(["at most", "at least", "equation", "ranged"], p=[0.4, 0.3, 0.15, 0.15]))]
    return Rows.single(columns, values[columns], lower=lower, upper=upper)


# -------------------------------------------------------------------- neighbours


def slack(drawn: RandomModel, rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Return by how much tolerances may move each row and each column.

    A row or the bound of a continuous column may be violated by the tolerance of candidates; a row, in addition, by
    the sum over its integer columns if each is off by the integrality tolerance.
    """
    sides = [np.abs(np.where(np.isfinite(side), side, 0.0)) for side in (rows.lower, rows.upper)]
    columns = np.where(drawn.integer, 0.0, REJECTION_TOLERANCE * np.maximum(1.0, np.abs(np.maximum(*drawn.box))))
    moves = np.where(drawn.integer[rows.columns], FEASIBILITY_TOLERANCE * np.abs(rows.values), 0.0)
    noise = np.bincount(rows.row_of_entry, moves, rows.n_rows)
    return REJECTION_TOLERANCE * np.maximum(1.0, np.maximum(*sides)) + noise, columns


@lru_cache(maxsize=16)
def extremes(drawn: RandomModel) -> tuple[float | None, float | None]:
    """Return the optima of the narrow and of the wide model, None if it has no point."""
    rows = Rows.concatenate([drawn.shown, drawn.hidden])
    by_row, by_column = slack(drawn, rows)
    sign = 1 if drawn.maximise else -1
    objective = [sign * Fraction(value) for value in drawn.objective.tolist()]

    def solved(direction: int) -> float | None:
        """Relax (1) or tighten (-1)."""
        moved = []
        dense = np.zeros((rows.n_rows, drawn.objective.size))
        dense[rows.row_of_entry, rows.columns] = rows.values
        for values, low, high, room in zip(dense.tolist(), rows.lower, rows.upper, by_row, strict=True):
            # An equation cannot be tightened; its points are feasible without any tolerance.
            shift = Fraction(0) if direction < 0 and low == high else direction * Fraction(float(room))
            moved.append(
                ExactRow(
                    [Fraction(value) for value in values],
                    None if math.isinf(low) else Fraction(float(low)) - shift,
                    None if math.isinf(high) else Fraction(float(high)) + shift,
                )
            )
        lower = _shifted(drawn.lower, -direction * by_column)
        upper = _shifted(drawn.upper, direction * by_column)
        best = best_value(objective, lower, upper, drawn.integer.tolist(), moved)
        return None if best is None else sign * float(best)

    return solved(-1), solved(1)


def is_ambiguous(drawn: RandomModel) -> bool:
    """Return whether feasibility or the optimum depends on tolerances."""
    narrow, wide = extremes(drawn)
    if narrow is None or wide is None:
        return (narrow is None) != (wide is None)
    return abs(narrow - wide) > _NOTICEABLE * max(1.0, abs(narrow))


def _shifted(bounds: FloatArray, shifts: FloatArray) -> list[Fraction]:
    return [Fraction(bound) + Fraction(shift) for bound, shift in zip(bounds.tolist(), shifts.tolist(), strict=True)]


# -------------------------------------------------------------------- comparison


def compare(factory: BackendFactory, cases: Sequence[int] | int, seed: int = 0, *, lazy: bool = False) -> CaseCounts:
    """Solve random models; raise AssertionError with the first wrong result.

    Parameters
    ----------
    factory : callable
        Returns a fresh backend.
    cases : int or sequence of int
        The number of models, or their numbers.
    seed : int
        Case k of a seed is the same model for all backends that support the same columns.
    lazy : bool
        Leave some rows to a handler that returns them as REQUIRED cuts.
    """
    binary = not factory().capabilities.continuous_columns  # such a backend supports binary models only
    counts = CaseCounts()
    for case in range(cases) if isinstance(cases, int) else cases:
        drawn = random_model(np.random.default_rng([seed, case]), binary=binary, lazy=lazy)
        termination, fault = attempt(factory(), drawn, lazy=lazy)
        assert fault is None, f"case {case} of seed {seed}: {fault}; {drawn!r}"
        counts += CaseCounts(
            termination is Termination.OPTIMAL,
            termination is Termination.INFEASIBLE,
            termination not in (Termination.OPTIMAL, Termination.INFEASIBLE),
        )
    return counts


def attempt(backend: Backend, drawn: RandomModel, *, lazy: bool) -> tuple[Termination | None, str | None]:
    """Solve a model; return its termination (None with an error), and its fault or None."""
    try:
        result = solve(backend, drawn, lazy=lazy)
    except SolverError:
        return None, None
    except MipError as error:
        return None, None if is_ambiguous(drawn) else f"{type(error).__name__}: {error}"
    return result.termination, find_fault(drawn, result)


def find_fault(drawn: RandomModel, result: MipResult) -> str | None:
    """Return the claim of the result that exact arithmetic refutes, or None."""
    narrow, wide = extremes(drawn)
    sign = 1.0 if drawn.maximise else -1.0

    def beyond(value: float, limit: float) -> bool:
        return sign * (value - limit) > TOLERANCE * max(1.0, abs(limit))

    claim = f"{result.termination.value}, objective {result.objective}, bound {result.bound}"
    if result.termination is Termination.UNBOUNDED:
        return f"{claim}: every column has bounds"
    if narrow is not None and (result.termination is Termination.INFEASIBLE or beyond(narrow, result.bound)):
        return f"{claim}: a point of value {narrow} satisfies every row with slack"
    if result.x is None or result.objective is None:
        return None if result.termination is not Termination.OPTIMAL else f"{claim}: there is no point"
    if wide is None:
        return f"{claim}: no point satisfies every row, even up to tolerances"
    if beyond(result.objective, wide):
        return f"{claim}: no point has a value beyond {wide}"
    rows = Rows.concatenate([drawn.shown, drawn.hidden])
    by_row, by_column = slack(drawn, rows)
    inside = np.all((result.x >= drawn.lower - by_column) & (result.x <= drawn.upper + by_column))
    if not inside or np.any(result.x[drawn.integer] != np.round(result.x[drawn.integer])):
        return f"{claim}: the point {result.x} is outside of its box or not integral"
    if np.any(rows.violation(result.x) > by_row):
        return f"{claim}: the point {result.x} violates a row"
    if result.termination is Termination.OPTIMAL and beyond(result.bound, result.objective):
        return f"{claim}: the bound does not prove it"
    return None


@check
def models_of_mixed_sizes_match_exact_arithmetic(factory: BackendFactory) -> None:
    """On random LPs and MIPs with coefficients from 1e-7 to 1e3: no wrong INFEASIBLE, no wrong OPTIMAL."""
    compare(factory, CASES)


@check_with("lazy_rows")
def lazy_rows_of_mixed_sizes_match_exact_arithmetic(factory: BackendFactory) -> None:
    """The same where rows come only as REQUIRED cuts."""
    compare(factory, CASES, lazy=True)
