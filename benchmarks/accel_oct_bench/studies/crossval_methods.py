"""The methods that `accel_oct_bench.studies.fairness_crossval` compares, each one call in a process of its own.

A call takes the training part (group, features, classes 0 and 1), the test part (group and features), the name of the
constraint ("parity" or "opportunity"), its limit (None without one), the depth and the seconds allowed. It answers
with the probability of a positive prediction for each row of both parts: 0 or 1 for a tree, something between for
fairlearn's methods, which draw lots for each prediction. Rates and accuracy are then those expected over the draws.

The levels are made the same, "no two groups differ by more than the limit":

* ours and STreeD ask for just this.
* `ThresholdOptimizer` has it as `tol` (fairlearn 0.13 and later).
* `ExponentiatedGradient` bounds how far each group is from the mean over all. Of two groups with the shares p and 1 - p
  the larger deviation is max(p, 1 - p) times their difference, so `difference_bound` is the limit times this;
  the shares are those among positive samples for equal opportunity. Of more groups this bounds the
  difference only by twice as much; the sets here have two.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct_bench.studies.crossval_results import accuracy, splits
from accel_oct_bench.studies.rival_calls import Answer, fitted_streed, missing

#: What a leaf costs our trees, in accuracy, where nothing is tuned: of trees that are as good a small one.
LEAF_PENALTY = 0.001
#: What a leaf may cost where it is chosen: in accuracy for our trees, in impurity (`ccp_alpha`) for CART.
PENALTIES = (0.001, 0.003, 0.01, 0.03)
INNER_FOLDS = 3


@dataclass(frozen=True)
class Fitted(Answer):
    """An answer with a model: probabilities of a positive prediction, and the leaves of all its trees."""

    train: Any = ()
    test: Any = ()
    leaves: int = 0


def among(y: Any, constraint: str) -> Any:
    """The samples whose predictions are compared."""
    return np.ones(len(y), dtype=bool) if constraint == "parity" else np.asarray(y) == 1


def largest_deviation(group: Any, y: Any, constraint: str, limit: float) -> float:
    """How far one of two groups may be from the mean when they differ by `limit`."""
    _, counts = np.unique(np.asarray(group)[among(y, constraint)], return_counts=True)
    if len(counts) > 2:
        raise ValueError("the bound on the deviation from the mean is exact for two groups only")
    return float(limit * counts.max() / counts.sum())


def constant(group: Any, X: Any, y: Any, test_group: Any, test_X: Any, *problem: Any) -> Fitted:
    """The more frequent class for everyone: fair at no effort, and what others must beat."""
    label = float(np.mean(y) >= 0.5)
    return Fitted("fitted", 0.0, (), np.full(len(X), label), np.full(len(test_X), label), 1)


def ours(
    group: Any,
    X: Any,
    y: Any,
    test_group: Any,
    test_X: Any,
    constraint: str,
    limit: float | None,
    depth: int,
    allowed: float,
    penalty: float = LEAF_PENALTY,
) -> Fitted:
    """`accel_oct.solve`; with a limit the best tree among those that keep it on the training part."""
    import accel_oct
    from accel_oct.constraints import EqualOpportunity, StatisticalParity

    kind = {"parity": StatisticalParity, "opportunity": EqualOpportunity}[constraint]
    constraints = [] if limit is None else [kind(group, at_most=limit)]
    began = time.perf_counter()
    result = accel_oct.solve(X, y, max_depth=depth, leaf_penalty=penalty, constraints=constraints, time_limit=allowed)
    seconds = time.perf_counter() - began
    tree = result.tree
    return Fitted(result.status, seconds, (), tree.predict(X), tree.predict(test_X), tree.n_leaves)


def ours_with_group(group: Any, X: Any, y: Any, test_group: Any, test_X: Any, *problem: Any) -> Fitted:
    """The same with the group as a column to split on: as `ThresholdOptimizer`, it must be known of everyone."""
    train, test = np.column_stack([X, group]), np.column_stack([test_X, test_group])
    return ours(group, train, y, test_group, test, *problem)


def _cart(depth: int, penalty: float) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=depth, ccp_alpha=penalty, random_state=0)


def cart(
    group: Any,
    X: Any,
    y: Any,
    test_group: Any,
    test_X: Any,
    constraint: str,
    limit: None,
    depth: int,
    allowed: float,
    penalty: float = 0.0,
) -> Fitted:
    """scikit-learn's tree as it comes, without pruning."""
    began = time.perf_counter()
    model = _cart(depth, penalty).fit(X, y)
    seconds = time.perf_counter() - began
    return Fitted("fitted", seconds, (), model.predict(X), model.predict(test_X), int(model.get_n_leaves()))


def gradient(
    group: Any,
    X: Any,
    y: Any,
    test_group: Any,
    test_X: Any,
    constraint: str,
    limit: float,
    depth: int,
    allowed: float,
    penalty: float = 0.0,
) -> Fitted:
    """fairlearn's `ExponentiatedGradient` over CART, with its default settings."""
    return _reduction(_cart(depth, penalty), group, X, y, test_X, constraint, limit)


def gradient_optimal(
    group: Any, X: Any, y: Any, test_group: Any, test_X: Any, constraint: str, limit: float, depth: int, allowed: float
) -> Fitted:
    """The same over optimal trees: what of the difference is due to the trees, and what to drawing lots."""
    from accel_oct import OptimalTreeClassifier

    base = OptimalTreeClassifier(max_depth=depth, leaf_penalty=LEAF_PENALTY)
    return _reduction(base, group, X, y, test_X, constraint, limit)


def _reduction(base: Any, group: Any, X: Any, y: Any, test_X: Any, constraint: str, limit: float) -> Fitted:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient, TruePositiveRateParity

    kind = {"parity": DemographicParity, "opportunity": TruePositiveRateParity}[constraint]
    bound = largest_deviation(group, y, constraint, limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = ExponentiatedGradient(base, kind(difference_bound=bound)).fit(X, y, sensitive_features=group)
        seconds = time.perf_counter() - began
        train, test = (model._pmf_predict(part)[:, 1] for part in (X, test_X))
    leaves = sum(_leaves(model.predictors_[place]) for place in np.flatnonzero(model.weights_.sort_index() > 0))
    return Fitted("converged" if model.best_gap_ < model.nu else "not converged", seconds, (), train, test, leaves)


def _leaves(tree: Any) -> int:
    return int(tree.get_n_leaves()) if hasattr(tree, "get_n_leaves") else 1  # a constant where all weight is one class


def threshold(
    group: Any,
    X: Any,
    y: Any,
    test_group: Any,
    test_X: Any,
    constraint: str,
    limit: float,
    depth: int,
    allowed: float,
    penalty: float = 0.0,
) -> Fitted:
    """fairlearn's `ThresholdOptimizer` on CART's shares per leaf: a threshold for each group, which must be known."""
    from fairlearn.postprocessing import ThresholdOptimizer

    name = {"parity": "demographic_parity", "opportunity": "true_positive_rate_parity"}[constraint]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = ThresholdOptimizer(
            estimator=_cart(depth, penalty),
            constraints=name,
            objective="accuracy_score",
            predict_method="predict_proba",
            tol=limit,
        )
        model.fit(X, y, sensitive_features=group)
        seconds = time.perf_counter() - began
        train = model._pmf_predict(X, sensitive_features=group)[:, 1]
        test = model._pmf_predict(test_X, sensitive_features=test_group)[:, 1]
    return Fitted("fitted", seconds, (), train, test, int(model.estimator_.get_n_leaves()))


def streed(
    group: Any, X: Any, y: Any, test_group: Any, test_X: Any, constraint: str, limit: float, depth: int, allowed: float
) -> Answer:
    """STreeD without a price for leaves, which these tasks of it do not have."""
    model, seconds = fitted_streed(group, X, y, constraint, limit, depth, allowed)
    if not model.is_fitted():
        return Answer("no tree", seconds)
    train, test = (
        np.asarray(model.predict(np.column_stack([who, part]).astype(np.int32)))
        for who, part in ((group, X), (test_group, test_X))
    )
    status = "optimal" if model.fit_result.is_optimal() else "time_limit"
    return Fitted(status, seconds, (), train, test, int(model.get_n_leaves()))


@dataclass(frozen=True)
class Tuned:
    """A call with the penalty that is best in cross-validation within the training part; the largest among ties.

    All inner fits have the limit. What is compared is accuracy alone: the gap on so few samples is mostly noise.
    """

    call: Callable[..., Fitted]

    @property
    def __name__(self) -> str:
        return f"tuned {self.call.__name__}"

    def __call__(self, group: Any, X: Any, y: Any, test_group: Any, test_X: Any, *problem: Any) -> Fitted:
        began = time.perf_counter()
        scores = np.zeros(len(PENALTIES))
        for _, train, test in splits(y, group, INNER_FOLDS, repeat=0):
            for place, penalty in enumerate(PENALTIES):
                part = (group[train], X[train], y[train], group[test], X[test])
                answer = self.call(*part, *problem, penalty=penalty)
                scores[place] += accuracy(answer.test, y[test]) * len(test)
        best = max(penalty for penalty, score in zip(PENALTIES, scores, strict=True) if score >= scores.max() - 1e-9)
        answer = self.call(group, X, y, test_group, test_X, *problem, penalty=best)
        return replace(answer, seconds=time.perf_counter() - began)


@dataclass(frozen=True)
class Method:
    """A call, what it is named in tables, whether it knows limits, and the package it needs."""

    call: Callable[..., Answer]
    title: str
    limited: bool
    package: str = "sklearn"

    @property
    def lacking(self) -> bool:
        return missing(self.package)


METHODS = {
    "constant": Method(constant, "constant", False),
    "cart": Method(cart, "CART", False),
    "ours-free": Method(ours, "ours, no limit", False),
    "ours": Method(ours, "ours", True),
    "ours-group": Method(ours_with_group, "ours, group known", True),
    "streed": Method(streed, "STreeD", True, "pystreed"),
    "gradient": Method(gradient, "EG, CART", True, "fairlearn"),
    "gradient-optimal": Method(gradient_optimal, "EG, optimal trees", True, "fairlearn"),
    "threshold": Method(threshold, "thresholds, CART", True, "fairlearn"),
    "cart-tuned": Method(Tuned(cart), "CART, tuned", False),
    "ours-tuned": Method(Tuned(ours), "ours, tuned", True),
    "gradient-tuned": Method(Tuned(gradient), "EG, CART, tuned", True, "fairlearn"),
    "threshold-tuned": Method(Tuned(threshold), "thresholds, CART, tuned", True, "fairlearn"),
}


def small_problem(limited: bool) -> tuple[Any, ...]:
    """Something to begin with, so that neither imports nor compiled code are measured."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 20))
    y = ((X[:, 0] & X[:, 1]) ^ (rng.random(300) < 0.1)).astype(int)
    group = X[:, 0] ^ (rng.random(300) < 0.2)
    return group, X, y, group, X, "parity", 0.05 if limited else None, 3
