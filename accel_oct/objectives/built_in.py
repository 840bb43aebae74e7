"""The objectives of the library: accuracies, costs of mistakes, ratios such as F1; and objectives by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.objectives.base import LinearScore, Objective, RatioScore
from accel_oct.support.arguments import class_index, number_array
from accel_oct.support.arrays import FloatArray

#: Integer weights are not rounded up to this total.
_EXACT_TOTAL = 2**51

#: Largest absolute value of a cost.
_MOST = 1e100

#: `reads` of most objectives.
_CLASSES = frozenset({"class", "weight"})


# ---------------------------------------------------------------- shares


@dataclass(frozen=True)
class Accuracy(Objective):
    """Share of the weight that is classified correctly."""

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        return LinearScore("accuracy", dataset, None, dataset.total_weight, reads=_CLASSES)

    @property
    def is_accuracy(self) -> bool:
        return True


@dataclass(frozen=True)
class BalancedAccuracy(Objective):
    """Mean recall: the mean over the classes of the share of their weight that is classified correctly."""

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        factors, norm = balancing(dataset.class_weights(), dataset.integral)
        return LinearScore("balanced accuracy", dataset, _own_class(dataset, factors), norm, reads=_CLASSES)


@dataclass(frozen=True, eq=False)
class ClassWeights(Objective):
    """Accuracy with a weight per class: the share of the reweighted samples that is classified correctly.

    Unlike weights of samples, these affect the objective only: constraints use the samples without class weights.

    Parameters
    ----------
    weights : mapping from labels to weights, or "balanced"
        Not negative; the default for a class is 1. "balanced" is `BalancedAccuracy`.
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
            raise InvalidInputError("ClassWeights: weights give every sample a weight of 0")
        total = math.fsum(amounts.sum(axis=1))
        return LinearScore("class-weighted accuracy", dataset, amounts, total, reads=_CLASSES)

    def factors(self, classes: list[Any]) -> FloatArray:
        """Return the weight of each class."""
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
    """Return factors that give every class the same total weight, and the sum of these totals.

    Integer weights stay integer: the factor is the least common multiple of the class totals over the total of the
    class. Then sums are exact, and ties between trees do not depend on whether a sample is repeated or has weight 2.
    """
    present = totals[totals > 0]
    scale = float(totals.sum()) / len(present)
    if integral and present.max() < _EXACT_TOTAL:
        multiple = math.lcm(*(int(total) for total in present))
        if multiple * len(present) < _EXACT_TOTAL:
            scale = float(multiple)
    factors = np.divide(scale, totals, out=np.zeros(len(totals)), where=totals > 0)
    return factors, scale * len(present)


# ---------------------------------------------------------------- costs


@dataclass(frozen=True, eq=False)
class CostMatrix(Objective):
    """Minus the mean cost, where a prediction costs ``costs[true class, predicted class]``.

    Parameters
    ----------
    costs : array (n_classes, n_classes) or mapping
        Rows are true classes and columns predicted ones, both in sorted order. A mapping has pairs
        ``(true, predicted)`` of labels as keys; missing pairs cost 0. Negative costs are gains.
    """

    costs: Any

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        labels = dataset.classes.tolist()
        costs = by_classes(self.costs, labels, "CostMatrix: costs")
        return _mean_cost(dataset, costs[dataset.y], "CostMatrix: costs", _CLASSES)


@dataclass(frozen=True, eq=False)
class InstanceCosts(Objective):
    """Minus the mean cost, where predicting class k for sample i costs ``costs[i, k]``.

    Parameters
    ----------
    costs : array (n_samples, n_classes), optional
        Classes in sorted order. None uses the costs passed with the data: ``OptimalTreeClassifier.fit(..., costs=)``.
    """

    costs: Any = None

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        costs = dataset.row_values.get(COSTS) if self.costs is None else self.costs
        if costs is None:
            raise InvalidInputError("InstanceCosts: costs must be given, here or in fit(..., costs=)")
        shape = (dataset.n_samples, dataset.n_classes)
        arrays = () if self.costs is None else ("costs",)
        where, reads = "InstanceCosts: costs", frozenset({"weight", "rows"})
        return _mean_cost(dataset, numbers(costs, shape, where), where, reads, arrays)

    def on_tally(self) -> Objective:
        raise InvalidInputError("InstanceCosts: costs per sample need rows; on a tally use CostMatrix")


@dataclass(frozen=True)
class MeanReward(Objective):
    """Mean reward of the predictions, of policies: minus the costs of `InstanceCosts` that come with the data."""

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        return replace(InstanceCosts().bind(dataset), name="mean reward")


#: Name of the costs of samples in `BinaryDataset.row_values`; no column of a table has it.
COSTS = "\0costs"


def numbers(values: Any, shape: tuple[int, ...], where: str) -> FloatArray:
    """Return numbers of at most `_MOST` as an array of some shape, or raise InvalidInputError."""
    array = number_array(values, shape, where)
    if not (np.abs(array) <= _MOST).all():
        raise InvalidInputError(f"{where} must lie between {-_MOST:g} and {_MOST:g}")
    return array


def by_classes(values: Any, labels: list[Any], where: str) -> FloatArray:
    """Return numbers by true and predicted class, from an array or from a mapping of pairs of labels."""
    if not isinstance(values, Mapping):
        return numbers(values, (len(labels), len(labels)), where)
    place = {label: k for k, label in enumerate(labels)}
    found: FloatArray = np.zeros((len(labels), len(labels)))
    for pair, value in values.items():
        known = isinstance(pair, tuple) and len(pair) == 2
        if not known or pair[0] not in place or pair[1] not in place:
            raise InvalidInputError(
                f"{where}: {shown(pair)} is not a pair (true class, predicted class); the classes are {shown(labels)}"
            )
        found[place[pair[0]], place[pair[1]]] = numbers(value, (), where)
    return found


def _mean_cost(
    dataset: BinaryDataset, costs: FloatArray, where: str, reads: frozenset[str], arrays: tuple[str, ...] = ()
) -> LinearScore:
    if not math.isfinite(float(np.abs(costs).sum()) * dataset.total_weight):
        raise InvalidInputError(f"{where}: the sum exceeds the range of a float")
    rewards = -dataset.weights[:, None] * costs
    return LinearScore.of("minus mean cost", dataset, rewards, dataset.total_weight, reads, arrays)


def _weights(dataset: BinaryDataset) -> FloatArray:
    """Return the weights as they were given, up to a power of two.

    The weights on the grid are accurate relative to the total only, and the sums of a ratio may be much smaller.
    """
    weights = dataset.weights if dataset.given is None else dataset.given
    return np.ldexp(weights, -math.frexp(float(weights.max()))[1]) if dataset.given is not None else weights


@dataclass(frozen=True, eq=False)
class Ratio(Objective):
    """``(weighted sum of numerator[true, predicted]) / (weighted sum of denominator[true, predicted])``.

    Parameters
    ----------
    numerator, denominator : arrays (n_classes, n_classes) or mappings
        As the costs of `CostMatrix`. The denominator must be positive for all predictions; for a ratio that can be
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
            raise InvalidInputError("Ratio: denominator must be positive for all predictions")
        return RatioScore(self.name, dataset, over, under)


@dataclass(frozen=True)
class FBeta(Objective):
    """The F-beta score of one class: ``(1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP)`` with b = beta.

    Parameters
    ----------
    beta : float
        Weight of recall relative to precision, between 0.01 and 100.
    positive : label, optional
        By default the second of two classes in sorted order.
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
        k = class_index(self.positive, labels, f"{name}: positive")
        own, weights = dataset.y == k, _weights(dataset)
        if not weights[own].any():
            raise InvalidInputError(
                f"{name}: the score is undefined, because all samples of class {shown(labels[k])} have weight 0"
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
    """Harmonic mean of the precision and the recall of one class: `FBeta` with beta 1.

    Parameters
    ----------
    positive : label, optional
        By default the second of two classes in sorted order.
    """

    positive: Any = None

    def bind(self, dataset: BinaryDataset) -> RatioScore:
        return FBeta(1.0, self.positive).bind(dataset)


#: Objectives by name.
NAMED: dict[str, type[Any]] = {"accuracy": Accuracy, "balanced_accuracy": BalancedAccuracy, "f1": F1}


def as_objective(value: Any) -> Objective:
    """Return the objective for an argument `objective`: None for accuracy, a name, or an objective."""
    if value is None:
        return Accuracy()
    if isinstance(value, str):
        if value not in NAMED:
            known = ", ".join(map(repr, NAMED))
            raise InvalidInputError(f"objective must be one of {known} or an Objective, got {shown(value)}")
        return NAMED[value]()  # type: ignore[no-any-return]
    if not isinstance(value, Objective):
        hint = f"; did you mean {value.__name__}(...)?" if isinstance(value, type) else ""
        raise InvalidInputError(f"objective must be a name or an accel_oct Objective, got {shown(value)}{hint}")
    return value
