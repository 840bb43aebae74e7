"""Random small tables of raw values, and optimal trees over all their splits by exhaustive search over sets of rows.

Nothing here uses the library.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA or value != value


def column_splits(values: list[Any], ordered: bool) -> Iterator[frozenset[int]]:
    """One side of every split of a column: thresholds or single categories, missing values on either side."""
    absent = frozenset(row for row, value in enumerate(values) if is_missing(value))
    known = sorted({value for value in values if not is_missing(value)})
    sides = []
    for value in known:
        sides.append([r for r, v in enumerate(values) if r not in absent and (v >= value if ordered else v == value)])
    for side in [*map(frozenset, sides), frozenset()]:
        yield side
        yield side | absent


def best_value(
    splits: list[tuple[int, frozenset[int]]],
    gains: np.ndarray,
    price: float,
    depth: int,
    *,
    counts: np.ndarray | None = None,
    least: float = 0.0,
    most_leaves: int | None = None,
    apart: frozenset[frozenset[int]] = frozenset(),
) -> float:
    """Score minus price per leaf of the best tree, by trying all of them; splits are (column, rows on one side)."""
    counts = np.ones(len(gains)) if counts is None else counts

    @cache
    def best(rows: frozenset[int], depth: int, room: int | None, path: frozenset[int]) -> float:
        inside = sorted(rows)
        if counts[inside].sum() < least:
            return -math.inf
        found = float(gains[inside].sum(axis=0).max()) - price
        if depth == 0 or room == 1:
            return found
        for column, side in splits:
            if any(frozenset((column, other)) in apart for other in path):
                continue
            one, two = rows & side, rows - side
            if not one or not two:
                continue
            below = path | {column} if apart else path
            for own in [None] if room is None else range(1, room):
                rest = None if room is None or own is None else room - own
                found = max(found, best(one, depth - 1, own, below) + best(two, depth - 1, rest, below))
        return found

    return best(frozenset(range(len(gains))), depth, most_leaves, frozenset())


# ---------------------------------------------------------------- random tables

COLUMNS = ("number", "few", "large", "date", "duration", "category", "ordered", "boolean", "zero_one", "constant")
DAYS = [pd.Timestamp(day) for day in ("2024-02-28", "2024-03-01", "2025-01-01", "2031-12-31 23:59:59")]
CATEGORIES = ["c", "c\0", "", "\0"]
GRADES = ["low", "mid", "high", "top"]


def random_column(kind: str, n: int, rng: np.random.Generator, gaps: bool) -> tuple[Any, list[Any], bool]:
    """A pandas column of a kind, its values for the oracle, and whether they have an order."""
    codes = rng.integers(0, 4, n)
    rows: list[Any]
    if kind == "number":
        base = rng.normal(size=max(1, n // 2))
        rows = rng.choice(np.r_[base, np.nextafter(base, np.inf)], n).tolist()
    elif kind == "few":
        rows = rng.choice([-1.5, 0.0, 2.0, 1e300], n).tolist()
    elif kind == "large":
        rows = [2**60 + int(code) for code in codes]
    elif kind == "date":
        rows = [DAYS[code] for code in codes]
    elif kind == "duration":
        rows = [dt.timedelta(minutes=int(code) * 7) for code in codes]
    elif kind == "ordered":
        rows = codes.tolist()
    elif kind == "category":
        rows = [CATEGORIES[code] for code in codes]
    elif kind == "boolean":
        rows = (codes > 1).tolist()
    elif kind == "zero_one":
        rows = (codes > 1).astype(float).tolist()
    else:
        rows = [3.5] * n
    if gaps:
        rows = [None if rng.random() < 0.3 else value for value in rows]
    ordered = kind not in ("category",)
    if kind == "ordered":
        texts = [None if row is None else GRADES[row] for row in rows]
        return pd.Categorical(texts, GRADES, ordered=True), rows, ordered
    dtype = {"large": object, "boolean": object, "category": object}.get(kind)
    return pd.Series(rows, dtype=dtype), rows, ordered


def random_table(rng: np.random.Generator, n: int, n_columns: int) -> tuple[pd.DataFrame, list[tuple[int, Any]]]:
    """A table, and all its splits."""
    kinds = rng.choice(COLUMNS, n_columns)
    frame, splits = {}, []
    for place, kind in enumerate(kinds.tolist()):
        series, values, ordered = random_column(kind, n, rng, gaps=bool(rng.random() < 0.4))
        frame[f"{kind}{place}"] = series
        splits += [(place, side) for side in set(column_splits(values, ordered))]
    table = pd.DataFrame(frame)
    if n_columns > 1 and rng.random() < 0.2:
        table[table.columns[1]] = table[table.columns[0]]
        splits = [s for s in splits if s[0] != 1] + [(1, side) for place, side in splits if place == 0]
    return table, splits
