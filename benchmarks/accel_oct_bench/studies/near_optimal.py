"""All trees within a point of accuracy of the optimum: how many, and how long counting and listing take.

    python -m accel_oct_bench.studies.near_optimal --data-dir FOLDER [--only NAME ...] [--depth 3] [--within 0.01]
        [--penalties 0.01 0.001] [--limit 1000] [--time-limit 60]

FOLDER holds the encoded data sets. One thread. The first trees are listed, all are counted; a count that is not reached
in time is given as a lower bound, with what ended it.
"""

from __future__ import annotations

import accel_oct
from accel_oct_bench.data import EncodedData
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of


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


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--penalties", type=float, nargs="+", default=[0.01, 0.001])
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    settings = {"max_depth": options.depth, "within": options.within, "limit": options.limit}
    # Load all code before anything is measured.
    warm = [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 0], max_depth=4, leaf_penalty=0.0, within=1.0, limit=1)
    accel_oct.near_optimal(warm, [0, 1, 0, 1, 1, 2], max_depth=3, leaf_penalty=0.0, within=1.0, limit=1)
    table = MarkdownTable(
        "data set", "samples", "features", "classes", "penalty", "optimum", "trees", "leaves", "listed", "seconds"
    )
    for data in data_sets(options.data_dir, options.only):
        for penalty in options.penalties:
            trees = accel_oct.near_optimal(
                data.X, data.y, leaf_penalty=penalty, time_limit=options.time_limit, **settings
            )
            table.row(*cells(data, trees, penalty))


if __name__ == "__main__":
    main()
