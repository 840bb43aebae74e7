"""Runs on a dask cluster: workers and clients may be lost, rows may not."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench_support import bench, environment, lines_in, tiny_suite, wait_for

from accel_oct.errors import InvalidInputError
from accel_oct_bench.runner import Step, run_suite

distributed = pytest.importorskip("distributed", reason="the extra accel-oct[dask] is not installed")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found


def pids(cluster: Any) -> list[int]:
    with distributed.Client(cluster) as client:
        return list(client.run(os.getpid).values())


def test_lost_workers_and_clients(tmp_path: Path, cluster: Any) -> None:
    """A worker is killed in the middle, then the client; whoever resumes makes the rest: one row per run."""
    suite, out = tiny_suite(tmp_path, 100), tmp_path / "out"
    address = cluster.scheduler_address
    client = bench("run", suite, "--out", out, "--dask", address, "--quiet")
    wait_for(lambda: lines_in(out / "rows.jsonl") >= 5)
    client.kill()
    client.communicate()
    before = (out / "rows.jsonl").read_text().splitlines()
    assert 5 <= len(before) < 200
    killed: list[int] = []

    def kill_one(step: Step) -> None:
        if step.done == 5:
            killed.append(pids(cluster)[0])
            os.kill(killed[0], signal.SIGKILL)

    done = run_suite(suite, out, dask=address, progress=kill_one)
    assert killed and done.made == 200 - done.there and done.there >= len(before)
    assert done.statuses == {"optimal": 200}
    lines = (out / "rows.jsonl").read_text().splitlines()
    assert lines[: len(before)] == before
    keys = [json.loads(line)["key"] for line in lines]
    assert len(keys) == len(set(keys)) == 200


def test_no_scheduler_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is run; the folder stays free."""
    monkeypatch.setattr("accel_oct_bench.runner._PATIENCE", "1s")
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"there is no scheduler at 'tcp://127.0.0.1:9'"):
            run_suite(tiny_suite(tmp_path), tmp_path / "out", dask="tcp://127.0.0.1:9")


def test_a_cluster_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dask="local"` starts its own workers; accel_oct's tests see that such a cluster listens on loopback only."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    done = run_suite(tiny_suite(tmp_path, 3), tmp_path / "out", dask="local", jobs=2)
    assert done.made == 6 and done.statuses == {"optimal": 6}
