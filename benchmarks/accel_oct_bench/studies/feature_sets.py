"""Trees with at most so many features: how long a proof takes.

    python -m accel_oct_bench.studies.feature_sets --data-dir FOLDER [--only NAME ...] [--depths 3 4] [--features 2 3 4]

FOLDER holds the encoded data sets; columns that were made from one original column (`Feat3_Num1.th0`, `Feat3_Num1.th1`)
are a group. The leaf penalty is zero, and one thread is used. Where others use the machine too, CPU seconds tell more.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import accel_oct
from accel_oct.constraints import MaxFeatures

NAMES = (
    "ILPD_QT_5",
    "balance-scale",
    "banknote_QT_5",
    "breast-cancer",
    "car_evaluation",
    "fertility_QT_5",
    "hepatitis_QT_5",
    "house-votes-84",
    "ionosphere_QT_5",
    "kr-vs-kp",
    "parkinsons_QT_5",
    "segmentation_QT_5",
    "sonar_QT_5",
    "spambase_QT_5",
    "tic-tac-toe",
    "transfusion_QT_5",
    "wdbc_QT_5",
    "wine_QT_5",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--features", nargs="*", type=int, default=[2, 3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "| data | n x F | groups | depth | at most | status | seconds | CPU | objective | gap % | decided by |",
        "| --- " * 11 + "|",
    ]
    X = np.random.default_rng(0).integers(0, 2, (60, 6))
    for depth in options.depths:  # compiled code is loaded before anything is measured
        for y in (X[:, 0] ^ X[:, 1], X[:, 0] + X[:, 1]):
            accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.0, constraints=[MaxFeatures(3)])
    seconds: dict[int, list[float]] = {depth: [] for depth in options.depths}
    proven = dict.fromkeys(options.depths, 0)
    for name in options.only or NAMES:
        with (options.data_dir / f"{name}_enc.csv").open(newline="") as file:
            header, *cells = csv.reader(file)
        X, y = np.array([row[:-1] for row in cells]).astype(int), np.array([row[-1] for row in cells])
        groups = [column.split("_")[0] for column in header[:-1]]
        for depth in options.depths:
            for n in options.features:
                began, cpu = time.perf_counter(), time.process_time()
                result = accel_oct.solve(
                    X,
                    y,
                    max_depth=depth,
                    leaf_penalty=0.0,
                    constraints=[MaxFeatures(n, groups)],
                    time_limit=options.time_limit,
                )
                taken, cpu = time.perf_counter() - began, time.process_time() - cpu
                seconds[depth].append(taken)
                proven[depth] += result.status == "optimal"
                lines.append(
                    f"| {name} | {X.shape[0]} x {X.shape[1]} | {len(set(groups))} | {depth} | {n} | {result.status} | "
                    f"{taken:.2f} | {cpu:.2f} | {result.objective:.5f} | {100 * result.gap:.2f} | "
                    f"{result.stats['decided_by']} |"
                )
                print(lines[-1], flush=True)
    for depth, times in seconds.items():
        lines.append("")
        lines.append(
            f"Depth {depth}: {proven[depth]} of {len(times)} proven, median {np.median(times):.3f} s, "
            f"slowest {max(times):.1f} s."
        )
        print(lines[-1])
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
