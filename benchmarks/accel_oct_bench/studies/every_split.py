"""Optimal trees over every split: accel_oct beside ConTree and imodels' FastSmallTreeClassifier, one thread each.

    python -m accel_oct_bench.studies.every_split --data-dir FOLDER --depths 2 3 none \
        --penalties 0.05 0.01 --time-limit 60

Peers that are not installed are left out. ConTree needs a depth, FastSmallTreeClassifier has none. Every objective is
recomputed from the predictions and the number of leaves of the tree that was returned; where two that say "optimal"
differ, the run ends with an error. Times are CPU seconds of `fit`, in one process, one after the other; of fits below
0.3 s the fastest of five.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, bundled_tables, parser_of, raw_sets

TOLERANCE = 1e-9


REPEATS, SHORT = 5, 0.3
"""Fits below SHORT seconds are repeated."""

NOTICEABLE = 0.05
"""Seconds of a peer from which on times are compared in the mean; below, starting up counts most."""


class Run(NamedTuple):
    """The outcome of a method on an instance; seconds are CPU seconds."""

    objective: float
    proven: bool
    seconds: float
    bound: float | None = None


def tables(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield tables of numbers without missing values: raw files, and those of scikit-learn."""
    seen = set()
    for name, _, X, labels in raw_sets(folder):
        try:
            numbers = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            continue
        if not np.isnan(numbers).any():
            seen.add(name)
            yield name, numbers, np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    yield from ((name, X, y) for name, X, y in bundled_tables() if name not in seen)


def ours(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    model, spent = timed(lambda: OptimalTreeClassifier(depth, penalty, time_limit=limit).fit(X, y))
    value = model.score(X, y) - penalty * model.get_n_leaves()
    return Run(value, model.status_ == "optimal", spent.cpu, model.bound_)


def contree(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    from pycontree import ConTree

    model = ConTree(max_depth=depth, complexity_cost=penalty, time_limit=limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, spent = timed(lambda: model.fit(X, y))
    stopped = any("time limit" in str(warning.message) for warning in caught)
    leaves = 1 + sum(node.is_branching_node() for node in _nodes(model.get_tree()))
    return Run(float(np.mean(model.predict(X) == y)) - penalty * leaves, not stopped, spent.cpu)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    if node.is_branching_node():
        yield from _nodes(node.get_left())
        yield from _nodes(node.get_right())


def small_tree(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    from imodels import FastSmallTreeClassifier

    model = FastSmallTreeClassifier(regularization=penalty, time_limit=limit)
    _, spent = timed(lambda: model.fit(X, y))
    value = float(np.mean(model.predict(X) == y)) - penalty * model.n_leaves_
    return Run(value, bool(model.optimal_), spent.cpu)


def installed() -> dict[str, Callable[..., Run]]:
    """Return the methods whose packages are installed."""
    methods: dict[str, Callable[..., Run]] = {"ours": ours}
    for name, package, method in (("ConTree", "pycontree", contree), ("FastSmallTree", "imodels", small_tree)):
        try:
            __import__(package)
            methods[name] = method
        except ImportError:
            print(f"{package} is not installed: {name} is left out")
    return methods


def repeated(method: Callable[..., Run], *instance: Any) -> Run:
    """Return the fastest of several runs if the first one is short."""
    runs = [method(*instance)]
    while runs[-1].seconds < SHORT and len(runs) < REPEATS:
        runs.append(method(*instance))
    return min(runs, key=lambda run: run.seconds)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--depths", nargs="+", default=["2", "3", "4", "none"])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.05, 0.02, 0.01, 0.005, 0.0])
    parser.add_argument("--tables", nargs="+", default=None)
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = installed()
    for method in methods.values():  # loads all code before anything is measured
        method(np.arange(8.0)[:, None], np.arange(8) // 4, 2, 0.05, 10.0)
    found: list[tuple[int | None, dict[str, Run]]] = []
    columns = [text for name in methods for text in (name, "s")]
    table = MarkdownTable("table", "rows x columns", "depth", "penalty", *columns, words=2)
    for name, X, y in tables(arguments.data_dir):
        if arguments.tables and name not in arguments.tables:
            continue
        for depth in (None if text == "none" else int(text) for text in arguments.depths):
            for penalty in arguments.penalties:
                if depth is None and penalty == 0:
                    continue  # without a limit and without a penalty every tree that tells all rows apart is optimal
                runs = {
                    who: repeated(method, X, y, depth, penalty, arguments.time_limit)
                    for who, method in methods.items()
                    if who == "ours" or (who == "ConTree") == (depth is not None)
                }
                found.append((depth, runs))
                cells = [cell for who in methods for cell in _cells(runs.get(who))]
                table.row(name, f"{X.shape[0]} x {X.shape[1]}", depth, penalty, *cells)
    for depth in dict.fromkeys(depth for depth, _ in found):
        for peer in list(methods)[1:]:
            summarise(depth, peer, [runs for own, runs in found if own == depth and peer in runs])
    wrong = sum(len({round(run.objective / TOLERANCE) for run in runs.values() if run.proven}) > 1 for _, runs in found)
    if wrong:
        raise SystemExit(f"{wrong} instances on which two optimal trees differ")


def summarise(depth: int | None, peer: str, instances: list[dict[str, Run]]) -> None:
    """Print how many instances of a depth both proved, and their times."""
    if not instances:
        return
    proven = {who: sum(runs[who].proven for runs in instances) for who in ("ours", peer)}
    longer = [runs for runs in instances if runs[peer].seconds > NOTICEABLE]
    both = [runs for runs in instances if runs["ours"].proven and runs[peer].proven]
    slower = sum(runs["ours"].seconds > runs[peer].seconds for runs in both)
    print(
        f"depth {depth}, {peer}: {len(instances)} instances, proven {proven['ours']} by ours and {proven[peer]} by "
        f"{peer}. Our time over its time: {_mean_ratio(longer, peer)} on {len(longer)} where it takes more than "
        f"{NOTICEABLE} s, {_mean_ratio(both, peer)} on {len(both)} that both prove; ours is slower on {slower}."
    )


def _mean_ratio(instances: list[dict[str, Run]], peer: str) -> str:
    ratios = [runs["ours"].seconds / runs[peer].seconds for runs in instances]
    return f"{float(np.exp(np.mean(np.log(ratios)))):.3f} (worst {max(ratios):.2f})" if ratios else "-"


def _cells(run: Run | None) -> tuple[str, str]:
    if run is None:
        return "", ""
    gap = "" if run.proven else " (open)" if run.bound is None else f" (bound {run.bound:.4f})"
    return f"{run.objective:.4f}{gap}", f"{run.seconds:.3f}"


if __name__ == "__main__":
    main()
