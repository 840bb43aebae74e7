"""docs/cli.md: its commands run, its codes and its keys are those of the program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accel_oct.cli import main
from accel_oct.cli.app import COMMANDS
from accel_oct.cli.codes import Code

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\$ (.+)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables and the run file that the page speaks of."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(4)
    for name, n_rows in (("patients", 70), ("test", 30), ("new", 10)):
        rows = ["age,sex,pressure,w,class"]
        for _ in range(n_rows):
            age, pressure = int(rng.integers(20, 80)), int(rng.integers(100, 180))
            ill = age + pressure > 200 and rng.random() < 0.9
            rows.append(f"{age},{rng.choice(['f', 'm'])},{pressure},{rng.integers(1, 3)},{'ill' if ill else 'healthy'}")
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["age,dose,arm,result"]
    for _ in range(80):
        age, arm = int(rng.integers(20, 80)), str(rng.choice(["drug", "none"]))
        rows.append(f"{age},{rng.integers(1, 9)},{arm},{(age > 50) * (arm == 'drug') + rng.normal():.3f}")
    for name, chosen in (("trial", rows[:61]), ("follow_up", [rows[0], *rows[61:]])):
        (folder / f"{name}.csv").write_text("\n".join(chosen) + "\n", encoding="utf-8")
    (folder / "run.toml").write_text('[data]\npath = "patients.csv"\ntarget = "class"\n', encoding="utf-8")
    return folder


def test_every_command_is_on_the_page() -> None:
    """In the table, and in an example that runs, but for the benchmarks, which take long."""
    table = set(re.findall(r"^\| `([a-z-]+)[ `]", PAGE, re.MULTILINE))
    names = {command.name for command in COMMANDS}
    assert names | {"bench"} <= table
    assert names == {word for example in EXAMPLES for word in re.findall(r"accel-oct ([a-z-]+)", example)}


def test_every_exit_code_is_on_the_page() -> None:
    """And no other."""
    section = PAGE.split("## Exit codes")[1].split("\n## ")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == {int(code) for code in Code}


@pytest.mark.slow
def test_the_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, in a folder with the tables they name: each ends with exit code 0."""
    pytest.importorskip("matplotlib", reason="the extra accel-oct[plot] is not installed")
    monkeypatch.chdir(folder)
    for example in EXAMPLES:
        if " | " in example:
            environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            shell = example.replace("accel-oct", f"{sys.executable} -m accel_oct")
            done = subprocess.run(shell, shell=True, capture_output=True, text=True, env=environment, timeout=120)
            assert done.returncode == 0 and done.stdout.startswith("prediction\n"), example
            continue
        words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", example)]
        assert main(words[1:]) == 0, f"{example}: {capsys.readouterr().err}"
    assert {"model.json", "fair.json", "alternative.json", "tree.svg", "report.html"} <= set(os.listdir())


def test_documents_have_the_keys_of_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command but `bench` prints one JSON document, and each of its keys is on the page."""
    monkeypatch.chdir(folder)
    known = set(re.findall(r"`([a-z_]+)`", PAGE.split("## JSON output")[1]))
    training = ["patients.csv", "-t", "class", "-d", "1", "-q"]
    assert main(["fit", *training, "--constraint", "max_leaves(2)", "-o", "keys.json"]) == 0
    assert main(["fit", *training, "-o", "free.json"]) == 0
    arguments = {
        "fit": [*training, "--constraint", "max_leaves(2)"],
        "path": training,
        "frontier": training,
        "near-optimal": training,
        "policy": ["trial.csv", "-t", "arm", "-y", "result", "-d", "1", "--constraint", "max_leaves(2)", "-q"],
        "predict": ["keys.json", "new.csv", "--proba"],
        "explain": ["keys.json", "new.csv"],
        "show": ["keys.json"],
        "check": ["keys.json", "patients.csv"],
        "certify": ["free.json", "patients.csv", "-o", "proof.json"],
        "report": ["keys.json", "patients.csv", "-o", "keys.html"],
        "encode": ["patients.csv", "-t", "class"],
        "backends": [],
        "config": [],
    }
    assert set(arguments) == {command.name for command in COMMANDS}
    for name, given in arguments.items():
        capsys.readouterr()
        assert main([name, *given, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["command"] == name and document["exit_code"] == 0
        nested = [entry for value in document.values() if isinstance(value, list) for entry in value]
        keys = {*document, *(key for entry in nested if isinstance(entry, dict) for key in entry)}
        assert keys <= known, f"{name}: {keys - known}"
