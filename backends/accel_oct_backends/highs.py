"""HiGHS (MIT licence), through highspy.

HiGHS has no callback for lazy constraints, so the shared cut loop adds cuts, and branches on the LP itself. Models
without cuts, and solves with options of HiGHS's own branch and bound (``mip_...``), use its MIP solver. The LP and the
MIP are two objects: a MIP run would destroy the basis that makes re-solves of the LP cheap. Both are built per solve,
so that the cuts of one solve do not affect the next.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    CutLoop,
    EngineRun,
    FloatArray,
    IntArray,
    IntegerRequest,
    MipModel,
    ModelArrays,
    Rows,
    RunStatus,
    SolverError,
    SolveSession,
    Support,
    Termination,
)

logger = logging.getLogger(__name__)


class HighsBackend(Backend):
    """HiGHS with the cut loop; starts and injections are native."""

    name = "highs"
    package = "highspy"
    auto_rank = 50
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
        basis=Support.NATIVE,
    )

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        # Options of HiGHS's own branch and bound require that it runs.
        wants_mip = any(name.startswith("mip_") for name in session.options.native)
        if wants_mip and session.options.branch_priorities is not None:
            logger.info("the options require HiGHS's own branch and bound, which ignores branch priorities")
        basis = self._basis if session.options.warm else None
        engine = (_HighsEngine if wants_mip else _HighsBranchingEngine)(session, basis)
        try:
            return CutLoop(session, engine).run()
        finally:
            self._basis = engine.basis()

    _basis: Any = None
    """Basis of the last LP of the last solve."""

    def load(self, model: MipModel) -> None:
        super().load(model)
        self._basis = None


class _HighsEngine:
    """The LP and the MIP of one solve."""

    def __init__(self, session: SolveSession, basis: Any = None) -> None:
        self._session = session
        self._model = session.model
        self._basis = basis
        self._lp: Any = None
        self._mip: Any = None

    def basis(self) -> Any:
        """Return the basis of the LP; that of the last solve if there was no LP."""
        basis = None if self._lp is None else self._lp.getBasis()
        if basis is None or not basis.valid:
            return self._basis
        basis.row_status = list(basis.row_status)[: self._model.rows.n_rows]  # not those of cuts
        return basis

    def _use_basis(self, lp: Any) -> None:
        """Begin with the basis of the last solve, new rows basic and new columns at a bound."""
        if self._basis is None:
            return
        codes, model = highspy.HighsBasisStatus, self._model
        n_columns, n_rows = len(self._basis.col_status), len(self._basis.row_status)
        basis = highspy.HighsBasis()
        basis.col_status = list(self._basis.col_status) + [codes.kNonbasic] * (model.n_columns - n_columns)
        basis.row_status = list(self._basis.row_status) + [codes.kBasic] * (model.rows.n_rows - n_rows)
        basis.valid = basis.alien = True  # HiGHS completes or cuts it to a basis
        if lp.setBasis(basis) != highspy.HighsStatus.kOk:
            lp.clearSolver()

    # ---------------------------------------------------------------- relaxation

    def solve_relaxation(self, seconds: float) -> EngineRun:
        lp = self._relaxation()
        set_time_limit(lp, seconds)
        try:
            self._run_relaxation(lp)
            status = read_status(lp)
        except SolverError:
            logger.debug("HiGHS failed on an LP, which scipy solves instead", exc_info=True)
            lp.clearSolver()
            return EngineRun(RunStatus.UNDECIDED, None, self._model.sign * math.inf)
        if status is RunStatus.UNBOUNDED:
            status = self._unbounded_or_infeasible(lp)
        if status is RunStatus.INFEASIBLE:
            _, exists, ray = lp.getDualRay()  # none if presolve has decided
            return EngineRun(status, None, -self._model.sign * math.inf, multipliers=np.array(ray) if exists else None)
        if status is not RunStatus.OPTIMAL:
            return EngineRun(status, None, self._model.sign * math.inf)
        solution = lp.getSolution()
        x, duals = np.array(solution.col_value), np.array(solution.row_dual)
        return EngineRun(status, x, lp.getInfo().objective_function_value, multipliers=duals)

    @staticmethod
    def _run_relaxation(lp: Any) -> None:
        try:
            run(lp)
        except SolverError:
            lp.clearSolver()
            run(lp)
        if lp.getModelStatus() not in RUN_STATUS:  # failed from the last basis: solve again without one
            lp.clearSolver()
            run(lp)

    def _relaxation(self) -> Any:
        if self._lp is None:
            self._lp = new_highs(self._session)
            self._lp.passModel(native_model(self._model, integer=False))
            self._log(self._lp)
            self._use_basis(self._lp)
            self._lp.cbSimplexInterrupt.subscribe(self._write_stop(lambda: self._session.stop_requested))
        return self._lp

    def add_relaxation_rows(self, rows: Rows) -> None:
        add_rows(self._relaxation(), rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        positions = positions + self._model.rows.n_rows
        checked(self._relaxation().deleteRows(positions.size, positions.astype(np.int32)), "deleteRows")

    # ---------------------------------------------------------------- integer

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        mip = self._integer()
        set_time_limit(mip, request.seconds)
        mip.setOptionValue("mip_max_nodes", NO_LIMIT if request.nodes is None else min(request.nodes, NO_LIMIT))
        mip.clearSolver()  # removes the state of earlier runs
        if request.start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = request.start.tolist()
            checked(mip.setSolution(solution), "setSolution")
        self._subscribe(mip, request)
        try:
            run(mip)
        finally:
            mip.clearCallbacks()
        return self._integer_outcome(mip)

    def _integer(self) -> Any:
        if self._mip is None:
            self._mip = new_highs(self._session)
            self._mip.passModel(native_model(self._model, integer=True))
        return self._mip

    def _subscribe(self, mip: Any, request: IntegerRequest) -> None:
        sign = self._model.sign

        def on_solution(event: Any) -> None:
            bound = self._bound(event.data_out.mip_dual_bound)
            request.on_solution(np.array(event.data_out.mip_solution), bound if math.isfinite(bound) else None)

        def on_bound(event: Any) -> None:
            request.on_bound(self._bound(event.data_out.mip_dual_bound), max(int(event.data_out.mip_node_count), 0))

        def on_user_solution(event: Any) -> None:
            x = request.next_injection()
            if x is not None and sign * (self._model.value(x) - event.data_out.mip_primal_bound) > 0:
                event.data_in.setSolution(x)

        self._log(mip)
        mip.cbMipSolution.subscribe(self._kept(on_solution))
        mip.cbMipInterrupt.subscribe(self._kept(on_bound))
        mip.cbMipInterrupt.subscribe(self._write_stop(request.should_stop))
        mip.cbMipUserSolution.subscribe(self._kept(on_user_solution))

    def _integer_outcome(self, mip: Any) -> EngineRun:
        status, info = read_status(mip), mip.getInfo()
        if status is RunStatus.UNBOUNDED:
            status = self._unbounded_or_infeasible(mip)
        has_solution = info.primal_solution_status == highspy.kSolutionStatusFeasible
        return EngineRun(
            status,
            np.array(mip.getSolution().col_value) if has_solution else None,
            self._bound(info.mip_dual_bound),
            max(int(info.mip_node_count), 0),
        )

    def _bound(self, bound: float) -> float:
        """Return a bound of HiGHS; its codes for "no bound yet" become infinity."""
        return bound if abs(bound) < HIGHS_INFINITY else self._model.sign * math.inf

    def add_integer_rows(self, rows: Rows) -> None:
        mip = self._integer()
        add_rows(mip, rows)
        if is_wide(rows.lower, rows.upper) and "mip_feasibility_tolerance" not in self._session.options.native:
            mip.setOptionValue("mip_feasibility_tolerance", WIDE_MIP_FEASIBILITY)

    # ---------------------------------------------------------------- shared

    def _log(self, highs: Any) -> None:
        """Pass on the log of the next runs; a subscription ends with `clearCallbacks`."""
        stream = self._session.log_stream(logger)
        if stream is None:
            return
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("output_flag", True)
        highs.cbLogging.subscribe(lambda event: stream.write(event.message))

    def _unbounded_or_infeasible(self, highs: Any) -> RunStatus:
        """Decide between the two by a solve without objective, if presolve did not."""
        if highs.getModelStatus() == ModelStatus.kUnbounded:
            return RunStatus.UNBOUNDED
        probe = new_highs(self._session)
        lp = highs.getLp()
        lp.col_cost_ = np.zeros(self._model.n_columns)
        probe.passModel(lp)
        set_time_limit(probe, self._session.seconds_left)
        run(probe)
        status = read_status(probe)
        return RunStatus.UNBOUNDED if status is RunStatus.OPTIMAL else status

    def _kept(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap a callback so that its exceptions are stored instead of crossing the C++ boundary."""

        def safe(event: Any) -> None:
            if self._session.stop_requested:
                return
            try:
                callback(event)
            except BaseException as error:
                self._session.fail(error)

        return safe

    def _write_stop(self, should_stop: Callable[[], bool]) -> Callable[[Any], None]:
        def write(event: Any) -> None:
            # Always written, because the flag survives a run; it also enforces the time limit, see `set_time_limit`.
            event.data_in.user_interrupt = should_stop() or self._session.out_of_time

        return write


class _HighsBranchingEngine(_HighsEngine):
    """Engine that branches on the LP: the loop's search tree survives new cuts, that of HiGHS does not."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        status = self._relaxation().changeColsBounds(columns.size, columns.astype(np.int32), lower, upper)
        checked(status, "changeColsBounds")


ModelStatus = highspy.HighsModelStatus
RUN_STATUS = {
    ModelStatus.kOptimal: RunStatus.OPTIMAL,
    ModelStatus.kInfeasible: RunStatus.INFEASIBLE,
    ModelStatus.kUnbounded: RunStatus.UNBOUNDED,
    ModelStatus.kUnboundedOrInfeasible: RunStatus.UNBOUNDED,
    ModelStatus.kTimeLimit: RunStatus.LIMIT,
    ModelStatus.kIterationLimit: RunStatus.LIMIT,
    ModelStatus.kSolutionLimit: RunStatus.LIMIT,
    ModelStatus.kInterrupt: RunStatus.LIMIT,
    ModelStatus.kObjectiveTarget: RunStatus.LIMIT,
    ModelStatus.kObjectiveBound: RunStatus.LIMIT,
}
#: Tighter than HiGHS's default, so that rounding an accepted point moves no row by more than the tolerance of cuts.
_MIP_FEASIBILITY = 1e-7
#: HiGHS's default, used if a bound is as large as `_WIDE`: with a tighter one it has reported wrong points as optimal.
WIDE_MIP_FEASIBILITY = 1e-6
_WIDE = 1e6
NO_LIMIT = 2**31 - 1
HIGHS_INFINITY = 1e300


def new_highs(session: SolveSession) -> Any:
    highs, options = highspy.Highs(), session.options
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", options.threads)
    highs.setOptionValue("parallel", "on" if options.threads > 1 else "off")
    highs.setOptionValue("random_seed", options.seed)
    highs.setOptionValue("mip_rel_gap", options.gap)
    highs.setOptionValue("mip_abs_gap", 0.0)
    model = session.model
    wide = is_wide(model.lower, model.upper, model.rows.lower, model.rows.upper)
    highs.setOptionValue("mip_feasibility_tolerance", WIDE_MIP_FEASIBILITY if wide else _MIP_FEASIBILITY)
    for name, value in options.native.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS rejects the native option {name}={value!r}")
    return highs


def is_wide(*bounds: FloatArray) -> bool:
    return any(bool(np.any(np.isfinite(part) & (np.abs(part) >= _WIDE))) for part in bounds)


def native_model(model: ModelArrays, integer: bool) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_ = model.n_columns
    lp.num_row_ = model.rows.n_rows
    lp.sense_ = highspy.ObjSense.kMaximize if model.maximise else highspy.ObjSense.kMinimize
    lp.col_cost_ = model.objective
    lp.col_lower_ = model.lower
    lp.col_upper_ = model.upper
    lp.row_lower_ = model.rows.lower
    lp.row_upper_ = model.rows.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_ = model.n_columns
    lp.a_matrix_.num_row_ = model.rows.n_rows
    lp.a_matrix_.start_ = model.rows.starts
    lp.a_matrix_.index_ = model.rows.columns
    lp.a_matrix_.value_ = model.rows.values
    if integer:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[flag] for flag in model.integer.astype(int)]
    return lp


def add_rows(highs: Any, rows: Rows) -> None:
    status = highs.addRows(
        rows.n_rows,
        rows.lower,
        rows.upper,
        rows.n_nonzeros,
        rows.starts[:-1].astype(np.int32),
        rows.columns.astype(np.int32),
        rows.values,
    )
    checked(status, "addRows")


def set_time_limit(highs: Any, seconds: float) -> None:
    # Versions differ in whether the limit counts from the first run of the object or from this one. This value is never
    # too small; the interrupt callbacks stop in time.
    highs.setOptionValue("time_limit", min(highs.getRunTime() + seconds, HIGHS_INFINITY))


def run(highs: Any) -> None:
    checked(highs.run(), "run")


def checked(status: Any, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS failed in {what}")


def read_status(highs: Any) -> RunStatus:
    status = highs.getModelStatus()
    if status not in RUN_STATUS:
        raise SolverError(f"HiGHS ended with status {highs.modelStatusToString(status)!r}")
    return RUN_STATUS[status]
