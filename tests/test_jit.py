"""Compiled code on disk: it belongs to the sources it was made from, and no state of the disk can do harm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import accel_oct

numba = pytest.importorskip("numba", reason="the compiled engine is optional")

_TOTAL = {"unit": [1830.0], "real": [1830.0 / 64]}


def _start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    package = Path(str(accel_oct.__file__)).parents[1]
    settings = {"PYTHONPATH": str(package), **os.environ, **environment}
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("jit_support.py")), *arguments],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    outcome: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return outcome


def _run(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    return _finish(_start(environment, *arguments))


@pytest.fixture(scope="module")
def frontier_scores() -> list[float]:
    """What the NumPy reference finds, with one line in the log."""
    outcome = _run({"NUMBA_DISABLE_JIT": "1"}, "unit", "frontier")
    assert outcome["folder"] is None
    assert len(outcome["lines"]) == 1
    assert "NUMBA_DISABLE_JIT" in outcome["lines"][0]
    scores: list[float] = outcome["values"]
    return scores


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of both types, made by two processes at once."""
    folder = tmp_path_factory.mktemp("code")
    environment = {"NUMBA_CACHE_DIR": str(folder)}
    both = [(weights, _start(environment, weights)) for weights in ("unit", "real")]
    for weights, process in both:
        outcome = _finish(process)
        assert outcome["values"] == _TOTAL[weights]
        assert outcome["lines"] == []
    for weights in ("unit", "real"):  # whichever of the two lost its line of the index has to make its code again
        _run(environment, weights)
    return folder


@pytest.fixture
def code(filled: Path, tmp_path: Path) -> Path:
    """A copy of that folder, to be spoilt."""
    return Path(shutil.copytree(filled, tmp_path / "code"))


@pytest.mark.parametrize("weights", ["unit", "real"])
def test_two_processes_may_compile_at_once(filled: Path, weights: str) -> None:
    """Both give right results, and what they leave on disk is right for whoever comes next."""
    outcome = _run({"NUMBA_CACHE_DIR": str(filled)}, weights)
    assert outcome["values"] == _TOTAL[weights]
    assert outcome["lines"] == []
    assert outcome["hits"] == 1
    assert outcome["folder"].startswith(str(filled))


@pytest.mark.parametrize("content", [None, b"", b"spoilt"])
def test_a_lost_or_broken_index_is_made_again(code: Path, content: bytes | None) -> None:
    """A deleted index costs a compilation; one that cannot be read costs a line in the log too, and mends itself."""
    (index,) = code.rglob("*.nbi")
    index.unlink()
    if content is not None:
        index.write_bytes(content)
    environment = {"NUMBA_CACHE_DIR": str(code)}
    outcome = _run(environment, "unit")
    assert outcome["values"] == _TOTAL["unit"]
    assert len(outcome["lines"]) == (0 if content is None else 1)
    assert content is None or _run(environment, "unit")["lines"] == []


def test_code_that_was_made_for_other_types_is_not_used(code: Path) -> None:
    """An index whose lines lead to each other's code, as two writers at once can leave it, is noticed before a call."""
    first, second = sorted(code.rglob("*.nbc"))
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)
    outcome = _run({"NUMBA_CACHE_DIR": str(code)}, "unit")
    assert outcome["values"] == _TOTAL["unit"]
    assert len(outcome["lines"]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_survived(tmp_path: Path) -> None:
    """Code that cannot be written is used all the same, with one line in the log."""
    outcome = _run({"NUMBA_CACHE_DIR": str(tmp_path)}, "unit", "full-disk")
    assert outcome["values"] == _TOTAL["unit"]
    assert len(outcome["lines"]) == 1


def test_nowhere_to_write(tmp_path: Path, frontier_scores: list[float]) -> None:
    """With files where the folders should be (which stops root too) code is compiled in memory, with one line."""
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    source = Path(str(accel_oct.__file__)).parent
    shutil.copytree(source, tmp_path / "accel_oct", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "accel_oct" / "compiled" / "__pycache__").write_text("no folder")
    places = {name: str(blocked) for name in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME")}
    outcome = _run({"PYTHONPATH": str(tmp_path), **places}, "unit", "frontier")
    assert outcome["folder"] is None
    assert outcome["values"] == frontier_scores
    assert len(outcome["lines"]) == 1


def test_other_packages_keep_their_own_folder() -> None:
    """numba's configuration is as it was after our code was wrapped, and what others wrap goes where it always went."""
    from accel_oct.compiled import jit

    before = numba.config.CACHE_DIR
    dispatcher = jit._stored.dispatcher(_add)
    assert before == numba.config.CACHE_DIR
    assert "accel_oct-" in str(dispatcher.stats.cache_path)
    assert "accel_oct-" not in str(numba.njit(cache=True)(_add).stats.cache_path)


def _add(a: int, b: int) -> int:
    return a + b


def test_the_folder_follows_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A change in any source, a helper's too, leads to another folder, and the old one beside the sources goes."""
    from accel_oct.compiled import jit

    monkeypatch.setattr(jit, "__file__", str(tmp_path / "a.py"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    (tmp_path / "a.py").write_text("x = 1")
    folders = []
    try:
        for text in ("y = 1", "y = 2"):
            (tmp_path / "b.py").write_text(text)
            jit.source_digest.cache_clear()
            jit._writable_folder.cache_clear()
            folders.append(jit._writable_folder())
    finally:
        jit.source_digest.cache_clear()
        jit._writable_folder.cache_clear()
    assert folders[0] is not None and folders[1] is not None and folders[0] != folders[1]
    assert [path for path in (tmp_path / "__pycache__").iterdir() if path.is_dir()] == [folders[1]]


def test_no_private_attribute_of_numba_is_read() -> None:
    """What numba does not promise to keep is not touched by the module that keeps its code."""
    from accel_oct.compiled import jit

    text = Path(str(jit.__file__)).read_text()
    assert "_cache_file" not in text
    assert "compiled._" not in text.replace("self._compiled._", "")


def test_threads_that_need_code_at_once_make_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that call an entry point for the first time share one piece of code."""
    from accel_oct.compiled import jit

    made: list[object] = []

    def dispatcher(function: object) -> object:
        time.sleep(0.2)
        made.append(numba.njit(function))
        return made[-1]

    monkeypatch.setattr(jit._stored, "dispatcher", dispatcher)
    add = jit.entry_point(_add)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(add, (1, 2), (3, 4))) == [4, 6]
    assert len(made) == 1
