"""The LP of the shared loops, holding just the cut rows that matter at the moment; what it claims is checked."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.certificates import LinearProgram
from accel_oct.mip.engine import BranchingEngine, LoopEngine, Run
from accel_oct.mip.pool import CutPool
from accel_oct.mip.rows import FloatArray, IntArray, Rows
from accel_oct.mip.session import SolveSession

#: A row that was slack in this many relaxations in a row leaves the LP.
_ROUNDS_UNTIL_DROPPED = 5


class CutRelaxation:
    """The LP relaxation and those rows of the pool that are in it.

    A row comes in when a point violates it and goes when it has been slack for long; the pool remembers it, and a later
    point that violates it brings it back.

    Attributes
    ----------
    present : int array
        Pool numbers of the cut rows in the LP, in the LP's order.
    """

    def __init__(self, session: SolveSession, engine: LoopEngine, pool: CutPool) -> None:
        self._session = session
        self._engine = engine
        self._pool = pool
        self.present: IntArray = np.empty(0, dtype=np.int64)
        self._slack_rounds = np.empty(0, dtype=np.int64)
        self._lower, self._upper = session.model.lower.copy(), session.model.upper.copy()
        self._rows: Rows | None = None

    def solve(self) -> Run:
        """Solve the LP. An INFEASIBLE run is proven, and so is the bound of an OPTIMAL one."""
        session = self._session
        session.statistics.rounds += 1
        run = self._engine.solve_relaxation(session.seconds_left)
        return self._program().checked(run, session.seconds_left)

    def _program(self) -> LinearProgram:
        if self._rows is None:
            self._rows = Rows.concatenate([self._session.model.rows, self._pool.rows.take(self.present)])
        model = self._session.model
        return LinearProgram(model.objective, model.sign, self._rows, self._lower, self._upper)

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns, on an engine that can."""
        assert isinstance(self._engine, BranchingEngine)
        self._engine.set_relaxation_bounds(columns, lower, upper)
        self._lower[columns], self._upper[columns] = lower, upper

    def add(self, numbers: IntArray) -> None:
        """Take in rows of the pool."""
        self._engine.add_relaxation_rows(self._pool.rows.take(numbers))
        self.present = np.concatenate([self.present, numbers])
        self._slack_rounds = np.concatenate([self._slack_rounds, np.zeros(numbers.size, dtype=np.int64)])
        self._rows = None

    def exchange(self, x: FloatArray, *, drop: bool = True, count: bool = True) -> bool:
        """Take in every known row that the LP's optimum x violates, and let go of stale ones; whether any came in.

        With ``drop=False`` nothing goes, so that repeated exchanges come to an end: optima of equal value could
        otherwise throw out and bring back the same rows for ever. ``count=False``: the same x was here before.
        """
        pool = self._pool
        if count:
            slack = ~pool.tight(x)[self.present]
            self._slack_rounds = np.where(slack, self._slack_rounds + 1, 0)
        absent = np.ones(len(pool), dtype=bool)
        absent[self.present] = False
        new = pool.violated(x, among=absent)
        if not new.size:
            return False
        stale = (self._slack_rounds >= _ROUNDS_UNTIL_DROPPED) | pool.replaced[self.present]
        if drop and stale.any():
            self._engine.drop_relaxation_rows(np.flatnonzero(stale))
            self.present, self._slack_rounds = self.present[~stale], self._slack_rounds[~stale]
        self.add(new)
        return True

    def tight(self, x: FloatArray) -> IntArray:
        """Pool numbers of the rows in the LP that hold with equality at x and that no later row has replaced."""
        keep: IntArray = self.present[self._pool.tight(x)[self.present] & ~self._pool.replaced[self.present]]
        return keep
