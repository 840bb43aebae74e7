"""What mistakes cost: by true and predicted class, or by sample."""

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

#: Larger numbers would be lost in sums, or lose others.
_MOST = 1e100


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """Minus the mean cost, where a prediction costs ``costs[true class, predicted class]``.

    Parameters
    ----------
    costs : array (n_classes, n_classes) or mapping
        Rows are true classes and columns predicted ones, both in sorted order. A mapping goes from pairs
        ``(true, predicted)`` of labels to costs, where what is not named is free. Costs may be negative: a gain.
    """

    costs: Any

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        labels = dataset.classes.tolist()
        costs = by_classes(self.costs, labels, "CostMatrix: costs")
        return _mean_cost(dataset, costs[dataset.y], "CostMatrix: costs")


@dataclass(frozen=True, eq=False)
class InstanceCosts:
    """Minus the mean cost, where predicting class k for sample i costs ``costs[i, k]``.

    Parameters
    ----------
    costs : array (n_samples, n_classes), optional
        Classes in sorted order. None takes those that come with the data: ``OptimalTreeClassifier.fit(..., costs=)``.
    """

    costs: Any = None

    def bind(self, dataset: BinaryDataset) -> LinearScore:
        costs = dataset.row_values.get(COSTS) if self.costs is None else self.costs
        if costs is None:
            raise InvalidInputError("InstanceCosts: costs must be given, here or in fit(..., costs=)")
        shape = (dataset.n_samples, dataset.n_classes)
        return _mean_cost(dataset, numbers(costs, shape, "InstanceCosts: costs"), "InstanceCosts: costs")


#: The name under which the costs of samples come with the data; no column of a table has it.
COSTS = "\0costs"


def numbers(values: Any, shape: tuple[int, ...], where: str) -> FloatArray:
    """Finite numbers in an array of some shape, or an error that says what is wrong."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{where} must hold numbers, got {shown(values)}") from None
    if array.shape != shape:
        raise InvalidInputError(f"{where} must have the shape {shape}, got {array.shape}")
    if np.isnan(array).any():
        raise InvalidInputError(f"{where} holds a NaN")
    if not (np.abs(array) <= _MOST).all():
        raise InvalidInputError(f"{where} must be finite and not beyond {_MOST:g}")
    return array


def by_classes(values: Any, labels: list[Any], where: str) -> FloatArray:
    """Numbers by true and predicted class, from an array or from a mapping of pairs of labels."""
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


def _mean_cost(dataset: BinaryDataset, costs: FloatArray, where: str) -> LinearScore:
    if not math.isfinite(float(np.abs(costs).sum()) * dataset.total_weight):
        raise InvalidInputError(f"{where} add up to more than a float can hold")
    return LinearScore.of("minus mean cost", dataset, -dataset.weights[:, None] * costs, dataset.total_weight)
