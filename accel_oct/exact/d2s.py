"""D2S: the optimal subtree of depth at most two, with a total order that breaks ties.

The subroutine is the one of the paper's appendix "Optimal Depth 2 Tree Subroutine": class counts of every pair of
features give CS_1 .. CS_4, the best scores with one to four leaves, and the leaf price picks among them.

Ties, and why the choice below is safe for cuts
-----------------------------------------------
Trees are compared in one total order: written out in pre-order, a leaf comes before a branch, leaves are ordered by
class index, branches by feature index, then the left subtrees are compared, then the right ones. Among all trees of
depth at most two with the largest value (score minus leaf price per leaf) on a set of samples, the solver returns
the first one in this order. The choice depends on the samples and on nothing else: not on the path that led to
them, not on the order of the rows.

The order is monotone: replacing a subtree by a smaller one makes the whole tree smaller, because the two pre-order
words agree up to that subtree and differ first inside it (a tree's word is never a proper prefix of another's, so
what follows never matters). That is what cuts made from different paths need. The paths of these cuts end at nodes
with two levels of room: at least two levels above the last one of the depth limit. Each cut says: where this path is
taken and nothing below its end reaches deeper than two levels, the subtree there is the one returned here. Start from
any optimal tree and, as long as some node with two levels of room has a subtree of depth at most two that is not the
one returned for its samples, put the returned one there; it fits within the depth limit, which it need not at a node
with less room. The value never drops; the tree was optimal, so it stays equal, so the replaced subtree was itself among
the best and the new one precedes it: the whole tree gets strictly smaller. There are finitely many trees, so this
stops, and it stops at an optimal tree in which, at *every* node with two levels of room, the subtree is the returned
one or deeper than two. This one tree satisfies all cuts at once. A cut whose path it does not take is relaxed, and so
is one below whose path it goes deeper. Nested paths need no agreement of their own: the tree returned at the outer end
may have room for one level where the one returned at the inner end has two, but if the latter reaches deeper then the
outer cut is relaxed, and if not then both ends hold what was returned for them. Symmetric paths have equal samples,
hence equal choices.

In a tree of depth one no node has two levels of room. There the root alone is asked for, with `max_depth` one, and the
same argument holds with one level in the place of two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accel_oct import native
from accel_oct.exact.counts import layout
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.tree import DecisionTree

Literals = frozenset[tuple[int, int]]

#: The name of the order above, for cuts that rely on it.
PREORDER = "preorder"


@dataclass(frozen=True)
class Subtree:
    """An optimal subtree of depth at most two.

    Attributes
    ----------
    value : float
        Score minus leaf price per leaf: the maximum over all subtrees.
    score : float
        Total weight of the samples classified correctly.
    scores : tuple of four floats
        CS_1 .. CS_4 of the paper, made nondecreasing: the best score with at most one to four leaves.
    feature, label : int64 arrays of length 7
        Heap order, -1 where a node is not a branch or not a leaf.
    samples : int64 array
        Indices of the samples that the subtree is optimal for.
    """

    value: float
    score: float
    scores: tuple[float, float, float, float]
    feature: IntArray
    label: IntArray
    samples: IntArray
    _predicted: Any

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.label >= 0))

    @property
    def tree(self) -> DecisionTree:
        """The subtree as a tree of its own, in arrays for depth two."""
        return DecisionTree(self.feature, self.label)

    @cached_property
    def correct(self) -> IntArray:
        """Indices of the samples classified correctly, in the order of `samples`."""
        result: IntArray = self._predicted(self)
        return result

    @property
    def wrong(self) -> IntArray:
        """Indices of the samples classified wrongly."""
        return np.setdiff1d(self.samples, self.correct, assume_unique=True)

    @property
    def nbytes(self) -> int:
        """Bytes for the memory limit of the cache; counts `correct` even before it is computed."""
        return 512 + 16 * self.samples.size


class DepthTwoSolver:
    """Exact optimal subtrees of depth at most two on subsets of one data set.

    Parameters
    ----------
    X : array_like of bool, shape (n, F)
        Binary features.
    y : array_like of int, shape (n,)
        Class indices 0 .. n_classes-1.
    weights : array_like of float, shape (n,)
        Sample weights on a dyadic grid, so that all sums are exact.
    n_classes : int
        Number of classes.

    Notes
    -----
    An instance keeps work arrays and is not meant to be shared between threads.
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, weights: ArrayLike, n_classes: int) -> None:
        self._X = np.ascontiguousarray(X, dtype=bool)
        self._y = np.ascontiguousarray(y, dtype=np.int64)
        self._weights = np.ascontiguousarray(weights, dtype=np.float64)
        self._n_classes = int(n_classes)

    @cached_property
    def _setup(self) -> native.DepthTwo:
        """Input and tables of the kernel, made with the first subtree."""
        spread = layout(self._X, self._y, self._weights, self._n_classes)
        channels, width = spread.n_channels, spread.width
        table, single = np.zeros(spread.table_shape, spread.dtype), np.zeros((channels, width), spread.dtype)
        return native.DepthTwo(
            by_row=spread.by_row,
            amounts=spread.signs,
            members=np.zeros(spread.row.size + 1, np.int64),
            sums=np.zeros((3, channels)),
            entries=native.Entries(spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers),
            words=spread.words(),
            counts=native.Counts(table, single, np.zeros(channels, spread.dtype)),
            scores=native.Scores.of(2, width, spread.dtype),
        )

    @property
    def n_samples(self) -> int:
        """Number of samples of the data set."""
        return int(self._X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features of the data set."""
        return int(self._X.shape[1])

    @property
    def X(self) -> BoolArray:
        """The binary features, read-only by convention."""
        return self._X

    def solve(self, samples: ArrayLike, leaf_price: float, *, max_depth: int = 2) -> Subtree:
        """Return the optimal subtree of depth at most `max_depth` (0, 1 or 2) on the given samples.

        Parameters
        ----------
        samples : array_like
            Sample indices, or a boolean mask over all samples.
        leaf_price : float
            Price of a leaf in the units of the weights (the paper's lambda-bar).
        """
        if max_depth not in (0, 1, 2):
            raise ValueError(f"max_depth must be 0, 1 or 2, got {max_depth}")
        indices = self._indices(samples)
        found = native.first_tree(indices, self._setup, self._n_classes == 2, float(leaf_price), max_depth)
        return Subtree(*found, indices, self._correct)

    @property
    def table_bytes(self) -> int:
        """Approximate bytes of the tables of a solve."""
        channels = 1 if self._n_classes == 2 else self._n_classes
        return 4 * channels * self.n_features**2

    def seconds(self, n_samples: int) -> float:
        """Estimate, rather too high, the seconds of a solve on this number of samples; it cannot be interrupted."""
        channels = 1 if self._n_classes == 2 else self._n_classes
        cells, pairs = float(n_samples) * self.n_features, float(self.n_features) ** 2
        return cells * (2e-9 + 4e-12 * self.n_features) + 5e-9 * channels * pairs

    def select(self, literals: Any) -> IntArray:
        """Return the indices of the samples that satisfy every literal (feature, direction) of a path."""
        mask = np.ones(self.n_samples, dtype=bool)
        for feature, direction in literals:
            column = self._X[:, feature]
            mask &= column if direction else ~column
        return np.flatnonzero(mask)

    def _indices(self, samples: ArrayLike) -> IntArray:
        array = np.asarray(samples)
        if array.dtype == bool:
            return np.flatnonzero(array)
        return np.ascontiguousarray(array, dtype=np.int64)

    def _correct(self, subtree: Subtree) -> IntArray:
        node = np.zeros(subtree.samples.size, dtype=np.int64)
        for _ in range(2):
            split = subtree.feature[node]
            at_branch = split >= 0
            step = 2 * node + 1 + self._X[subtree.samples, np.where(at_branch, split, 0)]
            node = np.where(at_branch, step, node)
        hit: IntArray = subtree.samples[subtree.label[node] == self._y[subtree.samples]]
        return hit


@dataclass(frozen=True)
class CacheStatistics:
    """Counters and size of a cache."""

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
        """Return the optimal subtree below the path with these literals; `samples` at its end saves routing."""
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
        """Return `lookup` for one leaf price as a function (literals, samples, max_depth=...), for polishing."""

        def lookup(literals: Literals, samples: ArrayLike, *, max_depth: int) -> Subtree:
            return self.lookup(literals, leaf_price, samples, max_depth=max_depth)

        return lookup

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Remove all entries; the counters are kept."""
        self._entries.clear()
        self.bytes = 0

    @property
    def statistics(self) -> CacheStatistics:
        """The current counters."""
        return CacheStatistics(self.hits, self.misses, self.evictions, len(self._entries), self.bytes)
