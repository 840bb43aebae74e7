"""Proofs that a linear programme has no point, or none beyond a value, independent of the solver.

A solver's "infeasible" closes a node, and the objective of its "optimal" is a bound. Both can be wrong: presolve has
called LPs infeasible whose points satisfy every row with slack. Row multipliers prove such a claim: for any y,

    c x  =  (c - y A) x + y (A x)  <=  sum of the largest (c - y A)_j x_j over the column's bounds
                                       + sum of y_i times the upper (y_i > 0) or lower (y_i < 0) side of row i.

With the duals of an LP the right side is its optimum; with c = 0 and a dual ray it is negative, so there is no point
(Farkas). Every sum is computed in floating point with an upper bound on its rounding error, which is added.

Multipliers come from the engine if it has them. If it has none, or they do not prove its claim, the LP is solved again
by scipy, scaled by powers of two and without presolve. If that finds no point, the duals of an elastic LP, which
minimises the violation of the rows, are the multipliers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.mip.engine import EngineRun, IntegerRequest, RunStatus
from accel_oct.mip.errors import UnsupportedError
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE, ModelArrays
from accel_oct.mip.rows import Rows
from accel_oct.mip.session import SolveSession
from accel_oct.support.arrays import FloatArray, IntArray

#: Twice the unit roundoff u: (1 + u)^k - 1 < 2 k u for every sum that fits into memory.
_ROUNDING = 2.0**-52
#: Upper bound on the sum of all underflowing products.
_UNDERFLOW = 1e-290
#: On columns without a bound, a reduced cost below this, relative to the numbers it is the difference of, counts as
#: zero: no finite slope over an infinite range can be proven in floating point.
_ZERO = 1e-9
_OPTIMAL, _INFEASIBLE = 0, 2


@dataclass(frozen=True)
class LinearProgram:
    """``max sign * objective x`` over rows and column bounds.

    Attributes
    ----------
    sign : float
        1 to maximise, -1 to minimise.
    """

    objective: FloatArray
    sign: float
    rows: Rows
    lower: FloatArray
    upper: FloatArray

    def checked(self, run: EngineRun, seconds: float) -> EngineRun:
        """Return a run whose claim is proven: the given one, that of a second solve, or an UNDECIDED one.

        A failed engine returns UNDECIDED; the second solve may decide.

        An OPTIMAL run keeps its bound if multipliers prove it up to `FEASIBILITY_TOLERANCE`; otherwise its bound is the
        value that they prove, beyond that of `x`.
        """
        if run.status not in (RunStatus.OPTIMAL, RunStatus.INFEASIBLE, RunStatus.UNDECIDED):
            return run
        if self._is_proven(run, run.multipliers):
            return run
        again = self.solve(seconds)
        if run.status is again.status and self._is_proven(run, again.multipliers):
            return replace(run, multipliers=again.multipliers)
        if self._is_proven(again, again.multipliers):
            return again
        best = [self.sign * self.bound(each.multipliers) for each in (run, again) if each.status is RunStatus.OPTIMAL]
        bound = self.sign * min(best, default=math.inf)
        x = run.x if run.x is not None else again.x
        return EngineRun(RunStatus.UNDECIDED if x is None else RunStatus.OPTIMAL, x, bound)

    def duals(self, run: EngineRun) -> FloatArray | None:
        """Return the derivatives of an optimum by the row bounds, if the multipliers of a `checked` run prove it."""
        if run.status is not RunStatus.OPTIMAL or run.multipliers is None:
            return None
        y = min(self._signed(run.multipliers), key=lambda y: self._largest(self.sign * self.objective, y))
        used = np.isfinite(np.where(y > 0.0, self.rows.upper, self.rows.lower))
        return self.sign * np.where(used, y, 0.0)

    def reduced_costs(self, duals: FloatArray) -> FloatArray:
        """Return the objective less the rows times their duals."""
        products = duals[self.rows.row_of_entry] * self.rows.values
        costs: FloatArray = self.objective - np.bincount(self.rows.columns, products, self.objective.size)
        return costs

    def _is_proven(self, run: EngineRun, multipliers: FloatArray | None) -> bool:
        """Return whether multipliers prove the claim of a run."""
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
        """Return the multipliers with either sign; the first are derivatives of the objective by the row bounds."""
        return self.sign * multipliers, -self.sign * multipliers

    def _has_empty_row(self) -> bool:
        """Return whether a row without columns excludes zero."""
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
        # Without a bound the slope counts as zero or has a clear sign; with both, rounding may have changed its sign.
        farthest = np.where(unbounded, np.abs(reach), np.maximum(np.abs(self.lower), np.abs(self.upper)))
        terms = np.concatenate([slopes * reach, y * sides])
        with np.errstate(over="ignore", invalid="ignore"):
            noise = float(errors @ farthest) + _ROUNDING * (terms.size + 2) * float(np.abs(terms).sum())
            total = float(terms.sum()) + noise * (1.0 + 1e-9) + _UNDERFLOW
        return total if math.isfinite(total) else math.inf

    # ---------------------------------------------------------------- solving without a backend

    def solve(self, seconds: float) -> EngineRun:
        """Solve the LP by scipy, scaled and without presolve; the run has multipliers."""
        scaled, by_row, by_column = self._scaled()
        answer, multipliers = _solve(scaled, -self.sign * scaled.objective, seconds)
        if answer.status == _OPTIMAL:
            x = np.clip(answer.x * by_column, self.lower, self.upper)
            return EngineRun(RunStatus.OPTIMAL, x, float(self.objective @ x), multipliers=by_row * multipliers)
        if answer.status != _INFEASIBLE:
            return EngineRun(RunStatus.UNDECIDED, None, self.sign * math.inf)
        # The elastic LP always has a point. Its duals are a proof for this LP if its optimum is positive.
        answer, multipliers = _solve(scaled, None, seconds)
        found = by_row * multipliers if answer.status == _OPTIMAL else None
        return EngineRun(RunStatus.INFEASIBLE, None, -self.sign * math.inf, multipliers=found)

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
    """Return per group the power of two that scales the geometric mean of its extreme sizes to about one."""
    largest, smallest = np.zeros(n_groups), np.full(n_groups, np.inf)
    some = sizes > 0.0
    np.maximum.at(largest, groups[some], sizes[some])
    np.minimum.at(smallest, groups[some], sizes[some])
    middle = np.where(largest > 0.0, np.sqrt(largest) * np.sqrt(np.where(largest > 0.0, smallest, 1.0)), 1.0)
    factors: FloatArray = np.exp2(-np.round(np.log2(middle)))
    return factors


def _solve(program: LinearProgram, cost: FloatArray | None, seconds: float) -> tuple[Any, FloatArray]:
    """Minimise a cost, or the sum of row violations if it is None; returns scipy's result and a multiplier per row."""
    # Loaded here: few solves need it.
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


class ScipyEngine:
    """A `BranchingEngine` for LPs that needs no backend: it checks the claims of MIP solvers."""

    def __init__(self, model: ModelArrays) -> None:
        self._model = model
        self._cuts = Rows.empty()
        self._lower, self._upper = model.lower.copy(), model.upper.copy()

    def solve_relaxation(self, seconds: float) -> EngineRun:
        model = self._model
        rows = Rows.concatenate([model.rows, self._cuts])
        return LinearProgram(model.objective, model.sign, rows, self._lower, self._upper).solve(seconds)

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._cuts = Rows.concatenate([self._cuts, rows])

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        stay = np.ones(self._cuts.n_rows, dtype=bool)
        stay[positions] = False
        self._cuts = self._cuts.take(stay)

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._lower[columns], self._upper[columns] = lower, upper

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        raise UnsupportedError("the engine of the checks solves LPs only")

    def add_integer_rows(self, rows: Rows) -> None:
        raise UnsupportedError("the engine of the checks solves LPs only")


logger = logging.getLogger(__name__)

#: Seconds for the last check even if the time limit is reached: the proof depends on it.
_LEAST_SECONDS = 1.0


def reconcile(session: SolveSession) -> None:
    """Raise `InvalidCutError` if the OPTIMALITY cuts of a proven solve exclude every point as good as its incumbent.

    A solver that has searched everything below its cutoff reports "optimal", whether the bound or contradictory cuts
    emptied the search. If the incumbent violates OPTIMALITY rows, the cuts are valid only if they keep *another* point
    of its value, so the relaxation with all of these rows must not be empty.
    """
    rows = rows_to_reconcile(session)
    if rows is None:
        return
    model = session.model
    program = LinearProgram(np.zeros(model.n_columns), 1.0, rows, model.lower, model.upper)
    # The claim to check is that there is no point.
    run = program.checked(EngineRun(RunStatus.INFEASIBLE, None, -math.inf), max(session.seconds_left, _LEAST_SECONDS))
    if run.status is RunStatus.INFEASIBLE:
        session.nothing_left()
    if run.status is RunStatus.UNDECIDED:
        logger.info("could not check whether the OPTIMALITY cuts keep an optimum")


def rows_to_reconcile(session: SolveSession) -> Rows | None:
    """Return the model's rows, the OPTIMALITY rows, and a row that requires the incumbent's value.

    None if the solve is not proven, or its incumbent satisfies all OPTIMALITY rows.
    """
    model, x, value = session.model, session.incumbent_x, session.incumbent
    if x is None or value is None or not session.optimality_rows or not session.is_proven or session.failed:
        return None
    rows = Rows.concatenate(session.optimality_rows)
    if not np.any(rows.violation(x) > FEASIBILITY_TOLERANCE):
        return None
    used = np.flatnonzero(model.objective)
    limit = value - model.sign * REJECTION_TOLERANCE * max(1.0, abs(value))
    side = {"lower": limit} if model.sign > 0 else {"upper": limit}
    as_good = Rows.single(used, model.objective[used], **side)
    return Rows.concatenate([model.rows, rows, as_good])
