"""One model in one solver that Pyomo reaches. Pyomo is imported when it is used."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.mip import FloatArray, IntArray, ModelArrays, Rows, RunStatus, SolveSession
from accel_oct_backends.pyomo_export import objective, row_expressions, set_domains
from accel_oct_backends.pyomo_profiles import WIDE
from accel_oct_backends.pyomo_solvers import Answer, Limits, PyomoSolver, SolverDiedError, open_solver

_WATCH_INTERVAL = 0.05
#: Points of a MIP that miss integrality or a row by more than this, relative to the numbers in it, are no solutions:
#: the solver stopped early with a relaxation's point, or a file lost digits.
_READING_TOLERANCE = 1e-5


class PyomoProblem:
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
        probe = PyomoProblem(self._name, self._session, arrays, integer=self._integer)
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
