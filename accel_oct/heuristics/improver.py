"""Local search within a solve: on relevant columns, on large data first on a sample of rows, in time slices."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, SubtreeCache
from accel_oct.exact.samples import reduce_data
from accel_oct.heuristics.local_search import (
    Grower,
    GrowingData,
    GrownNode,
    LocalSearch,
    LocalSearchCounts,
    OutOfTime,
)
from accel_oct.support.arrays import IntArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

_DRAWN_ROWS = 12_000
"""Sampled rows of the first search on large data; up to twice as many rows are searched without sampling."""

_LONGEST_STEP = 2.0
"""Limit on the seconds of a step that cannot be interrupted."""

_LARGEST_TABLES = 2**27
_CACHE_BYTES = 2**26


def table_seconds(n_samples: int, n_features: int, n_classes: int, levels: int) -> float:
    """Estimate the time of the tables of best trees with `levels` levels, without the savings by bounds.

    Depth two visits all pairs of features. Each further level repeats this for every feature at its root, whose sides
    share the samples; every unordered set of features is visited once. Measured on a core of 2020.
    """
    channels = 1 if n_classes == 2 else n_classes
    above = max(0, levels - 2)
    pairs = float(n_features) ** 2 if levels > 1 else float(n_features)
    sets: float = math.prod(n_features / k for k in range(1, above + 1))
    return sets * pairs * (2e-10 * channels + 3e-12 * n_samples / 2.0**above) + 2e-9 * n_samples * n_features


class Improver:
    """Finds better and better trees.

    Parameters
    ----------
    dataset : BinaryDataset
    max_depth : int
    leaf_price : float
        In units of weight.
    offer : callable (DecisionTree)
        Called with every tree that is better than those before; returns whether it is feasible.
    stopper : Stopper
        Called at every node; may be replaced between time slices.
    seed : int
    """

    def __init__(
        self,
        dataset: BinaryDataset,
        max_depth: int,
        leaf_price: float,
        offer: Callable[[DecisionTree], bool],
        stopper: Stopper,
        seed: int = 0,
    ) -> None:
        self._max_depth = max_depth
        self._offer = offer
        self.stopper = stopper
        self._seed = seed
        self.counts = LocalSearchCounts()
        samples = GrowingData(dataset.X, dataset.y, dataset.weights, dataset.n_classes)
        rows: IntArray | None = None
        if len(samples.y) > 2 * _DRAWN_ROWS:
            rows = np.sort(np.random.default_rng(seed).choice(len(samples.y), _DRAWN_ROWS, replace=False))
        part, price = samples, leaf_price
        if rows is not None:
            part = samples.of_rows(rows)
            price *= float(part.weights.sum() / samples.weights.sum())
        # Columns that are equal on the sampled rows are merged: at worst, a better tree is missed.
        self._columns = np.sort(reduce_data(*part).without_light_columns(price).feature)
        self._whole = self._search(samples.of_columns(self._columns), leaf_price, self._offer_node)
        self._drawn: LocalSearch | None = None
        if rows is not None:
            self._drawn = self._search(part.of_columns(self._columns), price, self._keep_for_later)
        self._pending: list[GrownNode] = []
        self._busy = threading.Lock()

    @property
    def n_features(self) -> int:
        """Number of remaining columns."""
        return int(self._columns.size)

    def begin(self, known: DecisionTree | None = None) -> None:
        """Start from greedy trees by several criteria and the known tree; make the tails of the best exact."""
        with self._busy:
            self._timed(lambda: self._starts(known))

    def work(self, seconds: float, steps: int | None = None) -> None:
        """Make at least one step, for some seconds or a number of steps; returns at once if another thread works."""
        if not self.n_features or not self._busy.acquire(blocking=False):
            return
        try:
            self._timed(lambda: self._steps(seconds, steps))
        finally:
            self._busy.release()

    # ---------------------------------------------------------------- inside

    def _timed(self, work: Callable[[], None]) -> None:
        began = time.monotonic()
        with contextlib.suppress(OutOfTime):
            work()
        self.counts.seconds += time.monotonic() - began

    def _starts(self, known: DecisionTree | None) -> None:
        first = self._drawn or self._whole
        for criterion in ("gini", "entropy", "error"):
            first.start_greedily(criterion)
            self._carry_over()
        first.make_tails_exact()
        self._carry_over()
        tree = None if known is None else self._translated(known)
        if tree is not None:
            self._whole.start_from(tree)

    def _steps(self, seconds: float, steps: int | None) -> None:
        began = time.monotonic()
        done = 0
        while not self.stopper():
            (self._drawn or self._whole).step()
            self._carry_over()
            done += 1
            if time.monotonic() - began >= seconds or (steps is not None and done >= steps):
                return

    def _carry_over(self) -> None:
        """Improve the last tree of the sampled rows on all rows."""
        if self._pending:
            node = self._pending.pop()
            self._pending.clear()
            self._whole.start_from(node.tree(), only_tails=True)

    def _search(self, samples: GrowingData, price: float, offer: Callable[[GrownNode], bool]) -> LocalSearch:
        solver = DepthTwoSolver(samples.X, samples.y, samples.weights, samples.n_classes)
        n_features, n_classes = samples.X.shape[1], samples.n_classes

        def should_stop() -> bool:
            return self.stopper()

        def remaining() -> float:
            return self.stopper.remaining

        def affordable(n_samples: int) -> bool:
            if solver.table_bytes > _LARGEST_TABLES:
                return False
            return solver.seconds(n_samples) <= min(_LONGEST_STEP, self.stopper.remaining)

        def exact_seconds(n_samples: int, levels: int) -> float:
            if solver.table_bytes > _LARGEST_TABLES:
                return math.inf
            return table_seconds(n_samples, n_features, n_classes, levels)

        grower = Grower(samples, price, SubtreeCache(solver, _CACHE_BYTES), affordable, should_stop)
        return LocalSearch(
            grower, self._max_depth, offer, should_stop, exact_seconds, remaining, seed=self._seed, counts=self.counts
        )

    def _keep_for_later(self, node: GrownNode) -> bool:
        self._pending.append(node)
        return True

    def _offer_node(self, node: GrownNode) -> bool:
        return self._offer(node.tree(self._columns).with_max_depth(self._max_depth))

    def _translated(self, tree: DecisionTree) -> DecisionTree | None:
        """Return the tree in terms of the remaining columns; None if it uses others."""
        used = tree.feature >= 0
        places = np.searchsorted(self._columns, tree.feature)
        if not self._columns.size or np.any(places[used] >= self._columns.size):
            return None
        places = np.minimum(places, self._columns.size - 1)
        if np.any(self._columns[places][used] != tree.feature[used]):
            return None
        return DecisionTree(np.where(used, places, -1), tree.label)
