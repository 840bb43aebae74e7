"""Everything within a slack of the best: one recursion over sets of samples, whatever is collected of it.

The trees within a slack are those that are worth at least a threshold. On a set of samples they are leaves, and splits
whose sides are trees again. No tree of a side is worth more than the best one there, so a side needs its trees only
down to the threshold minus the best of the other side, and little of each side is ever looked at. Sets are met on many
paths and remembered. What is collected may be how many trees there are of every value, see
`accel_oct.exact.near_optimal`; or what they use of limits, and one tree for each, see `accel_oct.pricing.closing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.tally import Path
from accel_oct.support.arrays import Array, IntArray

SampleSet = Any
"""What an implementation takes for a set of samples."""


class SampleSets(ABC):
    """All sets of samples that paths can lead to."""

    @abstractmethod
    def everyone(self) -> SampleSet:
        """All samples."""

    @abstractmethod
    def side(self, samples: SampleSet, feature: int, side: bool) -> SampleSet:
        """Those of a set on one side of a feature."""

    @abstractmethod
    def key(self, samples: SampleSet) -> bytes:
        """Equal for equal sets; of a tally, for equal paths."""

    def sides(self, samples: SampleSet, feature: int) -> tuple[SampleSet, SampleSet]:
        """Both sides of a feature."""
        return self.side(samples, feature, False), self.side(samples, feature, True)

    def reached(self, path: Iterable[tuple[int, int]]) -> SampleSet:
        """The set at the end of a path of features and sides."""
        samples = self.everyone()
        for feature, side in path:
            samples = self.side(samples, feature, bool(side))
        return samples


class PointSets(SampleSets):
    """Sets of the points of X (n_points, n_features), as their numbers in ascending order."""

    X: BoolMatrix

    def everyone(self) -> IntArray:
        return np.arange(len(self.X))

    def side(self, samples: IntArray, feature: int, side: bool) -> IntArray:
        own: IntArray = samples[self.X[samples, feature] == side]
        return own

    def key(self, samples: IntArray) -> bytes:
        """In as many bits as there are points."""
        mask = np.zeros(len(self.X), dtype=bool)
        mask[samples] = True
        return np.packbits(mask).tobytes()


class PathSets(SampleSets):
    """Sets of the samples of a tally, as the features and sides of a path in ascending order."""

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
        What no tree that branches on a feature exceeds: at most the sum of both.
    """

    features: IntArray
    zero: Array
    one: Array
    split: Array


class Split(NamedTuple, Generic[Collected]):
    """A split within the threshold: its place among all, and what was collected on its sides."""

    place: int
    feature: int
    zero: Collected
    one: Collected


class Enumeration(ABC, Generic[Collected]):
    """Collects something of all trees that are worth at least a threshold.

    Parameters
    ----------
    sets : SampleSets

    Attributes
    ----------
    looked_at : int
        Sets of samples that were looked at; one that is asked for with a lower threshold counts again.
    """

    def __init__(self, sets: SampleSets) -> None:
        self.sets = sets
        self.looked_at = 0
        self._known: dict[Hashable, tuple[Number, Collected]] = {}

    def collected(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Of the trees of depth at most `height` on a set, down to a threshold and maybe beyond.

        `best` is the value of the best one of them.
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
        """Splits within the threshold, best first: sides that sets share are met first with the most slack."""
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
        """What decides the trees of a set."""
        return self.sets.key(samples), height

    @abstractmethod
    def _side_bests(self, samples: SampleSet, height: int, path: Path) -> SideBests:
        """Best values below the splits of a set, for heights of three and more."""

    @abstractmethod
    def _shallow(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Trees of depth at most two."""

    @abstractmethod
    def _deep(self, samples: SampleSet, height: int, best: Number, threshold: Number, path: Path) -> Collected:
        """Deeper trees, from leaves and `splits`."""

    def _spend(self, key: Hashable, found: Collected, before: Collected | None) -> None:
        """Account for the memory of an entry that replaces an earlier one."""
