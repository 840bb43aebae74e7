"""All trees within a point of accuracy of the optimum: how many, and how long counting and listing take.

    python -m accel_oct_bench.studies.near_optimal --data-dir FOLDER [--only NAME ...] [--depth 3] [--within 0.01]
        [--penalties 0.01 0.001] [--limit 1000] [--time-limit 60] [--praxis]

FOLDER holds the encoded data sets. One thread. The first trees are listed, all are counted; a count that is not reached
in time is given as a lower bound, with what ended it.

With --praxis, PRAXIS (tree-praxis) counts too, in the setting that its documentation calls exact. It rounds the price
of a leaf to whole samples, so the penalties are rounded for both, and its loss is limited to that of the optimum plus
the slack. It also counts trees in which two leaves of the same class are siblings, and splits with an empty side. Of
its trees, if they are at most 20000, those that ours counts are counted too: the two numbers must be equal, otherwise
the run ends with an error.
"""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

import accel_oct
from accel_oct_bench.data import EncodedData
from accel_oct_bench.measurement import timed
from accel_oct_bench.peers import PEERS
from accel_oct_bench.peers.base import Nested, nested_of_paths, quiet
from accel_oct_bench.peers.praxis import fitted_praxis
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of
from accel_oct_bench.studies.rival_calls import Answer, Worker

#: Trees of PRAXIS that are looked at one by one.
LOOKED_AT = 20_000


def cells(data: EncodedData, trees: accel_oct.NearOptimalTrees, penalty: float) -> list[object]:
    """Return a row of the table."""
    number = f"{trees.count:,}" if trees.counted else f">= {trees.at_least:,} ({trees.status})"
    by_leaves = trees.count_by_leaves or {}
    return [
        data.name,
        *data.X.shape,
        len(set(data.y.tolist())),
        f"{penalty:g}",
        "" if trees.optimum is None else f"{trees.optimum:.4f}",
        number,
        f"{min(by_leaves)}-{max(by_leaves)}" if by_leaves else "",
        len(trees),
        f"{trees.seconds:.2f}",
    ]


def praxis(X: Any, y: Any, depth: int, penalty: float, most_loss: int, time_limit: float) -> Answer:
    """Return PRAXIS' count, and how many of its trees ours counts, -1 if there are too many to look at."""
    with quiet():
        model, spent = timed(lambda: fitted_praxis(X, y, depth, penalty, most_loss))
    count = int(model.count_trees())
    trees = (nested_of_paths(*model.get_tree_paths(place)) for place in range(count if count <= LOOKED_AT else 0))
    kept = sum(is_counted(tree, X) for tree in trees) if count <= LOOKED_AT else -1
    return Answer("finished", spent.seconds, (count, kept))


def is_counted(tree: Nested, X: Any) -> bool:
    """Return whether every split separates rows and no two sibling leaves have the same class."""
    if not isinstance(tree, tuple):
        return True
    feature, zero, one = tree
    if not isinstance(zero, tuple) and zero == one:
        return False
    on = X[:, feature].astype(bool)
    return bool(0 < np.count_nonzero(on) < len(on)) and is_counted(zero, X[~on]) and is_counted(one, X[on])


def praxis_cells(
    worker: Worker, data: EncodedData, trees: accel_oct.NearOptimalTrees, penalty: float, options: Any
) -> list[object]:
    """Return the cells of PRAXIS in a row of the table."""
    if trees.optimum is None:
        return ["", "", ""]
    classes = np.unique(data.y, return_inverse=True)[1].ravel()
    most = floor((1.0 - trees.optimum + options.within) * len(classes) + 1e-6)
    answer = worker.ask(data.X, classes, options.depth, penalty, most, time_limit=options.time_limit)
    if answer.status != "finished":
        return [answer.status, "", f"{answer.seconds:.2f}"]
    count, kept = answer.predicted
    if kept >= 0 and trees.counted and kept != trees.count:
        raise SystemExit(f"{data.name}, penalty {penalty:g}: {trees.count} trees by ours, {kept} of PRAXIS'")
    return [f"{count:,}", f"{kept:,}" if kept >= 0 else "", f"{answer.seconds:.2f}"]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--penalties", type=float, nargs="+", default=[0.01, 0.001])
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--praxis", action="store_true")
    options = parser.parse_args()
    settings = {"max_depth": options.depth, "within": options.within, "limit": options.limit}
    # Load all code before anything is measured.
    warm = [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 0], max_depth=4, leaf_penalty=0.0, within=1.0, limit=1)
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 2], max_depth=3, leaf_penalty=0.0, within=1.0, limit=1)
    columns = [
        "data set",
        "samples",
        "features",
        "classes",
        "penalty",
        "optimum",
        "trees",
        "leaves",
        "listed",
        "seconds",
    ]
    worker = None
    if options.praxis:
        PEERS["praxis"].load()
        columns += ["PRAXIS: trees", "of them ours", "seconds"]
        first = np.array(warm, dtype=bool), np.array([0, 1, 0, 1, 1, 0]), 2, 0.0, 6
        worker = Worker(praxis, first)
    table = MarkdownTable(*columns)
    try:
        for data in data_sets(options.data_dir, options.only):
            for asked in options.penalties:
                penalty = asked if worker is None else round(asked * len(data.y)) / len(data.y)
                trees = accel_oct.near_optimal(
                    data.X, data.y, leaf_penalty=penalty, time_limit=options.time_limit, **settings
                )
                beside = [] if worker is None else praxis_cells(worker, data, trees, penalty, options)
                table.row(*cells(data, trees, penalty), *beside)
    finally:
        if worker is not None:
            worker.stop()


if __name__ == "__main__":
    main()
