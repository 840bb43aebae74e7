"""The best tree known. Whether a tree may be taken is asked here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree


class Rule(Protocol):
    """What a tree must satisfy: a constraint, bound to the data (see `accel_oct.constraints`)."""

    @property
    def name(self) -> str:
        """How messages call the rule."""
        ...

    def violation(self, tree: DecisionTree) -> float:
        """By how much the tree breaks the rule; at most zero where it keeps it."""


def broken_rules(rules: Sequence[Rule], tree: DecisionTree) -> tuple[str, ...]:
    """Names of the rules that a tree breaks. What is not a number breaks a rule."""
    return tuple(rule.name for rule in rules if not rule.violation(tree) <= 0.0)


class Incumbent:
    """The best tree that was offered and keeps every rule, by its exact value.

    Warm starts, polished and relabelled trees, those of the tables and of the solver are offered here; none becomes the
    result in any other way.

    Attributes
    ----------
    tree : DecisionTree or None
        None until a tree that keeps every rule was offered.
    score, value : float
        Weight classified correctly, and that minus the price of the leaves; minus infinity without a tree.
    accepted : list of DecisionTree
        Every tree that was taken, the first one first.
    refused : int
        Trees that were better and broke a rule.
    """

    def __init__(self, dataset: BinaryDataset, leaf_price: float, rules: Sequence[Rule] = ()) -> None:
        self._dataset = dataset
        self._leaf_price = leaf_price
        self.rules = tuple(rules)
        self.tree: DecisionTree | None = None
        self.score = self.value = -math.inf
        self.accepted: list[DecisionTree] = []
        self.refused = 0

    def offer(self, tree: DecisionTree) -> bool:
        """Take the tree if it is strictly better and keeps every rule."""
        score = self._scored(tree)
        value = score - self._leaf_price * tree.n_leaves
        if value <= self.value:
            return False
        if broken_rules(self.rules, tree):
            self.refused += 1
            return False
        self.tree, self.score, self.value = tree, score, value
        self.accepted.append(tree)
        return True

    def _scored(self, tree: DecisionTree) -> float:
        return tree.score(self._dataset)
