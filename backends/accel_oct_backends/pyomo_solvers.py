"""Solvers of Pyomo: their settings, and how they are found, run and read. Pyomo is imported when it is used."""

from __future__ import annotations

import importlib
import importlib.util
import io
import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from accel_oct.mip import (
    BackendUnavailableError,
    LicenceError,
    LogFile,
    LogLines,
    RunStatus,
    SolveOptions,
    UnsupportedError,
)


@dataclass(frozen=True)
class SolverProfile:
    """Settings of a solver: its name in Pyomo, and its names of options."""

    interface: str
    persistent: bool = False
    install: str = "put its executable on the PATH, or install its Python package"
    seed: str | None = None
    nodes: str | None = None
    threads: str | None = None
    log: str | None = None
    """Option of a persistent solver that takes the path of a file for its log."""
    fixed: dict[str, Any] = field(default_factory=dict)
    wide: dict[str, Any] = field(default_factory=dict)
    """Replaces settings of `fixed` if a bound is as large as `WIDE`."""


#: With bounds of this size, tolerances tighter than a solver's default are unsafe; see docs/solver-faults.md.
WIDE = 1e6

PROFILES = {
    "highs": SolverProfile(
        "highs",
        True,
        "pip install highspy",
        seed="random_seed",
        nodes="mip_max_nodes",
        log="log_file",
        # As in the native backend: rounding must not move a row by more than the tolerance of cuts.
        fixed={"mip_feasibility_tolerance": 1e-7},
        wide={"mip_feasibility_tolerance": 1e-6},
    ),
    "gurobi": SolverProfile(
        "gurobi_persistent",
        True,
        "pip install gurobipy",
        seed="Seed",
        nodes="NodeLimit",
        log="LogFile",
        # As in the native backend: branch variables that are almost zero must not add up to a score that no tree has.
        fixed={"IntFeasTol": 1e-9},
    ),
    "scip": SolverProfile(
        "scip_persistent",
        True,
        "pip install pyscipopt",
        seed="randomization/randomseedshift",
        nodes="limits/totalnodes",
        # Pyomo reads SCIP's log in a thread that is never scheduled: a full pipe would block both.
        fixed={"display/verblevel": 0},
    ),
    "cbc": SolverProfile(
        "cbc",
        install="install Debian's coinor-cbc, or pip install cbcbox, which carries one (as pulp did before 4)",
        seed="randomCbcSeed",
        nodes="maxNodes",
        threads="threads",
        # Its preprocessing loses optima, and so does its presolve at the default tolerance if they differ by 1e-5. By
        # default it accepts only solutions that are better by as much.
        fixed={
            "ratioGap": 0.0,
            "allowableGap": 0.0,
            "preprocess": "off",
            "increment": 0.0,
            "primalTolerance": 1e-9,
        },
        wide={"primalTolerance": 1e-7},
    ),
    "glpk": SolverProfile("glpk", install="install Debian's glpk-utils", seed="seed", fixed={"mipgap": 0.0}),
}


def profile(name: str) -> SolverProfile:
    """Return the settings of a solver; for an unknown one, only its name."""
    return PROFILES.get(name) or SolverProfile(name)


@dataclass(frozen=True)
class RunLimits:
    """Limits of one run."""

    seconds: float
    nodes: int | None = None
    wide: bool = False
    """Whether some bound of the model is as large as `WIDE`."""


@dataclass(frozen=True)
class SolverAnswer:
    """Result of one run; `values` are by the identity of the Pyomo variable."""

    status: RunStatus
    values: dict[int, float] | None
    bound: float | None
    nodes: int


class SolverDiedError(Exception):
    """The solver did not return a result."""


class PyomoSolver(Protocol):
    """One Pyomo model in one solver."""

    def add(self, constraints: list[Any]) -> None: ...

    def remove(self, constraints: list[Any]) -> None: ...

    def solve(self, limits: RunLimits) -> SolverAnswer: ...

    def interrupt(self) -> None: ...


def require(name: str) -> None:
    """Raise unless Pyomo finds the solver and it supports integer columns."""
    known = profile(name)
    solver = _create(known)
    if solver is not None and hasattr(solver, "has_capability") and not solver.has_capability("integer"):
        raise UnsupportedError(f"backend 'pyomo:{name}': the solver {name!r} cannot solve models with integer columns")
    found = solver is not None and _availability(known, solver)
    if str(found) == "BadLicense":
        raise LicenceError(f"backend 'pyomo:{name}': the solver {name!r} is installed, but Pyomo finds no licence")
    if not found:
        raise BackendUnavailableError(
            f"backend 'pyomo:{name}': Pyomo finds no working solver {name!r}; to get it, {known.install}"
        )


def open_solver(name: str, model: Any, options: SolveOptions, log: LogLines | None = None) -> PyomoSolver:
    """Load a Pyomo model into a solver; its log goes to a stream after each run."""
    known = profile(name)
    if options.node_limit and known.nodes is None:
        raise UnsupportedError(f"backend 'pyomo:{name}' has no node limit")
    return (_Persistent if known.persistent else _FileBased)(known, model, options, log)


@contextmanager
def _log_file(stream: LogLines | None) -> Iterator[str | None]:
    """Yield the path of a file whose text goes to the stream in the end."""
    if stream is None:
        yield None
        return
    log = LogFile(stream)
    try:
        yield log.path
    finally:
        log.close()


def _create(known: SolverProfile) -> Any:
    import pyomo.environ as pyo  # also registers the solvers of both factories
    from pyomo.common.log import LoggingIntercept
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.opt.base.solvers import UnknownSolver

    with LoggingIntercept(io.StringIO(), "pyomo"):  # Pyomo logs a traceback for an unknown name
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


def _availability(known: SolverProfile, solver: Any) -> Any:
    """Return Pyomo's availability of the solver, which is false unless it can be used."""
    from pyomo.common.log import LoggingIntercept

    with LoggingIntercept(io.StringIO(), "pyomo"):
        return solver.available() if known.persistent else solver.available(exception_flag=False)


def _bundled_cbc() -> str | None:
    """Return the executable of the package `cbcbox`, or of a `pulp` before 4, if there is no other."""
    if shutil.which("cbc"):
        return None
    for package, module, name in (
        ("cbcbox", "cbcbox", "cbc_bin_path"),
        ("pulp", "pulp.apis.coin_api", "pulp_cbc_path"),
    ):
        if importlib.util.find_spec(package) is None:
            continue
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):  # a release without the executable
            continue
        return str(found() if callable(found) else found)
    return None


def _native_options(known: SolverProfile, options: SolveOptions, limits: RunLimits) -> dict[str, Any]:
    seed = {} if known.seed is None else {known.seed: options.seed}
    settings = {**known.fixed, **(known.wide if limits.wide else {}), **seed, **options.native}
    if limits.nodes is not None:
        settings[known.nodes or ""] = limits.nodes
    return settings


class _Persistent:
    """A solver that keeps the model between runs, through Pyomo's newer interfaces."""

    #: Methods that stop the native objects.
    _INTERRUPTS = ("cancelSolve", "terminate", "interruptSolve")

    def __init__(self, known: SolverProfile, model: Any, options: SolveOptions, log: LogLines | None) -> None:
        self._profile = known
        self._model = model
        self._solver = _create(known)
        self._options = options
        self._log = log
        self._seconds_used = 0.0
        config = self._solver.config
        config.load_solutions = False
        config.raise_exception_on_nonoptimal_result = False
        config.threads = options.threads
        config.rel_gap = options.gap
        if known.interface != "scip_persistent":
            config.abs_gap = 0.0
        for check in config.auto_updates:
            config.auto_updates[check] = False  # `add` and `remove` report changes
        self._solver.set_instance(model)

    def add(self, constraints: list[Any]) -> None:
        self._solver.add_constraints(constraints)

    def remove(self, constraints: list[Any]) -> None:
        self._solver.remove_constraints(constraints)

    def solve(self, limits: RunLimits) -> SolverAnswer:
        from pyomo.contrib.solver.common.results import SolutionStatus

        settings = _native_options(self._profile, self._options, limits)
        time_limit = None if math.isinf(limits.seconds) else limits.seconds + self._seconds_used
        try:
            with _log_file(self._log) as path:
                if path is not None:
                    settings |= self._log_settings(path)
                results = self._solver.solve(self._model, time_limit=time_limit, solver_options=settings)
        except Exception as error:
            raise SolverDiedError(str(error)) from error
        self._seconds_used = results.timing_info.value().get("highs_time", 0.0)  # HiGHS counts from its first run
        status = self._status(results.termination_condition)
        found = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
        values = results.solution_loader.get_vars() if found and status is not RunStatus.UNBOUNDED else None
        return SolverAnswer(
            status,
            None if values is None else {id(variable): value for variable, value in values.items()},
            results.objective_bound,
            self._nodes(results.extra_info),
        )

    def _log_settings(self, path: str) -> dict[str, Any]:
        """Return the options by which the solver writes its log to a file."""
        if self._profile.log is not None:
            return {self._profile.log: path}
        native = self._solver._solver_model  # SCIP has a method instead of an option
        native.hideOutput()
        native.setLogfile(path)
        return {"display/verblevel": 4}

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
    """A solver that is a separate program: the model is written for every run."""

    def __init__(self, known: SolverProfile, model: Any, options: SolveOptions, log: LogLines | None) -> None:
        self._profile = known
        self._model = model
        self._solver = _create(known)
        self._options = options
        self._log = log

    def add(self, constraints: list[Any]) -> None:
        pass

    def remove(self, constraints: list[Any]) -> None:
        pass

    def solve(self, limits: RunLimits) -> SolverAnswer:
        from pyomo.common.log import LoggingIntercept

        settings = _native_options(self._profile, self._options, limits)
        if self._profile.threads is not None and self._options.threads > 1:
            settings[self._profile.threads] = self._options.threads
        time_limit = {} if math.isinf(limits.seconds) else {"timelimit": math.ceil(max(limits.seconds, 1.0))}
        messages = io.StringIO()
        try:
            with LoggingIntercept(messages, "pyomo"), _log_file(self._log) as path:
                logfile = {} if path is None else {"logfile": path}
                results = self._solver.solve(
                    self._model, load_solutions=False, options=settings, **time_limit, **logfile
                )
                return self._read(results)
        except SolverDiedError:
            raise
        except Exception as error:
            raise SolverDiedError(f"{error} {messages.getvalue()}".strip()) from error

    def _read(self, results: Any) -> SolverAnswer:
        """Read a result without its bound: on a limit, some of Pyomo's readers return the incumbent as bound."""
        from pyomo.opt import TerminationCondition as Condition

        condition = results.solver.termination_condition
        known = {
            Condition.optimal: RunStatus.OPTIMAL,
            Condition.infeasible: RunStatus.INFEASIBLE,
            Condition.unbounded: RunStatus.UNBOUNDED,
            Condition.infeasibleOrUnbounded: RunStatus.UNBOUNDED,
            Condition.other: RunStatus.UNBOUNDED,  # GLPK on an unbounded relaxation
            Condition.maxTimeLimit: RunStatus.LIMIT,
            Condition.maxEvaluations: RunStatus.LIMIT,
            Condition.maxIterations: RunStatus.LIMIT,
            Condition.userInterrupt: RunStatus.LIMIT,
            Condition.feasible: RunStatus.LIMIT,
            Condition.intermediateNonInteger: RunStatus.LIMIT,  # CBC with a solution of the relaxation only
        }
        if condition not in known:
            raise SolverDiedError(f"it ended with the status {str(condition)!r}")
        status = known[condition]
        values = None
        if len(results.solution) and status in (RunStatus.OPTIMAL, RunStatus.LIMIT):
            self._model.solutions.load_from(results)
            values = {id(variable): variable.value for variable in _variables(self._model) if not variable.stale}
        statistics = results.solver.statistics.branch_and_bound
        return SolverAnswer(status, values, None, int(statistics.number_of_created_subproblems or 0))

    def interrupt(self) -> None:
        pass  # a Ctrl-C in a terminal reaches the program itself


def _variables(model: Any) -> Iterable[Any]:
    import pyomo.environ as pyo

    variables: Iterable[Any] = model.component_data_objects(pyo.Var)
    return variables
