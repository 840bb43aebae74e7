"""OptimalTreeClassifierCV: its arguments reach the folds, and one Ctrl-C ends them all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import ParameterGrid, StratifiedKFold, cross_val_score

import accel_oct.estimators.cross_validated
import accel_oct.estimators.families
import accel_oct.estimators.folds
import accel_oct.estimators.optimal
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, Solver
from accel_oct.errors import InvalidInputError
from accel_oct.mip import UnknownBackendError
from accel_oct.solving.config import Config
from accel_oct.solving.driver import SearchRun
from accel_oct.solving.frontier import FrontierRun
from accel_oct.solving.search import Search
from accel_oct.support.progress import ProgressEvent
from accel_oct.support.stopping import Stopper

PENALTIES = [0.1, 0.01]


def data(n: int = 60, columns: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, columns))
    return X, (X[:, 0] & X[:, 1]) ^ (rng.random(n) < 0.1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, Any]]]:
    """The keyword arguments of every call of `solve` and `solve_path`, which still do their work."""
    seen: dict[str, list[dict[str, Any]]] = {"solve": [], "solve_path": []}

    def recording(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            seen[name].append(keywords)
            return function(*arguments, **keywords)

        return call

    monkeypatch.setattr(accel_oct.estimators.optimal, "solve", recording("solve", accel_oct.solve))
    monkeypatch.setattr(accel_oct.estimators.families, "solve_path", recording("solve_path", accel_oct.solve_path))
    return seen


def test_by_default_each_fold_is_one_path(calls: dict[str, list[dict[str, Any]]]) -> None:
    """Three folds, two depths: six paths, and one solve for the fit on all data."""
    OptimalTreeClassifierCV([1, 2], PENALTIES, cv=3, time_limit=50.0, encoder=None).fit(*data())
    assert len(calls["solve_path"]) == 6
    assert len(calls["solve"]) == 1
    limits = [call["time_limit"] for call in calls["solve_path"]]
    assert 5.0 < limits[0] <= 37.5 / 6  # three quarters of the limit are for the folds, in equal parts
    assert all(5.0 < limit <= 37.5 for limit in limits)  # what a fold does not need goes to the next ones
    assert 12.5 < calls["solve"][0]["time_limit"] <= 50.0  # and to the fit on all data


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "mock"),
        ("solver", Solver(gap=0.5)),
        ("config", "baseline"),
        ("config", replace(Config.preset("default"), polishing=False)),
    ],
)
def test_what_is_asked_of_a_solve_reaches_the_folds(
    name: str, value: Any, calls: dict[str, list[dict[str, Any]]]
) -> None:
    """Each argument that a path cannot honour makes every fold solve every penalty with it."""
    model = OptimalTreeClassifierCV(1, PENALTIES, cv=2, encoder=None, **{name: value}).fit(*data())
    assert not calls["solve_path"]
    assert len(calls["solve"]) == 2 * len(PENALTIES) + 1
    assert all(call[name] == value for call in calls["solve"])
    assert sorted({call["leaf_penalty"] for call in calls["solve"]}) == sorted(PENALTIES)
    plain = OptimalTreeClassifierCV(1, PENALTIES, cv=2).fit(*data())
    if value != Solver(gap=0.5):
        np.testing.assert_allclose(model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"solver": "abacus"}, UnknownBackendError),
        ({"config": "fastest"}, InvalidInputError),
        ({"solver": 3}, InvalidInputError),
        ({"time_limit": -1.0}, InvalidInputError),
        ({"config": {"polishing": True}}, InvalidInputError),
        ({"max_depth": 99}, InvalidInputError),
        ({"leaf_penalties": ["much"]}, InvalidInputError),
        ({"leaf_penalties": 0.1}, InvalidInputError),
        ({"max_depth": []}, InvalidInputError),
        ({"min_samples_leaf": []}, InvalidInputError),
        ({"min_samples_leaf": [1, 0]}, InvalidInputError),
        ({"min_samples_leaf": "few"}, InvalidInputError),
        ({"cv": 1}, InvalidInputError),
        ({"cv": 1000}, InvalidInputError),
        ({"cv": "all"}, InvalidInputError),
    ],
)
def test_mistakes_are_found_before_any_work(
    parameters: dict[str, Any], error: type[Exception], calls: dict[str, list[dict[str, Any]]]
) -> None:
    """An unknown solver must not cost all the folds first; nothing is solved, and the error names the argument."""
    with pytest.raises(error, match="|".join([*parameters, "backend", "preset"])):
        OptimalTreeClassifierCV(**{"leaf_penalties": PENALTIES, "cv": 2, **parameters}).fit(*data())
    assert calls == {"solve": [], "solve_path": []}


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_tells_of_every_fold(n_jobs: int | None) -> None:
    """How many are done, also when they are solved elsewhere, where the callable could not go."""

    class Unsendable:
        def __init__(self) -> None:
            self.events: list[ProgressEvent] = []

        def __call__(self, event: ProgressEvent) -> None:
            self.events.append(event)

        def __reduce__(self) -> Any:
            raise TypeError("cannot be pickled")

    progress = Unsendable()
    model = OptimalTreeClassifierCV(1, PENALTIES, cv=2, encoder=None, progress=progress, n_jobs=n_jobs).fit(*data())
    done = [event.figures["folds done"] for event in progress.events if event.phase == "cross-validation"]
    assert done == [(0, 2), (1, 2), (2, 2)]
    rows = [(event.seconds, event.objective, event.bound) for event in progress.events if event.changed]
    assert tuple(rows) == model.result_.history


# ---------------------------------------------------------------- selection


def as_grid_search(X: np.ndarray, y: np.ndarray, depths: list[int], leaves: list[Any]) -> dict[tuple[Any, ...], float]:
    """The mean score of each candidate, each fold and candidate solved on its own."""
    grid = ParameterGrid({"max_depth": depths, "min_samples_leaf": leaves, "leaf_penalty": PENALTIES})
    return {
        tuple(sorted(point.items())): float(cross_val_score(OptimalTreeClassifier(**point), X, y, cv=4).mean())
        for point in grid
    }


@pytest.mark.filterwarnings("ignore::accel_oct.errors.SingleLeafWarning")
def test_depth_penalty_and_smallest_leaf_are_selected_together() -> None:
    """The scores are those of a search through the grid, and the choice is among the best of them."""
    X, y = data(120, seed=1)
    model = OptimalTreeClassifierCV([2, 1], PENALTIES, min_samples_leaf=[0.3, 1, 20], cv=4).fit(X, y)
    found = model.cv_results_
    names = ("leaf_penalty", "max_depth", "min_samples_leaf")
    expected = as_grid_search(X, y, [1, 2], [0.3, 1, 20])
    assert len(found["mean_test_score"]) == len(expected) == 12
    for place, score in enumerate(found["mean_test_score"]):
        key = tuple((name, found[name][place]) for name in names)
        assert score == pytest.approx(expected[key], abs=0.03)  # equally good trees differ on other rows
    chosen = tuple((name, getattr(model, name + "_")) for name in names)
    at = [tuple((name, found[name][place]) for name in names) for place in range(12)].index(chosen)
    assert found["mean_test_score"][at] == max(found["mean_test_score"])
    refitted = OptimalTreeClassifier(**dict(chosen)).fit(X, y)
    assert model.objective_ == pytest.approx(refitted.objective_)


def test_the_smallest_leaf_holds_in_the_fit_on_all_data() -> None:
    """Every leaf of the selected tree has as many rows as the selected value requires."""
    X, y = data(120)
    model = OptimalTreeClassifierCV(3, [0.0], min_samples_leaf=[25, 30], cv=4).fit(X, y)
    assert model.min_samples_leaf_ in (25, 30)
    assert np.unique(model.apply(X), return_counts=True)[1].min() >= model.min_samples_leaf_


def test_of_equal_scores_the_larger_leaf_is_taken() -> None:
    """One column decides: all candidates have the same trees, and the most cautious one is selected."""
    X = np.repeat([[0.0], [1.0]], 30, axis=0)
    model = OptimalTreeClassifierCV([1, 2], [0.1, 0.01], min_samples_leaf=[1, 5], cv=3).fit(X, X[:, 0])
    assert (model.max_depth_, model.min_samples_leaf_, model.leaf_penalty_) == (1, 5, 0.1)


def test_no_depth_limit_is_one_of_the_candidates() -> None:
    """Rows of which only a deep tree predicts the class: the candidate without a limit is selected."""
    X = np.arange(120.0)[:, None]
    y = (X[:, 0] // 15 % 2).astype(int)
    model = OptimalTreeClassifierCV([2, None], [0.1, 0.01], cv=StratifiedKFold(3, shuffle=True, random_state=0))
    model.fit(X, y)
    assert model.max_depth_ is None
    assert model.get_n_leaves() == 8
    assert list(model.cv_results_["max_depth"]) == [2, 2, None, None]


def scored(monkeypatch: pytest.MonkeyPatch, scores: list[list[float]], **parameters: Any) -> OptimalTreeClassifierCV:
    """A classifier whose candidates have given scores in every fold: (depths, penalties)."""
    left = [row for row in scores for _ in range(2)]

    def outcome(task: Any, *rest: Any) -> Any:
        return accel_oct.estimators.folds.FoldOutcome([(score, 2.0) for score in left.pop(0)], False)

    monkeypatch.setattr(accel_oct.estimators.folds, "solve_fold", outcome)
    return OptimalTreeClassifierCV(list(range(1, len(scores) + 1)), cv=2, **parameters).fit(*data())


def test_the_smooth_rule_averages_neighbouring_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single high score between low ones is not taken, but the middle of a plateau; each depth on its own."""
    scores = [[0.50, 0.90, 0.50, 0.80, 0.82, 0.81], [0.80, 0.10, 0.10, 0.10, 0.10, 0.81]]
    penalties = [0.32, 0.16, 0.08, 0.04, 0.02, 0.01]
    smooth = scored(monkeypatch, scores, leaf_penalties=penalties)
    assert (smooth.max_depth_, smooth.leaf_penalty_) == (1, 0.02)  # 0.8125 of the plateau, 0.7 of the peak
    assert smooth.cv_results_["mean_test_score"][1] == 0.90  # the scores themselves are reported
    best = scored(monkeypatch, scores, leaf_penalties=penalties, rule="best")
    assert (best.max_depth_, best.leaf_penalty_) == (1, 0.16)


def test_a_penalty_without_a_tree_in_some_fold_is_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not selected, and the penalties next to it are judged by the others."""
    scores = [[0.7, np.nan, 0.9, 0.7]]
    model = scored(monkeypatch, scores, leaf_penalties=[0.08, 0.04, 0.02, 0.01])
    assert model.leaf_penalty_ == 0.02  # (0.9 + 2 * 0.9 + 0.7) / 4


def test_automatic_depths_include_no_limit_where_the_problem_allows_it() -> None:
    """Accuracy alone: 2, 3 and no limit. A limit on features, or no penalty: 2 and 3."""
    X, y = data(80)
    plain = OptimalTreeClassifierCV(leaf_penalties=PENALTIES, cv=2).fit(X, y)
    assert list(plain.cv_results_["max_depth"]) == [2, 2, 3, 3, None, None]
    for parameters in ({"max_features_used": 2}, {"leaf_penalties": [0.1, 0.0]}, {"objective": "f1"}):
        model = OptimalTreeClassifierCV(**{"leaf_penalties": PENALTIES, "cv": 2, **parameters}).fit(X, y)
        assert list(model.cv_results_["max_depth"]) == [2, 2, 3, 3], parameters
    leaves = OptimalTreeClassifierCV(leaf_penalties=[0.01, 0.0], max_leaf_nodes=4, cv=2).fit(X, y)
    assert list(leaves.cv_results_["max_depth"]) == [2, 2, 3, 3, None, None]
    assert leaves.get_n_leaves() <= 4


def test_automatic_searches_without_a_depth_limit_end_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise, of which no tree of any depth can be proven: the folds have a limit although none was given."""
    monkeypatch.setattr(accel_oct.estimators.cross_validated, "_AUTO_FOLD_SECONDS", 0.2)
    monkeypatch.setattr(accel_oct.estimators.cross_validated, "_AUTO_FIT_SECONDS", 0.2)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 5)), rng.integers(0, 2, 150)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the selected tree need not be proven
        model = OptimalTreeClassifierCV(leaf_penalties=[0.004, 0.002], cv=2).fit(X, y)
    assert time.process_time() - began < 10.0
    assert None in list(model.cv_results_["max_depth"])


def test_one_limit_holds_for_all_folds_and_the_fit() -> None:
    """Searches that would take minutes each end within the limit that was given for all of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 20)), rng.integers(0, 2, 400)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        OptimalTreeClassifierCV(6, [0.002, 0.001], cv=2, time_limit=4.0).fit(X, y)
    assert time.process_time() - began < 8.0


def test_parallel_folds_have_equal_parts_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six tasks in two threads are three rounds: each task may take a third of the time for the folds."""
    seconds: list[float] = []
    really = accel_oct.estimators.folds.solve_fold

    def recorded(task: Any, *rest: Any) -> Any:
        seconds.append(task.seconds)
        return really(task, *rest)

    monkeypatch.setattr(accel_oct.estimators.folds, "solve_fold", recorded)
    with parallel_config(backend="threading"):
        OptimalTreeClassifierCV([1, 2], PENALTIES, cv=3, time_limit=400.0, n_jobs=2).fit(*data())
    assert len(seconds) == 6
    assert all(90.0 < each <= 100.0 for each in seconds)


# ---------------------------------------------------------------- Ctrl-C


def interrupting(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """The table number `at` is told to stop before it begins; returns the calls that were made."""
    made: list[int] = []

    def perform(run: FrontierRun, work: Callable[[Stopper], object]) -> Any:
        made.append(len(made) + 1)
        if len(made) == at:
            run.stopper.request("interrupted")
        return SearchRun.perform(run, work)

    monkeypatch.setattr(FrontierRun, "perform", perform)
    return made


def test_one_interrupt_ends_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt after the second of five folds, and a classifier that is not fitted."""
    X, y = data(300, 40)
    made = interrupting(monkeypatch, at=2)
    model = OptimalTreeClassifierCV(4, PENALTIES, cv=5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert made == [1, 2]
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_an_interrupted_fit_leaves_an_earlier_one_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half of the new columns nor half of the new results."""
    X, y = data(300, 40)
    model = OptimalTreeClassifierCV(1, PENALTIES, cv=2).fit(X[:, :3], y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    interrupting(monkeypatch, at=1)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(max_depth=4).fit(X, y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert model.predict(X[:, :3]).shape == y.shape


def test_an_interrupted_last_fit_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the fit on all data keeps the best tree, says so, and its bound is above it."""
    X, y = data(300, 40)

    def perform(search: Search, work: Callable[[Stopper], object]) -> Any:
        search.stopper.request("interrupted")
        return SearchRun.perform(search, work)

    monkeypatch.setattr(Search, "perform", perform)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = OptimalTreeClassifierCV(3, [0.001], cv=2).fit(X, y)
    assert model.status_ == model.result_.status == "interrupted"
    assert model.bound_ > model.objective_


_SCRIPT = """
import json, os, signal, sys, threading
import numpy as np
import accel_oct
import accel_oct.estimators.families as module

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when started from a shell's background job
really, folds = module.solve_path, []

def solve_path(*arguments, **keywords):
    folds.append(len(folds) + 1)
    results = really(*arguments, **keywords)
    assert all(result.status == "optimal" for result in results)
    if len(folds) == 2:
        # As if the signal had come while the solve was ending: taken, and of no effect on its result.
        try:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(30)
        except KeyboardInterrupt:
            pass
    return results

module.solve_path = solve_path
rng = np.random.default_rng(0)
X = rng.integers(0, 2, (60, 4))
model = accel_oct.OptimalTreeClassifierCV(1, [0.1, 0.01], cv=5, encoder=None)
try:
    model.fit(X, X[:, 0])
    outcome = "fitted"
except KeyboardInterrupt:
    outcome = "interrupted"
restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(json.dumps({"outcome": outcome, "folds": folds, "restored": restored}))
"""


@pytest.mark.slow
def test_an_interrupt_that_a_finished_solve_took_still_ends_the_fit() -> None:
    """SIGINT in the last moment of a fold: its result is proven, and the fit ends all the same."""
    run = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout.splitlines()[-1])
    assert outcome == {"outcome": "interrupted", "folds": [1, 2], "restored": True}
