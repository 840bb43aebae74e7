"""The best tree on some of the columns: what a node of the search over feature sets asks.

Plain tables answer where nothing else is asked of a tree, tables of all numbers of leaves where these are limited, and
prices where predictions are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.exact import LocalRules, frontier_table
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.price_search import PriceSearch
from accel_oct.exact.samples import reduce_data
from accel_oct.exact.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.formulation import Incumbent
from accel_oct.formulation.incumbent import Rule
from accel_oct.pricing import PricedSearch
from accel_oct.solving.proof import BoundRounding
from accel_oct.tree import DecisionTree

IntArray = NDArray[np.int64]
Offer = Callable[[DecisionTree], float]

_FEW_SETS = 1000
"""Sets of samples that are enumerated for a node that can still be branched on."""


class NodeSolver(Protocol):
    """Best trees that branch on some columns only, and obey whatever is no rule about features."""

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        """A bound on all these trees, and one of them to branch on.

        Parameters
        ----------
        columns : int array
            At least one.
        known : float
            What a tree has to be better than to be of interest.
        offer : callable
            Told of every tree that may be the best of all; returns the value of the best one known.
        final : bool
            Whether the node cannot be branched on, so that more work is worth its while.

        Returns
        -------
        The bound, and the best tree if it is better than what is known; where the solver could not find the best, some
        tree or None.
        """


@dataclass
class TableNodes:
    """Nothing is asked but few leaves: by the tables.

    Parameters
    ----------
    max_leaves : int or None
    rules : LocalRules or None
        About leaves and paths.
    """

    dataset: BinaryDataset
    max_depth: int
    leaf_price: float
    stopper: Stopper = field(default_factory=Stopper)
    threads: int = 1
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    max_leaves: int | None = None
    rules: LocalRules | None = None

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        data = self.dataset
        X = np.take(data.X, columns, axis=1)
        rules = None if self.rules is None else self.rules.of_columns(columns)
        reduced = reduce_data(X, data.y, data.weights, data.n_classes, rules)
        search = PriceSearch(self.leaf_price, reduced.signed, self.stopper, self.threads, self.memory_limit)
        units, weight = search.units, reduced.total_weight
        outcome = search.search(reduced, self.max_depth, float(units.from_score(known, weight)))
        upper = float(units.to_score(outcome.upper, weight))
        if units.to_score(outcome.value, weight) <= known:
            return upper, None
        tree = outcome.tree()
        if self.max_leaves is not None and tree.n_leaves > self.max_leaves:
            if upper <= known or self.stopper():
                return upper, None
            limited, tree = self._with_few_leaves(X, rules)
            upper = min(upper, limited)
        tree = on_columns(tree.with_max_depth(self.max_depth), columns)
        offer(tree)
        return upper, tree

    def _with_few_leaves(self, X: NDArray[np.bool_], rules: LocalRules | None) -> tuple[float, DecisionTree]:
        data = self.dataset
        table = frontier_table(
            X,
            data.y,
            data.weights,
            data.n_classes,
            self.max_depth,
            rules=rules,
            threads=self.threads,
            memory_limit=self.memory_limit,
            should_stop=self.stopper,
        )
        _, bound, leaves = table.best(self.leaf_price, self.max_leaves)
        return bound, table.tree(leaves)


@dataclass
class PricedNodes:
    """Limits on predictions and leaves: by prices, and by every tree that they leave open.

    Parameters
    ----------
    problem : LimitedProblem
        Of all columns.
    rules : sequence of Rule
        The constraints that the limits stand for, which decide in the end.
    rounding : BoundRounding
    """

    dataset: BinaryDataset
    problem: LimitedProblem
    rules: Sequence[Rule]
    rounding: BoundRounding
    stopper: Stopper = field(default_factory=Stopper)
    threads: int = 1
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    def best(self, columns: IntArray, known: float, offer: Offer, *, final: bool) -> tuple[float, DecisionTree | None]:
        problem = self.problem.restricted(columns)
        depth = problem.max_depth
        own = Incumbent(self.dataset, problem.leaf_price, self.rules)
        last: list[DecisionTree] = []
        upper = np.inf

        def try_(small: DecisionTree) -> float:
            tree = on_columns(small.with_max_depth(depth), columns)
            last[:] = [tree]
            if own.offer(tree):
                offer(tree)
            return max(own.value, known)

        def tighten(bound: float) -> bool:
            nonlocal upper
            valid = self.rounding.valid(bound) if np.isfinite(bound) else bound
            upper = min(upper, bound, valid)
            return upper <= max(own.value, known)

        prices = PricedSearch(
            problem,
            try_,
            tighten,
            self.rounding.next_above,
            self.stopper,
            few_sets=_FEW_SETS,
            root_by_root=final,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        prices.price(max(own.value, known))
        tree = last[0] if last else None
        prices.close()
        if own.tree is not None and own.value > known and (own.value >= upper or tree is None):
            tree = own.tree
        return upper, tree


def on_columns(tree: DecisionTree, columns: IntArray) -> DecisionTree:
    """A tree on some columns as one on all of them."""
    return DecisionTree(np.where(tree.feature >= 0, columns[tree.feature], -1), tree.label)
