"""Solving on a tally under constraints: by prices, as on rows, from counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from accel_oct.constraints import Constraint, LinearLimit
from accel_oct.constraints.tallied import bind_to_tally, tallied_trees
from accel_oct.data import Tally
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Incumbent
from accel_oct.mip import SolveOptions
from accel_oct.objectives import Accuracy, as_objective
from accel_oct.pricing import CellProblem
from accel_oct.pricing.cell_values import MOST_DEPTH
from accel_oct.solving.config import Config
from accel_oct.solving.phases import PriceAndClose, SingleLeaf, run_phases
from accel_oct.solving.problem import Problem, checked_trees
from accel_oct.solving.result import Progress, Result, Status
from accel_oct.solving.search import Clock, Search
from accel_oct.subtree import engine
from accel_oct.support.arguments import checked_depth
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

__all__ = ["TallyProblem", "checked_tally", "refuse_beside_tally", "solve_cells"]


class TallyIncumbent(Incumbent):
    """The best tree known, by what the tally says of its leaves."""

    def __init__(self, problem: TallyProblem) -> None:
        super().__init__(problem.dataset, problem.leaf_price, problem.constraints)
        self._trees = problem.trees

    def _scored(self, tree: DecisionTree) -> float:
        return self._trees.score(tree)


@dataclass(frozen=True)
class TallyProblem(Problem):
    """What is to be solved on a tally; the data set has a row per cell, and no columns to tell them apart."""

    trees: TalliedTrees = field(kw_only=True)

    @classmethod
    def of_tally(
        cls, tally: Tally, max_depth: int, leaf_penalty: float, constraints: Sequence[Constraint] | None
    ) -> TallyProblem:
        """From what a user gave, checked here."""
        depth = checked_tally(tally, max_depth)
        if depth > MOST_DEPTH:
            raise InvalidInputError(f"max_depth must be at most {MOST_DEPTH} under constraints on a tally, got {depth}")
        trees = tallied_trees(tally)
        cells = trees.cells()
        return cls(
            original=cells,
            score=Accuracy().bind(cells),
            dataset=cells,
            max_depth=depth,
            leaf_penalty=float(leaf_penalty),
            leaf_price=cells.leaf_price(leaf_penalty),
            constraints=bind_to_tally(constraints, trees),
            trees=trees,
        )

    def priced(self, limits: Sequence[LinearLimit]) -> CellProblem:
        return CellProblem.of(self.trees, limits, self.leaf_price, self.max_depth, self.rules)

    def incumbent(self) -> Incumbent:
        return TallyIncumbent(self)

    @property
    def most_leaves(self) -> int:
        return int(2**self.max_depth)


class CellPrices(PriceAndClose):
    """Prices on the cells of a tally, whatever the constraints: they were checked when they were bound."""

    def applies(self, search: Search) -> bool:
        return True


class NothingMore:
    """On rows a solver would go on; a tally has nothing to give to it."""

    name = "nothing more"

    def applies(self, search: Search) -> bool:
        return True

    def run(self, search: Search) -> Status | None:
        return "stopped"


def checked_tally(tally: Tally, max_depth: Any) -> int:
    """The depth of the trees, for which the tally must have been made."""
    depth = checked_depth(max_depth)
    if depth > tally.depth:
        raise InvalidInputError(
            f"max_depth is {depth}, and the tally was made for depth {tally.depth}: make it with depth={depth}"
        )
    if tally.total == 0:
        raise InvalidInputError("the tally has no samples of positive weight")
    return depth


def refuse_beside_tally(**arguments: Any) -> None:
    """What makes no sense beside a tally, or is not there yet: an error names it."""
    for name, value in arguments.items():
        if value is not None and not (name == "objective" and isinstance(as_objective(value), Accuracy)):
            reason = (
                "which holds it already" if name in ("y", "sample_weight") else "which is solved for accuracy alone"
            )
            if name == "components":
                reason = "for which no solver runs"
            raise InvalidInputError(f"{name} must be None when X is a Tally, {reason}")


def solve_cells(
    tally: Tally,
    max_depth: int,
    leaf_penalty: float,
    constraints: Sequence[Constraint] | None,
    options: SolveOptions,
    config: Config,
    clock: Clock,
    progress: Progress | None = None,
    start: Sequence[DecisionTree] | None = None,
) -> Result:
    """The best tree that keeps constraints on classes, groups, weights, leaves and paths, with its proof.

    The status is "stopped" where memory does not suffice to go through the trees that prices leave open; the bound is
    valid then.
    """
    problem = TallyProblem.of_tally(tally, max_depth, leaf_penalty, constraints)
    if not engine.numba_available():
        raise InvalidInputError("constraints on a tally need the package numba, allowed to compile")
    search = Search(problem, config, options, clock, progress)
    for tree in checked_trees(start, problem):
        search.incumbent.offer(tree.with_max_depth(problem.max_depth))
    search.record()
    return run_phases(search, [SingleLeaf(), CellPrices(), NothingMore()])
