"""The best tree under rules about the set of features that it uses: branch on groups in or out.

A node of this search has chosen some groups, whose prices are paid, and excluded others; so are those that can no
longer be paid for. The best tree of all on the columns that are left, from the subtree tables, bounds every tree below
the node, and answers for it where the tree keeps the rules. Otherwise the tree uses groups g_1, g_2, ... that were not
chosen, and cannot pay for all of them. Every tree that keeps the rules

    does not use g_1;  or uses g_1 and not g_2;  or uses g_1, g_2 and not g_3;  ...

and these are the children. When all is spent, the columns of the chosen groups are left: few, so that the tables are
small. Where one more group will spend all, every group that it may be is a child.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import FeatureBudget
from accel_oct.data import BinaryDataset
from accel_oct.subtree.price_search import PriceSearch
from accel_oct.subtree.reduction import reduce_data
from accel_oct.subtree.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class CommonGroups:
    """The groups of several budgets at once: columns that no budget tells apart.

    Parameters
    ----------
    budgets : sequence of FeatureBudget
        At least one.

    Attributes
    ----------
    of_column : int array (n_features,)
    size : int
        How many there are.
    """

    def __init__(self, budgets: Sequence[FeatureBudget]) -> None:
        self._budgets = tuple(budgets)
        parts, of_column = np.unique([budget.group for budget in budgets], axis=1, return_inverse=True)
        self.of_column: IntArray = of_column.ravel()
        self.size = int(parts.shape[1])
        self._parts: list[list[int]] = parts.tolist()
        self._prices: list[list[float]] = [budget.price.tolist() for budget in budgets]
        self._affordable: dict[frozenset[int], BoolArray] = {}

    def keep(self, groups: frozenset[int]) -> bool:
        """Whether a tree that uses these groups keeps every budget."""
        return all(
            budget.excess({part[g] for g in groups}) <= 0
            for budget, part in zip(self._budgets, self._parts, strict=True)
        )

    def paid(self, groups: frozenset[int]) -> frozenset[int]:
        """These groups, and all others that cost nothing more."""
        free = set(range(self.size))
        for part, price in zip(self._parts, self._prices, strict=True):
            known = {part[g] for g in groups}
            free = {g for g in free if part[g] in known or price[part[g]] == 0.0}
        return groups | free

    def affordable(self, chosen: frozenset[int]) -> BoolArray:
        """Which groups can be used together with the chosen ones; those themselves among them."""
        known = self._affordable.get(chosen)
        if known is None:
            known = np.array([self.keep(chosen | {g}) for g in range(self.size)], dtype=bool)
            self._affordable[chosen] = known
        return known


@dataclass(frozen=True)
class _Node:
    """Groups that are paid for, and groups that may be used, those among them."""

    chosen: frozenset[int]
    open: BoolArray


@dataclass
class FeatureSetSearch:
    """Best first over the sets of groups.

    Parameters
    ----------
    dataset : BinaryDataset
    groups : CommonGroups
    max_depth : int
    leaf_price : float
    offer : callable (tree) -> value
        Told of every tree that is worth a look; returns the value of the best tree that keeps the rules.
    tighten : callable (bound) -> bool
        Told of every bound; whether it proves the best tree.
    stopper : Stopper

    Attributes
    ----------
    nodes : int
        That were looked at, with tables of their own each.
    """

    dataset: BinaryDataset
    groups: CommonGroups
    max_depth: int
    leaf_price: float
    offer: Callable[[DecisionTree], float]
    tighten: Callable[[float], bool]
    stopper: Stopper = field(default_factory=Stopper)
    threads: int = 1
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    nodes: int = 0

    def run(self, known: float, bound: float) -> None:
        """Search until the best tree is proven or it is time to stop.

        Parameters
        ----------
        known, bound : float
            The value of a tree that keeps the rules, and a bound on all of them.
        """
        ticket = count()
        free = self.groups.paid(frozenset())
        root = _Node(free, self.groups.affordable(free))
        waiting = [(-bound, 0, next(ticket), root)]
        while waiting:
            negative, _, _, node = heapq.heappop(waiting)
            bound = -negative
            if self.tighten(max(bound, known)) or bound <= known or self.stopper():
                break
            self.nodes += 1
            upper, tree = self._best(node, known)
            if tree is not None:
                known = self.offer(tree)
            if self.stopper():
                others = -waiting[0][0] if waiting else known
                self.tighten(max(known, min(bound, upper), others))
                return
            if tree is None or upper <= known:
                continue
            for child in self._children(node, tree):
                columns = int(child.open[self.groups.of_column].sum())
                heapq.heappush(waiting, (-upper, columns, next(ticket), child))
        else:
            self.tighten(known)

    def _best(self, node: _Node, known: float) -> tuple[float, DecisionTree | None]:
        """A bound on the trees of a node, and the best of them if it is worth more than what is known.

        The bound is its value, unless the search was stopped.
        """
        columns = np.flatnonzero(node.open[self.groups.of_column])
        if not columns.size:
            return known, None  # leaves were offered when the solve began
        data = self.dataset
        reduced = reduce_data(np.take(data.X, columns, axis=1), data.y, data.weights, data.n_classes)
        search = PriceSearch(self.leaf_price, reduced.signed, self.stopper, self.threads, self.memory_limit)
        units, weight = search.units, reduced.total_weight
        outcome = search.search(reduced, self.max_depth, float(units.from_score(known, weight)))
        upper = float(units.to_score(outcome.upper, weight))
        if units.to_score(outcome.value, weight) <= known:
            return upper, None
        small = outcome.tree().with_max_depth(self.max_depth)
        return upper, DecisionTree(np.where(small.feature >= 0, columns[small.feature], -1), small.label)

    def _children(self, node: _Node, tree: DecisionTree) -> list[_Node]:
        """Of a node whose best tree breaks a rule; none where it keeps them all."""
        used = frozenset(self.groups.of_column[list(tree.features_used)].tolist())
        if self.groups.keep(used):
            return []
        children = self._last_choices(node)
        if children is not None:
            return children
        children = []
        for group in self._by_weight(tree):
            if group in node.chosen:
                continue
            without = node.open.copy()
            without[group] = False
            children.append(_Node(node.chosen, without))
            if not self.groups.keep(node.chosen | {group}):
                break
            node = self._with(node, group)
        return children

    def _with(self, node: _Node, group: int) -> _Node:
        """The node with one more group paid for."""
        chosen = self.groups.paid(node.chosen | {group})
        return _Node(chosen, node.open & self.groups.affordable(chosen))

    def _last_choices(self, node: _Node) -> list[_Node] | None:
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
        weights = self.dataset.weights @ tree.visits(self.dataset.X)[:, branches]
        total = np.bincount(self.groups.of_column[tree.feature[branches]], weights, self.groups.size)
        total[self.groups.of_column[tree.feature[0]]] = np.inf
        return [int(group) for group in np.argsort(-total, kind="stable") if total[group] > 0]
