"""Exported trees on 10,000 rows of six tables: does every format give the classes of `predict`?

    python -m accel_oct_bench.studies.formats --data-dir FOLDER [--rows 10000] [--depth 4]

Three tables are raw or published ones, three are generated: numbers of all sizes; dates, times with a zone, durations,
booleans and ordered categories; text with quotes, backslashes, line breaks, NUL and Unicode in names, categories and
classes. Trees are fitted with the default encoder. The rows are drawn again from the table; then a tenth of all cells
is missing, a twentieth of the text is a category that was not seen, and a tenth of the numbers is a threshold, one of
its neighbours or an extreme double.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from accel_oct import OptimalTreeClassifier, read_table
from accel_oct_bench.data import RAW_FILES
from accel_oct_bench.exported_trees import PROGRAMS
from accel_oct_bench.servers import Unavailable
from accel_oct_bench.studies.common import MarkdownTable, parser_of, registry_at

_RAW = ("breast-cancer", "hepatitis")
_FAIR = "german-credit"
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, 1e16 + 2, 2.0**-1022]
UNSEEN = [
    "",
    " ",
    "NULL",
    "nan",
    "o'ne",
    'q"uote',
    "back\\slash",
    "\\",
    "\\'",
    "a\nb",
    "\t",
    "ü",
    "日本",
    "😀",
    "a\0b",
    "--",
]
HOSTILE = [
    "it's",
    'say "no"',
    "back\\slash",
    "\\'; DROP TABLE data; --",
    "<&>]]>",
    "line\nbreak",
    "Ünï 日本 😀",
    " blank ",
]
START = np.datetime64("2021-03-28T00:00:00", "us")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--time-limit", type=float, default=20.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = MarkdownTable("table", "leaves", "rows", *PROGRAMS)
    reasons: dict[str, str] = {}
    for name, frame, y in [*published_tables(options.data_dir), *generated_tables(2000)]:
        model = fitted(frame, y, options.depth, options.time_limit)
        rows = tried_rows(model, frame, options.rows)
        found = {program: agreement(program, model, rows, reasons) for program in PROGRAMS}
        table.row(name, model.get_n_leaves(), len(rows), *found.values())
    for program, reason in reasons.items():
        print(f"\n{program}: {reason}")


def fitted(frame: Any, y: Any, depth: int, time_limit: float | None = None) -> OptimalTreeClassifier:
    """Return a deep tree of a table."""
    return OptimalTreeClassifier(depth, leaf_penalty=1e-4, time_limit=time_limit).fit(frame, y)


def agreement(program: str, model: Any, rows: Any, reasons: dict[str, str]) -> str:
    """Return on how many of the rows that a program can hold it gives the class of `predict`."""
    try:
        found = PROGRAMS[program](model, rows)
    except Unavailable as error:
        reasons[program] = str(error)
        return "not there"
    expected = model.predict(rows).tolist()
    held = [(one, other) for one, other in zip(found, expected, strict=True) if one is not None]
    same = sum(one == other for one, other in held)
    return f"{same} of {len(held)}" if same < len(held) or len(held) < len(rows) else "all"


# ---------------------------------------------------------------- tables


def published_tables(folder: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield two raw tables with missing values, and one of 0 and 1 whose names have signs and blanks."""
    import pandas as pd

    place = registry_at(folder).folder
    assert place is not None
    for name in _RAW:
        raw = RAW_FILES[name]
        (file,) = raw.files
        table = read_table(place / "raw" / file, delimiter=raw.separator or " ", header=raw.header, na_values=("?",))
        columns = {f"column {j}": values for j, values in enumerate(table.columns) if j != raw.target}
        yield name, pd.DataFrame(columns), np.array([str(label) for label in table.columns[raw.target].tolist()])
    fair = pd.read_csv(place / "fairness" / f"{_FAIR}.csv")
    yield _FAIR, fair, fair.pop("target").to_numpy()


def generated_tables(n_rows: int, seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Yield three tables: numbers of all sizes; times, booleans and orders; hostile text."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    tiny, plain = rng.normal(size=n_rows) * 5e-322, rng.normal(size=n_rows)
    large = rng.uniform(-1.7, 1.7, n_rows) * 1e308
    close = 1.0 + rng.integers(0, 40, n_rows) * 2.0**-52
    frame = pd.DataFrame({"tiny": tiny, "large": large, "plain": plain, "close": close})
    y = (tiny > 1e-322).astype(int) + (close > 1 + 19 * 2.0**-52) + 2 * ((large > 0.5e308) ^ (plain > 0.1234567890123))
    yield "numbers", _with_holes(frame, rng), y

    days = rng.integers(0, 2000, n_rows)
    times = START + rng.integers(-5 * 10**14, 5 * 10**14, n_rows).astype("m8[us]")
    spans = rng.integers(-(10**12), 10**12, n_rows)
    grades = rng.choice(["low", "mid", "high", "top"], n_rows)
    flags = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "day": (START.astype("M8[D]") + days).astype("M8[s]"),
            "time": pd.Series(times).dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
            "moment": times[::-1],
            "span": spans.astype("m8[us]"),
            "grade": pd.Categorical(grades, ["low", "mid", "high", "top"], ordered=True),
            "flag": pd.array(flags, dtype="boolean"),
        }
    )
    y = (
        (days > 900).astype(int)
        + (times > START)
        + 2 * ((spans > 10**9) ^ flags)
        + (grades == "top") * (times[::-1] > START)
    )
    yield "times", _with_holes(frame, rng), y

    columns = {
        name: rng.choice(np.array(HOSTILE, dtype=object), n_rows) for name in ("c'1", 'c"2', "c\\3\nc", "<c&4>", "`c`5")
    }
    columns["class"] = rng.choice(np.array(HOSTILE, dtype=object), n_rows)
    frame = pd.DataFrame(columns)
    parts = [frame.iloc[:, j].isin([HOSTILE[j], HOSTILE[(j + 3) % len(HOSTILE)]]).to_numpy() for j in range(6)]
    score = parts[0].astype(int) + 2 * parts[1] + 3 * (parts[2] & parts[3]) + (parts[4] | parts[5])
    yield "text", _with_holes(frame, rng), np.array(HOSTILE)[score]


def _with_holes(frame: Any, rng: Any) -> Any:
    """Make a cell in twenty missing."""
    return frame.mask(rng.random(frame.shape) < 0.05)


def tried_rows(model: Any, frame: Any, n_rows: int, seed: int = 1) -> Any:
    """Draw rows of a table, with more missing cells, unseen categories, thresholds and extreme numbers."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    rows = frame.iloc[rng.integers(0, len(frame), n_rows)].reset_index(drop=True)
    columns = {}
    for place, (name, kind) in enumerate(zip(frame.columns, model.encoder_.kinds_, strict=True)):
        values = rows[name]
        if kind == "categorical":
            values = values.astype(object)
            unseen = rng.choice(np.array([*UNSEEN, *HOSTILE], dtype=object), n_rows)
            values = values.where(rng.random(n_rows) >= 0.05, pd.Series(unseen))
        elif kind == "numeric":
            extreme = pd.Series(rng.choice([*EXTREMES, *_near_limits(model, place)], n_rows))
            values = values.astype(float).where(rng.random(n_rows) >= 0.1, extreme)
        elif kind in ("datetime", "duration"):
            near = _near_times(model, place, kind, rng, n_rows)
            if near is not None:
                values = values.where(rng.random(n_rows) >= 0.1, near.astype(values.dtype))
        columns[name] = values.mask(rng.random(n_rows) < 0.1)
    return pd.DataFrame(columns)


def _near_limits(model: Any, column: int) -> list[float]:
    """Return the limits of the conditions on a column, and their neighbours."""
    asked = [condition for condition in model.encoder_.conditions_ if condition.column == column]
    limits = [limit for c in asked for limit in (c.low, c.high, c.value) if limit is not None]
    return [float(np.nextafter(limit, toward)) for limit in limits for toward in (-np.inf, limit, np.inf)]


def _near_times(model: Any, column: int, kind: str, rng: np.random.Generator, n_rows: int) -> Any:
    """Return times or durations at the thresholds of a column, and a microsecond from them; None if it has none."""
    import pandas as pd

    low = [c.low for c in model.encoder_.conditions_ if c.column == column and c.low is not None]
    if not low:
        return None
    scale = model.encoder_.scales_[column]
    counts = rng.choice(np.array(low, dtype=np.int64), n_rows).astype(f"m8[{scale.unit}]").astype("m8[us]")
    spans = counts + rng.integers(-1, 2, n_rows).astype("m8[us]")
    if kind == "duration":
        return pd.Series(spans)
    times = pd.Series(np.datetime64(0, "us") + spans)
    return times if scale.zone is None else times.dt.tz_localize("UTC").dt.tz_convert(scale.zone)


if __name__ == "__main__":
    main()
