"""Binary matrices from user input, and rows packed into machine words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError

BoolMatrix = NDArray[np.bool_]

_ADVICE = "OptimalTreeClassifier encodes raw columns; solve() and DecisionTree take columns of 0 and 1"


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame; None for other input."""
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return tuple(str(name) for name in X.columns)
    return None


def as_binary_matrix(X: Any, *, name: str = "X") -> BoolMatrix:
    """Check that `X` is a two-dimensional table of 0 and 1 and return it as a C-ordered bool array.

    Accepts bool, integer and float arrays, nested sequences and data frames (anything that has
    ``columns`` and ``to_numpy``). The result may share memory with `X` when `X` is a bool array.

    Raises
    ------
    InvalidInputError
        When `X` is not two-dimensional, is sparse, holds a missing value or a value other than 0 and 1;
        the message names the first offending column and value.
    """
    names = column_names(X)
    if names is not None:
        X = X.to_numpy()
    elif hasattr(X, "toarray"):
        raise InvalidInputError(f"{name} is a sparse matrix; pass the dense array {name}.toarray()")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a rectangular table of 0 and 1: {error}") from None
    if array.ndim != 2:
        raise InvalidInputError(f"{name} must be two-dimensional (samples x features), got {array.ndim} dimension(s)")
    if array.dtype == np.bool_:
        # A view of other bytes as bools may hold values besides 0 and 1, and the kernels add the bytes.
        return np.asarray(np.ascontiguousarray(array).view(np.uint8) != 0)
    if array.dtype.kind in "OUSTV":
        array = _numbers_from_objects(array, names, name)
    elif array.dtype.kind not in "iuf":
        raise InvalidInputError(f"{name} must hold 0 and 1, got the type {array.dtype}. {_ADVICE}")
    ones = array == 1
    bad = ~(ones | (array == 0))
    if bad.any():
        _raise_at(bad, array, names, name)
    return np.ascontiguousarray(ones)


def distinct_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of features; ``x0, x1, ...`` if two are equal."""
    return names if len(set(names)) == len(names) else tuple(f"x{j}" for j in range(len(names)))


def usable_features(
    X: BoolMatrix, names: tuple[str, ...], sources: tuple[str, ...] | None
) -> tuple[BoolMatrix, tuple[str, ...], tuple[str, ...] | None]:
    """Return features, distinct names and sources for a solve, which needs a column.

    Without features there is one constant feature; the optimal tree is a leaf.
    """
    if X.shape[1]:
        return X, distinct_names(names), sources
    return np.zeros((X.shape[0], 1), dtype=bool), ("x0",), None if sources is None else ("",)


def pack_rows(X: BoolMatrix, bitorder: Literal["big", "little"] = "big") -> NDArray[np.uint64]:
    """Pack each row into 64-bit words (n_samples, n_words); two rows are equal exactly when their words are.

    Parameters
    ----------
    X : bool array (n_samples, n_features)
        In row order, or in column order, which is read column by column.
    bitorder : str
        "big": the first feature of a word is its highest bit, so that comparing words from left to right compares rows
        lexicographically, feature 0 first. "little": feature f is bit f % 64 of word f // 64.
    """
    n_samples, n_features = X.shape
    octets = np.zeros((n_samples, 8 * max(1, -(-n_features // 64))), dtype=np.uint8)
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        columns, bits = np.zeros(octets.shape[::-1], dtype=np.uint8), X.view(np.uint8).T
        for f in range(n_features):
            columns[f // 8] |= bits[f] << np.uint8(7 - f % 8 if bitorder == "big" else f % 8)
        octets[:] = columns.T
    else:
        octets[:, : -(-n_features // 8)] = np.packbits(X, axis=1, bitorder=bitorder)
    return octets.view(">u8" if bitorder == "big" else "<u8").astype(np.uint64, copy=False)


def _numbers_from_objects(array: NDArray[Any], names: Sequence[str] | None, name: str) -> NDArray[Any]:
    # Check types first: NumPy would convert the string "1" to a number.
    numeric = (bool, int, float, np.bool_, np.integer, np.floating)
    flat = array.ravel().tolist() if array.dtype.kind != "V" else list(array.ravel())
    wrong = {kind for kind in set(map(type, flat)) if not issubclass(kind, numeric)}
    if wrong:
        bad = np.array([type(value) in wrong for value in flat], dtype=bool).reshape(array.shape)
        _raise_at(bad, array, names, name)
    return array.astype(np.float64)


def _raise_at(bad: BoolMatrix, array: NDArray[Any], names: Sequence[str] | None, name: str) -> None:
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    row = int(np.flatnonzero(bad[:, column])[0])
    value = array[row, column]
    if isinstance(value, np.generic):
        value = value.item()
    where = f"column {column}" + (f" ({names[column]!r})" if names is not None else "") + f", row {row}"
    if value is None or str(value) in ("nan", "<NA>", "NaT"):
        raise InvalidInputError(f"{name} has a missing value in {where}. {_ADVICE}")
    raise InvalidInputError(f"{name} must hold only 0 and 1, but {where} holds {value!r}. {_ADVICE}")
