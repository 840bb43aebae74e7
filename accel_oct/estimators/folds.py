"""Folds of a cross-validation: solve all penalties on the training rows, and score each tree on the held-out rows."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.families import along_penalties
from accel_oct.estimators.held_out import held_out_data, held_out_score, rows_of
from accel_oct.estimators.training import Attached, Solved
from accel_oct.support.progress import Reporter, Sink
from accel_oct.support.stopping import Clock, remembered_interrupts

logger = logging.getLogger("accel_oct")


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
    seconds: float | None = None


@dataclass(frozen=True)
class FoldOutcome:
    """Score on the held-out rows and number of leaves for each penalty, and how the solves ended.

    Both are NaN if no tree that satisfies the constraints was found; `failures` holds the statuses of these solves.
    """

    scores: list[tuple[float, float]]
    interrupted: bool
    failures: frozenset[str] = frozenset()


class FoldReporter:
    """Reports how many folds are done."""

    def __init__(self, progress: Sink | None, n_folds: int) -> None:
        began = time.perf_counter()
        self._reporter = Reporter(progress, lambda: time.perf_counter() - began)
        self._done, self._n_folds = 0, n_folds
        self._report()

    def part(self, number: int) -> Sink:
        """Return the sink for the solves of a fold."""
        return self._reporter.part(f"fold {number + 1} of {self._n_folds}")

    def done(self) -> None:
        """Count a fold as done."""
        self._done += 1
        logger.info("cross-validation: %d of %d folds are done", self._done, self._n_folds)
        self._report()

    def _report(self) -> None:
        self._reporter.begin("cross-validation", lambda: ("", {"folds done": (self._done, self._n_folds)}))


def solve_folds(tasks: list[Task], n_jobs: int | None, clock: Clock, reporter: FoldReporter) -> list[FoldOutcome]:
    """Solve the folds, in equal parts of the time that the clock has left; Ctrl-C in any of them ends them all."""
    done: list[FoldOutcome] = []
    n_parallel = effective_n_jobs(n_jobs)
    with remembered_interrupts() as interrupted:
        if n_parallel == 1:
            outcomes: Iterable[FoldOutcome] = (
                solve_fold(_limited(task, clock, len(tasks) - number), interrupted.is_set, reporter.part(number))
                for number, task in enumerate(tasks)
            )
        else:
            rounds = math.ceil(len(tasks) / n_parallel)
            limited = [_limited(task, clock, rounds) for task in tasks]
            outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(solve_fold)(task) for task in limited)
        for outcome in outcomes:
            if outcome.interrupted or interrupted.is_set():
                raise KeyboardInterrupt("cross-validation was interrupted: no penalty was chosen")
            done.append(outcome)
            reporter.done()
    return done


def _limited(task: Task, clock: Clock, parts: int) -> Task:
    """Return a task with its part of the time that is left."""
    if clock.left is None:
        return task
    return task._replace(seconds=clock.left / parts if task.seconds is None else min(task.seconds, clock.left / parts))


def solve_fold(
    task: Task, should_stop: Callable[[], bool] = lambda: False, progress: Sink | None = None
) -> FoldOutcome:
    model, X, y, weights, given, test, scoring = *task[:5], task.test, task.scoring
    held_out = rows_of(X, test)
    test_weights = None if weights is None or not weights[test].any() else weights[test]
    encoder, rows = None, None
    scores: list[tuple[float, float]] = []
    interrupted, failures = False, set()
    for solved in _solved(task, progress):
        result = solved.result
        if result.found is None:
            scores.append((math.nan, math.nan))
            failures.add(result.status)
        else:
            model._adopt(result, solved.data)
            if rows is None or solved.encoder is not encoder:
                encoder, rows = (
                    solved.encoder,
                    held_out_data(model, held_out, y[test], test_weights, given.of_rows(test)),
                )
            tree = model.tree_.tree
            score = held_out_score(model, scoring, tree, rows, solved.data, held_out, y[test], test_weights)
            scores.append((score, float(model.get_n_leaves())))
        interrupted = interrupted or result.status == "interrupted" or should_stop()
        if interrupted:
            break
    return FoldOutcome(scores, interrupted, frozenset(failures))


def _solved(task: Task, progress: Sink | None) -> Iterator[Solved]:
    """Return the optimum of each penalty on the training rows; the model stores the last encoder."""
    clock = Clock(time.perf_counter(), task.seconds)
    model, train = task.model, task.train
    weights = None if task.weights is None else task.weights[train]
    source = model._source(rows_of(task.X, train), task.y[train], (weights, task.given.of_rows(train), None))
    return along_penalties(model, source, task.penalties, clock, progress)
