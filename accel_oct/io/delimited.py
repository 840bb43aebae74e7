"""CSV and TSV files as columns of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from accel_oct.errors import InvalidInputError
from accel_oct.io.sources import Source

__all__ = ["TextColumn", "read_delimited"]

_BLOCK = 20_000
_BETWEEN = "\0"


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
    try:
        text = io.TextIOWrapper(
            source.file, "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding, newline=""
        )
        reader = csv.reader(_without_nul(text, name), delimiter=delimiter, skipinitialspace=True, strict=True)
        rows = (row for row in reader if row)
        first = next(rows, None)
        if first is None:
            raise InvalidInputError(f"{name} is empty")
        names = [cell.strip() for cell in first] if header else [f"x{j}" for j in range(len(first))]
        if len(set(names)) < len(names):
            twice = next(each for j, each in enumerate(names) if each in names[:j])
            raise InvalidInputError(f"{name} names two columns alike: {twice!r:.80}")
        blocks: list[list[str]] = [[] for _ in names]
        n_rows = 0
        cells = _checked(rows if header else chain([first], rows), len(names), reader, name)
        while block := list(islice(cells, _BLOCK)):
            n_rows += len(block)
            for column, place in zip(zip(*block, strict=True), blocks, strict=True):
                place.append(_BETWEEN.join(map(str.strip, column)))
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{name} is not a CSV file in the encoding {encoding}: {error.reason} at byte {error.start}; "
            "say which encoding it has"
        ) from None
    except (csv.Error, TypeError, LookupError, UnicodeError) as error:  # a field without end, a delimiter that is none
        raise InvalidInputError(f"{name} is not a CSV file: {error}") from None
    return [TextColumn(each, place) for each, place in zip(names, blocks, strict=True)], n_rows


def _without_nul(lines: io.TextIOWrapper, name: str) -> Iterator[str]:
    for line in lines:
        if _BETWEEN in line:
            raise InvalidInputError(f"{name} is not a text file: it holds a NUL character")
        yield line


def _checked(rows: Iterator[list[str]], n_columns: int, reader: Any, name: str) -> Iterator[list[str]]:
    for row in rows:
        if len(row) != n_columns:
            raise InvalidInputError(f"{name}, row {reader.line_num}: {len(row)} fields instead of {n_columns}")
        yield row
