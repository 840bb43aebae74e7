"""What SCIP calls during a solve: a constraint handler, a heuristic and an event handler.

Importing this module imports PySCIPOpt. An exception that leaves a plugin would be printed and ignored by PySCIPOpt, so
none may: it is kept in the session, and SCIP is asked to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyscipopt import SCIP_EVENTTYPE, SCIP_HEURTIMING, SCIP_RESULT, SCIP_STAGE, Conshdlr, Eventhdlr, Heur

from accel_oct.mip import CutPool, Event, FloatArray, SolveSession
from accel_oct_backends.scip_columns import INFINITY, Columns

#: After integrality and every constraint of the model itself, which all have larger priorities.
_LAST = -9_000_000
#: Verdicts on this many points are remembered: SCIP checks and then enforces the same point.
_REMEMBERED = 64

Outcome = dict[str, Any]


class Separation:
    """Consults the handler on SCIP's points, remembers what it said, and keeps all of its cuts.

    A row lives in SCIP's LP only below the node where it was added; elsewhere it is found again here, without asking.
    """

    def __init__(self, session: SolveSession, columns: Columns) -> None:
        self.session = session
        self.columns = columns
        self._pool = CutPool(session.model.n_columns, session.options.seed)
        self._rejected: dict[bytes, bool] = {}
        if session.incumbent_x is not None:
            self.remember(session.incumbent_x, rejected=False)

    def remember(self, x: FloatArray, *, rejected: bool) -> None:
        if len(self._rejected) >= _REMEMBERED:
            del self._rejected[next(iter(self._rejected))]
        self._rejected[self.session.model.rounded(x).tobytes()] = rejected

    def rejects(self, x: FloatArray) -> bool:
        """Whether a point that SCIP wants to accept must be refused; asks the handler when it is news."""
        session = self.session
        known = self._rejected.get(session.model.rounded(x).tobytes())
        if known is not None:
            return known
        if not self._is_candidate(x) or self._pool.rejects(session.model.rounded(x)):
            return True
        rejected = self._consult(Event.CANDIDATE, x)
        if not session.stop_requested:
            self.remember(x, rejected=rejected)
        return rejected

    def _is_candidate(self, x: FloatArray) -> bool:
        """SCIP may ask about points that other constraints have refused already."""
        model = self.session.model
        return model.is_integral(x) and model.keeps_rows(x)

    def _consult(self, event: Event, x: FloatArray) -> bool:
        verdict = self.session.consult(event, x)
        self._pool.add(verdict.cuts)
        return verdict.rejected

    def separate_candidate(self, x: FloatArray) -> int:
        """Answer to an integral LP solution."""
        if not self.rejects(x):
            return int(SCIP_RESULT.FEASIBLE)
        # If none of the rows is violated before rounding, SCIP has to branch.
        return self._add_violated(x) or int(SCIP_RESULT.INFEASIBLE)

    def separate_relaxation(self, x: FloatArray) -> int:
        """Answer to a fractional LP solution: known rows first, then the handler's."""
        found = self._add_violated(x)
        if found is None and self.session.wants(Event.RELAXATION):
            self._consult(Event.RELAXATION, x)
            found = self._add_violated(x)
        return found or int(SCIP_RESULT.DIDNOTFIND)

    def _add_violated(self, x: FloatArray) -> int | None:
        if not len(self._pool):
            return None
        violated = self._pool.violated(x)
        if not violated.size:
            return None
        infeasible = self.columns.add_cuts(self._pool.rows.take(violated))
        return int(SCIP_RESULT.CUTOFF if infeasible else SCIP_RESULT.SEPARATED)


class _Guard:
    """Keeps exceptions inside a plugin, and passes a request to stop on to SCIP."""

    session: SolveSession
    model: Any

    def guarded(self, action: Callable[[], int], otherwise: int) -> Outcome:
        try:
            result = otherwise if self.session.failed else action()
        except BaseException as error:
            self.session.fail(error)
            result = otherwise
        if self.session.stop_requested:
            interrupt(self.model)
        return {"result": result}


def interrupt(model: Any) -> None:
    """Ask SCIP to stop, if it can be asked now: between presolving and solving it refuses, and is asked again later."""
    if model.getStage() in (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING):
        model.interruptSolve()


class LazyRows(Conshdlr, _Guard):  # type: ignore[misc]
    """Rejects what the handler rejects, and separates its cuts."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation
        self.session = separation.session
        self.columns = separation.columns

    def conscheck(
        self,
        constraints: Any,
        solution: Any,
        checkintegrality: bool,
        checklprows: bool,
        printreason: bool,
        completely: bool,
    ) -> Outcome:
        return self.guarded(lambda: self._verdict(self.columns.read(solution)), SCIP_RESULT.INFEASIBLE)

    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> Outcome:
        if solinfeasible:
            return {"result": SCIP_RESULT.INFEASIBLE}
        return self.guarded(
            lambda: self.separation.separate_candidate(self.columns.read_relaxation()), SCIP_RESULT.INFEASIBLE
        )

    def consenfops(self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool) -> Outcome:
        if objinfeasible:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        if solinfeasible:
            return {"result": SCIP_RESULT.INFEASIBLE}

        def enforce() -> int:
            x = self.columns.read(self.model.createSol())
            return int(SCIP_RESULT.SOLVELP if self.separation.rejects(x) else SCIP_RESULT.FEASIBLE)

        return self.guarded(enforce, SCIP_RESULT.SOLVELP)

    def consenforelax(self, solution: Any, constraints: Any, nusefulconss: int, solinfeasible: bool) -> Outcome:
        return self.guarded(lambda: self._verdict(self.columns.read(solution)), SCIP_RESULT.INFEASIBLE)

    def conssepalp(self, constraints: Any, nusefulconss: int) -> Outcome:
        return self.guarded(self._separate, SCIP_RESULT.DIDNOTFIND)

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Any column may occur in a cut with either sign, so no column may be rounded or fixed by its rows alone."""
        locks = nlockspos + nlocksneg
        for variable in self.columns.variables:
            self.model.addVarLocksType(variable, locktype, locks, locks)

    def _verdict(self, x: FloatArray) -> int:
        return int(SCIP_RESULT.INFEASIBLE if self.separation.rejects(x) else SCIP_RESULT.FEASIBLE)

    def _separate(self) -> int:
        x = self.columns.read_relaxation()
        if self.session.wants(Event.CANDIDATE) and self.session.model.is_integral(x):
            # No round of SCIP's own cuts on a point that is going to be rejected.
            result = self.separation.separate_candidate(x)
            return result if result in (SCIP_RESULT.SEPARATED, SCIP_RESULT.CUTOFF) else int(SCIP_RESULT.DIDNOTFIND)
        return self.separation.separate_relaxation(x)


class Injection(Heur, _Guard):  # type: ignore[misc]
    """Gives SCIP the solutions that the session has vetted."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation
        self.session = separation.session

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> Outcome:
        if not self.session.pending:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        return self.guarded(self._inject, SCIP_RESULT.DIDNOTFIND)

    def _inject(self) -> int:
        stored = False
        while self.session.pending:
            x = self.session.pending.popleft()
            self.separation.remember(x, rejected=False)
            solution = self.model.createSol(self)
            self.separation.columns.write(solution, x)
            stored |= self.model.trySol(solution, printreason=False, checklprows=False)
        return int(SCIP_RESULT.FOUNDSOL if stored else SCIP_RESULT.DIDNOTFIND)


class Progress(Eventhdlr, _Guard):  # type: ignore[misc]
    """Reports bounds and, when no handler vets candidates, incumbents."""

    EVENTS = (
        SCIP_EVENTTYPE.BESTSOLFOUND,
        SCIP_EVENTTYPE.PRESOLVEROUND,
        SCIP_EVENTTYPE.NODEFOCUSED,
        SCIP_EVENTTYPE.NODESOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    def __init__(self, session: SolveSession, columns: Columns) -> None:
        self.session = session
        self.columns = columns

    def eventinit(self) -> None:
        for kind in self.EVENTS:
            self.model.catchEvent(kind, self)

    def eventexec(self, event: Any) -> None:
        self.guarded(lambda: self._report(event.getType()), 0)

    def _report(self, kind: int) -> int:
        if kind == SCIP_EVENTTYPE.BESTSOLFOUND:
            if not self.session.wants(Event.CANDIDATE):
                self.session.consult(Event.CANDIDATE, self.columns.read(self.model.getBestSol()))
        elif kind != SCIP_EVENTTYPE.PRESOLVEROUND:
            bound = self.model.getDualbound()
            self.session.report(bound if abs(bound) < INFINITY else None, self.model.getNTotalNodes())
        return 0


def include(model: Any, columns: Columns, session: SolveSession) -> None:
    """Give SCIP the plugins that the session's handler needs."""
    model.includeEventhdlr(Progress(session, columns), "accel_oct", "reports progress")
    if not session.needs.events:
        return
    separation = Separation(session, columns)
    model.includeConshdlr(
        LazyRows(separation),
        "accel_oct",
        "cuts of the handler",
        sepapriority=1_000_000,
        enfopriority=_LAST,
        chckpriority=_LAST,
        sepafreq=1,
        needscons=False,
    )
    if session.needs.injects:
        timing = (
            SCIP_HEURTIMING.BEFORENODE
            | SCIP_HEURTIMING.DURINGLPLOOP
            | SCIP_HEURTIMING.AFTERLPNODE
            | SCIP_HEURTIMING.AFTERPSEUDONODE
        )
        model.includeHeur(
            Injection(separation), "accel_oct", "the handler's solutions", "Y", 1_000_000, timingmask=timing
        )
