"""Paths from the root of a tree, for cuts on single subtrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel_oct.formulation.master import Master
from accel_oct.support.arrays import FloatArray, IntArray

#: A branch variable above this counts as one.
_INTEGRAL = 1.0 - 1e-6


class TreePath(NamedTuple):
    """The node at which a path ends, and the features of the branches that lead there, root first.

    The directions follow from the number of the node `end`.
    """

    end: int
    features: tuple[int, ...]

    def child(self, feature: int, direction: int) -> TreePath:
        """Return the path extended by a feature in direction 0 or 1."""
        return TreePath(2 * self.end + direction, (*self.features, feature))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The branch nodes on the path, root first."""
        length = len(self.features)
        return tuple(self.end >> step for step in range(length, 0, -1))

    @property
    def literals(self) -> frozenset[tuple[int, int]]:
        """Literals (feature, direction) of the samples that follow the path."""
        length = len(self.features)
        directions = (self.end >> step & 1 for step in range(length - 1, -1, -1))
        return frozenset(zip(self.features, directions, strict=True))

    def relax(self, master: Master) -> tuple[IntArray, IntArray]:
        """Return columns (b, p) whose sum is zero if a tree takes the path, and at least one otherwise.

        They are b[n, f] of the features f not taken, and p[n], for the nodes n of the path; each part is increasing.
        """
        b, p = master.b.index, master.p.index
        nodes = [node - 1 for node in self.nodes]
        if not nodes:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        others = [np.delete(b[node], feature) for node, feature in zip(nodes, self.features, strict=True)]
        return np.concatenate(others), p[nodes]


class PathEnd(NamedTuple):
    """An integral path of a point, and whether a longer one extends it."""

    path: TreePath
    extends: bool


def integral_paths(b: FloatArray, least_height: int) -> list[PathEnd]:
    """Return every path with an integral branch at each node, including the empty one.

    Parameters
    ----------
    b : float array (internal nodes, features)
    least_height : int
        Least number of levels below the end, at least one; two in Algorithm 2.
    """
    depth = len(b).bit_length()
    chosen, whole = b.argmax(axis=1), b.max(axis=1) > _INTEGRAL
    found: list[PathEnd] = []
    stack = [TreePath(1, ())]
    while stack:
        path = stack.pop()
        extends = depth - len(path.features) > least_height and bool(whole[path.end - 1])
        if extends:
            feature = int(chosen[path.end - 1])
            stack += [path.child(feature, 0), path.child(feature, 1)]
        found.append(PathEnd(path, extends))
    return found
