"""Clusters that the library starts listen on the loopback interface only, and have no dashboard."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from accel_oct import frontier

distributed = pytest.importorskip("distributed", reason="the extra accel-oct[dask] is not installed")
psutil = pytest.importorskip("psutil", reason="comes with distributed")

ROOT = Path(__file__).parents[2]


def listening() -> set[tuple[str, int]]:
    """Address and port of every socket on which this process, or one that it has started, listens."""
    own = psutil.Process()
    found = set()
    for process in [own, *own.children(recursive=True)]:
        connections = process.net_connections if hasattr(process, "net_connections") else process.connections
        with suppress(psutil.NoSuchProcess):  # every run of a suite has a process of its own, which may have ended
            found |= {tuple(each.laddr) for each in connections("inet") if each.status == psutil.CONN_LISTEN}
    return found


def assert_private(seen: set[tuple[str, int]], before: set[tuple[str, int]]) -> None:
    new = seen - before
    assert len(new) >= 3, "a scheduler and two workers"
    assert {address for address, _ in new if not ipaddress.ip_address(address).is_loopback} == set()
    assert 8787 not in {port for _, port in new}, "the usual port of a dashboard"


@pytest.mark.slow
def test_a_frontier_on_workers_of_its_own_listens_on_loopback_only() -> None:
    """`client=2`: looked at while the workers compute."""
    before, seen = listening(), set()
    rng = np.random.default_rng(7)
    frontier(
        rng.random((150, 20)) < 0.5,
        rng.integers(0, 2, 150),
        max_depth=5,
        client=2,
        progress=lambda row: seen.update(listening()) if len(seen) < 4 else None,
    )
    assert_private(seen, before)


def test_one_function_starts_clusters() -> None:
    """Whatever else started one could forget to bind it to loopback."""
    folders = ("accel_oct", "benchmarks/accel_oct_bench", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    starts = re.compile(r"\bLocalCluster\(|\bClient\(\s*\)|\bSpecCluster\(")
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md", ".ipynb")}
    assert {path.name for path, text in texts.items() if starts.search(text)} == {"workers.py"}
