"""Rules about trees without a form: functions as a user would write them, and as constraints of three kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    FirstSplit,
    InteractionGroups,
    PredictionRule,
    SplitOrder,
    Traits,
    TreePart,
    TreeRule,
)
from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree


def same_feature(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Both children of the root branch on the same feature, or the root is a leaf."""
    features = tree.feature
    return bool(features[0] < 0 or (len(features) > 1 and features[1] == features[2]))


def lighter_left(tree: DecisionTree, data: BinaryDataset) -> bool:
    """The zero side has no more leaves than the one side."""
    return bool(tree.feature[0] < 0 or tree.subtree(2).n_leaves <= tree.subtree(3).n_leaves)


def no_feature_twice(tree: DecisionTree, data: BinaryDataset) -> bool:
    used = tree.feature[tree.feature >= 0].tolist()
    return len(set(used)) == len(used)


def last_class_reads_first_feature(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Every leaf of the last class has feature 0 on its path."""
    leaves = tree.leaves[tree.label[tree.leaves - 1] == data.n_classes - 1].tolist()
    return all(0 in [feature for feature, _ in tree.path(leaf)] for leaf in leaves)


def root_is_not_first(tree: DecisionTree, data: BinaryDataset) -> bool:
    """The root branches on no feature below 1; a leaf is allowed."""
    return bool(tree.feature[0] != 0)


def even_number_of_leaves(tree: DecisionTree, data: BinaryDataset) -> bool:
    return tree.n_leaves % 2 == 0


def features_increase_downwards(tree: DecisionTree, data: BinaryDataset) -> bool:
    paths = [[feature for feature, _ in tree.path(leaf)] for leaf in tree.leaves.tolist()]
    return all(path == sorted(path) for path in paths)


def monotone_in_first(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Changing feature 0 of any point from 0 to 1 does not lower the class, over all points of the space."""
    n = data.n_features
    points = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    low, high = points.copy(), points.copy()
    low[:, 0], high[:, 0] = False, True
    return bool(np.all(tree.predictions(low) <= tree.predictions(high)))


def agrees_on_first_rows(tree: DecisionTree, data: BinaryDataset) -> bool:
    """The first two rows are classified correctly."""
    return bool(np.all(tree.predictions(data.X[:2]) == data.y[:2]))


def few_ones_per_half(predicted: Any, data: BinaryDataset) -> bool:
    """At most two thirds of each half of the rows are predicted the last class."""
    last = predicted == data.classes[-1]
    half = len(last) // 2
    return bool(last[:half].mean() <= 2 / 3 if half else True) and bool(last[half:].mean() <= 2 / 3)


TREE_RULES: tuple[Callable[[DecisionTree, BinaryDataset], bool], ...] = (
    same_feature,
    lighter_left,
    no_feature_twice,
    last_class_reads_first_feature,
    root_is_not_first,
    even_number_of_leaves,
    features_increase_downwards,
    monotone_in_first,
    agrees_on_first_rows,
)

#: Rules that hold for a subtree wherever it stands in an allowed tree.
HEREDITARY = (no_feature_twice, features_increase_downwards)


@dataclass(frozen=True)
class Undeclared(Constraint, BoundConstraint):
    """A rule of a third party that declares nothing: superfluous splits may matter."""

    function: Callable[[DecisionTree, BinaryDataset], bool]
    dataset: BinaryDataset | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.function.__name__

    def bind(self, dataset: BinaryDataset) -> Undeclared:
        return Undeclared(self.function, dataset)

    def violation(self, tree: DecisionTree) -> float:
        assert self.dataset is not None
        return 0.0 if self.function(tree, self.dataset) else 1.0


@dataclass(frozen=True)
class Refusing(Undeclared):
    """A hereditary rule that refuses subtrees, and paths on which features do not increase."""

    def bind(self, dataset: BinaryDataset) -> Refusing:
        return Refusing(self.function, dataset)

    @property
    def traits(self) -> Traits:
        increasing = self.function is features_increase_downwards
        return Traits(superfluous_splits="removable", refuses={"paths"} if increasing else {"subtrees"})

    def refuses(self, part: TreePart) -> bool:
        assert self.dataset is not None
        if part.tree is not None:
            return not self.function(part.tree, self.dataset)
        assert part.path is not None
        features = [feature for feature, _ in part.path]
        return features != sorted(features)


def as_constraint(rng: np.random.Generator, rule: Callable[[DecisionTree, BinaryDataset], bool]) -> Constraint:
    """The rule as one of the kinds of constraints that can state it."""
    kinds = [lambda: TreeRule(rule), lambda: Undeclared(rule)]
    if rule in HEREDITARY:
        kinds += [lambda: TreeRule(rule, refuses=lambda tree, data: not rule(tree, data)), lambda: Refusing(rule)]
    return kinds[int(rng.integers(len(kinds)))]()


def path_rule(rng: np.random.Generator, n_features: int) -> Constraint:
    """A rule about paths: groups of columns, the first split or an order of splits."""
    some = np.flatnonzero(rng.random(n_features) < 0.5).tolist()
    others = sorted(set(range(n_features)) - set(some))
    pairs = [[f, (f + 1) % n_features] for f in range(n_features)]
    kinds: list[Callable[[], Constraint]] = [
        *(lambda: FirstSplit(some or [0]), lambda: SplitOrder(some, others), lambda: InteractionGroups([some])),
        *(lambda: InteractionGroups(pairs), lambda: InteractionGroups("pairwise")),
        lambda: InteractionGroups("no_interactions"),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def prediction_rule() -> Constraint:
    return PredictionRule(few_ones_per_half)
