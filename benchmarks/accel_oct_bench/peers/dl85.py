"""DL8.5 (pydl8.5): optimal trees of limited depth, without a price of leaves."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, Problem

__all__ = ["DL85"]


def _fit(problem: Problem) -> Look:
    from pydl85 import DL85Classifier

    table = problem.X.astype(np.int32)
    model = DL85Classifier(
        max_depth=problem.depth_limit, time_limit=0 if problem.time_limit is None else ceil(problem.time_limit)
    )
    model.fit(table, problem.y)

    def look() -> Answer:
        late = bool(model.timeout_)
        if model.base_tree_ is None:
            return Answer(timed_out=late)
        return Answer(_nested(model.base_tree_), np.asarray(model.predict(table)), not late, late)

    return look


def _nested(node: dict[str, Any]) -> Nested:
    if "value" in node:
        return int(node["value"])
    return int(node["feat"]), _nested(node["right"]), _nested(node["left"])  # left is where the feature holds


DL85 = Peer(
    "dl85",
    "pydl8.5",
    ("pydl85",),
    _fit,
    "It has no penalty: it minimises errors at this depth, and its tree is priced as it is. Its proof is a proof of "
    "ours only where the penalty is 0; elsewhere the row says that it finished, and no more. Its time limit is in "
    "whole seconds.",
    prices=False,
)
