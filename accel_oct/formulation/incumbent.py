"""The best known tree; the only place where feasibility of a tree is decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from accel_oct.data import BinaryDataset
from accel_oct.support.arrays import BoolArray
from accel_oct.tree import DecisionTree


class Rule(Protocol):
    """A constraint bound to the data (see `accel_oct.constraints`)."""

    @property
    def name(self) -> str:
        """Name in messages."""
        ...

    def violation(self, tree: DecisionTree) -> float:
        """Return the violation of a tree; at most zero if the tree satisfies the constraint."""


def broken_rules(rules: Sequence[Rule], tree: DecisionTree) -> tuple[str, ...]:
    """Return the names of the constraints that a tree violates; a violation of NaN counts."""
    return tuple(rule.name for rule in rules if not rule.violation(tree) <= 0.0)


class Incumbent:
    """The best offered tree, by exact value, that satisfies every constraint.

    Warm starts, polished and relabelled trees, and trees of the tables and of the solver are offered here; no tree
    becomes the result in another way.

    Parameters
    ----------
    counted : callable (DecisionTree) -> bool array, optional
        Which rows count, if not all that are predicted right; see `accel_oct.objectives.StrictScore`.

    Attributes
    ----------
    tree : DecisionTree or None
        None until a feasible tree was offered.
    score, value : float
        Weight classified correctly, and that minus the price of the leaves; minus infinity without a tree.
    accepted : list of DecisionTree
        All accepted trees, in order.
    refused : int
        Number of better trees that violated a constraint.
    """

    def __init__(
        self,
        dataset: BinaryDataset,
        leaf_price: float,
        rules: Sequence[Rule] = (),
        counted: Callable[[DecisionTree], BoolArray] | None = None,
    ) -> None:
        self._dataset = dataset
        self._leaf_price = leaf_price
        self.rules = tuple(rules)
        self._counted = counted
        self.tree: DecisionTree | None = None
        self.score = self.value = -math.inf
        self.accepted: list[DecisionTree] = []
        self.refused = 0

    def offer(self, tree: DecisionTree) -> bool:
        """Accept the tree if it is strictly better and satisfies every constraint."""
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

    @property
    def depends_on_labels(self) -> bool:
        """Whether a tree may be better than the same branches with majority labels."""
        return bool(self.rules) or self._counted is not None

    def _scored(self, tree: DecisionTree) -> float:
        if self._counted is None:
            return tree.score(self._dataset)
        return float(self._dataset.weights[self._counted(tree)].sum())
