"""Levels of the profile computation: depth two of one set of samples, and of the sides of features and of pairs.

Level two (`PairLevel`) is trees of depth at most two on all samples, and on both sides of each feature depth one. Level
three and level four (`DeepLevels`) are depth two on both sides of every feature, and on the four sides of every pair.
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
        """Score of trees with this number on samples of this total weight."""
        return (number + weight) / 2 if self.signed else number

    def from_score(self, score: Any, weight: Any) -> Any:
        """The reverse."""
        return 2 * score - weight if self.signed else score

    def price(self, leaf_price: float) -> float:
        """Leaf price in table units."""
        return 2 * leaf_price if self.signed else leaf_price


def convolve(left: Array, right: Array) -> Array:
    """Max-plus convolution along the last axis: entry h - 1 is the best sum over leaves i + j = h, h >= 2.

    Entry 0 (a single leaf) is not a split and stays minus infinity.
    """
    n_left, n_right = left.shape[-1], right.shape[-1]
    result = np.full((*left.shape[:-1], n_left + n_right), -np.inf)
    for i in range(n_left):
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right, out=part)
    return result


def convolve_rising(left: Array, right: Array, size: int) -> Array:
    """`convolve` of profiles, which rise along their last axis, up to so many leaves.

    Only where the left one rises can another leaf there be worth anything: most profiles of deep trees rise seldom.
    """
    n_right = min(right.shape[-1], size - 1)
    result = np.full((*left.shape[:-1], size), -np.inf)
    rises = (np.diff(left, axis=-1) > 0).reshape(-1, left.shape[-1] - 1).any(axis=0)
    for i in [0, *(np.flatnonzero(rises) + 1).tolist()]:
        part = result[..., i + 1 : i + 1 + n_right]
        np.maximum(part, left[..., i : i + 1] + right[..., : part.shape[-1]], out=part)
    return np.asarray(np.maximum.accumulate(result, axis=-1))


def with_leaf(split: Array, leaf: Array) -> Array:
    """Profile from the best splits and the score of a single leaf: made monotone."""
    split[..., 0] = leaf
    return np.asarray(np.maximum.accumulate(split, axis=-1))


@dataclass
class Profile:
    """Profile of one set and depth in table units, with what is needed to rebuild its trees.

    `lower` are scores of known trees, `upper` proven bounds; they agree everywhere when `exact`.
    """

    lower: FloatArray
    upper: FloatArray
    tree: Callable[[int], DecisionTree]

    @property
    def exact(self) -> bool:
        """Whether every number of leaves is proven."""
        return bool(np.array_equal(self.lower, self.upper))


def better_of(found: Profile, fallback: Profile) -> Profile:
    """The better known tree for each number of leaves, with the fallback's bounds."""
    lower = np.maximum(found.lower, fallback.lower)

    def tree(leaves: int) -> DecisionTree:
        source = found if found.lower[leaves - 1] >= fallback.lower[leaves - 1] else fallback
        return source.tree(leaves)

    return Profile(lower, np.maximum(lower, fallback.upper), tree)


def extended(profile: FloatArray, size: int) -> FloatArray:
    """A profile of lower depth as (lower bounds of) one for as many leaves."""
    return np.concatenate([profile, np.full(size - profile.size, profile[-1])])


def find_split(zero: FloatArray, one: FloatArray, values: FloatArray, leaves: int) -> tuple[int, int, int] | None:
    """Column and leaf counts of both sides that reach ``values[leaves - 1]``; None when a leaf does."""
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
    """Filled while the search goes on; other threads may read it at any time.

    Attributes
    ----------
    level : int
        Of the tables that are being filled; 0 before.
    features : (int, int)
        That the level is done with, of how many.
    roots : (int, int)
        Root features that may still hold a better tree, of how many.
    """

    level: int = 0
    features: tuple[int, int] = (0, 0)
    roots: tuple[int, int] = (0, 0)

    @property
    def doing(self) -> str:
        """In words."""
        return "root features" if self.roots[1] else _LEVELS[self.level]

    @property
    def figures(self) -> dict[str, tuple[int, int]]:
        """By name."""
        if self.roots[1]:
            return {"roots open": self.roots}
        return {"features": self.features} if self.features[1] else {}


@dataclass
class SearchCounts:
    """How many sets of samples were looked at on which level, how many root features; and how far all is."""

    pair_levels: int = 0
    level_three: int = 0
    level_four: int = 0
    roots: int = 0
    steps: Steps = field(default_factory=Steps)


logger = logging.getLogger(__name__)

_SHARED_ENTRIES = 2 * 10**7


def ceiling_of(data: Samples) -> float:
    """What no tree exceeds, in table units."""
    return float(Units(data.signed).from_score(data.ceiling, data.total_weight))


def side_ceilings(data: Samples) -> FloatArray:
    """What no tree on a side (F, 2) exceeds, in table units."""
    return np.asarray(Units(data.signed).from_score(data.side_ceilings, data.side_weights), dtype=np.float64)


class PairLevel:
    """Everything about trees of depth at most two on one set: pair counts and the passes over them.

    Parameters
    ----------
    data : Samples
    stopper : Stopper, optional
        Asked between some features and the next; then what is not known yet has bounds.
    table_limit : int
        Bytes that the table of pairs may take to be kept; small ones always are. The deeper levels need it.
    depth : {1, 2}
        1: only what trees of depth one need. No pairs are counted, sides are leaves, and only the first two entries of
        the profile mean something; those are exact.

    Attributes
    ----------
    profile : (4,) best known scores of depth two
    side_profiles : (F, 2, 2) best known scores of both sides of every feature, with one and with two leaves
    exact : bool
        Whether these are the best there are; false only when stopped.
    upper_profile, side_upper : bounds on them, equal to them when exact
    counts : PairCounts
        What all this is read off.
    kept : bool
        Whether they hold the table of pairs, which the deeper levels need.
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
        """What no tree exceeds, in table units."""
        return ceiling_of(self.data)

    def _joined(self, sides: FloatArray) -> FloatArray:
        """Profile of depth two from those of all sides."""
        split = convolve(sides[:, 0], sides[:, 1])
        return with_leaf(split.max(axis=0, initial=-np.inf), np.asarray(self.leaf))

    def _side_bounds(self) -> FloatArray:
        """Two leaves on a side score at most its equivalent-point bound, and at most what two leaves score on all.

        The latter under local rules too: leaves of all samples are heavier than those of a side.
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
        """The table (channels, F, F) without the blocks and the padding of the kernels; only when `kept`."""
        blocked = self.counts.source.whole.table
        channels, blocks, n_features, lanes = blocked.shape
        return blocked.transpose(0, 2, 1, 3).reshape(channels, n_features, blocks * lanes)[:, :, :n_features]

    def scores(self, counts: Array) -> Array:
        """What leaves with these counts (channels, ...) are worth."""
        return self.counts.statistic.score(counts)

    def tree(self, max_leaves: int) -> DecisionTree:
        """A best tree with at most `max_leaves` leaves, in the original features and in arrays for depth two."""
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
    """Profiles of all sides of every feature (level three) and of every pair of features (level four), compiled.

    Parameters
    ----------
    pairs : PairLevel
        Level two of the same data.
    keep_tables : bool
        Keep the tables of every feature: level four needs them, F**2 * P counters per channel.
    keep_scores : bool
        Keep the scores of the sides of all pairs, 8 * F * P of them: `scores_below` reads them.
    steps : Steps, optional
        Told how far the levels are.
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
        """Whether `keep_tables` stays within the limit; if not, the log says what happens instead."""
        needed = DeepLevels.table_bytes(pairs)
        if pairs.kept and needed <= memory_limit:
            return True
        _log_tables(pairs, needed, memory_limit)
        return False

    @staticmethod
    def table_limit(memory_limit: int, threads: int) -> int:
        """Size of a table of pairs up to which level three stays within the limit: two more of them per thread."""
        return memory_limit // (1 + 2 * max(1, threads))

    @staticmethod
    def seconds(data: Samples) -> float:
        """What level three takes at least, roughly: a pass over a table of pairs for every feature."""
        return 1e-10 * (1 if data.signed else data.n_classes) * float(data.n_features) ** 3

    @staticmethod
    def possible(pairs: PairLevel, memory_limit: int, threads: int) -> bool:
        """Whether level three can be computed: compiled, and with the table of pairs at hand."""
        if not pairs.kept and pairs.table_bytes:
            _log_tables(pairs, (1 + 2 * max(1, threads)) * pairs.table_bytes, memory_limit)
        return bool(pairs.kept)

    @staticmethod
    def table_bytes(pairs: PairLevel) -> int:
        """Memory that `keep_tables` takes."""
        return int(pairs.n_features * pairs.table_bytes)

    @staticmethod
    def score_bytes(pairs: PairLevel) -> int:
        """Memory that `keep_scores` takes."""
        layout = pairs.counts.source.layout
        return int(8 * pairs.n_features * layout.width * layout.dtype.itemsize)

    def level_three(self, stopper: Stopper) -> bool:
        """Fill `side_profiles` (F, 2, 4), depth two on both sides of each feature. False when stopped."""
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
        """Best scores (F, 2, 2) on one side of a feature, by another feature, its side, and one or two leaves."""
        F = self.pairs.n_features
        result = self._scores[f, :, 2 * side : 2 * side + 2, :F].transpose(2, 1, 0).astype(np.float64)
        result[:f] = self._scores[:f, :, side::2, f].transpose(0, 2, 1)  # level three looks at a pair once
        return np.maximum.accumulate(result, axis=-1)

    def level_four(self, stopper: Stopper) -> bool:
        """Fill `pair_scores`: depth two on the four sides of each pair. False when stopped."""
        source, apart = self._source, self.pairs.counts.apart
        F, width = self.pairs.n_features, source.layout.width
        want = np.ones((F, F), dtype=bool) if apart is None else ~apart
        # With very many samples counting takes the time, not the tables: one f at a time looks at the clock more often.
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
        """Take a step for every feature (every `stride`-th) on the threads; results are joined by maximum."""
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
            except BaseException:  # of one thread, or Ctrl-C: the others would go on to their end
                abandoned.set()
                raise
        scores = results[0][0]
        for other, _ in results[1:]:
            np.maximum(scores, other, out=scores)
        return scores, all(done for _, done in results)

    def _pair_leaves(self) -> FloatArray:
        """Scores (F, 2, F, 2) of the sides of all pairs as one leaf: feature, side, feature, side."""
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
        """Profiles (F, 2, F, 2, 4) of depth two on the sides of all pairs: feature, side, feature, side, leaves."""
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
        "tables of %d features would take %.2f GiB, above the memory limit of %.2f GiB: "
        "root features are searched one by one, which is exact too, but slower",
        pairs.n_features,
        needed / 2**30,
        memory_limit / 2**30,
    )


def _mirrored(upper: Array) -> FloatArray:
    """From (f, side, side, g), known for f < g, to (f, side, g, side) for all pairs."""
    F = upper.shape[0]
    above = np.triu(np.ones((F, F), dtype=bool), 1)
    result = np.zeros((F, 2, F, 2))
    for a, b in np.ndindex(2, 2):
        part = np.where(above, upper[:, a, b], 0).astype(np.float64)
        result[:, a, :, b] += part
        result[:, b, :, a] += part.T
    return result
