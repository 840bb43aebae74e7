"""The time of the parts of a solve on data in pieces: reading, counting, adding up, and searching a tally.

    python -m accel_oct_bench.studies.tally_costs

The table and the constants of the cost model in docs/beyond-one-machine.md come from here.
"""

from __future__ import annotations

import tempfile
from functools import partial
from operator import add
from pathlib import Path

import numpy as np

from accel_oct import Tally, frontier, gather
from accel_oct.data.column_sets import n_sets
from accel_oct_bench.studies.common import MarkdownTable, least_seconds, parser_of

ROWS = 1 << 20
CASES = [(20, 4, 2), (50, 2, 2), (50, 3, 2), (50, 4, 2), (50, 4, 4), (100, 3, 2), (100, 4, 2)]


def table(n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random bits, and classes that depend on some of them."""
    rng = np.random.default_rng(n_features)
    X = rng.random((ROWS, n_features), dtype=np.float32) < 0.4
    y = (X[:, :4].sum(axis=1) + (rng.random(ROWS) < 0.2)) % n_classes
    return X, y


def reading(n_features: int) -> float:
    """Return the seconds per million rows of both passes over a Parquet file of bools, without the counting of sets."""
    import pyarrow as pa
    from pyarrow import parquet

    X, y = table(n_features, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "piece.parquet"
        columns = {f"c{column}": X[:, column] for column in range(n_features)}
        parquet.write_table(pa.table(columns | {"y": y.astype(np.int8)}), path)
        return 1e6 / ROWS * least_seconds(lambda: gather(path, "y", encoder=None, depth=1, keep="counts"), 2)


def main() -> None:
    parser_of(__doc__, data_dir=False).parse_args()
    costs = MarkdownTable(
        "columns", "depth", "classes", "sets", "counting s per 10^6 rows", "ns per set and 64 rows", "tally MB",
        "adding two, s", "frontier, s",
    )  # fmt: skip
    for n_features, depth, n_classes in CASES:
        X, y = table(n_features, n_classes)
        tally = Tally.of(X, y, depth=depth)
        sets = n_sets(n_features, depth)
        counting = least_seconds(partial(Tally.of, X, y, depth=depth), 2)
        adding = least_seconds(partial(add, tally, tally), 3)
        search = least_seconds(partial(frontier, tally, max_depth=depth), 1)
        counted = (f"{1e6 / ROWS * counting:.2f}", f"{1e9 * counting / sets / (ROWS / 64):.2f}")
        rest = (f"{tally.n_bytes / 1e6:.1f}", f"{adding:.3f}", f"{search:.2f}")
        costs.row(n_features, depth, n_classes, f"{sets:,}", *counted, *rest)
    for n_features in (20, 50, 100):
        print(f"reading {n_features} columns of bools: {reading(n_features):.2f} s per 10^6 rows", flush=True)


if __name__ == "__main__":
    main()
