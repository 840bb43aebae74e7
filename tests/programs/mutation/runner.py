"""Copies of the tree in which faults are planted and tests run."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from programs.mutation.faults import Fault

#: Compiled, and not tracked.
KERNELS = Path("accel_oct/native/lib")
#: Seconds of the processor that a test may take, besides this many times as long as without a fault.
LEAST_LIMIT, SLOWDOWN = 10.0, 5.0
#: Seconds by the clock for a run of pytest, which has its own limit for a test that waits for ever.
PATIENCE = 7200.0

CAUGHT, SURVIVED, INVALID = "caught", "SURVIVED", "invalid"


@dataclass(frozen=True)
class Verdict:
    """How the tests ended with a fault: `by` is the test that noticed, or why the fault could not be tried."""

    outcome: str
    by: str
    seconds: float
    n_tests: int


@dataclass(frozen=True)
class KnownTest:
    """A test that passes without a fault, its processor time, and the functions it reaches by file and first line."""

    name: str
    seconds: float
    reached: dict[str, list[int]]

    @property
    def file(self) -> str:
        return self.name.split("::")[0]

    def reaches(self, fault: Fault) -> bool:
        first, last = fault.lines
        return any(not last or first <= line <= last for line in self.reached.get(fault.file, []))


class BaselineError(Exception):
    """The tests cannot be run without a fault."""


class Copy:
    """A copy of the tracked files, for one run of tests at a time.

    With `quick`, the kernels are those of one CPU level, hardly optimised, as they are compiled for faults in C++.
    """

    def __init__(self, root: Path, tree: Path, quick: bool = False) -> None:
        self._tree, self._quick = tree, quick
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name)
        if (root / KERNELS).is_dir():
            shutil.copytree(root / KERNELS, tree / KERNELS, dirs_exist_ok=True)
        # Byte code that is checked by the text of its source: a fault may leave size and time of a file as they were.
        compiling = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
        subprocess.run(compiling, cwd=tree, check=False, capture_output=True)
        if quick and (problem := self._compiled()):
            raise BaselineError(problem)

    def known_tests(self, selection: tuple[str, ...]) -> tuple[list[KnownTest], list[str]]:
        """Run a selection of tests without a fault; return those that pass and the names of those that fail."""
        target = self._tree / "reached.json"
        target.unlink(missing_ok=True)
        _, output = self._pytest([*selection], {"MUTATION_REACHED": str(target)})
        if not target.is_file():
            raise BaselineError(f"{' '.join(selection)} cannot be run without a fault:\n{output[-3000:]}")
        tests, failing = [], []
        for name, known in json.loads(target.read_text(encoding="utf-8")).items():
            if known["outcome"] == "passed":
                reached = defaultdict(list)
                for file, line in known["reached"]:
                    reached[file].append(line)
                tests.append(KnownTest(name, known["seconds"], reached))
            elif known["outcome"] == "failed":
                failing.append(name)
        return tests, failing

    def tried(self, fault: Fault, known: list[KnownTest]) -> Verdict:
        """Plant a fault, run the tests that reach it, and restore the file."""
        tests = chosen(fault, known)
        began = time.perf_counter()
        if not tests:
            return Verdict(SURVIVED, "no test reaches it", 0.0, 0)
        path = self._tree / fault.file
        text = path.read_text(encoding="utf-8")
        path.write_text(fault.applied(text), encoding="utf-8")
        try:
            problem = self._compiled() if fault.is_native else ""
            outcome, by = (INVALID, "does not compile") if problem else self._run(tests)
        finally:
            path.write_text(text, encoding="utf-8")
        return Verdict(outcome, by, time.perf_counter() - began, len(tests))

    def _run(self, tests: list[KnownTest]) -> tuple[str, str]:
        limits = {test.name: LEAST_LIMIT + SLOWDOWN * test.seconds for test in tests}
        chosen = self._tree / "chosen.json"
        chosen.write_text(json.dumps(limits), encoding="utf-8")
        files = list(dict.fromkeys(test.file for test in tests))
        code, output = self._pytest(["-x", *files], {"MUTATION_CHOSEN": str(chosen)})
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        if code == 0:
            return SURVIVED, ""
        if code in (None, -signal.SIGXCPU) or "+ Timeout +" in output:
            return CAUGHT, "time limit"
        if code < 0:
            return CAUGHT, f"crash (signal {-code})"
        if code == 1:
            return CAUGHT, found.group(1) if found else "a test process that ended"
        if code in (2, 4) and "Error" in output:
            return INVALID, "does not import"
        raise BaselineError(f"pytest ended with {code}:\n{output[-3000:]}")

    def _compiled(self) -> str:
        """Compile the kernels and return what the compiler complains about."""
        # g++ is quick. A function that lost its return must not compile: what it does is undefined.
        gcc = {"CXX": "g++ -Werror=return-type"} if shutil.which("g++") else {}
        command = [sys.executable, "hatch_build.py", "--quick"]
        done = subprocess.run(command, cwd=self._tree, env=gcc | os.environ, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def _pytest(self, arguments: list[str], settings: dict[str, str]) -> tuple[int | None, str]:
        """Run pytest; return its exit code, None where it took too long, and what it wrote."""
        here = Path(__file__).resolve().parents[2]
        # hypothesis draws the same examples in every run where it finds CI set, so that a verdict can be repeated.
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (self._tree, self._tree / "backends", here))),
            "CI": "true",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # importing all plugins takes longer than most tests
            **settings,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
        command += ["-p", "programs.mutation.plugin", *arguments]
        with (self._tree / "output.txt").open("w+", encoding="utf-8", errors="replace") as written:
            process = subprocess.Popen(
                command,
                cwd=self._tree,
                env=environment,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with suppress(ProcessLookupError, PermissionError):  # processes that tests started and left behind
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            written.seek(0)
            return code, written.read()


def chosen(fault: Fault, known: list[KnownTest]) -> list[KnownTest]:
    """Return the tests that reach a fault: files by their time, and in each the quickest first.

    Calls of C++ are not traced, and a module without functions is reached by no call: all tests are tried there.
    """
    tests = [test for test in known if test.reaches(fault)]
    if fault.is_native or (not tests and not fault.lines[1]):
        tests = known
    seconds: dict[str, float] = defaultdict(float)
    for test in tests:
        seconds[test.file] += test.seconds
    return sorted(tests, key=lambda test: (seconds[test.file], test.file, test.seconds))
