"""Reduce a data set to what decides its optimal trees.

Rows that agree in every feature and in the class become one weighted row. Constant columns go, of equal or
complementary columns the one with the smallest index stays, each column is flipped so that its ones are the minority,
and columns are sorted by how many ones they have: counts are taken inside intersections of one-sides, and the outer
loops run over the sparse columns.

Under local rules masses add up like weights, a row without weight stays if it has mass, a column with a side that is
too light goes, and columns are interchangeable only if the same columns must stay apart from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.merging import equal_rows
from accel_oct.subtree.local_rules import LocalRules
from accel_oct.tree import DecisionTree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CONVERTED = 2**22
"""Entries of X that are turned into floating-point numbers at a time."""


@dataclass(frozen=True)
class Reduced:
    """A data set without redundant rows and columns.

    Attributes
    ----------
    X : uint8 array (n, F)
        Remaining columns, flipped where `flipped` says so.
    y, weights : arrays (n,)
        Class index and weight of each row: positive, or zero where a rule gives the row a mass.
    row_ceiling : float array (n,)
        Per row its share of the equivalent-point bound: summed over samples S it is E(S). The majority weight of a
        point (rows with equal features) is credited to its first row, so any union of points sums up exactly.
    n_classes : int
    feature : int64 array (F,)
        Index of each column in the original data.
    flipped : bool array (F,)
        Columns that stand for the complement of the original.
    rules : LocalRules or None
        For these rows and columns. Every column that is left has two sides that may be leaves.
    """

    X: NDArray[np.uint8]
    y: Ints
    weights: Floats
    row_ceiling: Floats
    n_classes: int
    feature: Ints
    flipped: NDArray[np.bool_]
    rules: LocalRules | None = None

    @property
    def n_samples(self) -> int:
        """Number of distinct rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns kept."""
        return int(self.X.shape[1])

    @property
    def signed(self) -> bool:
        """Two classes: one signed number per set of samples is enough."""
        return self.n_classes == 2

    @cached_property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return float(self.weights.sum())

    @cached_property
    def class_weights(self) -> Floats:
        """Weight of each class."""
        return np.bincount(self.y, self.weights, self.n_classes).astype(np.float64)

    @property
    def allows_a_leaf(self) -> bool:
        """Whether there is any tree: a single leaf, then."""
        return self.rules is None or self.rules.allow_a_leaf

    def has_room_for(self, leaves: int) -> bool:
        """Whether rules may leave room for so many leaves."""
        return self.rules is None or bool(np.all(self.rules.room_for(leaves, self.rules.totals)))

    def restricted(self, rows: NDArray[Any], *path: int) -> Reduced:
        """The same for the rows that satisfy a path, with the columns reduced again to what may go on below it."""
        return _reduce_columns(
            self.X[rows],
            self.y[rows],
            self.weights[rows],
            self.row_ceiling[rows],
            self.n_classes,
            self.feature,
            self.flipped,
            None if self.rules is None else self.rules.of_rows(rows),
            path,
        )

    def without_light_columns(self, leaf_price: float) -> Reduced:
        """The same without columns that some best tree for this leaf price (in units of weight) does not use.

        *Rule.* Let E(S) be the equivalent-point bound of a set: no tree scores more on it. A column goes if E of one of
        its sides is at most the leaf price.

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
        heavy = (both_sides(self.row_ceiling, self.X) > leaf_price).all(axis=1)
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

    def branch(self, column: int, zero: DecisionTree, one: DecisionTree) -> DecisionTree:
        """Tree that branches on a column, in terms of the original features: undoes the column's flip."""
        if self.flipped[column]:
            zero, one = one, zero
        return DecisionTree.branch(int(self.feature[column]), zero, one)


def reduce_data(
    X: NDArray[np.bool_], y: Ints, weights: Floats, n_classes: int, rules: LocalRules | None = None
) -> Reduced:
    """Merge equal rows, drop rows without weight and mass, and reduce the columns."""
    keep = weights > 0 if rules is None else (weights > 0) | (rules.masses > 0).any(axis=0)
    if not keep.all():
        X, y, weights = X[keep], y[keep], weights[keep]
        rules = None if rules is None else rules.of_rows(keep)
    n_features = X.shape[1]
    groups = equal_rows(X, y)
    merged = groups.sums(weights)
    ceiling = np.zeros(merged.size)
    if merged.size:
        # Rows of one point differ in the class, so the majority weight is the largest merged weight.
        first = np.flatnonzero(groups.new_point)
        ceiling[first] = np.maximum.reduceat(merged, first)
    if rules is not None:
        rules = LocalRules(np.array([groups.sums(mass) for mass in rules.masses]), rules.least, rules.apart)
    rows = groups.first
    return _reduce_columns(
        X[rows].view(np.uint8),
        y[rows],
        merged,
        ceiling,
        n_classes,
        np.arange(n_features),
        np.zeros(n_features, bool),
        rules,
    )


def _reduce_columns(
    X: NDArray[np.uint8],
    y: Ints,
    weights: Floats,
    ceiling: Floats,
    n_classes: int,
    feature: Ints,
    flipped: NDArray[np.bool_],
    rules: LocalRules | None = None,
    path: tuple[int, ...] = (),
) -> Reduced:
    n_samples = X.shape[0]
    ones = X.sum(axis=0, dtype=np.int64)
    if rules is not None:
        usable = _usable_columns(X, rules, path)
        X, ones, feature, flipped = X[:, usable], ones[usable], feature[usable], flipped[usable]
        rules = rules.of_columns(usable)
    keys = column_keys(X)
    if rules is not None and rules.apart is not None:
        keys = [key + partners.tobytes() for key, partners in zip(keys, rules.apart, strict=True)]
    # Of equal columns the smallest original index stays, whatever order the columns are in now.
    seen: set[bytes] = set()
    kept: list[int] = []
    for column in np.argsort(feature, kind="stable"):
        if ones[column] in (0, n_samples):
            continue
        if keys[column] in seen:
            continue
        seen.add(keys[column])
        kept.append(int(column))
    chosen = np.array(kept, dtype=np.int64)
    flip = 2 * ones[chosen] > n_samples
    minority = np.where(flip, n_samples - ones[chosen], ones[chosen])
    order = np.argsort(minority, kind="stable")
    chosen, flip = chosen[order], flip[order]
    columns = np.take(X, chosen, axis=1)
    columns ^= flip.astype(np.uint8)
    return Reduced(
        columns,
        y,
        weights,
        ceiling,
        n_classes,
        feature[chosen],
        flipped[chosen] ^ flip,
        None if rules is None else rules.of_columns(chosen),
    )


def _usable_columns(X: NDArray[np.uint8], rules: LocalRules, path: tuple[int, ...]) -> Ints:
    """Columns that may stand below the path and have two sides that are heavy enough."""
    if not rules.allow_a_leaf:
        return np.zeros(0, dtype=np.int64)
    one = weighted_sums(rules.masses, X)
    usable = rules.enough(one) & rules.enough(rules.totals[:, None] - one)
    if rules.apart is not None:
        usable &= ~(rules.apart[list(path)].any(axis=0) | np.diagonal(rules.apart))
    return np.flatnonzero(usable)


def column_keys(X: NDArray[Any]) -> list[bytes]:
    """A key for every column that it shares with equal and complementary columns only."""
    n_samples, n_features = X.shape
    if n_samples == 0:
        return [b""] * n_features
    # Packed before they are turned over: that moves an eighth of the bytes across the memory.
    eights = np.ascontiguousarray(np.packbits(X, axis=1).T)
    step = max(1, _CONVERTED // (8 * n_samples))
    keys: list[bytes] = []
    for first in range(0, len(eights), step):
        columns = np.unpackbits(eights[first : first + step, None], axis=1).reshape(-1, n_samples)
        columns ^= columns[:, :1]  # of a column and its complement, the one that starts with zero
        keys += [column.tobytes() for column in np.packbits(columns, axis=1)]
    return keys[:n_features]


def weighted_sums(amounts: Floats, X: NDArray[Any], rows: NDArray[Any] | None = None) -> Floats:
    """``amounts @ X`` (for the selected rows of X), which NumPy would do on a copy eight times the size of X."""
    if X.dtype == np.float64 and rows is None:
        return np.asarray(amounts @ X)
    # Sums are exact, so it does not matter in which order parts are added; whole rows lie together in the memory.
    chosen = np.flatnonzero(rows) if rows is not None and rows.dtype == bool else rows
    n_features, n_rows = X.shape[1], len(X) if chosen is None else len(chosen)
    step = max(1, _CONVERTED // max(1, n_features))
    result = np.zeros((*amounts.shape[:-1], n_features))
    for first in range(0, n_rows, step):
        part = X[first : first + step] if chosen is None else X[chosen[first : first + step]]
        result += amounts[..., first : first + step] @ part.astype(np.float64)
    return result


def as_factor(X: NDArray[Any]) -> NDArray[Any]:
    """X for many `weighted_sums`: as floating-point numbers unless that takes too much memory."""
    return X.astype(np.float64) if X.size <= 4 * _CONVERTED else X


def both_sides(amounts: Floats, X: NDArray[Any]) -> Floats:
    """Sums (F, 2) of the amounts on the zero side and the one side of every column."""
    one = weighted_sums(amounts, X)
    return np.stack([amounts.sum() - one, one], axis=1)


def similar_sides(data: Reduced, X: NDArray[Any], column: int, side: int) -> NDArray[np.bool_] | None:
    """Sides (F, 2) of columns for which V(S) <= V(S') + W(S - S') holds, with S' one side of `column`; None: for all.

    The best tree of S is put on S'. It has to be allowed there: no leaf may lose mass, so S - S' has to have none, and
    every column that may stand below the column of S may stand below that of S'. X are the features of the data.
    """
    if data.rules is None:
        return None
    beyond = data.rules.masses * (data.X[:, column] != side)
    lost = np.any([both_sides(mass, X) > 0 for mass in beyond], axis=0)
    return np.asarray(~lost & data.rules.carries_over(column)[:, None])
