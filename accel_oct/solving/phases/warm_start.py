"""A first tree as good as can be had quickly: CART, then optimal tails."""

from __future__ import annotations

import time
from dataclasses import dataclass

from accel_oct.exact.stopping import Stopper
from accel_oct.heuristics.cart import cart, cart_seconds
from accel_oct.heuristics.polish import polish
from accel_oct.solving.improving import LocalImproving
from accel_oct.solving.phases.base import run_stoppable
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.tree import DecisionTree

_LONGEST_STEP = 2.0
"""Seconds that a step may take which cannot be interrupted."""

_SECOND_CART = 0.5
"""Seconds up to which CART is run by a second criterion; on larger data the local search has its own greedy trees."""

_SMALL_TABLES, _LARGEST_TABLES = 2**25, 2**27
"""Bytes that the tables of such a step may take whatever the memory limit is, and however large it is."""


@dataclass(frozen=True)
class WarmStartStatistics:
    """What the warm start came to."""

    seconds: float
    objective: float


class WarmStart:
    """Trees are offered as they are found; whether a constraint forbids them is the incumbent's question."""

    name = "warm start"

    def applies(self, search: Search) -> bool:
        return True

    def run(self, search: Search) -> Status | None:
        began = time.perf_counter()
        stopped = run_stoppable(search, lambda stopper: _improve(search, stopper))
        search.statistics["warm_start"] = WarmStartStatistics(time.perf_counter() - began, search.objective)
        search.record()
        return stopped


def _improve(search: Search, stopper: Stopper) -> None:
    """Steps that cannot be interrupted are left out where they would take too long."""
    problem, config, incumbent = search.problem, search.config, search.incumbent
    data, price = problem.dataset, problem.leaf_price
    start = incumbent.tree
    if config.warm_start == "cart" and cart_seconds(data, problem.max_depth) < stopper.remaining:
        grown = cart(data, problem.max_depth, price, search.options.seed)
        if incumbent.offer(grown) or start is None:
            start = grown
    if config.polish_warm_start and start is not None and not stopper():
        _polish(search, start, stopper)
    improving = None if stopper() else LocalImproving.of(search, stopper)
    if improving is None:
        return
    search.record()
    search.improving = improving
    search.teller.describe(improving.describe)
    if config.warm_start == "cart" and cart_seconds(data, problem.max_depth) < min(_SECOND_CART, stopper.remaining):
        search.offer_and_record(cart(data, problem.max_depth, price, search.options.seed, "entropy"))
    improving.run_first()


def _polish(search: Search, start: DecisionTree, stopper: Stopper) -> None:
    problem, config, incumbent = search.problem, search.config, search.incumbent
    data, price = problem.dataset, problem.leaf_price
    solver = search.subtrees.solver

    def worthwhile(n_samples: int) -> bool:
        if solver.table_bytes > max(_SMALL_TABLES, min(config.subtree_bounds.memory_limit, _LARGEST_TABLES)):
            return False
        return not stopper() and solver.seconds(n_samples) <= min(_LONGEST_STEP, stopper.remaining)

    incumbent.offer(polish(start, data, price, search.subtrees.at_price(price), worthwhile))
