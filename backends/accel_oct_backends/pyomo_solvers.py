"""Solvers behind Pyomo: how they are found, told their limits, and read.

Pyomo is imported when it is used.
"""

from __future__ import annotations

import importlib.util
import io
import math
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from accel_oct.mip import BackendUnavailableError, LicenceError, RunStatus, SolveOptions, UnsupportedError
from accel_oct_backends.pyomo_profiles import Profile, profile


@dataclass(frozen=True)
class Limits:
    """Of one run."""

    seconds: float
    nodes: int | None = None
    wide: bool = False
    """Whether some bound of the model is as large as `WIDE`."""


@dataclass(frozen=True)
class Answer:
    """Of one run; `values` by the identity of the Pyomo variable."""

    status: RunStatus
    values: dict[int, float] | None
    bound: float | None
    nodes: int


class SolverDiedError(Exception):
    """The solver did not come back with an answer."""


class PyomoSolver(Protocol):
    """One Pyomo model in one solver."""

    def add(self, constraints: list[Any]) -> None: ...

    def remove(self, constraints: list[Any]) -> None: ...

    def solve(self, limits: Limits) -> Answer: ...

    def interrupt(self) -> None: ...


def require(name: str) -> None:
    """Raise unless Pyomo finds the solver and it can do integers."""
    known = profile(name)
    solver = _create(known)
    if solver is not None and hasattr(solver, "has_capability") and not solver.has_capability("integer"):
        raise UnsupportedError(f"backend 'pyomo:{name}': the solver {name!r} cannot solve models with integer columns")
    found = solver is not None and _availability(known, solver)
    if str(found) == "BadLicense":
        raise LicenceError(
            f"backend 'pyomo:{name}': the solver {name!r} is installed, but Pyomo finds no licence for it"
        )
    if not found:
        raise BackendUnavailableError(
            f"backend 'pyomo:{name}': Pyomo finds no working solver {name!r} here; to get it, {known.install}"
        )


def open_solver(name: str, model: Any, options: SolveOptions) -> PyomoSolver:
    """Put a Pyomo model into a solver."""
    known = profile(name)
    if options.node_limit and known.nodes is None:
        raise UnsupportedError(f"backend 'pyomo:{name}' has no node limit")
    return (_Persistent if known.persistent else _FileBased)(known, model, options)


def _create(known: Profile) -> Any:
    import pyomo.environ as pyo  # also registers the solvers of both factories
    from pyomo.common.log import LoggingIntercept
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.opt.base.solvers import UnknownSolver

    with LoggingIntercept(io.StringIO(), "pyomo"):  # Pyomo logs a traceback for a name that it does not know
        if known.persistent:
            return SolverFactory(known.interface)
        if known.interface in ("cbc", "glpk"):
            return _create_program(known.interface)
        solver = pyo.SolverFactory(known.interface)
        return None if isinstance(solver, UnknownSolver) else solver


def _create_program(interface: str) -> Any:
    from accel_oct_backends.pyomo_programs import CbcProgram, GlpkProgram

    if interface == "glpk":
        return GlpkProgram()
    executable = _bundled_cbc()
    return CbcProgram(**({"executable": executable} if executable else {}))


def _availability(known: Profile, solver: Any) -> Any:
    """What Pyomo says of the solver: for those with licences a word, which is false unless it can be used."""
    from pyomo.common.log import LoggingIntercept

    with LoggingIntercept(io.StringIO(), "pyomo"):
        return solver.available() if known.persistent else solver.available(exception_flag=False)


def _bundled_cbc() -> str | None:
    """The executable inside the package `pulp`, for machines that have no other."""
    if shutil.which("cbc") or importlib.util.find_spec("pulp") is None:
        return None
    try:
        from pulp.apis.coin_api import pulp_cbc_path
    except ImportError:  # a release that carries none
        return None
    return str(pulp_cbc_path)


def _native_options(known: Profile, options: SolveOptions, limits: Limits) -> dict[str, Any]:
    seed = {} if known.seed is None else {known.seed: options.seed}
    settings = {**known.fixed, **(known.wide if limits.wide else {}), **seed, **options.native}
    if limits.nodes is not None:
        settings[known.nodes or ""] = limits.nodes
    return settings


class _Persistent:
    """A solver that keeps the model between runs, through Pyomo's newer interfaces."""

    #: How each native object is asked to stop.
    _INTERRUPTS = ("cancelSolve", "terminate", "interruptSolve")

    def __init__(self, known: Profile, model: Any, options: SolveOptions) -> None:
        self._profile = known
        self._model = model
        self._solver = _create(known)
        self._options = options
        self._seconds_used = 0.0
        config = self._solver.config
        config.load_solutions = False
        config.raise_exception_on_nonoptimal_result = False
        config.threads = options.threads
        config.rel_gap = options.gap
        if known.interface != "scip_persistent":
            config.abs_gap = 0.0
        for check in config.auto_updates:
            config.auto_updates[check] = False  # we tell it what changes
        self._solver.set_instance(model)

    def add(self, constraints: list[Any]) -> None:
        self._solver.add_constraints(constraints)

    def remove(self, constraints: list[Any]) -> None:
        self._solver.remove_constraints(constraints)

    def solve(self, limits: Limits) -> Answer:
        from pyomo.contrib.solver.common.results import SolutionStatus

        settings = _native_options(self._profile, self._options, limits)
        time_limit = None if math.isinf(limits.seconds) else limits.seconds + self._seconds_used
        try:
            results = self._solver.solve(self._model, time_limit=time_limit, solver_options=settings)
        except Exception as error:
            raise SolverDiedError(str(error)) from error
        self._seconds_used = results.timing_info.value().get("highs_time", 0.0)  # HiGHS counts from its first run
        status = self._status(results.termination_condition)
        found = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
        values = results.solution_loader.get_vars() if found and status is not RunStatus.UNBOUNDED else None
        return Answer(
            status,
            None if values is None else {id(variable): value for variable, value in values.items()},
            results.objective_bound,
            self._nodes(results.extra_info),
        )

    def _status(self, condition: Any) -> RunStatus:
        from pyomo.contrib.solver.common.results import TerminationCondition as Condition

        known = {
            Condition.convergenceCriteriaSatisfied: RunStatus.OPTIMAL,
            Condition.provenInfeasible: RunStatus.INFEASIBLE,
            Condition.unbounded: RunStatus.UNBOUNDED,
            Condition.infeasibleOrUnbounded: RunStatus.UNBOUNDED,
            Condition.maxTimeLimit: RunStatus.LIMIT,
            Condition.iterationLimit: RunStatus.LIMIT,
            Condition.objectiveLimit: RunStatus.LIMIT,
            Condition.interrupted: RunStatus.LIMIT,
        }
        if condition not in known:
            raise SolverDiedError(f"it ended with the status {condition.name!r}")
        return known[condition]

    @staticmethod
    def _nodes(info: Any) -> int:
        for name in ("mip_node_count", "NodeCount", "NNodes"):
            if name in info:
                return max(int(info[name]), 0)
        return 0

    def interrupt(self) -> None:
        native = getattr(self._solver, "_solver_model", None)
        for name in self._INTERRUPTS:
            if hasattr(native, name):
                getattr(native, name)()


class _FileBased:
    """A solver that is a program of its own: the model is written anew for every run."""

    def __init__(self, known: Profile, model: Any, options: SolveOptions) -> None:
        self._profile = known
        self._model = model
        self._solver = _create(known)
        self._options = options

    def add(self, constraints: list[Any]) -> None:
        pass

    def remove(self, constraints: list[Any]) -> None:
        pass

    def solve(self, limits: Limits) -> Answer:
        from pyomo.common.log import LoggingIntercept

        settings = _native_options(self._profile, self._options, limits)
        if self._profile.threads is not None and self._options.threads > 1:
            settings[self._profile.threads] = self._options.threads
        time_limit = {} if math.isinf(limits.seconds) else {"timelimit": math.ceil(max(limits.seconds, 1.0))}
        messages = io.StringIO()
        try:
            with LoggingIntercept(messages, "pyomo"):
                results = self._solver.solve(self._model, load_solutions=False, options=settings, **time_limit)
                return self._read(results)
        except SolverDiedError:
            raise
        except Exception as error:
            raise SolverDiedError(f"{error} {messages.getvalue()}".strip()) from error

    def _read(self, results: Any) -> Answer:
        """Bounds are not read: on a limit some of Pyomo's readers take the incumbent for one."""
        from pyomo.opt import TerminationCondition as Condition

        condition = results.solver.termination_condition
        known = {
            Condition.optimal: RunStatus.OPTIMAL,
            Condition.infeasible: RunStatus.INFEASIBLE,
            Condition.unbounded: RunStatus.UNBOUNDED,
            Condition.infeasibleOrUnbounded: RunStatus.UNBOUNDED,
            Condition.other: RunStatus.UNBOUNDED,  # so GLPK, where the relaxation is unbounded
            Condition.maxTimeLimit: RunStatus.LIMIT,
            Condition.maxEvaluations: RunStatus.LIMIT,
            Condition.maxIterations: RunStatus.LIMIT,
            Condition.userInterrupt: RunStatus.LIMIT,
            Condition.feasible: RunStatus.LIMIT,
            Condition.intermediateNonInteger: RunStatus.LIMIT,  # so CBC, when it has nothing but the relaxation
        }
        if condition not in known:
            raise SolverDiedError(f"it ended with the status {str(condition)!r}")
        status = known[condition]
        values = None
        if len(results.solution) and status in (RunStatus.OPTIMAL, RunStatus.LIMIT):
            self._model.solutions.load_from(results)
            values = {id(variable): variable.value for variable in _variables(self._model) if not variable.stale}
        statistics = results.solver.statistics.branch_and_bound
        return Answer(status, values, None, int(statistics.number_of_created_subproblems or 0))

    def interrupt(self) -> None:
        pass  # a Ctrl-C in a terminal reaches the program itself


def _variables(model: Any) -> Iterable[Any]:
    import pyomo.environ as pyo

    variables: Iterable[Any] = model.component_data_objects(pyo.Var)
    return variables
