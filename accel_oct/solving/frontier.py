"""Accuracy against size: the best tree for every number of leaves in one pass, and every leaf penalty read off it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accel_oct.cluster import check_client, spread_table
from accel_oct.constraints import Constraint
from accel_oct.constraints.base import check_traits, named_groups
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.exact import FrontierTable
from accel_oct.exact.levels import Steps
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import LinearScore, Objective, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.config import SubtreeBoundConfig
from accel_oct.solving.driver import SearchRun, SinglePhase, drive
from accel_oct.solving.problem import PROOF_TOLERANCE, Problem, TallyProblem, check_not_with_tally
from accel_oct.solving.result import HistoryRow, Result, RunOutcome, Status, build_result
from accel_oct.support.arrays import FloatArray
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Clock, Stopper
from accel_oct.tree import DecisionTree
from accel_oct.tree.sample_trees import some_trees


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
    progress: Sink | None = None,
    client: Any = None,
    checkpoint: Any = None,
) -> Frontier:
    """Find the best tree for every number of leaves, each with its proof, in one pass.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`. A `Tally` as X gives the same scores and bounds, and so do data in pieces with the
        name of the target as y.
    max_depth : int
        Depth limit. Up to 4 the frontier is exact on data of usual size; deeper searches that end early have bounds.
    constraints : sequence of Constraint, optional
        Local constraints, such as `MinLeafWeight` and `ForbiddenPairs` on paths, and `MaxLeaves`, which ends the
        frontier.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio.
    solver : Solver or str
        As for `accel_oct.solve`. Its threads are used; no backend runs.
    time_limit : float, optional
        Seconds; scores that are not proven by then have valid bounds.
    memory_limit : int
        Bytes that the tables may take.
    progress : callable (ProgressEvent), optional
        As for `accel_oct.solve`; objective and bound of the events are score and bound for the largest number of
        leaves.
    client : distributed.Client, str or int, optional
        Runs searches deeper than the tables on the workers of a dask cluster: a client, the address of a scheduler, or
        a number of processes on this machine. The result does not depend on it. Needs the extra ``dask``.
    checkpoint : path, optional
        File for the proven parts of a deep search, with or without `client`; an existing file is continued.

    Raises
    ------
    InvalidInputError
        Naming the invalid argument, or a constraint that only `accel_oct.solve` supports.
    ClusterError
        If the cluster fails; the checkpoint has the proven parts.
    """
    began, threads = time.perf_counter(), as_solver(solver).n_threads
    problem = _problem(X, y, sample_weight, max_depth, constraints, objective, client)
    compute = problem.frontier_table
    if checkpoint is not None or (client is not None and not isinstance(problem, TallyProblem)):
        compute = partial(problem.frontier_table, spread_table, client=client, checkpoint=checkpoint)
    return computed_frontier(problem, Clock(began, time_limit), threads, memory_limit, progress, compute)


def _problem(
    X: Any,
    y: Any,
    sample_weight: Any,
    max_depth: int,
    constraints: Sequence[Constraint] | None,
    objective: Any,
    client: Any = None,
) -> Problem:
    """Return the problem, without a leaf penalty."""
    if isinstance(X, Tally):
        check_not_with_tally(client=client)
    check_client(client)
    # An address, or a number of processes, is a cluster that the search makes for itself.
    reader = client if hasattr(client, "submit") else None
    groups = named_groups(constraints)
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth, groups=groups, client=reader)
    problem: Problem
    if isinstance(X, Tally):
        check_not_with_tally(y=y, sample_weight=sample_weight)
        problem = TallyProblem.of_tally(X, max_depth, 0.0, constraints, objective)
    else:
        score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
        if not isinstance(score, LinearScore):
            raise InvalidInputError(
                f"objective: frontier does not support {score.name}, {score.kind}; accel_oct.solve does"
            )
        problem = Problem.of(score, max_depth, 0.0, constraints)
    for constraint in problem.coupling:
        if not constraint.traits.by_tables:
            raise InvalidInputError(
                f"constraints: frontier does not support {constraint.name!r}, which couples subtrees; "
                "accel_oct.solve does, for one leaf penalty at a time"
            )
    if not isinstance(problem, TallyProblem):
        check_traits(problem.constraints, problem.original, some_trees(problem.original, problem.max_depth))
    return problem


class FrontierRun(SearchRun):
    """The computation of a frontier.

    Attributes
    ----------
    table : FrontierTable
        Set by `compute`.
    """

    def __init__(self, problem: Problem, clock: Clock, progress: Sink | None) -> None:
        super().__init__(clock, progress)
        self.problem = problem
        self.table: FrontierTable
        self._most = min(2**problem.max_depth, problem.max_leaves or 2**problem.max_depth)

    def compute(self, compute: Callable[..., FrontierTable], threads: int, memory_limit: int) -> Status:
        """Compute the table; return the status of a run that is not proven."""
        steps = Steps()
        self.reporter.describe(lambda: (steps.doing, steps.figures))

        def work(stopper: Stopper) -> None:
            self.table = compute(
                threads=threads,
                memory_limit=memory_limit,
                deadline=self.clock.deadline,
                should_stop=stopper,
                progress=lambda _, scores, bounds: self._note(scores, bounds),
                steps=steps,
            )

        stopped = self.perform(work)
        self._note(self.table.scores, self.table.upper_bounds)
        return stopped or "time_limit"

    def _note(self, scores: FloatArray, bounds: FloatArray) -> None:
        """Report score and bound for the largest number of leaves, changed or not."""
        score, bound = float(scores[self._most]), float(bounds[self._most])
        if not self.note(self.problem.reported(score), self.problem.reported(bound)):
            self.reporter.report()

    @property
    def _end(self) -> int:
        """The largest number of leaves with an entry, plus one."""
        size = self.table.scores.size
        return min(size, (self.problem.max_leaves or size) + 1)

    @property
    def scores(self) -> FloatArray:
        """Scores in units of weight; position h - 1 belongs to at most h leaves."""
        return self.table.scores[1 : self._end]

    @property
    def bounds(self) -> FloatArray:
        """Bounds in units of weight, in the same order."""
        return self.table.upper_bounds[1 : self._end]

    @property
    def is_proven(self) -> bool:
        return np.array_equal(self.scores, self.bounds) and not self.is_infeasible

    @property
    def is_infeasible(self) -> bool:
        return bool(self.bounds[-1] == -np.inf)


def computed_frontier(
    problem: Problem,
    clock: Clock,
    threads: int,
    memory_limit: int,
    progress: Sink | None,
    compute: Callable[..., FrontierTable] | None = None,
) -> Frontier:
    """Compute the frontier of a problem with supported constraints."""
    if clock.limit is not None and not clock.limit >= 0:
        raise InvalidInputError(f"`time_limit` must be a number of seconds >= 0 or None, got {clock.limit!r}")
    usable = usable_threads(threads)
    run = FrontierRun(problem, clock, progress)
    table = compute or problem.frontier_table
    outcome = drive(run, [SinglePhase("frontier", lambda run: run.compute(table, usable, memory_limit))])
    return Frontier(run, outcome)


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
    progress: Sink | None = None,
) -> list[Result]:
    """Find the optimum for every leaf penalty, from one `frontier`.

    Parameters are those of `frontier`; `leaf_penalties` in any order.

    Returns
    -------
    list of Result
        One per penalty, in the given order; `seconds` includes the shared pass in each. If constraints allow no tree,
        the status is "infeasible", as in `accel_oct.solve`.
    """
    penalties = [float(penalty) for penalty in _checked_iterable(leaf_penalties)]
    began, threads = time.perf_counter(), as_solver(solver).n_threads
    problem = _problem(X, y, sample_weight, max_depth, constraints, objective)
    for penalty in penalties:
        problem.original.leaf_price(penalty)  # raises for invalid penalties before the computation
    table = computed_frontier(problem, Clock(began, time_limit), threads, memory_limit, progress)
    return [table.best(penalty) for penalty in penalties]


def _checked_iterable(leaf_penalties: Any) -> Any:
    try:
        return list(leaf_penalties)
    except TypeError:
        raise InvalidInputError(f"`leaf_penalties` must be several numbers, got {leaf_penalties!r}") from None


# ---------------------------------------------------------------- the result


NO_TREE = "no tree is allowed: a single leaf violates the constraints, and so does every larger tree"


@dataclass(frozen=True)
class FrontierPoint:
    """The best tree with at most some number of leaves.

    Attributes
    ----------
    max_leaves : int
    score : float
        Score of the objective, by default the share of the weight that is classified correctly; minus infinity if
        constraints allow no tree.
    bound : float
        Upper bound on the scores of all feasible trees with at most `max_leaves` leaves.
    found : DecisionTree or None
        May have fewer leaves, if more do not improve the score. None if constraints allow no tree.
    """

    max_leaves: int
    score: float
    bound: float
    found: DecisionTree | None

    @property
    def tree(self) -> DecisionTree:
        """The tree; raises `NoTreeError` if there is none, see `found`."""
        if self.found is None:
            raise NoTreeError(NO_TREE)
        return self.found

    @property
    def is_proven(self) -> bool:
        """Whether the score is proven to be optimal."""
        return self.bound == self.score


class Frontier:
    """The best score for every number of leaves up to ``2**max_depth``; made by `accel_oct.frontier`.

    Indexed by number of leaves, iterated from one leaf on; trees are built on demand. Under `MaxLeaves` it ends at the
    limit. Other supported constraints are about single leaves and paths: if they allow any tree they allow a single
    leaf, so either every point has a tree or none has. In the latter case scores and bounds are minus infinity, and
    `tree` raises `NoTreeError`.

    Attributes
    ----------
    scores, bounds : float arrays
        Position h - 1 belongs to at most h leaves.
    status : {"optimal", "infeasible", "time_limit", "interrupted"}
        "optimal" if every point is proven, "infeasible" if it is proven that no tree is feasible.
    seconds : float
    """

    def __init__(self, run: FrontierRun, outcome: RunOutcome) -> None:
        self._problem, self._table = run.problem, run.table
        self.seconds = outcome.seconds
        self.status: Status = outcome.status
        self.scores = run.problem.score.reported(run.scores)
        self.bounds = run.problem.score.reported(run.bounds)

    @property
    def max_depth(self) -> int:
        """The depth limit."""
        return self._table.max_depth

    @property
    def max_leaves(self) -> int:
        """The largest number of leaves with an entry."""
        return len(self.scores)

    def __len__(self) -> int:
        return self.max_leaves

    def __iter__(self) -> Iterator[FrontierPoint]:
        return (self[leaves] for leaves in range(1, self.max_leaves + 1))

    def __getitem__(self, max_leaves: int) -> FrontierPoint:
        if not 1 <= max_leaves <= self.max_leaves:
            raise IndexError(f"the frontier has entries for 1 to {self.max_leaves} leaves, not for {max_leaves}")
        position = max_leaves - 1
        return FrontierPoint(
            max_leaves, float(self.scores[position]), float(self.bounds[position]), self._found(max_leaves)
        )

    def tree(self, max_leaves: int) -> DecisionTree:
        """Return the best known tree with at most `max_leaves` leaves; raise `NoTreeError` if there is none."""
        found = self._found(max_leaves)
        if found is None:
            raise NoTreeError(NO_TREE)
        return found

    def _found(self, max_leaves: int) -> DecisionTree | None:
        if not 1 <= max_leaves <= self.max_leaves:
            raise ValueError(f"max_leaves must be between 1 and {self.max_leaves}, got {max_leaves}")
        return None if self.scores[max_leaves - 1] == -np.inf else self._table.tree(max_leaves)

    def result(self, max_leaves: int) -> Result:
        """Return the best known tree with at most `max_leaves` leaves as a result, without leaf penalties."""
        tree = self._found(max_leaves)
        score, bound = float(self.scores[max_leaves - 1]), float(self.bounds[max_leaves - 1])
        proven = score == bound
        status: Status = self.status if not proven else "optimal" if tree is not None else "infeasible"
        return self._result(tree, score, bound, status, self.seconds)

    def best(self, leaf_penalty: float) -> Result:
        """Return the optimum for a leaf penalty; the status is "infeasible" if constraints allow no tree."""
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
        outcome = RunOutcome(status, "the frontier", seconds, (HistoryRow(self.seconds, objective, bound),))
        return build_result(
            outcome,
            self._problem.original,
            tree,
            objective,
            bound,
            constraints=self._problem.constraints,
            stats={"frontier_seconds": self.seconds},
        )
