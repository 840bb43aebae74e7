"""Pieces on one machine or on a cluster: each counts once, whatever happens to a worker, and little is held."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.pieces_support import FEATURES, cut, mixed_table, parquet_folder, points
from helpers.selection import daily
from sklearn.base import clone

from accel_oct import frontier, gather
from accel_oct.data import BinaryDataset, Tally
from accel_oct.encoding import AutoEncoder, TableEncoder
from accel_oct.encoding.auto import estimated_seconds
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.engines import Engine
from accel_oct.pieces.sources import Source
from accel_oct.support.progress import ProgressEvent

TABLE = mixed_table(600, seed=2)


def same(one: Any, two: Any) -> None:
    """Two gathered data sets are equal, bit for bit."""
    assert one.encoder.conditions_ == two.encoder.conditions_
    assert type(one.data) is type(two.data)
    if isinstance(one.data, Tally):
        pairs = list(zip(one.data.counts, two.data.counts, strict=True))
    else:
        pairs = [(one.data.X, two.data.X), (one.data.y, two.data.y), (one.data.weights, two.data.weights)]
    for first, second in pairs:
        np.testing.assert_array_equal(first, second)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, processes of their own."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as made,
    ):
        yield made


# ---------------------------------------------------------------- a cluster


@pytest.mark.slow
@pytest.mark.parametrize("step", daily(["second pass", "first pass"], 1))
@pytest.mark.parametrize("keep", daily(["counts", "rows"], 1))
def test_a_killed_worker_loses_nothing(step: str, keep: str, client: Any, tmp_path: Path) -> None:
    """kill -9 of a worker that has pieces under way: the result is the one without a cluster, every piece once."""
    folder = parquet_folder(tmp_path, cut(TABLE, 12))
    options: dict[str, Any] = {"features": FEATURES, "sensitive_features": "sex", "encoder": TableEncoder(), "depth": 2}
    killed, told = [], []

    def progress(done: ProgressEvent) -> None:
        told.append(done)
        if done.step == step and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = gather(folder, "answer", keep=keep, client=client, progress=progress, **options)
    assert len(killed) == 1
    same(found, gather(folder, "answer", keep=keep, **options))
    assert [done.figures["pieces"] for done in told] == [(number, 12) for number in [*range(1, 13), *range(1, 13)]]
    assert told[11].figures["rows"] == told[23].figures["rows"] == len(TABLE)


@pytest.mark.slow
def test_partitions_of_dask_are_made_by_the_cluster(client: Any) -> None:
    """A dask DataFrame with a graph of its own, and its target beside it."""
    frame = dd.from_pandas(TABLE, npartitions=5)
    frame = frame.assign(income=frame["income"] * 2)
    found = gather(frame[FEATURES], frame["answer"], encoder="auto", client=client)
    table = TABLE.assign(income=TABLE["income"] * 2)
    same(found, gather([table[[*FEATURES, "answer"]]], "answer", encoder="auto"))


def test_the_current_client_is_used(client: Any) -> None:
    """As with dask's own collections: no client is given, and yet the workers make the partitions."""
    frame = dd.from_pandas(TABLE[["age", "answer"]], npartitions=3)
    here = os.getpid()

    def who(part: pd.DataFrame) -> pd.DataFrame:
        return part.assign(age=int(os.getpid() != here))

    frame = frame.map_partitions(who, meta=frame._meta.assign(age=np.int64(0)))
    assert gather(frame, "answer", encoder=None, depth=1).data.X.sum() == 0
    with client.as_current():
        assert gather(frame, "answer", encoder=None, depth=1).data.X.all()


def test_errors_come_back_from_the_cluster(client: Any, tmp_path: Path) -> None:
    """Ours are told as they are, at once; whatever else fails is tried again, and told with the piece."""
    folder = parquet_folder(tmp_path, cut(TABLE, 4))
    (folder / "part-002.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match=r"part-002\.parquet cannot be read as Parquet"):
        gather(folder, "answer", encoder=TableEncoder(), client=client)

    @dask.delayed  # type: ignore[untyped-decorator]
    def broken() -> pd.DataFrame:
        raise RuntimeError("the disk is on fire")

    frame = dd.from_delayed([broken()], meta=TABLE.iloc[:0])
    for engine in (client, None):
        with pytest.raises(InvalidInputError, match=r"^partition 0 .* RuntimeError: the disk is on fire"):
            gather(frame, "answer", encoder=TableEncoder(), client=engine)


def test_a_piece_that_fails_once_is_tried_again(client: Any, tmp_path: Path) -> None:
    """The engine begins it again; it counts once."""
    mark = str(tmp_path / "tried")

    def flaky(frame: pd.DataFrame) -> pd.DataFrame:
        if not os.path.exists(mark):
            os.close(os.open(mark, os.O_CREAT))
            raise OSError("the network was away")
        return frame

    frame = dd.from_pandas(TABLE, npartitions=3).map_partitions(flaky, meta=TABLE.iloc[:0])
    found = gather(frame, "answer", encoder=TableEncoder(), client=client)
    assert os.path.exists(mark)
    same(found, gather([TABLE], "answer", encoder=TableEncoder()))


# ---------------------------------------------------------------- this machine


def test_threads_change_nothing(tmp_path: Path) -> None:
    """Pieces at a time: the same result, and progress that never goes back."""
    folder = parquet_folder(tmp_path, cut(TABLE, 9))
    told: list[ProgressEvent] = []
    one = gather(folder, "answer", features=FEATURES, encoder="auto")
    two = gather(folder, "answer", features=FEATURES, encoder="auto", n_jobs=3, progress=told.append)
    same(one, two)
    assert [done.figures["pieces"] for done in told] == [(number, 9) for number in [*range(1, 10), *range(1, 10)]]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_it(threads: int) -> None:
    """Ctrl-C comes out as it is, and no further piece is begun."""
    begun = []

    def work(place: int, piece: Any) -> int:
        begun.append(place)
        if place == 3:
            raise KeyboardInterrupt
        return place

    source = Source("numbers", ("a",), lambda: iter(range(100)), 100)
    with pytest.raises(KeyboardInterrupt):
        Engine(None, threads, None).run("first pass", source, lambda: work, lambda result: 0)
    assert len(begun) < 10


# ---------------------------------------------------------------- memory


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Ten times as many rows, in one file of one row group: what NumPy and Python hold at most stays as it is."""

    def peak(n_rows: int) -> int:
        rng = np.random.default_rng(0)
        columns = {f"b{j}": rng.random(n_rows) < 0.5 for j in range(12)}
        path = tmp_path / f"{n_rows}.parquet"
        pq.write_table(pa.table({**columns, "y": columns["b0"] ^ columns["b5"]}), path, row_group_size=n_rows)
        del columns
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        found = gather(path, "y", encoder=None, batch_rows=4096, depth=2)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.n_rows == n_rows and isinstance(found.data, BinaryDataset)
        return most + max(0, pa.total_allocated_bytes() - before)

    peak(50_000)  # what is loaded once
    small, large = peak(50_000), peak(500_000)
    assert large < 1.2 * small + 200_000, (small, large)


def test_rows_become_a_tally_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked, rows take eight times as much: never more of them at once than are decoded at a time."""
    monkeypatch.setattr("accel_oct.pieces.gathering.rows_limit", lambda *given: 700)
    counted, count = [], Tally.of.__func__

    def watched(cls: Any, X: Any, *given: Any, **options: Any) -> Tally:
        counted.append(len(X))
        found: Tally = count(cls, X, *given, **options)
        return found

    monkeypatch.setattr(Tally, "of", classmethod(watched))
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((2000, 20)) < 0.5, columns=[f"b{j}" for j in range(20)])
    y = table["b0"] ^ table["b7"]
    found = gather(cut(table.assign(y=y), 9), "y", encoder=None, depth=2, batch_rows=100)
    assert isinstance(found.data, Tally) and counted and max(counted) <= 100
    monkeypatch.undo()
    for one, two in zip(found.data.counts, Tally.of(table, y, depth=2).counts, strict=True):
        np.testing.assert_array_equal(one, two)


def test_an_encoder_fitted_on_a_sample_knows_how_many_rows_there_are() -> None:
    """It asks what a search over all rows can afford, as it would in memory: counts of its features stay small."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20_000, 4)), columns=list("abcd"))
    table["y"] = (table["a"] > 0) ^ (table["b"] > 0.5)
    encoder = AutoEncoder(2, budget=0.002)
    found = gather(cut(table, 4), "y", encoder=encoder, depth=2, sample_rows=500).data
    whole = clone(encoder).fit(table[list("abcd")], table["y"])
    assert estimated_seconds(found.n_features, 20_000, 2, 2) <= 0.002
    assert abs(found.n_features - len(whole.conditions_)) <= 20


def test_pieces_are_asked_for_when_they_are_needed() -> None:
    """Of a source that makes its frames, at most one is alive at a time."""
    alive = [0, 0]

    class Counting(pd.DataFrame):  # type: ignore[misc]
        def __del__(self) -> None:
            alive[0] -= 1

    def frames() -> Iterator[pd.DataFrame]:
        for piece in cut(TABLE, 8):
            alive[0] += 1
            alive[1] = max(alive)
            yield Counting(piece)

    found = gather(frames, "answer", features=FEATURES, encoder=TableEncoder())
    assert found.n_rows == len(TABLE) and alive[1] <= 3


def test_the_frontier_of_a_tally_made_by_threads(tmp_path: Path) -> None:
    """From files to proven scores, as on the rows."""
    folder = parquet_folder(tmp_path, cut(TABLE, 5))
    rows, counts = (
        gather(folder, "answer", features=["age", "city"], encoder=TableEncoder(), n_jobs=2, keep=keep, depth=3).data
        for keep in ("rows", "counts")
    )
    assert points(frontier(counts, max_depth=3)) == points(frontier(rows, max_depth=3))
