"""The best tree for every number of leaves, as a value."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accel_oct.errors import NoTreeError
from accel_oct.exact import FrontierTable
from accel_oct.solving.problem import Problem
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.result import HistoryRow, Result, Status
from accel_oct.solving.search import constraint_reports
from accel_oct.tree import DecisionTree

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
