"""Time, memory, the machine and package versions. Importing this loads nothing heavy, not even NumPy."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple, TypeVar

from accel_oct._version import __version__

__all__ = ["Timed", "cpu_seconds", "least_seconds", "machine", "peak_mb", "timed", "versions"]

#: Packages whose version may change a measurement; those that are not installed are left out.
_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "highspy", "gurobipy", "pyscipopt", "pyomo", "coptpy", "cplex", "xpress",
    "pystreed", "odtlearn", "gosdt", "pycontree", "pydl8.5", "treefarms", "imodels", "numba", "pytrees-rs",
    "tree-praxis", "licketysplit", "econml",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return the processor, the number of cores, the version of Python and the operating system."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


def versions() -> dict[str, str]:
    """Return the versions of the library, of Python, and of every package that solves or computes."""
    found = {"accel_oct": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def cpu_seconds() -> float:
    """Return the CPU seconds of all threads of this process and of the programs that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_mb() -> float:
    """Return the largest resident memory of this process so far, in 2**20 bytes."""
    try:
        # getrusage would count the memory of the process that this one was forked from.
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


Value = TypeVar("Value")


class Timed(NamedTuple):
    """Wall and CPU seconds of a call."""

    seconds: float
    cpu: float


def timed(work: Callable[[], Value]) -> tuple[Value, Timed]:
    """Call a function and return its result and its time."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, Timed(time.perf_counter() - wall, time.process_time() - cpu)


def least_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least wall time of some calls, after one call that loads code."""
    work()
    return min(timed(work)[1].seconds for _ in range(repeats))
