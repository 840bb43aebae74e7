"""Optimal trees over every split: accel_oct beside ConTree and imodels' FastSmallTreeClassifier, one thread each.

    python -m accel_oct_bench.studies.every_split --data-dir FOLDER --depths 2 3 none \
        --penalties 0.05 0.01 --time-limit 60

Peers that are not installed are left out. ConTree needs a depth, FastSmallTreeClassifier has none. Every objective is
recomputed from the predictions and the number of leaves of the tree that was returned; where two that say "optimal"
differ, the run ends with an error. Times are those of `fit`, in one process, one after the other.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.instances import data_folder
from accel_oct_bench.studies.accuracy_vs_cart import raw_sets
from accel_oct_bench.studies.raw_tables import bundled

TOLERANCE = 1e-9


class Run(NamedTuple):
    """What one method did on one instance."""

    objective: float
    proven: bool
    seconds: float
    bound: float | None = None


def tables(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Tables of numbers without missing values: raw files, and those of scikit-learn."""
    seen = set()
    for name, _, X, labels in raw_sets(folder):
        try:
            numbers = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            continue
        if not np.isnan(numbers).any():
            seen.add(name)
            yield name, numbers, np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    yield from ((name, X, y) for name, X, y in bundled() if name not in seen)


def ours(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    model = OptimalTreeClassifier(depth, penalty, time_limit=limit)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    value = model.score(X, y) - penalty * model.get_n_leaves()
    return Run(value, model.status_ == "optimal", seconds, model.bound_)


def contree(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    from pycontree import ConTree

    model = ConTree(max_depth=depth, complexity_cost=penalty, time_limit=limit)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    seconds = time.perf_counter() - began
    stopped = any("time limit" in str(warning.message) for warning in caught)
    leaves = 1 + sum(node.is_branching_node() for node in _nodes(model.get_tree()))
    return Run(float(np.mean(model.predict(X) == y)) - penalty * leaves, not stopped, seconds)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    if node.is_branching_node():
        yield from _nodes(node.get_left())
        yield from _nodes(node.get_right())


def small_tree(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    from imodels import FastSmallTreeClassifier

    model = FastSmallTreeClassifier(regularization=penalty, time_limit=limit)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    value = float(np.mean(model.predict(X) == y)) - penalty * model.n_leaves_
    return Run(value, bool(model.optimal_), seconds)


def installed() -> dict[str, Callable[..., Run]]:
    """The methods that can be run here."""
    methods: dict[str, Callable[..., Run]] = {"ours": ours}
    for name, package, method in (("ConTree", "pycontree", contree), ("FastSmallTree", "imodels", small_tree)):
        try:
            __import__(package)
            methods[name] = method
        except ImportError:
            print(f"{package} is not installed: {name} is left out")
    return methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--depths", nargs="+", default=["2", "3", "4", "none"])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.05, 0.02, 0.01, 0.005])
    parser.add_argument("--tables", nargs="+", default=None)
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = installed()
    for method in methods.values():  # what is loaded or compiled at the first call is not counted
        method(np.arange(8.0)[:, None], np.arange(8) // 4, 2, 0.05, 10.0)
    print("| table | rows x columns | depth | penalty |", *(f"{name} | s |" for name in methods))
    print("| --- | --- | ---: | ---: |", "---: | ---: |" * len(methods))
    ratios: dict[str, list[float]] = {name: [] for name in methods}
    wrong = 0
    for name, X, y in tables(data_folder(arguments.data_dir)):
        if arguments.tables and name not in arguments.tables:
            continue
        for depth in (None if text == "none" else int(text) for text in arguments.depths):
            for penalty in arguments.penalties:
                runs = {
                    who: method(X, y, depth, penalty, arguments.time_limit)
                    for who, method in methods.items()
                    if who == "ours" or (who == "ConTree") == (depth is not None)
                }
                wrong += len({round(run.objective / TOLERANCE) for run in runs.values() if run.proven}) > 1
                for who, run in runs.items():
                    if run.proven and runs["ours"].proven:
                        ratios[who].append(runs["ours"].seconds / run.seconds)
                cells = [_cells(runs.get(who)) for who in methods]
                size = f"{X.shape[0]} x {X.shape[1]}"
                print(f"| {name} | {size} | {depth} | {penalty} |", *cells, flush=True)
    for who, values in ratios.items():
        if who != "ours" and values:
            mean = float(np.exp(np.mean(np.log(values))))
            print(f"{who}: {len(values)} proven by both, our time over its time: {mean:.3f}, worst {max(values):.3f}")
    if wrong:
        raise SystemExit(f"{wrong} instances on which two optimal trees differ")


def _cells(run: Run | None) -> str:
    if run is None:
        return "| |"
    gap = "" if run.proven else " (open)" if run.bound is None else f" (bound {run.bound:.4f})"
    return f"{run.objective:.4f}{gap} | {run.seconds:.3f} |"


if __name__ == "__main__":
    main()
