"""A short text by which a table is recognised."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.columns import Table
from accel_oct.encoding.times import Counts, read_durations, read_instants
from accel_oct.encoding.values import as_categories, as_numbers, infer_kind

__all__ = ["table_fingerprint"]


def table_fingerprint(X: Any, y: Any = None, sample_weight: Any = None) -> str:
    """The SHA-256 of a table with its classes and weights, in hexadecimal digits.

    Equal tables have equal fingerprints, whichever library holds them; another value, name, or order of rows or columns
    gives another one. It is no secret: who has the table, or guesses it, can compute it.

    Parameters
    ----------
    X : data frame or array-like (n_samples, n_features)
    y : array-like (n_samples,), optional
    sample_weight : array-like (n_samples,), optional

    Notes
    -----
    What is hashed, all numbers as 8 bytes with the least significant first: the text ``accel_oct table 1``; the number
    of rows and of columns; per column its name, the letter of its kind, and its cells; then in the same way the classes
    as text and the weights, each with the name ``y`` or ``sample_weight``, where they are given. A text is its length
    in bytes, and its UTF-8. Kinds:

    - ``n``, numbers and booleans: doubles; one NaN where missing, and zero has no sign.
    - ``t``, everything else: per cell the length of its text (-1 where it is missing), then all texts. Categories, and
      columns with whole numbers that no double can hold, are written as the encoders do: 3, 3.0 and "3" are the same.
    - ``d``, dates, times, durations: the largest unit in which all are whole (D, s, ms, us, ns; from 1970, UTC where
      there is a zone) as a text, then per cell a text with the count, as in ``t``.
    """
    table = Table.read(X)
    found = hashlib.sha256(b"accel_oct table 1")
    found.update(_numbers(np.array([len(table), len(table.columns)])))
    for place, values in enumerate(table.columns):
        _add(found, table.name(place), values, table, place)
    if y is not None:
        found.update(_text("y") + b"t" + _texts(as_categories(_flat(y), "y").tolist()))
    if sample_weight is not None:
        found.update(_text("sample_weight") + b"n" + _doubles(_flat(sample_weight).astype(np.float64)))
    return found.hexdigest()


def _add(found: Any, name: str, values: NDArray[Any], table: Table, place: int) -> None:
    found.update(_text(name))
    kind = infer_kind(values, name)
    if kind in ("datetime", "duration"):
        scale = table.scale(place)
        counts = read_durations(values, name) if kind == "duration" else read_instants(values, name, scale)
        found.update(b"d" + _counts(counts))
        return
    if kind in ("numeric", "boolean"):
        numbers = as_numbers(values, name)
        if numbers.dtype.kind == "f":
            found.update(b"n" + _doubles(numbers))
            return
        values = numbers
    found.update(b"t" + _texts(as_categories(values, name).tolist()))


def _counts(counts: Counts) -> bytes:
    unit = counts.coarsest_unit()
    numbers = zip(counts.floored(unit).tolist(), counts.known.tolist(), strict=True)
    return _text(unit) + _texts([str(number) if known else None for number, known in numbers])


def _flat(values: Any) -> NDArray[Any]:
    return np.asarray(values).reshape(-1)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return _numbers(np.array([len(encoded)])) + encoded


def _texts(texts: list[str | None]) -> bytes:
    distinct = dict.fromkeys(texts)
    encoded = {text: b"" if text is None else text.encode("utf-8", "surrogatepass") for text in distinct}
    length = {text: -1 if text is None else len(part) for text, part in encoded.items()}
    lengths = np.fromiter(map(length.__getitem__, texts), dtype=np.int64, count=len(texts))
    return _numbers(lengths) + b"".join(map(encoded.__getitem__, texts))


def _numbers(values: NDArray[Any]) -> bytes:
    return values.astype("<i8").tobytes()


def _doubles(values: NDArray[np.float64]) -> bytes:
    # Adding zero takes the sign of a zero away.
    return np.where(np.isnan(values), np.nan, values + 0.0).astype("<f8").tobytes()
