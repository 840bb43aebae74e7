"""Generated SQL answers as `predict` does on dates, times, durations and large numbers, in every session time zone."""

from __future__ import annotations

import datetime as dt
import sqlite3
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, QuantileBucketEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_sql

ENCODERS = [TableEncoder(AllThresholdsEncoder()), TableEncoder(QuantileBucketEncoder(4)), "auto"]
ZONES = ["UTC", "Asia/Tokyo", "America/New_York", "Asia/Kathmandu"]
#: Moments in nanoseconds since 1970: midnights, whole seconds, before 1970, clock changes of New York.
STARTS = [0, 10**9 * 1_604_206_800, 10**9 * 1_615_705_200, -(10**18), 10**9 * 86_400 * 18_000, 10**18 + 123_456_789]
#: By kind: the type of the column in DuckDB, and the nanoseconds that its values are multiples of.
KINDS = {
    "date": ("DATE", 86_400 * 10**9),
    "naive": ("TIMESTAMP", 1000),
    "naive ns": ("TIMESTAMP_NS", 1),
    "zoned": ("TIMESTAMPTZ", 1000),
    "zoned ns": ("TIMESTAMPTZ_NS", 1),
    "duration": ("INTERVAL", 1000),
    "integer": ("BIGINT", 1),
    "truth": ("BOOLEAN", 1),
    "text": ("VARCHAR", 1),
}
WORDS = ["", "a", "o'ne", 'q"', "1", "True", "2021-01-01", "ä"]


@st.composite
def cells(draw: st.DrawFn, kind: str, count: int) -> list[int | None]:
    """Whole numbers that stand for the cells of a column, close to each other and far apart; None is missing."""
    unit = KINDS[kind][1]
    start = draw(st.sampled_from(STARTS)) // unit
    near = st.integers(-3, 3).map(lambda step: start + step)
    medium = st.integers(-5000, 5000).map(lambda step: start + step)
    numbers = draw(st.lists(st.one_of(near, medium, st.integers(-(10**17) // unit, 10**17 // unit)), min_size=3))
    if kind == "duration":
        numbers += [-number for number in numbers]
    if kind == "integer":
        numbers += [2**53 + 1, 2**62, -(2**63), 2**63 - 1]
    if kind == "text":
        numbers = list(range(len(WORDS)))
    if kind == "truth":
        numbers = [0, 1]
    pool = [number * unit for number in numbers]
    missing = draw(st.booleans())
    return draw(st.lists(st.sampled_from([*pool, *([None] if missing else [])]), min_size=count, max_size=count))


def column(kind: str, numbers: list[int | None], zone: str) -> pd.Series:
    """The column as pandas holds it."""
    if kind == "text":
        return pd.Series([None if n is None else WORDS[n] for n in numbers], dtype=object)
    if kind == "truth":
        return pd.Series([None if n is None else bool(n) for n in numbers], dtype=object)
    if kind == "integer":
        return pd.Series([None if n is None else n for n in numbers], dtype=object)
    if kind == "duration":
        return pd.Series(np.array(["NaT" if n is None else n for n in numbers], dtype="m8[ns]"))
    series = pd.Series(np.array(["NaT" if n is None else n for n in numbers], dtype="M8[ns]"))
    return series.dt.tz_localize("UTC").dt.tz_convert(zone) if kind.startswith("zoned") else series


def written(kind: str, number: int | None, zone: str, where: str) -> Any:
    """A cell as the database is given it: text in ISO 8601 with the offset of its zone; durations by their type."""
    if number is None or kind in ("integer", "truth", "text"):
        return WORDS[number] if kind == "text" and number is not None else number
    if kind == "duration":
        return number if where == "sqlite" else f"{number // 1000} microseconds"
    seconds, rest = divmod(number, 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=seconds)
    if kind == "date":
        return moment.strftime("%Y-%m-%d")
    if not kind.startswith("zoned"):
        return moment.strftime("%Y-%m-%d %H:%M:%S") + fraction
    local = moment.astimezone(ZoneInfo(zone)).isoformat(" ")
    return local[:19] + fraction + local[19:]


Data = tuple[list[str], dict[str, list[int | None]], dict[str, list[int | None]], list[int], str]


@st.composite
def tables(draw: st.DrawFn) -> Data:
    """Kinds of columns, cells to learn from, new cells, classes, and the zone in which zoned times are given."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    known = {kind: draw(cells(kind, 16)) for kind in kinds}
    new = {}
    for kind, numbers in known.items():
        unit = KINDS[kind][1] if kind not in ("text", "truth") else 0
        inside = [n for n in numbers if n is not None and abs(n) < 2**62] or [0]
        new[kind] = [draw(st.sampled_from(inside)) + draw(st.integers(-2, 2)) * unit for _ in range(16)]
    y = draw(st.lists(st.integers(0, 2), min_size=16, max_size=16))
    return kinds, known, new, y, draw(st.sampled_from(ZONES))


def fitted(data: Data, encoder: Any) -> tuple[OptimalTreeClassifier, list[tuple[dict[str, list[int | None]], Any]]]:
    kinds, known, new, y, zone = data

    def frame(numbers: dict[str, list[int | None]]) -> pd.DataFrame:
        return pd.DataFrame({kind: column(kind, numbers[kind], zone) for kind in kinds})

    model = OptimalTreeClassifier(3, 0.0, encoder=encoder).fit(frame(known), y)
    return model, [(numbers, model.predict(frame(numbers)).tolist()) for numbers in (known, new)]


def rows(kinds: list[str], numbers: dict[str, list[int | None]], zone: str, where: str) -> list[list[Any]]:
    columns = [[written(kind, number, zone, where) for number in numbers[kind]] for kind in kinds]
    return [[place, *row] for place, row in enumerate(zip(*columns, strict=True))]


@pytest.mark.slow
@given(tables(), st.sampled_from(ENCODERS), st.sampled_from(ZONES))
def test_duckdb_agrees_on_typed_columns(data: Data, encoder: Any, session: str) -> None:
    """Dates, naive and zoned times of micro- and nanoseconds, durations of both signs, large integers."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    kinds, _, _, _, zone = data
    model, tried = fitted(data, encoder)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{session}'")
        try:
            types = ", ".join(f'"{kind}" {KINDS[kind][0]}' for kind in kinds)
            connection.execute(f"CREATE TABLE data (id INTEGER, {types})")
        except duckdb.Error:
            assert "zoned ns" in kinds  # TIMESTAMPTZ_NS came with DuckDB 2
            return
        for numbers, expected in tried:
            connection.execute("DELETE FROM data")
            marks = ", ".join("?" * len(kinds))
            connection.executemany(f"INSERT INTO data VALUES (?, {marks})", rows(kinds, numbers, zone, "duckdb"))
            found = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY id").fetchall()
            assert [answer for (answer,) in found] == expected


@given(tables(), st.sampled_from(ENCODERS))
def test_sqlite_agrees_on_text_and_counts(data: Data, encoder: Any) -> None:
    """The same in SQLite: times as text in ISO 8601, with the offset of any zone, durations as nanoseconds."""
    kinds, _, _, _, zone = data
    model, tried = fitted(data, encoder)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (id INTEGER, " + ", ".join(f'"{kind}"' for kind in kinds) + ")")
    for numbers, expected in tried:
        for text in (lambda v: v, lambda v: v.replace(" ", "T").replace("+00:00", "Z") if isinstance(v, str) else v):
            connection.execute("DELETE FROM data")
            marks = ", ".join("?" * len(kinds))
            given_rows = [
                [row[0], *(v if kind == "text" else text(v) for kind, v in zip(kinds, row[1:], strict=True))]
                for row in rows(kinds, numbers, zone, "sqlite")
            ]
            connection.executemany(f"INSERT INTO data VALUES (?, {marks})", given_rows)
            found = connection.execute(f"SELECT {to_sql(model, dialect='sqlite')} FROM data ORDER BY id").fetchall()
            assert [answer for (answer,) in found] == expected
    connection.close()


def stump(values: Any, y: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(1, 0.0, encoder=TableEncoder(AllThresholdsEncoder())).fit(
        pd.DataFrame({"x": values}), y
    )


@pytest.mark.daily(1)
@pytest.mark.parametrize("type_of_column", ["TIMESTAMP", "TIMESTAMP_NS"])
def test_nanoseconds_are_not_cut(type_of_column: str) -> None:
    """A threshold between two microseconds, on columns that count microseconds and on those that count nanoseconds."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    start = np.datetime64("2021-03-04T05:06:07.123456000")
    model = stump(start + np.arange(1, 1000), np.arange(1, 1000) >= 500)
    step = 1000 if type_of_column == "TIMESTAMP" else 1
    new = start + np.arange(-2000, 2001, step)
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE data ("x" {type_of_column})')
        connection.executemany("INSERT INTO data VALUES (?)", [[str(value).replace("T", " ")] for value in new])
        found = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY rowid").fetchall()
    assert [answer for (answer,) in found] == model.predict(pd.DataFrame({"x": new})).tolist()


def test_durations_between_two_microseconds() -> None:
    """Learnt from nanoseconds of both signs, asked of a column that counts microseconds."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    for middle in (-1_500, 1_500, -86_400 * 10**9 - 4_123_456_789, 90_061 * 10**9 + 59_999_999_499):
        steps = np.arange(-400, 400)
        model = stump((middle + steps).astype("m8[ns]"), steps >= 0)
        new = (middle // 1000 + np.arange(-4, 5)) * 1000
        with duckdb.connect() as connection:
            connection.execute('CREATE TABLE data ("x" INTERVAL)')
            connection.executemany("INSERT INTO data VALUES (?)", [[f"{value // 1000} microseconds"] for value in new])
            found = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY rowid").fetchall()
        assert [answer for (answer,) in found] == model.predict(pd.DataFrame({"x": new.astype("m8[ns]")})).tolist()


def test_years_that_databases_write_differently_are_refused() -> None:
    """A threshold before the year 1, and in SQLite one after 9999, would be read as another time."""
    early = stump(np.array(["-0044-03-15", "-0040-01-01"] * 5, dtype="M8[D]"), [0, 1] * 5)
    late = stump(np.array(["12000-03-15", "12001-01-01"] * 5, dtype="M8[D]"), [0, 1] * 5)
    with pytest.raises(InvalidInputError, match="years before 1"):
        to_sql(early)
    with pytest.raises(InvalidInputError, match="four digits"):
        to_sql(late, dialect="sqlite")
    assert "DATE '12000-08-01'" in to_sql(late)


@pytest.mark.daily(1)
@pytest.mark.parametrize("session", ZONES)
def test_zoned_times_do_not_depend_on_the_session(session: str) -> None:
    """The threshold of a zoned column is a moment, not a local time of whoever asks."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    times = pd.Series(pd.date_range("2021-01-01", periods=1000, freq="h", tz="Asia/Tokyo"))
    model = stump(times, np.arange(1000) >= 500)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{session}'")
        connection.execute('CREATE TABLE data ("x" TIMESTAMPTZ)')
        connection.executemany("INSERT INTO data VALUES (?)", [[time.isoformat()] for time in times])
        found = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY rowid").fetchall()
    assert [answer for (answer,) in found] == model.predict(pd.DataFrame({"x": times})).tolist()


def test_whole_numbers_beyond_floats_against_a_threshold_of_floats() -> None:
    """Learnt from floats, asked of BIGINT: the database must not round the column to the threshold's type."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'accel-oct[test]'")
    model = stump(np.array([1e17 - 32, 1e17 + 32] * 5), [0, 1] * 5)
    new = 10**17 + np.arange(-20, 21)
    with duckdb.connect() as connection:
        for kind, values in (("BIGINT", new), ("DOUBLE", new.astype(float))):
            connection.execute(f'CREATE OR REPLACE TABLE data ("x" {kind})')
            connection.executemany("INSERT INTO data VALUES (?)", [[value] for value in values.tolist()])
            found = connection.execute(f"SELECT {to_sql(model)} FROM data ORDER BY rowid").fetchall()
            assert [answer for (answer,) in found] == model.predict(pd.DataFrame({"x": values})).tolist()
