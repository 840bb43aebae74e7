"""Cells by NumPy in blocks of bytes: what the csv module, `int` and `float` say cell by cell, down to the last bit."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel_oct import read_table
from accel_oct.cli import main
from accel_oct.cli.commands import tables
from accel_oct.errors import InvalidInputError
from accel_oct.io import cells as cells_module
from accel_oct.io import delimited
from accel_oct.io.cells import Cells, TextColumn, quotients

# ---------------------------------------------------------------- an oracle that shares no code with the library


def oracle(text: str, delimiter: str, missing: frozenset[str], decimal: str) -> Any:
    """Columns of values, or the line of the row that does not fit, or None for what is no CSV file."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if row and rows and len(row) != len(rows[0]):
                return reader.line_num
            if row:
                rows.append([cell.strip() for cell in row])
            if rows and len(set(rows[0])) < len(rows[0]):
                return None
    except csv.Error:
        return None
    if not rows:
        return None
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(rows[0])
    return [values_of(column, missing | {""}, decimal) for column in columns]


def values_of(column: tuple[str, ...], missing: frozenset[str], decimal: str) -> Any:
    known = [cell for cell in column if cell not in missing]
    mark = re.escape(decimal)
    number = rf"[+-]?((0|[1-9][0-9]*)({mark}[0-9]*)?|{mark}[0-9]+)([eE][+-]?[0-9]+)?"
    if known and all(cell.lower() in ("true", "false") for cell in known):
        return [None if cell in missing else cell.lower() == "true" for cell in column]
    if not all(re.fullmatch(number, cell) for cell in known):
        return [None if cell in missing else cell for cell in column]
    if any(math.isinf(float(cell.replace(decimal, "."))) for cell in known):
        return None
    whole = {cell for cell in known if re.fullmatch(r"[+-]?[0-9]+", cell)}
    if any(abs(int(cell)) > 2**53 for cell in whole):
        return [exact(cell, cell in whole, decimal) if cell not in missing else None for cell in column]
    if len(known) == len(column) and len(whole) == len(set(known)) and known:
        return [int(cell) for cell in column]
    return [math.nan if cell in missing else float(cell.replace(decimal, ".")) for cell in column]


def exact(cell: str, whole: bool, decimal: str) -> int | float:
    return int(cell) if whole else float(cell.replace(decimal, "."))


def check(
    text: str, folder: Path, *, delimiter: str = ",", missing: frozenset[str] = frozenset(), decimal: str = "."
) -> None:
    expected = oracle(text, delimiter, missing, decimal)
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = read_table(path, delimiter=delimiter, na_values=missing, decimal=decimal)
    except InvalidInputError as error:
        row = re.search(r"data\.csv, line (\d+): \d+ fields instead of \d+", str(error))
        assert isinstance(expected, int) if row else expected is None or None in expected, str(error)
        assert row is None or int(row[1]) == expected
        return
    found = [column.tolist() for column in table.columns]
    assert not isinstance(expected, int) and expected is not None and None not in expected
    assert repr(found) == repr(expected)  # types, signs of zeros and NaN included


SIZES = st.sampled_from([1, 7, 30, 1 << 19])


@given(
    st.text(st.sampled_from('01957.-+eE,,,,""\n\n\n\r \tx\u00a0é'), max_size=80),
    st.sampled_from([",", ";", " ", "§"]),
    SIZES,
)
@example('a,b\n"1,\n2",3\n', ",", 1)
@example('a,b\r\n"1\r2",3\r\n4, "5"\r\n', ",", 7)
@example('a,b\n1," 2"" "\n\n3,4"\n', ",", 30)
@example('a\n\n""\n \n1', ",", 7)
def test_any_text_is_cut_as_the_csv_module_cuts_it(
    tmp_path_factory: pytest.TempPathFactory, text: str, delimiter: str, size: int
) -> None:
    """Quotes and ends of lines anywhere, in blocks of any size: the same values, or an error with the same row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BLOCK_BYTES", size)
        patch.setattr(delimited, "_BYTES_PER_COLUMN", 0)
        check(text.replace(",", delimiter), tmp_path_factory.mktemp("csv"), delimiter=delimiter)


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?", fullmatch=True),
    st.sampled_from(["", "-0", "0", "-0.0", "+5", "5.", ".5", "1e5", "007", "-", "1.2.3", "--1", "NA", "-999", "true"]),
)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, st.text("ab \té", max_size=20)), max_size=30),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([frozenset(), frozenset({"-999"}), frozenset({"NA", "1", "0.5", "1e5"})]),
    SIZES,
)
def test_numbers_are_what_int_and_float_say(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Any],
    quoting: Any,
    end: str,
    missing: frozenset[str],
    size: int,
) -> None:
    """Whole numbers, decimals, exponents, missing ones and text among them; a decimal comma too."""
    for decimal, delimiter in ((".", ","), (",", ";")):
        text = io.StringIO()
        writer = csv.writer(text, quoting=quoting, lineterminator=end, delimiter=delimiter)
        writer.writerows([("a", "b", "c"), *([cell.replace(".", decimal) for cell in row] for row in rows)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "_BLOCK_BYTES", size)
            patch.setattr(delimited, "_BYTES_PER_COLUMN", 0)
            check(
                text.getvalue(), tmp_path_factory.mktemp("csv"), delimiter=delimiter, missing=missing, decimal=decimal
            )


def test_quotients_are_rounded_once() -> None:
    """Against exact rationals: random digits, and those whose quotient lies between two doubles or nearly so."""
    rng = random.Random(0)
    pairs = [(rng.randrange(10 ** rng.randrange(1, 19)), rng.randrange(19)) for _ in range(20_000)]
    for _ in range(20_000):  # halfway between two doubles, and one digit beside
        scale = rng.randrange(0, 3)
        exponent = rng.randrange(0, 5)
        middle = Fraction((2 * rng.randrange(2**52, 2**53) + 1) * 2**exponent, 2) * 10**scale
        number = int(middle) + rng.choice((-1, 0, 0, 1))
        if number < 10**18:
            pairs.append((number, scale))
    numbers = np.array([number * sign for number, _ in pairs for sign in (1, -1)], dtype=np.int64)
    scales = np.array([scale for _, scale in pairs for _ in (1, -1)], dtype=np.int8)
    found, certain = quotients(numbers, scales)
    wrong = [
        (number, scale)
        for number, scale, value, sure in zip(
            numbers.tolist(), scales.tolist(), found.tolist(), certain.tolist(), strict=True
        )
        if sure and value != float(Fraction(number, 10**scale))
    ]
    assert not wrong
    ties = sum(number > 2**53 for number, _ in pairs[20_000:])
    assert ties > 1000 and certain[scales >= 4].all()


@given(st.lists(st.one_of(NUMBERS, st.text("ab\u20acé", max_size=70)), max_size=40))
def test_cells_keep_every_text(cells: list[str]) -> None:
    """Whatever is kept as a number can be written down again."""
    for decimal in (".", ",", "·"):
        texts, codes = TextColumn.of("a", cells, decimal).coded()
        assert [texts[code] for code in codes.tolist()] == cells and len(set(texts)) == len(texts)


def test_texts_with_one_key_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of long texts may coincide: then each is looked at."""
    cells = [f"the {word} of a long text {k % 7}" for k in range(3000) for word in ("end", "middle")]
    for mixers in (cells_module._MIXERS, np.zeros(2, dtype=np.uint64)):
        monkeypatch.setattr(cells_module, "_MIXERS", mixers)
        found = Cells.of_texts(cells, ".")
        assert [found.texts[code] for code in found.numbers.tolist()] == cells and len(found.texts) == 14


# ---------------------------------------------------------------- the line of an error


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("row", [3, 400, 70_000])
def test_the_line_of_an_error(quote: str, row: int, tmp_path: Path) -> None:
    """The line in the file, with quotes or without, after cells of several lines and empty lines."""
    lines = ["a,b", *(f"{quote}{k}{quote},x" for k in range(2, 80_000))]
    lines[row - 1] = "1,2,3"
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=f"line {row}: 3 fields instead of 2"):
        read_table(path)
    lines[1] = '"a cell\nof three\nlines",y\n'  # and an empty line
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=f"line {row + 3}: 3 fields instead of 2"):
        read_table(path)


@pytest.mark.parametrize("row", [3, 70_000])
def test_the_line_of_a_stray_quote(row: int, tmp_path: Path) -> None:
    """What the csv module says, with the line."""
    lines = ["a,b", *(f'{k},"x"' for k in range(2, 80_000))]
    lines[row - 1] = '1,"2"3'
    (tmp_path / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=f"not a CSV file.*, in line {row}"):
        read_table(tmp_path / "data.csv")


def test_the_byte_of_a_wrong_encoding(tmp_path: Path) -> None:
    """Counted from the beginning of the file, however far behind it is."""
    good = b"a,b\n" + b"1,x\n" * 500_000
    (tmp_path / "data.csv").write_bytes(good + "ä,1\n".encode("latin-1"))
    with pytest.raises(InvalidInputError, match=f"encoding utf-8.*at byte {len(good)};"):
        read_table(tmp_path / "data.csv")


def test_a_column_of_numbers_whose_last_cell_is_text(tmp_path: Path) -> None:
    """Is text as it was written, from the first cell on."""
    cells = [f"{k}.{k % 10}0" for k in range(100_000)] + ["-1", "", "one"]
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8")
    table = read_table(tmp_path / "data.csv")
    assert table.columns[0].tolist() == [cell or None for cell in cells]
    assert table.columns[1].tolist() == [1] * len(cells)


def test_decimals_of_the_oracle() -> None:
    """`float` of Python rounds as exact rationals do, which the other tests rely on."""
    rng = random.Random(1)
    for _ in range(2000):
        text = f"{rng.randrange(10**17)}e-{rng.randrange(18)}"
        assert float(text) == float(Fraction(Decimal(text)))


# ---------------------------------------------------------------- while a file is read


def test_progress_counts_the_bytes(tmp_path: Path) -> None:
    """After decompression, never less than before, and all of them at the end."""
    content = b"a,b\n" + b"1,x\n" * 400_000
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(content, 1))
    told: list[int] = []
    read_table(tmp_path / "data.csv.gz", progress=told.append)
    assert told == sorted(told) and told[-1] == len(content) and len(told) > 2


def test_a_long_reading_shows_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, while the file is read; not in a quick one, and not with --quiet; nothing from the library."""
    path, model = tmp_path / "data.csv", tmp_path / "model.json"
    path.write_text("a,class\n" + "1,x\n2,y\n" * 400, encoding="utf-8")
    commands = [
        ["fit", str(path), "--target", "class", "--max-depth", "1", "-o", str(model)],
        ["predict", str(model), str(path)],
        ["check", str(model), str(path)],
        ["encode", str(path), "--target", "class"],
    ]
    line = f"reading {path}: 0 MB in 0 s"
    for patience in (1e9, 0.0):
        monkeypatch.setattr(tables, "_FIRST_LINE", patience)
        for command in commands:
            assert main(command) == 0
            told = capsys.readouterr()
            assert (line in told.err) is (patience == 0.0) and "reading" not in told.out
            assert main([*command, "--quiet"]) == 0
            assert "reading" not in capsys.readouterr().err
    read_table(path)
    assert capsys.readouterr() == ("", "")
