"""The best tree for one leaf price: exact when finished, a tree and a valid bound at any time.

The profiles of `frontier` are computed only as far as the price requires. Levels are computed from shallow to deep, and
each bounds the gain of the next: a tree deeper than d has at least d + 2 leaves, so
V_{d+1}(S) <= max(V_d(S), E(S) - (d + 2) * price) with E the equivalent-point bound. Trees that are deeper than the
tables are searched root by root, best bound first, and each side with the value that it has to beat.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accel_oct.errors import NoTreeError
from accel_oct.exact.frontier import Known, ProfileSolver
from accel_oct.exact.levels import SearchCounts, Units, ceiling_of, side_ceilings
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.samples import Samples, reduce_data
from accel_oct.support.arrays import BoolArray, FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

_DEEPEST_TABLES = 4

_FEW_ROOTS = 1 / 12
"""Share of the roots up to which they are searched one by one instead of all at once by level four: one root alone
takes about twelve times its share of that level."""

_SECONDS_PER_CELL = 1.5e-8
"""Seconds per cell for restricting the data to one side. It cannot be interrupted, so it is not started too late."""


@dataclass
class BoundedTree:
    """A known tree's value and a proven bound, in table units; the tree is built on request."""

    value: float
    upper: float
    tree: Callable[[], DecisionTree]


class PriceSearch:
    """Best trees for one leaf price (in the units of the weights)."""

    def __init__(
        self,
        leaf_price: float,
        signed: bool,
        stopper: Stopper | None = None,
        threads: int = 1,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        counts: SearchCounts | None = None,
    ) -> None:
        self.units = Units(signed)
        self.leaf_price = leaf_price
        self.price = self.units.price(leaf_price)
        self.stopper = stopper or Stopper()
        self.counts = counts or SearchCounts()
        self.report: Callable[[BoundedTree], None] | None = None
        self.known_value: Callable[[], float] | None = None
        self._profiles = ProfileSolver(self.stopper, threads, memory_limit, self.counts)

    def search(self, data: Samples, depth: int, target: float = -np.inf, *, top: bool = False) -> BoundedTree:
        """Best tree of depth at most `depth`.

        The result is exact (value equals upper), or proven useless (upper at most `target`), or the search was stopped.
        `upper` is a valid bound on every tree of this depth in all three cases.
        """
        ceiling = ceiling_of(data)

        def enough(known: Known) -> bool:
            best = self._outcome(known, depth, ceiling)
            self.publish(best, top)
            goal = max(best.value, self.goal(target, top))
            return best.upper <= goal or (known.depth == 3 and depth == 4 and self._few_roots(data, known, goal))

        steps = self.counts.steps if top else None
        known = self._profiles.levels(data, min(depth, _DEEPEST_TABLES + 1), enough, steps)
        best = self._outcome(known, depth, ceiling)
        goal = self.goal(target, top)
        if known.depth == depth or known.complete or best.upper <= max(best.value, goal) or self.stopper():
            return best
        # Search one level less first: it gives a good tree, and may already prove optimality. Skip it at the top if a
        # better tree is known and the bound for this depth stays above it anyway.
        deeper = ceiling - (depth + 1) * self.price  # bound on the trees of exactly this depth
        if depth > max(4, known.depth + 1) and not (top and goal > best.value and deeper > goal):
            # Not published: a bound on shallower trees is not a bound on trees of this depth.
            shallow = self.search(data, depth - 1, target)
            best = BoundedTree(shallow.value, max(shallow.value, shallow.upper, deeper), shallow.tree)
            if best.upper <= max(best.value, target) or self.stopper():
                return best
        return _Roots(self, data, known, depth).run(best, target, top)

    def best(self, profiles: FloatArray) -> FloatArray:
        """Return the best values (...) of profiles (..., leaves) for the price."""
        return np.asarray((profiles - self.price * np.arange(1, profiles.shape[-1] + 1)).max(axis=-1))

    def _outcome(self, known: Known, depth: int, ceiling: float) -> BoundedTree:
        """Return the best tree and the bound for this depth from tables of a smaller or equal depth."""
        values = known.profile.lower - self.price * np.arange(1, known.profile.lower.size + 1)
        leaves = int(np.argmax(values)) + 1
        upper = float(self.best(known.profile.upper))
        if known.depth < depth and not known.complete:
            upper = max(upper, ceiling - (known.exact_leaves + 1) * self.price)
        return BoundedTree(float(values[leaves - 1]), upper, lambda: known.profile.tree(leaves))

    def _few_roots(self, data: Samples, known: Known, goal: float) -> bool:
        """Return whether few roots may exceed `goal`."""
        more = side_ceilings(data) - (known.depth + 1) * self.price
        bounds = np.maximum(self.best(known.sides), more).sum(axis=1)
        return bool(np.count_nonzero(bounds > goal) < _FEW_ROOTS * data.n_features)

    def goal(self, target: float, top: bool) -> float:
        """Return the value to beat: the target, and at the top also the best value known to the caller."""
        return max(target, self.known_value()) if top and self.known_value is not None else target

    def publish(self, outcome: BoundedTree, top: bool) -> None:
        """Report progress if this is the search of the whole tree."""
        if top and self.report is not None:
            self.report(outcome)


class _Roots:
    """Best-first over root features with a bound for each of their sides.

    The bound of a side starts at max(V_d, E - (d + 2) * price) from tables of depth d, and is tightened by similar
    support, V(S) <= V(S') + W(S - S'), whenever another side is solved. A side is searched only for values that beat
    the incumbent given the bound of the other side.
    """

    def __init__(self, search: PriceSearch, data: Samples, known: Known, depth: int) -> None:
        self._search = search
        self._data = data
        self._depth = depth
        self._weights = data.side_weights
        shallow = search.best(known.sides)
        # The depth of sides is one lower; they have all shapes of up to that depth plus one leaves.
        self._upper = np.maximum(shallow, side_ceilings(data) - known.exact_leaves * search.price)
        self._promise = shallow.sum(axis=1)  # the best tree that is known below each root
        self._turns = 0

    def run(self, best: BoundedTree, target: float, top: bool) -> BoundedTree:
        """Search roots until the best bound left does not beat the incumbent or the target."""
        search = self._search
        closed = np.zeros(self._data.n_features, dtype=bool)
        before = best.upper
        while True:
            best.upper = self._bound(best, before)
            search.publish(best, top)
            if search.stopper() or self._data.size * _SECONDS_PER_CELL > search.stopper.remaining:
                return best
            goal = max(best.value, search.goal(target, top))
            if top:
                still = ~closed & (self._upper.sum(axis=1) > goal)
                search.counts.steps.roots = (int(still.sum()), closed.size)
            if best.upper <= goal or closed.all():
                return best
            f = self._next(closed, goal)
            search.counts.roots += 1
            found = self._open(f, goal)
            if found is not None and found.value > best.value:
                found.upper = best.upper
                best = found
            if search.stopper():
                best.upper = self._bound(best, before)
                return best
            closed[f] = True

    def _next(self, closed: BoolArray, goal: float) -> int:
        """Return alternately the root with the largest bound, which bounds all trees, and the most promising one.

        Every root whose bound beats the final value has to be searched in any order, so promising roots cost little
        extra, and the trees found there close others.
        """
        bounds = np.where(closed, -np.inf, self._upper.sum(axis=1))
        first = int(np.argmax(bounds))
        self._turns += 1
        if self._turns % 2:
            return first
        open_roots = bounds > goal
        return int(np.argmax(np.where(open_roots, self._promise, -np.inf))) if open_roots.any() else first

    def _bound(self, best: BoundedTree, before: float) -> float:
        """Return a bound on all trees, whatever their root.

        Closed roots count too: a root that cannot beat the target may still be better than the best tree known here,
        and the caller may use the bound for more than a comparison with the target.
        """
        return max(best.value, min(before, float(self._upper.sum(axis=1).max())))

    def _open(self, f: int, threshold: float) -> BoundedTree | None:
        """Search both sides of a root; return None if the root is proven not to beat the threshold."""
        data, search = self._data, self._search
        sides: list[BoundedTree | None] = [None, None]
        # The lighter side first: it is cheaper, and its result may close the root.
        order = np.argsort(self._weights[f])
        for side in (int(order[0]), int(order[1])):
            child = data.at((f, side)).without_light_columns(search.leaf_price)
            outcome = search.search(child, self._depth - 1, threshold - self._upper[f, 1 - side])
            self._upper[f, side] = min(self._upper[f, side], outcome.upper)
            if not search.stopper():  # takes seconds on very large data
                self._tighten(f, side)
            sides[side] = outcome
            if self._upper[f].sum() <= threshold:
                return None
        zero, one = sides
        assert zero is not None and one is not None
        value = zero.value + one.value
        return BoundedTree(value, value, lambda: data.branch(f, zero.tree(), one.tree()))

    def _tighten(self, f: int, side: int) -> None:
        units = self._search.units
        known = units.to_score(self._upper[f, side], self._weights[f, side])
        bound = units.from_score(known + self._data.beyond(f, side), self._weights)
        np.minimum(self._upper, bound, out=self._upper)


@dataclass
class BestTree:
    """Result of `best_tree`.

    Attributes
    ----------
    value, bound : float
        Score minus leaf price per leaf of the tree, and the proven upper bound; equal if `exact`.
    found : DecisionTree or None
        In arrays for the depth limit; None if local rules allow no tree: then value and bound are minus infinity.
    exact : bool
    seconds : float
    counts : SearchCounts
        Numbers of sample sets searched by level.
    """

    value: float
    bound: float
    found: DecisionTree | None
    seconds: float
    counts: SearchCounts = field(default_factory=SearchCounts)

    @property
    def tree(self) -> DecisionTree:
        """The tree that was found.

        Raises
        ------
        NoTreeError
            If local rules allow no tree.
        """
        if self.found is None:
            raise NoTreeError("no tree is allowed: a single leaf breaks the rules, and so does every larger tree")
        return self.found

    @property
    def exact(self) -> bool:
        """Whether the tree is proven optimal."""
        return self.bound <= self.value


def best_tree(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    n_classes: int,
    max_depth: int,
    leaf_price: float,
    *,
    rules: LocalRules | None = None,
    incumbent: DecisionTree | None = None,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    on_improvement: Callable[[float, float, float], None] | None = None,
    known_value: Callable[[], float] | None = None,
    counts: SearchCounts | None = None,
) -> BestTree:
    """Find the tree of depth at most `max_depth` with the largest score minus `leaf_price` per leaf.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    leaf_price : float
        Price of a leaf in the units of the weights, on the same grid.
    rules : LocalRules, optional
        Rules about leaves and paths.
    incumbent : DecisionTree, optional
        A known tree that satisfies the rules; the result is at least as good.
    deadline, should_stop
        When to stop early: a reading of `time.monotonic`, and a function that is called from time to time.
    on_improvement : callable, optional
        Called with (seconds, value, bound) whenever either improves.
    known_value : callable, optional
        Returns the value of the best tree that the caller knows; called from time to time. Trees that are not better
        are not searched for, so the result may be worse than this value and the bound equal to it.
    counts : SearchCounts, optional
        Updated during the search, to show its progress.
    """
    start = time.monotonic()
    features = np.asarray(X, dtype=bool)
    classes, sample_weights = np.asarray(y, np.int64), np.asarray(weights, np.float64)

    def value_of(tree: DecisionTree) -> float:
        score = float(sample_weights[tree.predictions(features) == classes].sum())
        return score - leaf_price * tree.n_leaves

    data = reduce_data(features, classes, sample_weights, int(n_classes), rules).without_light_columns(leaf_price)
    search = PriceSearch(leaf_price, data.signed, Stopper(deadline, should_stop), threads, memory_limit, counts)
    units, weight = search.units, data.total_weight
    if known_value is not None:
        search.known_value = lambda: float(units.from_score(known_value(), weight))
    known = -np.inf if incumbent is None else value_of(incumbent)
    if on_improvement is not None:
        search.report = _reporter(on_improvement, start, lambda number: units.to_score(number, weight), known)
    outcome = search.search(data, max_depth, float(units.from_score(known, weight)), top=True)
    if not data.allows_a_leaf:
        return BestTree(-np.inf, -np.inf, None, time.monotonic() - start, search.counts)
    tree = outcome.tree().with_max_depth(max_depth)
    value = value_of(tree)
    if incumbent is not None and known > value:
        tree, value = incumbent.with_max_depth(max_depth), known
    bound = max(value, float(units.to_score(outcome.upper, weight)))
    if on_improvement is not None:
        on_improvement(time.monotonic() - start, value, bound)
    return BestTree(value, bound, tree, time.monotonic() - start, search.counts)


def _reporter(
    on_improvement: Callable[[float, float, float], None], start: float, convert: Callable[[float], Any], known: float
) -> Callable[[BoundedTree], None]:
    """Return a listener that passes on improvements only: the value never falls and the bound never rises."""
    last = [known, np.inf]

    def report(outcome: BoundedTree) -> None:
        value = max(last[0], float(convert(outcome.value)))
        bound = min(last[1], max(value, float(convert(outcome.upper))))
        if value > last[0] or bound < last[1]:
            last[:] = value, bound
            on_improvement(time.monotonic() - start, value, bound)

    return report
