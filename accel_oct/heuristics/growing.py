"""Greedy trees on binary columns whose last levels are exact: the raw material of the local search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.exact import Subtree, SubtreeCache
from accel_oct.tree import DecisionTree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Literals = frozenset[tuple[int, int]]
Criterion = Literal["gini", "entropy", "error"]

EXACT_LEVELS = 2
"""Levels at the bottom of every tree that are made by D2S where that is affordable."""


_BLOCK_ENTRIES = 2**20
"""Entries of X that are turned into floating-point numbers at a time."""

_COUNTS_BYTES = 2**26
"""Memory for class counts of places that were looked at before."""


class OutOfTime(Exception):
    """Unwinds a step of the search when the time is up; what was offered before stays."""


@dataclass(frozen=True, slots=True)
class Node:
    """A subtree made for some samples: a leaf with a label, or a feature and two sides.

    Attributes
    ----------
    value : float
        Weight classified correctly minus the price of the leaves, on the samples that it was made for.
    """

    value: float
    label: int
    feature: int = -1
    zero: Node | None = None
    one: Node | None = None

    @property
    def sides(self) -> tuple[Node, Node] | None:
        """Both subtrees; None at a leaf."""
        return None if self.zero is None or self.one is None else (self.zero, self.one)

    def tree(self, columns: Ints | None = None) -> DecisionTree:
        """As a tree of its own; `columns` translates its features."""
        if self.zero is None or self.one is None:
            return DecisionTree.leaf(self.label)
        feature = self.feature if columns is None else int(columns[self.feature])
        return DecisionTree.branch(feature, self.zero.tree(columns), self.one.tree(columns))


class Samples(NamedTuple):
    """What trees are grown on: features (n, F), class indices, weights, number of classes."""

    X: NDArray[np.bool_]
    y: Ints
    weights: Floats
    n_classes: int

    def of_rows(self, rows: Ints) -> Samples:
        """Some of the samples."""
        return Samples(self.X[rows], self.y[rows], self.weights[rows], self.n_classes)

    def of_columns(self, columns: Ints) -> Samples:
        """Some of the features, increasing; the same arrays where that is all of them."""
        whole = columns.size == self.X.shape[1]
        return self if whole else self._replace(X=np.ascontiguousarray(self.X[:, columns]))


class Place(NamedTuple):
    """Where a subtree hangs: the samples that get there, the literals of the path, and the levels left below."""

    samples: Ints
    literals: Literals
    room: int


class Grower:
    """Makes subtrees for places: leaves, exact tails, greedy ones.

    Parameters
    ----------
    samples : Samples
    leaf_price : float
        In units of weight.
    cache : SubtreeCache
        D2S for the same data.
    affordable : callable (n_samples)
        Whether D2S may be asked for so many samples; else the tail is grown greedily.
    should_stop : callable
        Asked before every node.
    """

    def __init__(
        self,
        samples: Samples,
        leaf_price: float,
        cache: SubtreeCache,
        affordable: Callable[[int], bool],
        should_stop: Callable[[], bool],
    ) -> None:
        self.X, self.y, self.weights, self.n_classes = samples
        self.n_features = int(self.X.shape[1])
        self.price = leaf_price
        self._subtree_for = cache.at_price(leaf_price)
        self._affordable = affordable
        self._should_stop = should_stop
        self._counts: OrderedDict[Literals, Floats] = OrderedDict()

    def leaf(self, samples: Ints) -> Node:
        """The best leaf."""
        weights = np.bincount(self.y[samples], self.weights[samples], self.n_classes)
        label = int(np.argmax(weights))
        return Node(float(weights[label]) - self.price, label)

    def split(self, place: Place, feature: int) -> tuple[Place, Place]:
        """Both sides of a place."""
        ones = self.X[place.samples, feature]
        return (
            Place(place.samples[~ones], place.literals | {(feature, 0)}, place.room - 1),
            Place(place.samples[ones], place.literals | {(feature, 1)}, place.room - 1),
        )

    def joined(self, samples: Ints, feature: int, zero: Node, one: Node) -> Node:
        """A branch, or the leaf in its place where that is as good."""
        leaf = self.leaf(samples)
        value = zero.value + one.value
        return leaf if leaf.value >= value else Node(value, leaf.label, feature, zero, one)

    def grow(self, place: Place, criterion: Criterion, allowed: NDArray[np.bool_] | None = None) -> Node:
        """Greedy splits down to the last levels, exact ones there, pruned.

        `allowed` marks the features that greedy splits may use.
        """
        if self._should_stop():
            raise OutOfTime
        if place.room == 0 or self.is_settled(place.samples):
            return self.leaf(place.samples)
        if self.is_tail(place):
            return self.tail(place)
        scores = self.scores(place, criterion if place.room > 1 else "error")
        feature = _best(scores, allowed)
        if feature < 0:
            return self.leaf(place.samples)
        zero, one = self.split(place, feature)
        return self.joined(
            place.samples, feature, self.grow(zero, criterion, allowed), self.grow(one, criterion, allowed)
        )

    def is_settled(self, samples: Ints) -> bool:
        """Whether nothing can be better than a leaf: what is lost there is no more than a further leaf costs."""
        weights = np.bincount(self.y[samples], self.weights[samples], self.n_classes)
        return bool(weights.sum() - weights.max() <= self.price)

    def is_tail(self, place: Place) -> bool:
        """Whether D2S is to say what hangs here."""
        return place.room <= EXACT_LEVELS and self._affordable(place.samples.size)

    def tail(self, place: Place) -> Node:
        """The best subtree of depth at most two."""
        found = self._subtree_for(place.literals, place.samples, max_depth=place.room)
        return self._node(found, 0, place.samples)

    def node(self, tree: DecisionTree, samples: Ints, at: int = 1) -> Node:
        """A tree's branches as a subtree for some samples, pruned, with the best labels."""
        feature = int(tree.feature[at - 1])
        if feature < 0:
            return self.leaf(samples)
        ones = self.X[samples, feature]
        sides = [self.node(tree, samples[ones == side], 2 * at + side) for side in (0, 1)]
        return self.joined(samples, feature, *sides)

    def _node(self, found: Subtree, at: int, samples: Ints) -> Node:
        if found.feature[at] < 0:
            score = float(self.weights[samples][self.y[samples] == found.label[at]].sum())
            return Node(score - self.price, int(found.label[at]))
        feature = int(found.feature[at])
        ones = self.X[samples, feature]
        zero = self._node(found, 2 * at + 1, samples[~ones])
        one = self._node(found, 2 * at + 2, samples[ones])
        return Node(zero.value + one.value, zero.label, feature, zero, one)

    def scores(self, place: Place, criterion: Criterion) -> Floats:
        """How good a split on every feature is: larger is better, minus infinity where it separates nothing."""
        counts = self._class_counts(place)
        ones, zeros = counts[:, :-1], counts[:, -1:] - counts[:, :-1]
        first, second = ones.sum(axis=0), zeros.sum(axis=0)
        scores = _purity(ones, first, criterion) + _purity(zeros, second, criterion)
        return np.where((first > 0) & (second > 0), scores, -np.inf)

    def _class_counts(self, place: Place) -> Floats:
        """Weight of every class on the one-side of every feature, and in all, at a place: (classes, F + 1)."""
        known = self._counts.get(place.literals)
        if known is not None:
            self._counts.move_to_end(place.literals)
            return known
        y, weights = self.y[place.samples], self.weights[place.samples]
        amounts = weights * (y == np.arange(self.n_classes)[:, None])
        counts = np.concatenate([self.sums(amounts, place.samples), amounts.sum(axis=1, keepdims=True)], axis=1)
        self._counts[place.literals] = counts
        if len(self._counts) * counts.nbytes > _COUNTS_BYTES:
            self._counts.popitem(last=False)
        return counts

    def sums(self, amounts: Floats, samples: Ints) -> Floats:
        """What the samples on the one-side of every feature amount to, nearly."""
        # Choices are made from single-precision sums, values never: they only say what is worth trying.
        light = amounts.astype(np.float32)
        step = max(1, _BLOCK_ENTRIES // max(1, self.n_features))
        total = np.zeros((*amounts.shape[:-1], self.n_features))
        for first in range(0, samples.size, step):
            rows = self.X[samples[first : first + step]].astype(np.float32)
            total += light[..., first : first + step] @ rows
        return total

    def predictions(self, node: Node, samples: Ints) -> Ints:
        """The class that a subtree gives each of the samples."""
        result = np.full(samples.size, node.label, dtype=np.int64)
        sides = node.sides
        if sides is not None:
            ones = self.X[samples, node.feature]
            result[~ones] = self.predictions(sides[0], samples[~ones])
            result[ones] = self.predictions(sides[1], samples[ones])
        return result


def _purity(counts: Floats, totals: Floats, criterion: Criterion) -> Floats:
    """Of sets with these class weights (classes, F): weight times one minus the impurity, up to a constant."""
    if criterion == "error":
        return np.asarray(counts.max(axis=0))
    safe = np.where(totals > 0, totals, 1.0)
    if criterion == "gini":
        return np.asarray((counts * counts).sum(axis=0) / safe)
    shares = counts / safe
    logarithms = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray((counts * logarithms).sum(axis=0))


def _best(scores: Floats, allowed: NDArray[np.bool_] | None) -> int:
    """The first of the best features; minus one where none separates anything."""
    if allowed is not None and np.any(np.isfinite(scores[allowed])):
        scores = np.where(allowed, scores, -np.inf)
    feature = int(np.argmax(scores)) if scores.size else -1
    return feature if feature >= 0 and np.isfinite(scores[feature]) else -1
