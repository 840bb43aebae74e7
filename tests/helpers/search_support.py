"""A search on random data, ready for phases to run."""

from __future__ import annotations

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.mip import SolveOptions
from accel_oct.objectives import Accuracy
from accel_oct.solving.config import Config
from accel_oct.solving.problem import Problem
from accel_oct.solving.search import Search
from accel_oct.support.stopping import Clock


def search_for(*constraints: object, max_depth: int = 2, preset: str = "default") -> Search:
    rng = np.random.default_rng(2)
    dataset = BinaryDataset.from_arrays(rng.integers(0, 2, (40, 5)), rng.integers(0, 2, 40))
    bound = tuple(constraint.bind(dataset) for constraint in constraints)  # type: ignore[attr-defined]
    problem = Problem(
        dataset, Accuracy().bind(dataset), dataset.merged(), max_depth, 0.01, dataset.leaf_price(0.01), bound
    )
    return Search(problem, Config.preset(preset), SolveOptions(), Clock(0.0, None))
