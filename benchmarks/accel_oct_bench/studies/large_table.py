"""Time and peak memory of one fit on a large table of numbers.

    python -m accel_oct_bench.studies.large_table --depth 4 [--rows 200000] [--columns 30] [--time-limit 150]

The table is that of *numeric 200k* in `studies.anytime`, before it is cut into deciles: independent normal columns,
whose class is ``(a > 0.3) xor (b + c > 0.2), or d > 1``, a tenth of it turned around (seed 0). One fit per process, for
peak memory is that of the process; what the imports and the table itself take is told beside it.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np

from accel_oct import OptimalTreeClassifier


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--penalty", type=float, default=0.0001)
    parser.add_argument("--time-limit", type=float, default=150.0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    table = rng.normal(size=(options.rows, options.columns))
    a, b, c, d = table.T[:4]
    y = ((a > 0.3) ^ (b + c > 0.2) | (d > 1)) ^ (rng.random(options.rows) < 0.1)
    warnings.simplefilter("ignore")  # a time limit that was reached is told below
    OptimalTreeClassifier(max_depth=3).fit(table[:2000], y[:2000])  # compiled code is loaded
    before = peak()
    began = time.perf_counter()
    cpu = time.process_time()
    model = OptimalTreeClassifier(
        max_depth=options.depth, leaf_penalty=options.penalty, time_limit=options.time_limit
    ).fit(table, y)
    seconds = time.perf_counter() - began
    print(
        f"depth {options.depth}: {model.status_}, objective {model.objective_:.4f}, bound {model.bound_:.4f}, "
        f"{seconds:.1f} s ({time.process_time() - cpu:.1f} s of the processor), "
        f"peak {peak():.0f} MB ({before:.0f} MB before the fit)"
    )


if __name__ == "__main__":
    main()
