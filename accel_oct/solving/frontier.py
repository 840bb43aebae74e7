"""Accuracy against size: the best tree for every number of leaves in one pass, and every leaf penalty read off it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from accel_oct.cluster import check_client, spread_table
from accel_oct.constraints import Constraint, MaxLeaves
from accel_oct.constraints.statements import check_local_rules
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact import FrontierTable
from accel_oct.exact.steps import Steps
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.activity import Teller
from accel_oct.solving.config import SubtreeBoundConfig
from accel_oct.solving.frontier_result import Frontier
from accel_oct.solving.problem import Problem
from accel_oct.solving.result import HistoryRow, Progress, Result, Status
from accel_oct.solving.tallied import TallyProblem, refuse_beside_tally
from accel_oct.support.interrupts import run_interruptibly


def frontier(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    sample_weight: Any = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    time_limit: float | None = None,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
    client: Any = None,
    checkpoint: Any = None,
) -> Frontier:
    """The best tree for every number of leaves, each with its proof, in one pass.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`. A `Tally` in the place of X gives the same scores and bounds, and so do
        data in pieces with the name of the target in the place of y.
    max_depth : int
        Exact up to 4 on data of any usual size; deeper where time allows, else with valid bounds.
    constraints : sequence of Constraint, optional
        Those that leave subtrees independent, such as `MinLeafWeight` and `ForbiddenPairs` on paths, and `MaxLeaves`,
        which ends the frontier.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio.
    solver : Solver or str
        As for `accel_oct.solve`. Its threads are used; no backend runs.
    time_limit : float, optional
        Seconds; what is not proven by then comes with a valid bound.
    memory_limit : int
        Bytes that the tables may take.
    progress : callable (HistoryRow), optional
        Called during deep searches and at the end, with score and bound for the largest number of leaves.
    client : distributed.Client, str or int, optional
        Spreads what is deeper than the tables over the workers of a dask cluster: a client, the address of a scheduler,
        or a number of processes on this machine. The result does not depend on it. Needs the extra ``dask``.
    checkpoint : path, optional
        File that keeps what is proven of a deep search, with or without `client`; if it is there, the search goes on
        from it.

    Returns
    -------
    Frontier

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used, or the constraint that `accel_oct.solve` can take and this cannot.
    ClusterError
        When the cluster cannot go on; what is proven by then is in the checkpoint.
    """
    began, threads = time.perf_counter(), as_solver(solver).n_threads
    problem = _problem(X, y, sample_weight, max_depth, constraints, objective, client)
    compute = problem.frontier_table
    if checkpoint is not None or (client is not None and not isinstance(problem, TallyProblem)):
        compute = partial(problem.frontier_table, spread_table, client=client, checkpoint=checkpoint)
    return computed_frontier(problem, time_limit, threads, memory_limit, progress, began, compute)


def _problem(
    X: Any,
    y: Any,
    sample_weight: Any,
    max_depth: int,
    constraints: Sequence[Constraint] | None,
    objective: Any,
    client: Any = None,
) -> Problem:
    """What is to be solved, for every leaf penalty."""
    if isinstance(X, Tally):
        refuse_beside_tally(client=client)
    check_client(client)
    # An address, or a number of processes, is a cluster that the search makes for itself.
    reader = client if hasattr(client, "submit") else None
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth, constraints=constraints, client=reader)
    problem: Problem
    if isinstance(X, Tally):
        refuse_beside_tally(y=y, sample_weight=sample_weight)
        problem = TallyProblem.of_tally(X, max_depth, 0.0, constraints, objective)
    else:
        score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
        if isinstance(score, RatioScore):
            raise InvalidInputError(f"objective: the frontier cannot take {score.name}, a ratio; accel_oct.solve can")
        problem = Problem.of(score, max_depth, 0.0, constraints)
    for constraint in problem.coupling:
        if not isinstance(constraint, MaxLeaves):
            raise InvalidInputError(
                f"constraints: the frontier cannot take {constraint.name!r}, which ties subtrees together; "
                "accel_oct.solve can, for one leaf penalty at a time"
            )
    if not isinstance(problem, TallyProblem):
        check_local_rules(problem.constraints, problem.original, problem.max_depth)
    return problem


def computed_frontier(
    problem: Problem,
    time_limit: float | None,
    threads: int,
    memory_limit: int,
    progress: Progress | None,
    began: float,
    compute: Callable[..., FrontierTable] | None = None,
) -> Frontier:
    """The frontier of a problem whose constraints it can take; `began` by `time.perf_counter`."""
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInputError(f"`time_limit` must be a number of seconds >= 0 or None, got {time_limit!r}")
    usable = usable_threads(threads)
    interrupted = threading.Event()
    tables: list[FrontierTable] = []
    most = min(2**problem.max_depth, problem.max_leaves or 2**problem.max_depth)

    def seconds() -> float:
        return time.perf_counter() - began

    steps, teller = Steps(), Teller(progress, seconds)
    teller.begin("frontier", lambda: (steps.doing, steps.figures))

    def report(_: float, scores: Any, bounds: Any) -> None:
        score, bound = problem.reported(float(scores[most])), problem.reported(float(bounds[most]))
        teller.row(HistoryRow(seconds(), score, bound))

    def work() -> None:
        deadline = None if time_limit is None else time.monotonic() + max(time_limit - seconds(), 0.0)
        tables.append(
            (compute or problem.frontier_table)(
                threads=usable,
                memory_limit=memory_limit,
                deadline=deadline,
                should_stop=teller.beating(interrupted.is_set),
                progress=report,
                steps=steps,
            )
        )

    run_interruptibly(work, interrupted.set)
    report(0.0, tables[0].scores, tables[0].upper_bounds)
    status: Status = "interrupted" if interrupted.is_set() else "time_limit"
    return Frontier(problem, tables[0], status, seconds())


def solve_path(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalties: Iterable[float],
    sample_weight: Any = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    time_limit: float | None = None,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
) -> list[Result]:
    """The optimum of every leaf penalty, read off one `frontier`.

    Parameters are those of `frontier`; `leaf_penalties` in any order.

    Returns
    -------
    list of Result
        One per penalty, in the order given; `seconds` counts the shared pass in each. Where constraints allow no tree
        the status is "infeasible", as in `accel_oct.solve`.
    """
    penalties = [float(penalty) for penalty in _checked_iterable(leaf_penalties)]
    began, threads = time.perf_counter(), as_solver(solver).n_threads
    problem = _problem(X, y, sample_weight, max_depth, constraints, objective)
    for penalty in penalties:
        problem.original.leaf_price(penalty)  # refuses bad ones before any work is done
    table = computed_frontier(problem, time_limit, threads, memory_limit, progress, began)
    return [table.best(penalty) for penalty in penalties]


def _checked_iterable(leaf_penalties: Any) -> Any:
    try:
        return list(leaf_penalties)
    except TypeError:
        raise InvalidInputError(f"`leaf_penalties` must be several numbers, got {leaf_penalties!r}") from None
