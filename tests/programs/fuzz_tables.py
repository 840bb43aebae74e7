"""The default classifier on random raw tables against exhaustive search over all their splits: as many as you like.

    python -m programs.fuzz_tables --count 100000

Tables have ties, constant and repeated columns, missing values, categories, dates and large numbers; two to five
classes, whole and real weights, depth 0 to 4 and none, limits on leaves. Case number i is the same in every run. It
stops at the first wrong objective, bound, tree or row of a history.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles.raw_tables import best_value, random_table

from accel_oct import OptimalTreeClassifier
from accel_oct.errors import SingleLeafWarning


def fitted(model: OptimalTreeClassifier, *given: Any, **more: Any) -> OptimalTreeClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingleLeafWarning)
        return model.fit(*given, **more)


def check(model: OptimalTreeClassifier, best: float) -> None:
    """Proven, worth what exhaustive search says, and so at every moment of the search."""
    assert model.status_ == "optimal" and model.exact_, model.proof_
    assert model.objective_ == pytest.approx(best, abs=1e-9) and model.bound_ == model.objective_
    for row in model.result_.history:
        assert row.objective <= best + 1e-9 <= row.bound + 2e-9
    bounds = [row.bound for row in model.result_.history]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(bounds)), bounds


def check_case(seed: int) -> None:
    """Fit case number `seed` and compare all that is claimed with exhaustive search."""
    rng = np.random.default_rng(seed)
    depth = [0, 1, 2, 3, None, 4][seed % 6]
    n = int(rng.integers(2, 9 if depth in (3, 4, None) else 13))
    table, splits = random_table(rng, n, int(rng.integers(1, 4)))
    n_classes = int(rng.integers(2, 6))
    y = rng.integers(0, n_classes, n)
    weights = [None, rng.integers(0, 4, n).astype(float), rng.random(n)][int(rng.integers(3))]
    if weights is not None and not weights.any():
        weights[0] = 1.0
    penalty = float(rng.choice([0.0, 0.01, 0.06, 0.2])) if depth is not None else float(rng.choice([0.02, 0.1]))
    least, room = int(rng.integers(1, 4)), [None, 2, 3][int(rng.integers(3))]
    w = np.ones(n) if weights is None else weights
    gains = np.zeros((n, n_classes))
    gains[np.arange(n), y] = w / w.sum()
    present = (w > 0).astype(float)
    limit = n if depth is None else depth
    # A row of weight 0 is not there: no split is made at its values.
    kept = [(column, side) for column, side in splits if present[sorted(side)].any()]
    best = best_value(kept, gains, penalty, limit, counts=present, least=min(least, present.sum()), most_leaves=room)
    model = OptimalTreeClassifier(depth, penalty, min_samples_leaf=least, max_leaf_nodes=room)
    fitted(model, table, y, sample_weight=weights)
    check(model, best)
    right = float((w * (model.predict(table) == y)).sum() / w.sum())
    assert right - penalty * model.get_n_leaves() == pytest.approx(model.objective_, abs=1e-9)
    if seed % 10 < 3:
        again = OptimalTreeClassifier.from_json(model.to_json())
        assert (again.predict(table) == model.predict(table)).all() and again.proof_ == model.proof_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    began = time.perf_counter()
    for done in range(1, arguments.count + 1):
        seed = arguments.first + done - 1
        try:
            check_case(seed)
        except BaseException:
            print(f"case {seed}:", flush=True)
            raise
        if done % 1000 == 0 or done == arguments.count:
            print(f"{done} tables, 0 wrong, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
