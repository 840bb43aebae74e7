"""Peak memory of a fit on data in pieces with the default encoder: columns of numbers of which no two are equal.

    python -m accel_oct_bench.studies.pieces_memory FOLDER --rows 5_000_000

Writes the table as 20 Parquet files, unless they exist, and fits it in a new process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.solving import peak_mb
from accel_oct_bench.studies.common import parser_of, timed

N_PIECES = 20


def make(folder: Path, rows: int, columns: int) -> None:
    """Write a table whose class is the majority of the signs of three columns; one row in ten has the other class."""
    folder.mkdir(parents=True)
    for number in range(N_PIECES):
        rng = np.random.default_rng(number)
        piece = pd.DataFrame(rng.normal(size=(rows // N_PIECES, columns)), columns=[f"c{j}" for j in range(columns)])
        majority = (piece[["c0", "c1", "c2"]] > 0).sum(axis=1) >= 2
        piece["target"] = np.where(majority ^ (rng.random(len(piece)) < 0.1), "yes", "no")
        piece.to_parquet(folder / f"{number:02}.parquet", index=False)


def fit(folder: Path, depth: int) -> None:
    """Print memory before the fit and at its peak, seconds, objective and proof."""
    before = peak_mb()
    model, spent = timed(lambda: OptimalTreeClassifier(max_depth=depth).fit(folder, "target"))
    print(f"{before:.0f} MB before, {peak_mb():.0f} MB at most, {spent.seconds:.0f} s")
    print(f"objective {model.objective_:.6f}, {model.proof_}")


if __name__ == "__main__":
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--fit-only", action="store_true", help="of a table that is there, in this process")
    given = parser.parse_args()
    if given.fit_only:
        fit(given.folder, given.depth)
    else:
        place = given.folder / f"{given.rows}-{given.columns}"
        if not place.exists():
            make(place, given.rows, given.columns)
        command = [
            sys.executable,
            "-m",
            "accel_oct_bench.studies.pieces_memory",
            str(place),
            "--depth",
            str(given.depth),
            "--fit-only",
        ]
        sys.exit(subprocess.run(command, check=False).returncode)
