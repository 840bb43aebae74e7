"""The problem with limits on the cells of a tally: whatever is asked of samples follows from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import TallySets
from accel_oct.data.column_sets import n_sets
from accel_oct.data.tally_sets import Path
from accel_oct.pricing.limited import Limit, Limited, PricedProblem
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellProblem(Limited):
    """Best trees under limits; a set of samples is the literals of a path.

    Attributes
    ----------
    trees : TalliedTrees
    sets : TallySets
    counts : float array (n_cells,)
        Of all samples, in units of the tally.
    gains : float array (n_cells, n_classes)
        What predicting each class scores, for a unit of the counts.
    uses : float array (n_limits, n_cells, n_classes)
        What it uses of each limit; every limit is scaled to a largest entry of one.
    masses : float array (n_cells,)
        What a unit counts by the local rules.
    leaf_uses, upper, leaf_price, max_depth, scales, rules
        As in `LimitedProblem`; `rules` in whole cells.
    """

    trees: TalliedTrees
    sets: TallySets
    counts: FloatArray
    gains: FloatArray
    uses: FloatArray
    masses: FloatArray
    leaf_uses: FloatArray
    upper: FloatArray
    leaf_price: float
    max_depth: int
    scales: FloatArray
    rules: LocalRules | None = None

    @classmethod
    def of(
        cls,
        trees: TalliedTrees,
        gains: FloatArray,
        limits: Sequence[Limit],
        leaf_price: float,
        max_depth: int,
        rules: LocalRules | None = None,
    ) -> CellProblem:
        """What limits and rules say of whole cells holds for every part of them in proportion; `gains` as above."""
        tally = trees.tally
        counts = tally.counts[0][:, 0].astype(np.float64)
        per_unit = np.divide(1.0, counts, out=np.zeros(counts.size), where=counts > 0)
        uses = np.zeros((len(limits), *gains.shape))
        leaf_uses = np.array([limit.leaves for limit in limits], dtype=np.float64)
        upper = np.array([limit.upper + limit.tolerance for limit in limits], dtype=np.float64)
        scales = np.ones(len(limits))
        for j, limit in enumerate(limits):
            if limit.predictions is not None:
                uses[j] = limit.predictions * per_unit[:, None]
            scale = max(float(np.abs(uses[j]).max(initial=0.0)), abs(float(leaf_uses[j])))
            if scale > 0:
                scales[j] = scale
                uses[j] /= scale
                leaf_uses[j] /= scale
                # Beyond what any tree can use, more makes no difference, and could not be told from infinity.
                most = float(counts @ np.abs(uses[j]).max(axis=1)) + 2**max_depth * abs(float(leaf_uses[j])) + 1.0
                with np.errstate(over="ignore"):
                    upper[j] = np.clip(upper[j] / scale, -most, most)
        masses = np.zeros(counts.size) if rules is None else np.broadcast_to(rules.masses[0], counts.shape) * per_unit
        return cls(
            trees=trees,
            sets=TallySets(tally),
            counts=counts,
            gains=gains,
            uses=uses,
            masses=masses,
            leaf_uses=leaf_uses,
            upper=upper,
            leaf_price=leaf_price,
            max_depth=max_depth,
            scales=scales,
            rules=rules,
        )

    @property
    def n_classes(self) -> int:
        return int(self.gains.shape[1])

    @property
    def total_weight(self) -> float:
        return float(self.counts @ self.gains.max(axis=1))

    @property
    def size(self) -> int:
        tally = self.trees.tally
        return min(tally.n_rows, n_sets(tally.n_features, self.max_depth))

    @cached_property
    def one_line(self) -> bool:
        opposite = self.n_limits == 2 and np.array_equal(self.uses[0], -self.uses[1])
        return bool(opposite and np.array_equal(self.leaf_uses[0], -self.leaf_uses[1]) and self.upper.sum() >= 0)

    @cached_property
    def rounding(self) -> FloatArray:
        largest = np.abs(self.uses).max(axis=2) @ self.counts + 2**self.max_depth * np.abs(self.leaf_uses)
        return np.asarray(1e-12 * np.maximum(1.0, largest + np.abs(self.upper)))

    def outcome(self, tree: DecisionTree) -> FloatArray:
        counts, labels = self.trees.counts(tree).astype(np.float64), tree.label[tree.leaves - 1]
        value = float((counts * self.gains[:, labels].T).sum()) - self.leaf_price * tree.n_leaves
        used = (counts * self.uses[:, :, labels].transpose(0, 2, 1)).sum(axis=(1, 2)) + self.leaf_uses * tree.n_leaves
        return np.concatenate([[value], used])

    def priced(self, prices: FloatArray) -> PricedProblem:
        """Not rounded: sums of cells are taken in floating point, and the error says how far they may be off."""
        rewards = self.gains - np.tensordot(prices, self.uses, axes=1)
        free = rewards.min(axis=1)
        noise = 1e-12 * self.total_weight + float(np.abs(prices) @ self.rounding)
        return PricedProblem(
            prices=prices,
            weights=rewards - free[:, None],
            leaf_price=self.leaf_price + float(prices @ self.leaf_uses),
            constant=float(self.counts @ free) + float(prices @ self.upper),
            error=noise,
        )

    # ---------------------------------------------------------------- sets of samples

    def everyone(self) -> Path:
        return ()

    def side(self, samples: Path, feature: int, side: bool) -> Path:
        return tuple(sorted({*samples, (feature, side)}))

    def key(self, samples: Path) -> bytes:
        return repr(samples).encode()

    def leaf_amounts(self, samples: Path) -> tuple[FloatArray, FloatArray]:
        counts = self.sets.totals(samples).astype(np.float64)
        return counts @ self.gains, counts @ self.uses

    def priced_leaves(self, priced: PricedProblem, samples: Path) -> FloatArray:
        return np.asarray(self.sets.totals(samples).astype(np.float64) @ priced.weights)

    @cached_property
    def columns(self) -> IntArray:
        """Columns that split the samples, one of each set of equal or complementary ones with the same rules."""
        total, single = int(self.sets.totals(()).sum()), self.sets.singles(()).sum(axis=0)
        usable = (single > 0) & (single < total)
        apart = None if self.rules is None else self.rules.apart
        if apart is not None:
            usable &= ~apart.diagonal()
        columns = np.flatnonzero(usable)
        if self.trees.tally.depth < 2:
            return columns
        both = self.sets.pairs(()).sum(axis=0)
        equal = (both == single) & (both == single[:, None])
        opposite = (both == 0) & (single + single[:, None] == total)
        found: list[int] = []
        for column in columns.tolist():
            alike = [other for other in found if equal[column, other] or opposite[column, other]]
            if not any(apart is None or np.array_equal(apart[column], apart[other]) for other in alike):
                found.append(column)
        return np.array(found, dtype=np.int64)
