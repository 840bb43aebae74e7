"""Rows put side by side: which methods ran on which instances, and what counts as solved, time and gap.

A *comparison* is a set of methods and all instances that every one of them ran on; nothing is averaged over different
instances. Suites make several where some methods ran on a part of the instances only, or on several backends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct_bench.rows import Row

__all__ = ["ABLATED", "Clock", "Comparison", "InstanceKey", "comparisons", "family", "is_solved", "labels"]

Clock = Literal["wall", "cpu"]
#: Fingerprint of the data, depth, penalty, constraints.
InstanceKey = tuple[str, int, float, tuple[str, ...]]
_ENCODING = re.compile(r"_(QB|QT)_\d+\Z")
#: How methods are named that have every technique but one.
ABLATED = "all but "
#: So many comparisons at most; one with fewer methods must have so many times the instances; titles name so many.
_MOST, _MORE, _NAMED = 6, 1.1, 4


def family(data: str) -> str:
    """``iris`` of ``iris_QB_5``: the paper's tables take the encodings of a data set together."""
    return _ENCODING.sub("", data)


def instance_key(row: Row) -> InstanceKey:
    """What makes two runs comparable."""
    it = row.instance
    return it.fingerprint, it.max_depth, it.leaf_penalty, it.constraints


def is_solved(row: Row) -> bool:
    """A proof was claimed: of an optimum, or that there is no tree."""
    return row.status in ("optimal", "infeasible")


def labels(rows: Iterable[Row]) -> dict[str, str]:
    """What to call the method of each row, by the row's key: its name, and what differs among rows of that name."""
    rows = list(rows)
    fields = ("package", "backend", "preset", "threads", "seed", "time_limit")
    found = {}
    for name in {row.method.name for row in rows}:
        mine = [row for row in rows if row.method.name == name]
        differing = [field for field in fields if len({getattr(row.method, field) for row in mine}) > 1]
        for row in mine:
            parts = [_said(field, getattr(row.method, field)) for field in differing]
            found[row.key] = f"{name} ({', '.join(parts)})" if parts else name
    return found


def _said(field: str, value: object) -> str:
    words = {"threads": f"{value} threads", "seed": f"seed {value}", "time_limit": f"{value} s"}
    return words.get(field, str(value))


@dataclass(frozen=True)
class Comparison:
    """Methods on the same instances.

    Attributes
    ----------
    title : str
    methods : tuple of str
        In the order in which they were first met.
    instances : tuple of InstanceKey
    runs : dict from (method, instance) to Row
        Complete.
    clock : {"wall", "cpu"}
    """

    title: str
    methods: tuple[str, ...]
    instances: tuple[InstanceKey, ...]
    runs: dict[tuple[str, InstanceKey], Row]
    clock: Clock = "wall"

    def of(self, method: str) -> list[Row]:
        """The rows of a method, in the order of the instances."""
        return [self.runs[method, instance] for instance in self.instances]

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The data set of each instance."""
        return tuple(family(row.instance.data) for row in self.of(self.methods[0]))

    @cached_property
    def limit(self) -> float | None:
        """The one time limit of all runs; None where there are several, or none."""
        limits = {row.method.time_limit for row in self.runs.values()}
        return limits.pop() if len(limits) == 1 else None

    def seconds(self, method: str) -> NDArray[np.float64]:
        """Of every instance; an unsolved one counts at the time limit, or at what it took if that is more.

        What ended by itself without a claim of proof counts as it is: it would not have used more time.
        """
        return np.array([self.taken(row) for row in self.of(method)])

    def taken(self, row: Row) -> float:
        """Seconds that a run counts with."""
        taken = row.wall_seconds if self.clock == "wall" or row.cpu_seconds is None else row.cpu_seconds
        # A clock of a microsecond: nothing takes no time at all.
        ended = is_solved(row) or row.status == "finished"
        return max(taken if ended else max(taken, row.method.time_limit or 0.0), 1e-6)

    def solved(self, method: str) -> NDArray[np.bool_]:
        return np.array([is_solved(row) for row in self.of(method)], dtype=bool)

    def claims(self, method: str) -> bool:
        """Whether a method is after proofs: one that ends without a claim, as CART does, takes time of another kind."""
        return all(row.status != "finished" for row in self.of(method))

    def gaps(self, method: str) -> NDArray[np.float64]:
        """Relative gap of every instance: 0 where solved, infinite where there is no bound or no tree."""
        values = [0.0 if is_solved(row) else np.inf if row.gap is None else row.gap for row in self.of(method)]
        return np.array(values, dtype=float)

    def best_found(self, method: str) -> int:
        """On how many instances nobody has a better tree."""
        return sum(
            row.objective is not None and row.objective >= self._best[place] - 1e-9
            for place, row in enumerate(self.of(method))
        )

    @cached_property
    def _best(self) -> list[float]:
        found = [[self.runs[method, instance].objective for method in self.methods] for instance in self.instances]
        return [max((value for value in values if value is not None), default=np.inf) for values in found]


def comparisons(rows: Sequence[Row], clock: Clock = "wall") -> list[Comparison]:
    """All comparisons that the rows allow, suite by suite."""
    made: list[Comparison] = []
    for suite in dict.fromkeys(row.suite for row in rows):
        mine = [row for row in rows if row.suite == suite]
        names = [(row.method.name, row.method.backend) for row in mine]
        backends = dict.fromkeys(backend for _, backend in names)
        shared = Counter(name for name, _ in set(names))
        if len(backends) > 1 and all(count > 1 for count in shared.values()) and len(shared) > 2:
            parts = {
                f"{suite} on {backend}": [row for row in mine if row.method.backend == backend] for backend in backends
            }
        else:
            parts = {suite: mine}
        for title, part in parts.items():
            for one in _nested(title, part, clock):
                made += _panels(one)
    return made


def _nested(title: str, rows: list[Row], clock: Clock) -> list[Comparison]:
    """For every set of methods that some instance was run by, all instances that these methods ran on."""
    named = labels(rows)
    order = list(dict.fromkeys(named[row.key] for row in rows))
    runs = {(named[row.key], instance_key(row)): row for row in rows}
    ran: dict[InstanceKey, set[str]] = {}
    for method, instance in runs:
        ran.setdefault(instance, set()).add(method)
    sets = Counter(frozenset(methods) for methods in ran.values())
    found: list[Comparison] = []
    for methods in sorted(sets, key=lambda methods: (-len(methods), -sets[methods])):
        instances = tuple(instance for instance, those in ran.items() if methods <= those)
        # Suites that are not finished would repeat themselves with a method less and an instance more.
        if any(methods <= set(one.methods) and len(instances) < _MORE * len(one.instances) for one in found):
            continue
        chosen = tuple(method for method in order if method in methods)
        kept = {(method, instance): runs[method, instance] for method in chosen for instance in instances}
        found.append(Comparison(title, chosen, instances, kept, clock))
    found = sorted(found, key=lambda one: -len(one.instances))[:_MOST]
    return [replace(one, title=f"{title}: {_listed(one.methods)}") for one in found] if len(found) > 1 else found


def _listed(methods: tuple[str, ...]) -> str:
    return " / ".join(methods) if len(methods) <= _NAMED else f"{len(methods)} methods"


def _panels(comparison: Comparison) -> list[Comparison]:
    """The paper's two figures: every technique alone, and all techniques with one left out."""
    ablated = [method for method in comparison.methods if method.startswith(ABLATED)]
    if not ablated:
        return [comparison]
    alone = tuple(method for method in comparison.methods if method not in ablated)
    rest = tuple(method for method in comparison.methods if method in (*ablated, "all", "none"))
    parts = {"in isolation": alone, "one left out": rest}
    return [
        _restricted(comparison, f"{comparison.title}, {word}", methods) for word, methods in parts.items() if methods
    ]


def _restricted(comparison: Comparison, title: str, methods: tuple[str, ...]) -> Comparison:
    runs = {key: row for key, row in comparison.runs.items() if key[0] in methods}
    return Comparison(title, methods, comparison.instances, runs, comparison.clock)
