"""Deep frontiers on a real dask cluster: workers may be killed, results may not change."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.progress_support import Events

from accel_oct import frontier
from accel_oct.cluster import workers
from accel_oct.errors import ClusterError, InvalidInputError
from accel_oct.support.progress import ProgressEvent

distributed = pytest.importorskip("distributed", reason="the extra accel-oct[dask] is not installed")


def table(n_features: int = 24) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.random((150, n_features)) < 0.5, rng.integers(0, 2, 150)


def assert_same(found: Any, expected: Any) -> None:
    assert found.status == expected.status == "optimal"
    np.testing.assert_array_equal(found.scores, expected.scores)
    for leaves in (2, 5, 9, 17, 32):
        assert found.tree(leaves) == expected.tree(leaves)


@pytest.fixture
def here() -> Iterator[Any]:
    """A cluster whose workers are threads of this process: what a test replaces, they see replaced."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,  # clients here end in any order
    ):
        yield client


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle, of the worker that began with the data too: same frontier, same trees, no hang."""
    X, y = table(48)
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        answers = Events()

        def kill(event: ProgressEvent) -> None:
            answers(event)
            if len(answers) in (5, 12):
                killed.append(pids[len(killed)])
                os.kill(killed[-1], signal.SIGKILL)

        found = frontier(X, y, max_depth=5, client=client, progress=kill, checkpoint=tmp_path / "run.json")
        assert len(killed) == 2 and len(answers) > 20
        # The address will do, and a file from before leaves nothing to do.
        again = frontier(X, y, max_depth=5, client=cluster.scheduler_address, checkpoint=tmp_path / "run.json")
    expected = frontier(X, y, max_depth=5)
    assert_same(found, expected)
    assert_same(again, expected)


@pytest.mark.slow
def test_a_number_of_workers() -> None:
    """Processes of their own, which are gone afterwards."""
    X, y = table()
    assert_same(frontier(X, y, max_depth=5, client=1), frontier(X, y, max_depth=5))
    assert not [thread for thread in threading.enumerate() if "Nanny" in thread.name]


def test_an_address_beside_data_in_pieces(here: Any, tmp_path: Path) -> None:
    """The cluster of a search may be an address, also where this process reads the pieces."""
    X, y = table(7)
    columns = {f"c{place}": X[:, place].astype(int) for place in range(X.shape[1])}
    pd.DataFrame(columns | {"y": y}).to_parquet(tmp_path / "a.parquet")
    for client in (here.scheduler.address, here):
        found = frontier(tmp_path, "y", max_depth=5, client=client)
        np.testing.assert_array_equal(found.scores, frontier(X, y, max_depth=5).scores)


def test_a_client_is_left_as_it_was(here: Any) -> None:
    """Used twice, also after a stop, and for other things afterwards."""
    X, y = table()
    assert frontier(X, y, max_depth=5, client=here, time_limit=0).status == "time_limit"
    assert_same(frontier(X, y, max_depth=5, client=here), frontier(X, y, max_depth=5))
    assert here.submit(sum, [1, 2]).result() == 3
    assert not here.futures or all(future.status == "finished" for future in here.futures.values())


def test_an_error_of_a_job_comes_out(here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was raised; what was found before is in the file, and the search goes on from there."""
    X, y = table()
    run, done = workers.run_job, []

    def fails(task: Any, job: Any, version: str) -> Any:
        done.append(job)
        if len(done) == 9:
            raise ZeroDivisionError("in the middle")
        return run(task, job, version)

    monkeypatch.setattr(workers, "run_job", fails)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        frontier(X, y, max_depth=5, client=here, checkpoint=tmp_path / "run.json")
    expected = frontier(X, y, max_depth=5)
    assert_same(frontier(X, y, max_depth=5, client=here, checkpoint=tmp_path / "run.json"), expected)
    assert len(done) - len(set(done)) <= 5, "only what was under way is done again"


def test_workers_with_another_version_refuse(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels may count differently."""
    monkeypatch.setattr("accel_oct.cluster.table.__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"a worker has accel_oct .*, not 0\.0\.1"):
        frontier(*table(), max_depth=5, client=here)


def test_no_workers_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after some patience; a time limit ends it before."""
    monkeypatch.setattr(workers, "PATIENCE", 0.5)
    monkeypatch.setattr(workers, "_LOOK_EVERY", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        began = time.monotonic()
        with pytest.raises(ClusterError, match=r"has had no worker for 0\.5 s"):
            frontier(*table(), max_depth=5, client=client)
        assert time.monotonic() - began < 20
        monkeypatch.setattr(workers, "PATIENCE", 100.0)
        assert frontier(*table(), max_depth=5, client=client, time_limit=0.5).status == "time_limit"


def test_a_scheduler_that_goes_away(here: Any) -> None:
    """One sentence, no hang."""
    X, y = table(48)

    def close(event: ProgressEvent) -> None:
        if event.changed:
            here.cluster.close()

    with pytest.raises(ClusterError):
        frontier(X, y, max_depth=5, client=here, progress=close)


@pytest.mark.parametrize("client", [0, -1, True, 2.5, [], object()])
def test_what_is_no_client(client: Any) -> None:
    """Refused in one sentence, whatever the depth."""
    with pytest.raises(InvalidInputError, match="client must be a dask Client, the address of a scheduler or a number"):
        frontier(*table(), max_depth=2, client=client)


def test_clients_that_cannot_be_used(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody at the address, a client that was closed, no dask."""
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1.0)
    with pytest.raises(InvalidInputError, match=r"there is no scheduler at 'tcp://127.0.0.1:9'"):
        frontier(*table(), max_depth=5, client="tcp://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match="there is no scheduler at 'no address'"):
        frontier(*table(), max_depth=5, client="no address")
    here.close()
    with pytest.raises(InvalidInputError, match="client must be connected, and it is closed"):
        frontier(*table(), max_depth=5, client=here)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'accel-oct\[dask\]'"):
        frontier(*table(), max_depth=5, client=2)
