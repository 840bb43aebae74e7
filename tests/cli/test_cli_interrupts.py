"""Ctrl-C at the command line, as a terminal sends it: to every process of a pipe at once."""

from __future__ import annotations

import array
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from accel_oct import OptimalTreeClassifier
from accel_oct.cli import main
from accel_oct.support.stopping import kept_interrupts, run_interruptibly

fcntl = pytest.importorskip("fcntl", reason="process groups are Unix's")
termios = pytest.importorskip("termios")


@pytest.fixture(autouse=True)
def interrupts_are_raised() -> Iterator[None]:
    """Python's own handler, also where the tests were started in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels by chance: a proof at depth 6 takes minutes."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("hard") / "data.csv"
    X, y = rng.integers(0, 2, (600, 60)), rng.integers(0, 2, 600)
    lines = [",".join([*(f"x{j}" for j in range(60)), "class"])]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(data: Path, *more: str) -> list[str]:
    fit = ["fit", str(data), "-t", "class", "-d", "6", "--leaf-penalty", "0.0001", "--time-limit", "100", *more]
    return [sys.executable, "-u", "-m", "accel_oct", *fit]


def in_group(leader: int) -> Any:
    def begin() -> None:
        os.setpgid(0, leader)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored when started from a shell's background job

    return begin


def start(arguments: list[str], leader: int = 0, **streams: Any) -> subprocess.Popen[str]:
    """A process of a group; the first of them leads it."""
    process = subprocess.Popen(arguments, text=True, preexec_fn=in_group(leader), **streams)
    _started.append(process)
    return process


_started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """Processes that a failed test leaves behind are ended."""
    yield
    while _started:
        process = _started.pop()
        if process.poll() is None:
            process.kill()
        process.wait(30)


def wait_for(path: Path, text: str, seconds: float = 90.0) -> None:
    """Until a file holds a text."""
    until = time.monotonic() + seconds
    while text not in path.read_text(encoding="utf-8"):
        assert time.monotonic() < until, path.read_text(encoding="utf-8")
        time.sleep(0.1)


def unread(pipe: IO[str]) -> int:
    """How many bytes the reader of a pipe has left in it."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_ctrl_c_in_a_pipe_keeps_the_tree(hard: Path, both: bool, tmp_path: Path) -> None:
    """``accel-oct fit ... | tee log``, and with ``2>&1``: tee dies of the same Ctrl-C, the model is saved, code 130."""
    model, log, errors = tmp_path / "model.json", tmp_path / "log", tmp_path / "errors"
    log.touch()
    with errors.open("w", encoding="utf-8") as stream:
        fit = start(
            command(hard, "-o", str(model)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else stream,
        )
        output: IO[str] | None = fit.stdout
        assert output is not None
        tee = start(["tee", str(log)], fit.pid, stdin=output, stdout=subprocess.DEVNULL)
        output.close()
        wait_for(log if both else errors, "objective 0.")
        os.killpg(fit.pid, signal.SIGINT)
        assert tee.wait(30) == -signal.SIGINT
        assert fit.wait(60) == 130
    told = errors.read_text(encoding="utf-8")
    assert "Traceback" not in told and "BrokenPipe" not in told and "Exception ignored" not in told
    if not both:
        assert "the tree is not proven optimal (interrupted)" in told
    found = OptimalTreeClassifier.from_json(model)
    assert found.status_ == "interrupted" and 0.5 < found.objective_ < found.bound_ <= 1
    assert main(["check", str(model), str(hard)]) == 3


@pytest.mark.parametrize("form", [pytest.param([], marks=pytest.mark.slow), ["--json"]])
def test_ctrl_c_tells_the_tree_and_its_gap(hard: Path, form: list[str], tmp_path: Path) -> None:
    """On standard output, as text and as JSON, where somebody still reads it."""
    errors, out = tmp_path / "errors", tmp_path / "out"
    with errors.open("w", encoding="utf-8") as stream, out.open("w", encoding="utf-8") as output:
        fit = start(command(hard, *form), stdout=output, stderr=stream)
        wait_for(errors, "objective 0.")
        os.killpg(fit.pid, signal.SIGINT)
        assert fit.wait(60) == 130
    told = out.read_text(encoding="utf-8")
    if form:
        document = json.loads(told)
        assert document["exit_code"] == 130 and document["status"] == "interrupted" and document["gap"] > 0
    else:
        assert told.startswith("if x") and "not proven (interrupted): gap " in told.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["fit", "-", "-t", "class", "-q"], pytest.param(["predict", "MODEL", "-"], marks=pytest.mark.slow)]
)
def test_ctrl_c_before_there_is_anything(arguments: list[str], hard: Path, tmp_path: Path) -> None:
    """While the table is waited for: one sentence, exit code 130, no file."""
    model = tmp_path / "model.json"
    OptimalTreeClassifier(1).fit(np.arange(8)[:, None] % 2, np.arange(8) % 2).to_json(model)
    given = [str(model) if argument == "MODEL" else argument for argument in arguments]
    out = tmp_path / "out"
    waiting = start(
        [sys.executable, "-m", "accel_oct", *given, "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert waiting.stdin is not None
    waiting.stdin.write("x0,class\n")
    waiting.stdin.flush()
    waited = time.monotonic() + 90
    while unread(waiting.stdin):
        assert time.monotonic() < waited
        time.sleep(0.1)
    time.sleep(0.5)
    os.killpg(waiting.pid, signal.SIGINT)
    told = waiting.communicate(timeout=30)[1]
    assert waiting.returncode == 130
    assert told == "accel-oct: interrupted: stopped before there was a result\n" and not out.exists()


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)  # Python handles it at one of the next instructions


def test_ctrl_c_between_pieces_of_work_waits_for_the_next() -> None:
    """Nothing is raised; the next work is told to stop as soon as it begins, and the one after that is not."""
    told: list[str] = []
    stop = threading.Event()
    with kept_interrupts() as pressed:
        press()
        assert pressed.is_set()
        run_interruptibly(lambda: stop.wait(20), lambda: (told.append("stop"), stop.set())[0])
        run_interruptibly(lambda: told.append("done"), lambda: told.append("again"))
    assert told == ["stop", "done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_between_pieces_of_work_is_raised() -> None:
    """Who presses twice wants out."""
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        press()
        press()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_a_second_ctrl_c_during_work_is_raised_when_it_has_stopped() -> None:
    """As without keeping."""
    stop = threading.Event()
    timers = [threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)) for delay in (0.2, 0.5)]
    for timer in timers:
        timer.start()
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        run_interruptibly(lambda: stop.wait(1.0), lambda: None)
