"""Near-optimal trees of a raw table, each available as a fitted classifier."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from accel_oct.constraints import bind_all
from accel_oct.estimators.in_pieces import check_rows
from accel_oct.live import watched
from accel_oct.mip import as_solver
from accel_oct.objectives import Fixed
from accel_oct.solving.near_optimal import NearOptimalTrees, near_optimal
from accel_oct.solving.result import Result, Status, chosen_result
from accel_oct.support.arguments import time_left
from accel_oct.support.progress import announce
from accel_oct.tree import DecisionTree

EXAMINED = 50_000
"""Number of trees that are listed, unless `limit` is larger, to find those that satisfy the constraints."""


def listed_trees(
    model: Any,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    within: float,
    limit: int | None,
    labels: str,
) -> NearOptimalTrees:
    """Implement `OptimalTreeClassifier.near_optimal`; `given` is (sample_weight, sensitive_features, costs)."""
    with watched(None, verbose=model.verbose, time_limit=model.time_limit) as progress:
        return _listed(model, X, y, given, within, limit, labels, progress)


def _listed(
    model: Any,
    X: Any,
    y: Any,
    given: tuple[Any, Any, Any],
    within: float,
    limit: int | None,
    labels: str,
    progress: Any,
) -> NearOptimalTrees:
    began = time.perf_counter()
    base = clone(model).set_params(solver=replace(as_solver(model.solver), gap=0.0))
    announce(progress, "encoding")
    source = base._source(X, y, given)
    check_rows(source, "a list of near-optimal trees")
    data = base._prepare(source)
    best: Result | None = None
    if base._all_constraints(data):
        _, data, best = base._solve_refining(source, data, began, lambda: False, progress)
        if best.status == "infeasible":
            _ = replace(best, scope=base._scope()).tree  # raises
    constraints, scope = base._all_constraints(data), base._scope()

    def as_model(tree: DecisionTree, objective: float, optimum: float) -> Any:
        chosen = base._like()
        bound = bind_all(constraints, data.dataset)
        chosen._adopt(chosen_result(data.dataset, tree, objective, optimum, bound), data, relabel=False)
        return chosen

    def near(distance: float, most: int | None) -> NearOptimalTrees:
        return near_optimal(
            data.dataset,
            max_depth=model.max_depth,
            leaf_penalty=model.leaf_penalty,
            within=distance,
            limit=most,
            labels=labels,
            objective=Fixed(data.score),
            solver=model.solver,
            time_limit=time_left(model.time_limit, began),
            progress=progress,
            as_model=as_model,
            splits="" if scope.complete else scope.splits,
        )

    if best is None:
        return near(within, limit)
    # Trees that violate the constraints may be better than the best feasible one: list them, then filter.
    trees = near(0.0, 1)
    if best.status != "optimal":
        ended: Status = "time_limit" if best.status == "time_limit" else "interrupted"
        return trees.among_kept(None, within, limit, ended)
    if trees.optimum is None:
        return trees.among_kept(None, within, limit, trees.status)
    trees = near(trees.optimum - best.objective + within, EXAMINED if limit is None else max(limit, EXAMINED))
    for constraint in constraints:
        trees = trees.filter(constraint)
    return trees.among_kept(best.objective, within, limit, trees.status)
