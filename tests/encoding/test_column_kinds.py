"""Dates, durations, ordered categories, rare categories and large whole numbers, from the table to JSON and back."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import (
    AllThresholdsEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    Table,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_python, to_sql

ALL = TableEncoder(AllThresholdsEncoder())


def objects(*values: Any) -> pd.Series:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return pd.Series(cells, dtype=object)


def names_of(column: Any, encoder: Any = ALL) -> list[str]:
    return list(encoder.fit(pd.DataFrame({"x": column})).get_feature_names_out())


def stump(column: Any, y: Any, encoder: Any = ALL) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(1, 0.0, encoder=encoder).fit(pd.DataFrame({"x": column}), y)


def again(model: OptimalTreeClassifier) -> OptimalTreeClassifier:
    return OptimalTreeClassifier.from_json(model.to_json())


# ---------------------------------------------------------------- thresholds and their words


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.to_datetime(["2021-03-04", "2021-03-05"]), "x >= 2021-03-05"),
        (pd.to_datetime(["2019-05-04", "2022-08-05"]), "x >= 2021-01-01"),
        (pd.to_datetime(["2021-03-04 13:10:00", "2021-03-04 15:50:00"]), "x >= 2021-03-04 14:30:00"),
        (pd.to_datetime(["2021-03-04 13:00:00.25", "2021-03-04 13:00:00.75"]), "x >= 2021-03-04 13:00:00.5"),
        (
            pd.to_datetime(["2021-03-04 12:00", "2021-03-04 16:00"]).tz_localize("Europe/Berlin"),
            "x >= 2021-03-04 14:00:00+01:00",
        ),
        (pd.period_range("2020-01", periods=2, freq="M"), "x >= 2020-01-16"),
        (objects(dt.date(1900, 2, 28), dt.date(1900, 3, 1)), "x >= 1900-03-01"),
        (objects(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)), "x >= 5000-01-01"),
        (pd.to_timedelta(["1 days", "3 days 06:00:00"]), "x >= 2 days"),
        (pd.to_timedelta(["2 days 02:00:00", "2 days 04:00:00"]), "x >= 2 days 03:00:00"),
        (pd.to_timedelta(["-3 days", "-1 days"]), "x >= -2 days"),
        (objects(dt.time(9), dt.time(11)), "x >= 10:00:00"),
        (np.array(["2000", "2002"], dtype="M8[Y]"), "x >= 2001-01-01"),
        (np.array([1, 2], dtype="m8[ns]"), "x >= 00:00:00.000000002"),
        (pd.Categorical(["low", "mid", "low"], categories=["low", "mid"], ordered=True), "x >= mid"),
        (objects(2**60, 2**60 + 1), f"x >= {2**60 + 1}"),
        (objects(10**25, 10**25 + 100), f"x >= {10**25 + 50}"),
        (objects(Decimal("0.1"), Decimal("0.2")), "x >= 0.15"),
        (objects(Decimal(2**53 + 1), Decimal(2**53 + 2)), f"x >= {2**53 + 2}"),
    ],
)
def test_thresholds_read_as_the_column_does(column: Any, expected: str) -> None:
    """Short dates, durations with days, categories by name, whole numbers with all digits."""
    assert names_of(column) == [expected]


@given(
    st.sampled_from(["datetime", "duration"]),
    st.sampled_from(list(NANOSECONDS)),
    st.sampled_from([None, "UTC", "Europe/Berlin", "+05:45", "Nowhere/Else"]),
    st.integers(-(10**7), 10**7),
    st.integers(1, 10**7),
)
def test_a_threshold_of_a_scale_separates(kind: Any, unit: str, zone: str | None, low: int, gap: int) -> None:
    """low < t <= high in every unit and zone, and no two counts read alike."""
    scale = Scale(kind, unit, zone if kind == "datetime" else None)
    threshold = scale.threshold(low, low + gap)
    assert low < threshold <= low + gap
    assert scale.text(threshold) != scale.text(threshold + 1)
    assert Scale.from_dict(json.loads(json.dumps(scale.to_dict()))) == scale


# ---------------------------------------------------------------- exactness


MOMENTS = st.one_of(
    st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
    st.integers(-(10**5), 10**5).map(lambda seconds: dt.datetime(2000, 1, 1) + dt.timedelta(seconds=seconds)),
    st.dates().map(lambda day: dt.datetime(max(day.year, 2), day.month, min(day.day, 28))),
)


@given(st.lists(MOMENTS, min_size=2, max_size=8, unique=True), st.lists(MOMENTS, max_size=5), st.booleans())
def test_times_are_compared_exactly(known: list[dt.datetime], new: list[dt.datetime], aware: bool) -> None:
    """All thresholds order rows as Python orders the times, and moments between two counts fall on the right side."""
    if aware:
        zones = [dt.timezone.utc, dt.timezone(dt.timedelta(hours=5, minutes=45))]
        known, new = ([t.replace(tzinfo=zones[k % 2]) for k, t in enumerate(ts)] for ts in (known, new))
    encoder = AllThresholdsEncoder().fit(pd.DataFrame({"x": objects(*known)}))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc if aware else None)
    count = {moment: (moment - epoch) // dt.timedelta(microseconds=1) for moment in [*known, *new]}
    factor = NANOSECONDS[encoder.scales_[0].unit]
    limits = [int(condition.low) * factor for condition in encoder.conditions_]  # type: ignore[arg-type]
    near = [epoch + dt.timedelta(microseconds=limit // 1000 + step) for limit in limits for step in (-1, 0, 1)]
    count |= {moment: (moment - epoch) // dt.timedelta(microseconds=1) for moment in near}
    codes = encoder.transform(pd.DataFrame({"x": objects(*count)}))
    assert codes.tolist() == [[int(each * 1000 >= limit) for limit in limits] for each in count.values()]
    assert len({tuple(row) for row in codes[: len(known)].tolist()}) == len(set(known))


LARGE = st.one_of(st.integers(-(2**70), 2**70), st.integers(2**53 - 3, 2**53 + 3), st.floats(-1e18, 1e18))


@given(st.lists(LARGE, min_size=2, max_size=8), st.lists(LARGE, max_size=5))
def test_large_whole_numbers_stay_apart(known: list[Any], new: list[Any]) -> None:
    """Every two values that Python tells apart are told apart, whatever mixture of floats and whole numbers it is."""
    for encoder in (AllThresholdsEncoder(), QuantileThresholdEncoder(len(known) + 1)):
        fitted = encoder.fit(pd.DataFrame({"x": objects(*known)}))
        ranks = fitted.transform(pd.DataFrame({"x": objects(*known, *new)})).sum(axis=1).tolist()
        cells = [*known, *new]
        for condition in fitted.conditions_:
            assert any(v < condition.low for v in known) and any(v >= condition.low for v in known)
        for a, b in zip(cells, ranks, strict=True):
            assert all(not (a < c and b > d) for c, d in zip(cells, ranks, strict=True))
        if isinstance(encoder, AllThresholdsEncoder):
            assert len(set(ranks[: len(known)])) == len(set(known))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
@pytest.mark.parametrize("missing", [False, True])
def test_large_whole_numbers_from_fit_to_rules(dtype: Any, missing: bool) -> None:
    """Neighbours beyond 2**53 are two sides of a split: in predict, JSON, Python and SQL, beside missing values too."""
    values = [2**62 + k for k in range(20)]
    column = pd.array([*values, None], dtype="Int64") if missing else pd.Series(np.array(values, dtype=dtype))
    y = [int(v >= 2**62 + 7) for v in values] + ([0] if missing else [])
    for encoder in (ALL, TableEncoder(TreeGuidedThresholdEncoder())):
        model = again(OptimalTreeClassifier(2, 0.0, encoder=encoder).fit(pd.DataFrame({"x": column}), y))
        assert model.predict(pd.DataFrame({"x": column})).tolist() == y
        namespace: dict[str, Any] = {}
        exec(to_python(model), namespace)
        assert [namespace["predict"]({"x": v}) for v in values] == y[:20]
        assert [namespace["predict"]({"x": np.int64(v)}) for v in values] == y[:20]
        with sqlite3.connect(":memory:") as database:
            database.execute('CREATE TABLE t ("x" INTEGER)')
            database.executemany("INSERT INTO t VALUES (?)", [(v,) for v in values])
            assert [row[0] for row in database.execute(f"SELECT {to_sql(model)} FROM t ORDER BY rowid")] == y[:20]
        database.close()


def test_large_whole_numbers_fall_into_one_bucket() -> None:
    """Buckets between neighbours beyond 2**53 cover every number exactly once."""
    column = pd.Series(np.arange(2**60, 2**60 + 12))
    encoder = QuantileBucketEncoder(4).fit(pd.DataFrame({"x": column}))
    assert encoder.transform(pd.DataFrame({"x": column})).sum(axis=1).tolist() == [1] * 12
    assert (encoder.transform(pd.DataFrame({"x": column})).sum(axis=0) == 3).all()


def test_large_whole_numbers_as_categories() -> None:
    """Two names, one apart beyond 2**53, are two categories; those that floats hold are written as ever."""
    encoder = OneHotCategoryEncoder().fit(pd.DataFrame({"x": [2**53, 2**53 + 1, 3]}))
    assert encoder.transform(pd.DataFrame({"x": [2**53 + 1]})).sum() == 1
    assert list(encoder.get_feature_names_out()) == ["x = 3", "x = 9007199254740992.0", "x = 9007199254740993"]


def test_decimals_that_floats_cannot_tell_are_refused() -> None:
    """Rather than merged."""
    with pytest.raises(InvalidInputError, match=r"decimals in column 'x'"):
        names_of(objects(Decimal("0.10000000000000000001"), Decimal("0.1"), Decimal(1)))
    with pytest.raises(InvalidInputError, match="no float can hold"):
        names_of(objects(Fraction(2**60 + 1, 2), Fraction(1, 2), 2**60))


# ---------------------------------------------------------------- zones, clock changes, mixtures


def test_clock_changes() -> None:
    """The hour that occurs twice is two hours: instants are compared, and thresholds say their offset."""
    moments = pd.date_range("2021-10-31 00:00", periods=5, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
    names = names_of(pd.Series(moments))
    assert names == [
        "x >= 2021-10-31 02:15:00+02:00",
        "x >= 2021-10-31 02:45:00+02:00",
        "x >= 2021-10-31 02:15:00+01:00",
        "x >= 2021-10-31 02:45:00+01:00",
    ]
    spring = pd.date_range("2021-03-28 00:30", periods=2, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
    assert names_of(pd.Series(spring)) == ["x >= 2021-03-28 01:45:00+01:00"]


def test_zones_do_not_matter_for_the_answer() -> None:
    """The same instants, given in another zone or as objects with several offsets."""
    moments = pd.Series(pd.date_range("2021-03-27", periods=40, freq="h", tz="America/New_York"))
    model = again(stump(moments, np.arange(40) >= 23))
    for same in (moments.dt.tz_convert("Asia/Kathmandu"), objects(*moments.dt.tz_convert("UTC").dt.to_pydatetime())):
        assert model.predict(pd.DataFrame({"x": same})).tolist() == [k >= 23 for k in range(40)]


@pytest.mark.parametrize("at_predict", [False, True])
def test_times_with_and_without_zone_do_not_mix(at_predict: bool) -> None:
    """In one column, or between fit and predict: an error that names the column."""
    naive, aware = dt.datetime(2021, 1, 1), dt.datetime(2021, 1, 2, tzinfo=dt.timezone.utc)
    if not at_predict:
        with pytest.raises(InvalidInputError, match="with and without a time zone in column 'x'"):
            names_of(objects(naive, aware))
        return
    for first, second in ((naive, aware), (aware, naive)):
        fitted = TableEncoder().fit(pd.DataFrame({"x": objects(first, first + dt.timedelta(1))}))
        with pytest.raises(InvalidInputError, match="time zone in column 'x'"):
            fitted.transform(pd.DataFrame({"x": objects(second)}))


def test_missing_times_are_missing() -> None:
    """NaT, None, NaN and NA beside times; a column that is missing altogether at predict."""
    column = objects(dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1), pd.NaT, None, float("nan"), pd.NA)
    encoder = TableEncoder().fit(pd.DataFrame({"x": column}))
    names = ["x >= 2020-07-01", "x is missing", "x >= 2020-07-01 or missing"]
    assert encoder.get_feature_names_out().tolist() == names
    answers = [[0, 0, 0], [1, 0, 1], *[[0, 1, 1]] * 4]
    assert encoder.transform(pd.DataFrame({"x": column})).tolist() == answers
    for empty in (objects(None, None), pd.Series([np.nan, np.nan]), pd.Series(pd.to_datetime([None, None]))):
        assert encoder.transform(pd.DataFrame({"x": empty})).tolist() == [[0, 1, 1]] * 2
    with pytest.raises(InvalidInputError, match="'x', row 2"):
        TableEncoder(missing="error").fit(pd.DataFrame({"x": column}))


@pytest.mark.parametrize(
    ("column", "new", "message"),
    [
        (pd.to_datetime(["2021-01-01", "2021-01-02"]), ["yesterday"], "dates or times in column 'x', but row 0"),
        (pd.to_datetime(["2021-01-01", "2021-01-02"]), [5], "dates or times in column 'x'"),
        (pd.to_timedelta([1, 2], unit="h"), ["soon"], "durations in column 'x'"),
        (pd.to_timedelta([1, 2], unit="h"), [dt.date(2020, 1, 1)], "durations in column 'x'"),
        ([1.0, 2.0], pd.to_datetime(["2021-01-01"]), "numbers in column 'x'"),
    ],
)
def test_other_values_at_predict_are_refused(column: Any, new: Any, message: str) -> None:
    """A column keeps the kind it had in fit."""
    encoder = TableEncoder().fit(pd.DataFrame({"x": column}))
    with pytest.raises(InvalidInputError, match=message):
        encoder.transform(pd.DataFrame({"x": new}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([1, 2], dtype="M8[ps]"), "finer than nanoseconds"),
        (np.array([1, 2], dtype="m8[Y]"), "months or years"),
        (np.array([2**62, 5], dtype="M8[Y]"), "out of range"),
        (np.array([dt.time(1, tzinfo=dt.timezone.utc)] * 2, dtype=object), "times of the day with a time zone"),
    ],
)
def test_times_that_cannot_be_used(column: Any, message: str) -> None:
    """Each with the column."""
    with pytest.raises(InvalidInputError, match=f"{message}.*'x0'"):
        TableEncoder().fit(Table((column,), None, len(column)))


def test_dates_beside_text_are_text() -> None:
    """A mixture has no order; as ever, it is taken as categories."""
    assert TableEncoder().fit(pd.DataFrame({"x": objects(dt.date(2020, 1, 1), "n/a", 3)})).kinds_ == ("categorical",)


def test_weight_zero_does_not_choose_the_unit() -> None:
    """A row that is not there cannot make seconds of days."""
    column = pd.to_datetime(["2021-01-01 00:00:00", "2021-01-03 00:00:00", "2021-01-02 13:14:15"])
    weighted = AllThresholdsEncoder().fit(pd.DataFrame({"x": column}), sample_weight=[1, 1, 0])
    assert weighted.conditions_ == AllThresholdsEncoder().fit(pd.DataFrame({"x": column[:2]})).conditions_


# ---------------------------------------------------------------- ordered and rare categories


def test_ordered_categories_are_split_by_order() -> None:
    """By the order of the type, not of the alphabet; new data may come as text or in another order."""
    order = ["poor", "fair", "good", "great"]
    column = pd.Categorical(["poor", "good", "fair", "great"] * 5, categories=order, ordered=True)
    model = again(stump(column, np.isin(np.array(column), ["good", "great"]), "auto"))
    assert "x < good" in model.to_text()
    for new in (order, pd.Categorical(order, categories=order[::-1], ordered=True), pd.Categorical(order)):
        assert model.predict(pd.DataFrame({"x": new})).tolist() == [False, False, True, True]
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    assert [namespace["predict"]({"x": value}) for value in [*order, "new", None]] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert "IN ('good', 'great')" in to_sql(model)


@pytest.mark.parametrize("unknown", ["ignore", "warn", "error"])
def test_ordered_categories_unseen_at_predict(unknown: str) -> None:
    """No answer is yes, and they are not missing; a warning or an error where asked for."""
    column = pd.Categorical(["a", "b", "c", None], categories=["c", "b", "a"], ordered=True)
    encoder = TableEncoder(categorical=OneHotCategoryEncoder(unknown=unknown)).fit(pd.DataFrame({"x": column}))
    names = ["x >= b", "x >= a", "x is missing", "x >= b or missing", "x >= a or missing"]
    assert encoder.get_feature_names_out().tolist() == names
    new = pd.DataFrame({"x": ["z"]})
    if unknown == "error":
        with pytest.raises(InvalidInputError, match=r"'x'.*'z'"):
            encoder.transform(new)
    elif unknown == "warn":
        with pytest.warns(UserWarning, match="'z'"):
            assert not encoder.transform(new).any()
    else:
        assert not encoder.transform(new).any()


def test_many_ordered_categories_are_cut_at_quantiles() -> None:
    """No more thresholds than the limit on categories."""
    order = [f"{k:04d}" for k in range(400)]
    assert len(names_of(pd.Categorical(order, categories=order, ordered=True), TableEncoder())) <= 50


def test_rare_categories_share_a_feature() -> None:
    """As scikit-learn counts: the limit includes the shared feature; categories not seen belong to it."""
    X = pd.DataFrame({"c": [*"aaaaabbbbccc", "d", "e", None]})
    encoder = OneHotCategoryEncoder(3, missing="category").fit(X)
    names = ["c = a", "c = b", "c is infrequent", "c is missing"]
    assert encoder.get_feature_names_out().tolist() == [*names, *(f"{name} or missing" for name in names[:3])]
    new = pd.DataFrame({"c": ["a", "c", "e", "unseen", None]})
    plain = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert encoder.transform(new)[:, :4].tolist() == plain
    assert encoder.transform(new)[:, 4:].tolist() == [*(row[:3] for row in plain[:4]), [1, 1, 1]]
    assert OneHotCategoryEncoder(5, missing="category").fit(X).transform(X).shape == (15, 11)
    assert OneHotCategoryEncoder(1).fit(X[:-1]).transform(X[:-1]).shape == (14, 0)


def test_rare_categories_in_json_and_rules() -> None:
    """The shared feature decides; Python and SQL say the same of known, rare, new and missing values."""
    cells = ["a"] * 9 + ["b'"] * 8 + ["r1", "r2", "r3"]
    y = [0] * 17 + [1] * 3
    model = again(stump(cells, y, TableEncoder(categorical=OneHotCategoryEncoder(3))))
    assert "x is frequent" in model.to_text()
    new = ["a", "b'", "r1", "unseen", None]
    expected = model.predict(pd.DataFrame({"x": new})).tolist()
    assert expected == [0, 0, 1, 1, 0]
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    assert [namespace["predict"]({"x": value}) for value in new] == expected
    with sqlite3.connect(":memory:") as database:
        database.execute('CREATE TABLE t ("x" TEXT)')
        database.executemany("INSERT INTO t VALUES (?)", [(v,) for v in new])
        assert [row[0] for row in database.execute(f"SELECT {to_sql(model)} FROM t ORDER BY rowid")] == expected
    database.close()


def test_many_categories_are_limited_by_default_with_a_warning() -> None:
    """20,000 names give 50 features and one sentence; a limit that was chosen is not talked about."""
    X = pd.DataFrame({"name": [f"n{k % 20_000}" for k in range(20_100)]})
    with pytest.warns(UserWarning, match=r"more than 50 categories in column 'name' \(20000\)"):
        assert TableEncoder().fit(X).transform(X).shape == (20_100, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for limit, width in ((10, 10), (None, 60)):
            few = pd.DataFrame({"name": [f"n{k}" for k in range(60)]})
            assert TableEncoder(categorical=OneHotCategoryEncoder(limit)).fit(few).transform(few).shape == (60, width)
        assert TableEncoder().fit(few[:50]).transform(few[:50]).shape == (50, 50)


# ---------------------------------------------------------------- rules elsewhere, files


@given(st.lists(MOMENTS, min_size=4, max_size=12, unique=True), st.sampled_from(["naive", "aware", "date", "duration"]))
def test_generated_python_agrees_on_times(moments: list[dt.datetime], kind: str) -> None:
    """Rows seen and not seen, of every kind that Python itself has."""
    change = {
        "naive": lambda t: t,
        "aware": lambda t: t.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3))),
        "date": lambda t: t.date(),
        "duration": lambda t: t - dt.datetime(2000, 1, 1),
    }[kind]
    cells = [change(t) for t in moments]
    half = sorted(cells)[len(cells) // 2]
    model = again(stump(objects(*cells[::2]), [int(c >= half) for c in cells[::2]]))
    namespace: dict[str, Any] = {}
    exec(to_python(model), namespace)
    expected = model.predict(pd.DataFrame({"x": objects(*cells, None)})).tolist()
    assert [namespace["predict"]({"x": cell}) for cell in [*cells, None]] == expected


def test_sql_literals_of_times() -> None:
    """DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE, a sum of INTERVALs, and text in the order of time for SQLite."""
    y = np.arange(10) >= 5
    hours = pd.date_range("2021-01-01", periods=10, freq="h")
    for column, expected, sqlite in (
        (pd.date_range("2021-01-01", periods=10), "DATE '2021-01-06'", "replace(\"x\", 'T', ' ') >= '2021-01-06'"),
        (hours, "TIMESTAMP '2021-01-01 04:30:00'", ">= '2021-01-01 04:30'"),
        (
            hours.tz_localize("Asia/Tokyo"),
            "CAST('2020-12-31 19:30:00+00:00' AS TIMESTAMP WITH TIME ZONE)",
            ">= '2020-12-31 19:30:00'",
        ),
        (hours - hours[9], "INTERVAL '-4' HOUR + INTERVAL '-30' MINUTE", f'"x" >= {-4.5 * 3600e9:.0f}'),
    ):
        assert f'"x" >= {expected} THEN' in to_sql(stump(column, y))
        assert f"{sqlite} THEN" in to_sql(stump(column, y), dialect="sqlite")


def test_python_rules_refuse_what_they_cannot_say() -> None:
    """Nanoseconds, text instead of a date, a zone where there was none."""
    with pytest.raises(InvalidInputError, match="finer than microseconds"):
        to_python(stump(np.arange(10).astype("M8[ns]"), np.arange(10) >= 5))
    namespace: dict[str, Any] = {}
    exec(to_python(stump(pd.date_range("2021-01-01", periods=10), np.arange(10) >= 5)), namespace)
    with pytest.raises(TypeError):
        namespace["predict"]({"x": "2021-01-01"})
    with pytest.raises(ValueError):
        namespace["predict"]({"x": dt.datetime(2021, 1, 1, tzinfo=dt.timezone.utc)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["encoder"].pop("scales"), "scales"),
        (lambda d: d["encoder"]["scales"][0].__setitem__(0, 7), "scales"),
        (lambda d: d["encoder"]["scales"][0][1].update(unit="fortnight"), "unit"),
        (lambda d: d["encoder"]["scales"][0][1].update(zone="../../etc/passwd\n"), "zone"),
        (lambda d: d["encoder"]["scales"][0][1].update(kind="ordered"), "unit"),
        (lambda d: d["encoder"]["scales"][0][1].update(code="x"), "entry"),
        (lambda d: d["encoder"]["conditions"][0].update(low=0.5), "does not fit"),
        (lambda d: d["encoder"]["conditions"][0].update(low=10**200), "out of range"),
        (lambda d: d["encoder"]["conditions"][0].update(test="none_of", values=["a"]), "does not fit"),
        (lambda d: d["columns"].update(kinds=["numeric"]), "scales"),
    ],
)
def test_stored_scales_are_checked(change: Any, message: str) -> None:
    """What was changed in a file is found, in one sentence."""
    document = json.loads(stump(pd.date_range("2021-01-01", periods=10), np.arange(10) >= 5).to_json())
    change(document)
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier.from_json(json.dumps(document))
