"""Means, profiles and tests of times.

A run that was not solved counts at its time limit. That is too little, so a difference in favour of the other method is
understated, never overstated; pairs in which neither was solved say nothing and are left out of the test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct_bench.reports.comparing import Comparison

__all__ = ["LEVEL", "PairedTest", "paired_test", "performance_profile", "shifted_geometric_mean"]

Floats = NDArray[np.float64]
#: p-values below this, and intervals of one minus this.
LEVEL = 0.05
_RESAMPLES = 4000
_FEWEST = 6


def shifted_geometric_mean(seconds: Floats, shift: float) -> float:
    """``exp(mean(log(t + shift))) - shift``: runs much shorter than the shift count little."""
    return float(np.exp(np.mean(np.log(seconds + shift))) - shift) if len(seconds) else float("nan")


def performance_profile(comparison: Comparison, method: str) -> tuple[Floats, Floats]:
    """Dolan and Moré: for every factor, the share of instances solved within that factor of the fastest method.

    Returns
    -------
    factors, shares : float arrays
        Steps; the share at a factor holds until the next one.
    """
    times = {name: np.where(comparison.solved(name), comparison.seconds(name), np.inf) for name in comparison.methods}
    fastest = np.min(list(times.values()), axis=0)
    anyone = np.isfinite(fastest)
    ratios = np.sort(times[method][anyone] / fastest[anyone])
    ratios = ratios[np.isfinite(ratios)]
    return ratios, np.arange(1, len(ratios) + 1) / len(comparison.instances)


@dataclass(frozen=True)
class PairedTest:
    """Two methods on the same instances.

    Attributes
    ----------
    ratio : float
        Shifted geometric mean of the first over that of the second; below 1 the first is faster.
    low, high : float
        Bootstrap interval of the ratio at 95 %, data sets resampled as a whole.
    p_value : float
        Wilcoxon signed-rank test of the logarithms of the ratios: of their mean per data set, if there are enough.
    pairs, units : int
        Instances that count, and independent observations of the test.
    by_data : bool
        Whether the test takes data sets, not instances, as observations.
    censored, dropped : int
        Pairs with one run that was not solved, and pairs left out because neither was.
    at_least : bool
        Whatever was not solved belongs to the slower method: the true ratio is further from 1.
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
        """The test and the interval agree that there is a difference."""
        return self.p_value < LEVEL and not self.low <= 1.0 <= self.high

    @property
    def verdict(self) -> str:
        """Whether there is a difference, in a sentence."""
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
        """The figures behind it."""
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
    """Compare two methods of a comparison; with the same seed the same numbers."""
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
    """Ratios of the means over units drawn with replacement, each with all its instances."""
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
