"""Tables with everything in them, and ways to cut them into pieces."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accel_oct import Frontier
from accel_oct.data import BinaryDataset

FEATURES = ["age", "income", "city", "member", "since"]


def mixed_table(n_rows: int, seed: int = 0, *, missing: bool = True) -> pd.DataFrame:
    """Numbers with ties, floats and text with gaps, booleans, dates, two kinds of weights, a group and a target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 40, n_rows),
            "income": rng.lognormal(10, 1, n_rows).round(-2),
            "city": rng.choice(["Bonn", "Linz", "Oslo", "Ulm"], n_rows, p=[0.5, 0.3, 0.15, 0.05]),
            "member": rng.random(n_rows) < 0.4,
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n_rows).astype("m8[D]"),
            "sex": rng.choice(["f", "m"], n_rows),
            "times": rng.integers(0, 4, n_rows),
            "share": rng.random(n_rows).round(3),
        }
    )
    answer = (table["age"] > 27) ^ (table["city"] == "Linz") ^ ((table["sex"] == "m") & (rng.random(n_rows) < 0.4))
    table["answer"] = np.where(answer ^ (rng.random(n_rows) < 0.1), "yes", "no")
    if missing:
        table.loc[rng.random(n_rows) < 0.1, "income"] = np.nan
        table.loc[rng.random(n_rows) < 0.1, "city"] = None
    return table


def cut(table: pd.DataFrame, n_pieces: int) -> list[pd.DataFrame]:
    """Pieces of about the same size."""
    edges = np.linspace(0, len(table), n_pieces + 1).astype(int)
    return [table.iloc[start:stop] for start, stop in pairwise(edges)]


def parquet_folder(folder: Path, pieces: list[pd.DataFrame]) -> Path:
    """The pieces as files, numbered."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, piece in enumerate(pieces):
        piece.to_parquet(folder / f"part-{place:03}.parquet", index=False)
    return folder


def points(frontier: Frontier) -> list[tuple[int, float, float]]:
    """All that is said of scores."""
    return [(point.max_leaves, point.score, point.bound) for point in frontier]


def same_rows(found: Any, expected: BinaryDataset) -> None:
    """The gathered rows are the merged rows of the data in memory, bit for bit."""
    assert isinstance(found, BinaryDataset)
    one, two = found.merged(), expected.merged()
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert found.grid_bits == expected.grid_bits
    assert found.classes.tolist() == expected.classes.tolist()
