"""What limits ask of the samples: the problem as duals, enumerations and repairs see it.

There are two kinds of problems: on points of the data (`LimitedProblem`) and on the cells of a tally (`CellProblem`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.outcomes import SetOutcomes
from accel_oct.exact.sample_sets import SampleSet, SampleSets
from accel_oct.exact.side_tables import SideTables
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray
from accel_oct.tree import DecisionTree


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
