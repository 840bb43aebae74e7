"""Certificates of the encoded data sets: size of the file, and the time to solve, to write and to check.

    python -m accel_oct_bench.studies.certificates --data-dir FOLDER [--only NAME ...] [--depths 3 4]
        [--penalties 0.04 0.01 0.001] [--plain] [--limit SECONDS]

CPU seconds of one run each. A check that takes longer than the limit is marked; ``--plain`` checks without NumPy, too.
"""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import product
from pathlib import Path

import accel_oct
import accel_oct_checker as checker
from accel_oct.data import BinaryDataset
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of


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
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--penalties", nargs="*", type=float, default=[0.04, 0.01, 0.001])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--limit", type=float, default=600.0)
    options = parser.parse_args()
    table = MarkdownTable("data", "n x F", "depth", "penalty", "solve", "write", "lemmas", "KB", "check", "plain")
    with tempfile.TemporaryDirectory() as folder:
        proof, rows = Path(folder) / "proof.json", Path(folder) / "data.csv"
        for data in data_sets(options.data_dir, options.only):
            dataset = BinaryDataset.from_arrays(data.X, data.y)
            for depth, penalty in product(options.depths, options.penalties):
                problem = partial(accel_oct.solve, dataset, max_depth=depth, leaf_penalty=penalty)
                result, solve = timed(problem)
                about, write = timed(partial(result.certificate, proof, table=rows))
                table.row(
                    data.name,
                    f"{dataset.n_samples} x {dataset.n_features}",
                    depth,
                    penalty,
                    f"{solve.cpu:.2f}",
                    f"{write.cpu:.2f}",
                    about.lemmas,
                    f"{about.size / 1000:.1f}",
                    checked(proof, rows, options.limit, fast=True),
                    checked(proof, rows, options.limit, fast=False) if options.plain else "",
                )


if __name__ == "__main__":
    main()
