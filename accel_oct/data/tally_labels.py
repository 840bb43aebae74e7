"""Labels of classes and groups that were seen, or that there may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.labels import encode_labels
from accel_oct.errors import InvalidInputError, shown

__all__ = ["label_codes", "united"]

IntArray = NDArray[np.int64]


def label_codes(
    values: Any, n_rows: int, known: Sequence[Any] | None, argument: str, list_argument: str
) -> tuple[NDArray[Any], IntArray]:
    """Sorted labels, and the place of every row's label among them."""
    if known is None:
        if n_rows == 0:
            raise InvalidInputError(f"{list_argument} must be given where there are no rows")
        try:
            return encode_labels(values, n_rows)
        except InvalidInputError as error:
            raise InvalidInputError(str(error).replace("y ", f"{argument} ", 1)) from None
    labels, _ = encode_labels(known, len(known))
    if n_rows == 0:
        return labels, np.zeros(0, dtype=np.int64)
    present, codes = label_codes(values, n_rows, None, argument, list_argument)
    try:
        together = united(labels, present)
    except InvalidInputError:
        together = np.array([])
    if len(together) != len(labels):
        strange = next((label for label in present.tolist() if label not in set(labels.tolist())), None)
        raise InvalidInputError(f"{argument} holds {shown(strange)}, which is not among `{list_argument}`")
    return labels, np.searchsorted(labels, present)[codes]


def united(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """All labels of both, sorted."""
    if first.dtype == second.dtype and first.tolist() == second.tolist():
        return first
    if None in first.tolist() or None in second.tolist():
        raise InvalidInputError("a tally with groups and one without do not add up")
    numbers = [labels.dtype.kind in "biuf" for labels in (first, second)]
    try:
        if numbers[0] != numbers[1]:
            raise TypeError("text and numbers")
        united: NDArray[Any] = np.unique(np.concatenate([first, second]))
    except TypeError:
        raise InvalidInputError(
            f"labels {shown(first.tolist()[0])} and {shown(second.tolist()[0])} have no common order"
        ) from None
    if len(united) != len({*first.tolist(), *second.tolist()}):
        raise InvalidInputError("labels are whole numbers that are too large to be told apart among floats")
    return united
