"""Accuracy against size: the best tree for every number of leaves in one pass, and every leaf penalty read off it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.constraints import Constraint, MaxLeaves, bind_all
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.mip.options import usable_threads
from accel_oct.solving.config import SubtreeBoundConfig
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.result import HistoryRow, Progress, Result, Status
from accel_oct.solving.search import Problem, constraint_reports
from accel_oct.subtree import FrontierTable, frontier_table
from accel_oct.support.arguments import checked_depth
from accel_oct.support.interrupts import run_interruptibly
from accel_oct.tree import DecisionTree

NO_TREE = "there is no tree: the constraints allow none, not even a single leaf"


@dataclass(frozen=True)
class FrontierPoint:
    """The best tree with at most some number of leaves.

    Attributes
    ----------
    max_leaves : int
    accuracy : float
        Share of the weight that the tree classifies correctly; minus infinity where constraints allow no tree.
    bound : float
        No tree with at most `max_leaves` leaves (that keeps every constraint) has a larger share.
    found : DecisionTree or None
        May have fewer leaves, when more do not help. None where constraints allow no tree.
    """

    max_leaves: int
    accuracy: float
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
        return self.bound == self.accuracy


class Frontier:
    """The best accuracy for every number of leaves up to ``2**max_depth``; made by `accel_oct.frontier`.

    Indexed by number of leaves, iterated from one leaf on; trees are rebuilt when they are asked for. Under `MaxLeaves`
    it ends at the limit. Other constraints that it takes are about single leaves and paths: where they allow any tree
    they allow a single leaf, so either every point has a tree or none has; then accuracies and bounds are minus
    infinity, and `tree` raises `NoTreeError`.

    Attributes
    ----------
    accuracies, bounds : float arrays
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
        self.accuracies = scores / problem.total_weight
        self.bounds = bounds / problem.total_weight
        self.status: Status = status
        if np.array_equal(scores, bounds):
            self.status = "optimal" if scores[-1] > -np.inf else "infeasible"

    @property
    def max_depth(self) -> int:
        return self._table.max_depth

    @property
    def max_leaves(self) -> int:
        return len(self.accuracies)

    def __len__(self) -> int:
        return self.max_leaves

    def __iter__(self) -> Iterator[FrontierPoint]:
        return (self[leaves] for leaves in range(1, self.max_leaves + 1))

    def __getitem__(self, max_leaves: int) -> FrontierPoint:
        if not 1 <= max_leaves <= self.max_leaves:
            raise IndexError(f"the frontier knows 1 to {self.max_leaves} leaves, not {max_leaves}")
        position = max_leaves - 1
        return FrontierPoint(
            max_leaves, float(self.accuracies[position]), float(self.bounds[position]), self._found(max_leaves)
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
        return None if self.accuracies[max_leaves - 1] == -np.inf else self._table.tree(max_leaves)

    def best(self, leaf_penalty: float) -> Result:
        """The optimum of a leaf penalty; status "infeasible", and no tree, where constraints allow none."""
        began = time.perf_counter()
        dataset, constraints = self._problem.original, self._problem.constraints
        price = dataset.leaf_price(leaf_penalty)
        value, bound, leaves = self._table.best(price, self.max_leaves)
        total = dataset.total_weight
        tree = self._found(leaves)
        objective, status, limit = -np.inf, self.status, bound / total
        if tree is not None:
            objective = tree.score(dataset) / total - float(leaf_penalty) * tree.n_leaves
            proven = bound <= value + PROOF_TOLERANCE * total
            status = "optimal" if proven else self.status
            limit = objective if proven else max(limit, objective)
        return Result(
            found=tree,
            objective=objective,
            bound=limit,
            status=status,
            seconds=self.seconds + time.perf_counter() - began,
            nodes=0,
            backend="none",
            stats={"decided_by": "the frontier", "frontier_seconds": self.seconds},
            history=(HistoryRow(self.seconds, objective, limit),),
            feature_names=dataset.feature_names,
            class_names=dataset.class_names,
            constraints=constraint_reports(constraints, tree),
        )


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
) -> Frontier:
    """The best tree for every number of leaves, each with its proof, in one pass.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`.
    max_depth : int
        Exact up to 4 on data of any usual size; deeper where time allows, else with valid bounds.
    time_limit : float, optional
        Seconds; what is not proven by then comes with a valid bound.
    threads : int
        At most as many as there are cores.
    memory_limit : int
        Bytes that the tables may take.
    progress : callable (HistoryRow), optional
        Called during deep searches and at the end, with accuracy and bound for the largest number of leaves.
    constraints : sequence of Constraint, optional
        Those that leave subtrees independent, such as `MinLeafWeight` and `ForbiddenPairs` on paths, and `MaxLeaves`,
        which ends the frontier.

    Returns
    -------
    Frontier

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used, or the constraint that `accel_oct.solve` can take and this cannot.
    """
    began = time.perf_counter()
    problem = _problem(BinaryDataset.of(X, y, sample_weight), max_depth, constraints)
    return _computed(problem, time_limit, threads, memory_limit, progress, began)


def _problem(dataset: BinaryDataset, max_depth: int, constraints: Sequence[Constraint] | None) -> Problem:
    """What is to be solved, for every leaf penalty."""
    problem = Problem(dataset, dataset.merged(), checked_depth(max_depth), 0.0, 0.0, bind_all(constraints, dataset))
    for constraint in problem.coupling:
        if not isinstance(constraint, MaxLeaves):
            raise InvalidInputError(
                f"constraints: the frontier cannot take {constraint.name!r}, which ties subtrees together; "
                "accel_oct.solve can, for one leaf penalty at a time"
            )
    return problem


def _computed(
    problem: Problem,
    time_limit: float | None,
    threads: int,
    memory_limit: int,
    progress: Progress | None,
    began: float,
) -> Frontier:
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInputError(f"`time_limit` must be a number of seconds >= 0 or None, got {time_limit!r}")
    usable = usable_threads(threads)
    interrupted = threading.Event()
    data = problem.table_data
    tables: list[FrontierTable] = []
    total = problem.total_weight
    most = min(2**problem.max_depth, problem.max_leaves or 2**problem.max_depth)

    def report(seconds: float, scores: Any, bounds: Any) -> None:
        if progress is not None:
            used = time.perf_counter() - began
            progress(HistoryRow(used, float(scores[most]) / total, float(bounds[most]) / total))

    def work() -> None:
        used = time.perf_counter() - began
        deadline = None if time_limit is None else time.monotonic() + max(time_limit - used, 0.0)
        tables.append(
            frontier_table(
                data.X,
                data.y,
                data.weights,
                data.n_classes,
                problem.max_depth,
                rules=problem.rules,
                threads=usable,
                memory_limit=memory_limit,
                deadline=deadline,
                should_stop=interrupted.is_set,
                progress=report if progress is not None else None,
            )
        )

    run_interruptibly(work, interrupted.set)
    report(0.0, tables[0].scores, tables[0].upper_bounds)
    status: Status = "interrupted" if interrupted.is_set() else "time_limit"
    return Frontier(problem, tables[0], status, time.perf_counter() - began)


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
    dataset = BinaryDataset.of(X, y, sample_weight)
    problem = _problem(dataset, max_depth, constraints)
    for penalty in penalties:
        dataset.leaf_price(penalty)  # refuses bad ones before any work is done
    table = _computed(problem, time_limit, threads, memory_limit, progress, began)
    return [table.best(penalty) for penalty in penalties]


def _checked_iterable(leaf_penalties: Any) -> Any:
    try:
        return list(leaf_penalties)
    except TypeError:
        raise InvalidInputError(f"`leaf_penalties` must be several numbers, got {leaf_penalties!r}") from None
