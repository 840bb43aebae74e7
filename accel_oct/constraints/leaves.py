"""Constraints on leaves: their number, and the weight or the number of samples of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from accel_oct.constraints.arguments import number, share
from accel_oct.constraints.base import BoundConstraint, Constraint
from accel_oct.constraints.statements import Statement
from accel_oct.constraints.traits import TOLERANCE, Traits
from accel_oct.data import BinaryDataset
from accel_oct.data.dataset import weighted_bincount
from accel_oct.data.weights import ExactWeights
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class MaxLeaves(Constraint, BoundConstraint):
    """At most `n` leaves: ``sum of p[n] over all nodes <= n``.

    Parameters
    ----------
    n : int
        At least one.
    """

    n: int

    def __post_init__(self) -> None:
        whole_number(self.n, "MaxLeaves: n", 1)

    @property
    def name(self) -> str:
        return f"at most {self.n} leaves" if self.n > 1 else "a single leaf"

    def bind(self, dataset: BinaryDataset) -> MaxLeaves:
        return self

    @property
    def traits(self) -> Traits:
        return Traits(leaves=int(self.n), reads=frozenset())

    def statements(self) -> tuple[Statement, ...]:
        return (Statement((), Fraction(int(self.n)), leaves=Fraction(1)),)

    @property
    def allowed(self) -> tuple[None, float]:
        return None, float(self.n)

    def value(self, tree: DecisionTree) -> float:
        """Return the number of leaves."""
        return float(tree.n_leaves)

    def violation(self, tree: DecisionTree) -> float:
        return float(tree.n_leaves - self.n)


@dataclass(frozen=True)
class MinLeafWeight(Constraint):
    """Minimum weight of every leaf: ``sum of w_i over the samples i of a leaf >= minimum``.

    Exactly one of the parameters is required.

    Parameters
    ----------
    amount : float, optional
        The minimum in units of weight; for samples without weights, a number of samples.
    share : float, optional
        The minimum as a share of the total weight.
    samples : int, optional
        The minimum as a number of samples with positive weight.

    Notes
    -----
    The rule is about single leaves, so subtrees stay independent and the subtree tables apply it. In combination with
    constraints that couple subtrees, branch and cut adds cuts for light paths when it finds them.
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
            whole_number(self.samples, "MinLeafWeight: samples")
        elif not 0 <= number(self.amount, "MinLeafWeight: amount") < np.inf:
            raise InvalidInputError(f"MinLeafWeight: amount must be finite and not negative, got {shown(self.amount)}")

    def bind(self, dataset: BinaryDataset) -> BoundMinLeafWeight:
        exact = dataset.exact
        if self.samples is not None:
            name, counts = f"leaves of {self.samples} samples or more", ExactWeights(dataset.sample_counts)
            return BoundMinLeafWeight(name, dataset, counts, Fraction(int(self.samples)), frozenset({"rows"}))
        minimum = Fraction(self.amount or 0.0)
        if self.share is not None:
            minimum = Fraction(self.share) * exact.total() * exact.unit
        name = f"leaves of at least {float(minimum):g}"
        return BoundMinLeafWeight(name, dataset, exact, minimum, frozenset({"weight"}))

    def on_tally(self, counted: bool) -> MinLeafWeight:
        if self.samples is None:
            return self
        if not counted:
            raise InvalidInputError(
                "MinLeafWeight(samples=...) needs rows; on a tally with weights use MinLeafWeight(amount=...)"
            )
        return MinLeafWeight(self.samples)


@dataclass(frozen=True, eq=False)
class BoundMinLeafWeight(BoundConstraint):
    """A `MinLeafWeight` bound to data.

    The tables add masses in floating point, so masses are rounded to integers with a total below 2**53. The rounding
    error is subtracted from the tolerance: every leaf with the minimum is allowed, and no leaf that misses it by more
    than the tolerance (with more than a million rows of real weights: by more than n * 2**-51 of the total).
    """

    name: str
    dataset: BinaryDataset
    weights: ExactWeights
    minimum: Fraction
    reads: frozenset[str]

    @cached_property
    def _unit(self) -> Fraction:
        """Unit of the masses."""
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
        return float(min(least, 2**53))  # at most: more than the total

    @property
    def allowed(self) -> tuple[float, None]:
        return float(self.minimum), None

    @cached_property
    def traits(self) -> Traits:
        return Traits(local=LocalRules.leaves(self.masses, self._enough), reads=self.reads)

    def value(self, tree: DecisionTree) -> float:
        """Return the weight of the lightest leaf."""
        found = self.weights.sums(tree.leaf_of(self.dataset.X) - 1, tree.feature.size)
        return float(min(found[leaf - 1] for leaf in tree.leaves.tolist()) * self.weights.unit)

    def violation(self, tree: DecisionTree) -> float:
        """Return what the lightest leaf lacks, as a share of the total."""
        masses = weighted_bincount(tree.leaf_of(self.dataset.X) - 1, self.masses, tree.feature.size)
        return (self._enough - float(masses[tree.leaves - 1].min())) / self._total
