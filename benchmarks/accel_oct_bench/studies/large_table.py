"""Time and peak memory of one fit on a large table of numbers.

    python -m accel_oct_bench.studies.large_table --depth 4 [--rows 200000] [--columns 30] [--time-limit 150]

The table is *numeric 200k* of `studies.anytime` before it is cut into deciles. There is one fit per process, since peak
memory is that of the process; the memory of the imports and of the table is printed beside it.
"""

from __future__ import annotations

import warnings

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.solving import peak_mb
from accel_oct_bench.studies.common import numeric_table, parser_of, timed


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--penalty", type=float, default=0.0001)
    parser.add_argument("--time-limit", type=float, default=150.0)
    options = parser.parse_args()
    table, y = numeric_table(options.rows, options.columns, np.float64)
    warnings.simplefilter("ignore")  # the status says that a time limit was reached
    OptimalTreeClassifier(max_depth=3).fit(table[:2000], y[:2000])  # loads all code
    before = peak_mb()
    model, spent = timed(
        lambda: OptimalTreeClassifier(options.depth, options.penalty, time_limit=options.time_limit).fit(table, y)
    )
    print(
        f"depth {options.depth}: {model.status_}, objective {model.objective_:.4f}, bound {model.bound_:.4f}, "
        f"{spent.seconds:.1f} s ({spent.cpu:.1f} s of the processor), "
        f"peak {peak_mb():.0f} MB ({before:.0f} MB before the fit)"
    )


if __name__ == "__main__":
    main()
