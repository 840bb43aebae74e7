"""Constraints on a tally: limits by cell, and trees that are measured from what the tally says of their leaves.

A constraint is bound to two kinds of small data sets. On one row per cell it says its limits: what predicting a class
for all of a cell uses, and so what a unit of its weight does. On one row per leaf and cell of a tree, through its own
`violation` and `value`, it says how the tree stands to it: that decides, as on rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.constraints.features import BoundForbiddenFeatures
from accel_oct.constraints.linear import Linear, LinearLimit
from accel_oct.constraints.protocol import BoundConstraint, Constraint, bind_all, local_rules
from accel_oct.constraints.support import MinLeafWeight
from accel_oct.data import Tally
from accel_oct.errors import InvalidInputError
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import CELL, TalliedRows, TalliedTrees

__all__ = ["TallyConstraint", "bind_to_tally", "tallied_trees"]

_PARTS = (0.25, 0.75)
"""A cell in two rows: who knows nothing but cells and weights says the same of both together."""


def tallied_trees(tally: Tally) -> TalliedTrees:
    """A tally with the names that constraints may call its groups by."""
    if tally.n_groups == 1 and tally.group_labels.tolist() == [None]:
        return TalliedTrees(tally)
    return TalliedTrees(tally, (SENSITIVE,) if tally.group_name is None else (SENSITIVE, tally.group_name))


def bind_to_tally(constraints: Sequence[Constraint] | None, trees: TalliedTrees) -> tuple[TallyConstraint, ...]:
    """Bind what a user gave.

    Raises
    ------
    InvalidInputError
        Naming what is no constraint, or one that asks for more than classes, groups and weights.
    """
    cells = trees.cells()
    given = list(constraints) if isinstance(constraints, Sequence) and not isinstance(constraints, str) else []
    named = [_for_rows(constraint, cells) for constraint in given]
    bound = bind_all(named if given else constraints, cells)
    return tuple(TallyConstraint(*pair, trees) for pair in zip(given, bound, strict=True))


class TallyConstraint:
    """A constraint that knows a tally.

    Attributes
    ----------
    limits : tuple of LinearLimit, or None
        By cell: what predicting a class for the whole cell uses. None for rules about leaves and paths.
    local : LocalRules or None
        The masses of whole cells.
    """

    def __init__(self, constraint: Constraint, bound: BoundConstraint, trees: TalliedTrees) -> None:
        self._constraint, self._bound, self._trees = constraint, bound, trees
        self._seen: tuple[DecisionTree, BoundConstraint] | None = None
        self.local = _local(bound, trees.tally.n_features)
        self.limits: tuple[LinearLimit, ...] | None = None if self.local is not None else getattr(bound, "limits", None)
        if self.local is None and self.limits is None:
            raise InvalidInputError(f"constraints: `{self.name}` cannot be kept on a tally, only on rows")
        if any(limit.branches is not None or limit.leaves < 0 for limit in self.limits or ()):
            raise InvalidInputError(
                f"constraints: `{self.name}` cannot be kept on a tally, only on rows: it is about branches"
            )
        halves = trees.cells(_PARTS)
        (again,) = bind_all([_for_rows(constraint, halves)], halves)
        if not _says_the_same(self.local, self.limits, again, trees.tally.n_features):
            raise InvalidInputError(
                f"constraints: `{self.name}` asks for more than a tally knows: classes, groups and weights"
            )

    @property
    def name(self) -> str:
        return self._bound.name

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        found: tuple[float | None, float | None] = getattr(self._bound, "allowed", (None, None))
        return found

    def value(self, tree: DecisionTree) -> float:
        """What is limited; not a number where the constraint does not say."""
        measured: Any = self._on(tree)
        return float(measured.value(tree)) if hasattr(measured, "value") else float("nan")

    def violation(self, tree: DecisionTree) -> float:
        return self._on(tree).violation(tree)

    def add_to(self, master: Master) -> None:
        raise NotImplementedError("there is no master of a tally")

    def _on(self, tree: DecisionTree) -> BoundConstraint:
        """Bound to what a tree does."""
        if self._seen is None or self._seen[0] is not tree:
            rows = self._trees.rows(tree)
            self._seen = tree, _for_rows(self._constraint, rows).bind(rows)
        return self._seen[1]


def _for_rows(constraint: Constraint, rows: TalliedRows) -> Constraint:
    """With what is given by cell as the rows need it."""
    for argument in ("group", "given"):
        values = getattr(constraint, argument, None)
        if values is not None and not isinstance(values, str) and not isinstance(constraint, type):
            raise InvalidInputError(
                f"{type(constraint).__name__}: {argument} must be None or the name of the tally's groups, "
                "as a tally has no rows to give values for: make it with `sensitive_features`"
            )
    if isinstance(constraint, MinLeafWeight) and constraint.samples is not None:
        raise InvalidInputError("MinLeafWeight: samples cannot be told from a tally, which knows weights: give amount")
    if isinstance(constraint, Linear) and constraint.predictions is not None:
        cells = np.asarray(rows.row_values[CELL])
        try:
            by_cell = np.asarray(constraint.predictions, dtype=np.float64)
        except (TypeError, ValueError):
            return constraint  # binding tells what is wrong
        shape = (int(cells.max()) + 1, rows.n_classes)
        if by_cell.shape != shape:
            raise InvalidInputError(
                f"Linear: predictions must have a row per cell of the tally and a column per class, {shape}, "
                f"got the shape {by_cell.shape}"
            )
        return replace(constraint, predictions=by_cell[cells] * rows.weights[:, None])
    return constraint


def _local(bound: BoundConstraint, n_features: int) -> LocalRules | None:
    if isinstance(bound, BoundForbiddenFeatures):
        # A column that is apart from itself may not be used at all.
        return LocalRules(np.zeros((1, 1)), (0.0,), np.diag(bound.group == 1))
    return local_rules(bound)


def _says_the_same(
    local: LocalRules | None, limits: tuple[LinearLimit, ...] | None, other: BoundConstraint, n_features: int
) -> bool:
    """Whether a constraint says of cells in two parts what it says of whole ones."""
    if local is not None:
        again = _local(other, n_features)
        if again is None or len(again.least) != len(local.least) or not _close(local.totals, again.totals):
            return False
        return bool(np.all(np.abs(np.subtract(again.least, local.least)) <= 1e-12 * local.totals))
    mine, others = limits or (), getattr(other, "limits", None) or ()
    if len(mine) != len(others):
        return False
    for one, two in zip(mine, others, strict=True):
        if not (
            _close(one.upper, two.upper)
            and one.leaves == two.leaves
            and (one.predictions is None) == (two.predictions is None)
        ):
            return False
        if one.predictions is not None:
            parts = two.predictions.reshape(len(one.predictions), len(_PARTS), -1)
            if not all(_close(one.predictions * share, parts[:, place]) for place, share in enumerate(_PARTS)):
                return False
    return True


def _close(first: Any, second: Any) -> bool:
    size = float(np.abs(first).max(initial=0.0))
    return bool(np.allclose(first, second, rtol=1e-9, atol=1e-12 * size))
