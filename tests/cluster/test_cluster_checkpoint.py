"""Checkpoints of deep frontiers: searches go on from them, and nothing else is taken for one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cluster_support import ShuffledWorkers, arrays, stop_after, with_workers

from accel_oct import frontier
from accel_oct.cluster import checkpoint, spread_table
from accel_oct.constraints import MinLeafWeight, StatisticalParity
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.exact import frontier_table, reduce_data


def dataset(seed: int = 3, n_features: int = 9) -> BinaryDataset:
    rng = np.random.default_rng(seed)
    return BinaryDataset.from_arrays(rng.random((70, n_features)) < 0.5, rng.integers(0, 2, 70))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The file of a search that was stopped in the middle."""
    path = tmp_path / "run.json"
    found = spread_table(reduce_data(*arrays(dataset())), 5, checkpoint=path, should_stop=stop_after(25))
    assert not found.exact and 2 <= len(json.loads(path.read_text())["regions"]) <= 15
    return path


def test_a_file_from_the_middle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every file that is written on the way leads to the same frontier, and to less work the later it is."""
    monkeypatch.setattr(checkpoint, "EVERY", -1.0)  # at every answer
    files: list[str] = []
    path = tmp_path / "run.json"
    used = with_workers(monkeypatch, 3)
    expected = spread_table(
        reduce_data(*arrays(dataset())),
        5,
        checkpoint=path,
        progress=lambda *_: files.append(path.read_text()) if path.exists() else None,
    )
    total = len(used[0].done)
    assert len(files) >= 8
    left = []
    for text in files[::3]:
        path.write_text(text)
        used = with_workers(monkeypatch, 2, len(text))
        found = spread_table(reduce_data(*arrays(dataset())), 5, checkpoint=path)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert all(found.tree(leaves) == expected.tree(leaves) for leaves in range(1, 33))
        left.append(len(used[0].done))
    assert left[0] < total and left[-1] < left[0]


def test_without_workers(written: Path) -> None:
    """A file alone will do, in `frontier` too; a file that is whole leaves nothing to do, and stays as it is."""
    found = frontier(dataset(), max_depth=5, checkpoint=written)
    assert found.status == "optimal"
    np.testing.assert_array_equal(found.scores, frontier(dataset(), max_depth=5).scores)
    before = written.read_bytes()
    assert frontier(dataset(), max_depth=5, checkpoint=str(written)).status == "optimal"
    assert written.read_bytes() == before
    assert [file.name for file in written.parent.iterdir()] == ["run.json"], "nothing is left beside it"


def test_written_when_something_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was found before an error is kept."""
    with_workers(monkeypatch, 1)
    collect = ShuffledWorkers.collect
    calls: list[int] = []

    def fails(self: ShuffledWorkers, seconds: float) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError
        return collect(self, seconds)

    monkeypatch.setattr(ShuffledWorkers, "collect", fails)
    with pytest.raises(MemoryError):
        spread_table(reduce_data(*arrays(dataset())), 5, checkpoint=tmp_path / "run.json")
    assert len(json.loads((tmp_path / "run.json").read_text())["regions"]) == 3


def test_another_problem_is_refused(written: Path) -> None:
    """Other rows, weights, columns, depth or rules; the file stays as it was."""
    before = written.read_bytes()
    data = dataset()
    flipped = data.X.copy()
    flipped[0, 0] ^= True
    others: list[tuple[dict[str, Any], str]] = [
        ({"X": flipped, "y": data.y}, "other data"),
        ({"X": data.X, "y": 1 - data.y}, "other data"),
        ({"X": data.X, "y": data.y, "sample_weight": 1 + data.y}, "other data"),
        ({"X": data.X, "y": data.y, "objective": "balanced_accuracy"}, "other data"),
        ({"X": data.X, "y": data.y, "constraints": [MinLeafWeight(2)]}, "other data"),
        ({"X": data.X, "y": data.y, "max_depth": 6}, "is about max_depth 5, not 6"),
    ]
    for arguments, message in others:
        with pytest.raises(InvalidInputError, match=message):
            frontier(**{"max_depth": 5, "checkpoint": written, **arguments})
    assert written.read_bytes() == before


def resealed(content: dict[str, Any]) -> str:
    content = {key: value for key, value in content.items() if key != "digest"}
    return json.dumps({**content, "digest": checkpoint._digest(content)})


def test_damaged_and_hostile_files(written: Path) -> None:
    """One sentence that names the file; nothing is run, and the file stays."""
    text = written.read_text()
    content = json.loads(text)
    region = content["regions"][0]
    regions: list[Any] = [
        5,
        [5],
        [{}],
        [{"path": "no", "profile": region["profile"]}],
        [{"path": [[0, 2]], "profile": region["profile"]}],
        [{"path": [[-1, 0]], "profile": region["profile"]}],
        [{"path": [[True, 0]], "profile": region["profile"]}],
        [{"path": [[0.0, 0]], "profile": region["profile"]}],
        [{"path": region["path"], "profile": ["1"] * 16}],
        [{"path": region["path"], "profile": [[1]] * 16}],
        [{"path": region["path"], "profile": [True] * 16}],
        [{"path": region["path"], "profile": {"1": 1}}],
        [{"path": region["path"], "profile": region["profile"][::-1]}],
        [{"path": region["path"], "profile": [10**400] * 16}],
        [{"path": region["path"], "profile": [1e9] * 16}],
        [{**each, "profile": each["profile"][:3]} for each in content["regions"]],
        [{**each, "profile": [number + 2 for number in each["profile"]]} for each in content["regions"]],
    ]
    bad = [text[: len(text) // 2], text[:-20], "[" * 10**5, "null", "{}", "[1]", "\0", text.replace("1", "NaN", 1)]
    bad += [text.replace(str(region["profile"][-1]), "69.5", 1), json.dumps({**content, "digest": None})]
    bad += [json.dumps({**content, "regions": content["regions"][1:]})]
    bad += [resealed({**content, "regions": each}) for each in regions]
    for number, damaged in enumerate(bad):
        written.write_text(damaged)
        with pytest.raises(InvalidInputError, match=r"checkpoint .*run\.json"):
            frontier(dataset(), max_depth=5, checkpoint=written)
        assert written.read_text() == damaged, number
    written.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="not a text file"):
        frontier(dataset(), max_depth=5, checkpoint=written)


def test_regions_that_nobody_asks_for(written: Path) -> None:
    """Do no harm: features that are not there, paths that are too long."""
    content = json.loads(written.read_text())
    strange = [{"path": [[10**6, 1]], "profile": [1]}, {"path": [[0, 1]] * 50, "profile": []}]
    written.write_text(resealed({**content, "regions": content["regions"] + strange}))
    found = frontier(dataset(), max_depth=5, checkpoint=written)
    np.testing.assert_array_equal(found.scores, frontier(dataset(), max_depth=5).scores)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    """Said before anything is computed."""
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "run.json", "there is no folder"),
        (tmp_path / "pipe", "not a regular file"),
        (7, "checkpoint must be a path"),
        ("a\0b", "checkpoint must not hold a NUL"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            frontier(dataset(), max_depth=5, checkpoint=path)


def test_an_empty_file_and_a_shallow_frontier(tmp_path: Path) -> None:
    """An empty file is a place to write to. What tables prove at once is not written."""
    path = tmp_path / "run.json"
    path.touch()
    assert frontier(dataset(), max_depth=2, checkpoint=path).status == "optimal"
    assert path.read_text() == ""
    assert frontier(dataset(), max_depth=5, checkpoint=path).status == "optimal"
    assert json.loads(path.read_text())["format"] == checkpoint.FORMAT


def test_constraints_that_tie_subtrees_together(tmp_path: Path) -> None:
    """Are refused as without a file."""
    data = dataset()
    with pytest.raises(InvalidInputError, match="couples subtrees"):
        rule = StatisticalParity(data.X[:, 0], 0.1)
        frontier(data, max_depth=5, constraints=[rule], checkpoint=tmp_path / "run.json")


def test_minus_infinity_in_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rules may make profiles of minus infinity; JSON has no such number, and the file has."""
    data = dataset()
    rules: Any = MinLeafWeight(3).bind(data).traits.local
    path = tmp_path / "run.json"
    first = spread_table(reduce_data(*arrays(data), rules), 5, checkpoint=path)
    again = spread_table(reduce_data(*arrays(data), rules), 5, checkpoint=path)
    expected = frontier_table(reduce_data(*arrays(data), rules), 5)
    for found in (first, again):
        np.testing.assert_array_equal(found.scores, expected.scores)
