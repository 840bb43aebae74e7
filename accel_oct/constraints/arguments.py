"""Checks of what constraints are made from; every error names the constraint and the argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown


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


def share(value: Any, where: str) -> float:
    """A share as a number, or an error that says what is wrong with it."""
    if not 0 <= number(value, where) <= 1:
        raise InvalidInputError(f"{where} must be a share between 0 and 1, got {shown(value)}")
    return float(value)
