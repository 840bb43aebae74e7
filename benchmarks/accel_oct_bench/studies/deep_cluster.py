"""Frontiers of depth five on a cluster of local workers: time to proof or gap, speed-up, a worker killed in the middle.

    python -m accel_oct_bench.studies.deep_cluster --data-dir FOLDER --workers 1 2 --limit 1800

The clock starts when all workers are up and have loaded their code. With ``--kill SECONDS`` the last number of workers
is run once more, and one of its workers ended by ``kill -9`` after so many seconds; the frontier must be the same,
trees included.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accel_oct import frontier
from accel_oct.cluster.workers import local_client
from accel_oct.solving.frontier import Frontier
from accel_oct.solving.result import HistoryRow

INSTANCES = ("sonar_QB_5", "ozone-one_QT_5", "ozone-one_QB_5")
HEADER = (
    "| instance | samples | features | depth | workers | status | seconds | score | bound | gap | speed-up | sides |"
)


def warm_up(_: int) -> int:
    """Load all code that the instances need."""
    rng = np.random.default_rng(0)
    frontier(rng.random((60, 12)) < 0.5, rng.integers(0, 2, 60), max_depth=5)
    return os.getpid()


class Watch:
    """Prints how a run goes, at most every `every` seconds."""

    def __init__(self, name: str, every: float) -> None:
        self._name, self._every = name, every
        self._last = -every
        self.rows = 0

    def __call__(self, row: HistoryRow) -> None:
        self.rows += 1
        if row.seconds - self._last >= self._every:
            self._last = row.seconds
            said = f"{row.seconds:8.1f} s  {row.objective:.4f} <= {row.bound:.4f}  {self.rows} answers"
            print(f"    {self._name}: {said}", flush=True)


def one_run(
    name: str, X: Any, y: Any, depth: int, workers: int, limit: float, every: float, kill: float | None
) -> tuple[Frontier, int]:
    """The frontier by so many workers, and how many answers they gave."""
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
    print(f"    kill -9 {pid}", flush=True)
    os.kill(pid, signal.SIGKILL)


def line(name: str, X: Any, depth: int, workers: str, found: Frontier, speed_up: str, sides: int) -> str:
    score, bound = float(found.scores[-1]), float(found.bounds[-1])
    gap = float(np.max(found.bounds - found.scores))
    cells = [name, X.shape[0], X.shape[1], depth, workers, found.status, f"{found.seconds:.1f}", f"{score:.4f}"]
    cells += [f"{bound:.4f}", f"{gap:.4f}", speed_up, sides]
    return "| " + " | ".join(map(str, cells)) + " |"


def same(a: Frontier, b: Frontier) -> bool:
    """Scores, bounds and trees."""
    trees = all(a.tree(leaves) == b.tree(leaves) for leaves in range(1, a.max_leaves + 1))
    return bool(np.array_equal(a.scores, b.scores) and np.array_equal(a.bounds, b.bounds) and trees)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with NAME_enc.csv, column target")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds per run")
    parser.add_argument("--only", nargs="+", default=list(INSTANCES))
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two lines about a run")
    parser.add_argument("--kill", type=float, help="seconds after which a worker of one more run is ended")
    chosen = parser.parse_args()
    rows = []
    for name in chosen.only:
        table = pd.read_csv(chosen.data_dir / f"{name}_enc.csv")
        X, y = table.drop(columns=["target"]).to_numpy(), table["target"].to_numpy()
        runs = [(workers, None) for workers in chosen.workers]
        if chosen.kill is not None:
            runs.append((chosen.workers[-1], chosen.kill))
        first: Frontier | None = None
        for workers, kill in runs:
            found, sides = one_run(name, X, y, chosen.depth, workers, chosen.limit, chosen.every, kill)
            label = str(workers) if kill is None else f"{workers}, one killed"
            known = first if first is not None and found.status == first.status == "optimal" else None
            speed_up = "" if known is None else f"{known.seconds / found.seconds:.2f}"
            rows.append(line(name, X, chosen.depth, label, found, speed_up, sides))
            print(rows[-1], flush=True)
            if known is not None:
                print(f"    same frontier as with {chosen.workers[0]}: {same(known, found)}", flush=True)
            first = first or found
    print("\n" + HEADER + "\n" + "| --- " * HEADER.count(" | ") + "| --- |")
    print("\n".join(rows), flush=True)


if __name__ == "__main__":
    main()
