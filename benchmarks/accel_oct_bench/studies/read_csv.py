"""CPU time and peak memory of reading a CSV file, beside pandas.

    python -m accel_oct_bench.studies.read_csv [--rows 3300000] [--holes]

The file is written to a temporary folder (seed 0). It has twelve columns: whole numbers, numbers of 2, 3 and 17 digits,
one of them with missing values, texts in quotes and without, codes such as 0042, true and false, whole numbers of 18
digits. With ``--holes`` it has ten columns of numbers, in each of which 2 % are missing. Every reader has a process of
its own, since peak memory is that of a process; the memory of the imports is printed beside it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from accel_oct_bench.solving import peak_mb
from accel_oct_bench.studies.common import parser_of, timed


def write(path: Path, n: int, holes: bool) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    if holes:
        data = pd.DataFrame({f"x{j}": np.round(rng.normal(size=n) * 100, j % 6 + 1) for j in range(10)})
        data = data.mask(rng.random(data.shape) < 0.02)
    else:
        cities = np.array(["Berlin", "Hamburg", "New York", "São Paulo", "Tokyo", "Rio, Brazil", "Lagos"])
        data = pd.DataFrame(
            {
                "id": np.arange(n),
                "age": rng.integers(18, 90, n),
                "income": np.where(rng.random(n) < 0.05, np.nan, np.round(rng.lognormal(10, 1, n), 2)),
                "score": rng.random(n),
                "small": np.round(rng.normal(size=n), 3),
                "city": cities[rng.integers(0, 7, n)],
                "grade": np.array(list("ABCDE"))[rng.integers(0, 5, n)],
                "code": np.char.zfill(rng.integers(0, 1000, n).astype(str), 4),
                "flag": rng.random(n) < 0.3,
                "visits": rng.integers(0, 5, n),
                "large": 10**17 + rng.integers(0, 10**9, n),
            }
        )
    data["paid"] = np.array(["no", "yes"])[rng.integers(0, 2, n)]
    data.to_csv(path, index=False)


def measure(reader: str, path: str) -> None:
    if reader == "pandas":
        from pandas import read_csv as read
    else:
        from accel_oct import read_table as read
    before = peak_mb()
    _, spent = timed(lambda: read(path))
    times = f"{spent.cpu:7.1f} s CPU {spent.seconds:7.1f} s wall"
    print(f"{reader:10} {times} {peak_mb():7.0f} MB at most, {before:.0f} MB of it imports", flush=True)


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--rows", type=int, default=3_300_000)
    parser.add_argument("--holes", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        write(path, options.rows, options.holes)
        print(f"{path.stat().st_size / 1e6:.0f} MB")
        for reader in ("pandas", "accel_oct"):
            subprocess.run([sys.executable, "-m", "accel_oct_bench.studies.read_csv", reader, str(path)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["pandas"], ["accel_oct"]):
        measure(*sys.argv[1:])
    else:
        main()
