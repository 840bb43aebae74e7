"""Constraints on a tally: limits by cell, and violations from the counts of a tree's leaves.

A constraint that reads only classes, groups and weights is bound to two kinds of small data sets. On one row per cell
it declares its traits: the use of a whole cell for each predicted class, and so the use of a unit of its weight. On one
row per leaf and cell of a tree, its own `violation` and `value` measure the tree, as on the original rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from accel_oct.constraints.base import BoundConstraint, Constraint, TreePart, as_list, bind_all
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
"""Shares of the two rows into which a cell is split as a probe: a constraint on classes, groups and weights is
unchanged by it."""


def tallied_trees(tally: Tally) -> TalliedTrees:
    """Return the trees of a tally, with the names under which constraints find its groups."""
    if tally.n_groups == 1 and tally.group_labels.tolist() == [None]:
        return TalliedTrees(tally)
    return TalliedTrees(tally, (SENSITIVE,) if tally.group_name is None else (SENSITIVE, tally.group_name))


def for_tally(constraints: Sequence[Constraint] | None, counted: bool = False) -> list[Constraint]:
    """Return the argument `constraints` for a tally; see `Constraint.on_tally`."""
    return [each.on_tally(counted) if isinstance(each, Constraint) else each for each in as_list(constraints)]


def bind_to_tally(constraints: Sequence[Constraint] | None, trees: TalliedTrees) -> tuple[TallyConstraint, ...]:
    """Bind the argument `constraints` to a tally.

    Raises
    ------
    InvalidInputError
        Naming an entry that is no constraint, or one that reads more than classes, groups and weights.
    """
    stated = for_tally(constraints)
    bound, halved = bind_all(stated, trees.cells()), bind_all(stated, trees.cells(PARTS))
    return tuple(TallyConstraint(*parts, trees) for parts in zip(stated, bound, halved, strict=True))


class TallyConstraint(BoundConstraint):
    """A constraint bound to a tally.

    Its traits are by cell: limits have the use of a whole cell for each predicted class, local rules the masses of
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
            by_predictions=declared.by_predictions,
            superfluous_splits=declared.superfluous_splits,
            refuses=declared.refuses,
        )
        if not self._traits.has_form and not (declared.survives_pruning and not declared.has_form):
            raise InvalidInputError(f"constraints: `{self.name}` is not supported on a tally, only on rows")
        if not fits_tally(declared.reads) or not same_by_cell(declared, halved.traits, n_cells):
            raise InvalidInputError(
                f"constraints: `{self.name}` reads more than the classes, groups and weights of a tally"
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

    def refuses(self, part: TreePart) -> bool:
        return self._bound.refuses(part)

    def context(self, path: tuple[tuple[int, int], ...]) -> Hashable:
        return self._bound.context(path)

    def add_to(self, master: Master) -> None:
        raise NotImplementedError("a tally has no master problem")

    def _on(self, tree: DecisionTree) -> BoundConstraint:
        """Return the constraint bound to the leaves and cells of a tree."""
        if not self._traits.reads - {"features"}:
            return self._bound  # it depends on the tree alone
        if self._seen is None or self._seen[0] is not tree:
            self._seen = tree, self._constraint.bind(self._trees.rows(tree))
        return self._seen[1]


def same_by_cell(whole: Traits, halved: Traits, n_cells: int) -> bool:
    """Return whether the traits for cells split in two parts, see `PARTS`, agree with those for whole cells."""
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
