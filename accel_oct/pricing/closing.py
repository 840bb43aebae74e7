"""Closing the gap: every tree that prices leave open, as outcomes.

Call the *loss* of a choice the best priced value at its place minus the best priced value after it. Losses along a tree
add up to L(mu) - L(T, mu). So all trees T with L(T, mu) >= L(mu) - eps are found top down: at a set of samples, every
class as a leaf and every feature as a split whose loss is within what is left of eps, and below it the same for both
sides with what is left then.

Not trees are kept but *outcomes*: the value of a subtree and what it uses of every limit. Of equal uses the best value
counts, and one tree stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from accel_oct.exact.enumeration import Enumeration, Path, SideBests
from accel_oct.exact.limited import Limited, PricedProblem
from accel_oct.exact.outcomes import Outcomes, SetOutcomes, TooMany
from accel_oct.exact.sample_sets import SampleSet
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Closing(Enumeration[Outcomes]):
    """Enumerates what a price leaves open, with more and more slack, until the optimum is proven.

    Parameters
    ----------
    problem : Limited
    priced : PricedProblem
        At prices that bound well.
    bound : float
        L(mu), rounding included.
    offer : callable (DecisionTree) -> float
        Told of trees that keep the limits; returns the value of the best tree known, minus infinity without one.
    should_stop : callable
        Asked now and then.
    goal : callable (float) -> float
        From the value of the best tree known to the smallest value that a better one can have.
    root : int or None
        Only trees that branch on this feature at the root; `bound` is for them.
    most_sets : int
        Sets of samples that are looked at before the enumeration is given up.
    most_pairs : int
        Pairs of outcomes that are kept of one set before it is given up; twenty million take a second or so.
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
        # Uses closer together than this are taken for equal. A tree may be merged into another one at every branch,
        # so what stands for it may use more than it does by so many grains: within `_room` the constraint decides.
        merged = (2**problem.max_depth + 2) * problem.rounding
        self._room = 2 * merged
        # Nor may what stands for it be lost because it is worth a hair less at these prices.
        self._noise = 2 * priced.error + 1e-12 * problem.total_weight + float(np.abs(priced.prices) @ merged)
        self._doubt = -np.inf

    def root_bounds(self) -> dict[int, float]:
        """By root feature, what no tree that branches on it and keeps the limits exceeds."""
        features, zero, one = self._root.sides()
        bounds = zero + one + self.priced.constant + self.priced.error
        return dict(zip(features.tolist(), bounds.tolist(), strict=True))

    @property
    def most(self) -> float:
        """What no tree that keeps the limits exceeds by these prices, whatever its root."""
        return self._root.value + self.priced.constant + self.priced.error

    @property
    def possible(self) -> bool:
        """Whether the tables that it begins from are there."""
        return self._sets is not None

    @property
    def n_outcomes(self) -> int:
        """Pairs of outcomes that were looked at."""
        return 0 if self._sets is None else self._sets.pairs

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Close the gap between `value`, that of the best tree known, and the bound; stops when it cannot.

        `on_bound` is told of every bound that is proven, and says whether it is enough.
        """
        self._value = value
        step = 0.25 * self.problem.total_weight / max(1.0, float(self.problem.size))
        while True:
            missing = max(0.0, self.bound - self._goal(self._value))
            slack = missing if missing <= 2 * step else step  # what is found with less is found again with more
            try:
                self._enumerate(slack)
            except TooMany:
                return
            self.slack = slack
            # A tree that was not enumerated is worth less than the bound minus the slack, and one that was is known, or
            # is worth no more than a tree that stands for it and was refused.
            complete = slack >= min(self.bound - self._goal(self._value), self._root.spread)
            proven = max(self._value, self._doubt)
            if not complete:
                proven = max(proven, self.bound - slack + self._noise)
            if on_bound(proven) or complete:
                return
            step *= 2

    # ---------------------------------------------------------------- enumeration

    def _enumerate(self, slack: float) -> None:
        """Offer the best tree within the slack that keeps the limits."""
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
            # What was found may make the rest of the slack superfluous.
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
        """Trees of depth at most three on one side of a root."""
        assert self._sets is not None
        sums = self._side_bests(samples, height, path).split
        splits = [
            (best - float(sums[split.place]), split.feature, split.zero, split.one)
            for split in self.splits(samples, height, threshold, path)
        ]
        return self._sets.joined(self._leaves(samples, best), splits, best - threshold)

    def _leaves(self, samples: SampleSet, best: float) -> FloatArray:
        """Loss and results of every class as a leaf."""
        problem = self.problem
        loss = best - self._leaf_values(samples)
        gains, uses = problem.leaf_amounts(samples)
        return np.column_stack([loss, gains - problem.leaf_price, (uses + problem.leaf_uses[:, None]).T])

    def _leaf_values(self, samples: SampleSet) -> FloatArray:
        """Priced value of every class as a leaf; the sides of a root that has a value may be leaves."""
        return self.problem.priced_leaves(self.priced, samples) - self.priced.leaf_price

    # ---------------------------------------------------------------- what is found

    def _offer_best(self, feature: int, zero: Outcomes, one: Outcomes, slack: float) -> None:
        """The best pair that keeps the limits; the next best where the constraints refuse it."""
        assert self._sets is not None
        limits = self.problem.upper + self._room
        for value, i, j in self._sets.pairs_by_value(zero, one, slack, limits, lambda: self._value):
            self._value = max(self._value, self._offer(DecisionTree.branch(feature, zero.tree(i), one.tree(j))))
            if self._value >= value - 1e-12 * self.problem.total_weight:
                return
            self._doubt = max(self._doubt, value)
