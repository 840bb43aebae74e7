"""Accuracy against size: the best tree for every number of leaves in one pass, and every leaf penalty read off it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accel_oct.cluster import check_client, spread_table
from accel_oct.constraints import Constraint, MaxLeaves
from accel_oct.constraints.statements import check_local_rules
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.exact import FrontierTable
from accel_oct.exact.steps import Steps
from accel_oct.mip.exchange import usable_threads
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.activity import Teller
from accel_oct.solving.config import SubtreeBoundConfig
from accel_oct.solving.problem import Problem, TallyProblem, refuse_beside_tally
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.result import HistoryRow, Progress, Result, Status
from accel_oct.solving.search import constraint_reports
from accel_oct.support.interrupts import run_interruptibly
from accel_oct.tree import DecisionTree


def frontier(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    sample_weight: Any = None,
    time_limit: float | None = None,
    threads: int = 1,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
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
    time_limit : float, optional
        Seconds; what is not proven by then comes with a valid bound.
    threads : int
        At most as many as there are cores.
    memory_limit : int
        Bytes that the tables may take.
    progress : callable (HistoryRow), optional
        Called during deep searches and at the end, with score and bound for the largest number of leaves.
    constraints : sequence of Constraint, optional
        Those that leave subtrees independent, such as `MinLeafWeight` and `ForbiddenPairs` on paths, and `MaxLeaves`,
        which ends the frontier.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio.
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
    began = time.perf_counter()
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
    time_limit: float | None = None,
    threads: int = 1,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
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
    began = time.perf_counter()
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


# ---------------------------------------------------------------- the result


NO_TREE = "there is no tree: the constraints allow none, not even a single leaf"


@dataclass(frozen=True)
class FrontierPoint:
    """The best tree with at most some number of leaves.

    Attributes
    ----------
    max_leaves : int
    score : float
        Share of the weight that the tree classifies correctly, or what another objective makes of it; minus infinity
        where constraints allow no tree.
    bound : float
        No tree with at most `max_leaves` leaves (that keeps every constraint) has a larger score.
    found : DecisionTree or None
        May have fewer leaves, when more do not help. None where constraints allow no tree.
    """

    max_leaves: int
    score: float
    bound: float
    found: DecisionTree | None

    @property
    def tree(self) -> DecisionTree:
        """The tree; `NoTreeError` where there is none, see `found`."""
        if self.found is None:
            raise NoTreeError(NO_TREE)
        return self.found

    @property
    def is_proven(self) -> bool:
        """Whether no tree with as many leaves scores more."""
        return self.bound == self.score


class Frontier:
    """The best score for every number of leaves up to ``2**max_depth``; made by `accel_oct.frontier`.

    Indexed by number of leaves, iterated from one leaf on; trees are rebuilt when they are asked for. Under `MaxLeaves`
    it ends at the limit. Other constraints that it takes are about single leaves and paths: where they allow any tree
    they allow a single leaf, so either every point has a tree or none has; then scores and bounds are minus
    infinity, and `tree` raises `NoTreeError`.

    Attributes
    ----------
    scores, bounds : float arrays
        Position h - 1 belongs to at most h leaves.
    status : {"optimal", "infeasible", "time_limit", "interrupted"}
        "optimal" when every point is proven, "infeasible" when it is proven that there is no tree.
    seconds : float
    """

    def __init__(self, problem: Problem, table: FrontierTable, status: Status, seconds: float) -> None:
        self._problem = problem
        self._table = table
        self.seconds = seconds
        stop = min(table.scores.size, (problem.max_leaves or table.scores.size) + 1)
        scores, bounds = table.scores[1:stop], table.upper_bounds[1:stop]
        self.scores = problem.score.reported(scores)
        self.bounds = problem.score.reported(bounds)
        self.status: Status = status
        if np.array_equal(scores, bounds):
            self.status = "optimal" if scores[-1] > -np.inf else "infeasible"

    @property
    def max_depth(self) -> int:
        """The depth limit."""
        return self._table.max_depth

    @property
    def max_leaves(self) -> int:
        """The largest number of leaves that has an entry."""
        return len(self.scores)

    def __len__(self) -> int:
        return self.max_leaves

    def __iter__(self) -> Iterator[FrontierPoint]:
        return (self[leaves] for leaves in range(1, self.max_leaves + 1))

    def __getitem__(self, max_leaves: int) -> FrontierPoint:
        if not 1 <= max_leaves <= self.max_leaves:
            raise IndexError(f"the frontier knows 1 to {self.max_leaves} leaves, not {max_leaves}")
        position = max_leaves - 1
        return FrontierPoint(
            max_leaves, float(self.scores[position]), float(self.bounds[position]), self._found(max_leaves)
        )

    def tree(self, max_leaves: int) -> DecisionTree:
        """The best tree known with at most that many leaves; `NoTreeError` where constraints allow none."""
        found = self._found(max_leaves)
        if found is None:
            raise NoTreeError(NO_TREE)
        return found

    def _found(self, max_leaves: int) -> DecisionTree | None:
        if not 1 <= max_leaves <= self.max_leaves:
            raise ValueError(f"max_leaves must be between 1 and {self.max_leaves}, got {max_leaves}")
        return None if self.scores[max_leaves - 1] == -np.inf else self._table.tree(max_leaves)

    def result(self, max_leaves: int) -> Result:
        """The best tree known with at most that many leaves, as a result: leaf penalties are not counted."""
        tree = self._found(max_leaves)
        score, bound = float(self.scores[max_leaves - 1]), float(self.bounds[max_leaves - 1])
        proven = score == bound
        status: Status = self.status if not proven else "optimal" if tree is not None else "infeasible"
        return self._result(tree, score, bound, status, self.seconds)

    def best(self, leaf_penalty: float) -> Result:
        """The optimum of a leaf penalty; status "infeasible", and no tree, where constraints allow none."""
        began = time.perf_counter()
        problem = self._problem
        price = problem.score.rows.leaf_price(leaf_penalty, problem.score.norm)
        value, bound, leaves = self._table.best(price, self.max_leaves)
        tree = self._found(leaves)
        objective, status, limit = -np.inf, self.status, problem.reported(bound)
        if tree is not None:
            objective = problem.value(tree) - float(leaf_penalty) * tree.n_leaves
            proven = bound <= value + PROOF_TOLERANCE * problem.total_weight
            status = "optimal" if proven else self.status
            limit = objective if proven else max(limit, objective)
        return self._result(tree, objective, limit, status, self.seconds + time.perf_counter() - began)

    def _result(
        self, tree: DecisionTree | None, objective: float, bound: float, status: Status, seconds: float
    ) -> Result:
        dataset, constraints = self._problem.original, self._problem.constraints
        return Result(
            found=tree,
            objective=objective,
            bound=bound,
            status=status,
            seconds=seconds,
            nodes=0,
            backend="none",
            stats={"decided_by": "the frontier", "frontier_seconds": self.seconds},
            history=(HistoryRow(self.seconds, objective, bound),),
            feature_names=dataset.feature_names,
            class_names=dataset.class_names,
            constraints=constraint_reports(constraints, tree),
        )
