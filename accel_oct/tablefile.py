"""Tables in CSV files, read without any further package."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table
from accel_oct.errors import InvalidInputError

__all__ = ["read_csv", "split_target", "write_csv"]

_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
_BOOLEANS = {"true": True, "false": False}


def read_csv(path: str | Path, *, separator: str = ",", header: bool = True) -> Table:
    """Read a CSV file; columns of numbers and of true/false are recognised, everything else is text.

    Empty fields and ``? NA N/A NaN null None`` in any case are missing values.

    Raises
    ------
    InvalidInputError
        Naming the line that does not fit.
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file, delimiter=separator, skipinitialspace=True) if line]
    except (UnicodeDecodeError, csv.Error, TypeError) as error:
        raise InvalidInputError(f"{path} is not a CSV file: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None
    if not lines:
        raise InvalidInputError(f"{path} is empty")
    names = [name.strip() for name in lines.pop(0)] if header else [f"x{j}" for j in range(len(lines[0]))]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{path} names two columns alike")
    for number, line in enumerate(lines, start=2 if header else 1):
        if len(line) != len(names):
            raise InvalidInputError(f"{path}, row {number}: {len(line)} fields instead of {len(names)}")
    fields = list(zip(*lines, strict=True)) if lines else [() for _ in names]
    return Table(tuple(_typed(field) for field in fields), tuple(names), len(lines))


def split_target(table: Table, target: str) -> tuple[Table, NDArray[Any]]:
    """The features, and the column of labels."""
    labels = table.select([target]).columns[0]
    assert table.names is not None
    features = table.select([name for name in table.names if name != target])
    if labels.dtype.kind == "f" and np.all(labels == np.floor(labels)):
        labels = labels.astype(np.int64)
    return features, labels


def write_csv(file: TextIO, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A header and rows."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)


def _typed(field: Sequence[str]) -> NDArray[Any]:
    texts = [text.strip() for text in field]
    known = [text for text in texts if text.lower() not in _MISSING]
    if known and all(text.lower() in _BOOLEANS for text in known):
        return _objects([_BOOLEANS.get(text.lower()) for text in texts])
    try:
        return np.array([float(text) if text.lower() not in _MISSING else np.nan for text in texts])
    except ValueError:
        return _objects([text if text.lower() not in _MISSING else None for text in texts])


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
