"""Adult, and a made-up table of the size and kinds of OULAD, in 20 pieces and in memory: are the results equal?

    python benchmarks/in_pieces.py FOLDER

FOLDER holds ``fairness/adult.csv``. Prints a line per comparison, and fails where one differs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from accel_oct import frontier, gather, solve
from accel_oct.constraints import StatisticalParity
from accel_oct.data import BinaryDataset
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder

PIECES = 20


def made_up(n_rows: int = 32_593) -> pd.DataFrame:
    """Categories, counts, scores with gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "module": rng.choice(list("ABCDEFG"), n_rows),
            "gender": rng.choice(["F", "M"], n_rows),
            "education": rng.choice(["none", "lower", "A level", "HE", "post"], n_rows),
            "disability": rng.random(n_rows) < 0.1,
            "attempts": rng.poisson(0.2, n_rows),
            "credits": rng.choice([30, 60, 90, 120], n_rows),
            "clicks": rng.lognormal(6, 1.2, n_rows).astype(int),
            "score": rng.normal(70, 15, n_rows).clip(0, 100).round(1),
        }
    )
    good = (table["clicks"] > 500) & (table["score"] > 60) | (table["education"] == "HE")
    table["target"] = np.where(good ^ (rng.random(n_rows) < 0.15), "pass", "fail")
    table.loc[rng.random(n_rows) < 0.08, "score"] = np.nan
    return table


def compare(name: str, table: pd.DataFrame, group: str, encoder: TableEncoder | None) -> None:
    """Accuracy, parity and the whole frontier."""
    features = [column for column in table.columns if column != "target"]
    X = table[features]
    binary = X.to_numpy() if encoder is None else encoder.fit(X).transform(X)
    whole = BinaryDataset.from_arrays(binary, table["target"])
    with tempfile.TemporaryDirectory() as folder:
        for place, rows in enumerate(np.array_split(np.arange(len(table)), PIECES)):
            table.iloc[rows].to_parquet(Path(folder) / f"{place:02}.parquet", index=False)
        began = time.perf_counter()
        found = gather(folder, "target", sensitive_features=group, encoder=encoder)
        print(f"{name}: {len(table)} rows in {PIECES} pieces gathered in {time.perf_counter() - began:.2f} s")
    one, two = ([(p.score, p.bound) for p in frontier(data, max_depth=4)] for data in (found.data, whole))
    check(f"{name}, frontier of depth 4", one, two)
    for label, in_pieces, in_memory in (
        ("accuracy", [], []),
        (
            "StatisticalParity",
            [StatisticalParity(group, at_most=0.05)],
            [StatisticalParity(table[group].to_numpy(), at_most=0.05)],
        ),
    ):
        results = [
            solve(data, max_depth=2, leaf_penalty=0.001, constraints=rules)
            for data, rules in ((found.data, in_pieces), (whole, in_memory))
        ]
        check(f"{name}, {label}", *[(r.objective, r.bound, r.status) for r in results])


def check(what: str, one: object, two: object) -> None:
    print(f"{what}: {'equal' if one == two else f'DIFFERENT: {one} and {two}'}", flush=True)
    if one != two:
        sys.exit(1)


if __name__ == "__main__":
    adult = pd.read_csv(Path(sys.argv[1]) / "fairness" / "adult.csv")
    compare("adult", adult, "Sex=Male", None)
    compare("made up like OULAD", made_up(), "gender", TableEncoder(QuantileThresholdEncoder(5)))
