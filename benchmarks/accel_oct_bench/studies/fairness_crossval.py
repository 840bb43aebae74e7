"""Fair trees on data they were not trained on: repeated cross-validation of ours, CART, fairlearn and STreeD.

    python -m accel_oct_bench.studies.fairness_crossval --data-dir FOLDER --out results.csv [--only NAME ...]
        [--methods NAME ...] [--repeats 5] [--folds 5] [--limits 0.02 0.05] [--rows 300 1000 ...]
        [--time-limit 20] [--figure FILE.svg]

FOLDER holds `fairness/NAME.csv`: first column the protected group, left out of the splits; last column the class, 1 is
positive. `studies.crossval_methods` describes the methods, and how their limits are made the same.

Cross-validation is stratified by class and group. With --rows, that many rows are drawn to train on and all others are
tested on, which shows how the gap between training and test depends on the size of the sample.

Every fit is a row of results.csv, written when it is done. The same command again goes on where it stopped; one with
more repeats, methods or sets adds to the file. A fit that was killed has a row too, and is not tried again. A method
that exceeded its time for a limit in the first repeat gets no further repeats at this limit.

At the end the tables are printed as Markdown, also when nothing was left to do (--report: only this).
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

from accel_oct_bench.studies.common import parser_of
from accel_oct_bench.studies.constraints import tables
from accel_oct_bench.studies.crossval_figure import figure
from accel_oct_bench.studies.crossval_methods import METHODS, Fitted, among, small_problem
from accel_oct_bench.studies.crossval_report import report
from accel_oct_bench.studies.crossval_results import KEY, Results, accuracy, rates, splits
from accel_oct_bench.studies.rival_calls import Answer, Worker

DATA = ("student-mat", "german-credit", "adult")
CONSTRAINTS = ("parity", "opportunity")
OUT_OF_TIME = ("time_limit", "killed", "crashed")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--limits", nargs="*", type=float, default=[0.02, 0.05])
    parser.add_argument("--rows", nargs="*", type=int, default=[0], help="train on so many rows, test on all others")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each fit")
    parser.add_argument("--report", action="store_true", help="no fits")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    results = Results(options.out)
    if not options.report:
        lacking = [name for name in options.methods if METHODS[name].lacking]
        if lacking:
            print(f"Left out: {', '.join(lacking)} (pip install 'accel-oct-bench[rivals]').", flush=True)
        run(options, [name for name in options.methods if name not in lacking], results)
    print(report(results.rows.values()))
    if options.figure:
        figure(results.rows.values(), options.figure)


def run(options: argparse.Namespace, methods: list[str], results: Results) -> None:
    """Make all fits that the file does not have yet."""
    workers = {name: Worker(METHODS[name].call, small_problem(METHODS[name].limited)) for name in methods}
    warm: set[tuple[str, str]] = set()
    try:
        for name, group, X, classes in tables(options.data_dir, options.only):
            y = classes.astype(int)
            for rows, repeat in product(options.rows, range(options.repeats)):
                for fold, train, test in splits(y, group, options.folds, repeat, rows):
                    for constraint, (method, limit) in product(CONSTRAINTS, asked(methods, options.limits)):
                        shown = "none" if limit is None else f"{limit:g}"
                        base = (name, rows, options.depth, options.folds, constraint, shown, method)
                        if (*base, repeat, fold) in results or (repeat and out_of_time(results, base, options.folds)):
                            continue
                        problem = (
                            group[train],
                            X[train],
                            y[train],
                            group[test],
                            X[test],
                            constraint,
                            limit,
                            options.depth,
                        )
                        if (name, method) not in warm:  # asked twice, so that loading code is not measured
                            workers[method].ask(*problem, time_limit=options.time_limit)
                            warm.add((name, method))
                        answer = workers[method].ask(*problem, time_limit=options.time_limit)
                        figures = measured(answer, constraint, (group[train], y[train]), (group[test], y[test]))
                        key = dict(zip(KEY, (*base, repeat, fold), strict=True))
                        results.add({**key, "n_train": len(train), "n_test": len(test), **figures})
                print(f"{name}, rows {rows or 'all'}, repeat {repeat}: {len(results.rows)} fits", flush=True)
    finally:
        for worker in workers.values():
            worker.stop()


def asked(methods: list[str], limits: list[float]) -> list[tuple[str, float | None]]:
    """Return every method with every limit, or once without a limit if it takes none."""
    return [(name, limit) for name in methods for limit in (limits if METHODS[name].limited else [None])]


def out_of_time(results: Results, base: tuple[Any, ...], folds: int) -> bool:
    """Return whether a fit of the first repeat exceeded its time."""
    first = [results.rows.get(tuple(map(str, (*base, 0, fold)))) for fold in range(folds)]
    return any(row is not None and row["status"] in OUT_OF_TIME for row in first)


def measured(answer: Answer, constraint: str, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, Any]:
    """Return the figures of a row, computed from the predictions."""
    figures: dict[str, Any] = {"seconds": float(answer.seconds), "status": answer.status}
    if not isinstance(answer, Fitted):
        return figures
    for part, positive, (group, y) in (("train", answer.train, train), ("test", answer.test, test)):
        found = rates(positive, group, among(y, constraint))
        figures |= {
            f"{part}_accuracy": accuracy(positive, y),
            f"{part}_gap": found.gap,
            f"{part}_difference": found.difference,
            f"{part}_noise": found.noise,
        }
    return {**figures, "leaves": answer.leaves}


if __name__ == "__main__":
    main()
