"""Runs of suites: resumed after any ending, no row lost, none doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from bench_support import bench, environment, is_alive, lines_in, tiny_suite, wait_for, workers_of

from accel_oct.errors import InvalidInputError
from accel_oct_bench.command import main
from accel_oct_bench.results import LockedError, all_rows, read_results
from accel_oct_bench.rows import Row
from accel_oct_bench.runner import Step, array_of, print_step, run_suite, time_text
from accel_oct_bench.suite import Choice


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


def written(folder: Path) -> list[str]:
    """The keys in the file, one per line, whole lines alone."""
    return [json.loads(line)["key"] for line in (folder / "rows.jsonl").read_text().splitlines()]


def kill_after(run: subprocess.Popen[str], file: Path, lines: int) -> None:
    """kill -9 when the file has so many lines; the processes that it started must end by themselves."""
    wait_for(lambda: lines_in(file) >= lines)
    started = workers_of(run.pid)
    run.kill()
    run.communicate()
    assert started
    wait_for(lambda: not any(map(is_alive, started)), 20)


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """kill -9 in the middle, twice, and a torn end: in the end every run has one row, and none has changed."""
    suite, out = tiny_suite(tmp_path, 40), tmp_path / "out"
    before: list[str] = []
    for _ in range(2):
        kill_after(bench("run", suite, "--out", out, "--quiet", "--jobs", 2), out / "rows.jsonl", len(before) + 10)
        now = (out / "rows.jsonl").read_text().splitlines()
        assert now[: len(before)] == before and len(now) < 80
        before = now
    with (out / "rows.jsonl").open("a") as file:
        file.write(before[0][:50])
    done = run_suite(suite, out)
    assert (done.planned, done.there, done.made) == (80, len(before), 80 - len(before))
    assert done.statuses == {"optimal": 80}
    keys = written(out)
    assert len(keys) == len(set(keys)) == 80
    assert (out / "rows.jsonl").read_text().splitlines()[: len(before)] == before
    assert run_suite(suite, out).made == 0


def test_ctrl_c_keeps_rows_and_says_how_to_go_on(tmp_path: Path) -> None:
    """SIGINT: exit code 130, a sentence, no process left behind."""
    suite, out = tiny_suite(tmp_path, 200), tmp_path / "out"
    run = bench("run", suite, "--out", out)
    wait_for(lambda: lines_in(out / "rows.jsonl") >= 3)
    started = workers_of(run.pid)
    os.kill(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 130
    rows = len(written(out))
    assert f"interrupted: {rows} of 400 runs were made" in errors and "the same command makes the others" in errors
    assert started
    wait_for(lambda: not any(map(is_alive, started)), 20)


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    """The second ends at once, with a sentence; the first is not disturbed."""
    suite, out = tiny_suite(tmp_path, 3), tmp_path / "out"
    refused: list[str] = []

    def second(step: Step) -> None:
        if step.done == 1:
            with pytest.raises(LockedError, match="is being written to by process") as caught:
                run_suite(suite, out)
            refused.append(str(caught.value))
            assert main(["run", str(suite), "--out", str(out), "--quiet"]) == 2

    assert run_suite(suite, out, progress=second).made == 6
    assert len(refused) == 1 and len(set(written(out))) == 6


def test_an_array_of_jobs_makes_every_run_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three shares, one of them killed and started again, one after part of the folder is there; then merged."""
    suite, out = tiny_suite(tmp_path, 10), tmp_path / "out"
    run_suite(suite, out, choice=Choice(penalties=[0.005]))
    assert len(written(out)) == 2
    part = out / "parts" / "00001-of-00003.jsonl"
    kill_after(bench("run", suite, "--out", out, "--array", "1/3", "--quiet"), part, 2)
    for index in (1, 2, 3):
        run_suite(suite, out, array=(index, 3))
    (found,) = all_rows([out])
    assert len(found.rows) == len({row.key for row in found.rows}) == 20
    assert main(["merge", str(out)]) == 0 and "18 rows merged" in capsys.readouterr().out
    assert len(written(out)) == len(set(written(out))) == 20
    assert run_suite(suite, out).made == 0


def test_failed_runs_are_made_again_on_demand(tmp_path: Path) -> None:
    """A backend that is not installed today may be tomorrow: its rows count as done until --redo asks for them."""
    suite, out = tiny_suite(tmp_path, 2), tmp_path / "out"
    choice = Choice(backends=["pyomo:nosuch"])
    first = run_suite(suite, out, choice=choice)
    assert first.statuses == {"error": 4}
    assert run_suite(suite, out, choice=choice).made == 0
    assert run_suite(suite, out, choice=choice, redo=["failed"]).made == 4
    assert len(written(out)) == 4 and len(read_results(out / "redone.jsonl")) == 4
    with pytest.raises(InvalidInputError, match="redo must be 'failed'"):
        run_suite(suite, out, redo=["optimal"])


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines for progress, a summary, a description of the run; mistakes are sentences and exit code 2."""
    suite, out = tiny_suite(tmp_path, 2), tmp_path / "out"
    assert main(["run", str(suite), "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert (
        "4 runs: 4 optimal; 4 made now" in told.out and "2/4  gen-chain-3, depth 0" in told.err and "left" in told.err
    )
    described = json.loads((out / "run.json").read_text())
    assert described["suite"] == "tiny" and described["machine"]["cores"] and described["started"].endswith("Z")
    for wrong, said in [
        (["run", "quikc"], "did you mean 'quick'"),
        (["run", str(suite), "--jobs", "0"], "jobs"),
        (["run", str(suite), "--depths", "three"], "--depths must be numbers"),
        (["run", str(suite), "--array", "4/3"], "array must be INDEX/COUNT"),
        (["run", "paper", "--data-dir", str(tmp_path)], "holds no file *_enc.csv"),
        (["rum"], "rum"),
        (["merge", str(tmp_path / "nowhere")], "no folder of results"),
        (["list", "nosuch"], "no suite 'nosuch'"),
    ]:
        assert main(wrong) == 2
        assert said in capsys.readouterr().err


def test_suites_and_data_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By name; of one suite every run."""
    assert main(["list"]) == 0 and "ablation" in capsys.readouterr().out
    assert main(["list", str(tiny_suite(tmp_path, 2))]) == 0
    assert "4 runs on 4 instances" in capsys.readouterr().out
    (tmp_path / "a_enc.csv").write_text("x,target\n0,0\n1,1\n")
    assert main(["list", "--data", "--data-dir", str(tmp_path)]) == 0
    assert {"a", "gen-monk1", "sklearn-iris_QT_5"} <= set(capsys.readouterr().out.split())


def test_shares_of_arrays(tmp_path: Path) -> None:
    """INDEX/COUNT; an index beyond the count is an error."""
    assert array_of("3/10") == (3, 10)
    for wrong in ("3", "a/b", "-1/3", "slurm"):
        with pytest.raises(InvalidInputError, match="array must be INDEX/COUNT"):
            array_of(wrong)
    for index in (0, 4):
        with pytest.raises(InvalidInputError, match=f"array must be .* got {index}/3"):
            run_suite(tiny_suite(tmp_path), tmp_path / "out", array=(index, 3))


def test_estimates_are_told_in_words(tmp_path: Path) -> None:
    """From the second row on, and not after the last."""
    steps: list[Step] = []
    run_suite(tiny_suite(tmp_path, 2), tmp_path / "out", progress=steps.append)
    assert [step.done for step in steps] == [0, 1, 2, 3, 4] and steps[0].row is None
    assert [step.seconds_left is None for step in steps] == [True, True, False, False, False]
    assert isinstance(steps[1].row, Row) and steps[4].seconds_left == 0
    assert (time_text(45), time_text(600), time_text(7200)) == ("45 s", "10 min", "2.0 h")
    with (tmp_path / "log").open("w") as stream:
        for step in steps:
            print_step(step, stream)
    text = (tmp_path / "log").read_text().splitlines()
    assert len(text) == 4 and Counter("left" in line for line in text) == {True: 2, False: 2}
