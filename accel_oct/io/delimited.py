"""CSV and TSV files as columns of text.

NumPy splits most text into cells, a block of lines at a time. Blocks that it cannot split as the csv module does
(quotes inside a cell, blanks beyond ASCII, a delimiter of several bytes) are read by the csv module.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError
from accel_oct.io.cells import PAD, CellBlock, Cells, TextColumn
from accel_oct.support.arrays import IntArray
from accel_oct.support.files import OpenedFile

#: Bytes of a block, and the limit for files of many columns, whose blocks are larger.
_BLOCK_BYTES, _MOST_BLOCK_BYTES = 1 << 18, 1 << 25
_BYTES_PER_COLUMN = 1 << 14
_PEEK = 4096
#: Control characters that occur in no text in a single-byte encoding.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_NO_DELIMITER = '\r\n\0"'
#: Characters that `str.strip` removes, in ASCII and beyond.
_BLANK_BYTES = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_BLANKS = np.zeros(256, dtype=bool)
_BLANKS[list(_BLANK_BYTES)] = True
_WIDE_BEGINS = (b"\xc2", b"\xe1", b"\xe2", b"\xe3")
_WIDE_BLANKS = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
#: Blanks stripped from all cells at once; cells with more blanks are stripped one by one.
_STRIPPED_AT_ONCE = 8
_QUOTE, _NEWLINE, _SPACE = ord('"'), ord("\n"), ord(" ")


def read_delimited(
    source: OpenedFile,
    *,
    delimiter: str,
    header: bool,
    encoding: str,
    decimal: str = ".",
    progress: Callable[[int], None] | None = None,
) -> tuple[list[TextColumn], int]:
    """Return the columns and the number of rows; empty lines are skipped.

    Parameters
    ----------
    progress : callable, optional
        Called with the number of bytes read so far, once per block.

    Raises
    ------
    InvalidInputError
        If a line does not fit (the message names it), the encoding is wrong, or two columns have one name.
    """
    name = source.name
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in _NO_DELIMITER:
        raise InvalidInputError(
            f"{name} is not a CSV file: the delimiter must be a single character, got {delimiter!r:.20}"
        )
    begin = _begin(source)
    plain = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    if plain == "utf-8-sig" and (guess := _utf_16(begin)):
        raise InvalidInputError(f"{name} is not a CSV file in the encoding {encoding}: set it to {guess}")
    try:
        text = _Text(source, plain, progress)
        records = _Records(text, delimiter, decimal, name)
        first = records.first()
        names = [cell.strip() for cell in first] if header else [f"x{j}" for j in range(len(first))]
        if len(set(names)) < len(names):
            twice = next(each for j, each in enumerate(names) if each in names[:j])
            raise InvalidInputError(f"{name} names two columns alike: {twice!r:.80}")
        parts: list[list[Cells]] = [[] for _ in names]
        n_rows = 0
        for columns in chain([] if header else [records.of_rows([first])], records.blocks(len(names))):
            n_rows += len(columns[0])
            for cells, place in zip(columns, parts, strict=True):
                place.append(cells)
    except UnicodeDecodeError as error:
        if _CONTROL.search(begin):
            raise InvalidInputError(f"{name} is not a text file: it holds control characters") from None
        raise InvalidInputError(
            f"{name} is not a CSV file in the encoding {encoding}: {error.reason} at byte {text.place_of(error)}; "
            "set the encoding that it has, such as latin-1"
        ) from None
    except (csv.Error, LookupError, UnicodeError) as error:  # an unclosed field, an unknown encoding
        raise InvalidInputError(f"{name} is not a CSV file: {error}") from None
    return [TextColumn(each, place, decimal) for each, place in zip(names, parts, strict=True)], n_rows


def _begin(source: OpenedFile) -> bytes:
    """Peek at the first bytes."""
    peek = getattr(source.file, "peek", None)
    return b"" if peek is None else bytes(peek(_PEEK)[:_PEEK])


def _utf_16(begin: bytes) -> str | None:
    """Return the name of UTF-16 if the text has its mark, or zeros in every second byte."""
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    half = len(begin) // 2
    for name, empty, full in (("utf-16-le", begin[1::2], begin[0::2]), ("utf-16-be", begin[0::2], begin[1::2])):
        if half > 1 and empty.count(0) > 0.9 * half and not full.count(0):
            return name
    return None


class _Text:
    """The decoded text of a source, by line or by block of lines, with universal newlines."""

    def __init__(self, source: OpenedFile, encoding: str, progress: Callable[[int], None] | None) -> None:
        io.TextIOWrapper(io.BytesIO(), encoding).close()  # raises LookupError for an unknown text encoding
        self._source, self._progress = source, progress
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._read = self._pending = 0
        self._text, self._at, self._ended = "", 0, False

    def line(self) -> str:
        """Return the next line with its end; empty after the last."""
        while True:
            found = _LINE.match(self._text, self._at)
            # A final carriage return may be half of a line end, and a line without an end may continue.
            if found and (self._ended or found.end() < len(self._text)):
                self._at = found.end()
                return found[0]
            if self._ended:
                rest, self._at = self._text[self._at :], len(self._text)
                return rest
            self._more(_BLOCK_BYTES)

    def block(self, size: int) -> str:
        """Return whole lines of about `size` characters, with their ends; empty after the last."""
        while not self._ended and len(self._text) - self._at < size:
            self._more(size)
        while True:
            whole = len(self._text)
            if not self._ended:
                whole = 1 + max(self._text.rfind("\n", self._at), self._text.rfind("\r", self._at, -1))
            if whole > self._at or self._ended:
                text, self._at = self._text[self._at : whole], whole
                return text
            self._more(size)

    def push_back(self, length: int) -> None:
        """Return the last `length` characters of the previous block to the text."""
        self._at -= length

    def place_of(self, error: UnicodeDecodeError) -> int:
        """Return the position in the file of the byte that cannot be decoded."""
        return self._read - self._pending + error.start

    def _more(self, size: int) -> None:
        content = self._source.file.read(size)
        self._pending = len(self._decoder.getstate()[0])
        text = self._decoder.decode(content, final=not content)
        if "\0" in text:
            raise InvalidInputError(f"{self._source.name} is not a text file: it holds a NUL character")
        self._read += len(content)
        self._ended = not content
        self._text, self._at = self._text[self._at :] + text, 0
        if self._progress is not None:
            self._progress(self._read)


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")


class _Records:
    """The rows of a text; `_line` is the number of the last line read."""

    def __init__(self, text: _Text, delimiter: str, decimal: str, name: str) -> None:
        self._text, self._delimiter, self._decimal, self._name = text, delimiter, decimal, name
        self._line = 0
        # With a space as delimiter, the csv module skips spaces at the start of a cell.
        self._by_bytes = delimiter.isascii() and delimiter != " "

    def first(self) -> list[str]:
        """Return the first row."""
        for row in self._parsed(iter(self._text.line, ""), None):
            return row
        raise InvalidInputError(f"{self._name} is empty")

    def blocks(self, n_columns: int) -> Iterator[list[Cells]]:
        """Yield columns of stripped cells, block by block."""
        size = min(max(_BLOCK_BYTES, _BYTES_PER_COLUMN * n_columns), _MOST_BLOCK_BYTES)
        while text := self._text.block(size):
            columns = self._cut(text, n_columns) if self._by_bytes else None
            if columns is None:
                lines = chain(io.StringIO(text, newline=""), iter(self._text.line, ""))
                amount = sum(1 for _ in io.StringIO(text, newline=""))
                rows = list(self._parsed(lines, amount, n_columns))
                columns = self.of_rows(rows) if rows else []
            if columns:
                yield columns

    def of_rows(self, rows: list[list[str]]) -> list[Cells]:
        """Return the columns of rows of cells."""
        columns = []
        for column in zip(*rows, strict=True):
            columns.append(Cells.of_texts(list(map(str.strip, column)), self._decimal))
        return columns

    def _parsed(self, lines: Iterator[str], amount: int | None, n_columns: int | None = None) -> Iterator[list[str]]:
        """Yield rows by the csv module: all, or those that begin in the first `amount` lines."""
        reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True, strict=True)
        before = self._line
        try:
            for row in reader:
                self._line = before + reader.line_num
                if row:
                    if n_columns is not None and len(row) != n_columns:
                        self._refuse(len(row), n_columns, self._line)
                    yield row
                if amount is not None and reader.line_num >= amount:
                    return
        except csv.Error as error:
            raise csv.Error(f"{error}, in line {before + reader.line_num}") from None

    def _refuse(self, found: int, wanted: int, line: int) -> None:
        raise InvalidInputError(f"{self._name}, line {line}: {found} fields instead of {wanted}")

    # ---------------------------------------------------------------- by NumPy

    def _cut(self, text: str, n_columns: int) -> list[Cells] | None:
        """Split a block into columns, pushing back an incomplete last row; None if the csv module must read it."""
        encoded = text.encode("utf-8", "surrogatepass")
        if not text.isascii() and any(begin in encoded for begin in _WIDE_BEGINS) and _WIDE_BLANKS.search(text):
            return None
        if "\r" in text:
            if '"' in text and any("\r" in cell for cell in text.split('"')[1::2]):
                return None  # within quotes, line ends are kept as they are
            encoded = encoded.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = b"" if encoded.endswith(b"\n") else b"\n"
        data = np.frombuffer(bytearray(b"".join((b"\n" * PAD, encoded, end))), dtype=np.uint8)
        lines = data == _NEWLINE
        lines[:PAD] = False
        is_mark = lines | (data == ord(self._delimiter))
        marks = np.flatnonzero(is_mark)
        is_mark[PAD - 1] = True  # the first cell begins after it
        quotes = np.flatnonzero(data == _QUOTE) if '"' in text else np.empty(0, dtype=np.int64)
        cut_off = False
        if len(quotes):
            before = np.bincount(np.searchsorted(marks, quotes), minlength=len(marks))[: len(marks)]
            marks = marks[np.cumsum(before) & 1 == 0]
            newlines = np.flatnonzero(lines[marks])
            if not len(newlines):
                return None
            marks = marks[: newlines[-1] + 1]
            quotes = quotes[quotes < marks[-1]]
            if not _well_quoted(data, quotes, ord(self._delimiter)):
                return None
            cut_off = int(marks[-1]) + 1 < len(data)
        starts = np.concatenate([[PAD], marks[:-1] + 1])
        last = int(marks[-1])
        if int((marks - starts).max()) > csv.field_size_limit():
            return None
        at_end = lines[marks]
        empty = at_end & (starts == marks) & np.concatenate([[True], at_end[:-1]])
        if empty.any():
            starts, marks, at_end = starts[~empty], marks[~empty], at_end[~empty]
        amounts = np.diff(np.flatnonzero(at_end), prepend=-1)
        if (amounts != n_columns).any():
            row = int(np.flatnonzero(amounts != n_columns)[0])
            end_of_row = marks[np.flatnonzero(at_end)[row]]
            self._refuse(int(amounts[row]), n_columns, self._line + int(np.count_nonzero(lines[: end_of_row + 1])))
        amount = int(np.count_nonzero(lines[: last + 1]))
        if cut_off:
            self._text.push_back(len(text) - sum(map(len, islice(io.StringIO(text, newline=""), amount))))
        self._line += amount
        if not len(marks):
            return []
        block, ends = CellBlock(data, self._decimal), marks.copy()
        for blank in (blank for blank in _BLANK_BYTES if blank != _NEWLINE and blank in encoded):
            is_blank = data == blank
            if (is_blank[1:] & is_mark[:-1]).any() or (is_blank[:-1] & is_mark[1:]).any():
                _strip(data, starts, ends)
                break
        if len(quotes):
            _unquote(data, starts, ends, quotes)
        return block.columns(starts, ends, n_columns)


def _well_quoted(data: NDArray[np.uint8], quotes: IntArray, delimiter: int) -> bool:
    """Return whether every quote opens or closes a cell, or is doubled within a quoted cell."""
    if not len(quotes):
        return True
    begins, ends = quotes[0::2], quotes[1::2]
    doubled = np.append(begins[1:] == ends[:-1] + 1, False)
    behind = data[ends[~doubled] + 1]
    before = begins[np.append(True, ~doubled[:-1])] - 1
    for _ in range(_STRIPPED_AT_ONCE):
        before = before - (data[before] == _SPACE)
    return all(bool(((each == delimiter) | (each == _NEWLINE)).all()) for each in (behind, data[before]))


def _strip(data: NDArray[np.uint8], starts: IntArray, ends: IntArray) -> None:
    """Move starts and ends of cells past the blanks around them."""
    for places, offset, step in ((starts, 0, 1), (ends, -1, -1)):
        rows = np.flatnonzero(_BLANKS[data[places + offset]] & (starts < ends))
        for _ in range(_STRIPPED_AT_ONCE):
            if not len(rows):
                break
            places[rows] += step
            rows = rows[_BLANKS[data[places[rows] + offset]] & (starts[rows] < ends[rows])]
        for row in rows.tolist():
            cell = data[starts[row] : ends[row]].tobytes()
            kept = cell.lstrip(_BLANK_BYTES) if step > 0 else cell.rstrip(_BLANK_BYTES)
            places[row] += step * (len(cell) - len(kept))


def _unquote(data: NDArray[np.uint8], starts: IntArray, ends: IntArray, quotes: IntArray) -> None:
    """Remove quotes around cells, one of two doubled quotes within them, and blanks inside the quotes."""
    rows = np.flatnonzero((data[starts] == _QUOTE) & (starts < ends))
    first, last = starts[rows] + 1, ends[rows] - 1
    inner = np.searchsorted(quotes, last) - np.searchsorted(quotes, first)
    for row in np.flatnonzero(inner).tolist():
        cell = data[first[row] : last[row]].tobytes().replace(b'""', b'"')
        last[row] = first[row] + len(cell)
        data[first[row] : last[row]] = np.frombuffer(cell, dtype=np.uint8)
    _strip(data, first, last)
    starts[rows], ends[rows] = first, last
