"""`accel-oct check --proof` on files that are no certificates: a sentence, an exit code, and bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from accel_oct import OptimalTreeClassifier
from accel_oct.cli.app import run


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its table."""
    folder = tmp_path_factory.mktemp("proof")
    X, y = pd.DataFrame({"a": [1, 2, 3, 4] * 5, "b": [5, 6] * 10}), [0, 1, 1, 0] * 5
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, y)
    model.certificate(folder / "proof.json", X, y, table=folder / "data.csv")
    return folder / "proof.json", folder / "data.csv"


def check(file: Path, table: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """The exit code and the one line that is printed."""
    code = run(["check", "--proof", *more, "--", str(file), str(table)])
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    (line,) = (told.out + told.err).splitlines()
    return code, line


def test_a_good_certificate_is_proven(proof: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and the sentence of the checker."""
    code, said = check(*proof, capsys)
    assert code == 0 and said.startswith("proven by 1 lemmas")


HOSTILE: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 2, "is not JSON"),
    "binary": (bytes(range(256)) * 9, 2, "is not JSON"),
    "deep": (b'{"format":' * 10**6, 2, "is not JSON"),
    "deep list": (b"[" * 10**6 + b"]" * 10**6, 2, "is not JSON"),
    "long number": (b'{"format": ' + b"9" * 10**6 + b"}", 2, "is not JSON"),
    "list": (b"[1, 2]", 2, "is no certificate"),
    "number": (b"7", 2, "is no certificate"),
    "twice": (b'{"format": 1, "format": 2}', 2, "names a key twice"),
    "floats": (b'{"format": "accel-oct certificate", "version": 1, "claim": NaN}', 2, "only integers"),
    "surrogate": (b'{"format": "\\ud800"}', 2, "is no certificate"),
    "cut gzip": (gzip.compress(b"{}" * 999)[:-7], 2, "cannot read"),
    "wrong gzip": (b"\x1f\x8b" + bytes(99), 2, "cannot read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_are_no_certificates(
    name: str, proof: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 2, for the certificate's place and in it."""
    content, code, words = HOSTILE[name]
    (tmp_path / "hostile.json").write_bytes(content)
    found, said = check(tmp_path / "hostile.json", proof[1], capsys)
    assert found == code and words in said and len(said) < 1000


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("data",), []),
        (("data", "columns"), {}),
        (("data", "columns"), [[["a"], "number"]]),
        (("data", "classes"), [0, 1]),
        (("data", "weight_bits"), 10**6),
        (("data", "sha256"), {}),
        (("problem",), None),
        (("problem", "depth"), "2"),
        (("problem", "leaf_price"), "1/0"),
        (("problem", "leaf_price"), "9" * 10**5),
        (("claim", "tree"), [[0, 1, 0, 0]]),
        (("claim", "tree"), [[None]]),
        (("claim", "cost"), True),
        (("lemmas",), {}),
        (("lemmas",), [[]]),
        (("lemmas", 0, "by"), []),
        (("lemmas", 0, "path"), [[0, 1, 2]]),
        (("lemmas", 0, "value"), -1),
        (("lemmas", 0, "uses"), [0]),
    ],
)
def test_wrong_types_and_values(
    where: tuple[Any, ...],
    value: Any,
    proof: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An entry of another type, or out of its range, is a sentence with exit code 2 or 4."""
    content = json.loads(proof[0].read_text())
    part = content
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    (tmp_path / "hostile.json").write_text(json.dumps(content))
    code, said = check(tmp_path / "hostile.json", proof[1], capsys)
    assert code in (2, 4) and len(said) < 1000


def test_files_that_are_no_files(proof: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe is not waited for; folders, devices and missing files are named, in the place of either file."""
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        for pair in ((bad, proof[1]), (proof[0], bad)):
            code, said = check(*pair, capsys)
            assert code == 2 and "is not a regular file" in said
    code, said = check(tmp_path / "missing", proof[1], capsys)
    assert code == 2 and "No such file" in said
    dashes = tmp_path / "--seconds"
    dashes.write_bytes(proof[0].read_bytes())
    assert check(dashes, proof[1], capsys)[0] == 0


def measured(file: Path, table: Path, *more: str) -> tuple[int, str, float]:
    """Exit code, output and the largest memory in MB of a check in a process of its own."""
    command = [sys.executable, "-m", "accel_oct", "check", "--proof", *more, str(file), str(table)]
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "print(done.stdout, done.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True)
    figures, _, said = done.stdout.partition("\n")
    code, peak = map(int, figures.split())
    return code, " ".join(said.split()), peak * resource.getpagesize() / 4096 / 1024


@pytest.mark.parametrize("kind", ["huge", "bomb", "huge table", "many numbers"])
def test_large_files_take_no_more_memory_than_the_limit(kind: str, proof: tuple[Path, Path], tmp_path: Path) -> None:
    """A file of 1 GB, one that unpacks to 1 GB, and JSON that takes a hundred times its size: nothing is decided."""
    file, table = tmp_path / "hostile", proof[1]
    if kind == "bomb":
        zeros = gzip.compress(bytes(1 << 24))
        file.write_bytes(zeros * 64)
    elif kind == "many numbers":
        file.write_bytes(b'{"format": [' + b"[]," * 5 * 10**6 + b"[]]}")
    else:
        with file.open("wb") as sparse:
            sparse.truncate(1 << 30)
    pair = (proof[0], file) if kind == "huge table" else (file, table)
    code, said, peak = measured(*pair, "--memory", "400")
    assert code == 3 and "undecided" in said and ("memory" in said or "allocate" in said)
    assert peak < 450


def test_the_time_limit(proof: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Without time nothing is decided; a negative limit is refused."""
    code, said = check(*proof, capsys, "--time-limit", "0")
    assert code == 3 and said == "undecided: the time limit is reached"
    assert run(["check", "--proof", "--time-limit", "-1", *map(str, proof)]) == 2
    capsys.readouterr()
