"""Trees under limits on the distinct points of the data: problem, best priced values and best trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel_oct import native
from accel_oct.data import BinaryDataset, ScoredDataset
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.dataset import equal_rows
from accel_oct.data.weights import accurate_sums
from accel_oct.exact.counts import column_keys, pair_sums
from accel_oct.exact.enumeration import PointSets
from accel_oct.exact.frontier import sides_from_pairs
from accel_oct.exact.levels import DeepLevels, PairLevel
from accel_oct.exact.limited import Limit, Limited, PricedProblem, SetOutcomes, SideTables, TableSides, scaled_limits
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.price_search import best_tree
from accel_oct.exact.samples import RowSamples, reduce_data
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

#: Bits of the total to which priced weights are rounded, so that all their sums are exact.
_TOTAL_BITS = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class LimitedProblem(PointSets, Limited):
    """Best trees under limits, in arrays over the distinct points of the data, `X` (n_points, n_features)."""

    X: BoolMatrix

    @classmethod
    def of(
        cls,
        dataset: BinaryDataset,
        limits: Sequence[Limit],
        leaf_price: float,
        max_depth: int,
        rules: LocalRules | None = None,
        scored: BinaryDataset | None = None,
        merge: bool = True,
    ) -> LimitedProblem:
        """Return the problem of limits and rules about the rows of `dataset`, with the rewards of `scored` if given.

        Without `merge` every row is a point of its own, in the order of the rows, even if rows are equal.
        """
        first = point = np.arange(dataset.n_samples)
        if merge:
            points = equal_rows(dataset.X)
            first, point = points.first, points.group_of
        shape = (first.size, dataset.n_classes)
        gains = np.zeros(shape)
        rows = dataset if scored is None else scored
        row_point = point[rows.source] if isinstance(rows, ScoredDataset) else point
        np.add.at(gains, (row_point, rows.y), rows.weights)
        uses = np.zeros((len(limits), *shape))
        for j, limit in enumerate(limits):
            if limit.predictions is not None:
                uses[j] = accurate_sums(limit.predictions, point, first.size)
        leaf_uses, upper, scales = scaled_limits(limits, uses, np.ones(first.size), max_depth)
        if rules is not None:
            rules = _merged(rules, point, first.size)
        return cls(
            X=dataset.X[first],
            gains=gains,
            uses=uses,
            leaf_uses=leaf_uses,
            upper=upper,
            leaf_price=leaf_price,
            max_depth=max_depth,
            scales=scales,
            rules=rules,
        )

    @property
    def total_weight(self) -> float:
        return float(self.gains.sum())

    @property
    def size(self) -> int:
        return len(self.X)

    def outcome(self, tree: DecisionTree) -> FloatArray:
        rows, predicted = np.arange(len(self.X)), tree.predictions(self.X)
        value = float(self.gains[rows, predicted].sum()) - self.leaf_price * tree.n_leaves
        used = self.uses[:, rows, predicted].sum(axis=1) + self.leaf_uses * tree.n_leaves
        return np.concatenate([[value], used])

    def leaf_amounts(self, samples: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.gains[samples].sum(axis=0), self.uses[:, samples].sum(axis=1)

    def priced_leaves(self, priced: PricedProblem, samples: IntArray) -> FloatArray:
        return np.asarray(priced.weights[samples].sum(axis=0))

    @cached_property
    def rounding(self) -> FloatArray:
        largest = np.abs(self.uses).max(axis=2).sum(axis=1) + 2**self.max_depth * np.abs(self.leaf_uses)
        return np.asarray((1e-12 + len(self.X) * 2.0**-52) * np.maximum(1.0, largest + np.abs(self.upper)))

    def restricted(self, columns: IntArray) -> LimitedProblem:
        """Return the problem with some of the features; points that agree in all of them are merged."""
        X = self.X[:, columns]
        points = equal_rows(X)
        first, point = points.first, points.group_of
        gains = np.zeros((first.size, self.gains.shape[1]))
        np.add.at(gains, point, self.gains)
        uses = np.zeros((self.n_limits, *gains.shape))
        for j, all_ in enumerate(self.uses):
            uses[j] = accurate_sums(all_, point, first.size)
        rules = None if self.rules is None else _merged(self.rules, point, first.size).of_columns(columns)
        return replace(self, X=X[first], gains=gains, uses=uses, rules=rules)

    def priced(self, prices: FloatArray) -> PricedProblem:
        rewards = self.gains - np.tensordot(prices, self.uses, axes=1)
        leaf_price = self.leaf_price + float(prices @ self.leaf_uses)
        # The reward of the worst class at every point is a constant: every tree earns it.
        free = rewards.min(axis=1)
        weights = rewards - free[:, None]
        total = float(weights.sum()) + 2**self.max_depth * abs(leaf_price)
        bits = _TOTAL_BITS - (math.frexp(total)[1] if total > 0 else 0)
        rounded, price = _on_grid(weights, bits), float(_on_grid(np.array([leaf_price]), bits)[0])
        # Keep points with equal rewards for all classes: they may use limits.
        rounded[rounded.max(axis=1) == 0.0, 0] = math.ldexp(1.0, -bits)
        error = float(np.abs(rounded - weights).max(axis=1).sum()) + 2**self.max_depth * abs(price - leaf_price)
        # Priced uses may cancel out in the rewards; their rounding errors do not.
        noise = 1e-12 * float(np.abs(self.gains).sum()) + float(np.abs(prices) @ self.rounding)
        return PricedProblem(
            prices=prices,
            weights=rounded,
            leaf_price=price,
            constant=float(free.sum()) + float(prices @ self.upper),
            error=error + noise,
            grid_bits=bits,
        )

    # ---------------------------------------------------------------- at some prices

    @cached_property
    def columns(self) -> IntArray:
        seen: dict[bytes, int] = {}
        for column, key in enumerate(split_keys(self)):
            if key is not None:
                seen.setdefault(key, column)
        return np.array(list(seen.values()), dtype=np.int64)

    def side_tables(
        self,
        priced: PricedProblem,
        root: int | None,
        should_stop: Callable[[], bool],
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> SideTables:
        return PointTables(self, priced, should_stop, threads, memory_limit)

    def outcomes(self, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int) -> SetOutcomes:
        return SetOutcomes(self.priced_rewards(priced), should_stop, **limits)

    def priced_rewards(self, priced: PricedProblem) -> native.Rewards:
        rules, X = self.rules, np.ascontiguousarray(self.X, dtype=np.uint8)
        mass = np.zeros(len(X)) if rules is None else np.ascontiguousarray(rules.masses[0])
        return self.rewards(priced, X, mass, 0.0 if rules is None else float(rules.least[0]))

    def best_priced(
        self,
        priced: PricedProblem,
        root: int | None,
        *,
        should_stop: Callable[[], bool] | None = None,
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> tuple[DecisionTree, float]:
        rows = priced_rows(priced, self.rules)

        def best(points: BoolArray, depth: int, path: tuple[int, ...]) -> tuple[DecisionTree, float]:
            own = points[rows.point]
            if not own.any():
                return DecisionTree.leaf(0, depth), -priced.leaf_price
            found = best_tree(
                self.X[rows.point[own]],
                rows.label[own],
                rows.weights[own],
                self.n_classes,
                depth,
                priced.leaf_price,
                rules=None if rows.rules is None else rows.rules.of_rows(own).below(path),
                should_stop=should_stop,
                threads=threads,
                memory_limit=memory_limit,
            )
            return found.tree, found.bound

        if root is None:
            return best(np.ones(len(self.X), dtype=bool), self.max_depth, ())
        split = self.X[:, root]
        zero, one = (best(side, self.max_depth - 1, (root,)) for side in (~split, split))
        return DecisionTree.branch(root, zero[0], one[0]), zero[1] + one[1]


class PricedRows(NamedTuple):
    """Weighted samples: the point, the class and the weight of each, and the rules about them."""

    point: IntArray
    label: IntArray
    weights: FloatArray
    rules: LocalRules | None


def priced_rows(priced: PricedProblem, rules: LocalRules | None) -> PricedRows:
    """Return the nonzero priced weights as weighted samples; the first sample of each point has its mass."""
    point, label = np.nonzero(priced.weights)
    if rules is not None:
        first = np.append(True, point[1:] != point[:-1])
        rules = LocalRules(rules.masses[:, point] * first, rules.least, rules.apart)
    return PricedRows(point, label, priced.weights[point, label], rules)


def _merged(rules: LocalRules, point: IntArray, n_points: int) -> LocalRules:
    """Return rules about rows as rules about the points that the rows belong to."""
    masses = np.zeros((len(rules.least), n_points))
    np.add.at(masses.T, point, rules.masses.T)
    return LocalRules(masses, rules.least, rules.apart)


def _on_grid(values: FloatArray, bits: int) -> FloatArray:
    return np.ldexp(np.rint(np.ldexp(values, bits)), -bits)


def split_keys(problem: LimitedProblem) -> list[bytes | None]:
    """Return keys of columns, None for unusable ones; equal for equal or complementary columns with the same rules."""
    X, rules = problem.X, problem.rules
    apart = np.zeros((X.shape[1], 0), dtype=bool) if rules is None or rules.apart is None else rules.apart
    usable = np.asarray(X.any(axis=0) & ~X.all(axis=0))
    if apart.size:
        usable &= ~apart.diagonal()
    keys = zip(column_keys(X), apart, usable, strict=True)
    return [key + own.tobytes() if good else None for key, own, good in keys]


def _nothing() -> TableSides:
    return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)


class PointTables(SideTables):
    """Best priced values of the sides of every feature, and one level lower for depth four.

    `below` keeps the values one level lower for depth three too, if the memory limit allows it.
    """

    by_leaves = True

    def __init__(
        self,
        problem: LimitedProblem,
        priced: PricedProblem,
        should_stop: Callable[[], bool],
        threads: int,
        memory_limit: int,
        below: bool = False,
    ) -> None:
        self.columns = problem.columns
        self.known = True
        self._below: Callable[[int, int], FloatArray] | None = None
        self._problem, self._priced = problem, priced
        if problem.max_depth <= 2 or not self.columns.size:
            self._sides = self._by_sums(should_stop)
        else:
            self._sides = self._by_tables(Stopper(None, should_stop), threads, memory_limit, below)
        self.has_values_below = self._below is not None
        leaf = float(priced.weights.sum(axis=0).max()) - priced.leaf_price
        sums = self._sides[1] + self._sides[2] if problem.max_depth else np.empty(0)
        self.value = max(leaf, float(sums.max(initial=-np.inf)))
        # Upper bound on the loss of all trees: rewards are not negative.
        self.spread = self.value + priced.leaf_price * 2**problem.max_depth

    def _by_sums(self, should_stop: Callable[[], bool]) -> TableSides:
        """Compute values for depth two or less."""
        height = max(1, self._problem.max_depth)
        everyone = np.arange(len(self._problem.X))
        rewards = self._problem.priced_rewards(self._priced)
        try:
            best = native.best_sides(everyone, self.columns, height, rewards, should_stop)
        except native.Stopped:
            self.known = False
            return _nothing()
        return self.columns, best[:, 0], best[:, 1]

    def _by_tables(self, stopper: Stopper, threads: int, memory_limit: int, below: bool) -> TableSides:
        problem, priced, depth = self._problem, self._priced, self._problem.max_depth
        rows = priced_rows(priced, problem.rules)
        data = reduce_data(problem.X[rows.point], rows.label, rows.weights, problem.gains.shape[1], rows.rules)
        pairs = PairLevel(data, stopper, DeepLevels.table_limit(memory_limit, threads))
        self.known = (
            depth <= 4
            and pairs.exact
            and DeepLevels.possible(pairs, memory_limit, threads)
            and (depth == 3 or DeepLevels.fits(pairs, memory_limit - _pair_bytes(data)))
        )
        if not self.known:
            return _nothing()
        kept = DeepLevels.score_bytes(pairs) + _pair_bytes(data) + pairs.table_bytes
        below = below and depth == 3 and kept <= memory_limit
        deep = DeepLevels(pairs, depth == 4, threads, keep_scores=below)
        self.known = deep.level_three(stopper) and (depth == 3 or deep.level_four(stopper))
        if not self.known:
            return _nothing()
        profiles = deep.side_profiles
        if depth == 4:
            both = deep.pair_profiles()
            self._below = lambda column, side: both[column, side]
            profiles = sides_from_pairs(pairs, both)
        elif below:
            self._below = deep.scores_below
        self._data, self._units = data, pairs.units
        self._profiles = profiles, data.side_weights
        self._column_of = {int(feature): column for column, feature in enumerate(data.feature)}
        return self._both(*self._profiles, 1)

    def _both(self, profiles: FloatArray, weights: FloatArray, least: int) -> TableSides:
        """Return best values of both sides of every column with at least `least` leaves, from profiles."""
        data = self._data
        scores = self._units.to_score(profiles, weights[..., None])
        leaves = np.arange(1, profiles.shape[-1] + 1)
        values = (scores - self._priced.leaf_price * leaves)[..., least - 1 :].max(axis=-1)
        zero = np.where(data.flipped, values[:, 1], values[:, 0])
        one = np.where(data.flipped, values[:, 0], values[:, 1])
        return data.feature, zero, one

    def sides(self, least: int = 1) -> TableSides:
        """Return values below the root; `least` may be two for depths of three and four."""
        return self._sides if least == 1 else self._both(*self._profiles, least)

    def sides_below(self, feature: int, side: bool, least: int = 1) -> TableSides:
        assert self._below is not None
        data = self._data
        column = self._column_of[feature]
        here = int(side) ^ int(data.flipped[column])
        weights, ones = (_side_sums(*sums, column, here) for sums in self._pairs)
        features, zero, one = self._both(self._below(column, here), weights, least)
        splits = np.flatnonzero(ones.min(axis=1) > 0)
        return features[splits], zero[splits], one[splits]

    @cached_property
    def _pairs(self) -> list[tuple[FloatArray, float]]:
        """Weights and numbers of the rows in which both of two columns are one, and of all rows."""
        data = self._data
        weights = pair_sums(data.weights, data.X), data.weights.sum()
        numbers = weights if (data.weights > 0).all() else (pair_sums(np.ones(len(data.X)), data.X), len(data.X))
        return [weights, numbers]


def _pair_bytes(data: RowSamples) -> int:
    """Return the bytes of `PointTables._pairs`."""
    return (1 if (data.weights > 0).all() else 2) * 8 * data.n_features**2


def _side_sums(both: FloatArray, total: float, column: int, side: int) -> FloatArray:
    """Return the sums (F, 2) on both sides of every column, over the rows on one side of one column."""
    one = both[column] if side else both.diagonal() - both[column]
    here = both[column, column] if side else total - both[column, column]
    return np.stack([here - one, one], axis=1)
