"""Solves in processes of their own, with limits of time and memory that hold from outside."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from accel_oct.errors import AccelOctError
from accel_oct_bench.rows import Row, Task

__all__ = ["Cancelled", "Isolation"]

#: Time for the process to load all code.
_READY_SECONDS = 1200.0
_POLL_SECONDS = 0.05
#: A solve is ended from outside when it exceeds its time limit by half of the limit plus this.
_GRACE_SECONDS = 10.0
#: Time for loading data, licences and code, before the clock starts.
_PREPARE_SECONDS = 600.0
_OUTCOME = {entry.name for entry in fields(Row)}


class Cancelled(AccelOctError):
    """A solve was ended because the whole run is ending."""


class _Ended(Exception):
    """The process that solves are forked from has ended."""


class Isolation:
    """Runs tasks one after the other, each in a process forked from a warmed-up one.

    Parameters
    ----------
    command : sequence of str
        The command that starts that process; it follows the protocol of `accel_oct_bench.worker`.

    Attributes
    ----------
    cancelled : threading.Event
        If another thread sets it, the running solve is killed and `run` raises `Cancelled`.
    """

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "accel_oct_bench.worker")) -> None:
        self._command = command
        self.cancelled = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._threads = 1
        self._solving = 0
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: IO[bytes] | None = None
        self._hello: dict[str, Any] = {}

    def __enter__(self) -> Isolation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, task: Task) -> Row:
        """Make one run and return its row, however the run ends; raise `Cancelled` if it is cancelled."""
        started = _now()
        try:
            self._start(task.method.threads)
            assert self._process is not None and self._process.stdin is not None and self._errors is not None
            told = self._errors.seek(0, os.SEEK_END)
            self._process.stdin.write(task.to_json().encode() + b"\n")
            self._process.stdin.flush()
            outcome = self._watched(task, told)
        except (_Ended, BrokenPipeError):
            _kill(self._solving)
            outcome = _crash(f"the process that solves start from has ended: {self._last_words(0)}")
            self.close()
        except BaseException:
            self.close()
            raise
        known = {name: value for name, value in outcome.items() if name in _OUTCOME}
        versions, machine = self._hello.get("versions", {}), self._hello.get("machine", {})
        return task.row(versions=versions, machine=machine, **{"started": started, **known})

    def close(self) -> None:
        """End the process; the next `run` starts a new one."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._errors is not None:
            self._errors.close()

    # ------------------------------------------------------------ the process

    def _start(self, threads: int) -> None:
        if self._process is not None and self._process.poll() is None and self._threads == threads:
            return
        self.close()
        self._threads, self._messages = threads, queue.Queue()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process, see `close`
        known = {name: os.environ.get(name, str(threads)) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | known | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
        )
        threading.Thread(target=_read, args=(self._process.stdout, self._messages), daemon=True).start()
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            message = self._next()
            if message is not None:
                self._hello = message
                return
        raise _Ended

    def _next(self) -> dict[str, Any] | None:
        """Return the next message, or None if there is none within `_POLL_SECONDS`."""
        if self.cancelled.is_set():
            raise Cancelled("the run was cancelled")
        try:
            message = self._messages.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return None
        if message is None:
            raise _Ended
        return message

    # ------------------------------------------------------------ one solve

    def _watched(self, task: Task, told: int) -> dict[str, Any]:
        """Return the outcome of the running solve; end it when it exceeds a limit."""
        outcome: dict[str, Any] | None = None
        self._solving, began, started = 0, time.monotonic(), _now()
        deadline = began + _PREPARE_SECONDS
        while True:
            message = self._next()
            if message is None:
                if self._solving and outcome is None:
                    outcome = _excess(
                        self._solving, time.monotonic() - began, deadline - began, task.method.memory_limit_mb
                    )
                    if outcome is not None:
                        _kill(self._solving)
            elif "pid" in message:
                self._solving = message["pid"]
            elif "begun" in message:
                began, started = time.monotonic(), _now()
                limit = task.method.time_limit
                deadline = began + (float("inf") if limit is None else 1.5 * limit + _GRACE_SECONDS)
            elif "outcome" in message:
                outcome = outcome or message["outcome"]
            elif "ended" in message:
                self._solving = 0
                if outcome is None:
                    outcome = _crash(f"{_ending(message['ended'])}{self._last_words(told)}", time.monotonic() - began)
                return outcome | {"started": started}

    def _last_words(self, told: int) -> str:
        """Return the last line of standard error after position `told`."""
        if self._errors is None or self._errors.closed:
            return ""
        self._errors.seek(told)
        lines = [line for line in self._errors.read()[-10_000:].decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1].strip()[:200]}" if lines else ""


def _read(stream: IO[bytes] | None, messages: queue.Queue[dict[str, Any] | None]) -> None:
    assert stream is not None
    with suppress(ValueError, OSError), stream:
        for line in stream:
            messages.put(json.loads(line))
    messages.put(None)


def _excess(pid: int, seconds: float, most_seconds: float, most_mb: float | None) -> dict[str, Any] | None:
    """Return the outcome of a solve that exceeds a limit; None if it exceeds none."""
    resident = 0.0 if most_mb is None else _resident_mb(pid)
    if most_mb is not None and resident > most_mb:
        error = f"it took more than {most_mb:g} MB"
        return {"status": "memory_limit", "error": error, "wall_seconds": seconds, "peak_mb": resident}
    if seconds > most_seconds:
        error = f"it had to be ended after {seconds:.1f} s"
        return {"status": "time_limit", "error": error, "wall_seconds": seconds}
    return None


def _crash(error: str, seconds: float = 0.0) -> dict[str, Any]:
    return {"status": "crashed", "error": error, "wall_seconds": seconds}


def _ending(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    try:
        return f"the process was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was killed by signal {-code}"


def _kill(pid: int) -> None:
    """Kill a solve and the programs that it started; 0 stands for no solve."""
    for kill in (os.killpg, os.kill) if pid else ():
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _resident_mb(pid: int) -> float:
    """Return the memory of a process and of its children; 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        children = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text(encoding="ascii").split()
        ]
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 + sum(map(_resident_mb, children))


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
