"""ConTree (pycontree): optimal trees on numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, Problem

__all__ = ["CONTREE"]


def _fit(problem: Problem) -> Look:
    from pycontree import ConTree

    table = problem.X.astype(np.float64)
    model = ConTree(
        max_depth=problem.depth_limit,
        complexity_cost=problem.leaf_penalty,
        time_limit=problem.seconds,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when the time was up
        model.fit(table, problem.y)

    def look() -> Answer:
        finished = bool(model._config.is_within_time_limit())  # the only place where it says so besides a warning
        return Answer(_nested(model.get_tree()), np.asarray(model.predict(table)), finished, not finished)

    return look


def _nested(node: Any) -> Nested:
    if node.is_leaf_node():
        return int(node.get_label())
    split = int(node.get_split_feature()), float(node.get_split_threshold())
    return *split, _nested(node.get_left()), _nested(node.get_right())


CONTREE = Peer(
    "contree",
    "pycontree",
    ("pycontree",),
    _fit,
    "Made for numbers, where it needs no encoding; in suites it gets the same columns of 0 and 1 as everybody. "
    "complexity_cost (since 1.0.8; there was no penalty before) is per branch node, one fewer than leaves. One thread.",
    numbers=True,
)
