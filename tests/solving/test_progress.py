"""Events of a solve: true at every moment, in every phase, at no cost where nobody listens; and how they end one."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from helpers.progress_support import Events

import accel_oct
from accel_oct import Solver
from accel_oct.constraints import FalsePositiveRate, MaxFeatures, MaxLeaves
from accel_oct.mip import BoundReport
from accel_oct.mip.session import ReportGate
from accel_oct.solving.phases import warm_start
from accel_oct.support import progress
from accel_oct.support.progress import ProgressEvent, Reporter


def data(n_samples: int = 80, n_features: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    X = rng.integers(0, 2, (n_samples, n_features))
    y = (X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3])
    return X, np.where(rng.random(n_samples) < 0.25, rng.integers(0, 2, n_samples), y)


@pytest.fixture
def every_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause: every question whether to stop is a heartbeat."""
    monkeypatch.setattr(progress, "_PAUSE", 0.0)


SOLVES = {
    "tables": ({"max_depth": 3}, "subtree bounds", "sample sets"),
    "roots": ({"max_depth": 5, "leaf_penalty": 0.004}, "subtree bounds", "roots open"),
    "limited leaves": ({"max_depth": 5, "constraints": [MaxLeaves(5)]}, "subtree bounds", "roots open"),
    "prices": ({"max_depth": 3, "constraints": [FalsePositiveRate(at_most=0.05)]}, "prices", "prices"),
    "sets": ({"max_depth": 2, "constraints": [MaxFeatures(2)]}, "feature sets", "feature sets"),
    "cuts": ({"max_depth": 2, "config": "baseline"}, "branch and cut", "benders cuts"),
    "ratio": ({"max_depth": 3, "objective": "f1"}, "frontier", None),
    "ratio by solves": ({"max_depth": 2, "objective": "f1", "config": "baseline"}, "branch and cut", None),
}


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.usefixtures("every_beat")
def test_what_is_told_is_true_at_every_moment(name: str) -> None:
    """Rows are the history; each activity repeats the last row, which encloses the optimum; the phase tells figures."""
    arguments, phase, figure = SOLVES[name]
    recorder = Events()
    result = accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments}, progress=recorder)
    plain = accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments})
    assert result.status == plain.status == "optimal" and result.objective == pytest.approx(plain.objective)
    assert recorder.rows == result.history
    known, seconds = (-math.inf, math.inf), 0.0
    for each in recorder:
        if each.changed:
            known = (each.objective, each.bound)
        assert (each.objective, each.bound) == known and each.seconds >= seconds
        assert each.objective <= result.objective + 1e-9 <= each.bound + 2e-9
        seconds = each.seconds
    told = [each for each in recorder if each.phase == phase]
    assert told and (figure is None or any(figure in each.figures for each in told))
    assert all(0 <= part <= whole for each in told for part, whole in _shares(each))
    assert ("step 1 of a ratio" in {each.part for each in recorder}) is name.startswith("ratio")


def _shares(told: ProgressEvent) -> list[tuple[int, int]]:
    return [figure for figure in told.figures.values() if isinstance(figure, tuple)]


@pytest.mark.usefixtures("every_beat")
def test_open_roots_fall_to_none() -> None:
    """At the end of a proof by roots nothing is open, and the count never exceeds the features."""
    recorder = Events()
    accel_oct.solve(*data(), max_depth=5, leaf_penalty=0.004, progress=recorder)
    counts = [each.figures["roots open"] for each in recorder if "roots open" in each.figures]
    assert counts and all(whole == counts[0][1] <= 7 for _, whole in counts)
    assert [part for part, _ in counts] == sorted((part for part, _ in counts), reverse=True)


@pytest.mark.usefixtures("every_beat")
def test_local_search_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it takes part: starts, moves and what they led to."""
    monkeypatch.setattr(warm_start, "_SOON", -1.0)
    monkeypatch.setattr(warm_start, "_QUICK_TABLES", -1.0)
    recorder = Events()
    accel_oct.solve(*data(), max_depth=4, leaf_penalty=0.001, time_limit=60.0, progress=recorder)
    told = [each for each in recorder if each.step == "local search"]
    assert told and told[-1].phase == "warm start" and set(told[-1].figures) == {"starts", "moves", "better"}


def test_a_frontier_and_near_optimal_trees_are_told_too() -> None:
    """With their own phases."""
    recorder = Events()
    accel_oct.frontier(*data(), max_depth=3, progress=recorder)
    trees = accel_oct.near_optimal(*data(), max_depth=2, leaf_penalty=0.01, within=0.02, progress=recorder)
    assert {each.phase for each in recorder} == {"frontier", "near-optimal trees"}
    assert recorder[-1].figures == {"listed": len(trees), "counted": trees.at_least}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("every_beat")
def test_threads_take_turns_in_telling(threads: int) -> None:
    """A callable is never called by two threads at once."""
    inside, meetings = threading.Lock(), []

    class Alone(Events):
        def _enter(self) -> None:
            if inside.acquire(blocking=False):
                inside.release()
            else:
                meetings.append(threading.current_thread().name)

        def __call__(self, event: ProgressEvent) -> None:
            self._enter()
            with inside:
                super().__call__(event)

    recorder = Alone()
    accel_oct.solve(*data(200, 30), max_depth=4, leaf_penalty=0.002, solver=Solver(threads=threads), progress=recorder)
    assert recorder and not meetings


# ---------------------------------------------------------------- errors


class Failing(Events):
    """Raises at the first activity of a phase."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self._phase = phase

    def __call__(self, event: ProgressEvent) -> None:
        if event.phase == self._phase:
            raise RuntimeError("the user's own")


@pytest.mark.parametrize("name", ["tables", "prices", "sets", "cuts", "ratio"])
def test_an_error_of_the_callable_comes_out_as_it_is(name: str) -> None:
    """In a phase, and at the first event."""
    arguments, phase, _ = SOLVES[name]
    with pytest.raises(RuntimeError, match="the user's own"):
        accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments}, progress=Failing(phase))

    def fail(event: ProgressEvent) -> None:
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments}, progress=fail)


# ---------------------------------------------------------------- how it is told


def test_a_heartbeat_costs_nothing_where_nobody_listens() -> None:
    """Nobody is asked for figures, whether a reporter is alone or inside another one."""

    def describe() -> Any:
        raise AssertionError("nobody wants to know")

    reporter = Reporter(None, lambda: 0.0)
    for each in (reporter, Reporter(reporter.part("step 1"), lambda: 0.0)):
        each.begin("prices", describe)
        each.change(0.5, 1.0)
        assert not each.is_heard and not each.beat()


def test_heartbeats_come_some_times_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million questions in ten seconds of a made-up clock are some tens of activities, the first at once."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    recorder = Events()
    reporter = Reporter(recorder, lambda: now[0])
    reporter.begin("tables", lambda: ("", {"sets": int(now[0])}))
    for _ in range(100_000):
        now[0] += 1e-4
        assert not reporter.beat()
    times = [each.seconds for each in recorder]
    assert times[0] == 0.0 and 40 <= len(times) <= 52 and max(np.diff(times)) < 0.3


# ---------------------------------------------------------------- a callable that asks for the end


class Stopping(Events):
    """Asks for the end from the first event of a phase on."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self._phase = phase

    def __call__(self, event: ProgressEvent) -> bool:  # type: ignore[override]
        super().__call__(event)
        return any(each.phase == self._phase for each in self)


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", SOLVES)
def test_a_callable_may_end_the_solve(name: str) -> None:
    """Whatever is computed then: a tree or none, a valid bound, and the status says who asked unless it is proven."""
    arguments, phase, _ = SOLVES[name]
    sink = Stopping(phase)
    optimum = accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments})
    result = accel_oct.solve(*data(), **{"leaf_penalty": 0.01, **arguments}, progress=sink)
    assert result.status in ("stopped", "optimal") and sink.rows == result.history
    assert result.objective <= optimum.objective + 1e-9 and result.bound >= optimum.objective - 1e-9


def test_frontiers_and_near_optimal_trees_end_at_once_where_a_callable_asks() -> None:
    """With what is known by then."""
    table = accel_oct.frontier(*data(200, 30), max_depth=5, progress=Stopping("frontier"))
    assert table.status == "stopped" and (table.bounds >= table.scores).all()
    trees = accel_oct.near_optimal(
        *data(200, 12), max_depth=3, leaf_penalty=0.0, within=0.2, progress=Stopping("near-optimal trees")
    )
    assert trees.status == "stopped" and trees.count is None


def test_only_true_asks_for_the_end() -> None:
    """A callable that happens to return something is no request."""
    result = accel_oct.solve(*data(), max_depth=3, leaf_penalty=0.01, progress=lambda event: "yes")
    assert result.status == "optimal"


# ---------------------------------------------------------------- solvers


def test_a_solver_that_goes_on_is_heard_of() -> None:
    """After the first report one comes every half second or so, although nothing is new; before it none does."""
    gate = ReportGate(math.inf)
    assert not gate.has_news(math.inf, None, 9.0)
    assert gate.has_news(5.0, None, 10.0)
    gate.passed(BoundReport(5.0, None, 1, 10.0), 10.0)
    assert not gate.has_news(5.0, None, 10.4) and gate.has_news(5.0, None, 10.6) and gate.has_news(5.0, 3.0, 10.1)


@pytest.mark.usefixtures("every_beat")
def test_nodes_are_told_during_branch_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the solver has told, and the cuts of every component with its name."""
    monkeypatch.setattr("accel_oct.mip.session._PULSE", 0.0)
    recorder = Events()
    result = accel_oct.solve(*data(), max_depth=2, leaf_penalty=0.001, config="paper", progress=recorder)
    told = [each for each in recorder if each.phase == "branch and cut"]
    nodes = [each.figures["nodes"] for each in told if "nodes" in each.figures]
    assert nodes and nodes == sorted(nodes) and max(nodes) <= max(result.nodes, 1)
    assert told[0].step == "" and told[1].step == "building the model"
    cuts = {name: figure for each in told for name, figure in each.figures.items() if name.endswith(" cuts")}
    assert cuts and all(figure <= result.stats[name.removesuffix(" cuts")]["cuts"] for name, figure in cuts.items())
