"""Limits on a weighted sum of predictions, leaves and branches of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints.arguments import number
from accel_oct.constraints.base import BoundConstraint, Constraint
from accel_oct.constraints.traits import FORGIVEN, TOLERANCE, LinearLimit, Traits
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arguments import number_array
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import CELL


@dataclass(frozen=True, eq=False)
class Linear(Constraint):
    """``lower <= sum of a_ik z_ik + leaves * (number of leaves) + sum of branches_f (branches on f) <= upper``.

    Parameters
    ----------
    predictions : array (n_samples, n_classes), optional
        a_ik: coefficient of predicting class k for sample i. Classes in sorted order.
    leaves : float
        Coefficient of every leaf.
    branches : array (n_features,), optional
        Coefficient of every branch on a feature.
    lower, upper : float, optional
        Limits; at least one of them is required.
    name : str
        Name in messages and results.
    """

    predictions: Any = None
    leaves: float = 0.0
    branches: Any = None
    lower: float | None = None
    upper: float | None = None
    name: str = "linear constraint"

    def __post_init__(self) -> None:
        if self.lower is None and self.upper is None:
            raise InvalidInputError("Linear: lower or upper must be given")
        for argument in ("lower", "upper", "leaves"):
            value = getattr(self, argument)
            if value is None and argument != "leaves":
                continue
            if not np.isfinite(number(value, f"Linear: {argument}")):
                raise InvalidInputError(f"Linear: {argument} must be finite, got {shown(value)}")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidInputError(f"Linear: lower {self.lower} is above upper {self.upper}")

    def bind(self, dataset: BinaryDataset) -> BoundLinear:
        shape = (dataset.n_samples, dataset.n_classes)
        return self._bound(dataset, _coefficients(self.predictions, shape, "predictions"), {"rows"})

    def on_tally(self, counted: bool) -> Linear:
        """Return the constraint with a row of `predictions` per cell: coefficients of a unit of its weight."""
        return self if self.predictions is None else _OfCells(**vars(self))

    def _bound(self, dataset: BinaryDataset, predictions: FloatArray, reads: set[str]) -> BoundLinear:
        branches = None if self.branches is None else _coefficients(self.branches, (dataset.n_features,), "branches")
        with np.errstate(over="ignore"):
            total = np.abs(predictions).sum()
        if not np.isfinite(total):
            raise InvalidInputError("Linear: the sum of predictions exceeds the range of a float")
        reads = (set() if self.predictions is None else reads) | (set() if branches is None else {"features"})
        return BoundLinear(self, dataset, predictions, branches, frozenset(reads))


class _OfCells(Linear):
    """A `Linear` whose predictions have a row per cell of a tally."""

    def bind(self, dataset: BinaryDataset) -> BoundLinear:
        cells = np.asarray(dataset.row_values[CELL])
        shape = (int(cells.max()) + 1, dataset.n_classes)
        rows = ", a row per cell of the tally and a column per class"
        by_cell = _coefficients(self.predictions, shape, "predictions", rows)
        return self._bound(dataset, by_cell[cells] * dataset.weights[:, None], {"class", "group", "weight"})

    def on_tally(self, counted: bool) -> Linear:
        return self


@dataclass(frozen=True, eq=False)
class BoundLinear(BoundConstraint):
    """A `Linear` bound to data."""

    constraint: Linear
    dataset: BinaryDataset
    predictions: FloatArray
    branches: FloatArray | None
    reads: frozenset[str]

    @cached_property
    def size(self) -> float:
        """Approximate size of the sum; tolerances are relative to it."""
        parts = [np.abs(self.predictions).max(axis=1).sum(), abs(self.constraint.leaves)]
        if self.branches is not None:
            parts.append(np.abs(self.branches).max(initial=0.0))
        return float(max(parts))

    @cached_property
    def traits(self) -> Traits:
        stated, limits = self.constraint, []
        for sign, bound in ((1.0, stated.upper), (-1.0, stated.lower)):
            if bound is not None:
                branches = None if self.branches is None else sign * self.branches
                forgiven = FORGIVEN * self.size
                sums = sign * self.predictions, sign * bound, sign * stated.leaves
                limits.append(LinearLimit(stated.name, *sums, branches, forgiven))
        arrays = ("predictions",) if "rows" in self.reads else ()
        return Traits(limits=tuple(limits), reads=self.reads, arrays=arrays)

    @property
    def name(self) -> str:
        return self.constraint.name

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        return self.constraint.lower, self.constraint.upper

    def value(self, tree: DecisionTree) -> float:
        """Return the limited sum."""
        rows = np.arange(self.dataset.n_samples)
        total = float(self.predictions[rows, tree.predictions(self.dataset.X)].sum())
        total += self.constraint.leaves * tree.n_leaves
        if self.branches is not None:
            total += float(self.branches[tree.feature[tree.feature >= 0]].sum())
        return total

    def violation(self, tree: DecisionTree) -> float:
        value, stated = self.value(tree), self.constraint
        over = -np.inf if stated.upper is None else value - stated.upper
        under = -np.inf if stated.lower is None else stated.lower - value
        return float(max(over, under) - TOLERANCE * self.size)


def _coefficients(values: Any, shape: tuple[int, ...], argument: str, meaning: str = "") -> FloatArray:
    return np.zeros(shape) if values is None else number_array(values, shape, f"Linear: {argument}", meaning)
