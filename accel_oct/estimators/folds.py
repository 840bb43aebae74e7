"""One fold of a cross-validation: all penalties on its training rows, each tree scored on the rows held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing

from accel_oct.estimators.classifier import OptimalTreeClassifier, n_threads
from accel_oct.solving.frontier import solve_path
from accel_oct.solving.result import HistoryRow, Result


class Task(NamedTuple):
    """One fold at one depth; it may be sent to another process."""

    model: OptimalTreeClassifier
    X: Any
    y: Any
    weights: Any
    train: NDArray[Any]
    test: NDArray[Any]
    penalties: list[float]


@dataclass(frozen=True)
class FoldOutcome:
    """Per penalty the accuracy on the held-out rows and the number of leaves; and how the solves went."""

    scores: list[tuple[float, float]]
    history: list[HistoryRow]
    interrupted: bool


def solve_fold(task: Task, should_stop: Callable[[], bool] = lambda: False) -> FoldOutcome:
    model, X, y, weights, train, test, penalties = task
    data = model._prepare(_rows(X, train), y[train], None if weights is None else weights[train])
    held_out = _rows(X, test)
    test_weights = None if weights is None or not weights[test].any() else weights[test]
    scores: list[tuple[float, float]] = []
    history: list[HistoryRow] = []
    interrupted = False
    for result in _results(model, data, penalties):
        model._adopt(result, data)
        accuracy = accuracy_score(y[test], model.predict(held_out), sample_weight=test_weights)
        scores.append((float(accuracy), float(model.get_n_leaves())))
        history += result.history
        interrupted = interrupted or result.status == "interrupted" or should_stop()
        if interrupted:
            break
    return FoldOutcome(scores, history, interrupted)


def _results(model: OptimalTreeClassifier, data: Any, penalties: list[float]) -> Iterable[Result]:
    """The optimum of each penalty: all read off one frontier, unless something was asked for that only `solve` does."""
    if (model.backend, model.preset, model.gap, model.config) != ("highs", "default", 0.0, None):
        return (model.set_params(leaf_penalty=penalty)._solve(data, model.time_limit) for penalty in penalties)
    return solve_path(
        data.dataset,
        max_depth=model.max_depth,
        leaf_penalties=penalties,
        time_limit=model.time_limit,
        threads=n_threads(model.n_jobs),
    )


def _rows(X: Any, chosen: NDArray[Any]) -> Any:
    return X.rows(chosen) if hasattr(X, "rows") else _safe_indexing(X, chosen)
