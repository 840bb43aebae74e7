"""Near-optimal trees in the columns of a raw table, each to be had as a fitted classifier."""

from __future__ import annotations

import time
from typing import Any

from sklearn.base import clone

from accel_oct.constraints import bind_all
from accel_oct.estimators.base import TreeClassifier
from accel_oct.live import watched
from accel_oct.near_optimal.finding import near_optimal
from accel_oct.near_optimal.trees import NearOptimalTrees
from accel_oct.objectives import Fixed
from accel_oct.solving.activity import say
from accel_oct.solving.search import chosen_result
from accel_oct.support.arguments import time_left
from accel_oct.tree import DecisionTree

__all__ = ["listed_trees"]


def listed_trees(
    model: TreeClassifier,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    within: float,
    limit: int | None,
    labels: str,
    threads: int,
) -> NearOptimalTrees:
    """See `OptimalTreeClassifier.near_optimal`; `given` are sample_weight, sensitive_features and costs."""
    with watched(None, verbose=model.verbose, time_limit=model.time_limit) as progress:
        return _listed(model, X, y, given, within, limit, labels, threads, progress)


def _listed(
    model: TreeClassifier,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    within: float,
    limit: int | None,
    labels: str,
    threads: int,
    progress: Any,
) -> NearOptimalTrees:
    began = time.perf_counter()
    base: TreeClassifier = clone(model)
    say(progress, "encoding")
    data = base._prepare(X, y, *given)
    constraints = base._all_constraints(data)

    def as_model(tree: DecisionTree, objective: float, optimum: float) -> TreeClassifier:
        chosen = base._like()
        bound = bind_all(constraints, data.dataset)
        chosen._adopt(chosen_result(data.dataset, tree, objective, optimum, bound), data, relabel=False)
        return chosen

    trees = near_optimal(
        data.dataset,
        max_depth=model.max_depth,
        leaf_penalty=model.leaf_penalty,
        within=within,
        limit=limit,
        labels=labels,
        time_limit=time_left(model.time_limit, began),
        threads=threads,
        progress=progress,
        objective=Fixed(data.score),
        as_model=as_model,
    )
    for constraint in constraints:
        trees = trees.filter(constraint)
    return trees
