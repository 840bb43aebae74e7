"""Objects of highspy: making them from a model, telling them limits, reading how they ended."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from accel_oct.mip import FloatArray, ModelArrays, Rows, RunStatus, SolverError, SolveSession

Status = highspy.HighsModelStatus
RUN_STATUS = {
    Status.kOptimal: RunStatus.OPTIMAL,
    Status.kInfeasible: RunStatus.INFEASIBLE,
    Status.kUnbounded: RunStatus.UNBOUNDED,
    Status.kUnboundedOrInfeasible: RunStatus.UNBOUNDED,
    Status.kTimeLimit: RunStatus.LIMIT,
    Status.kIterationLimit: RunStatus.LIMIT,
    Status.kSolutionLimit: RunStatus.LIMIT,
    Status.kInterrupt: RunStatus.LIMIT,
    Status.kObjectiveTarget: RunStatus.LIMIT,
    Status.kObjectiveBound: RunStatus.LIMIT,
}
#: Tighter than HiGHS's default, so that rounding an accepted point moves no row by more than a cut's tolerance.
_MIP_FEASIBILITY = 1e-7
#: HiGHS's own, kept where a bound is this large: with a tighter one it has called wrong points optimal there.
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
            raise SolverError(f"HiGHS refuses the native option {name}={value!r}")
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
    # Versions differ in whether the limit counts from the object's first run or from this one. This is never too early;
    # the interrupt callbacks stop in time.
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
