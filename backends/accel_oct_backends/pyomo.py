"""Whatever solver Pyomo reaches, as ``pyomo:NAME``: the shared cut loop over Pyomo models.

HiGHS, Gurobi and SCIP keep the model between the loop's runs; CBC, GLPK and others read it from a file every time.
Pyomo models are built per solve: a cut of one solve must not stay for the next.
`to_pyomo` hands a model to a user of Pyomo.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import Any

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
    Rows,
    RunStatus,
    SolveSession,
    Support,
    Termination,
    UnsupportedError,
)
from accel_oct_backends.pyomo_export import to_pyomo
from accel_oct_backends.pyomo_problem import PyomoProblem
from accel_oct_backends.pyomo_profiles import PROFILES
from accel_oct_backends.pyomo_solvers import Answer, Limits, SolverDiedError, require

__all__ = ["PyomoBackend", "to_pyomo"]

logger = logging.getLogger(__name__)

DEFAULT_SOLVER = "highs"
#: The first run of a MIP is stopped after this many seconds to look at its best solution, later ones after this many
#: times more; starting again costs at most half of the last run's time.
_FIRST_SLICE = 5.0
_SLICE_GROWTH = 3.0
#: Bounds beyond this are a solver's way to say that it has none.
_NO_BOUND = 1e20


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
        self._problems: dict[bool, PyomoProblem] = {}

    def solve_relaxation(self, seconds: float) -> EngineRun:
        return self._run(integer=False, limits=Limits(seconds))

    def add_relaxation_rows(self, rows: Rows) -> None:
        self._problem(integer=False).add(rows)

    def drop_relaxation_rows(self, positions: IntArray) -> None:
        self._problem(integer=False).drop(positions)

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
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
            request.on_bound(run.bound, 0)  # nodes of a run that begins again are not counted
            if request.should_stop():
                return run
            seconds *= _SLICE_GROWTH

    def add_integer_rows(self, rows: Rows) -> None:
        self._problem(integer=True).add(rows)

    def _problem(self, *, integer: bool) -> PyomoProblem:
        if integer not in self._problems:
            self._problems[integer] = PyomoProblem(self._name, self._session, self._session.model, integer=integer)
        return self._problems[integer]

    def _run(self, *, integer: bool, limits: Limits) -> EngineRun:
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
                logger.warning("backend 'pyomo:%s': the solver died: %s", self._name, error)
                session.request_stop(Termination.SOLVER_FAILED)
            return self._nothing()
        return EngineRun(answer.status, x, self._bound(answer, x), answer.nodes)

    def _bound(self, answer: Answer, x: FloatArray | None) -> float:
        model = self._session.model
        if answer.bound is not None and abs(answer.bound) < _NO_BOUND:
            return answer.bound
        if answer.status is RunStatus.OPTIMAL and x is not None:
            return model.value(x)  # solvers that report no bound were told to leave no gap
        return model.sign * math.inf

    def _nothing(self) -> EngineRun:
        return EngineRun(RunStatus.LIMIT, None, self._session.model.sign * math.inf)
