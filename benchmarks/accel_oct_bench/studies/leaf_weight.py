"""What a smallest leaf weight costs: the time of a solve with it over that of the same solve without.

    python -m accel_oct_bench.studies.leaf_weight --data-dir FOLDER [--only NAME ...] [--depths 3 4] [--share 0.05]

FOLDER holds the encoded data sets. Both are run by turns in one process, one thread, leaf penalty 0.001; CPU seconds,
the least of five runs (of one where it takes long).
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

import accel_oct
from accel_oct.constraints import MinLeafWeight


def seconds(X: Any, y: Any, depth: int, constraints: list[Any]) -> float:
    began = time.process_time()
    result = accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.001, constraints=constraints)
    if result.status != "optimal":
        raise SystemExit(f"not proven: {result.status}")
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--share", type=float, default=0.05)
    options = parser.parse_args()
    rules: tuple[list[Any], list[Any]] = ([], [MinLeafWeight(share=options.share)])
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):  # compiled code is loaded before anything is measured
        X, y = rng.integers(0, 2, (300, 20)), rng.integers(0, n_classes, 300)
        for depth in options.depths:
            for constraints in rules:
                seconds(X, y, depth, constraints)
    ratios = []
    print("| data | depth | without | with | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for path in sorted(options.data_dir.glob("*_enc.csv")):
        name = path.name.removesuffix("_enc.csv")
        if options.only and name not in options.only:
            continue
        with path.open(newline="") as file:
            cells = np.array(list(csv.reader(file))[1:])
        X, y = cells[:, :-1].astype(int), cells[:, -1]
        for depth in options.depths:
            taken: list[list[float]] = []
            while len(taken) < 5 and np.sum(taken) < 6:
                taken.append([seconds(X, y, depth, constraints) for constraints in rules])
            plain, ruled = np.min(taken, axis=0)
            ratios.append(ruled / plain)
            print(f"| {name} | {depth} | {plain:.4f} | {ruled:.4f} | {ratios[-1]:.2f} |", flush=True)
    print(
        f"\n{len(ratios)} pairs: median {np.median(ratios):.2f}, largest {max(ratios):.2f}, "
        f"{sum(ratio > 2 for ratio in ratios)} above 2"
    )


if __name__ == "__main__":
    main()
