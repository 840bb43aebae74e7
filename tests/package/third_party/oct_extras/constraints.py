"""Constraints that the library does not have: by rows alone, and in each of the forms that `Traits` knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints import BoundConstraint, Constraint, FeatureBudget, LinearLimit, Traits, TreePart
from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class BalancedUse(Constraint, BoundConstraint):
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


@dataclass(frozen=True)
class BalancedParts(BalancedUse):
    """The same rule, which refuses subtrees: no tree that contains one with a feature too often is allowed."""

    traits = Traits(superfluous_splits="removable", refuses={"subtrees"}, reads=set())

    def bind(self, dataset: BinaryDataset) -> BalancedParts:
        return self

    def refuses(self, part: TreePart) -> bool:
        return part.tree is not None and self.violation(part.tree) > 0


@dataclass(frozen=True)
class FewFeatures(Constraint):
    """At most `n` distinct features in the whole tree."""

    n: int

    def bind(self, dataset: BinaryDataset) -> BoundFewFeatures:
        return BoundFewFeatures(self.n, dataset.n_features)


@dataclass(frozen=True)
class BoundFewFeatures(BoundConstraint):
    """A rule about the set of features."""

    n: int
    n_features: int
    name = "few features"

    def violation(self, tree: DecisionTree) -> float:
        return float(len(tree.features_used) - self.n)

    @cached_property
    def traits(self) -> Traits:
        budget = FeatureBudget(group=np.arange(self.n_features), price=np.ones(self.n_features), at_most=self.n)
        return Traits(features=budget, reads=set())


@dataclass(frozen=True)
class ClassSupport(Constraint):
    """Every leaf receives at least this weight of a class."""

    positive: Any
    at_least: float

    def bind(self, dataset: BinaryDataset) -> BoundSupport:
        own = dataset.y == dataset.classes.tolist().index(self.positive)
        return BoundSupport(dataset, dataset.weights * own, float(self.at_least))


@dataclass(frozen=True, eq=False)
class BoundSupport(BoundConstraint):
    """A rule about single leaves."""

    dataset: BinaryDataset
    masses: Any
    at_least: float
    name = "support of a class in every leaf"

    def violation(self, tree: DecisionTree) -> float:
        leaf = tree.apply(self.dataset.X)
        return self.at_least - min(float(self.masses[leaf == node].sum()) for node in tree.leaves.tolist())

    @cached_property
    def traits(self) -> Traits:
        return Traits(local=LocalRules.leaves(self.masses, self.at_least), reads={"class", "weight"})


@dataclass(frozen=True)
class FalseAlarms(Constraint):
    """At most this weight of the other classes is predicted to be `positive`."""

    positive: Any
    at_most: float

    def bind(self, dataset: BinaryDataset) -> BoundAlarms:
        return BoundAlarms(dataset, dataset.classes.tolist().index(self.positive), float(self.at_most))


@dataclass(frozen=True, eq=False)
class BoundAlarms(BoundConstraint):
    """A linear limit on predictions."""

    dataset: BinaryDataset
    positive: int
    at_most: float
    name = "false alarms"

    def value(self, tree: DecisionTree) -> float:
        alarms = (tree.predictions(self.dataset.X) == self.positive) & (self.dataset.y != self.positive)
        return float(self.dataset.weights[alarms].sum())

    @property
    def allowed(self) -> tuple[None, float]:
        return None, self.at_most

    def violation(self, tree: DecisionTree) -> float:
        return self.value(tree) - self.at_most

    @cached_property
    def traits(self) -> Traits:
        uses = np.zeros((self.dataset.n_samples, self.dataset.n_classes))
        uses[:, self.positive] = self.dataset.weights * (self.dataset.y != self.positive)
        return Traits(limits=[LinearLimit(self.name, uses, self.at_most)], reads={"class", "weight"})
