"""Trees deeper than four, or too wide for tables: root features one by one for one leaf price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.reduction import Reduced, as_factor, both_sides, similar_sides
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.stopping import Stopper
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]

_SECONDS_PER_CELL = 1.5e-8
"""Of taking one side of the data, with its columns compared: it cannot be interrupted, so it is not begun too late."""


@dataclass
class Outcome:
    """A known tree's value and a proven bound, in table units; the tree is built on request."""

    value: float
    upper: float
    tree: Callable[[], DecisionTree]


@dataclass
class SearchCounts:
    """How many sets were looked at on which level, pairs of features and root features; and how far all is."""

    pair_levels: int = 0
    level_three: int = 0
    level_four: int = 0
    pairs: int = 0
    roots: int = 0
    steps: Steps = field(default_factory=Steps)


class SideSearch(Protocol):
    """Who searches the sides, for which price, within which limits; `PriceSearch` in practice."""

    leaf_price: float
    price: float
    stopper: Stopper
    counts: SearchCounts

    def search(self, data: Reduced, depth: int, target: float) -> Outcome:
        """Best tree of depth at most `depth`, or a proof that none beats `target`."""
        ...

    def goal(self, target: float, top: bool) -> float:
        """What a tree has to beat, given what others have found by now."""
        ...

    def publish(self, outcome: Outcome, top: bool) -> None:
        """Tell whoever listens, if this is about the whole tree."""
        ...


class PriceRoots:
    """Best-first over root features with a bound for each of their sides.

    A side starts with max(V_2, E - 4 * price) and is tightened by similar support, V(S) <= V(S') + W(S - S'), whenever
    another side is known. A side is only searched for values that can still beat the incumbent, given the bound of the
    other side.
    """

    def __init__(self, search: SideSearch, pairs: PairLevel, deep: DeepLevels | None, depth: int) -> None:
        self._search = search
        self._pairs = pairs
        self._depth = depth
        data = pairs.data
        self._X = as_factor(data.X)
        ceiling = both_sides(data.row_ceiling, self._X)
        self._weights = both_sides(data.weights, self._X)
        numbers = np.asarray(pairs.units.from_score(ceiling, self._weights), dtype=np.float64)
        price = search.price
        if deep is None:
            shallow = pairs.side_profiles - price * np.arange(1, 3)
            self._upper = np.maximum(shallow.max(axis=-1), numbers - 3 * price)
        else:
            shallow = deep.side_profiles - price * np.arange(1, 5)
            self._upper = np.maximum(shallow.max(axis=-1), numbers - 4 * price)
        self._promise = shallow.max(axis=-1).sum(axis=1)  # the best tree that is known below each root
        self._turns = 0

    def run(self, best: Outcome, target: float, top: bool) -> Outcome:
        """Open roots until the best bound left does not beat the incumbent or the target."""
        search = self._search
        closed = np.zeros(self._pairs.n_features, dtype=bool)
        before = best.upper
        while True:
            best.upper = self._bound(best, before)
            search.publish(best, top)
            if search.stopper() or self._X.size * _SECONDS_PER_CELL > search.stopper.remaining:
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

    def _next(self, closed: NDArray[np.bool_], goal: float) -> int:
        """By turns the root with the largest bound, which holds the bound of all up, and the one of most promise.

        Every root whose bound beats the final value has to be opened whatever the order is, so those that are likely to
        have good trees cost little, and what they find closes others.
        """
        bounds = np.where(closed, -np.inf, self._upper.sum(axis=1))
        first = int(np.argmax(bounds))
        self._turns += 1
        if self._turns % 2:
            return first
        open_roots = bounds > goal
        return int(np.argmax(np.where(open_roots, self._promise, -np.inf))) if open_roots.any() else first

    def _bound(self, best: Outcome, before: float) -> float:
        """A bound on every tree, whatever its root.

        Closed roots count too: one that was closed because it cannot beat the target may still be worth more than the
        best tree known here, and whoever asked may use this bound for something else than that target.
        """
        return max(best.value, min(before, float(self._upper.sum(axis=1).max())))

    def _open(self, f: int, threshold: float) -> Outcome | None:
        """Search both sides of a root; None when the root is proven not to beat the threshold."""
        data, search = self._pairs.data, self._search
        sides: list[Outcome | None] = [None, None]
        # The lighter side first: it is cheaper, and its result may already close the root.
        order = np.argsort(self._weights[f])
        for side in (int(order[0]), int(order[1])):
            child = data.restricted(data.X[:, f] == side, f).without_light_columns(search.leaf_price)
            outcome = search.search(child, self._depth - 1, threshold - self._upper[f, 1 - side])
            self._upper[f, side] = min(self._upper[f, side], outcome.upper)
            if not search.stopper():  # on very large data this takes seconds, and nobody would use it
                self._tighten(f, side)
            sides[side] = outcome
            if self._upper[f].sum() <= threshold:
                return None
        zero, one = sides
        assert zero is not None and one is not None
        value = zero.value + one.value
        return Outcome(value, value, lambda: data.branch(f, zero.tree(), one.tree()))

    def _tighten(self, f: int, side: int) -> None:
        data, units = self._pairs.data, self._pairs.units
        extra = both_sides(data.weights * (data.X[:, f] != side), self._X)
        known = units.to_score(self._upper[f, side], self._weights[f, side])
        bound = units.from_score(known + extra, self._weights)
        alike = similar_sides(data, self._X, f, side)
        np.minimum(self._upper, bound, out=self._upper, where=True if alike is None else alike)
