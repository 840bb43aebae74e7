"""Columns that are binary already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray
from accel_oct.encoding.columns import Kind, Table
from accel_oct.encoding.conditions import Condition
from accel_oct.errors import InvalidInputError

__all__ = ["PassthroughEncoder"]


class PassthroughEncoder(BinaryEncoder):
    """Takes columns of 0 and 1 as they are, and nothing else: ``OptimalTreeClassifier(encoder=None)``."""

    missing = "error"
    exact_ = True

    def _kind(self, values: NDArray[Any], name: str) -> Kind:
        return "boolean"

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            _check_binary(column.values, column.name)
            yield Condition(column.index, "is_true")

    def _check_known(self, table: Table, columns: Sequence[NDArray[Any]]) -> None:
        for index, values in enumerate(columns):
            if self.kinds_[index] != "ignored":
                _check_binary(values, table.name(index))


def _check_binary(values: NDArray[Any], name: str) -> None:
    bad = ~((values == 0) | (values == 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"X must hold only 0 and 1 when encoder is None, but column {name!r}, row {row} holds {values[row]:g}"
        )
