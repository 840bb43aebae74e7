"""TreeFARMS: all trees close to the optimum; here only the optimal ones are asked for."""

from __future__ import annotations

from math import ceil
from typing import Any

from accel_oct.bench.peers.base import Answer, Look, Nested, Peer, PeerError, Problem

__all__ = ["TREEFARMS"]


def _fit(problem: Problem) -> Look:
    import pandas as pd
    from treefarms import TREEFARMS as Farms

    if len(set(problem.y.tolist())) > 2:
        raise PeerError("it takes two classes only")
    table = pd.DataFrame(problem.X.astype(int), columns=[f"x{place}" for place in range(problem.X.shape[1])])
    model = Farms(
        {
            "regularization": problem.leaf_penalty,
            "rashomon": True,
            "rashomon_bound_multiplier": 0.0,
            "depth_budget": problem.max_depth + 1,
            "time_limit": 0 if problem.time_limit is None else ceil(problem.time_limit),
            "worker_limit": problem.threads,
            "verbose": False,
        }
    )
    model.fit(table, pd.Series(problem.y, name="class"))

    def look() -> Answer:
        if not model.get_tree_count():
            return Answer()
        values = model.model_set.available_metrics["metric_values"]
        note = f"{model.get_tree_count()} trees of {len(values)} values"
        return Answer(_nested(model[0].source), finished=not model.timeout, timed_out=model.timeout, note=note)

    return look


def _nested(node: dict[str, Any]) -> Nested:
    if "prediction" in node:
        return int(node["prediction"])
    return int(node["feature"]), _nested(node["false"]), _nested(node["true"])


TREEFARMS = Peer(
    "treefarms",
    "treefarms",
    ("pandas", "treefarms"),
    _fit,
    "It enumerates all trees within a bound of the optimum; the bound is 0 here. Penalty per leaf, as ours; two "
    "classes only; its depth counts levels of nodes, one more than ours; its time limit is in whole seconds.",
)
