"""Sets of samples as enumerations see them: handles that are cheap to split, to keep and to tell apart.

`accel_oct.exact.samples` has what tables need of one set; here are the many sets that an enumeration meets on its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.tally import Path
from accel_oct.support.arrays import IntArray

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
