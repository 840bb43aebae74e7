"""Class labels and names from user input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError


def encode_labels(y: Any, n_samples: int, name: str = "y") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct labels of `y`, and the index of each sample's label; `name` is that of y in errors.

    Raises
    ------
    InvalidInputError
        When `y` is not one-dimensional, has the wrong length, holds missing or infinite values, or
        mixes types that have no common order.
    """
    labels = one_dimensional(y, name, n_samples)
    if labels.dtype.kind == "O":
        labels = _plain_labels(labels, name)
    missing = labels != labels
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    if np.any(missing):
        row = int(np.flatnonzero(missing)[0])
        raise InvalidInputError(f"{name} has a missing or infinite value in row {row}")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise InvalidInputError(f"{name} mixes labels of types that cannot be ordered") from None
    return classes, codes.reshape(-1).astype(np.int64)


def as_labels(y: Any) -> Any:
    """Convert a list of numbers to an array without changing a value, or raise; return other input unchanged."""
    if isinstance(y, list | tuple) and y and {type(label) for label in y} <= {int, float}:
        return _plain_labels(_object_array(y))
    return y


def as_names(names: Sequence[Any] | None, defaults: Sequence[str], argument: str) -> tuple[str, ...]:
    """Return `names` as distinct strings, one for each of `defaults`, or `defaults` if `names` is None."""
    if names is None:
        return tuple(defaults)
    if isinstance(names, str):
        raise InvalidInputError(f"{argument} must be a sequence of names, got the string {names!r}")
    result = tuple(str(name) for name in names)
    if len(result) != len(defaults):
        raise InvalidInputError(f"{argument} has {len(result)} entries, expected {len(defaults)}")
    if len(set(result)) != len(result):
        twice = next(name for position, name in enumerate(result) if name in result[:position])
        raise InvalidInputError(f"{argument} must be distinct, but {twice!r} occurs more than once")
    return result


def one_dimensional(values: Any, argument: str, n_samples: int) -> NDArray[Any]:
    """Return an array with one entry per sample, whose values NumPy has not converted.

    Raises
    ------
    InvalidInputError
        If that is not possible; the message names the argument.
    """
    if isinstance(values, str | bytes):
        raise InvalidInputError(f"{argument} must be a sequence, got the string {values!r}")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif isinstance(values, list | tuple) and _is_at_risk({type(value) for value in values}):
        values = _object_array(values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(f"{argument} must be a one-dimensional sequence: {error}") from None
    if array.ndim != 1:
        raise InvalidInputError(f"{argument} must be one-dimensional, got {array.ndim} dimension(s)")
    if len(array) != n_samples:
        raise InvalidInputError(f"{argument} has {len(array)} entries, but X has {n_samples} rows")
    return array


def _is_at_risk(types: set[type]) -> bool:
    """Return whether NumPy might convert values silently: [1, "a"] to strings, [2**63, -1] to floats."""
    return len(types) > 1 or types == {int}


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain_labels(labels: NDArray[Any], name: str = "y") -> NDArray[Any]:
    values = labels.tolist()
    for row, value in enumerate(values):
        if is_missing(value):
            raise InvalidInputError(f"{name} has a missing value in row {row}")
    kinds = set(map(type, values))
    if all(issubclass(kind, str) for kind in kinds):
        array: NDArray[Any] = np.array(values, dtype=np.str_)
        if array.tolist() != values:
            raise InvalidInputError(f"{name} has a label that ends in a NUL character, which NumPy would cut off")
        return array
    if all(issubclass(kind, bool | int | float | np.number | np.bool_) for kind in kinds):
        array = np.array(values)
        if array.dtype.kind == "f" and any(isinstance(v, int | np.integer) and float(v) != v for v in values):
            raise InvalidInputError(f"{name} mixes floats with whole numbers that are too large to be exact as floats")
        return array
    return labels


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA has no truth value, nor has an array


def combined_groups(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the group of every row: the values of a single column, or the texts of several joined by commas."""
    if len(columns) == 1:
        return columns[0]
    return np.array([", ".join(map(str, row)) for row in zip(*(c.tolist() for c in columns), strict=True)])
