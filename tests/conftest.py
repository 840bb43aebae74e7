"""Settings that hold for every test."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Examples of a property that are drawn: `daily` in `make test`, `ci` in `make test-slow`, `long` in `make test-long`.
# There are no deadlines, because machines are shared. Fixtures are not renewed between examples: they only switch
# between ways of computing.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
settings.register_profile("daily", _COMMON, max_examples=30)
settings.register_profile("ci", _COMMON, max_examples=100)
settings.register_profile("long", _COMMON, max_examples=500)
settings.load_profile("daily")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="run every N-th of the selected tests, from the K-th on")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a test beyond those that its mark `daily` allows as slow, and beyond `slow` more as long."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("daily") is not None and item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("daily")
        assert mark is not None
        count = min(mark.args[0], len(found))
        chosen = {place * len(found) // count for place in range(count)}  # some of every parameter
        others = [item for place, item in enumerate(found) if place not in chosen]
        more = min(mark.kwargs.get("slow", len(others)), len(others))
        slow = {place * len(others) // more for place in range(more)}
        for place, item in enumerate(others):
            item.add_marker(pytest.mark.slow if place in slow else pytest.mark.long)


@cache
def copt_may_crash() -> bool:
    """Return whether the processor is one on which COPT ends processes now and then (see docs/solver-faults.md)."""
    flags = Path("/proc/cpuinfo")
    return "avx512_vp2intersect" in (flags.read_text("utf-8") if flags.exists() else "")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that run COPT where it may end the process; ACCEL_OCT_TEST_COPT=1 runs them."""
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    runs_copt = item.name.startswith("test_copt") or any(isinstance(v, str) and v == "copt" for v in values)
    if runs_copt and copt_may_crash() and os.environ.get("ACCEL_OCT_TEST_COPT") != "1":
        pytest.skip(
            "COPT 8.0.7 ends processes by illegal instructions now and then on processors with avx512_vp2intersect: "
            "ACCEL_OCT_TEST_COPT=1 runs this test"
        )


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_select_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not in the part that `--part` names; marks have selected before."""
    if (part := config.getoption("part")) is None:
        return
    first, _, step = part.partition("/")
    if not (first.isdigit() and step.isdigit() and 1 <= int(first) <= int(step)):
        raise pytest.UsageError(f"--part must be K/N with K from 1 to N, got {part!r}")
    chosen = items[int(first) - 1 :: int(step)]
    kept = set(map(id, chosen))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = chosen
