"""Tally: sufficient statistics of a data set for trees of limited depth, independent of the number of rows.

The samples at a leaf have some columns one and some zero. Inclusion and exclusion gives their weight from the weights
of the samples that have all columns of a set: a tree of depth d needs the sets of at most d columns. These weights, by
*cell* (class and group), add up over pieces of the data.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix, column_names, pack_rows
from accel_oct.data.column_sets import n_sets, place_of
from accel_oct.data.labels import as_names, encode_labels
from accel_oct.data.tally_files import DEPTHS, read_fields, write_fields
from accel_oct.data.weights import fits, whole_weights
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import IntArray, WordArray

MOST_BYTES = 2**33
"""Limit on the memory of the counts, in bytes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """Weights of the samples that have all columns of a set, for all sets of at most `depth` columns; created by `of`.

    Attributes
    ----------
    depth : int
        Size of the largest sets, and maximum depth of trees.
    counts : tuple of int64 arrays (n_cells, number of sets)
        By size 0 .. depth of the sets, which are in the order of `column_sets`. Cell ``k * n_groups + g`` holds the
        samples of class k and group g.
    unit : int
        Counts are multiples of ``2.0 ** unit``; 0 if all weights are whole numbers.
    n_rows : int
        Number of samples.
    classes, group_labels : arrays
        Sorted labels; without groups, one group with the label None.
    feature_names : tuple of str
    encoding : str or None
        Identifies the encoding of the columns; tallies of different encodings cannot be added.
    group_name : str or None
        Column of the groups, which constraints may name.
    sources, columns : tuple of str or None, tuple of str
        As in `BinaryDataset`: names that constraints may use besides features.
    """

    depth: int
    counts: tuple[IntArray, ...]
    unit: int
    n_rows: int
    classes: NDArray[Any]
    group_labels: NDArray[Any]
    feature_names: tuple[str, ...]
    encoding: str | None = None
    group_name: str | None = None
    sources: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for array in (*self.counts, self.classes, self.group_labels):
            array.flags.writeable = False

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        depth: int = 4,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        classes: Sequence[Any] | None = None,
        group_labels: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        encoding: str | None = None,
    ) -> Tally:
        """Count the samples of a piece of data.

        Parameters
        ----------
        X : array-like or data frame (n_samples, n_features)
            Only 0 and 1 (or bool). Zero rows are allowed.
        y : array-like (n_samples,)
            Class labels of any sortable type.
        depth : int
            Maximum depth of trees; the size of the tally grows with this power of the number of columns.
        sample_weight : array-like (n_samples,), optional
            Whole numbers are exact. Real weights are rounded to multiples of a power of two, at most
            ``2**-30`` of the heaviest weight of the piece.
        sensitive_features : array-like (n_samples,), optional
            Group of each sample, for constraints on groups. The name of a data frame column becomes `group_name`.
        classes, group_labels : sequence, optional
            All possible labels, if a piece may lack some of them.
        feature_names : sequence of str, optional
            By default the column names of a data frame, else ``x0, x1, ...``.
        encoding : str, optional
            Identifies the encoding of the columns.
        """
        matrix = as_binary_matrix(X)
        n_rows, n_features = matrix.shape
        if whole_number(depth, "depth") >= DEPTHS:
            raise InvalidInputError(f"depth must be below {DEPTHS}, got {shown(depth)}")
        if not (encoding is None or isinstance(encoding, str)):
            raise InvalidInputError(f"encoding must be a string or None, got {shown(encoding)}")
        known, codes = label_codes(y, n_rows, classes, "y", "classes")
        if sensitive_features is None:
            if group_labels is not None:
                raise InvalidInputError("group_labels must be None where sensitive_features are None")
            labels: NDArray[Any] = np.array([None])
            group = np.zeros(n_rows, dtype=np.int64)
        else:
            labels, group = label_codes(sensitive_features, n_rows, group_labels, "sensitive_features", "group_labels")
        weights, unit = whole_weights(sample_weight, n_rows)
        cells = codes * len(labels) + group
        needed = 8 * len(known) * len(labels) * n_sets(n_features, int(depth))
        if needed > MOST_BYTES:
            raise InvalidInputError(
                f"a tally of {n_features} columns and depth {depth} would take {needed / 2**30:.3g} GiB, more than the "
                f"{MOST_BYTES / 2**30:.3g} GiB that are allowed: take fewer columns or a smaller depth"
            )
        names = column_names(X) if feature_names is None else feature_names
        return cls(
            depth=int(depth),
            counts=counted(matrix, cells, weights, len(known) * len(labels), int(depth)),
            unit=unit,
            n_rows=n_rows,
            classes=known,
            group_labels=labels,
            feature_names=as_names(names, [f"x{j}" for j in range(n_features)], "feature_names"),
            encoding=encoding,
            group_name=name if isinstance(name := getattr(sensitive_features, "name", None), str) else None,
        )

    # ---------------------------------------------------------------- files

    def save(self, path: Any) -> None:
        """Write a file that `load` reads; an existing file is replaced atomically.

        The format is a NumPy ``npz`` with a JSON schema. Labels may be strings, numbers and bools.
        """
        write_fields(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Any, *, max_bytes: int = MOST_BYTES) -> Tally:
        """Read a file that `save` wrote. Its content is checked, and never executed.

        Parameters
        ----------
        path : path
        max_bytes : int
            Limit on the memory of the counts; larger files are rejected before the counts are read.

        Raises
        ------
        InvalidInputError
            If the file is invalid; the message says why.
        """
        return cls(**read_fields(path, max_bytes))

    # ---------------------------------------------------------------- sizes

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_groups(self) -> int:
        return len(self.group_labels)

    @property
    def n_cells(self) -> int:
        return self.n_classes * self.n_groups

    @property
    def n_bytes(self) -> int:
        """Memory of the counts."""
        return 8 * self.n_cells * n_sets(self.n_features, self.depth)

    @cached_property
    def total(self) -> int:
        """Total weight in units."""
        return int(self.counts[0].sum())

    @property
    def total_weight(self) -> float:
        return math.ldexp(float(self.total), self.unit)

    # ---------------------------------------------------------------- sums

    def __add__(self, other: Any) -> Tally:
        """Return the tally of both pieces; exact, and independent of the order of addition."""
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_alike(other)
        unit = min(self.unit, other.unit)
        if not fits(self.total << (self.unit - unit), other.total << (other.unit - unit)):
            raise InvalidInputError("the weights of these tallies are too large, or too far apart, to be added exactly")
        classes = united(self.classes, other.classes)
        labels = united(self.group_labels, other.group_labels)
        first, second = (part._in_cells(classes, labels, unit) for part in (self, other))
        return replace(
            self,
            counts=tuple(a + b for a, b in zip(first, second, strict=True)),
            unit=unit,
            n_rows=self.n_rows + other.n_rows,
            classes=classes,
            group_labels=labels,
        )

    def _check_alike(self, other: Tally) -> None:
        if self.feature_names != other.feature_names:
            raise InvalidInputError(
                f"tallies of other columns do not add up: {_difference(self.feature_names, other.feature_names)}"
            )
        if (self.encoding, self.sources, self.columns) != (other.encoding, other.sources, other.columns):
            raise InvalidInputError("tallies of columns that were encoded in another way do not add up")
        if self.group_name != other.group_name:
            raise InvalidInputError(f"tallies by {self.group_name} and by {other.group_name} do not add up")
        if self.depth != other.depth:
            raise InvalidInputError(f"tallies of depth {self.depth} and {other.depth} do not add up")

    def _in_cells(self, classes: NDArray[Any], labels: NDArray[Any], unit: int) -> tuple[IntArray, ...]:
        """Return the counts by the cells of more classes and groups, in a finer unit."""
        shift = self.unit - unit
        if len(classes) == self.n_classes and len(labels) == self.n_groups:
            return self.counts if not shift else tuple(part << shift for part in self.counts)
        row = np.searchsorted(classes, self.classes) if len(classes) > 1 else np.zeros(self.n_classes, dtype=np.int64)
        column = np.searchsorted(labels, self.group_labels) if len(labels) > 1 else np.zeros(self.n_groups, np.int64)
        place = (row[:, None] * len(labels) + column).ravel()
        result = []
        for part in self.counts:
            wider = np.zeros((len(classes) * len(labels), part.shape[1]), dtype=np.int64)
            wider[place] = part << shift
            result.append(wider)
        return tuple(result)

    # ---------------------------------------------------------------- what samples there are

    def at(self, ones: Collection[int] = (), zeros: Collection[int] = ()) -> IntArray:
        """Return counts (n_cells,) in units of the samples with some columns one and others zero, at most `depth`."""
        ones, zeros = frozenset(ones), frozenset(zeros)
        if ones & zeros:
            return np.zeros(self.n_cells, dtype=np.int64)
        if len(ones) + len(zeros) > self.depth:
            raise InvalidInputError(
                f"the tally was made for depth {self.depth}, too small for {len(ones) + len(zeros)} columns"
            )
        found = np.zeros(self.n_cells, dtype=np.int64)
        for size in range(len(zeros) + 1):
            for more in combinations(sorted(zeros), size):
                columns = ones.union(more)
                found += (-1) ** size * self.counts[len(columns)][:, place_of(columns)]
        return found


def _difference(mine: Sequence[str], others: Sequence[str]) -> str:
    if len(mine) != len(others):
        return f"{len(mine)} and {len(others)} of them"
    place = next(place for place, names in enumerate(zip(mine, others, strict=True)) if names[0] != names[1])
    return f"column {place} is {shown(mine[place])} in one and {shown(others[place])} in the other"


_BLOCK_ROWS = 2**16
"""Number of rows that are counted at a time: their columns fit into the cache of a core."""


def counted(X: BoolMatrix, cells: IntArray, weights: IntArray, n_cells: int, depth: int) -> tuple[IntArray, ...]:
    """Return the total weight (n_cells, number of sets) of the rows that have all columns of a set, by set size.

    Each cell and each bit of the weights is counted separately; unit weights have one bit.
    """
    n_features = X.shape[1]
    sizes = [math.comb(n_features, size) for size in range(depth + 1)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    choose = np.array([[math.comb(c, size) for size in range(depth + 1)] for c in range(n_features + 1)])
    choose = np.ascontiguousarray(choose, dtype=np.int64)
    width = _BLOCK_ROWS // 64 + 8  # columns at distances of powers of two would share cache lines
    columns, found = _aligned(n_features, width), _aligned(depth, width)
    counts = np.zeros((n_cells, int(starts[-1])), dtype=np.int64)
    rows = pack_rows(X, "little")
    for cell in range(n_cells):
        inside = cells == cell
        mine, amounts = (rows[inside], weights[inside]) if n_cells > 1 else (rows, weights)
        for bit in range(int(amounts.max(initial=0)).bit_length()):
            has = (amounts >> bit) & 1 == 1
            part = mine if has.all() else mine[has]
            for first in range(0, len(part), _BLOCK_ROWS):
                block = part[first : first + _BLOCK_ROWS]
                native.add_sets(block, n_features, starts, choose, 1 << bit, columns, found, counts[cell])
    return tuple(np.ascontiguousarray(counts[:, starts[s] : starts[s + 1]]) for s in range(depth + 1))


def _aligned(n_strings: int, width: int) -> WordArray:
    """Return zeros (strings, words) aligned to cache lines, so that no vector crosses a line."""
    room = np.zeros(max(1, n_strings) * width + 8, dtype=np.uint64)
    skip = -room.ctypes.data % 64 // 8
    return room[skip : skip + max(1, n_strings) * width].reshape(-1, width)


def label_codes(
    values: Any, n_rows: int, known: Sequence[Any] | None, argument: str, list_argument: str
) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted labels, and the index of each row's label."""
    if known is None:
        if n_rows == 0:
            raise InvalidInputError(f"{list_argument} must be given where there are no rows")
        try:
            return encode_labels(values, n_rows)
        except InvalidInputError as error:
            raise InvalidInputError(str(error).replace("y ", f"{argument} ", 1)) from None
    labels, _ = encode_labels(known, len(known))
    if n_rows == 0:
        return labels, np.zeros(0, dtype=np.int64)
    present, codes = label_codes(values, n_rows, None, argument, list_argument)
    try:
        together = united(labels, present)
    except InvalidInputError:
        together = np.array([])
    if len(together) != len(labels):
        strange = next((label for label in present.tolist() if label not in set(labels.tolist())), None)
        raise InvalidInputError(f"{argument} holds {shown(strange)}, which is not among `{list_argument}`")
    return labels, np.searchsorted(labels, present)[codes]


def united(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted union of labels."""
    if first.dtype == second.dtype and first.tolist() == second.tolist():
        return first
    if None in first.tolist() or None in second.tolist():
        raise InvalidInputError("a tally with groups and one without do not add up")
    numbers = [labels.dtype.kind in "biuf" for labels in (first, second)]
    try:
        if numbers[0] != numbers[1]:
            raise TypeError("text and numbers")
        united: NDArray[Any] = np.unique(np.concatenate([first, second]))
    except TypeError:
        raise InvalidInputError(
            f"labels {shown(first.tolist()[0])} and {shown(second.tolist()[0])} have no common order"
        ) from None
    if len(united) != len({*first.tolist(), *second.tolist()}):
        raise InvalidInputError("labels are whole numbers that are too large to be exact as floats")
    return united


Path = tuple[tuple[int, bool], ...]

_KEPT_BYTES = 1 << 28
"""Memory for cached pair tables of the whole set and of single columns, from which most others follow."""


class TallySets:
    """Counts by cell of the samples at the end of paths, in units of the tally.

    Paths of `totals` may be as long as the depth of the tally; those of `singles` and `pairs` one and two shorter.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._known: OrderedDict[frozenset[int], IntArray] = OrderedDict()
        self._left = _KEPT_BYTES
        n, depth = tally.n_features, tally.depth
        self._choose = np.array([[math.comb(column, size) for size in range(depth + 1)] for column in range(n + 1)])
        self._first, self._second = (np.ascontiguousarray(place) for place in np.triu_indices(n, 1))

    def totals(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Return counts (n_cells,) of the samples of a path."""
        return self._by_sides(path, self._one_total)

    def singles(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Return counts (n_cells, n_features) of the samples of a path that have each column."""
        return self._by_sides(path, self._one_singles)

    def pairs(self, path: Iterable[tuple[int, bool]]) -> IntArray:
        """Return counts (n_cells, n_features, n_features) of the samples of a path that have both of two columns."""
        return self._by_sides(path, self._one_pairs)

    def _by_sides(self, path: Iterable[tuple[int, bool]], of_ones: Callable[[frozenset[int]], IntArray]) -> IntArray:
        """Apply inclusion and exclusion over the columns that are zero."""
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
        """Return the indices of the sets of `known` and each row of `more`, all increasing and distinct."""
        places = np.zeros(len(more), dtype=np.int64)
        for position in range(more.shape[1]):
            size = 1 + position + np.searchsorted(known, more[:, position])
            places += self._choose[more[:, position], size]
        for position, column in enumerate(known.tolist()):
            places += self._choose[column, 1 + position + (more < column).sum(axis=1)]
        return places
