"""Phases that compute the optimum: a single leaf, and exact subtree tables, usually all that a solve needs.

Tables choose subtrees one by one, so their tree is optimal only while subtrees are independent. Rules about single
leaves and paths keep them independent, and the tables apply these rules. A limit on leaves does not, but the tables of
all numbers of leaves have the answer. Under any other constraint the best tree of the tables is still a bound on the
best one that is allowed, and is the answer when it is allowed itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accel_oct.exact import SearchCounts, best_tree
from accel_oct.exact.levels import Steps
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.stopping import Stopper


@dataclass(frozen=True)
class TableStatistics:
    """Seconds, and number of sets of samples by level."""

    seconds: float
    pair_levels: int
    level_three: int
    level_four: int
    roots: int

    @classmethod
    def of(cls, seconds: float, counts: SearchCounts) -> TableStatistics:
        return cls(seconds, counts.pair_levels, counts.level_three, counts.level_four, counts.roots)


class SubtreeTables:
    """The best tree, by tables of exact subtrees."""

    name = "subtree bounds"

    def applies(self, search: Search) -> bool:
        switches = search.config.subtree_bounds
        return switches.enabled and switches.tables

    def run(self, search: Search) -> Status | None:
        stopped = _leaf_limited(search) if search.problem.max_leaves is not None else _best_of_all(search)
        if search.is_proven:
            search.notes["integer_phase"] = "skipped: the subtree bounds meet the incumbent"
        return stopped


class LastStep:
    """The tables after branch and cut, where trees lie closer together than a solver can tell."""

    name = "branch and cut, then subtree bounds"

    def applies(self, search: Search) -> bool:
        return search.problem.subtrees_are_independent or search.problem.max_leaves is not None

    def run(self, search: Search) -> Status | None:
        return SubtreeTables().run(search)


def _best_of_all(search: Search) -> Status | None:
    problem, incumbent = search.problem, search.incumbent
    data = problem.table_data
    independent = problem.subtrees_are_independent

    def on_improvement(seconds: float, value: float, bound: float) -> None:
        search.bound = min(search.bound, bound)
        if independent:
            search.record(problem.reported(value))
        else:  # the tree behind the value may break a constraint
            search.record()

    def work(stopper: Stopper) -> None:
        counts = SearchCounts()
        search.reporter.describe(
            lambda: (counts.steps.doing, {**counts.steps.figures, "sample sets": counts.pair_levels})
        )
        outcome = best_tree(
            data.X,
            data.y,
            data.weights,
            data.n_classes,
            problem.max_depth,
            problem.leaf_price,
            rules=problem.table_rules,
            incumbent=incumbent.tree,
            deadline=search.clock.deadline,
            should_stop=stopper if search.beside is None else search.beside(stopper),
            threads=search.options.threads,
            memory_limit=search.config.subtree_bounds.memory_limit,
            on_improvement=on_improvement,
            known_value=(lambda: incumbent.value) if independent and search.beside is not None else None,
            counts=counts,
        )
        if outcome.found is not None:
            incumbent.offer(outcome.found)
        search.tighten(outcome.bound)
        search.statistics["subtree_bounds"] = TableStatistics.of(outcome.seconds, outcome.counts)

    return search.perform(work)


def _leaf_limited(search: Search) -> Status | None:
    """Find the best tree with a limited number of leaves in the tables of all numbers."""
    problem = search.problem

    def work(stopper: Stopper) -> None:
        steps = Steps()
        search.reporter.describe(lambda: (steps.doing, steps.figures))
        table = problem.frontier_table(
            threads=search.options.threads,
            memory_limit=search.config.subtree_bounds.memory_limit,
            should_stop=stopper,
            steps=steps,
        )
        value, bound, leaves = table.best(problem.leaf_price, problem.max_leaves)
        if value > -math.inf:
            search.incumbent.offer(table.tree(leaves))
        search.tighten(bound)
        search.statistics["subtree_bounds"] = TableStatistics.of(table.seconds, SearchCounts())

    return search.perform(work)


class SingleLeaf:
    """Problems of depth zero, or of one class without constraints: all leaves were offered already."""

    name = "a single leaf"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        free = not problem.constraints and not problem.is_strict
        return problem.max_depth == 0 or (problem.dataset.n_classes == 1 and free)

    def run(self, search: Search) -> Status | None:
        search.tighten(search.incumbent.value)
        return None
