"""The bad files and command lines of an ordinary day: one clear sentence each, and the documented exit code."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel_oct.cli import main

GOOD = "age,place,class\n" + "".join(
    f"{k},{'north' if k % 3 else 'south'},{'old' if k >= 12 else 'young'}\n" for k in range(24)
)
SEMICOLONS = GOOD.replace(",", ";")


def written(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fit(path: object, *more: str) -> list[str]:
    return ["fit", str(path), "--target", "class", "--max-depth", "1", "--quiet", *more]


def sentence(capsys: pytest.CaptureFixture[str], kind: str = "error") -> str:
    """The only line on standard error."""
    told = capsys.readouterr().err
    assert told.startswith(f"accel-oct: {kind}: ") and told.count("\n") == 1 and told.endswith("\n")
    return told


# ---------------------------------------------------------------- files that are no tables


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"age,class\n", "has no rows below its header"),
        (b"class\nold\nyoung\n", "has no column besides 'class'"),
        (bytes(range(256)) * 8, "is not a text file"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 50 + b"\xff\xfe", "is not a text file"),
        (SEMICOLONS, "has a single column, 'age;place;class'; set the delimiter to ';'"),
        (GOOD.replace(",", "\t"), r"set the delimiter to '\t'"),
        (GOOD.replace("class", "klass"), "no column 'class'; did you mean 'klass'?"),
        (GOOD.replace("class", "Class"), "no column 'class'; did you mean 'Class'?"),
        (GOOD.replace("class", "outcome"), "no column 'class'; it has 'age', 'place', 'outcome'"),
        (GOOD.replace("place", "age"), "names two columns alike: 'age'"),
        (GOOD.replace("north", "köln").encode("latin-1"), "set the encoding that it has, such as latin-1"),
        (GOOD.encode("utf-16"), "set it to utf-16"),
        (GOOD.encode("utf-16-le"), "set it to utf-16-le"),
        (GOOD.encode("utf-16-be"), "set it to utf-16-be"),
        (GOOD.replace("3,", '3,"5",'), "fields instead of 3"),
        (GOOD.replace("\n3,", "\n3,5,"), "line 5: 4 fields instead of 3"),
        (GOOD.replace("\n3,", '\n"3,'), "is not a CSV file"),
        (GOOD.replace(",young", ","), "y has a missing"),
    ],
)
def test_files_that_cannot_be_used(
    content: str | bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong with the file, by name, and what to do about it; exit code 2 and nothing on standard output."""
    path = written(tmp_path, content)
    assert main(fit(path, "-o", str(tmp_path / "model.json"))) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert message in told.err and told.err.startswith("accel-oct: error: ")
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("\ufeff" + GOOD, []),
        (GOOD.replace("\n", "\r\n"), []),
        (GOOD.replace("north", "köln").encode("latin-1"), ["--encoding", "latin-1"]),
        (GOOD.encode("utf-16"), ["--encoding", "utf-16"]),
        (SEMICOLONS, ["--delimiter", ";"]),
        (SEMICOLONS.replace("1;", "1,0;").replace("2;", "2,0;"), ["--delimiter", ";", "--decimal", ","]),
    ],
)
def test_files_that_only_look_bad(
    content: str | bytes, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mark at the beginning, ends of lines of Windows, and whatever an option says: the tree is the same."""
    assert main(fit(written(tmp_path, content), *options)) == 0
    told = capsys.readouterr()
    assert "if age >= 12:\n    class old  (100.0% of 12)" in told.out and told.err == ""


def test_decimal_commas_are_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column of them is text unless one says so: a warning, for it may be what is meant."""
    path = written(tmp_path, "size;class\n" + "".join(f"{k},5;{k > 9}\n" for k in range(20)))
    assert main(fit(path, "--delimiter", ";")) == 0
    assert "column 'size' is text, not numbers, because of '0,5': set decimal to ','" in sentence(capsys, "warning")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,n,old\n", "a single row, of the class 'old'"),
        ("1,n,old\n2,n,old\n3,s,old\n", "all 3 rows have the class 'old'"),
    ],
)
def test_one_row_or_one_class(rows: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A single leaf is the optimum, which is a result; the warning says why there is no more."""
    assert main(fit(written(tmp_path, "age,place,class\n" + rows))) == 0
    assert message in sentence(capsys, "warning")


def test_places_that_are_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, and a folder; as table, model and run file."""
    table = written(tmp_path, GOOD)
    for arguments, message in (
        (fit(tmp_path / "missing.csv"), "missing.csv: No such file"),
        (fit(tmp_path), "it is a folder"),
        (["predict", str(tmp_path / "missing.json"), str(table)], "missing.json: No such file"),
        (["show", str(tmp_path)], "is not a regular file"),
        (["check", str(table), str(table)], "the JSON document"),
        (fit(table, "--config", str(tmp_path)), "is not a regular file"),
    ):
        assert main(arguments) == 2
        assert message in sentence(capsys)


def no_permission(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the right to open a file, also from root, who may open any."""
    before = Path.open

    def refuse(self: Path, *arguments: Any, **keywords: Any) -> Any:
        if self == path or self.parent == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return before(self, *arguments, **keywords)

    monkeypatch.setattr(Path, "open", refuse)


def test_a_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence of the system, with the name."""
    path = written(tmp_path, GOOD)
    no_permission(path, monkeypatch)
    assert main(fit(path)) == 2
    assert f"cannot read {path}: Permission denied" in sentence(capsys)


# ---------------------------------------------------------------- places that cannot be written


def commands(tmp_path: Path) -> dict[str, list[str]]:
    """Every command that writes a file, without the file."""
    table, model = written(tmp_path, GOOD), tmp_path / "model.json"
    assert main(fit(table, "-o", str(model))) == 0
    return {
        "fit": fit(table),
        "path": ["path", *fit(table)[1:]],
        "frontier": ["frontier", *fit(table)[1:]],
        "near-optimal": ["near-optimal", *fit(table)[1:]],
        "predict": ["predict", str(model), str(table)],
        "show": ["show", str(model)],
        "report": ["report", str(model), str(table)],
        "encode": ["encode", str(table), "-t", "class"],
    }


def test_bad_places_are_noticed_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is missing, a folder itself, no permission: no table is read and nothing is printed."""
    known, closed = commands(tmp_path), tmp_path / "closed"
    closed.mkdir()
    no_permission(closed, monkeypatch)

    def unexpected(*arguments: object, **keywords: object) -> None:
        raise AssertionError("a table was read")

    monkeypatch.setattr("accel_oct.cli.commands.tables.read_table", unexpected)
    monkeypatch.setattr("accel_oct.OptimalTreeClassifier.from_json", unexpected)
    capsys.readouterr()
    for command in known.values():
        for place, message in (
            (tmp_path / "nowhere" / "out", f"there is no folder {tmp_path / 'nowhere'}"),
            (tmp_path, "it is a folder"),
            (closed / "out", "Permission denied"),
        ):
            assert main([*command, "-o", str(place)]) == 2
            told = sentence(capsys)
            assert f"cannot write {place}" in told and message in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["closed", "data.csv", "model.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence and exit code 2; the tree that was found is printed all the same."""
    known = commands(tmp_path)
    capsys.readouterr()
    for name, command in known.items():
        assert main([*command, "-o", "/dev/full"]) == 2, name
        told = capsys.readouterr()
        assert "cannot write /dev/full: No space left on device" in told.err and told.err.count("\n") == 1, name
        assert ("class old" in told.out) is (name == "fit"), name


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("more", [pytest.param([], marks=pytest.mark.slow), ["--json"]])
def test_standard_output_on_a_full_disk(tmp_path: Path, more: list[str]) -> None:
    """Said once, with exit code 2, and not again when Python ends."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "accel_oct", *fit(written(tmp_path, GOOD)), *more]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "accel-oct: error: cannot write standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["predict", "MODEL", "MANY"], b"prediction\n"),
        pytest.param(["show", "MODEL", "--format", "png", "-o", "-"], b"", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_has_seen_enough(tmp_path: Path, arguments: list[str], first: bytes) -> None:
    """``accel-oct predict ... | head -1``: no error, and the exit code of a command that is done."""
    model = tmp_path / "model.json"
    assert main(fit(written(tmp_path, GOOD), "-o", str(model))) == 0
    files = {"MODEL": model, "MANY": written(tmp_path, "age,place\n" + "1,north\n" * 200_000, "many.csv")}
    command = [sys.executable, "-m", "accel_oct", *(str(files.get(each, each)) for each in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        if first:
            assert running.stdout.readline() == first
        running.stdout.close()
        told = running.stderr.read()
        assert running.wait(120) == 0 and told == b""


# ---------------------------------------------------------------- what is asked for cannot be had


def test_constraints_that_no_tree_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5: that there is none is proven, and no file is written."""
    table, out = written(tmp_path, GOOD), tmp_path / "model.json"
    rules = ["--constraint", "recall(old, at_least=1)", "--constraint", "positive_budget(0.1, positive=old)"]
    assert main(fit(table, *rules, "-o", str(out))) == 5
    assert "no tree of depth at most" in sentence(capsys) and not out.exists()
    assert main([*fit(table, *rules), "--json"]) == 5
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["code"], told["kind"]) == (5, "no_tree") and "over all splits of the table satisfies" in told[
        "message"
    ]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (lambda table: ["fit", "missing.csv", "-t", "class"], "bad_input"),
        (lambda table: ["fit", str(table), "-t", "clas"], "bad_input"),
        (lambda table: ["fit", str(table), "--no-such-option"], "bad_input"),
        (lambda table: ["config", "no-such-preset"], "bad_input"),
    ],
)
def test_errors_as_json(
    arguments: Callable[[Path], list[str]], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document on standard output, and the sentence for people on standard error."""
    assert main([*arguments(written(tmp_path, GOOD)), "--json"]) == 2
    told = capsys.readouterr()
    error = json.loads(told.out)["error"]
    assert (error["kind"], error["code"]) == (kind, 2)
    assert told.err == f"accel-oct: error: {error['message']}\n"


@pytest.mark.parametrize(
    "option",
    ["--leaf-penalty=N", "--class-weight=old=N", "--max-leaf-nodes=N", "--constraint=max_leaves(N)", "--config=FILE"],
)
def test_whole_numbers_that_no_float_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    """Are bad input, not a bug."""
    huge = "1" + "0" * 400
    file = written(tmp_path, f"[solver]\ntime_limit = {huge}\n", "run.toml")
    given = option.replace("N", huge).replace("FILE", str(file))
    assert main(fit(written(tmp_path, GOOD), given)) == 2
    assert "number" in sentence(capsys)


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize(
    "closed", [*(pytest.param(stream, marks=pytest.mark.slow) for stream in (">&-", "2>&-", "<&-")), ">&- 2>&- <&-"]
)
def test_closed_streams_do_not_keep_a_model_from_its_file(tmp_path: Path, closed: str) -> None:
    """A stream that was closed before we began leads nowhere, and what is printed there does not end up in files."""
    path, out = written(tmp_path, GOOD), tmp_path / "model.json"
    command = f'exec "$0" -m accel_oct fit {path} --target class --max-depth 1 -o {out} {closed}'
    ended = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(out.read_text())["training"]["target"] == "class"


@pytest.mark.slow
def test_standard_input_that_is_closed_is_empty(tmp_path: Path) -> None:
    """And that is bad input, not a bug."""
    command = 'exec "$0" -m accel_oct fit - --target class <&-'
    ended = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "accel-oct: error: standard input is empty\n")


def test_text_that_the_locale_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree is printed with escapes; data, which a program may read, are refused with a way out."""
    path, out = written(tmp_path, GOOD.replace("old", "älter")), tmp_path / "model.json"

    def run(*arguments: object) -> tuple[int, str]:
        """The code, and what was printed on either stream."""
        printed = io.BytesIO()
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(printed, "ascii", write_through=True))
        return main([*map(str, arguments)]), printed.getvalue().decode("ascii")

    code, printed = run(*fit(path, "-o", str(out)))
    assert code == 0 and "class \\xe4lter" in printed
    code, printed = run("predict", out, path)
    assert code == 2 and "standard output is ascii here and cannot hold '\\xe4'; name a file by --output" in printed
    assert run("predict", out, path, "-o", tmp_path / "p.csv")[0] == 0
    assert "älter" in (tmp_path / "p.csv").read_text(encoding="utf-8")
