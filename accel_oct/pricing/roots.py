"""When common prices leave too much open: prices of its own for every root feature.

The best prices for the trees of one root bound them better than common ones, and leave less to enumerate. Root features
are taken in the order of their bounds, until none can beat the best tree known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct.pricing.closing import Closing
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.problem import LimitedProblem, PricedProblem
from accel_oct.pricing.repair import Repair
from accel_oct.tree import DecisionTree


@dataclass
class RootByRoot:
    """Closes root features one by one.

    Parameters
    ----------
    problem : LimitedProblem
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
    tables : list
        Prices of single roots that could not be closed, what they bound all trees by, and the bounds of all roots.
    """

    problem: LimitedProblem
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
        self.own: dict[int, tuple[PricedProblem, float]] = {}
        self.tables: list[tuple[PricedProblem, float, dict[int, float]]] = []

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Until no root can beat the best tree known, or time is up; `on_bound` hears of every bound.

        The first time that a root is the most promising one it gets its own prices, the second time it is closed.
        """
        self._value = value
        waiting: list[tuple[float, int, Dual | None]] = [(-bound, f, None) for f, bound in self.bounds.items()]
        heapq.heapify(waiting)
        given_up = -np.inf  # the best that roots may hold which could not be closed
        while waiting and not self.should_stop():
            bound, feature, dual = -waiting[0][0], waiting[0][1], waiting[0][2]
            if on_bound(max(self._value, given_up, bound)) or bound < self.goal(self._value):
                break
            if dual is None:
                dual = self._priced(feature)
                bound = -np.inf if dual.is_infeasible else min(bound, dual.bound)
                self.bounds[feature] = bound
                if dual.best is not None and np.isfinite(bound):
                    self.own[feature] = dual.best, dual.bound
                heapq.heapreplace(waiting, (-bound, feature, dual))
            else:
                heapq.heappop(waiting)
                given_up = max(given_up, self._close(feature, bound, dual))
        rest = -waiting[0][0] if waiting else -np.inf
        if rest < self.goal(self._value):
            rest = -np.inf
        on_bound(max(self._value, given_up, rest))

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
        if dual.best is not None and not dual.is_infeasible and dual.bound >= self.goal(self._value):
            Repair(self.problem, dual.best, self._offer, self.should_stop, self.memory_limit).run(dual.trees)
        return dual

    def _close(self, feature: int, bound: float, dual: Dual) -> float:
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
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        left = [bound]

        def note(proven: float) -> bool:
            left[0] = min(left[0], proven)
            return False

        if closing.possible:
            closing.run(self._value, note)
            self.outcomes += closing.n_outcomes
        self.bounds[feature] = left[0]
        if left[0] < self.goal(self._value):
            return -np.inf
        if closing.possible:
            self.tables.append((dual.best, closing.most, closing.root_bounds()))
        return left[0]
