"""The problem with limits in arrays, and what it becomes at given prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset, ScoredDataset
from accel_oct.data.binary_matrix import BoolMatrix, pack_rows
from accel_oct.data.exact_weights import accurate_sums
from accel_oct.pricing.limited import Limit, Limited, PricedProblem
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Bits of the total that priced weights are rounded to, so that all sums of them are exact.
_TOTAL_BITS = 50


@dataclass(frozen=True, eq=False)
class LimitedProblem(Limited):
    """Best trees under limits, in arrays over the distinct points of the data.

    Attributes
    ----------
    X : bool array (n_points, n_features)
    gains : float array (n_points, n_classes)
        What predicting each class at each point scores: for accuracy, the weight of the class there.
    uses : float array (n_limits, n_points, n_classes)
        What a prediction uses of each limit; every limit is scaled to a largest entry of one.
    leaf_uses, upper : float arrays (n_limits,)
        What a leaf uses, and what may be used: what is forgiven included, so that whatever keeps a constraint by its
        own measure keeps its limits.
    leaf_price : float
    max_depth : int
    scales : float array (n_limits,)
        What the limits as stated were divided by.
    rules : LocalRules or None
        About leaves and paths, in points. They allow a leaf of all points: otherwise there is no tree at all.
    """

    X: BoolMatrix
    gains: FloatArray
    uses: FloatArray
    leaf_uses: FloatArray
    upper: FloatArray
    leaf_price: float
    max_depth: int
    scales: FloatArray
    rules: LocalRules | None = None

    @classmethod
    def of(
        cls,
        dataset: BinaryDataset,
        limits: Sequence[Limit],
        leaf_price: float,
        max_depth: int,
        rules: LocalRules | None = None,
        scored: BinaryDataset | None = None,
    ) -> LimitedProblem:
        """Limits and rules speak of the rows of `dataset`; what predictions earn is said by `scored`, if given."""
        _, first, point = np.unique(pack_rows(dataset.X), axis=0, return_index=True, return_inverse=True)
        point = point.ravel()
        shape = (first.size, dataset.n_classes)
        gains = np.zeros(shape)
        rows = dataset if scored is None else scored
        row_point = point[rows.source] if isinstance(rows, ScoredDataset) else point
        np.add.at(gains, (row_point, rows.y), rows.weights)
        uses = np.zeros((len(limits), *shape))
        leaf_uses = np.array([limit.leaves for limit in limits], dtype=np.float64)
        scales = np.ones(len(limits))
        upper = np.array([limit.upper + limit.tolerance for limit in limits], dtype=np.float64)
        for j, limit in enumerate(limits):
            if limit.predictions is not None:
                uses[j] = accurate_sums(limit.predictions, point, first.size)
            scale = max(float(np.abs(uses[j]).max(initial=0.0)), abs(float(leaf_uses[j])))
            if scale > 0:
                scales[j] = scale
                uses[j] /= scale
                leaf_uses[j] /= scale
                # Beyond what any tree can use, more makes no difference, and could not be told from infinity.
                most = float(np.abs(uses[j]).max(axis=1).sum()) + 2**max_depth * abs(float(leaf_uses[j])) + 1.0
                with np.errstate(over="ignore"):
                    upper[j] = np.clip(upper[j] / scale, -most, most)
        if rules is not None:
            rules = _merged(rules, point, first.size)
        return cls(dataset.X[first], gains, uses, leaf_uses, upper, leaf_price, max_depth, scales, rules)

    @property
    def total_weight(self) -> float:
        return float(self.gains.sum())

    @property
    def size(self) -> int:
        return len(self.X)

    @property
    def n_classes(self) -> int:
        return int(self.gains.shape[1])

    def outcome(self, tree: DecisionTree) -> FloatArray:
        """Value of a tree, then what it uses of each limit."""
        rows, predicted = np.arange(len(self.X)), tree.predictions(self.X)
        value = float(self.gains[rows, predicted].sum()) - self.leaf_price * tree.n_leaves
        used = self.uses[:, rows, predicted].sum(axis=1) + self.leaf_uses * tree.n_leaves
        return np.concatenate([[value], used])

    def everyone(self) -> IntArray:
        return np.arange(len(self.X))

    def side(self, samples: IntArray, feature: int, side: bool) -> IntArray:
        own: IntArray = samples[self.X[samples, feature] == side]
        return own

    def key(self, samples: IntArray) -> bytes:
        return samples.tobytes()

    def leaf_amounts(self, samples: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.gains[samples].sum(axis=0), self.uses[:, samples].sum(axis=1)

    def priced_leaves(self, priced: PricedProblem, samples: IntArray) -> FloatArray:
        return np.asarray(priced.weights[samples].sum(axis=0))

    @cached_property
    def one_line(self) -> bool:
        """Whether there are two limits, opposite and not contradictory: one of them at most is worth a price.

        What a tree uses of one it saves of the other. If both could not be kept, prices on both would prove it.
        """
        opposite = self.n_limits == 2 and np.array_equal(self.uses[0], -self.uses[1])
        return bool(opposite and np.array_equal(self.leaf_uses[0], -self.leaf_uses[1]) and self.upper.sum() >= 0)

    @cached_property
    def rounding(self) -> FloatArray:
        """For each limit, what floating-point sums of uses may be off by, and more."""
        largest = np.abs(self.uses).max(axis=2).sum(axis=1) + 2**self.max_depth * np.abs(self.leaf_uses)
        return np.asarray((1e-12 + len(self.X) * 2.0**-52) * np.maximum(1.0, largest + np.abs(self.upper)))

    def restricted(self, columns: IntArray) -> LimitedProblem:
        """The same with some of the features; points that they do not tell apart become one."""
        X = self.X[:, columns]
        _, first, point = np.unique(pack_rows(X), axis=0, return_index=True, return_inverse=True)
        point = point.ravel()
        gains = np.zeros((first.size, self.gains.shape[1]))
        np.add.at(gains, point, self.gains)
        uses = np.zeros((self.n_limits, *gains.shape))
        for j, all_ in enumerate(self.uses):
            uses[j] = accurate_sums(all_, point, first.size)
        rules = None if self.rules is None else _merged(self.rules, point, first.size).of_columns(columns)
        return replace(self, X=X[first], gains=gains, uses=uses, rules=rules)

    def priced(self, prices: FloatArray) -> PricedProblem:
        """The problem at some prices."""
        rewards = self.gains - np.tensordot(prices, self.uses, axes=1)
        leaf_price = self.leaf_price + float(prices @ self.leaf_uses)
        # One class is free at every point: what it earns is earned by every tree.
        free = rewards.min(axis=1)
        weights = rewards - free[:, None]
        total = float(weights.sum()) + 2**self.max_depth * abs(leaf_price)
        bits = _TOTAL_BITS - (math.frexp(total)[1] if total > 0 else 0)
        rounded, price = _on_grid(weights, bits), float(_on_grid(np.array([leaf_price]), bits)[0])
        # Points to which no class is dearer than another stay: they may use what others earn.
        rounded[rounded.max(axis=1) == 0.0, 0] = math.ldexp(1.0, -bits)
        error = float(np.abs(rounded - weights).max(axis=1).sum()) + 2**self.max_depth * abs(price - leaf_price)
        # What prices multiply may cancel out in the rewards; its rounding does not.
        noise = 1e-12 * float(np.abs(self.gains).sum()) + float(np.abs(prices) @ self.rounding)
        return PricedProblem(
            prices=prices,
            weights=rounded,
            leaf_price=price,
            constant=float(free.sum()) + float(prices @ self.upper),
            error=error + noise,
        )


class PricedRows(NamedTuple):
    """Weighted samples: the point, the class and the weight of each, and the rules about them."""

    point: IntArray
    label: IntArray
    weights: FloatArray
    rules: LocalRules | None


def priced_rows(priced: PricedProblem, rules: LocalRules | None) -> PricedRows:
    """As weighted samples, zeros left out; the first of each point has its mass."""
    point, label = np.nonzero(priced.weights)
    if rules is not None:
        first = np.append(True, point[1:] != point[:-1])
        rules = LocalRules(rules.masses[:, point] * first, rules.least, rules.apart)
    return PricedRows(point, label, priced.weights[point, label], rules)


def _merged(rules: LocalRules, point: IntArray, n_points: int) -> LocalRules:
    """Rules about rows as rules about the points that they belong to."""
    masses = np.zeros((len(rules.least), n_points))
    np.add.at(masses.T, point, rules.masses.T)
    return LocalRules(masses, rules.least, rules.apart)


def _on_grid(values: FloatArray, bits: int) -> FloatArray:
    return np.ldexp(np.rint(np.ldexp(values, bits)), -bits)
