"""Everything that trees can predict on few distinct points, whatever their depth.

Of the trees that predict the same at every point, those with the fewest leaves stand for all: a limit on leaves from
above and the price of leaves like no other better. There are at most (classes ** points) of them, so depth four is
no harder than depth two, unlike with `oracles.enumeration`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accel_oct.tree import DecisionTree
from oracles.enumeration import to_decision_tree


def reachable(X: np.ndarray, n_classes: int, max_depth: int) -> Iterator[tuple[tuple[int, ...], int, DecisionTree]]:
    """The classes predicted for the rows of X, the fewest leaves that do so, and such a tree."""
    points, point_of = np.unique(np.asarray(X, dtype=bool), axis=0, return_inverse=True)
    known: dict = {}
    found = _below(points.tolist(), tuple(range(len(points))), n_classes, max_depth, known)
    for labels, (n_leaves, nested) in found.items():
        predicted = tuple(labels[place] for place in point_of.ravel().tolist())
        yield predicted, n_leaves, to_decision_tree(nested, max_depth)


def _below(points: list, members: tuple[int, ...], n_classes: int, depth: int, known: dict) -> dict:
    """Classes of the members to (leaves, nested tree)."""
    if (members, depth) in known:
        return known[members, depth]
    found = {(label,) * len(members): (1, label) for label in range(n_classes)}
    for feature in range(len(points[0]) if depth else 0):
        sides = [tuple(i for i in members if points[i][feature] == side) for side in (False, True)]
        if not all(sides):
            continue
        zeros, ones = (_below(points, side, n_classes, depth - 1, known) for side in sides)
        for zero, (zero_leaves, zero_tree) in zeros.items():
            for one, (one_leaves, one_tree) in ones.items():
                at = dict(zip(sides[0] + sides[1], zero + one, strict=True))
                labels = tuple(at[i] for i in members)
                if labels not in found or found[labels][0] > zero_leaves + one_leaves:
                    found[labels] = (zero_leaves + one_leaves, (feature, zero_tree, one_tree))
    known[members, depth] = found
    return found
