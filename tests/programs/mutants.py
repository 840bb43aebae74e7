"""Do the tests notice when something breaks? Plants one fault at a time, from the list in `mutants.toml`.

    make mutants                    all of them
    make mutants ONLY=session       those whose file, tests or description contain the word

Each fault is planted in a copy of the tracked files, and the tests that should notice are run there. It is an error if
they pass, if the text to replace does not occur exactly once, or if the tests do not pass on the unharmed copy. A fault
in C++ is compiled first, for one CPU level and hardly optimised; by g++, which is quick, where there is one.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "programs" / "mutants.toml"
#: Compiled, and not tracked.
KERNELS = Path("accel_oct/native/lib")
#: Seconds for one run of tests; a fault that makes them hang is noticed too.
TIMEOUT = 600

Selection = tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """One fault: what is replaced by what, who should notice, and what it breaks."""

    file: str
    old: str
    new: str
    tests: Selection
    breaks: str

    def matches(self, word: str) -> bool:
        return any(word in text for text in (self.file, self.breaks, *self.tests))

    def plant(self, tree: Path) -> None:
        path = tree / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")
        if path.suffix in (".cpp", ".hpp"):
            compile_kernels(tree)


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended."""

    code: int
    seconds: float
    output: str

    @property
    def passed(self) -> int:
        found = re.search(r"(\d+) passed", self.output)
        return int(found.group(1)) if found else 0

    @property
    def verdict(self) -> str:
        """Only failing tests are a catch: a fault that keeps them from being collected says nothing about them."""
        return {0: "SURVIVED", 1: "caught"}.get(self.code, f"BROKEN (pytest ended with {self.code})")

    @property
    def reason(self) -> str:
        """The first test that failed."""
        found = re.search(r"^(?:FAILED|ERROR) \S*::(\S+)", self.output, re.MULTILINE)
        return found.group(1) if found else "timeout" if "Timeout" in self.output else ""


def read_list(word: str) -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    mutants = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
    return [mutant for mutant in mutants if mutant.matches(word)]


def misplaced(mutants: Iterable[Mutant], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the list itself."""
    for mutant in mutants:
        path = root / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else 0
        if count != 1:
            yield f"{mutant.file}: {mutant.old!r} occurs {count} times instead of once"
        elif mutant.old == mutant.new:
            yield f"{mutant.file}: {mutant.old!r} is replaced by itself"


def copy_tracked(target: Path) -> Path:
    """The tracked files as they are in the working tree, and the compiled kernels."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    shutil.copytree(ROOT / KERNELS, target / KERNELS)
    return target


def compile_kernels(tree: Path) -> None:
    gcc = {"CXX": "g++"} if shutil.which("g++") else {}
    command = [sys.executable, "hatch_build.py", "--quick"]
    done = subprocess.run(command, cwd=tree, env=gcc | os.environ, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"a fault does not compile: {done.stderr}")


def run_tests(tree: Path, selection: Selection) -> Outcome:
    # hypothesis draws the same examples in every run where it finds CI set, so that a verdict can be repeated.
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'backends'}", "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *selection]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        code, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, output = 1, "Timeout"
    return Outcome(code, time.perf_counter() - began, output)


def check_import(tree: Path) -> None:
    """The tests of a copy must import the copy and not what is installed."""
    code = "import accel_oct, accel_oct_backends as b; print(accel_oct.__file__, b.__file__)"
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'backends'}"}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=environment, check=True, capture_output=True, text=True
    )
    if any(not Path(name).is_relative_to(tree) for name in found.stdout.split()):
        sys.exit(f"a copy in {tree} does not import itself, but {found.stdout}")


class Slots:
    """Working copies, for one run of tests each at a time; faults are planted where the tests had passed before."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._free: queue.Queue[Path] = queue.Queue()
        for number in range(count):
            self._free.put(copy_tracked(folder / f"slot{number}"))

    def run(self, selection: Selection, mutant: Mutant | None = None) -> Outcome:
        slot = self._free.get()
        try:
            if mutant is not None:
                shutil.rmtree(slot)
                # Without byte code: a file that changes within a second and keeps its size would not be compiled again.
                shutil.copytree(self._saved(slot), slot, ignore=shutil.ignore_patterns("*.pyc"))
                mutant.plant(slot)
            return run_tests(slot, selection)
        finally:
            self._free.put(slot)

    def save(self) -> None:
        """Keep all slots as they are now."""
        for slot in self._folder.glob("slot*"):
            shutil.copytree(slot, self._saved(slot))

    def _saved(self, slot: Path) -> Path:
        return self._folder / f"saved-{slot.name}"


def baseline(slots: Slots, mutants: list[Mutant], pool: ThreadPoolExecutor) -> dict[Selection, str]:
    """Run every selection of tests once without a fault; returns those that do not pass, and why."""
    selections = sorted({mutant.tests for mutant in mutants})
    bad: dict[Selection, str] = {}
    jobs = {pool.submit(slots.run, selection): selection for selection in selections}
    for number, job in enumerate(as_completed(jobs), 1):
        outcome, selection = job.result(), jobs[job]
        if outcome.code != 0 or outcome.passed == 0:
            bad[selection] = "nothing but skips" if outcome.code == 0 else outcome.output[-2000:]
        state = "FAILS" if selection in bad else "passes"
        say(f"[{number}/{len(jobs)}] {outcome.seconds:5.1f} s  without a fault {state}: {' '.join(selection)}")
    return bad


def try_all(slots: Slots, mutants: list[Mutant], pool: ThreadPoolExecutor) -> list[tuple[Mutant, Outcome]]:
    jobs = {pool.submit(slots.run, mutant.tests, mutant): mutant for mutant in mutants}
    found: dict[Mutant, Outcome] = {}
    for number, job in enumerate(as_completed(jobs), 1):
        mutant, outcome = jobs[job], job.result()
        found[mutant] = outcome
        line = f"{outcome.seconds:5.1f} s  {outcome.verdict}: {mutant.file}: {mutant.breaks}"
        say(f"[{number}/{len(jobs)}] {line}")
    return [(mutant, found[mutant]) for mutant in mutants]


def table(rows: list[tuple[Mutant, Outcome]]) -> str:
    lines = ["| file | what it breaks | verdict | noticed by | seconds |", "| --- | --- | --- | --- | ---: |"]
    for mutant, outcome in rows:
        cells = (mutant.file, mutant.breaks, outcome.verdict, outcome.reason, f"{outcome.seconds:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="mutants whose file, tests or text contain it")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    chosen = parser.parse_args(arguments)
    mutants = read_list(chosen.only)
    problems = list(misplaced(mutants))
    if problems or not mutants:
        say("\n".join(problems) or f"no mutant matches {chosen.only!r}")
        return 1
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        slots = Slots(Path(folder).resolve(), chosen.jobs)
        check_import(Path(folder).resolve() / "slot0")
        failing = baseline(slots, mutants, pool)
        slots.save()
        rows = try_all(slots, [mutant for mutant in mutants if mutant.tests not in failing], pool)
    bad = sum(outcome.verdict != "caught" for _, outcome in rows)
    say(f"\n{table(rows)}\n\n{len(rows)} mutants, {bad} not caught, {time.perf_counter() - began:.0f} s")
    for selection, why in failing.items():
        count = sum(mutant.tests == selection for mutant in mutants)
        say(f"\n{count} more could not be tried: {' '.join(selection)} must pass without a fault, but\n{why}")
    return 1 if bad or failing else 0


if __name__ == "__main__":
    sys.exit(main())
