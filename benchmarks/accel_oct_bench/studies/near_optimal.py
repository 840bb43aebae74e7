"""All trees within a point of accuracy of the optimum: how many, and how long counting and listing take.

    python -m accel_oct_bench.studies.near_optimal --data-dir FOLDER [--only NAME ...] [--depth 3] [--within 0.01]
        [--penalties 0.01 0.001] [--limit 1000] [--time-limit 60]

FOLDER holds the encoded data sets. One thread. The first trees are listed, all are counted; a count that is not reached
in time is given as a lower bound, with what ended it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import accel_oct
from accel_oct_bench.instances import EncodedData, encoded_data

COLUMNS = ("data set", "samples", "features", "classes", "penalty", "optimum", "trees", "leaves", "listed", "seconds")


def row(data: EncodedData, trees: accel_oct.NearOptimalTrees, penalty: float) -> list[str]:
    """Cells of the table."""
    number = f"{trees.count:,}" if trees.counted else f">= {trees.at_least:,} ({trees.status})"
    by_leaves = trees.count_by_leaves or {}
    return [
        data.name,
        str(data.X.shape[0]),
        str(data.X.shape[1]),
        str(len(set(data.y.tolist()))),
        f"{penalty:g}",
        "" if trees.optimum is None else f"{trees.optimum:.4f}",
        number,
        f"{min(by_leaves)}-{max(by_leaves)}" if by_leaves else "",
        str(len(trees)),
        f"{trees.seconds:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--penalties", type=float, nargs="+", default=[0.01, 0.001])
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    settings = {"max_depth": options.depth, "within": options.within, "limit": options.limit}
    # Compiled code is loaded before anything is timed.
    warm = [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 0], max_depth=4, leaf_penalty=0.0, within=1.0, limit=1)
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 2], max_depth=3, leaf_penalty=0.0, within=1.0, limit=1)
    print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|", flush=True)
    for data in encoded_data(options.data_dir, options.only):
        for penalty in options.penalties:
            trees = accel_oct.near_optimal(
                data.X, data.y, leaf_penalty=penalty, time_limit=options.time_limit, **settings
            )
            print("| " + " | ".join(row(data, trees, penalty)) + " |", flush=True)


if __name__ == "__main__":
    main()
