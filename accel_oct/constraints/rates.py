"""Limits on rates of one class: recall, precision, false positives, and budgets.

Every rate is a weighted share: of the weight of some samples, the part that is predicted as some class. Multiplied by
the denominator, all limits are linear in the predictions.
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
from accel_oct.constraints.statements import RowSet, Share, Statement, tolerated
from accel_oct.constraints.traits import FORGIVEN, LinearLimit, Traits, excess
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import BoolArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class BoundRate(BoundConstraint):
    """Limits on ``part / whole``, where part and whole are weights of samples that are predicted as certain classes.

    `violation` compares the rate in exact arithmetic, from the weights as given. Only the linear limits, which
    guide the search, are in floating point.

    Attributes
    ----------
    part, whole : bool arrays (n_samples, n_classes)
        Whether a sample counts if a class is predicted for it. As a linear limit:
        ``sum of w_i (part - limit * whole) z <= 0`` or ``>= 0``. If the whole of a tree is zero, it is satisfied.
    always : bool array (n_samples,)
        Samples that belong to the whole whatever the tree predicts.
    count : bool
        Whether `at_most`, and the value, is an amount of weight instead of a rate.
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
                limit = float(min(Fraction(limit) / total, Fraction(2)))  # no tree exceeds 1
                unit = float(min(1 / total, Fraction(sys.float_info.max)))
            coefficients = sign * shares[:, None] * (self.part - limit * self.whole)
            limits.append(LinearLimit(self.name, coefficients, sign * limit * constant, tolerance=FORGIVEN, unit=unit))
        return Traits(limits=tuple(limits), reads={"class", "weight"})

    def statements(self) -> tuple[Statement, ...]:
        exact, found = self.dataset.exact, []
        always = self._classes(self.always)
        per = (RowSet.of_classes(*always),) if 0 < len(always) < self.dataset.n_classes else ()
        if (always and not exact.total(self.always)) or not exact.total():
            return ()  # no tree has a rate
        for sign, limit in ((1, self.at_most), (-1, self.at_least)):
            if limit is None:
                continue
            stated = tolerated(limit, sign, exact.total() * exact.unit, self.count)
            shares = self._shares(self.part, Fraction(sign), per)
            if not self.count:
                shares += self._shares(self.whole, -stated, per)
            found.append(Statement(tuple(shares), stated if always else Fraction(0)))
        return tuple(found)

    def _classes(self, rows: BoolArray) -> tuple[int, ...]:
        """Return the classes of some rows; rows of a class count all or none."""
        return tuple(np.unique(self.dataset.y[rows]).tolist())

    def _shares(self, counts: BoolArray, times: Fraction, per: tuple[RowSet, ...]) -> list[Share]:
        """Return the weight of the rows that count if they are predicted certain classes, as shares."""
        predicted: dict[tuple[int, ...], list[int]] = {}
        for label, rows in enumerate(counts.T):
            if rows.any():
                predicted.setdefault(self._classes(rows), []).append(label)
        everything = self.dataset.n_classes
        return [
            Share(times, tuple(labels), () if len(classes) == everything else (RowSet.of_classes(*classes),), per)
            for classes, labels in predicted.items()
        ]

    def _rate(self, tree: DecisionTree) -> Fraction | None:
        """Return the rate, or the amount; None if the whole is zero."""
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
        """Return the rate, or the amount; NaN if the whole is zero."""
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
    """A rate of one class with a lower limit, an upper limit, or both."""

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
        """Fill `part` and `whole`; return the samples that always belong to the whole."""
        raise NotImplementedError


class Recall(_Rate):
    """Share of the weight of class `positive` that is predicted `positive` (sensitivity, true-positive rate)."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[own, positive] = True
        return own


class FalsePositiveRate(_Rate):
    """Share of the weight of the other classes that is predicted `positive`."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[~own, positive] = True
        return ~own


class Specificity(_Rate):
    """Share of the weight of the other classes that is not predicted `positive`."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[~own] = True
        part[:, positive] = False
        return ~own


class Precision(_Rate):
    """Share of the weight predicted `positive` that is of this class; satisfied if nothing is predicted `positive`."""

    def _fill(self, part: BoolArray, whole: BoolArray, own: BoolArray, positive: int) -> BoolArray:
        part[own, positive] = True
        whole[:, positive] = True
        return np.zeros_like(own)


@dataclass(frozen=True, eq=False)
class PositiveBudget(NamesAClass, Constraint):
    """Upper limit on the weight that is predicted `positive`.

    Parameters
    ----------
    at_most : float
        A share of the total weight between 0 and 1; or an amount of weight, with ``count=True``.
    positive : label, optional
    count : bool
        Whether `at_most` is an amount of weight; for samples without weights, a number of samples.
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
