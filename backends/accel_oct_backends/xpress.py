"""FICO Xpress, through its Python interface: every capability is native."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from accel_oct.mip import (
    FEASIBILITY_TOLERANCE,
    Backend,
    Capabilities,
    Duals,
    Event,
    FloatArray,
    LicenceError,
    ModelArrays,
    Rows,
    SearchNode,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
)
from accel_oct_backends.native_search import NativeSearch, OneSidedRows, unclipped

logger = logging.getLogger(__name__)

_TOO_LARGE = "?120"
#: Infinity in Xpress.
_INFINITY = 1e20
#: The tightest value that Xpress accepts, as in the Gurobi backend: branch variables that are almost zero must not add
#: up to a score that no tree has.
_INTEGRALITY = 1e-9
_MOST_PRIORITY = 1000
_IGNORE = 1  # SIG_IGN of C
#: A point that comes from the relaxation of a node, and not from a heuristic or the user.
_FROM_NODE = 0

#: Xpress fixes and permutes columns, and solves parts of a model apart, by arguments about the rows it knows.
LAZY_SETTINGS: dict[str, Any] = {"mipdualreductions": 0, "symmetry": 0, "mipcomponents": 0}


class XpressBackend(Backend):
    """Xpress with lazy rows and user cuts at nodes, candidates before they are accepted, and injection."""

    name = "xpress"
    package = "xpress"
    extra = "xpress"
    auto_rank = 30
    plain_options: ClassVar[Mapping[str, Any]] = {"presolve": 0, "heuremphasis": 0, "cutstrategy": 0}
    capabilities = Capabilities(
        lazy_rows=Support.NATIVE,
        user_cuts=Support.NATIVE,
        relaxation_points=Support.NATIVE,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.NATIVE,
        duals=Support.NATIVE,
        node_bounds=Support.NATIVE,
        local_cuts=Support.NATIVE,
        log=Support.NATIVE,
    )

    @classmethod
    def check_licence(cls) -> None:
        _new_problem()

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        return _XpressSearch.solved(session)


class _XpressSearch(NativeSearch):
    """One Xpress problem."""

    solver = "Xpress"

    def __init__(self, session: SolveSession, arrays: ModelArrays) -> None:
        import xpress

        super().__init__(session, arrays)
        self._xpress: Any = xpress
        self._problem: Any = _new_problem()
        self._ctrl_c = _CtrlC()
        self._is_mip = bool(arrays.integer.any())
        self._configure(session.options)
        try:
            self._build(arrays)
            self._prepare(session.options)
        except xpress.SolverError as error:
            raise self._translated(error) from error

    def close(self) -> None:
        self._problem = None  # the last reference

    def _build(self, arrays: ModelArrays) -> None:
        from scipy.sparse import csr_array

        problem, sided = self._problem, OneSidedRows.of(arrays.rows)
        self._sided = sided
        shape = (len(sided), arrays.n_columns)
        matrix = csr_array((sided.values, sided.columns, sided.starts), shape=shape).tocsc()
        matrix.sort_indices()
        arguments: dict[str, Any] = {
            "rowtype": list(sided.senses),
            "rhs": sided.sides,
            "objcoef": arrays.objective,
            "start": matrix.indptr,
            "rowind": matrix.indices,
            "rowcoef": matrix.data,
            "lb": np.clip(arrays.lower, -_INFINITY, _INFINITY),
            "ub": np.clip(arrays.upper, -_INFINITY, _INFINITY),
        }
        if self._is_mip:
            integral = np.flatnonzero(arrays.integer)
            problem.loadMIP(**arguments, coltype=["I"] * integral.size, entind=integral)
        else:
            problem.loadLP(**arguments)
        sense = self._xpress.ObjSense
        problem.chgObjSense(sense.MAXIMIZE if arrays.maximise else sense.MINIMIZE)

    def add_rows(self, rows: Rows) -> None:
        sided = OneSidedRows.of(rows)
        self._problem.addRows(
            rowtype=list(sided.senses),
            rhs=sided.sides,
            start=sided.starts,
            colind=sided.columns,
            rowcoef=sided.values,
        )

    def _configure(self, options: SolveOptions) -> None:
        settings: dict[str, Any] = {
            "threads": options.threads,
            "randomseed": options.seed % 2**31,
            "miprelstop": options.gap,
            "mipabsstop": 0.0,
            "miptol": _INTEGRALITY,
            "feastol": _INTEGRALITY,  # else Xpress raises the former to this one
            "optimalitytol": 1e-9,  # at its default of 1e-6, presolve discards solutions that are better by as much
            "matrixtol": 0.0,
            # By default a solution must be better by 1e-5 and by 1e-4 of its value.
            "mipaddcutoff": 0.0,
            "miprelcutoff": 0.0,
            "usersolheuristic": 0,
        }
        if options.node_limit is not None:
            settings["maxnode"] = options.node_limit
        if self._keeps_columns:
            settings |= LAZY_SETTINGS
        for name, value in settings.items():
            self._problem.setControl(name, value)
        for name, value in options.native.items():
            try:
                self._problem.setControl(name, value)
            except Exception as error:  # Xpress raises errors of several kinds
                raise SolverError(f"Xpress rejects the native option {name}={value!r}: {error}") from error
        if self.session.needs.duals:
            self._problem.setControl("presolve", 0)  # it replaces rows

    @property
    def _keeps_columns(self) -> bool:
        """Whether presolve must leave every column and every point that may be optimal."""
        needs = self.session.needs
        return bool(needs.cuts) or needs.node_bounds or needs.duals

    def _prepare(self, options: SolveOptions) -> None:
        session, problem = self.session, self._problem
        stream = session.log_stream(logger)
        if stream is not None:
            problem.addMessageCallback(lambda prob, data, text, kind: stream.write(f"{text}\n"), None, 0)
        if self.is_probe or not self._is_mip:
            return
        self._is_presolved = bool(problem.getControl("presolve"))  # else `presolveRow` crashes
        if self._keeps_columns:
            problem.loadSecureVecs([], np.arange(self.arrays.n_columns))
        if options.branch_priorities is not None:
            integral = np.flatnonzero(self.arrays.integer)
            problem.loadDirs(integral, priority=_ranks(np.asarray(options.branch_priorities)[integral]))
        if session.incumbent_x is not None:
            problem.addMipSol(session.incumbent_x)
        session.pending.clear()
        problem.addPreIntsolCallback(self._on_candidate, None, 0)
        problem.addPrenodeCallback(self._on_progress, None, 0)
        problem.addCheckTimeCallback(self._on_time, None, 0)
        if session.needs.cuts or session.needs.injects or session.wants(Event.RELAXATION):
            problem.addOptnodeCallback(self._on_node, None, 0)

    # ---------------------------------------------------------------- the run

    def run(self) -> Termination | None:
        session, problem = self.session, self._problem
        if session.options.time_limit is not None:
            problem.setControl("timelimit", max(session.seconds_left, 1e-3))
        try:
            problem.optimize()
        except self._xpress.SolverError as error:
            raise self._translated(error) from error
        finally:
            self._ctrl_c.restore()
        return self._ended()

    def interrupt(self) -> None:
        self._problem.interrupt()

    def _ended(self) -> Termination | None:
        attributes, xpress = self._problem.attributes, self._xpress
        stops, found = xpress.StopType, attributes.solstatus
        if attributes.solvestatus == xpress.SolveStatus.COMPLETED:
            solved = xpress.SolStatus
            known: dict[int, Termination] = {
                solved.OPTIMAL: Termination.OPTIMAL,
                solved.INFEASIBLE: Termination.INFEASIBLE,
                solved.UNBOUNDED: Termination.UNBOUNDED,
            }
            if found in known:
                return known[found]
            return None if found == solved.NOTFOUND else Termination.SOLVER_FAILED
        known = {
            stops.TIMELIMIT: Termination.TIME_LIMIT,
            stops.NODELIMIT: Termination.NODE_LIMIT,
            stops.CTRLC: Termination.INTERRUPTED,
            stops.USER: Termination.INTERRUPTED,
            stops.MIPGAP: Termination.OPTIMAL,
            stops.ITERLIMIT: Termination.STOPPED,
            stops.SOLLIMIT: Termination.STOPPED,
            stops.WORKLIMIT: Termination.STOPPED,
            stops.MEMORYERROR: Termination.STOPPED,
            stops.NUMERICALERROR: Termination.SOLVER_FAILED,
        }
        if attributes.stopstatus not in known:
            raise SolverError(f"Xpress ended with status {attributes.solvestatus}, stopped by {attributes.stopstatus}")
        return known[attributes.stopstatus]

    def point(self) -> FloatArray | None:
        solved = self._xpress.SolStatus
        if self._problem.attributes.solstatus not in (solved.OPTIMAL, solved.FEASIBLE):
            return None
        return np.array(self._problem.getSolution())

    def bound(self) -> float | None:
        attributes = self._problem.attributes
        bound = attributes.bestbound if self._is_mip else attributes.lpobjval
        return bound if abs(bound) < _INFINITY else None

    def nodes(self) -> int:
        return int(self._problem.attributes.nodes) if self._is_mip else 0

    def _translated(self, error: Any) -> Exception:
        if str(error).startswith(_TOO_LARGE):
            return LicenceError(
                f"the Xpress licence is too small for this model ({self.arrays.n_columns} columns, "
                f"{self.arrays.rows.n_rows} rows); the community licence is limited to 5000 rows and columns together. "
                'Use a full licence, or solver="highs"'
            )
        return SolverError(f"Xpress failed: {error}")

    # ---------------------------------------------------------------- callbacks

    def _on_candidate(self, problem: Any, data: Any, kind: int, cutoff: float) -> tuple[bool, float]:
        """Called with a solution before it is accepted."""
        reject: list[bool] = []
        session = self.session
        if session.stop_requested:
            self._took_unchecked |= session.wants(Event.CANDIDATE)
            problem.interrupt()
            return False, cutoff
        self.guarded(lambda: reject.append(self._rejects(problem, kind)))
        if session.stop_requested:
            problem.interrupt()
        return any(reject), cutoff

    def _rejects(self, problem: Any, kind: int) -> bool:
        """Return whether to reject a candidate.

        That of a node is cut off instead: Xpress would drop the node with it.
        """
        x = np.array(problem.getCallbackSolution())
        verdict = self.candidate(x)
        if not verdict.rejected:
            self.wait(verdict.rows)
            return False
        if kind != _FROM_NODE:
            self.wait(verdict.rows)
            return True
        if not self.session.failed and not np.any(verdict.rows.violation(x) > FEASIBILITY_TOLERANCE):
            raise SolverError("Xpress found a point that violates a row only after it is rounded")
        self._add_cuts(problem, verdict.rows)
        return False

    def _on_node(self, problem: Any, data: Any) -> int:
        """Called after the relaxation of a node was solved."""
        self.guarded(lambda: self._separate(problem))
        if self.session.stop_requested:
            problem.interrupt()
        return 0

    def _separate(self, problem: Any) -> None:
        if self.session.stop_requested:
            return
        x = np.array(problem.getCallbackSolution())
        known = self.known_violated(x)  # a cut holds only below the node where it was added
        if known.n_rows:
            self._add_cuts(problem, known)
        else:
            node = self._node(problem) if self.session.needs.node_bounds else None
            duals = self._duals(problem) if self.session.needs.duals else None
            verdict = self.relaxation(x, node, duals)
            self._add_cuts(problem, verdict.rows)
            self._add_cuts(problem, verdict.local)
        while (found := self.next_injection()) is not None:
            problem.addMipSol(found)

    def _node(self, problem: Any) -> SearchNode:
        lower, upper = (unclipped(np.array(bounds), _INFINITY) for bounds in (problem.getLB(), problem.getUB()))
        return SearchNode(problem.attributes.nodedepth - 1, lower, upper)  # the root has depth 1 in Xpress

    def _duals(self, problem: Any) -> Duals:
        """Return the duals of the current LP; its further rows are cuts, Xpress's own among them."""
        arrays, first, last = self.arrays, len(self._sided), problem.attributes.rows - 1
        duals, of_rows = np.array(problem.getCallbackPresolveDuals()), np.zeros(arrays.rows.n_rows)
        np.add.at(of_rows, self._sided.origins, duals[:first])
        of_rows = np.ldexp(of_rows, arrays.exponents)
        costs = np.array(problem.getCallbackPresolveRedCosts())
        if last < first:
            return Duals(of_rows, costs, Rows.empty(), np.empty(0))
        starts, columns, values = problem.getRows(first, last)
        kinds, sides = np.array(problem.getRowType(first, last)), np.array(problem.getRHS(first, last))
        spread = np.where(kinds == "R", problem.getRHSRange(first, last), 0.0)
        lower = np.where(kinds == "L", -np.inf, sides - spread)
        cuts = Rows(np.array(starts), np.array(columns), np.array(values), lower, np.where(kinds == "G", np.inf, sides))
        return Duals(of_rows, costs, cuts, duals[first:])

    def _on_progress(self, problem: Any, data: Any) -> int:
        """Called before each node."""
        attributes = problem.attributes
        self.guarded(lambda: self._report(attributes.bestbound, int(attributes.nodes)))
        if self.session.stop_requested:
            problem.interrupt()
        return 0

    def _on_time(self, problem: Any, data: Any) -> None:
        """Called whenever Xpress looks at the clock."""
        self._ctrl_c.restore()
        if self.session.stop_requested:
            problem.interrupt()

    def _report(self, bound: float, nodes: int) -> None:
        if not self.session.stop_requested:
            self.report(bound if abs(bound) < _INFINITY else None, nodes)

    def _add_cuts(self, problem: Any, rows: Rows) -> None:
        """Add rows to the presolved problem of a node."""
        sided = OneSidedRows.of(rows)
        if not self._is_presolved:
            if len(sided):
                kinds = [0] * len(sided)
                problem.addCuts(kinds, list(sided.senses), sided.sides, sided.starts, sided.columns, sided.values)
            return
        starts, indices, values, senses, sides = [0], [], [], [], []
        for (columns, coefficients), sense, side in zip(
            sided.by_row(), sided.senses, sided.sides.tolist(), strict=True
        ):
            for direction in "LG" if sense == "E" else sense:  # presolve may have to relax an equation
                found, numbers, moved, status = problem.presolveRow(direction, columns, coefficients, side)
                if status != 0:
                    raise SolverError(f"Xpress cannot presolve a row of the handler (status {status})")
                indices += found
                values += numbers
                starts.append(len(indices))
                senses.append(direction)
                sides.append(moved)
        if senses:
            problem.addCuts([0] * len(senses), senses, sides, starts, indices, values)


class _CtrlC:
    """The process's handler of SIGINT, which Xpress removes during a solve, so that Ctrl-C would end the process."""

    def __init__(self) -> None:
        self._signal: Any = None
        if os.name != "posix":
            return
        self._signal = ctypes.CDLL(None).signal
        self._signal.restype = ctypes.c_void_p
        self._signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._handler = self._signal(signal.SIGINT, _IGNORE)
        self.restore()

    def restore(self) -> None:
        """Install the handler that was there at the beginning."""
        if self._signal is not None:
            self._signal(signal.SIGINT, self._handler)


def _ranks(priorities: FloatArray) -> list[int]:
    """Return priorities of Xpress, where columns with small numbers, from 0 to 1000, are branched on first."""
    distinct, ranks = np.unique(-priorities, return_inverse=True)
    return (ranks * _MOST_PRIORITY // max(distinct.size, _MOST_PRIORITY)).tolist() if distinct.size else []


def _new_problem() -> Any:
    """Return an empty problem; the warning that the community licence is used is left out."""
    import xpress

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", xpress.LicenseWarning)
            problem = xpress.problem()
    except (xpress.InterfaceError, xpress.SolverError) as error:
        raise LicenceError(f'no Xpress licence found ({error}); solver="highs" needs none') from error
    problem.setOutputEnabled(False)
    return problem
