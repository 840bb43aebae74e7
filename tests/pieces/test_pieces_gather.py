"""Data in pieces give what the same data give in memory, whatever holds them and however they are cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from helpers.pieces_support import FEATURES, cut, mixed_table, parquet_folder, points, same_rows
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import KBinsDiscretizer

from accel_oct import EncodedTable, frontier, gather, solve
from accel_oct.constraints import MinLeafWeight, StatisticalParity
from accel_oct.data import BinaryDataset, Tally
from accel_oct.encoding import (
    AllThresholdsEncoder,
    AutoEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)

TABLE = mixed_table(400, seed=3)


def in_memory(table: pd.DataFrame, encoder: Any, features: list[str], weight: str | None = None) -> BinaryDataset:
    """The data set of all rows, and the encoder fitted on them."""
    weights = None if weight is None else table[weight]
    encoder.fit(table[features], table["answer"], **({} if weights is None else {"sample_weight": weights}))
    X = encoder.transform(table[features]) if encoder.conditions_ else np.zeros((len(table), 1))
    return BinaryDataset.from_arrays(X, table["answer"], weights)


# ---------------------------------------------------------------- sources


def _relation(folder: Path) -> Any:
    return duckdb.sql(f"select * from read_parquet('{folder}/*.parquet')")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "folder": lambda folder: folder,
    "text": str,
    "files": lambda folder: sorted(folder.glob("*.parquet")),
    "dataset": lambda folder: ds.dataset(folder),
    "filtered": lambda folder: ds.dataset(folder).filter(ds.field("age") >= 0),
    "feather": lambda folder: _feather(folder),
    "in memory": lambda folder: ds.dataset(pa.Table.from_pandas(TABLE, preserve_index=False)),
    "relation": _relation,
    "dask": lambda folder: dd.from_pandas(TABLE, npartitions=7),
    "dask of files": lambda folder: dd.read_parquet(folder),
    "pandas": lambda folder: cut(TABLE, 7),
    "polars": lambda folder: [pl.from_pandas(piece) for piece in cut(TABLE, 7)],
    "arrow": lambda folder: [pa.Table.from_pandas(piece, preserve_index=False) for piece in cut(TABLE, 7)],
    "callable": lambda folder: lambda: iter(cut(TABLE, 7)),
}


def _feather(folder: Path) -> Any:
    other = folder.parent / "feather"
    ds.write_dataset(pa.Table.from_pandas(TABLE, preserve_index=False), other, format="feather")
    return ds.dataset(other, format="feather")


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_rows_in_memory(kind: str, tmp_path: Path) -> None:
    """Conditions, distinct rows with weights, groups, and the whole frontier are those of the table."""
    source = SOURCES[kind](parquet_folder(tmp_path / "data", cut(TABLE, 7)))
    encoder = TableEncoder()
    expected = in_memory(TABLE, encoder, FEATURES, "times")
    found = gather(
        source,
        "answer",
        features=FEATURES,
        sensitive_features="sex",
        sample_weight="times",
        encoder=TableEncoder(),
        batch_rows=40,
    )
    assert found.encoder.conditions_ == encoder.conditions_
    assert found.encoder.kinds_ == encoder.kinds_ and found.encoder.scales_ == encoder.scales_
    assert found.n_rows == len(TABLE)
    same_rows(found.data, expected)
    assert points(frontier(found.data, max_depth=2)) == points(frontier(expected, max_depth=2))
    assert isinstance(found.data, BinaryDataset)
    weight = {sex: float(found.data.weights[found.data.row_values["sex"] == sex].sum()) for sex in ("f", "m")}
    assert weight == TABLE.groupby("sex")["times"].sum().astype(float).to_dict()


def test_dask_arrays_have_their_target_beside_them() -> None:
    """Chunks of columns are put together, those of y are cut as X is, and columns have no names."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)).round(1), rng.integers(0, 3, 90)
    encoder = QuantileThresholdEncoder(4)
    expected = BinaryDataset.from_arrays(encoder.fit_transform(X), y)
    found = gather(
        da.from_array(X, chunks=(20, 3)), da.from_array(y, chunks=50), encoder=QuantileThresholdEncoder(4), keep="rows"
    )
    same_rows(found.data, expected)
    assert not hasattr(found.encoder, "feature_names_in_")
    np.testing.assert_array_equal(found.encoder.transform(X), encoder.transform(X))


def test_a_dask_frame_with_its_target_beside_it() -> None:
    """A Series of the same partitions."""
    frame = dd.from_pandas(TABLE, npartitions=3)
    found = gather(frame[FEATURES], frame["answer"], encoder=TableEncoder())
    same_rows(found.data, in_memory(TABLE, TableEncoder(), FEATURES))


def test_folders_may_say_what_their_files_hold(tmp_path: Path) -> None:
    """Columns in the names of folders (``year=2024``) are columns, numbers where all are."""
    table = TABLE.assign(year=np.where(TABLE["age"] > 25, 2024, 2025), part=np.where(TABLE["member"], "a", "b%c"))
    for (year, part), rows in table.groupby(["year", "part"]):
        name = str(part).replace("%", "%25")
        folder = tmp_path / f"year={year}" / f"part={name}"
        parquet_folder(folder, [rows.drop(columns=["year", "part"])])
    features = [*FEATURES, "year", "part"]
    encoder = TableEncoder()
    expected = in_memory(table, encoder, features)
    for source in (tmp_path, ds.dataset(tmp_path, partitioning="hive")):
        found = gather(source, "answer", features=features, encoder=TableEncoder())
        assert found.encoder.conditions_ == encoder.conditions_
        same_rows(found.data, expected)


def test_the_index_of_pandas_and_other_files_are_left_alone(tmp_path: Path) -> None:
    """An index that was written with the table is no column; files that are no Parquet are not read."""
    TABLE.iloc[::-1].to_parquet(tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.txt").write_text("not a table")
    found = gather(tmp_path, "answer", encoder=TableEncoder())
    assert "__index_level_0__" not in found.features and found.n_pieces == 1


def test_row_groups_of_a_fragment(tmp_path: Path) -> None:
    """A dataset may hold a part of a file: nothing else of it is read."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pandas(TABLE, preserve_index=False), path, row_group_size=100)
    whole = ds.dataset(path)
    (fragment,) = whole.get_fragments()
    parts = fragment.split_by_row_group()
    some = ds.FileSystemDataset(parts[1:3], whole.schema, whole.format, fragment.filesystem)
    found = gather(some, "answer", features=FEATURES, encoder=TableEncoder())
    assert found.n_rows == 200
    same_rows(found.data, in_memory(TABLE.iloc[100:300], TableEncoder(), FEATURES))


# ---------------------------------------------------------------- encoders, weights, cuts

ENCODERS = [
    (TableEncoder(), FEATURES),
    (TableEncoder(QuantileBucketEncoder(3), OneHotCategoryEncoder(3)), FEATURES),
    (AllThresholdsEncoder(missing="category"), ["age", "income", "since"]),
    (QuantileThresholdEncoder(7, missing="category"), ["age", "income"]),
    (OneHotCategoryEncoder(missing="category"), ["city", "age", "member"]),
    (AutoEncoder(2), FEATURES),
    (AutoEncoder(3, budget=0.0), FEATURES),
    (TreeGuidedThresholdEncoder(5, missing="category"), ["age", "income"]),
]


@given(st.data())
def test_any_cut_in_any_order_gives_the_same(data: st.DataObject) -> None:
    """Ties, gaps, empty pieces, whole and real weights, every encoder: equal to fitting on all rows at once."""
    table = mixed_table(data.draw(st.integers(2, 60)), data.draw(st.integers(0, 1000)))
    encoder, features = data.draw(st.sampled_from(ENCODERS))
    weight = data.draw(st.sampled_from([None, "times", "share"]))
    if weight is not None and not table[weight].any():
        table.loc[0, weight] = 1
    places = data.draw(st.lists(st.integers(0, 4), min_size=len(table), max_size=len(table)))
    pieces = [table[np.array(places) == place] for place in data.draw(st.permutations(range(5)))]
    reference = type(encoder)(**encoder.get_params(deep=False))
    if weight == "share" and isinstance(encoder, AutoEncoder | TreeGuidedThresholdEncoder):
        table = pd.concat(pieces)  # sums of real weights are rounded, which decides between equally good splits of CART
    expected = in_memory(table, reference, features, weight)
    found = gather(pieces, "answer", features=features, sample_weight=weight, encoder=encoder, batch_rows=7)
    assert found.encoder.conditions_ == reference.conditions_
    assert found.encoder.inexact_ == reference.inexact_ and found.encoder.exact_ == reference.exact_
    same_rows(found.data, expected)
    np.testing.assert_array_equal(found.encoder.transform(table[features]), reference.transform(table[features]))


def test_transformers_of_others_see_frames() -> None:
    """An encoder of scikit-learn is fitted on the rows and applied to each piece."""
    table = mixed_table(200, missing=False)
    features = ["age", "income"]
    bins = KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform")
    expected = BinaryDataset.from_arrays(bins.fit_transform(table[features]), table["answer"])
    found = gather(cut(table, 4), "answer", features=features, encoder=KBinsDiscretizer(**bins.get_params()))
    same_rows(found.data, expected)


def test_a_fitted_encoder_is_taken_as_it_is() -> None:
    """What was learnt on other rows stays, and categories that it does not know are none of those it knows."""
    encoder = TableEncoder().fit(TABLE[FEATURES].iloc[:50])
    conditions = encoder.conditions_
    other = TABLE.assign(city=TABLE["city"].replace("Ulm", "Graz"))
    found = gather(cut(other, 3), "answer", features=FEATURES, encoder=encoder)
    assert found.encoder.conditions_ == conditions
    same_rows(found.data, BinaryDataset.from_arrays(encoder.transform(other[FEATURES]), other["answer"]))


def test_pieces_need_not_agree_on_what_is_missing() -> None:
    """A piece without a known value, and whole numbers that are floats beside a gap, are of the column's type."""
    table = pd.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": ["x", "y", None, None, "x", "y"], "y": [0, 1, 0, 1, 1, 0]})
    gap = table.iloc[2:4].assign(a=[np.nan, 4.0])
    whole = pd.concat([table.iloc[:2], gap, table.iloc[4:]])
    encoder = TableEncoder()
    encoder.fit(whole[["a", "b"]])
    found = gather([table.iloc[:2], gap, table.iloc[4:]], "y", encoder=TableEncoder())
    assert found.encoder.conditions_ == encoder.conditions_
    same_rows(found.data, BinaryDataset.from_arrays(encoder.transform(whole[["a", "b"]]), whole["y"]))


# ---------------------------------------------------------------- tallies


@pytest.mark.parametrize("weight", [None, "times", "share"])
def test_counts_are_the_tally_of_all_rows(weight: str | None) -> None:
    """Kept as counts: the same number for every set of columns, class and group, and the same frontier."""
    table = mixed_table(150, seed=5)
    expected = in_memory(table, TableEncoder(QuantileThresholdEncoder(3)), FEATURES, weight)
    found = gather(
        cut(table, 4),
        "answer",
        features=FEATURES,
        sensitive_features="sex",
        sample_weight=weight,
        encoder=TableEncoder(QuantileThresholdEncoder(3)),
        depth=2,
        keep="counts",
        batch_rows=16,
    )
    tally = found.data
    assert isinstance(tally, Tally) and tally.group_name == "sex" and tally.n_rows == len(table)
    assert tally.classes.tolist() == ["no", "yes"] and tally.group_labels.tolist() == ["f", "m"]
    once = Tally.of(
        expected.X,
        table["answer"],
        depth=2,
        sample_weight=np.rint(expected.weights * 2.0**-tally.unit),
        sensitive_features=table["sex"],
    )
    for one, two in zip(tally.counts, once.counts, strict=True):
        np.testing.assert_array_equal(one, two)
    assert points(frontier(tally, max_depth=2)) == points(frontier(expected, max_depth=2))


def test_the_smaller_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows while they are few, a tally once they are many: decided by the whole, not by which piece came first."""
    monkeypatch.setattr("accel_oct.pieces.reducing._ALLOWANCE", 0)
    rng = np.random.default_rng(0)
    X = rng.random((400, 6)) < 0.5
    table = pd.DataFrame(X, columns=list("abcdef")).assign(y=rng.integers(0, 2, 400))
    # 128 distinct rows of 32 bytes are more than 2 x 57 counts of 8; 12 rows are less.
    assert isinstance(gather(cut(table, 5), "y", encoder=None, depth=4).data, Tally)
    few = table.assign(**{name: table["a"] & table["b"] for name in "cdef"}, y=table["a"])
    assert isinstance(gather(cut(few, 5), "y", encoder=None, depth=4).data, BinaryDataset)
    assert isinstance(gather(cut(table, 5), "y", encoder=None, depth=4, keep="rows").data, BinaryDataset)
    order = [gather(pieces, "y", encoder=None).data for pieces in (cut(table, 5), cut(table, 5)[::-1], [table])]
    for tally in order[1:]:
        for one, two in zip(order[0].counts, tally.counts, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("turn", [1, -1])
def test_rows_from_before_the_tally_count_too(monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    """Some pieces have few distinct rows and others many, in either order: the tally is that of all rows."""
    monkeypatch.setattr("accel_oct.pieces.reducing._ALLOWANCE", 0)
    X = np.random.default_rng(1).random((300, 6)) < 0.5
    table = pd.DataFrame(np.concatenate([np.tile(X[:2], (20, 1)), X]), columns=list("abcdef"))
    table["y"] = (table["a"] ^ table["c"]).astype(int)
    tally = gather([table.iloc[:40], table.iloc[40:]][::turn], "y", encoder=None, depth=2).data
    assert isinstance(tally, Tally)
    expected = Tally.of(table[list("abcdef")], table["y"], depth=2)
    for one, two in zip(tally.counts, expected.counts, strict=True):
        np.testing.assert_array_equal(one, two)


def test_exact_only_where_every_value_was_seen() -> None:
    """All splits of a sample, or of rounded values, are not all splits of the table."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 300, 2000), "b": rng.integers(0, 3, 2000)})
    table["y"] = (table["a"] > 150).astype(int)
    exact = {
        name: gather([table], "y", depth=2, **options).encoder.exact_
        for name, options in {
            "all": {},
            "sample": {"sample_rows": 60},
            "thresholds": {"encoder": AllThresholdsEncoder()},
            "rounded": {"encoder": AllThresholdsEncoder(), "max_distinct": 64},
        }.items()
    }
    assert exact == {"all": True, "sample": False, "thresholds": True, "rounded": False}


# ---------------------------------------------------------------- in the place of X


def test_frontier_and_solve_take_the_source_itself(tmp_path: Path) -> None:
    """Binary columns in pieces, with the names of target, weights and groups."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.random((300, 6)) < 0.4, columns=[f"b{j}" for j in range(6)])
    table = X.assign(w=rng.integers(1, 3, 300), y=X["b1"] ^ X["b3"] ^ (rng.random(300) < 0.2))
    folder = parquet_folder(tmp_path, cut(table, 3))
    plain = X.assign(y=table["y"])
    assert points(frontier(dd.from_pandas(plain, npartitions=3), "y", max_depth=3)) == points(
        frontier(X, table["y"], max_depth=3)
    )
    rules = [StatisticalParity("b0", at_most=0.05), MinLeafWeight(samples=20)]
    whole = BinaryDataset.from_arrays(X, table["y"], table["w"])
    expected = solve(whole, max_depth=2, leaf_penalty=0.001, constraints=rules)
    found = solve(folder, "y", sample_weight="w", max_depth=2, leaf_penalty=0.001, constraints=rules)
    assert (found.objective, found.bound, found.status) == (expected.objective, expected.bound, "optimal")
    gathered = gather(folder, "y", sample_weight="w", encoder=None)
    assert isinstance(gathered, EncodedTable)
    assert points(frontier(gathered, max_depth=2)) == points(frontier(whole, max_depth=2))
