"""What subtrees come to: values and uses, and one tree for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: The feature of a leaf.
LEAF = -1

MOST_OUTCOMES = 4_000_000
"""Outcomes that are combined at one place; beyond it the enumeration is given up."""


class TooMany(Exception):
    """The enumeration was given up: time, memory or the user's wish."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What subtrees of one set come to, least loss first.

    Attributes
    ----------
    loss : float array (m,)
    results : float array (m, 1 + n_limits)
        Value, and what is used of each limit.
    feature : int array (m,)
        Feature of the split, -1 for a leaf.
    first, second : int arrays (m,)
        Places of the outcomes of both sides in `sides[feature]`; the classes of two leaves where there is none; for a
        leaf its class, twice.
    """

    loss: FloatArray
    results: FloatArray
    feature: IntArray
    first: IntArray
    second: IntArray
    sides: dict[int, tuple[Outcomes, Outcomes]]

    def within(self, slack: float) -> int:
        """How many have at most this loss."""
        return int(np.searchsorted(self.loss, slack, side="right"))

    def tree(self, place: int) -> DecisionTree:
        """One tree with this outcome."""
        feature = int(self.feature[place])
        if feature == LEAF:
            return DecisionTree.leaf(int(self.first[place]))
        first, second = int(self.first[place]), int(self.second[place])
        if feature not in self.sides:
            return DecisionTree.branch(feature, DecisionTree.leaf(first), DecisionTree.leaf(second))
        zero, one = self.sides[feature]
        return DecisionTree.branch(feature, zero.tree(first), one.tree(second))


def pruned(options: list[Outcomes], slack: float, grain: FloatArray) -> Outcomes:
    """Of equal uses the best value; sorted by loss."""
    loss = np.concatenate([option.loss for option in options])
    results = np.concatenate([option.results for option in options])
    if loss.size > MOST_OUTCOMES:
        raise TooMany
    kept = np.flatnonzero(loss <= slack)
    keys = np.rint(results[kept, 1:] / grain)
    order = np.lexsort((-results[kept, 0], *keys.T))
    keys = keys[order]
    new = np.ones(order.size, dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    kept = kept[order[new]]
    kept = kept[np.argsort(loss[kept], kind="stable")]
    feature, first, second = (
        np.concatenate([getattr(option, name) for option in options])[kept] for name in ("feature", "first", "second")
    )
    sides = {feature: pair for option in options for feature, pair in option.sides.items()}
    return Outcomes(loss[kept], results[kept], feature, first, second, sides)
