"""Distinct rows of binary features with their weights, and how those of pieces are merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DistinctRows", "packed"]

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]


def packed(features: NDArray[np.bool_]) -> Words:
    """Rows (n_rows, n_words) as `accel_oct.data.pack_rows` packs them, from features (n_features, n_rows)."""
    n_features, n_rows = features.shape
    n_words = max(1, -(-n_features // 64))
    # Eight features to a byte, feature by feature: each step goes along one stretch of memory.
    octets = np.zeros((8 * n_words, n_rows), dtype=np.uint8)
    bits = features.view(np.uint8)
    for place in range(n_features):
        octets[place // 8] |= bits[place] << np.uint8(7 - place % 8)
    return np.ascontiguousarray(octets.T).view(">u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows of which no two are equal, in increasing order of features (feature 0 first), then cell.

    Attributes
    ----------
    n_features : int
    words : uint64 array (n, n_words)
        The features, packed.
    cells : int64 array (n,)
        Class and groups as one number.
    units : int64 array (n,)
        Weight, in units.
    samples : int64 array (n,)
        Samples with a weight that were merged.
    """

    n_features: int
    words: Words
    cells: IntArray
    units: IntArray
    samples: IntArray

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def none(cls, n_features: int) -> DistinctRows:
        empty = np.empty(0, dtype=np.int64)
        return cls(n_features, np.empty((0, max(1, -(-n_features // 64))), dtype=np.uint64), empty, empty, empty)

    @classmethod
    def of(cls, features: NDArray[np.bool_], cells: IntArray, units: IntArray | None) -> DistinctRows:
        """Merge the rows of a batch; each weighs one unit where no weights are given."""
        words = packed(features)
        if units is None:
            ones = np.ones(len(cells), dtype=np.int64)
            return _merged(features.shape[0], words, cells, ones, ones)
        kept = units > 0
        if not kept.all():
            words, cells, units = words[kept], cells[kept], units[kept]
        return _merged(features.shape[0], words, cells, units, np.ones(len(cells), dtype=np.int64))

    def __add__(self, other: DistinctRows) -> DistinctRows:
        if not len(self) or not len(other):
            return other if not len(self) else self
        return _merged(
            self.n_features,
            np.concatenate([self.words, other.words]),
            np.concatenate([self.cells, other.cells]),
            np.concatenate([self.units, other.units]),
            np.concatenate([self.samples, other.samples]),
        )

    def between(self, start: int, stop: int) -> DistinctRows:
        """Some of them, by their places."""
        part = slice(start, stop)
        return DistinctRows(self.n_features, self.words[part], self.cells[part], self.units[part], self.samples[part])

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in (self.words, self.cells, self.units, self.samples))

    @property
    def X(self) -> NDArray[np.bool_]:
        """The features, unpacked (n, n_features)."""
        octets = np.ascontiguousarray(self.words.astype(">u8")).view(np.uint8)
        return np.unpackbits(octets, axis=1, count=self.n_features).view(np.bool_)


def _merged(n_features: int, words: Words, cells: IntArray, units: IntArray, samples: IntArray) -> DistinctRows:
    if not len(cells):
        return DistinctRows.none(n_features)
    order = np.lexsort((cells, *words.T[::-1]))
    words, cells = words[order], cells[order]
    new = np.ones(len(cells), dtype=bool)
    new[1:] = (cells[1:] != cells[:-1]) | (words[1:] != words[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    totals = np.add.reduceat(units[order], starts)
    counts = totals if samples is units else np.add.reduceat(samples[order], starts)
    return DistinctRows(n_features, words[starts], cells[starts], totals, counts)
