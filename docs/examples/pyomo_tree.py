"""The tree model as an ordinary Pyomo model, with a constraint of one's own: at most three leaves.

python docs/examples/pyomo_tree.py        (needs accel-oct[pyomo])
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from accel_oct_backends.pyomo import to_pyomo

from accel_oct.cuts.benders import all_path_rows
from accel_oct.cuts.equivalent_points import EquivalentPointInequalities
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Master


def main() -> dict[int, float]:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (24, 3))
    y = np.where(rng.random(24) < 0.15, rng.integers(0, 2, 24), X[:, 0] ^ X[:, 1])
    dataset = BinaryDataset.from_arrays(X, y).merged()
    master = Master(dataset, max_depth=2, leaf_price=0.0)
    EquivalentPointInequalities(master)
    # A solver of Pyomo's sees no handler, so the Benders cuts go in beforehand, all of them.
    master.model.add_rows(all_path_rows(master), "benders")

    scores: dict[int, float] = {}
    for limit in (4, 3):
        model = to_pyomo(master.model)
        model.leaf_limit = pyo.Constraint(expr=sum(model.p.values()) <= limit)
        pyo.SolverFactory("appsi_highs").solve(model)
        leaves = round(sum(pyo.value(variable) for variable in model.p.values()))
        scores[limit] = pyo.value(model.objective)
        print(f"at most {limit} leaves: {scores[limit]:.0f} of {dataset.total_weight:.0f} right, {leaves} used")
    return scores


if __name__ == "__main__":
    main()
