"""Data that the tests of encoders and classifiers share."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def published_data() -> Path:
    """The folder with the published encodings, or a skip that says how to provide it."""
    given = os.environ.get("ACCEL_OCT_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if not (folder / "raw").is_dir():
        pytest.skip(f"published data not found in {folder}: set ACCEL_OCT_DATA to the folder that has `raw/`")
    return folder


def mixed_frame(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Twenty columns: numbers, strings, booleans, categories, missing values, a constant; and a learnable class."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 1, n).round(2),
            "smoker": rng.random(n) < 0.3,
            "region": rng.choice(["north", "south", "east"], n),
            "plan": rng.choice(np.array(["basic", "gold", None], dtype=object), n),
            "grade": pd.Categorical(rng.choice([1, 2, 3], n)),
            "flag": rng.integers(0, 2, n),
            "constant": np.ones(n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    for j in range(12):
        frame[f"noise {j}"] = rng.normal(size=n)
    high = ((frame["age"] >= 50) & frame["smoker"]) | frame["income"].isna()
    return frame, np.where(high, "high", "low")
