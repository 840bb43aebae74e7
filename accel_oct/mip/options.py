"""Options of a solve: `Solver`, chosen by users, and `SolveOptions`, passed to every backend."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy.typing as npt

from accel_oct.mip.errors import ModelError
from accel_oct.mip.logs import Log, is_log
from accel_oct.support.arguments import as_whole

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Solver:
    """The solver of integer programs and how it runs; also the number of threads of every other search.

    Wherever the library takes a `solver`, the name of a backend stands for ``Solver(name)``.

    Parameters
    ----------
    backend : str
        "highs", "gurobi", "cplex", "xpress", "copt", "scip", "pyomo:NAME" or any other registered backend. "auto" takes
        the first of gurobi, cplex, xpress, scip and highs that is installed and whose licence suffices.
    threads : int
        Threads of one solve; -1 is all cores, -2 all but one. Reduced to the number of cores, with a log message, if
        larger.
    seed : int
        Seed of the solver and of local search. It decides at most between trees that are equally good.
    gap : float
        Relative gap at which to stop; 0 asks for a proof.
    node_limit : int, optional
        Branch-and-bound nodes of the solver, where it has to run.
    options : mapping
        Options under the solver's own names, such as ``{"mip_heuristic_effort": 0.2}`` for HiGHS. A limit among them
        ends the solve with status "stopped".
    log : callable, logging.Logger or file, optional
        Takes the solver's own log, line by line; nothing is printed without it. It is not stored with a model, nor
        passed to other processes.

    Examples
    --------
    >>> Solver("gurobi", threads=4, seed=1)
    Solver(backend='gurobi', threads=4, seed=1, gap=0.0, node_limit=None, options={})
    """

    backend: str = "highs"
    _: KW_ONLY
    threads: int = 1
    seed: int = 0
    gap: float = 0.0
    node_limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    log: Log | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str):
            raise ModelError(f"`backend` must be the name of a backend, got {self.backend!r}")
        if as_whole(self.threads) in (None, 0):
            raise ModelError(f"`threads` must be a whole number other than 0, got {self.threads!r}")
        _check_search(self.gap, self.seed, self.node_limit)
        if not isinstance(self.options, Mapping) or not all(isinstance(name, str) for name in self.options):
            raise ModelError(
                f"`options` must be a mapping from the solver's option names to values, got {self.options!r}"
            )
        _check_log(self.log)
        object.__setattr__(self, "options", dict(self.options))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the log, which is open in this process only."""
        return {**self.__dict__, "log": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Solver:
        return replace(self, options=deepcopy(self.options, memo))  # copies write to the same log

    @property
    def n_threads(self) -> int:
        """`threads` as a number of at least one."""
        return self.threads if self.threads > 0 else max(1, (os.cpu_count() or 1) + 1 + self.threads)

    def solve_options(self, time_limit: float | None = None) -> SolveOptions:
        """These options for one solve."""
        return SolveOptions(
            time_limit=time_limit,
            gap=self.gap,
            threads=self.n_threads,
            seed=self.seed,
            node_limit=self.node_limit,
            native=self.options,
            log=self.log,
        )


def as_solver(solver: Any) -> Solver:
    """Return a `Solver`, also for the name of a backend."""
    if isinstance(solver, str):
        return Solver(solver)
    if not isinstance(solver, Solver):
        raise ModelError(f"`solver` must be the name of a backend or a Solver, got {solver!r}")
    return solver


@dataclass(frozen=True)
class SolveOptions:
    """Limits and hints of one solve, the same for every backend.

    Parameters
    ----------
    time_limit : float, optional
        Seconds, after which the incumbent and a valid bound are returned.
    gap : float
        Stop when ``|bound - objective| <= gap * |objective|``; 0 requires a proof of optimality.
    threads : int
        Reduced to the number of cores, with a log message, if larger.
    seed : int
    node_limit : int, optional
    branch_priorities : int array, one per column, optional
        Columns with larger values are branched on earlier. An error on backends without support.
    check_cuts : bool
        A REQUIRED or IMPLIED cut that clearly cuts off the best known feasible solution always raises
        `InvalidCutError`; with this option, one that does so by more than 1e-5. For authors of cuts.
    native : mapping
        Options passed to the solver under its own names.
    warm : bool
        Begin with what the last solve of the same backend found: its solutions, and on some backends its basis.
    solutions : int
        Number of the best solutions found to return as `MipResult.solutions`.
    log : callable, logging.Logger or file, optional
        Takes the solver's own log: every line as an argument, as a record of level INFO, or written. Without it the log
        is recorded by the logger of the backend at level DEBUG, if that is enabled.
    """

    time_limit: float | None = None
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    node_limit: int | None = None
    branch_priorities: npt.NDArray[Any] | None = None
    check_cuts: bool = False
    native: Mapping[str, Any] = field(default_factory=dict)
    warm: bool = False
    solutions: int = 1
    log: Log | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit >= 0:
            raise ModelError(f"`time_limit` must be a number of seconds >= 0 or None, got {self.time_limit!r}")
        _check_search(self.gap, self.seed, self.node_limit)
        if not _is_natural(self.solutions) or self.solutions < 1:
            raise ModelError(f"`solutions` must be a whole number >= 1, got {self.solutions!r}")
        _check_log(self.log)
        object.__setattr__(self, "threads", usable_threads(self.threads))


def _check_log(log: Any) -> None:
    if log is not None and not is_log(log):
        raise ModelError(f"`log` must be a function of a line, a logger or an open file, got {log!r}")


def _check_search(gap: Any, seed: Any, node_limit: Any) -> None:
    """Raise for values that no solver takes."""
    try:
        usable = gap >= 0 and math.isfinite(gap)
    except TypeError:
        usable = False
    if not usable:
        raise ModelError(f"`gap` must be finite and >= 0, got {gap!r}")
    if not _is_natural(seed):
        raise ModelError(f"`seed` must be a whole number >= 0, got {seed!r}")
    if node_limit is not None and not _is_natural(node_limit):
        raise ModelError(f"`node_limit` must be a whole number >= 0 or None, got {node_limit!r}")


def _is_natural(value: Any) -> bool:
    """Return whether a value is a whole number and not negative."""
    number = as_whole(value)
    return number is not None and number >= 0


def usable_threads(threads: Any) -> int:
    """Return the number of threads, limited to the cores of this process.

    More threads would share the cores, and each takes memory for its tables or its copy of the model.

    Raises
    ------
    ModelError
        If `threads` is not a whole number of at least one.
    """
    wanted = as_whole(threads) or 0
    if wanted < 1:
        raise ModelError(f"`threads` must be a whole number and at least 1, got {threads!r}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted > cores:
        logger.warning("threads=%d is reduced to %d, the number of cores", wanted, cores)
    return min(wanted, cores)
