"""The best tree under rules about the set of features that it uses: branch on groups in or out.

A node of this search has chosen some groups, whose prices are paid, and excluded others; so are those that can no
longer be paid for. The best tree of all on the columns that are left bounds every tree below the node, and answers for
it where the tree keeps the rules. Otherwise the tree uses groups g_1, g_2, ... that were not chosen, and cannot pay for
all of them. Every tree that keeps the rules

    does not use g_1;  or uses g_1 and not g_2;  or uses g_1, g_2 and not g_3;  ...

and these are the children. When all is spent, the columns of the chosen groups are left: few, so that the tables are
small. Where one more group will spend all, every group that it may be is a child.

Sets that are not too many are not branched on at all but listed, and looked up in tables that have the best split of
every group: see `accel_oct.exact.group_sets`.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.exact.stopping import Stopper
from accel_oct.solving.set_lists import SetLists
from accel_oct.solving.set_nodes import NodeSolver
from accel_oct.solving.set_rules import SetRules
from accel_oct.tree import DecisionTree

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Node:
    """Groups that are paid for, and groups that may be used, those among them."""

    chosen: frozenset[int]
    open: BoolArray


@dataclass
class FeatureSetSearch:
    """Best first over the sets of groups.

    Parameters
    ----------
    dataset : BinaryDataset
    rules : SetRules
    solver : NodeSolver
        Of the problem on the columns of a node.
    offer : callable (tree) -> value
        Told of every tree that is worth a look; returns the value of the best tree that keeps the rules.
    tighten : callable (bound) -> bool
        Told of every bound; whether it proves the best tree.
    stopper : Stopper
    lists : SetLists or None
        Looks at all sets where that is quicker.
    slack : float
        A node that is better than the best tree by no more than this is not looked at.

    Attributes
    ----------
    nodes : int
        That were looked at, with tables of their own each.
    sets : int
        That were looked up instead, if any.
    waiting : int
        Nodes that were not looked at yet.
    """

    dataset: BinaryDataset
    rules: SetRules
    solver: NodeSolver
    offer: Callable[[DecisionTree], float]
    tighten: Callable[[float], bool]
    stopper: Stopper = field(default_factory=Stopper)
    lists: SetLists | None = None
    slack: float = 0.0
    nodes: int = 0
    sets: int = 0
    waiting: int = 0

    def run(self, known: float, bound: float) -> None:
        """Search until the best tree is proven or it is time to stop.

        Parameters
        ----------
        known, bound : float
            The value of a tree that keeps the rules, and a bound on all of them.
        """
        began = time.perf_counter()
        self._known = known
        ticket = count()
        free = self.rules.paid(frozenset())
        root = Node(free, self.rules.affordable(free))
        waiting = [(-bound, 0, next(ticket), root)]
        left = -np.inf  # what nodes that are done with may still hold
        while waiting:
            bound = -waiting[0][0]
            if self.tighten(max(bound, self._known, left)) or self.stopper():
                return
            if bound <= self._known + self.slack:
                break
            spent = time.perf_counter() - began
            if self.lists is not None and self.lists.is_quicker(spent):
                if self._look_up(self.lists):
                    waiting = []
                break
            node = heapq.heappop(waiting)[3]
            self.nodes += 1
            self.waiting = len(waiting)
            upper, children = self._visit(node)
            upper = min(bound, upper)
            if self.stopper():
                others = -waiting[0][0] if waiting else -np.inf
                self.tighten(max(self._known, left, upper, others))
                return
            if upper <= self._known + self.slack or not children:
                left = max(left, upper)
            else:
                for child in children:
                    heapq.heappush(waiting, (-upper, self._columns(child).size, next(ticket), child))
        rest = -waiting[0][0] if waiting else -np.inf
        self.tighten(max(self._known, left, rest))

    def _look_up(self, lists: SetLists) -> bool:
        """Look at every set that the rules allow; whether that was finished."""

        def found(groups: BoolArray) -> float:
            self.solver.best(self.rules.columns(groups), self._known, self._offer, final=True)
            return self._known

        self.sets = lists.size
        return lists.search(self._known, found)

    def _visit(self, node: Node) -> tuple[float, list[Node]]:
        """A bound on the trees of a node that is better than what is known, and what to look at next."""
        columns = self._columns(node)
        if not columns.size:
            return self._known, []  # leaves were offered when the solve began
        final = node.chosen.issuperset(np.flatnonzero(node.open).tolist())
        upper, tree = self.solver.best(columns, self._known, self._offer, final=final)
        if final or upper <= self._known + self.slack:
            return upper, []
        used: frozenset[int] = frozenset()
        if tree is not None:
            used = frozenset(self.rules.of_column[list(tree.features_used)].tolist())
        if tree is not None and not self.rules.keep(used):
            return upper, self._children(node, tree)
        return upper, self._halves(node, used)

    def _offer(self, tree: DecisionTree) -> float:
        self._known = max(self._known, self.offer(tree))
        return self._known

    def _columns(self, node: Node) -> IntArray:
        return self.rules.columns(node.open)

    def _children(self, node: Node, tree: DecisionTree) -> list[Node]:
        """Of a node, by a tree that breaks a rule."""
        children = self._last_choices(node)
        if children is not None:
            return children
        children = []
        for group in self._by_weight(tree):
            if group in node.chosen:
                continue
            without = node.open.copy()
            without[group] = False
            children.append(Node(node.chosen, without))
            if not self.rules.keep(node.chosen | {group}):
                break
            node = self._with(node, group)
        return children

    def _halves(self, node: Node, used: frozenset[int]) -> list[Node]:
        """Of a node whose best tree is not known: one group in or out, of those used if possible."""
        undecided = [g for g in np.flatnonzero(node.open).tolist() if g not in node.chosen]
        group = next((g for g in undecided if g in used), undecided[0])
        without = node.open.copy()
        without[group] = False
        return [Node(node.chosen, without), self._with(node, group)]

    def _with(self, node: Node, group: int) -> Node:
        """The node with one more group paid for."""
        chosen = self.rules.paid(node.chosen | {group})
        return Node(chosen, node.open & self.rules.affordable(chosen))

    def _last_choices(self, node: Node) -> list[Node] | None:
        """A child for every group that may still be chosen, if each of them spends all; else None."""
        children = []
        for group in np.flatnonzero(node.open).tolist():
            if group not in node.chosen:
                child = self._with(node, group)
                if not child.chosen.issuperset(np.flatnonzero(child.open).tolist()):
                    return None
                children.append(child)
        return children

    def _by_weight(self, tree: DecisionTree) -> list[int]:
        """The groups of a tree, by the weight of the samples that meet a branch on them: that of the root first."""
        branches = tree.branch_nodes - 1
        weights = self.dataset.weights @ tree.visits(self.dataset.X, tree.branch_nodes)
        total = np.bincount(self.rules.of_column[tree.feature[branches]], weights, self.rules.size)
        total[self.rules.of_column[tree.feature[0]]] = np.inf
        used = np.isin(np.arange(self.rules.size), self.rules.of_column[tree.feature[branches]])
        return [int(group) for group in np.argsort(-total, kind="stable") if used[group]]
