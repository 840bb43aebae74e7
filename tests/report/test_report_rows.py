"""A row that is typed into a report gets the answer of `predict`, in a real browser."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.report_support import opened, started_browser
from sklearn.exceptions import ConvergenceWarning

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import QuantileBucketEncoder, TableEncoder
from accel_oct.encoding.scales import NANOSECONDS
from accel_oct.errors import InvalidInputError
from accel_oct.report import write_report

ROWS = 70
RNG = np.random.default_rng(5)
#: Types each row into the form and tells the leaf that is shown; null where the form complains.
TYPED = """rows => rows.map(row => {
    for (const [column, text] of Object.entries(row)) {
        const field = document.getElementById("column-" + column);
        if (field) field.value = text;
    }
    document.getElementById("row").requestSubmit();
    return Number(document.getElementById("answer").dataset.leaf ?? NaN);
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found


def holed(values: Any, share: float = 0.15) -> list[Any]:
    """Some values missing."""
    return [None if RNG.random() < share else value for value in list(values)]


def instants(unit: str, count: int = ROWS) -> Any:
    """Times in 1969 to 2033, to a unit."""
    step = NANOSECONDS[unit]
    return pd.to_datetime(RNG.integers(-(10**16), 2 * 10**18, count) // step * step)


def series() -> dict[str, pd.Series]:
    """A column of each kind."""
    large = [2**60 + int(k) for k in RNG.integers(-40, 40, ROWS)]
    lengths = pd.to_timedelta(RNG.integers(-(3 * 10**14), 10**14, ROWS))
    return {
        "floats": pd.Series(RNG.normal(size=ROWS).round(3)).where(RNG.random(ROWS) > 0.1),
        "tiny floats": pd.Series(RNG.random(ROWS) * 1e-300),
        "whole numbers": pd.Series(RNG.integers(-50, 50, ROWS)),
        "large whole numbers": pd.Series(holed(large), dtype=object),
        "zero and one": pd.Series(holed(RNG.integers(0, 2, ROWS).tolist()), dtype=object),
        "booleans": pd.Series(holed((RNG.random(ROWS) < 0.5).tolist()), dtype=object),
        "categories": pd.Series(holed(RNG.choice(["a", "b ", " b", "3", "é\r\n<b>", ""], ROWS).tolist()), dtype=object),
        "many categories": pd.Series(holed([f"name {k}" for k in RNG.integers(0, 400, ROWS)]), dtype=object),
        "ordered": pd.Series(
            pd.Categorical(holed(RNG.choice(["low", "mid", "high"], ROWS)), ["low", "mid", "high"], True)
        ),
        "days": pd.Series(instants("D")).where(RNG.random(ROWS) > 0.1),
        "seconds": pd.Series(instants("s")),
        "milliseconds": pd.Series(instants("ms")),
        "nanoseconds": pd.Series(instants("ns")).where(RNG.random(ROWS) > 0.1),
        "zoned": pd.Series(instants("s").tz_localize("UTC").tz_convert("Europe/Berlin")),
        "durations": pd.Series(lengths).where(RNG.random(ROWS) > 0.1),
    }


KINDS = series()


def limits(model: OptimalTreeClassifier) -> list[Any]:
    """Every limit in the conditions of the tree."""
    asked = [model.encoder_.conditions_[f] for f in model.tree_.feature.tolist() if f >= 0]
    return [limit for condition in asked for limit in (condition.low, condition.high) if limit is not None]


def numbers(model: OptimalTreeClassifier, column: pd.Series) -> list[tuple[str, Any]]:
    """Training values, limits and their neighbours, written in several ways."""
    given: list[Any] = [value for value in column.tolist() if value is not None and value == value]
    for limit in limits(model):
        if isinstance(limit, int):
            given += [limit - 1, limit, limit + 1, float(limit), math.nextafter(float(limit), 0.0)]
        else:
            given += [limit, math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf), round(limit)]
    given += [0, -0.0, 10**22, -(10**22), 1e308, 5e-324, 2**53, 2**53 + 1]
    pairs = [(repr(value), value) for value in given]
    return [*pairs, ("+1", 1), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-2.5E-3", -0.0025), (" 7 ", 7), ("007", 7)]


def times(model: OptimalTreeClassifier, column: pd.Series, zone: str | None = None) -> list[tuple[str, Any]]:
    """Training values, limits, and what is one unit (one nanosecond where it can be typed) before and after."""
    unit = next(iter(model.encoder_.scales_.values())).unit
    per = NANOSECONDS[unit]
    step = 1 if zone or unit not in ("D", "s", "ms") else per
    moments = [int(limit) * per + k * step for limit in limits(model) for k in (-1, 0, 1)]
    stamps = [pd.Timestamp(moment, tz="UTC" if zone else None) for moment in moments]
    stamps += [stamp for stamp in column.tolist() if stamp is not pd.NaT]
    if zone:
        texts = [stamp.tz_convert(zone).isoformat(sep=" ") for stamp in stamps]
        return [*zip(texts, stamps, strict=True), *((s.tz_convert("UTC").isoformat()[:-6] + "Z", s) for s in stamps)]
    separator = " " if step == 1 else "T"
    precise = {"s": "seconds", "ms": "milliseconds"}.get(unit, "auto")
    return [(str(s.date()) if unit == "D" else s.isoformat(separator, precise), s) for s in stamps]


def durations(model: OptimalTreeClassifier, column: pd.Series) -> list[tuple[str, Any]]:
    """As pandas writes them, whose negative days have a positive rest, and as the library does."""
    unit = next(iter(model.encoder_.scales_.values())).unit
    counts = [int(limit) * NANOSECONDS[unit] + k for limit in limits(model) for k in (-1, 0, 1)]
    counts += [value.value for value in column.tolist() if value is not pd.NaT] + [0]
    found = []
    for nanoseconds in counts:
        value = pd.Timedelta(nanoseconds)
        days, rest = divmod(abs(nanoseconds), NANOSECONDS["D"])
        seconds, part = divmod(rest, 10**9)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{part:09d}"
        sign = "-" if nanoseconds < 0 else ""
        found += [(str(value), value), (f"{sign}{days} days {clock}", value)]
        found += [] if days else [(f"{sign}{clock}", value)]
    return found


def texts(column: pd.Series) -> list[str]:
    """Known categories, and one that fitting did not see."""
    return [*column.dropna().unique().tolist(), "never seen"]


def chosen(model: OptimalTreeClassifier, column: int, value: str) -> str:
    """The value of a select's option: the place of a category, or "other"."""
    scale = model.encoder_.scales_.get(column)
    known = model.encoder_.categories_[column] if scale is None else scale.categories
    return f"={known.index(value)}" if value in known else "other"


def candidates(name: str, model: OptimalTreeClassifier, column: pd.Series) -> list[tuple[str, Any]]:
    """Pairs of what is typed and what `predict` is given."""
    if name == "booleans":
        return [("true", True), ("false", False)]
    if name in ("categories", "ordered"):
        return [(chosen(model, 0, value), value) for value in texts(column)]
    if name == "many categories":
        return [(value, value) for value in texts(column)]
    if name == "durations":
        return durations(model, column)
    if name in ("days", "seconds", "milliseconds", "nanoseconds", "zoned"):
        return times(model, column, "Europe/Berlin" if name == "zoned" else None)
    return numbers(model, column)


@pytest.mark.daily(3)
@pytest.mark.filterwarnings("ignore:X has more than 50 categories")
@pytest.mark.parametrize("name", KINDS)
def test_typed_rows_get_the_answer_of_predict(name: str, browser: Any, tmp_path: Path) -> None:
    """Exact limits and their neighbours, values of the table, unknown and missing ones: the leaf is that of `apply`."""
    column = KINDS[name]
    X = pd.DataFrame({"x": column, "other": np.random.default_rng(7).random(ROWS)})
    y = (pd.factorize(column.astype(str), sort=True)[0] // 3 + (np.random.default_rng(7).random(ROWS) < 0.2)) % 3
    if name in ("zero and one", "booleans", "ordered"):
        y = pd.factorize(column.astype(str))[0] % 2
    model = OptimalTreeClassifier(3, 1e-4, exclude=["other"]).fit(X, y)
    assert model.get_n_leaves() >= 2
    pairs = [*candidates(name, model, column), ("", None)]
    timed = name in ("days", "seconds", "milliseconds", "nanoseconds", "zoned", "durations")
    values = pd.Series([value for _, value in pairs], dtype=None if timed else object)
    expected = model.apply(pd.DataFrame({"x": values, "other": 0.5}))
    path = write_report(model, tmp_path / "report.html", X, y)
    with opened(browser, path) as page:
        found = page.evaluate(TYPED, [{"0": text} for text, _ in pairs])
    wrong = [
        (text, leaf, want)
        for (text, _), leaf, want in zip(pairs, found, expected.tolist(), strict=True)
        if leaf != want
    ]
    assert not wrong, wrong[:5]
    assert len(set(found)) >= 2


@pytest.mark.daily(1)
@pytest.mark.parametrize("encoder", [QuantileBucketEncoder(4, missing="category"), TableEncoder(), "auto", None])
def test_random_rows_of_a_whole_table(encoder: Any, browser: Any, tmp_path: Path) -> None:
    """Five hundred rows, several columns, missing values; ranges, one-hot categories and plain binary columns."""
    kinds = ["floats", "whole numbers", "large whole numbers", "categories", "booleans", "ordered"]
    X = pd.DataFrame({name: KINDS[name] for name in kinds})
    if isinstance(encoder, QuantileBucketEncoder):
        X = X[kinds[:3]]
    elif encoder is None:
        X = pd.DataFrame(np.random.default_rng(7).integers(0, 2, (ROWS, 4)), columns=list("abcd"))
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, ROWS)
    model = OptimalTreeClassifier(4, 1e-4, encoder=encoder, time_limit=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    picks = {name: rng.integers(0, ROWS, 500) for name in X}
    rows = pd.DataFrame({name: X[name].take(pick).reset_index(drop=True) for name, pick in picks.items()})
    typed = [
        {str(j): _typed(model, j, value) for j, value in enumerate(row)}
        for row in rows.astype(object).itertuples(index=False)
    ]
    path = write_report(model, tmp_path / "report.html", X, y)
    with opened(browser, path) as page:
        found = page.evaluate(TYPED, typed)
    np.testing.assert_array_equal(found, model.apply(rows))
    assert len(set(found)) >= 4


def _typed(model: OptimalTreeClassifier, column: int, value: Any) -> str:
    """What is typed, or chosen, for a value."""
    kind = model.encoder_.kinds_[column]
    if value is None or value != value:
        return ""
    if kind == "boolean":
        return "true" if value else "false"
    return chosen(model, column, value) if kind in ("categorical", "ordered") else repr(value)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("floats", ["1,5", "abc", "1e999", "0x10", "1_000", "NaN", "inf", "--1", "1e", "٣"]),
        ("large whole numbers", ["9" * 400, "1 000"]),
        (
            "nanoseconds",
            ["2024-02-30", "2024-13-01", "24:00", "2024-01-01 24:00", "2024-01-01 12:60", "2024-01-01T00:00Z"],
        ),
        ("zoned", ["2024-01-01 12:00", "2024-01-01 12:00 Berlin"]),
        ("durations", ["", "days", "1 day 00:60:00", "1:2", "1.5 days", "-"]),
    ],
)
def test_what_cannot_be_read_is_said(kind: str, typed: list[str], browser: Any, tmp_path: Path) -> None:
    """Beside the field, which is marked and has the focus; no answer is shown, and the next row is answered again."""
    X, y = pd.DataFrame({"x": KINDS[kind]}), np.random.default_rng(7).integers(0, 2, ROWS)
    path = write_report(OptimalTreeClassifier(2, 1e-4).fit(X, y), tmp_path / "report.html", X, y)
    with opened(browser, path) as page:
        for text in filter(None, typed):
            page.fill("#column-0", text)
            page.click("#row button[type=submit]")
            assert page.locator("#column-0-error").is_visible(), text
            assert page.get_attribute("#column-0", "aria-invalid") == "true"
            assert page.evaluate("document.activeElement.id") == "column-0"
            assert page.inner_text("#answer") == "" and not page.locator(".way").count()
        page.fill("#column-0", "")
        page.press("#column-0", "Enter")
        assert page.locator("#column-0-error").is_hidden() and page.inner_text("#answer") != ""
        page.click("#row button[type=reset]")
        assert page.inner_text("#answer") == ""


def test_a_model_without_missing_values_asks_for_them(browser: Any, tmp_path: Path) -> None:
    """Where `predict` refuses a missing value, so does the form."""
    X, y = pd.DataFrame({"x": KINDS["whole numbers"]}), np.random.default_rng(7).integers(0, 2, ROWS)
    model = OptimalTreeClassifier(2, 1e-4, missing="error").fit(X, y)
    with pytest.raises(InvalidInputError):
        model.predict(pd.DataFrame({"x": [None]}))
    path = write_report(model, tmp_path / "report.html", X, y)
    with opened(browser, path) as page:
        assert np.isnan(page.evaluate(TYPED, [{"0": ""}])[0])
        assert "needs a value" in page.inner_text("#column-0-error")
