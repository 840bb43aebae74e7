"""Columns of numbers, rounded once and only where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.values import EXACT
from accel_oct.io.cells import EMPTY, TEXT, Cells, TextColumn, written

__all__ = ["column_numbers", "quotients"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EXACT_POWERS: Floats = np.array([10.0**k for k in range(23)])


def column_numbers(
    column: TextColumn, texts: Mapping[str, tuple[float, int | None]], missing: Collection[tuple[int, int]]
) -> NDArray[Any]:
    """int64 where all are whole and none is missing, else float64; Python's own where that would not be exact.

    Parameters
    ----------
    column : TextColumn
    texts : mapping
        Of the texts of the column, those that are numbers: as a double, and as a whole number if it is one. All others
        mean a missing value.
    missing : collection of (number, scale)
        Decimal numbers that mean a missing value.
    """
    parts = [_Part(cells, texts, missing) for cells in column.parts]
    if any(part.is_beyond_exact for part in parts):
        return _joined([part.objects() for part in parts])
    if parts and all(part.is_whole for part in parts):
        return _joined([part.integers() for part in parts])
    return _joined([part.floats() for part in parts]) if parts else np.empty(0)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Part:
    def __init__(
        self, cells: Cells, texts: Mapping[str, tuple[float, int | None]], missing: Collection[tuple[int, int]]
    ) -> None:
        self._numbers = cells.numbers
        self._scales = np.full(len(cells), TEXT, dtype=np.int8) if cells.scales is None else cells.scales
        for number, scale in missing:
            self._scales = np.where((self._numbers == number) & (self._scales == scale), np.int8(EMPTY), self._scales)
        self._texts = [texts.get(text, (np.nan, None)) for text in cells.texts]

    @property
    def is_whole(self) -> bool:
        """Whether every cell is a whole number."""
        present = ((self._scales == 0) | (self._scales == TEXT)).all()
        return bool(present) and all(whole is not None for _, whole in self._texts)

    @property
    def is_beyond_exact(self) -> bool:
        """Whether there is a whole number that no double may hold."""
        if any(whole is not None and abs(whole) > EXACT for _, whole in self._texts):
            return True
        return bool((np.abs(self._numbers[self._scales == 0]) > EXACT).any())

    def integers(self) -> Ints:
        return self._filled(self._numbers.astype(np.int64), lambda _, whole: whole)

    def floats(self) -> Floats:
        """NaN where a cell is missing."""
        result = np.full(len(self._numbers), np.nan)
        self._divide(result, np.flatnonzero(self._scales >= 0))
        return self._filled(result, lambda number, _: number)

    def _divide(self, result: NDArray[Any], rows: Ints) -> None:
        """Put the doubles of decimal numbers into their rows."""
        numbers, scales = self._numbers[rows].astype(np.int64), self._scales[rows]
        result[rows], certain = quotients(numbers, scales)
        for place in np.flatnonzero(~certain).tolist():
            result[rows[place]] = float(written(int(numbers[place]), int(scales[place]), "."))

    def objects(self) -> NDArray[Any]:
        """None where a cell is missing."""
        result = np.empty(len(self._numbers), dtype=object)
        self._divide(result, np.flatnonzero(self._scales > 0))
        rows = np.flatnonzero(self._scales == 0)
        result[rows] = self._numbers[rows].astype(object)
        return self._filled(result, lambda number, whole: whole if whole is not None else _known(number))

    def _filled(self, result: NDArray[Any], value: Callable[[float, int | None], Any]) -> NDArray[Any]:
        """`result` with the values of the texts in their rows."""
        if self._texts:
            rows = np.flatnonzero(self._scales == TEXT)
            values = np.empty(len(self._texts), dtype=result.dtype)
            values[:] = [value(*each) for each in self._texts]
            result[rows] = values[self._numbers[rows]]
        return result


def _known(number: float) -> float | None:
    return None if number != number else number


def quotients(numbers: Ints, scales: NDArray[np.int8]) -> tuple[Floats, NDArray[np.bool_]]:
    """The doubles nearest to ``numbers / 10**scales``, and where that is certain; scales are at most 22.

    Notes
    -----
    Up to 2**53 the division of two exact doubles is rounded once. Beyond, the quotient of the rounded number is
    corrected by what the roundings lost, which is known to 2**-50 of itself; where an error ten times as large would
    change the sum, the result is not certain.
    """
    high = numbers.astype(np.float64)
    power = _EXACT_POWERS[scales]
    result = high / power
    certain = np.abs(numbers) <= 2**53
    rows = np.flatnonzero(~certain)
    if len(rows):
        first, by, exact = result[rows], power[rows], high[rows]
        product = first * by
        lost = _product_error(first, by, product)
        rest = ((exact - product) - lost) + (numbers[rows] - exact.astype(np.int64)).astype(np.float64)
        more = rest / by
        doubt = np.abs(more) * 2.0**-46 + np.abs(first) * 2.0**-98
        low, up = first + (more - doubt), first + (more + doubt)
        result[rows] = low
        certain[rows] = low == up
    return result, certain


def _product_error(a: Floats, b: Floats, product: Floats) -> Floats:
    """What rounding took from a product, exactly (Dekker)."""
    a_high, b_high = ((134217729.0 * x - (134217729.0 * x - x)) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
