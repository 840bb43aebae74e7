"""Problems: data, objective, depth, leaf price and constraints, on rows or on a tally."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.certificates import FeatureProblem
from accel_oct.constraints import BoundConstraint, Constraint, LinearLimit, bind_all
from accel_oct.constraints.base import local_rules
from accel_oct.constraints.tallied import PARTS, bind_to_tally, tallied_trees
from accel_oct.data import BinaryDataset, ScoredDataset, Tally
from accel_oct.data.dataset import equal_rows
from accel_oct.data.reads import fits_tally
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import FrontierTable, LocalRules, frontier_table
from accel_oct.exact.limited import Limited
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.samples import reduce_data, tallied_data
from accel_oct.formulation import Incumbent
from accel_oct.objectives import LinearScore, Objective, StrictScore, as_objective
from accel_oct.support.arguments import checked_depth
from accel_oct.support.arrays import BoolArray, FloatArray
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

#: Error of a MIP solver's bound, in units of weight and relative to the total weight. Solvers have row tolerances of
#: 1e-7 to 1e-6.
SOLVER_NOISE = 1e-6
SOLVER_NOISE_RELATIVE = 1e-9

#: Tolerance of "optimal": no tree beats the returned one by more than this in the normalised objective. Two trees with
#: equal values for the decimal leaf penalty differ by less in binary arithmetic.
PROOF_TOLERANCE = 1e-9


class BoundRounding:
    """Turns a solver's bound into a valid one on the lattice of values that trees can have.

    With integral weights the value of every tree is an integer minus `leaf_price` times its number of leaves, so a
    bound may be lowered to the largest such number that is not above it; with real weights only the noise is added.

    Parameters
    ----------
    total_weight, leaf_price : float
        In units of weight.
    max_leaves : int
        An upper bound on the leaves of some optimal tree.
    integral : bool
        Whether all weights are integers.
    scale : float
        The solver's objective is the value times this.

    Attributes
    ----------
    slack : float
        A tree is proven when a valid bound exceeds its value by no more than this: `PROOF_TOLERANCE`, and more where
        values lie closer together than a solver can tell.
    """

    def __init__(
        self, total_weight: float, leaf_price: float, max_leaves: int, integral: bool, scale: float = 1.0
    ) -> None:
        self.total_weight = total_weight
        self.leaf_price = leaf_price
        self.max_leaves = max_leaves
        self.integral = integral
        self.scale = scale
        self.noise = max(SOLVER_NOISE / scale, SOLVER_NOISE_RELATIVE * total_weight)
        self.slack = PROOF_TOLERANCE * total_weight
        if not integral or self.noise > 0.1:
            # No lattice, or a unit below the precision of the total: every theta may be off by a row's tolerance.
            self.slack += 2 * self.noise + SOLVER_NOISE * total_weight
        elif 0 < leaf_price < 10 * self.noise:
            # Trees that differ only in their number of leaves are closer together than the noise.
            self.slack += 2 * self.noise

    @property
    def trivial(self) -> float:
        """The bound without a solver: one leaf that is always right."""
        return self.total_weight - self.leaf_price

    def next_above(self, value: float) -> float:
        """Return a lower bound on the value of every tree that beats `value` by more than the tolerance."""
        if not self.integral or not np.isfinite(value):
            return value
        paid = self.leaf_price * np.arange(1, self.max_leaves + 1)
        tolerance = PROOF_TOLERANCE * self.total_weight
        return float(np.min(np.floor(value + tolerance + paid) + 1.0 - paid)) - self.noise

    def valid(self, solver_bound: float) -> float:
        """Return a valid bound on the value of every tree from the bound that a solver reports, possibly infinite."""
        bound = solver_bound / self.scale
        if not bound < self.trivial:
            return self.trivial
        if not self.integral:
            return min(bound + self.noise, self.trivial)
        paid = self.leaf_price * np.arange(1, self.max_leaves + 1)
        return float(np.max(np.floor(bound + self.noise + paid) - paid))


@dataclass(frozen=True)
class Problem:
    """A problem on rows.

    Attributes
    ----------
    original : BinaryDataset
        As the user gave it; constraints and results refer to it.
    score : LinearScore or StrictScore
        The objective.
    dataset : BinaryDataset
        The rows of `score` that are computed on; identical ones may be merged.
    max_depth : int
        Of the trees that are searched.
    leaf_penalty, leaf_price : float
        As given, and in units of weight.
    claimed_depth : int or None
        The depth that was asked for, where `max_depth` is less and loses nothing (`within_data`).
    """

    original: BinaryDataset
    score: LinearScore | StrictScore
    dataset: BinaryDataset
    max_depth: int
    leaf_penalty: float
    leaf_price: float
    constraints: tuple[BoundConstraint, ...] = ()
    claimed_depth: int | None = None

    @classmethod
    def of(
        cls,
        score: LinearScore | StrictScore,
        max_depth: int,
        leaf_penalty: float,
        constraints: Sequence[Constraint] | None,
        merge: bool = True,
    ) -> Problem:
        """Make a problem from the arguments of a user, and check them."""
        original, rows = score.dataset, score.rows
        leaf_price = rows.leaf_price(leaf_penalty, score.norm)
        return cls(
            original=original,
            score=score,
            dataset=rows.merged() if merge and isinstance(score, LinearScore) else rows,
            max_depth=checked_depth(max_depth),
            leaf_penalty=float(leaf_penalty),
            leaf_price=leaf_price,
            constraints=bind_all(constraints, original),
        )

    def within_data(self) -> Problem:
        """Return the problem at the least depth at which some tree is as good as any deeper one.

        Without a split that separates no samples a tree has the same predictions, with fewer leaves and shorter paths.
        Such a tree has no feature twice on a path, and every split separates at least one of the distinct rows.
        """
        depth = min(self.max_depth, self.original.n_features)
        if _distinct(self.original.X[:_FEW_ROWS]) <= depth:
            depth = min(depth, _distinct(self.original.X) - 1)
        if depth >= self.max_depth or not self._survives_pruning:
            return self
        return replace(self, max_depth=depth, claimed_depth=self.max_depth)

    @property
    def is_strict(self) -> bool:
        """Whether the objective is a `StrictScore`: tables and lists then have bounds, and no values."""
        return isinstance(self.score, StrictScore)

    @property
    def total_weight(self) -> float:
        """The total weight of the rows of the score: no tree scores more."""
        return self.score.rows.total_weight

    def reported(self, value: float) -> float:
        """Convert a value from units of weight to units of the objective."""
        return self.score.reported(value)

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        return self.score.value(tree)

    def frontier_table(self, compute: Callable[..., FrontierTable] = frontier_table, **options: Any) -> FrontierTable:
        """Compute the best score for every number of leaves, by a function like `accel_oct.exact.frontier_table`."""
        data = self.table_data
        samples = reduce_data(data.X, data.y, data.weights, data.n_classes, self.table_rules)
        return compute(samples, self.max_depth, **options)

    def certified(self, depth: int) -> FeatureProblem | None:
        """Return the problem as a certificate states it; None if there are no rows to state."""
        plain = isinstance(self.score, LinearScore) and self.score.amounts is None
        name = "accuracy" if plain else self.score.name
        return FeatureProblem(self.original, depth, self.leaf_penalty, self.constraints, name)

    @cached_property
    def rules(self) -> LocalRules | None:
        """The local rules of all constraints, in rows of `original`; None where the rows of the score are others."""
        return None if self.is_strict else local_rules(self.constraints)

    @property
    def table_data(self) -> BinaryDataset:
        """The rows for tables: not merged where there are local rules, which have a mass per row."""
        return self.dataset if self.rules is None else self.score.rows

    @cached_property
    def table_rules(self) -> LocalRules | None:
        """The local rules in rows of `table_data`: the mass of a sample belongs to its first row."""
        rules, rows = self.rules, self.score.rows
        if rules is None or not isinstance(rows, ScoredDataset):
            return rules
        return LocalRules(rules.masses[:, rows.source] * rows.first, rules.least, rules.apart)

    def limited(self, limits: Sequence[LinearLimit]) -> LimitedProblem:
        """Return the problem under some limits, on points."""
        return LimitedProblem.of(
            self.original, limits, self.leaf_price, self.max_depth, self.rules, scored=self.score.rows
        )

    def priced(self, limits: Sequence[LinearLimit]) -> Limited:
        """Return the problem under some limits that prices are found for."""
        return self.limited(limits)

    def incumbent(self) -> Incumbent:
        """Return a new incumbent, without a tree."""
        counted = self.score.checked_counted if isinstance(self.score, StrictScore) else None
        return Incumbent(self.dataset, self.leaf_price, self.constraints, counted)

    def rounding(self, scale: float = 1.0) -> BoundRounding:
        """Return the rounding of a bound, from a solver or prices, to the values that trees can have."""
        integral = self.score.rows.integral
        return BoundRounding(self.total_weight, self.leaf_price, self.most_leaves, integral, scale)

    @cached_property
    def coupling(self) -> tuple[BoundConstraint, ...]:
        """The constraints that make subtrees depend on each other."""
        return tuple(constraint for constraint in self.constraints if constraint.traits.local is None)

    @property
    def subtrees_are_independent(self) -> bool:
        """Whether the best subtree for some samples and a path is independent of the rest of the tree."""
        return not self.coupling and not self.is_strict

    @property
    def max_leaves(self) -> int | None:
        """The limit on leaves, where all constraints are such limits or local rules; else None."""
        limits = [constraint.traits.leaves for constraint in self.coupling]
        return min((limit for limit in limits if limit is not None), default=None) if None not in limits else None

    @property
    def _survives_pruning(self) -> bool:
        return not self.is_strict and all(constraint.traits.survives_pruning for constraint in self.constraints)

    @property
    def most_leaves(self) -> int:
        """A number of leaves that some optimal tree does not exceed."""
        room: int = 2**self.max_depth
        if not self._survives_pruning:
            return room
        # Some optimum has no empty leaf: removing one removes a split, and changes no other leaf.
        return min(room, self.original.n_samples)


#: Number of rows that are counted first: few tables have fewer distinct rows than a tree has levels.
_FEW_ROWS = 1000


def _distinct(X: BoolArray) -> int:
    """Number of different rows."""
    return len(equal_rows(X).starts)


def checked_trees(trees: Any, problem: Problem) -> list[DecisionTree]:
    """Return the trees to begin with; the error says which one does not fit the data."""
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


# ---------------------------------------------------------------- problems on a tally


@dataclass(frozen=True)
class TallyProblem(Problem):
    """A problem on a tally; made by `of_tally`.

    The data sets of a `Problem` hold one row per cell here: good for totals, norms and leaf prices, not for trees.

    Attributes
    ----------
    trees : TalliedTrees
        The tally.
    earned : float array (n_cells, n_classes)
        Reward of a unit of each cell by predicted class.
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
        """Make a problem from the arguments of a user, and check them.

        Raises
        ------
        InvalidInputError
            Naming the argument that cannot be used, or an input that reads more than a tally has.
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

    def certified(self, depth: int) -> None:
        return None

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        return self.reported(self.earned_by(tree))

    def earned_by(self, tree: DecisionTree) -> float:
        """Return the score of a tree in units of weight, from whole counts and rounded once."""
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
        return frontier_table(data, self.max_depth, **options)

    def priced(self, limits: Sequence[LinearLimit]) -> CellProblem:
        return CellProblem.of(self.trees, self.earned, limits, self.leaf_price, self.max_depth, self.rules)

    def rounding(self, scale: float = 1.0) -> BoundRounding:
        """Return the rounding; values are integral where every unit earns an integer, which whole cells do not show."""
        integral = bool(np.all(self.earned == np.floor(self.earned)))
        return BoundRounding(self.total_weight, self.leaf_price, self.most_leaves, integral, scale)

    def incumbent(self) -> Incumbent:
        return TallyIncumbent(self)

    @property
    def most_leaves(self) -> int:
        return int(2**self.max_depth)


class TallyIncumbent(Incumbent):
    """The incumbent, scored by the counts of a tally."""

    def __init__(self, problem: TallyProblem) -> None:
        super().__init__(problem.dataset, problem.leaf_price, problem.constraints)
        self._problem = problem

    def _scored(self, tree: DecisionTree) -> float:
        return self._problem.earned_by(tree)


def checked_tally(tally: Tally, max_depth: Any) -> int:
    """Return the depth as an int; raises InvalidInputError where the tally is too shallow or empty."""
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


def check_not_with_tally(**arguments: Any) -> None:
    """Raise InvalidInputError for arguments that cannot be combined with a tally."""
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
    """Bind an objective to the cells of a tally, or raise InvalidInputError."""
    objective = objective.on_tally()
    score = objective.bind(trees.cells())
    if not isinstance(score, LinearScore):
        raise InvalidInputError(f"objective: {score.name}, {score.kind}, cannot be used on a tally, only on rows")
    again = objective.bind(trees.cells(PARTS)) if fits_tally(score.reads) else None
    if not isinstance(again, LinearScore) or not _same_by_cell(score, again):
        raise InvalidInputError(f"objective: {score.name} reads more than the classes, groups and weights of a tally")
    return score


def _same_by_cell(score: LinearScore, again: LinearScore) -> bool:
    """Return whether the scores for cells split in two parts, see `PARTS`, agree with those for whole cells."""
    if (score.amounts is None) != (again.amounts is None) or not np.isclose(score.offset, again.offset, rtol=1e-9):
        return False
    if score.amounts is None or again.amounts is None:
        return bool(np.isclose(score.norm, again.norm, rtol=1e-9))
    # Scores may have another scale where weights are not integral.
    parts = again.amounts.reshape(len(score.amounts), len(PARTS), -1) / again.norm
    expected = score.amounts[:, None, :] * np.array(PARTS)[:, None] / score.norm
    return bool(np.allclose(parts, expected, rtol=1e-9, atol=1e-12 * float(expected.max())))


def _earned(score: LinearScore, tally: Tally) -> FloatArray:
    """Return the reward of a unit of each cell by predicted class."""
    unit = 2.0**tally.unit
    if score.amounts is None:
        return np.eye(tally.n_classes)[score.dataset.y] * unit
    weights = score.dataset.weights[:, None]
    return np.divide(score.amounts, weights, out=np.zeros_like(score.amounts), where=weights > 0) * unit
