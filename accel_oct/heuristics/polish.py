"""Solution polishing: optimal subtrees in the tails of a tree (Algorithm 1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.exact import Subtree
from accel_oct.tree import DecisionTree

__all__ = ["SubtreeLookup", "polish", "polish_roots"]

IntArray = NDArray[np.int64]


class SubtreeLookup(Protocol):
    """Gives an optimal subtree for the samples that a path leads to; the shared subtree cache in practice."""

    def __call__(self, literals: frozenset[tuple[int, int]], samples: IntArray, *, max_depth: int) -> Subtree:
        """Best subtree of depth at most `max_depth` for `samples`, which satisfy all `literals`."""
        ...


def polish(
    tree: DecisionTree,
    dataset: BinaryDataset,
    leaf_price: float,
    subtree_for: SubtreeLookup,
    worthwhile: Callable[[int], bool] | None = None,
) -> DecisionTree:
    """Replace the tails of `tree` by optimal subtrees of depth at most two.

    Algorithm 1 of the paper. A tail is replaced only where that is strictly better, so the result is
    never worse than `tree`, and it is `tree` itself when nothing improves. What a tail is worth is
    measured by routing the samples, not by the master problem's theta, which may overestimate it.

    Parameters
    ----------
    tree : DecisionTree
        Any tree; its `max_depth` is the depth that the result may use.
    dataset : BinaryDataset
    leaf_price : float
        Price per leaf in units of weight, from ``dataset.leaf_price``.
    subtree_for : SubtreeLookup
        Called once per tail with the literals of its path and the samples that reach it.
    worthwhile : callable, optional
        Asked before each tail, with its number of samples; a tail that it denies stays as it is.

    Returns
    -------
    DecisionTree
    """
    leaf_of = tree.leaf_of(dataset.X)
    earned = np.where(tree.label[leaf_of - 1] == dataset.y, dataset.weights, 0.0)
    for root in polish_roots(tree):
        tail = tree.subtree(root)
        samples = _rows_through(tree, leaf_of, root)
        if worthwhile is not None and not worthwhile(samples.size):
            continue
        best = subtree_for(frozenset(tree.path(root)), samples, max_depth=min(2, tail.max_depth))
        if best.value > earned[samples].sum() - leaf_price * tail.n_leaves:
            tree = tree.with_subtree(root, best.tree)
    return tree


def polish_roots(tree: DecisionTree) -> list[int]:
    """Nodes whose subtrees are polished: height at most two below a parent of greater height, or the root.

    Heights are those of the sparse tree, cut nodes not counted. The roots split the leaves of the tree among
    themselves: walking up from a leaf, heights increase, and the walk meets exactly one root.

    A subtree of depth two always fits. The parent of a root n other than node 1 has height at least three, so it lies
    at least three levels above the terminal nodes, and n at least two. Only the tree's own root can have less
    room, when the maximum depth itself is below two; then the subtree's depth is limited to that.
    """
    heights = tree.heights()
    nodes = np.flatnonzero((heights >= 0) & (heights <= 2)) + 1
    return [node for node in nodes.tolist() if node == 1 or heights[node // 2 - 1] > 2]


def _rows_through(tree: DecisionTree, leaf_of: IntArray, node: int) -> IntArray:
    """Rows whose leaf is `node` or lies below it."""
    inside = np.zeros(len(tree.feature), dtype=bool)
    inside[tree.topology.subtree(node) - 1] = True
    return np.flatnonzero(inside[leaf_of - 1])
