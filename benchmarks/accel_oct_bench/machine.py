"""The machine and the package versions that measurements are taken with."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from accel_oct._version import __version__

__all__ = ["machine", "versions"]

#: Packages whose version may change a measurement; those that are not installed are left out.
_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "highspy", "gurobipy", "pyscipopt", "pyomo", "pystreed", "odtlearn",
    "gosdt", "pycontree", "pydl8.5", "treefarms",
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
