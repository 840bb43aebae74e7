"""A good first tree: CART, then optimal tails, then local search where a proof would take long.

Where the tables take a moment, local search is left out: they find the best tree themselves. Elsewhere it gets a small
part of the time before the tables begin, and under a time limit it goes on between their steps. Without a time limit
the number of steps follows from the size of the data alone, so that results are reproducible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from accel_oct.heuristics.cart import cart, cart_seconds
from accel_oct.heuristics.local_search import Improver, table_seconds
from accel_oct.heuristics.polish import polish
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.progress import Figures
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

_LONGEST_STEP = 2.0
"""Most seconds of a step that cannot be interrupted."""

_QUICK_TABLES, _QUICK_SHARE = 0.2, 0.1
"""Estimated seconds of the tables, and share of the time that is left, below which there is no warm start.

Measured, the tables end sooner without it; and scikit-learn, which takes a second to import, is not needed.
"""

_SECOND_CART = 0.5
"""Most seconds of CART with a second criterion; on larger data local search grows its own greedy trees."""

_SMALL_TABLES, _LARGEST_TABLES = 2**25, 2**27
"""Bytes for the tables of such a step: always allowed, and never exceeded."""


@dataclass(frozen=True)
class WarmStartStatistics:
    """Seconds of the warm start, and the objective after it."""

    seconds: float
    objective: float


class WarmStart:
    """Offers good first trees to the incumbent, which checks the constraints."""

    name = "warm start"

    def applies(self, search: Search) -> bool:
        return True

    def run(self, search: Search) -> Status | None:
        began = time.perf_counter()
        stopped = None
        if not _tables_are_quick(search):
            stopped = search.perform(lambda stopper: _improve(search, stopper))
        search.statistics["warm_start"] = WarmStartStatistics(time.perf_counter() - began, search.objective)
        search.record()
        return stopped


def _improve(search: Search, stopper: Stopper) -> None:
    """Run the steps; those that cannot be interrupted are left out where they would take too long."""
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
    search.beside = improving.beside
    search.reporter.describe(improving.describe)
    if config.warm_start == "cart" and cart_seconds(data, problem.max_depth) < min(_SECOND_CART, stopper.remaining):
        search.offer_and_record(cart(data, problem.max_depth, price, search.options.seed, "entropy"))
    improving.run_first()


def _tables_are_quick(search: Search) -> bool:
    """Return whether the tables find the best tree before CART would be grown, or even imported."""
    problem, data, switches = search.problem, search.problem.dataset, search.config.subtree_bounds
    if (
        not (switches.enabled and switches.tables and problem.subtrees_are_independent)
        or problem.max_leaves is not None
    ):
        return False
    seconds = table_seconds(data.n_samples, data.n_features, data.n_classes, problem.max_depth)
    return seconds < min(_QUICK_TABLES, _QUICK_SHARE * search.stopper.remaining)


def _polish(search: Search, start: DecisionTree, stopper: Stopper) -> None:
    problem, config, incumbent = search.problem, search.config, search.incumbent
    data, price = problem.dataset, problem.leaf_price
    solver = search.subtrees.solver

    def worthwhile(n_samples: int) -> bool:
        if solver.table_bytes > max(_SMALL_TABLES, min(config.subtree_bounds.memory_limit, _LARGEST_TABLES)):
            return False
        return not stopper() and solver.seconds(n_samples) <= min(_LONGEST_STEP, stopper.remaining)

    incumbent.offer(polish(start, data, price, search.subtrees.at_price(price), worthwhile))


# ---------------------------------------------------------------- local search


_SOON, _SOON_WITHOUT_LIMIT = 0.5, 30.0
"""Estimated seconds of the tables below which local search is left out, with a time limit and without one.

Bounds usually save more than half of the estimate, and better trees at the start save little of the rest.
"""

_FIRST_SHARE, _FIRST_LIMIT, _FIRST_SECONDS = 0.1, 0.25, 2.0
"""Time of local search before the tables: share of their estimate, share of the time limit, and most seconds."""

_SHARES = ((0.2, 0.15, 0.1), (2.0, 0.4, 0.25), (math.inf, 0.7, 0.5))
"""Share of the time beside the tables, while better trees are found and when there was none for a while.

The first number is the largest ratio of the tables' estimate to the limit that the shares are for.
"""

_MOST_CELLS = 2**27
"""Most rows times columns; above it a copy of the data takes too much memory."""

_MOST_STEPS = 100
"""Most steps without a time limit."""


class LocalImproving:
    """The local search of one solve.

    Parameters
    ----------
    estimate : float
        Estimated seconds of the tables.
    """

    def __init__(self, search: Search, improver: Improver, estimate: float) -> None:
        self._search = search
        self._improver = improver
        self._estimate = estimate
        limit = search.clock.limit
        times = 0.0 if not limit else estimate / limit
        self._shares = next((fresh, stale) for most, fresh, stale in _SHARES if times <= most)
        self._beside_since = 0.0
        self._beside = 0.0
        self._improved_at = 0.0

    @classmethod
    def of(cls, search: Search, stopper: Stopper) -> LocalImproving | None:
        """Return the local search; None where it is switched off or would not pay."""
        problem, data = search.problem, search.problem.dataset
        if not search.config.local_search or problem.max_depth < 2 or data.n_classes < 2:
            return None
        if data.X.size > _MOST_CELLS:
            return None
        estimate = table_seconds(data.n_samples, data.n_features, data.n_classes, problem.max_depth)
        soon = _SOON_WITHOUT_LIMIT if search.clock.limit is None else _SOON
        if estimate < soon or stopper():
            return None
        improver = Improver(
            data, problem.max_depth, problem.leaf_price, search.offer_and_record, stopper, search.options.seed
        )
        columns = improver.n_features
        estimate = table_seconds(data.n_samples, columns, data.n_classes, problem.max_depth)
        return None if estimate < soon else cls(search, improver, estimate)

    def run_first(self) -> None:
        """Start, and make some steps before the tables begin."""
        improver, left = self._improver, self._search.clock.left
        improver.begin(self._search.incumbent.tree)
        seconds = min(_FIRST_SHARE * self._estimate, _FIRST_SECONDS)
        if left is None:
            improver.work(float("inf"), max(1, min(_MOST_STEPS, int(seconds / 0.02))))
        else:
            used = improver.counts.seconds
            improver.work(max(0.0, min(seconds, _FIRST_LIMIT * left) - used))
        self._note()

    def beside(self, stopper: Stopper) -> Callable[[], bool]:
        """Return the stop question for the tables; from time to time it makes some steps before the answer."""
        if self._search.clock.limit is None:
            return stopper
        self._improver.stopper = stopper
        self._beside_since = self._improved_at = time.monotonic()
        value = [self._search.incumbent.value]

        def should_stop() -> bool:
            if stopper():
                return True
            now = time.monotonic()
            if self._search.incumbent.value > value[0]:
                value[0], self._improved_at = self._search.incumbent.value, now
            passed = now - self._beside_since
            fresh = now - self._improved_at <= 1.0 + 0.3 * passed
            allowed = passed * self._shares[0 if fresh else 1]
            if self._beside < allowed:
                self._improver.work(allowed - self._beside)
                self._beside += time.monotonic() - now
                self._note()
            return stopper()

        return should_stop

    def _note(self) -> None:
        self._search.statistics["local_search"] = self._improver.counts

    def describe(self) -> tuple[str, Figures]:
        """Return step and figures for progress events."""
        counts = self._improver.counts
        return "local search", {"starts": counts.starts, "moves": counts.moves, "better": counts.better}
