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
