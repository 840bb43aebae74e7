"""D2S calls per second, and one matrix product of the same size.

    python -m accel_oct_bench.studies.d2s

The matrix product X.T @ X (float64, one thread) is the yardstick: it is what counting pairs costs at the very
least when it is done with BLAS. A call should stay below three times that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from accel_oct.exact import DepthTwoSolver
from accel_oct_bench.studies.common import MarkdownTable, least_seconds

SIZES = ((200, 50), (200, 300), (5000, 90))


def seconds_per_call(function: Callable[[], object], budget: float = 0.5) -> float:
    """Return the best mean time of several rounds, so that other load on the machine counts little."""
    repeats = max(1, int(budget / 5 / max(least_seconds(function, 1), 1e-6)))

    def round_of_calls() -> None:
        for _ in range(repeats):
            function()

    return least_seconds(round_of_calls, 5) / repeats


def main() -> None:
    rng = np.random.default_rng(0)
    table = MarkdownTable("samples", "features", "weights", "D2S/s", "product/s", "D2S/product", words=0)
    for n_samples, n_features in SIZES:
        X = rng.random((n_samples, n_features)) < 0.4
        y = rng.integers(0, 2, n_samples)
        dense = X.astype(np.float64)
        product = seconds_per_call(partial(np.matmul, dense.T, dense))
        everything = np.arange(n_samples)
        for name, weights in (("unit", np.ones(n_samples)), ("real", rng.integers(1, 2**20, n_samples) / 2**18)):
            solver = DepthTwoSolver(X, y, weights, 2)
            seconds = seconds_per_call(partial(solver.solve, everything, 1.0))
            rates = (f"{1 / seconds:.0f}", f"{1 / product:.0f}", f"{seconds / product:.2f}")
            table.row(n_samples, n_features, name, *rates)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
