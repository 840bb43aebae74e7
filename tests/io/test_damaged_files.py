"""Files that were damaged, cut off or made to exhaust memory: one sentence of ours, never another error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accel_oct import Tally, read_table
from accel_oct.cli import main
from accel_oct.errors import InvalidInputError

CSV = 'a,b,"c d",class\n' + "".join(f"{k},{k / 7!r},'t {k % 5}',{'xy'[k % 2]}\n" for k in range(60))
QUOTED = 'a,b\n"1, 2",x\n"a ""word""\nin two lines", y\n,"z"\n' * 5


def _columns(kind: str) -> bytes:
    file = io.BytesIO()
    frame = pd.DataFrame({"a": np.arange(50), "b": np.arange(50) / 3, "c": list("vwxyz") * 10})
    if kind == "excel":
        pytest.importorskip("openpyxl", reason="needs the extra `files`")
        frame.to_excel(file, index=False)
    else:
        pytest.importorskip("pyarrow", reason="needs the extra `files`")
        (frame.to_parquet if kind == "parquet" else frame.to_feather)(file)
    return file.getvalue()


def _zstd(content: bytes) -> bytes:
    arrow = pytest.importorskip("pyarrow", reason="needs the extra `files`")
    return bytes(arrow.compress(content, codec="zstd", asbytes=True))


def _tally(folder: Path) -> bytes:
    X = np.random.default_rng(0).integers(0, 2, (30, 4))
    Tally.of(X, X[:, 0], depth=2).save(folder / "whole")
    return (folder / "whole").read_bytes()


READERS: dict[str, tuple[Callable[[Path], bytes], Callable[[Path], Any]]] = {
    "data.csv": (lambda _: CSV.encode(), read_table),
    "quoted.csv": (lambda _: QUOTED.encode(), read_table),
    "data.csv.gz": (lambda _: gzip.compress(CSV.encode(), mtime=0), read_table),
    "data.csv.bz2": (lambda _: bz2.compress(CSV.encode()), read_table),
    "data.csv.xz": (lambda _: lzma.compress(CSV.encode()), read_table),
    "data.csv.zst": (lambda _: _zstd(CSV.encode()), read_table),
    "data.parquet": (lambda _: _columns("parquet"), read_table),
    "data.feather": (lambda _: _columns("feather"), read_table),
    "data.xlsx": (lambda _: _columns("excel"), read_table),
    "data.tally": (_tally, Tally.load),
}


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A copy that is cut off, has bytes changed, lacks a part or has one twice."""
    way, place = rng.randrange(5), rng.randrange(len(content))
    if way == 0:
        return content[:place]
    if way == 1:
        return content[:place] + content[place + rng.randrange(1, 20) :]
    if way == 2:
        return content[:place] + content[place : place + rng.randrange(1, 20)] + content[place:]
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3))):
        changed[rng.randrange(len(content))] = rng.choice((0, 0xFF, rng.randrange(256), ord('"'), ord("9")))
    return bytes(changed)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    """What is read from a damaged copy is either a value or our own error, which names the file in one line."""
    make, read = READERS[name]
    content, path, rng = make(tmp_path), tmp_path / name, random.Random(name)
    refused = 0
    for _ in range(150):
        path.write_bytes(damaged(content, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(path)
        except InvalidInputError as error:
            refused += 1
            assert name in str(error) or "column" in str(error)
            assert "\n" not in str(error) and len(str(error)) < 700
    assert refused > 10


def test_every_byte_of_the_header_of_counts(tmp_path: Path) -> None:
    """One byte of a tally's .npy header changed, in a zip that is in order otherwise."""
    _tally(tmp_path)
    with zipfile.ZipFile(tmp_path / "whole") as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    for place in range(128):
        for byte in b"\0'(),:9\\ \n\xff":
            changed = bytearray(members["counts_1.npy"])
            changed[place] = byte
            with zipfile.ZipFile(tmp_path / "bad", "w") as packed:
                for name, content in (members | {"counts_1.npy": bytes(changed)}).items():
                    packed.writestr(name, content)
            try:
                Tally.load(tmp_path / "bad")
            except InvalidInputError as error:
                assert "cannot read the tally" in str(error) and "\n" not in str(error)


# ---------------------------------------------------------------- numbers beyond all limits


@pytest.mark.parametrize("cell", ["9" * 300, "1" + "0" * 307, "-" + "7" * 305])
def test_long_whole_numbers_stay_what_they_are(cell: str, tmp_path: Path) -> None:
    """As documented for whole numbers of any size, up to the largest double."""
    for beside in ("1", "12345678901234567890", "0.5", ""):
        (tmp_path / "data.csv").write_text(f"a,b\n{cell},x\n{beside},y\n", encoding="utf-8")
        found = read_table(tmp_path / "data.csv").columns[0].tolist()
        assert found[0] == int(cell) and type(found[0]) is int


@pytest.mark.parametrize("cell", ["9" * 309, "-" + "1" * 400, "9" * 5000, "1e400", "-1.5E+99999999999999999999"])
def test_numbers_beyond_the_largest_double_are_refused(
    cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With column and row, in a file of numbers as well as in one with missing values; as text they can be read."""
    for rows in ("1,x\n{},y\n", "1.5,x\n{},y\n", ",x\n{},y\n", "true,x\n{},y\n"):
        path = tmp_path / "data.csv"
        path.write_text("a,class\n" + rows.format(cell), encoding="utf-8")
        if rows.startswith("true"):  # the column is text anyway
            assert read_table(path).columns[0].tolist()[1] == cell
            continue
        with pytest.raises(InvalidInputError, match=r"column 'a' .*row 2 .*dtype") as caught:
            read_table(path)
        assert len(str(caught.value)) < 300
        assert read_table(path, dtype={"a": "text"}).columns[0].tolist()[1] == cell
        assert main(["fit", str(path), "--target", "class", "--quiet"]) == 2
        assert "Traceback" not in capsys.readouterr().err


# ---------------------------------------------------------------- files that unpack to more than they are


def peak_of(work: Callable[[], Any]) -> int:
    """Most bytes that Python held while working."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{}<sheetData>{}</sheetData></worksheet>'


def sheet(path: Path, rows: str, dimension: str = "") -> Path:
    """An Excel file whose only sheet holds these rows of XML."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra `files`")
    plain = io.BytesIO()
    openpyxl.Workbook().save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            changed = SHEET.format(dimension, rows).encode() if "sheet1.xml" in name else source.read(name)
            target.writestr(name, changed)
    return path


def cell(place: str, value: object) -> str:
    return f'<c r="{place}" t="n"><v>{value}</v></c>'


FAR = f'<row r="1">{cell("A1", 1)}</row><row r="1048576">{cell("XFD1048576", 2)}</row>'


@pytest.mark.daily(1)
@pytest.mark.parametrize("dimension", ["", '<dimension ref="A1:XFD1048576"/>', '<dimension ref="A1"/>'])
def test_a_sheet_of_two_cells_far_apart_is_small(dimension: str, tmp_path: Path) -> None:
    """A1 and XFD1048576: empty cells between them take no memory, and the size that the sheet claims is not used."""
    path = sheet(tmp_path / "far.xlsx", FAR, dimension)
    table = read_table(path, header=False)
    assert [values.tolist() for values in table.columns] == [[1, None], [None, 2]] or np.isnan(table.columns[0][1])
    assert table.shape == (2, 2)
    assert peak_of(lambda: read_table(path, header=False)) < 20_000_000


def test_sheets_that_are_wider_than_allowed_are_refused(tmp_path: Path) -> None:
    """Rows with one far cell each, and columns with one cell each: refused before there is room for all of it."""
    wide = "".join(f'<row r="{k}">{cell(f"XFD{k}", 1)}</row>' for k in range(1, 4001))
    letters = [a + b for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    steps = "".join(f'<row r="{k}">{cell(f"{name}{k}", 1)}</row>' for k, name in enumerate(letters, start=1))
    long = steps + "".join(f'<row r="{k}">{cell(f"A{k}", 1)}</row>' for k in range(300, 20_000))
    for rows in (wide, long):
        path = sheet(tmp_path / "wide.xlsx", rows)

        def refused(path: Path = path) -> None:
            with pytest.raises(InvalidInputError, match=r"wide\.xlsx .*more than the limit of 4000000"):
                read_table(path, max_bytes=4_000_000)

        assert peak_of(refused) < 40_000_000
