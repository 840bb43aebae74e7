"""Random tables of every kind of column, for the exported forms of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import OneHotCategoryEncoder, QuantileBucketEncoder, TableEncoder

TEXTS = [
    "a",
    "A",
    "a ",
    " a",
    "",
    "it's",
    'say "x"',
    "back\\slash",
    "\\'",
    "<&>",
    "line\nbreak",
    "tab\t",
    "ü",
    "日本",
    "😀",
]
UNSEEN = ["?", "b", "None", "nan", "1", "&amp;"]
NUMBERS = [0.0, -0.0, 1.0, 0.1, 0.1 + 2**-56, 1 / 3, -2.5, 5e-324, 1e300, -1e300, 16777217.0, 16777216.0]
LABELS: list[list[Any]] = [["no", 'y"es\\\n'], [0, 1, 7], [False, True], [-1.0, 2.5e3]]
GRADES = ["low", "mid", "high", "top"]
#: Without whole numbers beyond 2**53, and times of nanoseconds: PMML cannot hold them.
KINDS = ("number", "text", "truth", "day", "time", "zoned", "span", "grade")
ALL_KINDS = (*KINDS, "large", "fine")
_NAMES = {"number": "n <&> \"'", "text": "label", "truth": "", "day": "line\nbreak", "time": "class", "large": "column"}


def random_table(rng: np.random.Generator, kinds: tuple[str, ...], n_rows: int, *, new: bool) -> pd.DataFrame:
    """A table with hostile names; `new` rows also have values beyond those of others."""
    columns = {_NAMES.get(kind, kind): _column(rng, kind, n_rows, new) for kind in kinds}
    return pd.DataFrame(columns)


def _column(rng: np.random.Generator, kind: str, n_rows: int, new: bool) -> Any:
    holes = rng.random(n_rows) < 0.15
    if kind == "number":
        cells = np.concatenate([rng.choice(NUMBERS, n_rows - n_rows // 2), np.round(rng.normal(size=n_rows // 2), 1)])
        cells = np.nextafter(cells, rng.choice([-np.inf, np.inf], n_rows)) if new else cells
        return pd.Series(cells).mask(holes)
    if kind == "text":
        pool = np.array([*TEXTS, *(UNSEEN if new else [])], dtype=object)
        return pd.Series(rng.choice(pool, n_rows), dtype=object).mask(holes, None)
    if kind == "truth":
        return pd.Series(rng.random(n_rows) < 0.5, dtype=object).mask(holes, None)
    if kind == "grade":
        return pd.Series(pd.Categorical(rng.choice(GRADES, n_rows), GRADES, ordered=True)).mask(holes)
    if kind == "large":
        return pd.Series(2**60 + rng.integers(-4, 5, n_rows), dtype="Int64").mask(holes)
    counts = rng.integers(-30, 30, n_rows)
    if kind == "span":
        return pd.Series((counts * 12_345_678).astype("m8[us]")).mask(holes)
    if kind == "day":
        return pd.Series((np.datetime64("1970-01-03") + counts).astype("M8[s]")).mask(holes)
    if kind == "fine":
        return pd.Series(np.datetime64("2021-03-04T05:06:07.123456789") + counts).mask(holes)
    times = pd.Series(np.datetime64("2021-03-28T00:59:59.5", "us") + counts * 700_000).mask(holes)
    return times if kind == "time" else times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")


def random_model(seed: int, kinds: tuple[str, ...] = KINDS) -> tuple[OptimalTreeClassifier, list[pd.DataFrame]]:
    """A tree of a random table, and the rows to try: those of the table and new ones."""
    rng = np.random.default_rng(seed)
    chosen = tuple(rng.choice(np.array(kinds), rng.integers(1, 4), replace=False).tolist())
    frame = random_table(rng, chosen, 40, new=False)
    labels = LABELS[rng.integers(len(LABELS))]
    y = np.array(labels, dtype=object)[rng.integers(0, len(labels), 40)].tolist()
    few = TableEncoder(categorical=OneHotCategoryEncoder(4))  # all other categories are infrequent
    encoder: Any = ["auto", TableEncoder(), TableEncoder(QuantileBucketEncoder(4)), few][rng.integers(4)]
    weights = {label: float(rng.integers(1, 6)) for label in set(y)}  # leaves that are against the majority
    model = OptimalTreeClassifier(3, 0.0, encoder=encoder, class_weight=weights).fit(frame, y)
    return model, [frame, random_table(rng, chosen, 40, new=True)]
