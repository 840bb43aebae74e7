"""Second pass: binary features, reduced to distinct rows or a tally, whichever is smaller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from accel_oct.data.binary_matrix import pack_rows
from accel_oct.data.labels import is_missing
from accel_oct.data.tally import Tally
from accel_oct.errors import InvalidInputError, as_invalid_input, shown
from accel_oct.pieces.batches import Batch
from accel_oct.pieces.counting import WeightUnit, check_columns, read_weights
from accel_oct.pieces.encoders import BatchEncoder
from accel_oct.pieces.sources import Piece, described
from accel_oct.support.arrays import IntArray, WordArray

# ---------------------------------------------------------------- distinct rows


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows, sorted by features (feature 0 first), then cell.

    Attributes
    ----------
    words : uint64 array (n, n_words)
        Packed features.
    cells : int64 array (n,)
        Class and groups as one number.
    units : int64 array (n,)
        Weight, in units.
    samples : int64 array (n,)
        Number of samples with positive weight.
    """

    n_features: int
    words: WordArray
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
        """Merge the rows of a batch; without weights, each row has one unit."""
        words = pack_rows(features.T)
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
        """Return the rows from `start` to `stop`."""
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


def _merged(n_features: int, words: WordArray, cells: IntArray, units: IntArray, samples: IntArray) -> DistinctRows:
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


# ---------------------------------------------------------------- the pass


_ALLOWANCE = 1 << 24
"""Memory up to which rows are kept even if a tally is smaller, because they support more uses."""


@dataclass(frozen=True, eq=False)
class Labels:
    """A column whose values are cells of the result: the target, or a group.

    Attributes
    ----------
    name : str
        Name of the column.
    called : str
        Argument in errors: "target" or "sensitive_features".
    values : array
        Distinct values of the first pass; missing ones are None.
    """

    name: str
    called: str
    values: NDArray[Any]

    def codes(self, batch: Batch, piece: str) -> IntArray:
        """Return the index of each row's value."""
        column = batch.coded(self.name)
        place = {_key(value): code for code, value in enumerate(self.values.tolist())}
        try:
            table = np.array([place[_key(value)] for value in column.values.tolist()], dtype=np.int64)
        except KeyError:
            strange = next(value for value in column.values.tolist() if _key(value) not in place)
            raise InvalidInputError(
                f"{self.called}: {described(self.name)} holds {shown(strange)} in {piece}, which was not there in the "
                "first pass: the data have changed"
            ) from None
        found: IntArray = table[column.codes]
        return found


def _key(value: Any) -> Any:
    return None if is_missing(value) else value


def rows_limit(n_features: int, n_cells: int, depth: int, keep: str) -> int | None:
    """Return the number of distinct rows beyond which a tally replaces them; None means no limit."""
    if keep != "auto":
        return None if keep == "rows" else 0
    sets = sum(math.comb(n_features, size) for size in range(depth + 1))
    per_row = 8 * (max(1, -(-n_features // 64)) + 3)
    return max(_ALLOWANCE, 8 * n_cells * sets) // per_row


@dataclass(eq=False)
class Reduced:
    """Result of the second pass over some pieces: distinct rows, a tally, or some of the rows in each."""

    rows: DistinctRows
    tally: Tally | None = None
    n_rows: int = 0


@dataclass(frozen=True, eq=False)
class ReducePass:
    """Task for each piece in the second pass.

    Attributes
    ----------
    limit : int or None
        See `rows_limit`.
    tallying : bool
        Whether the result will be a tally.
    """

    columns: tuple[str, ...]
    encoder: BatchEncoder
    target: Labels
    groups: tuple[Labels, ...]
    weight: str | None
    unit: WeightUnit
    depth: int
    limit: int | None
    batch_rows: int
    tallying: bool = False

    @property
    def n_groups(self) -> int:
        return math.prod(len(each.values) for each in self.groups)

    def empty(self) -> Reduced:
        return Reduced(DistinctRows.none(self.encoder.n_features))

    def for_state(self, state: Reduced) -> ReducePass:
        """Return the task for further pieces."""
        return replace(self, tallying=True) if state.tally is not None and not self.tallying else self

    def __call__(self, place: int, piece: Piece) -> Reduced:
        check_columns(piece, self.columns)
        state = self.empty()
        wanted = [*self.encoder.names, self.target.name, *(each.name for each in self.groups)]
        wanted += [] if self.weight is None else [self.weight]
        for batch in piece.batches(list(dict.fromkeys(wanted)), self.batch_rows):
            if batch.n_rows:
                self._add(state, batch, piece.name)
        return state

    def merge(self, state: Reduced, other: Reduced) -> Reduced:
        """Merge the results of pieces, independent of their order."""
        state.n_rows += other.n_rows
        state.rows += other.rows
        if other.tally is not None:
            state.tally = other.tally if state.tally is None else state.tally + other.tally
        return self._settle(state)

    def finish(self, state: Reduced) -> Reduced:
        """Return either distinct rows or a tally; remaining rows beside a tally are added to it."""
        if state.tally is not None or self.limit == 0:
            self._count_rows(state)
        return state

    # ---------------------------------------------------------------- a batch

    def _add(self, state: Reduced, batch: Batch, piece: str) -> None:
        state.n_rows += batch.n_rows
        units = None
        if self.weight is not None:
            units = self.unit.whole(read_weights(batch.array(self.weight), self.weight, piece))
            if not units.all():  # rows without weight are ignored, as in the fit of the encoder
                batch, units = batch.taken(units > 0), units[units > 0]
        elif self.unit.exponent:
            units = self.unit.whole(np.ones(batch.n_rows))
        try:
            features = self.encoder(batch)
        except InvalidInputError as error:
            raise InvalidInputError(f"{str(error).rstrip('.')} ({piece})") from None
        cells = self.target.codes(batch, piece)
        for each in self.groups:
            cells = cells * len(each.values) + each.codes(batch, piece)
        if self.tallying or self.limit == 0:
            self._count(state, features.T, cells, units)
            return
        state.rows += DistinctRows.of(features, cells, units)
        self._settle(state)

    def _settle(self, state: Reduced) -> Reduced:
        """Convert too many rows to a tally, which is accompanied by few rows."""
        if self.limit is not None and len(state.rows) > self.limit:
            self._count_rows(state)
        return state

    def _count_rows(self, state: Reduced) -> None:
        rows, state.rows = state.rows, DistinctRows.none(state.rows.n_features)
        for first in range(0, max(1, len(rows)), self.batch_rows):  # unpacked rows are eight times as large
            some = rows.between(first, first + self.batch_rows)
            self._count(state, some.X, some.cells, some.units)

    def _count(self, state: Reduced, X: NDArray[np.bool_], cells: IntArray, units: IntArray | None) -> None:
        # Codes instead of labels, which a tally would compare for every row.
        counted = Tally.of(
            X,
            cells // self.n_groups,
            depth=self.depth,
            sample_weight=None if units is None or not len(units) else units,
            sensitive_features=cells % self.n_groups,
            classes=list(range(len(self.target.values))),
            group_labels=list(range(self.n_groups)),
        )
        state.tally = counted if state.tally is None else state.tally + counted


def check_passes(first: int, second: int) -> None:
    """Raise if the two passes read different numbers of rows."""
    if first != second:
        raise InvalidInputError(
            f"source gave {first:,} rows in the first pass and {second:,} in the second: the data have changed"
        )


def check_classes(values: NDArray[Any], column: str) -> None:
    """Raise for a target that scikit-learn rejects as classes, such as amounts."""
    with as_invalid_input(f"target: {described(column)}"):
        check_classification_targets(np.repeat(values, 3))  # not once: it warns of single samples


def label_values(values: NDArray[Any], missing: bool) -> NDArray[Any]:
    """Return distinct labels in order, with None last if some are missing."""
    try:
        ordered: Sequence[Any] = sorted(values.tolist())
    except TypeError:
        ordered = sorted(values.tolist(), key=lambda value: (type(value).__name__, value))
    result = np.empty(len(ordered) + missing, dtype=object)
    result[: len(ordered)] = ordered
    return result
