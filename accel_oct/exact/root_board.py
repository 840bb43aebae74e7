"""What is known of every root feature of a deep tree, and which of them can still matter.

The board computes no profiles. Whoever does (one process, or the workers of a cluster) asks it which side of which root
is wanted next and tells it what was found, in any order. What it has in the end does not depend on that order: profiles
are exact then, and of several roots that reach one value the first one in a fixed order is chosen. A root that may
reach a value only equally well is therefore dismissed only for one that comes before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from accel_oct.exact.levels import side_ceilings
from accel_oct.exact.profiles import Units, convolve_rising
from accel_oct.exact.samples import Samples
from accel_oct.support.arrays import BoolArray, FloatArray

Side = tuple[int, int]
"""A root feature, as a column of the reduced data, and one of its values."""


@dataclass(frozen=True)
class Start:
    """What is known before any root is opened, in table units.

    Attributes
    ----------
    lower : float array (size,)
        Profile of a shallower depth, made long: up to 2**depth leaves, or fewer where more are of no use.
    sides : float array (F, 2, size of depth - 1)
        Known scores of both sides of every feature.
    upper : float array, same shape
        Bounds on them for trees of depth - 1.
    """

    lower: FloatArray
    sides: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, data: Samples, size: int, half: int, lower: FloatArray, sides: FloatArray, exact: int) -> Start:
        """From profiles of any shallower depth, for as many leaves in all and on a side.

        Those of the sides are exact up to so many leaves: trees of depth d have all shapes up to d + 1 leaves. With
        more leaves a side scores at most its ceiling.
        """
        upper = np.repeat(side_ceilings(data)[:, :, None], half, axis=2)
        upper[:, :, :exact] = sides[:, :, :exact]
        return cls(_lengthened(lower, size), _lengthened(sides, half), upper)


class RootBoard:
    """Lower and upper profiles of both sides of every root feature.

    Upper profiles start exact for few leaves and end at the ceiling; what similar sides that are known
    already allow, V(S) <= V(S') + W(S - S'), tightens them.

    Attributes
    ----------
    lower : float array, as long as that of the start
        The best known score for every number of leaves.
    chosen : int array, same shape
        The place in `order` of the root that reaches it; -1 where a shallower tree does. Means something only where
        one leaf less scores less.
    order : int array (F,)
        Roots by promise: those whose sides are known to have good trees come first.
    """

    def __init__(self, data: Samples, depth: int, start: Start) -> None:
        self.data = data
        self.depth = depth
        self._units = Units(data.signed)
        self._weights = data.side_weights
        self.lower = start.lower.copy()
        self.chosen = np.full(self.lower.size, -1)
        self._known = start.sides.copy()
        self._upper = np.maximum(start.upper, start.sides)
        self.solved: BoolArray = np.zeros((data.n_features, 2), dtype=bool)
        self._told = self.solved.copy()
        self._found = np.full_like(self._known, -np.inf)
        promise = self._joined(self._known[:, 0], self._known[:, 1])[:, 1:].sum(axis=1)
        self.order = np.argsort(-promise, kind="stable")
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(self.order.size)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def _joined(self, zero: FloatArray, one: FloatArray) -> FloatArray:
        return convolve_rising(zero, one, self.lower.size)

    def open_roots(self) -> BoolArray:
        """Roots (F,) that may be better than what is known for some number of leaves, or as good and come first."""
        step = np.diff(self.lower, prepend=-np.inf) > 0
        first = step & (self.chosen > self._rank[:, None])
        better = (self._potential > self.lower) | (first & (self._potential == self.lower))
        return np.asarray(better.any(axis=1) & ~self.solved.all(axis=1))

    def wanted(self, begun: Collection[Side] = (), ahead: bool = False) -> Iterator[Side]:
        """Sides whose profiles may matter, the most promising root first.

        Of a root one side comes first, since it may show that the other one does not matter: the one that is begun
        already, if any. The other one comes only if the first is solved, or with `ahead`, which is for workers that
        have nothing else to do.
        """
        active = self.open_roots()
        for f in map(int, self.order[active[self.order]]):
            open_sides = [(f, side) for side in self._in_turn(f) if not self.solved[f, side]]
            open_sides.sort(key=lambda side: side not in begun)
            yield from open_sides if ahead else open_sides[:1]

    def _in_turn(self, f: int) -> tuple[int, int]:
        """Both sides of a root; first the one that is more likely to close it when it is known."""
        left = [
            np.maximum(self._joined(self._known[f, s], self._upper[f, 1 - s])[1:] - self.lower[1:], 0).sum()
            for s in (0, 1)
        ]
        return (0, 1) if left[0] <= left[1] else (1, 0)

    def absorb(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> list[int]:
        """Take in a profile of a side, exact or not; places of `lower` that this root has now."""
        self._known[f, side] = np.maximum(self._known[f, side], lower)
        self.limit(f, side, upper)
        self.solved[f, side] |= np.array_equal(lower, upper)
        self._told[f, side] = True
        # What was told, not what is known: a side that was stopped may not reach what is known of shallower trees, and
        # trees are built from what it told.
        self._found[f, side] = lower
        if not self._told[f].all():
            return []
        split = self._joined(self._found[f, 0], self._found[f, 1])
        rank = int(self._rank[f])
        mine = (split > self.lower) | ((split == self.lower) & (rank < self.chosen))
        self.lower = np.maximum.accumulate(np.maximum(self.lower, split))
        self.chosen[mine] = rank
        return [int(h) for h in np.flatnonzero(mine)]

    def agrees(self, f: int, side: int, lower: FloatArray, upper: FloatArray) -> bool:
        """Whether a profile that somebody claims for a side is possible, by what is known of it."""
        return bool(np.all(self._known[f, side] <= upper) and np.all(lower <= self._upper[f, side]))

    def limit(self, f: int, side: int, upper: FloatArray) -> None:
        """Take in a bound on a side that is not solved yet."""
        self._upper[f, side] = np.minimum(self._upper[f, side], upper)
        self._tighten(f, side)
        self._potential = self._joined(self._upper[:, 0], self._upper[:, 1])

    def root_of(self, leaves: int) -> int | None:
        """The root that reaches the score for so many leaves, with no leaf to spare; None: a shallower tree does."""
        rank = int(self.chosen[leaves - 1])
        return None if rank < 0 else int(self.order[rank])

    def _tighten(self, f: int, side: int) -> None:
        """Similar support: carry the profile of a known side over to the sides of all other features."""
        known = self._units.to_score(self._upper[f, side], self._weights[f, side])
        scores = known[None, None, :] + self.data.beyond(f, side)[:, :, None]
        bound = self._units.from_score(scores, self._weights[:, :, None])
        np.minimum(self._upper, bound, out=self._upper)

    def bound(self) -> FloatArray:
        """Upper profile: the best that any root, known or not, may still reach."""
        upper = np.maximum(self.lower, self._potential.max(axis=0))
        upper[0] = self.lower[0]
        return np.asarray(np.maximum.accumulate(upper))


def _lengthened(profile: FloatArray, size: int) -> FloatArray:
    """With the last entry repeated."""
    missing = [(0, 0)] * (profile.ndim - 1) + [(0, size - profile.shape[-1])]
    return np.pad(profile, missing, mode="edge")
