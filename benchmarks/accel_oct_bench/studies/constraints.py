"""Trees under linear constraints: how long a proof takes.

    python -m accel_oct_bench.studies.constraints --data-dir FOLDER [--only NAME ...] [--time-limit 60]
        [--output constraints.md]

FOLDER holds the encoded data sets and, below it, `fairness` with sets whose first column is the protected group; it is
left out of the splits. In the other sets the first column of which the rarer value has a fifth of the rows or more is
taken for the group. Sets with three classes or more, where the first class is positive, and one whose rows have real
weights, come last.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
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

FAIRNESS = ("adult", "german-credit", "ricci", "student-mat")
CLASSES = ("balance-scale", "wine_QT_5")
WEIGHTED = "german-credit"
OTHERS = ("ILPD_QB_5", "ILPD_QT_5", "hepatitis_QB_5", "hepatitis_QT_5", "breast-cancer")
LIMITS = (0.01, 0.05, 0.1)


def tables(folder: Path, only: list[str], with_classes: bool = False) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, group, features and classes of every set; those with three classes or more if asked for."""
    paths = [(name, folder / "fairness" / f"{name}.csv") for name in FAIRNESS]
    paths += [(name, folder / f"{name}_enc.csv") for name in (*OTHERS, *CLASSES) if name in OTHERS or with_classes]
    for name, path in paths:
        if only and name not in only:
            continue
        with path.open(newline="") as file:
            cells = np.array(list(csv.reader(file))[1:])
        X, y = cells[:, :-1].astype(int), cells[:, -1]
        shares = np.minimum(X.mean(axis=0), 1 - X.mean(axis=0))
        column = 0 if name in FAIRNESS else int(np.argmax(shares >= 0.2))
        yield name, X[:, column], np.delete(X, column, axis=1), y


def weighted(folder: Path, only: list[str]) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """The same with weights: none, and for one set real ones, with which both classes have the same weight."""
    for name, group, X, y in tables(folder, only, with_classes=True):
        yield name, group, X, y, None
    for _, group, X, y in tables(folder, [WEIGHTED] if not only or f"{WEIGHTED}, weights" in only else ["none"]):
        counts = {label: np.sum(y == label) for label in np.unique(y)}
        yield f"{WEIGHTED}, weights", group, X, y, np.array([len(y) / (len(counts) * counts[label]) for label in y])


def problems(group: Any, y: Any) -> Iterator[tuple[str, list[Any]]]:
    """What is asked of every set."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "| data | depth | penalty | constraints | status | seconds | objective | gap % | decided by |",
        "| --- " * 9 + "|",
    ]
    seconds: dict[int, list[float]] = {}
    proven: dict[int, int] = {}
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 8))
    for depth in (3, 4):  # compiled code is loaded before anything is measured
        for y in ((X[:, 0] ^ X[:, 1]) & X[:, 2], X[:, 0] + X[:, 1] * X[:, 2]):
            for weights in (None, rng.random(200)):
                limits = [StatisticalParity(X[:, 0], 0.01, 1), EqualisedOdds(X[:, 3], 0.01, 1)]
                accel_oct.solve(
                    X, y, sample_weight=weights, max_depth=depth, leaf_penalty=0.0, constraints=limits, time_limit=120
                )
    for name, group, X, y, weights in weighted(options.data_dir, options.only):
        for depth in options.depths:
            for penalty in (0.0, 0.001):
                for title, constraints in problems(group, y):
                    began = time.perf_counter()
                    result = accel_oct.solve(
                        X,
                        y,
                        sample_weight=weights,
                        max_depth=depth,
                        leaf_penalty=penalty,
                        constraints=constraints,
                        time_limit=options.time_limit,
                    )
                    taken = time.perf_counter() - began
                    seconds.setdefault(depth, []).append(taken)
                    proven[depth] = proven.get(depth, 0) + (result.status in ("optimal", "infeasible"))
                    gap = f"{100 * result.gap:.2f}" if np.isfinite(result.gap) else ""
                    lines.append(
                        f"| {name} | {depth} | {penalty:g} | {title} | {result.status} | {taken:.2f} | "
                        f"{result.objective:.5f} | {gap} | {result.stats['decided_by']} |"
                    )
                    print(lines[-1], flush=True)
    for depth, times in seconds.items():
        lines.append("")
        lines.append(
            f"Depth {depth}: {proven[depth]} of {len(times)} proven, median {np.median(times):.3f} s, "
            f"95 % {np.quantile(times, 0.95):.2f} s, slowest {max(times):.1f} s."
        )
        print(lines[-1])
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
