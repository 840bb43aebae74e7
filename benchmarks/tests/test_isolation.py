"""Solves in processes of their own: what becomes of those that crash, hang or swell is a row."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bench_support import a_task, environment, wait_for, workers_of

from accel_oct.tree import DecisionTree
from accel_oct_bench import isolation, solving
from accel_oct_bench.data import Registry, instance_of
from accel_oct_bench.isolation import Cancelled, Isolation
from accel_oct_bench.rows import Task
from accel_oct_bench.solving import prepare, solve_task

#: The worker of the library whose solves do what the seed says.
WORKER = """
import ctypes, os, sys, time
from accel_oct_bench import worker

def misbehave(task, data):
    seed = task.method.seed
    if seed == 1:
        ctypes.string_at(0)
    if seed == 2:
        print("the last words", file=sys.stderr)
        os._exit(7)
    if seed == 3:
        time.sleep(60)
    if seed == 4:
        held = bytearray(600 << 20)
        held[:: 4096] = b"x" * len(held[:: 4096])
        time.sleep(60)
    if seed == 5:
        os.kill(os.getppid(), 9)
        time.sleep(60)
    print("what solvers print")
    return solve_task(task, data)

solve_task, worker.solve_task = worker.solve_task, misbehave
sys.exit(worker.main())
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Isolation:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(isolation, "_GRACE_SECONDS", 0.2)
    return Isolation((sys.executable, "-c", WORKER))


def test_every_ending_is_a_row(place: Isolation) -> None:
    """A segmentation fault, an exit, a hang, too much memory, the loss of everything: each a row, and the next runs."""
    with place:
        good = place.run(a_task())
        assert (good.status, good.n_leaves, good.error) == ("optimal", 1, None)
        assert good.objective == good.bound and good.peak_mb is not None and 20 < good.peak_mb < 1000
        crashed = place.run(a_task(seed=1))
        assert crashed.status == "crashed" and "SIGSEGV" in str(crashed.error)
        ended = place.run(a_task(seed=2))
        assert ended.status == "crashed" and ended.error == "the process ended with code 7: the last words"
        hanging = place.run(a_task(seed=3, time_limit=0.2))
        assert hanging.status == "time_limit" and 0.4 < hanging.wall_seconds < 10 and hanging.objective is None
        swollen = place.run(a_task(seed=4, memory_limit_mb=500))
        assert swollen.status == "memory_limit" and "500 MB" in str(swollen.error) and (swollen.peak_mb or 0) > 500
        began = time.monotonic()
        lost = place.run(a_task(seed=5))
        assert time.monotonic() - began < 30  # not when the solve, which sleeps for a minute, ends
        assert lost.status == "crashed" and "has ended" in str(lost.error)
        again = place.run(a_task())
        assert again.status == "optimal" and again.versions["accel_oct"] and again.machine["cores"]


def test_a_cancelled_solve_leaves_no_process(place: Isolation) -> None:
    """Whoever waits for it is released, and the processes are gone."""
    before = set(workers_of(os.getpid()))
    threading.Timer(0.5, place.cancelled.set).start()
    with pytest.raises(Cancelled):
        place.run(a_task(seed=3))
    wait_for(lambda: not set(workers_of(os.getpid())) - before, 10)


def test_errors_are_sentences() -> None:
    """A backend that is not there, data that changed, a depth that makes no sense."""
    task = a_task(preset="default", backend="nosuch", depth=1)
    outcome = solve_task(task, Registry().load("gen-chain-3"))
    assert outcome["status"] == "error" and "unknown backend 'nosuch'" in outcome["error"]
    changed = replace(task, instance=replace(task.instance, fingerprint="0"))
    with pytest.raises(Exception, match="'gen-chain-3' are not the same here"):
        prepare(changed)
    peer = solve_task(a_task(package="nosuch"), Registry().load("gen-chain-3"))
    assert peer["status"] == "error" and peer["error"]


def test_what_is_measured_is_what_was_asked_for(tmp_path: Path) -> None:
    """Constraints, groups and the route by the frontier: objective, tree and proof are those of the instance."""
    (tmp_path / "fairness").mkdir()
    # The column a tells the class but for one row in six, and the group likewise.
    rows = [f"{g},{g ^ (k == 5)},{k % 2},{g ^ (k == 4)}" for g in (0, 1) for k in range(6)]
    (tmp_path / "fairness" / "small.csv").write_text("group,a,b,target\n" + "\n".join(rows) + "\n")
    (tmp_path / "other_enc.csv").write_text("x,target\n0,0\n1,1\n")
    data = Registry(tmp_path).load("fairness/small")
    assert data.X.shape == (12, 2) and data.group is not None
    task = a_task(preset="default")
    values = []
    for texts in ((), ("statistical_parity(group, at_most=0.1, positive=1)",), ("max_leaves(1)",)):
        instance = instance_of(data, 2, 0.0, texts)
        outcome = solve_task(Task("t", instance, task.method, str(tmp_path)), data)
        assert outcome["status"] == "optimal" and outcome["bound"] == outcome["objective"]
        tree = DecisionTree.from_dict(outcome["tree"])
        assert outcome["objective"] == pytest.approx((tree.predict(data.X) == data.y).mean())
        values.append(outcome["objective"])
    assert values[0] > values[1] >= values[2]
    line = solve_task(Task("t", instance_of(data, 2, 0.0), replace(task.method, preset="frontier", backend=None)), data)
    assert line["status"] == "optimal" and line["objective"] == values[0]
    by_frontier = replace(task.method, preset="frontier", backend=None)
    one_leaf = solve_task(Task("t", instance_of(data, 2, 0.0, ("max_leaves(1)",)), by_frontier), data)
    assert one_leaf["status"] == "optimal" and one_leaf["objective"] == values[2]
    parity = ("statistical_parity(group, at_most=0.1, positive=1)",)
    refused = solve_task(Task("t", instance_of(data, 2, 0.0, parity), by_frontier), data)
    assert refused["status"] == "error" and "frontier does not support" in refused["error"]


def test_a_worker_ends_with_its_owner(place: Isolation) -> None:
    """When nobody holds its input any more, it ends, and the solve that it was running too."""
    before = set(workers_of(os.getpid()))
    thread = threading.Thread(target=lambda: place.run(a_task(seed=3)), daemon=True)
    thread.start()
    wait_for(lambda: len(set(workers_of(os.getpid())) - before) == 2)
    time.sleep(0.3)
    assert place._process is not None and place._process.stdin is not None
    place._process.stdin.close()
    wait_for(lambda: not set(workers_of(os.getpid())) - before, 10)
    thread.join(10)


def test_what_is_paid_once_is_paid_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small problem before each run has the method, the constraints and all classes of the real one."""
    seen: list[tuple[object, ...]] = []
    monkeypatch.setattr(solving, "_outcome", lambda *given, weight=1: seen.append((*given, weight)) or {})
    task = a_task("gen-balance-scale", depth=3, preset="default")
    task = replace(task, instance=replace(task.instance, constraints=("recall('B', at_least=0.1)",)))
    data = prepare(task)
    (instance, method, tiny, narrow), (*_, wide) = seen
    assert (narrow, wide) == (1, 1000)
    assert len(data.y) == 625 and len(tiny.y) == 18 and set(tiny.y) == set(data.y)  # type: ignore[attr-defined]
    assert instance.constraints == task.instance.constraints and instance.max_depth == 3  # type: ignore[attr-defined]
    assert method.preset == "default"  # type: ignore[attr-defined]
