"""LicketySPLIT: near-optimal trees by greedy look-ahead, in milliseconds."""

from __future__ import annotations

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Peer, Problem, nested_of_paths

__all__ = ["LICKETYSPLIT"]


def _fit(problem: Problem) -> Look:
    from licketysplit import LicketySPLITClassifier

    table = problem.X.astype(np.uint8)
    model = LicketySPLITClassifier(lambda_leaf=problem.leaf_penalty, depth_budget=problem.depth_limit)
    model.fit(table, problem.y)
    return lambda: Answer(nested_of_paths(*model.get_tree_paths()), np.asarray(model.predict(table)))


LICKETYSPLIT = Peer(
    "licketysplit",
    "licketysplit",
    ("licketysplit",),
    _fit,
    "Near-optimal: it claims nothing. Penalty per leaf, as ours; a look-ahead of one level, its default. No time "
    "limit.",
    proves=False,
)
