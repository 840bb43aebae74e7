"""Tables in CSV files, read without any further package."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.files import as_path

__all__ = ["read_csv", "read_training_csv", "write_csv"]

_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
_BOOLEANS = {"true": True, "false": False}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
#: What float() takes, without its underscores (1_000) and digits of other scripts.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)\Z", re.ASCII | re.IGNORECASE)


def read_csv(path: str | Path, *, separator: str = ",", header: bool = True) -> Table:
    """Read a CSV file; columns of numbers and of true/false are recognised, everything else is text.

    Empty fields and ``? NA N/A NaN null None`` in any case are missing values.

    Raises
    ------
    InvalidInputError
        Naming the line that does not fit.
    """
    names, fields = _read_fields(path, separator, header)
    return _table(names, fields)


def read_training_csv(
    path: str | Path, target: str, *, separator: str = ",", header: bool = True
) -> tuple[Table, NDArray[Any]]:
    """Read a CSV file as `read_csv` does, and keep the column `target` apart as class labels.

    Labels are true and false in any case, or whole numbers of 64 bits when no two texts would become the same number;
    else they stay the text that they are, so that ``7`` and ``007``, or ``inf`` and ``1e300``, are two classes. Numbers
    that are not whole are left to the caller to refuse: such a column measures something and names nothing.
    """
    names, fields = _read_fields(path, separator, header)
    if target not in names:
        raise InvalidInputError(f"{path} has no column {shown(target)}; it has {', '.join(map(repr, names))}")
    place = names.index(target)
    labels = _labels(fields.pop(place))
    return _table(names[:place] + names[place + 1 :], fields), labels


def _read_fields(path: str | Path, separator: str, header: bool) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and their texts."""
    file_name = as_path(path)
    try:
        with file_name.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file, delimiter=separator, skipinitialspace=True) if line]
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None
    except (csv.Error, TypeError, ValueError) as error:  # not text, a field without end, a separator that is none
        raise InvalidInputError(f"{path} is not a CSV file: {error}") from None
    if not lines:
        raise InvalidInputError(f"{path} is empty")
    names = [name.strip() for name in lines.pop(0)] if header else [f"x{j}" for j in range(len(lines[0]))]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{path} names two columns alike")
    for number, line in enumerate(lines, start=2 if header else 1):
        if len(line) != len(names):
            raise InvalidInputError(f"{path}, row {number}: {len(line)} fields instead of {len(names)}")
    return names, [[line[j].strip() for line in lines] for j in range(len(names))]


def _table(names: Sequence[str], fields: Sequence[Sequence[str]]) -> Table:
    n_rows = len(fields[0]) if fields else 0
    return Table(tuple(_typed(texts) for texts in fields), tuple(names), n_rows)


def write_csv(
    file: IO[str], names: Sequence[str], rows: Iterable[Sequence[Any]], *, escape_formulas: bool = False
) -> None:
    """A header and rows.

    With `escape_formulas`, text that begins with ``= + - @``, a tab or a carriage return gets an apostrophe in front,
    so that no spreadsheet takes it for a formula; numbers stay numbers.
    """
    writer = csv.writer(file, lineterminator="\n")
    for row in (names, *rows) if not escape_formulas else map(_escaped, (names, *rows)):
        writer.writerow(row)


def _escaped(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell for cell in row]


def _typed(texts: Sequence[str]) -> NDArray[Any]:
    known = _known(texts)
    if known and all(text.lower() in _BOOLEANS for text in known):
        return _objects([_BOOLEANS.get(text.lower()) for text in texts])
    if all(_NUMBER.match(text) for text in known):
        return np.array([np.nan if _is_missing(text) else float(text) for text in texts])
    return _as_text(texts)


def _labels(texts: Sequence[str]) -> NDArray[Any]:
    known = set(_known(texts))
    if known and all(text.lower() in _BOOLEANS for text in known):
        return _typed(texts)
    if len(known) < len(set(texts)) or not all(_NUMBER.match(text) for text in known):
        return _as_text(texts)
    try:
        numbers = {text: Decimal(text) for text in known}
    except InvalidOperation:  # an exponent beyond all limits
        return _as_text(texts)
    if not all(_is_whole(number) for number in numbers.values()):
        return _typed(texts)
    if len(set(numbers.values())) < len(known):
        return _as_text(texts)
    for kind in (np.int64, np.uint64):
        if all(np.iinfo(kind).min <= number <= np.iinfo(kind).max for number in numbers.values()):
            return np.array([int(numbers[text]) for text in texts], dtype=kind)
    return _as_text(texts)


def _is_whole(number: Decimal) -> bool:
    return not number.is_finite() or number == number.to_integral_value()


def _known(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if not _is_missing(text)]


def _is_missing(text: str) -> bool:
    return text.lower() in _MISSING


def _as_text(texts: Sequence[str]) -> NDArray[Any]:
    return _objects([None if _is_missing(text) else text for text in texts])


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
