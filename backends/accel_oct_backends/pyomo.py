"""The solvers of Pyomo, as ``pyomo:NAME``: the shared cut loop over Pyomo models.

HiGHS, Gurobi and SCIP keep the model between the runs of the loop; CBC, GLPK and others read it from a file for each
run. Pyomo models are built per solve, so that the cuts of one solve do not affect the next. Pyomo is imported when it
is used. `to_pyomo` exports a model.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.mip import (
    Availability,
    Backend,
    BackendUnavailableError,
    Capabilities,
    CutLoop,
    EngineRun,
    FloatArray,
    IntArray,
    IntegerRequest,
    LicenceError,
    MipModel,
    ModelArrays,
    Rows,
    RunStatus,
    SolveSession,
    Support,
    Termination,
    UnsupportedError,
)
from accel_oct_backends.pyomo_solvers import (
    PROFILES,
    WIDE,
    PyomoSolver,
    RunLimits,
    SolverAnswer,
    SolverDiedError,
    open_solver,
    require,
)

__all__ = ["PyomoBackend", "to_pyomo"]


logger = logging.getLogger(__name__)

DEFAULT_SOLVER = "highs"
#: The first run of a MIP is stopped after this many seconds to read its best solution, and the time of each further run
#: grows by this factor; the restarts cost at most half of the time of the last run.
_FIRST_SLICE = 5.0
_SLICE_GROWTH = 3.0
#: Larger bounds mean that the solver has none.
_NO_BOUND = 1e20


class PyomoBackend(Backend):
    """A solver of Pyomo with the cut loop.

    If the solver crashes or reaches the time limit, the solve ends with the previous incumbent and bound.

    Parameters
    ----------
    solver : str
        Pyomo's name of the solver, such as ``"cbc"``.
    """

    name = "pyomo"
    package = "pyomo"
    extra = "pyomo"
    capabilities = Capabilities(
        lazy_rows=Support.EMULATED,
        user_cuts=Support.EMULATED,
        relaxation_points=Support.EMULATED,
        injection=Support.EMULATED,
        start=Support.EMULATED,
        duals=Support.EMULATED,
        node_bounds=Support.EMULATED,
        local_cuts=Support.EMULATED,
        log=Support.NATIVE,
    )

    def __init__(self, solver: str = DEFAULT_SOLVER) -> None:
        super().__init__()
        self.require_package()
        require(solver)
        self.solver = solver

    @classmethod
    def create(cls, variant: str | None = None, **settings: Any) -> Backend:
        return cls(variant or DEFAULT_SOLVER, **settings)

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        return tuple(PROFILES)

    @classmethod
    def variant_availability(cls, variant: str | None) -> Availability:
        found = cls.availability()
        if not found:
            return found
        try:
            require(variant or DEFAULT_SOLVER)
        except LicenceError as error:
            return Availability(True, False, str(error))
        except (BackendUnavailableError, UnsupportedError) as error:
            return Availability(False, False, str(error))
        return found

    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        if session.out_of_time:
            return Termination.TIME_LIMIT, 0
        return CutLoop(session, _PyomoEngine(self.solver, session)).run()


class _PyomoEngine:
    """The LP and the MIP of one solve."""

    def __init__(self, solver: str, session: SolveSession) -> None:
        self._name = solver
        self._session = session
        self._problems: dict[bool, PyomoProblem] = {}

    def solve_relaxation(self, seconds: float) -> EngineRun:
        return self._run(integer=False, limits=RunLimits(seconds))

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._problem(integer=False).add(rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        self._problem(integer=False).drop(positions)

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        """Run with growing time limits: Pyomo has no callback for solutions."""
        if request.nodes == 0:
            return self._nothing()
        seconds = _FIRST_SLICE
        while True:
            last = self._session.seconds_left <= seconds
            limits = RunLimits(min(seconds, self._session.seconds_left), request.nodes)
            began = time.perf_counter()
            run = self._run(integer=True, limits=limits)
            if run.status is not RunStatus.LIMIT or last:
                return run
            if request.nodes is not None and time.perf_counter() - began < seconds:
                return replace(run, nodes=max(run.nodes, request.nodes))  # solvers count nodes differently
            if run.x is not None:
                request.on_solution(run.x, run.bound)
            request.on_bound(run.bound, 0)  # nodes of a repeated run are not counted
            if request.should_stop():
                return run
            seconds *= _SLICE_GROWTH

    def add_integer_rows(self, rows: Rows) -> None:
        self._problem(integer=True).add(rows)

    def _problem(self, *, integer: bool) -> PyomoProblem:
        if integer not in self._problems:
            self._problems[integer] = PyomoProblem(self._name, self._session, self._session.model, integer=integer)
        return self._problems[integer]

    def _run(self, *, integer: bool, limits: RunLimits) -> EngineRun:
        session = self._session
        try:
            problem = self._problem(integer=integer)
            if problem.impossible:
                return EngineRun(RunStatus.INFEASIBLE, None, -session.model.sign * math.inf)
            answer = problem.solve(limits)
            if answer.status is RunStatus.UNBOUNDED:
                answer = replace(answer, status=problem.unbounded_or_infeasible())
            x = None if answer.values is None else problem.solution(answer)
        except SolverDiedError as error:
            if not session.out_of_time:
                logger.warning("backend 'pyomo:%s': the solver failed: %s", self._name, error)
                session.request_stop(Termination.SOLVER_FAILED)
            return self._nothing()
        return EngineRun(answer.status, x, self._bound(answer, x), answer.nodes)

    def _bound(self, answer: SolverAnswer, x: FloatArray | None) -> float:
        model = self._session.model
        if answer.bound is not None and abs(answer.bound) < _NO_BOUND:
            return answer.bound
        if answer.status is RunStatus.OPTIMAL and x is not None:
            return model.value(x)  # solvers that report no bound run with a gap of 0
        return model.sign * math.inf

    def _nothing(self) -> EngineRun:
        return EngineRun(RunStatus.LIMIT, None, self._session.model.sign * math.inf)


#: Points of a MIP that violate integrality or a row by more than this, relative to its terms, are no solutions: the
#: solver stopped early with a point of the relaxation, or a file lost digits.
_READING_TOLERANCE = 1e-5


class PyomoProblem:
    """One Pyomo model with its solver and the added cuts."""

    def __init__(self, name: str, session: SolveSession, arrays: ModelArrays, *, integer: bool) -> None:
        import pyomo.environ as pyo

        self._name = name
        self._session = session
        self._arrays = arrays
        self._integer = integer
        self._cuts: list[Any] = []
        self._cut_rows = Rows.empty()
        self.impossible = False
        self._model = pyo.ConcreteModel()
        self._model.x = pyo.Var(range(arrays.n_columns))
        self._columns = list(self._model.x.values())
        self._position = {id(variable): column for column, variable in enumerate(self._columns)}
        set_domains(self._columns, arrays, integer=integer)
        self._model.objective = objective(self._columns, arrays)
        self._model.rows = pyo.ConstraintList()
        self._constraints(arrays.rows)
        try:
            self._solver: PyomoSolver = open_solver(name, self._model, session.options, session.log_stream(logger))
        except (ValueError, RuntimeError) as error:
            raise SolverDiedError(str(error)) from error

    def _constraints(self, rows: Rows) -> list[Any]:
        """Add rows to the Pyomo model; a row without columns, which Pyomo does not support, is None."""
        empty = np.diff(rows.starts) == 0
        self.impossible |= bool(np.any(empty & ((rows.lower > 0.0) | (rows.upper < 0.0))))
        expressions = row_expressions(self._columns, rows)
        return [
            None if nothing else self._model.rows.add(expression)
            for nothing, expression in zip(empty, expressions, strict=True)
        ]

    def add(self, rows: Rows) -> None:
        new = self._constraints(rows)
        self._cuts += new
        self._cut_rows = Rows.concatenate([self._cut_rows, rows])
        self._solver.add([constraint for constraint in new if constraint is not None])

    def drop(self, positions: IntArray) -> None:
        gone = [self._cuts[position] for position in positions]
        stay = np.ones(len(self._cuts), dtype=bool)
        stay[positions] = False
        self._cuts = [self._cuts[position] for position in np.flatnonzero(stay)]
        self._cut_rows = self._cut_rows.take(stay)
        constraints = [constraint for constraint in gone if constraint is not None]
        self._solver.remove(constraints)
        for constraint in constraints:
            constraint.deactivate()

    @property
    def _rows(self) -> Rows:
        return Rows.concatenate([self._arrays.rows, self._cut_rows])

    @property
    def _is_wide(self) -> bool:
        arrays, rows = self._arrays, self._rows
        bounds = np.abs(np.concatenate([arrays.lower, arrays.upper, rows.lower, rows.upper]))
        return bool(np.any(bounds[np.isfinite(bounds)] >= WIDE))

    def solve(self, limits: RunLimits) -> SolverAnswer:
        """Run the solver, unless the model has neither rows nor objective."""
        if not self._rows.n_nonzeros and not self._arrays.objective.any():
            return SolverAnswer(RunStatus.OPTIMAL, {}, 0.0, 0)
        with self._session.forwarding_stops(self._solver.interrupt):
            return self._solver.solve(replace(limits, wide=self._is_wide))

    def solution(self, answer: SolverAnswer) -> FloatArray | None:
        """Return the point of an answer; None if the solver stopped with a point that is no solution."""
        x = self._vector(answer.values or {})
        if not self._integer or self._holds(x):
            return x
        if answer.status is RunStatus.OPTIMAL:
            raise SolverDiedError("it reports a point as optimal that is not integral or violates a row")
        return None

    def _holds(self, x: FloatArray) -> bool:
        part, rows = x[self._arrays.integer], self._rows
        integral = np.abs(part - np.round(part)) <= _READING_TOLERANCE
        size = replace(rows, values=np.abs(rows.values)).activity(np.abs(x))
        return bool(integral.all() and np.all(rows.violation(x) <= _READING_TOLERANCE * np.maximum(1.0, size)))

    def _vector(self, values: dict[int, float]) -> FloatArray:
        """Return a full point; the solver has no values of columns that are neither in a row nor in the objective."""
        x: FloatArray = np.clip(np.zeros(self._arrays.n_columns), self._arrays.lower, self._arrays.upper)
        x[self._arrays.integer] = np.ceil(x[self._arrays.integer])
        for identity, value in values.items():
            column = self._position.get(identity)
            if column is not None and value is not None:
                x[column] = value
        return x

    def unbounded_or_infeasible(self) -> RunStatus:
        """Decide between the two by a solve without objective, because solvers may not."""
        arrays = replace(self._arrays, objective=np.zeros(self._arrays.n_columns), rows=self._rows)
        probe = PyomoProblem(self._name, self._session, arrays, integer=self._integer)
        if probe.impossible:
            return RunStatus.INFEASIBLE
        status = probe.solve(RunLimits(self._session.seconds_left)).status
        if status is RunStatus.UNBOUNDED:
            raise SolverDiedError("it reports a model without objective as unbounded")
        if status is not RunStatus.OPTIMAL:
            return status
        if np.isfinite(arrays.lower).all() and np.isfinite(arrays.upper).all():
            raise SolverDiedError("it reports a model as unbounded whose columns all have bounds")
        return RunStatus.UNBOUNDED


def to_pyomo(model: MipModel) -> Any:
    """Return the model as a `pyomo.environ.ConcreteModel`, independent of the original.

    Each column block is an indexed `Var` of its name and shape, each batch of rows an indexed `Constraint` named as in
    `MipModel.add_rows`, and the objective is ``objective``.

    Parameters
    ----------
    model : MipModel

    Returns
    -------
    pyomo.environ.ConcreteModel

    Examples
    --------
    >>> exported = to_pyomo(model)  # doctest: +SKIP
    >>> exported.at_most_two = pyomo.environ.Constraint(expr=sum(exported.take.values()) <= 2)  # doctest: +SKIP
    >>> pyomo.environ.SolverFactory("highs").solve(exported)  # doctest: +SKIP
    >>> exported.write("model.lp", io_options={"symbolic_solver_labels": True})  # doctest: +SKIP
    """
    import pyomo.environ as pyo

    result, arrays = pyo.ConcreteModel(), ModelArrays.of(model)
    columns: list[Any] = []
    for block in model.blocks.values():
        names = [position[0] if len(position) == 1 else position for position in np.ndindex(*block.shape)]
        variable = pyo.Var(names) if block.shape else pyo.Var()
        result.add_component(_component_name(result, block.name), variable)
        columns += [variable[name] for name in names] if block.shape else [variable]
    set_domains(columns, arrays, integer=True)
    for what, rows in model.row_batches:
        constraint = pyo.Constraint(range(rows.n_rows), rule=_rule(columns, rows))
        result.add_component(_component_name(result, what), constraint)
    result.add_component(_component_name(result, "objective"), objective(columns, arrays))
    return result


def set_domains(columns: list[Any], arrays: ModelArrays, *, integer: bool) -> None:
    """Set the bounds and, with `integer`, the integrality of Pyomo variables."""
    import pyomo.environ as pyo

    bounds = zip(columns, finite(arrays.lower), finite(arrays.upper), arrays.integer.tolist(), strict=True)
    for variable, lower, upper, integral in bounds:
        whole = integral and integer
        variable.domain = (pyo.Binary if (lower, upper) == (0.0, 1.0) else pyo.Integers) if whole else pyo.Reals
        variable.setlb(lower)
        variable.setub(upper)


def objective(columns: list[Any], arrays: ModelArrays) -> Any:
    import pyomo.environ as pyo
    from pyomo.core.expr import LinearExpression

    used = np.flatnonzero(arrays.objective)
    expression = LinearExpression(
        constant=0.0,
        linear_coefs=arrays.objective[used].tolist(),
        linear_vars=[columns[column] for column in used],
    )
    return pyo.Objective(expr=expression, sense=pyo.maximize if arrays.maximise else pyo.minimize)


def row_expressions(columns: list[Any], rows: Rows) -> Iterator[Any]:
    """Yield each row as an equation, or as (lower, linear expression, upper)."""
    from pyomo.core.expr import LinearExpression

    starts, entries, values = rows.starts.tolist(), rows.columns.tolist(), rows.values.tolist()
    for row, (lower, upper) in enumerate(zip(finite(rows.lower), finite(rows.upper), strict=True)):
        part = slice(starts[row], starts[row + 1])
        body = LinearExpression(
            constant=0.0, linear_coefs=values[part], linear_vars=[columns[column] for column in entries[part]]
        )
        yield body == lower if lower is not None and lower == upper else (lower, body, upper)


def finite(bounds: FloatArray) -> list[float | None]:
    """Replace infinite bounds by None."""
    return [bound if known else None for bound, known in zip(bounds.tolist(), np.isfinite(bounds), strict=True)]


def _rule(columns: list[Any], rows: Rows) -> Any:
    import pyomo.environ as pyo

    expressions = list(row_expressions(columns, rows))
    lengths = np.diff(rows.starts)

    def rule(_: Any, row: int) -> Any:
        if lengths[row]:
            return expressions[row]
        return pyo.Constraint.Skip if rows.lower[row] <= 0.0 <= rows.upper[row] else pyo.Constraint.Infeasible

    return rule


def _component_name(model: Any, name: str) -> str:
    """Return the name as an identifier that is new in the model."""
    base = re.sub(r"\W+", "_", name).strip("_") or "component"
    candidate, number = base, 1
    while hasattr(model, candidate):
        number += 1
        candidate = f"{base}_{number}"
    return candidate
