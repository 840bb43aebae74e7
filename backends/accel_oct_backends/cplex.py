"""IBM CPLEX, through its generic callbacks: every capability is native."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    Event,
    FloatArray,
    LicenceError,
    LogLines,
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

_TOO_LARGE = 1016
_LICENCE_ERRORS = range(32000, 33000)
#: Infinity in CPLEX.
_INFINITY = 1e20
#: As in the Gurobi backend: branch variables that are almost zero must not add up to a score that no tree has.
_INTEGRALITY = 1e-9

#: CPLEX fixes and permutes columns, and aggregates rows, by arguments about the rows it knows, without later cuts.
LAZY_SETTINGS: dict[str, Any] = {
    "preprocessing.reduce": 1,  # primal reductions only
    "preprocessing.linear": 0,  # only reductions through which any row can be translated
    "preprocessing.symmetry": 0,
}


class CplexBackend(Backend):
    """CPLEX with lazy rows, user cuts and injection in its generic callback."""

    name = "cplex"
    package = "cplex"
    extra = "cplex"
    auto_rank = 20
    plain_options: ClassVar[Mapping[str, Any]] = {
        "preprocessing.presolve": 0,
        "mip.strategy.heuristicfreq": -1,
        "mip.cuts.gomory": -1,
        "mip.cuts.zerohalfcut": -1,  # not "mip.limits.cutpasses", without which there are no relaxation callbacks
        "mip.strategy.probe": -1,
    }
    capabilities = Capabilities(
        lazy_rows=Support.NATIVE,
        user_cuts=Support.NATIVE,
        relaxation_points=Support.NATIVE,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.NATIVE,
        node_bounds=Support.NATIVE,
        local_cuts=Support.NATIVE,
        log=Support.NATIVE,
    )

    @classmethod
    def check_licence(cls) -> None:
        _environment().end()

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        return _CplexSearch.solved(session)


class _CplexSearch(NativeSearch):
    """One CPLEX problem, from its construction to its end."""

    solver = "CPLEX"

    def __init__(self, session: SolveSession, arrays: ModelArrays) -> None:
        import cplex

        super().__init__(session, arrays)
        self._cplex = cplex
        self._problem: Any = _environment(session.log_stream(logger))
        try:
            self._aborter = self._problem.use_aborter(cplex.Aborter())
            self._columns = list(range(arrays.n_columns))
            self._build(arrays)
            self._configure(session.options)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._problem.end()

    def _build(self, arrays: ModelArrays) -> None:
        problem = self._problem
        kinds = "".join(np.where(arrays.integer, "I", "C").tolist()) if arrays.integer.any() else ""
        problem.variables.add(
            obj=arrays.objective.tolist(),
            lb=np.clip(arrays.lower, -_INFINITY, _INFINITY).tolist(),
            ub=np.clip(arrays.upper, -_INFINITY, _INFINITY).tolist(),
            types=kinds,
        )
        sense = problem.objective.sense
        problem.objective.set_sense(sense.maximize if arrays.maximise else sense.minimize)
        self.add_rows(arrays.rows)

    def add_rows(self, rows: Rows) -> None:
        sided = OneSidedRows.of(rows)
        self._problem.linear_constraints.add(lin_expr=sided.by_row(), senses=sided.senses, rhs=sided.sides.tolist())

    def _configure(self, options: SolveOptions) -> None:
        session, problem = self.session, self._problem
        settings: dict[str, Any] = {
            "threads": options.threads,
            "randomseed": options.seed % 2**31,
            "mip.tolerances.mipgap": min(options.gap, 1.0),
            "mip.tolerances.absmipgap": 0.0,
            "mip.tolerances.integrality": _INTEGRALITY,
            # If presolve at the root decides a model when it is repeated, the bound stays what it was before.
            "preprocessing.repeatpresolve": 0,
        }
        if options.node_limit is not None:
            settings["mip.limits.nodes"] = options.node_limit
        if session.needs.cuts or session.needs.node_bounds:
            settings |= LAZY_SETTINGS
        for name, value in settings.items():
            self._set(name, value)
        for name, value in options.native.items():
            try:
                self._set(name, value)
            except (AttributeError, TypeError, ValueError, self._cplex.exceptions.CplexError) as error:
                raise SolverError(f"CPLEX rejects the native option {name}={value!r}: {error}") from error
        if self.is_probe or not self.arrays.integer.any():
            return
        if options.branch_priorities is not None:
            either = problem.order.branch_direction.default
            priorities = np.asarray(options.branch_priorities).tolist()
            integral = np.flatnonzero(self.arrays.integer).tolist()
            problem.order.set([(column, int(priorities[column]), either) for column in integral])
        if session.incumbent_x is not None:
            start = [self._columns, session.incumbent_x.tolist()]
            problem.MIP_starts.add(start, problem.MIP_starts.effort_level.check_feasibility)
        session.pending.clear()
        self._register()

    def _set(self, name: str, value: Any) -> None:
        """Set a parameter by its name in the Python interface, such as ``mip.tolerances.mipgap``."""
        parameter = self._problem.parameters
        for part in name.split("."):
            parameter = getattr(parameter, part)
        parameter.set(value)

    def _register(self) -> None:
        kinds, needs = self._cplex.callbacks.Context.id, self.session.needs
        contexts = kinds.global_progress
        if needs.events:  # else CPLEX need not know that points may be rejected, and presolves more
            contexts |= kinds.candidate
        if needs.cuts or Event.RELAXATION in needs.events:
            contexts |= kinds.relaxation
        if needs.injects:
            contexts |= kinds.local_progress
        self._problem.set_callback(self, contexts)

    # ---------------------------------------------------------------- the run

    def run(self) -> Termination | None:
        session, problem = self.session, self._problem
        if session.options.time_limit is not None:
            problem.parameters.timelimit.set(session.seconds_left)
        try:
            problem.solve()
        except self._cplex.exceptions.CplexError as error:
            raise self._translated(error) from error
        return self._ended(problem.solution.get_status())

    def interrupt(self) -> None:
        self._aborter.abort()

    def _ended(self, code: int) -> Termination | None:
        status = self._problem.solution.status
        if code in (status.infeasible_or_unbounded, status.MIP_infeasible_or_unbounded):
            return None
        known = {
            Termination.OPTIMAL: ("optimal", "MIP_optimal", "optimal_tolerance"),
            Termination.INFEASIBLE: ("infeasible", "MIP_infeasible"),
            Termination.UNBOUNDED: ("unbounded", "MIP_unbounded"),
            Termination.TIME_LIMIT: (
                "abort_time_limit", "abort_dettime_limit", "MIP_time_limit_feasible", "MIP_time_limit_infeasible",
                "MIP_dettime_limit_feasible", "MIP_dettime_limit_infeasible",
            ),
            Termination.NODE_LIMIT: ("node_limit_feasible", "node_limit_infeasible"),
            Termination.INTERRUPTED: ("abort_user", "MIP_abort_feasible", "MIP_abort_infeasible"),
            Termination.STOPPED: (
                "abort_iteration_limit", "abort_obj_limit", "abort_primal_obj_limit", "abort_dual_obj_limit",
                "solution_limit", "mem_limit_feasible", "mem_limit_infeasible", "abort_relaxed",
            ),
            Termination.SOLVER_FAILED: ("optimal_infeasible", "optimal_infeasible_tolerance", "num_best"),
        }  # fmt: skip
        for termination, names in known.items():
            if any(code == getattr(status, name, None) for name in names):
                return termination
        raise SolverError(f"CPLEX ended with status {code}: {self._problem.solution.get_status_string()}")

    def point(self) -> FloatArray | None:
        if not self._problem.solution.is_primal_feasible():
            return None
        return np.array(self._problem.solution.get_values())

    def bound(self) -> float | None:
        solution = self._problem.solution
        bound = solution.MIP.get_best_objective() if self.arrays.integer.any() else solution.get_objective_value()
        return bound if abs(bound) < _INFINITY else None

    def nodes(self) -> int:
        return int(self._problem.solution.progress.get_num_nodes_processed()) if self.arrays.integer.any() else 0

    def _translated(self, error: Any) -> Exception:
        code = error.args[2] if len(error.args) > 2 else None
        if code == _TOO_LARGE:
            return LicenceError(
                f"the CPLEX licence is too small for this model ({self.arrays.n_columns} columns, "
                f"{self.arrays.rows.n_rows} rows); the community edition is limited to 1000 of each. "
                'Use a full licence, or solver="highs"'
            )
        return _without_licence(error) or SolverError(f"CPLEX failed: {error}")

    # ---------------------------------------------------------------- callbacks

    def invoke(self, context: Any) -> None:
        """Called by CPLEX in every context that was registered."""
        session = self.session
        if not session.stop_requested:
            self.guarded(lambda: self._dispatch(context))
        elif context.in_candidate():
            self._took_unchecked |= session.wants(Event.CANDIDATE)
        if session.stop_requested:
            context.abort()

    def _dispatch(self, context: Any) -> None:
        if context.in_candidate():
            if context.is_candidate_point():
                self._on_candidate(context)
        elif context.in_relaxation():
            x = np.array(context.get_relaxation_point())
            node = self._node(context) if self.session.needs.node_bounds else None
            verdict = self.relaxation(x, node)
            self._add_cuts(context, verdict.rows)
            self._add_cuts(context, verdict.local, local=True)
        elif context.in_global_progress():
            self._on_progress(context)
            return  # the one context in which CPLEX takes no solutions
        self._inject(context)

    def _node(self, context: Any) -> SearchNode:
        bounds = (context.get_local_lower_bounds(), context.get_local_upper_bounds())
        lower, upper = (unclipped(np.array(each), _INFINITY) for each in bounds)
        return SearchNode(int(context.get_long_info(context.info.node_depth)), lower, upper)

    def _on_progress(self, context: Any) -> None:
        session, info = self.session, context.info
        bound = context.get_double_info(info.best_bound)
        if not session.needs.events and context.get_int_info(info.feasible):
            value = context.get_incumbent_objective()
            if session.better(value, session.incumbent):
                self.candidate(np.array(context.get_incumbent()))
        self.report(bound if abs(bound) < _INFINITY else None, int(context.get_long_info(info.node_count)))

    def _on_candidate(self, context: Any) -> None:
        verdict = self.candidate(np.array(context.get_candidate_point()))
        if verdict.rejected:
            sided = OneSidedRows.of(verdict.rows)
            context.reject_candidate(sided.by_row(), sided.senses, sided.sides.tolist())
        else:
            self.wait(verdict.rows)

    def _add_cuts(self, context: Any, rows: Rows, *, local: bool = False) -> None:
        """Add rows at a node. CPLEX has one kind; those that define feasibility are enforced at candidates."""
        if not rows.n_rows:
            return
        sided = OneSidedRows.of(rows)
        force = self._cplex.callbacks.UserCutCallback.use_cut.force
        context.add_user_cuts(
            sided.by_row(), sided.senses, sided.sides.tolist(), [force] * len(sided), [local] * len(sided)
        )

    def _inject(self, context: Any) -> None:
        while (x := self.next_injection()) is not None:
            strategy = context.solution_strategy.check_feasible
            context.post_heuristic_solution([self._columns, x.tolist()], self.arrays.value(x), strategy)


def _environment(log: LogLines | None = None) -> Any:
    """Return an empty problem in an environment of its own; nothing is printed."""
    import cplex

    try:
        problem = cplex.Cplex()
    except cplex.exceptions.CplexError as error:
        raise _without_licence(error) or LicenceError(
            f'CPLEX does not start ({error}); solver="highs" needs no licence'
        ) from error
    for attach in (
        problem.set_log_stream,
        problem.set_results_stream,
        problem.set_warning_stream,
        problem.set_error_stream,
    ):
        attach(log)
    return problem


def _without_licence(error: Any) -> LicenceError | None:
    code = error.args[2] if len(error.args) > 2 else None
    if code not in _LICENCE_ERRORS:
        return None
    return LicenceError(f'no CPLEX licence found ({error}); solver="highs" needs none')
