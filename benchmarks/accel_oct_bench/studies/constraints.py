"""Trees under linear constraints: how long a proof takes.

    python -m accel_oct_bench.studies.constraints --data-dir FOLDER [--only NAME ...] [--time-limit 60]

FOLDER holds the encoded data sets and, below it, `fairness` with sets whose first column is the protected group; it is
left out of the splits. In the other sets the first column of which the rarer value has a fifth of the rows or more is
taken for the group. Sets with three classes or more, where the first class is positive, and one with real weights come
last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import accel_oct
from accel_oct.constraints import (
    EqualisedOdds,
    EqualOpportunity,
    MaxLeaves,
    PositiveBudget,
    Recall,
    StatisticalParity,
)
from accel_oct_bench.studies.common import MarkdownTable, parser_of, registry_at, timed

FAIRNESS = ("adult", "german-credit", "ricci", "student-mat")
CLASSES = ("balance-scale", "wine_QT_5")
WEIGHTED = "german-credit"
OTHERS = ("ILPD_QB_5", "ILPD_QT_5", "hepatitis_QB_5", "hepatitis_QT_5", "breast-cancer")
LIMITS = (0.01, 0.05, 0.1)


def tables(
    folder: Path | None, only: Sequence[str], with_classes: bool = False
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield name, group, features and classes of every set; those with three classes or more if asked for."""
    registry = registry_at(folder)
    for name in (*FAIRNESS, *OTHERS, *(CLASSES if with_classes else ())):
        if only and name not in only:
            continue
        data = registry.load(f"fairness/{name}" if name in FAIRNESS else name)
        X = data.X.astype(int)
        if data.group is not None:
            yield name, data.group, X, data.y
            continue
        shares = np.minimum(X.mean(axis=0), 1 - X.mean(axis=0))
        column = int(np.argmax(shares >= 0.2))
        yield name, X[:, column], np.delete(X, column, axis=1), data.y


def weighted(folder: Path | None, only: Sequence[str]) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield all tables with weights: None, and for one set real weights that make both classes equally heavy."""
    for name, group, X, y in tables(folder, only, with_classes=True):
        yield name, group, X, y, None
    for _, group, X, y in tables(folder, [WEIGHTED] if not only or f"{WEIGHTED}, weights" in only else ["none"]):
        counts = {label: np.sum(y == label) for label in np.unique(y)}
        yield f"{WEIGHTED}, weights", group, X, y, np.array([len(y) / (len(counts) * counts[label]) for label in y])


def problems(group: Any, y: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the constraints that every set is solved with."""
    classes = np.unique(y).tolist()
    positive = classes[1] if len(classes) == 2 else classes[0]
    for limit in LIMITS:
        yield f"statistical parity {limit}", [StatisticalParity(group, limit, positive)]
        yield f"equal opportunity {limit}", [EqualOpportunity(group, limit, positive)]
        yield f"equalised odds {limit}", [EqualisedOdds(group, limit, positive)]
    parity, odds = StatisticalParity(group, 0.05, positive), EqualisedOdds(group, 0.05, positive)
    yield "recall 0.9, statistical parity 0.05", [Recall(positive, at_least=0.9), parity]
    yield "budget 30 %, equalised odds 0.05", [PositiveBudget(0.3, positive), odds]
    yield "6 leaves, statistical parity 0.05", [MaxLeaves(6), parity]


def load_code() -> None:
    """Load all code before anything is measured."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 8))
    limits = [StatisticalParity(X[:, 0], 0.01, 1), EqualisedOdds(X[:, 3], 0.01, 1)]
    for depth in (3, 4):
        for y in ((X[:, 0] ^ X[:, 1]) & X[:, 2], X[:, 0] + X[:, 1] * X[:, 2]):
            for weights in (None, rng.random(200)):
                accel_oct.solve(
                    X, y, sample_weight=weights, max_depth=depth, leaf_penalty=0.0, constraints=limits, time_limit=120
                )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    load_code()
    table = MarkdownTable(
        "data", "depth", "penalty", "constraints", "status", "seconds", "objective", "gap %", "decided by"
    )
    seconds: dict[int, list[float]] = {}
    proven: Counter[int] = Counter()
    for name, group, X, y, weights in weighted(options.data_dir, options.only):
        for depth, penalty, (title, constraints) in product(options.depths, (0.0, 0.001), list(problems(group, y))):
            result, spent = timed(
                partial(
                    accel_oct.solve,
                    X,
                    y,
                    sample_weight=weights,
                    max_depth=depth,
                    leaf_penalty=penalty,
                    constraints=constraints,
                    time_limit=options.time_limit,
                )
            )
            seconds.setdefault(depth, []).append(spent.seconds)
            proven[depth] += result.status in ("optimal", "infeasible")
            gap = f"{100 * result.gap:.2f}" if np.isfinite(result.gap) else ""
            cells = (result.status, f"{spent.seconds:.2f}", f"{result.objective:.5f}", gap, result.stats["decided_by"])
            table.row(name, depth, f"{penalty:g}", title, *cells)
    for depth, times in seconds.items():
        print(
            f"\nDepth {depth}: {proven[depth]} of {len(times)} proven, median {np.median(times):.3f} s, "
            f"95 % {np.quantile(times, 0.95):.2f} s, slowest {max(times):.1f} s."
        )


if __name__ == "__main__":
    main()
