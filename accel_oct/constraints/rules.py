"""Constraints that are Python functions of a tree, or of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints.base import BoundConstraint, Constraint, TreePart
from accel_oct.constraints.traits import Traits
from accel_oct.data import BinaryDataset
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.reads import READS
from accel_oct.errors import InvalidInputError, shown
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class TreeRule(Constraint):
    """A Python function decides which trees are allowed.

    The trees of the problem without the rule are enumerated best first, and the function is called for each until one
    is allowed: that tree is optimal. Only *proper* trees are allowed: every split separates samples of positive weight,
    and two sibling leaves have different classes. So a rule is never satisfied by splits without a purpose.

    Parameters
    ----------
    allows : callable (tree, dataset) -> bool
        Receives a `DecisionTree` and the `BinaryDataset` with its features, names and sources. The result must depend
        on these alone.
    name : str
        For messages and reports; by default the name of the function.
    refuses : callable (subtree, dataset) -> bool, optional
        Returns True only if no allowed tree contains the subtree, at whatever node; a `DecisionTree` with at least one
        split. It makes the search faster, because all trees with the subtree are left out.
    reads : set of str
        Inputs of the functions, as in `Traits`; the empty set if they read the shape and the features of the tree
        alone. A tally supports rules that read no more than classes, weights, groups and features.

    Examples
    --------
    >>> same = TreeRule(lambda tree, data: tree.feature[1] == tree.feature[2], "same feature in both children")
    """

    allows: Callable[[DecisionTree, BinaryDataset], bool]
    name: str = ""
    refuses: Callable[[DecisionTree, BinaryDataset], bool] | None = None
    reads: Set[str] = READS

    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        _check_callable(self.allows, "TreeRule: allows")
        if self.refuses is not None:
            _check_callable(self.refuses, "TreeRule: refuses")
        return _BoundTreeRule(self, dataset, _name(self.name, self.allows, "TreeRule"))


@dataclass(frozen=True, eq=False)
class _BoundTreeRule(BoundConstraint):
    rule: TreeRule
    dataset: BinaryDataset
    name: str

    @cached_property
    def traits(self) -> Traits:
        refuses = {"subtrees"} if self.rule.refuses is not None else set()
        reads = frozenset({*self.rule.reads, "weight"})  # a tree is proper on samples of positive weight
        return Traits(superfluous_splits="forbidden", refuses=refuses, reads=reads)

    @cached_property
    def _present(self) -> Any:
        return rows_of_weight(self.dataset)

    def violation(self, tree: DecisionTree) -> float:
        allowed = _verdict(self.rule.allows(tree, self.dataset), self.name)
        return 0.0 if allowed and tree.is_proper(self._present) else 1.0

    def refuses(self, part: TreePart) -> bool:
        assert self.rule.refuses is not None and part.tree is not None
        return _verdict(self.rule.refuses(part.tree, self.dataset), self.name)


@dataclass(frozen=True)
class PredictionRule(Constraint):
    """A Python function of the predicted classes decides which trees are allowed.

    Trees with equal predictions are evaluated once. See `TreeRule` for the search.

    Parameters
    ----------
    allows : callable (predicted, dataset) -> bool
        Receives the predicted class of every row, in the labels of the user, and the `BinaryDataset`, with the true
        classes ``dataset.classes[dataset.y]`` and the columns ``dataset.values_named(name)``.
    name : str
        For messages and reports; by default the name of the function.
    """

    allows: Callable[[Any, BinaryDataset], bool]
    name: str = ""

    def bind(self, dataset: BinaryDataset) -> BoundConstraint:
        _check_callable(self.allows, "PredictionRule: allows")
        return _BoundPredictionRule(self, dataset, _name(self.name, self.allows, "PredictionRule"))


@dataclass(frozen=True, eq=False)
class _BoundPredictionRule(BoundConstraint):
    rule: PredictionRule
    dataset: BinaryDataset
    name: str
    traits = Traits(by_predictions=True)

    def violation(self, tree: DecisionTree) -> float:
        predicted = self.dataset.classes[tree.predictions(self.dataset.X)]
        return 0.0 if _verdict(self.rule.allows(predicted, self.dataset), self.name) else 1.0


def rows_of_weight(dataset: BinaryDataset) -> BoolMatrix:
    """Return the features of the samples of positive weight."""
    return dataset.X if np.all(dataset.weights > 0) else dataset.X[dataset.weights > 0]


def _check_callable(value: Any, where: str) -> None:
    if not callable(value) or isinstance(value, type):
        raise InvalidInputError(f"{where} must be a function, got {shown(value)}")


def _name(given: Any, function: Any, kind: str) -> str:
    if not isinstance(given, str):
        raise InvalidInputError(f"{kind}: name must be a text, got {shown(given)}")
    return given or getattr(function, "__name__", kind)


def _verdict(value: Any, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"constraints: the function of `{name}` must return True or False, got {shown(value)}")
    return bool(value)
