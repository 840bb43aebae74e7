"""Closing the gap: enumeration of every tree that prices leave open, as outcomes.

Call the *loss* of a choice the best priced value at its place minus the best priced value after it. Losses along a tree
add up to L(mu) - L(T, mu). So all trees T with L(T, mu) >= L(mu) - eps are found top down: at a set of samples, every
class as a leaf and every feature as a split whose loss is within what is left of eps, and below it the same for both
sides with what is left then.

The enumeration keeps *outcomes* instead of trees: the value of a subtree and its use of every limit. Of outcomes with
equal uses the best one is kept, with one tree that has it.

The best prices for the trees of one root bound them better than common ones, and leave less to enumerate. So where
common prices leave too much open, every root feature gets prices of its own (`RootByRoot`), in the order of their
bounds, until no root can beat the best tree known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from accel_oct.data.tally import Path
from accel_oct.exact.enumeration import Enumeration, SampleSet, SideBests
from accel_oct.exact.limited import Limited, Outcomes, PricedProblem, SetOutcomes, TooMany
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.repair import Repair
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree


class Closing(Enumeration[Outcomes]):
    """Enumerates the trees that a price leaves open, with increasing slack, until the optimum is proven.

    Parameters
    ----------
    priced : PricedProblem
        At prices with a good bound.
    bound : float
        L(mu), rounding included.
    offer : callable (DecisionTree) -> float
        Takes trees that satisfy the limits; returns the value of the best tree known, minus infinity without one.
    goal : callable (float) -> float
        From the value of the best tree known to the smallest value that a better one can have.
    root : int or None
        Only trees that branch on this feature at the root; `bound` is for them.
    most_sets : int
        Limit on sets of samples; the enumeration gives up beyond it.
    most_pairs : int
        Limit on pairs of outcomes of one set; twenty million take about a second.

    Attributes
    ----------
    slack : float
        The slack within which all trees were enumerated.
    complete : bool
        Whether all trees were enumerated that may be better.
    """

    def __init__(
        self,
        problem: Limited,
        priced: PricedProblem,
        bound: float,
        offer: Callable[[DecisionTree], float],
        should_stop: Callable[[], bool],
        *,
        goal: Callable[[float], float] = lambda value: value,
        root: int | None = None,
        most_sets: int = 1 << 40,
        most_pairs: int = 20_000_000,
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.priced = priced
        self.bound = bound
        self.slack = 0.0
        self.complete = False
        self._offer = offer
        self._goal = goal
        self._only = root
        self._root = problem.side_tables(priced, root, should_stop, threads, memory_limit)
        self._sets: SetOutcomes | None = None
        if self._root.known:
            self._sets = problem.outcomes(
                priced,
                should_stop,
                most_sets=most_sets,
                most_pairs=most_pairs,
                memory_limit=memory_limit,
            )
        # Uses that differ by less count as equal. A tree may be merged into another one at every branch, so the tree
        # that is kept may use more than it by this much: within `_room` the constraint itself decides.
        merged = (2**problem.max_depth + 2) * problem.rounding
        self._room = 2 * merged
        # The tree that is kept may also be worth slightly less at these prices.
        self._noise = 2 * priced.error + 1e-12 * problem.total_weight + float(np.abs(priced.prices) @ merged)
        self._doubt = -np.inf

    def root_bounds(self) -> dict[int, float]:
        """Return by root feature a bound on the trees that branch on it and satisfy the limits."""
        features, zero, one = self._root.sides()
        bounds = zero + one + self.priced.constant + self.priced.error
        return dict(zip(features.tolist(), bounds.tolist(), strict=True))

    @property
    def most(self) -> float:
        """The bound of these prices on all trees that satisfy the limits, whatever their root."""
        return self._root.value + self.priced.constant + self.priced.error

    @property
    def possible(self) -> bool:
        """Whether the tables that the enumeration starts from are available."""
        return self._sets is not None

    @property
    def n_outcomes(self) -> int:
        """Number of pairs of outcomes so far."""
        return 0 if self._sets is None else self._sets.pairs

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Close the gap between the bound and `value`, that of the best tree known, as far as limits allow.

        `on_bound` takes every bound that is proven, and returns whether it is enough.
        """
        self._value = value
        step = 0.25 * self.problem.total_weight / max(1.0, float(self.problem.size))
        while True:
            missing = max(0.0, self.bound - self._goal(self._value))
            slack = missing if missing <= 2 * step else step
            try:
                self._enumerate(slack)
            except TooMany:
                return
            self.slack = slack
            # A tree that was not enumerated is worth less than the bound minus the slack. One that was enumerated is
            # known, or is worth no more than the merged tree that was refused in its place.
            complete = self.complete = slack >= min(self.bound - self._goal(self._value), self._root.spread)
            proven = max(self._value, self._doubt)
            if not complete:
                proven = max(proven, self.bound - slack + self._noise)
            if on_bound(proven) or complete:
                return
            step *= 2

    # ---------------------------------------------------------------- enumeration

    def _enumerate(self, slack: float) -> None:
        """Offer the best tree within the slack that satisfies the limits."""
        everyone = self.problem.everyone()
        room = slack + self._noise
        depth = self.problem.max_depth
        features, zero, one = self._root.sides()
        if self._only is None:
            best = self._root.value
            for label in range(self.problem.n_classes):
                self._value = max(self._value, self._offer(DecisionTree.leaf(label)))
            if depth == 0:
                return
        else:
            own = features == self._only
            features, zero, one = features[own], zero[own], one[own]
            best = float((zero + one).max())
        losses = best - (zero + one)
        for position in np.argsort(losses, kind="stable"):
            loss = float(losses[position])
            if loss > room:
                break
            feature, left = int(features[position]), room - loss
            bests = float(zero[position]), float(one[position])
            sides = [
                self.collected(
                    self.problem.side(everyone, feature, side),
                    depth - 1,
                    bests[side],
                    bests[side] - left,
                    ((feature, side),),
                )
                for side in (False, True)
            ]
            self._offer_best(feature, sides[0], sides[1], left)
            # A better tree may make the rest of the slack superfluous.
            room = min(room, self.bound - self._goal(self._value) + self._noise)

    def _key(self, samples: SampleSet, height: int, path: Path) -> Hashable:
        return self.problem.key(samples), self._columns(path).tobytes(), height

    def _columns(self, path: Path) -> IntArray:
        return self.problem.columns_below(self._root.columns, [feature for feature, _ in path])

    def _side_bests(self, samples: SampleSet, height: int, path: Path) -> SideBests:
        features, zero, one = self._root.sides_below(*path[0])
        return SideBests(features, zero, one, zero + one)

    def _shallow(self, samples: SampleSet, height: int, best: float, threshold: float, path: Path) -> Outcomes:
        assert self._sets is not None
        return self._sets.two(samples, self._columns(path), height, best - threshold)

    def _deep(self, samples: SampleSet, height: int, best: float, threshold: float, path: Path) -> Outcomes:
        """Return outcomes of trees of depth at most three on one side of a root."""
        assert self._sets is not None
        sums = self._side_bests(samples, height, path).split
        splits = [
            (best - float(sums[split.place]), split.feature, split.zero, split.one)
            for split in self.splits(samples, height, threshold, path)
        ]
        return self._sets.joined(self._leaves(samples, best), splits, best - threshold)

    def _leaves(self, samples: SampleSet, best: float) -> FloatArray:
        """Return loss and results of every class as a leaf."""
        problem = self.problem
        loss = best - self._leaf_values(samples)
        gains, uses = problem.leaf_amounts(samples)
        return np.column_stack([loss, gains - problem.leaf_price, (uses + problem.leaf_uses[:, None]).T])

    def _leaf_values(self, samples: SampleSet) -> FloatArray:
        """Return the priced value of every class as a leaf; the sides of a root that has a value may be leaves."""
        return self.problem.priced_leaves(self.priced, samples) - self.priced.leaf_price

    # ---------------------------------------------------------------- results

    def _offer_best(self, feature: int, zero: Outcomes, one: Outcomes, slack: float) -> None:
        """Offer the best pair that satisfies the limits, and the next best where the constraints refuse it."""
        assert self._sets is not None
        limits = self.problem.upper + self._room
        for value, i, j in self._sets.pairs_by_value(zero, one, slack, limits, lambda: self._value):
            self._value = max(self._value, self._offer(DecisionTree.branch(feature, zero.tree(i), one.tree(j))))
            if self._value >= value - 1e-12 * self.problem.total_weight:
                return
            self._doubt = max(self._doubt, value)


# ---------------------------------------------------------------- root by root


_NEW = 0
"""Number of tries for a root without prices."""

_EFFORTS = ((1000, 1_000_000), (1 << 40, 20_000_000))
"""Most sets, and most pairs of outcomes of each, for the first try at a root and the next."""


@dataclass
class RootByRoot:
    """Closes root features one by one.

    Parameters
    ----------
    priced : PricedProblem
        The best common prices, the starting point for the prices of every root.
    bounds : dict
        By root feature, a bound on its trees.
    offer, goal, should_stop
        As in `Closing`.

    Attributes
    ----------
    bounds : dict
        By root feature, the best bound on its trees; minus infinity if none satisfies the limits.
    own : dict
        By root feature with prices of its own: these prices and their bound on its trees.
    tables : dict
        By root feature that could not be closed: its prices, their bound on all trees, and the bounds of all roots.
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
        """Close roots until none can beat the best tree known or it is time to stop; `on_bound` takes every bound.

        The first time that a root is the most promising one it gets its own prices, the second time it is closed. A
        root that takes too much work is tried once more after the others, which may lead to better trees.
        """
        self._value = value
        # Bounds on the trees of roots that are not closed.
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
        """Number of roots that may still hold a better tree, and number of roots."""
        return sum(map(self._is_open, tuple(self._left.values()))), len(self._left)

    def _is_open(self, bound: float) -> bool:
        """Whether trees with this bound may beat the best tree known."""
        return bound > -np.inf and bound >= self.goal(self._value)

    def _offer(self, tree: DecisionTree) -> float:
        self._value = max(self._value, self.offer(tree))
        return self._value

    def _priced(self, feature: int) -> Dual:
        """Find the best prices for the trees of a root, and repair its best trees."""
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
        """Enumerate a root; returns the bound on its trees, minus infinity if it is closed."""
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
