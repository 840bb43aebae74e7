"""Stable retraining: of all trees close to the optimum the one that agrees most with an old model.

Three problems follow each other, each with a proof: the largest objective; the largest agreement of a tree whose
objective is at least the optimum minus `within`; the largest objective of a tree with that agreement. Where few trees
are close to the optimum, they are listed. Otherwise, as objective and agreement are sums over samples and leaves, each
limit is linear and is solved like any other (prices first).

Agreement is the share of the weight with equal predictions, or the share of the old tree's splits that the new tree
has. The latter is no sum over samples: the trees close to the optimum are listed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints import BoundConstraint, Constraint, LinearLimit, Traits, bind_all
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact.near_optimal import FoundTrees
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import Fixed, LinearScore, Objective, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.config import Config, as_config
from accel_oct.solving.near_optimal import Setting, near_search
from accel_oct.solving.problem import PROOF_TOLERANCE
from accel_oct.solving.result import Result, Status, chosen_result
from accel_oct.solving.solve import solve
from accel_oct.support.arguments import number_not_negative, time_left
from accel_oct.support.arrays import IntArray
from accel_oct.support.progress import Sink
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree

__all__ = [
    "AGREEMENTS",
    "ClosestTree",
    "Listing",
    "OldSplits",
    "agreement_score",
    "checked_agreement",
    "closest_to",
    "closest_tree",
    "linear_score",
    "sharing_most",
    "without_constraints",
]

AGREEMENTS = ("predictions", "splits")


#: The list of near-optimal trees: largest depth, number of trees and seconds.
_DEEPEST_LIST, _MOST_LISTED, _LIST_SECONDS = 4, 50_000, 10.0


@dataclass(frozen=True)
class ClosestTree:
    """A tree close to the optimum, and its agreement with an old model.

    Attributes
    ----------
    result : Result
        The tree with its objective; its `bound` is that of the optimum.
    agreement : float
        Share of the weight for which the tree and the old model predict the same class; or the share of the old tree's
        splits that the tree has, as `OldSplits` counts them.
    agreement_bound : float
        Upper bound on the agreement of all trees within `within` of the optimum.
    optimum : float or None
        The largest objective of all trees; None if the search ended before it was proven. Then the tree is the best
        known one, whatever its agreement.
    within : float
    status : str
        "optimal": no tree within `within` of the optimum agrees on more, and none that agrees on as much has a larger
        objective. Otherwise the reason why a search ended early.
    seconds : float
    """

    result: Result
    agreement: float
    agreement_bound: float
    optimum: float | None
    within: float
    status: Status
    seconds: float

    @property
    def tree(self) -> DecisionTree:
        """The tree; raises NoTreeError where there is none."""
        return self.result.tree

    @property
    def objective(self) -> float:
        """The objective of the tree."""
        return self.result.objective


def closest_tree(
    X: Any,
    y: Any = None,
    *,
    close_to: Any,
    max_depth: int,
    leaf_penalty: float,
    within: float,
    sample_weight: Any = None,
    agreement: str = "predictions",
    constraints: Sequence[Constraint] | None = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    config: Config | str = "default",
    time_limit: float | None = None,
    progress: Sink | None = None,
) -> ClosestTree:
    """Find the tree that agrees most with an old model, of all trees with an objective close to the optimum.

    The objective, leaf penalties included, is at least the optimum minus `within`; of these trees the one that predicts
    the class of the old model for the largest weight of the training samples; of trees with equal agreement the one
    with the largest objective. All three are proven.

    Parameters
    ----------
    X, y, sample_weight, constraints, objective, solver, config, progress
        As for `accel_oct.solve`; rows and not a tally, and an objective that is a sum over the samples. The gap of the
        solver is not used.
    close_to : DecisionTree or array-like (n_samples,)
        A tree over the columns of X; or the classes that an old model predicts for the rows of X. A class that is not
        in y agrees with no tree.
    agreement : {"predictions", "splits"}
        "splits": of the trees that `accel_oct.near_optimal` lists with ``labels="best"``, take the one that has the
        largest share of the splits of the old tree, see `OldSplits`; `close_to` must be a tree, and there may be no
        constraints.
    max_depth : int
    leaf_penalty : float
    within : float
        Largest difference to the optimum; 0 chooses among optimal trees. It is enlarged by 1e-9, as in
        `accel_oct.near_optimal`.
    time_limit : float, optional
        Seconds, for all problems together.

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    NoTreeError
        If no tree satisfies the constraints, or none was found in time.
    """
    began = time.perf_counter()
    number_not_negative(within, "within")
    checked_agreement(agreement)
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth)
    if isinstance(X, Tally):
        raise InvalidInputError("close_to needs rows, which a tally does not have")
    X = BinaryDataset.of(X, y, sample_weight)
    score = linear_score(as_objective(objective).bind(X))
    splits, agreed = None, None
    if agreement == "splits":
        without_constraints(constraints or ())
        splits = OldSplits.of_tree(X, close_to)
    else:
        agreed = agreement_score(X, close_to)

    def solved(goal: Objective, penalty: float, more: Sequence[Constraint], **options: Any) -> Result:
        return solve(
            X,
            max_depth=max_depth,
            leaf_penalty=penalty,
            constraints=[*(constraints or ()), *more],
            objective=goal,
            solver=replace(as_solver(solver), gap=0.0),
            config=config,
            time_limit=time_left(time_limit, began),
            progress=progress,
            **options,
        )

    first = solved(Fixed(score), leaf_penalty, ())
    listing = Listing(max_depth, as_solver(solver), as_config(config), time_left(time_limit, began))
    if splits is not None:
        return sharing_most(first, score, splits, leaf_penalty, within, began, listing)
    assert agreed is not None
    bound = bind_all(constraints, X)
    return closest_to(solved, first, score, agreed, leaf_penalty, within, bound, began, listing)


def closest_to(
    solved: Callable[..., Result],
    first: Result,
    score: LinearScore,
    agreement: LinearScore,
    leaf_penalty: float,
    within: float,
    constraints: Sequence[BoundConstraint],
    began: float,
    listing: Listing,
) -> ClosestTree:
    """Solve the second and the third problem.

    Parameters
    ----------
    solved : callable (objective, leaf_penalty, constraints, start) -> Result
        Solves the problem with another objective and with further constraints.
    first : Result
        Of the first problem.
    """
    best, dataset = first.tree, score.dataset
    value, agreed = _Amount(score, score.rows.leaf_price(leaf_penalty, score.norm)), _Amount(agreement)
    share, agreement_bound, optimum, status = agreement.value(best), 1.0, None, first.status
    chosen = best
    if first.status == "optimal":
        optimum, agreement_bound = first.objective, share
        listed = None
        if agreed.of(best) < agreed.most and not constraints:
            listed = listing.best(score, agreed, leaf_penalty, within)
        if listed is not None:
            chosen = listed
            agreement_bound = agreement.value(chosen)
        elif agreed.of(best) < agreed.most:
            near = AtLeast("near the optimum", value, value.of(best) - within * score.norm - value.tolerance)
            second = solved(Fixed(agreement), 0.0, [near], start=[best])
            chosen, agreement_bound, status = second.tree, second.bound, second.status
            if status == "optimal" and value.of(chosen) < value.of(best):
                same = AtLeast("agreement", agreed, agreed.of(chosen) - agreed.tolerance)
                third = solved(Fixed(score), leaf_penalty, [same], start=[chosen])
                chosen, status = third.tree, third.status
        share = agreement.value(chosen)
    result = first
    if chosen is not best:
        objective = score.value(chosen) - leaf_penalty * chosen.n_leaves
        result = chosen_result(dataset, chosen, objective, first.bound, constraints)
        result = replace(result, stats={**first.stats, **result.stats}, scope=first.scope)
    seconds = time.perf_counter() - began
    return ClosestTree(result, share, max(agreement_bound, share), optimum, float(within), status, seconds)


def sharing_most(
    first: Result,
    score: LinearScore,
    splits: OldSplits,
    leaf_penalty: float,
    within: float,
    began: float,
    listing: Listing,
) -> ClosestTree:
    """List the trees near the optimum, and take the one that has most splits of the old tree.

    Parameters
    ----------
    first : Result
        The optimum.
    """
    best = chosen = first.tree
    share, bound, optimum, status = splits.share(best), 1.0, None, first.status
    result = first
    if first.status == "optimal":
        optimum = first.objective
        found, ended = listing.trees(score, leaf_penalty, within, "best", listing.time_limit)
        most = -1
        for listed in found.trees:  # best objective first
            if min(listed.n_leaves - 1, splits.total) > most:
                tree = DecisionTree.from_nested(listed.tree, listing.max_depth)
                shared = splits.shared(tree)
                if shared > most:
                    chosen, most = tree, shared
        share = splits.share(chosen)
        if found.complete or share == 1.0:
            bound = share
        else:
            status = ended
    if chosen is not best:
        objective = score.value(chosen) - leaf_penalty * chosen.n_leaves
        result = chosen_result(score.dataset, chosen, objective, first.bound, ())
        result = replace(result, stats={**first.stats, **result.stats}, scope=first.scope)
    seconds = time.perf_counter() - began
    return ClosestTree(result, share, bound, optimum, float(within), status, seconds)


@dataclass(frozen=True)
class OldSplits:
    """The splits of an old tree, as a multiset that does not depend on their places in the tree.

    A tree shares with it the size of the intersection of both multisets: a split that the old tree has twice and the
    new one once counts once.

    Attributes
    ----------
    same : int array (n_features,)
        The number of the old split that each feature is; -1 for none.
    counts : int array
        How often the old tree has each split.
    """

    same: IntArray
    counts: IntArray

    @classmethod
    def of_tree(cls, dataset: BinaryDataset, close_to: Any) -> OldSplits:
        """Return the splits of a tree over the features of the data: equal features are equal splits."""
        if not isinstance(close_to, DecisionTree):
            raise InvalidInputError(f"agreement='splits' needs a DecisionTree as close_to, got {shown(close_to)}")
        _classes(dataset, close_to)  # rejects a tree over other features
        features = close_to.feature[close_to.branch_nodes - 1]
        return cls(np.arange(dataset.n_features), np.bincount(features, minlength=dataset.n_features))

    @property
    def total(self) -> int:
        """Number of inner nodes of the old tree."""
        return int(self.counts.sum())

    def shared(self, tree: DecisionTree) -> int:
        """Return how many splits of the old tree a tree has."""
        own = self.same[tree.feature[tree.branch_nodes - 1]]
        return int(np.minimum(np.bincount(own[own >= 0], minlength=self.counts.size), self.counts).sum())

    def share(self, tree: DecisionTree) -> float:
        """Return the same as a share of all splits of the old tree; 1 if it is a leaf."""
        return self.shared(tree) / self.total if self.total else 1.0


def checked_agreement(agreement: Any) -> None:
    """Raise InvalidInputError unless the value is one of `AGREEMENTS`."""
    if not isinstance(agreement, str) or agreement not in AGREEMENTS:
        raise InvalidInputError(f"agreement must be 'predictions' or 'splits', got {shown(agreement)}")


def without_constraints(constraints: Sequence[Constraint]) -> None:
    """Raise InvalidInputError if there are constraints, under which trees near the optimum are not listed."""
    if constraints:
        raise InvalidInputError("agreement='splits' cannot be combined with constraints; agreement='predictions' can")


@dataclass(frozen=True)
class Listing:
    """The list of the trees close to the optimum, if it is short.

    Every tree within the slack becomes a proper tree if superfluous splits are removed: with the same predictions, and
    no more leaves. So one of the proper trees, which are listed, is the answer, where there are no constraints.
    """

    max_depth: int
    solver: Solver
    config: Config
    time_limit: float | None

    def best(self, score: LinearScore, agreed: _Amount, leaf_penalty: float, within: float) -> DecisionTree | None:
        """Return the tree with the largest agreement, then objective; None if not all trees could be listed."""
        if not self.config.enumeration or self.max_depth > _DEEPEST_LIST:
            return None
        seconds = _LIST_SECONDS if self.time_limit is None else min(_LIST_SECONDS, self.time_limit / 4)
        try:
            found, _ = self.trees(score, leaf_penalty, within, "any", seconds)
        except InvalidInputError:
            return None  # the values are too far apart for exact lists
        if not found.complete:
            return None
        best, most = None, -math.inf
        for listed in found.trees:  # best objective first
            tree = DecisionTree.from_nested(listed.tree, self.max_depth)
            amount = agreed.of(tree)
            if amount > most + (0.0 if best is None else agreed.tolerance):
                best, most = tree, amount
        return best

    def trees(
        self, score: LinearScore, leaf_penalty: float, within: float, labels: str, seconds: float | None
    ) -> tuple[FoundTrees, Status]:
        """Return the trees near the optimum, best first, and why they are not all if they are not complete.

        Raises
        ------
        InvalidInputError
            If the values are too far apart for exact lists.
        """
        setting = Setting.of(score, leaf_penalty, self.max_depth)
        stopper = Stopper(None if seconds is None else time.monotonic() + seconds)
        memory = self.config.subtree_bounds.memory_limit
        search = near_search(setting, within, labels, stopper, usable_threads(self.solver.n_threads), memory)
        stopper.run(lambda stopper: search.run(_MOST_LISTED, count=False))
        return search.found, stopper.reason or ("memory_limit" if search.found.ended == "memory_limit" else "stopped")


def linear_score(score: Any) -> LinearScore:
    """Return an objective that is a sum over the samples, or raise InvalidInputError."""
    if not isinstance(score, LinearScore):
        raise InvalidInputError(
            f"objective: a tree close to an old model needs a sum over the samples, not {score.name}"
        )
    return score


def agreement_score(dataset: BinaryDataset, close_to: Any) -> LinearScore:
    """Return the share of the weight for which a tree predicts the same class as an old model."""
    classes = _classes(dataset, close_to)
    rewards = np.where(np.arange(dataset.n_classes) == classes[:, None], dataset.weights[:, None], 0.0)
    return LinearScore.of("agreement", dataset, rewards, dataset.total_weight)


def _classes(dataset: BinaryDataset, close_to: Any) -> IntArray:
    """Return the class index that an old model predicts for every row; -1 for a class that the data do not have."""
    if isinstance(close_to, DecisionTree):
        if close_to.feature.max() >= dataset.n_features or close_to.label.max() >= dataset.n_classes:
            raise InvalidInputError("close_to names a feature or a class that the data do not have")
        return close_to.predictions(dataset.X)
    try:
        labels = np.asarray(close_to)
    except ValueError:
        labels = np.empty((0, 0))
    if labels.shape != (dataset.n_samples,):
        raise InvalidInputError(
            f"close_to must be a DecisionTree or one class for each of the {dataset.n_samples} rows, "
            f"got {shown(close_to)}"
        )
    place = {label: index for index, label in enumerate(dataset.classes.tolist())}
    found = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    if (found < 0).all():
        raise InvalidInputError(f"close_to predicts no class of y, whose classes are {shown(list(place))}")
    return found


# ---------------------------------------------------------------- limits on a score


class _Amount:
    """What a tree earns in units of weight: rewards of its predictions minus a price for each leaf; exact."""

    def __init__(self, score: LinearScore, leaf_price: float = 0.0) -> None:
        self.score, self.leaf_price = score, leaf_price
        self.tolerance = PROOF_TOLERANCE * score.rows.total_weight
        self.most = float(score.gains.max(axis=1).sum())

    def of(self, tree: DecisionTree) -> float:
        return tree.score(self.score.rows) - self.leaf_price * tree.n_leaves


@dataclass(frozen=True, eq=False)
class AtLeast(Constraint, BoundConstraint):
    """What a tree earns is at least some amount; for the data of the score alone."""

    name: str
    amount: _Amount
    least: float

    def bind(self, dataset: BinaryDataset) -> AtLeast:
        return self

    @cached_property
    def traits(self) -> Traits:
        limit = LinearLimit(self.name, -self.amount.score.gains, -self.least, leaves=self.amount.leaf_price)
        return Traits(limits=(limit,))

    def violation(self, tree: DecisionTree) -> float:
        return self.least - self.amount.of(tree)
