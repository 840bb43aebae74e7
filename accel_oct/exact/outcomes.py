"""What subtrees of sets of samples come to at given prices: values and uses, and one tree for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from accel_oct import native
from accel_oct.exact.sample_sets import SampleSet
from accel_oct.support.arrays import Array, FloatArray, IntArray
from accel_oct.tree import DecisionTree

#: The feature, or the split, of a leaf.
LEAF = -1


class TooMany(Exception):
    """The enumeration was given up: time, memory or the user's wish."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What subtrees of one set come to, least loss first.

    Attributes
    ----------
    loss : float array (m,)
    results : float array (m, 1 + n_limits)
        Value, and what is used of each limit.
    choice : int array (m, 3 or 7)
        How each came about. Seven numbers: a feature, then for each side the feature of its split and two classes, see
        `kernels.outcomes`. Three: a split, and the places of the outcomes of both its sides.
    splits : tuple of (feature, Outcomes, Outcomes)
        Which splits the three numbers speak of.
    """

    loss: FloatArray
    results: FloatArray
    choice: Array
    splits: tuple[tuple[int, Outcomes, Outcomes], ...] = ()

    def tree(self, place: int) -> DecisionTree:
        """One tree with this outcome."""
        choice = self.choice[place].tolist()
        if choice[0] == LEAF:
            return DecisionTree.leaf(choice[-1])
        if len(choice) == 7:
            return DecisionTree.branch(choice[0], _stump(*choice[1:4]), _stump(*choice[4:]))
        feature, zero, one = self.splits[choice[0]]
        return DecisionTree.branch(feature, zero.tree(choice[1]), one.tree(choice[2]))


def _stump(feature: int, zero: int, one: int) -> DecisionTree:
    if feature == LEAF:
        return DecisionTree.leaf(one)
    return DecisionTree.branch(feature, DecisionTree.leaf(zero), DecisionTree.leaf(one))


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
        try:
            found = self._two(samples, columns, height, float(slack))
        except native.Stopped:
            raise TooMany from None
        return self._kept(found, ())

    def _two(self, samples: SampleSet, columns: IntArray, height: int, slack: float) -> native.FoundOutcomes | None:
        return native.outcomes_two(
            *(samples, columns, height, slack, self._most_pairs, self.rewards, self._memory_left, self._should_stop)
        )

    def joined(self, leaves: FloatArray, splits: list[tuple[float, int, Outcomes, Outcomes]], slack: float) -> Outcomes:
        """A set from its leaves (loss and results of each class) and some splits: loss, feature, both sides."""
        self._count_set()
        parts = [part for _, _, zero, one in splits for part in (zero, one)]
        ends = np.cumsum([0, *(part.loss.size for part in parts)])
        n_results = self.rewards.fixed.size
        try:
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
                self._should_stop,
            )
        except native.Stopped:
            raise TooMany from None
        return self._kept(found, tuple(split[1:] for split in splits))

    def pairs_by_value(
        self, zero: Outcomes, one: Outcomes, slack: float, limits: FloatArray, above: Callable[[], float]
    ) -> Iterator[tuple[float, int, int]]:
        """Pairs that keep the limits, best value first, while they are worth more than `above()`."""
        last = (np.inf, -1, -1)
        sides = zero.loss, zero.results, one.loss, one.results
        while True:
            if self._should_stop():
                raise TooMany
            try:
                value, i, j, made = native.best_pair(*sides, float(slack), limits, above(), last, self._should_stop)
            except native.Stopped:
                raise TooMany from None
            self.pairs += made
            if i < 0:
                return
            last = value, i, j
            yield last

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
