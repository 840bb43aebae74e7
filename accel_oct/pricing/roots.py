"""When common prices leave too much open: prices of its own for every root feature.

The best prices for the trees of one root bound them better than common ones, and leave less to enumerate. Root features
are taken in the order of their bounds, until none can beat the best tree known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct.exact.limited import Limited, PricedProblem
from accel_oct.pricing.closing import Closing
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.repair import Repair
from accel_oct.tree import DecisionTree

_NEW = 0
"""Number of tries of a root that has no prices yet."""

_EFFORTS = ((1000, 1_000_000), (1 << 40, 20_000_000))
"""Sets, and pairs of outcomes of each, that a root may need at its first try and at the next."""


@dataclass
class RootByRoot:
    """Closes root features one by one.

    Parameters
    ----------
    problem : Limited
    priced : PricedProblem
        The best common prices: where the prices of every root begin.
    bounds : dict
        By root feature, what its trees cannot exceed.
    offer, goal, should_stop
        As in `Closing`.

    Attributes
    ----------
    bounds : dict
        By root feature, what its trees cannot exceed by all that was done; minus infinity if none keeps the limits.
    own : dict
        By root feature that got prices of its own: they, and what they bound its trees by.
    tables : dict
        By root feature that could not be closed: its prices, what they bound all trees by, and the bounds of all roots.
    """

    problem: Limited
    priced: PricedProblem
    bounds: dict[int, float]
    offer: Callable[[DecisionTree], float]
    goal: Callable[[float], float]
    should_stop: Callable[[], bool]
    threads: int = 1
    memory_limit: int = 1 << 30
    evaluations: int = 0
    outcomes: int = 0

    def __post_init__(self) -> None:
        self.bounds = dict(self.bounds)
        self._left: dict[int, float] = {}
        self.own: dict[int, tuple[PricedProblem, float]] = {}
        self.tables: dict[int, tuple[PricedProblem, float, dict[int, float]]] = {}

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Until no root can beat the best tree known, or time is up; `on_bound` hears of every bound.

        The first time that a root is the most promising one it gets its own prices, the second time it is closed. Where
        that takes too much it waits for the others, which may lead to better trees, and is tried once more.
        """
        self._value = value
        # What the trees of roots that are not closed may be worth.
        left = self._left = dict(self.bounds)
        waiting = [(0, -bound, feature, _NEW) for feature, bound in left.items()]
        heapq.heapify(waiting)
        duals: dict[int, Dual] = {}
        while waiting and not self.should_stop():
            late, _, feature, tries = heapq.heappop(waiting)
            if on_bound(max(self._value, *left.values())):
                return
            if self._is_open(left[feature]):
                if tries == _NEW:
                    duals[feature] = self._priced(feature)
                    left[feature] = self.bounds[feature]
                else:
                    left[feature] = self._close(feature, duals[feature], _EFFORTS[tries - 1])
                    late = tries
                if self._is_open(left[feature]) and tries < len(_EFFORTS):
                    heapq.heappush(waiting, (late, -left[feature], feature, tries + 1))
        on_bound(max([self._value, *filter(self._is_open, left.values())]))

    @property
    def open_roots(self) -> tuple[int, int]:
        """Roots that may still hold a better tree, of how many."""
        return sum(map(self._is_open, tuple(self._left.values()))), len(self._left)

    def _is_open(self, bound: float) -> bool:
        """Whether trees that may be worth so much may beat the best tree known."""
        return bound > -np.inf and bound >= self.goal(self._value)

    def _offer(self, tree: DecisionTree) -> float:
        self._value = max(self._value, self.offer(tree))
        return self._value

    def _priced(self, feature: int) -> Dual:
        """The best prices for the trees of a root, and what its best trees lead to."""
        dual = Dual(
            self.problem,
            self._offer,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=self.memory_limit,
            root=feature,
        )
        dual.run(lambda: self.goal(self._value), self.priced.prices)
        self.evaluations += dual.evaluations
        self.bounds[feature] = -np.inf if dual.is_infeasible else min(self.bounds[feature], dual.bound)
        if dual.best is not None and np.isfinite(self.bounds[feature]):
            self.own[feature] = dual.best, dual.bound
        if dual.best is not None and self._is_open(self.bounds[feature]):
            Repair(self.problem, dual.best, self._offer, self.should_stop, self.memory_limit).run(dual.trees)
        return dual

    def _close(self, feature: int, dual: Dual, effort: tuple[int, int]) -> float:
        """What trees of this root may still be worth afterwards: minus infinity if it is closed."""
        assert dual.best is not None  # it was evaluated before it got here
        closing = Closing(
            self.problem,
            dual.best,
            dual.bound,
            self._offer,
            self.should_stop,
            goal=self.goal,
            root=feature,
            most_sets=effort[0],
            most_pairs=effort[1],
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        proven = [dual.bound]

        def note(bound: float) -> bool:
            proven[0] = min(proven[0], bound)
            return False

        if closing.possible:
            closing.run(self._value, note)
            self.outcomes += closing.n_outcomes
        self.bounds[feature] = min(self.bounds[feature], proven[0])
        if proven[0] < self.goal(self._value):
            self.tables.pop(feature, None)
            return -np.inf
        if closing.possible:
            self.tables[feature] = (dual.best, closing.most, closing.root_bounds())
        return self.bounds[feature]
