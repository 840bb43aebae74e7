"""Certificates: size of the file, and the time to solve, to write and to check.

    python -m accel_oct_bench.studies.certificates --data-dir FOLDER [--kind encodings raw fairness few]
        [--only NAME ...] [--depths 3 4] [--penalties 0.04 0.01 0.001] [--plain] [--limit SECONDS]

Kinds: all encoded data sets; the raw tables over every split; the fairness sets (`fairness/NAME.csv`:
first column the protected group, left out of the splits; last column the class) under statistical parity 0.05, recall
0.9 with parity 0.05, and equalised odds 0.05; the encoded data sets with at most 3 features, and with leaves of 10
samples or more. CPU seconds of one run each. What takes longer than the limit is marked; ``--plain`` checks without
NumPy, too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import accel_oct
import accel_oct_checker as checker
from accel_oct.constraints import EqualisedOdds, MaxFeatures, MinLeafWeight, Recall, StatisticalParity
from accel_oct.data import BinaryDataset
from accel_oct.errors import AccelOctError
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of, raw_sets, registry_at

KINDS = ("encodings", "raw", "fairness", "few")
FAIRNESS = ("ricci", "student-mat", "german-credit", "adult")


class Case(NamedTuple):
    """A problem: what is solved, and how its certificate is written."""

    name: str
    size: str
    constraint: str
    solve: Callable[..., Any]
    write: Callable[..., Any]


def encodings(options: argparse.Namespace) -> Iterator[Case]:
    for data in data_sets(options.data_dir, options.only):
        dataset = BinaryDataset.from_arrays(data.X, data.y)
        yield Case(data.name, _size(data.X), "", partial(accel_oct.solve, dataset), _write)


def few(options: argparse.Namespace) -> Iterator[Case]:
    for data in data_sets(options.data_dir, options.only):
        dataset = BinaryDataset.from_arrays(data.X, data.y)
        for name, rule in (("3 features", MaxFeatures(3)), ("leaves of 10", MinLeafWeight(samples=10))):
            solve = partial(accel_oct.solve, dataset, constraints=[rule])
            yield Case(data.name, _size(data.X), name, solve, _write)


def fairness(options: argparse.Namespace) -> Iterator[Case]:
    registry = registry_at(options.data_dir)
    for name in FAIRNESS:
        if options.only and name not in options.only:
            continue
        data = registry.load(f"fairness/{name}")
        assert data.group is not None
        group, X = data.group, data.X
        parity, positive = StatisticalParity(group, 0.05), np.unique(data.y)[-1]
        for label, rules in (
            ("parity", [parity]),
            ("recall and parity", [Recall(positive, at_least=0.9), parity]),
            ("odds", [EqualisedOdds(group, 0.05)]),
        ):
            yield Case(name, _size(X), label, partial(accel_oct.solve, X, data.y, constraints=rules), _write)


def raw(options: argparse.Namespace) -> Iterator[Case]:
    for name, table, _, y in raw_sets(options.data_dir, every=True):
        if options.only and name not in options.only:
            continue
        X = pd.DataFrame({table.name(place): column for place, column in enumerate(table.columns)})

        def solve(X: Any = X, y: Any = y, **given: Any) -> Any:
            return accel_oct.OptimalTreeClassifier(time_limit=options.limit, **given).fit(X, y)

        def write(model: Any, proof: Path, rows: Path, limit: float, X: Any = X, y: Any = y) -> Any:
            return model.certificate(proof, X, y, table=rows, time_limit=limit)

        yield Case(name, _size(X), "every split", solve, write)


def _size(X: Any) -> str:
    return "{} x {}".format(*X.shape)


def _write(result: Any, proof: Path, rows: Path, limit: float) -> Any:
    return result.certificate(proof, table=rows, time_limit=limit)


def checked(proof: Path, table: Path, limit: float, fast: bool) -> str:
    """Return the CPU seconds of a check, or how it ended."""

    def check() -> str:
        try:
            checker.check(str(proof), str(table), limit, fast=fast)
        except (checker.Refused, checker.Malformed, checker.LimitReached) as fault:
            return type(fault).__name__
        return ""

    fault, spent = timed(check)
    return f"{spent.cpu:.2f}" if not fault else f"{fault} after {spent.cpu:.0f}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--kind", nargs="*", choices=KINDS, default=["encodings"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--penalties", nargs="*", type=float, default=[0.04, 0.01, 0.001])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--limit", type=float, default=600.0)
    options = parser.parse_args()
    table = MarkdownTable(
        *("data", "n x F", "constraint", "depth", "penalty", "solve", "write", "lemmas", "KB", "check", "plain"),
        words=3,
    )
    cases = {"encodings": encodings, "raw": raw, "fairness": fairness, "few": few}
    with tempfile.TemporaryDirectory() as folder:
        proof, rows = Path(folder) / "proof.json", Path(folder) / "data.csv"
        for case in (case for kind in options.kind for case in cases[kind](options)):
            for depth, penalty in product(options.depths, options.penalties):
                result, solve = timed(partial(case.solve, max_depth=depth, leaf_penalty=penalty))
                about = [case.name, case.size, case.constraint, depth, penalty, f"{solve.cpu:.2f}"]

                def write(case: Case = case, result: Any = result) -> Any:
                    try:
                        return case.write(result, proof, rows, options.limit)
                    except AccelOctError as fault:
                        return fault

                found, spent = timed(write)
                if isinstance(found, AccelOctError):
                    table.row(*about, f"{spent.cpu:.2f}", found, "", "", "")
                    continue
                table.row(
                    *about,
                    f"{spent.cpu:.2f}",
                    found.lemmas,
                    f"{found.size / 1000:.1f}",
                    checked(proof, rows, options.limit, fast=True),
                    checked(proof, rows, options.limit, fast=False) if options.plain else "",
                )


if __name__ == "__main__":
    main()
