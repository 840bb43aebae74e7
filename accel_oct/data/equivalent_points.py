"""Equivalent-point sets: samples that only a few features separate (section 5.3 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import pack_rows
from accel_oct.data.dataset import BinaryDataset, equal_rows
from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import IntArray, WordArray

MAX_SPLIT_SIZE = 2

# Number of hash keys that are sorted at a time; limits the working memory to some hundred megabytes.
_KEYS_PER_PASS = 2**22


@dataclass(frozen=True, eq=False)
class EqpSet:
    """One equivalent-point set J with its split set F*.

    Attributes
    ----------
    split_set : tuple of int
        Features F*, increasing. All samples of the set agree on every other feature, so a tree that does
        not branch on F* on their path sends all of them to one leaf.
    samples : int array
        Rows J of the data set, increasing. They do not all share a class.
    """

    split_set: tuple[int, ...]
    samples: IntArray


@dataclass(frozen=True, eq=False)
class EqpSets(Sequence[EqpSet]):
    """Equivalent-point sets as flat arrays, readable as a sequence of `EqpSet`.

    Ordered by size of the split set, then split set, then first sample.

    Attributes
    ----------
    split_sets : int array (n_sets, 2)
        Split sets, filled up with -1 at the end.
    indptr : int array (n_sets + 1,)
        The samples of set s are ``samples[indptr[s]:indptr[s + 1]]``.
    samples : int array
        Rows of all sets, one set after the other.
    """

    split_sets: IntArray
    indptr: IntArray
    samples: IntArray

    def __len__(self) -> int:
        return len(self.split_sets)

    @overload
    def __getitem__(self, position: int) -> EqpSet: ...
    @overload
    def __getitem__(self, position: slice) -> list[EqpSet]: ...
    def __getitem__(self, position: int | slice) -> EqpSet | list[EqpSet]:
        if isinstance(position, slice):
            return [self[index] for index in range(*position.indices(len(self)))]
        index = range(len(self))[position]
        split_set = tuple(feature for feature in self.split_sets[index].tolist() if feature >= 0)
        return EqpSet(split_set, self.samples[self.indptr[index] : self.indptr[index + 1]])

    def __iter__(self) -> Iterator[EqpSet]:
        return (self[index] for index in range(len(self)))


def equivalent_point_sets(dataset: BinaryDataset, max_split_size: int = 2) -> EqpSets:
    """Return all aggregated equivalent-point sets with split sets of at most `max_split_size` features.

    The paper starts from pairs: two samples of different classes form an EQP set whose split set F* is exactly
    the set of features in which they differ. Sets that share F* are aggregated, {1,2} and {2,3} to {1,2,3}.
    Two pairs with the same F* that differ from each other *outside* of F* must remain separate: no
    condition on F* alone keeps them in one leaf, and their combination would not be an EQP set with respect
    to F \\ F*. So for every F* there is one set per group of samples that agree on F \\ F*, provided that the group
    has a pair of different classes which differs in exactly F*. The set is the whole group: samples of it
    that differ from the others in a part of F* only go to the same leaf too, and adding them can only raise
    the weight that a leaf must misclassify.

    Parameters
    ----------
    dataset : BinaryDataset
        Rows of weight zero are left out, for they do not count in the objective. Merge repeated rows first: every set
        lists all of its samples, so many copies of one point make long sets.
    max_split_size : int
        0, 1 or 2; the paper's recommendation is 2.

    Notes
    -----
    Works on the distinct points x. Each has a 64-bit key, the exclusive or of random keys of its features, so that
    flipping feature f changes the key by the key of f. Points at distance two have a common neighbour: flipping
    one of the two features in one point and the other feature in the other point gives equal keys. Sorting the
    ``n * |F|`` keys of all neighbours therefore finds all pairs without comparing points pairwise. Every match is
    verified on the packed features, so the result is exact and does not depend on the random keys.
    """
    if max_split_size not in range(MAX_SPLIT_SIZE + 1):
        raise InvalidInputError(f"max_split_size must be 0, 1 or {MAX_SPLIT_SIZE}, got {max_split_size!r}")
    points = _Points(dataset)
    found = [_identical(points)]
    if max_split_size >= 1:
        found.append(_split_by_one(points))
    if max_split_size >= 2:
        found.append(_split_by_two(points))
    split_sets = np.concatenate([splits for splits, _ in found])
    corners = np.concatenate([members for _, members in found])
    return _expanded(points, split_sets, corners)


class _Points:
    """Distinct rows of positive weight, with hash keys that can be looked up.

    Attributes
    ----------
    words : packed features of each point
    class_code : the class that all samples of the point share, or -1
    keys, column_keys : Zobrist keys of points and features; those of the points are distinct
    rows, row_ptr : samples of each point, in CSR form
    """

    def __init__(self, dataset: BinaryDataset) -> None:
        rows = np.flatnonzero(dataset.weights > 0)
        points = equal_rows(dataset.X[rows])
        self.rows: IntArray = rows[points.order]
        self.row_ptr: IntArray = np.append(points.starts, len(rows))
        self.X = dataset.X[rows[points.first]]
        self.words: WordArray = pack_rows(self.X)
        self.n_features = dataset.n_features
        classes = dataset.y[self.rows]
        smallest, largest = (extreme.reduceat(classes, points.starts) for extreme in (np.minimum, np.maximum))
        self.class_code: IntArray = np.where(smallest == largest, smallest, -1)
        self.active_features: IntArray = np.flatnonzero(self.X.any(axis=0) & ~self.X.all(axis=0))
        self.bit_words: WordArray = pack_rows(np.eye(self.n_features, dtype=bool))
        self._draw_keys()

    def __len__(self) -> int:
        return len(self.words)

    def _draw_keys(self) -> None:
        # With distinct keys, a lookup is exact once its single candidate is verified. A collision is very unlikely.
        for seed in range(100):
            rng = np.random.default_rng(seed)
            column_keys = rng.integers(0, 2**64, self.n_features, dtype=np.uint64)
            keys = np.zeros(len(self), dtype=np.uint64)
            for feature in range(self.n_features):
                keys ^= np.where(self.X[:, feature], column_keys[feature], np.uint64(0))
            order = np.argsort(keys)
            if (keys[order][1:] != keys[order][:-1]).all():
                self.column_keys, self.keys = column_keys, keys
                self._order, self._sorted_keys = order, keys[order]
                return
        raise AssertionError("no collision-free hash keys")  # pragma: no cover

    def differ(self, a: IntArray, b: IntArray) -> NDArray[np.bool_]:
        """Return whether two distinct points hold samples of different classes."""
        first, second = self.class_code[a], self.class_code[b]
        result: NDArray[np.bool_] = (first != second) | (first < 0)
        return result

    def differ_exactly_in(self, a: IntArray, b: IntArray, *features: IntArray) -> NDArray[np.bool_]:
        """Return whether two points differ in the given (distinct) features and in no other."""
        difference = self.words[a] ^ self.words[b]
        for feature in features:
            difference ^= self.bit_words[feature]
        return np.asarray(~difference.any(axis=1), dtype=np.bool_)

    def flipped(self, points: IntArray, *features: IntArray) -> IntArray:
        """Return the points that differ in exactly the given features; -1 if there is none."""
        wanted = self.keys[points]
        for feature in features:
            wanted = wanted ^ self.column_keys[feature]
        place = np.minimum(np.searchsorted(self._sorted_keys, wanted), len(self) - 1)
        candidate = self._order[place]
        hit = self._sorted_keys[place] == wanted
        hit[hit] = self.differ_exactly_in(points[hit], candidate[hit], *(f[hit] for f in features))
        return np.where(hit, candidate, -1)


def _identical(points: _Points) -> tuple[IntArray, IntArray]:
    """Return the split sets of size zero: points with samples of several classes."""
    mixed = np.flatnonzero(points.class_code < 0)
    corners = np.full((len(mixed), 4), -1)
    corners[:, 0] = mixed
    return np.full((len(mixed), 2), -1), corners


def _split_by_one(points: _Points) -> tuple[IntArray, IntArray]:
    """Return the split sets {f}: two points that differ in f alone."""
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    for feature in points.active_features.tolist():
        zeros = np.flatnonzero(~points.X[:, feature])
        ones = points.flipped(zeros, np.full(len(zeros), feature))
        zeros, ones = zeros[ones >= 0], ones[ones >= 0]
        keep = points.differ(zeros, ones)
        found.append((np.full(np.count_nonzero(keep), feature), zeros[keep], ones[keep]))
    if not found:
        return _nothing()
    features, zeros, ones = (np.concatenate(part) for part in zip(*found, strict=True))
    nobody = np.full(len(features), -1)
    return np.column_stack([features, nobody]), np.column_stack([zeros, ones, nobody, nobody])


def _split_by_two(points: _Points) -> tuple[IntArray, IntArray]:
    """Return the split sets {f, g}: up to four points that agree elsewhere, two of them opposite in class."""
    n_keys = len(points) * len(points.active_features)
    n_passes = -(-n_keys // _KEYS_PER_PASS)
    found = [_opposite_points(points, which, n_passes) for which in range(n_passes)]
    if not found:
        return _nothing()
    u, v, f, g = (np.concatenate(part) for part in zip(*found, strict=True))
    corners = np.column_stack([u, v, points.flipped(u, f), points.flipped(u, g)])
    # Both diagonals of a group may have been found, each from both ends: keep one per smallest point.
    name = np.where(corners >= 0, corners, len(points)).min(axis=1)
    _, first = np.unique((f * points.n_features + g) * len(points) + name, return_index=True)
    return np.column_stack([f, g])[first], corners[first]


def _opposite_points(points: _Points, which: int, n_passes: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return pairs of points of different classes that differ in exactly f < g, for one part of the keys."""
    owners, flips, keys = [], [], []
    for feature in points.active_features.tolist():
        neighbour = points.keys ^ points.column_keys[feature]
        mine = np.flatnonzero(neighbour % np.uint64(n_passes) == which)
        owners.append(mine)
        flips.append(np.full(len(mine), feature))
        keys.append(neighbour[mine])
    key = np.concatenate(keys)
    order = np.argsort(key)
    owner, flip, key = np.concatenate(owners)[order], np.concatenate(flips)[order], key[order]
    found = []
    # A run of equal keys is the set of points around one vertex; pair its members at distance 1, 2, ...
    place, shift = np.flatnonzero(key[1:] == key[:-1]), 1
    while len(place):
        u, v, f, g = owner[place], owner[place + shift], flip[place], flip[place + shift]
        # Each pair meets around two vertices; count it where its smaller point flips its smaller feature.
        keep = (f != g) & ((u < v) == (f < g)) & points.differ(u, v)
        u, v, f, g = u[keep], v[keep], f[keep], g[keep]
        keep = points.differ_exactly_in(u, v, f, g)
        found.append((u[keep], v[keep], np.minimum(f, g)[keep], np.maximum(f, g)[keep]))
        shift += 1
        place = place[place + shift < len(key)]
        place = place[key[place + shift] == key[place]]
    empty = np.empty(0, dtype=np.int64)
    found.append((empty, empty, empty, empty))
    u, v, f, g = (np.concatenate(part) for part in zip(*found, strict=True))
    return u, v, f, g


def _nothing() -> tuple[IntArray, IntArray]:
    return np.empty((0, 2), dtype=np.int64), np.empty((0, 4), dtype=np.int64)


def _expanded(points: _Points, split_sets: IntArray, corners: IntArray) -> EqpSets:
    """Sort the sets and replace points by their samples."""
    first_row = np.append(points.rows[points.row_ptr[:-1]], np.iinfo(np.int64).max)  # the last entry is for corner -1
    size = np.count_nonzero(split_sets >= 0, axis=1)
    order = np.lexsort((first_row[corners].min(axis=1, initial=first_row[-1]), *split_sets.T[::-1], size))
    split_sets, corners = split_sets[order], corners[order]
    owner, corner = np.nonzero(corners >= 0)
    member = corners[owner, corner]
    counts = np.diff(points.row_ptr)[member]
    ends = np.cumsum(counts)
    offsets = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    samples = points.rows[np.repeat(points.row_ptr[member], counts) + offsets]
    # One integer per (set, sample) sorts many times faster than two keys.
    n_rows = int(points.rows.max()) + 1
    samples = np.sort(np.repeat(owner, counts) * n_rows + samples) % n_rows
    set_sizes = np.zeros(len(split_sets), dtype=np.int64)
    np.add.at(set_sizes, owner, counts)
    return EqpSets(split_sets, np.concatenate(([0], np.cumsum(set_sizes))), samples)
