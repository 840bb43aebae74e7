"""Trees under limits on the cells of a tally: problem, best priced values, best trees and outcomes, all from counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accel_oct import native
from accel_oct.data import TallySets
from accel_oct.data.column_sets import n_sets
from accel_oct.data.tally import Path
from accel_oct.exact.enumeration import PathSets
from accel_oct.exact.limited import (
    Limit,
    Limited,
    PricedProblem,
    SetOutcomes,
    SideTables,
    TableSides,
    TooMany,
    scaled_limits,
)
from accel_oct.exact.local_rules import LocalRules
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

MOST_DEPTH = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class CellProblem(PathSets, Limited):
    """Best trees under limits, in arrays over the cells of a tally.

    Attributes
    ----------
    counts : float array (n_cells,)
        Counts of all samples, in units of the tally.
    masses : float array (n_cells,)
        Mass of a unit of each cell for the local rules.
    """

    trees: TalliedTrees
    sets: TallySets
    counts: FloatArray
    masses: FloatArray

    @classmethod
    def of(
        cls,
        trees: TalliedTrees,
        gains: FloatArray,
        limits: Sequence[Limit],
        leaf_price: float,
        max_depth: int,
        rules: LocalRules | None = None,
    ) -> CellProblem:
        """Return the problem of limits and rules about whole cells, which apply to parts of cells in proportion."""
        tally = trees.tally
        counts = tally.counts[0][:, 0].astype(np.float64)
        per_unit = np.divide(1.0, counts, out=np.zeros(counts.size), where=counts > 0)
        uses = np.zeros((len(limits), *gains.shape))
        for j, limit in enumerate(limits):
            if limit.predictions is not None:
                uses[j] = limit.predictions * per_unit[:, None]
        leaf_uses, upper, scales = scaled_limits(limits, uses, counts, max_depth)
        masses = np.zeros(counts.size) if rules is None else np.broadcast_to(rules.masses[0], counts.shape) * per_unit
        return cls(
            trees=trees,
            sets=TallySets(tally),
            counts=counts,
            gains=gains,
            uses=uses,
            masses=masses,
            leaf_uses=leaf_uses,
            upper=upper,
            leaf_price=leaf_price,
            max_depth=max_depth,
            scales=scales,
            rules=rules,
        )

    @property
    def total_weight(self) -> float:
        return float(self.counts @ self.gains.max(axis=1))

    @property
    def size(self) -> int:
        tally = self.trees.tally
        return min(tally.n_rows, n_sets(tally.n_features, self.max_depth))

    @cached_property
    def rounding(self) -> FloatArray:
        largest = np.abs(self.uses).max(axis=2) @ self.counts + 2**self.max_depth * np.abs(self.leaf_uses)
        return np.asarray(1e-12 * np.maximum(1.0, largest + np.abs(self.upper)))

    def outcome(self, tree: DecisionTree) -> FloatArray:
        counts, labels = self.trees.counts(tree).astype(np.float64), tree.label[tree.leaves - 1]
        value = float((counts * self.gains[:, labels].T).sum()) - self.leaf_price * tree.n_leaves
        used = (counts * self.uses[:, :, labels].transpose(0, 2, 1)).sum(axis=(1, 2)) + self.leaf_uses * tree.n_leaves
        return np.concatenate([[value], used])

    def priced(self, prices: FloatArray) -> PricedProblem:
        """Return the problem at some prices; weights are not rounded, and `error` bounds the floating-point error."""
        rewards = self.gains - np.tensordot(prices, self.uses, axes=1)
        free = rewards.min(axis=1)
        noise = 1e-12 * self.total_weight + float(np.abs(prices) @ self.rounding)
        return PricedProblem(
            prices=prices,
            weights=rewards - free[:, None],
            leaf_price=self.leaf_price + float(prices @ self.leaf_uses),
            constant=float(self.counts @ free) + float(prices @ self.upper),
            error=noise,
        )

    # ---------------------------------------------------------------- sets of samples

    def leaf_amounts(self, samples: Path) -> tuple[FloatArray, FloatArray]:
        counts = self.sets.totals(samples).astype(np.float64)
        return counts @ self.gains, counts @ self.uses

    def priced_leaves(self, priced: PricedProblem, samples: Path) -> FloatArray:
        return np.asarray(self.sets.totals(samples).astype(np.float64) @ priced.weights)

    @cached_property
    def columns(self) -> IntArray:
        """Columns that split the samples, one of each set of equal or complementary ones with the same rules."""
        total, single = int(self.sets.totals(()).sum()), self.sets.singles(()).sum(axis=0)
        usable = (single > 0) & (single < total)
        apart = None if self.rules is None else self.rules.apart
        if apart is not None:
            usable &= ~apart.diagonal()
        columns = np.flatnonzero(usable)
        if self.trees.tally.depth < 2:
            return columns
        both = self.sets.pairs(()).sum(axis=0)
        equal = (both == single) & (both == single[:, None])
        opposite = (both == 0) & (single + single[:, None] == total)
        found: list[int] = []
        for column in columns.tolist():
            alike = [other for other in found if equal[column, other] or opposite[column, other]]
            if not any(apart is None or np.array_equal(apart[column], apart[other]) for other in alike):
                found.append(column)
        return np.array(found, dtype=np.int64)

    # ---------------------------------------------------------------- at some prices

    def side_tables(
        self,
        priced: PricedProblem,
        root: int | None,
        should_stop: Callable[[], bool],
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> SideTables:
        return CellTables(self, priced, root, should_stop)

    def outcomes(self, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int) -> SetOutcomes:
        return CellOutcomes(self, priced, should_stop, **limits)

    def best_priced(
        self,
        priced: PricedProblem,
        root: int | None,
        *,
        should_stop: Callable[[], bool] | None = None,
        threads: int = 1,
        memory_limit: int = 1 << 30,
    ) -> tuple[DecisionTree, float]:
        return _best_tree(self, priced, root, should_stop or (lambda: False))


class CellOutcomes(SetOutcomes):
    """Outcomes of sets of samples of a tally; see `SetOutcomes`."""

    def __init__(
        self, problem: CellProblem, priced: PricedProblem, should_stop: Callable[[], bool], **limits: int
    ) -> None:
        nothing = np.empty((0, problem.trees.tally.n_features), dtype=np.uint8)
        least = 0.0 if problem.rules is None else _least(problem)
        super().__init__(problem.rewards(priced, nothing, np.empty(0), least), should_stop, **limits)
        self._problem = problem
        self._channels = np.column_stack([priced.weights, problem.masses])

    def _two(self, samples: Path, columns: IntArray, height: int, slack: float) -> native.FoundOutcomes | None:
        sets, n_cells = self._problem.sets, self._problem.counts.size
        totals = sets.totals(samples).astype(np.float64)
        single = np.zeros((columns.size, n_cells))
        both = np.zeros((columns.size, columns.size, n_cells))
        if height > 0:
            single[:] = sets.singles(samples)[:, columns].T
        if height > 1:
            both[:] = sets.pairs(samples)[:, columns[:, None], columns].transpose(1, 2, 0)
        priced = native.Priced(both @ self._channels, single @ self._channels, totals @ self._channels)
        table = native.CellTable(both, single, totals)
        return native.cell_outcomes_two(
            *(table, priced, columns, height, slack, self._most_pairs, self.rewards, self._memory_left),
            self._should_stop,
        )


class CellTables(SideTables):
    """Best priced values of the sides of columns; with a root, only those of this column."""

    by_leaves = False

    def __init__(
        self, problem: CellProblem, priced: PricedProblem, root: int | None, should_stop: Callable[[], bool]
    ) -> None:
        self.columns = problem.columns
        self._problem, self._priced = problem, priced
        self._first = priced.weights[:, 0]  # values are relative to the rewards of the first class
        roots = self.columns if root is None else np.array([root], dtype=np.int64)
        self.known = True
        self._below: dict[int, FloatArray] = {}
        try:
            self._sides = self._made(roots, should_stop)
        except native.Stopped:
            self.known = False
            self._sides = roots[:0], np.empty(0), np.empty(0)
        self.has_values_below = problem.max_depth == 4
        leaf = float(problem.priced_leaves(priced, ()).max()) - priced.leaf_price
        sums = self._sides[1] + self._sides[2] if problem.max_depth else np.empty(0)
        best = float(sums.max(initial=-np.inf))
        self.value = max(leaf, best) if root is None else best
        self.spread = self.value + priced.leaf_price * 2**problem.max_depth

    def sides(self, least: int = 1) -> TableSides:
        return self._sides

    def sides_below(self, feature: int, side: bool, least: int = 1) -> TableSides:
        problem, columns = self._problem, self.columns
        path = ((feature, side),)
        total, single = problem.sets.totals(path), problem.sets.singles(path)
        own = single.sum(axis=0)[columns]
        place = np.flatnonzero((own > 0) & (own < total.sum()) & np.isfinite(self._below[feature][:, 0, 0]))
        features = columns[place]
        one = self._first @ single[:, features]
        values = self._below[feature][place, int(side)]
        return features, values[:, 0] + float(self._first @ total) - one, values[:, 1] + one

    def _made(self, roots: IntArray, should_stop: Callable[[], bool]) -> TableSides:
        problem, columns, depth = self._problem, self.columns, self._problem.max_depth
        sums = _sums(problem, self._priced)
        best = np.empty((roots.size, 2))
        if depth <= 2:
            values = native.cell_values(-1, columns, max(1, depth), 0, sums, should_stop)
            best[:] = values[np.searchsorted(columns, roots), 0]
        else:
            alone = roots.size == 1
            every = np.full((columns.size, columns.size, 2, 2), -np.inf)
            for place, root in enumerate(roots.tolist()):
                if should_stop():
                    raise native.Stopped
                values = native.cell_values(root, columns, depth, 0 if alone else place + 1, sums, should_stop)
                if depth == 3:
                    best[place] = values[0, :, 0]
                elif alone:
                    self._below[root] = values
                else:
                    every[place, place + 1 :] = values[place + 1 :]
                    every[place + 1 :, place] = values[place + 1 :].transpose(0, 2, 1)
            for place, root in enumerate(roots.tolist() if depth == 4 else ()):
                below = self._below.setdefault(root, every[place])
                best[place] = self._with_leaf(root, below.sum(axis=2).max(axis=0, initial=-np.inf), sums)
        first = self._first @ problem.sets.singles(())[:, roots]
        return roots, best[:, 0] + float(self._first @ problem.counts) - first, best[:, 1] + first

    def _with_leaf(self, root: int, best: FloatArray, sums: native.CellSums) -> FloatArray:
        """Return the maximum of the best splits and a leaf, for both sides of a root."""
        ones = sums.one[root]
        leaves = np.stack([sums.none[0] - ones, ones])
        values = np.maximum(leaves[:, : sums.n_rewards].max(axis=1, initial=0.0), 0.0) - sums.leaf_price
        if leaves.shape[1] > sums.n_rewards:
            values[leaves[:, -1] < sums.least] = -np.inf
        return np.asarray(np.maximum(values, best))


def _best_tree(
    problem: CellProblem, priced: PricedProblem, root: int | None, should_stop: Callable[[], bool]
) -> tuple[DecisionTree, float]:
    """Return a best priced tree, with `root` at its root if given, and an upper bound on all such trees."""
    values = CellTables(problem, priced, root, should_stop)
    leaf = DecisionTree.leaf(int(problem.priced_leaves(priced, ()).argmax()))
    if not values.known:
        return leaf, float(problem.counts @ priced.weights.max(axis=1)) - priced.leaf_price
    outcomes = CellOutcomes(problem, priced, should_stop)

    def small(path: Path, height: int) -> DecisionTree:
        columns = problem.columns_below(values.columns, [feature for feature, _ in path])
        found = outcomes.two(tuple(sorted(path)), columns, height, priced.error)
        return found.tree(0) if found.loss.size else DecisionTree.leaf(0)

    def below(path: Path, height: int, sides: TableSides) -> DecisionTree:
        """Return the better of a leaf and the best split."""
        features, zero, one = sides
        totals = problem.priced_leaves(priced, path)
        best = int((zero + one).argmax()) if features.size else -1
        if best < 0 or (float(totals.max()) - priced.leaf_price >= zero[best] + one[best] and (path or root is None)):
            return DecisionTree.leaf(int(totals.argmax()))
        feature = int(features[best])
        parts = []
        for side in (False, True):
            longer = (*path, (feature, side))
            if height > 3:
                parts.append(below(longer, height - 1, values.sides_below(feature, side)))
            else:
                parts.append(small(longer, height - 1))
        return DecisionTree.branch(feature, parts[0], parts[1])

    try:
        if root is None and problem.max_depth <= 2:
            return small((), problem.max_depth), values.value
        return below((), problem.max_depth, values.sides()), values.value
    except TooMany:  # stopped
        return leaf, values.value


def _least(problem: CellProblem) -> float:
    """Return the least mass minus a tolerance: above the error of sums of masses, below their smallest difference."""
    assert problem.rules is not None
    return float(problem.rules.least[0]) - 1e-12 * float(problem.counts @ problem.masses)


def _sums(problem: CellProblem, priced: PricedProblem) -> native.CellSums:
    """Return the channels of all sets of columns, see `native.cell_values`."""
    tally, depth = problem.trees.tally, problem.max_depth
    channels = priced.weights[:, 1:] - priced.weights[:, :1]
    masses = problem.rules is not None and problem.rules.least[0] > 0
    if masses:
        channels = np.column_stack([channels, problem.masses])
    sizes = [
        np.ascontiguousarray((channels.T @ tally.counts[size]).T) if size <= max(depth, 1) else channels[:0]
        for size in range(MOST_DEPTH + 1)
    ]
    choose = [[math.comb(column, size) for size in range(MOST_DEPTH + 1)] for column in range(tally.n_features + 1)]
    none, one, two, three, four = sizes
    return native.CellSums(
        none=none,
        one=one,
        two=two,
        three=three,
        four=four,
        choose=np.array(choose, dtype=np.int64),
        apart=problem.apart(tally.n_features),
        n_rewards=priced.weights.shape[1] - 1,
        leaf_price=float(priced.leaf_price),
        least=_least(problem) if masses else -math.inf,
    )
