"""Rates of one class: recall, precision, and budgets.

Every rate is a weighted share: of the weight of some samples, the part that is predicted to be of some class. All of
them are linear in the predictions once they are multiplied out.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints.arguments import NamesAClass, number, share
from accel_oct.constraints.base import BoundConstraint, Constraint
from accel_oct.constraints.traits import FORGIVEN, LinearLimit, Traits, excess
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import BoolArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class BoundRate(BoundConstraint):
    """``part / whole`` within limits, where part and whole are weights of samples that are predicted to be of a class.

    The rate of a tree is a quotient of whole numbers, from the weights as they were given, and compared as such. Only
    its limits, by which trees are sought, are in floating point.

    Attributes
    ----------
    part, whole : bool arrays (n_samples, n_classes)
        Whether a sample counts where it is predicted to be of a class. Multiplied out:
        ``sum of w_i (part - limit * whole) z <= 0`` or ``>= 0``. Where the whole of a tree is zero, both sums are, and
        the limit is kept.
    always : bool array (n_samples,)
        Samples that belong to the whole whatever the tree predicts.
    count : bool
        Whether `at_most` is an amount of weight, not a rate: then the value is one too.
    """

    name: str
    dataset: BinaryDataset
    part: BoolArray
    whole: BoolArray
    always: BoolArray
    at_least: float | None = None
    at_most: float | None = None
    count: bool = False

    def __post_init__(self) -> None:
        self.dataset.check_rates(self._counted, self.name)

    @property
    def _counted(self) -> BoolArray:
        """Samples that may belong to the whole."""
        return np.asarray(self.whole.any(axis=1) | self.always)

    @cached_property
    def traits(self) -> Traits:
        exact = self.dataset.exact
        shares = exact.shares(self._counted)
        constant, total, limits = float(shares[self.always].any()), exact.total() * exact.unit, []
        for sign, limit in ((1.0, self.at_most), (-1.0, self.at_least)):
            if limit is None:
                continue
            unit = constant
            if self.count:
                limit = float(min(Fraction(limit) / total, Fraction(2)))  # no tree uses more than everything
                unit = float(min(1 / total, Fraction(sys.float_info.max)))
            coefficients = sign * shares[:, None] * (self.part - limit * self.whole)
            limits.append(LinearLimit(self.name, coefficients, sign * limit * constant, tolerance=FORGIVEN, unit=unit))
        return Traits(limits=tuple(limits), reads={"class", "weight"})

    def _rate(self, tree: DecisionTree) -> Fraction | None:
        """The rate, or the amount; None where there is nothing to take a share of."""
        rows, predicted = np.arange(self.dataset.n_samples), tree.predictions(self.dataset.X)
        cells = self.part[rows, predicted] + 2 * (self.whole[rows, predicted] | self.always)
        _, part, whole, both = self.dataset.exact.sums(cells, 4)
        if self.count:
            return (part + both) * self.dataset.exact.unit
        return Fraction(part + both, whole + both) if whole + both else None

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        return self.at_least, self.at_most

    def value(self, tree: DecisionTree) -> float:
        """The rate, or the amount; not a number where there is nothing to take a share of."""
        rate = self._rate(tree)
        return math.nan if rate is None else float(rate)

    def violation(self, tree: DecisionTree) -> float:
        rate = self._rate(tree)
        if rate is None:
            return 0.0
        size = self.dataset.exact.total() * self.dataset.exact.unit if self.count else Fraction(1)
        return excess(rate, self.at_least, self.at_most, size)


@dataclass(frozen=True, eq=False)
class _Rate(NamesAClass, Constraint):
    """A rate of one class with limits on either side."""

    positive: Any = None
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.at_least is None and self.at_most is None:
            raise InvalidInputError(f"{name}: at_least or at_most must be given")
        for argument in ("at_least", "at_most"):
            if getattr(self, argument) is not None:
                share(getattr(self, argument), f"{name}: {argument}")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise InvalidInputError(f"{name}: at_least {self.at_least} is above at_most {self.at_most}")

    def _name(self, dataset: BinaryDataset) -> str:
        parts = [
            f"{word} {value:g}"
            for word, value in (("at least", self.at_least), ("at most", self.at_most))
            if value is not None
        ]
        return f"{self.title(dataset)} {' and '.join(parts)}"

    def bind(self, dataset: BinaryDataset) -> BoundRate:
        positive = self.class_index(dataset)
        part, whole = np.zeros((2, dataset.n_samples, dataset.n_classes), dtype=bool)
        always = self._fill(part, whole, dataset.y == positive, positive)
        return BoundRate(self._name(dataset), dataset, part, whole, always, self.at_least, self.at_most)

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        """Write which predictions count; returns the samples that always belong to the whole."""
        raise NotImplementedError


class Recall(_Rate):
    """Of the weight of class `positive`, the share that is predicted to be of it (sensitivity, true-positive rate)."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[own, positive] = True
        return own


class FalsePositiveRate(_Rate):
    """Of the weight of the other classes, the share that is predicted to be `positive`."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[~own, positive] = True
        return ~own


class Specificity(_Rate):
    """Of the weight of the other classes, the share that is not predicted to be `positive`."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[~own] = True
        part[:, positive] = False
        return ~own


class Precision(_Rate):
    """Of the weight that is predicted to be `positive`, the share that is; kept where nothing is predicted so."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[own, positive] = True
        whole[:, positive] = True
        return np.zeros_like(own)


@dataclass(frozen=True, eq=False)
class PositiveBudget(NamesAClass, Constraint):
    """At most so much weight is predicted to be `positive`.

    Parameters
    ----------
    at_most : float
        A share of the total weight between 0 and 1; or an amount of weight, with ``count=True``.
    positive : label, optional
    count : bool
        Whether `at_most` is an amount: a number of samples where they have no weights.
    """

    at_most: float
    positive: Any = None
    count: bool = False

    def __post_init__(self) -> None:
        if not self.count:
            share(self.at_most, "PositiveBudget: at_most")
        elif not 0 <= number(self.at_most, "PositiveBudget: at_most") < np.inf:
            raise InvalidInputError(
                f"PositiveBudget: at_most must be an amount of at least 0, got {shown(self.at_most)}"
            )

    def bind(self, dataset: BinaryDataset) -> BoundRate:
        part, whole = np.zeros((2, dataset.n_samples, dataset.n_classes), dtype=bool)
        part[:, self.class_index(dataset)] = True
        name, always = f"{self.title(dataset)} at most {self.at_most:g}", np.ones(dataset.n_samples, dtype=bool)
        return BoundRate(name, dataset, part, whole, always, at_most=float(self.at_most), count=self.count)
