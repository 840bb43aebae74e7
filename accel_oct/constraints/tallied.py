"""Constraints on a tally: limits by cell, and trees that are measured from what the tally says of their leaves.

A constraint that reads nothing but classes, groups and weights is bound to two kinds of small data sets. On one row per
cell it declares its forms: what predicting a class for all of a cell uses, and so what a unit of its weight does. On
one row per leaf and cell of a tree, through its own `violation` and `value`, it measures the tree: that decides, as on
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.constraints.base import BoundConstraint, Constraint, as_list, bind_all
from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.constraints.traits import Traits
from accel_oct.data import Tally
from accel_oct.data.reads import fits_tally
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

__all__ = ["TallyConstraint", "bind_to_tally", "for_tally", "tallied_trees"]

PARTS = (0.25, 0.75)
"""Shares of the two rows that a cell is split into: what reads only classes, groups and weights does not change."""


def tallied_trees(tally: Tally) -> TalliedTrees:
    """A tally with the names that constraints may call its groups by."""
    if tally.n_groups == 1 and tally.group_labels.tolist() == [None]:
        return TalliedTrees(tally)
    return TalliedTrees(tally, (SENSITIVE,) if tally.group_name is None else (SENSITIVE, tally.group_name))


def for_tally(constraints: Sequence[Constraint] | None, counted: bool = False) -> list[Constraint]:
    """What a user gave, in terms that a tally knows; see `Constraint.on_tally`."""
    return [each.on_tally(counted) if isinstance(each, Constraint) else each for each in as_list(constraints)]


def bind_to_tally(constraints: Sequence[Constraint] | None, trees: TalliedTrees) -> tuple[TallyConstraint, ...]:
    """Bind what a user gave.

    Raises
    ------
    InvalidInputError
        Naming what is no constraint, or one that reads more than classes, groups and weights.
    """
    stated = for_tally(constraints)
    bound, halved = bind_all(stated, trees.cells()), bind_all(stated, trees.cells(PARTS))
    return tuple(TallyConstraint(*parts, trees) for parts in zip(stated, bound, halved, strict=True))


class TallyConstraint(BoundConstraint):
    """A constraint that knows a tally.

    Its traits are by cell: limits say what predicting a class for the whole cell uses, local rules have the masses of
    whole cells.
    """

    def __init__(
        self, constraint: Constraint, bound: BoundConstraint, halved: BoundConstraint, trees: TalliedTrees
    ) -> None:
        self._constraint, self._bound, self._trees = constraint, bound, trees
        self._seen: tuple[DecisionTree, BoundConstraint] | None = None
        declared, n_cells = bound.traits, trees.tally.n_cells
        local = declared.on_paths(n_cells)
        self._traits = Traits(
            local=local,
            limits=declared.limits if local is None and declared.is_priced else None,
            leaves=declared.leaves,
            reads=declared.reads,
        )
        if not self._traits.says_something:
            raise InvalidInputError(f"constraints: `{self.name}` cannot be kept on a tally, only on rows")
        if not fits_tally(declared.reads) or not same_by_cell(declared, halved.traits, n_cells):
            raise InvalidInputError(
                f"constraints: `{self.name}` asks for more than a tally knows: classes, groups and weights"
            )

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def name(self) -> str:
        return self._bound.name

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        return self._bound.allowed

    def value(self, tree: DecisionTree) -> float | None:
        return self._on(tree).value(tree)

    def violation(self, tree: DecisionTree) -> float:
        return self._on(tree).violation(tree)

    def add_to(self, master: Master) -> None:
        raise NotImplementedError("there is no master of a tally")

    def _on(self, tree: DecisionTree) -> BoundConstraint:
        """Bound to what a tree does."""
        if not self._traits.reads - {"features"}:
            return self._bound  # it knows the tree alone
        if self._seen is None or self._seen[0] is not tree:
            self._seen = tree, self._constraint.bind(self._trees.rows(tree))
        return self._seen[1]


def same_by_cell(whole: Traits, halved: Traits, n_cells: int) -> bool:
    """Whether the forms of a constraint say of rows in two parts, see `PARTS`, what they say of whole ones."""
    ours, others = whole.on_paths(n_cells), halved.on_paths(n_cells * len(PARTS))
    if ours is not None:
        if others is None or len(others.least) != len(ours.least) or not _close(ours.totals, others.totals):
            return False
        parts = others.masses.reshape(len(ours.least), n_cells, len(PARTS))
        by_row = all(_close(ours.masses * share, parts[:, :, place]) for place, share in enumerate(PARTS))
        return by_row and bool(np.all(np.abs(np.subtract(others.least, ours.least)) <= 1e-12 * ours.totals))
    if len(whole.limits or ()) != len(halved.limits or ()):
        return False
    for one, two in zip(whole.limits or (), halved.limits or (), strict=True):
        if (one.predictions is None) != (two.predictions is None):
            return False
        if one.leaves != two.leaves or not _close(one.upper, two.upper):
            return False
        if one.predictions is not None and two.predictions is not None:
            parts = two.predictions.reshape(n_cells, len(PARTS), -1)
            if not all(_close(one.predictions * share, parts[:, place]) for place, share in enumerate(PARTS)):
                return False
    return True


def _close(first: Any, second: Any) -> bool:
    size = float(np.abs(first).max(initial=0.0))
    return bool(np.allclose(first, second, rtol=1e-9, atol=1e-12 * size))
