"""Rules about which features a tree uses, alone or with limits, by best trees on some of the columns."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from accel_oct.constraints import BoundConstraint
from accel_oct.constraints.base import limits_of
from accel_oct.exact.stopping import Stopper
from accel_oct.solving.activity import Figures
from accel_oct.solving.feature_sets import FeatureSetSearch
from accel_oct.solving.phases.base import run_stoppable
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.solving.set_lists import SetLists
from accel_oct.solving.set_nodes import NodeSolver, PricedNodes, TableNodes
from accel_oct.solving.set_rules import SetRules
from accel_oct.tree import DecisionTree

_DEEPEST_PRICED = 4


@dataclass(frozen=True)
class FeatureSetStatistics:
    """What the search came to.

    Attributes
    ----------
    groups : int
        That the rules tell apart.
    nodes : int
        That were looked at, with tables of their own each.
    sets : int
        That were looked up in common tables, where nothing else was asked of the trees.
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
        stopped = run_stoppable(search, lambda stopper: _search(search, stopper))
        if search.is_proven:
            search.notes["integer_phase"] = "skipped: the feature sets were searched to the end"
        return stopped


def _others(search: Search) -> list[BoundConstraint]:
    """Constraints that tie subtrees together and are no rules about features."""
    return [constraint for constraint in search.problem.coupling if constraint.traits.features is None]


def _solver(search: Search, stopper: Stopper) -> NodeSolver:
    """For what is asked besides the rules about features."""
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
    if problem.rules is not None and not problem.rules.allow_a_leaf:
        search.tighten(-math.inf)
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

    search.teller.describe(describe)
    sets.run(search.incumbent.value, search.bound)
    search.statistics["feature_sets"] = FeatureSetStatistics(
        seconds=time.perf_counter() - began, groups=rules.size, nodes=sets.nodes, sets=sets.sets
    )
