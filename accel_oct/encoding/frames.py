"""Data frames of any library, column by column.

narwhals knows the libraries and their types. What it hands over as NumPy arrays is not always what the frame holds
(whole numbers beside missing ones become floats, missing entries of Arrow's dictionary arrays become values), so
columns are taken out according to their type.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.scales import Scale, zone_of
from accel_oct.encoding.times import intervals
from accel_oct.encoding.values import as_categories
from accel_oct.errors import InvalidInputError

__all__ = ["as_frame", "frame_columns", "is_indexable", "is_pandas"]

Columns = tuple[NDArray[Any], ...]


def is_pandas(X: Any) -> bool:
    """Whether it is a data frame of pandas, or behaves like one in memory."""
    return hasattr(X, "iloc") and hasattr(X, "columns") and not hasattr(X, "compute")


def is_indexable(X: Any) -> bool:
    """Whether scikit-learn can take rows out of it: not of lazy frames, some sparse matrices and Arrow's."""
    return hasattr(X, "shape") and not any(hasattr(X, name) for name in ("compute", "to_pylist", "toarray"))


def as_frame(X: Any) -> Any:
    """A data frame in memory as its library has it, a lazy one collected; None for anything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if is_pandas(X):
        return X  # narwhals would refuse two columns of one name in its own words
    found = nw.from_native(X, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if isinstance(found, nw.DataFrame):
        return found.to_native()
    return None


def frame_columns(frame: Any) -> tuple[Columns, tuple[str, ...] | None, tuple[Scale | None, ...]]:
    """The columns, their names (None unless all are text), and the scales that arrays cannot hold."""
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
        # The numbers of a categorical series are names; as text they stay so.
        values = as_categories(np.asarray(series), name)
        known = as_categories(np.asarray(series.cat.categories), name).tolist()
        ordered = series.cat.ordered and known and len(set(known)) == len(known)
        return values, Scale("ordered", categories=tuple(known)) if ordered else None
    if hasattr(series.dtype, "pyarrow_dtype"):  # a column of Arrow inside pandas
        return _from_series(nw.from_native(series.array.__arrow_array__(), series_only=True), name)
    zone = getattr(series.dtype, "tz", None)
    if zone is None:
        # Beside missing values, NumPy would be handed floats for whole numbers.
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
    """The categories of an ordered dictionary array of Arrow; of anything else, none."""
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
