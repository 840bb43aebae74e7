"""Do the tests notice when something breaks? Plant generated faults, one at a time, and run the tests that reach them.

    make mutants                                   60 faults from everywhere
    make mutants COUNT=100 ONLY=exact SEED=2       100 others, in a room, module, class or function
    make mutants ONLY=exact.bounds TESTS=tests/exact/test_search_bounds.py

Faults come from the syntax tree of Python and the tokens of C++: comparisons, operators, constants, conditions,
dropped statements, swapped arguments. Each is planted in a copy of the tracked files. The tests are those of its room
(`rooms.toml`), which must pass without a fault; of these the ones that reach the function are run. Survivors are named
with file, function, operator and change; those that `rooms.toml` lists as equivalent are counted apart.
"""

from __future__ import annotations

import argparse
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from programs.mutation.cpp_faults import cpp_faults
from programs.mutation.faults import Fault, shuffled
from programs.mutation.python_faults import python_faults
from programs.mutation.runner import CAUGHT, INVALID, SURVIVED, BaselineError, Copy, KnownTest, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {"accel_oct": "", "backends/accel_oct_backends": "backends"}
Key = tuple[tuple[str, ...], bool]


@dataclass(frozen=True)
class Rooms:
    """What `rooms.toml` says: which tests belong to which code, and which survivors are equivalent."""

    tests: dict[str, list[str]]
    equivalent: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def read(cls) -> Rooms:
        return cls(**tomllib.loads(Path(__file__).with_name("rooms.toml").read_text(encoding="utf-8")))

    def tests_of(self, fault: Fault) -> tuple[str, ...]:
        """Return the entry of the longest name that the fault is below; without one, the folder of its room."""
        names = [name for name in self.tests if fault.is_below(name)]
        return tuple(self.tests[max(names, key=len)]) if names else (f"tests/{fault.function.split('.')[0]}",)

    def excuse(self, fault: Fault) -> str:
        """Return why the fault changes nothing that a test could see, or an empty string."""
        for entry in self.equivalent:
            if (entry["function"], entry["operator"]) == (fault.function, fault.operator):
                return entry["reason"]
        return ""


def all_faults(root: Path = ROOT, packages: dict[str, str] = PACKAGES) -> Iterator[Fault]:
    """Yield every fault of the packages, which are given by folder with the dotted name they are called by."""
    for folder, prefix in packages.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".hpp", ".cpp"):
                inner = path.relative_to(root / folder).with_suffix("")
                names = [part for part in (prefix, *inner.parts) if part not in ("", "__init__")]
                generate = python_faults if path.suffix == ".py" else cpp_faults
                yield from generate(
                    path.read_text(encoding="utf-8"), path.relative_to(root).as_posix(), ".".join(names)
                )


class Session:
    """Tries faults in their order on several copies of the tree, until enough of them were valid."""

    def __init__(self, rooms: Rooms, folder: Path, jobs: int, root: Path = ROOT) -> None:
        self._rooms, self._folder, self._jobs, self._root = rooms, folder, jobs, root
        self._lock = threading.Lock()
        self._copies: dict[bool, queue.Queue[Copy]] = {}
        self._known: dict[Key, list[KnownTest]] = {}
        self.failing: set[str] = set()

    def run(self, faults: list[Fault], count: int) -> list[tuple[Fault, Verdict]]:
        """Return the first valid faults with their verdicts, and the invalid ones before them."""
        with ThreadPoolExecutor(self._jobs) as pool:
            keys = {self._key(fault) for fault in faults[:count]}
            list(pool.map(self._know, sorted(keys)))
            tried: list[tuple[Fault, Verdict]] = []
            rest = faults
            while rest and (missing := count - sum(verdict.outcome != INVALID for _, verdict in tried)) > 0:
                batch, rest = rest[:missing], rest[missing:]
                tried += zip(batch, pool.map(self._try, batch), strict=True)
            return tried

    def _key(self, fault: Fault) -> Key:
        return self._rooms.tests_of(fault), fault.is_native

    def _borrow(self, quick: bool) -> tuple[queue.Queue[Copy], Copy]:
        with self._lock:
            if quick not in self._copies:
                self._copies[quick] = queue.Queue()
                for number in range(self._jobs):
                    tree = self._folder / f"{'quick' if quick else 'plain'}{number}"
                    self._copies[quick].put(Copy(self._root, tree, quick))
        copies = self._copies[quick]
        return copies, copies.get()

    def _know(self, key: Key) -> None:
        if key in self._known:
            return
        copies, copy = self._borrow(key[1])
        try:
            began = time.perf_counter()
            tests, failing = copy.known_tests(key[0])
            self._known[key] = tests
            self.failing.update(failing)
            say(f"{time.perf_counter() - began:6.1f} s  {len(tests)} tests pass without a fault: {' '.join(key[0])}")
        finally:
            copies.put(copy)

    def _try(self, fault: Fault) -> Verdict:
        self._know(self._key(fault))
        copies, copy = self._borrow(fault.is_native)
        try:
            verdict = copy.tried(fault, self._known[self._key(fault)])
        finally:
            copies.put(copy)
        say(f"{verdict.seconds:6.1f} s  {verdict.outcome} {fault.name} | {verdict.by or f'{verdict.n_tests} tests'}")
        return verdict


def survivors(tried: list[tuple[Fault, Verdict]], rooms: Rooms, root: Path = ROOT) -> str:
    """Return survivors with their changes, and why where they are known to be equivalent."""
    parts = []
    for fault, verdict in tried:
        if verdict.outcome == SURVIVED:
            reason = rooms.excuse(fault)
            state = f"equivalent: {reason}" if reason else verdict.by or f"survived {verdict.n_tests} tests"
            parts.append(f"{fault.name}\n    {state}\n{fault.diff((root / fault.file).read_text(encoding='utf-8'))}")
    return "\n\n".join(parts)


def table(tried: list[tuple[Fault, Verdict]], rooms: Rooms) -> str:
    """Return counts by room."""
    lines = ["| room | faults | caught | by a time limit or a crash | equivalent | survived |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    by_room: dict[str, list[tuple[Fault, Verdict]]] = {}
    for fault, verdict in tried:
        if verdict.outcome != INVALID:
            room = fault.function.split(".")[0] + (" (C++)" if fault.is_native else "")
            by_room.setdefault(room, []).append((fault, verdict))
    if len(by_room) > 1:
        by_room = dict(sorted(by_room.items())) | {"all": [pair for pairs in by_room.values() for pair in pairs]}
    for room, pairs in by_room.items():
        caught = [verdict for _, verdict in pairs if verdict.outcome == CAUGHT]
        ended = sum("::" not in verdict.by for verdict in caught)
        equivalent = sum(bool(rooms.excuse(fault)) for fault, verdict in pairs if verdict.outcome == SURVIVED)
        survived = len(pairs) - len(caught) - equivalent
        lines.append(f"| {room} | {len(pairs)} | {len(caught)} | {ended} | {equivalent} | {survived} |")
    return "\n".join(lines)


def say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAMES", help="dotted names, separated by commas")
    parser.add_argument("--operator", default="", help="only faults of this operator")
    parser.add_argument("--count", type=int, default=60, help="how many faults")
    parser.add_argument("--seed", type=int, default=0, help="draws the faults")
    parser.add_argument("--tests", default="", help="tests instead of those of the room, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="runs of tests at a time")
    parser.add_argument("--list", action="store_true", help="show the faults and try none")
    options = parser.parse_args(arguments)
    rooms = Rooms.read()
    if options.tests:
        rooms = Rooms({"": options.tests.split(",")}, rooms.equivalent)
    everything = list(all_faults())
    faults = [fault for fault in everything if any(map(fault.is_below, options.only.split(",")))]
    faults = [fault for fault in shuffled(faults, options.seed) if options.operator in ("", fault.operator)]
    if not faults:
        parser.error(f"no fault in {options.only or 'the packages'} {options.operator}")
    if options.list:
        for fault in faults[: options.count]:
            say(f"{fault.name}\n{fault.diff((ROOT / fault.file).read_text(encoding='utf-8'))}")
        return 0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        session = Session(rooms, Path(folder).resolve(), options.jobs)
        try:
            tried = session.run(faults, options.count)
        except BaselineError as error:
            say(str(error))
            return 2
    invalid = sum(verdict.outcome == INVALID for _, verdict in tried)
    say(f"\n{survivors(tried, rooms)}\n\n{table(tried, rooms)}\n")
    say(f"{len(faults)} faults to draw from; {invalid} invalid ones left out; {time.perf_counter() - began:.0f} s")
    for name in sorted(session.failing):
        say(f"fails without a fault, left out: {name}")
    there = {(fault.function, fault.operator) for fault in everything}
    for entry in rooms.equivalent:
        if (entry["function"], entry["operator"]) not in there:
            say(f"listed as equivalent, and no longer there: {entry['function']}: {entry['operator']}")
    unexcused = any(verdict.outcome == SURVIVED and not rooms.excuse(fault) for fault, verdict in tried)
    return 1 if unexcused or session.failing else 0


if __name__ == "__main__":
    sys.exit(main())
