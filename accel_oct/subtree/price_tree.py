"""The best tree for one leaf price, as the rest of the library asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accel_oct.errors import NoTreeError
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.subtree.price_roots import Outcome, SearchCounts
from accel_oct.subtree.price_search import PriceSearch
from accel_oct.subtree.reduction import reduce_data
from accel_oct.subtree.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree


@dataclass
class BestTree:
    """Result of `best_tree`.

    Attributes
    ----------
    value, bound : float
        Score minus leaf price per leaf of the tree, and the proven upper bound; equal when `exact`.
    found : DecisionTree or None
        In arrays for the depth limit; None where local rules allow no tree: value and bound are minus infinity then.
    exact : bool
    seconds : float
    counts : SearchCounts
        How many sets were looked at on which level.
    """

    value: float
    bound: float
    found: DecisionTree | None
    seconds: float
    counts: SearchCounts = field(default_factory=SearchCounts)

    @property
    def tree(self) -> DecisionTree:
        """The tree that was found.

        Raises
        ------
        NoTreeError
            Where local rules allow none.
        """
        if self.found is None:
            raise NoTreeError("there is no tree: the rules allow none, not even a single leaf")
        return self.found

    @property
    def exact(self) -> bool:
        """Whether the tree is proven optimal."""
        return self.bound <= self.value


def best_tree(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    n_classes: int,
    max_depth: int,
    leaf_price: float,
    *,
    rules: LocalRules | None = None,
    incumbent: DecisionTree | None = None,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    on_improvement: Callable[[float, float, float], None] | None = None,
    known_value: Callable[[], float] | None = None,
    counts: SearchCounts | None = None,
) -> BestTree:
    """Tree of depth at most `max_depth` with the largest score minus `leaf_price` per leaf.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    leaf_price : float
        Price of a leaf in the units of the weights, on the same grid.
    rules : LocalRules, optional
        What leaves and paths must satisfy.
    incumbent : DecisionTree, optional
        A known tree that keeps the rules; the result is at least as good.
    deadline, should_stop
        When to stop early: a reading of `time.monotonic`, a function asked now and then.
    on_improvement : callable, optional
        Called with (seconds, value, bound) whenever either improves.
    known_value : callable, optional
        The value of the best tree that the caller knows by now, asked now and then. Trees that are not better are not
        looked for, so the result may be worse than that and its bound may be equal to it.
    counts : SearchCounts, optional
        Filled while the search goes on, for whoever watches.
    """
    start = time.monotonic()
    features = np.asarray(X, dtype=bool)
    classes, sample_weights = np.asarray(y, np.int64), np.asarray(weights, np.float64)

    def value_of(tree: DecisionTree) -> float:
        score = float(sample_weights[tree.predictions(features) == classes].sum())
        return score - leaf_price * tree.n_leaves

    data = reduce_data(features, classes, sample_weights, int(n_classes), rules).without_light_columns(leaf_price)
    search = PriceSearch(leaf_price, data.signed, Stopper(deadline, should_stop), threads, memory_limit, counts)
    units, weight = search.units, data.total_weight
    if known_value is not None:
        search.known_value = lambda: float(units.from_score(known_value(), weight))
    known = -np.inf if incumbent is None else value_of(incumbent)
    if on_improvement is not None:
        search.report = _reporter(on_improvement, start, lambda number: units.to_score(number, weight), known)
    outcome = search.search(data, max_depth, float(units.from_score(known, weight)), top=True)
    if not data.allows_a_leaf:
        return BestTree(-np.inf, -np.inf, None, time.monotonic() - start, search.counts)
    tree = outcome.tree().with_max_depth(max_depth)
    value = value_of(tree)
    if incumbent is not None and known > value:
        tree, value = incumbent.with_max_depth(max_depth), known
    bound = max(value, float(units.to_score(outcome.upper, weight)))
    if on_improvement is not None:
        on_improvement(time.monotonic() - start, value, bound)
    return BestTree(value, bound, tree, time.monotonic() - start, search.counts)


def _reporter(
    on_improvement: Callable[[float, float, float], None], start: float, convert: Callable[[float], Any], known: float
) -> Callable[[Outcome], None]:
    """Pass on only what improves; the bound never rises and the value never falls."""
    last = [known, np.inf]

    def report(outcome: Outcome) -> None:
        value = max(last[0], float(convert(outcome.value)))
        bound = min(last[1], max(value, float(convert(outcome.upper))))
        if value > last[0] or bound < last[1]:
            last[:] = value, bound
            on_improvement(time.monotonic() - start, value, bound)

    return report
