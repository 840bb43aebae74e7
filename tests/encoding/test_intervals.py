"""Intervals of DuckDB, Arrow and pandas are durations, exactly; months, which have no fixed length, are refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier, gather
from accel_oct.encoding import AutoEncoder, Table
from accel_oct.errors import InvalidInputError

QUERY = """
select case when i % 11 = 5 then null else to_days((i % 7)::int) + to_seconds(i * 997) end as waited, i % 3 as other,
       case when i * 997 + (i % 7) * 86400 > 300000 then 'late' else 'soon' end as answer
from range(200) r(i)
"""


def durations(query: str = QUERY) -> pd.DataFrame:
    """The same rows, waited as timedelta64 by plain arithmetic."""
    table = duckdb.connect().sql(query.replace("as waited", "as waited, i")).to_arrow_table().to_pandas()
    seconds = [row % 7 * 86_400 + row * 997 for row in table["i"].tolist()]
    waited = pd.Series(pd.to_timedelta(seconds, unit="s")).where(table["i"] % 11 != 5)
    return table.drop(columns="i").assign(waited=waited)


def test_intervals_of_duckdb_are_durations() -> None:
    """A fit on the relation is the fit on durations, and both answer alike on either."""
    connection, table = duckdb.connect(), durations()
    X, y = table[["waited", "other"]], table["answer"]
    one = OptimalTreeClassifier(max_depth=2, encoder=AutoEncoder(2)).fit(X, y)
    two = OptimalTreeClassifier(max_depth=2).fit(connection.sql(QUERY), "answer")
    assert two.encoder_.kinds_ == one.encoder_.kinds_ == ("duration", "numeric")
    assert two.encoder_.conditions_ == one.encoder_.conditions_
    assert (two.objective_, two.bound_) == (one.objective_, one.bound_)
    assert two.to_text() == one.to_text() and "day" in one.to_text()
    arrow = connection.sql(QUERY).to_arrow_table().select(["waited", "other"])
    for rows in (X, arrow, arrow.to_pandas()):
        assert two.predict(rows).tolist() == one.predict(X).tolist()


@given(
    st.lists(
        st.none()
        | st.tuples(st.integers(-(10**5), 10**5), st.integers(-(10**15), 10**15)).map(
            lambda pair: (0, pair[0], pair[1])
        ),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 3),
)
def test_every_interval_is_read_exactly(values: list[tuple[int, int, int] | None], skipped: int) -> None:
    """From Arrow, in chunks and slices, and as objects of Arrow and pandas."""
    known = [None if value is None else pa.MonthDayNano(value) for value in values]
    array = pa.array([None] * skipped + known, type=pa.month_day_nano_interval())[skipped:]
    expected = [None if value is None else value[1] * 86_400 * 10**9 + value[2] for value in values]
    arrow = Table.read(pa.table({"d": pa.chunked_array([array, array])}))
    assert arrow.columns[0].dtype.kind == "m"
    unit = {"us": 1000, "ns": 1}[np.datetime_data(arrow.columns[0].dtype)[0]]
    counts = [None if np.isnat(value) else int(value.astype(np.int64)) * unit for value in arrow.columns[0]]
    assert counts == expected * 2
    if any(value is not None for value in values) and len({*expected} - {None}) > 1:
        objects = np.empty(len(known), dtype=object)
        objects[:] = known
        offsets = pd.Series([None if v is None else pd.DateOffset(days=v[1], nanoseconds=v[2]) for v in values])
        whole = pd.DataFrame({"d": pd.Series([pd.NaT if v is None else np.timedelta64(v, "ns") for v in expected])})
        y = np.arange(len(values)) % 2
        model = OptimalTreeClassifier(max_depth=1, leaf_penalty=0).fit(whole, y)
        for rows in (pd.DataFrame({"d": objects}), pd.DataFrame({"d": offsets.astype(object)})):
            assert model.predict(rows).tolist() == model.predict(whole).tolist()


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"gap": pa.array([pa.MonthDayNano((1, 0, 0)), None], type=pa.month_day_nano_interval())}),
        pd.DataFrame({"gap": [pd.DateOffset(months=1), pd.DateOffset(days=1)]}),
        pd.DataFrame({"gap": [pd.DateOffset(years=1), None]}),
        pd.DataFrame({"gap": [pa.MonthDayNano((2, 0, 0)), dt.timedelta(1)]}, dtype=object),
    ],
    ids=["arrow", "pandas", "years", "objects"],
)
def test_months_are_refused(rows: Any) -> None:
    """They have no fixed length: a sentence names the column."""
    with pytest.raises(InvalidInputError, match=r"^X has intervals in column 'gap' with months or years, which"):
        OptimalTreeClassifier(max_depth=1).fit(rows, ["a", "b"])


def test_months_in_pieces_are_refused() -> None:
    """Whatever the encoder looks at."""
    relation = duckdb.connect().sql("select to_months((i % 5)::int) as gap, i % 2 as y from range(20) r(i)")
    with pytest.raises(InvalidInputError, match=r"X has intervals in column 'gap' with months or years"):
        gather(relation, "y")


def test_intervals_beyond_64_bits_are_refused() -> None:
    """Where days and the part of a day do not fit together."""
    value = pa.array([pa.MonthDayNano((0, 2**31 - 1, 0))], type=pa.month_day_nano_interval())
    # The one chunk would fit in microseconds by itself, the other needs nanoseconds.
    long = [pa.MonthDayNano((0, 10**6, 0))], [pa.MonthDayNano((0, 0, 1))]
    apart = pa.chunked_array([pa.array(part, type=pa.month_day_nano_interval()) for part in long])
    for column in (value, apart):
        with pytest.raises(InvalidInputError, match=r"^X has durations in column 'd' that are too long"):
            Table.read(pa.table({"d": column}))


def test_columns_without_a_known_interval() -> None:
    """All values are missing."""
    nothing = Table.read(pa.table({"d": pa.nulls(3, pa.month_day_nano_interval())})).columns[0]
    assert nothing.dtype.kind == "m" and np.isnat(nothing).all() and len(nothing) == 3
