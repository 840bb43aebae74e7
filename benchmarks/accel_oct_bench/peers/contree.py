"""ConTree (pycontree): optimal trees on numbers, here on columns of 0 and 1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, Problem

__all__ = ["CONTREE"]

FOREVER = 604_800.0


def _fit(problem: Problem) -> Look:
    from pycontree import ConTree

    table = problem.X.astype(np.float64)
    model = ConTree(
        max_depth=problem.max_depth,
        complexity_cost=problem.leaf_penalty,
        time_limit=FOREVER if problem.time_limit is None else problem.time_limit,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when the time was up
        model.fit(table, problem.y)

    def look() -> Answer:
        finished = bool(model._config.is_within_time_limit())  # the only place where it says so besides a warning
        return Answer(_nested(model.get_tree()), np.asarray(model.predict(table)), finished, not finished)

    return look


def _nested(node: Any) -> Nested:
    """A threshold on a column of 0 and 1 lies between them; one that does not splits nothing off."""
    if node.is_leaf_node():
        return int(node.get_label())
    left, right = _nested(node.get_left()), _nested(node.get_right())
    if not 0.0 <= float(node.get_split_threshold()) < 1.0:
        raise ValueError(f"a threshold of {node.get_split_threshold()} on a column of 0 and 1")
    return int(node.get_split_feature()), left, right


CONTREE = Peer(
    "contree",
    "pycontree",
    ("pycontree",),
    _fit,
    "Made for numbers, where it needs no encoding; here it gets the same columns of 0 and 1 as everybody. "
    "complexity_cost (since 1.0.8; there was no penalty before) is per branch node, one fewer than leaves. One thread.",
)
