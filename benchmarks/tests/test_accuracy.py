"""The study of accuracy: halves of the tables, rules of selection, comparison, and runs that go on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct.errors import InvalidInputError
from accel_oct_bench.data import Registry
from accel_oct_bench.studies import accuracy
from accel_oct_bench.studies.accuracy import Candidate, Rule, chosen_candidate


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder without files, one small generated table, and few candidates."""
    monkeypatch.setattr(accuracy, "_GENERATED", {"gen-chain": "gen-chain-4"})
    monkeypatch.setattr(accuracy, "_NUMERIC", {"gen-numeric": 60})
    monkeypatch.setattr(accuracy, "PENALTIES", (0.1, 0.01, 0.0))
    monkeypatch.setattr(accuracy, "SHAPES", ((2, 1), (3, 1), (4, 1), (None, 1)))
    return tmp_path


def scores(inner: list[list[float]], size: list[float]) -> dict[str, Any]:
    return {"inner": inner, "size": size}


def grid(shapes: list[tuple[int | None, int]]) -> list[Candidate]:
    return [Candidate(*shape, penalty) for shape in shapes for penalty in accuracy.PENALTIES]


def test_the_halves_alternate_and_share_no_table() -> None:
    """In alphabetical order: the first is for choosing, the second for reporting."""
    names = ["a", "b", "c", "d", "e"]
    assert accuracy.half_of(names, "choosing") == {"a", "c", "e"}
    assert accuracy.half_of(names, "reporting") == {"b", "d"}
    assert accuracy.half_of(names, "all") == set(names)


def test_rules_of_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best mean score; fewest leaves among equal ones; within standard errors; averaged; among some shapes."""
    monkeypatch.setattr(accuracy, "PENALTIES", (0.1, 0.01, 0.001))
    candidates = grid([(2, 1), (None, 1)])
    given = scores([[0.5, 0.5], [0.9, 0.9], [0.5, 0.5], [0.7, 0.9], [0.84, 0.88], [0.8, 0.8]], [2, 3, 4, 2, 5, 9])
    assert chosen_candidate(candidates, given, Rule()) == 1
    assert chosen_candidate(candidates, given, Rule(smooth=True)) == 4
    assert chosen_candidate(candidates, given, Rule(depths=(None,))) == 4
    assert chosen_candidate(candidates, given, Rule(depths=(None,), errors=3.0)) == 3
    level = scores([[0.8, 0.8]] * 6, [4, 3, 5, 3, 2, 6])
    assert chosen_candidate(candidates, level, Rule()) == 4


def test_the_comparison_is_the_mean_over_outer_splits() -> None:
    """Differences in points, and their standard error, of the candidates that each rule selects."""
    rows = []
    for split, (ours, cart) in enumerate([(0.9, 0.8), (0.8, 0.8), (1.0, 0.8)]):
        row: dict[str, Any] = {"table": "a", "rows": 300, "split": split}
        for name, candidates, held_out in (
            ("ours", accuracy.our_candidates(), ours),
            ("cart", accuracy.cart_candidates(), cart),
        ):
            n = len(candidates)
            row[name] = {"inner": [[0.5, 0.5]] * n, "size": [3] * n, "held_out": [held_out] * n, "leaves": [3] * n}
        rows.append(row)
    (found,) = accuracy.compare(rows, accuracy.OURS, accuracy.CART)
    assert found.difference == pytest.approx(10.0)
    assert found.error == pytest.approx(10.0 / np.sqrt(3))
    assert (found.table, found.rows, found.leaves) == ("a", 300, 3.0)


def test_a_run_goes_on_where_it_was_ended(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are there are kept, missing ones added; the scores of all candidates are in each."""
    out = small / "out.jsonl"
    arguments = ["--data-dir", str(small), "run", "--out", str(out), "--tables", "gen-numeric", "--time-limit", "0.2"]
    accuracy.main([*arguments, "--folds", "3", "--inner", "2"])
    lines = out.read_text().splitlines()
    assert [json.loads(line)["split"] for line in lines] == [0, 1, 2]
    for name, candidates in (("ours", accuracy.our_candidates()), ("cart", accuracy.cart_candidates())):
        row = json.loads(lines[0])[name]
        assert len(row["held_out"]) == len(row["leaves"]) == len(candidates)
        assert np.array(row["inner"]).shape == (len(candidates), 2)
        assert 0.4 < np.mean(row["held_out"]) <= 1.0
    out.write_text("\n".join(lines[:2]) + "\n")
    accuracy.main([*arguments, "--folds", "3", "--inner", "2"])
    again = out.read_text().splitlines()
    assert again[:2] == lines[:2]
    assert len(again) == 3
    capsys.readouterr()
    picture = small / "picture.svg"
    accuracy.main(["--data-dir", str(small), "report", str(out), "--half", "all", "--figure", str(picture)])
    printed = capsys.readouterr().out
    assert re.search(r"\| gen-numeric \| 60 \|", printed)
    assert "mean, fewer than 250 rows (1)" in printed
    assert picture.stat().st_size > 1000


def test_an_unknown_table_is_an_error_with_the_known_ones(small: Path) -> None:
    """The message lists the tables."""
    with pytest.raises(InvalidInputError, match=r"no table nothing; there are .*gen-chain"):
        accuracy.main(["--data-dir", str(small), "run", "--out", str(small / "x"), "--tables", "nothing"])


def test_tables_have_numbers_alone(small: Path) -> None:
    """Every table that needs no folder loads as a finite matrix with classes 0, 1, ..."""
    registry = Registry(small)
    for name in accuracy.table_names(registry):
        X, y = accuracy.load(registry, name, 100)
        assert np.isfinite(X).all() and len(X) == len(y) <= 100
        assert set(np.unique(y)) <= set(range(int(y.max()) + 1))


def test_the_clock_of_a_run_counts_cpu_time() -> None:
    """Inside, readings are CPU seconds; afterwards the clocks are as they were."""
    import time

    before = time.perf_counter, time.monotonic
    with accuracy.cpu_clock():
        first = time.perf_counter()
        time.sleep(0.2)
        assert time.perf_counter() - first < 0.15
    assert (time.perf_counter, time.monotonic) == before
