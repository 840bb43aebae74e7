"""What kernels are given: arrays that belong together, as named tuples that numba can take apart.

Letters in shapes: E entries, P features padded to whole vectors, F features, L lanes of a vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.layout import Layout

Array = NDArray[Any]

SHARED_SWEEP = 4
"""Features f that share one sweep over the tables of all g."""

_BLOCK_WORDS = 512


class Entries(NamedTuple):
    """The samples that can be counted, see `Layout`."""

    rows: Array  # (E, P)
    channel: Array  # (E,)
    plane: Array  # (E,)
    marked: Array  # (E,)
    numbers: Array  # (E, P), or empty

    @classmethod
    def of(cls, layout: Layout) -> Entries:
        return cls(layout.entries, layout.channel, layout.plane, layout.marked, layout.numbers)


class Sets(NamedTuple):
    """The counts of a tally in the place of samples, see `accel_oct.data.column_sets`."""

    values: Array  # (channels, all sets) by size of the sets
    starts: Array  # where each size begins
    choose: Array  # (all columns, sizes) binomial coefficients
    columns: Array  # (F,) which column of the tally each feature is, increasing


class Ones(NamedTuple):
    """The same as lists of the ones: by feature and by entry."""

    entries: Array  # those that have feature 0, feature 1, ...
    entries_start: Array
    features: Array  # those of entry 0, entry 1, ...
    features_start: Array
    channel: Array  # (E,)
    amounts: Array  # (E,) signed weights


class Words(NamedTuple):
    """Room for samples packed into words while they are counted."""

    words: Array  # (some words, P)
    masks: Array  # (some words,) marked samples

    @classmethod
    def of(cls, layout: Layout) -> Words:
        rows = min(_BLOCK_WORDS, layout.entries.shape[0] // 16 + 1)
        return cls(np.zeros((rows, layout.width), layout.word_dtype), np.zeros(rows, layout.word_dtype))


class Counts(NamedTuple):
    """Counts of one set of samples: of pairs of features, of features, of all."""

    table: Array  # (channels, P / L, F, L), see `counts`
    single: Array  # (channels, P)
    totals: Array  # (channels,)

    @classmethod
    def of(cls, layout: Layout) -> Counts:
        channels, dtype = layout.n_channels, layout.dtype
        return cls(
            np.zeros(layout.table_shape, dtype), np.zeros((channels, layout.width), dtype), np.zeros(channels, dtype)
        )


class Limits(NamedTuple):
    """Local rules: what a leaf must weigh, and which features must stay apart, in the units of the last channel.

    Where two features must stay apart the least mass is more than there is.
    """

    blocked: Array  # (P / L, F, L) least mass of a leaf below a split on b and one on c, laid out like a table
    rows: Array  # (F, P) the same
    lanes: Array  # (P,) least mass of a leaf below c
    least: Array  # (1,) least mass of any leaf
    lowest: Array  # (1,) what stands for minus infinity: added to any score it is negative, and added to itself it fits

    @classmethod
    def of(cls, layout: Layout, least: float, apart: Array | None, total: float | None = None) -> Limits:
        """`total`: of all weights, where the layout does not hold them."""
        dtype = layout.dtype
        never = np.inf if dtype == np.float64 else np.iinfo(dtype).max
        total = float(np.abs(layout.signs).sum()) if total is None else total
        enough = least if dtype == np.float64 else min(np.ceil(least), never)
        _, blocks, F, lanes = layout.table_shape
        rows = np.full((F, layout.width), never, dtype=dtype)
        rows[:, :F] = enough if apart is None else np.where(apart, never, enough)
        below = np.full(layout.width, never, dtype=dtype)
        below[:F] = enough
        lowest = -2 * total - 1 if dtype == np.float64 else np.iinfo(dtype).min // 2
        blocked = np.ascontiguousarray(rows.reshape(F, blocks, lanes).transpose(1, 0, 2))
        return cls(blocked, rows, below, np.array([enough], dtype), np.array([lowest], dtype))


class Scores(NamedTuple):
    """Best scores, in table units, with one leaf and with at most two, of both sides of every feature."""

    one_leaf: Array  # (sides of sets, P)
    two_leaves: Array  # same shape

    @classmethod
    def of(cls, layout: Layout, n_sides: int) -> Scores:
        return cls(np.zeros((n_sides, layout.width), layout.dtype), np.zeros((n_sides, layout.width), layout.dtype))


class Work(NamedTuple):
    """What one thread writes to on levels three and four, so that nothing is allocated while it runs."""

    words: Words
    chosen: Array  # (SHARED_SWEEP, E + 1) entries that have one feature
    chosen2: Array  # (E + 1,) entries that have two
    table: Array  # of a set that is counted
    rest: Array  # of a set that follows by subtraction
    singles: Array  # (4, channels, P) counts of features, by side of the pair
    sums: Array  # (4, channels) counts of all, by side of the pair
    scores: Scores  # of eight sides
    scratch: Array  # (3 P,)

    @classmethod
    def of(cls, layout: Layout) -> Work:
        n_entries, dtype = layout.entries.shape[0], layout.dtype
        return cls(
            words=Words.of(layout),
            chosen=np.zeros((SHARED_SWEEP, n_entries + 1), np.int64),
            chosen2=np.zeros(n_entries + 1, np.int64),
            table=np.zeros(layout.table_shape, dtype),
            rest=np.zeros(layout.table_shape, dtype),
            singles=np.zeros((4, layout.n_channels, layout.width), dtype),
            sums=np.zeros((4, layout.n_channels), dtype),
            scores=Scores.of(layout, 8),
            scratch=np.zeros(3 * layout.width, dtype),
        )


class DepthTwo(NamedTuple):
    """What the depth-two subroutine reads and writes to, made once for many sets of samples."""

    by_row: Array  # (rows, bits) entry of a row for each bit of its weight, -1 where there is none
    amounts: Array  # (E,) signed weights
    members: Array  # (E + 1,) entries of a set, and one place to write to
    entries: Entries
    words: Words
    counts: Counts
    scores: Scores
    signed: bool

    @classmethod
    def of(cls, layout: Layout, signed: bool) -> DepthTwo:
        n_entries = layout.entries.shape[0]
        return cls(
            by_row=layout.by_row,
            amounts=layout.signs,
            members=np.zeros(n_entries + 1, np.int64),
            entries=Entries.of(layout),
            words=Words.of(layout),
            counts=Counts.of(layout),
            scores=Scores.of(layout, 2),
            signed=signed,
        )


class Rewards(NamedTuple):
    """Points, and what predicting a class there earns and uses: n points, K classes, J limits.

    Of a tally, n cells, and what a unit of their counts earns and uses; X is empty.
    """

    X: Array  # (n, F) 0 or 1
    weights: Array  # (n, K) priced
    amounts: Array  # (n, K * (1 + J)) what counts, class by class: value, then uses
    fixed: Array  # (1 + J,) the same for a leaf
    per_grain: Array  # (J,) grains in a unit of each limit
    mass: Array  # (n,)
    apart: Array  # (F, F) features that may not share a path
    leaf_price: float  # priced
    least: float  # mass that a leaf must have


class CellTable(NamedTuple):
    """Counts of a set by cell: of both of two columns, of columns, of all."""

    both: Array  # (C, C, n)
    single: Array  # (C, n)
    totals: Array  # (n,)


class Samples(NamedTuple):
    """A set of samples: points, or counts of a tally; the other one is empty."""

    points: Array
    table: CellTable


class Priced(NamedTuple):
    """Priced sums of one set: of both features of all pairs, of features, of all; the mass is the last channel."""

    both: Array  # (C, C, K + 1), columns by place
    single: Array  # (C, K + 1)
    totals: Array  # (K + 1,)


class CellSums(NamedTuple):
    """Sums of the samples that have all columns of a set, by size of the sets, and what leaves cost and need."""

    none: Array  # (1, M)
    one: Array  # (F, M)
    two: Array  # (number of sets, M), here and below; empty where trees are too shallow for them
    three: Array
    four: Array
    choose: Array  # (F + 1, 5) binomial coefficients
    apart: Array  # (F, F)
    n_rewards: int  # channels before the mass
    leaf_price: float
    least: float  # mass that a leaf must have, minus infinity where none is needed
