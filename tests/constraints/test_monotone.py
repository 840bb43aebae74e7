"""Monotone trees against the definition on all points."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.monotone_support import random_case
from oracles.enumeration import to_decision_tree
from oracles.ruled_trees import all_trees

from accel_oct.constraints import bind_all


@pytest.mark.parametrize("seed", range(40))
def test_violation_is_the_definition(seed: int) -> None:
    """Every labelled tree is allowed exactly if no two points of the whole space contradict the order."""
    case = random_case(np.random.default_rng(seed), max_depth=2)
    bound = bind_all(case.constraints, case.dataset)
    trees = all_trees(case.dataset, list(range(case.dataset.n_samples)), 2)
    for place in np.random.default_rng(seed).permutation(len(trees))[:300].tolist():
        nested = trees[place][2]
        tree = to_decision_tree(nested, 2)
        assert all(each.violation(tree) <= 0 for each in bound) == case.allows(nested), (nested, case)
