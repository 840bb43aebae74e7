"""The complete binary tree of available nodes (section 3.1 of the paper)."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError
from accel_oct.support.arguments import MAX_SUPPORTED_DEPTH

__all__ = ["MAX_SUPPORTED_DEPTH", "Topology"]

IntArray = NDArray[np.int64]


class Topology:
    """The available nodes of a tree of maximum depth `depth`, numbered breadth first.

    The root is node 1 and the children of node n are 2n and 2n+1, so every node array of the library
    keeps node n at position n - 1. One instance exists per depth; all arrays are read-only.

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
    parent, left, right, depth_of : int array of length n_nodes
        Parent a(n), children l(n) and r(n), and depth of the node at position n - 1. Zero stands for
        "none": the parent of the root and the children of terminal nodes.
    """

    depth: int
    n_internal: int
    n_terminal: int
    n_nodes: int
    _instances: ClassVar[dict[int, Topology]] = {}

    def __new__(cls, depth: int) -> Topology:
        try:
            depth = operator.index(depth)
        except TypeError:
            raise InvalidInputError(f"depth must be an integer, got {depth!r}") from None
        if not 0 <= depth <= MAX_SUPPORTED_DEPTH:
            raise InvalidInputError(f"depth must lie between 0 and {MAX_SUPPORTED_DEPTH}, got {depth}")
        if depth not in cls._instances:
            self = super().__new__(cls)
            self.depth = depth
            self.n_internal = 2**depth - 1
            self.n_terminal = 2**depth
            self.n_nodes = self.n_internal + self.n_terminal
            cls._instances[depth] = self
        return cls._instances[depth]

    def __reduce__(self) -> tuple[type[Topology], tuple[int]]:
        return (Topology, (self.depth,))

    def __repr__(self) -> str:
        return f"Topology(depth={self.depth})"

    @cached_property
    def nodes(self) -> IntArray:
        """All nodes, 1 to n."""
        return _frozen(np.arange(1, self.n_nodes + 1))

    @cached_property
    def internal(self) -> IntArray:
        """The nodes that may branch."""
        return self.nodes[: self.n_internal]

    @cached_property
    def terminal(self) -> IntArray:
        """The nodes of the last level."""
        return self.nodes[self.n_internal :]

    @cached_property
    def parent(self) -> IntArray:
        """Parent of every node; 0 for the root."""
        return _frozen(self.nodes // 2)

    @cached_property
    def left(self) -> IntArray:
        """Child of every node where the feature is 0; 0 for terminal nodes."""
        return _frozen(np.where(self.nodes <= self.n_internal, 2 * self.nodes, 0))

    @cached_property
    def right(self) -> IntArray:
        """Child of every node where the feature is 1; 0 for terminal nodes."""
        return _frozen(np.where(self.nodes <= self.n_internal, 2 * self.nodes + 1, 0))

    @cached_property
    def depth_of(self) -> IntArray:
        """Depth of every node; 0 for the root."""
        return _frozen(np.repeat(np.arange(self.depth + 1), 2 ** np.arange(self.depth + 1)))

    def is_terminal(self, node: int) -> bool:
        """Whether `node` lies on the last level."""
        return self._checked(node) > self.n_internal

    def height(self, node: int) -> int:
        """Distance from `node` to the terminal nodes below it, in the tree of all available nodes."""
        return self.depth - self._checked(node).bit_length() + 1

    def ancestors(self, node: int) -> IntArray:
        """Ancestors A(n) of `node`, root first, without `node`."""
        return self._ancestors(self._checked(node))[0]

    def ancestors_left(self, node: int) -> IntArray:
        """Ancestors at which the path to `node` goes left, A^L(n), root first."""
        return self._ancestors(self._checked(node))[1]

    def ancestors_right(self, node: int) -> IntArray:
        """Ancestors at which the path to `node` goes right, A^R(n), root first."""
        return self._ancestors(self._checked(node))[2]

    def descendants(self, node: int) -> IntArray:
        """Descendants D(n) of `node`, in increasing order, without `node`."""
        self._checked(node)
        levels = range(1, self.height(node) + 1)
        return _frozen(
            np.concatenate(
                [np.arange(node << level, (node + 1) << level) for level in levels] or [np.empty(0, dtype=np.int64)]
            )
        )

    def distance(self, ancestor: int, node: int) -> int:
        """Number of edges from `ancestor` down to `node`, which must be `ancestor` or below it."""
        steps = self._checked(node).bit_length() - self._checked(ancestor).bit_length()
        if steps < 0 or node >> steps != ancestor:
            raise InvalidInputError(f"node {node} is not a descendant of node {ancestor}")
        return steps

    @cached_property
    def _ancestor_table(self) -> dict[int, tuple[IntArray, IntArray, IntArray]]:
        return {}

    def _ancestors(self, node: int) -> tuple[IntArray, IntArray, IntArray]:
        table = self._ancestor_table
        if node not in table:
            path = [node >> step for step in range(node.bit_length() - 1, -1, -1)]
            above = np.array(path[:-1], dtype=np.int64)
            goes_right = np.array(path[1:], dtype=np.int64) % 2 == 1
            table[node] = (_frozen(above), _frozen(above[~goes_right]), _frozen(above[goes_right]))
        return table[node]

    def _checked(self, node: int) -> int:
        if not 1 <= node <= self.n_nodes:
            raise InvalidInputError(f"node must lie between 1 and {self.n_nodes}, got {node}")
        return int(node)


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array


def nodes_below(node: int, levels: int) -> IntArray:
    """`node` and its descendants down to `levels` below, in heap order of the subtree."""
    return np.concatenate([np.arange(node << s, (node + 1) << s) for s in range(levels + 1)])
