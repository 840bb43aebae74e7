"""The LP of the shared loops, holding just the cut rows that matter at the moment."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.engine import LoopEngine, Run
from accel_oct.mip.pool import CutPool
from accel_oct.mip.rows import FloatArray, IntArray
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

    def solve(self) -> Run:
        self._session.statistics.rounds += 1
        return self._engine.solve_relaxation(self._session.seconds_left)

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
        self._engine.add_relaxation_rows(pool.rows.take(new))
        self.present = np.concatenate([self.present, new])
        self._slack_rounds = np.concatenate([self._slack_rounds, np.zeros(new.size, dtype=np.int64)])
        return True

    def tight(self, x: FloatArray) -> IntArray:
        """Pool numbers of the rows in the LP that hold with equality at x and that no later row has replaced."""
        keep: IntArray = self.present[self._pool.tight(x)[self.present] & ~self._pool.replaced[self.present]]
        return keep
