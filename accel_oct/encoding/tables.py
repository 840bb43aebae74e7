"""Tables of any type as columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Counts, MeasuredKind, Scale, intervals, read_durations, read_instants, zone_of
from accel_oct.encoding.values import Kind, as_categories, as_numbers, exact_numbers, infer_kind
from accel_oct.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, optionally with names.

    Parameters
    ----------
    columns : tuple of one-dimensional arrays
    names : tuple of str or None
        None if the data have no (string) names.
    n_rows : int
    scales : tuple of Scale or None, optional
        Scale of each column whose array cannot hold it: the time zone of times, the order of categories.
    """

    columns: tuple[NDArray[Any], ...]
    names: tuple[str, ...] | None
    n_rows: int
    scales: tuple[Scale | None, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.n_rows, len(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def name(self, column: int) -> str:
        """Return the name of a column, by default such as ``x3``."""
        return self.names[column] if self.names is not None else f"x{column}"

    def scale(self, column: int) -> Scale | None:
        """Return the scale of a column, if it has one."""
        return self.scales[column] if self.scales else None

    def select(self, names: Sequence[str]) -> Table:
        """Return the named columns in this order; the error names the first one that is missing."""
        if self.names is None:
            raise InvalidInputError("X has no column names to select by")
        place = {name: j for j, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                raise InvalidInputError(f"X has no column {name!r}; it has {', '.join(map(repr, self.names))}")
        columns = tuple(self.columns[place[name]] for name in names)
        scales = tuple(self.scale(place[name]) for name in names)
        return Table(columns, tuple(names), self.n_rows, scales)

    def rows(self, chosen: NDArray[Any]) -> Table:
        """Return the rows that an index array or a mask selects."""
        columns = tuple(column[chosen] for column in self.columns)
        return Table(columns, self.names, len(np.arange(self.n_rows)[chosen]), self.scales)

    @classmethod
    def read(cls, X: Any) -> Table:
        """Read a data frame (pandas, polars, Arrow and others), an array, a sparse matrix or nested sequences.

        Raises
        ------
        InvalidInputError
            For complex or one-dimensional data, and tables without a row or a column.
        """
        frame = None if isinstance(X, Table) else as_frame(X)
        if isinstance(X, Table):
            table = X
        elif frame is not None:
            columns, names, scales = frame_columns(frame)
            for column in columns:
                _refuse_complex(column)
            table = cls(columns, names, len(frame), scales)
        else:
            table = cls._from_array(X.toarray() if hasattr(X, "toarray") else X)
        n_rows, n_columns = table.shape
        if n_columns == 0:
            raise InvalidInputError(f"X has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required.")
        if n_rows == 0:
            raise InvalidInputError(f"X has 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.")
        return table

    @classmethod
    def _from_array(cls, X: Any) -> Table:
        rows = [row for row in X if isinstance(row, list | tuple)] if isinstance(X, list | tuple) else []
        if any(isinstance(value, str) for row in rows for value in row):
            X = np.array(X, dtype=object)  # NumPy would convert numbers beside a string to strings
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise InvalidInputError(f"X must be a rectangular table: {error}") from None
        _refuse_complex(array)
        if array.ndim != 2:
            raise InvalidInputError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data with X.reshape(-1, 1) if it "
                "has a single feature, or X.reshape(1, -1) if it contains a single sample."
            )
        return cls(tuple(array.T), None, len(array))


def _refuse_complex(array: NDArray[Any]) -> None:
    if array.dtype.kind == "c":
        raise InvalidInputError("Complex data not supported: X has the type " + str(array.dtype))


Columns = tuple[NDArray[Any], ...]


def is_pandas(X: Any) -> bool:
    """Return whether X is a pandas data frame, or behaves like one in memory."""
    return hasattr(X, "iloc") and hasattr(X, "columns") and not hasattr(X, "compute")


def is_indexable(X: Any) -> bool:
    """Return whether scikit-learn can index rows: not of lazy frames, some sparse matrices and Arrow tables."""
    return hasattr(X, "shape") and not any(hasattr(X, name) for name in ("compute", "to_pylist", "toarray"))


def as_frame(X: Any) -> Any:
    """Return a data frame in memory as its own type, collected if lazy; None for other input."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if is_pandas(X):
        return X  # narwhals has its own error for two columns of one name
    found = nw.from_native(X, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if isinstance(found, nw.DataFrame):
        return found.to_native()
    return None


def frame_columns(frame: Any) -> tuple[Columns, tuple[str, ...] | None, tuple[Scale | None, ...]]:
    """Return the columns, their names (None unless all are text), and the scales that arrays cannot hold."""
    if hasattr(frame, "iloc"):
        labels = list(frame.columns)
        found = [_from_pandas(frame.iloc[:, j]) for j in range(len(labels))]
    else:
        generic = nw.from_native(frame, eager_only=True)
        labels = list(generic.columns)
        found = [] if _twice(labels) else [_from_series(generic[label], label) for label in labels]
    names = tuple(labels) if all(isinstance(label, str) for label in labels) else None
    if names is not None and _twice(names) is not None:
        raise InvalidInputError(f"X has more than one column named {_twice(names)!r}")
    return tuple(values for values, _ in found), names, tuple(scale for _, scale in found)


def _twice(labels: Any) -> Any:
    return next((label for j, label in enumerate(labels) if label in labels[:j]), None)


def _from_pandas(series: Any) -> tuple[NDArray[Any], Scale | None]:
    name = str(series.name)
    if str(series.dtype) == "category":
        # The numbers of a categorical series are names: convert them to text.
        values = as_categories(np.asarray(series), name)
        known = as_categories(np.asarray(series.cat.categories), name).tolist()
        ordered = series.cat.ordered and known and len(set(known)) == len(known)
        return values, Scale("ordered", categories=tuple(known)) if ordered else None
    if hasattr(series.dtype, "pyarrow_dtype"):  # an Arrow column inside pandas
        return _from_series(nw.from_native(series.array.__arrow_array__(), series_only=True), name)
    zone = getattr(series.dtype, "tz", None)
    if zone is None:
        # With missing values, pandas would convert whole numbers to floats.
        nullable = not isinstance(series.dtype, np.dtype) and getattr(series.dtype, "kind", "") in "iu"
        return series.to_numpy(dtype=object) if nullable and series.hasnans else np.asarray(series), None
    instants = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    return np.asarray(instants), Scale("datetime", zone=zone_of(str(zone)))


def _from_series(series: Any, name: str) -> tuple[NDArray[Any], Scale | None]:
    dtype = series.dtype
    if isinstance(dtype, nw.List | nw.Array | nw.Struct):
        raise InvalidInputError(f"X has values of the type {dtype} in column {name!r}")
    native = series.to_native()
    if str(getattr(native, "type", "")) == "month_day_nano_interval":  # a type that narwhals does not know
        return intervals(native, name), None
    if isinstance(dtype, nw.Categorical | nw.Enum):
        known = list(dtype.categories) if isinstance(dtype, nw.Enum) else _arrow_order(native)
        return _objects(series.cast(nw.String).to_list()), Scale("ordered", categories=tuple(known)) if known else None
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        instants = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        return np.asarray(instants), Scale("datetime", zone=zone_of(dtype.time_zone))
    if isinstance(dtype, nw.Datetime | nw.Date | nw.Duration) or dtype.is_float() or not series.null_count():
        return np.asarray(series.to_numpy()), None
    return _objects(series.to_list()), None


def _arrow_order(native: Any) -> list[str]:
    """Return the categories of an ordered Arrow dictionary array; empty for other arrays."""
    if not getattr(getattr(native, "type", None), "ordered", False):
        return []
    whole = native.unify_dictionaries() if hasattr(native, "unify_dictionaries") else native
    chunks = whole.chunks if hasattr(whole, "chunks") else [whole]
    known = [] if not chunks else chunks[0].dictionary.to_pylist()
    return known if all(isinstance(value, str) for value in known) and len(set(known)) == len(known) else []


def _objects(values: list[Any]) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


#: Position of a category outside of the order: below all thresholds, and not missing.
UNKNOWN = -1.0


def learn_scale(table: Table, index: int, kind: Kind) -> Scale | None:
    """Return the scale of a column; None for plain numbers and text.

    The unit of times and durations is the largest in which all values are whole.
    """
    if kind == "ordered":
        return table.scale(index)
    if kind not in ("datetime", "duration"):
        return None
    counts = _counts(table, index, kind)
    return Scale(kind, counts.coarsest_unit(), counts.zone)


def as_measured(table: Table, index: int, scale: Scale) -> NDArray[Any]:
    """Return a column as whole numbers of a scale, NaN if missing: float64, or objects if floats are not exact.

    Times between two counts are rounded down, which preserves comparisons with whole numbers.

    Raises
    ------
    InvalidInputError
        For values of another kind, and if times have a zone here but not in `fit`, or the other way round.
    """
    if scale.kind == "ordered":
        place = {category: float(code) for code, category in enumerate(scale.categories)}
        texts = as_categories(table.columns[index], table.name(index)).tolist()
        return np.array([np.nan if text is None else place.get(text, UNKNOWN) for text in texts], dtype=np.float64)
    counts = _counts(table, index, scale.kind)
    if counts.known.any() and (counts.zone is None) != (scale.zone is None):
        has, had = ("no time zone", "one") if counts.zone is None else ("a time zone", "none")
        raise InvalidInputError(f"X has times with {has} in column {table.name(index)!r}, but there was {had} in fit")
    return exact_numbers(counts.floored(scale.unit), counts.known)


def _counts(table: Table, index: int, kind: MeasuredKind) -> Counts:
    values, name = table.columns[index], table.name(index)
    if values.dtype.kind == "f" and np.isnan(values).all():
        values = np.full(len(values), None, dtype=object)
    if kind == "duration":
        return read_durations(values, name)
    given = table.scale(index)
    return read_instants(values, name, given if given is not None and given.kind == "datetime" else None)


def table_fingerprint(X: Any, y: Any = None, sample_weight: Any = None) -> str:
    """Return the SHA-256 of a table with its classes and weights in hexadecimal digits.

    Equal tables of any library have equal fingerprints; another value, name, or order of rows or columns gives another
    one. It does not protect the data: anyone who guesses the table can compute it.

    Parameters
    ----------
    X : data frame or array-like (n_samples, n_features)
    y : array-like (n_samples,), optional
    sample_weight : array-like (n_samples,), optional

    Notes
    -----
    Hashed content, with numbers as 8 bytes, least significant first: the text ``accel_oct table 1``; the number
    of rows and of columns; per column its name, the letter of its kind, and its cells; then in the same way the classes
    as text and the weights, if given, each with the name ``y`` or ``sample_weight``. A text is its length
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
        found.update(b"d" + _counted(counts))
        return
    if kind in ("numeric", "boolean"):
        numbers = as_numbers(values, name)
        if numbers.dtype.kind == "f":
            found.update(b"n" + _doubles(numbers))
            return
        values = numbers
    found.update(b"t" + _texts(as_categories(values, name).tolist()))


def _counted(counts: Counts) -> bytes:
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
    # Adding zero removes the sign of a zero.
    return np.where(np.isnan(values), np.nan, values + 0.0).astype("<f8").tobytes()
