"""A missing value goes where the best tree sends it, and every export sends it there too."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.rules_support import POOLS, by_text, records, tables
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import (
    AllThresholdsEncoder,
    Condition,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    Table,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_python, to_sql, to_text

ENCODERS: list[Any] = [
    "auto",
    TableEncoder(AllThresholdsEncoder()),
    TableEncoder(QuantileBucketEncoder(4)),
    TableEncoder(TreeGuidedThresholdEncoder(n_estimators=2), OneHotCategoryEncoder()),
]
Data = tuple[pd.DataFrame, list[str], "list[float] | None", pd.DataFrame]


def fitted(data: Data, encoder: Any) -> tuple[OptimalTreeClassifier, list[tuple[pd.DataFrame, list[str]]]]:
    """A model, and the tables to try it on with its predictions."""
    X, y, weights, new = data
    model = OptimalTreeClassifier(3, 0.0, encoder=encoder).fit(X, y, weights)
    return model, [(table, model.predict(table).tolist()) for table in (X, new)]


# ---------------------------------------------------------------- conditions and encoders


@pytest.mark.parametrize(
    ("condition", "said", "opposite"),
    [
        (Condition(0, "at_least", low=0.05, missing=True), "score >= 0.05 or missing", "score < 0.05"),
        (Condition(0, "between", low=1.0, high=2.0, missing=True), "1 <= score < 2 or missing", "not 1 <= score < 2"),
        (Condition(0, "between", high=2.0, missing=True), "score < 2 or missing", "score >= 2"),
        (Condition(0, "equals", value="a", missing=True), "score = a or missing", "score != a"),
        (Condition(0, "is_true", missing=True), "score or missing", "not score"),
    ],
)
def test_conditions_that_missing_values_fulfil(condition: Condition, said: str, opposite: str) -> None:
    """In words, as values, and as plain entries and back; the flag is part of what a condition is."""
    assert (condition.text("score"), condition.opposite("score")) == (said, opposite)
    assert Condition.from_dict(condition.to_dict()) == condition != condition.plain
    assert len({condition, condition.plain}) == 2 and "missing" not in condition.plain.to_dict()
    values = np.array([0.0, 1.0, 1.5, np.nan])
    if isinstance(condition.value, str):
        values = np.array(["a", "b", "c", None], dtype=object)
    assert condition.holds(values).tolist() == [*condition.plain.holds(values).tolist()[:3], True]
    assert not condition.plain.holds(values)[3]


@given(tables(), st.sampled_from(ENCODERS))
def test_encoders_offer_both_ways_where_they_differ(data: Data, encoder: Any) -> None:
    """Per column with missing values: every question twice, unless one that is there already splits the data alike."""
    X, y, weights, new = data
    encoder = (TableEncoder() if encoder == "auto" else clone(encoder)).fit(X, y, sample_weight=weights)
    every = encoder.conditions_
    if not every:
        return
    for table in (X, new):  # the fast path of transform says what conditions say
        values = [encoder._column(Table.read(table), j, kind).values for j, kind in enumerate(encoder.kinds_)]
        expected = np.column_stack([c.holds(values[c.column]) for c in every])
        np.testing.assert_array_equal(encoder.transform(table), expected)
    answers = encoder.transform(X).astype(bool)
    splits = {(c.column, row.tobytes()) for c, row in zip(every, answers.T, strict=True)}
    for column in range(X.shape[1]):
        own = [c for c in every if c.column == column]
        has_missing = bool(X.iloc[:, column].isna().any())
        assert (Condition(column, "is_missing") in own) == has_missing
        if not has_missing:
            assert not any(c.missing for c in own)
            continue
        values = encoder._column(Table.read(X), column, encoder.kinds_[column]).values
        for condition in own:
            if condition.missing or condition.test == "is_missing":
                continue
            flagged = replace(condition, missing=True)
            wanted = flagged.holds(values)
            there = {(column, wanted.tobytes()), (column, (~wanted).tobytes())} & splits
            assert there or wanted.all(), flagged


# ---------------------------------------------------------------- the best tree


def best_objective(X: np.ndarray, y: np.ndarray, penalty: float, depth: int) -> float:
    """By enumeration: any threshold with missing values on either side, and whether a value is missing."""
    splits = set()
    for column in X.T:
        absent = np.isnan(column)
        splits.add(tuple(absent))
        for value in np.unique(column[~absent]):
            splits |= {tuple(column >= value), tuple((column >= value) | absent)}

    def best(rows: np.ndarray, left: int) -> float:
        found = max(np.bincount(y[rows], minlength=1).max(), 0) - penalty * len(y) if rows.any() else -penalty * len(y)
        if left:
            for split in map(np.array, splits):
                if (rows & split).any() and (rows & ~split).any():
                    found = max(found, best(rows & split, left - 1) + best(rows & ~split, left - 1))
        return float(found)

    return best(np.ones(len(y), dtype=bool), depth) / len(y)


@given(st.data(), st.sampled_from([0.0, 0.05]), st.integers(1, 2))
def test_the_tree_is_the_best_of_all(data: st.DataObject, penalty: float, depth: int) -> None:
    """Of all trees with missing values on either side of each threshold, on tiny tables."""
    cells = st.lists(st.sampled_from([1.0, 2.0, 3.0, np.nan]), min_size=9, max_size=9)
    X = np.column_stack([data.draw(cells), data.draw(cells)])
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=9, max_size=9)))
    model = OptimalTreeClassifier(depth, penalty, encoder=TableEncoder(AllThresholdsEncoder())).fit(X, y)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(best_objective(X, y, penalty, depth), abs=1e-9)


def test_one_split_where_two_were_needed() -> None:
    """Missing values on the side of "yes" take no question of their own."""
    X = pd.DataFrame({"score": [0.1, 0.2, 0.3, 0.8, 0.9, None, None], "c": ["a", "b", "c", "d", "d", None, None]})
    for column, y in (("score", (X["score"] >= 0.5) | X["score"].isna()), ("c", (X["c"] == "d") | X["c"].isna())):
        model = OptimalTreeClassifier(1, 0.0, encoder=TableEncoder(AllThresholdsEncoder())).fit(X[[column]], y)
        assert model.score(X[[column]], y) == 1.0
        assert " or missing:" in to_text(model) and "is missing" not in to_text(model)


def test_missing_where_none_was_is_no() -> None:
    """In a column without missing values there are no further questions, and a missing value answers no."""
    X = pd.DataFrame({"x": np.arange(10.0)})
    model = OptimalTreeClassifier(1, 0.0).fit(X, X["x"] >= 5)
    assert not any(c.holds_if_missing for c in model.encoder_.conditions_)
    assert model.predict(pd.DataFrame({"x": [np.nan]})).tolist() == [False]


# ---------------------------------------------------------------- exports


def test_files_hold_the_answer_of_missing_values() -> None:
    """A condition has the entry "missing" only if missing values answer yes."""
    X = pd.DataFrame({"x": np.arange(10.0)})
    known = OptimalTreeClassifier(1, 0.0).fit(X, X["x"] >= 5)
    assert '"missing": true' not in known.to_json()
    X.loc[0, "x"] = None
    holed = OptimalTreeClassifier(1, 0.0).fit(X, (X["x"] >= 5) | X["x"].isna())
    assert any(c.get("missing") for c in json.loads(holed.to_json())["encoder"]["conditions"])


@pytest.mark.slow
@given(tables(), st.sampled_from(ENCODERS))
def test_text_and_python_say_what_is_predicted(data: Data, encoder: Any) -> None:
    """The rules as text, read by a reader of the test's own, and the generated function; then JSON and back."""
    model, tried = fitted(data, encoder)
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    text = to_text(model, show_counts=False)
    for table, expected in tried:
        assert [by_text(text, row) for row in records(table)] == expected
        assert [namespace["predict"](row) for row in records(table)] == expected
        for absent in (float("nan"), pd.NA, None):
            rows = [{k: absent if pd.isna(v) else v for k, v in row.items()} for row in records(table)]
            assert [namespace["predict"](row) for row in rows] == expected
        dropped = [{k: v for k, v in row.items() if not pd.isna(v)} for row in records(table)]
        assert [namespace["predict"](row) for row in dropped] == expected
        assert [namespace["predict"](row) for _, row in table.iterrows()] == expected
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert again.encoder_.conditions_ == model.encoder_.conditions_
    assert again.encoder_.inexact_ == model.encoder_.inexact_
    assert again.to_text() == model.to_text()
    assert [again.predict(table).tolist() for table, _ in tried] == [expected for _, expected in tried]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@given(tables(), st.sampled_from(ENCODERS), st.sampled_from(["ansi", "sqlite"]))
def test_sqlite_says_what_is_predicted(data: Data, encoder: Any, dialect: str) -> None:
    """NULL, NaN (which SQLite keeps as NULL), and names and text with quotes."""
    model, tried = fitted(data, encoder)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE data ({', '.join(map(quoted, POOLS))})")
    for table, expected in tried:
        connection.execute("DELETE FROM data")
        rows = [list(row.values()) for row in records(table)]
        rows = [
            [float("nan") if v is None and (i + j) % 2 else v for j, v in enumerate(row)] for i, row in enumerate(rows)
        ]
        connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(POOLS))})", rows)
        found = connection.execute(f"SELECT {to_sql(model, column='c', dialect=dialect)} FROM data ORDER BY rowid")
        assert [answer for (answer,) in found] == expected
    connection.close()


@pytest.mark.slow
@given(tables(), st.sampled_from(ENCODERS))
def test_duckdb_says_what_is_predicted(data: Data, encoder: Any) -> None:
    """Typed columns; NaN, which DuckDB sorts above all numbers, is as missing as NULL."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    model, tried = fitted(data, encoder)
    types = dict(zip(POOLS, ("DOUBLE", "FLOAT", "INTEGER", "BOOLEAN", "VARCHAR"), strict=True))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE data (id INTEGER, {', '.join(f'{quoted(n)} {t}' for n, t in types.items())})")
        for table, expected in tried:
            connection.execute("DELETE FROM data")
            rows = [[i, *row.values()] for i, row in enumerate(records(table))]
            for i, row in enumerate(rows):
                for j in (1, 2):
                    row[j] = float("nan") if row[j] is None and (i + j) % 2 else row[j]
            connection.executemany(f"INSERT INTO data VALUES (?, {', '.join('?' * len(POOLS))})", rows)
            found = connection.execute(f"SELECT {to_sql(model, column='c')} FROM data ORDER BY id").fetchall()
            assert [answer for (answer,) in found] == expected


def test_polars_frames_and_rows() -> None:
    """Nulls and NaN of polars, in `fit`, in `predict` and in the generated function."""
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install 'accel-oct[test]'")
    rng = np.random.default_rng(1)
    cells = {
        name: [None if v is None else v for v in rng.choice(np.array(pool, dtype=object), 60)]
        for name, pool in POOLS.items()
    }
    cells["number"][:3] = [float("nan")] * 3
    frame = polars.DataFrame(cells, strict=False)
    missing = [v is None or v != v for v in cells["number"]]
    y = [a or bool(b) for a, b in zip(missing, cells["truth"], strict=True)]
    model = OptimalTreeClassifier(3, 0.0).fit(frame, y)
    assert model.score(frame, y) == 1.0
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    assert [namespace["predict"](row) for row in frame.iter_rows(named=True)] == model.predict(frame).tolist()


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_thresholds_in_sql_are_exact(dialect: str, values: list[float]) -> None:
    """The number that is written is the number that is read, to the last bit: SQLite by quotients, DuckDB by itself."""
    from accel_oct.export.sql import DIALECTS, _literal

    written = ", ".join(_literal(value, DIALECTS[dialect]) for value in values)
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
        connection = duckdb.connect()
    assert list(connection.execute(f"SELECT {written}").fetchone()) == values
    connection.close()


def test_sql_refuses_what_it_cannot_write() -> None:
    """An unknown dialect, and text that no statement can hold."""
    X = pd.DataFrame({"c": ["a\0", "b", "c"] * 4})
    model = OptimalTreeClassifier(1, 0.0).fit(X, [True, False, False] * 4)
    with pytest.raises(InvalidInputError, match="NUL"):
        to_sql(model)
    with pytest.raises(InvalidInputError, match="dialect must be one of"):
        to_sql(model, dialect="oracle")
    with pytest.raises(InvalidInputError, match="lone surrogate"):
        to_sql(OptimalTreeClassifier(max_depth=0).fit([[1.0]], [0]), column="\ud800")


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize("weight", [0.3, 0.1, 1 / 3, 0.7, 1e-7, 12.3])
@pytest.mark.parametrize("n", [7, 90, 91, 1000])
def test_equal_weights_are_no_weights(weight: float, n: int) -> None:
    """Whatever the weight: the same quantiles, with missing values too, and the same thresholds of an ensemble."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    X[::6, 1] = np.nan
    y = X[:, 0] > 0.2
    for numeric in (None, QuantileBucketEncoder(7), TreeGuidedThresholdEncoder(n_estimators=2)):
        encoder = TableEncoder(numeric)
        plain = encoder.fit(X, y).conditions_
        assert encoder.fit(X, y, sample_weight=np.full(n, weight)).conditions_ == plain


@pytest.mark.parametrize("factor", [0.1, 0.3, 0.7, 1 / 3, 1e-5])
@pytest.mark.parametrize("n", [8, 90, 400])
def test_only_proportions_of_fractional_weights_matter(factor: float, n: int) -> None:
    """A quantile that falls on a sample stays there, whatever the weights are multiplied with."""
    X = np.random.default_rng(n).normal(size=(n, 3))
    weights = np.tile([0.5, 1.5], n // 2)  # of mean 1 as they are
    encoder = TableEncoder()
    plain = encoder.fit(X, sample_weight=weights).conditions_
    assert encoder.fit(X, sample_weight=weights * factor).conditions_ == plain
