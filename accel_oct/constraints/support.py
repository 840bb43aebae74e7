"""How much weight, or how many samples, a leaf must have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.arguments import number, share
from accel_oct.constraints.linear import TOLERANCE
from accel_oct.data import BinaryDataset
from accel_oct.data.dataset import weighted_bincount
from accel_oct.data.weights import ExactWeights
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MinLeafWeight:
    """Every leaf receives samples that weigh at least so much: ``sum of w_i over the samples i of a leaf >= minimum``.

    Parameters
    ----------
    amount : float, optional
        The minimum in units of weight: a number of samples where they have no weights.
    share : float, optional
        The minimum as a share of the total weight.
    samples : int, optional
        The minimum as a number of samples of any weight but zero. Exactly one of the three.

    Notes
    -----
    The rule is about single leaves, so subtrees stay independent and the subtree tables know it (`local`). Beside
    constraints that tie subtrees together, branch and cut learns of paths that are too light when it meets them.
    """

    amount: float | None = None
    share: float | None = None
    samples: int | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.amount, self.share, self.samples)) != 1:
            raise InvalidInputError("MinLeafWeight: exactly one of amount, share and samples must be given")
        if self.share is not None:
            share(self.share, "MinLeafWeight: share")
        elif self.samples is not None:
            whole = isinstance(self.samples, int | np.integer) and not isinstance(self.samples, bool)
            if not whole or self.samples < 0:
                raise InvalidInputError(
                    f"MinLeafWeight: samples must be a whole number of at least 0, got {shown(self.samples)}"
                )
        elif not 0 <= number(self.amount, "MinLeafWeight: amount") < np.inf:
            raise InvalidInputError(f"MinLeafWeight: amount must be finite and not negative, got {shown(self.amount)}")

    def bind(self, dataset: BinaryDataset) -> BoundMinLeafWeight:
        exact = dataset.exact
        if self.samples is not None:
            counts = ExactWeights(dataset.sample_counts)
            return BoundMinLeafWeight(
                dataset, counts, Fraction(int(self.samples)), f"leaves of {self.samples} samples or more"
            )
        minimum = Fraction(self.amount or 0.0)
        if self.share is not None:
            minimum = Fraction(self.share) * exact.total() * exact.unit
        return BoundMinLeafWeight(dataset, exact, minimum, f"leaves of at least {float(minimum):g}")


@dataclass(frozen=True, eq=False)
class BoundMinLeafWeight:
    """A `MinLeafWeight` that knows the data.

    The tables add up masses of leaves in floating point. So a leaf is decided on whole numbers, of which all samples
    together have less than 2**53. What rounding to them may change is taken off the tolerance: every leaf that has the
    minimum is allowed, and none that misses it by more than the tolerance (with more than a million rows of real
    weights: by more than n * 2**-51 of the total).
    """

    dataset: BinaryDataset
    weights: ExactWeights
    minimum: Fraction
    name: str

    @cached_property
    def _unit(self) -> Fraction:
        """Of masses."""
        total = self.weights.total() * self.weights.unit
        bits = total.numerator.bit_length() - total.denominator.bit_length()
        return Fraction(2) ** (bits - 51)

    @cached_property
    def masses(self) -> FloatArray:
        """The weights in units, each rounded to the nearest."""
        return np.rint(self._in_units)

    @cached_property
    def _in_units(self) -> FloatArray:
        bits = self._unit.denominator.bit_length() - self._unit.numerator.bit_length()
        return np.ldexp(self.weights.weights, bits)

    @cached_property
    def _total(self) -> float:
        return float(self.masses.sum())

    @cached_property
    def _enough(self) -> float:
        """The least mass of a leaf."""
        tolerance, rounding = TOLERANCE * self._total, float(np.abs(self.masses - self._in_units).sum())
        least = math.ceil(self.minimum / self._unit - Fraction(max(tolerance - rounding, rounding)))
        return float(min(least, 2**53))  # more than all samples have

    @property
    def allowed(self) -> tuple[float, None]:
        return float(self.minimum), None

    @cached_property
    def local(self) -> LocalRules:
        return LocalRules.leaves(self.masses, self._enough)

    def value(self, tree: DecisionTree) -> float:
        """What the lightest leaf has."""
        found = self.weights.sums(tree.leaf_of(self.dataset.X) - 1, tree.feature.size)
        return float(min(found[leaf - 1] for leaf in tree.leaves.tolist()) * self.weights.unit)

    def violation(self, tree: DecisionTree) -> float:
        """What the lightest leaf misses, as a share of everything."""
        masses = weighted_bincount(tree.leaf_of(self.dataset.X) - 1, self.masses, tree.feature.size)
        return (self._enough - float(masses[tree.leaves - 1].min())) / self._total

    def add_to(self, master: Master) -> None:
        """As many leaves as the weight allows, and no branch with a side that is too light for all samples together."""
        total = self._total
        if master.topology.n_terminal * self._enough > total:
            upper = float(np.floor(total / self._enough))
            master.model.add_rows(Rows.single(master.p.index, 1.0, upper=upper), self.name)
        columns = master.b.index[:, self._too_uneven(np.ones(self.dataset.n_samples, dtype=bool))]
        if columns.size:
            master.model.add_rows(Rows.single(columns.ravel(), 1.0, upper=0.0), self.name)

    def forbid(self, tree: DecisionTree, master: Master) -> Rows | None:
        """No tree that keeps the rule has a path that is too light: everything below it is lighter still.

        For the shortest such paths, and all features f with which their last node n has a side that is too light:
        ``sum of b over the path above n + sum of b[n, f] <= (length of the path above n)``.
        """
        visits = tree.visits(self.dataset.X, tree.nodes)
        place = {node: position for position, node in enumerate(tree.nodes.tolist())}
        light = self.masses @ visits < self._enough
        rows = []
        for n in tree.branch_nodes.tolist():
            if not light[place[n]] and (light[place[2 * n]] or light[place[2 * n + 1]]):
                features = [feature for feature, _ in tree.path(n)]
                nodes = [n >> step for step in range(len(features), 0, -1)]
                above = master.b.index[np.array(nodes, dtype=np.int64) - 1, np.array(features, dtype=np.int64)]
                last = master.b.index[n - 1, self._too_uneven(visits[:, place[n]])]
                rows.append(Rows.single([*above, *last], 1.0, upper=float(above.size)))
        return Rows.concatenate(rows) if rows else None

    def _too_uneven(self, samples: NDArray[np.bool_]) -> IntArray:
        """Features that leave too little of these samples on one of their sides."""
        masses = self.masses * samples
        one = masses @ self.dataset.X
        return np.flatnonzero(np.minimum(one, masses.sum() - one) < self._enough)
