"""The phase for rules about the set of features that a tree uses: branch and bound over groups of columns.

Columns that no rule distinguishes form a group. Every subset of a set of groups that satisfies the rules satisfies them
too. A node of the search has chosen some groups, whose prices are paid, and excluded others, also those that can no
longer be paid for. The best tree on the remaining columns bounds every tree below the node, and is the answer for the
node if it satisfies the rules. Otherwise it uses groups g_1, g_2, ... that were not chosen and cannot all be paid for.
Every tree that satisfies the rules

    does not use g_1;  or uses g_1 and not g_2;  or uses g_1, g_2 and not g_3;  ...

and these are the children. When the budget is spent, only the few columns of the chosen groups remain, and tables are
small. Where any further group spends the budget, there is a child for each.

Where there are not too many sets, they are listed instead, and looked up in tables with the best split of every group:
see `accel_oct.exact.group_sets`.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, count
from math import comb
from typing import Protocol

import numpy as np

from accel_oct.constraints import BoundConstraint, FeatureRule
from accel_oct.constraints.base import limits_of
from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules, frontier_table
from accel_oct.exact.group_sets import GroupSets
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.price_search import PriceSearch
from accel_oct.exact.samples import reduce_data
from accel_oct.formulation import Incumbent
from accel_oct.formulation.incumbent import Rule
from accel_oct.pricing import PricedSearch
from accel_oct.solving.problem import BoundRounding
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.support.progress import Figures
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

# ---------------------------------------------------------------- the rules


_MOST_ONE_BY_ONE = 4000
"""Most sets that are enumerated where no formula lists them."""


class SetRules:
    """All rules together, on common groups.

    Parameters
    ----------
    rules : sequence of FeatureRule
        At least one.

    Attributes
    ----------
    of_column : int array (n_features,)
        The common group of every column.
    size : int
        Number of groups.
    """

    def __init__(self, rules: Sequence[FeatureRule]) -> None:
        self._rules = list(rules)
        parts, of_column = np.unique([rule.group for rule in self._rules], axis=1, return_inverse=True)
        self.of_column: IntArray = of_column.ravel()
        self.size = int(parts.shape[1])
        self._part_of: IntArray = parts
        self._parts: list[list[int]] = parts.tolist()
        self._affordable: dict[frozenset[int], BoolArray] = {}

    @classmethod
    def of(cls, constraints: Sequence[BoundConstraint]) -> SetRules:
        """Collect the rules about features of bound constraints."""
        declared = [constraint.traits.features for constraint in constraints]
        return cls([rule for rule in declared if rule is not None])

    def allow(self, groups: Iterable[int]) -> bool:
        """Whether a tree that uses these groups satisfies every rule."""
        groups = list(groups)
        parts = [{part[g] for g in groups} for part in self._parts]
        return all(rule.excess(own) <= 0 for rule, own in zip(self._rules, parts, strict=True))

    def paid(self, groups: frozenset[int]) -> frozenset[int]:
        """Return these groups and all that can be added without excluding any other."""
        free = np.ones(self.size, dtype=bool)
        for rule, part, part_of in zip(self._rules, self._parts, self._part_of, strict=True):
            free &= rule.free({part[g] for g in groups})[part_of]
        return groups | frozenset(np.flatnonzero(free).tolist())

    def affordable(self, chosen: frozenset[int]) -> BoolArray:
        """Return which groups can be used together with the chosen ones, including these."""
        known = self._affordable.get(chosen)
        if known is None:
            known = np.array([self.allow(chosen | {g}) for g in range(self.size)], dtype=bool)
            self._affordable[chosen] = known
        return known

    def columns(self, groups: BoolArray) -> IntArray:
        """Return the columns of some groups."""
        return np.flatnonzero(groups[self.of_column])

    def largest(self, chosen: frozenset[int], open_: BoolArray, most: int) -> IntArray | None:
        """Return all maximal sets of open groups that contain the chosen ones.

        One row per set, padded with -1. None where there are more than `most`.
        """
        first = self.paid(chosen)
        room = self._rules[0].most if len(self._rules) == 1 else None
        if room is not None:
            return self._of_equal_price(first, open_, room, most)
        found: set[frozenset[int]] = set()
        waiting, seen, allowed = [first], {first}, frozenset(np.flatnonzero(open_).tolist())
        while waiting:
            groups = waiting.pop()
            if len(seen) > min(most, _MOST_ONE_BY_ONE):
                return None
            more = [g for g in np.flatnonzero(self.affordable(groups) & open_).tolist() if g not in groups]
            if not more:
                found.add(groups & allowed)  # excluded groups may be free by now
            for group in more:
                larger = self.paid(groups | {group})
                if larger not in seen:
                    seen.add(larger)
                    waiting.append(larger)
        length = max((len(groups) for groups in found), default=0)
        return np.array([[*sorted(groups), *[-1] * (length - len(groups))] for groups in sorted(found, key=sorted)])

    @staticmethod
    def _of_equal_price(first: frozenset[int], open_: BoolArray, room: int, most: int) -> IntArray | None:
        others = [g for g in np.flatnonzero(open_).tolist() if g not in first]
        count = min(room - len(first), len(others))
        n_sets = comb(len(others), count)
        if n_sets > most:
            return None
        chosen = np.fromiter(chain.from_iterable(combinations(others, count)), np.int64).reshape(n_sets, count)
        return np.column_stack([np.tile(sorted(first), (len(chosen), 1)).astype(np.int64), chosen])


# ---------------------------------------------------------------- the best tree of a node


Offer = Callable[[DecisionTree], float]

_FEW_SETS = 1000
"""Most sets of samples that are enumerated for a node that can still be branched on."""


class NodeSolver(Protocol):
    """Finds the best tree on some columns that satisfies the constraints other than rules about features."""

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        """Return a bound on all these trees, and one of them to branch on.

        Parameters
        ----------
        columns : int array
            At least one.
        known : float
            The value that a tree has to exceed.
        offer : callable
            Takes every tree that may be the best of all; returns the value of the best one known.
        final : bool
            Whether the node cannot be branched on, so that more work pays.

        Returns
        -------
        The bound, and the best tree if its value exceeds `known`; some tree or None where the best was not found.
        """


@dataclass
class TableNodes:
    """Solver for nodes whose only other constraints are leaf limits and local rules: the tables.

    Parameters
    ----------
    rules : LocalRules or None
        On leaves and paths.
    """

    dataset: BinaryDataset
    max_depth: int
    leaf_price: float
    stopper: Stopper = field(default_factory=Stopper)
    threads: int = 1
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    max_leaves: int | None = None
    rules: LocalRules | None = None

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        data = self.dataset
        X = np.take(data.X, columns, axis=1)
        rules = None if self.rules is None else self.rules.of_columns(columns)
        reduced = reduce_data(X, data.y, data.weights, data.n_classes, rules)
        search = PriceSearch(self.leaf_price, reduced.signed, self.stopper, self.threads, self.memory_limit)
        units, weight = search.units, reduced.total_weight
        outcome = search.search(reduced, self.max_depth, float(units.from_score(known, weight)))
        upper = float(units.to_score(outcome.upper, weight))
        if units.to_score(outcome.value, weight) <= known:
            return upper, None
        tree = outcome.tree()
        if self.max_leaves is not None and tree.n_leaves > self.max_leaves:
            if upper <= known or self.stopper():
                return upper, None
            limited, tree = self._with_few_leaves(X, rules)
            upper = min(upper, limited)
        tree = on_columns(tree.with_max_depth(self.max_depth), columns)
        offer(tree)
        return upper, tree

    def _with_few_leaves(self, X: BoolArray, rules: LocalRules | None) -> tuple[float, DecisionTree]:
        data = self.dataset
        table = frontier_table(
            reduce_data(X, data.y, data.weights, data.n_classes, rules),
            self.max_depth,
            threads=self.threads,
            memory_limit=self.memory_limit,
            should_stop=self.stopper,
        )
        _, bound, leaves = table.best(self.leaf_price, self.max_leaves)
        return bound, table.tree(leaves)


@dataclass
class PricedNodes:
    """Solver for nodes with limits on predictions and leaves: prices, and enumeration of the trees they leave open.

    Parameters
    ----------
    problem : LimitedProblem
        Of all columns.
    rules : sequence of Rule
        The constraints of the limits, which decide whether a tree is allowed.
    """

    dataset: BinaryDataset
    problem: LimitedProblem
    rules: Sequence[Rule]
    rounding: BoundRounding
    stopper: Stopper = field(default_factory=Stopper)
    threads: int = 1
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        problem = self.problem.restricted(columns)
        depth = problem.max_depth
        own = Incumbent(self.dataset, problem.leaf_price, self.rules)
        last: list[DecisionTree] = []
        upper = np.inf

        def try_(small: DecisionTree) -> float:
            tree = on_columns(small.with_max_depth(depth), columns)
            last[:] = [tree]
            if own.offer(tree):
                offer(tree)
            return max(own.value, known)

        def tighten(bound: float) -> bool:
            nonlocal upper
            valid = self.rounding.valid(bound) if np.isfinite(bound) else bound
            upper = min(upper, bound, valid)
            return upper <= max(own.value, known)

        prices = PricedSearch(
            problem,
            try_,
            tighten,
            self.rounding.next_above,
            self.stopper,
            few_sets=_FEW_SETS,
            root_by_root=final,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        prices.price(max(own.value, known))
        tree = last[0] if last else None
        prices.close()
        if own.tree is not None and own.value > known and (own.value >= upper or tree is None):
            tree = own.tree
        return upper, tree


def on_columns(tree: DecisionTree, columns: IntArray) -> DecisionTree:
    """Convert a tree on some columns to one on all of them."""
    return DecisionTree(np.where(tree.feature >= 0, columns[tree.feature], -1), tree.label)


# ---------------------------------------------------------------- all sets, looked up


_MOST_SETS = 3 * 10**6
_AT_ONCE, _PATIENCE = 0.05, 4.0
"""Most seconds for looking up all sets: at the beginning, and as a multiple of the seconds spent before."""


class SetLists:
    """The maximal sets that the rules allow, for trees of depth three or four without other constraints."""

    def __init__(
        self,
        dataset: BinaryDataset,
        rules: SetRules,
        max_depth: int,
        leaf_price: float,
        stopper: Stopper,
        memory_limit: int,
    ) -> None:
        self._dataset, self._rules = dataset, rules
        self._max_depth, self._leaf_price = max_depth, leaf_price
        self._stopper, self._memory_limit = stopper, memory_limit

    @cached_property
    def _sets(self) -> IntArray | None:
        """The sets; None where there are too many or their tables are too large."""
        if self._max_depth not in (3, 4):
            return None
        free = self._rules.paid(frozenset())
        found = self._rules.largest(free, self._rules.affordable(free), _MOST_SETS)
        if found is None or not found.size:
            return None
        return found if self._tables.table_bytes <= self._memory_limit else None

    @cached_property
    def _tables(self) -> GroupSets:
        data, rules = self._dataset, self._rules
        open_ = rules.affordable(rules.paid(frozenset()))
        group = np.where(open_[rules.of_column], rules.of_column, -1)
        return GroupSets(data.X, data.y, data.weights, data.n_classes, group, self._leaf_price, self._max_depth)

    @property
    def size(self) -> int:
        """Number of sets; 0 where they cannot be listed."""
        return 0 if self._sets is None else len(self._sets)

    @cached_property
    def seconds(self) -> float:
        """Estimated seconds for looking up all sets."""
        return np.inf if self._sets is None else self._tables.seconds(len(self._sets), self._sets.shape[1])

    def is_quicker(self, spent: float) -> bool:
        """Whether to look up all sets after other means have spent some seconds."""
        return self.seconds <= max(_AT_ONCE, _PATIENCE * spent)

    def search(self, known: float, found: Callable[[BoolArray], float]) -> bool:
        """Look up all sets; `found` takes better ones and returns the best value then. Returns False if stopped."""
        sets = self._sets
        assert sets is not None

        def required(number: int) -> float:
            groups = np.zeros(self._rules.size, dtype=bool)
            groups[sets[number][sets[number] >= 0]] = True
            return found(groups)

        return self._tables.search(sets, known, self._stopper, required)


# ---------------------------------------------------------------- the search over sets


@dataclass(frozen=True)
class SetNode:
    """The groups that are paid for, and all groups that may be used."""

    chosen: frozenset[int]
    open: BoolArray


@dataclass
class FeatureSetSearch:
    """Best first over the sets of groups.

    Parameters
    ----------
    solver : NodeSolver
        For the columns of a node.
    offer : callable (tree) -> value
        Takes every tree that may be the best; returns the value of the best tree that satisfies the rules.
    tighten : callable (bound) -> bool
        Takes every bound; returns whether it proves the best tree.
    lists : SetLists or None
        Looks up all sets where that is quicker.
    slack : float
        Nodes whose bound exceeds the best value by no more than this are skipped.

    Attributes
    ----------
    nodes : int
        Number of nodes solved.
    sets : int
        Number of sets looked up instead.
    waiting : int
        Number of open nodes.
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
            The value of a tree that satisfies the rules, and a bound on all of them.
        """
        began = time.perf_counter()
        self._known = known
        ticket = count()
        free = self.rules.paid(frozenset())
        root = SetNode(free, self.rules.affordable(free))
        waiting = [(-bound, 0, next(ticket), root)]
        left = -np.inf  # bound on closed nodes that were not solved to the end
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
        """Look up every set that the rules allow; returns whether that was finished."""

        def found(groups: BoolArray) -> float:
            self.solver.best(self.rules.columns(groups), self._known, self._offer, final=True)
            return self._known

        self.sets = lists.size
        return lists.search(self._known, found)

    def _visit(self, node: SetNode) -> tuple[float, list[SetNode]]:
        """Return a bound on the trees of a node, and its children."""
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
        if tree is not None and not self.rules.allow(used):
            return upper, self._children(node, tree)
        return upper, self._halves(node, used)

    def _offer(self, tree: DecisionTree) -> float:
        self._known = max(self._known, self.offer(tree))
        return self._known

    def _columns(self, node: SetNode) -> IntArray:
        return self.rules.columns(node.open)

    def _children(self, node: SetNode, tree: DecisionTree) -> list[SetNode]:
        """Return the children of a node, by a tree that breaks a rule."""
        children = self._last_choices(node)
        if children is not None:
            return children
        children = []
        for group in self._by_weight(tree):
            if group in node.chosen:
                continue
            without = node.open.copy()
            without[group] = False
            children.append(SetNode(node.chosen, without))
            if not self.rules.allow(node.chosen | {group}):
                break
            node = self._with(node, group)
        return children

    def _halves(self, node: SetNode, used: frozenset[int]) -> list[SetNode]:
        """Return two children of a node whose best tree is not known: one group in or out, a used one if possible."""
        undecided = [g for g in np.flatnonzero(node.open).tolist() if g not in node.chosen]
        group = next((g for g in undecided if g in used), undecided[0])
        without = node.open.copy()
        without[group] = False
        return [SetNode(node.chosen, without), self._with(node, group)]

    def _with(self, node: SetNode, group: int) -> SetNode:
        """Return the node with one more group paid for."""
        chosen = self.rules.paid(node.chosen | {group})
        return SetNode(chosen, node.open & self.rules.affordable(chosen))

    def _last_choices(self, node: SetNode) -> list[SetNode] | None:
        """Return a child for every group that may still be chosen, if each spends the budget; else None."""
        children = []
        for group in np.flatnonzero(node.open).tolist():
            if group not in node.chosen:
                child = self._with(node, group)
                if not child.chosen.issuperset(np.flatnonzero(child.open).tolist()):
                    return None
                children.append(child)
        return children

    def _by_weight(self, tree: DecisionTree) -> list[int]:
        """Return the groups of a tree, the root's first, then by the weight of the samples at their branches."""
        branches = tree.branch_nodes - 1
        weights = self.dataset.weights @ tree.visits(self.dataset.X, tree.branch_nodes)
        total = np.bincount(self.rules.of_column[tree.feature[branches]], weights, self.rules.size)
        total[self.rules.of_column[tree.feature[0]]] = np.inf
        used = np.isin(np.arange(self.rules.size), self.rules.of_column[tree.feature[branches]])
        return [int(group) for group in np.argsort(-total, kind="stable") if used[group]]


# ---------------------------------------------------------------- the phase


_DEEPEST_PRICED = 4


@dataclass(frozen=True)
class FeatureSetStatistics:
    """Figures of the search.

    Attributes
    ----------
    groups : int
        Number of groups.
    nodes : int
        Number of nodes solved, with tables of their own each.
    sets : int
        Number of sets looked up in common tables.
    """

    seconds: float
    groups: int
    nodes: int
    sets: int


class FeatureSets:
    """Applies where constraints are rules about features, limits on leaves, and limits that can be priced."""

    name = "feature sets"

    def applies(self, search: Search) -> bool:
        switches, constraints = search.config.subtree_bounds, search.problem.constraints
        if search.problem.is_strict:
            return False
        if not (switches.enabled and switches.tables) or all(each.traits.features is None for each in constraints):
            return False
        others, rules = _others(search), search.problem.rules
        if all(constraint.traits.leaves is not None for constraint in others):
            return True
        if rules is not None and len(rules.least) > 1:
            return False
        priced = all(constraint.traits.is_priced for constraint in others)
        return search.config.prices and search.problem.max_depth <= _DEEPEST_PRICED and priced

    def run(self, search: Search) -> Status | None:
        stopped = search.perform(lambda stopper: _search(search, stopper))
        if search.is_proven:
            search.notes["integer_phase"] = "skipped: the feature sets were searched to the end"
        return stopped


def _others(search: Search) -> list[BoundConstraint]:
    """Return the coupling constraints that are not rules about features."""
    return [constraint for constraint in search.problem.coupling if constraint.traits.features is None]


def _solver(search: Search, stopper: Stopper) -> NodeSolver:
    """Return the solver for the constraints other than rules about features."""
    problem, threads = search.problem, search.options.threads
    memory_limit = search.config.subtree_bounds.memory_limit
    others = _others(search)
    leaves = [constraint.traits.leaves for constraint in others]
    if None not in leaves:
        return TableNodes(
            problem.table_data,
            problem.max_depth,
            problem.leaf_price,
            stopper,
            threads,
            memory_limit,
            max_leaves=min((most for most in leaves if most is not None), default=None),
            rules=problem.table_rules,
        )
    kept = [constraint for constraint in problem.constraints if constraint.traits.features is None]
    limited, rounding = problem.limited(limits_of(others)), problem.rounding()
    return PricedNodes(problem.dataset, limited, kept, rounding, stopper, threads, memory_limit)


def _search(search: Search, stopper: Stopper) -> None:
    began = time.perf_counter()
    problem = search.problem
    if search.no_leaf_is_allowed(problem.rules):
        return

    def offer(tree: DecisionTree) -> float:
        if search.incumbent.offer(tree):
            search.record()
        return search.incumbent.value

    rules = SetRules.of(problem.constraints)
    lists = None
    if not _others(search) and problem.rules is None:
        memory_limit = search.config.subtree_bounds.memory_limit
        lists = SetLists(problem.dataset, rules, problem.max_depth, problem.leaf_price, stopper, memory_limit)
    sets = FeatureSetSearch(
        problem.dataset, rules, _solver(search, stopper), offer, search.tighten, stopper, lists, slack=search.slack
    )

    def describe() -> tuple[str, Figures]:
        if sets.sets:
            return "looking sets up", {"sets": sets.sets}
        return "", {"feature sets": sets.nodes, "waiting": sets.waiting}

    search.reporter.describe(describe)
    sets.run(search.incumbent.value, search.bound)
    search.statistics["feature_sets"] = FeatureSetStatistics(
        seconds=time.perf_counter() - began, groups=rules.size, nodes=sets.nodes, sets=sets.sets
    )
