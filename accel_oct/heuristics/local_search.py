"""Local search over trees whose last levels are exact.

A tree consists of its *top*, the branches with more than two levels below them, and of tails, which D2S makes exact.
Three moves change a top:

- *alternate*: with both sides of a node fixed, find the best feature of the node for all features at once: a sample
  that only one side classifies correctly gains its weight on that side, and one product with X sums the gains. Then the
  sides are improved for their new samples.
- *regrow*: take another feature at a node, drawn from the best by a criterion, with greedy or the old sides below it.
- *exact*: take the best of all subtrees at a node with three or more levels, from the tables, if they are fast.

After several moves without improvement, the search restarts from the best tree. Every better tree is offered; the
search does not continue from a tree that is refused because it violates a constraint. All values are exact sums.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, Subtree, SubtreeCache
from accel_oct.exact.price_search import best_tree
from accel_oct.exact.samples import reduce_data
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

Literals = frozenset[tuple[int, int]]
Criterion = Literal["gini", "entropy", "error"]

EXACT_LEVELS = 2
"""Levels at the bottom of every tree that D2S computes, if it is fast enough."""

_BLOCK_ENTRIES = 2**20
"""Entries of X that are converted to floating-point numbers at a time."""

_COUNTS_BYTES = 2**26
"""Memory limit of the cache of class counts."""

_CRITERIA: tuple[Criterion, ...] = ("entropy", "gini", "error")
_ROUNDS = 4
"""Largest number of passes of `alternate` over a subtree."""
_PATIENCE = 60
"""Moves without a better tree after which the search returns to the best one."""
_NEARLY = 1.2
"""Another subtree gets exact tails if its loss is at most this many times that of the present one."""
_LONGEST_EXACT = 16.0
"""Limit on the estimated seconds of exact subtrees."""

_LONGEST_AT_FIRST = 1.0
"""Most seconds of an exact subtree at the start of a search."""


class OutOfTime(Exception):
    """Ends a step of the search when the time is up."""


@dataclass(frozen=True, slots=True)
class GrownNode:
    """A subtree for some samples: a leaf with a label, or a feature and two sides.

    Attributes
    ----------
    value : float
        Weight classified correctly minus the price of the leaves, on its samples.
    """

    value: float
    label: int
    feature: int = -1
    zero: GrownNode | None = None
    one: GrownNode | None = None

    @property
    def sides(self) -> tuple[GrownNode, GrownNode] | None:
        """Both sides; None at a leaf."""
        return None if self.zero is None or self.one is None else (self.zero, self.one)

    def tree(self, columns: IntArray | None = None) -> DecisionTree:
        """Convert to a tree; `columns` translates the features."""
        if self.zero is None or self.one is None:
            return DecisionTree.leaf(self.label)
        feature = self.feature if columns is None else int(columns[self.feature])
        return DecisionTree.branch(feature, self.zero.tree(columns), self.one.tree(columns))


class GrowingData(NamedTuple):
    """Training data: features (n, F), class indices, weights, number of classes."""

    X: BoolArray
    y: IntArray
    weights: FloatArray
    n_classes: int

    def of_rows(self, rows: IntArray) -> GrowingData:
        """Select samples."""
        return GrowingData(self.X[rows], self.y[rows], self.weights[rows], self.n_classes)

    def of_columns(self, columns: IntArray) -> GrowingData:
        """Select features, in increasing order; returns the same arrays if all are selected."""
        whole = columns.size == self.X.shape[1]
        return self if whole else self._replace(X=np.ascontiguousarray(self.X[:, columns]))


class Place(NamedTuple):
    """The place of a subtree: its samples, the literals of its path, and the number of levels below."""

    samples: IntArray
    literals: Literals
    room: int


class Grower:
    """Creates subtrees for places: leaves, exact tails, and greedy subtrees.

    Parameters
    ----------
    leaf_price : float
        In units of weight.
    cache : SubtreeCache
        D2S for the same data.
    affordable : callable (n_samples)
        Whether D2S is fast enough for this many samples; otherwise the tail is grown greedily.
    should_stop : callable
        Called before every node.
    """

    def __init__(
        self,
        samples: GrowingData,
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
        self._counts: OrderedDict[Literals, FloatArray] = OrderedDict()

    def leaf(self, samples: IntArray) -> GrownNode:
        """Return the best leaf."""
        weights = np.bincount(self.y[samples], self.weights[samples], self.n_classes)
        label = int(np.argmax(weights))
        return GrownNode(float(weights[label]) - self.price, label)

    def split(self, place: Place, feature: int) -> tuple[Place, Place]:
        """Return both sides of a place."""
        ones = self.X[place.samples, feature]
        return (
            Place(place.samples[~ones], place.literals | {(feature, 0)}, place.room - 1),
            Place(place.samples[ones], place.literals | {(feature, 1)}, place.room - 1),
        )

    def joined(self, samples: IntArray, feature: int, zero: GrownNode, one: GrownNode) -> GrownNode:
        """Return a branch, or a leaf if that is at least as good."""
        leaf = self.leaf(samples)
        value = zero.value + one.value
        return leaf if leaf.value >= value else GrownNode(value, leaf.label, feature, zero, one)

    def grow(self, place: Place, criterion: Criterion, allowed: BoolArray | None = None) -> GrownNode:
        """Grow greedy splits down to the last levels, exact ones there, and prune.

        `allowed` marks the features of greedy splits.
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

    def is_settled(self, samples: IntArray) -> bool:
        """Return whether a leaf is optimal because its error is at most the price of another leaf."""
        weights = np.bincount(self.y[samples], self.weights[samples], self.n_classes)
        return bool(weights.sum() - weights.max() <= self.price)

    def is_tail(self, place: Place) -> bool:
        """Return whether D2S computes the subtree of a place."""
        return place.room <= EXACT_LEVELS and self._affordable(place.samples.size)

    def tail(self, place: Place) -> GrownNode:
        """Return the best subtree of depth at most two."""
        found = self._subtree_for(place.literals, place.samples, max_depth=place.room)
        return self._node(found, 0, place.samples)

    def node(self, tree: DecisionTree, samples: IntArray, at: int = 1) -> GrownNode:
        """Return the branches of a tree as a subtree for some samples, pruned, with the best labels."""
        feature = int(tree.feature[at - 1])
        if feature < 0:
            return self.leaf(samples)
        ones = self.X[samples, feature]
        sides = [self.node(tree, samples[ones == side], 2 * at + side) for side in (0, 1)]
        return self.joined(samples, feature, *sides)

    def _node(self, found: Subtree, at: int, samples: IntArray) -> GrownNode:
        if found.feature[at] < 0:
            score = float(self.weights[samples][self.y[samples] == found.label[at]].sum())
            return GrownNode(score - self.price, int(found.label[at]))
        feature = int(found.feature[at])
        ones = self.X[samples, feature]
        zero = self._node(found, 2 * at + 1, samples[~ones])
        one = self._node(found, 2 * at + 2, samples[ones])
        return GrownNode(zero.value + one.value, zero.label, feature, zero, one)

    def scores(self, place: Place, criterion: Criterion) -> FloatArray:
        """Return the score of a split on each feature; minus infinity if it separates nothing."""
        counts = self._class_counts(place)
        ones, zeros = counts[:, :-1], counts[:, -1:] - counts[:, :-1]
        first, second = ones.sum(axis=0), zeros.sum(axis=0)
        scores = _purity(ones, first, criterion) + _purity(zeros, second, criterion)
        return np.where((first > 0) & (second > 0), scores, -np.inf)

    def _class_counts(self, place: Place) -> FloatArray:
        """Return the weight of each class on the one-side of each feature, and in total: (classes, F + 1)."""
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

    def sums(self, amounts: FloatArray, samples: IntArray) -> FloatArray:
        """Return approximate sums of the amounts on the one-side of each feature."""
        # Single precision: the sums only choose what to try; values of trees are computed exactly.
        light = amounts.astype(np.float32)
        step = max(1, _BLOCK_ENTRIES // max(1, self.n_features))
        total = np.zeros((*amounts.shape[:-1], self.n_features))
        for first in range(0, samples.size, step):
            rows = self.X[samples[first : first + step]].astype(np.float32)
            total += light[..., first : first + step] @ rows
        return total

    def predictions(self, node: GrownNode, samples: IntArray) -> IntArray:
        """Return the prediction of a subtree for each sample."""
        result = np.full(samples.size, node.label, dtype=np.int64)
        sides = node.sides
        if sides is not None:
            ones = self.X[samples, node.feature]
            result[~ones] = self.predictions(sides[0], samples[~ones])
            result[ones] = self.predictions(sides[1], samples[ones])
        return result


def _purity(counts: FloatArray, totals: FloatArray, criterion: Criterion) -> FloatArray:
    """Return weight times (1 - impurity) of sets with these class weights (classes, F), up to a constant."""
    if criterion == "error":
        return np.asarray(counts.max(axis=0))
    safe = np.where(totals > 0, totals, 1.0)
    if criterion == "gini":
        return np.asarray((counts * counts).sum(axis=0) / safe)
    shares = counts / safe
    logarithms = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray((counts * logarithms).sum(axis=0))


def _best(scores: FloatArray, allowed: BoolArray | None) -> int:
    """Return the first of the best features; -1 if none separates anything."""
    if allowed is not None and np.any(np.isfinite(scores[allowed])):
        scores = np.where(allowed, scores, -np.inf)
    feature = int(np.argmax(scores)) if scores.size else -1
    return feature if feature >= 0 and np.isfinite(scores[feature]) else -1


@dataclass
class LocalSearchCounts:
    """Statistics of a local search."""

    starts: int = 0
    moves: int = 0
    better: int = 0
    exact: int = 0
    seconds: float = 0.0


class LocalSearch:
    """Improves trees step by step.

    Parameters
    ----------
    offer : callable (GrownNode)
        Called with every tree that is better than all before; returns whether it is feasible. Others are discarded.
    exact_seconds : callable (n_samples, levels)
        Estimated seconds of an exact subtree; infinite if it is impossible.
    remaining : callable
        Remaining seconds.
    counts : LocalSearchCounts, optional
        Statistics shared with other searches.
    """

    def __init__(
        self,
        grower: Grower,
        max_depth: int,
        offer: Callable[[GrownNode], bool],
        should_stop: Callable[[], bool],
        exact_seconds: Callable[[int, int], float],
        remaining: Callable[[], float] = lambda: math.inf,
        seed: int = 0,
        counts: LocalSearchCounts | None = None,
    ) -> None:
        self._grower = grower
        self._offer = offer
        self._should_stop = should_stop
        self._exact_seconds = exact_seconds
        self._remaining = remaining
        self.longest = _LONGEST_AT_FIRST
        self._rng = np.random.default_rng(seed)
        self._whole = Place(np.arange(len(grower.y)), frozenset(), max_depth)
        self._known: dict[tuple[Literals, int], GrownNode] = {}
        self.best: GrownNode | None = None
        self._current: GrownNode | None = None
        self._waited = 0
        self.counts = counts or LocalSearchCounts()

    # ---------------------------------------------------------------- starts and steps

    def start(self, node: GrownNode) -> None:
        """Add a tree, unchanged and improved."""
        self.counts.starts += 1
        self._take(node)
        self._take(self.improved(node, self._whole))

    def start_from(self, tree: DecisionTree, only_tails: bool = False) -> None:
        """Add a tree with the best labels, unchanged and improved; with `only_tails`, with exact tails instead."""
        node = self._grower.node(tree, self._whole.samples)
        if only_tails:
            self.counts.starts += 1
            self._take(self._pass(node, self._whole, alternate=False))
        else:
            self.start(node)

    def start_greedily(self, criterion: Criterion) -> None:
        """Add a greedy tree, unchanged and improved."""
        self.start(self._grower.grow(self._whole, criterion))

    def make_tails_exact(self) -> None:
        """Replace subtrees of the best tree for which tables are fast, those with the most levels first."""
        if self.best is not None:
            self._take(self._with_exact_tails(self.best, self._whole))

    def step(self) -> bool:
        """Make one move from the current tree; return whether it found a new best tree."""
        if self._current is None:
            self.start_greedily("entropy")
            return True
        self.counts.moves += 1
        self._waited += 1
        if self._waited > _PATIENCE and self.best is not None:
            # Larger exact subtrees may find what moves do not.
            self._current, self._waited = self.best, 0
            self.longest = max(self.longest, min(2 * self.longest, _LONGEST_EXACT, 0.2 * self._remaining()))
        moved = self._moved(self._current, self._whole)
        return moved is not None and self._take(moved)

    # ---------------------------------------------------------------- best and current tree

    def _take(self, node: GrownNode) -> bool:
        """Continue from a tree that is not worse than the current one; offer a new best tree."""
        if self.best is not None and node.value <= self.best.value:
            assert self._current is not None
            if node.value >= self._current.value or self._rng.random() < 0.02:
                self._current = node
            return False
        if not self._offer(node):
            return False
        self.best = self._current = node
        self._waited = 0
        self.counts.better += 1
        return True

    # ---------------------------------------------------------------- alternate

    def improved(self, node: GrownNode, place: Place) -> GrownNode:
        """Return the subtree improved by passes over its top until nothing changes."""
        best = self._pass(node, place)
        for _ in range(_ROUNDS):
            better = self._pass(best, place)
            if better.value <= best.value:
                return best
            best = better
        return best

    def _pass(self, node: GrownNode, place: Place, alternate: bool = True) -> GrownNode:
        """Choose the best feature of every node of the top, given its sides; then make the tails exact."""
        if self._should_stop():
            raise OutOfTime
        grower = self._grower
        if place.room == 0 or grower.is_settled(place.samples):
            return grower.leaf(place.samples)
        if grower.is_tail(place):
            return grower.tail(place)
        known = self._known.get((place.literals, place.room))
        if known is not None:
            return known
        sides = node.sides
        if sides is None:
            return grower.grow(place, "entropy")
        feature, swapped = self._best_feature(node, place.samples) if alternate else (node.feature, 0)
        zero, one = grower.split(place, feature)
        if not zero.samples.size or not one.samples.size:
            return self._pass(sides[swapped ^ (zero.samples.size == 0)], place, alternate)
        below = self._pass(sides[swapped], zero, alternate), self._pass(sides[1 - swapped], one, alternate)
        return grower.joined(place.samples, feature, *below)

    def _best_feature(self, node: GrownNode, samples: IntArray) -> tuple[int, int]:
        """Return the feature that sends most weight to a correct side, and whether the sides are swapped."""
        grower = self._grower
        assert node.zero is not None and node.one is not None
        y = grower.y[samples]
        right = [grower.predictions(side, samples) == y for side in (node.zero, node.one)]
        cares = right[0] != right[1]
        minded = samples[cares]
        if not minded.size:
            return node.feature, 0
        gains = np.where(right[1][cares], grower.weights[minded], -grower.weights[minded])
        ones = grower.sums(gains, minded)
        whole = float(gains.sum())
        turned = whole - ones  # with swapped sides
        best, other = int(np.argmax(ones)), int(np.argmax(turned))
        if max(ones[best], turned[other]) <= ones[node.feature]:
            return node.feature, 0
        return (best, 0) if ones[best] >= turned[other] else (other, 1)

    # ---------------------------------------------------------------- regrow, exact

    def _moved(self, node: GrownNode, place: Place) -> GrownNode | None:
        """Return the subtree with one node of its top changed; None if there is none to change."""
        grower = self._grower
        if place.room == 0 or grower.is_settled(place.samples):
            return None
        if place.room <= EXACT_LEVELS and grower.is_tail(place):
            return None
        sides = node.sides
        if sides is None or self._rng.random() < 1.0 / max(1, place.room - 1):
            return self._changed(node, place)
        parts = grower.split(place, node.feature)
        lost = [self._lost(side, part) for side, part in zip(sides, parts, strict=True)]
        side = int(self._rng.random() * sum(lost) >= lost[0])
        moved = self._moved(sides[side], parts[side])
        if moved is None:
            return self._changed(node, place)
        zero, one = (moved, sides[1]) if side == 0 else (sides[0], moved)
        joined = grower.joined(place.samples, node.feature, zero, one)
        # Another feature may now be better for the nodes above.
        return self.improved(joined, place) if moved.value >= sides[side].value else joined

    def _lost(self, node: GrownNode, place: Place) -> float:
        """Return the misclassified weight of a subtree plus the price of its leaves."""
        return float(self._grower.weights[place.samples].sum()) - node.value

    def _changed(self, node: GrownNode, place: Place) -> GrownNode:
        exact = self._exact(place)
        if exact is not None:
            return exact
        regrown = self._regrown(node, place)
        if regrown.value < node.value and self._lost(regrown, place) <= _NEARLY * self._lost(node, place):
            # Compare fairly: the present subtree may have exact tails of more levels.
            regrown = self._with_exact_tails(regrown, place)
        return regrown

    def _regrown(self, node: GrownNode, place: Place) -> GrownNode:
        grower, rng = self._grower, self._rng
        criterion = _CRITERIA[rng.integers(len(_CRITERIA))]
        scores = grower.scores(place, criterion)
        usable = np.flatnonzero(np.isfinite(scores))
        if not usable.size:
            return grower.leaf(place.samples)
        # Ranks are drawn geometrically: good splits often, every split sometimes.
        ranked = usable[np.argsort(-scores[usable], kind="stable")]
        share = rng.choice([0.5, 0.2, 0.05])
        feature = int(ranked[min(int(rng.geometric(share)) - 1, ranked.size - 1)])
        sides = node.sides
        allowed = rng.random(grower.n_features) < rng.choice([0.3, 0.6, 1.0])
        grown = []
        for side, part in enumerate(grower.split(place, feature)):
            if sides is not None and rng.random() < 0.5:
                grown.append(self._pass(sides[side], part))
            else:
                grown.append(grower.grow(part, criterion, allowed))
        return self.improved(grower.joined(place.samples, feature, grown[0], grown[1]), place)

    def _exact(self, place: Place) -> GrownNode | None:
        """Return the best subtree of a place, once per place and if that is fast; otherwise None."""
        key = place.literals, place.room
        if place.room <= EXACT_LEVELS or key in self._known:
            return None
        if self._exact_seconds(place.samples.size, place.room) > self.longest:
            return None
        grower, samples = self._grower, place.samples
        found = best_tree(
            grower.X[samples],
            grower.y[samples],
            grower.weights[samples],
            grower.n_classes,
            place.room,
            grower.price,
            deadline=None if (left := self._remaining()) == math.inf else time.monotonic() + left,
            should_stop=self._should_stop,
        )
        self.counts.exact += 1
        node = grower.node(found.tree, samples)
        if found.exact:
            self._known[key] = node
        return node

    def _with_exact_tails(self, node: GrownNode, place: Place) -> GrownNode:
        if self._should_stop():
            raise OutOfTime
        exact = self._exact(place)
        if exact is not None:
            return exact if exact.value > node.value else node
        sides = node.sides
        if sides is None or place.room <= EXACT_LEVELS:
            return node
        parts = self._grower.split(place, node.feature)
        zero, one = (self._with_exact_tails(side, part) for side, part in zip(sides, parts, strict=True))
        return self._grower.joined(place.samples, node.feature, zero, one)


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
    leaf_price : float
        In units of weight.
    offer : callable (DecisionTree)
        Called with every tree that is better than those before; returns whether it is feasible.
    stopper : Stopper
        Called at every node; may be replaced between time slices.
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
