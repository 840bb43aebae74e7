"""STreeD (pystreed): dynamic programming over separable objectives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, Problem

__all__ = ["STREED"]


def _fit(problem: Problem) -> Look:
    from pystreed import STreeDClassifier

    table = problem.X.astype(np.int32)
    model = STreeDClassifier(
        "cost-complex-accuracy",
        max_depth=problem.depth_limit,
        cost_complexity=problem.leaf_penalty,
        time_limit=problem.seconds,
        random_seed=problem.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when it found no tree
        model.fit(table, problem.y)

    def look() -> Answer:
        if not model.is_fitted():
            return Answer()
        finished = bool(model.fit_result.is_optimal())
        return Answer(_nested(model.get_tree()), np.asarray(model.predict(table)), finished, not finished)

    return look


def _nested(node: Any) -> Nested:
    if node.is_leaf_node():
        return int(node.label)
    return int(node.feature), _nested(node.left_child), _nested(node.right_child)


STREED = Peer(
    "streed",
    "pystreed",
    ("pystreed",),
    _fit,
    "cost-complex-accuracy penalises branch nodes, one fewer than leaves: the same trees are best, and its own figure "
    "is larger by one penalty. It runs on one thread whatever is asked.",
)
