"""The studies: each is quoted in the documentation and starts; what they share is right on small data."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from accel_oct.errors import InvalidInputError
from accel_oct_bench import studies
from accel_oct_bench.studies.common import MarkdownTable, best_cart, data_sets, registry_at

FOLDER = Path(str(studies.__file__)).parent
STUDIES = sorted(path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8"))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` imports everything and prints the command."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, f"accel_oct_bench.studies.{name}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"accel_oct_bench.studies.{name}", run_name="__main__")
    assert ended.value.code == 0
    assert f"python -m accel_oct_bench.studies.{name}" in capsys.readouterr().out


def test_every_study_is_quoted() -> None:
    """A study whose figures no page has is to be deleted, and every command on a page exists."""
    docs = FOLDER.parents[2] / "docs"
    pages = " ".join(path.read_text(encoding="utf-8") for path in docs.rglob("*.md"))
    quoted = {word.split("`")[0].split()[0].rstrip(".,;:)") for word in pages.split("accel_oct_bench.studies.")[1:]}
    helpers = {path.stem for path in FOLDER.glob("*.py")} - set(STUDIES)
    assert set(STUDIES) <= quoted <= set(STUDIES) | helpers


def test_the_best_cart_is_pruned_exactly() -> None:
    """On exclusive or, greedy trees of depth two are perfect; a price above their gain leaves a single leaf."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float), np.array([0, 1, 1, 0])
    assert best_cart(X, y, 2, 0.05) == pytest.approx(1 - 4 * 0.05)
    assert best_cart(X, y, 2, 0.2) == pytest.approx(0.5 - 0.2)


def test_data_sets_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smallest file first; unknown names and a missing folder are errors."""
    (tmp_path / "a_enc.csv").write_text("x,target\n0,0\n1,1\n1,1\n")
    (tmp_path / "b_enc.csv").write_text("x,target\n0,0\n1,1\n")
    assert [data.name for data in data_sets(tmp_path)] == ["b", "a"]
    assert [data.name for data in data_sets(tmp_path, ["a"])] == ["a"]
    with pytest.raises(InvalidInputError, match="no data set c in"):
        list(data_sets(tmp_path, ["c"]))
    monkeypatch.delenv("ACCEL_OCT_DATA", raising=False)
    with pytest.raises(InvalidInputError, match="no data folder"):
        registry_at(None)


def test_tables_are_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    """Words on the left, numbers on the right."""
    MarkdownTable("data", "n").row("iris", 150)
    assert capsys.readouterr().out == "| data | n |\n| --- | ---: |\n| iris | 150 |\n"
