"""Local search: trees that keep getting better while there is time, with exact tails all along.

A tree is its *top*, the branches with more than two levels below them; what hangs below the top is made exact by D2S.
Three moves change a top:

- *alternate*: with both sides of a node fixed, the best feature for the node is found at once for all features: every
  sample that just one of the sides classifies correctly says where it wants to go, and one product with X adds up what
  they gain. Sides are then improved for the samples that they get now.
- *regrow*: another feature at a node, drawn from the best by a criterion, and greedy sides below it, or the old ones.
- *exact*: the best of all subtrees at a node with three (or more) levels, by the tables, where they are quick.

The search goes up from the best tree again after some moves that did not help. Every better tree is offered, and one
that is refused (a constraint forbids it) is not gone on from. All values are exact sums, as everywhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accel_oct.exact.price_search import best_tree
from accel_oct.heuristics.growing import EXACT_LEVELS, Criterion, Grower, Ints, Literals, Node, OutOfTime, Place
from accel_oct.tree import DecisionTree

_CRITERIA: tuple[Criterion, ...] = ("entropy", "gini", "error")
_ROUNDS = 4
"""Passes of `alternate` over a subtree before it is left as it is."""
_PATIENCE = 60
"""Moves without a better tree after which the search goes back to the best one."""
_NEARLY = 1.2
"""Times what the present subtree loses, up to which another one is worth exact tails."""
_LONGEST_EXACT = 16.0
"""Seconds up to which estimates of exact subtrees may grow."""


@dataclass
class LocalSearchCounts:
    """What a local search did."""

    starts: int = 0
    moves: int = 0
    better: int = 0
    exact: int = 0
    seconds: float = 0.0


class LocalSearch:
    """Improves trees step by step.

    Parameters
    ----------
    grower : Grower
    max_depth : int
    offer : callable (Node)
        Told every tree that is better than all before; whether it is allowed. What is not allowed is forgotten.
    should_stop : callable
    exact_seconds : callable (n_samples, levels)
        What the exact subtree of so many levels takes, roughly; infinite where it is out of the question.
    remaining : callable
        Seconds left.
    longest : float
        Seconds that an exact subtree may take.
    seed : int
    counts : LocalSearchCounts, optional
        To be shared with other searches.
    """

    def __init__(
        self,
        grower: Grower,
        max_depth: int,
        offer: Callable[[Node], bool],
        should_stop: Callable[[], bool],
        exact_seconds: Callable[[int, int], float],
        remaining: Callable[[], float] = lambda: math.inf,
        longest: float = 1.0,
        seed: int = 0,
        counts: LocalSearchCounts | None = None,
    ) -> None:
        self._grower = grower
        self._offer = offer
        self._should_stop = should_stop
        self._exact_seconds = exact_seconds
        self._remaining = remaining
        self.longest = longest
        self._rng = np.random.default_rng(seed)
        self._whole = Place(np.arange(len(grower.y)), frozenset(), max_depth)
        self._known: dict[tuple[Literals, int], Node] = {}
        self.best: Node | None = None
        self._current: Node | None = None
        self._waited = 0
        self.counts = counts or LocalSearchCounts()

    # ---------------------------------------------------------------- what callers ask for

    def start(self, node: Node) -> None:
        """Take a tree, as it is and improved."""
        self.counts.starts += 1
        self._take(node)
        self._take(self.improved(node, self._whole))

    def start_from(self, tree: DecisionTree, only_tails: bool = False) -> None:
        """Take a tree's branches, with the best labels, as it is and improved, or with exact tails at least."""
        node = self._grower.node(tree, self._whole.samples)
        if only_tails:
            self.counts.starts += 1
            self._take(self._pass(node, self._whole, alternate=False))
        else:
            self.start(node)

    def start_greedily(self, criterion: Criterion) -> None:
        """Take a greedy tree, as it is and improved."""
        self.start(self._grower.grow(self._whole, criterion))

    def make_tails_exact(self) -> None:
        """Replace the lowest subtrees of the best tree that tables are quick for, those of most levels first."""
        if self.best is not None:
            self._take(self._with_exact_tails(self.best, self._whole))

    def step(self) -> bool:
        """One move from the current tree; whether it led to a better one than all before."""
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

    # ---------------------------------------------------------------- which trees are kept

    def _take(self, node: Node) -> bool:
        """Go on from a tree that is not worse; offer one that is better than all."""
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

    def improved(self, node: Node, place: Place) -> Node:
        """The subtree for these samples, improved until passes over its top change nothing."""
        best = self._pass(node, place)
        for _ in range(_ROUNDS):
            better = self._pass(best, place)
            if better.value <= best.value:
                return best
            best = better
        return best

    def _pass(self, node: Node, place: Place, alternate: bool = True) -> Node:
        """Best feature for every node of the top, given what hangs below it; then exact tails."""
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

    def _best_feature(self, node: Node, samples: Ints) -> tuple[int, int]:
        """The feature that sends samples to the sides that know them best, and whether the sides change places."""
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
        turned = whole - ones  # the sides change places
        best, other = int(np.argmax(ones)), int(np.argmax(turned))
        if max(ones[best], turned[other]) <= ones[node.feature]:
            return node.feature, 0
        return (best, 0) if ones[best] >= turned[other] else (other, 1)

    # ---------------------------------------------------------------- regrow, exact

    def _moved(self, node: Node, place: Place) -> Node | None:
        """The subtree with a node somewhere in its top changed; None where there is nothing to change."""
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
        # The nodes above may want another feature now, where the change was nearly as good.
        return self.improved(joined, place) if moved.value >= sides[side].value else joined

    def _lost(self, node: Node, place: Place) -> float:
        """Weight that a subtree gets wrong, and what its leaves cost."""
        return float(self._grower.weights[place.samples].sum()) - node.value

    def _changed(self, node: Node, place: Place) -> Node:
        exact = self._exact(place)
        if exact is not None:
            return exact
        regrown = self._regrown(node, place)
        if regrown.value < node.value and self._lost(regrown, place) <= _NEARLY * self._lost(node, place):
            # The present subtree may have exact tails of more levels: the comparison is fair with the same.
            regrown = self._with_exact_tails(regrown, place)
        return regrown

    def _regrown(self, node: Node, place: Place) -> Node:
        grower, rng = self._grower, self._rng
        criterion = _CRITERIA[rng.integers(len(_CRITERIA))]
        scores = grower.scores(place, criterion)
        usable = np.flatnonzero(np.isfinite(scores))
        if not usable.size:
            return grower.leaf(place.samples)
        # Ranks are drawn geometrically: good splits often, every split now and then.
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

    def _exact(self, place: Place) -> Node | None:
        """The best subtree of all, once for every place and where that is quick; None elsewhere."""
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

    def _with_exact_tails(self, node: Node, place: Place) -> Node:
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
