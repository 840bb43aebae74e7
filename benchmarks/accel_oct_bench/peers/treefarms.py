"""TreeFARMS: all trees close to the optimum; here only the optimal ones are asked for."""

from __future__ import annotations

from math import ceil
from typing import Any

from accel_oct_bench.peers.base import Answer, Look, Nested, Peer, PeerError, Problem

__all__ = ["TREEFARMS"]

#: It computes in single precision: with a distance of 0 its own optimum may fall outside.
WITHIN = 1e-4


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
            "rashomon_bound_multiplier": WITHIN,
            "depth_budget": problem.depth_limit + 1,
            "time_limit": 0 if problem.time_limit is None else ceil(problem.time_limit),
            "worker_limit": problem.threads,
            "verbose": False,
        }
    )
    model.fit(table, pd.Series(problem.y, name="class"))

    def look() -> Answer:
        if not model.get_tree_count():
            return Answer()
        values = [metric[0] for metric in model.model_set.available_metrics["metric_values"]]
        counts = [model.model_set.get_model_set(at)["count"] for at in _pointers(model)]
        best = min(range(len(values)), key=values.__getitem__)
        note = f"{sum(counts)} trees of {len(values)} values"
        source = model[sum(counts[:best])].source
        return Answer(_nested(source), finished=not model.timeout, timed_out=model.timeout, note=note)

    return look


def _pointers(model: Any) -> list[int]:
    pointers: list[int] = model.model_set.available_metrics["metric_pointers"]
    return pointers


def _nested(node: dict[str, Any]) -> Nested:
    if "prediction" in node:
        return int(node["prediction"])
    return int(node["feature"]), _nested(node["false"]), _nested(node["true"])


TREEFARMS = Peer(
    "treefarms",
    "treefarms",
    ("pandas", "treefarms"),
    _fit,
    "It enumerates all trees close to the optimum, here within 0.01 % of it; the best one counts. Penalty per leaf, as "
    "ours; two classes only; its depth counts levels of nodes, one more than ours; its time limit is in whole seconds.",
)
