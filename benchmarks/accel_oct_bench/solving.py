"""One measured solve, in the process that calls it; `accel_oct_bench.worker` starts that process.

Constraints of an instance are texts such as ``recall(1, at_least=0.9)`` or ``statistical_parity(group, at_most=0.05)``:
the names of `accel_oct.constraints` in small letters; ``group`` denotes the groups that came with the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import AccelOctError, InvalidInputError, shown
from accel_oct.mip import Solver
from accel_oct.solving.config import Config
from accel_oct.solving.frontier import frontier
from accel_oct.solving.parsing import constraint
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve
from accel_oct_bench.data import EncodedData, Registry, fingerprint
from accel_oct_bench.measurement import cpu_seconds, peak_mb
from accel_oct_bench.peers import PEERS, Problem, measured
from accel_oct_bench.rows import STATUSES, Instance, Method, Task

__all__ = ["FRONTIER", "Outcome", "constraints_of", "dataset_of", "prepare", "solve_task", "warm_up"]

#: Fields of a row, by name.
Outcome = dict[str, Any]

#: Instead of a preset: `accel_oct.frontier`, and of its trees the best for the penalty.
FRONTIER = "frontier"

_WARM_SECONDS = 20.0
_LONGEST_ERROR = 500
_GROUP = "group"


def dataset_of(data: EncodedData, weight: int = 1) -> BinaryDataset:
    """Return the data as `accel_oct.solve` takes them, groups under the name ``group``; all rows have one weight."""
    dataset = BinaryDataset.from_arrays(data.X, data.y, np.full(len(data.y), weight))
    return dataset if data.group is None else replace(dataset, row_values={_GROUP: data.group})


def constraints_of(texts: Sequence[str], data: EncodedData) -> list[Any]:
    """Return the constraints of an instance after binding them to its data once.

    Raises
    ------
    InvalidInputError
        For a text that names no constraint, or one that does not fit the data.
    """
    made = [constraint(text)[0] for text in texts]
    dataset = dataset_of(data)
    for text, each in zip(texts, made, strict=True):
        try:
            each.bind(dataset)
        except InvalidInputError as error:
            raise InvalidInputError(f"constraint {shown(text)} on data {data.name!r}: {error}") from None
    return made


def warm_up() -> float:
    """Load the code that every solve uses and return the seconds that this took. No MIP solver runs."""
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        X, y = rng.random((60, 12)) < 0.5, rng.integers(0, n_classes, 60)
        for weight in (1, 1000):  # narrow and wide counters
            weights = np.full(60, weight)
            for depth in (3, 4):
                frontier(X, y, max_depth=depth, sample_weight=weights)
                solve(X, y, max_depth=depth, leaf_penalty=0.01, sample_weight=weights)
    import sklearn.tree  # noqa: F401 - larger problems begin with a tree by CART

    return time.perf_counter() - began


def prepare(task: Task) -> EncodedData:
    """Load the data of a task, check them, and solve a tiny problem by the same method.

    So imports, licences and the loading of code are not measured.
    """
    data = Registry(task.data_dir).load(task.instance.data)
    if fingerprint(data) != task.instance.fingerprint:
        raise AccelOctError(f"data {task.instance.data!r} are not the same here as where the run was planned")
    constraints_of(task.instance.constraints, data)
    tiny = _some_of(data)
    method = replace(task.method, time_limit=_WARM_SECONDS)
    constraints = task.instance.constraints
    # Each constraint loads code of its own for each depth; without constraints `warm_up` has loaded it.
    depth = min(task.instance.max_depth, 4 if constraints else 2)
    instance = replace(task.instance, max_depth=depth, leaf_penalty=0.01)
    _caught(lambda: _outcome(instance, method, tiny))
    if constraints:
        _caught(lambda: _outcome(instance, method, tiny, weight=1000))  # wide counters, as large tables have
    return data


def _some_of(data: EncodedData) -> EncodedData:
    """Return six rows of every class and group and at most eight columns: all labels that constraints may name."""
    groups = np.zeros(len(data.y), dtype=int) if data.group is None else data.group
    kinds = np.unique([data.y.astype(str), groups.astype(str)], axis=1, return_inverse=True)[1].reshape(-1)
    rows = np.sort(np.concatenate([np.flatnonzero(kinds == kind)[:6] for kind in range(kinds.max() + 1)]))
    group = None if data.group is None else data.group[rows]
    return EncodedData("tiny", data.X[rows, :8], data.y[rows], group)


def solve_task(task: Task, data: EncodedData) -> Outcome:
    """Solve and measure a task; an exception becomes a status and a sentence."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    found = _caught(lambda: _outcome(task.instance, task.method, data))
    spent = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": cpu_seconds() - cpu, "peak_mb": peak_mb()}
    return spent | found  # a peer measures its own seconds, without reading its answer


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
    if method.package not in PEERS:
        raise AccelOctError(f"there is no adapter of the package {method.package!r}; known are {', '.join(PEERS)}")
    if instance.constraints:
        raise AccelOctError(f"{method.package} takes no constraints")
    classes = np.unique(data.y, return_inverse=True)[1].reshape(-1).astype(np.int64)
    problem = Problem(
        data.X, classes, instance.max_depth, instance.leaf_penalty, method.threads, method.time_limit, method.seed
    )
    return measured(PEERS[method.package], problem)


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_ERROR]
