"""Weighted shares of samples that are classified correctly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.objectives.protocol import LinearScore

FloatArray = NDArray[np.float64]

#: Below this total the data set keeps whole weights as they are.
_EXACT_TOTAL = 2**51


@dataclass(frozen=True)
class Accuracy:
    """The share of the weight that is classified correctly."""

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        return LinearScore("accuracy", dataset, None, dataset.total_weight)


@dataclass(frozen=True)
class BalancedAccuracy:
    """The mean over the classes of the share of their weight that is classified correctly: mean recall."""

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        factors, norm = balancing(dataset.class_weights(), dataset.integral)
        return LinearScore("balanced accuracy", dataset, _own_class(dataset, factors), norm)


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Accuracy with a weight per class: the share of the reweighted samples that is classified correctly.

    Unlike weights of samples, these count in the objective alone: rates that constraints limit are those of the samples
    as they are.

    Parameters
    ----------
    weights : mapping from labels to weights, or "balanced"
        Not negative; a class that is not named has weight 1. "balanced" is `BalancedAccuracy`.
    """

    weights: Any

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        if isinstance(self.weights, str):
            if self.weights != "balanced":
                raise InvalidInputError(
                    f"ClassWeights: weights must be 'balanced' or a mapping from classes, got {shown(self.weights)}"
                )
            return BalancedAccuracy().bind(dataset)
        amounts = _own_class(dataset, self.factors(dataset.classes.tolist()))
        if not amounts.any():
            raise InvalidInputError("ClassWeights: weights give no weight to any sample")
        return LinearScore("class-weighted accuracy", dataset, amounts, math.fsum(amounts.sum(axis=1)))

    def factors(self, classes: list[Any]) -> FloatArray:
        """The weight of each class."""
        if not isinstance(self.weights, Mapping):
            raise InvalidInputError(
                f"ClassWeights: weights must be 'balanced' or a mapping from classes, got {shown(self.weights)}"
            )
        unknown = [label for label in self.weights if label not in classes]
        if unknown:
            raise InvalidInputError(f"ClassWeights: weights names {shown(unknown[0])}, which is not a class")
        try:
            factors = np.array([float(self.weights.get(label, 1.0)) for label in classes])
        except (TypeError, ValueError):
            raise InvalidInputError(f"ClassWeights: weights must be numbers, got {shown(self.weights)}") from None
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise InvalidInputError(f"ClassWeights: weights must be finite and not negative, got {shown(self.weights)}")
        return factors


def _own_class(dataset: BinaryDataset, factors: FloatArray) -> FloatArray:
    amounts = np.zeros((dataset.n_samples, dataset.n_classes))
    amounts[np.arange(dataset.n_samples), dataset.y] = dataset.weights * factors[dataset.y]
    return amounts


def balancing(totals: FloatArray, integral: bool) -> tuple[FloatArray, float]:
    """Factors that give every class the same total, and what all of it comes to.

    Whole weights stay whole: times the least common multiple of the class totals, over the total of the class. Sums are
    exact then, so ties between trees are broken alike whether a sample is repeated or has weight 2.
    """
    present = totals[totals > 0]
    scale = float(totals.sum()) / len(present)
    if integral and present.max() < _EXACT_TOTAL:
        multiple = math.lcm(*(int(total) for total in present))
        if multiple * len(present) < _EXACT_TOTAL:
            scale = float(multiple)
    factors = np.divide(scale, totals, out=np.zeros(len(totals)), where=totals > 0)
    return factors, scale * len(present)
