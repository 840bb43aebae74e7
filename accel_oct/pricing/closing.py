"""Closing the gap: every tree that prices leave open, as outcomes.

Call the *loss* of a choice the best priced value at its place minus the best priced value after it. Losses along a tree
add up to L(mu) - L(T, mu). So all trees T with L(T, mu) >= L(mu) - eps are found top down: at a set of samples, every
class as a leaf and every feature as a split whose loss is within what is left of eps, and below it the same for both
sides with what is left then.

Not trees are kept but *outcomes*: the value of a subtree and what it uses of every limit. Of equal uses the best value
counts, and one tree stands for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel_oct.pricing.outcomes import LEAF, Outcomes
from accel_oct.pricing.problem import LimitedProblem, PricedProblem
from accel_oct.pricing.values import RootValues, distinct_columns, side_values
from accel_oct.tree import DecisionTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PART = 1 << 20
"""Pairs of outcomes that are looked at at a time where nothing of them is kept."""

_MOST_OUTCOMES = 4_000_000
"""Outcomes that are combined at one place; beyond it the enumeration is given up."""


class TooMany(Exception):
    """The enumeration was given up: time, memory or the user's wish."""


class Closing:
    """Enumerates what a price leaves open, with more and more slack, until the optimum is proven.

    Parameters
    ----------
    problem : LimitedProblem
    priced : PricedProblem
        At prices that bound well.
    bound : float
        L(mu), rounding included.
    offer : callable (DecisionTree) -> float
        Told of trees that keep the limits; returns the value of the best tree known, minus infinity without one.
    should_stop : callable
        Asked now and then.
    goal : callable (float) -> float
        From the value of the best tree known to the smallest value that a better one can have.
    root : int or None
        Only trees that branch on this feature at the root; `bound` is for them.
    most_sets : int
        Sets of samples that are looked at before the enumeration is given up.
    """

    def __init__(
        self,
        problem: LimitedProblem,
        priced: PricedProblem,
        bound: float,
        offer: Callable[[DecisionTree], float],
        should_stop: Callable[[], bool],
        *,
        goal: Callable[[float], float] = lambda value: value,
        root: int | None = None,
        most_sets: int = 1 << 40,
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> None:
        self.problem = problem
        self.priced = priced
        self.bound = bound
        self.n_outcomes = 0
        self.slack = 0.0
        self._offer = offer
        self._should_stop = should_stop
        self._goal = goal
        self._only = root
        self._sets_left = most_sets
        self._root = RootValues(problem, priced, should_stop, threads, memory_limit)
        self._known: dict[tuple[bytes, int], tuple[float, Outcomes]] = {}
        # Uses closer together than this are taken for equal. A tree may be merged into another one at every branch,
        # so what stands for it may use more than it does by so many grains: within `_room` the constraint decides.
        self._grain = problem.rounding
        merged = (2**problem.max_depth + 2) * self._grain
        self._room = 2 * merged
        # Nor may what stands for it be lost because it is worth a hair less at these prices.
        self._noise = 2 * priced.error + 1e-12 * problem.total_weight + float(np.abs(priced.prices) @ merged)
        self._doubt = -np.inf

    def root_bounds(self) -> dict[int, float]:
        """By root feature, what no tree that branches on it and keeps the limits exceeds."""
        features, zero, one = self._root.sides()
        bounds = zero + one + self.priced.constant + self.priced.error
        return dict(zip(features.tolist(), bounds.tolist(), strict=True))

    @property
    def possible(self) -> bool:
        """Whether the tables that it begins from are there."""
        return self._root.known

    def run(self, value: float, on_bound: Callable[[float], bool]) -> None:
        """Close the gap between `value`, that of the best tree known, and the bound; stops when it cannot.

        `on_bound` is told of every bound that is proven, and says whether it is enough.
        """
        self._value = value
        step = 0.25 * self.problem.total_weight / max(1.0, float(len(self.problem.X)))
        while True:
            missing = max(0.0, self.bound - self._goal(self._value))
            slack = missing if missing <= 2 * step else step  # what is found with less is found again with more
            try:
                self._enumerate(slack)
            except TooMany:
                return
            self.slack = slack
            # A tree that was not enumerated is worth less than the bound minus the slack, and one that was is known, or
            # is worth no more than a tree that stands for it and was refused.
            complete = slack >= min(self.bound - self._goal(self._value), self._root.spread)
            proven = max(self._value, self._doubt)
            if not complete:
                proven = max(proven, self.bound - slack + self._noise)
            if on_bound(proven) or complete:
                return
            step *= 2

    # ---------------------------------------------------------------- enumeration

    def _enumerate(self, slack: float) -> None:
        """Offer the best tree within the slack that keeps the limits."""
        everyone = np.arange(len(self.problem.X))
        room = slack + self._noise
        depth = self.problem.max_depth
        features, zero, one = self._root.sides()
        if self._only is None:
            best = self._root.value
            leaves = self._leaves(everyone, best)
            self._offer_best(leaves, leaves.within(room))
            if depth == 0:
                return
        else:
            own = features == self._only
            features, zero, one = features[own], zero[own], one[own]
            best = float((zero + one).max())
        losses = best - (zero + one)
        for position in np.argsort(losses, kind="stable"):
            loss = float(losses[position])
            if loss > room:
                break
            feature = int(features[position])
            split = self.problem.X[:, feature]
            left = room - loss
            sides = [
                self._outcomes(everyone[split == side], depth - 1, left, (feature, side)) for side in (False, True)
            ]
            self._offer_joined(feature, sides[0], sides[1], left)
            # What was found may make the rest of the slack superfluous.
            room = min(room, self.bound - self._goal(self._value) + self._noise)

    def _outcomes(self, points: IntArray, height: int, slack: float, path: tuple[int, bool] | None = None) -> Outcomes:
        key = (points.tobytes(), height)
        done, found = self._known.get(key, (-np.inf, None))
        if found is None or done < slack:
            self._sets_left -= 1
            if self._sets_left < 0 or self._should_stop():
                raise TooMany
            found = self._new_outcomes(points, height, slack, path)
            self._known[key] = (slack, found)
        return found

    def _new_outcomes(self, points: IntArray, height: int, slack: float, path: tuple[int, bool] | None) -> Outcomes:
        weights = self.priced.weights[points]
        leaf = float(weights.sum(axis=0).max(initial=0.0)) - self.priced.leaf_price
        if height == 0 or points.size <= 1:
            return self._pruned([self._leaves(points, leaf)], slack)
        if height == 1:
            return self._stumps(points, weights, slack)
        if height == 2:
            features, zero, one = side_values(
                self.problem.X[points], weights, self.priced.leaf_price, height, self._root.columns
            )
        else:
            assert path is not None  # the third level from below has tables at the root's children only
            features, zero, one = self._root.sides_below(*path)
        sums = zero + one
        best = max(leaf, float(sums.max(initial=-np.inf)))
        options = [self._leaves(points, best)]
        for position in np.flatnonzero(best - sums <= slack):
            feature, left = int(features[position]), slack - float(best - sums[position])
            split = self.problem.X[points, feature]
            sides = [self._outcomes(points[split == side], height - 1, left) for side in (False, True)]
            options.append(self._joined(feature, sides[0], sides[1], float(best - sums[position]), slack))
        return self._pruned(options, slack)

    def _leaves(self, points: IntArray, best: float) -> Outcomes:
        """Every class as a leaf."""
        problem = self.problem
        gains = problem.gains[points].sum(axis=0) - problem.leaf_price
        uses = problem.uses[:, points].sum(axis=1) + problem.leaf_uses[:, None]
        loss = best - (self.priced.weights[points].sum(axis=0) - self.priced.leaf_price)
        order = np.argsort(loss, kind="stable")
        results = np.column_stack([gains, uses.T])[order]
        return Outcomes(loss[order], results, np.full(order.size, LEAF), order, order, {})

    def _stumps(self, points: IntArray, weights: FloatArray, slack: float) -> Outcomes:
        """Every class as a leaf, and every split into two leaves, at once: most sets are of this kind."""
        problem, price = self.problem, self.priced.leaf_price
        columns = self._root.columns
        X = problem.X[points[:, None], columns]
        totals = weights.sum(axis=0)
        one = X.T @ weights  # (F, K)
        zero = totals - one
        tops = zero.max(axis=1) + one.max(axis=1) - 2 * price
        best = max(float(totals.max()) - price, float(tops.max(initial=-np.inf)))
        leaves = self._leaves(points, best)
        # Columns that do not split the set, or split it like another one, are of no use; few come this far.
        close = np.flatnonzero(best - tops <= slack)
        close = close[distinct_columns(X[:, close])]
        loss = best + 2 * price - (zero[close][:, :, None] + one[close][:, None, :])  # (f, k of zero, k of one)
        f, first, second = np.nonzero(loss <= slack)
        if not f.size:
            return self._pruned([leaves], slack)
        amounts = np.concatenate([problem.gains[points][None], problem.uses[:, points]])  # (1 + J, n, K)
        at_one = np.einsum("nf,jnk->fkj", X[:, close].astype(np.float64), amounts)
        at_zero = amounts.sum(axis=1).T - at_one
        fixed = np.concatenate([[-problem.leaf_price], problem.leaf_uses])
        results = at_zero[f, first] + at_one[f, second] + 2 * fixed
        split = Outcomes(loss[f, first, second], results, columns[close[f]], first, second, {})
        return self._pruned([leaves, split], slack)

    def _joined(self, feature: int, zero: Outcomes, one: Outcomes, loss: float, slack: float) -> Outcomes:
        """All pairs of outcomes of two sides within the slack."""
        i, j = self._pairs(zero, one, slack - loss)
        return Outcomes(
            loss + zero.loss[i] + one.loss[j],
            zero.results[i] + one.results[j],
            np.full(i.size, feature),
            i,
            j,
            {feature: (zero, one)},
        )

    def _pairs(self, zero: Outcomes, one: Outcomes, slack: float) -> tuple[IntArray, IntArray]:
        counts = np.searchsorted(one.loss, slack - zero.loss[: zero.within(slack)], side="right")
        total = int(counts.sum())
        self.n_outcomes += total
        if total > _MOST_OUTCOMES or self._should_stop():
            raise TooMany
        i = np.repeat(np.arange(counts.size), counts)
        j = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return i, j

    def _pruned(self, options: list[Outcomes], slack: float) -> Outcomes:
        """Of equal uses the best value; sorted by loss."""
        loss = np.concatenate([option.loss for option in options])
        results = np.concatenate([option.results for option in options])
        if loss.size > _MOST_OUTCOMES:
            raise TooMany
        kept = np.flatnonzero(loss <= slack)
        keys = np.rint(results[kept, 1:] / self._grain)
        order = np.lexsort((-results[kept, 0], *keys.T))
        keys = keys[order]
        new = np.ones(order.size, dtype=bool)
        new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        kept = kept[order[new]]
        kept = kept[np.argsort(loss[kept], kind="stable")]
        feature, first, second = (
            np.concatenate([getattr(option, name) for option in options])[kept]
            for name in ("feature", "first", "second")
        )
        sides = {feature: pair for option in options for feature, pair in option.sides.items()}
        return Outcomes(loss[kept], results[kept], feature, first, second, sides)

    # ---------------------------------------------------------------- what is found

    def _offer_best(self, found: Outcomes, count: int) -> None:
        keeps = np.all(found.results[:count, 1:] <= self.problem.upper + self._room, axis=1)
        better = np.flatnonzero(keeps & (found.results[:count, 0] > self._value))
        for place in better[np.argsort(-found.results[better, 0], kind="stable")]:
            if found.results[place, 0] <= self._value:
                break
            value = float(found.results[place, 0])
            self._value = max(self._value, self._offer(found.tree(int(place))))
            if self._value < value - 1e-12 * self.problem.total_weight:
                self._doubt = max(self._doubt, value)

    def _offer_joined(self, feature: int, zero: Outcomes, one: Outcomes, slack: float) -> None:
        """The best pair that keeps the limits; pairs are made in parts, and forgotten."""
        counts = np.searchsorted(one.loss, slack - zero.loss[: zero.within(slack)], side="right")
        ends = np.cumsum(counts)
        self.n_outcomes += int(counts.sum())
        begin = 0
        while begin < counts.size:
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _PART, side="right")))
            if self._should_stop():
                raise TooMany
            own = counts[begin:end]
            a = np.repeat(np.arange(begin, end), own)
            b = np.arange(a.size) - np.repeat(np.cumsum(own) - own, own)
            better = np.flatnonzero(zero.results[a, 0] + one.results[b, 0] > self._value)
            a, b = a[better], b[better]
            found = Outcomes(
                zero.loss[a] + one.loss[b],
                zero.results[a] + one.results[b],
                np.full(a.size, feature),
                a,
                b,
                {feature: (zero, one)},
            )
            self._offer_best(found, a.size)
            begin = end
