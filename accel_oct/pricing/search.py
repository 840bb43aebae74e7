"""The search by prices: common prices, repaired trees, enumeration, then prices root by root; and bounds by root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from accel_oct.exact.limited import Limited, PricedProblem
from accel_oct.exact.limited_points import LimitedProblem, split_keys
from accel_oct.pricing.closing import Closing, RootByRoot
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.repair import Repair
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree

_MOST_ROOTS = 8
"""Most open roots whose prices are kept, with tables and again without."""

_LAST_TREES = 2
"""Number of trees, of the last prices, that are repaired first; all of them where that gives no proof."""


@dataclass
class PricedSearch:
    """The best tree that satisfies the limits, with a bound on all of them at any time.

    Parameters
    ----------
    offer : callable (DecisionTree) -> float
        Takes trees that may satisfy the limits; returns the value of the best tree known, minus infinity without one.
    tighten : callable (float) -> bool
        Takes every bound; returns whether it is enough.
    goal : callable (float) -> float
        From the value of the best tree known to the smallest value that a better one can have.
    few_sets : int
        Most sets of samples at common prices before every root gets its own.
    root_by_root : bool
        Whether roots get prices of their own.

    Attributes
    ----------
    dual : Dual
        Common prices.
    evaluations, outcomes : int
        Numbers of multipliers tried and of pairs of outcomes combined.
    slack : float
        The slack below the bound of common prices within which all trees were enumerated.
    """

    problem: Limited
    offer: Callable[[DecisionTree], float]
    tighten: Callable[[float], bool]
    goal: Callable[[float], float]
    should_stop: Callable[[], bool]
    few_sets: int = 200
    root_by_root: bool = True
    threads: int = 1
    memory_limit: int = 1 << 30
    evaluations: int = 0
    outcomes: int = 0
    slack: float = 0.0
    _done: bool = field(default=False, init=False)
    _root_bounds: dict[int, float] = field(default_factory=dict, init=False)
    _roots: RootByRoot | None = field(default=None, init=False)
    _closing: Closing | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.dual = Dual(
            self.problem,
            self._offer,
            should_stop=self.should_stop,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )

    def price(self, value: float) -> None:
        """Find the best common prices; `value` is that of the best tree known."""
        self._value = value
        self.dual.run(lambda: self.goal(self._value))
        self.evaluations = self.dual.evaluations
        self._tighten(-np.inf if self.dual.is_infeasible else self.dual.bound)

    def close(self) -> None:
        """Enumerate the trees that prices leave open."""
        dual = self.dual
        if self._done or dual.is_infeasible or dual.best is None or self.should_stop():
            return
        deep = self.problem.max_depth > 1
        repair = Repair(self.problem, dual.best, self._offer, self.should_stop, self.memory_limit)
        repair.run(dual.trees[-_LAST_TREES:])
        closing = Closing(
            self.problem,
            dual.best,
            dual.bound,
            self._offer,
            self.should_stop,
            goal=self.goal,
            most_sets=self.few_sets if deep else 1 << 40,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        if not closing.possible:
            return
        self._closing = closing
        self._root_bounds = closing.root_bounds()
        closing.run(self._value, self._tighten)
        self.outcomes, self.slack = closing.n_outcomes, closing.slack
        if self._done or not deep or not self.root_by_root or self.should_stop():
            return
        repair.run(dual.trees)
        roots = RootByRoot(
            self.problem,
            dual.best,
            self._root_bounds,
            self._offer,
            self.goal,
            self.should_stop,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )
        self._roots = roots
        roots.run(self._value, self._tighten)
        self.evaluations += roots.evaluations
        self.outcomes += roots.outcomes

    @property
    def doing(self) -> str:
        """The current step."""
        if self._roots is not None:
            return "root by root"
        return "common prices" if self._closing is None else "trees that prices leave open"

    @property
    def figures(self) -> dict[str, int | float | tuple[int, int]]:
        """Counters, to be read at any time. The slack is in units of weight."""
        roots, closing = self._roots, self._closing
        figures: dict[str, int | float | tuple[int, int]] = {
            "prices": self.dual.evaluations + (0 if roots is None else roots.evaluations)
        }
        if roots is not None:
            figures["roots open"] = roots.open_roots
        if closing is not None:
            figures["outcomes"] = closing.n_outcomes + (0 if roots is None else roots.outcomes)
            figures["slack"] = closing.slack
        return figures

    def root_bounds(self) -> RootBounds:
        """Return the bounds on trees by their root, with the prices that prove them."""
        assert isinstance(self.problem, LimitedProblem)
        dual = self.dual
        common = [(priced, bound, self._root_bounds if priced is dual.best else {}) for priced, bound in dual.recent]
        if dual.best is not None:
            common = [entry for entry in common if entry[0] is not dual.best]
            common.insert(0, (dual.best, dual.bound, self._root_bounds))
        roots = self._roots
        if roots is None:
            return RootBounds.of(self.problem, common, [], {})
        tables = list(roots.tables.values())[:_MOST_ROOTS]
        known = {id(priced) for priced, _, _ in tables}
        still_open = sorted(
            (f for f, (priced, _) in roots.own.items() if roots.bounds[f] >= self.goal(self._value)),
            key=lambda f: -roots.bounds[f],
        )
        own = [(f, *roots.own[f]) for f in still_open if id(roots.own[f][0]) not in known][:_MOST_ROOTS]
        return RootBounds.of(self.problem, [*common, *tables], own, roots.bounds)

    def _offer(self, tree: DecisionTree) -> float:
        self._value = max(self._value, self.offer(tree))
        return self._value

    def _tighten(self, bound: float) -> bool:
        self._done = self.tighten(bound) or bound == -np.inf
        return self._done


# ---------------------------------------------------------------- bounds by root


@dataclass(frozen=True, eq=False)
class PriceBound:
    """Bounds on the priced value of trees by their root, whether they satisfy the limits or not.

    Attributes
    ----------
    priced : PricedProblem
        The priced value is the sum of its `weights` over predictions minus its `leaf_price` for every leaf.
    leaf : float
        Bound on a single leaf.
    roots : float array (n_features,)
        Bounds on trees by the feature at their root. All finite.
    """

    priced: PricedProblem
    leaf: float
    roots: FloatArray


@dataclass(frozen=True, eq=False)
class RootBounds:
    """Bounds on trees by their root, from a search by prices that proved nothing.

    Attributes
    ----------
    prices : tuple of PriceBound
        At prices with good bounds, the best first.
    bounds : float array (n_features,)
        Bounds on the value of trees that satisfy the limits, by the feature at their root; minus infinity if there is
        no such tree.
    leaf : float
        The same for a single leaf.
    """

    problem: LimitedProblem
    prices: tuple[PriceBound, ...]
    bounds: FloatArray
    leaf: float

    @classmethod
    def of(
        cls,
        problem: LimitedProblem,
        common: Sequence[tuple[PricedProblem, float, Mapping[int, float]]],
        own: Sequence[tuple[int, PricedProblem, float]],
        roots: Mapping[int, float],
    ) -> RootBounds:
        """Collect bounds on values.

        Parameters
        ----------
        common : sequence of (prices, bound of all trees, bounds by root feature)
            The best first; bounds by root feature may be missing.
        own : sequence of (root feature, prices, bound of trees with this root)
        roots : mapping
            Other bounds on the trees of single roots.
        """
        found = []
        bounds, leaf = np.full(problem.X.shape[1], np.inf), float(problem.gains.sum(axis=0).max()) - problem.leaf_price
        for priced, most, by_root in common:
            lone = leaf_bound(priced)
            leaf = min(leaf, lone)
            every = by_column(problem, by_root, most, lone)
            bounds = np.minimum(bounds, every)
            found.append(_price_bound(problem, priced, lone, every))
        for root, priced, most in own:
            every = by_column(problem, {root: most}, _trivial(priced), np.inf)
            found.append(_price_bound(problem, priced, leaf_bound(priced), every))
            roots = {**roots, root: min(most, roots.get(root, np.inf))}
        lowest = by_column(problem, roots, np.inf, np.inf)
        bounds = np.minimum(bounds, lowest)
        # Without a split that separates nothing a tree is no worse, and branches on another feature.
        splits = (problem.X ^ problem.X[:1]).any(axis=0)
        bounds[~splits] = np.minimum(bounds[~splits], max(leaf, float(bounds[splits].max(initial=-np.inf))))
        return cls(problem, tuple(found), bounds, leaf)


def leaf_bound(priced: PricedProblem) -> float:
    """Return a bound on single leaves that satisfy the limits."""
    return float(priced.weights.sum(axis=0).max()) - priced.leaf_price + priced.constant + priced.error


def by_column(problem: LimitedProblem, bounds: Mapping[int, float], most: float, leaf: float) -> FloatArray:
    """Return bounds by root feature for every column, interchangeable ones included; `most` where none is known.

    A root that separates nothing can be removed, so its trees are worth no more than a leaf or those of other roots.
    """
    keys = split_keys(problem)
    known: dict[bytes, float] = {}
    for feature, bound in bounds.items():
        key = keys[feature]
        if key is not None:
            known[key] = min(bound, known.get(key, np.inf))
    found = np.array([most if key is None else known.get(key, most) for key in keys])
    splits = (problem.X ^ problem.X[:1]).any(axis=0)
    found[~splits] = min(most, max(leaf, float(found[splits].max(initial=-np.inf))))
    return found


def _trivial(priced: PricedProblem) -> float:
    """Return a bound on all trees that branch: the best class for every point, and two leaves."""
    return float(priced.weights.max(axis=1).sum()) - 2 * priced.leaf_price + priced.constant + priced.error


def _price_bound(problem: LimitedProblem, priced: PricedProblem, leaf: float, bounds: FloatArray) -> PriceBound:
    """Return bounds without the constant, clipped to the values that trees can have."""
    worst = -priced.leaf_price * 2**problem.max_depth
    roots = np.maximum(np.minimum(bounds, _trivial(priced)) - priced.constant, worst)
    return PriceBound(priced, leaf - priced.constant, roots)
