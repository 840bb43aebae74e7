"""Time limits, Ctrl-C and threads in the parts of a solve that are not the solver's."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.dynamic_programme import optimal_value
from sklearn.exceptions import ConvergenceWarning

import accel_oct
from accel_oct import OptimalTreeClassifier, Solver, frontier, solve
from accel_oct.data import BinaryDataset
from accel_oct.encoding import OneHotCategoryEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.exact import DepthTwoSolver
from accel_oct.heuristics import cart, polish
from accel_oct.mip import SolveOptions
from accel_oct.tree import DecisionTree

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _noise(n_samples: int = 60, n_features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.integers(0, 2, (n_samples, n_features)), rng.integers(0, 2, n_samples)


# --- the warm start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["default", "paper", "baseline"])
def test_without_time_nothing_is_computed(monkeypatch: pytest.MonkeyPatch, preset: str) -> None:
    """A limit of 0 gives a tree and a valid bound, and neither CART nor D2S nor the tables nor the solver is asked."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("there is no time for this")

    for name in ("warm_start.cart", "tables.best_tree", "branch_and_cut.Master"):
        monkeypatch.setattr(f"accel_oct.solving.phases.{name}", refuse)
    monkeypatch.setattr(DepthTwoSolver, "solve", refuse)
    X, y = _noise()
    result = solve(X, y, max_depth=3, leaf_penalty=0.01, time_limit=0.0, config=preset)
    dataset = BinaryDataset.from_arrays(X, y)
    optimum = optimal_value(dataset, 3, dataset.leaf_price(0.01)) / dataset.total_weight
    assert result.status == "time_limit"
    assert result.objective <= optimum <= result.bound


def test_cart_is_skipped_when_it_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn cannot be interrupted, so it is not begun when its estimate is above the time that is left."""
    asked: list[int] = []
    monkeypatch.setattr("accel_oct.solving.phases.warm_start._QUICK_TABLES", 0.0)
    monkeypatch.setattr(
        "accel_oct.solving.phases.warm_start.cart", lambda dataset, *rest: asked.append(1) or DecisionTree.leaf(0, 2)
    )
    X, y = _noise()
    for estimate, expected in ((30.0, 0), (0.0, 1)):
        asked.clear()
        monkeypatch.setattr(
            "accel_oct.solving.phases.warm_start.cart_seconds", lambda *given, estimate=estimate: estimate
        )
        assert solve(X, y, max_depth=2, leaf_penalty=0.01, time_limit=20.0).status == "optimal"
        assert len(asked) == expected


def test_cart_is_skipped_where_the_tables_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """They find the best tree sooner; presets without tables begin with CART."""
    asked: list[int] = []
    monkeypatch.setattr(
        "accel_oct.solving.phases.warm_start.cart", lambda dataset, *rest: asked.append(1) or DecisionTree.leaf(0, 2)
    )
    X, y = _noise()
    for preset, expected in (("default", 0), ("paper", 1)):
        asked.clear()
        assert solve(X[:40], y[:40], max_depth=2, leaf_penalty=0.05, config=preset).status == "optimal"
        assert len(asked) == expected


def test_cart_draws_rows_on_large_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """What scikit-learn is given is bounded; the tree is pruned on all rows and is the same for the same seed."""
    from sklearn.tree import DecisionTreeClassifier

    sizes: list[int] = []
    original = DecisionTreeClassifier.fit

    def fit(self: Any, X: Any, *rest: Any, **options: Any) -> Any:
        sizes.append(X.size)
        return original(self, X, *rest, **options)

    monkeypatch.setattr(DecisionTreeClassifier, "fit", fit)
    monkeypatch.setattr(sys.modules["accel_oct.heuristics.cart"], "_MOST_CELLS", 3000)  # the package has the function
    X, y = _noise(2000, 10)
    y = X[:, 4] ^ (np.arange(2000) % 10 == 0)
    dataset = BinaryDataset.from_arrays(X, y, np.arange(2000) % 3)
    price = dataset.leaf_price(0.01)
    trees = [cart(dataset, 3, price, seed=5) for _ in range(2)]
    assert sizes == [1000, 1000]
    assert trees[0] == trees[1] == trees[0].pruned(dataset, price)
    assert trees[0].value(dataset, price) > dataset.class_weights().max() - price


def test_tails_that_are_not_worthwhile_stay() -> None:
    """Polishing asks before each tail and leaves those alone that it is told to."""
    X, y = _noise()
    dataset = BinaryDataset.from_arrays(X, y)
    tree = DecisionTree.leaf(0, 2)
    sizes: list[int] = []

    def lookup(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("not worthwhile")

    assert polish(tree, dataset, 0.5, lookup, lambda size: bool(sizes.append(size))) is tree
    assert sizes == [60]


def test_many_categories_take_no_table_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One-hot columns by the thousand: the warm start leaves D2S alone, and the limit is kept.

    A limit of one second; without the steps of the pair level and the checks of the warm start this took minutes, so
    half a minute tells them apart on any machine.
    """
    rng = np.random.default_rng(0)
    table = np.array([[f"name {i}"] for i in range(10000)], dtype=object)
    y = rng.integers(0, 2, 10000)

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("D2S on so many columns")

    monkeypatch.setattr(DepthTwoSolver, "solve", refuse)
    every = TableEncoder(categorical=OneHotCategoryEncoder(None))
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.001, time_limit=1.0, encoder=every)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table, y)
    assert len(model.encoder_.conditions_) == 10000
    assert model.result_.status in ("optimal", "time_limit")
    assert model.result_.objective <= model.result_.bound
    assert model.result_.seconds < 30


def test_the_encoding_counts_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the encoder uses is taken off the solver's time, down to nothing; invalid limits are refused."""
    X, y = _noise()
    original = OptimalTreeClassifier._checked

    def slow(self: Any, *arguments: Any, **options: Any) -> Any:
        time.sleep(0.3)
        return original(self, *arguments, **options)

    monkeypatch.setattr(OptimalTreeClassifier, "_checked", slow)
    with pytest.warns(ConvergenceWarning):
        model = OptimalTreeClassifier(max_depth=3, time_limit=0.2).fit(X, y)
    assert model.status_ == "time_limit"
    assert OptimalTreeClassifier(max_depth=2, time_limit=60.0).fit(X, y).status_ == "optimal"
    with pytest.raises(InvalidInputError, match="time_limit must"):
        OptimalTreeClassifier(max_depth=2, time_limit=-1.0).fit(X, y)


# --- Ctrl-C ------------------------------------------------------------------------------------------------

_PROLOGUE = """
import json, logging, os, signal, sys, threading, time
import numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when started from a shell's background job

def press():
    time.sleep(0.5)  # until the main thread waits
    os.kill(os.getpid(), signal.SIGINT)
"""

_WARM_START = """
from accel_oct import solve
from accel_oct.solving.phases import warm_start
from accel_oct.heuristics.cart import cart

def slow(*arguments):
    press()
    time.sleep(1.0)
    return cart(*arguments)

warm_start.cart = slow
rng = np.random.default_rng(3)
result = solve(rng.integers(0, 2, (60, 8)), rng.integers(0, 2, 60), max_depth=3, leaf_penalty=0.01)
print(json.dumps({"status": result.status, "objective": result.objective, "bound": result.bound}))
"""

_PRESSED_TWICE = """
from accel_oct.support import stopping

stopping._PATIENCE = float(sys.argv[1])
told, ended = threading.Event(), threading.Event()
lines = []

class Listener(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())

logging.getLogger("accel_oct").addHandler(Listener())

def work():
    press()
    told.wait(30)
    press()
    time.sleep(1.0)
    ended.set()

outcome = "returned"
try:
    stopping.run_interruptibly(work, told.set)
except KeyboardInterrupt:
    outcome = "raised"
print(json.dumps({"outcome": outcome, "ended": ended.is_set(), "lines": lines}))
"""


def _run(script: str, *arguments: str) -> dict[str, Any]:
    package = Path(str(accel_oct.__file__)).parents[1]
    run = subprocess.run(
        [sys.executable, "-c", _PROLOGUE + script, *arguments],
        env={"PYTHONPATH": str(package), **os.environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return outcome


@pytest.mark.slow
def test_ctrl_c_in_the_warm_start_returns_a_result() -> None:
    """The tree so far and a valid bound, as in every other phase."""
    outcome = _run(_WARM_START)
    dataset = BinaryDataset.from_arrays(*_noise())
    optimum = optimal_value(dataset, 3, dataset.leaf_price(0.01)) / dataset.total_weight
    assert outcome["status"] == "interrupted"
    assert outcome["objective"] <= optimum <= outcome["bound"]


def test_a_second_ctrl_c_waits_for_the_work_to_stop() -> None:
    """KeyboardInterrupt comes when nothing computes any more."""
    assert _run(_PRESSED_TWICE, "60") == {"outcome": "raised", "ended": True, "lines": []}


def test_work_that_does_not_stop_is_not_waited_for_for_ever() -> None:
    """After a while KeyboardInterrupt comes all the same, with a line in the log."""
    outcome = _run(_PRESSED_TWICE, "0.2")
    assert outcome["outcome"] == "raised"
    assert not outcome["ended"]
    assert len(outcome["lines"]) == 1


# --- threads -----------------------------------------------------------------------------------------------


def test_threads_are_as_many_as_cores_at_most(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand million threads are the cores there are, with a line in the log, wherever they are asked for."""
    X, y = _noise(40, 12)
    with caplog.at_level(logging.WARNING, logger="accel_oct"):
        assert SolveOptions(threads=10**9).threads == CORES
        assert len(caplog.messages) == 1
        assert solve(X, y, max_depth=3, leaf_penalty=0.01, solver=Solver(threads=10**9)).status == "optimal"
        assert len(caplog.messages) == 2
        assert frontier(X, y, max_depth=3, solver=Solver(threads=10**9)).status == "optimal"
        assert len(caplog.messages) == 3
        assert OptimalTreeClassifier(max_depth=2, solver=Solver(threads=10**9)).fit(X, y).status_ == "optimal"
        assert len(caplog.messages) == 4
        caplog.clear()
        assert SolveOptions(threads=np.int64(1)).threads == 1
        assert SolveOptions(threads=CORES).threads == CORES
    assert caplog.messages == []
