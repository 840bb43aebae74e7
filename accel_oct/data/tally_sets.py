"""Sets of samples of a tally: what lies at the end of a path, by single columns and by pairs of them.

A path is some literals (column, side). What has a column at zero is what there is without that literal minus what has
the column at one, so everything follows from look-ups of sets of columns that are all one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.column_sets import place_of
from accel_oct.data.tally import Tally

__all__ = ["Path", "TallySets"]

IntArray = NDArray[np.int64]
Path = tuple[tuple[int, bool], ...]

_KEPT_BYTES = 1 << 28
"""Tables of single columns that are kept: most others follow from them."""


class TallySets:
    """Counts by cell of the samples at the end of paths, in units of the tally.

    Paths may be as long as the depth of the tally; for single columns one literal shorter, for pairs two.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._known: OrderedDict[frozenset[int], IntArray] = OrderedDict()
        self._left = _KEPT_BYTES
        n, depth = tally.n_features, tally.depth
        self._choose = np.array([[math.comb(column, size) for size in range(depth + 1)] for column in range(n + 1)])
        self._first, self._second = (np.ascontiguousarray(place) for place in np.triu_indices(n, 1))

    def totals(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Counts (n_cells,) of a set."""
        return self._by_sides(path, self._one_total)

    def singles(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Counts (n_cells, n_features) of the samples of a set that have each column."""
        return self._by_sides(path, self._one_singles)

    def pairs(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Counts (n_cells, n_features, n_features) of the samples of a set that have both of two columns."""
        return self._by_sides(path, self._one_pairs)

    def _by_sides(self, path: Iterable[tuple[int, bool]], of_ones: Callable[[frozenset[int]], IntArray]) -> IntArray:
        """By inclusion and exclusion over the columns that are zero."""
        literals = set(path)
        ones = frozenset(column for column, side in literals if side)
        zeros = [column for column, side in literals if not side]
        found: IntArray | None = None
        for chosen in range(1 << len(zeros)):
            more = ones.union(column for place, column in enumerate(zeros) if chosen >> place & 1)
            part = of_ones(more)
            if found is None:
                found = part.copy()
            elif chosen.bit_count() % 2:
                found -= part
            else:
                found += part
        assert found is not None
        return found

    # ---------------------------------------------------------------- all columns at one

    def _one_total(self, ones: frozenset[int]) -> IntArray:
        return self.tally.counts[len(ones)][:, place_of(ones)]

    def _one_singles(self, ones: frozenset[int]) -> IntArray:
        known = np.array(sorted(ones), dtype=np.int64)
        columns = np.arange(self.tally.n_features)
        others = columns[~np.isin(columns, known)]
        result = np.empty((self.tally.n_cells, columns.size), dtype=np.int64)
        result[:, known] = self._one_total(ones)[:, None]
        if others.size:
            counts = self.tally.counts[len(ones) + 1]
            result[:, others] = counts[:, self._places(known, others[:, None])]
        return result

    def _one_pairs(self, ones: frozenset[int]) -> IntArray:
        found = self._known.get(ones)
        if found is None:
            found = self._new_pairs(ones)
            if len(ones) <= 1 and found.nbytes <= _KEPT_BYTES:
                self._known[ones] = found
                self._left -= found.nbytes
                while self._left < 0:
                    self._left += self._known.popitem(last=False)[1].nbytes
        elif len(ones) == 1:
            self._known.move_to_end(ones)
        return found

    def _new_pairs(self, ones: frozenset[int]) -> IntArray:
        n = self.tally.n_features
        known = np.array(sorted(ones), dtype=np.int64)
        first, second = self._first, self._second
        if known.size:
            free = ~(np.isin(first, known) | np.isin(second, known))
            first, second = first[free], second[free]
        result = np.empty((self.tally.n_cells, n, n), dtype=np.int64)
        if first.size:
            counts = self.tally.counts[len(ones) + 2]
            both = counts[:, self._places(known, np.stack([first, second], axis=1))]
            result[:, first, second] = both
            result[:, second, first] = both
        single = self._one_singles(ones)
        result[:, known, :] = single[:, None, :]
        result[:, :, known] = single[:, :, None]
        result[:, np.arange(n), np.arange(n)] = single
        return result

    def _places(self, known: IntArray, more: IntArray) -> IntArray:
        """Places of the sets of some known columns and each row of more, all increasing and distinct."""
        places = np.zeros(len(more), dtype=np.int64)
        for position in range(more.shape[1]):
            size = 1 + position + np.searchsorted(known, more[:, position])
            places += self._choose[more[:, position], size]
        for position, column in enumerate(known.tolist()):
            places += self._choose[column, 1 + position + (more < column).sum(axis=1)]
        return places
