"""Generated Python and SQL answer as `predict` does, whatever a column holds."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, OneHotCategoryEncoder, QuantileBucketEncoder, TableEncoder
from accel_oct.encoding.columns import Table, as_categories
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_python, to_sql

MISSING = [None, float("nan"), np.nan]
TEXT = ["nan", "NaN", "inf", "Infinity", "-inf", "None", "True", "False", "1", "1.0", "0", "", " ", "o'ne", 'q"', "\\"]
NUMBERS = [0, 1, 2, -1, 0.5, -0.0, 1.0, 1e15, 1e16, 2**53 + 1, 1e300, 0.1, np.float32(0.1), np.int64(3), Fraction(1, 2)]
BOOLEANS = [True, False, np.True_, np.False_]

#: Kind of a column, and what its cells are drawn from.
POOLS: dict[str, list[Any]] = {
    "mixed": [*TEXT, *NUMBERS, *BOOLEANS, *MISSING, pd.NA, Decimal("1.0")],
    "booleans and numbers": [*BOOLEANS, 0, 1, 1.0, 0.5, "True", "1", None],
    "text": [*TEXT, *MISSING],
    "numeric": [*NUMBERS, *MISSING],
    "boolean": [*BOOLEANS, None],
}


def series(cells: list[Any]) -> pd.Series:
    """A column of objects, each as it is."""
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return pd.Series(values, dtype=object)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, list[Any], pd.DataFrame]:
    """Rows to learn from, their classes, and new rows of the same kinds."""
    kinds = draw(st.lists(st.sampled_from(sorted(POOLS)), min_size=1, max_size=3))
    train, new = {}, {}
    for place, kind in enumerate(kinds):
        cells = st.lists(st.sampled_from(POOLS[kind]), min_size=14, max_size=14)
        train[f"{kind} {place}"], new[f"{kind} {place}"] = series(draw(cells)), series(draw(cells))
    labels = draw(st.sampled_from([[0, 1, 2], ["a", "b'", "nan"], [True, False], [-1.0, 2.0]]))
    y = draw(st.lists(st.sampled_from(labels), min_size=14, max_size=14))
    return pd.DataFrame(train), y, pd.DataFrame(new)


ENCODERS: list[Any] = [
    "auto",
    TableEncoder(AllThresholdsEncoder()),
    TableEncoder(QuantileBucketEncoder(4)),
    OneHotCategoryEncoder(missing="category"),
]


def rows_of(X: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(X.columns, cells, strict=True)) for cells in zip(*(X[name] for name in X.columns), strict=True)]


def fitted(X: pd.DataFrame, y: list[Any], encoder: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=3, leaf_penalty=0.0, encoder=encoder).fit(X, y)


@given(tables(), st.sampled_from(ENCODERS))
def test_python_rules_agree_on_any_columns(data: tuple[pd.DataFrame, list[Any], pd.DataFrame], encoder: Any) -> None:
    """Mixed columns, missing values, categories that read like numbers: known rows and new ones."""
    X, y, new = data
    model = fitted(X, y, encoder)
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    for table in (X, new):
        try:
            expected = model.predict(table).tolist()
        except InvalidInputError:  # a column that was numeric by chance is not any more
            continue
        assert [namespace["predict"](row) for row in rows_of(table)] == expected


def stored(model: OptimalTreeClassifier, X: pd.DataFrame) -> list[list[Any]]:
    """The rows as a database holds them: numbers, 0 and 1, or the text that `predict` compares; NULL for missing."""
    columns = []
    for values, kind in zip(Table.read(X).columns, model.encoder_.kinds_, strict=True):
        if kind == "categorical":
            columns.append(as_categories(values, "").tolist())
        else:
            columns.append(
                [None if v is None or v != v else v if type(v) is int else float(v) for v in values.tolist()]
            )
    return [list(row) for row in zip(*columns, strict=True)]


def without_na(cell: Any) -> Any:
    return None if cell is pd.NA else cell


@given(tables(), st.sampled_from(ENCODERS))
def test_sql_rules_agree_on_any_columns(data: tuple[pd.DataFrame, list[Any], pd.DataFrame], encoder: Any) -> None:
    """In SQLite, where a categorical column holds text and a boolean one 0 and 1."""
    X, y, new = data
    X, new = (table.apply(lambda column: column.map(without_na)).astype(object) for table in (X, new))
    model = fitted(X, y, encoder)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE data (" + ", ".join(f'"{name}"' for name in X.columns) + ")")
        for table in (X, new):
            try:
                expected = model.predict(table).tolist()
            except InvalidInputError:
                continue
            connection.execute("DELETE FROM data")
            connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * X.shape[1])})", stored(model, table))
            answers = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY rowid").fetchall()
            assert [answer for (answer,) in answers] == expected
    connection.close()


@pytest.mark.parametrize("category", ["nan", "inf", "Infinity", "-inf", "NaN", "1e999", "True", "__import__('os')"])
def test_categories_that_read_like_code(category: str) -> None:
    """Each is text in the generated function, and no name that Python would look up."""
    X = pd.DataFrame({"c": [category, "other", "third"] * 10})  # of two categories, only one is ever asked for
    model = OptimalTreeClassifier(1, 0.0).fit(X, (X["c"] == category).astype(int))
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    assert namespace["predict"]({"c": category}) == 1
    assert [namespace["predict"]({"c": value}) for value in ("other", None, float("nan"), "x")] == [
        *model.predict(pd.DataFrame({"c": ["other", None, float("nan"), "x"]})).tolist()
    ]


def test_what_predict_refuses_the_rules_refuse() -> None:
    """Text in a numeric column and infinite numbers are errors, not answers."""
    X = pd.DataFrame({"n": np.arange(20.0), "c": ["inf", "b"] * 10})
    for column, y in (("n", X["n"] >= 10), ("c", X["c"] == "inf")):
        model = OptimalTreeClassifier(1, 0.0).fit(X[[column]], y)
        namespace: dict[str, Any] = {}
        exec(to_python(model), namespace)
        for value in (float("inf"), -float("inf"), *(["3"] if column == "n" else [])):
            with pytest.raises(InvalidInputError):
                model.predict(pd.DataFrame({column: series([value])}))
            with pytest.raises((TypeError, ValueError)):
                namespace["predict"]({column: value})


def test_the_name_of_the_function_stands_in_nobodys_way() -> None:
    """Names that the function itself needs are refused; those of modules are not needed."""
    X = pd.DataFrame({"c": ["a", "b"] * 10})
    model = OptimalTreeClassifier(1, 0.0).fit(X, X["c"])
    for taken in ("float", "str", "class", "None", "a b"):
        with pytest.raises(InvalidInputError, match="function_name"):
            to_python(model, function_name=taken)
    for name in ("math", "numbers", "Real", "_", "value", "row"):
        namespace: dict[str, Any] = {}
        exec(to_python(model, function_name=name), namespace)
        assert [namespace[name]({"c": value}) for value in "ab"] == ["a", "b"]


def test_classes_that_have_no_literal_are_refused() -> None:
    """A Decimal would be a name that the generated function does not know."""
    y = np.array([Decimal(1), Decimal(2)] * 10, dtype=object)
    model = OptimalTreeClassifier(1, 0.0).fit(np.tile([[0.0], [1.0]], (10, 1)), np.tile([0, 1], 10))
    model.classes_ = np.unique(y)
    for write in (to_python, to_sql):
        with pytest.raises(InvalidInputError, match="classes"):
            write(model)
