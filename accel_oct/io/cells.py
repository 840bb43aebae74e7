"""Cells of text columns in little memory, and the columns of numbers made of them.

Cells are decimal numbers, kept as whole numbers with a scale, or codes of other texts. Nothing is lost: every text can
be written again, so a column of numbers can become text when its last cell is text. NumPy processes many cells at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.values import EXACT
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray, WordArray

Bytes = NDArray[np.uint8]

#: Bytes before the first cell of a block: words are loaded backwards from the end of a cell.
PAD = 64
#: Longest decimal number that is kept as a whole number of 64 bits.
_MOST_DIGITS = 18
#: Longer texts are compared one by one instead of by a hash.
_MOST_HASHED = 64
#: The distinct texts of this many first cells are tried before those of all cells are computed.
_FIRST_CELLS = 1024
#: Scales of cells that are not decimal numbers.
EMPTY, TEXT = -1, -2

_WORD = 8
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
#: Masks of the last k bytes of a word.
_LAST_BYTES = np.array([0] + [(2**64 - 1) ^ (2 ** (64 - 8 * k) - 1) for k in range(1, 9)], dtype=np.uint64)
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_POWERS = 10 ** np.arange(_MOST_DIGITS + 1, dtype=np.int64)
_MINUS, _ZERO = ord("-"), ord("0")


class CellBlock:
    """Bytes of many cells.

    Parameters
    ----------
    data : array of uint8
        UTF-8 without NUL, from position `PAD` on.
    decimal : str
        Decimal mark. Numbers with a mark beyond ASCII are kept as text.
    """

    def __init__(self, data: Bytes, decimal: str) -> None:
        self.data, self._decimal = data, ord(decimal) if decimal.isascii() else 0
        self._words_at = np.ndarray((len(data) - _WORD + 1,), dtype="<u8", buffer=data, strides=(1,))

    def columns(self, starts: IntArray, ends: IntArray, n_columns: int) -> list[Cells]:
        """Return the columns of the cells at these positions, which are ordered by row and stripped."""
        lengths = ends - starts
        scales = np.where(lengths == 0, np.int8(EMPTY), np.int8(TEXT))
        numbers = np.zeros(len(starts), dtype=np.int64)
        first = self.data[np.minimum(starts, len(self.data) - 1)]
        short = (lengths > 0) & (lengths <= _MOST_DIGITS + 2)  # with sign and mark
        maybe = np.flatnonzero(((first - _ZERO <= 9) | (first == _MINUS)) & short)
        if len(maybe):
            marks = self._first_marks(starts)[maybe]
            numbers[maybe], scales[maybe] = self._decimals(starts[maybe], ends[maybe], marks, first[maybe] == _MINUS)
        of_column = (slice(column, None, n_columns) for column in range(n_columns))
        return [self._cells(starts[own], ends[own], numbers[own], scales[own]) for own in of_column]

    def _cells(self, starts: IntArray, ends: IntArray, numbers: IntArray, scales: NDArray[np.int8]) -> Cells:
        """Return the cells of a column whose decimal numbers are known."""
        texts: list[str] = []
        rows = np.flatnonzero(scales == TEXT)
        if len(rows):
            texts, codes = self._coded(starts[rows], ends[rows])
            if len(rows) == len(starts):
                return Cells(codes, None, texts)
            numbers[rows] = codes
        small = len(numbers) and numbers.min() >= -(2**31) and numbers.max() < 2**31
        return Cells(numbers.astype(np.int32) if small else numbers.copy(), scales.copy(), texts)

    def _first_marks(self, starts: IntArray) -> IntArray:
        """Return the position of the first decimal mark of each cell; without one, a position before the cell."""
        marks = np.flatnonzero(self.data == self._decimal)
        result = np.zeros(len(starts), dtype=np.int64)
        # Of several marks in a cell, the last assignment, the first mark, is kept.
        result[np.searchsorted(starts, marks[::-1], side="right") - 1] = marks[::-1]
        return result

    def _decimals(
        self, starts: IntArray, ends: IntArray, marks: IntArray, negative: BoolArray
    ) -> tuple[IntArray, NDArray[np.int8]]:
        """Return the digits as a number, and the scale, of cells ``-?(0|[1-9][0-9]*)(.[0-9]+)?`` other than ``-0``.

        The scale of all other cells is `TEXT`.
        """
        begin = starts + negative
        mark = np.where((marks < begin) | (marks > ends), ends, marks)
        before, behind = mark - begin, np.maximum(ends - mark - 1, 0)
        found = (before > 0) & ((behind > 0) | (mark == ends)) & (before + behind <= _MOST_DIGITS)
        found &= (self.data[np.minimum(begin, len(self.data) - 1)] != _ZERO) | (before == 1)
        before, behind = before * found, behind * found
        number, plain = self._digits(mark, before)
        with_mark = np.flatnonzero(behind)
        if len(with_mark):
            fraction, also_plain = self._digits(ends[with_mark], behind[with_mark])
            number[with_mark] = number[with_mark] * _POWERS[behind[with_mark]] + fraction
            plain[with_mark] &= also_plain
        found &= plain & ~(negative & (number == 0))
        return np.where(negative, -number, number), np.where(found, behind, TEXT).astype(np.int8)

    def _digits(self, ends: IntArray, lengths: IntArray) -> tuple[IntArray, BoolArray]:
        """Return the whole numbers before `ends`, and whether all their characters are digits."""
        total, plain = _eight_digits(*self._word(ends, lengths, 0))
        for index in range(1, -(-int(lengths.max(initial=0)) // _WORD)):
            rows = np.flatnonzero(lengths > _WORD * index)
            more, also_plain = _eight_digits(*self._word(ends[rows], lengths[rows], index))
            total[rows] += more * _POWERS[_WORD * index]
            plain[rows] &= also_plain
        return total, plain

    def _word(self, ends: IntArray, lengths: IntArray, index: int) -> tuple[WordArray, WordArray]:
        """Return eight bytes of each cell, counted from its end, and a mask of those within the cell."""
        word = self._words_at[ends - _WORD * (index + 1)]
        return word, _LAST_BYTES[np.minimum(lengths - _WORD * index, _WORD)]

    def _coded(self, starts: IntArray, ends: IntArray) -> tuple[list[str], NDArray[np.int32]]:
        """Return the distinct texts, and the code of each cell."""
        lengths = ends - starts
        if int(lengths.max()) > _MOST_HASHED:
            return self._coded_one_by_one(starts, ends)
        words = []
        for index in range(-(-int(lengths.max()) // _WORD)):
            word, kept = self._word(ends, np.maximum(lengths, _WORD * index), index)
            words.append(word & kept)
        key = words[0]
        for word in words[1:]:
            key = (key ^ (key >> np.uint64(29))) * _MIXERS[0] + word * _MIXERS[1]
        keys = np.unique(key[:_FIRST_CELLS])
        codes = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        if not (keys[codes] == key).all():
            keys, codes = np.unique(key, return_inverse=True)
            codes = codes.reshape(-1)
        one = np.empty(len(keys), dtype=np.int64)
        one[codes] = np.arange(len(codes))
        if not all((word == word[one][codes]).all() for word in words):  # two texts with one key
            return self._coded_one_by_one(starts, ends)
        return self._texts(starts[one], ends[one]), codes.astype(np.int32)

    def _coded_one_by_one(self, starts: IntArray, ends: IntArray) -> tuple[list[str], NDArray[np.int32]]:
        known: dict[str, int] = {}
        codes = [known.setdefault(text, len(known)) for text in self._texts(starts, ends)]
        return list(known), np.array(codes, dtype=np.int32)

    def _texts(self, starts: IntArray, ends: IntArray) -> list[str]:
        data = self.data.data
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        return [str(data[start:end], "utf-8", "surrogatepass") for start, end in places]


def _eight_digits(word: WordArray, kept: WordArray) -> tuple[IntArray, BoolArray]:
    """Return the whole numbers in the masked bytes of words, and whether all of these are digits."""
    word = (word ^ _ZEROS) & kept
    plain = ((word + _ABOVE_NINE) | word) & _HIGH_BITS == 0
    # One multiplication each joins neighbouring digits, pairs and groups of four.
    word = (word * np.uint64(2561)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    word = ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
    return word.astype(np.int64), plain


@dataclass(frozen=True, eq=False)
class Cells:
    """Some cells of a column.

    Attributes
    ----------
    numbers : array of integers
        The digits of a decimal number without the mark; otherwise a position in `texts`.
    scales : array of int8, or None
        Digits after the decimal mark; -1 for an empty cell; -2 for one of `texts`. None: all are of `texts`.
    texts : list of str
        Distinct texts.
    """

    numbers: NDArray[np.int64] | NDArray[np.int32]
    scales: NDArray[np.int8] | None
    texts: list[str]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_texts(cls, texts: Sequence[str], decimal: str) -> Cells:
        """Create cells from stripped texts without NUL."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = PAD + np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        starts = np.concatenate([[PAD], ends[:-1]])[: len(ends)]
        block = CellBlock(np.frombuffer(bytes(PAD) + b"".join(encoded), dtype=np.uint8), decimal)
        return block.columns(starts, ends, 1)[0]

    @classmethod
    def decimal_of(cls, text: str, decimal: str) -> tuple[int, int] | None:
        """Return the number and the scale of a text; None if it would be kept as text."""
        cells = cls.of_texts([text], decimal)
        if cells.scales is None or cells.scales[0] < 0:
            return None
        return int(cells.numbers[0]), int(cells.scales[0])

    def coded(self, decimal: str) -> tuple[list[str], NDArray[np.int32]]:
        """Return all cells as text: the distinct texts, and the code of each cell."""
        if self.scales is None:
            return self.texts, self.numbers.astype(np.int32)
        texts, codes = list(self.texts), self.numbers.astype(np.int32)
        for scale in np.unique(self.scales).tolist():
            if scale == TEXT:
                continue
            rows = np.flatnonzero(self.scales == scale)
            found, places = np.unique(self.numbers[rows], return_inverse=True)
            codes[rows] = places.reshape(-1) + len(texts)
            texts += [""] if scale == EMPTY else [written(number, scale, decimal) for number in found.tolist()]
        return texts, codes


def written(number: int, scale: int, decimal: str) -> str:
    """Return the text of a cell that is kept as a number."""
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = digits if scale == 0 else f"{digits[:-scale]}{decimal}{digits[-scale:]}"
    return f"-{text}" if number < 0 else text


class TextColumn:
    """A column of a text file.

    Parameters
    ----------
    parts : sequence of Cells
        Consecutive cells.
    decimal : str
        Decimal mark of the cells that are kept as numbers.
    """

    def __init__(self, name: str, parts: Sequence[Cells], decimal: str) -> None:
        self.name, self.parts, self.decimal = name, parts, decimal

    @classmethod
    def of(cls, name: str, cells: Sequence[str], decimal: str) -> TextColumn:
        """Create a column from stripped texts without NUL."""
        return cls(name, [Cells.of_texts(cells, decimal)], decimal)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def texts(self) -> set[str]:
        """Return the texts of all cells that are not kept as numbers."""
        return set().union(*(part.texts for part in self.parts))

    def coded(self) -> tuple[list[str], NDArray[np.int32]]:
        """Return the distinct texts of all cells, and the code of each cell."""
        known: dict[str, int] = {}
        codes = []
        for part in self.parts:
            texts, own = part.coded(self.decimal)
            codes.append(np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)[own])
        return list(known), np.concatenate(codes) if codes else np.empty(0, dtype=np.int32)


_EXACT_POWERS: FloatArray = np.array([10.0**k for k in range(23)])


def column_numbers(
    column: TextColumn, texts: Mapping[str, tuple[float, int | None]], missing: Collection[tuple[int, int]]
) -> NDArray[Any]:
    """Return int64 if all cells are whole and none is missing, else float64; Python objects if those are not exact.

    Parameters
    ----------
    texts : mapping
        Texts of the column that are numbers: value as a double, and as a whole number if it is one. Other texts mean
        a missing value.
    missing : collection of (number, scale)
        Decimal numbers that mean a missing value.
    """
    parts = [_NumericPart(cells, texts, missing) for cells in column.parts]
    if any(part.is_beyond_exact for part in parts):
        return _joined([part.objects() for part in parts])
    if parts and all(part.is_whole for part in parts):
        return _joined([part.integers() for part in parts])
    return _joined([part.floats() for part in parts]) if parts else np.empty(0)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _NumericPart:
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
        """Whether there is a whole number beyond the exact range of doubles."""
        if any(whole is not None and abs(whole) > EXACT for _, whole in self._texts):
            return True
        return bool((np.abs(self._numbers[self._scales == 0]) > EXACT).any())

    def integers(self) -> IntArray:
        return self._filled(self._numbers.astype(np.int64), lambda _, whole: whole)

    def floats(self) -> FloatArray:
        """Return doubles; missing cells are NaN."""
        result = np.full(len(self._numbers), np.nan)
        self._divide(result, np.flatnonzero(self._scales >= 0))
        return self._filled(result, lambda number, _: number)

    def _divide(self, result: NDArray[Any], rows: IntArray) -> None:
        """Write the doubles of decimal numbers into their rows."""
        numbers, scales = self._numbers[rows].astype(np.int64), self._scales[rows]
        result[rows], certain = quotients(numbers, scales)
        for place in np.flatnonzero(~certain).tolist():
            result[rows[place]] = float(written(int(numbers[place]), int(scales[place]), "."))

    def objects(self) -> NDArray[Any]:
        """Return Python numbers; missing cells are None."""
        result = np.empty(len(self._numbers), dtype=object)
        self._divide(result, np.flatnonzero(self._scales > 0))
        rows = np.flatnonzero(self._scales == 0)
        result[rows] = self._numbers[rows].astype(object)
        return self._filled(result, lambda number, whole: whole if whole is not None else _known(number))

    def _filled(self, result: NDArray[Any], value: Callable[[float, int | None], Any]) -> NDArray[Any]:
        """Write the values of texts into their rows of `result`."""
        if self._texts:
            rows = np.flatnonzero(self._scales == TEXT)
            values = np.empty(len(self._texts), dtype=result.dtype)
            values[:] = [value(*each) for each in self._texts]
            result[rows] = values[self._numbers[rows]]
        return result


def _known(number: float) -> float | None:
    return None if number != number else number


def quotients(numbers: IntArray, scales: NDArray[np.int8]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the doubles nearest to ``numbers / 10**scales``, and whether each is certain; scales are at most 22.

    Notes
    -----
    Up to 2**53, the division of two exact doubles is rounded once. Beyond, the quotient is corrected by the rounding
    error, which is known to a relative 2**-50; if an error ten times as large could change the result, it is not
    certain.
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


def _product_error(a: FloatArray, b: FloatArray, product: FloatArray) -> FloatArray:
    """Return the exact rounding error of a product (Dekker)."""
    a_high, b_high = ((134217729.0 * x - (134217729.0 * x - x)) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
