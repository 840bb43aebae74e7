"""The distinct values of a column with their weights, added up over pieces.

Exact up to a number of distinct values. Beyond that, numbers and times are rounded down to fewer binary digits, as few
digits less as it takes: counts of the rounded values are still exact, and nothing depends on the order of the pieces,
as rounding in two steps is rounding in one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.encoding.scales import Scale
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.columns import Coded, coded, family, plain_objects

__all__ = ["ColumnCounts"]

FloatArray = NDArray[np.float64]

_PENDING = 1 << 16
_LARGEST_FLOAT = np.finfo(np.float64).max
_EXACT = 2**53
_FLOAT_LEVEL = 10
"""From here on floats lose digits: they have 53 of the 63 of whole numbers."""


@dataclass(eq=False)
class ColumnCounts:
    """The weight of each value of a column.

    Attributes
    ----------
    name : str
    limit : int
        Most distinct values that are kept as they are.
    values, weights : arrays
        Known values in increasing order where they are numbers or times; valid after `compact`.
    missing : float or None
        Weight of the missing values; None where there is none.
    level : int
        Of rounding, see `_rounding`; 0 is exact.
    scale : Scale or None
    family : (str, str) or None
        What the values are, and the piece that showed it.
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
        """Add what was counted elsewhere."""
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
        """By how much of the weight a quantile may be off: the share of the heaviest rounded value; 0 where exact."""
        total = float(self.weights.sum())
        return float(self.weights.max()) / total if self.level and total > 0 else 0.0

    def with_missing(self) -> tuple[NDArray[Any], FloatArray]:
        """Values and weights, the missing value among them where there is one: a column that stands for all rows."""
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
            # Sorted, so that the sentence does not depend on which piece came first.
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
    """Whole numbers in the order of the values, which are sorted."""
    kind = values.dtype.kind
    if kind in "Mm":
        return values.view(np.int64)
    if kind == "i" or (kind == "u" and int(values[-1]) < 2**63):
        return values.astype(np.int64)
    if kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        return np.asarray(bits ^ ((bits >> 63) & np.int64(2**63 - 1)))
    raise InvalidInputError(
        f"column {name!r} has more than {limit:,} distinct values, too many to be counted: raise max_distinct, or "
        "leave the column out with features="
    )


def _rounding(keys: NDArray[np.int64], dtype: np.dtype[Any]) -> Callable[[int], NDArray[np.int64]]:
    """The keys, rounded down, at a level.

    A number keeps 63 digits less the level, from its first one on, so that small whole numbers stay as they are; once
    that is the first alone, all whole numbers lose their last. Floats, which have 53 digits, and whole numbers fall
    together in the same way while they keep one, as pieces of one column may hold either. Those below zero do as their
    opposites do.
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
        below = np.minimum(sizes | ends, np.uint64(2**63)) - np.uint64(1)  # the lowest of all has no opposite
        return np.where(negative, ~below.astype(np.int64), (sizes & ~ends).astype(np.int64))

    return rounded


def _from_ordered(keys: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind in "Mm":
        return keys.view(dtype)
    if dtype.kind != "f":
        return keys
    bits = keys ^ ((keys >> 63) & np.int64(2**63 - 1))
    # Below the lowest finite number there is only minus infinity, or a pattern that is no number.
    found = bits.view(np.float64)
    return np.where(np.isfinite(found), found, -_LARGEST_FLOAT)
