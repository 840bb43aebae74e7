"""Run as a script by `test_jit`: one small entry point, or a whole frontier, and what the log said.

Arguments: "unit" or "real" for the types; then any of "frontier" and "full-disk".
"""

from __future__ import annotations

import json
import logging
import sys

import numpy as np

lines: list[str] = []


class Listener(logging.Handler):
    """Keeps what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        lines.append(record.getMessage())


def fill_the_disk() -> None:
    """No file may grow above a hundred bytes: a full disk, as seen from this process."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def small(weights: np.ndarray) -> tuple[list[float], object]:
    """The sum of the weights by an entry point."""
    from accel_oct.compiled.jit import entry_point

    @entry_point
    def total(values):  # type: ignore[no-untyped-def]
        result = values[0]
        for position in range(1, values.size):
            result += values[position]
        return result

    return [float(total(weights))], total


def whole(weights: np.ndarray) -> tuple[list[float], object]:
    """Scores of a frontier of depth two."""
    from accel_oct.subtree import frontier_table
    from accel_oct.subtree.engine import numba_available

    rng = np.random.default_rng(0)
    X, y = rng.random((weights.size, 7)) < 0.5, rng.integers(0, 2, weights.size)
    scores = frontier_table(X, y, weights, 2, 2).scores[1:].tolist()
    if not numba_available():
        return scores, None
    from accel_oct.subtree.kernels import levels

    return scores, levels.level_two


def main(arguments: list[str]) -> None:
    logging.getLogger("accel_oct").addHandler(Listener())
    weights = np.arange(1, 61) if arguments[0] == "unit" else np.arange(1, 61) / 64
    if "full-disk" in arguments:
        fill_the_disk()
    values, entry = (whole if "frontier" in arguments else small)(weights)
    stats = entry._compiled.stats if entry is not None else None  # type: ignore[attr-defined]
    outcome = {
        "values": values,
        "lines": lines,
        "hits": sum(stats.cache_hits.values()) if stats else 0,
        "folder": stats.cache_path if stats else None,
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(sys.argv[1:])
