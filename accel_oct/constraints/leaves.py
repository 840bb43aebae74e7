"""Limits on the number of leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accel_oct.constraints.linear import LinearLimit
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class MaxLeaves:
    """At most `n` leaves: ``sum of p[n] over all nodes <= n``.

    Parameters
    ----------
    n : int
        At least one.
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer) or self.n < 1:
            raise InvalidInputError(f"MaxLeaves: n must be a whole number of at least 1, got {shown(self.n)}")

    @property
    def name(self) -> str:
        return f"at most {self.n} leaves" if self.n > 1 else "a single leaf"

    def bind(self, dataset: BinaryDataset) -> MaxLeaves:
        return self

    @property
    def limits(self) -> tuple[LinearLimit, ...]:
        return (LinearLimit(self.name, None, float(self.n), leaves=1.0),)

    @property
    def allowed(self) -> tuple[None, float]:
        return None, float(self.n)

    def value(self, tree: DecisionTree) -> float:
        """The number of leaves."""
        return float(tree.n_leaves)

    def violation(self, tree: DecisionTree) -> float:
        return float(tree.n_leaves - self.n)

    def add_to(self, master: Master) -> None:
        master.model.add_rows(Rows.single(master.p.index, 1.0, upper=float(self.n)), self.name)
