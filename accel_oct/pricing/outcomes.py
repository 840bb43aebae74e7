"""What subtrees come to: values and uses, and one tree for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]

#: The feature, or the split, of a leaf.
LEAF = -1


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
    choice : int array (m, 3 or 7)
        How each came about. Seven numbers: a feature, then for each side the feature of its split and two classes, see
        `kernels.outcomes`. Three: a split, and the places of the outcomes of both its sides.
    splits : tuple of (feature, Outcomes, Outcomes)
        Which splits the three numbers speak of.
    """

    loss: FloatArray
    results: FloatArray
    choice: NDArray[Any]
    splits: tuple[tuple[int, Outcomes, Outcomes], ...] = ()

    def tree(self, place: int) -> DecisionTree:
        """One tree with this outcome."""
        choice = self.choice[place].tolist()
        if choice[0] == LEAF:
            return DecisionTree.leaf(choice[-1])
        if len(choice) == 7:
            return DecisionTree.branch(choice[0], _stump(*choice[1:4]), _stump(*choice[4:]))
        feature, zero, one = self.splits[choice[0]]
        return DecisionTree.branch(feature, zero.tree(choice[1]), one.tree(choice[2]))


def _stump(feature: int, zero: int, one: int) -> DecisionTree:
    if feature == LEAF:
        return DecisionTree.leaf(one)
    return DecisionTree.branch(feature, DecisionTree.leaf(zero), DecisionTree.leaf(one))
