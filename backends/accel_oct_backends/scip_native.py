"""SCIP variables and rows, and the plugins that SCIP calls during a solve. Importing this module imports PySCIPOpt.

PySCIPOpt prints and ignores exceptions of plugins: they are stored in the session, and SCIP is asked to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from pyscipopt import SCIP_EVENTTYPE, SCIP_HEURTIMING, SCIP_RESULT, SCIP_STAGE, Conshdlr, Eventhdlr, Heur
from pyscipopt.scip import Expr, ExprCons, Term, Variable

from accel_oct.mip import (
    CutPool,
    Duals,
    Event,
    FloatArray,
    IntArray,
    ModelArrays,
    Rows,
    SearchNode,
    SolveSession,
    Verdict,
)
from accel_oct_backends.native_search import unclipped

#: Infinity in SCIP.
INFINITY = 1e20


class ScipColumns:
    """The columns of the model as SCIP variables, with methods for points and rows."""

    def __init__(self, model: Any, arrays: ModelArrays) -> None:
        self.model = model
        self._arrays = arrays
        kinds = np.where(arrays.integer, "I", "C").tolist()
        lower, upper = _clipped(arrays.lower).tolist(), _clipped(arrays.upper).tolist()
        self.variables = [
            model.addVar(name=f"x{column}", vtype=kind, lb=low, ub=high, obj=value)
            for column, (kind, low, high, value) in enumerate(
                zip(kinds, lower, upper, arrays.objective.tolist(), strict=True)
            )
        ]
        if arrays.maximise:
            model.setMaximize()
        else:
            model.setMinimize()
        self._add_constraints(arrays.rows)

    def _add_constraints(self, rows: Rows) -> None:
        terms = [Term(variable) for variable in self.variables]
        for number, (columns, values, lower, upper) in enumerate(_by_row(rows)):
            expression = Expr({terms[column]: value for column, value in zip(columns, values, strict=True)})
            if not columns:  # PySCIPOpt has no constraints without variables
                expression = Expr({terms[0]: 0.0})
            self.model.addCons(ExprCons(expression, lower, upper), name=f"r{number}")

    def set_branch_priorities(self, priorities: npt.NDArray[Any]) -> None:
        for variable, priority in zip(self.variables, np.asarray(priorities).tolist(), strict=True):
            self.model.chgVarBranchPriority(variable, int(priority))

    def read(self, solution: Any) -> FloatArray:
        """Return a solution as a full vector."""
        return np.fromiter(map(solution.__getitem__, self.variables), np.float64, len(self.variables))

    def read_relaxation(self) -> FloatArray:
        """Return the current LP solution, three times faster than `read`."""
        return np.fromiter((variable.getLPSol() for variable in self.variables), np.float64, len(self.variables))

    def node(self) -> SearchNode:
        """Return depth and column bounds of the current node."""
        lower, upper = (
            np.fromiter(map(bound, self.variables), np.float64, len(self.variables))
            for bound in (Variable.getLbLocal, Variable.getUbLocal)
        )
        return SearchNode(self.model.getDepth(), unclipped(lower, INFINITY), unclipped(upper, INFINITY))

    def duals(self) -> Duals:
        """Return the duals of the current LP, without presolve and scaling of the objective (`DUAL_SETTINGS`).

        SCIP's rows that are no rows of the model, or tighter than they are, count as cuts.
        """
        arrays, model = self._arrays, self.model
        of_rows = np.zeros(arrays.rows.n_rows)
        costs = arrays.objective.copy()
        columns, values, lower, upper, of_cuts, lengths = [], [], [], [], [], []
        for row in model.getLPRowsData():
            where = np.array([int(column.getVar().name[3:]) for column in row.getCols()], dtype=np.int64)
            numbers, dual = np.array(row.getVals()), -arrays.sign * model.getRowDualSol(row)
            sides = unclipped(np.array([row.getLhs(), row.getRhs()]), INFINITY) - row.getConstant()
            costs[where] -= dual * numbers
            place = self._row_of_model(row.name, where, numbers, sides)
            if place is not None:
                of_rows[place] = dual
                continue
            columns.append(where)
            values.append(numbers)
            of_cuts.append(dual)
            lower.append(sides[0])
            upper.append(sides[1])
            lengths.append(where.size)
        starts = np.cumsum([0, *lengths])
        joined = [np.concatenate([np.empty(0), *parts]) for parts in (columns, values)]
        cuts = Rows(starts, joined[0].astype(np.int64), joined[1], np.array(lower), np.array(upper))
        return Duals(np.ldexp(of_rows, arrays.exponents), costs, cuts, np.array(of_cuts))

    def _row_of_model(self, name: str, columns: IntArray, values: FloatArray, sides: FloatArray) -> int | None:
        """Return the number of the model's row that a row of the LP is."""
        rows = self._arrays.rows
        if not (name[:1] == "r" and name[1:].isdigit() and int(name[1:]) < rows.n_rows):
            return None
        number = int(name[1:])
        part, order = slice(rows.starts[number], rows.starts[number + 1]), np.argsort(columns)
        original = np.argsort(rows.columns[part])
        same = np.array_equal(columns[order], rows.columns[part][original])
        same = same and np.array_equal(values[order], rows.values[part][original])
        return number if same and np.array_equal(sides, [rows.lower[number], rows.upper[number]]) else None

    def write(self, solution: Any, x: FloatArray) -> None:
        put = self.model.setSolVal
        for variable, value in zip(self.variables, x.tolist(), strict=True):
            put(solution, variable, value)

    def add_cuts(self, rows: Rows, *, local: bool = False) -> bool:
        """Add rows to the LP, valid globally or below the node; return whether they make the node infeasible.

        All rows are forced into the LP: when SCIP selected, it kept about one per round, and needed twice as many LPs
        and nodes.
        """
        model, variables = self.model, self.variables
        put = model.addVarToRow
        for columns, values, lower, upper in _by_row(rows):
            row = model.createEmptyRowUnspec("cut", lower, upper, local=local, removable=False)
            model.cacheRowExtensions(row)
            for column, value in zip(columns, values, strict=True):
                put(row, variables[column], value)
            model.flushRowExtensions(row)
            infeasible = model.addCut(row, forcecut=True)
            model.releaseRow(row)
            if infeasible:
                return True
        return False


def _clipped(bounds: FloatArray) -> FloatArray:
    return np.clip(bounds, -INFINITY, INFINITY)


def _by_row(rows: Rows) -> Any:
    """Yield each row as Python lists with its two sides, which PySCIPOpt reads fastest."""
    columns, values, starts = rows.columns.tolist(), rows.values.tolist(), rows.starts.tolist()
    lower, upper = _clipped(rows.lower).tolist(), _clipped(rows.upper).tolist()
    for row in range(rows.n_rows):
        part = slice(starts[row], starts[row + 1])
        yield columns[part], values[part], lower[row], upper[row]


#: Priority below integrality and every constraint of the model.
_LAST = -9_000_000
#: Number of cached verdicts: SCIP checks and then enforces the same point.
_REMEMBERED = 64

PluginResult = dict[str, Any]


class Separation:
    """Calls the handler with SCIP's points, caches verdicts, and keeps all cuts.

    A row is in SCIP's LP only below the node where it was added; elsewhere it is found in the pool here.
    """

    def __init__(self, session: SolveSession, columns: ScipColumns) -> None:
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
        """Return whether a point must be rejected; calls the handler for a new point."""
        session = self.session
        known = self._rejected.get(session.model.rounded(x).tobytes())
        if known is not None:
            return known
        if not self._is_candidate(x) or self._pool.rejects(session.model.rounded(x)):
            return True
        rejected = self._consult(Event.CANDIDATE, x).rejected
        if not session.stop_requested:
            self.remember(x, rejected=rejected)
        return rejected

    def _is_candidate(self, x: FloatArray) -> bool:
        """Return whether a point is integral and satisfies the rows: SCIP also checks points that others rejected."""
        model = self.session.model
        return model.is_integral(x) and model.keeps_rows(x)

    def _consult(self, event: Event, x: FloatArray) -> Verdict:
        needs, known = self.session.needs, event is Event.RELAXATION
        node = self.columns.node() if known and needs.node_bounds else None
        duals = self.columns.duals() if known and needs.duals else None
        verdict = self.session.consult(event, x, node=node, duals=duals)
        self._pool.add(verdict.cuts)
        return verdict

    def separate_candidate(self, x: FloatArray) -> int:
        """Return SCIP's result code for an integral LP solution."""
        if not self.rejects(x):
            return int(SCIP_RESULT.FEASIBLE)
        # If none of the rows is violated before rounding, SCIP has to branch.
        return self._add_violated(x) or int(SCIP_RESULT.INFEASIBLE)

    def separate_relaxation(self, x: FloatArray) -> int:
        """Return SCIP's result code for a fractional LP solution: known rows first, then the handler's."""
        found = self._add_violated(x)
        if found is None and self.session.wants(Event.RELAXATION):
            verdict = self._consult(Event.RELAXATION, x)
            found = self._add_violated(x)
            local = verdict.violated_local(x)
            if local.n_rows and found != SCIP_RESULT.CUTOFF:
                found = self._add(local, local=True)
        return found or int(SCIP_RESULT.DIDNOTFIND)

    def _add_violated(self, x: FloatArray) -> int | None:
        if not len(self._pool):
            return None
        violated = self._pool.violated(x)
        if not violated.size:
            return None
        return self._add(self._pool.rows.take(violated))

    def _add(self, rows: Rows, *, local: bool = False) -> int:
        infeasible = self.columns.add_cuts(rows, local=local)
        return int(SCIP_RESULT.CUTOFF if infeasible else SCIP_RESULT.SEPARATED)


class _Guard:
    """Stores exceptions of a plugin in the session, and passes a requested stop on to SCIP."""

    session: SolveSession
    model: Any

    def guarded(self, action: Callable[[], int], otherwise: int) -> PluginResult:
        try:
            result = otherwise if self.session.failed else action()
        except BaseException as error:
            self.session.fail(error)
            result = otherwise
        if self.session.stop_requested:
            interrupt(self.model)
        return {"result": result}


def interrupt(model: Any) -> None:
    """Ask SCIP to stop; it accepts this only during presolving and solving, so callers repeat it."""
    if model.getStage() in (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING):
        model.interruptSolve()


class LazyRows(Conshdlr, _Guard):  # type: ignore[misc]
    """Rejects points that the handler rejects, and separates its cuts."""

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
    ) -> PluginResult:
        return self.guarded(lambda: self._verdict(self.columns.read(solution)), SCIP_RESULT.INFEASIBLE)

    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> PluginResult:
        if solinfeasible:
            return {"result": SCIP_RESULT.INFEASIBLE}
        return self.guarded(
            lambda: self.separation.separate_candidate(self.columns.read_relaxation()), SCIP_RESULT.INFEASIBLE
        )

    def consenfops(self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool) -> PluginResult:
        if objinfeasible:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        if solinfeasible:
            return {"result": SCIP_RESULT.INFEASIBLE}

        def enforce() -> int:
            x = self.columns.read(self.model.createSol())
            return int(SCIP_RESULT.SOLVELP if self.separation.rejects(x) else SCIP_RESULT.FEASIBLE)

        return self.guarded(enforce, SCIP_RESULT.SOLVELP)

    def consenforelax(self, solution: Any, constraints: Any, nusefulconss: int, solinfeasible: bool) -> PluginResult:
        return self.guarded(lambda: self._verdict(self.columns.read(solution)), SCIP_RESULT.INFEASIBLE)

    def conssepalp(self, constraints: Any, nusefulconss: int) -> PluginResult:
        return self.guarded(self._separate, SCIP_RESULT.DIDNOTFIND)

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Lock all columns in both directions: cuts may have any column with either sign."""
        locks = nlockspos + nlocksneg
        for variable in self.columns.variables:
            self.model.addVarLocksType(variable, locktype, locks, locks)

    def _verdict(self, x: FloatArray) -> int:
        return int(SCIP_RESULT.INFEASIBLE if self.separation.rejects(x) else SCIP_RESULT.FEASIBLE)

    def _separate(self) -> int:
        x = self.columns.read_relaxation()
        if self.session.wants(Event.CANDIDATE) and self.session.model.is_integral(x):
            # Avoids a round of SCIP's own cuts on a point that is going to be rejected.
            result = self.separation.separate_candidate(x)
            return result if result in (SCIP_RESULT.SEPARATED, SCIP_RESULT.CUTOFF) else int(SCIP_RESULT.DIDNOTFIND)
        return self.separation.separate_relaxation(x)


class Injection(Heur, _Guard):  # type: ignore[misc]
    """Gives SCIP the solutions that the session has checked."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation
        self.session = separation.session

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> PluginResult:
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


class ProgressEvents(Eventhdlr, _Guard):  # type: ignore[misc]
    """Reports bounds and, if no handler wants candidates, incumbents."""

    EVENTS = (
        SCIP_EVENTTYPE.BESTSOLFOUND,
        SCIP_EVENTTYPE.PRESOLVEROUND,
        SCIP_EVENTTYPE.NODEFOCUSED,
        SCIP_EVENTTYPE.NODESOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    def __init__(self, session: SolveSession, columns: ScipColumns) -> None:
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


def include(model: Any, columns: ScipColumns, session: SolveSession) -> None:
    """Include the plugins that the session's handler needs."""
    model.includeEventhdlr(ProgressEvents(session, columns), "accel_oct", "reports progress")
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
