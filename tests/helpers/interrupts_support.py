"""A solve in a process of its own that gets SIGINT, so that a stray signal cannot end the test run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_SCRIPT = """
import json, os, signal, sys, threading
import numpy as np
from accel_oct.mip import Event, FunctionHandler, Needs, SolveOptions, create_backend
from accel_oct.mip.conformance.suite import hard_knapsack

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when started from a shell's background job
backend = create_backend(sys.argv[1])
model = hard_knapsack(120, 25)
backend.load(model)
backend.set_start(np.zeros(model.n_columns))
timers = []

def watch(point):  # the start is the first point: the clock runs once the solve does
    if not timers:
        timers.append(threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)))
        timers[0].start()

result = backend.solve(SolveOptions(time_limit=60.0), FunctionHandler(watch, Needs([Event.CANDIDATE])))
timers[0].join()
assert np.all(model.rows.violation(result.x) <= 1e-6)
print(json.dumps({
    "termination": result.termination.value, "status": result.status.value,
    "objective": result.objective, "bound": result.bound, "seconds": result.seconds,
}))
"""


def interrupted_solve(name: str) -> dict[str, Any]:
    """Solve a model that takes minutes, with SIGINT after a moment; returns what the solve returned."""
    run = subprocess.run([sys.executable, "-c", _SCRIPT, name], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    # A solver may have words of its own for the interrupt, which come out when the process ends.
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 1, run.stdout
    outcome: dict[str, Any] = json.loads(lines[0])
    return outcome
