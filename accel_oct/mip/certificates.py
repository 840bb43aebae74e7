"""Proofs that a linear programme has no point, or none beyond a value: checked here, whoever found them.

A solver's "infeasible" closes a node, and the objective of its "optimal" is a bound. Both can be wrong: presolve has
called LPs infeasible that have points with room to spare. Row multipliers prove such a claim: for any y,

    c x  =  (c - y A) x + y (A x)  <=  sum of the largest (c - y A)_j x_j over the column's bounds
                                       + sum of y_i times the upper (y_i > 0) or lower (y_i < 0) side of row i.

With the duals of an LP the right side is its optimum; with c = 0 and a dual ray it is negative, so there is no point
(Farkas). Every sum is computed in floating point with an upper bound on its rounding error, which is added.

Multipliers come from the engine where it has them. Where it has none, or they do not prove its claim, the LP is solved
once more: by scipy, scaled by powers of two and without presolve. If that finds no point, the duals of an elastic LP,
which minimises the violation of the rows, are the multipliers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.mip.engine import Run, RunStatus
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
from accel_oct.mip.rows import FloatArray, Rows

#: Of one operation, twice over: (1 + u)^k - 1 < 2 k u for every sum that fits into memory.
_ROUNDING = 2.0**-52
#: More than all products that underflow can add up to.
_UNDERFLOW = 1e-290
#: A reduced cost below this, relative to the numbers that it is the difference of, counts as zero on columns without a
#: bound: no finite slope over an infinite range can be proven in floating point.
_ZERO = 1e-9
_OPTIMAL, _INFEASIBLE = 0, 2


@dataclass(frozen=True)
class LinearProgram:
    """``max sign * objective x`` over rows and column bounds.

    Attributes
    ----------
    objective : float array
    sign : float
        1 to maximise, -1 to minimise.
    rows : Rows
    lower, upper : float arrays
    """

    objective: FloatArray
    sign: float
    rows: Rows
    lower: FloatArray
    upper: FloatArray

    def checked(self, run: Run, seconds: float) -> Run:
        """Return a run whose claim is proven: the one given, that of a second solve, or one that is UNDECIDED.

        An engine that failed says UNDECIDED: the second solve may not.

        An OPTIMAL run keeps its bound where multipliers prove it up to `FEASIBILITY_TOLERANCE`; otherwise the bound is
        what they do prove, and lies beyond the value of `x`.
        """
        if run.status not in (RunStatus.OPTIMAL, RunStatus.INFEASIBLE, RunStatus.UNDECIDED):
            return run
        if self._is_proven(run, run.multipliers):
            return run
        again = self.solve(seconds)
        if run.status is again.status and self._is_proven(run, again.multipliers):
            return run
        if self._is_proven(again, again.multipliers):
            return again
        best = [self.sign * self.bound(each.multipliers) for each in (run, again) if each.status is RunStatus.OPTIMAL]
        bound = self.sign * min(best, default=math.inf)
        x = run.x if run.x is not None else again.x
        return Run(RunStatus.UNDECIDED if x is None else RunStatus.OPTIMAL, x, bound)

    def _is_proven(self, run: Run, multipliers: FloatArray | None) -> bool:
        """Return whether multipliers prove what a run claims."""
        if run.status is RunStatus.INFEASIBLE:
            return self.is_empty(multipliers)
        if run.status is not RunStatus.OPTIMAL or multipliers is None:
            return False
        enough = self.sign * run.bound + FEASIBILITY_TOLERANCE * max(1.0, abs(run.bound))
        return any(self._largest(self.sign * self.objective, y) <= enough for y in self._signed(multipliers))

    # ---------------------------------------------------------------- checks

    def bound(self, multipliers: FloatArray | None) -> float:
        """Return a bound on the objective that the multipliers prove; infinite if they prove none.

        The multipliers may have either sign: solvers differ in it.
        """
        if multipliers is None:
            return self.sign * math.inf
        return self.sign * min(self._largest(self.sign * self.objective, y) for y in self._signed(multipliers))

    def is_empty(self, multipliers: FloatArray | None) -> bool:
        """Return whether the multipliers, with either sign, prove that no point satisfies rows and bounds."""
        if np.any(self.lower > self.upper) or self._has_empty_row():
            return True
        if multipliers is None:
            return False
        return any(self._largest(np.zeros_like(self.objective), y) < 0.0 for y in self._signed(multipliers))

    def _signed(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers with either sign, first as derivatives of the objective by the sides of the rows."""
        return self.sign * multipliers, -self.sign * multipliers

    def _has_empty_row(self) -> bool:
        """Whether a row without columns excludes zero."""
        nothing = np.diff(self.rows.starts) == 0
        return bool(np.any(nothing & ((self.rows.lower > 0.0) | (self.rows.upper < 0.0))))

    def _largest(self, objective: FloatArray, multipliers: FloatArray) -> float:
        """Return an upper bound on ``objective x`` over the programme, by the formula of the module's description."""
        rows = self.rows
        if multipliers.size != rows.n_rows or not np.isfinite(multipliers).all():
            return math.inf
        sides = np.where(multipliers > 0.0, rows.upper, rows.lower)
        used = (multipliers != 0.0) & np.isfinite(sides)
        y, sides = np.where(used, multipliers, 0.0), np.where(used, sides, 0.0)
        products = y[rows.row_of_entry] * rows.values
        n_columns = objective.size
        slopes = objective - np.bincount(rows.columns, products, n_columns)
        sizes = np.abs(objective) + np.bincount(rows.columns, np.abs(products), n_columns)
        errors = _ROUNDING * (np.bincount(rows.columns, minlength=n_columns) + 2) * sizes
        reach = np.where(slopes > 0.0, self.upper, self.lower)
        unbounded = ~(np.isfinite(self.lower) & np.isfinite(self.upper))
        zero = unbounded & (np.abs(slopes) <= errors + _ZERO * sizes)
        reach = np.where(zero, 0.0, reach)
        if not np.isfinite(reach).all():
            return math.inf
        # Where a bound is missing the slope counts as zero or has a clear sign; elsewhere rounding may have turned it.
        farthest = np.where(unbounded, np.abs(reach), np.maximum(np.abs(self.lower), np.abs(self.upper)))
        terms = np.concatenate([slopes * reach, y * sides])
        with np.errstate(over="ignore", invalid="ignore"):
            noise = float(errors @ farthest) + _ROUNDING * (terms.size + 2) * float(np.abs(terms).sum())
            total = float(terms.sum()) + noise * (1.0 + 1e-9) + _UNDERFLOW
        return total if math.isfinite(total) else math.inf

    # ---------------------------------------------------------------- solving without a backend

    def solve(self, seconds: float) -> Run:
        """Solve the LP by scipy, scaled and without presolve; the multipliers come with the run."""
        scaled, by_row, by_column = self._scaled()
        answer, multipliers = _solve(scaled, -self.sign * scaled.objective, seconds)
        if answer.status == _OPTIMAL:
            x = np.clip(answer.x * by_column, self.lower, self.upper)
            return Run(RunStatus.OPTIMAL, x, float(self.objective @ x), multipliers=by_row * multipliers)
        if answer.status != _INFEASIBLE:
            return Run(RunStatus.UNDECIDED, None, self.sign * math.inf)
        # The elastic LP always has a point. Its duals are a proof for this LP if its optimum is positive.
        answer, multipliers = _solve(scaled, None, seconds)
        found = by_row * multipliers if answer.status == _OPTIMAL else None
        return Run(RunStatus.INFEASIBLE, None, -self.sign * math.inf, multipliers=found)

    def _scaled(self) -> tuple[LinearProgram, FloatArray, FloatArray]:
        """Return the programme with rows and columns of similar size, and the factors of both, powers of two."""
        rows, n_columns = self.rows, self.objective.size
        by_row, by_column = np.ones(rows.n_rows), np.ones(n_columns)
        sizes = np.abs(rows.values)
        for _ in range(_SCALING_ROUNDS):
            by_row = _factors(sizes * by_column[rows.columns], rows.row_of_entry, rows.n_rows)
            by_column = _factors(sizes * by_row[rows.row_of_entry], rows.columns, n_columns)
        values = rows.values * by_row[rows.row_of_entry] * by_column[rows.columns]
        scaled = Rows(rows.starts, rows.columns, values, rows.lower * by_row, rows.upper * by_row)
        program = LinearProgram(
            self.objective * by_column, self.sign, scaled, self.lower / by_column, self.upper / by_column
        )
        return program, by_row, by_column


_SCALING_ROUNDS = 3


def _factors(sizes: FloatArray, groups: Any, n_groups: int) -> FloatArray:
    """Return per group the power of two that brings the geometric middle of its sizes to about one."""
    largest, smallest = np.zeros(n_groups), np.full(n_groups, np.inf)
    some = sizes > 0.0
    np.maximum.at(largest, groups[some], sizes[some])
    np.minimum.at(smallest, groups[some], sizes[some])
    middle = np.where(largest > 0.0, np.sqrt(largest) * np.sqrt(np.where(largest > 0.0, smallest, 1.0)), 1.0)
    factors: FloatArray = np.exp2(-np.round(np.log2(middle)))
    return factors


def _solve(program: LinearProgram, cost: FloatArray | None, seconds: float) -> tuple[Any, FloatArray]:
    """Minimise a cost, or (None) the sum of all violations of rows; returns scipy's answer and a multiplier per row."""
    # Loaded here, since hardly a solve needs it.
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, identity

    rows, n_columns = program.rows, program.objective.size
    matrix = csr_array((rows.values, rows.columns, rows.starts), shape=(rows.n_rows, n_columns))
    above, below = np.flatnonzero(np.isfinite(rows.upper)), np.flatnonzero(np.isfinite(rows.lower))
    sides = _stacked([matrix[above], -matrix[below]], n_columns)
    limits = np.concatenate([rows.upper[above], -rows.lower[below]])
    bounds = np.stack([program.lower, program.upper], axis=1)
    if cost is None:
        sides = hstack([sides, -identity(limits.size)], format="csr")
        cost = np.concatenate([np.zeros(n_columns), np.ones(limits.size)])
        bounds = np.concatenate([bounds, np.tile([0.0, np.inf], (limits.size, 1))])
    options: dict[str, Any] = {"presolve": False}
    if math.isfinite(seconds):
        options["time_limit"] = max(seconds, 0.0)
    answer = linprog(cost, A_ub=sides, b_ub=limits, bounds=bounds, method="highs-ds", options=options)
    multipliers = np.zeros(rows.n_rows)
    if answer.status == _OPTIMAL and limits.size:
        marginals = np.asarray(answer.ineqlin.marginals)
        np.add.at(multipliers, above, marginals[: above.size])
        np.add.at(multipliers, below, -marginals[above.size :])
    return answer, multipliers


def _stacked(blocks: Sequence[Any], n_columns: int) -> Any:
    from scipy.sparse import csr_array, vstack

    filled = [block for block in blocks if block.shape[0]]
    return vstack(filled, format="csr") if filled else csr_array((0, n_columns))
