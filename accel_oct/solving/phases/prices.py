"""The phase of prices: linear constraints by a bound from multipliers, then every tree that it leaves open."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from accel_oct.constraints.base import limits_of
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.pricing import PricedSearch
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.arrays import FloatArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class PricingStatistics:
    """Figures of pricing.

    Attributes
    ----------
    evaluations : int
        Number of multipliers tried, those of single roots included.
    dual_bound : float
        The best bound from common multipliers alone, normalised.
    slack : float
        In units of weight, the slack below it within which all trees were enumerated at common multipliers.
    outcomes : int
        Number of pairs of outcomes combined.
    """

    seconds: float
    dual_seconds: float
    evaluations: int
    dual_bound: float
    slack: float
    outcomes: int


class PriceAndClose:
    """Applies where every constraint is local or a list of limits on predictions and leaves; see `accel_oct.pricing`.

    At most one local rule may be about a mass.
    """

    name = "prices"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        if not search.config.prices or problem.subtrees_are_independent or problem.is_strict:
            return False
        if problem.max_leaves is not None:
            return False  # the tables of all numbers of leaves have the answer
        if problem.rules is not None and len(problem.rules.least) > 1:
            return False
        return all(constraint.traits.is_priced for constraint in problem.coupling)

    def run(self, search: Search) -> Status | None:
        return search.perform(lambda stopper: _price_and_close(search, stopper))


def _price_and_close(search: Search, stopper: Stopper) -> None:
    began = time.perf_counter()
    problem, options = search.problem, search.options
    if search.no_leaf_is_allowed(problem.rules):
        return
    limited, rounding = problem.priced(limits_of(problem.coupling)), problem.rounding()

    def offer(tree: DecisionTree) -> float:
        if search.incumbent.offer(tree.with_max_depth(problem.max_depth)):
            search.record()
        return search.incumbent.value

    def tighten(bound: float) -> bool:
        return search.tighten(min(bound, rounding.valid(bound)) if np.isfinite(bound) else bound)

    prices = PricedSearch(
        limited,
        offer,
        tighten,
        rounding.next_above,
        stopper,
        threads=options.threads,
        memory_limit=search.config.subtree_bounds.memory_limit,
    )
    search.reporter.describe(lambda: (prices.doing, prices.figures))
    prices.price(search.incumbent.value)
    dual, dual_seconds = prices.dual, time.perf_counter() - began
    prices.close()
    if dual.best is not None:
        search.multipliers = _per_constraint(search, dual.best.prices / limited.scales / problem.score.norm)
    if dual.is_infeasible:
        priced = zip(problem.constraints, search.multipliers, strict=True)
        search.record_infeasible(
            [constraint for constraint, multiplier in priced if multiplier is None or multiplier > 0]
        )
    if isinstance(limited, LimitedProblem) and not search.is_proven and not search.is_infeasible and not stopper():
        search.priced = prices.root_bounds()
    search.statistics["prices"] = PricingStatistics(
        seconds=time.perf_counter() - began,
        dual_seconds=dual_seconds,
        evaluations=prices.evaluations,
        dual_bound=problem.reported(dual.bound),
        slack=prices.slack,
        outcomes=prices.outcomes,
    )


def _per_constraint(search: Search, multipliers: FloatArray) -> tuple[float | None, ...]:
    """Return the largest multiplier among the limits of each constraint: of opposite limits at most one binds."""
    found: list[float | None] = []
    begin = 0
    for constraint in search.problem.constraints:
        if constraint.traits.local is not None:
            found.append(None)
            continue
        units = np.array([limit.unit for limit in limits_of([constraint])])
        own = multipliers[begin : begin + units.size] * units
        found.append(float(own.max(initial=0.0)) if units.all() else None)
        begin += units.size
    return tuple(found)
