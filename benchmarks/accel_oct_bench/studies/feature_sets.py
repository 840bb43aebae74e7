"""Trees with a limited number of features: how long a proof takes.

    python -m accel_oct_bench.studies.feature_sets --data-dir FOLDER [--only NAME ...] [--depths 3 4] [--features 2 3 4]

FOLDER holds the encoded data sets; columns that were made from one original column (`Feat3_Num1.th0`, `Feat3_Num1.th1`)
are a group. The leaf penalty is zero, and one thread is used. Where others use the machine too, CPU seconds tell more.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

import accel_oct
from accel_oct.constraints import MaxFeatures
from accel_oct_bench.studies.common import MarkdownTable, parser_of, registry_at, timed

NAMES = (
    "ILPD_QT_5", "balance-scale", "banknote_QT_5", "breast-cancer", "car_evaluation", "fertility_QT_5",
    "hepatitis_QT_5", "house-votes-84", "ionosphere_QT_5", "kr-vs-kp", "parkinsons_QT_5", "segmentation_QT_5",
    "sonar_QT_5", "spambase_QT_5", "tic-tac-toe", "transfusion_QT_5", "wdbc_QT_5", "wine_QT_5",
)  # fmt: skip


def load_code(depths: list[int]) -> None:
    """Load all code before anything is measured."""
    X = np.random.default_rng(0).integers(0, 2, (60, 6))
    for depth in depths:
        for y in (X[:, 0] ^ X[:, 1], X[:, 0] + X[:, 1]):
            accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.0, constraints=[MaxFeatures(3)])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--features", nargs="*", type=int, default=[2, 3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    load_code(options.depths)
    registry = registry_at(options.data_dir)
    table = MarkdownTable(
        "data", "n x F", "groups", "depth", "at most", "status", "seconds", "CPU", "objective", "gap %", "decided by"
    )
    seconds: dict[int, list[float]] = {depth: [] for depth in options.depths}
    proven = dict.fromkeys(options.depths, 0)
    for name in options.only or NAMES:
        data = registry.load(name)
        with registry.encoded[name].open(encoding="utf-8") as file:
            groups = [column.split("_")[0] for column in file.readline().split(",")[:-1]]
        for depth, n in product(options.depths, options.features):
            result, spent = timed(
                partial(
                    accel_oct.solve,
                    data.X,
                    data.y,
                    max_depth=depth,
                    leaf_penalty=0.0,
                    constraints=[MaxFeatures(n, groups)],
                    time_limit=options.time_limit,
                    threads=1,
                )
            )
            seconds[depth].append(spent.seconds)
            proven[depth] += result.status == "optimal"
            size = f"{data.X.shape[0]} x {data.X.shape[1]}"
            times = (f"{spent.seconds:.2f}", f"{spent.cpu:.2f}")
            values = (f"{result.objective:.5f}", f"{100 * result.gap:.2f}", result.stats["decided_by"])
            table.row(name, size, len(set(groups)), depth, n, result.status, *times, *values)
    for depth, taken in seconds.items():
        print(
            f"\nDepth {depth}: {proven[depth]} of {len(taken)} proven, median {np.median(taken):.3f} s, "
            f"slowest {max(taken):.1f} s."
        )


if __name__ == "__main__":
    main()
