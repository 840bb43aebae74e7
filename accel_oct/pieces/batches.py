"""Batches of rows for the passes over the data: columns as arrays, or as distinct values and codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import is_missing
from accel_oct.encoding.scales import Scale, zone_of
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError, shown


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a piece, column by column.

    Attributes
    ----------
    columns : mapping from names to arrays or Coded
        Text columns are coded; others are arrays, as in `Table`.
    scales : mapping from names to Scale
        Scales of columns whose arrays cannot hold them.
    """

    columns: Mapping[str, NDArray[Any] | Coded]
    n_rows: int
    scales: Mapping[str, Scale] = field(default_factory=dict)

    def coded(self, name: str) -> Coded:
        """Return a column as distinct values and codes."""
        return coded(self.columns[name], name)

    def array(self, name: str) -> NDArray[Any]:
        """Return a column as an array with one entry per row."""
        column = self.columns[name]
        return column.decoded() if isinstance(column, Coded) else column

    def taken(self, rows: NDArray[np.bool_]) -> Batch:
        """Return some of the rows."""
        columns = {
            name: column.taken(rows) if isinstance(column, Coded) else column[rows]
            for name, column in self.columns.items()
        }
        return Batch(columns, int(np.count_nonzero(rows)), self.scales)

    def table(self, names: Sequence[str], rows: Any = slice(None)) -> Table:
        """Return a table of some columns and all or some rows."""
        columns = tuple(self.array(name)[rows] for name in names)
        scales = tuple(self.scales.get(name) for name in names)
        return Table(columns, tuple(names), len(np.arange(self.n_rows)[rows]), scales)


def table_batch(table: Table, names: Sequence[str] | None = None) -> Batch:
    """Return a batch of a table in memory, with all or some columns."""
    every = [table.name(place) for place in range(len(table.columns))]
    wanted = every if names is None else names
    place = {name: j for j, name in enumerate(every)}
    scales = {name: table.scale(place[name]) for name in wanted}
    return Batch(
        {name: table.columns[place[name]] for name in wanted},
        table.n_rows,
        {name: scale for name, scale in scales.items() if scale is not None},
    )


# ---------------------------------------------------------------- Arrow


def arrow_batch(arrow: Any) -> Batch:
    """Return a batch of an Arrow record batch or table; creates objects only for types that NumPy lacks."""
    import pyarrow as pa

    columns: dict[str, NDArray[Any] | Coded] = {}
    scales: dict[str, Scale] = {}
    for name, column in zip(arrow.schema.names, arrow.columns, strict=True):
        chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(chunk, pa.ChunkedArray):  # still chunked: too long for one array
            chunk = pa.concat_arrays(chunk.chunks)
        columns[name], scale = _arrow_column(chunk, name)
        if scale is not None:
            scales[name] = scale
    return Batch(columns, arrow.num_rows, scales)


def _arrow_column(chunk: Any, name: str) -> tuple[NDArray[Any] | Coded, Scale | None]:
    import pyarrow as pa

    kind = chunk.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return _coded_text(chunk.dictionary_encode()), None
    if pa.types.is_dictionary(kind):
        if chunk.null_count == 0 and _is_text(kind.value_type) and not kind.ordered:
            return _coded_text(chunk.cast(kind.value_type).dictionary_encode()), None
        return _by_table(chunk, name)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        if chunk.null_count == 0:
            return np.asarray(chunk.to_numpy(zero_copy_only=False)), None
        return _coded_text(chunk.dictionary_encode()), None
    if pa.types.is_floating(kind):
        return np.asarray(chunk.to_numpy(zero_copy_only=False)), None
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        plain = chunk.cast(pa.timestamp(kind.unit))
        return np.asarray(plain.to_numpy(zero_copy_only=False)), Scale("datetime", zone=zone_of(kind.tz))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        return np.asarray(chunk.to_numpy(zero_copy_only=False)), None
    if pa.types.is_null(kind):
        return np.full(len(chunk), None, dtype=object), None
    return _by_table(chunk, name)


def _coded_text(encoded: Any) -> Coded:
    """Return the codes of an Arrow dictionary array; null is the last value."""
    known = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False))
    values = np.empty(len(known) + (encoded.null_count > 0), dtype=object)
    values[: len(known)] = known
    return Coded(values, codes)


def _by_table(chunk: Any, name: str) -> tuple[NDArray[Any], Scale | None]:
    """Read a column as `Table` does; slower, for rare types."""
    import pyarrow as pa

    if len(chunk) == 0:
        return np.empty(0, dtype=object), None
    table = Table.read(pa.table({name: chunk}))
    return table.columns[0], table.scale(0)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def arrow_family(kind: Any) -> str | None:
    """Return the `family` of an Arrow type."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(kind):
        return None
    for word, matches in (
        ("booleans", types.is_boolean(kind)),
        ("numbers", types.is_integer(kind) or types.is_floating(kind)),
        ("text", _is_text(kind) or kind == pa.string_view() or types.is_dictionary(kind)),
        ("times", types.is_timestamp(kind)),
        ("dates", types.is_date(kind)),
        ("durations", types.is_duration(kind) or types.is_interval(kind)),
    ):
        if matches:
            return f"{word} of the zone {kind.tz}" if word == "times" and kind.tz is not None else word
    return str(kind)


def check_named(names: Sequence[Any], where: str) -> tuple[str, ...]:
    """Return column names after checking that they are distinct strings."""
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(f"{where} must have columns with text as names, got {shown(name)}")
    twice = next((name for j, name in enumerate(names) if name in names[:j]), None)
    if twice is not None:
        raise InvalidInputError(f"{where} has more than one column named {twice!r}")
    return tuple(names)


# ---------------------------------------------------------------- columns as distinct values and codes


_SMALL_RANGE = 1 << 16
"""Range of whole numbers that are counted in a table instead of being sorted."""

_FAMILIES = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "M": "times", "m": "durations"}


@dataclass(frozen=True, eq=False)
class Coded:
    """Distinct values of a column, and the index of each row's value.

    Attributes
    ----------
    values : array
        Distinct values that occur. Missing values are one entry: None, NaN or NaT, depending on the type.
    codes : int array (n_rows,)
    """

    values: NDArray[Any]
    codes: NDArray[Any]

    def decoded(self) -> NDArray[Any]:
        """Return the column as an array."""
        column: NDArray[Any] = self.values[self.codes]
        return column

    def taken(self, rows: NDArray[np.bool_]) -> Coded:
        """Return some of the rows, with the values that occur in them."""
        return _used(self.values, self.codes[rows])


def coded(values: NDArray[Any] | Coded, name: str) -> Coded:
    """Find the distinct values of a column; `name` is for errors."""
    if isinstance(values, Coded):
        return values
    kind = values.dtype.kind
    if kind == "b":
        return _used(np.array([False, True]), values.view(np.uint8))
    if kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _SMALL_RANGE:
            # For uint64, sum and difference may wrap around; both are exact modulo 2**64.
            every = (np.arange(high - low + 1) + np.array(low, values.dtype).astype(np.int64)).astype(values.dtype)
            return _used(every, values.astype(np.int64) - every[:1].astype(np.int64) if low or kind == "i" else values)
    if kind in "Mm":
        found, codes = np.unique(values.view(np.int64), return_inverse=True)
        return Coded(found.view(values.dtype), codes.reshape(-1))
    if kind == "O":
        return _from_objects(values.tolist(), name)
    distinct, codes = np.unique(values, return_inverse=True)
    return Coded(distinct, codes.reshape(-1))


def _used(every: NDArray[Any], codes: NDArray[Any]) -> Coded:
    """Return the codes without the values that do not occur."""
    occurs = np.bincount(codes, minlength=len(every)) > 0
    if occurs.all():
        return Coded(every, codes)
    return Coded(every[occurs], (np.cumsum(occurs) - 1)[codes])


def _from_objects(values: list[Any], name: str) -> Coded:
    # True, 1 and 1.0 have the same hash, but their types determine the kind of a column.
    mixed = len({type(value) for value in values}) > 1
    place: dict[Any, int] = {}
    found: list[Any] = []
    codes = np.empty(len(values), dtype=np.int64)
    nothing = -1
    try:
        for row, value in enumerate(values):
            key = (type(value), value) if mixed else value
            code = place.get(key)
            if code is None:
                if is_missing(value):
                    if nothing < 0:
                        nothing = len(found)
                        found.append(None)
                    code = nothing
                else:
                    code = place[key] = len(found)
                    found.append(value)
            codes[row] = code
    except TypeError:
        raise InvalidInputError(f"column {name!r} holds values that cannot be compared, such as lists") from None
    return Coded(plain_objects(found), codes)


def plain_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return an array of objects; of a numeric type if all values are bool, all are int or all are float."""
    listed = list(values)
    kinds = {type(value) for value in listed}
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if kinds == {kind} and (kind is not int or all(-(2**63) <= value < 2**63 for value in listed)):
            return np.array(listed, dtype=dtype)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def family(values: NDArray[Any]) -> str | None:
    """Return the family of the known values of a column, such as "numbers"; None without known values.

    All pieces of a column must have the same family. Whole numbers and floats are one family: a frame with a missing
    value often holds floats where other frames hold whole numbers.
    """
    kind = values.dtype.kind
    if kind in _FAMILIES:
        unknown = kind in "fMm" and bool(np.all(values != values))
        return None if unknown and len(values) else _FAMILIES[kind]
    if kind != "O":
        return "text"
    # By the types of the values, not by the kind for an encoder: mixed columns are a family.
    found = {_object_family(value) for value in values.tolist() if not is_missing(value)}
    return None if not found else found.pop() if len(found) == 1 else "mixed values"


def _object_family(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim:
        return type(value).__name__
    if array.dtype.kind == "O":  # dates, decimals, ...
        return type(value).__name__
    return _FAMILIES.get(array.dtype.kind, "text")
