"""Exact subtree tables: usually all that a solve needs.

Tables choose subtrees one by one, so what they find is optimal only while nothing ties subtrees together. A limit on
leaves does, but the tables of all numbers of leaves know the answer (`LeafTables`). Under any other constraint the best
tree of all is still a bound on the best one that is allowed, and is the answer when it happens to be allowed itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.subtree import BestTree, FrontierTable, SearchCounts, best_tree, frontier_table
from accel_oct.support.interrupts import run_interruptibly

Found = TypeVar("Found")


@dataclass(frozen=True)
class TableStatistics:
    """Time, and how many sets of samples were looked at on which level."""

    seconds: float
    pair_levels: int
    level_three: int
    level_four: int
    pairs: int
    roots: int

    @classmethod
    def of(cls, seconds: float, counts: SearchCounts) -> TableStatistics:
        return cls(seconds, counts.pair_levels, counts.level_three, counts.level_four, counts.pairs, counts.roots)


class SubtreeTables:
    """The best tree of all, by tables of exact subtrees."""

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
    """For a solver that is done, while trees lie closer together than it can tell: the tables can."""

    name = "branch and cut, then subtree bounds"

    def applies(self, search: Search) -> bool:
        return search.problem.subtrees_are_independent or search.problem.max_leaves is not None

    def run(self, search: Search) -> Status | None:
        return SubtreeTables().run(search)


def _best_of_all(search: Search) -> Status | None:
    problem, incumbent = search.problem, search.incumbent
    data = problem.dataset
    independent = problem.subtrees_are_independent

    def on_improvement(seconds: float, value: float, bound: float) -> None:
        search.bound = min(search.bound, bound)
        if independent:
            search.record(value / problem.total_weight)
        else:  # the tree behind the value may break a constraint
            search.record()

    def work(deadline: float | None, should_stop: Callable[[], bool]) -> BestTree:
        return best_tree(
            data.X,
            data.y,
            data.weights,
            data.n_classes,
            problem.max_depth,
            problem.leaf_price,
            incumbent=incumbent.tree,
            deadline=deadline,
            should_stop=should_stop,
            threads=search.options.threads,
            memory_limit=search.config.subtree_bounds.memory_limit,
            on_improvement=on_improvement,
        )

    outcome, stopped = _stoppable(search, work)
    incumbent.offer(outcome.tree)
    search.tighten(outcome.bound)
    search.statistics["subtree_bounds"] = TableStatistics.of(outcome.seconds, outcome.counts)
    return stopped


def _leaf_limited(search: Search) -> Status | None:
    """The best tree with a limited number of leaves, read off the tables of all numbers."""
    problem = search.problem
    data = problem.dataset

    def work(deadline: float | None, should_stop: Callable[[], bool]) -> FrontierTable:
        return frontier_table(
            data.X,
            data.y,
            data.weights,
            data.n_classes,
            problem.max_depth,
            threads=search.options.threads,
            memory_limit=search.config.subtree_bounds.memory_limit,
            deadline=deadline,
            should_stop=should_stop,
        )

    table, stopped = _stoppable(search, work)
    _, bound, leaves = table.best(problem.leaf_price, problem.max_leaves)
    search.incumbent.offer(table.tree(leaves))
    search.tighten(bound)
    search.statistics["subtree_bounds"] = TableStatistics.of(table.seconds, SearchCounts())
    return stopped


def _stoppable(
    search: Search, work: Callable[[float | None, Callable[[], bool]], Found]
) -> tuple[Found, Status | None]:
    """Run in a thread that Ctrl-C and the time limit stop; returns what was found, and what stopped it if anything."""
    interrupted = threading.Event()
    deadline = search.clock.deadline
    found: list[Found] = []
    run_interruptibly(lambda: found.append(work(deadline, interrupted.is_set)), interrupted.set)
    if interrupted.is_set():
        return found[0], "interrupted"
    return found[0], "time_limit" if deadline is not None and time.monotonic() >= deadline else None
