"""D2S calls per second, and one matrix product of the same size.

    python -m accel_oct_bench.studies.d2s

The matrix product X.T @ X (float64, one thread) is the yardstick: it is what counting pairs costs at the very
least when it is done with BLAS. A call should stay below three times that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from accel_oct.exact import DepthTwoSolver

SIZES = ((200, 50), (200, 300), (5000, 90))


def seconds_per_call(function: Callable[[], object], budget: float = 0.5) -> float:
    """Best mean over several rounds, so that a busy machine does not decide the comparison."""
    function()
    start = time.perf_counter()
    function()
    once = max(time.perf_counter() - start, 1e-6)
    repeats = max(1, int(budget / 5 / once))
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'samples':>8}{'features':>9}{'weights':>9}{'D2S/s':>11}{'product/s':>11}{'D2S/product':>15}")
    for n_samples, n_features in SIZES:
        X = rng.random((n_samples, n_features)) < 0.4
        y = rng.integers(0, 2, n_samples)
        dense = X.astype(np.float64)
        product = seconds_per_call(partial(np.matmul, dense.T, dense))
        everything = np.arange(n_samples)
        for name, weights in (("unit", np.ones(n_samples)), ("real", rng.integers(1, 2**20, n_samples) / 2**18)):
            solver = DepthTwoSolver(X, y, weights, 2)
            seconds = seconds_per_call(partial(solver.solve, everything, 1.0))
            print(
                f"{n_samples:>8}{n_features:>9}{name:>9}{1 / seconds:>11.0f}{1 / product:>11.0f}"
                f"{seconds / product:>15.2f}"
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
