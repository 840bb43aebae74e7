"""Checks of the arguments of constraints; every error names the constraint and the argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.data.labels import is_missing
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.support.arguments import as_whole, class_index
from accel_oct.support.arrays import IntArray


def number(value: Any, where: str) -> float:
    """Return a number as a float, or raise InvalidInputError that begins with `where`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInputError(f"{where} must be a number, got {shown(value)}")
    return float(value)


class NamesAClass:
    """Mixin for constraints on the predictions of one class, `positive`."""

    positive: Any

    def class_index(self, dataset: BinaryDataset) -> int:
        """Return the index of the class in the data."""
        return class_index(self.positive, dataset.classes.tolist(), f"{type(self).__name__}: positive")

    def title(self, dataset: BinaryDataset) -> str:
        """Return the kind of constraint and its class, so that constraints on two classes have different names."""
        return f"{type(self).__name__} of class {dataset.classes[self.class_index(dataset)]}"


def share(value: Any, where: str) -> float:
    """Return a share as a float, or raise InvalidInputError that begins with `where`."""
    if not 0 <= number(value, where) <= 1:
        raise InvalidInputError(f"{where} must be a share between 0 and 1, got {shown(value)}")
    return float(value)


def distinct_values(values: Any, length: int, where: str, per: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values in sorted order, and the place of each entry among them.

    Parameters
    ----------
    length : int
        Required number of entries.
    per : str
        Noun for an entry in the message, such as "row".
    """
    # A list as objects: NumPy would turn [1, "a"] and [nan, "a"] into strings.
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.shape != (length,):
        raise InvalidInputError(f"{where} must have one value per {per}, {length} in all, got the shape {array.shape}")
    plain = array.tolist()
    if any(map(is_missing, plain)):
        raise InvalidInputError(f"{where} has missing values")
    try:
        distinct = sorted(set(plain))
    except TypeError:
        raise InvalidInputError(f"{where} mixes values that cannot be compared with each other") from None
    place = {value: position for position, value in enumerate(distinct)}
    return distinct, np.array([place[value] for value in plain], dtype=np.int64)


def row_values(values: Any, dataset: BinaryDataset, where: str) -> Any:
    """Return one value per row: the given array, or the values of the column with this name."""
    if not isinstance(values, str):
        return values
    found = dataset.values_named(values)
    if found is None:
        known = list(dataset.row_values) or list(dataset.feature_names)
        near = did_you_mean(values, known) or f"; known are {shown(known)}"
        raise InvalidInputError(f"{where}: there is no column {shown(values)}{near}")
    return found


def feature_places(value: Any, dataset: BinaryDataset, where: str) -> list[int]:
    """Return the features of a column given by index or by name; a column of a raw table may have several, or none."""
    if isinstance(value, str):
        found = dataset.features_named(value)
        # Without `sources`, a column without matching features may still exist under another name: an error.
        known = (*dataset.row_values, *dataset.columns)
        if not found and (dataset.sources is None or value not in known):
            near = did_you_mean(value, [*known, *dataset.feature_names])
            raise InvalidInputError(f"{where}: no column has the name {shown(value)}{near}")
        return found
    place = as_whole(value)
    if place is None:
        raise InvalidInputError(f"{where} must hold indices or names of columns, got {shown(value)}")
    if not 0 <= place < dataset.n_features:
        raise InvalidInputError(f"{where}: there is no column {shown(value)}, there are {dataset.n_features}")
    return [place]


def listed(values: Any, where: str) -> list[Any]:
    """Return a sequence, a set or an array as a list, or raise InvalidInputError."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | set | frozenset):
        raise InvalidInputError(f"{where} must be a list, got {shown(values)}")
    return list(values)
