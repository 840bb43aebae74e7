"""Outcomes of single sets of points, by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.pricing.limited import PricedProblem, SampleSet
from accel_oct.pricing.outcomes import Outcomes, TooMany
from accel_oct.pricing.problem import LimitedProblem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PART = 100_000_000
"""Pairs that are looked at between two looks at the clock where none is kept."""


class SetOutcomes:
    """What trees of depth at most two on a set come to at given prices, and what follows from the sides of splits.

    Parameters
    ----------
    rewards : Rewards
        A problem at some prices.
    should_stop : callable
        Asked before every set; then `TooMany` is raised.
    most_sets : int
        Sets that are looked at before `TooMany` is raised.
    most_pairs : int
        Pairs of outcomes that one set may need.
    memory_limit : int
        Bytes that all outcomes that are returned may take together.

    Attributes
    ----------
    pairs : int
        Pairs of outcomes that were looked at.
    """

    def __init__(
        self,
        rewards: native.Rewards,
        should_stop: Callable[[], bool],
        *,
        most_sets: int = 1 << 40,
        most_pairs: int = 20_000_000,
        memory_limit: int = 1 << 30,
    ) -> None:
        self.rewards = rewards
        self.pairs = 0
        self._should_stop = should_stop
        self._sets_left = most_sets
        self._most_pairs = most_pairs
        self._memory_left = memory_limit

    def two(self, samples: SampleSet, columns: IntArray, height: int, slack: float) -> Outcomes:
        """Trees of depth at most `height`, up to two, that branch on these columns."""
        self._count_set()
        return self._kept(self._two(samples, columns, height, float(slack)), ())

    def _two(self, samples: SampleSet, columns: IntArray, height: int, slack: float) -> native.FoundOutcomes | None:
        return native.outcomes_two(samples, columns, height, slack, self._most_pairs, self.rewards, self._memory_left)

    def joined(self, leaves: FloatArray, splits: list[tuple[float, int, Outcomes, Outcomes]], slack: float) -> Outcomes:
        """A set from its leaves (loss and results of each class) and some splits: loss, feature, both sides."""
        self._count_set()
        parts = [part for _, _, zero, one in splits for part in (zero, one)]
        ends = np.cumsum([0, *(part.loss.size for part in parts)])
        n_results = self.rewards.fixed.size
        found = native.joined(
            np.array([lost for lost, _, _, _ in splits], dtype=np.float64),
            np.ascontiguousarray(np.stack([ends[:-1:2], ends[1::2], ends[2::2]], axis=1)),
            np.concatenate([np.empty(0), *(part.loss for part in parts)]),
            np.concatenate([np.empty((0, n_results)), *(part.results for part in parts)]),
            leaves,
            float(slack),
            self._most_pairs,
            self.rewards.per_grain,
            self._memory_left,
        )
        return self._kept(found, tuple(split[1:] for split in splits))

    def pairs_by_value(
        self, zero: Outcomes, one: Outcomes, slack: float, limits: FloatArray, above: Callable[[], float]
    ) -> Iterator[tuple[float, int, int]]:
        """Pairs that keep the limits, best value first, while they are worth more than `above()`."""
        last = (np.inf, -1, -1)
        while True:
            best, first = (above(), -1, -1), 0
            while first < zero.loss.size:
                if self._should_stop():
                    raise TooMany
                value, i, j, first, made = native.best_pair(
                    zero.loss, zero.results, one.loss, one.results, float(slack), limits, best[0], last, first, _PART
                )
                self.pairs += made
                if i >= 0:
                    best = (value, i, j)
            if best[1] < 0:
                return
            yield best
            last = best

    def _count_set(self) -> None:
        self._sets_left -= 1
        if self._sets_left < 0 or self._should_stop():
            raise TooMany

    def _kept(self, found: native.FoundOutcomes | None, splits: tuple[tuple[int, Outcomes, Outcomes], ...]) -> Outcomes:
        if found is None:
            raise TooMany
        self._memory_left -= found.loss.nbytes + found.results.nbytes + found.choice.nbytes
        if self._memory_left < 0:
            raise TooMany
        self.pairs += found.made
        order = np.argsort(found.loss, kind="stable")
        return Outcomes(found.loss[order], found.results[order], found.choice[order], splits)


def rewards_of(problem: LimitedProblem, priced: PricedProblem) -> native.Rewards:
    """A problem at some prices as the compiled code takes it."""
    amounts: NDArray[Any] = np.concatenate([problem.gains[None], problem.uses])  # (1 + J, n, K)
    (n_points, n_features), rules = problem.X.shape, problem.rules
    apart = None if rules is None else rules.apart
    return native.Rewards(
        X=np.ascontiguousarray(problem.X, dtype=np.uint8),
        weights=np.ascontiguousarray(priced.weights),
        amounts=np.ascontiguousarray(amounts.transpose(1, 2, 0)).reshape(n_points, -1),
        fixed=np.concatenate([[-problem.leaf_price], problem.leaf_uses]),
        per_grain=1.0 / problem.rounding,
        mass=np.zeros(n_points) if rules is None else np.ascontiguousarray(rules.masses[0]),
        apart=np.zeros((n_features, n_features), np.uint8) if apart is None else np.ascontiguousarray(apart, np.uint8),
        leaf_price=float(priced.leaf_price),
        least=0.0 if rules is None else float(rules.least[0]),
    )
