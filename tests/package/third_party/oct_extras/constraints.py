"""No feature is used more often than a given number of times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class BalancedUse:
    """Every feature f is branched on at most `times` times: sum of b[n, f] over the nodes n <= times."""

    times: int

    @property
    def name(self) -> str:
        return f"no feature more than {self.times} times"

    def bind(self, dataset: BinaryDataset) -> BalancedUse:
        return self

    def violation(self, tree: DecisionTree) -> float:
        used = tree.feature[tree.feature >= 0]
        return float(np.bincount(used, minlength=1).max() - self.times)

    def add_to(self, master: Master) -> None:
        b = master.b.index
        feature = np.tile(np.arange(b.shape[1]), len(b))
        rows = Rows.from_entries(feature, b.ravel(), 1.0, n_rows=b.shape[1], upper=float(self.times))
        master.model.add_rows(rows, self.name)
