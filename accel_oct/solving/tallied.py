"""Problems on a tally: what is to be solved where there are no rows, but the weight of every set of columns by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import BoundConstraint, Constraint, MaxLeaves
from accel_oct.constraints.tallied import bind_to_tally, tallied_trees
from accel_oct.data import Tally
from accel_oct.data.dataset import round_to_grid
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import InstanceCosts, LinearScore, Objective, RatioScore, Score, as_objective
from accel_oct.solving.problem import Problem
from accel_oct.subtree import FrontierTable, table_of, tallied_data
from accel_oct.support.arguments import checked_depth
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

__all__ = ["TallyProblem", "check_alone"]

FloatArray = NDArray[np.float64]

_PARTS = (0.25, 0.75)
"""A cell in two rows: who knows nothing but cells and weights says the same of both together."""

_FEW_UNITS = 2**20
"""Up to so many, what a unit earns is rounded as it would be on rows: results are equal to the last bit. With more
the errors would add up, so what sets of columns earn is rounded instead."""


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
        depth = checked_depth(max_depth)
        if depth > tally.depth:
            raise InvalidInputError(
                f"max_depth: the tally was made for trees of depth {tally.depth}, and max_depth is {depth}"
            )
        if not tally.n_features:
            raise InvalidInputError("X: the tally has no columns")
        if not tally.total:
            raise InvalidInputError("X: the tally holds no samples, or none of any weight")
        trees = tallied_trees(tally)
        score = _bound(as_objective(objective), trees)
        bound: list[BoundConstraint] = list(bind_to_tally(constraints, trees))
        for place, constraint in enumerate(constraints or ()):
            if isinstance(constraint, MaxLeaves):  # knows no data
                bound[place] = constraint
        return cls(
            original=score.dataset,
            score=score,
            dataset=score.rows,
            max_depth=depth,
            leaf_penalty=float(leaf_penalty),
            leaf_price=score.rows.leaf_price(leaf_penalty, score.norm),
            constraints=tuple(bound),
            trees=trees,
            earned=_earned(score, tally),
        )

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        rewards = self.earned[:, tree.label[tree.leaves - 1]].T
        return self.reported(float((rewards * self.trees.counts(tree)).sum()))

    def frontier_table(self, **options: Any) -> FrontierTable:
        grid_bits = self.score.rows.grid_bits
        data = tallied_data(self.trees.tally, self.earned, self.original.n_classes, self.rules, grid_bits)
        return table_of(data, self.max_depth, **options)


def check_alone(y: Any, sample_weight: Any) -> None:
    """A tally in the place of X holds all there is."""
    for argument, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise InvalidInputError(f"{argument} must be None when X is a Tally, which holds it already")


def _bound(objective: Objective, trees: TalliedTrees) -> LinearScore:
    """A sum over cells, or an error."""
    if isinstance(objective, InstanceCosts):
        raise InvalidInputError("InstanceCosts: costs of samples cannot be told from a tally; CostMatrix can be used")
    score = objective.bind(trees.cells())
    if isinstance(score, RatioScore):
        raise InvalidInputError(f"objective: {score.name}, a ratio, cannot be used on a tally, only on rows")
    try:
        again: Score | None = objective.bind(trees.cells(_PARTS))
    except InvalidInputError:
        again = None
    if not isinstance(again, LinearScore) or not _says_the_same(score, again):
        raise InvalidInputError(
            f"objective: {score.name} asks for more than a tally knows: classes, groups and weights"
        )
    return score


def _says_the_same(score: LinearScore, again: LinearScore) -> bool:
    """Whether an objective says of cells in two parts what it says of whole ones."""
    if (score.amounts is None) != (again.amounts is None) or not np.isclose(score.norm, again.norm, rtol=1e-9):
        return False
    if score.amounts is None or again.amounts is None:
        return True
    parts = again.amounts.reshape(len(score.amounts), len(_PARTS), -1)
    expected = score.amounts[:, None, :] * np.array(_PARTS)[:, None]
    return bool(np.allclose(parts, expected, rtol=1e-9, atol=1e-12 * float(expected.max())))


def _earned(score: LinearScore, tally: Tally) -> FloatArray:
    """What a unit of each cell earns where a class is predicted."""
    unit = 2.0**tally.unit
    if score.amounts is None:
        return np.eye(tally.n_classes)[score.dataset.y] * unit
    weights = score.dataset.weights[:, None]
    earned = np.divide(score.amounts, weights, out=np.zeros_like(score.amounts), where=weights > 0) * unit
    return round_to_grid(earned, score.rows.grid_bits) if tally.total <= _FEW_UNITS else earned
