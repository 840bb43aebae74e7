"""Subtrees by path: the cache that the path-bound cuts and the polishing heuristic share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from accel_oct.subtree.d2s import DepthTwoSolver, Subtree

Literals = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class CacheStatistics:
    """What a cache did, and what it holds."""

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int


class SubtreeCache:
    """Depth-two subtrees keyed on the set of literals (feature, direction) of a path and the leaf price.

    The key is a set, so paths that test the same features in another order share one entry (the paper's
    section on path-bound cutting planes). Least recently used entries leave when the memory limit is reached.

    Parameters
    ----------
    solver : DepthTwoSolver
    memory_limit : int
        Bytes the cached subtrees may hold together.

    Attributes
    ----------
    hits, misses, evictions : int
        Counters since construction.
    bytes : int
        Memory held now.
    """

    def __init__(self, solver: DepthTwoSolver, memory_limit: int = 256 * 2**20) -> None:
        if memory_limit < 0:
            raise ValueError(f"memory_limit must not be negative, got {memory_limit}")
        self.solver = solver
        self.memory_limit = memory_limit
        self.hits = 0
        self.misses = 0
        self.evictions = 0
        self.bytes = 0
        self._entries: OrderedDict[tuple[Literals, float, int], Subtree] = OrderedDict()

    def lookup(
        self,
        literals: Iterable[tuple[int, int]],
        leaf_price: float,
        samples: ArrayLike | None = None,
        *,
        max_depth: int = 2,
    ) -> Subtree:
        """Optimal subtree below the path with these literals; `samples` saves routing when known."""
        key = (frozenset(literals), float(leaf_price), max_depth)
        found = self._entries.get(key)
        if found is not None:
            self.hits += 1
            self._entries.move_to_end(key)
            return found
        self.misses += 1
        if samples is None:
            samples = self.solver.select(key[0])
        subtree = self.solver.solve(samples, leaf_price, max_depth=max_depth)
        self._entries[key] = subtree
        self.bytes += subtree.nbytes
        while self.bytes > self.memory_limit and self._entries:
            _, oldest = self._entries.popitem(last=False)
            self.bytes -= oldest.nbytes
            self.evictions += 1
        return subtree

    def at_price(self, leaf_price: float) -> Callable[..., Subtree]:
        """`lookup` for one leaf price, as the polishing heuristic asks it: (literals, samples, max_depth=...)."""

        def lookup(literals: Literals, samples: ArrayLike, *, max_depth: int) -> Subtree:
            return self.lookup(literals, leaf_price, samples, max_depth=max_depth)

        return lookup

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all entries; the counters stay."""
        self._entries.clear()
        self.bytes = 0

    @property
    def statistics(self) -> CacheStatistics:
        """The counters now."""
        return CacheStatistics(self.hits, self.misses, self.evictions, len(self._entries), self.bytes)
