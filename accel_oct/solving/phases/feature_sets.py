"""Rules about which features a tree uses, by subtree tables of some of the columns."""

from __future__ import annotations

import time
from dataclasses import dataclass

from accel_oct.constraints import FeatureBudget
from accel_oct.solving.feature_sets import CommonGroups, FeatureSetSearch
from accel_oct.solving.phases.base import run_stoppable
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class FeatureSetStatistics:
    """What the search came to.

    Attributes
    ----------
    groups : int
        That the rules tell apart.
    nodes : int
        That were looked at, with tables of their own each.
    """

    seconds: float
    groups: int
    nodes: int


class FeatureSets:
    """Applies where every constraint is a budget of features; see `accel_oct.solving.feature_sets`."""

    name = "feature sets"

    def applies(self, search: Search) -> bool:
        switches, constraints = search.config.subtree_bounds, search.problem.constraints
        if not (switches.enabled and switches.tables and constraints):
            return False
        return all(isinstance(constraint, FeatureBudget) for constraint in constraints)

    def run(self, search: Search) -> Status | None:
        stopped = run_stoppable(search, lambda stopper: _search(search, stopper))
        if search.is_proven:
            search.notes["integer_phase"] = "skipped: the feature sets were searched to the end"
        return stopped


def _search(search: Search, stopper: Stopper) -> None:
    began = time.perf_counter()
    problem = search.problem

    def offer(tree: DecisionTree) -> float:
        if search.incumbent.offer(tree):
            search.record()
        return search.incumbent.value

    groups = CommonGroups([rule for rule in problem.constraints if isinstance(rule, FeatureBudget)])
    sets = FeatureSetSearch(
        problem.dataset,
        groups,
        problem.max_depth,
        problem.leaf_price,
        offer,
        search.tighten,
        stopper,
        threads=search.options.threads,
        memory_limit=search.config.subtree_bounds.memory_limit,
    )
    sets.run(search.incumbent.value, search.bound)
    search.statistics["feature_sets"] = FeatureSetStatistics(
        seconds=time.perf_counter() - began, groups=groups.size, nodes=sets.nodes
    )
