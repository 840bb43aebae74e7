"""Optimal trees over any number of rows: a table in Parquet files, dask workers, and a planted tree to be found.

    python -m accel_oct_bench.studies.many_rows make FOLDER --rows 100_000_000
    python -m accel_oct_bench.studies.many_rows run FOLDER --workers 2

The rows are random bits; the class follows a planted tree of depth four, and one row in ten has the other class.
`run` finds the optimal tree of the first 10**6, 10**7, ... rows and of all, on workers of dask.
"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from accel_oct import EncodedTable, frontier, gather
from accel_oct.cluster.workers import local_client
from accel_oct.solving.frontier import Frontier
from accel_oct.support.progress import ProgressEvent
from accel_oct.tree import DecisionTree
from accel_oct_bench.measurement import peak_mb
from accel_oct_bench.studies.common import MarkdownTable, parser_of

N_COLUMNS = 50
ROWS_OF_A_PIECE = 1_000_000
NOISE = 0.1


def planted_tree() -> DecisionTree:
    """Return a full tree of depth four with a different column at every branch; neighbouring leaves differ."""
    order = np.random.default_rng(7).permutation(N_COLUMNS)[:15]
    labels = np.array([1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1])
    feature = np.append(order, np.full(16, -1))
    label = np.append(np.full(15, -1), labels)
    return DecisionTree(feature, label)


def piece(number: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a piece: a third of the columns is 1 in a quarter of the rows, a third in half, the others in the rest."""
    rng = np.random.default_rng([number, 1])
    n_bytes = -(-n_rows // 8)
    columns = np.empty((N_COLUMNS, n_bytes), dtype=np.uint8)
    for column in range(N_COLUMNS):
        bits, more = (np.frombuffer(rng.bytes(n_bytes), dtype=np.uint8) for _ in range(2))
        columns[column] = (bits & more, bits, bits | more)[column % 3]
    X = np.unpackbits(columns, axis=1, count=n_rows).astype(bool).T
    y = planted_tree().predictions(X) ^ (rng.random(n_rows) < NOISE)
    return X, y.astype(np.int8)


def write(folder: Path, number: int, n_rows: int) -> None:
    """Write one Parquet file, unless it exists."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"piece-{number:05d}.parquet"
    if path.exists():
        return
    X, y = piece(number, n_rows)
    table = pa.table({f"c{column:02d}": X[:, column] for column in range(N_COLUMNS)} | {"y": y})
    part = path.with_suffix(".part")
    parquet.write_table(table, part, compression="none", use_dictionary=False, write_statistics=False)
    part.rename(path)


def make(folder: Path, rows: int, jobs: int) -> None:
    """Write all pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    sizes = [min(ROWS_OF_A_PIECE, rows - first) for first in range(0, rows, ROWS_OF_A_PIECE)]
    with ProcessPoolExecutor(jobs) as pool:
        for number, done in enumerate([pool.submit(write, folder, n, size) for n, size in enumerate(sizes)]):
            done.result()
            if (number + 1) % 10 == 0:
                print(f"{number + 1} pieces, {time.perf_counter() - began:.0f} s", flush=True)


def solved(paths: list[str], client: Any, depth: int, kill: bool) -> tuple[EncodedTable, Frontier, float, float]:
    """Return the frontier of some pieces, and seconds of gathering and in total; a worker may be killed halfway."""
    began = time.perf_counter()
    killed: list[int] = []

    def watch(event: ProgressEvent) -> None:
        done = event.figures["pieces"]
        done = done[0] if isinstance(done, tuple) else done
        half = event.step == "second pass" and done >= len(paths) // 2
        if kill and half and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
            print(f"killed worker {killed[0]} after {done} pieces", flush=True)

    gathered = gather(paths, "y", encoder=None, depth=depth, keep="counts", client=client, progress=watch)
    gathering = time.perf_counter() - began
    found = frontier(gathered.data, max_depth=depth)
    return gathered, found, gathering, time.perf_counter() - began


def run(folder: Path, workers: int, depth: int, kill: bool, figure: Path | None) -> None:
    """Print time, memory, and whether the planted tree is found, for growing numbers of rows."""
    paths = [str(path) for path in sorted(folder.glob("piece-*.parquet"))]
    sizes = [size for size in (1, 3, 10, 30, 100, 300, 1000) if size < len(paths)] + [len(paths)]
    table = MarkdownTable(
        "rows", "gathering s", "all s", "s per million rows", "worker peak MB", "own MB", "accuracy", "planted tree"
    )
    times = []
    with local_client(workers) as client:
        solved(paths[:1], client, depth, False)  # code is loaded by every worker
        for size in sizes:
            gathered, found, gathering, seconds = solved(paths[:size], client, depth, kill and size == sizes[-1])
            best = found.best(0.0)
            assert best.status == "optimal"
            rows = gathered.n_rows
            times.append((rows, seconds))
            memory = max(client.run(peak_mb).values())
            same = "found" if same_function(best.tree, planted_tree()) else "another tree"
            spent = (f"{gathering:.1f}", f"{seconds:.1f}", f"{1e6 * gathering / rows:.2f}")
            table.row(f"{rows:,}", *spent, f"{memory:.0f}", f"{peak_mb():.0f}", f"{best.objective:.6f}", same)
    check_sample(folder, depth)
    if figure is not None:
        draw(times, workers, figure)


def same_function(tree: DecisionTree, other: DecisionTree) -> bool:
    """Return whether two trees agree on all values of the columns that either of them uses."""
    used = sorted({*tree.features_used, *other.features_used})
    if len(used) > 20:
        return False
    X = np.zeros((2 ** len(used), N_COLUMNS), dtype=bool)
    X[:, used] = (np.arange(len(X))[:, None] >> np.arange(len(used))) & 1
    return bool(np.array_equal(tree.predictions(X), other.predictions(X)))


def check_sample(folder: Path, depth: int) -> None:
    """Compare the frontier of the rows of the first piece with that of their tally."""
    X, y = piece(0, ROWS_OF_A_PIECE)
    began = time.perf_counter()
    rows = frontier(X, y, max_depth=depth)
    seconds = time.perf_counter() - began
    data = gather(str(folder / "piece-00000.parquet"), "y", encoder=None, depth=depth, keep="counts").data
    counts = frontier(data, max_depth=depth)
    equal = np.array_equal(rows.scores, counts.scores) and np.array_equal(rows.bounds, counts.bounds)
    print(f"first {len(y):,} rows in memory: {seconds:.1f} s, whole frontier {'equal' if equal else 'DIFFERENT'}")
    assert equal


def draw(times: list[tuple[int, float]], workers: int, path: Path) -> None:
    """Draw time against rows."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    rows, seconds = (np.array(values) for values in zip(*times, strict=True))
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    axes.loglog(rows, seconds, "o-", label=f"{workers} workers, 50 columns, depth 4")
    axes.loglog(rows, seconds[-1] * rows / rows[-1], ":", color="grey", label="linear")
    axes.set(xlabel="rows", ylabel="seconds to the proven optimum")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("command", choices=["make", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000, help="make: how many")
    parser.add_argument("--jobs", type=int, default=2, help="make: processes")
    parser.add_argument("--workers", type=int, default=2, help="run: processes of dask, with one thread each")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--kill", action="store_true", help="run: kill a worker halfway through all rows")
    parser.add_argument("--figure", type=Path, help="run: a picture of time against rows")
    given = parser.parse_args()
    if given.command == "make":
        make(given.folder, given.rows, given.jobs)
    else:
        run(given.folder, given.workers, given.depth, given.kill, given.figure)
