"""Random instances against the oracle: shared by the quick tests and the long run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from oracles.dynamic_programme import optimal_value
from oracles.instances import Instance, random_instance

import accel_oct
from accel_oct.solving.config import BendersConfig, Config

#: Each technique of the Benders master, switched away from the plain baseline.
VARIANTS: dict[str, Config] = {
    "baseline": Config(),
    "strengthened": Config(benders=BendersConfig(strengthened=True)),
    "fractional": Config(benders=BendersConfig(fractional=True)),
    "polishing": Config(polishing=True),
    "no warm start": Config(warm_start="leaf", polish_warm_start=False),
    "not merged": Config(merge_duplicates=False),
    "no priorities": Config(branch_priorities=False),
    "all": Config(polishing=True, benders=BendersConfig(strengthened=True, fractional=True)),
    "none": Config(merge_duplicates=False, warm_start="leaf", polish_warm_start=False, branch_priorities=False),
}

#: Per backend: the sizes that a branch-and-cut solve finishes quickly on.
QUICK_SIZES = {"highs": {2: (14, 3), 3: (10, 2)}, "gurobi": {2: (40, 6), 3: (20, 3)}}


def draw(rng: np.random.Generator, sizes: dict[int, tuple[int, int]]) -> Instance:
    """An instance of some depth, with as many samples and features as `sizes` allows there."""
    depth = int(rng.choice([1, *sizes]))
    samples, features = sizes.get(depth, (40, 6))
    instance = random_instance(rng, max_samples=samples, max_features=features, max_depth=depth)
    return replace(instance, max_depth=depth)


def check(instance: Instance, config: Config, backend: str) -> None:
    """Objective and bound are those of the oracle; the tree is worth the objective; the history is valid."""
    dataset = instance.dataset
    total = dataset.total_weight
    optimum = optimal_value(dataset, instance.max_depth, instance.leaf_price) / total
    result = accel_oct.solve(
        instance.X,
        instance.y,
        sample_weight=instance.sample_weight,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        solver=accel_oct.Solver(backend, seed=1),
        config=config,
    )
    assert result.status == "optimal" and result.gap == 0.0, instance
    assert abs(result.objective - optimum) <= 1e-8, instance
    assert result.bound == result.objective
    assert abs(result.tree.value(dataset, instance.leaf_price) / total - optimum) <= 1e-8
    for row in result.history:
        assert row.bound >= optimum - 1e-8 and row.objective <= optimum + 1e-8, (row, instance)
