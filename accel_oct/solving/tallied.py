"""Problems on a tally: what is to be solved where there are no rows, but the weight of every set of columns by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import Constraint, LinearLimit
from accel_oct.constraints.tallied import PARTS, bind_to_tally, tallied_trees
from accel_oct.data import Tally
from accel_oct.data.reads import fits_tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact import FrontierTable
from accel_oct.exact.frontier import table_of
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.samples import tallied_data
from accel_oct.formulation import Incumbent
from accel_oct.objectives import LinearScore, Objective, RatioScore, as_objective
from accel_oct.solving.problem import Problem
from accel_oct.solving.proof import BoundRounding
from accel_oct.support.arguments import checked_depth
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

__all__ = ["TallyProblem", "checked_tally", "refuse_beside_tally"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TallyProblem(Problem):
    """What is to be solved on a tally; made by `of_tally`.

    The data sets of a `Problem` hold one row per cell here: good for totals, norms and leaf prices, not for trees.

    Attributes
    ----------
    trees : TalliedTrees
        The tally.
    earned : float array (n_cells, n_classes)
        What a unit of a cell earns where a class is predicted.
    """

    trees: TalliedTrees = field(kw_only=True)
    earned: FloatArray = field(kw_only=True)

    @classmethod
    def of_tally(
        cls,
        tally: Tally,
        max_depth: int,
        leaf_penalty: float,
        constraints: Sequence[Constraint] | None,
        objective: Objective | str | None,
    ) -> TallyProblem:
        """From what a user gave, checked here.

        Raises
        ------
        InvalidInputError
            Naming the argument that cannot be used, or what asks for more than a tally knows.
        """
        depth = checked_tally(tally, max_depth)
        trees = tallied_trees(tally)
        score = _bound(as_objective(objective), trees)
        return cls(
            original=score.dataset,
            score=score,
            dataset=score.rows,
            max_depth=depth,
            leaf_penalty=float(leaf_penalty),
            leaf_price=score.rows.leaf_price(leaf_penalty, score.norm),
            constraints=bind_to_tally(constraints, trees),
            trees=trees,
            earned=_earned(score, tally),
        )

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        return self.reported(self.earned_by(tree))

    def earned_by(self, tree: DecisionTree) -> float:
        """The same in units of weight, from whole counts: rounded once."""
        counts, labels = self.trees.counts(tree), tree.label[tree.leaves - 1]
        if self.score.amounts is None:
            return self.trees.score(tree)
        total = Fraction(0)
        for cell, every in enumerate(self.trees.tally.counts[0][:, 0].tolist()):
            for label in set(labels.tolist()) if every else ():
                share = Fraction(int(counts[labels == label, cell].sum()), every)
                total += Fraction(float(self.score.amounts[cell, label])) * share
        return float(total)

    def frontier_table(self, compute: Callable[..., FrontierTable] | None = None, **options: Any) -> FrontierTable:
        if compute is not None:
            raise InvalidInputError("checkpoint must be None for a tally, whose frontier is a matter of seconds")
        grid_bits = self.score.rows.grid_bits
        data = tallied_data(self.trees.tally, self.earned, self.original.n_classes, self.rules, grid_bits)
        return table_of(data, self.max_depth, **options)

    def priced(self, limits: Sequence[LinearLimit]) -> CellProblem:
        return CellProblem.of(self.trees, self.earned, limits, self.leaf_price, self.max_depth, self.rules)

    def rounding(self, scale: float = 1.0) -> BoundRounding:
        """Values are whole where units earn whole numbers; whole cells may do so by chance."""
        integral = bool(np.all(self.earned == np.floor(self.earned)))
        return BoundRounding(self.total_weight, self.leaf_price, self.most_leaves, integral, scale)

    def incumbent(self) -> Incumbent:
        return TallyIncumbent(self)

    @property
    def most_leaves(self) -> int:
        return int(2**self.max_depth)


class TallyIncumbent(Incumbent):
    """The best tree known, by what the tally says of its leaves."""

    def __init__(self, problem: TallyProblem) -> None:
        super().__init__(problem.dataset, problem.leaf_price, problem.constraints)
        self._problem = problem

    def _scored(self, tree: DecisionTree) -> float:
        return self._problem.earned_by(tree)


def checked_tally(tally: Tally, max_depth: Any) -> int:
    """The depth of trees that can be found on a tally; an error where it is too much, or there is nothing."""
    depth = checked_depth(max_depth)
    if depth > tally.depth:
        raise InvalidInputError(
            f"max_depth: the tally was made for trees of depth {tally.depth}, and max_depth is {depth}"
        )
    if not tally.n_features:
        raise InvalidInputError("X: the tally has no columns")
    if not tally.total:
        raise InvalidInputError("X: the tally holds no samples, or none of any weight")
    return depth


def refuse_beside_tally(**arguments: Any) -> None:
    """What makes no sense beside a tally, or is not there yet: an error names it."""
    for name, value in arguments.items():
        if value is not None and not (name == "objective" and as_objective(value).is_accuracy):
            reason = (
                "which holds it already" if name in ("y", "sample_weight") else "which is solved for accuracy alone"
            )
            if name == "components":
                reason = "for which no solver runs"
            if name == "client":
                reason = "which is searched by this process in seconds"
            raise InvalidInputError(f"{name} must be None when X is a Tally, {reason}")


def _bound(objective: Objective, trees: TalliedTrees) -> LinearScore:
    """A sum over cells, or an error."""
    objective = objective.on_tally()
    score = objective.bind(trees.cells())
    if isinstance(score, RatioScore):
        raise InvalidInputError(f"objective: {score.name}, a ratio, cannot be used on a tally, only on rows")
    again = objective.bind(trees.cells(PARTS)) if fits_tally(score.reads) else None
    if not isinstance(again, LinearScore) or not _same_by_cell(score, again):
        raise InvalidInputError(
            f"objective: {score.name} asks for more than a tally knows: classes, groups and weights"
        )
    return score


def _same_by_cell(score: LinearScore, again: LinearScore) -> bool:
    """Whether an objective says of cells in two parts, see `PARTS`, what it says of whole ones."""
    if (score.amounts is None) != (again.amounts is None) or not np.isclose(score.offset, again.offset, rtol=1e-9):
        return False
    if score.amounts is None or again.amounts is None:
        return bool(np.isclose(score.norm, again.norm, rtol=1e-9))
    # Scores may be scaled in another way where weights are not whole.
    parts = again.amounts.reshape(len(score.amounts), len(PARTS), -1) / again.norm
    expected = score.amounts[:, None, :] * np.array(PARTS)[:, None] / score.norm
    return bool(np.allclose(parts, expected, rtol=1e-9, atol=1e-12 * float(expected.max())))


def _earned(score: LinearScore, tally: Tally) -> FloatArray:
    """What a unit of each cell earns where a class is predicted."""
    unit = 2.0**tally.unit
    if score.amounts is None:
        return np.eye(tally.n_classes)[score.dataset.y] * unit
    weights = score.dataset.weights[:, None]
    return np.divide(score.amounts, weights, out=np.zeros_like(score.amounts), where=weights > 0) * unit
