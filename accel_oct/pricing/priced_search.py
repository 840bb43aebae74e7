"""All steps together: common prices, repaired trees, what common prices leave open, and then root by root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from accel_oct.exact.limited import Limited
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.pricing.closing import Closing
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.knowledge import PricedKnowledge
from accel_oct.pricing.repair import Repair
from accel_oct.pricing.roots import RootByRoot
from accel_oct.tree import DecisionTree

_MOST_ROOTS = 8
"""Roots that could not be closed whose prices are handed on; of those whose tables are not known, as many again."""

_LAST_TREES = 2
"""Trees of the last prices that are repaired at once; all of them where that does not lead to a proof soon."""


@dataclass
class PricedSearch:
    """The best tree that keeps the limits, with a bound on all of them at any time.

    Parameters
    ----------
    problem : Limited
    offer : callable (DecisionTree) -> float
        Told of trees that may keep the limits; returns the value of the best tree known, minus infinity without one.
    tighten : callable (float) -> bool
        Told of every bound; whether it is enough.
    goal : callable (float) -> float
        From the value of the best tree known to the smallest value that a better one can have.
    should_stop : callable
        Asked now and then.
    few_sets : int
        Sets of samples that are enumerated at common prices before every root gets its own.
    root_by_root : bool
        Whether roots get prices of their own at all.

    Attributes
    ----------
    dual : Dual
        Common prices.
    evaluations, outcomes : int
        Multipliers that were tried, and pairs of outcomes that were combined.
    slack : float
        How far below the bound of common prices all trees were enumerated.
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
        """Go through what prices leave open."""
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
        """Which step is under way."""
        if self._roots is not None:
            return "root by root"
        return "common prices" if self._closing is None else "trees that prices leave open"

    @property
    def figures(self) -> dict[str, int | float | tuple[int, int]]:
        """How far it is; may be asked at any time. The slack is in units of weight."""
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

    def knowledge(self) -> PricedKnowledge:
        """What is known of trees by their root, with the prices that say it; for whoever goes on."""
        assert isinstance(self.problem, LimitedProblem)
        dual = self.dual
        common = [(priced, bound, self._root_bounds if priced is dual.best else {}) for priced, bound in dual.recent]
        if dual.best is not None:
            common = [entry for entry in common if entry[0] is not dual.best]
            common.insert(0, (dual.best, dual.bound, self._root_bounds))
        roots = self._roots
        if roots is None:
            return PricedKnowledge.of(self.problem, common, [], {})
        tables = list(roots.tables.values())[:_MOST_ROOTS]
        known = {id(priced) for priced, _, _ in tables}
        still_open = sorted(
            (f for f, (priced, _) in roots.own.items() if roots.bounds[f] >= self.goal(self._value)),
            key=lambda f: -roots.bounds[f],
        )
        own = [(f, *roots.own[f]) for f in still_open if id(roots.own[f][0]) not in known][:_MOST_ROOTS]
        return PricedKnowledge.of(self.problem, [*common, *tables], own, roots.bounds)

    def _offer(self, tree: DecisionTree) -> float:
        self._value = max(self._value, self.offer(tree))
        return self._value

    def _tighten(self, bound: float) -> bool:
        self._done = self.tighten(bound) or bound == -np.inf
        return self._done
