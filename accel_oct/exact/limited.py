"""Trees under limits on their predictions and leaves, and their best values at given prices of the limits.

`Limited` is the interface for duals, enumerations and repairs. It has two implementations: on the distinct points of
the data (`LimitedProblem`) and on the cells of a tally (`CellProblem`).
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
"""Features, and best values of their zero sides and of their one sides."""


class SideTables(ABC):
    """Best priced values of the sides of columns.

    Attributes
    ----------
    known : bool
        False if the tables exceed the memory limit or the computation was stopped.
    value, spread : float
        The best priced value, and an upper bound on the loss of all trees.
    columns : int array
        Features that split the samples, one of each set of equal or complementary ones.
    by_leaves : bool
        Whether `least` may be two.
    has_values_below : bool
        Whether `sides_below` is available.
    """

    known: bool
    value: float
    spread: float
    columns: IntArray
    by_leaves: bool
    has_values_below: bool

    @abstractmethod
    def sides(self, least: int = 1) -> TableSides:
        """Return values below the root; with `by_leaves`, of sides with at least `least` leaves."""

    @abstractmethod
    def sides_below(self, feature: int, side: bool, least: int = 1) -> TableSides:
        """Return values below one side of a root feature; only with `has_values_below`."""


#: The feature, or the split, of a leaf in `Outcomes.choice`.
LEAF = -1


class TooMany(Exception):
    """The enumeration was abandoned: a limit on time, memory or work was reached, or the user stopped it."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Values and uses of subtrees of one set, least loss first, with one tree for each.

    Attributes
    ----------
    loss : float array (m,)
    results : float array (m, 1 + n_limits)
        Value, and use of each limit.
    choice : int array (m, 3 or 7)
        The tree of each outcome. Seven numbers: a feature, then for each side the feature of its split and two classes.
        Three numbers: a split, and the places of the outcomes of both sides.
    splits : tuple of (feature, Outcomes, Outcomes)
        The splits that the three numbers refer to.
    """

    loss: FloatArray
    results: FloatArray
    choice: Array
    splits: tuple[tuple[int, Outcomes, Outcomes], ...] = ()

    def tree(self, place: int) -> DecisionTree:
        """Return a tree with this outcome."""
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
    """Outcomes of sets of samples at given prices; `TooMany` is raised beyond a limit.

    Parameters
    ----------
    rewards : Rewards
        A problem at some prices.
    should_stop : callable
        Called before every set.
    most_sets : int
        Largest number of sets.
    most_pairs : int
        Largest number of pairs of outcomes of one set.
    memory_limit : int
        Bytes that all returned outcomes may take together.

    Attributes
    ----------
    pairs : int
        Number of pairs of outcomes so far.
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
        """Return outcomes of the trees of depth at most `height` (0, 1 or 2) that branch on these columns."""
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
        """Return outcomes of a set from its leaves (loss, results) and splits (loss, feature, sides)."""
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
        """Yield pairs that satisfy the limits, best value first, as long as the value exceeds `above()`."""
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
    """A limit on the use of a tree; see `accel_oct.constraints.LinearLimit`."""

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
    """The problem of the best tree under limits.

    Attributes
    ----------
    gains : float array (n, n_classes)
        Reward of predicting each class, at a point or for a unit of a cell.
    uses : float array (n_limits, n, n_classes)
        Use of each limit; every limit is scaled to a largest entry of one.
    leaf_uses, upper : float arrays (n_limits,)
        Use of a leaf, and upper limit on the use of a tree. Tolerances are included, so that a tree that satisfies a
        constraint satisfies its limits.
    scales : float array (n_limits,)
        Factors by which the stated limits were divided.
    rules : LocalRules or None
        Rules about leaves and paths; for a tally, masses of whole cells. If they forbid a single leaf, no tree exists.
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
        """Upper bound on the rewards of a tree."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Approximate number of parts of the samples: the total weight divided by it is a small amount."""

    @cached_property
    def one_line(self) -> bool:
        """Whether there are two limits, opposite and compatible, so that at most one of them needs a price.

        The use of one is minus the use of the other. Only if no tree kept both would prices on both be needed.
        """
        opposite = self.n_limits == 2 and np.array_equal(self.uses[0], -self.uses[1])
        return bool(opposite and np.array_equal(self.leaf_uses[0], -self.leaf_uses[1]) and self.upper.sum() >= 0)

    @property
    @abstractmethod
    def rounding(self) -> FloatArray:
        """Upper bound on the floating-point error of sums of uses, for each limit."""

    @abstractmethod
    def priced(self, prices: FloatArray) -> PricedProblem:
        """Return the problem at some prices."""

    @abstractmethod
    def outcome(self, tree: DecisionTree) -> FloatArray:
        """Return the value of a tree, then its use of each limit."""

    # ---------------------------------------------------------------- sets of samples

    @abstractmethod
    def leaf_amounts(self, samples: SampleSet) -> tuple[FloatArray, FloatArray]:
        """Return gains (K,) and uses (n_limits, K) of every class as a leaf, without those of the leaf itself."""

    @abstractmethod
    def priced_leaves(self, priced: PricedProblem, samples: SampleSet) -> FloatArray:
        """Return the priced rewards (K,) of every class as a leaf, without the leaf price."""

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
        """Return best values of the sides of all columns, or at least of `root`."""

    @abstractmethod
    def outcomes(self, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int) -> SetOutcomes:
        """Return the outcomes of sets at some prices; `limits` are parameters of `SetOutcomes`."""

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
        """Return a best priced tree, with `root` at its root if given, and an upper bound on all such trees."""

    def columns_below(self, columns: IntArray, path: Sequence[int]) -> IntArray:
        """Return the columns that the rules allow below a path."""
        if self.rules is None or self.rules.apart is None or not path:
            return columns
        allowed: BoolArray = ~self.rules.apart[np.array(path)][:, columns].any(axis=0)
        return columns[allowed]

    # ---------------------------------------------------------------- for compiled code

    def apart(self, n_features: int) -> NDArray[np.uint8]:
        """Return which features (F, F) may not share a path."""
        if self.rules is None or self.rules.apart is None:
            return np.zeros((n_features, n_features), np.uint8)
        return np.ascontiguousarray(self.rules.apart, np.uint8)

    def rewards(self, priced: PricedProblem, X: NDArray[np.uint8], mass: FloatArray, least: float) -> native.Rewards:
        """Return the problem at some prices for kernels; `mass` of the rows of X, and `least` mass of a leaf."""
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
    """CodeScale `uses` (n_limits, n, K) in place to a largest entry of one; return `leaf_uses`, `upper` and `scales`.

    `counts` (n,) are multiplicities of the rows of `uses`.
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
            # A limit beyond the use of all trees is clipped: larger numbers could overflow.
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
    error : float
        Upper bound on the error of a tree's value through the grid and through floating point.
    grid_bits : int
        Weights of points, and the leaf price, are multiples of ``2.0 ** -grid_bits``.
    """

    prices: FloatArray
    weights: FloatArray
    leaf_price: float
    constant: float
    error: float
    grid_bits: int = 0
