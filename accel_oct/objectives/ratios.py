"""Ratios of counts, such as F1: sums over the samples above and below the line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.objectives.base import Objective, RatioScore
from accel_oct.objectives.sums import by_classes
from accel_oct.support.arrays import FloatArray


def _weights(dataset: BinaryDataset) -> FloatArray:
    """The weights as they were given: the sums of a ratio may be light beside the total that a grid is made for."""
    weights = dataset.weights if dataset.given is None else dataset.given
    return np.ldexp(weights, -math.frexp(float(weights.max()))[1]) if dataset.given is not None else weights


@dataclass(frozen=True, eq=False)
class Ratio(Objective):
    """``(weighted sum of numerator[true, predicted]) / (weighted sum of denominator[true, predicted])``.

    Parameters
    ----------
    numerator, denominator : arrays (n_classes, n_classes) or mappings
        As the costs of `CostMatrix`. The denominator must be positive whatever a tree predicts; for a ratio that can be
        0 / 0, such as precision, use a constraint.
    name : str
    """

    numerator: Any
    denominator: Any
    name: str = "ratio"

    def bind(self, dataset: BinaryDataset) -> RatioScore:
        labels = dataset.classes.tolist()
        weights = _weights(dataset)[:, None]
        over = weights * by_classes(self.numerator, labels, "Ratio: numerator")[dataset.y]
        under = weights * by_classes(self.denominator, labels, "Ratio: denominator")[dataset.y]
        if not float(under.min(axis=1).sum()) > 0:
            raise InvalidInputError("Ratio: denominator must be positive whatever a tree predicts")
        return RatioScore(self.name, dataset, over, under)


@dataclass(frozen=True)
class FBeta(Objective):
    """The F-beta score of one class: ``(1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP)`` with b = beta.

    Parameters
    ----------
    beta : float
        How much more recall counts than precision, between 0.01 and 100.
    positive : label, optional
        With two classes by default the second in sorted order.
    """

    beta: float = 1.0
    positive: Any = None

    def __post_init__(self) -> None:
        number = isinstance(self.beta, int | float | np.integer | np.floating) and not isinstance(self.beta, bool)
        if not number or not 0.01 <= self.beta <= 100:
            raise InvalidInputError(f"FBeta: beta must be a number between 0.01 and 100, got {shown(self.beta)}")

    def bind(self, dataset: BinaryDataset) -> RatioScore:
        labels = dataset.classes.tolist()
        name = "F1" if self.beta == 1 else "FBeta"
        if self.positive is None and len(labels) != 2:
            raise InvalidInputError(f"{name}: positive must name a class, there are {len(labels)}")
        if self.positive is not None and self.positive not in labels:
            raise InvalidInputError(
                f"{name}: positive {shown(self.positive)} is not a class; known are {shown(labels)}"
            )
        k = 1 if self.positive is None else labels.index(self.positive)
        own, weights = dataset.y == k, _weights(dataset)
        if not weights[own].any():
            raise InvalidInputError(
                f"{name}: no sample of class {shown(labels[k])} has a weight, the score is undefined"
            )
        square = float(self.beta) ** 2
        over = np.zeros((dataset.n_samples, dataset.n_classes))
        under = np.zeros_like(over)
        over[own, k] = (1 + square) * weights[own]
        under[own] = square * weights[own, None]
        under[own, k] = (1 + square) * weights[own]
        under[~own, k] = weights[~own]
        return RatioScore(f"F{self.beta:g}", dataset, over, under)


@dataclass(frozen=True)
class F1(Objective):
    """The harmonic mean of the precision and the recall of one class: `FBeta` with beta 1.

    Parameters
    ----------
    positive : label, optional
        With two classes by default the second in sorted order.
    """

    positive: Any = None

    def bind(self, dataset: BinaryDataset) -> RatioScore:
        return FBeta(1.0, self.positive).bind(dataset)
