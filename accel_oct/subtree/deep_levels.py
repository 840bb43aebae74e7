"""Levels three and four of the profile computation: drives the compiled kernels over all features, on threads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.steps import Steps
from accel_oct.subtree.stopping import Stopper

Array = NDArray[Any]
Floats = NDArray[np.float64]

logger = logging.getLogger(__name__)

_SHARED_ENTRIES = 2 * 10**7


class DeepLevels:
    """Profiles of all sides of every feature (level three) and of every pair of features (level four), compiled.

    Parameters
    ----------
    pairs : PairLevel
        Level two of the same data.
    keep_tables : bool
        Keep the tables of every feature: level four needs them, F**2 * P counters per channel.
    steps : Steps, optional
        Told how far the levels are.
    """

    def __init__(self, pairs: PairLevel, keep_tables: bool, threads: int = 1, steps: Steps | None = None) -> None:
        if pairs.compiled is None or not pairs.kept:
            raise ValueError("the deeper levels need compiled counts with their table")
        self.pairs = pairs
        self._counts = pairs.compiled
        spread = self._counts.layout
        F = pairs.n_features
        self.dtype = spread.dtype
        self._threads = max(1, threads)
        self._steps = steps or Steps()
        self._keep = keep_tables
        self._tables: Array = np.zeros((F if keep_tables else 0, *spread.table_shape), dtype=spread.dtype)
        self.side_profiles: Floats = np.zeros((F, 2, 4))
        self._splits: Array = np.zeros((F if keep_tables else 0, 4, spread.width), dtype=spread.dtype)
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
    def seconds(data: Reduced) -> float:
        """What level three takes at least, roughly: a pass over a table of pairs for every feature."""
        return 1e-10 * (1 if data.signed else data.n_classes) * float(data.n_features) ** 3

    @staticmethod
    def possible(pairs: PairLevel, memory_limit: int, threads: int) -> bool:
        """Whether level three can be computed: compiled, and with the table of pairs at hand."""
        if pairs.compiled is None:
            return False
        if not pairs.kept:
            _log_tables(pairs, (1 + 2 * max(1, threads)) * pairs.table_bytes, memory_limit)
        return bool(pairs.kept)

    @staticmethod
    def table_bytes(pairs: PairLevel) -> int:
        """Memory that `keep_tables` takes."""
        return int(pairs.n_features * pairs.table_bytes)

    def level_three(self, stopper: Stopper) -> bool:
        """Fill `side_profiles` (F, 2, 4), depth two on both sides of each feature. False when stopped."""
        pairs, counts = self.pairs, self._counts
        F, width = pairs.n_features, counts.layout.width
        level = native.level_three(
            counts.rule.signed, counts.members, counts.entries, counts.whole, counts.limits, self._splits
        )

        def step(f: int, work: native.Work, best: Array) -> bool:
            level(f, self._tables[f] if self._keep else work.table, work, best)
            return True

        self._steps.level = 3
        best, done = self._parallel(step, 1, 6 * width, stopper)
        split = best.reshape(2, 3, width)[:, :, :F].transpose(2, 0, 1).astype(np.float64)
        self.side_profiles[:, :, 0] = pairs.side_profiles[:, :, 0]
        self.side_profiles[:, :, 1:] = split
        np.maximum.accumulate(self.side_profiles, axis=-1, out=self.side_profiles)
        return done

    def level_four(self, stopper: Stopper, wanted: NDArray[np.bool_] | None = None) -> bool:
        """Fill `pair_scores`: depth two on the four sides of each (wanted) pair. False when stopped.

        `wanted` (F, F) marks pairs f < g; without it all pairs are served, each triple of features once.
        """
        counts = self._counts
        F, width = self.pairs.n_features, counts.layout.width
        symmetric = wanted is None
        want = np.ones((F, F), dtype=bool) if wanted is None else wanted
        if counts.apart is not None:
            want = want & ~counts.apart
        # With very many samples counting takes the time, not the tables: one f at a time looks at the clock more often.
        sweep = native.Work.SHARED_SWEEP if counts.layout.entries.size <= _SHARED_ENTRIES else 1
        level = native.level_four(
            *(counts.rule.signed, counts.members, counts.entries, counts.whole, counts.limits),
            *(self._tables, np.ascontiguousarray(want).view(np.uint8), symmetric),
        )
        flag = native.StopFlag()

        def step(f: int, work: native.Work, best: Array) -> bool:
            return level(f, min(sweep, F - f), work, best, flag)

        self._steps.level = 4
        best, done = self._parallel(step, sweep, F * 12 * width, stopper)
        self.pair_scores = best.reshape(F, 2, 2, 3, width)[..., :F]
        return done

    def _parallel(
        self, step: Callable[[int, native.Work, Array], bool], stride: int, size: int, stopper: Stopper
    ) -> tuple[Array, bool]:
        """Take a step for every feature (every `stride`-th) on the threads; results are joined by maximum."""
        F, spread = self.pairs.n_features, self._counts.layout
        queue = iter(range(0, F, stride))

        def worker() -> tuple[Array, bool]:
            work = spread.work()
            best: Array = np.zeros(size, dtype=spread.dtype)
            for f in queue:
                self._steps.features = (f, F)
                if stopper() or not step(f, work, best):
                    return best, False
            return best, True

        threads = min(self._threads, -(-F // stride))
        if threads == 1 or F < 8:
            return worker()
        with ThreadPoolExecutor(threads) as pool:
            results = [future.result() for future in [pool.submit(worker) for _ in range(threads)]]
        scores = results[0][0]
        for other, _ in results[1:]:
            np.maximum(scores, other, out=scores)
        return scores, all(done for _, done in results)

    def pair_leaves(self) -> Floats:
        """Scores (F, 2, F, 2) of the sides of all pairs as one leaf: feature, side, feature, side."""
        result = np.zeros((self.pairs.n_features, 2, self.pairs.n_features, 2))
        for a, b, counts in self._sides():
            result[:, a, :, b] = self.pairs.scores(counts)
        if self._counts.apart is not None:
            result = np.where(self._counts.apart[:, None, :, None], -np.inf, result)
        return result

    def _sides(self) -> Iterator[tuple[int, int, Floats]]:
        """Two sides, and the counts (channels, F, F) of these sides of every pair."""
        pairs = self.pairs
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
            yield a, b, counts

    def without_room(self, leaves: int) -> NDArray[np.bool_] | None:
        """Sides (F, 2, F, 2) of pairs that are too light for so many leaves; None without rules."""
        rules = self.pairs.data.rules
        if rules is None:
            return None
        result = np.zeros((self.pairs.n_features, 2, self.pairs.n_features, 2), dtype=bool)
        for a, b, counts in self._sides():
            result[:, a, :, b] = ~rules.room_for(leaves, counts[-1:])
        return result

    def pair_splits(self) -> Floats:
        """Scores (F, 2, F, 2) of the sides of all pairs with at most two leaves; needs level three with tables."""
        F, leaves = self.pairs.n_features, self.pair_leaves()
        splits = np.maximum(leaves, _mirrored(self._splits[:, :, :F].reshape(F, 2, 2, F)))
        if self._counts.limits is not None:
            splits[leaves == -np.inf] = -np.inf
        return splits

    def pair_profiles(self) -> Floats:
        """Profiles (F, 2, F, 2, 4) of depth two on the sides of all pairs: feature, side, feature, side, leaves."""
        result = np.zeros((*([self.pairs.n_features, 2] * 2), 4))
        result[..., 0] = self.pair_leaves()
        for h in range(3 if self.pair_scores.size else 0):
            result[..., h + 1] = _mirrored(self.pair_scores[:, :, :, h])
        if self._counts.limits is not None:
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


def _mirrored(upper: Array) -> Floats:
    """From (f, side, side, g), known for f < g, to (f, side, g, side) for all pairs."""
    F = upper.shape[0]
    above = np.triu(np.ones((F, F), dtype=bool), 1)
    result = np.zeros((F, 2, F, 2))
    for a, b in np.ndindex(2, 2):
        part = np.where(above, upper[:, a, b], 0).astype(np.float64)
        result[:, a, :, b] += part
        result[:, b, :, a] += part.T
    return result
