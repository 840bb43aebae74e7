"""The cost of a smallest leaf weight: the time of a solve with it over that of the same solve without.

    python -m accel_oct_bench.studies.leaf_weight --data-dir FOLDER [--only NAME ...] [--depths 3 4] [--share 0.05]

FOLDER holds the encoded data sets. Both alternate in one process, one thread, leaf penalty 0.001; CPU seconds, the
least of five runs (of fewer if they take long).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import accel_oct
from accel_oct.constraints import MinLeafWeight
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of, timed


def seconds(X: Any, y: Any, depth: int, constraints: list[Any]) -> float:
    result, spent = timed(lambda: accel_oct.solve(X, y, max_depth=depth, leaf_penalty=0.001, constraints=constraints))
    if result.status != "optimal":
        raise SystemExit(f"not proven: {result.status}")
    return spent.cpu


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--share", type=float, default=0.05)
    options = parser.parse_args()
    rules: tuple[list[Any], list[Any]] = ([], [MinLeafWeight(share=options.share)])
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):  # loads all code before anything is measured
        X, y = rng.integers(0, 2, (300, 20)), rng.integers(0, n_classes, 300)
        for depth, constraints in product(options.depths, rules):
            seconds(X, y, depth, constraints)
    ratios = []
    table = MarkdownTable("data", "depth", "without", "with", "ratio")
    for data in data_sets(options.data_dir, options.only):
        for depth in options.depths:
            taken: list[list[float]] = []
            while len(taken) < 5 and np.sum(taken) < 6:
                taken.append([seconds(data.X, data.y, depth, constraints) for constraints in rules])
            plain, ruled = np.min(taken, axis=0)
            ratios.append(ruled / plain)
            table.row(data.name, depth, f"{plain:.4f}", f"{ruled:.4f}", f"{ratios[-1]:.2f}")
    print(
        f"\n{len(ratios)} pairs: median {np.median(ratios):.2f}, largest {max(ratios):.2f}, "
        f"{sum(ratio > 2 for ratio in ratios)} above 2"
    )


if __name__ == "__main__":
    main()
