"""Optimal trees over every threshold of ordered columns.

A column is an order of the samples, given by ranks: 0 for the lowest value, equal ranks for equal values. A split sends
the samples up to a rank to the left. Numbers, dates and ordered categories are one order each, a column with missing
values is two (missing below everything, missing above everything), a category is an order of two values.

The search minimises lost score plus leaf price per leaf over all trees of a depth, by branch and bound over intervals
of thresholds (``native/source/ordered_search.hpp``). Scores and prices lie on a dyadic grid and are counted in whole
numbers, so costs are compared exactly. It is anytime: it always has a bound on every tree, and usually a tree.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.native.ordered import GAINS, IMPOSSIBLE, LABELLED, SIGNED, OrderedSearch, OrderedState, OrderedTable
from accel_oct.native.stopping import StopFlag

__all__ = [
    "LeafLimits",
    "OrderedOutcome",
    "OrderedProblem",
    "OrderedTree",
    "dense_ranks",
    "ordered_problem",
    "search_ordered",
]

Ints = NDArray[np.int64]
Ranks = NDArray[np.int32]
Floats = NDArray[np.float64]

DEFAULT_MEMORY = 2**31
"""Bytes for known sets and working space."""

_FIRST_LOOK, _POLL = 0.005, 0.05
"""Seconds until the first look at a running search, and between two looks."""

_SLACK = 0.5
"""See `OrderedSearch`; chosen by measurement."""


def dense_ranks(values: NDArray[Any]) -> Ranks:
    """Ranks 0, 1, 2, ... of the values of a column, equal for equal values."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class LeafLimits:
    """What every leaf must have, and which columns share no path.

    Attributes
    ----------
    masses : int64 array (k, n)
        Of the samples: whole numbers that add up exactly.
    least : int64 array (k,)
        The least sum of each mass in a leaf.
    apart : bool array (columns, columns) or None
        Pairs of columns that no path from the root may have together.
    """

    masses: Ints
    least: Ints
    apart: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class OrderedTree:
    """A tree over ordered columns: nodes in preorder; a leaf has column -1 and no children.

    Attributes
    ----------
    column, rank, left, right, label : tuple of int
        Samples whose rank in the column is at most `rank` go to the node `left`.
    """

    column: tuple[int, ...]
    rank: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    label: tuple[int, ...]

    @classmethod
    def of_rows(cls, rows: NDArray[np.int32]) -> OrderedTree:
        return cls(*(tuple(part.tolist()) for part in rows.T))

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return sum(column < 0 for column in self.column)

    @property
    def depth(self) -> int:
        """Length of the longest path."""
        depths = [0] * len(self.column)
        for node in reversed(range(len(self.column))):  # children come after their parents
            if self.column[node] >= 0:
                depths[node] = 1 + max(depths[self.left[node]], depths[self.right[node]])
        return depths[0]

    def leaves_of(self, ranks: Ranks) -> Ints:
        """The leaf of each sample; `ranks` is (columns, n)."""
        place = np.zeros(ranks.shape[1], dtype=np.int64)
        for node, column in enumerate(self.column):
            if column >= 0:
                here = place == node
                low = ranks[column] <= self.rank[node]
                place[here & low] = self.left[node]
                place[here & ~low] = self.right[node]
        return place

    def predict(self, ranks: Ranks) -> Ints:
        """The label of each sample."""
        return np.array(self.label, dtype=np.int64)[self.leaves_of(ranks)]


@dataclass(frozen=True, eq=False)
class OrderedProblem:
    """Samples in whole numbers, reduced to what decides their optimal trees.

    Attributes
    ----------
    table : OrderedTable
        Distinct samples.
    statistic, n_classes : int
    unit : int
        Of the weights of the table, in steps of the grid.
    grid_bits : int
        A step of the grid is ``2.0 ** -grid_bits``.
    best_score : float
        What a tree would score that makes no error.
    offset : int
        Errors that merging took out, in steps: no tree avoids them.
    columns : int array
        Which of the given columns the table has: of columns with equal splits the first.
    ranks : tuple of int arrays
        Per column of the table, the given rank behind each of its ranks.
    classes : int array
        Labels of the table: without those that another one dominates.
    """

    table: OrderedTable
    statistic: int
    n_classes: int
    unit: int
    grid_bits: int
    best_score: float
    offset: int
    columns: Ints
    ranks: tuple[NDArray[np.int32], ...]
    classes: Ints

    def cost(self, amount: float) -> int:
        """An amount of score in steps of the grid."""
        return int(np.rint(np.ldexp(amount, self.grid_bits)))

    def value(self, cost: int) -> float:
        """The value (score minus leaf prices) of a tree with this cost; minus infinity where there is none."""
        if cost >= IMPOSSIBLE:
            return -math.inf
        return self.best_score - math.ldexp(cost + self.offset, -self.grid_bits)


def ordered_problem(ranks: Ranks, gains: Floats, grid_bits: int, limits: LeafLimits | None = None) -> OrderedProblem:
    """Merge samples that no split tells apart and drop columns that split nothing new.

    Parameters
    ----------
    ranks : int32 array (columns, n)
    gains : float array (n, n_classes)
        Score of each sample per label, on the grid: whole multiples of ``2.0 ** -grid_bits``.
    grid_bits : int
    limits : LeafLimits or None
    """
    steps = np.ldexp(gains, grid_bits).astype(np.int64)
    best = steps.max(axis=1)
    best_score = math.ldexp(int(best.sum()), -grid_bits)
    columns = _distinct_columns(ranks, limits)
    masses = np.zeros((0, len(steps)), np.int64) if limits is None else limits.masses
    point = _points(ranks[columns])
    lost = best[:, None] - steps
    present = _useful_labels(lost)
    lost = lost[:, present]
    labelled = len(present) > 2 and _is_plain(lost)
    if labelled:
        entry = np.unique(point * len(present) + lost.argmin(axis=1), return_inverse=True)[1].reshape(-1)
    else:
        entry = point
    n_entries, first = int(entry.max()) + 1, np.unique(entry, return_index=True)[1]
    lost = np.stack([_sums(entry, part, n_entries) for part in lost.T], axis=1)
    mass = np.stack([_sums(entry, part, n_entries) for part in masses]) if len(masses) else masses[:, :n_entries]
    unavoidable, offset = np.zeros(n_entries, np.int64), 0
    if labelled:
        unavoidable = _unavoidable(point[first], lost)
    else:
        # What the best label of a point loses is lost in any case.
        least = lost.min(axis=1)
        offset, lost = int(least.sum()), lost - least[:, None]
    kept = np.flatnonzero((lost.max(axis=1) > 0) | (mass > 0).any(axis=0))
    kept = kept if kept.size else np.arange(1)
    lost, mass, unavoidable, first = lost[kept], mass[:, kept], unavoidable[kept], first[kept]
    own, values_of = _dense(ranks[columns], first)
    unit = int(np.gcd.reduce(lost.ravel())) or 1
    lost, unavoidable = lost // unit, unavoidable // unit
    weights = lost.max(axis=1)
    labels = np.zeros(0, np.int32)
    if len(present) <= 2:
        statistic = SIGNED
        values = (lost[:, :1] - lost[:, 1:2] if len(present) == 2 else lost[:, :1] * 0).T
    elif labelled:
        statistic, values, labels = LABELLED, weights[None, :], lost.argmin(axis=1).astype(np.int32)
    else:
        statistic, values = GAINS, (weights[:, None] - lost).T
    most = max(int(weights.sum()), int(mass.sum(axis=1).max(initial=0)))
    counter: Any = np.float64
    if most < 2**15 and len(weights) < 2**15:
        counter = np.int16
    elif most < 2**31:
        counter = np.int32
    table = OrderedTable(
        own,
        np.ascontiguousarray(values.astype(counter)),
        labels,
        weights,
        unavoidable,
        np.ascontiguousarray(mass.astype(counter)),
        np.zeros(0, np.int64) if limits is None else limits.least.astype(np.int64),
        _apart(limits, columns),
    )
    return OrderedProblem(
        table, statistic, max(1, len(present)), unit, grid_bits, best_score, offset, columns, values_of, present
    )


def _dense(ranks: Ranks, chosen: Ints) -> tuple[Ranks, tuple[NDArray[np.int32], ...]]:
    """Ranks of some samples among themselves, without gaps, and the given rank of each."""
    if len(chosen) == ranks.shape[1]:
        return np.take(ranks, chosen, axis=1), tuple(np.arange(column.max() + 1, dtype=np.int32) for column in ranks)
    own, values = np.empty((len(ranks), len(chosen)), np.int32), []
    for column, to in zip(ranks, own, strict=True):
        used = np.zeros(column.max() + 1, bool)
        used[column[chosen]] = True
        values.append(np.flatnonzero(used).astype(np.int32))
        to[:] = (np.cumsum(used, dtype=np.int32) - 1)[column[chosen]]
    return own, tuple(values)


def _sums(group: Ints, amounts: Ints, n_groups: int) -> Ints:
    """Sums of whole numbers per group, exact where they stay below 2**53."""
    return np.rint(np.bincount(group, amounts.astype(np.float64), n_groups)).astype(np.int64)


def _unavoidable(point: Ints, lost: Ints) -> Ints:
    """What no tree avoids on entries of one label each: all but the heaviest of each point, credited to its first."""
    weights = lost.max(axis=1)
    order = np.argsort(point, kind="stable")
    starts = np.flatnonzero(np.diff(point[order], prepend=-1))
    result = np.zeros(len(point), np.int64)
    sums, most = np.add.reduceat(weights[order], starts), np.maximum.reduceat(weights[order], starts)
    result[order[starts]] = sums - most
    return result


def _useful_labels(lost: Ints) -> Ints:
    """Labels without those that lose at least as much as another one on every sample; of equal ones the first stays."""
    kept: list[int] = []
    for label in range(lost.shape[1]):
        own = lost[:, label]
        others = [*kept, *range(label + 1, lost.shape[1])]
        # A later label takes the place only of one that is worse somewhere.
        if not any((lost[:, o] <= own).all() and (o < label or (lost[:, o] < own).any()) for o in others):
            kept.append(label)
    return np.array(kept, dtype=np.int64)


def _apart(limits: LeafLimits | None, columns: Ints) -> NDArray[np.uint8]:
    if limits is None or limits.apart is None:
        return np.zeros((0, 0), np.uint8)
    return np.ascontiguousarray(limits.apart[np.ix_(columns, columns)].astype(np.uint8))


def _is_plain(lost: Ints) -> bool:
    """Whether each sample loses nothing with one label and the same with all others."""
    most = lost.max(axis=1)
    return bool(((lost == 0).sum(axis=1) == 1).all() and ((lost == 0) | (lost == most[:, None])).all())


def _points(ranks: Ranks) -> Ints:
    """A number for every sample, equal where all ranks are equal, in the order in which they come first."""
    for seed in count():
        # Random sums are equal where all ranks are, and hardly ever elsewhere: those are tried again.
        factors = np.random.default_rng(seed).integers(2**63, size=len(ranks), dtype=np.int64)
        first, point = np.unique(factors @ ranks, return_index=True, return_inverse=True)[1:]
        if all(np.array_equal(column[first[point]], column) for column in ranks):
            break
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    numbers: Ints = place[point.reshape(-1)]
    return numbers


def _distinct_columns(ranks: Ranks, limits: LeafLimits | None) -> Ints:
    """Columns with more than one value; of those with the same splits, in any direction, the first."""
    apart = None if limits is None else limits.apart
    seen: set[bytes] = set()
    kept = []
    for place, column in enumerate(ranks):
        top = int(column.max(initial=0))
        if top == 0 or (apart is not None and apart[place, place]):
            continue
        upwards = column if column[0] <= top - column[0] else top - column
        keys = [column.tobytes(), (top - column).tobytes()] if column[0] * 2 == top else [upwards.tobytes()]
        extra = b"" if apart is None else apart[place].tobytes()
        if any(key + extra in seen for key in keys):
            continue
        seen.update(key + extra for key in keys)
        kept.append(place)
    return np.array(kept, dtype=np.int64)


@dataclass(eq=False)
class OrderedOutcome:
    """What a search found and proved.

    Attributes
    ----------
    tree : OrderedTree or None
        None where no tree is better than the one that was known, or where there is none.
    value, bound : float
        Of the best tree, and of all trees: score minus leaf prices.
    finished : bool
        Whether the bound is the value.
    depth : int
        Where it is finished: trees up to this depth were looked at, and deeper ones, where they are allowed, cannot be
        better. Else the depth that was searched last.
    state : OrderedState
        Counters of the search.
    history : list of tuples
        Seconds, value and bound, whenever one of them changed.
    """

    tree: OrderedTree | None
    value: float
    bound: float
    finished: bool
    depth: int
    seconds: float
    state: OrderedState
    history: list[tuple[float, float, float]] = field(default_factory=list)


def search_ordered(
    problem: OrderedProblem,
    max_depth: int | None,
    leaf_price: float,
    *,
    max_leaves: int | None = None,
    known_value: float = -math.inf,
    should_stop: Callable[[], bool] | None = None,
    on_change: Callable[[float, float, float], None] | None = None,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY,
    slack: float = _SLACK,
) -> OrderedOutcome:
    """Find the best tree, depth by depth.

    Parameters
    ----------
    problem : OrderedProblem
    max_depth : int or None
        None: any depth, which needs a leaf price above 0.
    leaf_price : float
        In the units of the gains, rounded to the grid.
    max_leaves : int or None
    known_value : float
        Of a tree that is known; only better ones are looked for.
    should_stop : callable
        Asked about every twentieth of a second.
    on_change : callable
        Called with seconds, value and bound whenever one of them changes.
    threads, memory_limit : int
    """
    run = _Run(problem, max_depth, leaf_price, max_leaves, known_value, threads, memory_limit, slack, on_change)
    return run.outcome(should_stop)


class _Run:
    """One search: a thread goes through the depths, this one watches the clock and takes Ctrl-C."""

    def __init__(
        self,
        problem: OrderedProblem,
        max_depth: int | None,
        leaf_price: float,
        max_leaves: int | None,
        known_value: float,
        threads: int,
        memory_limit: int,
        slack: float,
        on_change: Callable[[float, float, float], None] | None,
    ) -> None:
        self._began = time.perf_counter()
        self._problem, self._threads, self._on_change = problem, threads, on_change
        self._price = problem.cost(leaf_price)
        self._unavoidable = problem.unit * int(problem.table.unavoidable.sum())
        self._flag = StopFlag()
        start = IMPOSSIBLE
        if known_value > -math.inf:
            start = max(0, problem.cost(problem.best_score - known_value) - problem.offset)
        self._search = OrderedSearch(
            problem.table,
            problem.statistic,
            n_classes=problem.n_classes,
            unit=problem.unit,
            price=self._price,
            max_leaves=max_leaves or 0,
            threads=threads,
            memory=memory_limit,
            start=start,
            stop=self._flag,
            slack=slack,
        )
        # Every leaf of some best tree has a sample of its own.
        deepest = max(0, problem.table.ranks.shape[1] - 1)
        limits = [deepest, max_depth, None if max_leaves is None else max_leaves - 1]
        self._limit = min(limit for limit in limits if limit is not None)
        self._finished = False
        self._errors: list[BaseException] = []
        self._history: list[tuple[float, float, float]] = []

    def outcome(self, should_stop: Callable[[], bool] | None) -> OrderedOutcome:
        if should_stop is not None and should_stop():
            self._flag.raise_()
        worker = threading.Thread(target=self._deepen)
        worker.start()
        try:
            worker.join(_FIRST_LOOK)
            while worker.is_alive():
                self._note()
                if should_stop is not None and should_stop():
                    self._flag.raise_()
                worker.join(_POLL)
        finally:
            self._flag.raise_()
            worker.join()
        if self._errors:
            raise self._errors[0]
        state = self._note()
        bound = self._history[-1][2]
        rows = self._search.tree()
        return OrderedOutcome(
            _in_given_terms(OrderedTree.of_rows(rows), self._problem) if len(rows) else None,
            self._problem.value(state.value),
            bound,
            self._finished,
            state.depth,
            time.perf_counter() - self._began,
            state,
            self._history,
        )

    def _deepen(self) -> None:
        try:
            proven = 0  # every tree of the depths so far costs at least this
            for depth in range(self._limit + 1):
                lower = min(proven, self._least_cost(depth)) if depth else 0
                if not self._search.begin(depth, lower, proven):
                    return
                self._work()
                state = self._search.state()
                if state.open or state.bound < state.value:
                    return
                proven = state.value
                if depth == self._limit or self._least_cost(depth + 1) >= proven:
                    self._finished = True
                    return
        except BaseException as error:
            self._errors.append(error)

    def _work(self) -> None:
        helpers = [threading.Thread(target=self._search.work, args=(number,)) for number in range(1, self._threads)]
        for helper in helpers if self._search.state().open else []:
            helper.start()
        self._search.work(0)
        for helper in helpers:
            if helper.ident is not None:
                helper.join()

    def _least_cost(self, depth: int) -> int:
        """What a tree costs at least that is just so deep: it has a leaf more than that."""
        return (depth + 1) * self._price + self._unavoidable

    def _bound(self, state: OrderedState, finished: bool) -> int:
        """A bound on all trees that are allowed."""
        if finished:
            return state.value
        return min(state.bound, self._least_cost(state.depth + 1)) if state.depth < self._limit else state.bound

    def _note(self) -> OrderedState:
        finished = self._finished  # asked first: what is finished does not change any more
        state = self._search.state()
        now = self._problem.value(state.value), self._problem.value(self._bound(state, finished))
        if not self._history or self._history[-1][1:] != now:
            self._history.append((time.perf_counter() - self._began, *now))
            if self._on_change is not None:
                self._on_change(*self._history[-1])
        return state


def _in_given_terms(tree: OrderedTree, problem: OrderedProblem) -> OrderedTree:
    """The same tree with the columns, ranks and labels that were given."""
    column = tuple(int(problem.columns[c]) if c >= 0 else -1 for c in tree.column)
    rank = tuple(int(problem.ranks[c][r]) if c >= 0 else -1 for c, r in zip(tree.column, tree.rank, strict=True))
    return OrderedTree(column, rank, tree.left, tree.right, tuple(int(problem.classes[k]) for k in tree.label))
