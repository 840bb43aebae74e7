"""Everything that trees can predict on few distinct points, whatever their depth.

Of the trees that predict the same at every point, those with the fewest leaves stand for all: a limit on leaves from
above and the price of leaves like no other better. There are at most (classes ** points) of them, so depth four is
no harder than depth two, unlike with `oracles.enumeration`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from accel_oct.tree import DecisionTree
from oracles.enumeration import to_decision_tree

Leaf = Callable[[tuple[int, ...]], bool]


def reachable(X: np.ndarray, n_classes: int, max_depth: int) -> Iterator[tuple[tuple[int, ...], int, DecisionTree]]:
    """The classes predicted for the rows of X, the fewest leaves that do so, and such a tree."""
    for predicted, n_leaves, nested in predictions(X, n_classes, max_depth):
        yield predicted, n_leaves, to_decision_tree(nested, max_depth)


def predictions(
    X: np.ndarray,
    n_classes: int,
    max_depth: int,
    is_leaf: Leaf = lambda rows: True,
    apart: Collection[tuple[int, int]] = (),
) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    """The same with trees that are nested, as in `oracles.enumeration`, under rules.

    `is_leaf` says of some rows whether they may be a leaf; no path uses both columns of a pair in `apart`. No leaf is
    empty: without it there would be one less, on a shorter path.
    """
    points, point_of = np.unique(np.asarray(X, dtype=bool), axis=0, return_inverse=True)
    places = point_of.ravel().tolist()
    members_of = [tuple(row for row, at in enumerate(places) if at == place) for place in range(len(points))]
    known: dict = {}
    pairs = {frozenset(pair) for pair in apart}

    def below(members: tuple[int, ...], depth: int, path: frozenset[int]) -> dict:
        """Classes of the members to (leaves, nested tree)."""
        key = (members, depth, path if pairs else None)
        if key in known:
            return known[key]
        found = {}
        if is_leaf(tuple(row for place in members for row in members_of[place])):
            found = {(label,) * len(members): (1, label) for label in range(n_classes)}
        for feature in range(points.shape[1] if depth else 0):
            sides = [tuple(i for i in members if points[i, feature] == side) for side in (False, True)]
            if not all(sides) or any(frozenset((feature, above)) in pairs for above in path):
                continue
            zeros, ones = (below(side, depth - 1, path | {feature}) for side in sides)
            for zero, (zero_leaves, zero_tree) in zeros.items():
                for one, (one_leaves, one_tree) in ones.items():
                    at = dict(zip(sides[0] + sides[1], zero + one, strict=True))
                    labels = tuple(at[i] for i in members)
                    if labels not in found or found[labels][0] > zero_leaves + one_leaves:
                        found[labels] = (zero_leaves + one_leaves, (feature, zero_tree, one_tree))
        known[key] = found
        return found

    for labels, (n_leaves, nested) in below(tuple(range(len(points))), max_depth, frozenset()).items():
        yield tuple(labels[place] for place in places), n_leaves, nested
