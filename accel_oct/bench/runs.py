"""One measured run each: ours by several routes, and STreeD for comparison."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from accel_oct.bench.instances import EncodedData
from accel_oct.errors import AccelOctError
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import frontier, solve_path
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve

Record = dict[str, Any]


def warm_up() -> float:
    """Load and compile everything that a process pays for once; returns the seconds it took."""
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


def _described(data: EncodedData, **more: Any) -> Record:
    return {
        "data": data.name,
        "samples": data.X.shape[0],
        "features": data.X.shape[1],
        "classes": len(np.unique(data.y)),
        **more,
    }


def _outcome(result: Result) -> Record:
    return {
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "status": result.status,
        "leaves": result.tree.n_leaves,
        "nodes": result.nodes,
        "decided_by": result.stats.get("decided_by"),
    }


def run_solve(
    data: EncodedData,
    depth: int,
    penalty: float,
    *,
    backend: str = "highs",
    preset: str = "default",
    config: Config | None = None,
    time_limit: float | None = None,
    threads: int = 1,
) -> Record:
    """`accel_oct.solve` on one instance; an error of ours (a licence too small, say) becomes the status."""
    record = _described(data, method="solve", backend=backend, preset=preset, depth=depth, penalty=penalty)
    began = time.perf_counter()
    try:
        result = solve(
            data.X,
            data.y,
            max_depth=depth,
            leaf_penalty=penalty,
            backend=backend,
            preset=preset,
            config=config,
            time_limit=time_limit,
            threads=threads,
        )
    except AccelOctError as error:
        return record | {"status": f"error: {error}", "seconds": time.perf_counter() - began}
    components = {
        name: {key: values[key] for key in ("cuts", "seconds") if key in values}
        for name, values in result.stats.items()
        if isinstance(values, dict)
    }
    return record | {"seconds": time.perf_counter() - began, **_outcome(result), "components": components}


def run_path(data: EncodedData, depth: int, penalties: tuple[float, ...], *, threads: int = 1) -> list[Record]:
    """`accel_oct.solve_path`: the seconds of the whole path stand in the first record, zero in the others."""
    began = time.perf_counter()
    results = solve_path(data.X, data.y, max_depth=depth, leaf_penalties=penalties, threads=threads)
    seconds = time.perf_counter() - began
    return [
        _described(data, method="path", depth=depth, penalty=penalty)
        | {"seconds": seconds if position == 0 else 0.0, **_outcome(result)}
        for position, (penalty, result) in enumerate(zip(penalties, results, strict=True))
    ]


def run_frontier(data: EncodedData, depth: int, *, time_limit: float | None = None, threads: int = 1) -> Record:
    """`accel_oct.frontier`, with bound and accuracy over time for deep searches."""
    trace: list[tuple[float, float, float]] = []
    began = time.perf_counter()
    result = frontier(
        data.X,
        data.y,
        max_depth=depth,
        time_limit=time_limit,
        threads=threads,
        progress=lambda row: trace.append((round(row.seconds, 2), row.objective, row.bound)),
    )
    gaps = result.bounds - result.scores
    return _described(data, method="frontier", depth=depth, threads=threads) | {
        "seconds": time.perf_counter() - began,
        "status": result.status,
        "accuracy": float(result.scores[-1]),
        "bound": float(result.bounds[-1]),
        "largest_gap": float(gaps.max()),
        "trace": trace[:: max(1, len(trace) // 12)],
    }


def run_streed(data: EncodedData, depth: int, penalty: float, *, time_limit: float) -> Record:
    """STreeD on the same instance. It penalises branch nodes, one fewer than leaves: the same optimum, shifted."""
    from pystreed import STreeDClassifier

    _, codes = np.unique(data.y, return_inverse=True)
    X = data.X.astype(np.int32)
    model = STreeDClassifier("cost-complex-accuracy", max_depth=depth, cost_complexity=penalty, time_limit=time_limit)
    began = time.perf_counter()
    model.fit(X, codes)
    seconds = time.perf_counter() - began
    leaves = model.get_n_leaves()
    objective = float(np.mean(model.predict(X) == codes)) - penalty * leaves
    finished = seconds < time_limit
    return _described(data, method="streed", depth=depth, penalty=penalty) | {
        "seconds": seconds,
        "objective": objective,
        "leaves": leaves,
        "status": "optimal" if finished else "time_limit",
    }


def peak_memory_of(task: Callable[[], Any]) -> tuple[Any, float]:
    """Run a task and return its result with the process's peak resident memory in GiB so far."""
    import resource  # Unix only

    result = task()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return result, peak / (2**30 if sys.platform == "darwin" else 2**20)
