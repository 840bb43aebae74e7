"""The process that solves are forked from: it loads all code once, and forks for every solve.

``python -m accel_oct_bench.worker`` reads tasks from standard input, one line of JSON each. A crash or a kill ends only
the fork. The process itself runs no MIP solver and starts no thread, since neither survives a fork. It writes messages
to standard output, one line of JSON each:

- ``{"ready": seconds, "machine": ..., "versions": ...}`` once;
- per task ``{"pid": ...}``, ``{"begun": ...}`` when data and solver are loaded, ``{"outcome": ...}``, and
  ``{"ended": exit code, or minus the signal}``.

When standard input ends, because its owner ended, the process and a running solve end too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from accel_oct_bench.machine import machine, versions
from accel_oct_bench.rows import Task, finite
from accel_oct_bench.solving import prepare, solve_task, warm_up

__all__ = ["main"]

_CHUNK = 1 << 16
#: If this environment variable is set, no code is loaded in advance: for tests, not for measurements.
COLD = "ACCEL_OCT_BENCH_COLD"


def main() -> int:
    """Serve tasks until standard input ends."""
    channel = os.dup(1)
    os.dup2(2, 1)  # solvers print to standard error
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner handles Ctrl-C
    seconds = 0.0 if os.environ.get(COLD) else warm_up()
    _send(channel, {"ready": seconds, "machine": machine(), "versions": versions()})
    held = b""
    while True:
        while b"\n" not in held:
            chunk = os.read(0, _CHUNK)
            if not chunk:
                return 0
            held += chunk
        line, held = held.split(b"\n", 1)
        if not _served(line.decode(), channel):
            return 0


def _served(line: str, channel: int) -> bool:
    """Fork for one task and pass on its messages; return False when standard input has ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(channel)  # so that the owner notices the end of this process, not of the solve
        _solve_and_exit(line, writing)
    os.close(writing)
    _send(channel, {"pid": pid})
    while True:
        ready, _, _ = select.select([reading, 0], [], [])
        if 0 in ready:  # no task is sent while one is running: input has ended
            for kill in (os.killpg, os.kill):  # it may not have its own group yet
                with suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        chunk = os.read(reading, _CHUNK)
        if not chunk:
            break
        _write(channel, chunk)
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    _send(channel, {"ended": os.waitstatus_to_exitcode(status)})
    return True


def _solve_and_exit(line: str, writing: int) -> None:
    """Prepare and solve in the fork, send the outcome, and end the process."""
    code = 1
    try:
        os.setsid()  # so that programs that it starts are killed with it
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        task = Task.from_json(line)
        try:
            data = prepare(task)
        except Exception as error:
            _send(writing, {"outcome": {"status": "error", "error": " ".join(str(error).split()), "wall_seconds": 0.0}})
        else:
            _send(writing, {"begun": True})
            _send(writing, {"outcome": solve_task(task, data)})
        code = 0
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _send(target: int, message: dict[str, Any]) -> None:
    _write(target, json.dumps(finite(message), allow_nan=False).encode() + b"\n")


def _write(target: int, content: bytes) -> None:
    while content:
        content = content[os.write(target, content) :]


if __name__ == "__main__":
    sys.exit(main())
