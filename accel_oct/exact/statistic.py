"""What a leaf is worth, by sums over its samples.

A statistic has additive channels: every sample (or cell of a tally) has an amount in each, and a set of samples the
sums of them. From these follow the score of a leaf and what it predicts. Tables need nothing else of it: sums of the
sides of a split add up to those of what is split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from accel_oct.support.arrays import Array, FloatArray, IntArray


class LeafStatistic(ABC):
    """Score and prediction of a leaf from the sums (channels, ...) of its samples."""

    @abstractmethod
    def score(self, sums: Array) -> Array:
        """Scores (...) to be maximised, minus infinity where a leaf is not allowed."""

    @abstractmethod
    def label(self, sums: Array) -> float:
        """What a leaf with these sums (channels,) predicts."""


@dataclass(frozen=True)
class ClassRewards(LeafStatistic):
    """The reward of the best class: for weights of the samples by class this is accuracy, weighted or not.

    Amounts may be any rewards per sample and class that are not negative, or sums of them over the cells of a tally.

    Attributes
    ----------
    signed : bool
        One channel, class 1 minus class 0; scores are |d|, which stands for twice the score minus the weight. Else one
        channel per class.
    least : tuple of float
        As many further channels hold masses, and leaves with less than this are not allowed.
    """

    signed: bool
    least: tuple[float, ...] = ()

    @staticmethod
    def amounts(y: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
        """Amounts (channels, n) of samples that earn their weight where their class is predicted."""
        if n_classes == 2:
            return np.where(y == 1, weights, -weights)[None]
        return np.asarray(weights * (y == np.arange(n_classes)[:, None]))

    def score(self, sums: Array) -> Array:
        """Score in table units, minus infinity where a leaf would be too light."""
        if not self.least:
            return np.asarray(np.abs(sums[0]) if self.signed else sums.max(axis=0))
        classes, masses = sums[: -len(self.least)], sums[-len(self.least) :]
        scores = np.abs(classes[0]) if self.signed else classes.max(axis=0)
        enough = np.all([mass >= least for mass, least in zip(masses, self.least, strict=True)], axis=0)
        return np.where(enough, scores, -np.inf)

    def label(self, sums: Array) -> int:
        """The best class, the smallest of those that are as good."""
        if self.signed:
            return int(sums[0] > 0)
        return int(np.argmax(sums[: -len(self.least)] if self.least else sums))
