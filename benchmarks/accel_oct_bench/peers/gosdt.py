"""GOSDT: branch and bound over subproblems with a dependency graph."""

from __future__ import annotations

from math import ceil
from typing import Any

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, Problem

__all__ = ["GOSDT"]


def _fit(problem: Problem) -> Look:
    from gosdt import GOSDTClassifier

    model = GOSDTClassifier(
        regularization=problem.leaf_penalty,
        allow_small_reg=True,
        depth_budget=problem.max_depth,
        time_limit=None if problem.time_limit is None else ceil(problem.time_limit),
        worker_limit=problem.threads,
    )
    model.fit(problem.X, problem.y)

    def look() -> Answer:
        finished = model.result_.status.name == "CONVERGED"
        bound = 1.0 - float(model.result_.lowerbound)
        if not model.trees_:
            return Answer(timed_out=model.result_.status.name == "TIMEOUT", bound=bound)
        tree = model.trees_[0]
        return Answer(_nested(tree.tree), tree.predict(problem.X), finished, not finished, bound)

    return look


def _nested(node: Any) -> Nested:
    if hasattr(node, "prediction"):
        return int(node.prediction)
    return int(node.feature), _nested(node.right_child), _nested(node.left_child)  # left is where the feature holds


GOSDT = Peer(
    "gosdt",
    "gosdt",
    ("gosdt",),
    _fit,
    "regularization is per leaf, as ours; it is raised to 1 / n_samples unless allow_small_reg is set, as it is here. "
    "Its loss is the share of errors, so its lower bound b is the upper bound 1 - b here. Its time limit is in whole "
    "seconds, rounded up.",
)
