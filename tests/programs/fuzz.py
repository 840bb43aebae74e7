"""Small random instances against an exact oracle: objective, status, every bound on the way, and the tree itself.

    python -m programs.fuzz --preset default --count 100000   one preset, on HiGHS
    python -m programs.fuzz --all --count 10000               every usable backend with every preset, and the frontier
    python -m programs.fuzz --frontier --count 10000          the frontier alone
    make fuzz COUNT=2000 FUZZ=--all                        the same through make

Instance number i is the same in every run, so a run can be cut short and gone on with (`--start`), or split up. What
fails is made smaller and printed as Python. The exit status tells whether something did.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from helpers.fuzz_instances import KINDS, draw
from oracles.exact import exact_profile, exact_value, tree_value
from oracles.instances import Instance

import accel_oct
from accel_oct.mip import (
    BackendUnavailableError,
    LicenceError,
    UnsupportedError,
    backend_class,
    create_backend,
    registered_names,
)
from accel_oct.solving.config import Config

#: Of the objective. What solvers add to it is in `tolerance`.
EXACT = 1e-9
#: Seconds for one solve; what is not finished then is counted apart.
TIME_LIMIT = 60.0
MAX_FAILURES = 10

#: The MIP decides nothing where the tables have decided before it; so they are off in one of the presets here.
_DEFAULT = Config.preset("default")
CONFIGS = {
    "baseline": Config.preset("baseline"),
    "paper": Config.preset("paper"),
    "default": _DEFAULT,
    "default without tables": replace(_DEFAULT, subtree_bounds=replace(_DEFAULT.subtree_bounds, tables=False)),
}


@dataclass(frozen=True)
class Way:
    """One way to an answer: a backend with a preset, or the frontier."""

    preset: str
    backend: str = "none"

    @property
    def is_small(self) -> bool:
        """Whether branch and cut is needed, which takes larger instances much longer."""
        return self.preset not in ("default", "frontier")

    def tolerance(self, instance: Instance) -> float:
        """What "optimal" claims, as docs/decisions.md has it: a solver tells less apart than the tables do."""
        weights = np.ones(len(instance.y)) if instance.sample_weight is None else instance.sample_weight
        if not self.is_small:
            return EXACT
        if np.any(weights % 1):
            return EXACT + 1e-6 + 2e-6 / len(weights)
        tiny = 0 < instance.leaf_penalty * weights.sum() < 1e-5
        return EXACT + (2e-6 / float(weights.sum()) if tiny else 0.0)

    def problems(self, instance: Instance) -> Iterator[str]:
        """Everything that is wrong with the answer."""
        yield from _frontier_problems(instance) if self.preset == "frontier" else self._solve_problems(instance)

    def _solve_problems(self, instance: Instance) -> Iterator[str]:
        result = accel_oct.solve(
            instance.X,
            instance.y,
            max_depth=instance.max_depth,
            leaf_penalty=instance.leaf_penalty,
            sample_weight=instance.sample_weight,
            solver=self.backend,
            config=CONFIGS[self.preset],
            time_limit=TIME_LIMIT,
        )
        optimum, tolerance = exact_value(instance), self.tolerance(instance)
        if result.status != "optimal":
            if result.seconds >= 0.9 * TIME_LIMIT and result.objective <= optimum + EXACT <= result.bound + 2 * EXACT:
                raise Unfinished
            yield f"status {result.status!r} after {result.seconds:.2f} s"
        if abs(result.objective - optimum) > tolerance:
            yield f"objective {result.objective!r}, but the optimum is {optimum!r}"
        if result.bound < optimum - tolerance or result.bound != result.objective:
            yield f"bound {result.bound!r}, objective {result.objective!r}, optimum {optimum!r}"
        for row in result.history:
            if row.bound < optimum - tolerance or row.objective > optimum + EXACT:
                yield f"history says objective {row.objective!r}, bound {row.bound!r}; the optimum is {optimum!r}"
        value = tree_value(instance, result.tree.feature.tolist(), result.tree.label.tolist())
        if abs(value - result.objective) > 1e-12:
            yield f"objective {result.objective!r}, but the tree is worth {value!r}"

    def call(self, instance: Instance) -> str:
        """The call as Python."""
        if self.preset == "frontier":
            return f"accel_oct.frontier(X, y, max_depth={instance.max_depth}, sample_weight=w)"
        config = f'config="{self.preset}"'
        if self.preset not in ("baseline", "paper", "default"):
            config = 'config=Config.from_mapping({"preset": "default", "subtree_bounds": {"tables": False}})'
        return (
            f"accel_oct.solve(X, y, max_depth={instance.max_depth}, leaf_penalty={instance.leaf_penalty!r}, "
            f'sample_weight=w, solver="{self.backend}", {config})'
        )


class Unfinished(Exception):
    """The time limit struck: what is known is valid, but not a proof."""


def _frontier_problems(instance: Instance) -> Iterator[str]:
    table = accel_oct.frontier(
        instance.X, instance.y, max_depth=instance.max_depth, sample_weight=instance.sample_weight
    )
    if table.status != "optimal":
        yield f"status {table.status!r}"
    free = replace(instance, leaf_penalty=0.0)
    for point, best in zip(table, exact_profile(instance), strict=True):
        tree = point.tree
        value = tree_value(free, tree.feature.tolist(), tree.label.tolist())
        if max(abs(number - best) for number in (point.score, point.bound, value)) > EXACT:
            yield f"{point.max_leaves} leaves: {point}, a tree worth {value!r}, but the best is {best!r}"
        if tree.n_leaves > point.max_leaves:
            yield f"{point.max_leaves} leaves allowed, {tree.n_leaves} used"
    objective, optimum = table.best(instance.leaf_penalty).objective, exact_value(instance)
    if abs(objective - optimum) > EXACT:
        yield f"best({instance.leaf_penalty!r}) is {objective!r}, but the optimum is {optimum!r}"


# ---------------------------------------------------------------- what fails


def problems_of(way: Way, instance: Instance) -> list[str]:
    """What is wrong, an exception included."""
    try:
        return list(way.problems(instance))
    except (Unfinished, LicenceError, UnsupportedError):
        raise
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def smaller(instance: Instance) -> Iterator[Instance]:
    """The instance without a row, without a column, without weights, one level less deep."""
    n_samples, n_features = instance.X.shape
    for row in range(n_samples if n_samples > 1 else 0):
        keep = np.arange(n_samples) != row
        weights = None if instance.sample_weight is None else instance.sample_weight[keep]
        if weights is None or weights.any():
            yield replace(instance, X=instance.X[keep], y=instance.y[keep], sample_weight=weights)
    for column in range(n_features if n_features > 1 else 0):
        yield replace(instance, X=np.delete(instance.X, column, axis=1))
    if instance.sample_weight is not None:
        yield replace(instance, sample_weight=None)
    if instance.max_depth > 1:
        yield replace(instance, max_depth=instance.max_depth - 1)


def shrunk(way: Way, instance: Instance, seconds: float = 30.0) -> Instance:
    """A small instance that fails too, by leaving out one thing at a time."""
    until = time.monotonic() + seconds
    while True:
        for candidate in smaller(instance):
            if time.monotonic() > until:
                return instance
            try:
                failing = bool(problems_of(way, candidate))
            except (Unfinished, LicenceError, UnsupportedError):
                failing = False
            if failing:
                instance = candidate
                break
        else:
            return instance


def reproduction(way: Way, instance: Instance) -> str:
    """The failing call as a Python script."""
    weights = None if instance.sample_weight is None else instance.sample_weight.tolist()
    lines = ["import numpy as np", "import accel_oct"]
    if way.preset == "default without tables":
        lines.append("from accel_oct.solving.config import Config")
    lines += [
        f"X = np.array({instance.X.astype(int).tolist()})",
        f"y = np.array({instance.y.tolist()})",
        f"w = {weights}",
        f"result = {way.call(instance)}",
        f"# the optimum is {exact_value(instance)!r}; found:",
        *(f"# - {problem}" for problem in problems_of(way, instance)),
    ]
    return "\n".join(lines)


# ---------------------------------------------------------------- the run


def usable_backends() -> list[str]:
    """Every backend that can be made here, variants included; the mock only takes what needs no solver."""
    names = []
    for name in registered_names():
        cls = backend_class(name)
        if not cls.availability():
            continue
        for full in [f"{name}:{variant}" for variant in cls.variants()] or [name]:
            try:
                create_backend(full)
            except BackendUnavailableError:
                continue
            names.append(full)
    return names


def all_ways() -> list[Way]:
    ways = [Way("frontier")]
    for backend in usable_backends():
        if backend == "mock":
            ways.append(Way("default", backend))
        else:
            ways += [Way(preset, backend) for preset in CONFIGS if preset != "default"]
    return ways


@dataclass
class Counts:
    """What has been tried: by way, kind and weights, or by way alone."""

    tried: Counter[tuple[Way, str, str]] = field(default_factory=Counter)
    wrong: Counter[Way] = field(default_factory=Counter)
    unfinished: Counter[Way] = field(default_factory=Counter)

    def table(self) -> str:
        """For the documentation, in Markdown."""
        kinds, weights = tuple(dict.fromkeys(KINDS)), ("unit", "integer", "real")
        head = [
            "preset",
            "backend",
            "instances",
            *kinds,
            *(f"{name} weights" for name in weights),
            "unfinished",
            "wrong",
        ]
        lines = [f"| {' | '.join(head)} |", "| --- | --- " + "| ---: " * (len(head) - 2) + "|"]
        for way in sorted({way for way, _, _ in self.tried}, key=str):
            mine = {key[1:]: number for key, number in self.tried.items() if key[0] == way}
            numbers = [sum(mine.values())]
            numbers += [sum(number for key, number in mine.items() if name in key) for name in (*kinds, *weights)]
            numbers += [self.unfinished[way], self.wrong[way]]
            lines.append(f"| {way.preset} | {way.backend} | {' | '.join(map(str, numbers))} |")
        return "\n".join(lines)


def weight_kind(instance: Instance) -> str:
    if instance.sample_weight is None:
        return "unit"
    return "real" if np.any(instance.sample_weight % 1) else "integer"


def fuzz(ways: list[Way], start: int, count: int, progress: Any = None) -> tuple[Counts, list[str], int]:
    """Try instances `start` to `start + count`, each in one of the ways; returns also failures and the next number."""
    counts, failures = Counts(), []
    for number in range(start, start + count):
        # A multiplier of the position, so that every way meets every kind.
        way = ways[(number // len(KINDS)) % len(ways)]
        kind, instance = draw(number, small=way.is_small)
        try:
            problems = problems_of(way, instance)
        except Unfinished:
            problems = []
            counts.unfinished[way] += 1
        except (LicenceError, UnsupportedError) as error:
            problems = [f"{type(error).__name__}: {error}"]
        except KeyboardInterrupt:
            return counts, failures, number
        counts.tried[way, kind, weight_kind(instance)] += 1
        if problems:
            counts.wrong[way] += 1
            least = shrunk(way, instance) if len(failures) < MAX_FAILURES else instance
            failures.append(f"# instance {number} ({kind}): {problems[0]}\n{reproduction(way, least)}\n")
        if progress is not None:
            progress(number - start + 1, len(failures))
        if len(failures) >= MAX_FAILURES:
            return counts, failures, number + 1
    return counts, failures, start + count


class ProgressLine:
    """Says now and then how far it is: in place on a terminal, else one line in half a minute."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._began = self._last = time.monotonic()
        self._on_terminal = sys.stderr.isatty()

    def __call__(self, done: int, n_wrong: int) -> None:
        now = time.monotonic()
        if done < self.count and now - self._last < (1.0 if self._on_terminal else 30.0):
            return
        self._last = now
        rate = done / max(now - self._began, 1e-9)
        text = f"{done}/{self.count}  {rate:.1f}/s  {(self.count - done) / rate:.0f} s left  {n_wrong} wrong"
        last = "\n" if not self._on_terminal or done == self.count else ""
        print(f"\r{text}   " if self._on_terminal else text, end=last, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of instances")
    parser.add_argument("--start", type=int, default=0, help="number of the first one")
    parser.add_argument("--preset", choices=CONFIGS, default="default")
    parser.add_argument("--backend", default="highs", help="with --preset")
    parser.add_argument("--frontier", action="store_true", help="the frontier instead of solves")
    parser.add_argument("--all", action="store_true", help="every usable backend and preset, and the frontier")
    chosen = parser.parse_args(arguments)
    ways = [Way(chosen.preset, chosen.backend)]
    if chosen.all:
        ways = all_ways()
    elif chosen.frontier:
        ways = [Way("frontier")]
    began = time.perf_counter()
    counts, failures, following = fuzz(ways, chosen.start, chosen.count, ProgressLine(chosen.count))
    print("\n".join([*failures, counts.table()]))
    print(f"\ninstances {chosen.start} to {following - 1}, {time.perf_counter() - began:.0f} s, {len(failures)} wrong")
    if following < chosen.start + chosen.count:
        print(f"ended early; go on with --start {following} --count {chosen.start + chosen.count - following}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
