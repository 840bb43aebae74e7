"""Score profiles, and their computation for depth two on a set of samples and on the sides of features and of pairs.

A profile of depth d is an array of 2**d numbers: entry h - 1 is the best score of a tree of depth at most d with at
most h leaves. Profiles do not depend on the leaf price, so one computation serves all prices. The profile of a split is
the max-plus convolution of the profiles of its sides.

Numbers are in *table units*: with two classes the sum of |d| over the leaves, which is twice the score minus the
weight; with more classes the score itself. `Units` converts.

Level two (`PairLevel`) has trees of depth at most two on all samples, and of depth one on both sides of each feature.
Levels three and four (`DeepLevels`) have depth two on both sides of every feature, and on the four sides of every pair.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np

from accel_oct import native
from accel_oct.exact.samples import Samples
from accel_oct.support.arrays import Array, FloatArray
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class Units:
    """Conversion between table units and scores."""

    signed: bool

    def to_score(self, number: Any, weight: Any) -> Any:
        """Convert a number in table units to a score, for samples of this total weight."""
        return (number + weight) / 2 if self.signed else number

    def from_score(self, score: Any, weight: Any) -> Any:
        """Convert a score to table units."""
        return 2 * score - weight if self.signed else score

    def price(self, leaf_price: float) -> float:
        """Convert a leaf price to table units."""
        return 2 * leaf_price if self.signed else leaf_price


def convolve(left: Array, right: Array) -> Array:
    """Return the max-plus convolution along the last axis: entry h - 1 is the best sum over leaves i + j = h, h >= 2.

    Entry 0 (a single leaf) is not a split and is minus infinity.
    """
    n_left, n_right = left.shape[-1], right.shape[-1]
    result = np.full((*left.shape[:-1], n_left + n_right), -np.inf)
    for i in range(n_left):
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right, out=part)
    return result


def convolve_rising(left: Array, right: Array, size: int) -> Array:
    """Return the convolution of two nondecreasing profiles, made nondecreasing, up to `size` leaves.

    Entries where the left profile does not rise are skipped; most profiles of deep trees rise at few of them.
    """
    n_right = min(right.shape[-1], size - 1)
    result = np.full((*left.shape[:-1], size), -np.inf)
    rises = (np.diff(left, axis=-1) > 0).reshape(-1, left.shape[-1] - 1).any(axis=0)
    for i in [0, *(np.flatnonzero(rises) + 1).tolist()]:
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right[..., : part.shape[-1]], out=part)
    return np.asarray(np.maximum.accumulate(result, axis=-1))


def with_leaf(split: Array, leaf: Array) -> Array:
    """Return the nondecreasing profile from the best splits and the score of a single leaf."""
    split[..., 0] = leaf
    return np.asarray(np.maximum.accumulate(split, axis=-1))


@dataclass
class Profile:
    """Profile of one set and depth in table units, with a function that builds its trees.

    `lower` are scores of known trees, `upper` proven bounds; they are equal if `exact`.
    """

    lower: FloatArray
    upper: FloatArray
    tree: Callable[[int], DecisionTree]

    @property
    def exact(self) -> bool:
        """Whether every number of leaves is proven."""
        return bool(np.array_equal(self.lower, self.upper))


def better_of(found: Profile, fallback: Profile) -> Profile:
    """Return the better known tree for each number of leaves, with the bounds of the fallback."""
    lower = np.maximum(found.lower, fallback.lower)

    def tree(leaves: int) -> DecisionTree:
        source = found if found.lower[leaves - 1] >= fallback.lower[leaves - 1] else fallback
        return source.tree(leaves)

    return Profile(lower, np.maximum(lower, fallback.upper), tree)


def extended(profile: FloatArray, size: int) -> FloatArray:
    """Extend a profile to `size` leaves by repeating its last entry."""
    return np.concatenate([profile, np.full(size - profile.size, profile[-1])])


def find_split(zero: FloatArray, one: FloatArray, values: FloatArray, leaves: int) -> tuple[int, int, int] | None:
    """Return the column and the leaf counts of both sides that reach ``values[leaves - 1]``; None if a leaf does."""
    goal = values[leaves - 1]
    if values[0] == goal:
        return None
    size = zero.shape[1]
    for total in range(2, leaves + 1):
        if values[total - 1] != goal:
            continue
        for left in range(max(1, total - size), min(size, total - 1) + 1):
            sums = zero[:, left - 1] + one[:, total - left - 1]
            column = int(np.argmax(sums))
            if sums[column] == goal:
                return column, left, total - left
    raise AssertionError("a profile entry has no split that reaches it")


_LEVELS = {0: "", 3: "level three", 4: "level four"}


@dataclass
class Steps:
    """Progress of a search on all of the data; other threads may read it at any time.

    Attributes
    ----------
    level : int
        Level of the tables that are being filled; 0 before.
    features : (int, int)
        Number of features done on this level, and of all features.
    roots : (int, int)
        Number of root features that may still hold a better tree, and of all root features.
    """

    level: int = 0
    features: tuple[int, int] = (0, 0)
    roots: tuple[int, int] = (0, 0)

    @property
    def doing(self) -> str:
        """Name of the current step."""
        return "root features" if self.roots[1] else _LEVELS[self.level]

    @property
    def figures(self) -> dict[str, tuple[int, int]]:
        """Counters of the current step by name: done or open, and all."""
        if self.roots[1]:
            return {"roots open": self.roots}
        return {"features": self.features} if self.features[1] else {}


@dataclass
class SearchCounts:
    """Numbers of sample sets searched by level and of root features searched, and the progress."""

    pair_levels: int = 0
    level_three: int = 0
    level_four: int = 0
    roots: int = 0
    steps: Steps = field(default_factory=Steps)


logger = logging.getLogger(__name__)

_SHARED_ENTRIES = 2 * 10**7


def ceiling_of(data: Samples) -> float:
    """Return an upper bound on the score of all trees, in table units."""
    return float(Units(data.signed).from_score(data.ceiling, data.total_weight))


def side_ceilings(data: Samples) -> FloatArray:
    """Return upper bounds (F, 2) on the scores of all trees on a side, in table units."""
    return np.asarray(Units(data.signed).from_score(data.side_ceilings, data.side_weights), dtype=np.float64)


class PairLevel:
    """Trees of depth at most two on one set of samples: pair counts and best scores.

    Parameters
    ----------
    stopper : Stopper, optional
        Checked between steps of some features; scores that are missing after a stop are replaced by bounds.
    table_limit : int
        Largest size in bytes of a table of pairs that is kept, for the deeper levels; small tables are always kept.
    depth : {1, 2}
        1: trees of depth one only. No pairs are counted, sides are leaves, and only the first two entries of the
        profile are defined; those are exact.

    Attributes
    ----------
    profile : (4,) best known scores of depth two
    side_profiles : (F, 2, 2) best known scores of both sides of every feature, with one and with two leaves
    exact : bool
        Whether these are optimal; false only if stopped.
    upper_profile, side_upper : bounds on them, equal to them if exact
    counts : PairCounts
    kept : bool
        Whether the counts hold the table of pairs, which the deeper levels need.
    """

    def __init__(self, data: Samples, stopper: Stopper | None = None, table_limit: int = 0, depth: int = 2) -> None:
        self.data = data
        self.units = Units(data.signed)
        self.n_features = data.n_features
        self.counts = data.counts(stopper or Stopper(), table_limit, pairs=depth > 1)
        self.kept, self.table_bytes = self.counts.kept, self.counts.table_bytes
        self.totals, self.single = self.counts.totals, self.counts.single
        self.exact = depth == 1 or bool(self.counts.known.all())
        self.leaf = float(self.counts.statistic.score(self.totals))
        one_leaf = self.counts.one_leaf[:, : self.n_features].astype(np.float64)
        two_leaves = np.maximum(one_leaf, self.counts.two_leaves[:, : self.n_features])
        self.side_profiles = np.stack([one_leaf, two_leaves], axis=-1).transpose(1, 0, 2)
        self.profile = self._joined(self.side_profiles)
        self.side_upper = self.side_profiles if self.exact else self._side_bounds()
        self.upper_profile = self.profile
        if not self.exact:
            self.upper_profile = np.maximum(self.profile, np.minimum(self._joined(self.side_upper), self.ceiling))

    @property
    def ceiling(self) -> float:
        """Upper bound on the score of all trees, in table units."""
        return ceiling_of(self.data)

    def _joined(self, sides: FloatArray) -> FloatArray:
        """Return the profile of depth two from the profiles of all sides."""
        split = convolve(sides[:, 0], sides[:, 1])
        return with_leaf(split.max(axis=0, initial=-np.inf), np.asarray(self.leaf))

    def _side_bounds(self) -> FloatArray:
        """Return upper profiles (F, 2, 2) of the sides.

        Two leaves on a side score at most its equivalent-point bound, and at most the best two leaves on all samples.
        The latter holds under local rules too: leaves of all samples are heavier than those of a side.
        """
        data, unknown = self.data, ~self.counts.known
        best = self.units.to_score(self.profile[1], data.total_weight)
        scores = np.minimum(data.side_ceilings, best)
        numbers = np.asarray(self.units.from_score(scores, data.side_weights))
        bounds = self.side_profiles.copy()
        bounds[unknown, :, 1] = np.maximum(bounds[unknown, :, 1], numbers[unknown])
        return bounds

    @cached_property
    def table(self) -> Array:
        """The table (channels, F, F) without the blocks and the padding of the kernels; only if `kept`."""
        blocked = self.counts.source.whole.table
        channels, blocks, n_features, lanes = blocked.shape
        return blocked.transpose(0, 2, 1, 3).reshape(channels, n_features, blocks * lanes)[:, :, :n_features]

    def scores(self, counts: Array) -> Array:
        """Return the scores of leaves with these counts (channels, ...)."""
        return self.counts.statistic.score(counts)

    def tree(self, max_leaves: int) -> DecisionTree:
        """Return a best tree with at most `max_leaves` leaves, in the original features and in arrays for depth two."""
        limit = min(max_leaves, 4)
        goal = self.profile[limit - 1]
        if goal == self.leaf:
            return self._leaf(self.totals)
        for zero, one in ((1, 1), (1, 2), (2, 1), (2, 2)):
            sums = self.side_profiles[:, 0, zero - 1] + self.side_profiles[:, 1, one - 1]
            c = int(np.argmax(sums))
            if zero + one <= limit and sums[c] == goal:
                break
        return self.data.branch(c, self._side_tree(c, 0, zero), self._side_tree(c, 1, one)).with_max_depth(2)

    def _side_tree(self, c: int, side: int, leaves: int) -> DecisionTree:
        if leaves == 1:
            return self._leaf(self.counts.side(c, side))
        b, zeros, ones = self.counts.best_split(c, side)
        return self.data.branch(b, self._leaf(zeros), self._leaf(ones))

    def _leaf(self, counts: Array) -> DecisionTree:
        return DecisionTree.leaf(self.data.statistic.label(counts))


class DeepLevels:
    """Profiles of the sides of every feature (level three) and of every pair of features (level four), by kernels.

    Parameters
    ----------
    pairs : PairLevel
        Level two of the same data.
    keep_tables : bool
        Keep the tables of every feature: level four needs them, F**2 * P counters per channel.
    keep_scores : bool
        Keep the scores of the sides of all pairs, 8 * F * P of them: `scores_below` reads them.
    steps : Steps, optional
        Updated during the computation.
    """

    def __init__(
        self,
        pairs: PairLevel,
        keep_tables: bool,
        threads: int = 1,
        steps: Steps | None = None,
        keep_scores: bool = False,
    ) -> None:
        self.pairs = pairs
        self._source = pairs.counts.source
        spread = self._source.layout
        F = pairs.n_features
        self.dtype = spread.dtype
        self._threads = max(1, threads)
        self._steps = steps or Steps()
        self._keep = keep_tables
        self._tables: Array = np.zeros((F if keep_tables else 0, *spread.table_shape), dtype=spread.dtype)
        self._scores: Array = np.zeros((F if keep_scores else 0, 2, 4, spread.width), dtype=spread.dtype)
        self.side_profiles: FloatArray = np.zeros((F, 2, 4))
        self.pair_scores: Array = np.zeros(0, dtype=spread.dtype)

    @staticmethod
    def fits(pairs: PairLevel, memory_limit: int) -> bool:
        """Return whether `keep_tables` stays within the memory limit; if not, log the consequence."""
        needed = DeepLevels.table_bytes(pairs)
        if pairs.kept and needed <= memory_limit:
            return True
        _log_tables(pairs, needed, memory_limit)
        return False

    @staticmethod
    def table_limit(memory_limit: int, threads: int) -> int:
        """Return the largest table of pairs with which level three stays within the limit: it needs two per thread."""
        return memory_limit // (1 + 2 * max(1, threads))

    @staticmethod
    def seconds(data: Samples) -> float:
        """Estimate the seconds of level three, at least: a pass over a table of pairs for every feature."""
        return 1e-10 * (1 if data.signed else data.n_classes) * float(data.n_features) ** 3

    @staticmethod
    def possible(pairs: PairLevel, memory_limit: int, threads: int) -> bool:
        """Return whether level three can be computed: the table of pairs was kept."""
        if not pairs.kept and pairs.table_bytes:
            _log_tables(pairs, (1 + 2 * max(1, threads)) * pairs.table_bytes, memory_limit)
        return bool(pairs.kept)

    @staticmethod
    def table_bytes(pairs: PairLevel) -> int:
        """Return the bytes that `keep_tables` takes."""
        return int(pairs.n_features * pairs.table_bytes)

    @staticmethod
    def score_bytes(pairs: PairLevel) -> int:
        """Return the bytes that `keep_scores` takes."""
        layout = pairs.counts.source.layout
        return int(8 * pairs.n_features * layout.width * layout.dtype.itemsize)

    def level_three(self, stopper: Stopper) -> bool:
        """Fill `side_profiles` (F, 2, 4), depth two on both sides of each feature; return False if stopped."""
        pairs, source = self.pairs, self._source
        F, width = pairs.n_features, source.layout.width
        level = native.level_three(pairs.data.signed, source.members, source.entries, source.whole, source.limits)

        def step(f: int, work: native.Work, best: Array, should_stop: Callable[[], bool]) -> None:
            level(f, self._tables[f] if self._keep else work.table, work, best, should_stop)
            if self._scores.size:
                self._scores[f] = work.scores.one_leaf[:4], work.scores.two_leaves[:4]

        self._steps.level = 3
        best, done = self._parallel(step, 1, 6 * width, stopper)
        split = best.reshape(2, 3, width)[:, :, :F].transpose(2, 0, 1).astype(np.float64)
        self.side_profiles[:, :, 0] = pairs.side_profiles[:, :, 0]
        self.side_profiles[:, :, 1:] = split
        np.maximum.accumulate(self.side_profiles, axis=-1, out=self.side_profiles)
        return done

    def scores_below(self, f: int, side: int) -> FloatArray:
        """Return scores (F, 2, 2) on one side of a feature, by another feature, its side, and one or two leaves."""
        F = self.pairs.n_features
        result = self._scores[f, :, 2 * side : 2 * side + 2, :F].transpose(2, 1, 0).astype(np.float64)
        result[:f] = self._scores[:f, :, side::2, f].transpose(0, 2, 1)  # level three computes each pair once
        return np.maximum.accumulate(result, axis=-1)

    def level_four(self, stopper: Stopper) -> bool:
        """Fill `pair_scores`, depth two on the four sides of each pair; return False if stopped."""
        source, apart = self._source, self.pairs.counts.apart
        F, width = self.pairs.n_features, source.layout.width
        want = np.ones((F, F), dtype=bool) if apart is None else ~apart
        # With very many samples counting dominates: one f at a time checks the stopper more often.
        sweep = native.Work.SHARED_SWEEP if source.layout.entries.size <= _SHARED_ENTRIES else 1
        level = native.level_four(
            *(self.pairs.data.signed, source.members, source.entries, source.whole, source.limits),
            *(self._tables, np.ascontiguousarray(want).view(np.uint8)),
        )

        def step(f: int, work: native.Work, best: Array, should_stop: Callable[[], bool]) -> None:
            level(f, min(sweep, F - f), work, best, should_stop)

        self._steps.level = 4
        best, done = self._parallel(step, sweep, F * 12 * width, stopper)
        self.pair_scores = best.reshape(F, 2, 2, 3, width)[..., :F]
        return done

    def _parallel(
        self,
        step: Callable[[int, native.Work, Array, Callable[[], bool]], None],
        stride: int,
        size: int,
        stopper: Stopper,
    ) -> tuple[Array, bool]:
        """Run a step for every `stride`-th feature on the threads; return the maximum, and whether all ran."""
        F, spread = self.pairs.n_features, self._source.layout
        queue = iter(range(0, F, stride))
        abandoned = Event()

        def should_stop() -> bool:
            return abandoned.is_set() or stopper()

        def worker() -> tuple[Array, bool]:
            work = spread.work()
            best: Array = np.zeros(size, dtype=spread.dtype)
            for f in queue:
                self._steps.features = (f, F)
                if should_stop():
                    return best, False
                try:
                    step(f, work, best, should_stop)
                except native.Stopped:
                    return best, False
            return best, True

        threads = min(self._threads, -(-F // stride))
        if threads == 1 or F < 8:
            return worker()
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(worker) for _ in range(threads)]
            try:
                results = [future.result() for future in futures]
            except BaseException:  # an error in one thread, or Ctrl-C: stop the others too
                abandoned.set()
                raise
        scores = results[0][0]
        for other, _ in results[1:]:
            np.maximum(scores, other, out=scores)
        return scores, all(done for _, done in results)

    def _pair_leaves(self) -> FloatArray:
        """Return scores (F, 2, F, 2) of the sides of all pairs as one leaf: feature, side, feature, side."""
        pairs = self.pairs
        result = np.zeros((pairs.n_features, 2, pairs.n_features, 2))
        single = pairs.single[:, : pairs.n_features].astype(np.float64)
        table = pairs.table.astype(np.float64)
        totals = pairs.totals.astype(np.float64)[:, None, None]
        for a, b in np.ndindex(2, 2):
            counts = table
            if not b:
                counts = single[:, :, None] - counts
            if not a:
                whole = single[:, None, :] if b else totals - single[:, None, :]
                counts = whole - counts
            result[:, a, :, b] = pairs.scores(counts)
        if pairs.counts.apart is not None:
            result = np.where(pairs.counts.apart[:, None, :, None], -np.inf, result)
        return result

    def pair_profiles(self) -> FloatArray:
        """Return depth-two profiles (F, 2, F, 2, 4) of the sides of all pairs: feature, side, feature, side, leaves."""
        result = np.zeros((*([self.pairs.n_features, 2] * 2), 4))
        result[..., 0] = self._pair_leaves()
        for h in range(3 if self.pair_scores.size else 0):
            result[..., h + 1] = _mirrored(self.pair_scores[:, :, :, h])
        if self._source.limits is not None:
            result[result[..., 0] == -np.inf] = -np.inf
        np.maximum.accumulate(result, axis=-1, out=result)
        return result


def _log_tables(pairs: PairLevel, needed: int, memory_limit: int) -> None:
    logger.info(
        "tables of %d features need %.2f GiB, more than the memory limit of %.2f GiB: "
        "root features are searched one by one, which is exact but slower",
        pairs.n_features,
        needed / 2**30,
        memory_limit / 2**30,
    )


def _mirrored(upper: Array) -> FloatArray:
    """Return an array (f, side, g, side) for all pairs from one (f, side, side, g) for f < g."""
    F = upper.shape[0]
    above = np.triu(np.ones((F, F), dtype=bool), 1)
    result = np.zeros((F, 2, F, 2))
    for a, b in np.ndindex(2, 2):
        part = np.where(above, upper[:, a, b], 0).astype(np.float64)
        result[:, a, :, b] += part
        result[:, b, :, a] += part.T
    return result
