"""The dual: the best multipliers by cutting planes, one tree per plane."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from accel_oct.exact.limited import Limited, PricedProblem
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree

_MOST_STEPS = 60

_RECENT = 4
"""Number of evaluations that are kept with their prices."""


@dataclass
class Dual:
    """Minimises L(mu) over mu >= 0.

    L is the maximum over all trees of functions that are linear in mu, so each evaluation gives a tree and with it a
    plane below L; the next mu minimises the planes known, within a box that grows while it binds.

    Parameters
    ----------
    offer : callable (DecisionTree)
        Takes every tree that is found on the way.
    should_stop : callable, optional
        The bound is valid whenever it stops.
    root : int or None
        Only trees that branch on this feature at the root.
    """

    problem: Limited
    offer: Callable[[DecisionTree], object]
    should_stop: Callable[[], bool] | None = None
    threads: int = 1
    memory_limit: int = 1 << 30
    root: int | None = None
    bound: float = np.inf
    """The smallest L(mu) so far: no tree that satisfies the limits has a larger value."""
    best: PricedProblem | None = None
    """The prices with this bound."""
    trees: list[DecisionTree] = field(default_factory=list)
    """The best tree of every evaluation."""
    recent: deque[tuple[PricedProblem, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """The last evaluations: prices, and their bound on all trees."""
    _planes: list[FloatArray] = field(default_factory=list)

    @property
    def evaluations(self) -> int:
        return len(self.trees)

    def evaluate(self, prices: FloatArray) -> float:
        """Compute L(mu) and take it as a bound; the best priced tree is offered and becomes a plane."""
        problem = self.problem
        priced = problem.priced(prices)
        tree, upper = problem.best_priced(
            priced,
            self.root,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        outcome = problem.outcome(tree)
        self._planes.append(np.append(problem.upper - outcome[1:], outcome[0]))
        self.offer(tree)
        self.trees.append(tree)
        value = upper + priced.constant + priced.error
        self.recent.append((priced, value))
        if value < self.bound:
            self.bound, self.best = value, priced
        return value

    @property
    def is_infeasible(self) -> bool:
        """Whether the bound is below the value of the worst tree, so that no tree satisfies the limits."""
        worst = -self.problem.leaf_price * 2**self.problem.max_depth
        return bool(self.bound < worst - 1e-6 * self.problem.total_weight)

    def run(self, enough: Callable[[], float], prices: FloatArray | None = None) -> None:
        """Minimise from some prices on, until the planes meet the bound or the bound is at most `enough()`."""
        problem = self.problem
        if prices is None:
            prices = np.zeros(problem.n_limits)
        box = np.maximum(4 * prices, problem.total_weight / max(1, problem.size))
        widest, tolerance = 1e6 * problem.total_weight, 1e-7 * problem.total_weight
        for _ in range(_MOST_STEPS):
            self.evaluate(prices)
            if self.is_infeasible or self.bound <= enough() or (self.should_stop is not None and self.should_stop()):
                return
            while True:
                prices, model = self._lowest(box)
                binding = (prices >= box) & (box < widest)
                box = np.where(binding, 4 * box, box)
                if model < self.bound - tolerance:
                    break
                if not binding.any():
                    return

    def _lowest(self, box: FloatArray) -> tuple[FloatArray, float]:
        """Return the prices in the box where the largest plane is lowest, and its height there."""
        planes = np.array(self._planes)
        if self.problem.n_limits == 1 or self.problem.one_line:
            # At most one of two opposite limits has a price.
            lowest = [_lowest_of_lines(planes[:, j], planes[:, -1], box[j]) for j in range(box.size)]
            j = int(np.argmin([height for _, height in lowest]))
            return lowest[j][0] * (np.arange(box.size) == j), lowest[j][1]
        return _lowest_of_planes(planes, box)


def _lowest_of_lines(slopes: FloatArray, heights: FloatArray, box: float) -> tuple[float, float]:
    """Minimise the largest of some lines between 0 and `box`: at an end, or where two of them meet."""
    first, second = np.triu_indices(slopes.size, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = (heights[second] - heights[first]) / (slopes[first] - slopes[second])
    places = np.concatenate([[0.0, box], meet[(meet > 0) & (meet < box)]])
    tops = (heights + places[:, None] * slopes).max(axis=1)
    lowest = int(np.argmin(tops))
    return float(places[lowest]), float(tops[lowest])


def _lowest_of_planes(planes: FloatArray, box: FloatArray) -> tuple[FloatArray, float]:
    """Minimise the largest of some planes in a box."""
    from scipy.optimize import linprog  # costly, and only needed under constraints

    n_limits = box.size
    solved = linprog(
        np.append(np.zeros(n_limits), 1.0),
        A_ub=np.column_stack([planes[:, :-1], -np.ones(len(planes))]),
        b_ub=-planes[:, -1],
        bounds=[*((0.0, limit) for limit in box), (None, None)],
        method="highs",
    )
    if solved.x is None:
        return np.zeros(n_limits), np.inf
    return np.maximum(solved.x[:-1], 0.0), float(solved.x[-1])
