"""Dialects of generated SQL: text and names that settings and escapes cannot change, and times of each database."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_sql
from accel_oct.export.sql import DIALECTS

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.text("'\"\\`\n%\0ax", max_size=8)


def stump(values: Any, y: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(1, 0.0, encoder=TableEncoder(AllThresholdsEncoder())).fit(
        pd.DataFrame({"x": values}), y
    )


def read_escaped(literal: str, quote: str, escapes: bool) -> str:
    """The text of a literal, read after the rules of a database: doubled quotes, or escapes by backslashes."""
    assert literal[0] == literal[-1] == quote
    inside, found, place = literal[1:-1], [], 0
    while place < len(inside):
        character = inside[place]
        if escapes and character == "\\":
            following = inside[place + 1]
            if following == "x":
                found.append(chr(int(inside[place + 2 : place + 4], 16)))
                place += 4
                continue
            assert following in ("\\", quote)
            character, place = following, place + 1
        elif character == quote:
            assert not escapes and inside[place + 1] == quote
            place += 1
        else:
            assert not (escapes and character in "\n\r")  # a literal in quotes ends with its line
        found.append(character)
        place += 1
    return "".join(found)


@given(TEXTS)
def test_bigquery_reads_back_text_and_names(text: str) -> None:
    """By a reader of its escapes: backslashes, quotes and line breaks."""
    assert read_escaped(DIALECTS["bigquery"].text(text), "'", True) == text
    if "\0" not in text:
        assert read_escaped(DIALECTS["bigquery"].name(text), "`", True) == text


@given(TEXTS)
def test_mysql_writes_text_that_no_setting_changes(text: str) -> None:
    """Either plain characters in quotes, or the bytes in UTF-8; names double their quotes."""
    for write in (DIALECTS["mysql"].text, DIALECTS["mysql"].compared_text):
        assert write is not None
        literal = write(text)
        if literal.startswith("'"):
            assert literal == f"'{text}'" and re.fullmatch(r"[ -&(-\[\]-~]*", text)
        else:
            digits = re.fullmatch(r"(?:CONVERT\()?X'([0-9a-f]*)'(?: USING utf8mb4\))?", literal)
            assert digits is not None and bytes.fromhex(digits[1]).decode("utf-8") == text
    if "\0" not in text:
        assert read_escaped(DIALECTS["mysql"].name(text), "`", False) == text


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_sqlite_reads_back_text(texts: list[str]) -> None:
    """With NUL characters too."""
    connection = sqlite3.connect(":memory:")
    written = ", ".join(map(DIALECTS["sqlite"].text, texts))
    assert list(connection.execute(f"SELECT {written}").fetchone()) == texts
    connection.close()


@pytest.mark.parametrize("dialect", ["ansi", "postgres", "duckdb"])
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_duckdb_reads_back_text(dialect: str, texts: list[str]) -> None:
    """Its own dialect with NUL characters; the others without."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    if dialect != "duckdb":
        texts = [text.replace("\0", "") for text in texts]
    written = ", ".join(map(DIALECTS[dialect].text, texts))
    with duckdb.connect() as connection:  # not the one that all share
        assert list(connection.execute(f"SELECT {written}").fetchone()) == texts


def test_a_backslash_is_written_for_each_database() -> None:
    """As a plain character, in an escape string, in hexadecimal digits, and doubled."""
    model = stump(["\\", "b", "c"] * 5, [1, 0, 0] * 5)
    expected = {
        "ansi": "\"x\" = '\\'",
        "duckdb": "\"x\" = '\\'",
        "sqlite": "\"x\" = '\\'",
        "postgres": "\"x\" = E'\\\\'",
        "mysql": "CAST(CONVERT(`x` USING utf8mb4) AS BINARY) = X'5c'",
        "bigquery": "`x` = '\\\\'",
    }
    for dialect, test in expected.items():
        assert f"CASE WHEN {test} THEN" in to_sql(model, dialect=dialect)
    assert set(expected) == set(DIALECTS)


def test_times_of_mysql_and_bigquery() -> None:
    """Literals of the types of each database; thresholds between two microseconds use the whole one below."""
    start = np.datetime64("2021-03-04T05:06:07.5", "ms")
    times = np.array([start, start + 2] * 5)
    zoned = pd.Series(times).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    fine = np.array(
        [np.datetime64("2021-03-04T05:06:07.123456100"), np.datetime64("2021-03-04T05:06:07.123456300")] * 5
    )
    spans = np.array([-90_061_000_001, -90_060_999_999] * 5).astype("m8[us]")
    y = [0, 1] * 5
    expected = {
        ("mysql", "times"): "`x` >= TIMESTAMP '2021-03-04 05:06:07.501'",
        ("mysql", "zoned"): "UNIX_TIMESTAMP(`x`) >= 1614834367.501000",
        ("mysql", "fine"): "`x` > TIMESTAMP '2021-03-04 05:06:07.123456'",
        ("mysql", "spans"): "`x` >= TIME '-25:1:1'",
        ("bigquery", "times"): "CAST(`x` AS DATETIME) >= DATETIME '2021-03-04 05:06:07.501'",
        ("bigquery", "zoned"): "`x` >= TIMESTAMP '2021-03-04 05:06:07.501+00:00'",
        ("bigquery", "fine"): "CAST(`x` AS DATETIME) > DATETIME '2021-03-04 05:06:07.123456'",
        ("bigquery", "spans"): "`x` >= INTERVAL '0 -25:1:1' DAY TO SECOND",
    }
    columns = {"times": times, "zoned": zoned, "fine": fine, "spans": spans}
    for (dialect, name), test in expected.items():
        assert f"CASE WHEN {test} THEN" in to_sql(stump(columns[name], y), dialect=dialect)


def test_times_beyond_a_database_are_refused() -> None:
    """Years of five digits, and durations that TIME cannot hold."""
    late = stump(np.array(["12000-03-15", "12001-01-01"] * 5, dtype="M8[D]"), [0, 1] * 5)
    long = stump(np.array([1000, 2000] * 5).astype("m8[h]"), [0, 1] * 5)
    for dialect in ("mysql", "bigquery"):
        with pytest.raises(InvalidInputError, match="four digits"):
            to_sql(late, dialect=dialect)
    with pytest.raises(InvalidInputError, match="838:59:59"):
        to_sql(long, dialect="mysql")


def test_nul_is_refused_where_no_statement_can_hold_it() -> None:
    """In text of the standard and of PostgreSQL, and in names everywhere."""
    X = pd.DataFrame({"c": ["a\0b", "b", "c"] * 4})
    model = OptimalTreeClassifier(1, 0.0).fit(X, [True, False, False] * 4)
    for dialect in ("ansi", "postgres"):
        with pytest.raises(InvalidInputError, match="NUL"):
            to_sql(model, dialect=dialect)
    for dialect in DIALECTS:
        with pytest.raises(InvalidInputError, match="NUL"):
            to_sql(stump([0.0, 1.0] * 5, [0, 1] * 5), column="a\0", dialect=dialect)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (c)")
    connection.executemany("INSERT INTO data VALUES (?)", [["a\0b"], ["a"], ["a\0c"]])
    found = connection.execute(f"SELECT {to_sql(model, dialect='sqlite')} FROM data ORDER BY rowid").fetchall()
    assert found == [(1,), (0,), (0,)]
    connection.close()


def test_columns_without_a_name() -> None:
    """Only SQLite has zero-length names."""
    model = OptimalTreeClassifier(1, 0.0).fit(pd.DataFrame({"": [0.5, 1.5] * 5}), [0, 1] * 5)
    for dialect in set(DIALECTS) - {"sqlite"}:
        with pytest.raises(InvalidInputError, match="column without a name"):
            to_sql(model, dialect=dialect)
    assert 'CASE WHEN "" >= ' in to_sql(model, dialect="sqlite")
