"""The best tree for one leaf price: exact when finished, a tree and a valid bound at any time.

Levels are computed from the shallow to the deep, and each gives a bound on what the next can add: a tree deeper than d
has at least d + 2 leaves, so V_{d+1}(S) <= max(V_d(S), E(S) - (d + 2) * price) with E the equivalent-point bound. Up
to depth four, pairs of features whose bounds do not beat the incumbent are skipped; deeper, root features are opened
best bound first and each side is searched with the value that it has to beat.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.price_pairs import PricePairs
from accel_oct.subtree.price_roots import Outcome, PriceRoots, SearchCounts
from accel_oct.subtree.profiles import Units
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.tree import DecisionTree

_PATIENCE = 4.0
"""Level three is not begun when its estimate is so many times the time left: roots one by one find more."""


class PriceSearch:
    """Best trees of reduced data for one leaf price (in the units of the weights)."""

    def __init__(
        self,
        leaf_price: float,
        signed: bool,
        stopper: Stopper | None = None,
        threads: int = 1,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        counts: SearchCounts | None = None,
    ) -> None:
        self.units = Units(signed)
        self.leaf_price = leaf_price
        self.price = self.units.price(leaf_price)
        self.stopper = stopper or Stopper()
        self.threads = threads
        self.memory_limit = memory_limit
        self.counts = counts or SearchCounts()
        self.report: Callable[[Outcome], None] | None = None
        self.known_value: Callable[[], float] | None = None

    def search(self, data: Reduced, depth: int, target: float = -np.inf, *, top: bool = False) -> Outcome:
        """Best tree of depth at most `depth`.

        The result is exact (value equals upper), or proven useless (upper at most `target`), or the search was stopped.
        `upper` is a valid bound on every tree of this depth in all three cases.
        """
        if depth == 0 or data.n_features == 0:
            return self._leaf(data)
        if depth == 1:
            self.counts.pair_levels += 1
            return self._from_profile(PairLevel(data, depth=1), 2)
        in_time = depth > 2 and DeepLevels.seconds(data) <= _PATIENCE * self.stopper.remaining
        table_limit = DeepLevels.table_limit(self.memory_limit, self.threads) if in_time else 0
        pairs = PairLevel(data, self.stopper, table_limit)
        self.counts.pair_levels += 1
        best = self._from_profile(pairs, 4)
        if depth == 2:
            return best
        ceiling = float(self.units.from_score(data.row_ceiling.sum(), data.total_weight))
        if not data.has_room_for(4):
            return best
        best.upper = max(best.upper, ceiling - 4 * self.price)
        self.publish(best, top)
        if best.upper <= max(best.value, target) or self.stopper():
            return best
        if not in_time or not DeepLevels.possible(pairs, self.memory_limit, self.threads):
            return self._deepen(pairs, None, depth, best, target, top)
        fits = depth == 4 and DeepLevels.fits(pairs, self.memory_limit)
        deep = DeepLevels(pairs, fits, self.threads, self.counts.steps if top else None)
        self.counts.level_three += 1
        if not deep.level_three(self.stopper):
            return best
        best = self._three(pairs, deep, best)
        if depth == 3:
            best.upper = best.value
            return best
        best.upper = max(best.value, ceiling - 5 * self.price)
        self.publish(best, top)
        if best.upper <= max(best.value, target) or self.stopper():
            return best
        if fits:
            return self._four(pairs, deep, best, target, top)
        return self._deepen(pairs, deep, depth, best, target, top)

    def _leaf(self, data: Reduced) -> Outcome:
        counts = data.class_weights
        value = float(self.units.from_score(counts.max(), counts.sum())) - self.price
        if not data.allows_a_leaf:
            value = -np.inf
        return Outcome(value, value, lambda: DecisionTree.leaf(int(np.argmax(counts))))

    def _from_profile(self, pairs: PairLevel, max_leaves: int) -> Outcome:
        prices = self.price * np.arange(1, max_leaves + 1)
        values = pairs.profile[:max_leaves] - prices
        leaves = int(np.argmax(values)) + 1
        upper = float((pairs.upper_profile[:max_leaves] - prices).max())
        return Outcome(float(values[leaves - 1]), upper, lambda: pairs.tree(leaves))

    def _tree_of_two(self, data: Reduced) -> DecisionTree:
        """Best tree of depth two, for rebuilding what is known already: not stopped by anything."""
        if data.n_features == 0:
            return self._leaf(data).tree()
        pairs = PairLevel(data)
        return self._from_profile(pairs, 4).tree()

    def _side(self, data: Reduced, column: int, side: int) -> Reduced:
        return data.restricted(data.X[:, column] == side, column)

    def _three(self, pairs: PairLevel, deep: DeepLevels, best: Outcome) -> Outcome:
        """Exact best of depth three from the depth-two profiles of all sides."""
        leaves = np.arange(1, 5)
        values = (deep.side_profiles - self.price * leaves).max(axis=-1)
        sums = values.sum(axis=1)
        column = int(np.argmax(sums))
        if sums[column] <= best.value:
            return best

        def tree() -> DecisionTree:
            sides = [self._tree_of_two(self._side(pairs.data, column, side)) for side in (0, 1)]
            return pairs.data.branch(column, sides[0], sides[1])

        return Outcome(float(sums[column]), float(sums[column]), tree)

    def _four(self, pairs: PairLevel, deep: DeepLevels, best: Outcome, target: float, top: bool) -> Outcome:
        self.counts.level_four += 1
        inner = PricePairs(deep, self.price, self.stopper)
        while True:
            if inner.value > best.value:
                best = Outcome(inner.value, best.upper, self._pair_tree(pairs, inner.choice))
            best.upper = max(best.value, min(best.upper, inner.upper))
            self.publish(best, top)
            if self.stopper() or not inner.step(max(best.value, self.goal(target, top))):
                break
        self.counts.pairs += inner.n_pairs
        return best

    def _pair_tree(self, pairs: PairLevel, choice: tuple[int, int, int]) -> Callable[[], DecisionTree]:
        """Builder for a root and, per side, the second feature (negative: at most depth two below)."""
        data = pairs.data
        column = choice[0]

        def tree() -> DecisionTree:
            sides = []
            for side in (0, 1):
                second = choice[1 + side]
                child = self._side(data, column, side)
                if second < 0:
                    sides.append(self._tree_of_two(child))
                    continue
                rows = data.X[:, column] == side
                parts = [
                    self._tree_of_two(data.restricted(rows & (data.X[:, second] == value), column, second))
                    for value in (0, 1)
                ]
                sides.append(data.branch(second, parts[0], parts[1]))
            return data.branch(column, sides[0], sides[1])

        return tree

    def _deepen(
        self, pairs: PairLevel, deep: DeepLevels | None, depth: int, best: Outcome, target: float, top: bool
    ) -> Outcome:
        """Root features one by one, best bound first; sides are searched one level lower."""
        ceiling = float(self.units.from_score(pairs.data.row_ceiling.sum(), pairs.data.total_weight))
        deeper = ceiling - (depth + 1) * self.price  # no tree of just this depth is worth more
        goal = self.goal(target, top)
        # One level less gives a good tree to begin with, and it may be all that there is to do. At the top others may
        # know a better tree already, and when this depth stays open anyway there is nothing to be gained.
        if depth > 4 and not (top and goal > best.value and deeper > goal):
            # Not published: what bounds the shallower trees does not bound these.
            shallow = self.search(pairs.data, depth - 1, target)
            below = max(shallow.value, shallow.upper)
            best = Outcome(shallow.value, max(below, deeper), shallow.tree)
            if best.upper <= max(best.value, target) or self.stopper():
                return best
        return PriceRoots(self, pairs, deep, depth).run(best, target, top)

    def goal(self, target: float, top: bool) -> float:
        """What a tree has to beat: the whole tree also the best one that others have found by now."""
        return max(target, self.known_value()) if top and self.known_value is not None else target

    def publish(self, outcome: Outcome, top: bool) -> None:
        """Tell whoever listens, if this is about the whole tree."""
        if top and self.report is not None:
            self.report(outcome)
