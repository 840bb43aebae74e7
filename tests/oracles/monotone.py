"""Monotone trees by their definition: every point of the space is classified, and neighbours are compared.

Shares no code with the library: conditions on values are Python functions, regions of leaves play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

#: The value of a feature for a value of its column.
Feature = Callable[[Any], bool]


@dataclass(frozen=True)
class Column:
    """A column with the features made from it.

    Attributes
    ----------
    values : sequence
        All values that the features tell apart, each at least once; the first `n_ordered` are increasing.
    features : sequence of functions
    """

    name: str
    values: Sequence[Any]
    n_ordered: int
    features: Sequence[Feature]


def is_monotone(nested: Any, columns: Sequence[Column], place: int, rank: Sequence[int]) -> bool:
    """Whether the rank of the predicted class never falls when the value of the column at `place` grows.

    Features are numbered through the columns.
    """
    feature_of = [(at, feature) for at, column in enumerate(columns) for feature in column.features]
    others = [column.values for at, column in enumerate(columns) if at != place]
    for rest in product(*others):
        before = None
        for value in columns[place].values[: columns[place].n_ordered]:
            point = [*rest[:place], value, *rest[place:]]
            here = nested
            while isinstance(here, tuple):
                at, feature = feature_of[here[0]]
                here = here[2] if feature(point[at]) else here[1]
            if before is not None and rank[here] < before:
                return False
            before = rank[here]
    return True


def has_empty_leaf(nested: Any, X: np.ndarray) -> bool:
    """Whether some leaf holds none of the rows."""
    if not len(X) or not isinstance(nested, tuple):
        return not len(X)
    one = X[:, nested[0]].astype(bool)
    return has_empty_leaf(nested[1], X[~one]) or has_empty_leaf(nested[2], X[one])


def binary_columns(n_features: int) -> list[Column]:
    """Columns of 0 and 1 that are features."""
    return [Column(f"x{j}", (0, 1), 2, (bool,)) for j in range(n_features)]
