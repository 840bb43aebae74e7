"""Compiled code on disk belongs to the sources that it was made from."""

from __future__ import annotations

import pytest

numba = pytest.importorskip("numba", reason="the compiled engine is optional")


def test_stored_code_is_stamped_with_all_sources() -> None:
    """Every kernel's cache compares the stamp of the whole folder, not of one file."""
    from accel_oct.subtree import jit, levels

    for kernel in (levels.level_two, levels.level_three, levels.level_four):
        assert kernel._cache._cache_file._source_stamp == jit.source_stamp()


def test_the_stamp_follows_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A change in any file of the folder changes the stamp."""
    from accel_oct.subtree import jit

    folder = tmp_path
    (folder / "a.py").write_text("x = 1")  # type: ignore[operator]
    (folder / "b.py").write_text("y = 1")  # type: ignore[operator]
    monkeypatch.setattr(jit, "__file__", str(folder / "a.py"))  # type: ignore[operator]
    stamps = set()
    for text in ("y = 1", "y = 2"):
        (folder / "b.py").write_text(text)  # type: ignore[operator]
        jit.source_stamp.cache_clear()
        stamps.add(jit.source_stamp())
    jit.source_stamp.cache_clear()
    assert len(stamps) == 2
