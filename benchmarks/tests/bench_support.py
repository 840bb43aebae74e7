"""What the tests of the benchmarks share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from accel_oct_bench.data import Registry, instance_of
from accel_oct_bench.rows import Method, Row, Task
from accel_oct_bench.solving import solve_task
from accel_oct_bench.worker import COLD

#: Trees of a single leaf need no compiled code, so that processes that are not warmed up are quick.
TINY = """
description = "many quick runs"
[[instances]]
data = ["gen-chain-3", "gen-chain-4"]
max_depth = 0
leaf_penalty = {penalties}
[[methods]]
name = "leaf"
preset = "bendoct"
"""


def published_data() -> Path:
    """The folder with the published encodings, or a skip that says how to provide it."""
    folder = Path(os.environ.get("ACCEL_OCT_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (folder / "raw").is_dir():
        pytest.skip(f"published data not found in {folder}: set ACCEL_OCT_DATA to the folder that has `raw/`")
    return folder


def tiny_suite(folder: Path, penalties: int = 4) -> Path:
    """A suite file with twice as many runs as penalties."""
    path = folder / "tiny.toml"
    path.write_text(TINY.format(penalties=[round(0.001 * n, 6) for n in range(penalties)]), encoding="utf-8")
    return path


def a_task(data: str = "gen-chain-3", depth: int = 0, penalty: float = 0.01, **method: object) -> Task:
    values = {"name": "leaf", "preset": "bendoct", **method}
    return Task("tiny", instance_of(Registry().load(data), depth, penalty), Method(**values))  # type: ignore[arg-type]


def a_row(status: str = "optimal", penalty: float = 0.01, **more: object) -> Row:
    task = a_task(penalty=penalty)
    values = {"wall_seconds": 0.5, "versions": {}, "machine": {}, "started": "2026-01-31T12:00:00Z", **more}
    return task.row(status=status, **values)


def environment() -> dict[str, str]:
    """For processes that import what this one imports, and skip the warm-up."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), COLD: "1"}


def bench(*arguments: object) -> subprocess.Popen[str]:
    """``accel-oct bench`` in a process of its own."""
    command = [sys.executable, "-m", "accel_oct_bench", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def is_alive(pid: int) -> bool:
    """Not gone, and not dead and waiting to be looked at by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def workers_of(pid: int) -> list[int]:
    """Processes that a process started, and theirs."""
    try:
        children = [int(c) for t in Path(f"/proc/{pid}/task").iterdir() for c in (t / "children").read_text().split()]
    except OSError:
        return []
    children = list(filter(is_alive, children))
    return [*children, *(below for child in children for below in workers_of(child))]


# ---------------------------------------------------------------- rows for reports and verify, solved in this process

LIMITED = ("recall(1, at_least=0.9)", "max_leaves(4)")


@cache
def solved(
    data: str, depth: int = 2, penalty: float = 0.01, constraints: tuple[str, ...] = (), **method: object
) -> Row:
    """A row as `bench run` writes it."""
    loaded = Registry().load(data)
    instance = instance_of(loaded, depth, penalty, constraints)
    how = Method(**{"name": "default", **method})  # type: ignore[arg-type]
    found = solve_task(Task("test", instance, how), loaded)
    shared = {"versions": {"accel_oct": "0"}, "machine": {"cpu": "a", "cores": 1}, "started": "2026-01-31T12:00:00Z"}
    return Task("test", instance, how).row(**shared, **found)


@cache
def real_rows() -> tuple[Row, ...]:
    """Two methods on eight instances, one of them with constraints."""
    rows = []
    for preset in ("default", "frontier"):
        for data in ("gen-monk1", "gen-chain-6"):
            for penalty in (0.04, 0.002):
                for depth in (2, 3):
                    rows.append(solved(data, depth, penalty, name=preset, preset=preset))
    rows.append(solved("gen-monk2", 3, 0.001, LIMITED))
    return tuple(rows)


def written(rows: tuple[Row, ...] | list[Row], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(row.to_json() + "\n" for row in rows), encoding="utf-8")
    return folder
