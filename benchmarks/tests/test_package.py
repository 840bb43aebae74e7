"""The package accel-oct-bench: what it installs, and the command that it adds to ``accel-oct``."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import accel_oct
from accel_oct_bench.suite import suite_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=FOLDER, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_holds_the_harness_and_nothing_else(wheel: Path) -> None:
    """Modules and suites; no tests, no results."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"accel_oct_bench/suites/{name}.toml" for name in suite_names()} <= names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"accel_oct_bench"}


def test_the_wheel_holds_the_licence_of_the_library(wheel: Path) -> None:
    """A copy, because a distribution takes no files from outside of its folder."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        assert archive.read(name) == FOLDER.with_name("LICENSE").read_bytes()


def test_the_command_is_there_when_the_package_is(wheel: Path, tmp_path: Path) -> None:
    """A process that sees the unpacked wheel has `accel-oct bench`, and its line in the help."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])

    def said(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "accel_oct", *arguments]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    code, text = said("--help")
    assert code == 0 and "bench" in text and "Measure accel_oct" in text
    code, text = said("bench", "list")
    assert code == 0 and {line.split()[0] for line in text.splitlines()} == set(suite_names())
    for arguments, message in (
        (["bench", "run", "quikc"], "did you mean 'quick'"),
        (["bench", "merge", "/nowhere"], "/nowhere"),
        (["bench", "report", "/nowhere"], "/nowhere"),
    ):
        code, text = said(*arguments)
        assert code == 2 and text.count("\n") == 1 and message in text


def test_the_version_is_that_of_the_library() -> None:
    """Parts of the library that are not public are called, so only the same version fits."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == accel_oct.__version__
    assert project["dependencies"] == [f"accel-oct=={accel_oct.__version__}"]
