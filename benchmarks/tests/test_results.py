"""Folders of results: rows are read whole, one process writes, no row is lost."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench_support import a_row, environment

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct_bench.results import LockedError, ResultsFolder, all_rows, merge_parts, read_lines, read_results
from accel_oct_bench.rows import Row

#: Holds the folder and waits to be killed; or writes rows until the limit of the file size is reached.
HOLDER = """
import sys, time
from accel_oct_bench.results import ResultsFolder
with ResultsFolder(sys.argv[1]).rows_file():
    print("held", flush=True)
    time.sleep(60)
"""
FULL = """
import resource, sys
from bench_support import a_row
from accel_oct_bench.results import ResultsFolder
from accel_oct.errors import AccelOctError
size = len(a_row().to_json()) + 1
resource.setrlimit(resource.RLIMIT_FSIZE, (int(size * 2.5), int(size * 2.5)))
with ResultsFolder(sys.argv[1]).rows_file() as file:
    try:
        for number in range(3):
            file.append(a_row(penalty=0.1 + 0.1 * number))
    except AccelOctError as error:
        print(error)
"""


def penalties(rows: list[Row] | tuple[Row, ...]) -> list[float]:
    return [row.instance.leaf_penalty for row in rows]


# ---------------------------------------------------------------- reading


def test_a_torn_end_is_no_row(tmp_path: Path) -> None:
    """Every beginning of a row, also a whole one without its line break, is told apart from the rows before."""
    first, second = a_row().to_json().encode() + b"\n", a_row(penalty=0.02).to_json().encode() + b"\n"
    file = tmp_path / "rows.jsonl"
    for cut in (1, 2, len(second) // 2, len(second) - 1):
        file.write_bytes(first + second[:cut])
        found, whole = read_lines(file)
        assert [row.key for row in found] == [a_row().key] and whole == len(first)
    file.write_bytes(first[: len(first) // 2] + b"\n" + second)
    with pytest.raises(InvalidInputError, match="line 1 is not a row"):
        read_lines(file)


def test_a_folder_gives_one_row_per_key(tmp_path: Path) -> None:
    """Of two with one key, the one that did not fail; parts are read as they are."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "rows.jsonl").write_text(a_row("crashed").to_json() + "\n")
    (tmp_path / "parts" / "00001-of-00002.jsonl").write_text(
        a_row().to_json() + "\n" + a_row(penalty=0.5).to_json() + "\n"
    )
    (tmp_path / "parts" / "00002-of-00002.jsonl").write_text(a_row("error").to_json() + "\n")
    found = read_results(tmp_path)
    assert [(row.status, row.instance.leaf_penalty) for row in found] == [("optimal", 0.01), ("optimal", 0.5)]


def test_a_place_without_results_is_said_to_be_one(tmp_path: Path) -> None:
    """An empty folder, and none."""
    with pytest.raises(InvalidInputError, match="holds no results"):
        read_results(tmp_path)
    with pytest.raises(InvalidInputError, match="there is no folder or file"):
        read_results(tmp_path / "nowhere")


# ---------------------------------------------------------------- writing


def test_rows_are_there_for_the_next_one(tmp_path: Path) -> None:
    """In the order in which they were appended."""
    folder = ResultsFolder(tmp_path / "deep" / "out")
    for penalty in (0.1, 0.2):
        with folder.rows_file() as file:
            file.append(a_row(penalty=penalty))
    with folder.rows_file() as file:
        assert penalties(file.rows) == [0.1, 0.2]


def test_a_torn_end_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The half of a row that a killed writer left is removed, and the next row is whole."""
    folder = ResultsFolder(tmp_path)
    torn = a_row(penalty=0.2).to_json()[:77].encode()
    (tmp_path / "rows.jsonl").write_bytes(a_row(penalty=0.1).to_json().encode() + b"\n" + torn)
    with caplog.at_level(logging.WARNING), folder.rows_file() as file:
        assert penalties(file.rows) == [0.1]
        file.append(a_row(penalty=0.3))
    assert "ended in the middle of a row" in caplog.text
    assert penalties(read_results(tmp_path)) == [0.1, 0.3]


def test_a_full_disk_loses_no_row(tmp_path: Path) -> None:
    """A row that does not fit leaves the file as it was, whole, and says how to go on."""
    run = subprocess.run([sys.executable, "-c", FULL, tmp_path], env=environment(), capture_output=True, text=True)
    assert "all 2 rows before are there: make room" in run.stdout, run.stderr
    assert penalties(read_lines(tmp_path / "rows.jsonl")[0]) == [0.1, 0.2]
    assert (tmp_path / "rows.jsonl").read_bytes().endswith(b"\n")


def test_a_row_that_was_cut_short_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails after half of a row: the half is removed, and the same row can be written later."""
    write = os.write

    def failing(target: int, content: bytes) -> int:
        if not content.startswith(b"{"):
            raise OSError(28, "No space left on device")
        return write(target, content[:40])

    with ResultsFolder(tmp_path).rows_file() as file:
        file.append(a_row(penalty=0.1))
        monkeypatch.setattr(os, "write", failing)
        with pytest.raises(AccelOctError, match="No space left on device; all 1 rows before"):
            file.append(a_row(penalty=0.2))
        monkeypatch.undo()
        file.append(a_row(penalty=0.2))
    assert penalties(read_lines(tmp_path / "rows.jsonl")[0]) == [0.1, 0.2]
    assert (tmp_path / "rows.jsonl").read_bytes().endswith(b"\n")


def test_two_cannot_write_to_one_folder(tmp_path: Path) -> None:
    """The second is told who the first is; when the first is killed, the folder is free, with no lock to clean up."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], env=environment(), stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with pytest.raises(LockedError, match=f"being written to by process {holder.pid} on"):
        ResultsFolder(tmp_path).rows_file()
    with pytest.raises(LockedError):
        merge_parts(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with ResultsFolder(tmp_path).rows_file() as file:
        file.append(a_row())


def test_a_failed_opening_lets_go_of_the_folder(tmp_path: Path) -> None:
    """A file that is no file of rows is refused twice in the same way, not as locked."""
    (tmp_path / "rows.jsonl").write_text('{"method": "solve"}\n')
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="before schema 1"):
            ResultsFolder(tmp_path).rows_file()


def test_rows_are_put_aside_to_be_made_again(tmp_path: Path) -> None:
    """They leave the file, and are kept beside it."""
    with ResultsFolder(tmp_path).rows_file() as file:
        for penalty, status in ((0.1, "optimal"), (0.2, "crashed"), (0.3, "optimal")):
            file.append(a_row(status, penalty))
        assert file.put_aside(lambda row: row.status == "crashed") == 1
        file.append(a_row(penalty=0.2))
    assert penalties(read_results(tmp_path)) == [0.1, 0.3, 0.2]
    assert penalties(read_results(tmp_path / "redone.jsonl")) == [0.2]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Said before anything runs."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match="out must be a folder"):
        ResultsFolder(tmp_path / "file")
    with pytest.raises(InvalidInputError, match="cannot make the folder"):
        ResultsFolder(tmp_path / "file" / "below")


def test_parts_are_merged_once(tmp_path: Path) -> None:
    """One row per key, a success before a failure; a part whose job runs is left; merging again changes nothing."""
    folder = ResultsFolder(tmp_path)
    with folder.rows_file() as file:
        file.append(a_row(penalty=0.1))
        file.append(a_row("error", penalty=0.2))
    with folder.part_file(1, 3) as part:
        for penalty, status in ((0.1, "crashed"), (0.2, "optimal"), (0.3, "error")):
            part.append(a_row(status, penalty))
    with folder.part_file(2, 3) as part:
        part.append(a_row(penalty=0.3))
        part.append(a_row(penalty=0.4))
    with folder.part_file(3, 3) as running:
        running.append(a_row(penalty=0.5))
        assert merge_parts(tmp_path) == (4, 1)
        assert merge_parts(tmp_path) == (0, 1)
    assert sorted(penalties(read_results(tmp_path))) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert merge_parts(tmp_path) == (1, 0)
    (found,) = all_rows([tmp_path])
    assert sorted(penalties(found.rows)) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert {row.status for row in found.rows} == {"optimal"}


def test_a_merge_that_was_cut_off_is_made_good(tmp_path: Path) -> None:
    """Rows were added but the part was not moved yet: they are not added twice."""
    folder = ResultsFolder(tmp_path)
    with folder.part_file(1, 1) as part, folder.rows_file() as file:
        part.append(a_row())
        file.append(a_row())
    assert merge_parts(tmp_path) == (0, 0)
    assert len(read_results(tmp_path)) == 1 and not list((tmp_path / "parts").glob("*.jsonl"))
    with pytest.raises(InvalidInputError, match="no folder of results"):
        merge_parts(tmp_path / "nowhere")
