"""COPT, the Cardinal Optimizer, through coptpy.

COPT has callbacks for lazy rows, but its answers with them are wrong (docs/solver-faults.md). So the shared cut loop
adds cuts, and branches on COPT's LP itself. Models without cuts, and solves with options of COPT's own branch and bound
(`MIP_OPTIONS`), use its MIP solver. The LP and the MIP are two models, built per solve, so that the cuts of one solve
do not affect the next.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    CutLoop,
    EngineRun,
    FloatArray,
    IntArray,
    IntegerRequest,
    LicenceError,
    ModelArrays,
    Rows,
    RunStatus,
    SolverError,
    SolveSession,
    Support,
    Termination,
)

logger = logging.getLogger(__name__)

_LICENCE = 4
#: Infinity in COPT.
_INFINITY = 1e30
#: The tightest value that COPT accepts, as in the Gurobi backend: branch variables that are almost zero must not add up
#: to a score that no tree has.
_INTEGRALITY = 1e-9
_NO_NODE_LIMIT = -1

#: Native options that require COPT's own branch and bound.
MIP_OPTIONS = frozenset(
    (
        "CutLevel", "RootCutLevel", "TreeCutLevel", "RootCutRounds", "NodeCutRounds", "HeurLevel", "PreRootHeurLevel",
        "RoundingHeurLevel", "DivingHeurLevel", "FAPHeurLevel", "SubMipHeurLevel", "StrongBranching",
        "ConflictAnalysis", "MipTasks", "MipStartMode", "MipStartNodeLimit", "MipRepair", "NodeLimit",
    )
)  # fmt: skip


class CoptBackend(Backend):
    """COPT with the cut loop; starts and injections are native."""

    name = "copt"
    package = "coptpy"
    extra = "copt"
    capabilities = Capabilities(
        lazy_rows=Support.EMULATED,
        user_cuts=Support.EMULATED,
        relaxation_points=Support.EMULATED,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.EMULATED,
        duals=Support.EMULATED,
        node_bounds=Support.EMULATED,
        local_cuts=Support.EMULATED,
        log=Support.NATIVE,
    )

    @classmethod
    def check_licence(cls) -> None:
        environment()

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        wants_mip = not MIP_OPTIONS.isdisjoint(session.options.native)
        if wants_mip and session.options.branch_priorities is not None:
            logger.info("the options require COPT's own branch and bound, which ignores branch priorities")
        engine = _CoptEngine(session) if wants_mip else _CoptBranchingEngine(session)
        try:
            with session.forwarding_stops(engine.interrupt):
                return CutLoop(session, engine).run()
        finally:
            engine.close()


class _CoptEngine:
    """The LP and the MIP of one solve."""

    def __init__(self, session: SolveSession) -> None:
        self._session = session
        self._model = session.model
        self._problems: dict[bool, _CoptProblem] = {}

    def close(self) -> None:
        for problem in self._problems.values():
            problem.close()

    def interrupt(self) -> None:
        for problem in list(self._problems.values()):
            problem.interrupt()

    def _problem(self, *, integer: bool) -> _CoptProblem:
        if integer not in self._problems:
            self._problems[integer] = _CoptProblem(self._session, self._model, integer=integer)
        return self._problems[integer]

    # ---------------------------------------------------------------- relaxation

    def solve_relaxation(self, seconds: float) -> EngineRun:
        lp, sign = self._problem(integer=False), self._model.sign
        status = self._decided(lp, lp.solve(seconds))
        if status is RunStatus.INFEASIBLE:
            return EngineRun(status, None, -sign * math.inf, multipliers=lp.ray())
        if status is not RunStatus.OPTIMAL:
            return EngineRun(status, None, sign * math.inf)
        return EngineRun(status, lp.point(), lp.bound(), multipliers=lp.duals())

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._problem(integer=False).add(rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        self._problem(integer=False).drop(positions)

    # ---------------------------------------------------------------- integer

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        mip = self._problem(integer=True)
        status = self._decided(mip, mip.solve(request.seconds, request))
        return EngineRun(status, mip.point(), mip.bound(), mip.nodes())

    def add_integer_rows(self, rows: Rows) -> None:
        self._problem(integer=True).add(rows)

    def _decided(self, problem: _CoptProblem, status: RunStatus) -> RunStatus:
        """Decide between unbounded and infeasible by a solve without objective."""
        if status is not RunStatus.UNBOUNDED:
            return status
        probe = problem.without_objective()
        try:
            found = probe.solve(self._session.seconds_left)
        finally:
            probe.close()
        if found is RunStatus.UNBOUNDED:
            raise SolverError("COPT reports a model without objective as unbounded")
        return RunStatus.UNBOUNDED if found is RunStatus.OPTIMAL else found


class _CoptBranchingEngine(_CoptEngine):
    """Engine that branches on the LP: the loop's search tree survives new cuts, that of COPT does not."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._problem(integer=False).set_bounds(columns, lower, upper)


class _CoptProblem:
    """One COPT model, as an LP or as a MIP, with the cuts that were added."""

    def __init__(self, session: SolveSession, arrays: ModelArrays, *, integer: bool) -> None:
        import coptpy

        self._copt = coptpy
        self._codes = coptpy.COPT
        self._session = session
        self._arrays = arrays
        self._integer = integer and bool(arrays.integer.any())
        self._cuts: list[Any] = []
        self._cut_rows = Rows.empty()
        self._callback: Any = None
        self._nodes = 0
        self._model: Any = environment().createModel()
        try:
            self._attach_log()
            self._build()
            self._columns = self._model.getVars()
            self._variables = list(self._columns)
            self._configure()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._model.dispose()

    def interrupt(self) -> None:
        self._model.interrupt()

    def without_objective(self) -> _CoptProblem:
        """Return another problem with the same rows, cuts and column bounds of the model."""
        rows = Rows.concatenate([self._arrays.rows, self._cut_rows])
        arrays = replace(self._arrays, objective=np.zeros(self._arrays.n_columns), rows=rows)
        return _CoptProblem(self._session, arrays, integer=self._integer)

    def _attach_log(self) -> None:
        self._model.setParam("Logging", 0)  # first: else each setting of a parameter is printed
        self._model.setParam("LogToConsole", 0)
        stream = self._session.log_stream(logger)
        if stream is None:
            return
        from accel_oct_backends.copt_callbacks import Log

        self._log = Log(stream)
        self._model.setLogCallback(self._log)
        self._model.setParam("Logging", 1)

    def _build(self) -> None:
        from scipy.sparse import csr_array

        codes, arrays = self._codes, self._arrays
        rows, kinds = arrays.rows, np.full(arrays.n_columns, codes.CONTINUOUS)
        if self._integer:
            kinds[arrays.integer] = codes.INTEGER
        matrix = csr_array((rows.values, rows.columns, rows.starts), shape=(rows.n_rows, arrays.n_columns))
        self._model.loadMatrix(
            arrays.objective,
            matrix.tocsc(),
            _clipped(rows.lower),
            _clipped(rows.upper),
            _clipped(arrays.lower),
            _clipped(arrays.upper),
            kinds.tolist(),
        )
        self._model.ObjSense = codes.MAXIMIZE if arrays.maximise else codes.MINIMIZE

    def _configure(self) -> None:
        options, model = self._session.options, self._model
        settings: dict[str, Any] = {
            "Threads": options.threads,
            "RandSeed": options.seed % 2**31,
            "RelGap": options.gap,
            "AbsGap": 0.0,
            "IntTol": _INTEGRALITY,
            "MatrixTol": 0.0,
            # It calls models with points infeasible, makes heuristics fail, and discards the basis of an LP.
            "Presolve": 0,
        }
        if not self._integer:
            settings |= {"LpMethod": 1, "ReqFarkasRay": 1}  # dual simplex from the last basis
        for name, value in settings.items():
            model.setParam(name, value)
        for name, value in options.native.items():
            try:
                model.setParam(name, value)
            except (AttributeError, TypeError, ValueError, self._copt.CoptError) as error:
                raise SolverError(f"COPT rejects the native option {name}={value!r}: {error}") from error

    # ---------------------------------------------------------------- changes

    def add(self, rows: Rows) -> None:
        """Add cuts; each is one constraint of COPT, also with two sides."""
        variables = self._variables
        columns, values, starts = rows.columns.tolist(), rows.values.tolist(), rows.starts.tolist()
        for row, (lower, upper) in enumerate(zip(_clipped(rows.lower), _clipped(rows.upper), strict=True)):
            part = slice(starts[row], starts[row + 1])
            expression = self._copt.LinExpr()
            expression.addTerms([variables[column] for column in columns[part]], values[part])
            self._cuts.append(self._model.addBoundConstr(expression, lower, upper))
        self._cut_rows = Rows.concatenate([self._cut_rows, rows])

    def drop(self, positions: IntArray) -> None:
        stay = np.ones(len(self._cuts), dtype=bool)
        stay[positions] = False
        for position in positions.tolist():
            self._model.remove(self._cuts[position])
        self._cuts = [self._cuts[position] for position in np.flatnonzero(stay)]
        self._cut_rows = self._cut_rows.take(stay)

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        changed = [self._variables[column] for column in columns.tolist()]
        if changed:
            self._model.setInfo("LB", changed, _clipped(lower).tolist())
            self._model.setInfo("UB", changed, _clipped(upper).tolist())

    # ---------------------------------------------------------------- runs

    def solve(self, seconds: float, request: IntegerRequest | None = None) -> RunStatus:
        """Run COPT; the request is that for a MIP."""
        model = self._model
        model.setParam("TimeLimit", min(seconds, 1e20))
        if request is not None:
            self._prepare(request)
        try:
            model.solve() if self._integer else model.solveLP()
        except self._copt.CoptError as error:
            raise self._translated(error) from error
        if model.Status == self._codes.INTERRUPTED and not (request is not None and request.should_stop()):
            self._session.request_stop(Termination.INTERRUPTED)  # COPT takes Ctrl-C for itself
        return self._status(model.Status)

    def _prepare(self, request: IntegerRequest) -> None:
        from accel_oct_backends.copt_callbacks import Callback

        codes, model = self._codes, self._model
        self._nodes = 0
        if "NodeLimit" not in self._session.options.native:
            model.setParam("NodeLimit", _NO_NODE_LIMIT if request.nodes is None else request.nodes)
        if request.start is not None:
            model.setMipStart(self._columns, request.start.tolist())
            model.loadMipStart()
        contexts = codes.CBCONTEXT_INCUMBENT | codes.CBCONTEXT_MIPNODE
        if self._session.needs.injects:
            contexts |= codes.CBCONTEXT_MIPRELAX
        self._callback = Callback(lambda callback: self._on_event(callback, request))
        model.setCallback(self._callback, contexts)

    def _on_event(self, callback: Any, request: IntegerRequest) -> None:
        """Dispatch a callback; exceptions are stored, because COPT would print and ignore them."""
        session, codes = self._session, self._codes
        try:
            where = callback.where()
            if not session.stop_requested:
                bound = self._known(callback.getInfo(codes.CBInfo.BestBnd))
                if where == codes.CBCONTEXT_INCUMBENT:
                    x = np.array(callback.getIncumbent(self._columns))
                    request.on_solution(x, bound if math.isfinite(bound) else None)
                elif where == codes.CBCONTEXT_MIPNODE:
                    self._nodes += 1
                    request.on_bound(bound, self._nodes)
                else:
                    self._inject(callback, request)
        except BaseException as error:
            session.fail(error)
        if session.stop_requested or request.should_stop():
            callback.interrupt()

    def _inject(self, callback: Any, request: IntegerRequest) -> None:
        while (x := request.next_injection()) is not None:
            callback.setSolution(self._columns, x.tolist())
            callback.loadSolution()

    def _status(self, status: int) -> RunStatus:
        codes = self._codes
        known = {
            codes.OPTIMAL: RunStatus.OPTIMAL,
            codes.INFEASIBLE: RunStatus.INFEASIBLE,
            codes.UNBOUNDED: RunStatus.UNBOUNDED,
            codes.INF_OR_UNB: RunStatus.UNBOUNDED,
            codes.NODELIMIT: RunStatus.LIMIT,
            codes.TIMEOUT: RunStatus.LIMIT,
            codes.INTERRUPTED: RunStatus.LIMIT,
            codes.ITERLIMIT: RunStatus.LIMIT,
            codes.UNFINISHED: RunStatus.LIMIT,
            codes.IMPRECISE: RunStatus.UNDECIDED,
            codes.NUMERICAL: RunStatus.UNDECIDED,
        }
        if status not in known:
            raise SolverError(f"COPT ended with status {status}")
        return known[status]

    def _translated(self, error: Any) -> Exception:
        if error.retcode == _LICENCE:
            rows = self._arrays.rows.n_rows + len(self._cuts)
            return LicenceError(
                f"the COPT licence is too small for this model ({self._arrays.n_columns} columns, {rows} rows with "
                "the cuts); without a licence file, COPT is limited to 2000 of each. "
                'Use a full licence, or solver="highs"'
            )
        return SolverError(f"COPT failed: {error}")

    # ---------------------------------------------------------------- results

    def point(self) -> FloatArray | None:
        has = self._model.HasMipSol if self._integer else self._model.HasLpSol
        return np.array(self._model.getValues()) if has else None

    def bound(self) -> float:
        return self._known(self._model.BestBnd if self._integer else self._model.LpObjVal)

    def nodes(self) -> int:
        return max(int(self._model.NodeCnt), self._nodes) if self._integer else 0

    def duals(self) -> FloatArray:
        return np.array(self._model.getDuals())

    def ray(self) -> FloatArray | None:
        if not self._model.HasDualFarkas:
            return None
        return np.array(self._model.getInfo("DualFarkas", self._model.getConstrs()))

    def _known(self, bound: float) -> float:
        """Return a bound of COPT; its code for "no bound yet" becomes infinity."""
        return bound if abs(bound) < _INFINITY else self._arrays.sign * math.inf


def _clipped(bounds: FloatArray) -> FloatArray:
    return np.clip(bounds, -_INFINITY, _INFINITY)


_starting = threading.Lock()


@lru_cache(maxsize=1)
def environment() -> Any:
    """Return COPT's environment, one per process: it prints how it searched for a licence, which is logged instead."""
    import coptpy

    config = coptpy.EnvrConfig()
    config.set("nobanner", "1")
    try:
        with _starting, _output_to_log():
            return coptpy.Envr(config)
    except coptpy.CoptError as error:
        raise LicenceError(f'COPT does not start ({error}); solver="highs" needs no licence') from error


@contextmanager
def _output_to_log() -> Iterator[None]:
    """Log what native code prints inside the block, at the level DEBUG."""
    import tempfile

    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        console = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(console, 1)
            os.close(console)
            file.seek(0)
            for line in file.read().decode(errors="replace").splitlines():
                logger.debug("%s", line)
