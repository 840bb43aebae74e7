"""The first pass: what there is in the columns, and how much it weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.batches import Batch
from accel_oct.pieces.counts import ColumnCounts
from accel_oct.pieces.sources import Piece
from accel_oct.pieces.weights import WeightTotals, read_weights

__all__ = ["CountPass", "Counted", "Sample", "joined"]

FloatArray = NDArray[np.float64]

_PIECE = 1 << 42
"""More than the rows of a piece."""


@dataclass(eq=False)
class Sample:
    """Rows chosen by chance, each with the same: those with the smallest of numbers drawn for every row.

    The numbers follow from a seed and the place of the row in its piece, so the same rows are chosen in whatever order
    pieces are read. Of data with no more rows than `size`, all are there.
    """

    size: int
    seed: int
    keys: FloatArray = field(default_factory=lambda: np.empty(0))
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)

    def add(self, batch: Batch, names: Sequence[str], weights: FloatArray | None, place: tuple[int, int]) -> None:
        """Look at a batch; `place` is that of its piece among the pieces, and of its first row in the piece."""
        drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, *place]))).random(batch.n_rows)
        rows = _smallest(drawn, self.size)
        columns = {name: batch.array(name)[rows] for name in names}
        columns[""] = np.ones(len(rows)) if weights is None else weights[rows]
        self._join(drawn[rows], place[0] * _PIECE + place[1] + rows, columns, batch.scales)

    def merge(self, other: Sample) -> None:
        if len(other.keys):
            self._join(other.keys, other.places, other.columns, other.scales)

    def _join(
        self,
        keys: FloatArray,
        places: NDArray[np.int64],
        columns: Mapping[str, NDArray[Any]],
        scales: Mapping[str, Scale],
    ) -> None:
        self.scales.update(scales)
        if not len(self.keys):
            self.keys, self.places, self.columns = keys, places, dict(columns)
            return
        together = np.concatenate([self.keys, keys])
        rows = _smallest(together, self.size)
        self.keys, self.places = together[rows], np.concatenate([self.places, places])[rows]
        self.columns = {name: joined(self.columns[name], columns[name])[rows] for name in self.columns}

    def rows(self, names: Sequence[str]) -> tuple[Table, FloatArray]:
        """Some columns, and the weights; rows in the order of the pieces, in which sums of weights are rounded."""
        order = np.argsort(self.places)
        scales = tuple(self.scales.get(name) for name in names)
        columns = tuple(self.columns[name][order] for name in names)
        return Table(columns, tuple(names), len(self.keys), scales), self.columns[""][order]


def _smallest(keys: FloatArray, size: int) -> NDArray[np.int64]:
    """Places of the smallest keys, in their order."""
    if len(keys) > size:
        some = np.argpartition(keys, size)[:size]
        return some[np.argsort(keys[some], kind="stable")].astype(np.int64)
    return np.argsort(keys, kind="stable").astype(np.int64)


def joined(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
    """The values of a column in two batches, one after the other."""
    if (one.dtype == object) != (two.dtype == object):
        # Python's own numbers, as in a table that holds both parts.
        result = np.empty(len(one) + len(two), dtype=object)
        result[: len(one)] = one.tolist()
        result[len(one) :] = two.tolist()
        return result
    return np.concatenate([one, two])


@dataclass(eq=False)
class Counted:
    """What the first pass found, in some pieces or in all of them."""

    columns: dict[str, ColumnCounts]
    sample: Sample
    totals: WeightTotals = field(default_factory=WeightTotals)
    families: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return self.totals.n_rows

    def merge(self, other: Counted) -> Counted:
        """Add other pieces."""
        for name, (found, piece) in other.families.items():
            self.show(name, found, piece)
        for name, counts in other.columns.items():
            self.columns[name].merge(counts)
        self.sample.merge(other.sample)
        self.totals.merge(other.totals)
        return self

    def show(self, name: str, found: str, piece: str) -> None:
        """A piece says what a column holds; an error where another one says something else."""
        one = self.families.setdefault(name, (found, piece))
        if one[0] != found:
            first, second = sorted([one, (found, piece)], key=lambda pair: pair[1])
            raise InvalidInputError(
                f"pieces have different types: column {name!r} holds {first[0]} in {first[1]} and "
                f"{second[0]} in {second[1]}"
            )


@dataclass(frozen=True, eq=False)
class CountPass:
    """What is done with each piece in the first pass.

    Attributes
    ----------
    columns : tuple of str
        All columns that there must be.
    counted : tuple of str
        Those whose values are counted.
    sampled : tuple of str
        Those of which rows are kept.
    weight : str or None
        The column with the weights.
    first : str
        The piece that told the columns.
    """

    columns: tuple[str, ...]
    counted: tuple[str, ...]
    sampled: tuple[str, ...]
    weight: str | None
    max_distinct: int
    sample_size: int
    seed: int
    batch_rows: int

    def empty(self) -> Counted:
        columns = {name: ColumnCounts(name, self.max_distinct) for name in self.counted}
        return Counted(columns, Sample(self.sample_size if self.sampled else 0, self.seed))

    def __call__(self, place: int, piece: Piece) -> Counted:
        state = self.empty()
        check_columns(piece, self.columns)
        for name, known in (piece.families() or {}).items():
            if known is not None and name in self.columns:
                state.show(name, known, piece.name)
        wanted = list(dict.fromkeys([*self.counted, *self.sampled, *([self.weight] if self.weight else [])]))
        for batch in piece.batches(wanted, self.batch_rows):
            weights = None if self.weight is None else read_weights(batch.array(self.weight), self.weight, piece.name)
            state.totals.add(batch.n_rows, weights)
            if not batch.n_rows:
                continue
            for name, counts in state.columns.items():
                counts.add(batch.coded(name), weights, piece.name, batch.scales.get(name))
            if self.sampled:
                state.sample.add(batch, self.sampled, weights, (place, state.n_rows - batch.n_rows))
        for counts in state.columns.values():
            counts.compact()
        return state


def check_columns(piece: Piece, columns: Sequence[str]) -> None:
    """Raise where a piece lacks a column, or has one that others do not have."""
    found = set(piece.columns)
    lacking = [name for name in columns if name not in found]
    if lacking:
        raise InvalidInputError(f"pieces have different columns: {piece.name} has no column {lacking[0]!r}")
    more = sorted(found - set(columns))
    if more:
        raise InvalidInputError(
            f"pieces have different columns: {piece.name} has a column {more[0]!r}, which the first piece does not have"
        )
