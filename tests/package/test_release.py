"""What a release states in several places is the same everywhere; what the program for clean rooms makes of it."""

from __future__ import annotations

import os
import re
import zipfile
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version
from programs import clean_room, floors

import accel_oct

ROOT = Path(__file__).parents[2]
PROJECT = floors.tomllib.loads(floors.PYPROJECT.read_text(encoding="utf-8"))["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pythons() -> list[str]:
    """The versions of Python that the classifiers name."""
    prefix = "Programming Language :: Python :: 3."
    return [entry.removeprefix(prefix[:-2]) for entry in PROJECT["classifiers"] if entry.startswith(prefix)]


def test_changelog_and_citation_name_version_and_date() -> None:
    """The newest release in CHANGELOG.md is this version, below what is not released; CITATION.cff has its date."""
    unreleased, newest, *_ = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert unreleased == "Unreleased"
    version, day = newest.split(" - ")
    assert version == accel_oct.__version__ and date.fromisoformat(day).isoformat() == day
    citation = text("CITATION.cff")
    assert f"\nversion: {version}\ndate-released: {day}\n" in citation


def test_supported_pythons_are_the_same_everywhere() -> None:
    """Classifiers without a gap from the floor on; workflows run the first and the last; docs/versions.md has them."""
    oldest, newest = pythons()[0], pythons()[-1]
    assert pythons() == [f"3.{minor}" for minor in range(int(oldest[2:]), int(newest[2:]) + 1)]
    assert PROJECT["requires-python"] == f">={oldest}"
    page = " ".join(text("docs/versions.md").split())
    assert f"| Python | {oldest} |" in page and f"Python {oldest} to {newest} are supported" in page
    workflows = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")}
    for name in ("ci.yml", "release.yml"):
        matrices = re.findall(r"python: (\[.*\])", workflows[name])
        assert matrices and set(matrices) == {f'["{oldest}", "{newest}"]'}, name
    named = [version for one in workflows.values() for version in re.findall(r'python-version: "(.*)"', one)]
    assert set(named) == {newest}


def test_the_page_of_versions_has_the_floors_of_pyproject() -> None:
    """Of the packages that it lists; and nothing was tested on less than the floor."""
    found = floors.floors(PROJECT)
    names = {"highspy (HiGHS)": "highspy"}
    rows = re.findall(r"^\| ([\w() -]+?) \| ([\d.]+) \| ([\d.]+) \|$", text("docs/versions.md"), re.MULTILINE)
    listed = {names.get(name, name.lower()): (Version(low), Version(high)) for name, low, high in rows}
    assert {"numpy", "scipy", "scikit-learn", "highspy", "gurobipy", "cplex"} <= set(listed)
    for name, (low, high) in listed.items():
        assert low == found[name], name
        assert high.release[:2] >= low.release[:2], name


def wheel(folder: Path, *classifiers: str) -> Path:
    path = folder / "accel_oct-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        lines = ["Metadata-Version: 2.4", *(f"Classifier: Programming Language :: {entry}" for entry in classifiers)]
        archive.writestr("accel_oct-1.0.0.dist-info/METADATA", "\n".join(lines) + "\n\nPython :: 3.1\n")
    return path


def test_supported_versions_are_read_from_a_wheel(tmp_path: Path) -> None:
    """In the order of numbers; other classifiers do not count."""
    found = wheel(tmp_path, "C++", "Python :: 3", "Python :: 3 :: Only", "Python :: 3.10", "Python :: 3.9")
    assert clean_room.supported(found) == [(3, 9), (3, 10)]


@pytest.mark.skipif(os.name == "nt", reason="the interpreters of this test are shell scripts")
def test_interpreters_are_tried_before_they_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the right name that does not run, as the shims of pyenv, is passed over for one that does."""
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    behind = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    behind.parent.mkdir(parents=True)
    behind.write_text('#!/bin/sh\necho "3 99"\n')
    behind.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "nowhere"))
    assert clean_room.interpreters([(3, 99)]) == {}
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert clean_room.interpreters([(3, 98), (3, 99)]) == {(3, 99): str(behind)}


def test_a_folder_in_which_nothing_can_be_tried_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No wheel is an error, and so are wheels that no Python here installs: nothing passes because nothing ran."""
    monkeypatch.setattr("sys.argv", ["clean_room.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="0 wheels"):
        clean_room.main()
    wheel(tmp_path, *(f"Python :: {version}" for version in pythons()))
    monkeypatch.setattr(clean_room.Room, "takes", lambda room, wheel: False)
    monkeypatch.setattr(clean_room, "interpreters", lambda versions: {versions[0]: "python"})
    monkeypatch.setattr(clean_room.Room, "__init__", lambda room, python, folder: None)
    assert clean_room.main() == 1
    said = capsys.readouterr().out
    assert "not tried, no Python here installs it" in said and "nothing was tried" in said


def test_a_failure_in_a_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, and the line has what the process said."""
    wheel(tmp_path, *(f"Python :: {version}" for version in pythons()))
    monkeypatch.setattr("sys.argv", ["clean_room.py", str(tmp_path)])

    def fails(room: clean_room.Room, wheel: Path, benchmarks: Path | None) -> None:
        raise clean_room.Failure("no kernel")

    monkeypatch.setattr(clean_room.Room, "takes", lambda room, wheel: True)
    monkeypatch.setattr(clean_room.Room, "__init__", lambda room, python, folder: None)
    monkeypatch.setattr(clean_room, "interpreters", lambda versions: {versions[0]: "python"})
    monkeypatch.setattr(clean_room, "try_wheel", fails)
    assert clean_room.main() == 1
    assert "py3-none-any.whl on Python 3.10: no kernel" in capsys.readouterr().out


def test_the_example_of_the_readme_is_there() -> None:
    """What runs in a clean room is the first code that a reader sees."""
    assert "OptimalTreeClassifier(" in clean_room.example()
