"""Find the prices at which a checker can enumerate all trees that limits leave open: for all roots, or root by root."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from accel_oct.certificates.claim import Claim
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, StoppedError
from accel_oct.exact.limited import PricedProblem
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.local_rules import LocalRules
from accel_oct.pricing import Closing, Dual
from accel_oct.support.arrays import FloatArray
from accel_oct.support.stopping import Stopper

MOST_CUTS = 1000
"""Largest number of splits."""

_DEEPEST = 30
"""Largest height for which prices are computed."""

_EASY = 1000, 300_000
"""Most sets, and most pairs of outcomes of each, at common prices before every root gets its own."""

_MOST_PAIRS = 5_000_000
"""Most pairs of outcomes of a set: a checker in plain Python needs about a microsecond for each."""

_BITS = 50
"""Bits of the sum of all priced costs, which floats of a checker hold exactly."""


class _Limit(NamedTuple):
    predictions: FloatArray | None
    leaves: float
    upper: float
    tolerance: float = 0.0


def _in_floats(amounts: Any, leaves: int, most: int) -> _Limit:
    """Return a limit with whole numbers as floats; a bound beyond all floats as a large one.

    Raises
    ------
    InvalidInputError
        If an amount is beyond all floats.
    """
    try:
        return _Limit(amounts.astype(np.float64), float(leaves), float(max(-(10**308), min(most, 10**308))))
    except OverflowError:
        raise InvalidInputError(
            "a certificate cannot yet be written where amounts of a constraint, in whole numbers, are beyond all floats"
        ) from None


class Closer:
    """Closings of a claim under limits.

    Parameters
    ----------
    claim : Claim
    stopper : Stopper
        Ends the work with `StoppedError`.
    """

    def __init__(self, claim: Claim, stopper: Stopper) -> None:
        tops = claim.ranks.max(axis=1, initial=0)
        if tops.sum() > MOST_CUTS:
            raise InvalidInputError(
                f"a certificate under constraints on the whole tree cannot yet be written over {tops.sum()} splits; "
                f"at most {MOST_CUTS} are possible"
            )
        self.column = np.repeat(np.arange(len(tops)), tops)
        cuts = [ranks >= rank for ranks, top in zip(claim.ranks, tops, strict=True) for rank in range(1, top + 1)]
        cuts = cuts or [np.zeros(len(claim.labels), dtype=bool)]  # a problem needs a column
        X = np.array(cuts, dtype=bool).T
        self.claim, self.stopper = claim, stopper
        self.limits = [limit.amounts(claim) for limit in claim.limits]
        self.scale, self.total = claim.scale, sum(claim.units)
        units = np.array(claim.units, dtype=np.float64)
        # A class without weight has no row: so that its index stays, the row goes last.
        dataset = BinaryDataset.from_arrays(X, claim.labels, sample_weight=units)
        rules = LocalRules.leaves(units, float(claim.least)) if claim.least else None
        self.problem = LimitedProblem.of(
            dataset,
            [_in_floats(*limit) for limit in self.limits],
            claim.price / claim.scale,
            self._height(),
            rules,
        )
        self.value = self.total - claim.cost / claim.scale
        self.least_better = self.value + 1 / claim.scale

    def _height(self) -> int:
        """Return the largest height of a tree that may be better."""
        claim, heights = self.claim, []
        if claim.max_depth is not None:
            heights.append(claim.max_depth)
        heights += [
            most // leaves - 1
            for limit, (_, leaves, most) in zip(claim.limits, self.limits, strict=True)
            if leaves and not limit.stated["terms"]
        ]
        if claim.price:
            heights.append((claim.cost - 1) // claim.price - 1)
        if not heights or min(heights) > _DEEPEST:
            raise InvalidInputError(
                f"a certificate under constraints on predictions needs a max_depth of at most {_DEEPEST}"
            )
        return max(0, min(heights))

    def closings(self) -> list[dict[str, Any]]:
        """Return the closings, as the format has them."""
        if self.problem.max_depth == 0:
            return [self._closing(np.zeros(self.problem.n_limits), None)]
        dual = Dual(self.problem, lambda tree: None, should_stop=self.stopper)
        dual.run(lambda: self.least_better - 0.5 / self.scale)
        self._check()
        assert dual.best is not None
        if self._closes(dual.best, dual.bound, None, *_EASY):
            return [self._closing(dual.best.prices, None)]
        if len(np.unique(self.column)) < len(self.column):
            raise StoppedError("the certificate was not finished: the constraints leave too many splits open")
        found, common = [], []
        bounds = Closing(self.problem, dual.best, dual.bound, lambda tree: self.value, self.stopper).root_bounds()
        for place, column in enumerate(self.column.tolist()):
            bound = bounds.get(place)
            if bound is None or bound < self.least_better - 0.5 / self.scale:
                common.append(column)
                continue
            own = Dual(self.problem, lambda tree: None, should_stop=self.stopper, root=place)
            own.run(lambda: self.least_better - 0.5 / self.scale, dual.best.prices)
            self._check()
            assert own.best is not None
            if not self._closes(own.best, own.bound, place, 1 << 40, _MOST_PAIRS):
                raise StoppedError("the certificate was not finished: the constraints leave too many trees open")
            found.append(self._closing(own.best.prices, [column]))
        return [*([self._closing(dual.best.prices, common)] if common else []), *found]

    def _check(self) -> None:
        if self.stopper():
            raise StoppedError(f"the certificate was not finished: {self.stopper.reason}")

    def _closes(self, priced: PricedProblem, bound: float, root: int | None, most_sets: int, most_pairs: int) -> bool:
        """Whether all trees that these prices leave open can be enumerated."""
        goal = self.least_better - 0.5 / self.scale
        if bound < goal:
            return True
        proven = [bound]

        def note(found: float) -> bool:
            proven[0] = min(proven[0], found)
            return proven[0] < goal

        closing = Closing(
            self.problem, priced, bound, lambda tree: self.value, self.stopper, goal=lambda value: goal, root=root,
            most_sets=most_sets, most_pairs=most_pairs,
        )  # fmt: skip
        if closing.possible:
            closing.run(self.value, note)
        self._check()
        return closing.complete or proven[0] < goal

    def _closing(self, prices: FloatArray, roots: list[int] | None) -> dict[str, Any]:
        """Return a closing with multipliers of the limits in cost units, as fractions with a power of two below."""
        multipliers = [Fraction(float(price)) * self.scale / Fraction(float(scale))
                       for price, scale in zip(prices, self.problem.scales, strict=True)]  # fmt: skip
        size = Fraction(self.scale * self.total) + 1
        for multiplier, (amounts, *_) in zip(multipliers, self.limits, strict=True):
            size += multiplier * int(np.abs(amounts).max(axis=1, initial=0).sum())
        bits = max(0, _BITS - 1 - (size.numerator // size.denominator).bit_length())
        rounded = [Fraction(round(multiplier * 2**bits), 2**bits) for multiplier in multipliers]
        return {
            "multipliers": list(map(str, rounded)),
            **({} if roots is None else {"roots": roots}),
        }
