"""Enumeration of all trees within a slack of the best one: one recursion over sets of samples.

The trees within a slack are those with a value of at least a threshold. On a set of samples they are leaves, and splits
whose sides are trees again. A side needs its trees only down to the threshold minus the best value of the other side,
so only a small part of each side is enumerated. Results are cached by set, because many paths lead to the same set.
Subclasses choose what is collected: `accel_oct.exact.near_optimal` counts trees by value, `accel_oct.pricing.closing`
collects values and uses of limits, with one tree for each.

`SampleSets` has the many sets of an enumeration as handles that are cheap to split, to store and to compare;
`accel_oct.exact.samples` has single sets with all that tables need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.tally import Path
from accel_oct.support.arrays import Array, IntArray

SampleSet = Any
"""Handle of a set of samples; its type depends on the implementation."""


class SampleSets(ABC):
    """Sets of samples at the ends of paths."""

    @abstractmethod
    def everyone(self) -> SampleSet:
        """Return the set of all samples."""

    @abstractmethod
    def side(self, samples: SampleSet, feature: int, side: bool) -> SampleSet:
        """Return the part of a set on one side of a feature."""

    @abstractmethod
    def key(self, samples: SampleSet) -> bytes:
        """Return a key that is equal for equal sets; for a tally, for equal paths."""

    def sides(self, samples: SampleSet, feature: int) -> tuple[SampleSet, SampleSet]:
        """Return both sides of a feature."""
        return self.side(samples, feature, False), self.side(samples, feature, True)

    def reached(self, path: Iterable[tuple[int, int]]) -> SampleSet:
        """Return the set at the end of a path of features and sides."""
        samples = self.everyone()
        for feature, side in path:
            samples = self.side(samples, feature, bool(side))
        return samples


class PointSets(SampleSets):
    """Sets of points of X (n_points, n_features), as ascending row numbers."""

    X: BoolMatrix

    def everyone(self) -> IntArray:
        return np.arange(len(self.X))

    def side(self, samples: IntArray, feature: int, side: bool) -> IntArray:
        own: IntArray = samples[self.X[samples, feature] == side]
        return own

    def key(self, samples: IntArray) -> bytes:
        """Return the set as a bit mask of all points."""
        mask = np.zeros(len(self.X), dtype=bool)
        mask[samples] = True
        return np.packbits(mask).tobytes()


class PathSets(SampleSets):
    """Sets of samples of a tally, as the sorted features and sides of a path."""

    def everyone(self) -> Path:
        return ()

    def side(self, samples: Path, feature: int, side: bool) -> Path:
        return tuple(sorted({*samples, (feature, side)}))

    def key(self, samples: Path) -> bytes:
        return repr(samples).encode()


Collected = TypeVar("Collected")
Number = Any
"""Values: whole numbers, or real ones."""


class SideBests(NamedTuple):
    """Best values below the splits of a set.

    Attributes
    ----------
    features : int array (m,)
    zero, one : arrays (m,)
        Best values of the zero sides and the one sides.
    split : array (m,)
        Upper bounds on the trees that branch on a feature: at most the sum of both.
    """

    features: IntArray
    zero: Array
    one: Array
    split: Array


# Not a NamedTuple: on Python 3.10 these cannot be generic.
@dataclass(frozen=True)
class Split(Generic[Collected]):
    """A split within the threshold: its place among all splits, and the results of both sides."""

    place: int
    feature: int
    zero: Collected
    one: Collected


class Enumeration(ABC, Generic[Collected]):
    """Recursion over all trees with a value of at least a threshold.

    Attributes
    ----------
    looked_at : int
        Number of sets of samples enumerated; a set that is repeated with a lower threshold counts again.
    """

    def __init__(self, sets: SampleSets) -> None:
        self.sets = sets
        self.looked_at = 0
        self._known: dict[Hashable, tuple[Number, Collected]] = {}

    def collected(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Return the result for the trees of depth at most `height` on a set, down to the threshold or below it.

        `best` is the value of the best of them.
        """
        key = self._key(samples, height, path)
        known = self._known.get(key)
        if known is not None and known[0] <= threshold:
            return known[1]
        self.looked_at += 1
        enumerate_ = self._shallow if height <= 2 else self._deep
        found = enumerate_(samples, height, best, threshold, path)
        self._spend(key, found, None if known is None else known[1])
        self._known[key] = threshold, found
        return found

    def splits(self, samples: SampleSet, height: int, threshold: Number, path: Path) -> Iterator[Split[Collected]]:
        """Yield the splits within the threshold, best first: shared sides are enumerated first with the most slack."""
        features, zero, one, split = self._side_bests(samples, height, path)
        for place in np.argsort(-split, kind="stable").tolist():
            if split[place] < threshold:
                return
            feature, bests = int(features[place]), (zero[place].item(), one[place].item())
            sides = [
                self.collected(
                    self.sets.side(samples, feature, side),
                    height - 1,
                    bests[side],
                    threshold - bests[not side],
                    (*path, (feature, side)),
                )
                for side in (False, True)
            ]
            yield Split(place, feature, sides[0], sides[1])

    def _key(self, samples: SampleSet, height: int, path: Path) -> Hashable:
        """Return a key that is equal only for sets with the same trees."""
        return self.sets.key(samples), height

    @abstractmethod
    def _side_bests(self, samples: SampleSet, height: int, path: Path) -> SideBests:
        """Return best values below the splits of a set, for heights of at least three."""

    @abstractmethod
    def _shallow(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Return the result for trees of depth at most two."""

    @abstractmethod
    def _deep(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Return the result for deeper trees, from leaves and `splits`."""

    def _spend(self, key: Hashable, found: Collected, before: Collected | None) -> None:
        """Account for the memory of a result that replaces an earlier one."""
