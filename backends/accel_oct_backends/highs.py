"""HiGHS (MIT licence), through highspy.

HiGHS has no callback for lazy constraints, so cuts go through the shared cut loop, which branches on the LP by itself.
Models with no cuts, and solves with options of HiGHS's own branch and bound (``mip_...``), go to its MIP solver. The LP
and the MIP live in two objects: a MIP run would destroy the basis that makes the LP's re-solves cheap. Both are built
per solve: a cut of one solve must not stay for the next.
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
    FloatArray,
    IntArray,
    IntegerRequest,
    ModelArrays,
    Rows,
    Run,
    RunStatus,
    SolverError,
    SolveSession,
    Support,
    Termination,
)

logger = logging.getLogger(__name__)

_Status = highspy.HighsModelStatus
_RUN_STATUS = {
    _Status.kOptimal: RunStatus.OPTIMAL,
    _Status.kInfeasible: RunStatus.INFEASIBLE,
    _Status.kUnbounded: RunStatus.UNBOUNDED,
    _Status.kUnboundedOrInfeasible: RunStatus.UNBOUNDED,
    _Status.kTimeLimit: RunStatus.LIMIT,
    _Status.kIterationLimit: RunStatus.LIMIT,
    _Status.kSolutionLimit: RunStatus.LIMIT,
    _Status.kInterrupt: RunStatus.LIMIT,
    _Status.kObjectiveTarget: RunStatus.LIMIT,
    _Status.kObjectiveBound: RunStatus.LIMIT,
}
#: Tighter than HiGHS's default, so that rounding an accepted point moves no row by more than a cut's tolerance.
_MIP_FEASIBILITY = 1e-7
#: HiGHS's own, kept where a bound is this large: with a tighter one it has called wrong points optimal there.
_WIDE_MIP_FEASIBILITY = 1e-6
_WIDE = 1e6


class HighsBackend(Backend):
    """HiGHS with the cut loop; starts and injections are native."""

    name = "highs"
    package = "highspy"
    auto_rank = 30
    capabilities = Capabilities(
        lazy_rows=Support.EMULATED,
        user_cuts=Support.EMULATED,
        relaxation_points=Support.EMULATED,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.EMULATED,
    )

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        # Somebody who sets options of HiGHS's own branch and bound wants it to run.
        wants_mip = any(name.startswith("mip_") for name in session.options.native)
        if wants_mip and session.options.branch_priorities is not None:
            logger.info("HiGHS's own branch and bound, which the options ask for, takes no branch priorities")
        return CutLoop(session, _HighsEngine(session) if wants_mip else _BranchingEngine(session)).run()


class _HighsEngine:
    """The LP and the MIP of one solve."""

    def __init__(self, session: SolveSession) -> None:
        self._session = session
        self._model = session.model
        self._lp: Any = None
        self._mip: Any = None

    # ---------------------------------------------------------------- relaxation

    def solve_relaxation(self, seconds: float) -> Run:
        lp = self._relaxation()
        _set_time_limit(lp, seconds)
        _run(lp)
        if lp.getModelStatus() not in _RUN_STATUS:  # lost on the way from the last basis: once more from none
            lp.clearSolver()
            _run(lp)
        status = _status(lp)
        if status is RunStatus.UNBOUNDED:
            status = self._unbounded_or_infeasible(lp)
        if status is not RunStatus.OPTIMAL:
            return Run(status, None, self._model.sign * math.inf)
        x = np.array(lp.getSolution().col_value)
        return Run(status, x, lp.getInfo().objective_function_value)

    def _relaxation(self) -> Any:
        if self._lp is None:
            self._lp = _new_highs(self._session)
            self._lp.passModel(_native_model(self._model, integer=False))
            self._lp.cbSimplexInterrupt.subscribe(self._write_stop(lambda: self._session.stop_requested))
        return self._lp

    def add_relaxation_rows(self, rows: Rows) -> None:
        _add_rows(self._relaxation(), rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        positions = positions + self._model.rows.n_rows
        _checked(self._relaxation().deleteRows(positions.size, positions.astype(np.int32)), "deleteRows")

    # ---------------------------------------------------------------- integer

    def solve_integer(self, request: IntegerRequest) -> Run:
        mip = self._integer()
        _set_time_limit(mip, request.seconds)
        mip.setOptionValue("mip_max_nodes", _NO_LIMIT if request.nodes is None else min(request.nodes, _NO_LIMIT))
        mip.clearSolver()  # nothing of an earlier run may decide this one
        if request.start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = request.start.tolist()
            _checked(mip.setSolution(solution), "setSolution")
        self._subscribe(mip, request)
        try:
            _run(mip)
        finally:
            mip.clearCallbacks()
        return self._integer_outcome(mip)

    def _integer(self) -> Any:
        if self._mip is None:
            self._mip = _new_highs(self._session)
            self._mip.passModel(_native_model(self._model, integer=True))
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

        mip.cbMipSolution.subscribe(self._kept(on_solution))
        mip.cbMipInterrupt.subscribe(self._kept(on_bound))
        mip.cbMipInterrupt.subscribe(self._write_stop(request.should_stop))
        mip.cbMipUserSolution.subscribe(self._kept(on_user_solution))

    def _integer_outcome(self, mip: Any) -> Run:
        status, info = _status(mip), mip.getInfo()
        if status is RunStatus.UNBOUNDED:
            status = self._unbounded_or_infeasible(mip)
        has_solution = info.primal_solution_status == highspy.kSolutionStatusFeasible
        return Run(
            status,
            np.array(mip.getSolution().col_value) if has_solution else None,
            self._bound(info.mip_dual_bound),
            max(int(info.mip_node_count), 0),
        )

    def _bound(self, bound: float) -> float:
        """A bound of HiGHS's, with its signs for "none yet" as infinity."""
        return bound if abs(bound) < _HIGHS_INFINITY else self._model.sign * math.inf

    def add_integer_rows(self, rows: Rows) -> None:
        mip = self._integer()
        _add_rows(mip, rows)
        if _is_wide(rows.lower, rows.upper) and "mip_feasibility_tolerance" not in self._session.options.native:
            mip.setOptionValue("mip_feasibility_tolerance", _WIDE_MIP_FEASIBILITY)

    # ---------------------------------------------------------------- shared

    def _unbounded_or_infeasible(self, highs: Any) -> RunStatus:
        """Presolve may not tell the two apart: ask again with no objective."""
        if highs.getModelStatus() == _Status.kUnbounded:
            return RunStatus.UNBOUNDED
        probe = _new_highs(self._session)
        lp = highs.getLp()
        lp.col_cost_ = np.zeros(self._model.n_columns)
        probe.passModel(lp)
        _set_time_limit(probe, self._session.seconds_left)
        _run(probe)
        status = _status(probe)
        return RunStatus.UNBOUNDED if status is RunStatus.OPTIMAL else status

    def _kept(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """A callback whose exceptions stop the solve instead of crossing the C++ boundary."""

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
            # Always written: the flag survives a run. The clock is ours, see `_set_time_limit`.
            event.data_in.user_interrupt = should_stop() or self._session.out_of_time

        return write


class _BranchingEngine(_HighsEngine):
    """Branches on the LP where cuts may come: the loop's own tree survives them, HiGHS's does not."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        status = self._relaxation().changeColsBounds(columns.size, columns.astype(np.int32), lower, upper)
        _checked(status, "changeColsBounds")


_NO_LIMIT = 2**31 - 1
_HIGHS_INFINITY = 1e300


def _new_highs(session: SolveSession) -> Any:
    highs, options = highspy.Highs(), session.options
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", options.threads)
    highs.setOptionValue("parallel", "on" if options.threads > 1 else "off")
    highs.setOptionValue("random_seed", options.seed)
    highs.setOptionValue("mip_rel_gap", options.gap)
    highs.setOptionValue("mip_abs_gap", 0.0)
    model = session.model
    wide = _is_wide(model.lower, model.upper, model.rows.lower, model.rows.upper)
    highs.setOptionValue("mip_feasibility_tolerance", _WIDE_MIP_FEASIBILITY if wide else _MIP_FEASIBILITY)
    for name, value in options.native.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS refuses the native option {name}={value!r}")
    return highs


def _is_wide(*bounds: FloatArray) -> bool:
    return any(bool(np.any(np.isfinite(part) & (np.abs(part) >= _WIDE))) for part in bounds)


def _native_model(model: ModelArrays, integer: bool) -> Any:
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


def _add_rows(highs: Any, rows: Rows) -> None:
    status = highs.addRows(
        rows.n_rows,
        rows.lower,
        rows.upper,
        rows.n_nonzeros,
        rows.starts[:-1].astype(np.int32),
        rows.columns.astype(np.int32),
        rows.values,
    )
    _checked(status, "addRows")


def _set_time_limit(highs: Any, seconds: float) -> None:
    # Versions differ in whether the limit counts from the object's first run or from this one. This is never too early;
    # the interrupt callbacks stop in time.
    highs.setOptionValue("time_limit", min(highs.getRunTime() + seconds, _HIGHS_INFINITY))


def _run(highs: Any) -> None:
    _checked(highs.run(), "run")


def _checked(status: Any, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS failed in {what}")


def _status(highs: Any) -> RunStatus:
    status = highs.getModelStatus()
    if status not in _RUN_STATUS:
        raise SolverError(f"HiGHS ended with status {highs.modelStatusToString(status)!r}")
    return _RUN_STATUS[status]
