"""What is to be solved: data, objective, depth, leaf price and constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import BoundConstraint, Constraint, LinearLimit, bind_all
from accel_oct.constraints.base import local_rules
from accel_oct.data import BinaryDataset, ScoredDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import FrontierTable, LocalRules, frontier_table
from accel_oct.exact.limited import Limited
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.formulation import Incumbent
from accel_oct.objectives import LinearScore
from accel_oct.solving.proof import BoundRounding
from accel_oct.support.arguments import checked_depth
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class Problem:
    """What is to be solved.

    Attributes
    ----------
    original : BinaryDataset
        As the user gave it; constraints and results speak of it.
    score : LinearScore
        What the tree is to be good at.
    dataset : BinaryDataset
        What is computed on, the rows of `score`: identical ones may be merged.
    max_depth : int
        Of the trees that are searched.
    leaf_penalty, leaf_price : float
        As given, and in units of weight.
    constraints : tuple of BoundConstraint
    claimed_depth : int or None
        The depth that was asked for, where `max_depth` is less and loses nothing (`within_data`).
    """

    original: BinaryDataset
    score: LinearScore
    dataset: BinaryDataset
    max_depth: int
    leaf_penalty: float
    leaf_price: float
    constraints: tuple[BoundConstraint, ...] = ()
    claimed_depth: int | None = None

    @classmethod
    def of(
        cls,
        score: LinearScore,
        max_depth: int,
        leaf_penalty: float,
        constraints: Sequence[Constraint] | None,
        merge: bool = True,
    ) -> Problem:
        """From what a user gave, checked here."""
        original, rows = score.dataset, score.rows
        leaf_price = rows.leaf_price(leaf_penalty, score.norm)
        return cls(
            original=original,
            score=score,
            dataset=rows.merged() if merge else rows,
            max_depth=checked_depth(max_depth),
            leaf_penalty=float(leaf_penalty),
            leaf_price=leaf_price,
            constraints=bind_all(constraints, original),
        )

    def within_data(self) -> Problem:
        """Return the problem at the least depth at which some tree is as good as any deeper one.

        A split that separates no samples can be taken out: predictions stay, and leaves and paths become fewer. What is
        left asks no feature twice on a path, and every split on it separates one of the distinct rows at least.
        """
        depth = min(self.max_depth, self.original.n_features)
        if _distinct(self.original.X[:_FEW_ROWS]) <= depth:
            depth = min(depth, _distinct(self.original.X) - 1)
        if depth >= self.max_depth or not self._survives_pruning:
            return self
        return replace(self, max_depth=depth, claimed_depth=self.max_depth)

    @property
    def total_weight(self) -> float:
        """Of all rows that earn something: no tree scores more."""
        return self.score.rows.total_weight

    def reported(self, value: float) -> float:
        """A value in units of weight as users know it."""
        return self.score.reported(value)

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        return self.score.value(tree)

    def frontier_table(self, compute: Callable[..., FrontierTable] = frontier_table, **options: Any) -> FrontierTable:
        """The best score for every number of leaves; `compute` and options as `accel_oct.exact.frontier_table`."""
        data = self.table_data
        return compute(data.X, data.y, data.weights, data.n_classes, self.max_depth, rules=self.table_rules, **options)

    @cached_property
    def rules(self) -> LocalRules | None:
        """What the constraints say of single leaves and paths, in rows of `original`; the tables know it."""
        return local_rules(self.constraints)

    @property
    def table_data(self) -> BinaryDataset:
        """What tables are made of: rows with their own masses where there are rules."""
        return self.dataset if self.rules is None else self.score.rows

    @cached_property
    def table_rules(self) -> LocalRules | None:
        """The rules in rows of `table_data`: what is counted once per sample belongs to its first row."""
        rules, rows = self.rules, self.score.rows
        if rules is None or not isinstance(rows, ScoredDataset):
            return rules
        return LocalRules(rules.masses[:, rows.source] * rows.first, rules.least, rules.apart)

    def limited(self, limits: Sequence[LinearLimit]) -> LimitedProblem:
        """The problem under some limits, for prices."""
        return LimitedProblem.of(
            self.original, limits, self.leaf_price, self.max_depth, self.rules, scored=self.score.rows
        )

    def priced(self, limits: Sequence[LinearLimit]) -> Limited:
        """What prices are found for."""
        return self.limited(limits)

    def incumbent(self) -> Incumbent:
        """A new one: no tree is known."""
        return Incumbent(self.dataset, self.leaf_price, self.constraints)

    def rounding(self, scale: float = 1.0) -> BoundRounding:
        """How a solver's bound, or one from prices, becomes one on the values that trees can have."""
        integral = self.score.rows.integral
        return BoundRounding(self.total_weight, self.leaf_price, self.most_leaves, integral, scale)

    @cached_property
    def coupling(self) -> tuple[BoundConstraint, ...]:
        """The constraints that tie subtrees together."""
        return tuple(constraint for constraint in self.constraints if constraint.traits.local is None)

    @property
    def subtrees_are_independent(self) -> bool:
        """Whether the best subtree for some samples and a path does not depend on the rest of the tree."""
        return not self.coupling

    @property
    def max_leaves(self) -> int | None:
        """The limit on leaves when limits on leaves, and local rules, are all the constraints there are."""
        limits = [constraint.traits.leaves for constraint in self.coupling]
        return min((limit for limit in limits if limit is not None), default=None) if None not in limits else None

    @property
    def _survives_pruning(self) -> bool:
        return all(constraint.traits.survives_pruning for constraint in self.constraints)

    @property
    def most_leaves(self) -> int:
        """A number of leaves that some optimal tree does not exceed."""
        room: int = 2**self.max_depth
        if not self._survives_pruning:
            return room
        # Some optimum has no empty leaf: without it a split goes, other leaves keep what they have and paths shrink.
        return min(room, self.original.n_samples)


#: Rows that are looked at first: hardly any table has fewer distinct ones than a tree has levels.
_FEW_ROWS = 1000


def _distinct(X: NDArray[np.bool_]) -> int:
    """Number of different rows."""
    return len(np.unique(np.packbits(X, axis=1), axis=0)) if X.shape[1] else 1


def checked_trees(trees: Any, problem: Problem) -> list[DecisionTree]:
    """Trees that a user gave to begin with; an error says which one does not fit the data."""
    if trees is None:
        return []
    if isinstance(trees, DecisionTree) or not isinstance(trees, Sequence):
        raise InvalidInputError(f"start must be a list of trees, got {shown(trees)}")
    for place, tree in enumerate(trees):
        if not isinstance(tree, DecisionTree):
            raise InvalidInputError(f"start[{place}] must be a DecisionTree, got {shown(tree)}")
        if tree.depth > problem.max_depth:
            raise InvalidInputError(f"start[{place}] has depth {tree.depth}, more than max_depth {problem.max_depth}")
        if tree.feature.max() >= problem.original.n_features or tree.label.max() >= problem.original.n_classes:
            raise InvalidInputError(f"start[{place}] names a feature or a class that the data do not have")
    return list(trees)
