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

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Until no root can beat the best tree known, or time is up; `on_bound` hears of every bound."""
        waiting = [(-bound, feature) for feature, bound in self.bounds.items()]
        heapq.heapify(waiting)
        given_up = -np.inf  # the best that roots may hold which could not be closed
        while waiting and not self.should_stop():
            bound, feature = -waiting[0][0], waiting[0][1]
            if on_bound(max(value, given_up, bound)) or bound < self.goal(value):
                break
            heapq.heappop(waiting)
            value, left = self._close(feature, bound, value)
            given_up = max(given_up, left)
        rest = -waiting[0][0] if waiting else -np.inf
        if rest < self.goal(value):
            rest = -np.inf
        on_bound(max(value, given_up, rest))

    def _close(self, feature: int, bound: float, value: float) -> tuple[float, float]:
        """The best value known afterwards, and what trees of this root may still be worth: minus infinity if closed."""
        best = [value]

        def offer(tree: DecisionTree) -> float:
            best[0] = max(best[0], self.offer(tree))
            return best[0]

        dual = Dual(
            self.problem,
            offer,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=self.memory_limit,
            root=feature,
        )
        dual.run(lambda: self.goal(best[0]), self.priced.prices)
        self.evaluations += dual.evaluations
        bound = min(bound, dual.bound)
        if dual.is_infeasible or bound < self.goal(best[0]):
            return best[0], -np.inf
        if self.should_stop() or dual.best is None:
            return best[0], bound
        closing = Closing(
            self.problem,
            dual.best,
            dual.bound,
            offer,
            self.should_stop,
            goal=self.goal,
            root=feature,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        if not closing.possible:
            return best[0], bound
        left = [bound]

        def on_bound(proven: float) -> bool:
            left[0] = min(left[0], proven)
            return False

        closing.run(best[0], on_bound)
        self.outcomes += closing.n_outcomes
        return best[0], -np.inf if left[0] < self.goal(best[0]) else left[0]
