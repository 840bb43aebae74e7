"""Paths through the tree, as the cuts that speak of one part of it see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel_oct.formulation.master import Master
from accel_oct.mip.rows import FloatArray, IntArray

#: A branch variable above this counts as one.
_INTEGRAL = 1.0 - 1e-6


class Path(NamedTuple):
    """The node at which a path ends, and the features of the branches that lead there, root first.

    The directions are those of the walk from the root to `end`.
    """

    end: int
    features: tuple[int, ...]

    def child(self, feature: int, direction: int) -> Path:
        """The path that goes on from its end by a feature, in direction 0 or 1."""
        return Path(2 * self.end + direction, (*self.features, feature))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The branch nodes on the path, root first."""
        length = len(self.features)
        return tuple(self.end >> step for step in range(length, 0, -1))

    @property
    def literals(self) -> frozenset[tuple[int, int]]:
        """What a sample must satisfy to follow the path."""
        length = len(self.features)
        directions = (self.end >> step & 1 for step in range(length - 1, -1, -1))
        return frozenset(zip(self.features, directions, strict=True))

    def relax(self, master: Master) -> tuple[IntArray, IntArray]:
        """Columns (b, p) whose sum is zero where a tree takes the path and at least one where it does not.

        On the path's nodes n, the b[n, f] of the features f that are not taken, and p[n]; each part is increasing.
        """
        b, p = master.b.index, master.p.index
        nodes = [node - 1 for node in self.nodes]
        if not nodes:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        others = [np.delete(b[node], feature) for node, feature in zip(nodes, self.features, strict=True)]
        return np.concatenate(others), p[nodes]


class PathEnd(NamedTuple):
    """A path that a point takes wholly, and whether a longer one of them begins with it."""

    path: Path
    extends: bool


def integral_paths(b: FloatArray, least_height: int) -> list[PathEnd]:
    """Every path that takes one feature wholly at each of its nodes, the empty one included.

    Parameters
    ----------
    b : float array (internal nodes, features)
    least_height : int
        Levels below the end, at least one: the first loop of Algorithm 2 asks for two.
    """
    depth = len(b).bit_length()
    chosen, whole = b.argmax(axis=1), b.max(axis=1) > _INTEGRAL
    found: list[PathEnd] = []
    stack = [Path(1, ())]
    while stack:
        path = stack.pop()
        extends = depth - len(path.features) > least_height and bool(whole[path.end - 1])
        if extends:
            feature = int(chosen[path.end - 1])
            stack += [path.child(feature, 0), path.child(feature, 1)]
        found.append(PathEnd(path, extends))
    return found
