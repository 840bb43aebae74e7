"""One fold of a cross-validation: all penalties on its training rows, each tree scored on the rows held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from accel_oct.constraints import MaxLeaves, bind_all, local_rules
from accel_oct.estimators.classifier import OptimalTreeClassifier, n_threads
from accel_oct.estimators.held_out import held_out_data, held_out_score, rows_of
from accel_oct.estimators.training import Attached, TrainingData
from accel_oct.objectives import Fixed, LinearScore
from accel_oct.solving.frontier import solve_path
from accel_oct.solving.result import HistoryRow, Result


class Task(NamedTuple):
    """One fold at one depth; it may be sent to another process."""

    model: OptimalTreeClassifier
    X: Any
    y: Any
    weights: Any
    given: Attached
    train: NDArray[Any]
    test: NDArray[Any]
    penalties: list[float]
    scoring: Any = None


@dataclass(frozen=True)
class FoldOutcome:
    """Per penalty the score on the held-out rows and the number of leaves; and how the solves went.

    Where no tree keeps the constraints both are not a number.
    """

    scores: list[tuple[float, float]]
    history: list[HistoryRow]
    interrupted: bool


def solve_fold(task: Task, should_stop: Callable[[], bool] = lambda: False) -> FoldOutcome:
    model, X, y, weights, given, train, test, penalties, scoring = task
    data = model._prepare(
        rows_of(X, train), y[train], None if weights is None else weights[train], given.of_rows(train)
    )
    held_out = rows_of(X, test)
    test_weights = None if weights is None or not weights[test].any() else weights[test]
    rows = held_out_data(model, held_out, y[test], test_weights, given.of_rows(test))
    scores: list[tuple[float, float]] = []
    history: list[HistoryRow] = []
    interrupted = False
    for result in _results(model, data, penalties):
        if result.found is None:
            scores.append((math.nan, math.nan))
        else:
            model._adopt(result, data)
            tree = model.tree_.tree
            score = held_out_score(model, scoring, tree, rows, data, held_out, y[test], test_weights)
            scores.append((score, float(model.get_n_leaves())))
        history += result.history
        interrupted = interrupted or result.status == "interrupted" or should_stop()
        if interrupted:
            break
    return FoldOutcome(scores, history, interrupted)


def _results(model: OptimalTreeClassifier, data: TrainingData, penalties: list[float]) -> Iterable[Result]:
    """The optimum of each penalty: all read off one frontier, unless something was asked for that only `solve` does."""
    constraints = model._all_constraints(data)
    asked = (model.backend, model.preset, model.gap, model.config, model.components)
    bound = bind_all(constraints, data.dataset)
    independent = all(local_rules(each) is not None or isinstance(each, MaxLeaves) for each in bound)
    if asked != ("highs", "default", 0.0, None, None) or not independent or not isinstance(data.score, LinearScore):
        return (model.set_params(leaf_penalty=penalty)._solve(data, model.time_limit) for penalty in penalties)
    return solve_path(
        data.dataset,
        max_depth=model.max_depth,
        leaf_penalties=penalties,
        time_limit=model.time_limit,
        threads=n_threads(model.n_jobs),
        constraints=constraints,
        objective=Fixed(data.score),
    )
