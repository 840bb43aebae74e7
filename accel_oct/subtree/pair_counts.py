"""The counting core: class-wise counts of all pairs of features of one set, and the best further split of each side.

The profile of depth two (`PairLevel`), which all tables and bounds build on, is read off these counts. Compiled kernels
fill them (`compiled_counts`) where leaves have at most one mass; matrix products, here, take several masses.

A table of pairs has F**2 counters per channel. It is worked through some features at a time, in steps that look at the
clock, and a table is only kept whole when it is small or when the caller has room for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.reduction import Reduced, weighted_sums
from accel_oct.subtree.stopping import Stopper

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NUMPY_STEP = 2**21
"""Entries of X that a step of matrix products multiplies at a time."""


@dataclass(frozen=True)
class LeafRule:
    """What a leaf is worth, and which class it gets, by the counts (channels, ...) of its samples.

    Attributes
    ----------
    signed : bool
        One channel, class 1 minus class 0; scores are |d|, which stands for twice the score minus the weight. Else one
        channel per class.
    least : tuple of float
        As many further channels hold masses, and leaves with less than this are not allowed.
    """

    signed: bool
    least: tuple[float, ...] = ()

    def score(self, counts: Array) -> Array:
        """Score in table units, minus infinity where a leaf would be too light."""
        if not self.least:
            return np.asarray(np.abs(counts[0]) if self.signed else counts.max(axis=0))
        classes, masses = counts[: -len(self.least)], counts[-len(self.least) :]
        scores = np.abs(classes[0]) if self.signed else classes.max(axis=0)
        enough = np.all([mass >= least for mass, least in zip(masses, self.least, strict=True)], axis=0)
        return np.where(enough, scores, -np.inf)

    def label(self, counts: Array) -> int:
        """The best class, the smallest of those that are as good."""
        if self.signed:
            return int(counts[0] > 0)
        return int(np.argmax(counts[: -len(self.least)] if self.least else counts))


def class_amounts(y: Ints, weights: Floats, n_classes: int) -> Floats:
    """Weight (channels, n) that every sample has in each channel, for plain accuracy."""
    if n_classes == 2:
        return np.where(y == 1, weights, -weights)[None]
    return np.asarray(weights * (y == np.arange(n_classes)[:, None]))


def all_amounts(data: Reduced) -> Floats:
    """The same for reduced data, with a channel for every mass of its local rules."""
    amounts = class_amounts(data.y, data.weights, data.n_classes)
    return amounts if data.rules is None else np.concatenate([amounts, data.rules.masses])


class PairCounts:
    """What trees of depth two need to know of one set of samples.

    Attributes
    ----------
    X : (n, F) and amounts : (channels, n)
        Features of the samples, and what each adds to the counts.
    rule : LeafRule
    totals : (channels,) and single : (channels, F or more)
        Counts of the set and of the one-side of every feature.
    one_leaf, two_leaves : (2, F or more)
        Best scores of both sides of every feature as a leaf and with one more split, in table units. Where `known` is
        false the latter says nothing.
    known : bool (F,)
        All true unless the stopper struck.
    apart : bool (F, F) or None
        Features that may not share a path.
    """

    totals: Array
    single: Array
    one_leaf: Array
    two_leaves: Array

    def __init__(self, X: Array, rule: LeafRule, apart: NDArray[np.bool_] | None = None) -> None:
        self.X = X
        self.rule = rule
        self.apart = apart
        self.n_features = int(X.shape[1])
        self.known = np.zeros(self.n_features, dtype=bool)

    @property
    def amounts(self) -> Floats:
        raise NotImplementedError

    def row(self, c: int) -> Floats:
        """Counts (channels, F) of the samples with feature c and every other feature."""
        rows = self.X[:, c] == 1
        return weighted_sums(self.amounts[:, rows], self.X, rows)

    def side(self, c: int, side: int) -> Floats:
        """Counts (channels,) of one side of a feature."""
        at_c = self.single[:, c].astype(np.float64)
        return at_c if side else self.totals - at_c

    def best_split(self, c: int, side: int) -> tuple[int, Floats, Floats]:
        """First of the best splits of one side of feature c, with the counts of its zero-side and its one-side."""
        ones = self.row(c)
        if side == 0:
            ones = self.single[:, : self.n_features] - ones
        zeros = self.side(c, side)[:, None] - ones
        scores = self.rule.score(ones) + self.rule.score(zeros)
        if self.apart is not None:
            scores = np.where(self.apart[c], -np.inf, scores)
        b = int(np.argmax(scores))
        return b, zeros[:, b], ones[:, b]

    def _leaves_only(self) -> None:
        """Scores of both sides of every feature as leaves, and nothing more."""
        F = self.n_features
        single = self.single[:, :F]
        single[:] = weighted_sums(self.amounts, self.X)
        self.one_leaf[1, :F] = self.rule.score(single)
        self.one_leaf[0, :F] = self.rule.score(self.totals[:, None] - single)

    def _best_first(self, step: int) -> Iterator[tuple[int, int]]:
        """Ranges of features, those with the best single split first: a stop then leaves the best tree it can."""
        F = self.n_features
        stumps = self.one_leaf[:, :F].sum(axis=0, dtype=np.float64)
        ranges = [(first, min(first + step, F)) for first in range(0, F, step)]
        return iter(sorted(ranges, key=lambda part: -stumps[part[0] : part[1]].max()))


class NumpyCounts(PairCounts):
    """Counts by matrix products; tables are never kept.

    Parameters
    ----------
    X, amounts, rule
        See above.
    stopper : Stopper, optional
    pairs : bool
        False: trees of depth one only, no further splits.
    apart : bool (F, F), optional
        Features that may not share a path.
    """

    def __init__(
        self,
        X: Array,
        amounts: Floats,
        rule: LeafRule,
        stopper: Stopper | None = None,
        *,
        pairs: bool = True,
        apart: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(X, rule, apart)
        self._amounts = amounts
        F = self.n_features
        self.totals = amounts.sum(axis=1)
        self.single = np.zeros((amounts.shape[0], F))
        self.one_leaf = np.zeros((2, F))
        self.two_leaves = np.full((2, F), -np.inf)
        self._leaves_only()
        if pairs:
            self._in_steps(stopper or Stopper())

    @property
    def amounts(self) -> Floats:
        return self._amounts

    def _in_steps(self, stopper: Stopper) -> None:
        F = self.n_features
        step = int(np.clip(_NUMPY_STEP // max(1, self.X.shape[0]), 16, 512))
        for first, last in self._best_first(step):
            for other in range(0, F, step):
                if stopper():
                    self.two_leaves[:, first:last] = -np.inf
                    return
                self._multiply(slice(first, last), slice(other, other + step))
            self.known[first:last] = True

    def _multiply(self, here: slice, other: slice) -> None:
        """Raise the two-leaf scores of some features by splits on some others."""
        X = self.X[:, other].astype(np.float64, copy=False)
        both = (self.X[:, here].T * self._amounts[:, None, :]) @ X  # (channels, here, other)
        single, totals, score = self.single, self.totals[:, None], self.rule.score
        for side in (0, 1):
            counts = single[:, here] if side else totals - single[:, here]
            ones = both if side else single[:, None, other] - both
            scores = score(ones) + score(counts[:, :, None] - ones)
            if self.apart is not None:
                scores = np.where(self.apart[here, other], -np.inf, scores)
            target = self.two_leaves[side, here]
            np.maximum(target, scores.max(axis=1), out=target)
