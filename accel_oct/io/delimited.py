"""CSV and TSV files as columns of text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from accel_oct.errors import InvalidInputError
from accel_oct.support.sources import Source

__all__ = ["TextColumn", "read_delimited"]

_BLOCK = 20_000
_BETWEEN = "\0"
_PEEK = 4096
#: What no text in any encoding of single bytes holds.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_NO_DELIMITER = '\r\n\0"'
#: What `str.strip` takes away, in ASCII and besides the ends of lines.
_BLANK = re.compile("[ \\t\\x0b\\x0c\\x1c-\\x1f]")


@dataclass(frozen=True)
class TextColumn:
    """The cells of a column, without the blanks around them; joined in blocks, for a string of its own costs 50 bytes.

    Attributes
    ----------
    name : str
    blocks : sequence of str
    """

    name: str
    blocks: Sequence[str]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(block.split(_BETWEEN) for block in self.blocks)

    def distinct(self) -> set[str]:
        """All texts that occur."""
        return set().union(*(block.split(_BETWEEN) for block in self.blocks))

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> TextColumn:
        """From cells; a NUL in them would be taken for the end of a cell."""
        return cls(name, [_BETWEEN.join(cells)] if cells else [])


def read_delimited(source: Source, *, delimiter: str, header: bool, encoding: str) -> tuple[list[TextColumn], int]:
    """The columns and the number of rows; lines without anything are skipped.

    Raises
    ------
    InvalidInputError
        Naming the line that does not fit; for text in another encoding; for two columns of one name.
    """
    name = source.name
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in _NO_DELIMITER:
        raise InvalidInputError(
            f"{name} is not a CSV file: the delimiter must be a single character, got {delimiter!r:.20}"
        )
    begin = _begin(source)
    try:
        plain = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        if plain == "utf-8-sig" and (guess := _utf_16(begin)):
            raise InvalidInputError(f"{name} is not a CSV file in the encoding {encoding}: set it to {guess}")
        lines = _without_nul(io.TextIOWrapper(source.file, plain, newline=""), name)
        rows = _Rows(lines, delimiter, name)
        first = next(rows.parsed(), None)
        if first is None:
            raise InvalidInputError(f"{name} is empty")
        names = [cell.strip() for cell in first] if header else [f"x{j}" for j in range(len(first))]
        if len(set(names)) < len(names):
            twice = next(each for j, each in enumerate(names) if each in names[:j])
            raise InvalidInputError(f"{name} names two columns alike: {twice!r:.80}")
        blocks: list[list[str]] = [[] if header else [first[j].strip()] for j in range(len(names))]
        n_rows = 0 if header else 1
        for columns in rows.blocks(len(names)):
            n_rows += len(columns[0])
            for column, place in zip(columns, blocks, strict=True):
                place.append(_BETWEEN.join(column))
    except UnicodeDecodeError as error:
        if _CONTROL.search(begin):
            raise InvalidInputError(f"{name} is not a text file: it holds control characters") from None
        raise InvalidInputError(
            f"{name} is not a CSV file in the encoding {encoding}: {error.reason} at byte {error.start}; "
            "set the encoding that it has, such as latin-1"
        ) from None
    except (csv.Error, LookupError, UnicodeError) as error:  # a field without end, an encoding that is none
        raise InvalidInputError(f"{name} is not a CSV file: {error}") from None
    return [TextColumn(each, place) for each, place in zip(names, blocks, strict=True)], n_rows


def _begin(source: Source) -> bytes:
    """Some of the first bytes, which are still to be read."""
    peek = getattr(source.file, "peek", None)
    return b"" if peek is None else bytes(peek(_PEEK)[:_PEEK])


def _utf_16(begin: bytes) -> str | None:
    """UTF-16 by its mark, or because every second byte is empty."""
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    half = len(begin) // 2
    for name, empty, full in (("utf-16-le", begin[1::2], begin[0::2]), ("utf-16-be", begin[0::2], begin[1::2])):
        if half > 1 and empty.count(0) > 0.9 * half and not full.count(0):
            return name
    return None


class _Rows:
    """The rows behind lines of text, by the csv module; blocks without any quotes are split faster, and alike."""

    def __init__(self, lines: Iterator[str], delimiter: str, name: str) -> None:
        self._lines, self._delimiter, self._name = lines, delimiter, name
        self._line = 0

    def parsed(self) -> Iterator[list[str]]:
        """Rows of cells, one at a time; `_line` is the number of the last line that was read."""
        reader = csv.reader(self._lines, delimiter=self._delimiter, skipinitialspace=True, strict=True)
        before = self._line
        for row in reader:
            self._line = before + reader.line_num
            if row:
                yield row

    def blocks(self, n_columns: int) -> Iterator[list[list[str]]]:
        """Columns of stripped cells, some thousand rows at a time."""
        # Between spaces, the csv module skips those that begin a cell.
        while self._delimiter != " " and (lines := list(islice(self._lines, _BLOCK))):
            text = "".join(lines)
            if '"' in text:
                self._lines = chain(lines, self._lines)  # a cell may go on in the next line, or in the next block
                break
            if columns := self._split(lines, text, n_columns):
                yield columns
        rows = self.parsed()
        while block := list(islice(rows, _BLOCK)):
            for row in block:
                if len(row) != n_columns:
                    self._refuse(len(row), n_columns)
            yield [list(map(str.strip, column)) for column in zip(*block, strict=True)]

    def _split(self, lines: list[str], text: str, n_columns: int) -> list[list[str]]:
        rows = [row for row in (line.rstrip("\r\n") for line in lines) if row]
        limit = csv.field_size_limit()
        for place, line in enumerate(lines):
            bare = line.rstrip("\r\n")
            if bare and bare.count(self._delimiter) != n_columns - 1:
                self._line += place + 1
                self._refuse(bare.count(self._delimiter) + 1, n_columns)
            if len(bare) > limit and max(map(len, bare.split(self._delimiter))) > limit:
                raise csv.Error(f"field larger than field limit ({limit})")
        self._line += len(lines)
        cells = self._delimiter.join(rows).split(self._delimiter) if rows else []
        if not text.isascii() or _BLANK.search(text.replace(self._delimiter, "")):
            cells = list(map(str.strip, cells))
        return [cells[place::n_columns] for place in range(n_columns)] if cells else []

    def _refuse(self, found: int, wanted: int) -> None:
        raise InvalidInputError(f"{self._name}, row {self._line}: {found} fields instead of {wanted}")


def _without_nul(lines: io.TextIOWrapper, name: str) -> Iterator[str]:
    for line in lines:
        if _BETWEEN in line:
            raise InvalidInputError(f"{name} is not a text file: it holds a NUL character")
        yield line
