"""One measured solve, in the process that it is called in: see `accel_oct_bench.worker` for the process."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from accel_oct.errors import AccelOctError
from accel_oct.mip import Solver
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import frontier
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve
from accel_oct_bench.instances import EncodedData
from accel_oct_bench.registry import Registry, fingerprint
from accel_oct_bench.rows import STATUSES, Instance, Method
from accel_oct_bench.rules import constraints_of, dataset_of
from accel_oct_bench.tasks import Task

__all__ = ["FRONTIER", "Outcome", "peak_mb", "prepare", "solve_task", "warm_up"]

#: Fields of a row, by name.
Outcome = dict[str, Any]

#: Instead of a preset: `accel_oct.frontier`, all numbers of leaves in one pass, and of them the best for the penalty.
FRONTIER = "frontier"

_WARM_SECONDS = 20.0
_LONGEST_ERROR = 500


def warm_up() -> float:
    """Load or compile the code that every solve uses; returns the seconds it took. No solver runs."""
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        X, y = rng.random((60, 12)) < 0.5, rng.integers(0, n_classes, 60)
        for weight in (1, 1000):  # narrow and wide counters
            weights = np.full(60, weight)
            for depth in (3, 4):
                frontier(X, y, max_depth=depth, sample_weight=weights)
                solve(X, y, max_depth=depth, leaf_penalty=0.01, sample_weight=weights)
    return time.perf_counter() - began


def prepare(task: Task) -> EncodedData:
    """Load the data, check that they are those of the task, and solve something tiny by the same method.

    What a process pays for once (imports, licences, compiled code) is paid before the clock starts.
    """
    data = Registry(task.data_dir).load(task.instance.data)
    if fingerprint(data) != task.instance.fingerprint:
        raise AccelOctError(f"data {task.instance.data!r} are not the same here as where the run was planned")
    constraints_of(task.instance.constraints, data)
    tiny = _some_of(data)
    method = replace(task.method, time_limit=_WARM_SECONDS)
    constraints = task.instance.constraints
    # Constraints have code of their own for each depth; without them the process that this one was forked from has it.
    depth = min(task.instance.max_depth, 4 if constraints else 2)
    instance = replace(task.instance, max_depth=depth, leaf_penalty=0.01)
    _caught(lambda: _outcome(instance, method, tiny))
    if constraints:
        _caught(lambda: _outcome(instance, method, tiny, weight=1000))  # wide counters, as large tables have
    return data


def _some_of(data: EncodedData) -> EncodedData:
    """Six rows of every class and group, and at most eight columns: all labels that constraints name are there."""
    groups = np.zeros(len(data.y), dtype=int) if data.group is None else data.group
    kinds = np.unique([data.y.astype(str), groups.astype(str)], axis=1, return_inverse=True)[1].reshape(-1)
    rows = np.sort(np.concatenate([np.flatnonzero(kinds == kind)[:6] for kind in range(kinds.max() + 1)]))
    group = None if data.group is None else data.group[rows]
    return EncodedData("tiny", data.X[rows, :8], data.y[rows], group)


def solve_task(task: Task, data: EncodedData) -> Outcome:
    """Solve and measure; whatever is raised becomes a status and a sentence."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    found = _caught(lambda: _outcome(task.instance, task.method, data))
    measured = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": _cpu_seconds() - cpu, "peak_mb": peak_mb()}
    return measured | found  # a peer has measured its own seconds, without what was looked up afterwards


def _caught(work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except MemoryError:
        return {"status": "memory_limit", "error": "there was not enough memory"}
    except AccelOctError as error:
        return {"status": "error", "error": _sentence(error)}
    except Exception as error:
        return {"status": "error", "error": f"{type(error).__name__}: {_sentence(error)}"}


def _outcome(instance: Instance, method: Method, data: EncodedData, weight: int = 1) -> Outcome:
    if method.package != "accel_oct":
        return _of_peer(instance, method, data)
    dataset, rules = dataset_of(data, weight), constraints_of(instance.constraints, data) or None
    solver = Solver(method.backend or "highs", threads=method.threads, seed=method.seed)
    if method.preset == FRONTIER:
        line = frontier(
            dataset,
            max_depth=instance.max_depth,
            constraints=rules,
            solver=solver,
            time_limit=method.time_limit,
        )
        return _of_result(line.best(instance.leaf_penalty), instance)
    config = Config.from_mapping(method.config, Config.preset(method.preset or "default"))
    result = solve(
        dataset,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        constraints=rules,
        solver=solver,
        config=config,
        time_limit=method.time_limit,
    )
    return _of_result(result, instance)


def _of_result(result: Result, instance: Instance) -> Outcome:
    known = result.status in STATUSES
    return {
        "status": result.status if known else "error",
        "error": None if known else f"the solve ended with status {result.status!r}",
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "n_leaves": None if result.found is None else result.found.n_leaves,
        "nodes": result.nodes,
        "stats": dict(result.stats),
        "tree": None if result.found is None else result.found.to_dict(),
    }


def _of_peer(instance: Instance, method: Method, data: EncodedData) -> Outcome:
    peers = import_module("accel_oct_bench.peers")  # adapters of packages that few have
    if method.package not in peers.PEERS:
        raise AccelOctError(
            f"there is no adapter of the package {method.package!r}; known are {', '.join(peers.PEERS)}"
        )
    if instance.constraints:
        raise AccelOctError(f"{method.package} takes no constraints")
    problem = peers.Problem(
        data.X,
        np.unique(data.y, return_inverse=True)[1].reshape(-1).astype(np.int64),
        instance.max_depth,
        instance.leaf_penalty,
        method.threads,
        method.time_limit,
        method.seed,
    )
    found: Outcome = peers.measured(peers.PEERS[method.package], problem)
    return found


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_ERROR]


def _cpu_seconds() -> float:
    """Of all threads of this process, and of programs that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_mb() -> float:
    """The largest resident memory of this process so far, in 2**20 bytes."""
    try:
        # getrusage would count what the process held before it became this one.
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
