"""What `OptimalTreeClassifier` does where it cannot search every split: all thresholds within a budget, or a choice.

An optimal tree is optimal over the questions that it may ask. Where all of them can be afforded, the encoder asks all;
where not, it takes quantiles, the thresholds of CART trees of the depth in question, and those of a few boosted trees.
So the optimum over the chosen questions is never worse than these CART trees on the training data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray, check_whole
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.greedy import GreedyTree, RankedTable, boosted_cuts, greedy_trees
from accel_oct.encoding.positions import Distinct, quantile_positions
from accel_oct.encoding.table import TableEncoder
from accel_oct.errors import InvalidInputError, shown

__all__ = ["DEFAULT_BUDGET", "AutoEncoder", "estimated_seconds"]

#: Seconds that the exact search may take by `estimated_seconds`.
DEFAULT_BUDGET = 5.0

_QUANTILES = (100, 50, 30, 20, 15, 10, 7, 5, 4, 3)
"""How many there may be, the finest first."""

_LEAST_QUANTILES = 3


def estimated_seconds(n_features: int, n_samples: int, n_classes: int, max_depth: int) -> float:
    """What the exact tables take on one core of a small machine, roughly and rather too much than too little.

    Counting goes through all sets of as many features as the tree is deep, in words of 64 samples; the constants were
    fitted to runs on scikit-learn's bundled tables (docs/encoders.md). Beyond depth four there is no such law; each
    further level is taken for another factor of a twentieth of the features.
    """
    per_set = (0.35 + 0.017 * n_samples / 64) * max(1, n_classes - 1) * 1e-9
    factor = {0: 0.0, 1: 100.0, 2: 5.0, 3: 1.0, 4: 0.3}.get(max_depth, 0.3)
    levels = min(max_depth, 4)
    deeper = (max(1.0, n_features / 20)) ** max(0, max_depth - 4)
    return float(factor * per_set * float(n_features) ** levels * deeper)


class AutoEncoder(TableEncoder):
    """All thresholds of a table where the search over them fits a budget, else quantiles and those of greedy trees.

    Columns that are not numeric are encoded as by `TableEncoder`.

    Parameters
    ----------
    max_depth : int
        Of the tree that is to be found.
    budget : float
        Seconds that the exact search may take by `estimated_seconds`; more thresholds, longer searches.
    max_features : int or None
        Most features where that takes fewer thresholds, whatever the budget; None: no limit.
    missing : {"category", "error"}
        As in `TableEncoder`.

    Attributes
    ----------
    exact_ : bool
        Whether every threshold is there: then a tree that is optimal over the features is optimal on the table.
    greedy_ : tuple of nested trees
        The CART trees whose thresholds were taken, over the features; empty where `exact_`. A leaf is a number, its
        class among those with weight in sorted order; a branch is ``(feature, tree for no, tree for yes)``.

    Notes
    -----
    The labels used here are those of the training data: inside cross-validation, keep the encoder inside the pipeline.
    """

    def __init__(
        self,
        max_depth: int = 3,
        *,
        budget: float = DEFAULT_BUDGET,
        max_features: int | None = None,
        missing: str = "category",
    ) -> None:
        super().__init__(missing=missing)
        self.max_depth = max_depth
        self.budget = budget
        self.max_features = max_features

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole(self.max_depth, "max_depth", 0)
        if self.max_features is not None:
            check_whole(self.max_features, "max_features", 0)
        number = isinstance(self.budget, int | float) and not isinstance(self.budget, bool)
        if not number or not self.budget >= 0:
            raise InvalidInputError(f"budget must be a number of seconds of at least 0, got {shown(self.budget)}")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AutoEncoder:
        """Learn the conditions; see `BinaryEncoder.fit`. Without y there are no trees to take thresholds from."""
        self._greedy: list[GreedyTree] = []
        super().fit(X, y, sample_weight)
        place = {condition: number for number, condition in enumerate(self.conditions_)}
        built = (tree.nested(place) for tree in self._greedy)
        self.greedy_ = tuple(dict.fromkeys(tree for tree in built if tree is not None))
        del self._greedy
        return self

    def _numeric_conditions(
        self,
        encoder: BinaryEncoder,
        numeric: Sequence[Column],
        others: Sequence[Condition],
        columns: Sequence[Column],
        y: Any,
        weights: FloatArray,
    ) -> Iterable[Condition]:
        distinct = [Distinct.of(column.values, weights, column.scale) for column in numeric]
        labels = None if y is None else np.unique(np.asarray(y).reshape(-1), return_inverse=True)[1].ravel()
        n_classes = 2 if labels is None else int(labels.max(initial=0)) + 1
        n_rows, n_others = self._n_samples or len(weights), len(others)

        # Where values are missing, every question comes twice: a missing value may answer no or yes.
        times = [2 if column.has_missing and self.missing == "category" else 1 for column in numeric]

        def affordable(positions: Sequence[NDArray[np.int64]]) -> bool:
            n_features = n_others + sum(t * len(some) for t, some in zip(times, positions, strict=True))
            if self.max_features is not None and n_features > self.max_features:
                return False
            return estimated_seconds(n_features, n_rows, n_classes, self.max_depth) <= self.budget

        everything = [np.arange(max(0, len(d.values) - 1)) for d in distinct]
        self.exact_ = self.max_depth == 0 or affordable(everything)
        chosen = everything
        if not self.exact_:
            cuts: dict[int, NDArray[np.int64]] = {}
            if labels is not None:
                table = RankedTable.of(numeric, distinct, others, columns, labels, weights)
                cuts = self._greedy_cuts(table)
            for n_quantiles in _QUANTILES:
                chosen = [
                    np.union1d(quantile_positions(d, n_quantiles), cuts.get(place, np.empty(0, dtype=np.int64)))
                    for place, d in enumerate(distinct)
                ]
                if affordable(chosen) or n_quantiles == _LEAST_QUANTILES:
                    break
            self.exact_ = all(len(some) == len(every) for some, every in zip(chosen, everything, strict=True))
        self.exact_ = self.exact_ and _tells_all_apart(others, columns, weights)
        for column, values, positions in zip(numeric, distinct, chosen, strict=True):
            for threshold in values.thresholds(positions.astype(np.int64)):
                yield Condition(column.index, "at_least", low=threshold)

    def _greedy_cuts(self, table: RankedTable) -> dict[int, NDArray[np.int64]]:
        """Positions of thresholds by place of the column; the trees are kept."""
        self._greedy = greedy_trees(table, self.max_depth)
        cuts: dict[int, set[int]] = {}
        for place, cut in [*(cut for tree in self._greedy for cut in tree.cuts), *boosted_cuts(table)]:
            cuts.setdefault(place, set()).add(cut)
        return {place: np.array(sorted(found), dtype=np.int64) for place, found in cuts.items()}


def _tells_all_apart(others: Sequence[Condition], columns: Sequence[Column], weights: FloatArray) -> bool:
    """Whether no rare categories share a feature, and ordered ones have a threshold between any two."""
    asked = Counter(condition.column for condition in others if condition.test == "at_least")
    ordered = [column for column in columns if column.kind == "ordered"]
    return not any(condition.test == "none_of" for condition in others) and all(
        asked[column.index] >= len(Distinct.of(column.values, weights, column.scale).values) - 1 for column in ordered
    )
