"""First pass: distinct values of the columns and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.data.weights import ExactWeights, grid_bits_of
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.batches import Batch, Coded, coded, family, plain_objects
from accel_oct.pieces.sources import BESIDE, Piece
from accel_oct.support.arrays import FloatArray

# ---------------------------------------------------------------- weights as whole numbers of a unit


_USUAL_EXPONENT = 500
"""Exponent beyond which all weights are scaled by a power of two, as in `accel_oct.data.weights.as_weights`."""


def read_weights(values: NDArray[Any], column: str, piece: str) -> FloatArray:
    """Return finite, non-negative weights; the error names the column and the piece."""
    where = f"sample_weight in {piece}" if column in BESIDE else f"sample_weight: column {column!r} of {piece}"
    if values.dtype.kind not in "biufO":
        raise InvalidInputError(f"{where} must hold numbers, got the type {values.dtype}")
    try:
        if values.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in values.tolist()):
            raise ValueError("it holds text")
        weights = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{where} must hold numbers: {error}") from None
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InvalidInputError(f"{where} must be finite and not negative, but holds {weights[bad][0]}")
    return weights


@dataclass
class WeightTotals:
    """Totals of the weights; `total` is exact, so it does not depend on the order of the pieces."""

    n_rows: int = 0
    n_positive: int = 0
    total: Fraction = Fraction(0)
    largest: float = 0.0
    whole: bool = True

    def add(self, n_rows: int, weights: FloatArray | None) -> None:
        """Count a batch; every sample weighs 1 where there are no weights."""
        self.n_rows += n_rows
        if weights is None:
            self.n_positive += n_rows
            self.total += n_rows
            self.largest = max(self.largest, 1.0 if n_rows else 0.0)
        elif n_rows:
            self.n_positive += int(np.count_nonzero(weights))
            exact = ExactWeights(weights)
            self.total += exact.total() * exact.unit
            self.largest = max(self.largest, float(weights.max()))
            self.whole = self.whole and bool(np.all(weights == np.floor(weights)))

    def merge(self, other: WeightTotals) -> None:
        self.n_rows += other.n_rows
        self.n_positive += other.n_positive
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        self.whole = self.whole and other.whole

    def unit(self) -> WeightUnit:
        """Return the unit of these weights in a `BinaryDataset`."""
        if not self.total:
            raise InvalidInputError("sample_weight is zero for every sample")
        exponent = math.frexp(self.largest)[1]
        shift = -exponent if abs(exponent) > _USUAL_EXPONENT else 0
        try:
            total = float(self.total * Fraction(2) ** shift)
        except OverflowError:
            raise InvalidInputError("sample_weight adds up to more than a float can hold") from None
        bits = grid_bits_of(total, self.whole)
        return WeightUnit(shift, bits, 0 if self.whole and bits >= 0 and not shift else -bits)


@dataclass(frozen=True)
class WeightUnit:
    """Weights, multiplied by ``2.0 ** shift``, are whole multiples of ``2.0 ** exponent``.

    Attributes
    ----------
    grid_bits : int
        As in `BinaryDataset`.
    """

    shift: int
    grid_bits: int
    exponent: int

    def whole(self, weights: FloatArray) -> NDArray[np.int64]:
        """Return weights as multiples of the unit, rounded to the nearest non-zero multiple."""
        return np.maximum(np.rint(np.ldexp(weights, self.shift - self.exponent)), weights > 0).astype(np.int64)

    def real(self, units: NDArray[np.int64]) -> FloatArray:
        """Return the exact weights of multiples of the unit."""
        return np.ldexp(units.astype(np.float64), self.exponent)


# ---------------------------------------------------------------- values of a column


_PENDING = 1 << 16
_LARGEST_FLOAT = np.finfo(np.float64).max
_EXACT = 2**53
_FLOAT_LEVEL = 10
"""Level of rounding from which on floats lose digits: they have 53 of the 63 bits of whole numbers."""


@dataclass(eq=False)
class ColumnCounts:
    """The distinct values of a column with their weights, added up over pieces.

    Counts are exact up to `limit` distinct values. Beyond that, numbers and times are rounded down to fewer binary
    digits. Counts of the rounded values are exact, and do not depend on the order of the pieces, because rounding in
    two steps equals rounding in one.

    Attributes
    ----------
    limit : int
        Maximum number of distinct values without rounding.
    values, weights : arrays
        Known values in increasing order where they are numbers or times; valid after `compact`.
    missing : float or None
        Weight of the missing values; None if there are none.
    level : int
        Level of rounding, see `_rounding`; 0 is exact.
    family : (str, str) or None
        Family of the values, and the piece where it was found.
    """

    name: str
    limit: int
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object))
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    missing: float | None = None
    level: int = 0
    scale: Scale | None = None
    family: tuple[str, str] | None = None
    _more: list[tuple[NDArray[Any], FloatArray]] = field(default_factory=list)

    def add(self, column: Coded, weights: FloatArray | None, piece: str, scale: Scale | None = None) -> None:
        """Count a batch; every sample weighs 1 where there are no weights."""
        totals = np.bincount(column.codes, weights, len(column.values)).astype(np.float64)
        values = column.values
        self._agree(None if (found := family(values)) is None else (found, piece), scale)
        unknown = _unknown(values)
        if unknown.any():
            self.missing = (self.missing or 0.0) + float(totals[unknown].sum())
            values, totals = values[~unknown], totals[~unknown]
            if values.dtype == object:
                values = plain_objects(values.tolist())
        self._take(values, totals)

    def merge(self, other: ColumnCounts) -> None:
        """Add the counts of other pieces."""
        self._agree(other.family, other.scale)
        if other.missing is not None:
            self.missing = (self.missing or 0.0) + other.missing
        other.compact()
        self.level = max(self.level, other.level)
        self._take(other.values, other.weights)

    def compact(self) -> ColumnCounts:
        """Bring `values` and `weights` up to date."""
        if self._more:
            parts = [(self.values, self.weights), *self._more]
            parts = [part for part in parts if len(part[0])] or parts[:1]
            self._more = []
            self.values, self.weights = _summed(parts, self.name)
        if len(self.values) > self.limit or self.level:
            self._coarsen()
        return self

    @property
    def rank_error(self) -> float:
        """Largest error of a quantile as a share of the weight: that of the heaviest rounded value; 0 if exact."""
        total = float(self.weights.sum())
        return float(self.weights.max()) / total if self.level and total > 0 else 0.0

    def with_missing(self) -> tuple[NDArray[Any], FloatArray]:
        """Return values and weights, including a missing value: a column that represents all rows."""
        self.compact()
        if self.missing is None:
            return self.values, self.weights
        kind = self.values.dtype.kind
        if kind in "fMm":
            nothing = np.array(["NaT" if kind in "Mm" else np.nan], dtype=self.values.dtype)
            return np.concatenate([self.values, nothing]), np.append(self.weights, self.missing)
        values = np.empty(len(self.values) + 1, dtype=object)
        values[:-1] = self.values.tolist() if kind != "O" else self.values
        return values, np.append(self.weights, self.missing)

    # ---------------------------------------------------------------- inside

    def _agree(self, shown: tuple[str, str] | None, scale: Scale | None) -> None:
        if shown is not None and self.family is not None and shown[0] != self.family[0]:
            # Sorted, so that the message does not depend on the order of the pieces.
            (one, first), (two, second) = sorted([self.family, shown], key=lambda pair: pair[::-1])
            raise InvalidInputError(
                f"pieces have different types: column {self.name!r} holds {one} in {first} and {two} in {second}"
            )
        if shown is not None and (self.family is None or shown[1] < self.family[1]):
            self.family = shown
        if scale is not None:
            if self.scale is not None and self.scale != scale:
                raise InvalidInputError(
                    f"pieces have different types: column {self.name!r} has categories in another order, "
                    "or times of another zone, in some of them"
                )
            self.scale = scale

    def _take(self, values: NDArray[Any], weights: FloatArray) -> None:
        if len(values):
            self._more.append((values, weights))
        if sum(len(part) for part, _ in self._more) > max(_PENDING, len(self.values)):
            self.compact()

    def _coarsen(self) -> None:
        keys = _ordered(self.values, self.limit, self.name)
        at_level = _rounding(keys, self.values.dtype)
        level = self.level
        while True:
            rounded = at_level(level)
            first = np.ones(len(rounded), dtype=bool)
            first[1:] = rounded[1:] != rounded[:-1]
            if first.sum() <= self.limit:
                break
            level += 1
        self.level = level
        starts = np.flatnonzero(first)
        self.weights = np.add.reduceat(self.weights, starts)
        self.values = _from_ordered(rounded[starts], self.values.dtype)


def _unknown(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "fMm":
        return np.asarray(values != values)
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _summed(parts: list[tuple[NDArray[Any], FloatArray]], name: str) -> tuple[NDArray[Any], FloatArray]:
    dtype = parts[0][0].dtype
    for values, _ in parts[1:]:
        dtype = _common(dtype, values.dtype)
    if dtype.kind == "f" and any(_too_large(values) for values, _ in parts):
        dtype = np.dtype(object)
    converted = [_as(values, dtype) for values, _ in parts]
    together = coded(np.concatenate(converted), name)
    weights = np.bincount(together.codes, np.concatenate([w for _, w in parts]), len(together.values))
    return together.values, weights.astype(np.float64)


def _as(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind != "O" or values.dtype.kind == "O":
        return values.astype(dtype)
    result = np.empty(len(values), dtype=object)
    result[:] = values.tolist()
    return result


def _common(one: np.dtype[Any], two: np.dtype[Any]) -> np.dtype[Any]:
    if one == two:
        return one
    same = one.kind == two.kind or {one.kind, two.kind} <= set("iuf")
    return np.result_type(one, two) if same and one.kind in "iufMmUS" else np.dtype(object)


def _too_large(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" and bool(len(values)) and max(-int(values.min()), int(values.max())) > _EXACT


def _ordered(values: NDArray[Any], limit: int, name: str) -> NDArray[np.int64]:
    """Return integer keys with the order of the sorted values."""
    kind = values.dtype.kind
    if kind in "Mm":
        return values.view(np.int64)
    if kind == "i" or (kind == "u" and int(values[-1]) < 2**63):
        return values.astype(np.int64)
    if kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        return np.asarray(bits ^ ((bits >> 63) & np.int64(2**63 - 1)))
    raise InvalidInputError(
        f"column {name!r} has more than {limit:,} distinct values, too many to count; raise max_distinct, or "
        "leave the column out with features="
    )


def _rounding(keys: NDArray[np.int64], dtype: np.dtype[Any]) -> Callable[[int], NDArray[np.int64]]:
    """Return a function that rounds the keys down at a level.

    A number keeps its first 63 - level binary digits, so that small whole numbers are unchanged. Once only the first
    digit is left, all whole numbers lose their last digits too. Floats, which have 53 digits, and whole numbers are
    rounded to the same values while a digit is left, since pieces of one column may hold either. Negative numbers are
    rounded as their opposites.
    """
    if dtype.kind == "f":
        return lambda level: keys >> max(level - _FLOAT_LEVEL, 0) << max(level - _FLOAT_LEVEL, 0)
    negative = keys < 0
    sizes = np.where(negative, ~keys, keys).astype(np.uint64) + negative.astype(np.uint64)
    digits = np.frexp(sizes.astype(np.float64))[1].astype(np.int64)
    digits -= (digits > 0) & (sizes >> np.maximum(digits - 1, 0).astype(np.uint64) == 0)  # the float was rounded up

    def rounded(level: int) -> NDArray[np.int64]:
        lost = np.maximum(digits - max(63 - level, 1), max(level - 62, 0)).astype(np.uint64)
        ends = (np.uint64(1) << lost) - np.uint64(1)
        below = np.minimum(sizes | ends, np.uint64(2**63)) - np.uint64(1)  # the smallest integer has no opposite
        return np.where(negative, ~below.astype(np.int64), (sizes & ~ends).astype(np.int64))

    return rounded


def _from_ordered(keys: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind in "Mm":
        return keys.view(dtype)
    if dtype.kind != "f":
        return keys
    bits = keys ^ ((keys >> 63) & np.int64(2**63 - 1))
    # Keys below the smallest finite number are minus infinity or NaN patterns.
    found = bits.view(np.float64)
    return np.where(np.isfinite(found), found, -_LARGEST_FLOAT)


# ---------------------------------------------------------------- the pass


_PIECE = 1 << 42
"""Larger than the number of rows of a piece."""


@dataclass(eq=False)
class Sample:
    """Uniform random sample: the rows with the smallest of random keys.

    A key depends on the seed, the piece and the position of the row, so the sample does not depend on the order in
    which pieces are read. Data with at most `size` rows are sampled completely.
    """

    size: int
    seed: int
    keys: FloatArray = field(default_factory=lambda: np.empty(0))
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)

    def add(self, batch: Batch, names: Sequence[str], weights: FloatArray | None, place: tuple[int, int]) -> None:
        """Add a batch; `place` is the index of its piece, and of its first row in the piece."""
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
        """Return some columns and the weights; the fixed order of rows makes rounded sums of weights reproducible."""
        order = np.argsort(self.places)
        scales = tuple(self.scales.get(name) for name in names)
        columns = tuple(self.columns[name][order] for name in names)
        return Table(columns, tuple(names), len(self.keys), scales), self.columns[""][order]


def _smallest(keys: FloatArray, size: int) -> NDArray[np.int64]:
    """Return the positions of the smallest keys, in increasing order."""
    if len(keys) > size:
        some = np.argpartition(keys, size)[:size]
        return some[np.argsort(keys[some], kind="stable")].astype(np.int64)
    return np.argsort(keys, kind="stable").astype(np.int64)


def joined(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
    """Concatenate the values of a column in two batches."""
    if (one.dtype == object) != (two.dtype == object):
        # Python numbers, as in a table that holds both parts.
        result = np.empty(len(one) + len(two), dtype=object)
        result[: len(one)] = one.tolist()
        result[len(one) :] = two.tolist()
        return result
    return np.concatenate([one, two])


@dataclass(eq=False)
class Counted:
    """Result of the first pass over some or all pieces."""

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
        """Record the family of a column in a piece; raise if another piece has a different one."""
        one = self.families.setdefault(name, (found, piece))
        if one[0] != found:
            first, second = sorted([one, (found, piece)], key=lambda pair: pair[1])
            raise InvalidInputError(
                f"pieces have different types: column {name!r} holds {first[0]} in {first[1]} and "
                f"{second[0]} in {second[1]}"
            )


@dataclass(frozen=True, eq=False)
class CountPass:
    """Task for each piece in the first pass.

    Attributes
    ----------
    columns : tuple of str
        Required columns.
    counted : tuple of str
        Columns whose values are counted.
    sampled : tuple of str
        Columns of the sampled rows.
    weight : str or None
        Column of the weights.
    first : str
        Piece that defines the columns.
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
    """Raise if a piece lacks a column or has an additional one."""
    found = set(piece.columns)
    lacking = [name for name in columns if name not in found]
    if lacking:
        raise InvalidInputError(f"pieces have different columns: {piece.name} has no column {lacking[0]!r}")
    more = sorted(found - set(columns))
    if more:
        raise InvalidInputError(
            f"pieces have different columns: {piece.name} has a column {more[0]!r}, which the first piece does not have"
        )
