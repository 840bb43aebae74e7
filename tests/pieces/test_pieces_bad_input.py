"""What cannot be used of data in pieces is told in one sentence that names it, and nothing is left half done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from helpers.pieces_support import FEATURES, cut, mixed_table, parquet_folder

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, frontier, gather, solve, trade_off
from accel_oct.constraints import StatisticalParity
from accel_oct.encoding import OneHotCategoryEncoder, QuantileThresholdEncoder, TableEncoder
from accel_oct.errors import InvalidInputError

TABLE = mixed_table(60, seed=1)
BINARY = pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 1, 0, 0], "y": ["n", "p", "p", "n"]})


def refused(*given: Any, **options: Any) -> str:
    """What `gather` says; one sentence of one line."""
    with pytest.raises(InvalidInputError) as caught:
        gather(*given, **options)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 400
    return said


# ---------------------------------------------------------------- pieces that differ


def test_a_column_that_a_piece_lacks(tmp_path: Path) -> None:
    """The piece and the column are named, whichever piece it is; pyarrow would fill in nulls."""
    pieces = cut(TABLE, 3)
    pieces[1] = pieces[1].drop(columns="city")
    folder = parquet_folder(tmp_path, pieces)
    for source in (folder, ds.dataset(folder)):
        said = refused(source, "answer", encoder=TableEncoder())
        assert "part-001.parquet has no column 'city'" in said
    assert "piece 1 has no column 'city'" in refused(pieces, "answer", encoder=None)


def test_a_column_that_other_pieces_do_not_have() -> None:
    """One more column is a difference too."""
    pieces = cut(TABLE, 3)
    pieces[2] = pieces[2].assign(extra=1)
    assert "piece 2 has a column 'extra'" in refused(pieces, "answer", encoder=TableEncoder())


@pytest.mark.parametrize("encoder", [TableEncoder(), "auto", None])
def test_a_column_of_another_type(encoder: Any, tmp_path: Path) -> None:
    """Text in one piece and numbers in another: both pieces are named, also where the column is not counted."""
    pieces = cut(TABLE, 3)
    pieces[2] = pieces[2].assign(age=pieces[2]["age"].astype(str))
    said = refused(parquet_folder(tmp_path, pieces), "answer", encoder=encoder)
    assert "column 'age' holds numbers in" in said and "and text in" in said and "part-002.parquet" in said


def test_a_type_that_differs_between_frames() -> None:
    """The same for frames in memory, whose types are known from their values."""
    pieces = cut(TABLE, 2)
    pieces[1] = pieces[1].assign(member="no")
    said = refused(pieces, "answer", encoder=TableEncoder())
    assert said == "pieces have different types: column 'member' holds booleans in piece 0 and text in piece 1"


def test_categories_in_another_order() -> None:
    """An order is part of a column's type."""
    sizes = ["S", "M", "L"]
    pieces = [
        pd.DataFrame({"size": pd.Categorical(sizes, order, ordered=True), "y": [0, 1, 0]})
        for order in (sizes, sizes[::-1])
    ]
    assert "'size' has categories in another order" in refused(pieces, "y", encoder=TableEncoder())


def test_empty_pieces() -> None:
    """They are fine, whatever their types, unless all are empty."""
    empty = TABLE.iloc[:0].astype(object)
    found = gather([empty, TABLE, empty], "answer", encoder=TableEncoder())
    assert found.n_rows == len(TABLE) and found.n_pieces == 3
    assert refused([empty, empty], "answer", encoder=TableEncoder()) == (
        "source has no rows: all of its 2 pieces are empty"
    )
    assert refused(lambda: iter(()), "answer") == "source has no pieces"


# ---------------------------------------------------------------- data that change between the passes


def changing(first: pd.DataFrame, later: pd.DataFrame) -> Any:
    """A source that gives other rows once it has been read (and looked at for its columns)."""
    calls = []

    def frames() -> Iterator[pd.DataFrame]:
        calls.append(None)
        yield first if len(calls) <= 2 else later

    return frames


@pytest.mark.parametrize("encoder", [TableEncoder(), OneHotCategoryEncoder(missing="category"), "auto"])
def test_a_category_unseen_in_the_first_pass(encoder: Any) -> None:
    """The column, the category and the piece are named."""
    table = TABLE[["city", "answer"]]
    said = refused(changing(table, table.replace("Bonn", "Graz")), "answer", encoder=encoder)
    assert "'city'" in said and "'Graz'" in said and "piece 0" in said


def test_other_changes_between_the_passes() -> None:
    """Classes, groups, and the number of rows."""
    other = TABLE.replace({"answer": {"yes": "perhaps"}})
    assert "holds 'perhaps' in piece 0" in refused(changing(TABLE, other), "answer", encoder=TableEncoder())
    other = TABLE.replace({"sex": {"m": "x"}})
    assert "sensitive_features: column 'sex' holds 'x'" in refused(
        changing(TABLE, other), "answer", features=FEATURES, sensitive_features="sex", encoder=TableEncoder()
    )
    said = refused(changing(TABLE, TABLE.iloc[:-1]), "answer", encoder=TableEncoder())
    assert said == "source gave 60 rows in the first pass and 59 in the second: the data have changed"


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("damage", ["cut off", "overwritten", "empty", "no Parquet"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_corrupt_file_is_named(damage: str, place: int, tmp_path: Path) -> None:
    """Whether it is the first or not, and whether its end or its middle is damaged."""
    folder = parquet_folder(tmp_path, cut(mixed_table(4000), 3))
    path = folder / f"part-{place:03}.parquet"
    content = path.read_bytes()
    half = len(content) // 4
    path.write_bytes(
        {
            "cut off": content[: len(content) // 2],
            "overwritten": content[:half] + b"\xff" * half + content[2 * half :],
            "empty": b"",
            "no Parquet": b"age,income\n1,2\n",
        }[damage]
    )
    for source in (folder, ds.dataset([str(each) for each in sorted(folder.iterdir())]) if place else folder):
        said = refused(source, "answer", encoder=TableEncoder())
        assert path.name in said and "cannot be read as Parquet" in said


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    """A folder that is not there, and one without Parquet."""
    assert "there is no file or folder" in refused(tmp_path / "nothing", "y")
    assert "there is no Parquet file" in refused(tmp_path, "y")


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "anwser"}, "target: data frames has no column 'anwser'; did you mean 'answer'?"),
        ({"target": None}, "target must be the name of a column of data frames, got None"),
        ({"target": 3}, "target must be the name of a column, unless source is a collection of dask"),
        ({"features": "age"}, "features must be a list of names of columns, got 'age'"),
        ({"features": ["age", "age"]}, "features names the column 'age' twice"),
        ({"features": ["answer"]}, "features must not hold the column of target, 'answer'"),
        ({"features": []}, "features: data frames has no column to split on"),
        ({"sensitive_features": "answer"}, "sensitive_features must not hold the target"),
        ({"sensitive_features": "sexe"}, "did you mean 'sex'?"),
        ({"sample_weight": "city"}, "sample_weight: column 'city' of piece 0 must hold numbers"),
        ({"sample_weight": "answer"}, "sample_weight and target are the same column"),
        ({"encoder": "all"}, "encoder must be 'auto', None or a transformer, got 'all'"),
        ({"encoder": TableEncoder}, "encoder must be 'auto', None or a transformer"),
        ({"encoder": QuantileThresholdEncoder(1)}, "n_quantiles must be a whole number of at least 2"),
        ({"keep": "all"}, "keep must be 'auto', 'rows' or 'counts', got 'all'"),
        ({"depth": -1}, "depth must be a whole number of at least 0, got -1"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1, got 0"),
        ({"batch_rows": 0}, "batch_rows must be a whole number of at least 1, got 0"),
        ({"client": "tcp://1.2.3.4:5"}, "client must be a Client of dask.distributed or None"),
        ({"encoder": None}, "X must hold only 0 and 1 when encoder is None, but column 'age'"),
        ({"encoder": TableEncoder(), "max_distinct": 3}, "column 'city' has more than 3 distinct values"),
    ],
)
def test_arguments_are_named(options: dict[str, Any], words: str) -> None:
    """A sentence per mistake."""
    assert words in refused(cut(TABLE, 2), **{"target": "answer", **options})


def test_what_is_no_source() -> None:
    """Nothing that could be read piece by piece."""
    assert "source must be a dask DataFrame or array" in refused(3, "y")
    assert "piece 0 is 3" in refused([3, 4], "y")
    assert "not of both" in refused(["a.parquet", TABLE], "y")
    assert "two-dimensional" in refused(da.zeros(4, chunks=2), da.zeros(4, chunks=2))
    frame = dd.from_pandas(TABLE, npartitions=2)
    short = dd.from_pandas(TABLE, npartitions=3).partitions[:2]["answer"]
    assert "y has 40 rows, but X has 60" in refused(frame.repartition(npartitions=4), short)


def test_targets_and_weights_that_cannot_be_used() -> None:
    """Missing classes, and weights that are negative or all zero."""
    assert "target: column 'city' has missing values" in refused(cut(TABLE, 2), "city", encoder=TableEncoder())
    bad = TABLE.assign(times=np.where(np.arange(60) == 50, -1, 1))
    said = refused(cut(bad, 2), "answer", sample_weight="times", encoder=TableEncoder())
    assert said == "sample_weight: column 'times' of piece 1 must be finite and not negative, but holds -1.0"
    zero = TABLE.assign(times=0)
    assert "sample_weight is zero" in refused(cut(zero, 2), "answer", sample_weight="times", encoder=TableEncoder())


def test_an_encoder_of_other_columns() -> None:
    """A fitted encoder must have seen these features."""
    encoder = TableEncoder().fit(TABLE[["age", "city"]])
    said = refused(cut(TABLE, 2), "answer", features=["city", "age"], encoder=encoder)
    assert said.startswith("encoder was fitted on other columns than the features")


def test_counts_from_other_data_and_of_too_small_a_depth() -> None:
    """Tallies of different encodings do not add up, and deep trees need deep tallies."""
    one, two = (
        gather([BINARY], "y", encoder=encoder, features=["a", "b"], depth=2, keep="counts").data
        for encoder in (None, TableEncoder())
    )
    with pytest.raises(InvalidInputError, match="do not add up"):
        one + two  # type: ignore[operator]
    with pytest.raises(InvalidInputError, match="max_depth: the tally was made for trees of depth 2"):
        frontier(one, max_depth=3)


# ---------------------------------------------------------------- in the place of X


def test_what_fit_and_solve_say(tmp_path: Path) -> None:
    """Names of columns take the place of arrays, and what needs rows in memory says so."""
    folder = parquet_folder(tmp_path, cut(TABLE, 2))
    model = OptimalTreeClassifier(max_depth=1)
    for call, words in (
        (lambda: model.fit(folder, None), "y is None"),
        (lambda: model.fit(folder, TABLE["answer"]), "target must be the name of a column"),
        (lambda: model.fit(folder, "answer", sample_weight=np.ones(60)), "sample_weight must be the name of a column"),
        (lambda: model.fit(folder, "answer", costs=np.ones((60, 2))), "costs= needs the rows in memory"),
        (lambda: model.fit(folder, "answer", sensitive_features=TABLE["sex"]), "sensitive_features must name columns"),
        (lambda: OptimalTreeClassifierCV().fit(folder, "answer"), "cross-validation needs the rows in memory"),
        (lambda: solve(folder, None, max_depth=1, leaf_penalty=0), "y must be the name of the column"),
        (
            lambda: frontier(gather([BINARY], "y", encoder=None), [1], max_depth=1),
            "y must be None when X is",
        ),
        (lambda: model.set_params(exclude=["towns"]).fit(folder, "answer"), "exclude: X has no column 'towns'"),
        (
            lambda: trade_off(
                OptimalTreeClassifier(max_depth=1, constraints=[StatisticalParity("sex", at_most=1)]),
                folder,
                "answer",
                limits=[1, 0.1],
                cv=2,
            ),
            "cross-validation needs the rows in memory",
        ),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()
        assert not hasattr(model, "tree_")


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize("encoder", ["auto", TableEncoder(), None])
def test_a_target_that_is_missing_somewhere(encoder: Any) -> None:
    """It is told before any encoder learns from the target, also where whole numbers have gaps."""
    pieces = cut(BINARY.assign(y=pd.array([1, 0, None, 1], dtype="Int64")), 2)
    assert refused(pieces, "y", encoder=encoder) == "target: column 'y' has missing values"


@pytest.mark.parametrize("encoder", ["auto", None])
def test_amounts_are_no_classes(encoder: Any, tmp_path: Path) -> None:
    """A classifier refuses a target of real numbers, as it does in memory, before anybody tries to learn them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 2, 3000), "y": rng.random(3000)})
    with pytest.raises(InvalidInputError, match="Unknown label type: continuous"):
        OptimalTreeClassifier(max_depth=1, encoder=encoder).fit(parquet_folder(tmp_path, [table]), "y")


def test_groups_that_had_to_be_rounded() -> None:
    """Groups are told apart by their values, so there must not be more of them than are counted."""
    table = pd.DataFrame({"a": [0, 1] * 10, "g": np.arange(20) / 7, "y": [0, 1] * 10})
    said = refused([table], "y", features=["a"], sensitive_features="g", encoder=None, max_distinct=8)
    assert said == "sensitive_features: column 'g' has more than 8 distinct values"


def test_a_category_without_weight(tmp_path: Path) -> None:
    """Who has no weight is not there: a category of theirs alone is no surprise in the second pass."""
    city = ["a", "b", "a", "nowhere"] * 5
    table = pd.DataFrame({"city": city, "y": [0, 1, 0, 1] * 5, "w": [1.0, 1.0, 1.0, 0.0] * 5})
    for encoder in (TableEncoder(), "auto"):
        for source in ([table], parquet_folder(tmp_path, [table])):
            found = gather(source, "y", sample_weight="w", encoder=encoder)
            assert found.data.weights.sum() == 15


@pytest.mark.parametrize("path", ["nothing://x", "~nobody-of-this-name/x", "/dev/null", "a\0b"])
def test_paths_that_nobody_can_open(path: str) -> None:
    """What the system says of them comes as an error of ours."""
    assert refused(path, "y").startswith(f"source: {path!r} cannot be opened: ")


def test_other_things_that_are_no_source() -> None:
    """A function that gives nothing, a seed that is none."""
    assert refused(lambda: None, "y") == "source must give data frames, but it gives None"
    assert refused([BINARY], "y", seed=-1) == "seed must be a whole number of at least 0, got -1"


def test_relations_that_cannot_be_computed() -> None:
    """What DuckDB says of them, in one sentence."""
    with duckdb.connect() as connection:
        relation = connection.sql("select 'x' as a, 1 as y").project("cast(a as int) as a, y")
        said = refused(relation, "y", encoder=None)
        assert said.startswith("source: DuckDB cannot compute the relation: Conversion Error")
        later = connection.sql("select 1 as a, 1 as y")
    assert "already been closed" in refused(later, "y", encoder=None)


def test_folders_named_like_numbers(tmp_path: Path) -> None:
    """A key with more than one minus is text."""
    parquet_folder(tmp_path / "k=--5", [BINARY])
    assert gather(tmp_path, "y", encoder=TableEncoder()).n_rows == 4
