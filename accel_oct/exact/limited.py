"""What limits ask of the samples: the problem as duals, enumerations and repairs see it.

There are two kinds of problems: on points of the data (`LimitedProblem`) and on the cells of a tally (`CellProblem`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.exact.enumeration import SampleSet, SampleSets
from accel_oct.exact.local_rules import LocalRules
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray
from accel_oct.tree import DecisionTree

TableSides = tuple[IntArray, FloatArray, FloatArray]
"""Features, and the best values of their zero sides and one sides."""


class SideTables(ABC):
    """Best priced values of the sides of columns, from which all losses are measured.

    Attributes
    ----------
    known : bool
        False where there is no room for the tables, or the time was up.
    value, spread : float
        The best priced value, and a loss that no tree exceeds.
    columns : int array
        Features that split the samples, one of each set of equal or complementary ones.
    by_leaves : bool
        Whether sides with at least two leaves are known apart.
    knows_below : bool
        Whether there is `sides_below`.
    """

    known: bool
    value: float
    spread: float
    columns: IntArray
    by_leaves: bool
    knows_below: bool

    @abstractmethod
    def sides(self, least: int = 1) -> TableSides:
        """Below the root; of sides with at least so many leaves, where `by_leaves`."""

    @abstractmethod
    def sides_below(self, feature: int, side: bool, least: int = 1) -> TableSides:
        """Below one side of a root feature, where `knows_below`."""


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


class Limit(Protocol):
    """A limit on what a tree uses; see `accel_oct.constraints.LinearLimit`."""

    @property
    def predictions(self) -> FloatArray | None: ...

    @property
    def leaves(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def tolerance(self) -> float: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Limited(SampleSets):
    """The best tree under limits.

    Attributes
    ----------
    gains : float array (n, n_classes)
        What predicting each class scores, at a point or for a unit of a cell.
    uses : float array (n_limits, n, n_classes)
        What it uses of each limit; every limit is scaled to a largest entry of one.
    leaf_uses, upper : float arrays (n_limits,)
        What a leaf uses, and what may be used: what is forgiven included, so that whatever keeps a constraint by its
        own measure keeps its limits.
    leaf_price : float
    max_depth : int
    scales : float array (n_limits,)
        What the limits as stated were divided by.
    rules : LocalRules or None
        About leaves and paths; of a tally, in whole cells. They allow a leaf of all samples, or there is no tree.
    """

    gains: FloatArray
    uses: FloatArray
    leaf_uses: FloatArray
    upper: FloatArray
    leaf_price: float
    max_depth: int
    scales: FloatArray
    rules: LocalRules | None = None

    @property
    def n_limits(self) -> int:
        return len(self.upper)

    @property
    def n_classes(self) -> int:
        return int(self.gains.shape[1])

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """No tree earns more."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Into how many parts the samples fall, roughly: the total weight over it is a small amount."""

    @cached_property
    def one_line(self) -> bool:
        """Whether there are two limits, opposite and not contradictory: one of them at most is worth a price.

        What a tree uses of one it saves of the other. If both could not be kept, prices on both would prove it.
        """
        opposite = self.n_limits == 2 and np.array_equal(self.uses[0], -self.uses[1])
        return bool(opposite and np.array_equal(self.leaf_uses[0], -self.leaf_uses[1]) and self.upper.sum() >= 0)

    @property
    @abstractmethod
    def rounding(self) -> FloatArray:
        """For each limit, what floating-point sums of uses may be off by, and more."""

    @abstractmethod
    def priced(self, prices: FloatArray) -> PricedProblem:
        """The problem at some prices."""

    @abstractmethod
    def outcome(self, tree: DecisionTree) -> FloatArray:
        """Value of a tree, then what it uses of each limit."""

    # ---------------------------------------------------------------- sets of samples

    @abstractmethod
    def leaf_amounts(self, samples: SampleSet) -> tuple[FloatArray, FloatArray]:
        """Gains (K,) and uses (n_limits, K) of every class as a leaf, without what a leaf itself costs."""

    @abstractmethod
    def priced_leaves(self, priced: PricedProblem, samples: SampleSet) -> FloatArray:
        """Priced sums (K,)."""

    # ---------------------------------------------------------------- at some prices

    @property
    @abstractmethod
    def columns(self) -> IntArray:
        """Columns that split the samples, one of each set of equal or complementary ones with the same rules."""

    @abstractmethod
    def side_tables(
        self,
        priced: PricedProblem,
        root: int | None,
        should_stop: Callable[[], bool],
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> SideTables:
        """Best values of the sides of all columns, or at least of one of them."""

    @abstractmethod
    def outcomes(self, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int) -> SetOutcomes:
        """Outcomes of sets; limits are those of `SetOutcomes`."""

    @abstractmethod
    def best_priced(
        self,
        priced: PricedProblem,
        root: int | None,
        *,
        should_stop: Callable[[], bool] | None = None,
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> tuple[DecisionTree, float]:
        """A best priced tree, with some feature at the root if one is given, and what bounds all of them."""

    def columns_below(self, columns: IntArray, path: Sequence[int]) -> IntArray:
        """Those of some columns that rules allow below a path."""
        if self.rules is None or self.rules.apart is None or not path:
            return columns
        allowed: BoolArray = ~self.rules.apart[np.array(path)][:, columns].any(axis=0)
        return columns[allowed]

    # ---------------------------------------------------------------- for compiled code

    def apart(self, n_features: int) -> NDArray[np.uint8]:
        """Features (F, F) that may not share a path."""
        if self.rules is None or self.rules.apart is None:
            return np.zeros((n_features, n_features), np.uint8)
        return np.ascontiguousarray(self.rules.apart, np.uint8)

    def rewards(self, priced: PricedProblem, X: NDArray[np.uint8], mass: FloatArray, least: float) -> native.Rewards:
        """The problem at some prices; `mass` is what rows of X weigh, and `least` what a leaf must."""
        amounts: Array = np.concatenate([self.gains[None], self.uses])  # (1 + J, n, K)
        return native.Rewards(
            X=X,
            weights=np.ascontiguousarray(priced.weights),
            amounts=np.ascontiguousarray(amounts.transpose(1, 2, 0)).reshape(len(self.gains), -1),
            fixed=np.concatenate([[-self.leaf_price], self.leaf_uses]),
            per_grain=1.0 / self.rounding,
            mass=mass,
            apart=self.apart(X.shape[1]),
            leaf_price=float(priced.leaf_price),
            least=least,
        )


def scaled_limits(
    limits: Sequence[Limit], uses: FloatArray, counts: FloatArray, max_depth: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scale `uses` (n_limits, n, K), in place, to a largest entry of one; returns `leaf_uses`, `upper` and `scales`.

    `counts` (n,) says how often each row of `uses` counts.
    """
    leaf_uses = np.array([limit.leaves for limit in limits], dtype=np.float64)
    upper = np.array([limit.upper + limit.tolerance for limit in limits], dtype=np.float64)
    scales = np.ones(len(limits))
    for j, own in enumerate(uses):
        scale = max(float(np.abs(own).max(initial=0.0)), abs(float(leaf_uses[j])))
        if scale > 0:
            scales[j] = scale
            own /= scale
            leaf_uses[j] /= scale
            # Beyond what any tree can use, more makes no difference, and could not be told from infinity.
            most = float(counts @ np.abs(own).max(axis=1)) + 2**max_depth * abs(float(leaf_uses[j])) + 1.0
            with np.errstate(over="ignore"):
                upper[j] = np.clip(upper[j] / scale, -most, most)
    return leaf_uses, upper, scales


@dataclass(frozen=True, eq=False)
class PricedProblem:
    """Rewards and a leaf price: L(T) is the reward of T's predictions minus the price of its leaves, plus a constant.

    Attributes
    ----------
    prices : float array (n_limits,)
    weights : float array (n_points, n_classes), or (n_cells, n_classes)
        Not negative. Of points on a grid on which sums are exact; of cells, per unit of their counts.
    leaf_price : float
    constant : float
    error : float
        How far the value of a tree may be off through the grid and through floating point.
    grid_bits : int
        Weights of points, and the leaf price, are multiples of ``2.0 ** -grid_bits``.
    """

    prices: FloatArray
    weights: FloatArray
    leaf_price: float
    constant: float
    error: float
    grid_bits: int = 0
