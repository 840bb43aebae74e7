"""Near-optimal trees of a tally, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct import native
from accel_oct.data import TallySets
from accel_oct.data.tally import Path
from accel_oct.exact.coded import Coded, Columns, Scale, common_exponent, scaled
from accel_oct.exact.limited import PricedProblem
from accel_oct.exact.limited_cells import CellProblem
from accel_oct.exact.sample_sets import PathSets
from accel_oct.exact.side_tables import SideTables
from accel_oct.support.arrays import IntArray
from accel_oct.tree.tallied import TalliedTrees


@dataclass(frozen=True, eq=False)
class TallyCounting(PathSets, Coded):
    """Counts of a tally, and the price of a leaf, in coded units; made by `of`. A set of samples is a path.

    Attributes
    ----------
    trees : TalliedTrees
    sets : TallySets
    shift : int
        A count is two to this power, in units.
    """

    trees: TalliedTrees
    sets: TallySets
    shift: int

    @classmethod
    def of(
        cls, trees: TalliedTrees, leaf_price: float, max_depth: int, slack: float, any_label: bool = True
    ) -> TallyCounting:
        """For the weight that is classified correctly.

        Raises
        ------
        InvalidInputError
            When the numbers are so far apart in size that values cannot be told apart in 64 bits.
        """
        tally = trees.tally
        exponent = min(tally.unit, common_exponent(np.array([leaf_price])) if leaf_price else tally.unit)
        total, price = tally.total << (tally.unit - exponent), scaled(leaf_price, exponent)
        allowed = None if slack == math.inf else scaled(slack, exponent)
        depth = min(max_depth, tally.n_features)
        scale = Scale.of(total, price, allowed, max_depth, depth, 2**depth)
        return cls(
            trees=trees,
            sets=TallySets(tally),
            shift=tally.unit - exponent,
            unit=math.ldexp(1.0, exponent),
            any_label=any_label,
            **scale._asdict(),
        )

    def totals(self, samples: Path) -> IntArray:
        return self._gains(self.sets.totals(samples))

    def most(self, samples: Path) -> int:
        return int(self.totals(samples).sum())

    def ones(self, samples: Path, features: IntArray) -> IntArray:
        return self._gains(self.sets.singles(samples)[:, features])

    def set_gains(self, samples: Path, features: IntArray) -> native.SetGains:
        both = self._gains(self.sets.pairs(samples)[:, features[:, None], features])
        return native.SetGains.of_pairs(self.totals(samples), both)

    def columns(self, samples: Path) -> Columns:
        """Columns that agree are known together while pairs are: at the last level each stands for itself."""
        total, single = int(self.sets.totals(samples).sum()), self.sets.singles(samples).sum(axis=0)
        features = np.flatnonzero((single > 0) & (single < total))
        column, first = np.arange(features.size), np.arange(features.size)
        flipped = np.zeros(features.size, dtype=bool)
        if len(samples) + 2 <= self.sets.tally.depth and features.size:
            own = single[features]
            both = self.sets.pairs(samples).sum(axis=0)[features[:, None], features]
            equal = (both == own) & (both == own[:, None])
            opposite = (both == 0) & (own + own[:, None] == total)
            alike = (equal | opposite).argmax(axis=1)  # the first of those that are alike, which has no earlier one
            first, column = np.unique(alike, return_inverse=True)
            flipped = opposite[np.arange(features.size), alike]
        return Columns(
            feature=features[first],
            multiplicity=np.bincount(column, minlength=first.size).astype(np.int64),
            features=features,
            column=column.astype(np.int64),
            flipped=flipped,
        )

    def side_tables(
        self, samples: Path, height: int, should_stop: Callable[[], bool], threads: int, memory_limit: int
    ) -> SideTables | None:
        """Of all samples only."""
        if height != self.max_depth or samples:
            return None
        tally = self.trees.tally
        weights = np.zeros((tally.n_cells, tally.n_classes))
        weights[np.arange(tally.n_cells), np.arange(tally.n_cells) // tally.n_groups] = math.ldexp(1.0, self.shift)
        price = self.price / 2**self.bits
        problem = CellProblem.of(self.trees, weights, [], price, self.max_depth)
        return problem.side_tables(PricedProblem(np.empty(0), weights, price, 0.0, 0.0), None, should_stop)

    def _gains(self, counts: IntArray) -> IntArray:
        """From counts by cell (n_cells, ...) to gains by class."""
        tally = self.sets.tally
        by_class = counts.reshape(tally.n_classes, tally.n_groups, *counts.shape[1:]).sum(axis=1)
        return np.ascontiguousarray(by_class << (self.shift + self.bits))
