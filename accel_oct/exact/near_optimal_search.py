"""Counting and listing together: the seam between what trees are worth and whoever wants to know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from accel_oct import native
from accel_oct.exact.coded import Coded
from accel_oct.exact.side_values import SideValues
from accel_oct.exact.tree_counting import TreeCounter
from accel_oct.exact.tree_listing import Nested, TreeLister
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, OutOfMemory

_LOOK_EVERY = 256
"""Trees that are listed between two looks at the clock."""


class ListedTree(NamedTuple):
    """A tree that was found, its value in the units of the gains, and its number of leaves."""

    tree: Nested
    value: float
    n_leaves: int


@dataclass
class Found:
    """What a search has come to, also when it was stopped.

    Attributes
    ----------
    best : float or None
        The largest value of all; None if the search was stopped before it was known.
    trees : list of ListedTree
        Best first.
    complete : bool
        Whether these are all trees within the slack.
    count : int
        Trees within the slack: all if `counted`, else so many at least.
    counted : bool
    by_leaves : dict of int to int
        The count by number of leaves.
    ended : {"finished", "stopped", "memory_limit"}
    """

    best: float | None = None
    trees: list[ListedTree] = field(default_factory=list)
    complete: bool = False
    count: int = 0
    counted: bool = False
    by_leaves: dict[int, int] = field(default_factory=dict)
    ended: Literal["finished", "stopped", "memory_limit"] = "finished"


class NearOptimalSearch:
    """All trees that are worth almost as much as the best one.

    A tree is worth the gains of its predictions minus a price for each leaf. Which trees there are:
    `accel_oct.near_optimal`.

    Parameters
    ----------
    problem : Coded
        `CountingProblem.of` or `TallyCounting.of`: what trees are worth, and the slack.
    should_stop : callable, optional
        Asked now and then.
    threads : int
        For the tables that best values are read off.
    memory_limit : int
        Bytes for these tables, and again for what is counted and listed.
    on_progress : callable (listed, counted), optional
    """

    def __init__(
        self,
        problem: Coded,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        threads: int = 1,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        on_progress: Callable[[int, int], Any] = lambda listed, counted: None,
    ) -> None:
        self.problem = problem
        self.values = SideValues(self.problem, should_stop, threads, memory_limit)
        self.found = Found()
        self._should_stop, self._on_progress = should_stop, on_progress
        self._memory_limit = memory_limit

    def run(self, limit: int | None = None) -> Found:
        """List up to `limit` trees, then count all; what is there is returned when that is stopped."""
        found = self.found
        try:
            self._list(limit)
            if found.complete:
                found.count, found.counted = len(found.trees), True
                for tree in found.trees:
                    found.by_leaves[tree.n_leaves] = found.by_leaves.get(tree.n_leaves, 0) + 1
            else:
                self._count()
        except native.Stopped:
            found.ended = "stopped"
        except (OutOfMemory, MemoryError):
            found.ended = "memory_limit"
        found.count = max(found.count, len(found.trees))
        found.by_leaves = {leaves: count for leaves, count in sorted(found.by_leaves.items()) if count}
        return found

    def _list(self, limit: int | None) -> None:
        found, problem = self.found, self.problem
        lister = TreeLister(problem, self.values, self._memory_limit)
        try:
            for code, tree in lister.trees():
                if limit is not None and len(found.trees) >= limit:
                    return
                value = problem.value(code)
                if found.best is None:
                    self._best, found.best = value, problem.earned(value)
                found.trees.append(ListedTree(tree, problem.earned(value), problem.leaves(code)))
                if len(found.trees) % _LOOK_EVERY == 0:
                    self._on_progress(len(found.trees), len(found.trees))
                    if self._should_stop():
                        raise native.Stopped
        except (OutOfMemory, MemoryError):
            found.ended = "memory_limit"
            return
        found.complete = True

    def _count(self) -> None:
        found, listed = self.found, len(self.found.trees)
        if found.best is None:
            return
        counter = TreeCounter(
            self.problem,
            self.values,
            self._should_stop,
            self._memory_limit,
            lambda count: self._on_progress(listed, max(listed, count)),
        )
        try:
            counter.run(self._best)
            found.counted = True
        finally:
            found.count, found.by_leaves = counter.count, counter.by_leaves
