"""Calls of STreeD and ODTlearn, in a process of their own that is killed at the time limit.

Both packages are optional (the extra `rivals`) and are imported in that process only. Each call takes the group, the
features, classes as 0 and 1, the name of the constraint ("parity" or "opportunity"), its limit, the depth and the
seconds allowed, and returns an `Answer`.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Seconds that a rival may take longer than its limit to come back by itself before it is killed.
GRACE = 5.0
#: Rows and columns of a model that the licence that comes with gurobipy takes.
LICENCE = 2000
#: Added to the limit of STreeD, which compares sums of floating-point rates; our own tolerance.
FORGIVEN = 1e-9


@dataclass(frozen=True)
class Answer:
    """The status of a solver and its seconds; `predicted` is empty without a tree."""

    status: str
    seconds: float
    predicted: Any = ()


@dataclass(frozen=True)
class PeerAnswer(Answer):
    """The answer of a peer; `row` has the fields that `accel_oct_bench.peers.measured` returns."""

    row: Any = None


Call = Callable[..., Answer]


def missing(package: str) -> bool:
    return importlib.util.find_spec(package) is None


def fitted_streed(
    group: Any, X: Any, y: Any, constraint: str, limit: float, depth: int, time_limit: float
) -> tuple[Any, float]:
    """Return a fitted STreeD model and its seconds. The sensitive column is the first; it is not split on."""
    from pystreed import STreeDGroupFairnessClassifier

    tasks = {"parity": "group-fairness", "opportunity": "equality-of-opportunity"}
    table = np.column_stack([group, X]).astype(np.int32)
    model = STreeDGroupFairnessClassifier(
        tasks[constraint], discrimination_limit=limit + FORGIVEN, max_depth=depth, time_limit=time_limit
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when it found no tree
        began = time.perf_counter()
        model.fit(table, y)
        return model, time.perf_counter() - began


def streed(group: Any, X: Any, y: Any, constraint: str, limit: float, depth: int, time_limit: float) -> Answer:
    model, seconds = fitted_streed(group, X, y, constraint, limit, depth, time_limit)
    if not model.is_fitted():
        return Answer("no tree", seconds)
    table = np.column_stack([group, X]).astype(np.int32)
    status = "optimal" if model.fit_result.is_optimal() else "time_limit"
    return Answer(status, seconds, np.asarray(model.predict(table)))


def odtlearn(group: Any, X: Any, y: Any, constraint: str, limit: float, depth: int, time_limit: float) -> Answer:
    """Solve by ODTlearn's flow formulation on Gurobi, on one thread, without regularisation."""
    import gurobipy
    from odtlearn.fair_oct import FairEOppOCT, FairSPOCT

    gurobipy.setParam("OutputFlag", 0)
    kind = {"parity": FairSPOCT, "opportunity": FairEOppOCT}[constraint]
    began = time.perf_counter()
    model = kind("gurobi", 1, depth=depth, time_limit=time_limit, fairness_bound=limit, num_threads=1)
    model.fit(X, y, group.reshape(-1, 1), np.zeros(len(y)))
    seconds = time.perf_counter() - began
    # It counts correct samples: a bound less than one above the value proves it.
    proven = model.objective_bound < model.objective_value + 1 - 1e-6
    return Answer("optimal" if proven else "time_limit", seconds, np.asarray(model.predict(X)))


def most_rows(depth: int) -> int:
    """Return the most samples whose model fits the licence: six rows per sample and node, and a few more."""
    nodes: int = 2 ** (depth + 1) - 1
    return (LICENCE - 30) // (6 * nodes)


class Worker:
    """A process that answers calls one after the other; it is killed when it is late, and started again.

    `first` is a small problem that it solves before anything else, so that imports and licences are not measured.
    """

    def __init__(self, call: Call, first: tuple[Any, ...] | None = None) -> None:
        X = np.random.default_rng(0).integers(0, 2, (20, 4))
        self._call, self._first = call, first or (X[:, 0], X[:, 1:], X[:, 1], "parity", 0.5, 1)
        self._process: Any = None

    def ask(self, *problem: Any, time_limit: float) -> Answer:
        if self._process is None:
            self._start()
        self._here.send((*problem, time_limit))
        try:
            if self._here.poll(time_limit + GRACE):
                answer = self._here.recv()
                if isinstance(answer, Answer):
                    return answer
                raise RuntimeError(f"{self._call.__name__}: {answer}")
        except (EOFError, ConnectionResetError):
            self.stop()
            return Answer("crashed", float("nan"))
        self.stop()
        return Answer("killed", time_limit)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, self._call), daemon=True)
        self._process.start()
        there.close()
        self._here.send((*self._first, 60.0))
        self._here.recv()


def _serve(there: Any, call: Call) -> None:
    while True:
        try:
            problem = there.recv()
        except EOFError:
            return
        try:
            there.send(call(*problem))
        except Exception as error:
            there.send(f"{type(error).__name__}: {error}")
