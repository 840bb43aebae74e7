"""Tables from files: every format, types that are never guessed, and files that are not what they should be."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import io
import lzma
import os
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, read_table
from accel_oct.cli import main
from accel_oct.encoding import AllThresholdsEncoder, Table, TableEncoder
from accel_oct.encoding.columns import infer_kind
from accel_oct.errors import InvalidInputError
from accel_oct.io.column_types import number_pattern

ALL = TableEncoder(AllThresholdsEncoder())


def written(tmp_path: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def column(tmp_path: Path, *cells: str, **options: Any) -> list[Any]:
    """What the cells of a column are read as; a second column keeps blank lines apart."""
    text = "a;b\n" + "".join(f"{cell};x\n" for cell in cells)
    table = read_table(written(tmp_path, text), delimiter=";", **options)
    return list(table.columns[0].tolist())


# ---------------------------------------------------------------- what a cell is


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "-3"], [1, 2, -3]),
        (["1.5", "2", "1e-3"], [1.5, 2.0, 0.001]),
        (["+1", ".5", "5."], [1.0, 0.5, 5.0]),
        (["007", "8"], ["007", "8"]),
        (["0", "00"], ["0", "00"]),
        (["-01", "1"], ["-01", "1"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["0x1F", "1"], ["0x1F", "1"]),
        (["1,5", "2"], ["1,5", "2"]),
        (["1-2", "3"], ["1-2", "3"]),
        (["1e", "3"], ["1e", "3"]),
        (["+", "3"], ["+", "3"]),
        (["٣", "3"], ["٣", "3"]),
        (["inf", "x"], ["inf", "x"]),
        (["none", "a"], ["none", "a"]),
        (["", "a"], [None, "a"]),
        (["True", "FALSE", ""], [True, False, None]),
        (["yes", "no"], ["yes", "no"]),
        (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992]),
        (["18446744073709551616", "1"], [18446744073709551616, 1]),
        (["9007199254740993", "0.5"], [9007199254740993, 0.5]),
        (["2021-03-05", "2021-03-06"], ["2021-03-05", "2021-03-06"]),
        ([" 1 ", "2"], [1, 2]),
    ],
)
def test_cells_are_what_they_say(cells: list[str], expected: list[Any], tmp_path: Path) -> None:
    """Numbers only where every cell is a plain one; nothing is repaired, and nothing long is rounded."""
    found = column(tmp_path, *cells)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


def test_missing_is_what_the_user_says(tmp_path: Path) -> None:
    """An empty cell, and the texts that were named, exactly as they are written."""
    assert np.isnan(column(tmp_path, "1", "", "3")[1])
    with pytest.warns(UserWarning, match="'na'"):
        assert column(tmp_path, "1", "NA", "na", na_values=["NA"]) == ["1", None, "na"]
    assert column(tmp_path, "1", "-999", "3", na_values=["-999"])[0::2] == [1.0, 3.0]
    assert np.isnan(column(tmp_path, "1", "-999", "3", na_values="-999")[1])
    assert np.isnan(column(tmp_path, "", "")).all()


@pytest.mark.parametrize("mark", ["NA", "?", "nan", "null", "none", "-", "inf"])
def test_numbers_beside_a_likely_mark_give_a_remark(mark: str, tmp_path: Path) -> None:
    """The column is text, and a warning says why; with na_values there is nothing to say."""
    with pytest.warns(UserWarning, match=r"column 'a' is text, not numbers"):
        assert column(tmp_path, "1", mark) == ["1", mark]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert column(tmp_path, "1", mark, na_values=[mark])[0] == 1.0
        assert column(tmp_path, "one", mark) == ["one", mark]


def test_decimal_marks(tmp_path: Path) -> None:
    """With a comma, a point is no number; the delimiter must be another character."""
    assert column(tmp_path, "1,5", "2", decimal=",") == [1.5, 2.0]
    assert column(tmp_path, "1.5", "2", decimal=",") == ["1.5", "2"]
    for decimal in (";", "", "..", "1"):
        with pytest.raises(InvalidInputError, match="decimal"):
            column(tmp_path, "1", decimal=decimal)


@pytest.mark.parametrize(
    ("cells", "dtype", "expected"),
    [
        (["1", "2"], "text", ["1", "2"]),
        (["1", ""], "number", [1.0, None]),
        (["true", "False"], "boolean", [True, False]),
        (
            ["2021-03-05", "2021-03-05 13:00:00", ""],
            "datetime",
            [dt.date(2021, 3, 5), dt.datetime(2021, 3, 5, 13), None],
        ),
        (["2021-03-05T13:00:00Z"], "datetime", [dt.datetime(2021, 3, 5, 13, tzinfo=dt.timezone.utc)]),
        (["2 days 03:00:00", "-1 day", "27:00:00.5"], "duration", None),
        (["low", "high"], "ordered:low<mid<high", ["low", "high"]),
    ],
)
def test_types_that_were_asked_for(cells: list[str], dtype: str, expected: Any, tmp_path: Path) -> None:
    """Each type reads what it should."""
    if expected is None:
        expected = [dt.timedelta(2, 3 * 3600), dt.timedelta(-1), dt.timedelta(hours=27, seconds=0.5)]
    found = column(tmp_path, *cells, dtype={"a": dtype})
    assert [None if value != value else value for value in found] == expected


@pytest.mark.parametrize(
    ("cell", "dtype", "message"),
    [
        ("x", "number", "must hold numbers, but row 2"),
        ("inf", "number", "must hold numbers"),
        ("maybe", "boolean", "true or false"),
        ("05.03.2021", "datetime", "a datetime such as"),
        ("2021-02-30", "datetime", "a datetime such as"),
        ("20210305", "datetime", "a datetime such as"),
        ("2021-03-05 13:00:00.1234567", "datetime", "microseconds"),
        ("2 weeks", "duration", "a duration such as"),
        ("", "nonsense", "dtype of column 'a'"),
        ("mid", "ordered:low<high", "one of low, high"),
        ("", "ordered:low", "two or more"),
    ],
)
def test_cells_that_do_not_fit_their_type(cell: str, dtype: str, message: str, tmp_path: Path) -> None:
    """One sentence with column and row."""
    good = {"number": "1", "boolean": "true", "datetime": "2021-01-01", "duration": "1 day"}.get(dtype, "low")
    with pytest.raises(InvalidInputError, match=message):
        column(tmp_path, good, cell, dtype={"a": dtype})
    with pytest.raises(InvalidInputError, match="'nothing'"):
        column(tmp_path, "1", dtype={"nothing": "text"})


CELLS = st.text(st.sampled_from('01957.eE+-_ ",;\n\rxé\x1c'), max_size=6)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=6), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
)
def test_text_files_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: Any) -> None:
    """Whatever the csv module writes is read back, stripped; types follow the rule, written down once more."""
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\r\n").writerows([["a", "b"], *rows])
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_table(path)
    assert len(table) == len(rows)
    pattern = number_pattern(".")
    for found, cells in zip(table.columns, zip(*rows, strict=True), strict=False):
        cells = tuple(cell.strip() for cell in cells)
        known = [cell for cell in cells if cell]
        numeric = all(pattern.match(cell) for cell in known)
        for value, cell in zip(found.tolist(), cells, strict=True):
            if not cell:
                assert value is None or value != value
            else:
                assert value == (float(cell) if numeric else cell)


@given(st.lists(st.tuples(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_numbers_read_back_exactly(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, float]]) -> None:
    """Whole numbers of any size, and floats bit for bit."""
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b!r}\n" for a, b in rows), encoding="utf-8")
    table = read_table(path)
    assert table.columns[0].tolist() == [a for a, _ in rows]
    assert table.columns[1].tolist() == [b for _, b in rows]


# ---------------------------------------------------------------- formats


def frame(n: int = 40) -> pd.DataFrame:
    k = np.arange(n)
    return pd.DataFrame(
        {
            "number": k * 1.5,
            "whole": k,
            "large": 2**60 + k,
            "text": np.array(["north", "south"])[k % 2],
            "flag": k % 3 == 0,
            "day": pd.date_range("2021-03-01", periods=n),
            "moment": pd.date_range("2021-03-27", periods=n, freq="h", tz="Europe/Berlin"),
            "waiting": pd.to_timedelta(k, unit="h"),
            "grade": pd.Categorical(np.array(list("CBA"))[k * 3 // n], categories=list("CBA"), ordered=True),
            "hole": [None if j % 5 == 0 else float(j) for j in k],
            "class": np.where(k >= 23, "late", "early"),
        }
    )


KINDS = (
    "numeric",
    "numeric",
    "numeric",
    "categorical",
    "boolean",
    "datetime",
    "datetime",
    "duration",
    "ordered",
    "numeric",
)
DTYPES = {"day": "datetime", "moment": "datetime", "waiting": "duration", "grade": "ordered:C<B<A"}


def saved(data: pd.DataFrame, path: Path) -> dict[str, Any]:
    """Write a frame by its ending, and say what reading it back needs to be told."""
    if path.suffix == ".parquet":
        data.to_parquet(path, index=False)
        return {}
    if path.suffix == ".feather":
        data.to_feather(path)
        return {}
    if path.suffix == ".zst":
        import pyarrow as pa

        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(data.to_csv(index=False).encode())
        return {"dtype": DTYPES}
    data.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return {"dtype": {name: kind for name, kind in DTYPES.items() if name in data}}


FILES = [
    "data.csv",
    "data.tsv",
    "data.csv.gz",
    "data.tsv.bz2",
    "data.csv.xz",
    "data.csv.zst",
    "data.parquet",
    "data.feather",
]


@pytest.mark.parametrize("name", FILES)
def test_every_format_from_file_to_prediction(name: str, tmp_path: Path) -> None:
    """File to table, fit, JSON, predict from the file by `like`: every kind of column splits exactly."""
    if name.endswith((".parquet", ".feather", ".zst")):
        pytest.importorskip("pyarrow", reason="needs the extra `files`")
    path = tmp_path / name
    options = saved(frame(), path)
    X, y = read_table(path, target="class", **options)
    assert tuple(TableEncoder().fit(X).kinds_) == KINDS
    expected = np.where(np.arange(40) >= 23, "late", "early").tolist()
    assert y.tolist() == expected
    for feature in ("number", "whole", "large", "day", "moment", "waiting"):
        model = OptimalTreeClassifier(1, 0.0, encoder=ALL).fit(X.select([feature]), y)
        copy = OptimalTreeClassifier.from_json(model.to_json())
        assert copy.predict(read_table(path, like=copy)).tolist() == expected


def test_excel(tmp_path: Path) -> None:
    """Types of cells, empty cells and #N/A, sheets by name and number, text that looks like a number."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra `files`")
    book = openpyxl.Workbook()
    book.active.append(["n", "t", "when", "flag", "class"])
    rows = [
        [1, "007", dt.datetime(2021, 3, 1), True, "a"],
        [None, "8", dt.datetime(2021, 3, 2), False, "b"],
        ["#N/A", "", dt.datetime(2021, 3, 3), None, "b"],
    ]
    for row in rows:
        book.active.append(row)
    other = book.create_sheet("other")
    other.append(["x"])
    other.append([2**40])
    book.create_sheet("bad").append(["x"])
    book["bad"].append(["#DIV/0!"])
    path = tmp_path / "data.xlsx"
    book.save(path)
    X, y = read_table(path, target="class")
    assert [infer_kind(values, "") for values in X.columns] == ["numeric", "categorical", "datetime", "boolean"]
    assert X.columns[0].tolist()[0] == 1 and X.columns[1].tolist() == ["007", "8", None]
    assert y.tolist() == ["a", "b", "b"]
    for sheet in ("other", 2, "2"):
        assert read_table(path, sheet=sheet).columns[0].tolist() == [2**40]
    for sheet, message in (("absent", "no sheet"), (9, "no sheet"), ("bad", "#DIV/0!.*A2")):
        with pytest.raises(InvalidInputError, match=message):
            read_table(path, sheet=sheet)
    assert read_table(path, dtype={"n": "text"}).columns[0].tolist() == ["1", None, None]


def test_types_of_typed_files_can_be_overruled(tmp_path: Path) -> None:
    """Text columns of a Parquet file are read by the same rules; a number can be made a name."""
    pytest.importorskip("pyarrow", reason="needs the extra `files`")
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": ["1", "NA", "3"], "b": [1, 2, 3], "c": ["x", "y", "x"]}, index=[5, 6, 7]).to_parquet(path)
    table = read_table(path, dtype={"a": "number", "b": "text", "c": "ordered:y<x"}, na_values="NA")
    assert table.names == ("a", "b", "c")
    assert table.columns[0].tolist()[::2] == [1.0, 3.0] and np.isnan(table.columns[0][1])
    assert table.columns[1].tolist() == ["1", "2", "3"]
    assert table.scale(2).categories == ("y", "x")  # type: ignore[union-attr]
    with pytest.raises(InvalidInputError, match="must hold a datetime"):
        read_table(path, dtype={"b": "datetime"})


# ---------------------------------------------------------------- frames of other libraries


def native_frames() -> Iterator[tuple[str, Any]]:
    data = frame().drop(columns="class")
    data["hole"] = data["hole"].astype(float)
    yield "pandas", data
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    grade = pl.Series(data["grade"].astype(str).tolist(), dtype=pl.Enum(["C", "B", "A"]))
    polars = pl.from_pandas(data.drop(columns="grade")).with_columns(grade.alias("grade")).select(data.columns.tolist())
    yield "polars", polars
    yield "lazy polars", polars.lazy()
    arrow = polars.to_arrow()
    codes = pa.array([["C", "B", "A"].index(value) for value in data["grade"]], pa.int8())
    ordered = pa.DictionaryArray.from_arrays(codes, pa.array(["C", "B", "A"]), ordered=True)
    yield "arrow", arrow.set_column(data.columns.get_loc("grade"), "grade", ordered)
    by_arrow = data.convert_dtypes(dtype_backend="pyarrow")
    yield "pandas by arrow", by_arrow.assign(moment=data["moment"])  # old versions of pandas lose the zone


def test_frames_of_every_library_are_read_alike() -> None:
    """pandas, polars, Arrow, lazy and nullable ones: the same kinds, features and codes; fit and predict mix."""
    frames = list(native_frames())
    first = TableEncoder(AllThresholdsEncoder()).fit(frames[0][1])
    for name, each in frames:
        encoder = TableEncoder(AllThresholdsEncoder()).fit(each)
        assert encoder.kinds_ == first.kinds_, name
        assert encoder.get_feature_names_out().tolist() == first.get_feature_names_out().tolist(), name
        for _, other in frames:
            assert (encoder.transform(other) == first.transform(frames[0][1])).all(), name


def test_classifiers_take_frames_of_every_library() -> None:
    """Fit, cross-validation, predict and score; names of columns are kept."""
    y = np.where(np.arange(40) >= 20, "late", "early")
    for name, each in native_frames():
        for model in (OptimalTreeClassifier(1), OptimalTreeClassifierCV(1, [0.1, 0.01], cv=2)):
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                assert model.fit(each, y).score(each, y) == 1.0, name
            assert list(model.feature_names_in_) == list(frame().columns[:-1])


def test_missing_values_of_other_libraries() -> None:
    """In every type, also where NumPy has no room for them: Arrow's dictionaries, whole numbers, booleans."""
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    data = pl.DataFrame(
        {
            "i": [1, None, 2**60 + 1],
            "u": pl.Series([2**63, None, 1], dtype=pl.UInt64),
            "b": [True, None, False],
            "s": ["x", None, "y"],
            "c": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "e": pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x"])),
            "d": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)],
            "t": [dt.time(1), None, dt.time(2)],
            "f": [0.5, None, 1.5],
            "n": [float("nan"), None, 1.0],
        }
    )
    for each in (data, data.to_arrow(), data.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)):
        table = Table.read(each)
        encoder = TableEncoder().fit(each)
        names = encoder.get_feature_names_out().tolist()
        assert [f"{name} is missing" in names for name in data.columns] == [True] * 10
        missing = [names.index(f"{name} is missing") for name in data.columns]
        assert encoder.transform(each)[:, missing].tolist() == [[0] * 9 + [1], [1] * 10, [0] * 10]
        assert table.columns[0].tolist()[2] == 2**60 + 1
    chunks = pa.chunked_array([pa.array(["x"]).dictionary_encode(), pa.array(["y", None]).dictionary_encode()])
    assert Table.read(pa.table({"c": chunks})).columns[0].tolist() == ["x", "y", None]
    with pytest.raises(InvalidInputError, match=r"List.*'l'"):
        Table.read(pl.DataFrame({"l": [[1], [2]]}))


# ---------------------------------------------------------------- files that are not what they should be


GOOD = "a,class\n" + "1,x\n2,y\n" * 400


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_compression(pack: Any, tmp_path: Path) -> None:
    """Cut off or changed in the middle: one sentence, never half of the rows."""
    packed = pack(GOOD.encode())
    assert len(read_table(written(tmp_path, packed, "good.csv"))) == 800
    for bad in (packed[:-12], packed[: len(packed) // 2], packed[:20] + b"\xff" * 8 + packed[28:]):
        with pytest.raises(InvalidInputError, match=r"bad\.csv|not a CSV"):
            read_table(written(tmp_path, bad, "bad.csv"))


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    """A small file of many zeros is refused at the limit; so is an archive that says it is too large."""
    bomb = written(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 10**6), "bomb.csv.gz")
    with pytest.raises(InvalidInputError, match="more than the 1000000 bytes"):
        read_table(bomb, max_bytes=10**6)
    pytest.importorskip("openpyxl")
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", b"\0" * 10**7)
    with pytest.raises(InvalidInputError, match="more than the limit of 1000000"):
        read_table(path, max_bytes=10**6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n1,2\n3\n", "line 3: 1 fields instead of 2"),
        (b"a,b\n1,2\n3,4,5\n", "line 3: 3 fields instead of 2"),
        (b'a,b\n1,2\n"3",4,5\n', "line 3: 3 fields instead of 2"),
        (b"a,b,a\n1,2,3\n", "alike: 'a'"),
        ("a,b\nä,1\n".encode("latin-1"), "encoding utf-8.*byte 4"),
        (b"a,b\n1,\0\n", "NUL"),
        (b"\0" * 100, "NUL"),
        (b'a,b\n"1,2\n', "not a CSV file"),
        (b'a,b\n"1"2,3\n', "not a CSV file"),
        (b"a,b\n" + b"1" * 200_000 + b",2\n", "field larger"),
        (b'a,b\n"' + b"1" * 200_000 + b'",2\n', "field larger"),
        (b"PAR1" + b"\0" * 50 + b"PAR1", "Parquet|pyarrow"),
        (b"ARROW1" + b"\0" * 50, "Feather|pyarrow"),
        (b"PK\x03\x04" + b"\0" * 50, "Excel|openpyxl"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 50, "old format"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 50, "data|pyarrow"),
    ],
)
def test_hostile_files(content: bytes, message: str, tmp_path: Path) -> None:
    """One sentence that names the file."""
    path = written(tmp_path, content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_header_alone_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is there; a tree cannot be."""
    path = written(tmp_path, "a,class\n")
    assert read_table(path).shape == (0, 2)
    assert main(["fit", str(path), "--target", "class", "--quiet"]) == 2
    assert "has no rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, "klingon"),
        ({"encoding": "hex"}, "not a CSV file"),
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"format": "parquet"}, "no parquet file"),
        ({"format": "excel"}, "no excel file"),
        ({"format": "fax"}, "format must be"),
        ({"target": "nothing"}, "no column 'nothing'"),
        ({"max_bytes": 3}, "more than the 3 bytes"),
    ],
)
def test_arguments_that_do_not_fit(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Each with what is wrong."""
    with pytest.raises(InvalidInputError, match=message):
        read_table(written(tmp_path, GOOD), **options)


def test_what_is_no_file(tmp_path: Path) -> None:
    """Folders, devices, nothing."""
    for path, message in (
        (tmp_path, "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (tmp_path / "x", "x: No such"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read_table(path)


def test_encodings_and_line_ends(tmp_path: Path) -> None:
    """Latin-1 and UTF-16 when told so, a byte order mark unasked; ends of lines of every system."""
    for encoding in ("latin-1", "utf-16", "utf-8-sig", "utf-8"):
        path = written(tmp_path, "a,b\r\nä,1\r\n\r\nß,2\r\n".encode(encoding))
        table = read_table(path, encoding="utf-8" if encoding.startswith("utf-8") else encoding)
        assert table.names == ("a", "b") and table.columns[0].tolist() == ["ä", "ß"]
    assert read_table(written(tmp_path, "a,b\r1,2\r3,4\r")).columns[1].tolist() == [2, 4]
    assert read_table(written(tmp_path, "1,2\n3,4"), header=False).columns[1].tolist() == [2, 4]


def test_the_two_ways_through_text_agree(tmp_path: Path) -> None:
    """Blocks of lines, where quotes begin in the third only, in cells of several lines."""
    rows = [[str(k), f" t{k % 7} ", "" if k % 11 else "z"] for k in range(50_000)]
    rows[45_000][1] = 'a "quote"\nand, a second line'
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    quoted = io.StringIO()
    csv.writer(quoted, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["a", "b", "c"], *rows])
    first, second = (read_table(written(tmp_path, each.getvalue())) for each in (text, quoted))
    for one, two, cells in zip(first.columns, second.columns, zip(*rows, strict=True), strict=True):
        assert one.tolist() == two.tolist()
        assert [str(value or "") for value in one.tolist()][1:] == [cell.strip() for cell in cells][1:]


# ---------------------------------------------------------------- the command line


def test_types_of_the_model_decide_at_predict(tmp_path: Path) -> None:
    """Codes that were text stay text in a file where all look like numbers; dates need not be named again."""
    train = written(
        tmp_path, "code,day,class\n" + "".join(f"{k % 3:03d}a,2021-01-{k + 1:02d},{k % 3 == 0}\n" for k in range(30))
    )
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    fit = [
        "fit",
        str(train),
        "--target",
        "class",
        "--quiet",
        "-o",
        str(model),
        "--dtype",
        "day=datetime",
        "--max-depth",
        "1",
    ]
    assert main(fit) == 0
    assert OptimalTreeClassifier.from_json(model).encoder_.kinds_ == ("categorical", "datetime")
    new = written(tmp_path, "day,code\n2021-02-01,000\n2021-02-01,000a\n", "new.csv")
    assert main(["predict", str(model), str(new), "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").split() == ["prediction", "False", "True"]
    bad = written(tmp_path, "day,code\nsoon,000a\n", "bad.csv")
    assert main(["predict", str(model), str(bad)]) == 2


def test_options_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Delimiter, decimal mark, encoding, missing values, types with a name that holds the mark."""
    text = "größe;na=me;grade;class\n" + "".join(f"{k},5;n/a;{'abc'[k % 3]};{k >= 10}\n" for k in range(20))
    path = written(tmp_path, text.encode("latin-1"))
    arguments = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1"]
    arguments += ["--na-values", "n/a", "--na-values", "?"]
    arguments += ["--dtype", "na=me=number", "--dtype", "grade=ordered:c<b<a"]
    for command in (["fit", "--max-depth", "1", "--quiet"], ["path", "--max-depth", "1"], ["encode"]):
        assert main([command[0], str(path), "--target", "class", *arguments, *command[1:]]) == 0
    printed = capsys.readouterr().out
    assert "größe < 10" in printed
    assert "grade >= b" in printed
    assert main(["fit", str(path), "--target", "class", "--dtype", "grade"]) == 2
    assert "NAME=TYPE" in capsys.readouterr().err


def test_standard_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-` in place of a file, compressed or not."""
    model = tmp_path / "model.json"

    def given(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    for content in (GOOD.encode(), gzip.compress(GOOD.encode())):
        given(content)
        assert main(["fit", "-", "--target", "class", "--max-depth", "1", "--quiet", "-o", str(model)]) == 0
        assert not sys.stdin.closed
    capsys.readouterr()
    given(b"a\n1\n2\n")
    assert main(["predict", str(model), "-", "-o", "-"]) == 0
    assert capsys.readouterr().out.split() == ["prediction", "x", "y"]
    given(b"")
    assert main(["predict", str(model), "-"]) == 2
    assert "standard input is empty" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_predictions_as_columns(ending: str, tmp_path: Path) -> None:
    """The ending decides; the old file survives a failure."""
    pytest.importorskip("pyarrow", reason="needs the extra `files`")
    data, model, out = written(tmp_path, GOOD), tmp_path / "model.json", tmp_path / f"out.{ending}"
    assert main(["fit", str(data), "--target", "class", "--max-depth", "1", "--quiet", "-o", str(model)]) == 0
    assert main(["predict", str(model), str(data), "--proba", "-o", str(out)]) == 0
    table = read_table(out)
    assert table.names == ("prediction", "probability of x", "probability of y")
    assert table.columns[0].tolist() == ["x", "y"] * 400
    assert os.listdir(tmp_path).count(f"out.{ending}") == 1


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says which extra to install."""
    for package in ("pyarrow", "openpyxl"):
        monkeypatch.setitem(sys.modules, package, None)
    for content in (b"PAR1", b"ARROW1", b"PK\x03\x04"):
        with pytest.raises(InvalidInputError, match=r"accel-oct\[files\]"):
            read_table(written(tmp_path, content + b"\0" * 20))
