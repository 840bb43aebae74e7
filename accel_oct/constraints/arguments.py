"""Checks of what constraints are made from; every error names the constraint and the argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.data.labels import is_missing
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.support.arrays import IntArray


def number(value: Any, where: str) -> float:
    """A number, or an error that says what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInputError(f"{where} must be a number, got {shown(value)}")
    return float(value)


class NamesAClass:
    """What speaks of the predictions of one class."""

    positive: Any

    def class_index(self, dataset: BinaryDataset, argument: str = "positive") -> int:
        """The place of the class among those of the data."""
        label = self.positive
        if label is None:
            if dataset.n_classes != 2:
                raise InvalidInputError(
                    f"{type(self).__name__}: {argument} must name a class, there are {dataset.n_classes}"
                )
            return 1
        places = [k for k, known in enumerate(dataset.classes.tolist()) if np.ndim(label) == 0 and known == label]
        if not places:
            known = ", ".join(map(repr, dataset.classes.tolist()[:10]))
            raise InvalidInputError(
                f"{type(self).__name__}: {argument} {shown(label)} is not a class; known are {known}"
            )
        return places[0]

    def title(self, dataset: BinaryDataset) -> str:
        """The kind of constraint and the class it is about: two constraints of one kind differ in their names."""
        return f"{type(self).__name__} of class {dataset.classes[self.class_index(dataset)]}"


def share(value: Any, where: str) -> float:
    """A share as a number, or an error that says what is wrong with it."""
    if not 0 <= number(value, where) <= 1:
        raise InvalidInputError(f"{where} must be a share between 0 and 1, got {shown(value)}")
    return float(value)


def distinct_values(values: Any, length: int, where: str, per: str) -> tuple[list[Any], IntArray]:
    """Distinct values in sorted order, and the place of each entry's value among them.

    Parameters
    ----------
    length : int
        How many entries there must be.
    per : str
        What there must be one of them for.
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
    """What is known of every row: an array, or the name of a column or of something else that came with the data."""
    if not isinstance(values, str):
        return values
    found = dataset.values_named(values)
    if found is None:
        known = list(dataset.row_values) or list(dataset.feature_names)
        near = did_you_mean(values, known) or f"; known are {shown(known)}"
        raise InvalidInputError(f"{where}: there is no column {shown(values)}{near}")
    return found


def feature_places(value: Any, dataset: BinaryDataset, where: str) -> list[int]:
    """The features of a column that is given by index or by name; a column of a raw table may have several, or none."""
    if isinstance(value, str):
        found = dataset.features_named(value)
        # Where it is not known which features a column became, none found does not mean that there are none.
        known = (*dataset.row_values, *dataset.columns)
        if not found and (dataset.sources is None or value not in known):
            near = did_you_mean(value, [*known, *dataset.feature_names])
            raise InvalidInputError(f"{where}: no column has the name {shown(value)}{near}")
        return found
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInputError(f"{where} must hold indices or names of columns, got {shown(value)}")
    if not 0 <= value < dataset.n_features:
        raise InvalidInputError(f"{where}: there is no column {shown(value)}, there are {dataset.n_features}")
    return [int(value)]


def listed(values: Any, where: str) -> list[Any]:
    """What is a list, a set or an array, as a list."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | set | frozenset):
        raise InvalidInputError(f"{where} must be a list, got {shown(values)}")
    return list(values)
