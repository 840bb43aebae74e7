"""Equally good trees: exchange questions of an optimal tree for others that give the same value.

A tree over ordered columns is compared with all trees that differ from it in one question: another column and rank at
one branch node, with the subtrees below it as they are; if both children are leaves, with the best labels. Of those
with the same value the best by a criterion is taken, until no such exchange improves the criterion. Values are compared
in whole numbers.

Criteria, larger is better:

- "purity": sum over the leaves of ``sum_k w_k**2 / sum_k w_k``, where ``w_k`` is what label k earns on the samples of
  the leaf. For accuracy this is the weight of all samples minus the Gini impurities of the leaves, weighted by their
  samples.
- "support": number of samples in the smallest leaf; then purity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.exact.ordered import LeafLimits, OrderedTree
from accel_oct.support.arguments import TieCriterion

__all__ = ["Exchange", "Settled"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = tuple[float, float]

WORK = 10_000_000
"""Most cells (columns x samples x labels, of every node that is examined) of an exchange: a limit that is the same on
every machine. Nothing is done where two rounds over all nodes would exceed it."""

_CHUNK = 2_000_000
"""Cells that are examined together."""

_EQUAL = 1e-9
"""Relative difference of purities up to which they count as equal: far above rounding."""


@dataclass(frozen=True)
class Settled:
    """The result of an exchange.

    Attributes
    ----------
    tree : OrderedTree
    exchanged : int
        Number of exchanges.
    complete : bool
        Whether no further exchange improves the criterion. False: the work was stopped, and the tree is the given one.
    """

    tree: OrderedTree
    exchanged: int
    complete: bool


@dataclass(frozen=True, eq=False)
class Exchange:
    """Samples, and the criterion among equally good trees.

    Attributes
    ----------
    ranks : int32 array (columns, n)
    gains : int64 array (n, labels)
        What each label earns on each sample, in whole numbers whose sums are exact.
    criterion : {"purity", "support"}
    limits : LeafLimits or None
        Without pairs of columns that no path may share.
    """

    ranks: NDArray[np.int32]
    gains: Ints
    criterion: TieCriterion
    limits: LeafLimits | None = None
    work: int = WORK

    def settled(self, tree: OrderedTree, should_stop: Callable[[], bool] = lambda: False) -> Settled:
        """Return the tree after all exchanges that improve the criterion."""
        given, exchanged, used = tree, 0, 0
        n_columns, n_labels = len(self.ranks), self.gains.shape[1]
        orders: NDArray[np.intp] | None = None
        nodes = [place for place, column in enumerate(tree.column) if column >= 0]
        round_of_all = n_columns * n_labels * sum(len(_rows_of(tree, self.ranks, node)) for node in nodes)
        if 2 * round_of_all > self.work:
            return Settled(given, 0, False)
        improved = True
        while improved:
            improved = False
            for node in [place for place, column in enumerate(tree.column) if column >= 0]:
                here = _rows_of(tree, self.ranks, node)
                used += n_columns * len(here) * n_labels
                if used > self.work or should_stop():
                    return Settled(given, 0, False)
                if orders is None:
                    orders = np.argsort(self.ranks, axis=1, kind="stable")
                found = self._best(tree, node, here, orders)
                if found is not None:
                    tree, exchanged, improved = found, exchanged + 1, True
        return Settled(tree, exchanged, True)

    def key(self, tree: OrderedTree) -> Key:
        """Return the criterion of a tree, for comparison."""
        sums, counts = self._leaves(tree, np.arange(len(self.gains)))
        leaves = [place for place, column in enumerate(tree.column) if column < 0]
        return self._joined(float(counts[leaves].min()), float(_purity(sums[leaves]).sum()))

    def _joined(self, support: float, purity: float) -> Key:
        return (support, purity) if self.criterion == "support" else (0.0, purity)

    def _is_better(self, key: Key, other: Key) -> bool:
        """Return whether a key is larger, by more than rounding."""
        return key[0] > other[0] or (key[0] == other[0] and key[1] > other[1] + _EQUAL * max(1.0, abs(other[1])))

    def _leaves(self, tree: OrderedTree, rows: Ints) -> tuple[Ints, Ints]:
        """Return what the labels earn, and the number of samples, for each node that is a leaf."""
        place = tree.leaves_of(self.ranks[:, rows])
        sums = np.zeros((len(tree.column), self.gains.shape[1]), np.int64)
        np.add.at(sums, place, self.gains[rows])
        return sums, np.bincount(place, minlength=len(tree.column))

    def _best(self, tree: OrderedTree, node: int, here: Ints, orders: NDArray[np.intp]) -> OrderedTree | None:
        """Return the tree with the best question at a node, or None if it has it."""
        inside = np.zeros(len(self.gains), bool)
        inside[here] = True
        outside = _leaves_outside(tree, node)
        sums, counts = self._leaves(tree, np.flatnonzero(~inside))
        rest_purity = float(_purity(sums[outside]).sum())
        rest_support = float(counts[outside].min()) if outside else np.inf
        level = _Level(self, tree, node, here)
        best, key = None, self._joined(min(rest_support, level.support), rest_purity + level.purity)
        step = max(1, _CHUNK // max(1, len(here) * self.gains.shape[1]))
        for first in range(0, len(self.ranks), step):
            part = orders[first : first + step]
            sorted_rows = part[inside[part]].reshape(len(part), len(here))
            for column, rank, support, purity, labels in level.equal(sorted_rows, first):
                other = self._joined(min(rest_support, support), rest_purity + purity)
                if self._is_better(other, key):
                    best, key = (column, rank, labels), other
        if best is None:
            return None
        columns, ranks, label = list(tree.column), list(tree.rank), list(tree.label)
        columns[node], ranks[node] = best[0], best[1]
        if best[2] is not None:
            label[tree.left[node]], label[tree.right[node]] = best[2]
        return replace(tree, column=tuple(columns), rank=tuple(ranks), label=tuple(label))


class _Level:
    """The questions that a node may have, with the subtrees below it as they are."""

    def __init__(self, exchange: Exchange, tree: OrderedTree, node: int, here: Ints) -> None:
        self._exchange = exchange
        sides = tree.left[node], tree.right[node]
        self._stump = all(tree.column[side] < 0 for side in sides)
        gains, limits = exchange.gains, exchange.limits
        masses = np.zeros((0, len(gains)), np.int64) if limits is None else limits.masses
        self._masses, self._least = masses, np.zeros(0, np.int64) if limits is None else limits.least
        low = exchange.ranks[tree.column[node], here] <= tree.rank[node]
        if self._stump:
            now = [gains[here[side]].sum(axis=0) for side in (low, ~low)]
            self._value = int(sum(each.max() for each in now))
            self.purity = float(_purity(np.array(now)).sum())
            self.support = float(min(low.sum(), (~low).sum()))
            return
        # For each sample of the data: its leaf below each side.
        self._leaf = [_leaves_from(tree, exchange.ranks, side) for side in sides]
        self._leaves = [_below(tree, side) for side in sides]
        labels = np.array(tree.label)
        every = np.arange(len(gains))
        self._earned = [gains[every, labels[leaf]] for leaf in self._leaf]
        self._value = int(self._earned[0][here[low]].sum() + self._earned[1][here[~low]].sum())
        leaf = np.where(low, self._leaf[0][here], self._leaf[1][here])
        self._n_nodes = len(tree.column)
        sums = np.zeros((self._n_nodes, gains.shape[1]), np.int64)
        np.add.at(sums, leaf, gains[here])
        own = self._leaves[0] + self._leaves[1]
        self.purity = float(_purity(sums[own]).sum())
        self.support = float(np.bincount(leaf, minlength=self._n_nodes)[own].min())

    def equal(self, rows: NDArray[np.intp], first: int) -> Iterator[tuple[int, int, float, float, Any]]:
        """Yield column, rank, support, purity and labels of the allowed questions with the value of the present one.

        Parameters
        ----------
        rows : int array (columns, samples)
            The samples of the node by increasing rank, for some columns.
        first : int
            Number of the first of these columns.
        """
        exchange = self._exchange
        ranks = np.take_along_axis(exchange.ranks[first : first + len(rows)], rows, axis=1)
        cuts = ranks[:, :-1] < ranks[:, 1:]  # between two samples
        if self._stump:
            left = exchange.gains[rows].cumsum(axis=1)
            right = left[:, -1:] - left
            value = left.max(axis=2) + right.max(axis=2)
        else:
            here = [earned[rows] for earned in self._earned]
            value = (here[0] - here[1]).cumsum(axis=1) + here[1].sum(axis=1, keepdims=True)
        cuts &= value[:, :-1] == self._value
        for column in np.flatnonzero(cuts.any(axis=1)).tolist():
            places = np.flatnonzero(cuts[column])
            if self._stump:
                sums = np.stack([left[column, places], right[column, places]], axis=1)
                counts = np.stack([places + 1, rows.shape[1] - places - 1], axis=1)
                labels: Any = sums.argmax(axis=2).tolist()
                kept = [
                    np.stack([part[places], part[-1] - part[places]], axis=1)
                    for part in self._masses[:, rows[column]].cumsum(axis=1)
                ]
            else:
                sums, counts, kept = self._by_leaf(rows[column], places)
                labels = [None] * len(places)
            allowed = (counts > 0).all(axis=1)
            for part, least in zip(kept, self._least, strict=True):
                allowed &= (part >= least).all(axis=1)
            purity, support = _purity(sums).sum(axis=1), counts.min(axis=1)
            for number in np.flatnonzero(allowed).tolist():
                place = int(places[number])
                yield (
                    first + column,
                    int(ranks[column, place]),
                    float(support[number]),
                    float(purity[number]),
                    labels[number],
                )

    def _by_leaf(self, rows: NDArray[np.intp], places: Ints) -> tuple[Ints, Ints, list[Ints]]:
        """Return what labels earn, counts and masses for each question and leaf below the node."""
        exchange, n_labels = self._exchange, self._exchange.gains.shape[1]
        segment = np.searchsorted(places, np.arange(len(rows)))  # 0: on the left side of all questions
        own = [*self._leaves[0], *self._leaves[1]]
        number = np.zeros(self._n_nodes, np.int64)
        number[own] = np.arange(len(own))

        def tables(amounts: Ints) -> Ints:
            """(questions, leaves) sums of an amount."""
            found = np.zeros((len(places), len(own)), np.int64)
            for side, leaf in enumerate(self._leaf):
                table = np.zeros((len(places) + 1, len(own)), np.int64)
                np.add.at(table, (segment, number[leaf[rows]]), amounts[rows])
                low = table.cumsum(axis=0)
                found += low[:-1] if side == 0 else low[-1] - low[:-1]
            return found

        sums = np.stack([tables(exchange.gains[:, label]) for label in range(n_labels)], axis=2)
        counts = tables(np.ones(len(exchange.gains), np.int64))
        return sums, counts, [tables(mass) for mass in self._masses]


def _purity(sums: Ints) -> Floats:
    """Return the purity of leaves; the last axis is that of the labels."""
    amounts = sums.astype(np.float64)
    total = amounts.sum(axis=-1)
    found: Floats = (amounts**2).sum(axis=-1) / np.where(total > 0, total, 1.0)
    return found


def _rows_of(tree: OrderedTree, ranks: NDArray[np.int32], node: int) -> Ints:
    """Return the samples that reach a node."""
    parent = {
        side: at for at, column in enumerate(tree.column) if column >= 0 for side in (tree.left[at], tree.right[at])
    }
    inside = np.ones(ranks.shape[1], bool)
    while node in parent:
        at = parent[node]
        low = ranks[tree.column[at]] <= tree.rank[at]
        inside &= low if node == tree.left[at] else ~low
        node = at
    return np.flatnonzero(inside)


def _below(tree: OrderedTree, node: int) -> list[int]:
    """Return the leaves of a subtree."""
    if tree.column[node] < 0:
        return [node]
    return [*_below(tree, tree.left[node]), *_below(tree, tree.right[node])]


def _leaves_outside(tree: OrderedTree, node: int) -> list[int]:
    """Return the leaves that are not below a node."""
    own = set(_below(tree, node))
    return [place for place, column in enumerate(tree.column) if column < 0 and place not in own]


def _leaves_from(tree: OrderedTree, ranks: NDArray[np.int32], node: int) -> Ints:
    """Return the leaf that each sample reaches from a node."""
    place = np.full(ranks.shape[1], node)
    for at in range(node, len(tree.column)):
        if tree.column[at] >= 0:
            here = place == at
            low = ranks[tree.column[at]] <= tree.rank[at]
            place[here & low] = tree.left[at]
            place[here & ~low] = tree.right[at]
    return place
