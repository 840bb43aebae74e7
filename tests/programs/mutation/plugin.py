"""Pytest plugin of `make mutants`: which functions each test reaches, or chosen tests in order and within limits.

The file that ``MUTATION_REACHED`` names is written, the one that ``MUTATION_CHOSEN`` names is read. Times are those of
the processor: a busy machine must not look like a fault.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pytest

#: Bytes of address space: a fault that asks for more memory fails, and leaves the machine alone.
ADDRESS_SPACE = 16 << 30

Hook = Generator[None, object, object]


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get("MUTATION_REACHED"):
        config.pluginmanager.register(Recorder(Path(path), config.rootpath))
    if path := os.environ.get("MUTATION_CHOSEN"):
        config.pluginmanager.register(Chooser(json.loads(Path(path).read_text(encoding="utf-8"))))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Chooser:
    """Keeps the tests that are listed with their limits in seconds, in the order of the list.

    The system ends the process with SIGXCPU when a test takes longer, also inside of compiled code.
    """

    def __init__(self, limits: dict[str, float]) -> None:
        self._limits = limits

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in self._limits if name in found]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        end = int(time.process_time() + self._limits[item.nodeid]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


class Recorder:
    """Traces calls. What fixtures and the import of a test module reach counts for all tests of the module."""

    def __init__(self, target: Path, root: Path) -> None:
        self._target, self._root = target, root
        self._seconds: dict[str, float] = {}
        self._outcomes: dict[str, set[str]] = defaultdict(set)
        self._codes: dict[str, dict[int, CodeType]] = defaultdict(dict)

    @contextmanager
    def _traced(self, name: str) -> Generator[None, None, None]:
        codes = self._codes[name]

        def trace(frame: FrameType, event: str, argument: object) -> None:
            codes[id(frame.f_code)] = frame.f_code

        threading.settrace(trace)
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Hook:
        with self._traced(collector.nodeid.split("::")[0]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Hook:
        with self._traced(item.nodeid.split("::")[0]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Hook:
        with self._traced(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Hook:
        began = time.process_time()
        result = yield
        self._seconds[item.nodeid] = time.process_time() - began
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes[report.nodeid].add(report.outcome)

    def pytest_sessionfinish(self) -> None:
        places = {name: self._places(codes.values()) for name, codes in self._codes.items()}
        tests = {
            name: {
                "seconds": seconds,
                "outcome": "passed" if self._outcomes[name] == {"passed"} else min(self._outcomes[name]),
                "reached": sorted(places.get(name, set()) | places.get(name.split("::")[0], set())),
            }
            for name, seconds in self._seconds.items()
        }
        self._target.write_text(json.dumps(tests), encoding="utf-8")

    def _places(self, codes: object) -> set[tuple[str, int]]:
        """Return file and first line of the functions that are below the root."""
        root = f"{self._root}{os.sep}"
        return {
            (code.co_filename[len(root) :], code.co_firstlineno)
            for code in codes  # type: ignore[attr-defined]
            if code.co_filename.startswith(root)
        }
