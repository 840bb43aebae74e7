"""Gurobi, through gurobipy: every capability is native."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from accel_oct.mip import (
    Backend,
    Capabilities,
    CutPool,
    Cuts,
    Event,
    LicenceError,
    ModelArrays,
    Rows,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
    Validity,
)

logger = logging.getLogger(__name__)

_NO_LICENCE = 10009
_MODEL_TOO_LARGE = 10010
#: The tightest value that Gurobi accepts. At its default of 1e-5, a dozen branch variables that are almost zero add up
#: to a score that no tree has, and after rounding, an accepted point is above the proven bound.
_INTEGRALITY = 1e-9


class GurobiBackend(Backend):
    """Gurobi with lazy rows, user cuts, injection, starts and branch priorities in its own callbacks.

    A licence is taken only during a solve.
    """

    name = "gurobi"
    package = "gurobipy"
    extra = "gurobi"
    auto_rank = 10
    plain_options: ClassVar[Mapping[str, Any]] = {"Presolve": 0, "Cuts": 0, "Heuristics": 0.0}
    capabilities = Capabilities(
        lazy_rows=Support.NATIVE,
        user_cuts=Support.NATIVE,
        relaxation_points=Support.NATIVE,
        injection=Support.NATIVE,
        start=Support.NATIVE,
        branch_priorities=Support.NATIVE,
        log=Support.NATIVE,
    )

    @classmethod
    def check_licence(cls) -> None:
        _environment().dispose()

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        if session.needs.cuts and not session.model.integer.all():
            # Gurobi treats continuous columns, and with them the steps of the objective, as integral if the rows it
            # knows imply it: later lazy rows may not.
            session.is_suspect = session.is_small
        environment = _environment()
        try:
            with _GurobiModel(environment, session) as native:
                return native.optimise()
        finally:
            environment.dispose()


class _GurobiModel:
    """One Gurobi model, from its construction to its disposal."""

    def __init__(self, environment: Any, session: SolveSession) -> None:
        import gurobipy

        self._gurobi = gurobipy
        self._codes = gurobipy.GRB
        self._session = session
        self._model: Any = gurobipy.Model(env=environment)
        self._columns: Any = None
        self._pool = CutPool(session.model.n_columns, session.options.seed)
        self._log = session.log_stream(logger)
        self._took_unchecked = False
        """Whether Gurobi may have a solution that the handler has not seen."""
        self._took_rejected = False
        """Whether Gurobi has a solution that violates a lazy row: seen with coefficients of 1e-8."""
        self._build(session.model)
        self._configure(session.options)

    def __enter__(self) -> _GurobiModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._model.dispose()

    def _build(self, arrays: ModelArrays) -> None:
        codes, model = self._codes, self._model
        kinds = np.where(arrays.integer, codes.INTEGER, codes.CONTINUOUS)
        self._columns = model.addMVar(
            arrays.n_columns, lb=arrays.lower, ub=arrays.upper, obj=arrays.objective, vtype=kinds
        )
        model.ModelSense = codes.MAXIMIZE if arrays.maximise else codes.MINIMIZE
        self._add_rows(arrays.rows)

    def _add_rows(self, rows: Rows) -> None:
        for matrix, sense, rhs in self._parts(rows):
            self._model.addMConstr(matrix, self._columns, sense, rhs)

    def _configure(self, options: SolveOptions) -> None:
        model, session = self._model, self._session
        model.Params.LogToConsole = 0
        model.Params.OutputFlag = int(self._log is not None)
        model.Params.Threads = options.threads
        model.Params.Seed = options.seed
        model.Params.MIPGap = options.gap
        model.Params.MIPGapAbs = 0.0
        model.Params.IntFeasTol = _INTEGRALITY
        if options.time_limit is not None:
            model.Params.TimeLimit = session.seconds_left
        if options.node_limit is not None:
            model.Params.NodeLimit = options.node_limit
        if session.needs.cuts:
            model.Params.LazyConstraints = 1
        if Validity.IMPLIED in session.needs.cuts:
            model.Params.PreCrush = 1
        if options.branch_priorities is not None:
            self._columns.BranchPriority = np.asarray(options.branch_priorities, dtype=int)
        if session.incumbent_x is not None:
            self._columns.Start = session.incumbent_x
            session.pending.clear()
        for name, value in options.native.items():
            try:
                model.setParam(name, value)
            except self._gurobi.GurobiError as error:
                raise SolverError(f"Gurobi rejects the native option {name}={value!r}: {error}") from error

    def optimise(self) -> tuple[Termination, int]:
        model, session = self._model, self._session
        try:
            self._run()
            if not model.IsMIP:
                return self._separate_linear(), 0
        except self._gurobi.GurobiError as error:
            raise self._translated(error) from error
        self._tighten(model.ObjBound)
        if model.SolCount and not self._took_unchecked:  # the callback has accepted the solutions, if it had to
            x = session.model.rounded(self._columns.X)
            self._took_rejected = self._pool.rejects(x)
            # Within its tolerance, Gurobi may move an accepted point to a value beyond its own bound.
            excess = session.model.sign * (session.model.value(x) - model.ObjBound)
            if not self._took_rejected and (session.incumbent is None or excess <= 0.0):
                session.accept(x)
        return self._termination(), int(model.NodeCount)

    def _run(self) -> None:
        self._model.optimize(self._callback)
        if self._model.Status == self._codes.INF_OR_UNBD:  # presolve did not decide which
            self._model.Params.DualReductions = 0
            self._model.optimize(self._callback)

    def _separate_linear(self) -> Termination:
        """Separate the optimum of an LP: Gurobi calls back with solutions of MIPs only."""
        model, session = self._model, self._session
        while model.Status == self._codes.OPTIMAL:
            if not (verdict := session.consult(Event.CANDIDATE, self._columns.X, model.ObjVal)).rejected:
                return Termination.OPTIMAL
            if session.stop_requested or session.out_of_time:
                return Termination.TIME_LIMIT
            for cuts in verdict.cuts:
                self._add_rows(cuts.rows)
            if session.options.time_limit is not None:
                model.Params.TimeLimit = session.seconds_left
            self._run()
        return self._termination()

    def _termination(self) -> Termination:
        codes, status = self._codes, self._model.Status
        known = {
            codes.OPTIMAL: Termination.OPTIMAL,
            codes.INFEASIBLE: Termination.INFEASIBLE,
            codes.UNBOUNDED: Termination.UNBOUNDED,
            codes.TIME_LIMIT: Termination.TIME_LIMIT,
            codes.NODE_LIMIT: Termination.NODE_LIMIT,
            codes.INTERRUPTED: Termination.INTERRUPTED,
            codes.SUBOPTIMAL: Termination.STOPPED,
        }
        native_limits = ("USER_OBJ_LIMIT", "SOLUTION_LIMIT", "ITERATION_LIMIT", "WORK_LIMIT", "MEM_LIMIT", "CUTOFF")
        known |= {getattr(codes, name): Termination.STOPPED for name in native_limits}
        if status not in known:
            raise SolverError(f"Gurobi ended with status {status}")
        if status == codes.INFEASIBLE:
            return self._session.nothing_left()
        if status == codes.OPTIMAL and self._took_unchecked:
            return Termination.STOPPED
        if self._took_rejected:
            return Termination.SOLVER_FAILED
        return known[status]

    def _translated(self, error: Any) -> Exception:
        if error.errno == _MODEL_TOO_LARGE:
            arrays = self._session.model
            return LicenceError(
                f"the Gurobi licence is too small for this model ({arrays.n_columns} columns, "
                f"{arrays.rows.n_rows} rows); the licence of the gurobipy package is limited to 2000 of each. "
                'Use a full licence, or solver="highs"'
            )
        return SolverError(f"Gurobi failed: {error}")

    # ---------------------------------------------------------------- callbacks

    def _callback(self, model: Any, where: int) -> None:
        """Dispatch a callback; exceptions are stored, because Gurobi would print and ignore them."""
        codes, session = self._codes.Callback, self._session
        try:
            if where == codes.MESSAGE:
                if self._log is not None:
                    self._log.write(model.cbGet(codes.MSG_STRING))
            elif session.stop_requested:
                self._took_unchecked |= where == codes.MIPSOL and session.wants(Event.CANDIDATE)
                model.terminate()
            elif where == codes.MIPSOL:
                self._on_candidate(model)
            elif where == codes.MIPNODE:
                self._on_node(model)
            elif where == codes.MIP:
                self._report(model.cbGet(codes.MIP_OBJBND), int(model.cbGet(codes.MIP_NODCNT)))
                if session.stop_requested:
                    model.terminate()
        except BaseException as error:
            session.fail(error)
            model.terminate()

    def _on_candidate(self, model: Any) -> None:
        # MIPSOL_OBJBND is not used: it has excluded the candidate of the same callback.
        x = model.cbGetSolution(self._columns)
        rounded = self._session.model.rounded(x)
        known = self._pool.rejects(rounded)
        verdict = self._session.consult(Event.CANDIDATE, x, cut_off=known)
        for cuts in verdict.cuts:
            self._add_lazy(model, cuts.rows)
        if known:  # found before Gurobi added the row, for instance by a heuristic
            self._add_lazy(model, self._pool.rows.take(self._pool.violated(rounded)))
        self._pool.add(verdict.cuts)
        if verdict.rejected and self._session.failed:
            self._forbid(model)

    def _on_node(self, model: Any) -> None:
        codes = self._codes.Callback
        if model.cbGet(codes.MIPNODE_STATUS) != self._codes.OPTIMAL:
            return
        if self._session.wants(Event.RELAXATION):
            self._tighten(model.cbGet(codes.MIPNODE_OBJBND))
            verdict = self._session.consult(Event.RELAXATION, model.cbGetNodeRel(self._columns))
            for cuts in verdict.cuts:
                self._add_at_node(model, cuts)
            self._pool.add(verdict.cuts)
        while self._session.pending:
            model.cbSetSolution(self._columns, self._session.pending.popleft())
            model.cbUseSolution()

    def _add_at_node(self, model: Any, cuts: Cuts) -> None:
        """Add IMPLIED cuts as user cuts, which must not cut off integral points, and all others as lazy rows."""
        if cuts.validity is not Validity.IMPLIED:
            self._add_lazy(model, cuts.rows)
            return
        for matrix, sense, rhs in self._parts(cuts.rows):
            model.cbCut(matrix @ self._columns, sense, rhs)

    def _add_lazy(self, model: Any, rows: Rows) -> None:
        for matrix, sense, rhs in self._parts(rows):
            model.cbLazy(matrix @ self._columns, sense, rhs)

    def _forbid(self, model: Any) -> None:
        """Make Gurobi reject a candidate on which the handler failed."""
        model.cbLazy(0.0 * self._columns[0], self._codes.LESS_EQUAL, -1.0)

    def _tighten(self, bound: float) -> None:
        if abs(bound) < self._codes.INFINITY:
            self._session.tighten(bound)

    def _report(self, bound: float, nodes: int) -> None:
        self._session.report(bound if abs(bound) < self._codes.INFINITY else None, nodes)

    def _parts(self, rows: Rows) -> list[tuple[Any, Any, Any]]:
        """Split rows into equalities, upper and lower bounds, as sparse matrices."""
        from scipy.sparse import csr_array

        codes = self._codes
        equal = rows.lower == rows.upper
        parts = []
        for chosen, sense, rhs in (
            (equal, codes.EQUAL, rows.upper),
            (~equal & np.isfinite(rows.upper), codes.LESS_EQUAL, rows.upper),
            (~equal & np.isfinite(rows.lower), codes.GREATER_EQUAL, rows.lower),
        ):
            if chosen.any():
                part = rows if chosen.all() else rows.take(chosen)
                matrix = csr_array(
                    (part.values, part.columns, part.starts),
                    shape=(part.n_rows, self._session.model.n_columns),
                )
                parts.append((matrix, sense, rhs[chosen]))
        return parts


def _environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    try:
        environment.start()
    except gurobipy.GurobiError as error:
        environment.dispose()
        if error.errno == _NO_LICENCE:
            raise LicenceError(f'no Gurobi licence found ({error}); solver="highs" needs none') from error
        raise LicenceError(f'Gurobi does not start ({error}); solver="highs" needs no licence') from error
    return environment
