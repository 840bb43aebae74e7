"""Rates of one class: recall, precision, and budgets.

Every rate is a weighted share: of the weight of some samples, the part that is predicted to be of some class. All of
them are linear in the predictions once they are multiplied out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.arguments import NamesAClass, number, share
from accel_oct.constraints.linear import FORGIVEN, TOLERANCE, LinearLimit
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Master
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoundRate:
    """``part / whole`` within limits, where part and whole are weights of samples that are predicted to be of a class.

    Attributes
    ----------
    part, whole : float arrays (n_samples, n_classes)
        Multiplied out: ``sum of (part - limit * whole) z <= 0`` or ``>= 0``. Where the whole of a tree is zero, both
        sums are, and the limit is kept.
    constant : float
        Weight that belongs to the whole whatever the tree predicts.
    amount : float or None
        The upper limit as an amount of weight, where people gave it so: then the value is told as one too.
    """

    name: str
    dataset: BinaryDataset
    part: FloatArray
    whole: FloatArray
    constant: float
    at_least: float | None = None
    at_most: float | None = None
    amount: float | None = None
    limits: tuple[LinearLimit, ...] = field(init=False)

    def __post_init__(self) -> None:
        limits = []
        # Rates may be off by the tolerance, so sums by that part of the largest whole.
        tolerance = FORGIVEN * (self.constant + float(np.abs(self.whole).max(axis=1).sum()))
        for sign, limit in ((1.0, self.at_most), (-1.0, self.at_least)):
            if limit is not None:
                coefficients = sign * (self.part - limit * self.whole)
                upper = sign * limit * self.constant
                unit = self.constant if self.amount is None else 1.0
                limits.append(LinearLimit(self.name, coefficients, upper, tolerance=tolerance, unit=unit))
        object.__setattr__(self, "limits", tuple(limits))

    def _sums(self, tree: DecisionTree) -> tuple[float, float]:
        rows, predicted = np.arange(self.dataset.n_samples), tree.predictions(self.dataset.X)
        return float(self.part[rows, predicted].sum()), float(self.whole[rows, predicted].sum()) + self.constant

    @property
    def allowed(self) -> tuple[float | None, float | None]:
        return (self.at_least, self.at_most) if self.amount is None else (None, self.amount)

    def value(self, tree: DecisionTree) -> float:
        """The rate, or the amount; not a number where there is nothing to take a share of."""
        return self._rate(tree) if self.amount is None else self._sums(tree)[0]

    def _rate(self, tree: DecisionTree) -> float:
        part, whole = self._sums(tree)
        return part / whole if whole > 0 else float("nan")

    def violation(self, tree: DecisionTree) -> float:
        rate = self._rate(tree)
        if np.isnan(rate):
            return 0.0
        over = -np.inf if self.at_most is None else rate - self.at_most
        under = -np.inf if self.at_least is None else self.at_least - rate
        return float(max(over, under)) - TOLERANCE

    def add_to(self, master: Master) -> None:
        for limit in self.limits:
            limit.add_to(master)


@dataclass(frozen=True, eq=False)
class _Rate(NamesAClass):
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
        part, whole = np.zeros((2, dataset.n_samples, dataset.n_classes))
        constant = self._fill(part, whole, dataset, positive)
        return BoundRate(self._name(dataset), dataset, part, whole, constant, self.at_least, self.at_most)

    def _fill(self, part: FloatArray, whole: FloatArray, dataset: BinaryDataset, positive: int) -> float:
        """Write what predictions count; returns the constant part of the whole."""
        raise NotImplementedError


class Recall(_Rate):
    """Of the weight of class `positive`, the share that is predicted to be of it (sensitivity, true-positive rate)."""

    def _fill(self, part: FloatArray, whole: FloatArray, dataset: BinaryDataset, positive: int) -> float:
        own = dataset.y == positive
        part[own, positive] = dataset.weights[own]
        return float(dataset.weights[own].sum())


class FalsePositiveRate(_Rate):
    """Of the weight of the other classes, the share that is predicted to be `positive`."""

    def _fill(self, part: FloatArray, whole: FloatArray, dataset: BinaryDataset, positive: int) -> float:
        other = dataset.y != positive
        part[other, positive] = dataset.weights[other]
        return float(dataset.weights[other].sum())


class Specificity(_Rate):
    """Of the weight of the other classes, the share that is not predicted to be `positive`."""

    def _fill(self, part: FloatArray, whole: FloatArray, dataset: BinaryDataset, positive: int) -> float:
        other = dataset.y != positive
        part[other] = dataset.weights[other, None]
        part[:, positive] = 0.0
        return float(dataset.weights[other].sum())


class Precision(_Rate):
    """Of the weight that is predicted to be `positive`, the share that is; kept where nothing is predicted so."""

    def _fill(self, part: FloatArray, whole: FloatArray, dataset: BinaryDataset, positive: int) -> float:
        own = dataset.y == positive
        part[own, positive] = dataset.weights[own]
        whole[:, positive] = dataset.weights
        return 0.0


@dataclass(frozen=True, eq=False)
class PositiveBudget(NamesAClass):
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
        positive, total = self.class_index(dataset), dataset.total_weight
        part = np.zeros((dataset.n_samples, dataset.n_classes))
        part[:, positive] = dataset.weights
        amount = float(self.at_most) if self.count else None
        share = float(self.at_most) if amount is None else amount / total
        name = f"{self.title(dataset)} at most {self.at_most:g}"
        return BoundRate(name, dataset, part, np.zeros_like(part), total, at_most=share, amount=amount)
