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
from accel_oct_bench.results import read_results
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
        Row.from_json(json.dumps(values), "here")


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


def test_statuses_that_failed_are_statuses() -> None:
    """And a proof is none of them."""
    assert set(FAILED) < set(STATUSES) and not {"optimal", "infeasible", "time_limit"} & set(FAILED)
    assert Method("x").package == "accel_oct"
