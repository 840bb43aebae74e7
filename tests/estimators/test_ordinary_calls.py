"""Ordinary ways to hand over data, each equal to the same rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from helpers.pieces_support import cut, parquet_folder
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, frontier, gather, near_optimal, solve, trade_off
from accel_oct.constraints import MaxLeaves, StatisticalParity
from accel_oct.encoding import AutoEncoder, Table
from accel_oct.errors import InvalidInputError


def loans(n_rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 40, n_rows),
            "income": rng.integers(10, 60, n_rows) / 2,
            "city": rng.choice(["Bonn", "Linz", "Oslo"], n_rows),
            "times": rng.integers(1, 4, n_rows),
        }
    )
    late = (table["age"] > 27) ^ (table["city"] == "Linz") ^ (rng.random(n_rows) < 0.1)
    table["paid"] = np.where(late, "no", "yes")
    return table


TABLE = loans()
X, Y = TABLE.drop(columns="paid"), TABLE["paid"]
UNWEIGHTED = X.drop(columns="times")
FOLDER: dict[str, Path] = {}


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The table as a folder of Parquet files, and as single files."""
    root = tmp_path_factory.mktemp("loans")
    FOLDER["parquet"] = parquet_folder(root / "parquet", cut(TABLE, 6))
    FOLDER["csv"] = root / "loans.csv"
    TABLE.to_csv(FOLDER["csv"], index=False)
    FOLDER["excel"] = root / "loans.xlsx"
    TABLE.to_excel(FOLDER["excel"], index=False)


def model(**options: Any) -> OptimalTreeClassifier:
    """A classifier with the encoder that data in pieces have by default: rows and pieces then give the same tree."""
    return OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, **{"encoder": AutoEncoder(2), **options})


EXPECTED: dict[bool, OptimalTreeClassifier] = {}


def expected(weighted: bool = False) -> OptimalTreeClassifier:
    if weighted not in EXPECTED:
        EXPECTED[weighted] = model().fit(*((UNWEIGHTED, Y, TABLE["times"]) if weighted else (X, Y)))
    return EXPECTED[weighted]


def same(found: Any, wanted: Any) -> None:
    assert (found.objective_, found.bound_, found.status_) == (wanted.objective_, wanted.bound_, "optimal")
    assert found.encoder_.conditions_ == wanted.encoder_.conditions_
    assert found.feature_names_in_.tolist() == wanted.feature_names_in_.tolist()
    assert found.classes_.tolist() == wanted.classes_.tolist()
    assert found.to_text() == wanted.to_text()


#: Tables that hold their target.
TABLES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: TABLE,
    "polars": lambda: pl.from_pandas(TABLE),
    "lazy polars": lambda: pl.from_pandas(TABLE).lazy(),
    "arrow": lambda: pa.Table.from_pandas(TABLE),
    "table": lambda: Table.read(TABLE),
    "csv": lambda: FOLDER["csv"],
    "csv as text": lambda: str(FOLDER["csv"]),
    "excel": lambda: FOLDER["excel"],
    "list of frames": lambda: cut(TABLE, 3),
    "tuple of polars frames": lambda: tuple(pl.from_pandas(piece) for piece in cut(TABLE, 3)),
    "function": lambda: lambda: iter(cut(TABLE, 4)),
    "folder": lambda: FOLDER["parquet"],
    "folder as text": lambda: str(FOLDER["parquet"]),
    "pattern": lambda: f"{FOLDER['parquet']}/*.parquet",
    "list of files": lambda: sorted(FOLDER["parquet"].glob("*.parquet")),
    "dataset": lambda: ds.dataset(FOLDER["parquet"]),
    "dask": lambda: dd.from_pandas(TABLE, npartitions=3),
    "duckdb": lambda: duckdb.connect().sql(f"select * from read_parquet('{FOLDER['parquet']}/*.parquet')"),
}


@pytest.mark.daily(6)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_and_the_name_of_its_target(kind: str) -> None:
    """`fit(table, "paid")`, then predict and score on the same kind of table, with and without weights by name."""
    found = model().fit(TABLES[kind](), "paid")
    same(found, expected())
    assert found.score(TABLES[kind](), "paid") == expected().score(X, Y)
    weighted = model().fit(TABLES[kind](), "paid", sample_weight="times")
    same(weighted, expected(True))
    score = expected(True).score(UNWEIGHTED, Y, TABLE["times"])
    assert weighted.score(TABLES[kind](), "paid", "times") == score


#: Kinds from which `predict` takes its columns by name, so that others may be there.
BY_NAME = [kind for kind in TABLES if kind not in ("pandas", "polars", "lazy polars", "arrow", "table")]


@pytest.mark.parametrize("kind", BY_NAME)
def test_predictions_on_files_and_pieces(kind: str) -> None:
    """The answers in the order of the rows; columns that the model does not know are not looked at."""
    fitted = expected()
    for method in ("predict", "predict_proba", "apply"):
        np.testing.assert_array_equal(getattr(fitted, method)(TABLES[kind]()), getattr(fitted, method)(X))
    paths = fitted.decision_path(TABLES[kind]())
    assert (paths != fitted.decision_path(X)).nnz == 0


def test_predictions_by_an_encoder_of_scikit_learn() -> None:
    """Pieces reach it as frames."""
    one = model(encoder=OneHotEncoder(handle_unknown="ignore")).fit(X, Y)
    two = model(encoder=OneHotEncoder(handle_unknown="ignore")).fit(FOLDER["parquet"], "paid")
    assert two.objective_ == one.objective_
    assert two.predict(FOLDER["parquet"]).tolist() == one.predict(X).tolist()
    assert two.score(FOLDER["parquet"], "paid") == one.score(X, Y)


def test_a_lazy_target_beside_a_lazy_table() -> None:
    """Frames of polars that are yet to be collected."""
    lazy = pl.from_pandas(TABLE).lazy()
    same(model().fit(lazy.drop("paid"), lazy.select("paid")), expected())


def test_sensitive_features_by_name() -> None:
    """A column of the frame, which stays a feature."""
    rules = [StatisticalParity(at_most=0.05)]
    one = model(constraints=rules).fit(X, Y, sensitive_features=TABLE["city"])
    for given in (TABLE, FOLDER["csv"], FOLDER["parquet"]):
        same(model(constraints=rules).fit(given, "paid", sensitive_features="city"), one)


def test_cross_validation_trade_offs_and_near_optimal_trees_by_name(tmp_path: Path) -> None:
    """Whatever needs the rows in memory has them."""
    options: dict[str, Any] = {"max_depth": 1, "leaf_penalties": [0.1, 0.01], "cv": 3}
    one = OptimalTreeClassifierCV(**options).fit(X, Y)
    two = OptimalTreeClassifierCV(**options).fit(FOLDER["csv"], "paid")
    assert two.leaf_penalty_ == one.leaf_penalty_ and two.score(TABLE, "paid") == one.score(X, Y)
    limited = model(constraints=[MaxLeaves(3)])
    points = [trade_off(limited, *given, limits=[2, 3], cv=2).points for given in ((X, Y), (TABLE, "paid"))]
    assert [p.test_score for p in points[0]] == [p.test_score for p in points[1]]
    trees = [model().near_optimal(*given, within=0.002) for given in ((X, Y), (TABLE, "paid"))]
    assert len(trees[0]) == len(trees[1])
    path = expected().report(tmp_path / "report.html", TABLE, "paid", test=(FOLDER["csv"], "paid"))
    assert path.exists()
    with pytest.raises(InvalidInputError, match=r"^X: a report needs the rows in memory"):
        expected().report(tmp_path / "report.html", FOLDER["parquet"], "paid")


def test_binary_frames_hold_their_target_too(tmp_path: Path) -> None:
    """`solve`, `frontier`, `near_optimal` and `gather` on a frame, a list, a function and a CSV file."""
    binary = (TABLE[["age", "income", "times"]] > TABLE[["age", "income", "times"]].median()).astype(int)
    whole = binary.assign(paid=Y)
    whole.to_csv(tmp_path / "binary.csv", index=False)
    wanted = solve(binary, Y, max_depth=2, leaf_penalty=0.01).objective
    scores = frontier(binary, Y, max_depth=2).scores
    count = len(near_optimal(binary, Y, max_depth=2, leaf_penalty=0.01, within=0.02))
    for given in (whole, pl.from_pandas(whole).lazy(), cut(whole, 3), lambda: cut(whole, 2), tmp_path / "binary.csv"):
        assert solve(given, "paid", max_depth=2, leaf_penalty=0.01).objective == wanted
        np.testing.assert_array_equal(frontier(given, "paid", max_depth=2).scores, scores)
        assert len(near_optimal(given, "paid", max_depth=2, leaf_penalty=0.01, within=0.02)) == count
        assert gather(given, "paid", encoder=None).n_rows == len(TABLE)


# ---------------------------------------------------------------- sparse


def test_sparse_columns_in_a_pipeline() -> None:
    """What OneHotEncoder gives by default, before a tree and in cross-validation."""
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough", sparse_threshold=1.0)
    dense = make_column_transformer((OneHotEncoder(sparse_output=False), ["city"]), remainder="passthrough")
    assert sparse.issparse(columns.fit_transform(X))
    one, two = (make_pipeline(first, model()).fit(X, Y) for first in (dense, columns))
    assert two[-1].objective_ == one[-1].objective_ and two[-1].to_text() == one[-1].to_text()
    assert two.predict(X).tolist() == one.predict(X).tolist()
    assert cross_val_score(two, X, Y, cv=3).tolist() == cross_val_score(one, X, Y, cv=3).tolist()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_of_every_form(form: str, container: Any) -> None:
    """Classifiers see the dense rows, which cross-validation can take apart."""
    dense = X.drop(columns="city").to_numpy() * (np.arange(len(X)) % 3 > 0)[:, None]
    given = container(dense).asformat(form)
    one, two = model().fit(dense, Y), model().fit(given, Y)
    assert two.objective_ == one.objective_ and two.encoder_.conditions_ == one.encoder_.conditions_
    assert two.predict(given).tolist() == one.predict(dense).tolist()
    if form == "coo":
        options: dict[str, Any] = {"max_depth": 1, "leaf_penalties": [0.05, 0.01], "cv": 2}
        first, second = (OptimalTreeClassifierCV(**options).fit(rows, Y) for rows in (dense, given))
        np.testing.assert_array_equal(first.curve_, second.curve_)


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: model().fit(TABLE, "payd"), r"^y: the table has no column 'payd'; did you mean 'paid'\?"),
        (lambda: model().fit(TABLE, "paid", "weight"), r"^sample_weight: the table has no column 'weight'"),
        (lambda: model().fit(TABLE, "paid", sensitive_features=["sex"]), r"^sensitive_features: the table has no colu"),
        (lambda: model().fit(FOLDER["csv"], "payd"), r"loans\.csv has no column 'payd'"),
        (lambda: model().fit(FOLDER["csv"], Y), r"^y must be the name of a column where X is a file, got"),
        (lambda: model().fit("absent.csv", "paid"), r"^source: there is no file or folder 'absent\.csv'"),
        (
            lambda: model().fit("absent/*.parquet", "paid"),
            r"^source: there is no file that matches 'absent/",
        ),
        (lambda: model().fit([FOLDER["csv"], FOLDER["csv"]], "paid"), r"loans\.csv cannot be read as Parquet"),
        (lambda: model().fit(X.to_numpy(), "paid"), r"^y is 'paid', the name of a column, but X has no nam"),
        (lambda: model().fit(cut(X, 2), [Y, Y]), r"^target must be the name of a column, unless source is"),
        (lambda: expected().predict(cut(TABLE.drop(columns="age"), 2)), r"^X: data frames has no column 'age'; it has"),
        (lambda: expected().score(FOLDER["parquet"], "payd"), r"^X: Parquet files has no column 'payd'"),
        (lambda: expected().score(TABLE.drop(columns="age"), "paid"), r"^X: the table has no column 'age'"),
        (
            lambda: OptimalTreeClassifierCV().fit(FOLDER["parquet"], "paid"),
            r"^X: cross-validation needs the rows in",
        ),
    ],
)
def test_one_sentence_where_it_cannot_be(call: Callable[[], Any], words: str) -> None:
    """It names the argument, the file or the column."""
    with pytest.raises(InvalidInputError, match=words):
        call()
