"""Find the lemmas of a certificate: what to claim about which sets of rows, by rules that a checker can follow.

Costs are whole numbers, as in the format: the weight of errors times `Claim.scale`, plus the price of the leaves. What
a set costs is computed by the exact engines of the library. Nothing here is trusted: a lemma that is wrong is refused
by the checker, so a fault of an engine shows.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from accel_oct.certificates.claim import Claim
from accel_oct.errors import InvalidInputError, StoppedError
from accel_oct.exact.frontier import ProfileSolver
from accel_oct.exact.levels import Units, side_ceilings
from accel_oct.exact.local_rules import LocalRules
from accel_oct.exact.ordered import ordered_problem, search_ordered
from accel_oct.exact.price_search import best_tree
from accel_oct.exact.samples import RowSamples, reduce_data
from accel_oct.support.arrays import BoolArray
from accel_oct.support.stopping import Stopper

Path = tuple[tuple[int, int, int], ...]
"""Conditions (column, threshold, side) of a set of rows: side 1 has the ranks from the threshold on."""

_INFINITE = 1 << 62

MOST_LEMMAS = 1_000_000

MOST_SETS = 5_000_000
"""Most sets of groups of columns; a checker needs about ten microseconds for each."""


class _Sides(NamedTuple):
    """Costs of the sides of the columns of a set of rows."""

    data: RowSamples
    counted: Any
    """Bounds that the checker finds by counting (F, 2)."""
    exact: Any
    """Least costs (F, 2); None if tables are too large."""


class Prover:
    """Lemmas of one claim.

    Parameters
    ----------
    claim : Claim
    stopper : Stopper
        Ends the work with `StoppedError`.
    """

    def __init__(self, claim: Claim, stopper: Stopper) -> None:
        self.claim, self.stopper = claim, stopper
        self.found: list[dict[str, Any]] = []
        self._known: dict[tuple[Path, int | None, int], int] = {}
        self.weights = np.array(claim.units, dtype=np.float64)
        if sum(claim.units) >= 1 << 53:
            raise InvalidInputError("a certificate cannot be written: the weights have too many digits")
        self.everything = np.ones(len(self.weights), dtype=bool)
        self.binary = bool(claim.ranks.max(initial=0) <= 1)

    def lemmas(self) -> list[dict[str, Any]]:
        """Return the lemmas; the last one is the claim."""
        claim, height = self.claim, self.claim.max_depth
        if height is None and not claim.price:
            raise InvalidInputError("a certificate for trees of any depth needs a leaf_penalty above 0")
        if claim.most_groups is not None and self._best(height) < claim.cost:
            if math.comb(len(claim.groups), claim.most_groups) > MOST_SETS:
                raise InvalidInputError(
                    f"a certificate for trees of {claim.most_groups} of {len(claim.groups)} features cannot yet be "
                    f"written: there are more than {MOST_SETS} sets of features"
                )
            self._add((), height, claim.cost, by="sets")
        else:
            self.prove(self.everything, (), height, claim.cost)
        return self.found

    def _best(self, height: int | None) -> int:
        """Return the least cost of all trees, whatever groups of columns they use."""
        enough = self._enough_height(self.everything, self.claim.cost)
        return self._cost(self.everything, int(min(enough, math.inf if height is None else height)))

    def _enough_height(self, rows: BoolArray, value: int) -> float:
        """Return the least height beyond which the number of leaves alone makes trees on some rows cost a value."""
        if not self.claim.price:
            return math.inf
        return max(0, -(-(value - self._unavoidable(rows)) // self.claim.price) - 2)

    def prove(self, rows: BoolArray, path: Path, height: int | None, value: int) -> int:
        """Add the lemma that trees of at most this height on some rows cost at least a value, and return its number.

        Lemmas that it uses come first.
        """
        key = path, height, value
        if key not in self._known:
            self._check_limits()
            enough = self._enough_height(rows, value)
            if (height is not None and height <= 2) or enough <= 2:
                self._known[key] = self._add(path, height, value, by="count")
            elif height is None or enough < height:
                used = self.prove(rows, path, int(enough), value)
                self._known[key] = self._add(path, height, value, by="deeper", uses=[used])
            elif self.binary:
                self._known[key] = self._prove_binary(rows, path, height, value)
            else:
                self._known[key] = self._prove_ordered(rows, path, height, value)
        return self._known[key]

    def _add(self, path: Path, height: int | None, value: int, **rest: Any) -> int:
        self.found.append({"path": [list(step) for step in path], "height": height, "value": value, **rest})
        return len(self.found) - 1

    def _check_limits(self) -> None:
        if self.stopper():
            raise StoppedError(f"the certificate was not finished: {self.stopper.reason}")
        if len(self.found) > MOST_LEMMAS:
            raise StoppedError(f"the certificate was not finished: it would need more than {MOST_LEMMAS} lemmas")

    # ---------------------------------------------------------------- binary columns

    def _prove_binary(self, rows: BoolArray, path: Path, height: int, value: int) -> int:
        if height == 3:
            return self._add(path, height, value, by="split", level=2)
        uses: list[int] = []
        sides = self._sides(rows, height)
        data, low = sides.data, sides.counted.copy()
        weights = np.vectorize(int, otypes=[object])(data.side_weights)
        while True:
            sums = low.sum(axis=1)
            left = np.flatnonzero(sums < value)
            if not left.size:
                break
            # The roots that cost most beyond the claim close the most others.
            column = int(left[np.argmin(sums[left])])
            before = low[column].copy()
            for side in (0, 1):
                if low[column].sum() >= value:
                    break
                condition = (int(data.feature[column]), 1, side ^ int(data.flipped[column]))
                own = rows & ((self.claim.ranks[condition[0]] >= 1) == bool(condition[2]))
                cost = self._cost(own, height - 1) if sides.exact is None else int(sides.exact[column, side])
                if cost <= low[column, side]:
                    continue
                uses.append(self.prove(own, (*path, condition), height - 1, cost))
                beyond = np.vectorize(int, otypes=[object])(self._beyond(data, column, side))
                low = np.maximum(low, cost - self.claim.scale * (int(weights[column, side]) - weights + beyond))
            if low[column].sum() < value and (low[column] == before).all():
                break  # the claim is wrong, or the engine: the checker will say so
            low[column] = np.maximum(low[column], 0)
            if low[column].sum() < value:
                low[column] = _INFINITE  # as above
        return self._add(path, height, value, by="split", level=2, uses=sorted(set(uses)))

    def _beyond(self, data: RowSamples, column: int, side: int) -> Any:
        """Return the weights (F, 2) of the rows of each side that are not in a given one."""
        return np.minimum(data.beyond(column, side), 2.0**52)

    def _sides(self, rows: BoolArray, height: int) -> _Sides:
        """Return bounds by counting, and exact costs where tables give them."""
        data = self._samples(rows)
        solver = ProfileSolver(self.stopper)
        three = solver.levels(data, 3, lambda known: False)
        four = solver.levels(data, 4, lambda known: False) if height == 4 else None
        self._check_limits()
        if not data.n_features:
            return _Sides(data, np.zeros((0, 2), dtype=object), None)
        counted = self._costs(data, three.sides, 1)
        deeper = self._costs(data, np.asarray(side_ceilings(data))[:, :, None], 4)
        if data.rules is not None:
            (masses,) = data.rules.masses
            one = masses @ data.X
            deeper[np.stack([masses.sum() - one, one], axis=1) < 4 * self.claim.least] = _INFINITE
        counted = np.minimum(counted, deeper)
        exact = None
        if four is not None and (four.depth == 4 or four.complete):
            exact = self._costs(data, four.sides, 1)
        return _Sides(data, counted, exact)

    def _samples(self, rows: BoolArray) -> RowSamples:
        claim, rules = self.claim, None
        if claim.least:
            rules = LocalRules.leaves(self.weights[rows], float(claim.least))
        X = claim.ranks[:, rows].T >= 1
        return reduce_data(X, claim.labels[rows], self.weights[rows], len(claim.classes), rules)

    def _costs(self, data: RowSamples, profiles: Any, leaves: int) -> Any:
        """Return the least costs (F, 2) of scores (F, 2, number of leaves), the first of them for `leaves` leaves."""
        weights = np.asarray(data.side_weights)[:, :, None]
        lost = np.asarray(weights - Units(data.signed).to_score(profiles, weights))
        lost = np.where(np.isfinite(lost), lost, 2.0**52)
        paid = self.claim.price * np.arange(leaves, leaves + profiles.shape[-1]).astype(object)
        return (np.rint(lost).astype(np.int64).astype(object) * self.claim.scale + paid).min(axis=2)

    # ---------------------------------------------------------------- ordered columns

    def _prove_ordered(self, rows: BoolArray, path: Path, height: int, value: int) -> int:
        """Claim what the sides of some splits of each column cost, such that all splits between are closed.

        Of two splits of a column the sides differ by the weight between them, and the larger side costs as much or
        more. So the middle of an interval of splits closes what lies near it, and bounds both halves from one side.
        """
        if self.claim.least:
            raise InvalidInputError("a certificate cannot yet be written over every split with a least leaf weight")
        uses: list[int] = []
        for column in range(len(self.claim.ranks)):
            cuts, before, low = self._cuts(rows, column)
            left = np.flatnonzero(low.sum(axis=0) < value).tolist()
            ranges = [(0, len(left) - 1, 0, 0)]
            while ranges:
                first, last, least, most = ranges.pop()
                while first <= last and max(least, low[0, left[first]]) + max(most, low[1, left[first]]) >= value:
                    first += 1
                while first <= last and max(least, low[0, left[last]]) + max(most, low[1, left[last]]) >= value:
                    last -= 1
                if first > last:
                    continue
                middle = (first + last) // 2
                cut, costs = cuts[left[middle]], [0, 0]
                for side in (0, 1):
                    own = rows & ((self.claim.ranks[column] >= cut) == bool(side))
                    costs[side] = self._ordered_cost(own, height - 1)
                    uses.append(self.prove(own, (*path, (column, cut, side)), height - 1, costs[side]))
                room, here = sum(costs) - value, before[left[middle]]
                below, above = middle - 1, middle + 1
                while below >= first and here - before[left[below]] <= room:
                    below -= 1
                while above <= last and before[left[above]] - here <= room:
                    above += 1
                ranges += [(first, below, least, max(most, costs[1])), (above, last, max(least, costs[0]), most)]
        return self._add(path, height, value, by="split", level=0, uses=sorted(set(uses)))

    def _cuts(self, rows: BoolArray, column: int) -> tuple[list[int], list[int], Any]:
        """Return the splits of some rows in a column, the cost weight before each, and the bounds of both sides by
        counting leaves (2, splits)."""
        claim = self.claim
        ranks, top = claim.ranks[column, rows], int(claim.ranks[column].max(initial=0)) + 1
        sums = np.stack([np.bincount(ranks[claim.labels[rows] == k], self.weights[rows][claim.labels[rows] == k], top)
                         for k in range(len(claim.classes))])  # fmt: skip
        present = np.flatnonzero(np.bincount(ranks, minlength=top))
        left = sums[:, present].cumsum(axis=1)[:, :-1].astype(np.int64).astype(object)
        right = sums.sum(axis=1).astype(np.int64).astype(object)[:, None] - left
        low = np.array([(side.sum(axis=0) - side.max(axis=0)) * claim.scale + claim.price for side in (left, right)])
        lost = np.bincount(ranks, self._unavoidable_by_row[rows], top)[present].cumsum()
        total = int(self._unavoidable_by_row[rows].sum())
        first = lost[:-1].astype(np.int64).astype(object)
        unavoidable = np.array([first, total - first]) * claim.scale + 2 * claim.price
        before = (left.sum(axis=0) * claim.scale).tolist()
        return present[1:].tolist(), before, np.minimum(low, unavoidable).reshape(2, -1)

    # ---------------------------------------------------------------- engines

    def _ordered_cost(self, rows: BoolArray, height: int) -> int:
        """Return the least cost of trees of a height on some rows, over every split."""
        claim = self.claim
        ranks = np.array([_dense(column) for column in claim.ranks[:, rows]])
        gains = np.zeros((ranks.shape[1], len(claim.classes)))
        gains[np.arange(len(gains)), claim.labels[rows]] = self.weights[rows] * claim.scale
        found = search_ordered(ordered_problem(ranks, gains, 0), height, float(claim.price), should_stop=self.stopper)
        self._check_limits()
        assert found.tree is not None
        missed = gains.sum() - gains[np.arange(len(gains)), found.tree.predict(ranks)].sum()
        return int(missed) + claim.price * found.tree.n_leaves

    def _cost(self, rows: BoolArray, height: int) -> int:
        """Return the least cost of trees of a height on some rows."""
        claim, data = self.claim, np.flatnonzero(rows)
        price = claim.price / claim.scale
        X = claim.ranks[:, data].T >= 1
        rules = LocalRules.leaves(self.weights[data], float(claim.least)) if claim.least else None
        found = best_tree(
            X, claim.labels[data], self.weights[data], len(claim.classes), height, price, rules=rules,
            should_stop=self.stopper,
        )  # fmt: skip
        self._check_limits()
        if found.found is None:
            return _INFINITE
        wrong = found.tree.predictions(X) != claim.labels[data]
        return claim.scale * int(self.weights[data][wrong].sum()) + claim.price * found.tree.n_leaves

    @cached_property
    def _unavoidable_by_row(self) -> Any:
        """The weight that no tree classifies correctly, at the first row of each point."""
        claim = self.claim
        first, points = np.unique(claim.ranks, axis=1, return_index=True, return_inverse=True)[1:]
        weights = np.zeros((len(first), len(claim.classes)))
        np.add.at(weights, (points.reshape(-1), claim.labels), self.weights)
        lost = np.zeros(len(self.weights))
        lost[first] = weights.sum(axis=1) - weights.max(axis=1)
        return lost

    def _unavoidable(self, rows: BoolArray) -> int:
        """Return the cost that no tree avoids on some rows: those that are equal in every column, of other classes."""
        return self.claim.scale * int(self._unavoidable_by_row[rows].sum())


def _dense(ranks: Any) -> Any:
    """Return the ranks of some rows without gaps."""
    used = np.zeros(int(ranks.max(initial=0)) + 1, dtype=bool)
    used[ranks] = True
    return (np.cumsum(used, dtype=np.int32) - 1)[ranks].astype(np.int32)
