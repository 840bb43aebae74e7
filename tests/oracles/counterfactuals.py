"""Smallest changes of a row by trying every combination of values, with the model's own `predict` as the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd


def smallest_change(
    model: Any,
    row: pd.DataFrame,
    choices: Mapping[str, Sequence[Any]],
    distances: Mapping[str, Any],
    wanted: Any = None,
) -> tuple[int, float] | None:
    """Return the least number of changed columns and the least sum of distances of such a change, or None.

    Parameters
    ----------
    model : fitted classifier
    row : data frame with one row
    choices : for each column that may change, the values to try
    distances : for each column, a function of an old and a new value
    wanted : class to reach; any other than the predicted one by default
    """
    now = model.predict(row)[0]
    if now == wanted:
        return None
    names = list(choices)
    old = {name: row[name].iloc[0] for name in names}
    combinations = list(product(*([None, *choices[name]] for name in names)))  # None keeps the value
    frame = pd.concat([row] * len(combinations), ignore_index=True)
    for place, name in enumerate(names):
        new = pd.Series([old[name] if c[place] is None else c[place] for c in combinations], dtype=row[name].dtype)
        frame[name] = new
    found = model.predict(frame)
    good = found == wanted if wanted is not None else found != now
    costs = [
        (
            sum(part is not None for part in combination),
            sum(
                distances[name](old[name], part)
                for name, part in zip(names, combination, strict=True)
                if part is not None
            ),
        )
        for combination, reached in zip(combinations, np.asarray(good).tolist(), strict=True)
        if reached
    ]
    return min(costs) if costs else None
