"""The part of a backend that is the same on every solver with lazy rows and candidates in callbacks of its own.

A solver may call back from several threads, and it may propose a point that an earlier lazy row forbids: heuristics
know only the rows that were there when they began, and CPLEX does not promise to use a row at all. So every cut is kept
in a pool, every candidate and the final point are compared with it, and one lock guards the session.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_oct.mip import (
    CutPool,
    Duals,
    Event,
    FloatArray,
    IntArray,
    ModelArrays,
    Rows,
    SearchNode,
    SolverError,
    SolveSession,
    Termination,
    Validity,
)


class Verdict(NamedTuple):
    """Reply to a point: rows for the solver (`implied` is true for IMPLIED ones), whether to reject the point, and rows
    for its node alone.
    """

    rows: Rows
    implied: npt.NDArray[np.bool_]
    rejected: bool
    local: Rows


@dataclass(frozen=True)
class OneSidedRows:
    """Rows as equations and inequalities with one side, in compressed sparse row form."""

    starts: IntArray
    columns: IntArray
    values: FloatArray
    senses: str
    """One character per row: E, L or G."""
    sides: FloatArray
    origins: IntArray
    """The row that each comes from."""

    @classmethod
    def of(cls, rows: Rows) -> OneSidedRows:
        """Split rows with two sides in two: solvers that store a range as a difference lose digits of wide ones."""
        equal = rows.lower == rows.upper
        chosen = [equal, ~equal & np.isfinite(rows.upper), ~equal & np.isfinite(rows.lower)]
        parts = [rows.take(each) for each in chosen]
        joined = Rows.concatenate(parts)
        senses = "".join(sense * part.n_rows for sense, part in zip("ELG", parts, strict=True))
        sides = np.concatenate([parts[0].upper, parts[1].upper, parts[2].lower])
        origins = np.concatenate([np.flatnonzero(each) for each in chosen])
        return cls(joined.starts, joined.columns, joined.values, senses, sides, origins)

    def __len__(self) -> int:
        return len(self.senses)

    def by_row(self) -> list[tuple[list[int], list[float]]]:
        """Return the columns and coefficients of each row as lists."""
        starts, columns, values = self.starts.tolist(), self.columns.tolist(), self.values.tolist()
        return [(columns[begin:end], values[begin:end]) for begin, end in pairwise(starts)]


class NativeSearch(ABC):
    """One solve by a solver that calls back with candidates and relaxations.

    Subclasses build the native model in `__init__`, translate the callbacks, and implement the abstract methods.
    `solver` is the name for messages.

    Parameters
    ----------
    session : SolveSession
    arrays : ModelArrays
        The model to build: that of the session, or the same without objective (`_has_feasible_point`).
    """

    solver: str

    def __init__(self, session: SolveSession, arrays: ModelArrays) -> None:
        self.session = session
        self.arrays = arrays
        self.is_probe = arrays is not session.model
        self._pool = CutPool(arrays.n_columns, session.options.seed)
        self._lock = threading.RLock()
        self._waiting: list[Rows] = []
        self._took_unchecked = False
        """Whether the solver may have a solution that the handler has not seen."""
        self._took_rejected = False
        """Whether the solver ended with a solution that violates a cut."""

    # ---------------------------------------------------------------- the solver

    @abstractmethod
    def run(self) -> Termination | None:
        """Run the solver; returns the reason of its end, None if the model is infeasible or unbounded."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ask the solver to stop; called from another thread, more than once."""

    @abstractmethod
    def add_rows(self, rows: Rows) -> None:
        """Add rows to the model between two runs."""

    @abstractmethod
    def point(self) -> FloatArray | None:
        """Return the best point that the solver has."""

    @abstractmethod
    def bound(self) -> float | None:
        """Return the bound that the solver has proven, None if there is none."""

    @abstractmethod
    def nodes(self) -> int:
        """Return the number of nodes."""

    @abstractmethod
    def close(self) -> None:
        """Release the native objects."""

    # ---------------------------------------------------------------- the solve

    @classmethod
    def solved(cls, session: SolveSession) -> tuple[Termination, int]:
        """Build the model of a session and solve it; returns the reason of the end and the number of nodes."""
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        search = cls(session, session.model)
        try:
            return search.optimise()
        finally:
            search.close()

    def optimise(self) -> tuple[Termination, int]:
        """Solve; returns the reason of the end and the number of nodes."""
        session = self.session
        with session.forwarding_stops(self.interrupt):
            ended = self.run() if self.arrays.integer.any() else self._separate_linear()
            if ended is None or ended is Termination.UNBOUNDED:
                ended = Termination.UNBOUNDED if self._has_feasible_point() else Termination.INFEASIBLE
        if self.arrays.integer.any() and ended not in (Termination.INFEASIBLE, Termination.UNBOUNDED):
            self._read_end()
        return self._termination(ended), self.nodes()

    def _separate_linear(self) -> Termination | None:
        """Separate the optimum of an LP: solvers call back with solutions of MIPs only."""
        session = self.session
        while (ended := self.run()) is Termination.OPTIMAL:
            x = self.point()
            if x is None:
                raise SolverError(f"{self.solver} reports an optimum without a point")
            verdict = session.consult(Event.CANDIDATE, x, self.bound())
            if not verdict.rejected:
                break
            if session.stop_requested or session.out_of_time:
                return Termination.TIME_LIMIT
            self.add_rows(Rows.concatenate([batch.rows for batch in verdict.cuts]))
        return ended

    def _has_feasible_point(self) -> bool:
        """Return whether a point satisfies the rows and all cuts so far, by a solve without objective."""
        arrays, session = self.arrays, self.session
        if self.is_probe:
            raise SolverError(f"{self.solver} reports a model without objective as unbounded")
        rows = Rows.concatenate([arrays.rows, self._pool.rows])
        probe = type(self)(session, replace(arrays, objective=np.zeros(arrays.n_columns), rows=rows))
        try:
            with session.forwarding_stops(probe.interrupt):
                ended = probe.run()
        finally:
            probe.close()
        if ended not in (Termination.OPTIMAL, Termination.INFEASIBLE):
            raise SolverError(f"{self.solver} reports a model as unbounded or infeasible and does not decide which")
        return ended is Termination.OPTIMAL

    def _read_end(self) -> None:
        """Use the bound and the point with which a MIP solver ended."""
        session, bound = self.session, self.bound()
        if bound is not None:
            session.tighten(bound)
        found = self.point()
        if found is None or self._took_unchecked:  # the callback has accepted the solutions, if it had to
            return
        x = session.model.rounded(found)
        self._took_rejected = self._pool.rejects(x)
        # Within its tolerance, a solver may move an accepted point to a value beyond its own bound.
        excess = session.model.sign * (session.model.value(x) - session.bound)
        if not self._took_rejected and (session.incumbent is None or excess <= 0.0):
            session.accept(x)

    def _termination(self, ended: Termination) -> Termination:
        if ended is Termination.INFEASIBLE:
            return self.session.nothing_left()
        if ended is Termination.OPTIMAL and self._took_unchecked:
            return Termination.STOPPED
        return Termination.SOLVER_FAILED if self._took_rejected else ended

    # ---------------------------------------------------------------- callbacks

    def guarded(self, action: Callable[[], Any]) -> None:
        """Call a part of a callback; its exceptions are stored, because no solver passes them on safely."""
        try:
            action()
        except BaseException as error:
            self.session.fail(error)

    def candidate(self, x: FloatArray) -> Verdict:
        """Show the handler an integral solution."""
        with self._lock:
            rounded = self.session.model.rounded(x)
            known = self._pool.rejects(rounded)
            verdict = self.session.consult(Event.CANDIDATE, x, cut_off=known)
            batches = [(cuts.rows, cuts.validity is Validity.IMPLIED) for cuts in verdict.cuts]
            if known:  # found before the solver had the row, for instance by a heuristic
                batches.append((self._pool.rows.take(self._pool.violated(rounded)), False))
            self._pool.add(verdict.cuts)
            return _verdict(batches, verdict.rejected)

    def is_incumbent(self, x: FloatArray) -> bool:
        """Return whether a point is the one that the handler accepted last."""
        known = self.session.incumbent_x
        return known is not None and np.array_equal(self.session.model.rounded(x), known)

    def relaxation(self, x: FloatArray, node: SearchNode | None = None, duals: Duals | None = None) -> Verdict:
        """Show the handler a relaxation; the rows are those of its reply, and those that had to wait for a node."""
        with self._lock:
            batches, local = [(rows, False) for rows in self._waiting], Rows.empty()
            self._waiting = []
            if self.session.wants(Event.RELAXATION):
                verdict = self.session.consult(Event.RELAXATION, x, node=node, duals=duals)
                batches += [(cuts.rows, cuts.validity is Validity.IMPLIED) for cuts in verdict.cuts]
                local = verdict.violated_local(x)
                self._pool.add(verdict.cuts)
            return _verdict(batches, False, local)

    def known_violated(self, x: FloatArray) -> Rows:
        """Return the cuts so far that a point violates."""
        with self._lock:
            return self._pool.rows.take(self._pool.violated(x)) if len(self._pool) else Rows.empty()

    def wait(self, rows: Rows) -> None:
        """Keep rows for the next relaxation: some solvers take rows at a candidate only if they reject it."""
        with self._lock:
            if rows.n_rows:
                self._waiting.append(rows)

    def next_injection(self) -> FloatArray | None:
        with self._lock:
            return self.session.pending.popleft() if self.session.pending else None

    def report(self, bound: float | None, nodes: int) -> None:
        with self._lock:
            self.session.report(bound, nodes)


def unclipped(bounds: FloatArray, infinity: float) -> FloatArray:
    """Replace a solver's number for infinity, and numbers beyond it, by infinity."""
    return np.where(np.abs(bounds) < infinity, bounds, np.copysign(np.inf, bounds))


def _verdict(batches: list[tuple[Rows, bool]], rejected: bool, local: Rows | None = None) -> Verdict:
    implied = np.repeat([kind for _, kind in batches], [rows.n_rows for rows, _ in batches]).astype(bool)
    return Verdict(Rows.concatenate([rows for rows, _ in batches]), implied, rejected, local or Rows.empty())
