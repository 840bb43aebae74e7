"""Constraints that are linear in what a tree predicts, in its leaves and in its branches.

With z_ik = 1 where the tree predicts class k for sample i, a limit reads

    sum of a_ik z_ik + c (number of leaves) + sum of d_f (branches on feature f)  <=  upper.

What a tree uses of it is a sum over its leaves and branches, so the uses of disjoint subtrees add up: it can be priced.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.arguments import number
from accel_oct.data import BinaryDataset
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]

#: A limit is kept when it is missed by no more than this, relative to the largest number that the measured quantity
#: could have: 0.1 as a floating-point number is above one tenth, and sums of real coefficients are rounded.
TOLERANCE = 1e-9

#: The same for limits: they hold for every tree that keeps the constraint, although both sides are rounded.
FORGIVEN = 1.01 * TOLERANCE

#: Beyond this, how far a limit is missed is no matter; a float can hold it.
_FAR = Fraction(10**300)

#: Coefficients below this, beside a largest one of 1, are no coefficients to a solver.
_NO_COEFFICIENT = 1e-9


def excess(value: Fraction, lower: float | None, upper: float | None, size: Fraction = Fraction(1)) -> float:
    """By how much of `size` a value misses its limits, less the tolerance; its sign is that of exact arithmetic."""
    misses = [value - Fraction(upper)] if upper is not None else []
    if lower is not None:
        misses.append(Fraction(lower) - value)
    over = max(misses) / size - Fraction(TOLERANCE)
    if over > 0:
        return max(float(min(over, _FAR)), sys.float_info.min)
    return float(max(over, -_FAR))


@dataclass(frozen=True, eq=False)
class LinearLimit:
    """One limit on what a tree uses.

    Attributes
    ----------
    name : str
    predictions : float array (n_samples, n_classes) or None
        a_ik, for the rows as the user gave them.
    upper : float
    leaves : float
        c.
    branches : float array (n_features,) or None
        d_f.
    tolerance : float
        What a tree may use beyond `upper` and still keep the constraint by its `violation`.
    unit : float
        How far `upper` moves when the limit that the user stated moves by one; zero where that depends on the tree.
    """

    name: str
    predictions: FloatArray | None
    upper: float
    leaves: float = 0.0
    branches: FloatArray | None = None
    tolerance: float = 0.0
    unit: float = 1.0

    def used_by(self, tree: DecisionTree, X: BoolMatrix) -> tuple[float, float]:
        """What a tree uses on the rows X as the user gave them, and the sum of the absolute values of the terms."""
        terms = [np.array([self.leaves * tree.n_leaves])]
        if self.predictions is not None:
            terms.append(self.predictions[np.arange(len(X)), tree.predictions(X)])
        if self.branches is not None:
            terms.append(self.branches[tree.feature[tree.feature >= 0]])
        values = np.concatenate(terms)
        return float(values.sum()), float(np.abs(values).sum())

    def add_to(self, master: Master) -> None:
        """One row over z, p and b, scaled to coefficients of at most one.

        Solvers drop coefficients below about 1e-9, and many of them together may be worth more than a solver's
        tolerance. So they are left out here, and the right side grows by the least that they can come to: every point
        has one prediction, and every node one branch at most.
        """
        predictions = None
        if self.predictions is not None and self.predictions.any():
            predictions = master.predictions.coefficients(self.predictions)
        # With what is forgiven: the rows let through what `violation` does, which decides exactly.
        upper = self.upper + self.tolerance
        parts = [part for part in (predictions, self.branches, self.leaves, upper) if part is not None]
        scale = 1.0 / max(*(float(np.max(np.abs(part), initial=0.0)) for part in parts), 1e-300)
        upper *= scale
        columns, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        if predictions is not None:
            kept, least = _without_small(predictions * scale)
            upper -= float(least.min(axis=1).sum())
            columns.append(master.predictions.z.index.ravel())
            values.append(kept.ravel())
        if self.leaves:
            kept, least = _without_small(np.full(master.p.size, self.leaves * scale))
            upper -= float(np.minimum(least, 0.0).sum())
            columns.append(master.p.index)
            values.append(kept)
        if self.branches is not None:
            kept, least = _without_small(np.tile(self.branches * scale, (len(master.b.index), 1)))
            upper -= float(np.minimum(least.min(axis=1), 0.0).sum())
            columns.append(master.b.index.ravel())
            values.append(kept.ravel())
        all_values = np.concatenate(values)
        used = np.flatnonzero(all_values)
        row = Rows.single(np.concatenate(columns)[used], all_values[used], upper=upper)
        master.model.add_rows(row, self.name)


@dataclass(frozen=True, eq=False)
class Linear:
    """``lower <= sum of a_ik z_ik + leaves * (number of leaves) + sum of branches_f (branches on f) <= upper``.

    Parameters
    ----------
    predictions : array (n_samples, n_classes), optional
        a_ik: what predicting class k for sample i counts. Classes in sorted order.
    leaves : float
        What a leaf counts.
    branches : array (n_features,), optional
        What a branch on a feature counts, each time.
    lower, upper : float, optional
        At least one of them.
    name : str
        For messages and results.
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
        predictions = _coefficients(self.predictions, shape, "predictions")
        branches = None if self.branches is None else _coefficients(self.branches, (dataset.n_features,), "branches")
        with np.errstate(over="ignore"):
            total = np.abs(predictions).sum()
        if not np.isfinite(total):
            raise InvalidInputError("Linear: predictions add up to more than a float can hold")
        return BoundLinear(self, dataset, predictions, branches)


@dataclass(frozen=True, eq=False)
class BoundLinear:
    """A `Linear` that knows the data."""

    constraint: Linear
    dataset: BinaryDataset
    predictions: FloatArray
    branches: FloatArray | None
    limits: tuple[LinearLimit, ...] = field(init=False)
    size: float = field(init=False)
    """What the sum may come to, roughly: rounding is relative to it."""

    def __post_init__(self) -> None:
        stated, limits = self.constraint, []
        parts = [np.abs(self.predictions).max(axis=1).sum(), abs(stated.leaves)]
        if self.branches is not None:
            parts.append(np.abs(self.branches).max(initial=0.0))
        object.__setattr__(self, "size", float(max(parts)))
        for sign, bound in ((1.0, stated.upper), (-1.0, stated.lower)):
            if bound is not None:
                branches = None if self.branches is None else sign * self.branches
                limits.append(
                    LinearLimit(
                        stated.name,
                        sign * self.predictions,
                        sign * bound,
                        sign * stated.leaves,
                        branches,
                        FORGIVEN * self.size,
                    )
                )
        object.__setattr__(self, "limits", tuple(limits))

    @property
    def name(self) -> str:
        return self.constraint.name

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        return self.constraint.lower, self.constraint.upper

    def value(self, tree: DecisionTree) -> float:
        """The sum that is limited."""
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

    def add_to(self, master: Master) -> None:
        for limit in self.limits:
            limit.add_to(master)


def _without_small(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients without those that solvers drop, and those, zero elsewhere."""
    small = np.abs(values) < _NO_COEFFICIENT
    return np.where(small, 0.0, values), np.where(small, values, 0.0)


def _coefficients(values: Any, shape: tuple[int, ...], argument: str) -> FloatArray:
    if values is None:
        return np.zeros(shape)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"Linear: {argument} must hold numbers, got {shown(values)}") from None
    if array.shape != shape:
        raise InvalidInputError(f"Linear: {argument} must have the shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"Linear: {argument} holds a NaN or infinite value")
    return array
