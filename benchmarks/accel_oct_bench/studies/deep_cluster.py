"""Frontiers of depth five on a cluster of local workers: time to proof or gap, speed-up, a worker killed in the middle.

    python -m accel_oct_bench.studies.deep_cluster --data-dir FOLDER --workers 1 2 --limit 1800

The clock starts when all workers are up and have loaded their code. With ``--kill SECONDS`` the last number of workers
is run once more, and one of its workers ended by ``kill -9`` after so many seconds; the frontier must be the same,
trees included.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import numpy as np

from accel_oct import frontier
from accel_oct.cluster.workers import local_client
from accel_oct.solving.frontier import Frontier
from accel_oct.support.progress import ProgressEvent
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of

INSTANCES = ("sonar_QB_5", "ozone-one_QT_5", "ozone-one_QB_5")


def warm_up(_: int) -> int:
    """Load all code that the instances need, and return the process."""
    rng = np.random.default_rng(0)
    frontier(rng.random((60, 12)) < 0.5, rng.integers(0, 2, 60), max_depth=5)
    return os.getpid()


class Watch:
    """Prints how a run goes, at most every `every` seconds."""

    def __init__(self, name: str, every: float) -> None:
        self._name, self._every = name, every
        self._last = -every
        self.rows = 0

    def __call__(self, event: ProgressEvent) -> None:
        self.rows += event.changed
        if event.changed and event.seconds - self._last >= self._every:
            self._last = event.seconds
            said = f"{event.seconds:8.1f} s  {event.objective:.4f} <= {event.bound:.4f}  {self.rows} changes"
            print(f"    {self._name}: {said}", file=sys.stderr, flush=True)


def one_run(
    name: str, X: Any, y: Any, depth: int, workers: int, limit: float, every: float, kill: float | None
) -> tuple[Frontier, int]:
    """Return the frontier by this many workers, and the number of their answers."""
    watch = Watch(f"{name}, {workers} workers", every)
    with local_client(workers) as client:
        client.wait_for_workers(workers)
        pids = list(client.run(warm_up, 0).values())
        warm_up(0)
        timer = None
        if kill is not None:
            timer = threading.Timer(kill, end_process, [pids[0]])
            timer.start()
        found = frontier(X, y, max_depth=depth, time_limit=limit, client=client, progress=watch)
        if timer is not None:
            timer.cancel()
            timer.join()
    return found, watch.rows


def end_process(pid: int) -> None:
    print(f"    kill -9 {pid}", file=sys.stderr, flush=True)
    os.kill(pid, signal.SIGKILL)


def same(a: Frontier, b: Frontier) -> bool:
    """Return whether two frontiers have the same scores, bounds and trees."""
    trees = all(a.tree(leaves) == b.tree(leaves) for leaves in range(1, a.max_leaves + 1))
    return bool(np.array_equal(a.scores, b.scores) and np.array_equal(a.bounds, b.bounds) and trees)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds per run")
    parser.add_argument("--only", nargs="+", default=list(INSTANCES))
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two lines about a run")
    parser.add_argument("--kill", type=float, help="seconds after which a worker of one more run is ended")
    chosen = parser.parse_args()
    table = MarkdownTable(
        "instance", "samples", "features", "depth", "workers", "status", "seconds", "score", "bound", "gap", "speed-up",
        "sides",
    )  # fmt: skip
    for data in data_sets(chosen.data_dir, chosen.only):
        name, X, y = data.name, data.X, data.y
        runs = [(workers, None) for workers in chosen.workers]
        if chosen.kill is not None:
            runs.append((chosen.workers[-1], chosen.kill))
        first: Frontier | None = None
        for workers, kill in runs:
            found, sides = one_run(name, X, y, chosen.depth, workers, chosen.limit, chosen.every, kill)
            label = str(workers) if kill is None else f"{workers}, one killed"
            known = first if first is not None and found.status == first.status == "optimal" else None
            speed_up = "" if known is None else f"{known.seconds / found.seconds:.2f}"
            gap = float(np.max(found.bounds - found.scores))
            cells = (f"{found.seconds:.1f}", f"{found.scores[-1]:.4f}", f"{found.bounds[-1]:.4f}", f"{gap:.4f}")
            table.row(name, *X.shape, chosen.depth, label, found.status, *cells, speed_up, sides)
            if known is not None:
                said = f"same frontier as with {chosen.workers[0]}: {same(known, found)}"
                print(f"    {said}", file=sys.stderr, flush=True)
            first = first or found


if __name__ == "__main__":
    main()
