"""Certificates and their tables in a folder, and small problems with whole weights under limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from oracles import rates as oracle
from oracles.rates import Rate
from programs import fuzz_rates

import accel_oct
import accel_oct_checker as checker
from accel_oct.constraints import MaxLeaves, MinLeafWeight

REFUSALS = (checker.Refused, checker.Malformed)


class Written:
    """A certificate and its table in a folder."""

    def __init__(self, folder: Path, result: accel_oct.Result, **options: Any) -> None:
        self.result = result
        self.proof, self.table = folder / "proof.json", folder / "table.csv"
        self.about = result.certificate(self.proof, table=self.table, **options)
        self.content = json.loads(self.proof.read_text())

    def check(self, content: Any = None, **options: Any) -> str:
        """Check the certificate, or another content in its place."""
        if content is not None:
            self.proof.write_text(json.dumps(content))
        return checker.check(str(self.proof), str(self.table), **options)


@dataclass(frozen=True)
class LimitedCase:
    """A problem under limits, on few rows with many ties."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    penalty: float
    max_depth: int | None
    constraints: list[Any]

    def solved(self) -> accel_oct.Result:
        return accel_oct.solve(
            self.X,
            self.y,
            sample_weight=self.weights,
            max_depth=self.max_depth,
            leaf_penalty=self.penalty,
            constraints=self.constraints,
            time_limit=1.0,
        )


def _rounded(limit: float | None) -> float | None:
    return None if limit is None else round(limit, 3)


def limited_case(number: int) -> LimitedCase:
    """Instance by number: one to three limits, on rates that trees attain or next to them; rows and columns repeat."""
    rng = np.random.default_rng([30, number])
    n_classes = 2 if rng.random() < 0.7 else 3
    n_rows, n_features = int(rng.integers(3, 12)), int(rng.integers(1, 7 - n_classes))
    X = rng.integers(0, 2, (n_rows, n_features))
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0] ^ int(rng.integers(2))
    y = rng.integers(0, n_classes, n_rows)
    deep = n_features > 1 and number % 2 == 0
    if deep:  # all good trees have splits below a split
        n_rows = 11
        X = rng.integers(0, 2, (n_rows, n_features))
        y = (X[:, 0] ^ X[:, 1]) + (n_classes == 3) * (X[:, -1] & X[:, 0])
        y = np.where(rng.random(n_rows) < 0.1, rng.integers(0, n_classes, n_rows), y)
    y[rng.permutation(n_rows)[:2]] = 0, 1
    y = np.unique(y, return_inverse=True)[1]
    group, given = rng.integers(0, 2 + (number % 5 == 0), n_rows), rng.integers(0, 2, n_rows)
    for values in (group, given):
        values[rng.permutation(n_rows)[:2]] = 0, 1
    weights = None if rng.random() < 0.5 else rng.integers(0 if rng.random() < 0.3 else 1, 6, n_rows).astype(float)
    if weights is not None and weights.sum() == 0:
        weights = None
    depth = int(rng.integers(1 + deep, 5)) if n_classes == 2 else int(rng.integers(1 + deep, 4))
    exact = [oracle.Fraction(1 if weights is None else weights[i]) for i in range(n_rows)]
    trees = list(oracle.predictions(X.tolist(), int(y.max()) + 1, min(depth, 2)))
    constraints: list[Any] = []
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        kind = str(rng.choice([*fuzz_rates.SINGLE, *fuzz_rates.BETWEEN, "MaxLeaves", "MinLeafWeight"]))
        if kind == "MaxLeaves":
            constraints.append(MaxLeaves(int(rng.integers(1, 7))))
            continue
        if kind == "MinLeafWeight":
            constraints.append(MinLeafWeight(amount=float(rng.integers(1, 4))))
            continue
        rate = Rate(kind, int(rng.integers(0, int(y.max()) + 1)), count=kind == "PositiveBudget" and rng.random() < 0.5)
        if kind in fuzz_rates.BETWEEN:
            rate = fuzz_rates.replace(rate, group=tuple(group.tolist()), given=tuple(given.tolist()))
        rate = fuzz_rates.with_limits(rng, rate, y.tolist(), exact, trees)
        if rng.random() < 0.9:  # the edges of the tolerance are left to branch and cut, which takes long
            rate = fuzz_rates.replace(rate, lower=_rounded(rate.lower), upper=_rounded(rate.upper))
        constraints.append(fuzz_rates.as_constraint(rate))
    penalty = float(rng.choice([0.0, 0.01] if deep else [0.0, 0.01, 0.05, 1 / n_rows, 0.3]))
    return LimitedCase(X, y, weights, penalty, depth, constraints)
