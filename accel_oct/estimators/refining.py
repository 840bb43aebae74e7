"""Refinement: search finer splits if no tree over the chosen splits satisfies the constraints.

A proof of infeasibility covers only the splits that were searched. Before it is reported for chosen splits, finer ones
are tried: every threshold of the table at depth one, and rounds with more and more thresholds for deeper trees.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints import BoundConstraint, bind_all
from accel_oct.data import BinaryDataset
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.encoding.auto import AutoEncoder
from accel_oct.estimators.training import CheckedRows, Solved, TrainingData
from accel_oct.support.arguments import checked_depth
from accel_oct.support.progress import announce
from accel_oct.tree import DecisionTree

ROUNDS = (250, 600)
"""Maximum number of features in each round, for depth two and more."""

SECONDS = 30.0
"""Time for all rounds together if there is no time limit."""

MOST_CELLS = 100_000_000
"""Largest product of samples and features for which every threshold is used."""


_CHUNK = 1000
"""Number of features whose stumps are evaluated together."""

_ROUNDING = 1e-9
"""Tolerance of sums relative to the sum of all magnitudes; far above the rounding error of floats."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """Search of finer splits for a tree that satisfies the constraints.

    Parameters
    ----------
    model : OptimalTreeClassifier
        With a fitted encoder; it is not changed.
    source : CheckedRows or EncodedTable
        Training data. The splits of an encoded table are not refined.
    time_limit : float or None
        Remaining seconds of the user's limit.
    is_stopped : callable
        Returns whether the user has asked to stop.
    """

    model: Any
    source: CheckedRows | EncodedTable
    time_limit: float | None
    is_stopped: Callable[[], bool]
    progress: Any

    def run(self, coarse: Solved) -> Solved:
        """Return the refined solve: a tree, or a proof of infeasibility over as many splits as possible.

        Parameters
        ----------
        coarse : Solved
            Solve over the chosen splits, with status "infeasible".
        """
        model = self.model
        chosen = isinstance(model.encoder, str) and not getattr(coarse.encoder, "exact_", False)
        if not chosen or isinstance(self.source, EncodedTable):
            return coarse
        end = time.perf_counter() + (SECONDS if self.time_limit is None else self.time_limit)
        return self._stumps(coarse, end) if checked_depth(model.max_depth) == 1 else self._rounds(coarse, end)

    # ---------------------------------------------------------------- depth one

    def _stumps(self, coarse: Solved, end: float) -> Solved:
        """Check every split with every pair of classes, then solve over the splits that satisfy the constraints."""
        announce(
            self.progress, "encoding", "every threshold, as no tree over the chosen ones satisfies the constraints"
        )
        finer, data = self._encoded(MOST_CELLS // max(1, coarse.data.dataset.n_samples), np.inf)
        bound = bind_all(self.model._all_constraints(data), data.dataset)
        kept, all_checked = [], True
        for feature, candidates in _stumps_within_limits(data.dataset, bound):
            if time.perf_counter() >= end or self.is_stopped():
                all_checked = False
                break
            if any(all(each.violation(stump) <= 0 for each in bound) for stump in candidates):
                kept.append(feature)
        if not kept and not all_checked:
            return coarse
        if not kept:
            stats = {**coarse.result.stats, "infeasible": tuple(each.name for each in bound)}
            return Solved(finer.encoder_, data, replace(coarse.result, stats=stats))
        places = np.array(kept)
        left = None if self.time_limit is None else max(0.0, end - time.perf_counter())
        selected = _selected(finer, data, places)
        result = finer._solve(selected, left, self.progress)
        if not all_checked:
            return Solved(_with_conditions(finer.encoder_, places), selected, result)
        # Stumps on other splits violate the constraints: the optimum over these splits is the optimum over all.
        if result.found is not None:
            feature = result.found.feature
            result = replace(result, found=DecisionTree(np.where(feature < 0, -1, places[feature]), result.found.label))
        return Solved(finer.encoder_, data, result)

    # ---------------------------------------------------------------- deeper

    def _rounds(self, coarse: Solved, end: float) -> Solved:
        """Solve over more thresholds in each round, until a tree is found or a limit is reached."""
        best = coarse
        for most in ROUNDS:
            left = end - time.perf_counter()
            if left <= 0 or self.is_stopped():
                break
            announce(self.progress, "encoding", f"up to {most} splits, as no tree over fewer satisfies the constraints")
            finer, data = self._encoded(most, self.model._effort()[0])
            if len(finer.encoder_.conditions_) <= len(best.encoder.conditions_):
                break
            result = finer._solve(data, left, self.progress)
            if result.found is not None and result.status == "time_limit" and self.time_limit is None:
                # `SECONDS` ended the solve: prove the optimum over fewer splits, including those of this tree.
                return self._around(coarse, finer, data, result.found)
            if result.found is None and result.status != "infeasible":
                break
            best = Solved(finer.encoder_, data, result)
            if result.found is not None:
                break
        return best

    def _around(self, coarse: Solved, finer: Any, data: TrainingData, tree: DecisionTree) -> Solved:
        """Return the optimum over the splits of a tree and those coarse splits that are among the finer ones."""
        known = set(coarse.encoder.conditions_)
        first = {place for place, condition in enumerate(finer.encoder_.conditions_) if condition in known}
        places = np.array(sorted(first | set(tree.features_used)))
        selected = _selected(finer, data, places)
        feature = np.where(tree.feature < 0, -1, np.searchsorted(places, tree.feature))
        selected = replace(selected, starts=(DecisionTree(feature, tree.label),))
        return Solved(_with_conditions(finer.encoder_, places), selected, finer._solve(selected, None, self.progress))

    # ---------------------------------------------------------------- helpers

    def _encoded(self, most: int, budget: float) -> tuple[Any, TrainingData]:
        """Return a copy of the model with an encoder of at most `most` splits, and the encoded data."""
        model = self.model
        finer = copy.copy(model)
        finer.encoder = AutoEncoder(model.max_depth, budget=budget, max_features=most, missing=model.missing)
        with warnings.catch_warnings():  # warnings were emitted when the data were first encoded
            warnings.simplefilter("ignore")
            return finer, finer._prepare(self.source)


def _stumps_within_limits(
    dataset: BinaryDataset, bound: Sequence[BoundConstraint]
) -> Iterator[tuple[int, list[DecisionTree]]]:
    """Yield each feature with its stumps that satisfy all linear limits up to rounding.

    They include every stump that satisfies the constraints. This filter of a few matrix products leaves few stumps for
    the exact check by `violation`.
    """
    limits = [limit for each in bound for limit in each.traits.limits or ()]
    pairs = np.array(list(product(range(dataset.n_classes), repeat=2)))
    for start in range(0, dataset.n_features, _CHUNK):
        X = dataset.X[:, start : start + _CHUNK].astype(np.float64)
        possible = np.ones((X.shape[1], len(pairs)), dtype=bool)
        for limit in limits:
            used = np.full(possible.shape, 2 * limit.leaves)
            size = abs(limit.upper) + abs(limit.leaves)
            if limit.predictions is not None:
                one = X.T @ limit.predictions
                zero = limit.predictions.sum(axis=0) - one
                used += zero[:, pairs[:, 0]] + one[:, pairs[:, 1]]
                size += float(np.abs(limit.predictions).sum())
            if limit.branches is not None:
                used += limit.branches[start : start + _CHUNK, None]
            possible &= used <= limit.upper + limit.tolerance + _ROUNDING * size
        for place in np.flatnonzero(possible.any(axis=1)).tolist():
            feature, labels = start + place, pairs[possible[place]].tolist()
            yield feature, [DecisionTree.branch(feature, *map(DecisionTree.leaf, pair)) for pair in labels]


def _with_conditions(encoder: AutoEncoder, places: NDArray[np.int64]) -> AutoEncoder:
    """Return an encoder with some of the conditions of a fitted one."""
    fewer = copy.copy(encoder)
    fewer.conditions_ = tuple(encoder.conditions_[place] for place in places)
    fewer.inexact_ = tuple(np.flatnonzero(np.isin(places, encoder.inexact_)).tolist())
    fewer.exact_, fewer.greedy_ = False, ()
    return fewer


def _selected(model: Any, data: TrainingData, places: NDArray[np.int64]) -> TrainingData:
    """Return the same data with some of the features."""
    whole = data.dataset
    dataset = replace(
        whole,
        X=np.ascontiguousarray(whole.X[:, places]),
        feature_names=tuple(whole.feature_names[place] for place in places),
        sources=None if whole.sources is None else tuple(whole.sources[place] for place in places),
        value_sets=None if whole.value_sets is None else tuple(whole.value_sets[place] for place in places),
        intervals=tuple(whole.intervals[place] for place in places) if whole.intervals else (),
    )
    score = model._objective(data.class_factors).bind(dataset)
    return replace(data, dataset=dataset, score=score, names=tuple(data.names[place] for place in places), starts=())
