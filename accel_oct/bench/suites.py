"""The suites: which runs answer which question."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from accel_oct.bench import runs
from accel_oct.bench.instances import data_folder, encoded_data, synthetic_data
from accel_oct.bench.runs import Record

Suite = Callable[[argparse.Namespace], Iterator[Record]]

GROWTH_SAMPLES = (1_000, 10_000, 100_000, 1_000_000)
GROWTH_FEATURES = (20, 50, 100, 200, 400)

#: Data sets whose models fit the licence that comes with gurobipy (2000 columns, 2000 rows) at depth 3.
SMALL_DATA = (
    "monk1", "monk2", "monk3", "hayes-roth", "iris_QB_5", "iris_QT_5", "banknote_QT_5", "transfusion_QT_5",
    "house-votes-84", "soybean-small",
)  # fmt: skip


def single(options: argparse.Namespace) -> Iterator[Record]:
    """Every data set, depth and penalty by `solve`, one by one."""
    for data in encoded_data(data_folder(options.data_dir), options.data):
        for depth in options.depths:
            for penalty in options.penalties:
                yield runs.run_solve(
                    data,
                    depth,
                    penalty,
                    backend=options.backend,
                    preset=options.preset,
                    time_limit=options.time_limit,
                    threads=options.threads,
                )


def path(options: argparse.Namespace) -> Iterator[Record]:
    """The same instances by `solve_path`: all penalties of a data set and depth in one pass."""
    for data in encoded_data(data_folder(options.data_dir), options.data):
        for depth in options.depths:
            yield from runs.run_path(data, depth, tuple(options.penalties), threads=options.threads)


def streed(options: argparse.Namespace) -> Iterator[Record]:
    """Side by side with STreeD, instance by instance in one run."""
    limit = options.time_limit or 120.0
    for data in encoded_data(data_folder(options.data_dir), options.data):
        for depth in options.depths:
            for penalty in options.penalties:
                yield runs.run_solve(data, depth, penalty, backend=options.backend, preset=options.preset)
                yield runs.run_streed(data, depth, penalty, time_limit=limit)


def solvers(options: argparse.Namespace) -> Iterator[Record]:
    """The same instances on several backends with the paper's presets, within the licence that comes with gurobipy."""
    limit = options.time_limit or 20.0
    for data in encoded_data(data_folder(options.data_dir), options.data or list(SMALL_DATA)):
        for depth, penalties in ((2, (0.04, 0.01, 0.002)), (3, (0.04,))):
            for penalty in penalties:
                for preset in ("baseline", "paper"):
                    for backend in ("gurobi", "scip", "highs"):
                        yield runs.run_solve(data, depth, penalty, backend=backend, preset=preset, time_limit=limit)


def frontier(options: argparse.Namespace) -> Iterator[Record]:
    """`frontier` alone: deep trees, bounds over time."""
    for data in encoded_data(data_folder(options.data_dir), options.data):
        for depth in options.depths:
            yield runs.run_frontier(data, depth, time_limit=options.time_limit, threads=options.threads)


def growth(options: argparse.Namespace) -> Iterator[Record]:
    """Time and peak memory against samples and features, each in a process of its own."""
    cases = [(n, 50) for n in GROWTH_SAMPLES] + [(1_000, features) for features in GROWTH_FEATURES]
    for n_samples, n_features in cases:
        for depth in options.depths:
            for threads in (1, 2):
                command = [sys.executable, "-m", "accel_oct.bench", "grow", str(n_samples), str(n_features)]
                command += [str(depth), str(threads)]
                finished = subprocess.run(command, capture_output=True, text=True, check=True)
                yield json.loads(finished.stdout.splitlines()[-1])


def grow(n_samples: int, n_features: int, depth: int, threads: int) -> Record:
    """One measurement of `growth`."""
    runs.warm_up()
    data = synthetic_data(n_samples, n_features)
    record, peak = runs.peak_memory_of(lambda: runs.run_frontier(data, depth, threads=threads))
    return dict(record) | {"method": "growth", "peak_gib": peak}


SUITES: dict[str, Suite] = {
    "single": single,
    "path": path,
    "streed": streed,
    "frontier": frontier,
    "solvers": solvers,
    "growth": growth,
}
