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
    EngineRun,
    FloatArray,
    IntArray,
    IntegerRequest,
    Rows,
    RunStatus,
    SolverError,
    SolveSession,
    Support,
    Termination,
)
from accel_oct_backends.highs_native import (
    HIGHS_INFINITY,
    NO_LIMIT,
    RUN_STATUS,
    WIDE_MIP_FEASIBILITY,
    Status,
    add_rows,
    checked,
    is_wide,
    native_model,
    new_highs,
    read_status,
    run,
    set_time_limit,
)

logger = logging.getLogger(__name__)


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

    def solve_relaxation(self, seconds: float) -> EngineRun:
        lp = self._relaxation()
        set_time_limit(lp, seconds)
        try:
            self._run_relaxation(lp)
            status = read_status(lp)
        except SolverError:
            logger.debug("HiGHS failed on an LP, which is solved by other means", exc_info=True)
            lp.clearSolver()
            return EngineRun(RunStatus.UNDECIDED, None, self._model.sign * math.inf)
        if status is RunStatus.UNBOUNDED:
            status = self._unbounded_or_infeasible(lp)
        if status is RunStatus.INFEASIBLE:
            _, exists, ray = lp.getDualRay()  # none where presolve has decided
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
        if lp.getModelStatus() not in RUN_STATUS:  # lost on the way from the last basis: once more from none
            lp.clearSolver()
            run(lp)

    def _relaxation(self) -> Any:
        if self._lp is None:
            self._lp = new_highs(self._session)
            self._lp.passModel(native_model(self._model, integer=False))
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
        mip.clearSolver()  # nothing of an earlier run may decide this one
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
        """A bound of HiGHS's, with its signs for "none yet" as infinity."""
        return bound if abs(bound) < HIGHS_INFINITY else self._model.sign * math.inf

    def add_integer_rows(self, rows: Rows) -> None:
        mip = self._integer()
        add_rows(mip, rows)
        if is_wide(rows.lower, rows.upper) and "mip_feasibility_tolerance" not in self._session.options.native:
            mip.setOptionValue("mip_feasibility_tolerance", WIDE_MIP_FEASIBILITY)

    # ---------------------------------------------------------------- shared

    def _unbounded_or_infeasible(self, highs: Any) -> RunStatus:
        """Presolve may not tell the two apart: ask again with no objective."""
        if highs.getModelStatus() == Status.kUnbounded:
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
            # Always written: the flag survives a run. The clock is ours, see `set_time_limit`.
            event.data_in.user_interrupt = should_stop() or self._session.out_of_time

        return write


class _BranchingEngine(_HighsEngine):
    """Branches on the LP where cuts may come: the loop's own tree survives them, HiGHS's does not."""

    def set_relaxation_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        status = self._relaxation().changeColsBounds(columns.size, columns.astype(np.int32), lower, upper)
        checked(status, "changeColsBounds")
