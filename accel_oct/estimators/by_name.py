"""Tables in memory whose target, weights or groups are given as names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from accel_oct.encoding.tables import Table, as_frame, is_pandas
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.io.tables import read_table
from accel_oct.pieces.detection import is_dask, is_frame, is_source, is_table_file


@dataclass(frozen=True, eq=False)
class GivenData:
    """Arguments of `fit` or `score`, separated if they are in memory."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    sensitive_features: Any = None


def given_data(
    X: Any, y: Any = None, sample_weight: Any = None, sensitive_features: Any = None, *, like: Any = None
) -> GivenData:
    """Read a file (other than Parquet), and separate the columns that are given by name.

    Data in pieces and arguments that hold values are returned unchanged.

    Parameters
    ----------
    X : table
        A data frame, `Table` or path if y is a name; otherwise any table.
    y, sample_weight : str or values
        Named columns are removed from the features. Weights and `sensitive_features` may be names only if y is one.
    sensitive_features : str, list of str, or values
        Named columns remain features.
    like : fitted classifier, optional
        X gets the columns that it was fitted on; other columns of the table are dropped.
    """
    if is_table_file(X):
        return _from_file(X, y, sample_weight, sensitive_features, like)
    if not isinstance(y, str) or is_source(X):
        return GivenData(X, _collected(y), sample_weight, sensitive_features)
    if not (isinstance(X, Table) or is_frame(X)):
        raise InvalidInputError(f"y is {shown(y)}, the name of a column, but X has no names of columns")
    table = X if isinstance(X, Table) else as_frame(X)
    names = _names(table)
    _check(names, y, "y")
    return _without_columns(table, names, _column(table, y), [y], sample_weight, sensitive_features, like)


def taken_column(X: Any, name: str, argument: str) -> tuple[Any, Any]:
    """Return a table without one of its columns, and that column; `argument` is named in errors."""
    if not (isinstance(X, Table) or is_frame(X)):
        raise InvalidInputError(f"{argument} is {shown(name)}, the name of a column, but X has no names of columns")
    table = X if isinstance(X, Table) else as_frame(X)
    names = _names(table)
    _check(names, name, argument)
    return _selected(table, [each for each in names if each != name]), _column(table, name)


def _from_file(path: Any, y: Any, sample_weight: Any, sensitive: Any, like: Any) -> GivenData:
    if y is None:
        return GivenData(read_table(path, like=like))
    if not isinstance(y, str):
        raise InvalidInputError(f"y must be the name of a column where X is a file, got {shown(y)}")
    if like is None or isinstance(sample_weight, str):
        table, labels = read_table(path, target=y)
        return _without_columns(table, list(table.names or ()), labels, [], sample_weight, sensitive, like)
    table, labels = read_table(path, target=y, like=like)
    return GivenData(table, labels, sample_weight, sensitive)


def _without_columns(
    table: Any, names: Sequence[str], y: Any, others: list[str], weight: Any, sensitive: Any, like: Any
) -> GivenData:
    if isinstance(weight, str):
        _check(names, weight, "sample_weight")
        others = [*others, weight]
        weight = _column(table, weight)
    listed = [sensitive] if isinstance(sensitive, str) else sensitive
    if isinstance(listed, list | tuple) and listed and all(isinstance(name, str) for name in listed):
        for name in listed:
            _check(names, name, "sensitive_features")
        sensitive = {name: _column(table, name) for name in listed}
    known = getattr(like, "feature_names_in_", None)
    features = [name for name in names if name not in others] if known is None else [str(name) for name in known]
    for name in features:
        _check(names, name, "X")
    return GivenData(_selected(table, features), y, weight, sensitive)


def _names(table: Any) -> list[str]:
    return list(table.names or ()) if isinstance(table, Table) else list(nw.from_native(table).columns)


def _column(table: Any, name: str) -> Any:
    if isinstance(table, Table):
        return table.columns[list(table.names or ()).index(name)]
    return table[name] if is_pandas(table) else nw.from_native(table)[name].to_native()


def _selected(table: Any, names: list[str]) -> Any:
    if isinstance(table, Table):
        return table.select(names)
    return table[names] if is_pandas(table) else nw.from_native(table).select(names).to_native()


def _check(names: Sequence[str], name: str, argument: str) -> None:
    if name not in names:
        near = did_you_mean(name, names) or f"; it has {shown(list(names))}"
        raise InvalidInputError(f"{argument}: the table has no column {shown(name)}{near}")


def _collected(y: Any) -> Any:
    """Return the only column of a lazy frame; other values are returned unchanged."""
    if y is None or is_dask(y):
        return y
    lazy = nw.from_native(y, pass_through=True)
    if not isinstance(lazy, nw.LazyFrame):
        return y
    frame = lazy.collect()
    if len(frame.columns) != 1:
        raise InvalidInputError(f"y must be one column, got a frame of {len(frame.columns)}")
    return frame[frame.columns[0]].to_native()
