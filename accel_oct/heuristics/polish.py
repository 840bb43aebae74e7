"""Solution polishing: optimal subtrees in the tails of a tree (Algorithm 1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.exact import Subtree
from accel_oct.formulation import Master, Response, Site, TreePoint
from accel_oct.mip import Event, Needs
from accel_oct.support.arrays import IntArray
from accel_oct.tree import DecisionTree


def polish(
    tree: DecisionTree,
    dataset: BinaryDataset,
    leaf_price: float,
    subtree_for: Callable[..., Subtree],
    worthwhile: Callable[[int], bool] | None = None,
) -> DecisionTree:
    """Replace the tails of `tree` by optimal subtrees of depth at most two.

    Algorithm 1 of the paper. A tail is replaced only if that is strictly better; if no tail is, the result is `tree`
    itself. The value of a tail is computed from its samples, not from theta of the master, which may be too large.

    Parameters
    ----------
    tree : DecisionTree
        Its `max_depth` is the depth limit of the result.
    leaf_price : float
        Price per leaf in units of weight, from ``dataset.leaf_price``.
    subtree_for : callable (literals, samples, *, max_depth)
        Returns the best subtree of the samples, which satisfy the literals of a path: `SubtreeCache.at_price`.
    worthwhile : callable, optional
        Called with the number of samples of each tail; if it returns False, the tail is kept.
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
    """Return the nodes whose subtrees are polished: height at most two below a parent of greater height, or the root.

    Heights are those of the sparse tree, without cut nodes. Every leaf is below exactly one of these nodes, because
    heights increase on the path from a leaf to the root.

    A subtree of depth two always fits. The parent of such a node n other than node 1 has height at least three, so it
    is at least three levels above the terminal nodes, and n at least two. Only the root of the tree can have fewer
    levels below it, if the maximum depth is below two.
    """
    heights = tree.heights()
    nodes = np.flatnonzero((heights >= 0) & (heights <= 2)) + 1
    return [node for node in nodes.tolist() if node == 1 or heights[node // 2 - 1] > 2]


def _rows_through(tree: DecisionTree, leaf_of: IntArray, node: int) -> IntArray:
    """Return the rows whose leaf is `node` or below it."""
    inside = np.zeros(len(tree.feature), dtype=bool)
    inside[tree.topology.subtree(node) - 1] = True
    return np.flatnonzero(inside[leaf_of - 1])


class Polishing:
    """Polishes the tree of every candidate, even if the Benders cuts reject its theta (section 5.2).

    Parameters
    ----------
    subtree_for : callable
        As in `polish`, from the cache that is shared with the path-bound cuts.
    """

    name = "polishing"
    needs = Needs([Event.CANDIDATE], injects=True)

    def __init__(self, master: Master, subtree_for: Callable[..., Subtree]) -> None:
        self.master = master
        self._subtree_for = subtree_for
        self._last: DecisionTree | None = None

    @classmethod
    def build(cls, site: Site, enabled: bool) -> Polishing | None:
        """Build the component if it is enabled."""
        return cls(site.master, site.subtrees.at_price(site.master.leaf_price)) if enabled else None

    def respond(self, point: TreePoint) -> Response | None:
        if point.tree == self._last:
            return None
        self._last = point.tree
        polished = polish(point.tree, self.master.dataset, self.master.leaf_price, self._subtree_for)
        return Response(trees=(polished,)) if polished is not point.tree else None
