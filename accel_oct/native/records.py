"""Records of arrays for the compiled kernels: checked once, then passed as a pointer.

A `Record` is a group of related arrays and numbers. It has the layout of the C++ struct of the same name, and its
constructor rejects arrays of another dtype, byte order, memory order or number of axes. Functions of the package check
relations between records. So every pointer that a kernel receives refers to a large enough array.

Letters in shapes: E entries, P features padded to whole blocks, F features, L lanes of a block.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK_BYTES = 64
"""Bytes of one block of a table; see ``base.hpp``."""

COUNTERS: Mapping[Any, int] = {np.dtype(np.int16): 0, np.dtype(np.int32): 1, np.dtype(np.float64): 2}
"""Types of counts, and their numbers in the kernels."""

_AXES = 5


class View(ctypes.Structure):
    """``Array`` of ``base.hpp``: pointer and shape of an array."""

    _fields_ = (("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * _AXES))
    kept: Array


def view(name: str, array: Array, dtype: Any, axes: int, shape: tuple[int, ...] | None = None) -> View:
    """Return pointer and shape of an array after checking its type.

    Raises
    ------
    TypeError, ValueError
        If it is not a C-contiguous array of that dtype in native byte order, or has another shape.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: the kernels take arrays, got {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{name}: the kernels take {np.dtype(dtype)}, got {array.dtype}")
    if array.ndim != axes or not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"{name}: the kernels take contiguous arrays of {axes} axes, got {array.ndim} axes")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    result = View(array.__array_interface__["data"][0])
    result.shape[:axes] = array.shape
    return result


def read(name: str, array: Array, dtype: Any, axes: int, shape: tuple[int, ...] | None = None) -> View:
    """Return the `view` of an array that a kernel only reads; a non-contiguous array is copied, and the copy stored."""
    if isinstance(array, np.ndarray) and not (array.flags.c_contiguous and array.flags.aligned):
        array = array.copy(order="C")
    result = view(name, array, dtype, axes, shape)
    result.kept = array
    return result


def written(name: str, array: Array, dtype: Any, axes: int, shape: tuple[int, ...] | None = None) -> View:
    """Return the `view` of an array that a kernel writes to."""
    result = view(name, array, dtype, axes, shape)
    if not array.flags.writeable:
        raise ValueError(f"{name}: the kernels write to it, but it is read-only")
    return result


# ---------------------------------------------------------------- records


@dataclass(frozen=True)
class Kind:
    """Dtype and number of axes of an array; dtype None means counts, of the same type in all arrays of a record."""

    dtype: Any
    axes: int


@cache
def _fields(record: Any) -> tuple[tuple[str, Any], ...]:
    """Return the field names of a class, each with a `Kind`, a class of records, int or float."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        (part.name, getattr(hints[part.name], "__metadata__", (hints[part.name],))[0]) for part in fields(record)
    )


@cache
def _layout(record: Any) -> Any:
    """Return the ctypes structure of a class of records."""
    plain = {int: ctypes.c_int64, float: ctypes.c_double}
    parts = [
        (name, View if isinstance(kind, Kind) else plain[kind] if kind in plain else _layout(kind))
        for name, kind in _fields(record)
    ]
    return type(record.__name__, (ctypes.Structure,), {"_fields_": parts})


class Record:
    """Base class; see the module."""

    counter: ClassVar[Any] = None
    structure: ClassVar[Any]
    address: ClassVar[int]

    def __post_init__(self) -> None:
        """Check all fields and fill the ctypes structure."""
        values: list[Any] = []
        counter: Any = None
        for name, kind in _fields(cast(Any, type(self))):
            value = getattr(self, name)
            if isinstance(kind, Kind):
                dtype = kind.dtype
                if dtype is None:
                    dtype = counter = getattr(value, "dtype", None) if counter is None else counter
                    if dtype not in COUNTERS:
                        raise TypeError(f"{name}: counts are int16, int32 or float64, got {dtype}")
                value = view(f"{type(self).__name__}.{name}", value, dtype, kind.axes)
            elif isinstance(value, Record):
                counter = value.counter if counter is None else counter
                if value.counter not in (None, counter):
                    raise TypeError(f"{name}: counts of {value.counter}, where others are of {counter}")
                value = value.structure
            values.append(value)
        structure = _layout(cast(Any, type(self)))(*values)
        vars(self).update(counter=counter, structure=structure, address=ctypes.addressof(structure))
        self.check()

    def check(self) -> None:
        """Check shapes that must fit together."""

    def _require(self, good: bool, what: str) -> None:
        if not good:
            raise ValueError(f"{type(self).__name__}: {what}")


def _shapes_agree(*pairs: tuple[int, int]) -> bool:
    return all(one == other for one, other in pairs)


def _indices(numbers: Array, length: int) -> bool:
    """Return whether all numbers are valid indices of an array of this length."""
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < length)


@dataclass(eq=False)
class Entries(Record):
    """The samples that can be counted, see `accel_oct.exact.counts`."""

    rows: Annotated[Array, Kind(np.uint8, 2)]  # (E, P) 0 or 1
    channel: Annotated[Array, Kind(np.int32, 1)]  # (E,)
    plane: Annotated[Array, Kind(np.int32, 1)]  # (E,)
    marked: Annotated[Array, Kind(np.uint8, 1)]  # (E,)
    numbers: Annotated[Array, Kind(np.float64, 2)]  # (E, P), or empty

    def check(self) -> None:
        n_entries, width = self.rows.shape
        sizes = (self.channel.size, n_entries), (self.plane.size, n_entries), (self.marked.size, n_entries)
        self._require(_shapes_agree(*sizes), "arrays of different lengths")
        self._require(self.numbers.shape in ((0, width), (n_entries, width)), "numbers of another shape than rows")
        self._require(self.rows.max(initial=0) <= 1, "rows must hold 0 and 1")
        self._require(_indices(self.plane, 31), "bits of weights must be below 31")
        self.n_channels = int(self.channel.max(initial=-1)) + 1
        self._require(_indices(self.channel, self.n_channels), "channels must not be negative")


@dataclass(eq=False)
class Sets(Record):
    """The counts of a tally in place of samples, see `accel_oct.data.column_sets`."""

    values: Annotated[Array, Kind(None, 2)]  # (channels, all sets) by size of the sets
    starts: Annotated[Array, Kind(np.int64, 1)]  # where each size begins
    choose: Annotated[Array, Kind(np.int64, 2)]  # (all columns, sizes) binomial coefficients
    columns: Annotated[Array, Kind(np.int64, 1)]  # (F,) which column of the tally each feature is, increasing

    def check(self) -> None:
        n_columns, sizes = self.choose.shape
        self._require(self.starts.size == sizes + 1, "starts must have one number more than there are sizes")
        self._require(_indices(self.columns, n_columns), "columns that the tally does not have")
        self._require(bool((np.diff(self.columns) > 0).all()), "columns must increase")
        # The last set of every size precedes the first of the next size.
        ends = [int(self.starts[size]) + _choose(n_columns, size) for size in range(sizes)]
        self._require([0, *ends] == self.starts.tolist(), "starts that do not fit the number of columns")
        self._require(self.values.shape[1] == int(self.starts[-1]), "values of another length than starts say")
        expected = [[_choose(column, size) for size in range(sizes)] for column in range(n_columns)]
        self._require(self.choose.tolist() == expected, "choose must hold binomial coefficients")

    @property
    def most_columns(self) -> int:
        """Largest size of sets."""
        return int(self.choose.shape[1]) - 1


def _choose(n: int, size: int) -> int:
    result = 1
    for step in range(size):
        result = result * (n - step) // (step + 1)
    return result


@dataclass(eq=False)
class Ones(Record):
    """The samples as lists of their ones: by feature and by entry."""

    entries: Annotated[Array, Kind(np.int64, 1)]  # those that have feature 0, feature 1, ...
    entries_start: Annotated[Array, Kind(np.int64, 1)]
    features: Annotated[Array, Kind(np.int64, 1)]  # those of entry 0, entry 1, ...
    features_start: Annotated[Array, Kind(np.int64, 1)]
    channel: Annotated[Array, Kind(np.int32, 1)]  # (E,)
    amounts: Annotated[Array, Kind(None, 1)]  # (E,) signed weights

    def check(self) -> None:
        n_entries = self.channel.size
        self._require(self.amounts.size == n_entries, "amounts of another length than channel")
        self._require(_is_split(self.entries_start, self.entries.size), "entries_start does not divide entries")
        self._require(_is_split(self.features_start, self.features.size), "features_start does not divide features")
        self._require(self.features_start.size == n_entries + 1, "features_start of another length than channel")
        self._require(_indices(self.entries, n_entries), "entries that there are not")
        self._require(_indices(self.features, self.entries_start.size - 1), "features that there are not")
        self.n_channels = int(self.channel.max(initial=-1)) + 1
        self._require(_indices(self.channel, self.n_channels), "channels must not be negative")


def _is_split(starts: Array, size: int) -> bool:
    return bool(starts.size and starts[0] == 0 and starts[-1] == size and (np.diff(starts) >= 0).all())


@dataclass(eq=False)
class Words(Record):
    """Room for samples packed into words while they are counted, in bytes."""

    words: Annotated[Array, Kind(np.uint8, 2)]  # (some words, P * bytes of a counter)
    masks: Annotated[Array, Kind(np.uint8, 1)]  # (some words * bytes of a counter,)

    @classmethod
    def of(cls, n_entries: int, width: int, itemsize: int) -> Words:
        rows = min(512, n_entries // 16 + 1)
        return cls(np.zeros((rows, width * itemsize), np.uint8), np.zeros(rows * itemsize, np.uint8))

    def check(self) -> None:
        aligned = all(part.__array_interface__["data"][0] % 8 == 0 for part in (self.words, self.masks))
        self._require(aligned, "words must begin at a multiple of eight bytes")

    def fits(self, width: int, itemsize: int) -> bool:
        """Return whether there is room for rows of `width` counters."""
        rows, row_bytes = self.words.shape
        return bool(rows and self.masks.size == rows * itemsize and row_bytes == width * itemsize)


@dataclass(eq=False)
class Counts(Record):
    """Counts of one set of samples: of pairs of features, of features, of all."""

    table: Annotated[Array, Kind(None, 4)]  # (channels, P / L, F, L), see ``counts.hpp``; or some of its blocks
    single: Annotated[Array, Kind(None, 2)]  # (channels, P)
    totals: Annotated[Array, Kind(None, 1)]  # (channels,)

    def check(self) -> None:
        channels, blocks, n_features, lanes = self.table.shape
        self._require(lanes * self.table.itemsize == BLOCK_BYTES, f"blocks must have {BLOCK_BYTES} bytes")
        self._require(_shapes_agree((self.single.shape[0], channels), (self.totals.size, channels)), "channels differ")
        width = self.single.shape[1]
        self._require(width % lanes == 0 and n_features <= width and blocks * lanes <= width, "table too wide")


@dataclass(eq=False)
class Limits(Record):
    """Local limits: minimum mass of a leaf in units of the last channel, and features that may not share a path.

    Pairs of features that may not share a path have a minimum mass above the total.
    """

    blocked: Annotated[Array, Kind(None, 3)]  # (P / L, F, L) least mass of a leaf below a split on b and one on c
    rows: Annotated[Array, Kind(None, 2)]  # (F, P) the same
    lanes: Annotated[Array, Kind(None, 1)]  # (P,) least mass of a leaf below c
    least: Annotated[Array, Kind(None, 1)]  # (1,) least mass of any leaf
    lowest: Annotated[Array, Kind(None, 1)]  # (1,) stands for minus infinity

    def check(self) -> None:
        n_features, width = self.rows.shape
        blocks, rows, lanes = self.blocked.shape
        good = _shapes_agree((blocks * lanes, width), (rows, n_features), (self.lanes.size, width))
        self._require(good and self.least.size == 1 and self.lowest.size == 1, "shapes differ")


@dataclass(eq=False)
class Scores(Record):
    """Best scores, in table units, with one leaf and with at most two, of both sides of every feature."""

    one_leaf: Annotated[Array, Kind(None, 2)]  # (sides of sets, P)
    two_leaves: Annotated[Array, Kind(None, 2)]  # same shape

    @classmethod
    def of(cls, n_sides: int, width: int, dtype: Any) -> Scores:
        return cls(np.zeros((n_sides, width), dtype), np.zeros((n_sides, width), dtype))

    def check(self) -> None:
        self._require(self.one_leaf.shape == self.two_leaves.shape, "shapes differ")


@dataclass(eq=False)
class Work(Record):
    """Work arrays of one thread on levels three and four."""

    words: Words
    chosen: Annotated[Array, Kind(np.int64, 2)]  # (features that share a sweep, E + 1) entries that have one feature
    chosen2: Annotated[Array, Kind(np.int64, 1)]  # (E + 1,) entries that have two
    table: Annotated[Array, Kind(None, 4)]  # of a set that is counted
    rest: Annotated[Array, Kind(None, 4)]  # of a set that follows by subtraction
    singles: Annotated[Array, Kind(None, 3)]  # (4, channels, P) counts of features, by side of the pair
    sums: Annotated[Array, Kind(None, 2)]  # (4, channels) counts of all, by side of the pair
    scores: Scores  # of eight sides
    below: Annotated[Array, Kind(None, 1)]  # (P,) least masses below a path
    usable: Annotated[Array, Kind(np.uint8, 1)]  # (F,) features that may follow it

    SHARED_SWEEP: ClassVar[int] = 4
    """Number of features f that share one sweep over the tables of all g."""

    @classmethod
    def of(cls, n_entries: int, shape: tuple[int, int, int, int], dtype: Any) -> Work:
        """Create work arrays for tables of a shape."""
        channels, blocks, n_features, lanes = shape
        width = blocks * lanes
        return cls(
            words=Words.of(n_entries, width, np.dtype(dtype).itemsize),
            chosen=np.zeros((cls.SHARED_SWEEP, n_entries + 1), np.int64),
            chosen2=np.zeros(n_entries + 1, np.int64),
            table=np.zeros(shape, dtype),
            rest=np.zeros(shape, dtype),
            singles=np.zeros((4, channels, width), dtype),
            sums=np.zeros((4, channels), dtype),
            scores=Scores.of(8, width, dtype),
            below=np.zeros(width, dtype),
            usable=np.zeros(n_features, np.uint8),
        )

    def check(self) -> None:
        channels, blocks, n_features, lanes = self.table.shape
        width = blocks * lanes
        good = self.rest.shape == self.table.shape and self.singles.shape == (4, channels, width)
        good = good and self.sums.shape == (4, channels) and self.scores.one_leaf.shape == (8, width)
        good = good and self.below.size == width and self.usable.size == n_features
        self._require(good and self.chosen.shape[1] == self.chosen2.size, "shapes differ")

    def fits(self, n_entries: int, shape: tuple[int, ...], sweep: int) -> bool:
        """Return whether the arrays were created for tables of this shape."""
        return self.table.shape == shape and self.chosen2.size > n_entries and self.chosen.shape[0] >= sweep


@dataclass(eq=False)
class DepthTwo(Record):
    """Input and work arrays of the depth-two subroutine, created once for many sets of samples."""

    by_row: Annotated[Array, Kind(np.int64, 2)]  # (rows, bits) entry of a row for each bit of its weight, or -1
    amounts: Annotated[Array, Kind(np.float64, 1)]  # (E,) signed weights
    members: Annotated[Array, Kind(np.int64, 1)]  # (E + 1,) entries of a set, and one place to write to
    sums: Annotated[Array, Kind(np.float64, 2)]  # (3, channels) room
    entries: Entries
    words: Words
    counts: Counts
    scores: Scores

    def check(self) -> None:
        n_entries, width = self.entries.rows.shape
        channels, blocks, _, lanes = self.counts.table.shape
        good = (
            self.amounts.size == n_entries and self.members.size == n_entries + 1 and self.sums.shape == (3, channels)
        )
        good = good and blocks * lanes == width and self.scores.one_leaf.shape == (2, width)
        self._require(good and self.words.fits(width, self.counts.table.itemsize), "shapes differ")
        self._require(self.entries.n_channels <= channels, "more channels than the table has")
        used = self.by_row[self.by_row != -1]
        self._require(_indices(used, n_entries) and np.unique(used).size == used.size, "by_row must name entries once")
        real = self.counts.counter == np.float64
        self._require(not real or self.entries.numbers.shape[0] == n_entries, "real counts need numbers")
        most = np.finfo(np.float64).max if real else np.iinfo(self.counts.counter).max
        self._require(bool(np.abs(self.amounts).sum() <= most), "amounts beyond the range of the counts")


@dataclass(eq=False)
class Rewards(Record):
    """Points with the rewards and limit uses of predicting each class: n points, K classes, J limits.

    For a tally: n cells, with rewards and uses per unit of their counts; X and mass are empty.
    """

    X: Annotated[Array, Kind(np.uint8, 2)]  # (n, F) 0 or 1
    weights: Annotated[Array, Kind(np.float64, 2)]  # (n, K) priced
    amounts: Annotated[Array, Kind(np.float64, 2)]  # (n, K * (1 + J)) class by class: value, then uses
    fixed: Annotated[Array, Kind(np.float64, 1)]  # (1 + J,) the same for a leaf
    per_grain: Annotated[Array, Kind(np.float64, 1)]  # (J,) grains in a unit of each limit
    mass: Annotated[Array, Kind(np.float64, 1)]  # (n,) of points; as empty as X
    apart: Annotated[Array, Kind(np.uint8, 2)]  # (F, F) features that may not share a path
    leaf_price: float  # priced
    least: float  # mass that a leaf must have

    def check(self) -> None:
        (n_points, n_classes), n_features = self.weights.shape, self.apart.shape[0]
        good = self.amounts.shape == (n_points, n_classes * self.fixed.size) and self.mass.size == len(self.X)
        good = good and self.per_grain.size + 1 == self.fixed.size and self.apart.shape == (n_features, n_features)
        self._require(good and n_classes > 0, "shapes differ")
        self._require(self.X.shape in ((n_points, n_features), (0, n_features)), "X of another shape")
        self._require(self.X.max(initial=0) <= 1, "X must hold 0 and 1")


@dataclass(eq=False)
class SetGains(Record):
    """Gains of predictions on a set of samples: K classes, C columns, M binary digits of gains of W words of points.

    Gains over the samples that have both of two columns are in `both`; if it is empty, they are computed from points,
    where class ``label[m]`` gains ``amount[m]`` at those of ``masks[m]``.
    """

    totals: Annotated[Array, Kind(np.int64, 1)]  # (K,) over all samples
    both: Annotated[Array, Kind(np.int64, 3)]  # (K, C, C), or (K, 0, 0)
    words: Annotated[Array, Kind(np.uint64, 2)]  # (C, W) points that have a column, as bits
    masks: Annotated[Array, Kind(np.uint64, 2)]  # (M, W)
    label: Annotated[Array, Kind(np.int64, 1)]  # (M,)
    amount: Annotated[Array, Kind(np.int64, 1)]  # (M,)

    def check(self) -> None:
        n_classes, (n_columns, n_words), n_masks = self.totals.size, self.words.shape, self.label.size
        given = (n_columns, n_columns) if self.both.size else (0, 0)
        self._require(n_classes > 0 and self.both.shape == (n_classes, *given), "shapes differ")
        self._require(self.masks.shape == (n_masks, n_words) and self.amount.size == n_masks, "shapes differ")
        good = not n_masks or (int(self.label.min()) >= 0 and int(self.label.max()) < n_classes)
        self._require(good, "label out of range")

    @classmethod
    def of_pairs(cls, totals: Array, both: Array) -> SetGains:
        """Create the gains from `both`, without points."""
        none = np.zeros(0, np.int64)
        bits = np.zeros((both.shape[1], 0), np.uint64), np.zeros((0, 0), np.uint64)
        return cls(totals, np.ascontiguousarray(both), *bits, none, none)

    @property
    def n_columns(self) -> int:
        return len(self.words)


@dataclass(eq=False)
class CellTable(Record):
    """Counts of a set of a tally by cell: of both of two columns, of columns, of all."""

    both: Annotated[Array, Kind(np.float64, 3)]  # (C, C, n)
    single: Annotated[Array, Kind(np.float64, 2)]  # (C, n)
    totals: Annotated[Array, Kind(np.float64, 1)]  # (n,)

    def check(self) -> None:
        n_columns, n_cells = self.single.shape
        self._require(self.both.shape == (n_columns, n_columns, n_cells), "shapes differ")
        self._require(self.totals.size == n_cells, "shapes differ")


@dataclass(eq=False)
class Priced(CellTable):
    """Priced sums of one set: of both of two columns, of columns, of all; (C, C, K + 1) .., the last one the mass."""


@dataclass(eq=False)
class CellSums(Record):
    """Sums of the samples that have all columns of a set, by set size, with price and minimum mass of leaves."""

    none: Annotated[Array, Kind(np.float64, 2)]  # (1, M)
    one: Annotated[Array, Kind(np.float64, 2)]  # (F, M)
    two: Annotated[Array, Kind(np.float64, 2)]  # (number of sets, M); empty where trees are too shallow for them
    three: Annotated[Array, Kind(np.float64, 2)]
    four: Annotated[Array, Kind(np.float64, 2)]
    choose: Annotated[Array, Kind(np.int64, 2)]  # (F + 1, 5) binomial coefficients
    apart: Annotated[Array, Kind(np.uint8, 2)]  # (F, F)
    n_rewards: int  # channels before the mass
    leaf_price: float
    least: float  # mass that a leaf must have, minus infinity where none is needed

    def check(self) -> None:
        n_columns, channels = self.one.shape
        parts = self.none, self.one, self.two, self.three, self.four
        self._require(all(part.shape[1] == channels for part in parts), "channels differ")
        self._require(self.none.shape[0] == 1 and 0 <= self.n_rewards <= channels <= self.n_rewards + 1, "channels")
        self._require(self.apart.shape == (n_columns, n_columns), "apart of another shape")
        expected = [[_choose(column, size) for size in range(5)] for column in range(n_columns + 1)]
        self._require(self.choose.tolist() == expected, "choose must hold binomial coefficients")

    def reaches(self, size: int) -> bool:
        """Return whether there are sums of all sets up to a size."""
        parts = self.none, self.one, self.two, self.three, self.four
        return all(len(parts[own]) == _choose(len(self.one), own) for own in range(size + 1))


# ---------------------------------------------------------------- groups of columns


@dataclass(eq=False)
class GroupSamples(Record):
    """Samples with columns in groups, see `accel_oct.exact.group_sets`."""

    numbers: Annotated[Array, Kind(None, 2)]  # (rows, width) signed weight where the row has the column of that place
    ones: Annotated[Array, Kind(np.uint8, 2)]  # (columns, rows)
    channel: Annotated[Array, Kind(np.int64, 1)]  # (rows,)
    amounts: Annotated[Array, Kind(None, 1)]  # (rows,) signed weights
    place: Annotated[Array, Kind(np.int64, 1)]  # (columns,) where in the width a column lies: layer * lanes + group
    layers: Annotated[Array, Kind(np.int64, 1)]  # (layers,) number of groups with that many columns
    lanes: int  # groups, padded to whole blocks
    n_channels: int

    def check(self) -> None:
        (n_rows, width), n_columns = self.numbers.shape, self.ones.shape[0]
        good = _shapes_agree((self.ones.shape[1], n_rows), (self.channel.size, n_rows), (self.amounts.size, n_rows))
        self._require(good and self.place.size == n_columns, "shapes differ")
        whole = self.lanes > 0 and self.lanes * self.numbers.itemsize % BLOCK_BYTES == 0
        self._require(whole and width % self.lanes == 0 and width >= self.lanes, "lanes must be whole blocks")
        self._require(self.layers.size * self.lanes <= width and _indices(self.layers, self.lanes + 1), "layers")
        self._require(_indices(self.place, width) and _indices(self.channel, self.n_channels), "places or channels")
        self._require(self.ones.max(initial=0) <= 1, "ones must hold 0 and 1")


@dataclass(eq=False)
class GroupCounts(Record):
    """Weights of all samples by channel and column: of all that have one, two or three columns. Flat arrays."""

    totals: Annotated[Array, Kind(None, 1)]  # (channels,)
    once: Annotated[Array, Kind(None, 1)]  # (channels, width)
    twice: Annotated[Array, Kind(None, 1)]  # (columns, channels, width)
    triples: Annotated[Array, Kind(None, 1)]  # (pairs of columns, channels, width)


@dataclass(eq=False)
class GroupWork(Record):
    """Flat work arrays of the group kernels; the first axis of `once` and `sums` is the side of the root."""

    chosen: Annotated[Array, Kind(np.int64, 1)]
    chosen2: Annotated[Array, Kind(np.int64, 1)]
    chosen3: Annotated[Array, Kind(np.int64, 1)]
    once: Annotated[Array, Kind(None, 1)]  # (2, channels, width)
    with_root: Annotated[Array, Kind(None, 1)]  # (columns, channels, width)
    without_root: Annotated[Array, Kind(None, 1)]  # same shape
    both: Annotated[Array, Kind(None, 1)]  # (channels, width)
    rest: Annotated[Array, Kind(None, 1)]  # same shape
    sums: Annotated[Array, Kind(None, 1)]  # (2, 5, channels)


@dataclass(eq=False)
class GroupTables(Record):
    """Scores on one set of samples, or on each side of a root, which is the first axis or the first part."""

    leaves: Annotated[Array, Kind(None, 3)]  # (halves, pairs, 4)
    stumps: Annotated[Array, Kind(None, 1)]  # flat (halves, pairs, lanes, 4)
    singles: Annotated[Array, Kind(None, 3)]  # (halves, columns, 2)
    whole: Annotated[Array, Kind(None, 2)]  # (halves, 1)
    reach: Annotated[Array, Kind(np.float64, 1)]  # flat (halves, columns, 2, lanes)

    def check(self) -> None:
        halves, n_pairs, four = self.leaves.shape
        n_columns = self.singles.shape[1]
        good = halves in (1, 2) and four == 4 and n_pairs == n_columns * (n_columns - 1) // 2
        self._require(good and self.singles.shape == (halves, n_columns, 2), "shapes differ")
        self._require(self.whole.shape == (halves, 1), "shapes differ")

    def fits(self, lanes: int) -> bool:
        """Return whether there is room for this number of lanes."""
        halves, n_pairs, _ = self.leaves.shape
        room = self.stumps.size >= halves * n_pairs * 4 * lanes
        return bool(room and self.reach.size == halves * self.singles.shape[1] * 2 * lanes)
