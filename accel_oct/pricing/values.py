"""Best priced values of the sides of every split, from which all losses are measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.pricing.limited import PricedProblem
from accel_oct.pricing.problem import LimitedProblem, priced_rows
from accel_oct.pricing.sets import rewards_of
from accel_oct.subtree.deep_levels import DeepLevels
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.profile_solver import sides_from_pairs
from accel_oct.subtree.reduction import both_sides, reduce_data
from accel_oct.subtree.stopping import Stopper

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Sides = tuple[IntArray, FloatArray, FloatArray]
"""Features, and the best values of their zero sides and one sides."""


def column_keys(problem: LimitedProblem) -> list[bytes | None]:
    """Equal for equal or complementary columns with the same rules; None where a column splits nothing or may not."""
    X, rules = problem.X, problem.rules
    if not X.size:
        return [None] * X.shape[1]
    splits = X ^ X[:1]
    words = np.ascontiguousarray(np.packbits(splits, axis=0).T)
    apart = np.zeros((X.shape[1], 0), dtype=bool) if rules is None or rules.apart is None else rules.apart
    usable = np.asarray(splits.any(axis=0))
    if apart.size:
        usable &= ~apart.diagonal()
    return [
        words[column].tobytes() + apart[column].tobytes() if usable[column] else None for column in range(X.shape[1])
    ]


def distinct_columns(problem: LimitedProblem) -> IntArray:
    """Columns that split the points, one of each set of equal or complementary ones with the same rules."""
    seen: dict[bytes, int] = {}
    for column, key in enumerate(column_keys(problem)):
        if key is not None:
            seen.setdefault(key, column)
    return np.array(list(seen.values()), dtype=np.int64)


def _nothing() -> Sides:
    return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)


class RootValues:
    """Best priced values of the sides of every feature, for all points; and one level lower where tables have them.

    Attributes
    ----------
    known : bool
        False where there is no room for the tables, or no compiled code, or the time was up.
    value, spread : float
        The best priced value, and a loss that no tree exceeds.
    columns : int array
        Features that split the points, one of each set of equal or complementary ones.
    """

    def __init__(
        self,
        problem: LimitedProblem,
        priced: PricedProblem,
        should_stop: Callable[[], bool],
        threads: int,
        memory_limit: int,
    ) -> None:
        self.columns = distinct_columns(problem)
        self.known = True
        self._below: FloatArray | None = None
        self._problem, self._priced = problem, priced
        if problem.max_depth <= 2 or not self.columns.size:
            self._sides = self._by_sums()
        else:
            self._sides = self._by_tables(Stopper(None, should_stop), threads, memory_limit)
        leaf = float(priced.weights.sum(axis=0).max()) - priced.leaf_price
        sums = self._sides[1] + self._sides[2] if problem.max_depth else np.empty(0)
        self.value = max(leaf, float(sums.max(initial=-np.inf)))
        # No tree has a larger loss: rewards are not negative.
        self.spread = self.value + priced.leaf_price * 2**problem.max_depth

    def _by_sums(self) -> Sides:
        """Depth two or less."""
        height = max(1, self._problem.max_depth)
        everyone = np.arange(len(self._problem.X))
        best = native.best_sides(everyone, self.columns, height, rewards_of(self._problem, self._priced))
        return self.columns, best[:, 0], best[:, 1]

    def _by_tables(self, stopper: Stopper, threads: int, memory_limit: int) -> Sides:
        problem, priced, depth = self._problem, self._priced, self._problem.max_depth
        rows = priced_rows(priced, problem.rules)
        data = reduce_data(problem.X[rows.point], rows.label, rows.weights, problem.gains.shape[1], rows.rules)
        pairs = PairLevel(data, stopper, DeepLevels.table_limit(memory_limit, threads))
        self.known = (
            depth <= 4
            and pairs.exact
            and DeepLevels.possible(pairs, memory_limit, threads)
            and (depth == 3 or DeepLevels.fits(pairs, memory_limit))
        )
        if not self.known:
            return _nothing()
        deep = DeepLevels(pairs, depth == 4, threads)
        self.known = deep.level_three(stopper) and (depth == 3 or deep.level_four(stopper))
        if not self.known:
            return _nothing()
        profiles = deep.side_profiles
        if depth == 4:
            self._below = deep.pair_profiles()
            profiles = sides_from_pairs(pairs, self._below)
        self._pairs = pairs
        self._profiles = profiles, both_sides(data.weights, data.X)
        self._column_of = {int(feature): column for column, feature in enumerate(data.feature)}
        return self._both(*self._profiles, 1)

    def _both(self, profiles: FloatArray, weights: FloatArray, least: int) -> Sides:
        """Best values of both sides of every column with `least` leaves or more, from profiles in table units."""
        data = self._pairs.data
        scores = self._pairs.units.to_score(profiles, weights[..., None])
        leaves = np.arange(1, profiles.shape[-1] + 1)
        values = (scores - self._priced.leaf_price * leaves)[..., least - 1 :].max(axis=-1)
        zero = np.where(data.flipped, values[:, 1], values[:, 0])
        one = np.where(data.flipped, values[:, 0], values[:, 1])
        return data.feature, zero, one

    def sides(self, least: int = 1) -> Sides:
        """Below the root; for depths of three and four also bounds for sides with at least so many leaves."""
        return self._sides if least == 1 else self._both(*self._profiles, least)

    def sides_below(self, feature: int, side: bool, least: int = 1) -> Sides:
        """Below one side of a root feature, for depth four."""
        assert self._below is not None
        data = self._pairs.data
        column = self._column_of[feature]
        here = int(side) ^ int(data.flipped[column])
        rows = data.X[:, column] == here
        weights = both_sides(data.weights * rows, data.X)
        features, zero, one = self._both(self._below[column, here], weights, least)
        splits = np.flatnonzero((data.X[rows] != data.X[rows][:1]).any(axis=0))
        return features[splits], zero[splits], one[splits]
