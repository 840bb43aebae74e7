"""Collections of dask that were made from one frame belong together row by row, in whatever way they were made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from helpers.pieces_support import cut, parquet_folder

from accel_oct import OptimalTreeClassifier, frontier, gather
from accel_oct.encoding import AutoEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.sources import _joined

N_PIECES = 20


def numbers(n_rows: int = 600) -> pd.DataFrame:
    """Floats and whole numbers, a group of text, weights, and classes that follow from two columns."""
    rng = np.random.default_rng(11)
    table = pd.DataFrame({f"c{j}": rng.integers(0, 9, n_rows) / 4 for j in range(4)})
    table["city"] = rng.choice(["Bonn", "Linz", "Oslo"], n_rows)
    table["w"] = rng.integers(1, 4, n_rows)
    noise = rng.random(n_rows) < 0.1
    table["target"] = np.where((table["c0"] > 1) ^ (table["city"] == "Linz") ^ noise, "yes", "no")
    return table


TABLE = numbers()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parquet_folder(tmp_path_factory.mktemp("dask"), cut(TABLE, N_PIECES))


def popped(df: Any) -> tuple[Any, ...]:
    df = df.copy()
    y = df.pop("target")
    return df, y


def assigned(df: Any) -> tuple[Any, ...]:
    df = df.assign(ratio=df["c0"] / (df["c1"] + 1))
    return df.drop(columns=["target", "w"]), df["target"], df["w"]


def filtered(df: Any) -> tuple[Any, ...]:
    df = df[df["c2"] > 0.5]
    return df.drop(columns="target"), df["target"]


def split(df: Any) -> tuple[Any, ...]:
    train, _ = df.random_split([0.8, 0.2], random_state=3)
    return train.drop(columns="target"), train["target"]


def split_without_a_seed(df: Any) -> tuple[Any, ...]:
    train, _ = df.random_split([0.8, 0.2])
    return train.drop(columns=["target", "w"]), train["target"], train["w"]


CODES = {"yes": 1, "no": 0}
NUMERIC = ["c0", "c1", "c2", "c3"]

#: X, y and perhaps weights from one frame.
WAYS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "drop": lambda df: (df.drop(columns="target"), df["target"]),
    "drop and weights": lambda df: (df.drop(columns=["target", "w"]), df["target"], df["w"]),
    "columns": lambda df: (df[["c0", "city"]], df.target),
    "pop": popped,
    "assign": assigned,
    "filtered": filtered,
    "filtered one by one": lambda df: (df[df["c2"] > 0.5][["c0", "c1"]], df["target"][df["c2"] > 0.5]),
    "random_split": split,
    "random_split without a seed": split_without_a_seed,
    "computed target": lambda df: (df[["c1", "c2", "city"]], df["c0"] + df["c3"] > 2),
    "mapped target": lambda df: (
        df[NUMERIC],
        df["target"].map({"yes": 1, "no": 0}, meta=("target", "i8")),
        df["w"] * 2,
    ),
    "a frame of one column": lambda df: (df[["c0", "city"]], df[["target"]]),
    "arrays": lambda df: (df[NUMERIC].to_dask_array(), df["target"].to_dask_array()),
    "arrays and weights": lambda df: (df[NUMERIC].to_dask_array(), df["target"].to_dask_array(), df["w"].values),
    "an array and a series": lambda df: (df[[*NUMERIC, "w"]].to_dask_array(), df["target"]),
    "a frame and an array": lambda df: (df.drop(columns="target"), df["target"].to_dask_array()),
    "an array of one column": lambda df: (df[NUMERIC].to_dask_array(), df[["target"]].to_dask_array()),
    "other partitions": lambda df: (df.repartition(npartitions=3)[NUMERIC], df.repartition(npartitions=7)["target"]),
    "dropna": lambda df: (df.dropna().drop(columns="target"), df.dropna()["target"]),
    "persisted": lambda df: (df.persist().drop(columns="target"), df["target"]),
    "some partitions": lambda df: (df.partitions[:7][["c0", "city"]], df.partitions[:7]["target"]),
    "concatenated": lambda df: (dd.concat([df, df])[["c0", "city"]], dd.concat([df, df])["target"]),
}


@pytest.mark.daily(4)
@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
@pytest.mark.parametrize("way", WAYS)
def test_collections_of_one_frame_are_the_rows_in_memory(way: str, folder: Path) -> None:
    """Fits on X, y and weights of dask equal those on the same rows in memory: objective, bound, splits, answers."""
    collections = WAYS[way](dd.read_parquet(folder))
    X, y, *weights = dask.compute(*collections)
    one, two = (OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, encoder=AutoEncoder(2)) for _ in range(2))
    one.fit(X, np.ravel(y), *weights)
    two.fit(*collections)
    assert (two.objective_, two.bound_, two.status_) == (one.objective_, one.bound_, "optimal")
    assert one.get_n_leaves() > 1
    assert two.encoder_.conditions_ == one.encoder_.conditions_
    assert two.classes_.tolist() == one.classes_.tolist()
    assert two.n_features_in_ == one.n_features_in_
    assert two.predict(X).tolist() == one.predict(X).tolist()


def test_collections_of_two_reads(folder: Path) -> None:
    """dask would fuse the small reads of the one in another way than those of the other, also in one expression."""
    X, y = dd.read_parquet(folder, columns=["c0", "city"]), dd.read_parquet(folder, columns="target")
    one = OptimalTreeClassifier(max_depth=2).fit(TABLE[["c0", "city"]], TABLE["target"])
    two = OptimalTreeClassifier(max_depth=2).fit(X, y)
    assert (two.objective_, two.bound_, two.status_) == (one.objective_, one.bound_, "optimal")


def test_only_the_columns_in_use_are_read(folder: Path) -> None:
    """What is joined is still simplified: projections reach the reads, which X and y share."""
    df = dd.read_parquet(folder)
    expression = _joined(df[["c0"]], df["target"]).expr
    reads = {each._name: list(each.columns) for each in expression.walk() if "ReadParquet" in type(each).__name__}
    assert list(reads.values()) == [["c0", "target"]]


def test_frontiers_take_them_too(folder: Path) -> None:
    """Binary columns of dask, and the target beside them."""
    df = dd.read_parquet(folder)
    X, y = (df[NUMERIC] > 1).astype(int), df["target"]
    found = frontier(X, y, max_depth=2)
    expected = frontier((TABLE[NUMERIC] > 1).astype(int), TABLE["target"], max_depth=2)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_rows_that_do_not_belong_together(folder: Path) -> None:
    """A sentence that names the argument."""
    df = dd.read_parquet(folder)
    for y, words in (
        (df[df["c0"] > 1]["target"], r"^partition \d+ has 30 rows, but y has the shape \(\d+,\) there$"),
        (df.partitions[:9]["target"], "^y has 270 rows, but X has 600$"),
        (df[["target", "c0"]], "^y must be the name of a column, or a dask Series or array as X is of dask, got"),
        (df["c0"].sum(), "^y must be the name of a column"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            gather(df.drop(columns="target"), y)
    with pytest.raises(InvalidInputError, match=r"^sample_weight in partition \d+ must be finite and not negative"):
        gather(df.drop(columns="target"), df["target"], sample_weight=df["c0"] - 9)
    with pytest.raises(InvalidInputError, match=r"^target: y has missing values"):
        gather(df[["c0"]], df["target"].where(df["c0"] > 0))
    with pytest.raises(InvalidInputError, match=r"^sample_weight must be the name of a column"):
        gather(df[["c0"]], df["target"], sample_weight=np.ones(600))


def test_arrays_of_other_chunks() -> None:
    """Chunks of known sizes are cut alike without a look at the rows."""
    X, y = (np.arange(24).reshape(12, 2) % 5, np.arange(12) % 5 > 2)
    found = gather(da.from_array(X, chunks=(4, 1)), da.from_array(y, chunks=5), depth=1)
    expected = gather([pd.DataFrame(X, columns=["x0", "x1"]).assign(y=y)], "y", depth=1)
    np.testing.assert_array_equal(found.data.X, expected.data.X)
    np.testing.assert_array_equal(found.data.y, expected.data.y)
