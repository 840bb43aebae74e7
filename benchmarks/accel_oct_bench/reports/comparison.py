"""Comparisons of methods on the same instances: times, gaps, means, performance profiles and statistical tests.

A *comparison* is a set of methods and all instances that every one of them ran on; nothing is averaged over different
instances. A suite gives several comparisons if some methods ran on a part of the instances, or on several backends.

A run that was not solved counts at its time limit. That is less than its true time, so a difference in favour of the
other method is understated. Pairs in which neither run was solved are left out of tests.
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

__all__ = [
    "ABLATED",
    "Clock",
    "Comparison",
    "InstanceKey",
    "PairedTest",
    "comparisons",
    "family",
    "is_solved",
    "labels",
    "paired_test",
    "performance_profile",
    "shifted_geometric_mean",
]

Clock = Literal["wall", "cpu"]
#: Fingerprint of the data, depth, penalty, constraints.
InstanceKey = tuple[str, int, float, tuple[str, ...]]
_ENCODING = re.compile(r"_(QB|QT)_\d+\Z")
#: Prefix of the names of methods that have every technique but one.
ABLATED = "all but "
#: Number of comparisons of a suite that are kept.
_MOST_COMPARISONS = 6
#: A comparison of fewer methods is kept if it has this many times the instances of a larger one.
_MORE_INSTANCES = 1.1
#: A title lists the methods if there are at most this many.
_MOST_NAMES = 4


def family(data: str) -> str:
    """Return ``iris`` for ``iris_QB_5``: the paper's tables combine the encodings of a data set."""
    return _ENCODING.sub("", data)


def instance_key(row: Row) -> InstanceKey:
    """Return the key that comparable runs have in common."""
    it = row.instance
    return it.fingerprint, it.max_depth, it.leaf_penalty, it.constraints


def is_solved(row: Row) -> bool:
    """Return whether a proof was claimed: of an optimum, or that there is no tree."""
    return row.status in ("optimal", "infeasible")


def labels(rows: Iterable[Row]) -> dict[str, str]:
    """Return the label of the method of each row, by key: its name, and settings that differ between rows."""
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
        In the order of their first rows.
    instances : tuple of InstanceKey
    runs : dict from (method, instance) to Row
        Has all pairs.
    clock : {"wall", "cpu"}
    """

    title: str
    methods: tuple[str, ...]
    instances: tuple[InstanceKey, ...]
    runs: dict[tuple[str, InstanceKey], Row]
    clock: Clock = "wall"

    def of(self, method: str) -> list[Row]:
        """Return the rows of a method, in the order of the instances."""
        return [self.runs[method, instance] for instance in self.instances]

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The data set of each instance."""
        return tuple(family(row.instance.data) for row in self.of(self.methods[0]))

    @cached_property
    def limit(self) -> float | None:
        """The common time limit of all runs; None if there is none."""
        limits = {row.method.time_limit for row in self.runs.values()}
        return limits.pop() if len(limits) == 1 else None

    def seconds(self, method: str) -> NDArray[np.float64]:
        """Return the seconds of each instance, see `taken`."""
        return np.array([self.taken(row) for row in self.of(method)])

    def taken(self, row: Row) -> float:
        """Return the seconds of a run, at least a microsecond.

        An unsolved run counts at its time limit, or at its own time if that is longer. A run that ended by itself
        without a claim of proof counts at its own time.
        """
        taken = row.wall_seconds if self.clock == "wall" or row.cpu_seconds is None else row.cpu_seconds
        ended = is_solved(row) or row.status == "finished"
        return max(taken if ended else max(taken, row.method.time_limit or 0.0), 1e-6)

    def solved(self, method: str) -> NDArray[np.bool_]:
        """Return whether each instance was solved."""
        return np.array([is_solved(row) for row in self.of(method)], dtype=bool)

    def claims(self, method: str) -> bool:
        """Return whether a method claims proofs. The times of one that does not, such as CART, are not comparable."""
        return all(row.status != "finished" for row in self.of(method))

    def gaps(self, method: str) -> NDArray[np.float64]:
        """Return the relative gap of each instance: 0 if solved, infinite without a bound or a tree."""
        values = [0.0 if is_solved(row) else np.inf if row.gap is None else row.gap for row in self.of(method)]
        return np.array(values, dtype=float)

    def best_found(self, method: str) -> int:
        """Return on how many instances no method has a better tree."""
        return sum(
            row.objective is not None and row.objective >= self._best[place] - 1e-9
            for place, row in enumerate(self.of(method))
        )

    @cached_property
    def _best(self) -> list[float]:
        found = [[self.runs[method, instance].objective for method in self.methods] for instance in self.instances]
        return [max((value for value in values if value is not None), default=np.inf) for values in found]


def comparisons(rows: Sequence[Row], clock: Clock = "wall") -> list[Comparison]:
    """Return all comparisons that the rows allow, suite by suite."""
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
    """Return a comparison for every set of methods that ran on some instance, on all instances that these ran on."""
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
        # An unfinished suite would give many comparisons that differ by one method and few instances.
        if any(methods <= set(one.methods) and len(instances) < _MORE_INSTANCES * len(one.instances) for one in found):
            continue
        chosen = tuple(method for method in order if method in methods)
        kept = {(method, instance): runs[method, instance] for method in chosen for instance in instances}
        found.append(Comparison(title, chosen, instances, kept, clock))
    found = sorted(found, key=lambda one: -len(one.instances))[:_MOST_COMPARISONS]
    return [replace(one, title=f"{title}: {_listed(one.methods)}") for one in found] if len(found) > 1 else found


def _listed(methods: tuple[str, ...]) -> str:
    return " / ".join(methods) if len(methods) <= _MOST_NAMES else f"{len(methods)} methods"


def _panels(comparison: Comparison) -> list[Comparison]:
    """Split a comparison into the paper's two figures: every technique alone, and one technique left out."""
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


# ---------------------------------------------------------------- statistics

Floats = NDArray[np.float64]
#: Level of significance of tests; confidence intervals have one minus this.
LEVEL = 0.05
_RESAMPLES = 4000
#: With at least this many data sets, they are the units of a test; otherwise instances are.
_FEWEST = 6


def shifted_geometric_mean(seconds: Floats, shift: float) -> float:
    """Return ``exp(mean(log(t + shift))) - shift``: runs much shorter than the shift count little."""
    return float(np.exp(np.mean(np.log(seconds + shift))) - shift) if len(seconds) else float("nan")


def performance_profile(comparison: Comparison, method: str) -> tuple[Floats, Floats]:
    """Return the share of instances solved within each factor of the fastest method (Dolan and Moré).

    Returns
    -------
    factors, shares : float arrays
        A step function: the share at a factor holds until the next factor.
    """
    times = {name: np.where(comparison.solved(name), comparison.seconds(name), np.inf) for name in comparison.methods}
    fastest = np.min(list(times.values()), axis=0)
    anyone = np.isfinite(fastest)
    ratios = np.sort(times[method][anyone] / fastest[anyone])
    ratios = ratios[np.isfinite(ratios)]
    return ratios, np.arange(1, len(ratios) + 1) / len(comparison.instances)


@dataclass(frozen=True)
class PairedTest:
    """A test of two methods on the same instances.

    Attributes
    ----------
    ratio : float
        Shifted geometric mean of the first over that of the second; below 1 the first is faster.
    low, high : float
        Bootstrap interval of the ratio at 95 %, data sets resampled as a whole.
    p_value : float
        Wilcoxon signed-rank test of the logarithms of the ratios: of their mean per data set, if there are enough.
    pairs, units : int
        Instances in the test, and its independent observations.
    by_data : bool
        Whether data sets, not instances, are the observations.
    censored, dropped : int
        Pairs with one run that was not solved, and pairs left out because neither was.
    at_least : bool
        All unsolved runs are of the slower method, so the true ratio is further from 1.
    """

    first: str
    second: str
    ratio: float
    low: float
    high: float
    p_value: float
    pairs: int
    units: int
    by_data: bool
    censored: int
    dropped: int
    at_least: bool = False

    @property
    def exceeds_noise(self) -> bool:
        """Whether both the test and the interval show a difference."""
        return self.p_value < LEVEL and not self.low <= 1.0 <= self.high

    @property
    def verdict(self) -> str:
        """A sentence that says whether there is a difference."""
        if not self.pairs:
            return f"{self.first} and {self.second}: neither solved any instance, so nothing can be said."
        if not self.exceeds_noise:
            return f"{self.first} against {self.second}: the difference does not exceed the noise."
        word, times = ("faster", 1 / self.ratio) if self.ratio < 1 else ("slower", self.ratio)
        where = "" if self.by_data else " on these few data sets"
        least = "at least " if self.at_least else ""
        return f"{self.first} is {least}{times:.3g} times {word} than {self.second}{where}, by more than the noise."

    @property
    def details(self) -> str:
        """The numbers of the test."""
        if not self.pairs:
            return ""
        unit = "data sets" if self.by_data else "instances, for there are too few data sets"
        parts = [
            f"ratio {self.ratio:.2g}, 95 % interval {self.low:.2g} to {self.high:.2g}",
            f"p = {self.p_value:.2g} by {self.units} {unit}",
            f"{self.pairs} pairs",
        ]
        parts += [f"{self.censored} of them with one unsolved"] if self.censored else []
        parts += [f"{self.dropped} with both unsolved left out"] if self.dropped else []
        return "; ".join(parts)

    def __str__(self) -> str:
        return f"{self.verdict} ({self.details})" if self.details else self.verdict


def paired_test(comparison: Comparison, first: str, second: str, shift: float, seed: int = 0) -> PairedTest:
    """Test two methods of a comparison; the result depends only on the rows and the seed."""
    solved = np.array([comparison.solved(first), comparison.solved(second)])
    kept = solved.any(axis=0)
    logs = np.array([np.log(comparison.seconds(name) + shift) for name in (first, second)])[:, kept]
    data = np.array(comparison.families)[kept]
    censored, dropped = int((kept & ~solved.all(axis=0)).sum()), int((~kept).sum())
    if not kept.any():
        return PairedTest(first, second, 1.0, 0.0, np.inf, 1.0, 0, 0, False, 0, dropped)
    names, place = np.unique(data, return_inverse=True)
    differences = logs[0] - logs[1]
    by_data = len(names) >= _FEWEST
    means = np.bincount(place, differences) / np.bincount(place)
    sample = means if by_data else differences
    ratios = _resampled(logs, place if by_data else np.arange(len(data)), shift, seed)
    low, high = np.quantile(ratios, [LEVEL / 2, 1 - LEVEL / 2])
    ratio = _ratio(logs.mean(axis=1), shift)
    slower_solved = solved[0 if ratio > 1 else 1, kept]
    return PairedTest(
        first,
        second,
        ratio,
        float(low),
        float(high),
        _wilcoxon(sample),
        len(data),
        len(sample),
        by_data,
        censored,
        dropped,
        at_least=censored > 0 and int((~slower_solved).sum()) == censored,
    )


def _ratio(mean_logs: Floats, shift: float) -> float:
    first, second = np.maximum(np.exp(mean_logs) - shift, 1e-9)
    return float(first / second)


def _resampled(logs: Floats, place: NDArray[np.int64], shift: float, seed: int) -> Floats:
    """Return ratios of the means over units drawn with replacement, each with all its instances."""
    n_units = int(place.max()) + 1
    sums = np.array([np.bincount(place, row, n_units) for row in logs])
    sizes = np.bincount(place, minlength=n_units)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n_units, np.full(n_units, 1 / n_units), _RESAMPLES)
    means = (drawn @ sums.T) / (drawn @ sizes)[:, None]
    first, second = np.maximum(np.exp(means) - shift, 1e-9).T
    ratios: Floats = first / second
    return ratios


def _wilcoxon(sample: Floats) -> float:
    from scipy.stats import wilcoxon

    if not np.any(np.abs(sample) > 1e-12):
        return 1.0
    return float(wilcoxon(sample).pvalue)
