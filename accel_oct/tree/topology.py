"""The complete binary tree of available nodes (section 3.1 of the paper)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.support.arguments import checked_depth
from accel_oct.support.arrays import IntArray


class Topology:
    """The available nodes of a tree of maximum depth `depth`, numbered breadth first.

    The root is node 1 and the children of node n are 2n and 2n+1; every node array of the library keeps node n at
    position n - 1.

    Parameters
    ----------
    depth : int
        Maximum depth D >= 0. With D = 0 the root is the only node, and it is terminal.

    Attributes
    ----------
    depth, n_internal, n_terminal, n_nodes : int
        D, 2**D - 1, 2**D and their sum.
    nodes, internal, terminal : int array
        Node numbers in increasing order (the paper's B and T, and their union).
    depth_of : int array of length n_nodes
        Depth of the node at position n - 1.
    """

    def __init__(self, depth: int) -> None:
        self.depth = checked_depth(depth, "depth")
        self.n_terminal = 1 << self.depth
        self.n_internal = self.n_terminal - 1
        self.n_nodes = self.n_internal + self.n_terminal

    def __repr__(self) -> str:
        return f"Topology(depth={self.depth})"

    @cached_property
    def nodes(self) -> IntArray:
        return np.arange(1, self.n_nodes + 1)

    @cached_property
    def internal(self) -> IntArray:
        return self.nodes[: self.n_internal]

    @cached_property
    def terminal(self) -> IntArray:
        return self.nodes[self.n_internal :]

    @cached_property
    def depth_of(self) -> IntArray:
        return np.repeat(np.arange(self.depth + 1), 2 ** np.arange(self.depth + 1))

    def height(self, node: int) -> int:
        """Distance from `node` to the terminal nodes below it."""
        return self.depth - self._checked(node).bit_length() + 1

    def ancestors(self, node: int) -> IntArray:
        """Ancestors A(n) of `node`, root first, without `node`."""
        return np.array([node >> step for step in range(self._checked(node).bit_length() - 1, 0, -1)], dtype=np.int64)

    def subtree(self, node: int) -> IntArray:
        """`node` and its descendants D(n), in increasing order, which is the heap order of the subtree."""
        return np.concatenate([np.arange(node << s, (node + 1) << s) for s in range(self.height(node) + 1)])

    def _checked(self, node: int) -> int:
        if not 1 <= node <= self.n_nodes:
            raise InvalidInputError(f"node must lie between 1 and {self.n_nodes}, got {node}")
        return int(node)
