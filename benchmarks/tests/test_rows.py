"""Rows of results: written, read, and refused when they are something else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_support import a_row, a_task
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.errors import InvalidInputError
from accel_oct_bench.reading import read_lines, read_results
from accel_oct_bench.rows import FAILED, STATUSES, Method, Row, packed_labels, run_key, unpacked_labels


def test_a_row_survives_writing_and_reading() -> None:
    """Field by field; numbers of NumPy too, and what is not finite becomes None."""
    tree = {"feature": [0, -1, -1], "label": [-1, 0, 1]}
    row = a_row(objective=np.float64(0.5), bound=float("inf"), n_leaves=np.int64(2), tree=tree, stats={"a": {"s": 0.1}})
    again = Row.from_json(row.to_json(), "line 1")
    assert again == replace(row, objective=0.5, bound=None, n_leaves=2)
    assert again.to_json() == row.to_json() and "\n" not in row.to_json()


def test_keys_are_the_same_everywhere() -> None:
    """A key that changes makes every run of every folder be made again: it is part of the schema."""
    task = a_task()
    assert run_key(task.instance, task.method) == "149cbd6a0f93672fa49862e05c81c76f"
    assert run_key(task.instance, replace(task.method, time_limit=60)) == run_key(  # type: ignore[arg-type]
        task.instance, replace(task.method, time_limit=60.0)
    )
    changed = {
        "name": "x",
        "backend": "scip",
        "seed": 1,
        "threads": 2,
        "time_limit": 1.0,
        "config": {"polishing": True},
    }
    keys = {run_key(task.instance, replace(task.method, **{name: value})) for name, value in changed.items()}
    keys |= {run_key(replace(task.instance, **{name: value}), task.method) for name, value in {"data": "x"}.items()}
    for name, value in {
        "fingerprint": "0",
        "max_depth": 1,
        "leaf_penalty": 0.1,
        "constraints": ("max_leaves(2)",),
    }.items():
        keys.add(run_key(replace(task.instance, **{name: value}), task.method))
    assert len(keys | {task.key}) == len(changed) + 6


def test_a_task_survives_the_way_to_another_process() -> None:
    """With constraints and switches."""
    task = a_task(config={"path_bound": {"bound": True}}, time_limit=2)
    task = replace(task, instance=replace(task.instance, constraints=("max_leaves(2)",)), data_dir="/data")
    again = type(task).from_json(task.to_json())
    assert again == task and again.key == task.key


@given(st.lists(st.integers(0, 255), max_size=50))
def test_labels_are_packed_and_unpacked(labels: list[int]) -> None:
    """Whatever the labels are."""
    assert unpacked_labels(packed_labels(labels), len(labels)).tolist() == labels


def test_labels_that_do_not_fit_are_refused() -> None:
    """Instead of being cut down to a byte."""
    for labels in ([256], [-1], [[1]]):
        with pytest.raises(InvalidInputError, match="labels"):
            packed_labels(labels)
    with pytest.raises(InvalidInputError, match="predictions"):
        unpacked_labels("no base64", 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "newer version"),
        ({"schema": 0}, "older version"),
        ({"schema": None}, "before schema 1"),
        ({"schema": "1"}, "no number of a schema"),
        ({"status": "fine"}, "status must be one of"),
        ({"objective": "0.5"}, "objective must be a number"),
        ({"objective": float("nan")}, "objective must be a finite number"),
        ({"bound": float("inf")}, "bound must be a finite number"),
        ({"wall_seconds": 10**400}, "wall_seconds must be a finite number"),
        ({"nodes": True}, "nodes must be a whole number"),
        ({"tree": [1]}, "tree must be a table"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"suite": ...}, "no field 'suite'"),
        ({"key": "0" * 32}, "key is not that of"),
    ],
)
def test_what_is_no_row_is_refused(change: dict[str, object], said: str) -> None:
    """In a sentence that says where, and what is wrong."""
    values = json.loads(a_row().to_json()) | change
    values = {name: value for name, value in values.items() if value is not ...}
    if change == {"schema": None}:
        del values["schema"]
    with pytest.raises(InvalidInputError, match=f"here.*{said}"):
        Row.from_mapping(values, "here")


def test_a_row_that_is_nested_too_deeply_is_refused() -> None:
    """Reading JSON goes deeper than what is done with it."""
    text = a_row().to_json().replace('"config": {}', f'"config": {{"a": {"[" * 800}{"]" * 800}}}')
    with pytest.raises(InvalidInputError, match=r"here.*nested too deeply"):
        Row.from_json(text, "here")


def test_lines_of_the_old_benchmarks_are_refused_with_a_sentence(tmp_path: Path) -> None:
    """They have neither trees nor what identifies the data."""
    old = tmp_path / "bench.jsonl"
    old.write_text('{"method": "machine", "cpu": "x", "cores": 2}\n{"method": "solve", "data": "monk1"}\n')
    with pytest.raises(
        InvalidInputError, match=r"line 1 was written by the benchmarks before schema 1.*run the suite again"
    ):
        read_results(old)


def test_a_torn_end_is_no_row(tmp_path: Path) -> None:
    """Every beginning of a row, also a whole one without its line break, is told apart from the rows before."""
    first, second = a_row().to_json().encode() + b"\n", a_row(penalty=0.02).to_json().encode() + b"\n"
    file = tmp_path / "rows.jsonl"
    for cut in (1, 2, len(second) // 2, len(second) - 1):
        file.write_bytes(first + second[:cut])
        lines = read_lines(file)
        assert [row.key for row in lines.rows] == [a_row().key]
        assert lines.torn == second[:cut] and lines.whole_bytes == len(first)
    assert read_results(tmp_path).torn == (file,)
    file.write_bytes(first[: len(first) // 2] + b"\n" + second)
    with pytest.raises(InvalidInputError, match="line 1 is not a row"):
        read_lines(file)


def test_a_folder_gives_one_row_per_key(tmp_path: Path) -> None:
    """Of two with one key, the one that did not fail; parts are read as they are."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "rows.jsonl").write_text(a_row("crashed").to_json() + "\n")
    (tmp_path / "parts" / "00001-of-00002.jsonl").write_text(
        a_row().to_json() + "\n" + a_row(penalty=0.5).to_json() + "\n"
    )
    (tmp_path / "parts" / "00002-of-00002.jsonl").write_text(a_row("error").to_json() + "\n")
    found = read_results(tmp_path)
    assert [(row.status, row.instance.leaf_penalty) for row in found.rows] == [("optimal", 0.01), ("optimal", 0.5)]
    assert found.doubled == 2


def test_a_place_without_results_is_said_to_be_one(tmp_path: Path) -> None:
    """An empty folder, and none."""
    with pytest.raises(InvalidInputError, match="holds no results"):
        read_results(tmp_path)
    with pytest.raises(InvalidInputError, match="there is no folder or file"):
        read_results(tmp_path / "nowhere")


def test_statuses_that_failed_are_statuses() -> None:
    """And a proof is none of them."""
    assert set(FAILED) < set(STATUSES) and not {"optimal", "infeasible", "time_limit"} & set(FAILED)
    assert Method("x").package == "accel_oct"
