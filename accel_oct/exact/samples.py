"""Sets of samples as the tables read them: one interface, for rows and for tallies.

*Rows* are reduced without a change of the optimal trees. Rows that agree in every feature and in the class become one
weighted row. Constant columns are removed, of equal or complementary columns the one with the smallest index is kept,
each column is flipped so that its ones are the minority, and columns are sorted by their number of ones: counts are
taken inside intersections of one-sides, and the outer loops run over the sparse columns. Under local rules masses add
up like weights, a row without weight is kept if it has mass, a column with a side that is too light is removed, and
columns are interchangeable only if the same columns must stay apart from them.

A *tally* has counts of sets of columns instead of rows. Two of its answers are weaker, because it does not know which
samples are equal: its ceiling is the total reward, and it finds no light columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_oct.data import Tally
from accel_oct.data.column_sets import given
from accel_oct.data.dataset import equal_rows
from accel_oct.data.weights import round_to_grid
from accel_oct.exact.counts import (
    ClassRewards,
    CompiledCounts,
    PairCounts,
    ProductCounts,
    TallyCounts,
    as_factor,
    both_sides,
    column_keys,
    weighted_sums,
)
from accel_oct.exact.local_rules import LocalRules
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

if TYPE_CHECKING:
    from typing import Self  # new in Python 3.11


@dataclass(frozen=True, eq=False)
class Samples(ABC):
    """A set of samples with the columns that can split it.

    Scores are in units of the weights. Arrays (F, 2) have the zero side and the one side of every column.

    Attributes
    ----------
    feature : int64 array (F,)
        Index of each column in the original data.
    flipped : bool array (F,)
        Whether a column is the complement of the original one.
    rules : LocalRules or None
        For these samples and columns. Both sides of every column are allowed as leaves.
    """

    n_classes: int
    feature: IntArray
    flipped: BoolArray
    rules: LocalRules | None

    @property
    def n_features(self) -> int:
        """Number of columns kept."""
        return int(self.feature.size)

    @property
    def signed(self) -> bool:
        """Whether there are two classes, so that one signed number per set of samples is enough."""
        return self.n_classes == 2

    @property
    def statistic(self) -> ClassRewards:
        """The score of leaves."""
        return ClassRewards(self.signed, () if self.rules is None else self.rules.least)

    @property
    def n_distinct(self) -> int | None:
        """Number of distinct rows; None for a tally."""
        return None

    @property
    def allows_a_leaf(self) -> bool:
        """Whether a single leaf is allowed; if not, no tree is."""
        return self.rules is None or self.rules.allow_a_leaf

    def has_room_for(self, leaves: int) -> bool:
        """Return False if the rules rule out trees with this number of leaves."""
        return self.rules is None or bool(np.all(self.rules.room_for(leaves, self.rules.totals)))

    def branch(self, column: int, zero: DecisionTree, one: DecisionTree) -> DecisionTree:
        """Return the tree that branches on a column, in the original features (the flip of the column is undone)."""
        if self.flipped[column]:
            zero, one = one, zero
        return DecisionTree.branch(int(self.feature[column]), zero, one)

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values that are read to restrict the set to one side of a column."""

    @property
    @abstractmethod
    def class_weights(self) -> FloatArray:
        """Score (K,) of a leaf of each class."""

    @property
    def total_weight(self) -> float:
        """Sum of the class weights."""
        return float(self.class_weights.sum())

    @property
    @abstractmethod
    def side_weights(self) -> FloatArray:
        """Total weights (F, 2) of the sides."""

    @property
    @abstractmethod
    def ceiling(self) -> float:
        """Upper bound on the score of all trees."""

    @property
    @abstractmethod
    def side_ceilings(self) -> FloatArray:
        """Upper bounds (F, 2) on the scores of all trees on a side."""

    @abstractmethod
    def beyond(self, column: int, side: int) -> FloatArray:
        """Return bounds (F, 2) on V(S) - V(S') for all sides S, with S' the given side of a column.

        Similar support: V(S) <= V(S') + W(S - S'), because the best tree of S is a tree of S'. Under rules it has to
        be allowed on S': no leaf may lose mass, so S - S' must have none, and every column that may be used below the
        column of S must be allowed below that of S'; the bound is infinite otherwise.
        """

    @abstractmethod
    def at(self, *path: tuple[int, int]) -> Self:
        """Return the samples at the end of a path of (column, side), with the columns that may split them."""

    @abstractmethod
    def without_light_columns(self, leaf_price: float) -> Self:
        """Return the samples without columns that some best tree for this leaf price does not use."""

    @abstractmethod
    def counts(self, stopper: Stopper, table_limit: int = 0, *, pairs: bool = True) -> PairCounts:
        """Count all pairs of columns, with the best further split of each side.

        Parameters
        ----------
        stopper : Stopper
            Checked between steps of some features.
        table_limit : int
            Largest size in bytes of a table of pairs that is kept; small tables are always kept.
        pairs : bool
            False: count single columns only.
        """


@dataclass(frozen=True, eq=False)
class RowSamples(Samples):
    """Samples as rows, without redundant rows and columns; made by `reduce_data`.

    Attributes
    ----------
    X : uint8 array (n, F)
        Remaining columns, with the flips of `flipped` applied.
    y, weights : arrays (n,)
        Class index and weight of each row. A weight is zero only if a rule gives the row a mass.
    row_ceiling : float array (n,)
        Share of each row in the equivalent-point bound: the sum over samples S is E(S). The majority weight of a point
        (rows with equal features) is assigned to its first row, so the sum over any union of points is exact.
    """

    X: NDArray[np.uint8]
    y: IntArray
    weights: FloatArray
    row_ceiling: FloatArray

    @property
    def n_samples(self) -> int:
        """Number of distinct rows."""
        return int(self.X.shape[0])

    @property
    def n_distinct(self) -> int:
        return self.n_samples

    @property
    def size(self) -> int:
        return int(self.X.size)

    @cached_property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return float(self.weights.sum())

    @cached_property
    def class_weights(self) -> FloatArray:
        """Weight of each class."""
        return np.bincount(self.y, self.weights, self.n_classes).astype(np.float64)

    @cached_property
    def _factor(self) -> Array:
        return as_factor(self.X)

    @cached_property
    def side_weights(self) -> FloatArray:
        return both_sides(self.weights, self._factor)

    @cached_property
    def ceiling(self) -> float:
        """The equivalent-point bound E."""
        return float(self.row_ceiling.sum())

    @cached_property
    def side_ceilings(self) -> FloatArray:
        return both_sides(self.row_ceiling, self._factor)

    def beyond(self, column: int, side: int) -> FloatArray:
        outside = self.X[:, column] != side
        extra = both_sides(self.weights * outside, self._factor)
        if self.rules is None:
            return extra
        lost = np.any([both_sides(mass * outside, self._factor) > 0 for mass in self.rules.masses], axis=0)
        return np.where(lost | ~self.rules.carries_over(column)[:, None], np.inf, extra)

    def at(self, *path: tuple[int, int]) -> RowSamples:
        rows = np.all([self.X[:, column] == side for column, side in path], axis=0)
        return self.restricted(rows, *(column for column, _ in path))

    def restricted(self, rows: Array, *path: int) -> RowSamples:
        """Return some of the rows, with the columns reduced to those that may split them below a path of columns."""
        part = replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weights=self.weights[rows],
            row_ceiling=self.row_ceiling[rows],
            rules=None if self.rules is None else self.rules.of_rows(rows),
        )
        return part._with_reduced_columns(path)

    def _with_reduced_columns(self, path: tuple[int, ...]) -> RowSamples:
        """Return the rows with the columns that split them and may be used below a path, one of each equal set."""
        X, rules, n_samples = self.X, self.rules, self.n_samples
        usable = np.arange(self.n_features)
        if rules is not None:
            usable = _usable_columns(X, rules, path)
            X, rules = X[:, usable], rules.of_columns(usable)
        feature, ones = self.feature[usable], X.sum(axis=0, dtype=np.int64)
        keys = column_keys(X)
        if rules is not None and rules.apart is not None:
            keys = [key + partners.tobytes() for key, partners in zip(keys, rules.apart, strict=True)]
        # Of equal columns the smallest original index is kept, whatever the current order of the columns is.
        kept: dict[bytes, int] = {}
        for column in np.argsort(feature, kind="stable").tolist():
            if 0 < ones[column] < n_samples:
                kept.setdefault(keys[column], column)
        chosen = np.array(list(kept.values()), dtype=np.int64)
        flip = 2 * ones[chosen] > n_samples
        minority = np.where(flip, n_samples - ones[chosen], ones[chosen])
        order = np.argsort(minority, kind="stable")
        chosen, flip = chosen[order], flip[order]
        columns = np.take(X, chosen, axis=1)
        columns ^= flip.astype(np.uint8)
        return replace(
            self,
            X=columns,
            feature=feature[chosen],
            flipped=self.flipped[usable][chosen] ^ flip,
            rules=None if rules is None else rules.of_columns(chosen),
        )

    def counts(self, stopper: Stopper, table_limit: int = 0, *, pairs: bool = True) -> PairCounts:
        rules, statistic = self.rules, self.statistic
        masses, apart = (None, None) if rules is None else (rules.masses, rules.apart)
        # Kernels support one mass; several are counted by matrix products, and root features searched one by one.
        if pairs and (rules is None or len(rules.least) == 1):
            rows = self.X, self.y, self.weights, self.n_classes
            return CompiledCounts(*rows, statistic, stopper, table_limit, masses=masses, apart=apart)
        amounts = ClassRewards.amounts(self.y, self.weights, self.n_classes)
        amounts = amounts if masses is None else np.concatenate([amounts, masses])
        return ProductCounts(self.X, amounts, statistic, stopper, pairs=pairs, apart=apart)

    def without_light_columns(self, leaf_price: float) -> RowSamples:
        """Return the samples without columns that some best tree for this leaf price (in units of weight) does not use.

        *Rule.* Let E(S) be the equivalent-point bound of a set: no tree scores more on it. A column is removed if E of
        one of its sides is at most the leaf price.

        *Proof.* Let T be any tree with a node that branches on such a column c, S the samples that get to the node, A
        the subtree on the light side of c and B the other one. Put B in the place of the node. Samples of the other
        side are classified as before. Those of the light side, S' within S, scored at most E(S') <= E(light side) <=
        price with A, and score something that is not negative with B, so at most the price is lost. The tree has as
        many leaves less as A has, one at least, so at least the price is saved. The value does not fall, the depth does
        not grow, and there is one branch on c less. Repeated, no branch on any such column is left: among the best
        trees there is one without them, also where the price is just met. Taking a column away changes no E, so all
        such columns may go together.

        *Rules.* Local rules allow the new tree if they allow T: leaves of B gain samples, so no leaf loses mass, and
        paths have columns less, never more. So the proof holds under them, too.

        It does not hold for a number of leaves in the place of a price.
        """
        lightest = self.row_ceiling[self.row_ceiling > 0].min(initial=np.inf)
        if leaf_price <= 0 or not self.n_features or leaf_price < lightest < np.inf:
            return self
        heavy = (self.side_ceilings > leaf_price).all(axis=1)
        if heavy.all():
            return self
        kept = np.flatnonzero(heavy)
        return replace(
            self,
            X=np.take(self.X, kept, axis=1),
            feature=self.feature[kept],
            flipped=self.flipped[kept],
            rules=None if self.rules is None else self.rules.of_columns(kept),
        )


@dataclass(frozen=True, eq=False)
class TallySamples(Samples):
    """Samples of a tally: rewards of sets of columns by class; made by `tallied_data`.

    Both sides of every column have weight and are allowed by the rules. No column is flipped.

    Attributes
    ----------
    values : tuple of float arrays (K + J, number of sets)
        By size of the sets of columns of the tally: the reward for class k of the samples in which all columns of the
        set are one, then their masses.
    apart : bool array (all columns, all columns) or None
        As in `LocalRules`.
    """

    values: tuple[FloatArray, ...]
    apart: BoolArray | None

    @property
    def size(self) -> int:
        return sum(part.size for part in self.values)

    @cached_property
    def class_weights(self) -> FloatArray:
        return self.values[0][: self.n_classes, 0]

    @property
    def n_columns(self) -> int:
        """Number of columns of the tally."""
        return self.values[1].shape[1] if len(self.values) > 1 else 0

    @cached_property
    def side_weights(self) -> FloatArray:
        return np.asarray(_sides(self._totals, self._single)[: self.n_classes].sum(axis=0))

    @property
    def ceiling(self) -> float:
        """The total reward: a tally does not know which samples are equal."""
        return self.total_weight

    @property
    def side_ceilings(self) -> FloatArray:
        return self.side_weights

    @property
    def _totals(self) -> FloatArray:
        return self.values[0][:, 0]

    @property
    def _single(self) -> FloatArray:
        return self.values[1][:, self.feature]

    def beyond(self, column: int, side: int) -> FloatArray:
        both, own = self._single.copy(), int(self.feature[column])
        others = np.delete(np.arange(self.n_features), column)
        small, large = np.minimum(self.feature[others], own), np.maximum(self.feature[others], own)
        both[:, others] = self.values[2][:, small + large * (large - 1) // 2]
        with_one = _sides(self._single[:, column], both)  # (K + J, F, 2), of the samples that have the column
        outside = _sides(self._totals, self._single) - with_one if side else with_one
        extra = np.asarray(outside[: self.n_classes].sum(axis=0))
        if self.rules is None:
            return extra
        lost = (outside[self.n_classes :] > 0).any(axis=0)
        return np.where(lost | ~self.rules.carries_over(column)[:, None], np.inf, extra)

    def at(self, *path: tuple[int, int]) -> TallySamples:
        values = self.values
        for column, side in path:
            values = given(values, self.n_columns, int(self.feature[column]), side)
        return _with_columns(values, self, self.feature[[column for column, _ in path]])

    def without_light_columns(self, leaf_price: float) -> TallySamples:
        """Return the samples unchanged: a tally does not know which columns are light."""
        return self

    def counts(self, stopper: Stopper, table_limit: int = 0, *, pairs: bool = True) -> PairCounts:
        rules = self.rules
        values = self.values
        if self.signed:
            values = tuple(np.concatenate([part[1:2] - part[:1], part[2:]]) for part in values)
        return TallyCounts(
            values,
            self.feature,
            self.statistic,
            float(np.abs(self._totals).sum()),
            kernels=pairs and (rules is None or len(rules.least) == 1),
            apart=None if rules is None else rules.apart,
        )


def _sides(totals: FloatArray, single: FloatArray) -> FloatArray:
    """Return the sums (channels, F, 2) of both sides from those of all samples and of the one sides."""
    return np.stack([totals[:, None] - single, single], axis=-1)


def reduce_data(
    X: ArrayLike, y: ArrayLike, weights: ArrayLike, n_classes: int, rules: LocalRules | None = None
) -> RowSamples:
    """Merge equal rows, remove rows without weight and mass, and reduce the columns.

    Parameters
    ----------
    X, y, weights, n_classes
        Binary features (n, F), class indices, weights on a dyadic grid, number of classes.
    rules : LocalRules, optional
        Rules about leaves and paths.
    """
    X, y, weights = np.asarray(X, dtype=bool), np.asarray(y, np.int64), np.asarray(weights, np.float64)
    keep = weights > 0 if rules is None else (weights > 0) | (rules.masses > 0).any(axis=0)
    if not keep.all():
        X, y, weights = X[keep], y[keep], weights[keep]
        rules = None if rules is None else rules.of_rows(keep)
    groups = equal_rows(X, y)
    merged = groups.sums(weights)
    ceiling = np.zeros(merged.size)
    if merged.size:
        # Rows of one point differ in the class, so the majority weight is the largest merged weight.
        first = np.flatnonzero(groups.new_point)
        ceiling[first] = np.maximum.reduceat(merged, first)
    if rules is not None:
        rules = LocalRules(np.array([groups.sums(mass) for mass in rules.masses]), rules.least, rules.apart)
    samples = RowSamples(
        n_classes=n_classes,
        feature=np.arange(X.shape[1]),
        flipped=np.zeros(X.shape[1], bool),
        rules=rules,
        X=X[groups.first].view(np.uint8),
        y=y[groups.first],
        weights=merged,
        row_ceiling=ceiling,
    )
    return samples._with_reduced_columns(())


def _usable_columns(X: NDArray[np.uint8], rules: LocalRules, path: tuple[int, ...]) -> IntArray:
    """Return the columns that are allowed below the path and have two sides that are heavy enough."""
    if not rules.allow_a_leaf:
        return np.zeros(0, dtype=np.int64)
    one = weighted_sums(rules.masses, X)
    usable = rules.enough(one) & rules.enough(rules.totals[:, None] - one)
    if rules.apart is not None:
        usable &= ~(rules.apart[list(path)].any(axis=0) | np.diagonal(rules.apart))
    return np.flatnonzero(usable)


def tallied_data(
    tally: Tally, earned: FloatArray, n_classes: int, rules: LocalRules | None = None, grid_bits: int = 0
) -> TallySamples:
    """Return the samples of a tally.

    Parameters
    ----------
    earned : float array (n_cells, n_classes)
        Reward of a unit of each cell by predicted class, not negative.
    rules : LocalRules, optional
        Masses of whole cells.
    grid_bits : int
        Rewards of sets of columns are rounded to multiples of ``2.0 ** -grid_bits``; the total must be below ``2**52``
        multiples. Then all sums are exact, and the sides of a split add up to the set. The reward of a leaf is off by
        at most half a multiple for each of the ``2**depth`` sets that it is computed from.
    """
    factors = earned.T
    values = tuple(_combined(factors, counts, grid_bits) for counts in tally.counts)
    if rules is not None:
        units = tally.counts[0][:, 0].astype(np.float64)
        masses = rules.masses if rules.masses.shape[1] == tally.n_cells else np.zeros((len(rules.least), tally.n_cells))
        factors = np.divide(masses, units, out=np.zeros_like(masses), where=units > 0)
        heaviest = float(masses.sum(axis=1).max())
        bits = 53 - math.frexp(heaviest)[1]  # masses of whole numbers of units are not rounded
        mass = [_combined(factors, counts, bits) for counts in tally.counts]
        values = tuple(np.concatenate(parts) for parts in zip(values, mass, strict=True))
    everyone = TallySamples(
        n_classes=n_classes,
        feature=np.arange(tally.n_features),
        flipped=np.zeros(tally.n_features, dtype=bool),
        rules=rules,
        values=values,
        apart=None if rules is None else rules.apart,
    )
    return _with_columns(values, everyone)


def _combined(factors: FloatArray, counts: IntArray, grid_bits: int) -> FloatArray:
    """Return ``factors @ counts`` on a grid, cell by cell: a copy of all counts would be as large as the tally."""
    result = np.zeros((len(factors), counts.shape[1]))
    for channel, cell in zip(*np.nonzero(factors), strict=True):
        result[channel] += factors[channel, cell] * counts[cell]
    on_it = np.array_equal(round_to_grid(factors, grid_bits), factors)
    return result if on_it else round_to_grid(result, grid_bits)


def _with_columns(values: tuple[FloatArray, ...], data: TallySamples, path: IntArray | None = None) -> TallySamples:
    """Return the samples with these values, with the columns that can split them below a path."""
    n_classes, rules = data.n_classes, data.rules
    columns = np.zeros(0, dtype=np.int64) if len(values) < 2 else data.feature
    if columns.size:
        totals, single = values[0], values[1][:, columns]
        usable = (single[:n_classes].sum(axis=0) > 0) & ((totals - single)[:n_classes].sum(axis=0) > 0)
        if rules is not None:
            usable &= rules.enough(single[n_classes:]) & rules.enough((totals - single)[n_classes:])
        if data.apart is not None:
            usable &= ~np.diagonal(data.apart)[columns]
            if path is not None:
                usable &= ~data.apart[path][:, columns].any(axis=0)
        columns = columns[usable]
    if rules is not None:
        apart = None if data.apart is None else data.apart[np.ix_(columns, columns)]
        rules = LocalRules(values[0][n_classes:], rules.least, apart if apart is not None and apart.any() else None)
        if not rules.allow_a_leaf:
            columns = columns[:0]
            rules = LocalRules(rules.masses, rules.least, None)
    return TallySamples(
        n_classes=n_classes,
        feature=columns,
        flipped=np.zeros(columns.size, dtype=bool),
        rules=rules,
        values=values,
        apart=data.apart,
    )
