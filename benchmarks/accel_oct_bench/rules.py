"""Constraints of an instance as text: ``recall(1, at_least=0.9)``, ``statistical_parity(group, at_most=0.05)``.

Names are those of `accel_oct.constraints` in small letters; the word ``group`` means the groups that came with the
data. They are read by `accel_oct.solving.parsing`, as syntax that is never executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.solving.parsing import constraint
from accel_oct_bench.instances import EncodedData

__all__ = ["constraints_of", "dataset_of"]

_GROUP = "group"


def dataset_of(data: EncodedData, weight: int = 1) -> BinaryDataset:
    """The data as `accel_oct.solve` takes them, with the groups under the name ``group``; every row with one weight."""
    dataset = BinaryDataset.from_arrays(data.X, data.y, np.full(len(data.y), weight))
    return dataset if data.group is None else replace(dataset, row_values={_GROUP: data.group})


def constraints_of(texts: Sequence[str], data: EncodedData) -> list[Any]:
    """The constraints of an instance, tried out on its data.

    Raises
    ------
    InvalidInputError
        For a text that names no constraint, or one that the data do not go with.
    """
    made = [constraint(text)[0] for text in texts]
    dataset = dataset_of(data)
    for text, each in zip(texts, made, strict=True):
        try:
            each.bind(dataset)
        except InvalidInputError as error:
            raise InvalidInputError(f"constraint {shown(text)} on data {data.name!r}: {error}") from None
    return made
