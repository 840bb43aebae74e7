"""Robust accuracy: a sample counts only if every perturbation of it within a budget is classified right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.cuts import RobustCuts
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Component, Master
from accel_oct.objectives.base import LinearScore, Objective, StrictScore
from accel_oct.support.arguments import whole_number
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree import ColumnChanges, DecisionTree, Reach

#: Most samples that are paired for the bound; the number of pairs is its square.
_MOST_PAIRED = 2000


@dataclass(frozen=True)
class Robust(Objective):
    """Share of the weight of the samples that stay right under every perturbation within a budget.

    Either `flips` or `radius` must be given.

    Parameters
    ----------
    flips : int, optional
        Up to this number of columns of the user's table may change, each to any value that occurs in it. All features
        that were made from a column count as one. Binary columns, such as those of `accel_oct.solve`, may always take
        both values.
    radius : float or mapping of str to float, optional
        Every numeric column may move by up to this, in both directions: one number for all numeric columns, or one for
        each named column; the others do not move. In the unit of the column. A threshold ``x >= t`` is passed on its
        upper side if ``x + radius >= t`` and on its lower side if ``x - radius < t``, with sums in floating point.
        Missing values stay missing; columns of 0 and 1, categories and times do not move.

    Notes
    -----
    With ``flips=0`` or ``radius=0`` this is `Accuracy`.
    """

    flips: Any = None
    radius: Any = None

    def __post_init__(self) -> None:
        if (self.flips is None) == (self.radius is None):
            raise InvalidInputError("Robust: either flips or radius must be given")
        if self.flips is not None:
            whole_number(self.flips, "Robust: flips", 0)
            return
        named = self.radius.items() if isinstance(self.radius, Mapping) else [(None, self.radius)]
        for name, value in named:
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not number or not (math.isfinite(value) and value >= 0):
                of = "" if name is None else f" of column {shown(name)}"
                raise InvalidInputError(f"Robust: radius{of} must be a finite number of at least 0, got {shown(value)}")

    def bind(self, dataset: BinaryDataset) -> RobustScore:
        if self.flips is not None:
            return RobustScore(f"robust accuracy (flips={int(self.flips)})", dataset, _flips(dataset, int(self.flips)))
        return RobustScore("robust accuracy (radius)", dataset, _moves(dataset, self._radii(dataset)))

    @property
    def needs_chosen_splits(self) -> bool:
        return True

    @property
    def depends_on_thresholds(self) -> bool:
        return self.radius is not None

    def on_tally(self) -> Objective:
        raise InvalidInputError("Robust: robust accuracy needs rows, which a tally does not have")

    def _radii(self, dataset: BinaryDataset) -> dict[str, float]:
        """Return the radius of every numeric column that moves."""
        if not dataset.intervals:
            raise InvalidInputError(
                "Robust: radius needs the numbers that the features were made from: use OptimalTreeClassifier on rows "
                "in memory, with an encoder of accel_oct, or pass the table of its `encode` as X; for binary columns "
                "use flips"
            )
        if not isinstance(self.radius, Mapping):
            return dict.fromkeys(dataset.numbers, float(self.radius))
        for name in self.radius:
            if name not in dataset.numbers:
                known = ", ".join(map(shown, dataset.numbers)) or "none"
                raise InvalidInputError(
                    f"Robust: radius names {shown(name)}, which is no column of numbers; these are {known}"
                )
        return {name: float(value) for name, value in self.radius.items()}


class RobustScore(StrictScore):
    """Robust accuracy bound to data.

    Its relaxed score is the accuracy on perturbed samples: samples of different classes are moved in pairs to a common
    point, where no tree is right for both.

    Attributes
    ----------
    reach : Reach
    """

    def __init__(self, name: str, dataset: BinaryDataset, reach: Reach) -> None:
        moved = replace(dataset, X=np.ascontiguousarray(_met(dataset, reach)))
        super().__init__(name, dataset, LinearScore(name, moved, None, dataset.total_weight))
        self.reach = reach

    def counted(self, tree: DecisionTree) -> BoolArray:
        return self.reach.right(tree, self.dataset.y)

    def cuts(self, master: Master) -> Component:
        return RobustCuts(master, self.reach)


# ---------------------------------------------------------------- what columns can become


def _columns(dataset: BinaryDataset) -> list[tuple[str | None, IntArray]]:
    """Return the columns of the user's table with their features."""
    if dataset.sources is None:
        return [(None, np.array([feature])) for feature in range(dataset.n_features)]
    sources = np.array(dataset.sources, dtype=object)
    return [(name, np.flatnonzero(sources == name)) for name in dict.fromkeys(dataset.sources)]


def _flips(dataset: BinaryDataset, budget: int) -> Reach:
    """Return the reach of samples of which up to `budget` columns change to values that occur."""
    columns = [_occurring(dataset, features) for _, features in _columns(dataset)]
    return Reach(dataset.X, tuple(columns), budget)


def _occurring(dataset: BinaryDataset, features: IntArray) -> ColumnChanges:
    """Return the patterns that occur in a column, of which every sample has its own for free."""
    if features.size == 1:
        own = dataset.X[:, features[0]].astype(np.int64)
        return ColumnChanges(features, np.array([[False], [True]]), own, own)
    patterns, own = np.unique(dataset.X[:, features], axis=0, return_inverse=True)
    return ColumnChanges(features, patterns, own.ravel(), own.ravel())


def _moves(dataset: BinaryDataset, radii: Mapping[str, float]) -> Reach:
    """Return the reach of samples whose numbers move by up to a radius."""
    columns = []
    for name, features in _columns(dataset):
        moving = name is not None and name in radii
        columns.append(_near(dataset, features, radii[str(name)]) if moving else _occurring(dataset, features))
    return Reach(dataset.X, tuple(columns), 0)


def _near(dataset: BinaryDataset, features: IntArray, radius: float) -> ColumnChanges:
    """Return the patterns between the thresholds of a numeric column, of which every sample has those within reach.

    Rows with a missing value have the pattern that they have; it comes last.
    """
    values = dataset.numbers[dataset.sources[features[0]]] if dataset.sources is not None else np.empty(0)
    limits = [dataset.intervals[feature] for feature in features.tolist()]
    cuts = np.unique([end for limit in limits if limit is not None for end in limit])
    cuts = cuts[np.isfinite(cuts)]
    # A number is in the segment of the largest threshold that it is not below.
    starts = np.concatenate([[-np.inf], cuts])
    pattern = [np.zeros(starts.size, bool) if at is None else (at[0] <= starts) & (starts < at[1]) for at in limits]
    known = ~np.isnan(values)
    patterns, missing = np.column_stack(pattern), np.flatnonzero(~known)
    if missing.size:
        patterns = np.concatenate([patterns, dataset.X[missing[:1]][:, features]])
    last = len(patterns) - 1
    segment = [_segments(cuts, values + shift, known, last) for shift in (-radius, 0.0, radius)]
    if not np.array_equal(patterns[segment[1]], dataset.X[:, features]):
        raise InvalidInputError("Robust: radius: the features are not those of the numbers of the data")
    return ColumnChanges(features, patterns, segment[0], segment[2])


def _segments(cuts: FloatArray, values: FloatArray, known: BoolArray, otherwise: int) -> IntArray:
    """Return the number of cuts that each value is not below; another number for missing values."""
    found: IntArray = np.where(known, np.searchsorted(cuts, values, side="right"), otherwise).astype(np.int64)
    return found


# ---------------------------------------------------------------- the relaxed score


def _met(dataset: BinaryDataset, reach: Reach) -> BoolArray:
    """Return the features of the samples, moved in pairs of different classes to common points.

    As many pairs as possible with two classes and equal weights: a largest matching. Else heavy samples first.
    """
    X, n = dataset.X.copy(), dataset.n_samples
    if n > _MOST_PAIRED:
        return X
    found = [np.empty((0, 2), dtype=np.int64)]
    for i in np.flatnonzero(dataset.weights > 0).tolist():
        others = np.flatnonzero((dataset.y != dataset.y[i]) & (dataset.weights > 0))
        others = others[others > i]
        pairs = np.column_stack([np.full(others.size, i), others])
        found.append(pairs[reach.meeting(pairs)[0]])
    one, other = np.concatenate(found).T
    chosen = _matching(dataset, one, other)
    points = reach.meeting(np.column_stack([one, other])[chosen])[1]
    X[one[chosen]] = X[other[chosen]] = points
    return X


def _matching(dataset: BinaryDataset, one: IntArray, other: IntArray) -> IntArray:
    """Return positions of pairs that have no sample in common."""
    weights = dataset.weights
    if len(set(dataset.y.tolist())) == 2 and len(set(weights[weights > 0].tolist())) == 1 and one.size:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        first = dataset.y[one] == dataset.y.min()
        left, right = np.where(first, one, other), np.where(first, other, one)
        place = np.argsort(left * dataset.n_samples + right)
        keys = (left * dataset.n_samples + right)[place]
        graph = csr_array((np.ones(one.size), (left, right)), shape=(dataset.n_samples,) * 2)
        partner = maximum_bipartite_matching(graph, perm_type="column")
        matched = np.flatnonzero(partner >= 0)
        found: IntArray = place[np.searchsorted(keys, matched * dataset.n_samples + partner[matched])]
        return found
    used, chosen = np.zeros(dataset.n_samples, dtype=bool), []
    for pair in np.argsort(-np.minimum(weights[one], weights[other]), kind="stable").tolist():
        if not used[one[pair]] and not used[other[pair]]:
            used[[one[pair], other[pair]]] = True
            chosen.append(pair)
    return np.array(chosen, dtype=np.int64)
