"""Whatever solver Pyomo reaches, as ``pyomo:NAME``: the shared cut loop over Pyomo models.

HiGHS, Gurobi and SCIP keep the model between the loop's runs; CBC, GLPK and others read it from a file every time.
Pyomo models are built per solve: a cut of one solve must not stay for the next.
`to_pyomo` hands a model to a user of Pyomo.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.mip import (
    Availability,
    Backend,
    BackendUnavailableError,
    Capabilities,
    CutLoop,
    FloatArray,
    IntArray,
    IntegerRequest,
    LicenceError,
    ModelArrays,
    Rows,
    Run,
    RunStatus,
    SolveSession,
    Support,
    Termination,
    UnsupportedError,
)
from accel_oct_backends.pyomo_export import objective, row_expressions, set_domains, to_pyomo
from accel_oct_backends.pyomo_solvers import (
    PROFILES,
    WIDE,
    Answer,
    Limits,
    PyomoSolver,
    SolverDiedError,
    open_solver,
    require,
)

__all__ = ["PyomoBackend", "to_pyomo"]

logger = logging.getLogger(__name__)

DEFAULT_SOLVER = "highs"
_WATCH_INTERVAL = 0.05
#: The first run of a MIP is stopped after this many seconds to look at its best solution, later ones after this many
#: times more; starting again costs at most half of the last run's time.
_FIRST_SLICE = 5.0
_SLICE_GROWTH = 3.0
#: Bounds beyond this are a solver's way to say that it has none.
_NO_BOUND = 1e20
#: Points of a MIP that miss integrality or a row by more than this, relative to the numbers in it, are no solutions:
#: the solver stopped early with a relaxation's point, or a file lost digits.
_READING_TOLERANCE = 1e-5


class PyomoBackend(Backend):
    """A solver that Pyomo knows, with the cut loop.

    A solver that dies, or is stopped by the time limit, ends the solve with what was found and proven before.

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
        self._problems: dict[bool, _Problem] = {}

    def solve_relaxation(self, seconds: float) -> Run:
        return self._run(integer=False, limits=Limits(seconds))

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._problem(integer=False).add(rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        self._problem(integer=False).drop(positions)

    def solve_integer(self, request: IntegerRequest) -> Run:
        """Run for longer and longer: Pyomo has no callback that would show us the solutions on the way."""
        if request.nodes == 0:
            return self._nothing()
        seconds = _FIRST_SLICE
        while True:
            last = self._session.seconds_left <= seconds
            limits = Limits(min(seconds, self._session.seconds_left), request.nodes)
            began = time.perf_counter()
            run = self._run(integer=True, limits=limits)
            if run.status is not RunStatus.LIMIT or last:
                return run
            if request.nodes is not None and time.perf_counter() - began < seconds:
                return replace(run, nodes=max(run.nodes, request.nodes))  # whatever the solver calls a node
            if run.x is not None:
                request.on_solution(run.x, run.bound)
            request.on_bound(run.bound, run.nodes)
            if request.should_stop():
                return run
            seconds *= _SLICE_GROWTH

    def add_integer_rows(self, rows: Rows) -> None:
        self._problem(integer=True).add(rows)

    def _problem(self, *, integer: bool) -> _Problem:
        if integer not in self._problems:
            self._problems[integer] = _Problem(self._name, self._session, self._session.model, integer=integer)
        return self._problems[integer]

    def _run(self, *, integer: bool, limits: Limits) -> Run:
        session = self._session
        try:
            problem = self._problem(integer=integer)
            if problem.impossible:
                return Run(RunStatus.INFEASIBLE, None, -session.model.sign * math.inf)
            answer = problem.solve(limits)
            if answer.status is RunStatus.UNBOUNDED:
                answer = replace(answer, status=problem.unbounded_or_infeasible())
            x = None if answer.values is None else problem.solution(answer)
        except SolverDiedError as error:
            if not session.out_of_time:
                logger.warning("backend 'pyomo:%s': the solver died: %s", self._name, error)
                session.request_stop(Termination.SOLVER_FAILED)
            return self._nothing()
        return Run(answer.status, x, self._bound(answer, x), answer.nodes)

    def _bound(self, answer: Answer, x: FloatArray | None) -> float:
        model = self._session.model
        if answer.bound is not None and abs(answer.bound) < _NO_BOUND:
            return answer.bound
        if answer.status is RunStatus.OPTIMAL and x is not None:
            return model.value(x)  # solvers that report no bound were told to leave no gap
        return model.sign * math.inf

    def _nothing(self) -> Run:
        return Run(RunStatus.LIMIT, None, self._session.model.sign * math.inf)


class _Problem:
    """One Pyomo model, the solver that holds it, and the cuts added to it."""

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
            self._solver: PyomoSolver = open_solver(name, self._model, session.options)
        except (ValueError, RuntimeError) as error:
            raise SolverDiedError(str(error)) from error

    def _constraints(self, rows: Rows) -> list[Any]:
        """Put rows into the Pyomo model; a row without columns, which Pyomo has not, is None."""
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

    def solve(self, limits: Limits) -> Answer:
        """Run the solver, unless there is nothing in the model that a solver would be told of."""
        if not self._rows.n_nonzeros and not self._arrays.objective.any():
            return Answer(RunStatus.OPTIMAL, {}, 0.0, 0)
        return self._solve_watched(replace(limits, wide=self._is_wide))

    def _solve_watched(self, limits: Limits) -> Answer:
        """Run the solver, while a second thread passes on a request to stop."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_WATCH_INTERVAL):
                if self._session.stop_requested:
                    self._solver.interrupt()

        watcher = threading.Thread(target=watch, name="accel_oct-watch", daemon=True)
        watcher.start()
        try:
            return self._solver.solve(limits)
        finally:
            done.set()
            watcher.join()

    def solution(self, answer: Answer) -> FloatArray | None:
        """The point of an answer; None if the solver was stopped with one that is no solution."""
        x = self._vector(answer.values or {})
        if not self._integer or self._holds(x):
            return x
        if answer.status is RunStatus.OPTIMAL:
            raise SolverDiedError("it calls a point optimal that is not integral or breaks a row")
        return None

    def _holds(self, x: FloatArray) -> bool:
        part, rows = x[self._arrays.integer], self._rows
        integral = np.abs(part - np.round(part)) <= _READING_TOLERANCE
        size = replace(rows, values=np.abs(rows.values)).activity(np.abs(x))
        return bool(integral.all() and np.all(rows.violation(x) <= _READING_TOLERANCE * np.maximum(1.0, size)))

    def _vector(self, values: dict[int, float]) -> FloatArray:
        """A full point; columns that are in no row and not in the objective are unknown to the solver."""
        x: FloatArray = np.clip(np.zeros(self._arrays.n_columns), self._arrays.lower, self._arrays.upper)
        x[self._arrays.integer] = np.ceil(x[self._arrays.integer])
        for identity, value in values.items():
            column = self._position.get(identity)
            if column is not None and value is not None:
                x[column] = value
        return x

    def unbounded_or_infeasible(self) -> RunStatus:
        """Solvers may not tell the two apart: ask again with no objective."""
        arrays = replace(self._arrays, objective=np.zeros(self._arrays.n_columns), rows=self._rows)
        probe = _Problem(self._name, self._session, arrays, integer=self._integer)
        if probe.impossible:
            return RunStatus.INFEASIBLE
        status = probe.solve(Limits(self._session.seconds_left)).status
        if status is RunStatus.UNBOUNDED:
            raise SolverDiedError("it calls a model unbounded that has no objective")
        if status is not RunStatus.OPTIMAL:
            return status
        if np.isfinite(arrays.lower).all() and np.isfinite(arrays.upper).all():
            raise SolverDiedError("it calls a model unbounded whose columns all have bounds")
        return RunStatus.UNBOUNDED
