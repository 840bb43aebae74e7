"""A search that is stopped is at least as good as CART, with and without limits on depth and leaves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import QuantileThresholdEncoder


def noise(n: int = 240, columns: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Columns that say little about the class: large trees, and no proof in short time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def best_pruning(tree: Any, X: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """The best objective of all prunings of a fitted CART tree."""

    def value(node: int) -> float:
        leaf = float(tree.value[node, 0].max() * tree.weighted_n_node_samples[node] / len(y)) - penalty
        if tree.children_left[node] < 0:
            return leaf
        return max(leaf, value(tree.children_left[node]) + value(tree.children_right[node]))

    return value(0)


@pytest.mark.parametrize("least", [1, 6])
@pytest.mark.parametrize(("depth", "encoder"), [(None, "auto"), (6, "auto"), (None, QuantileThresholdEncoder(4))])
def test_a_stopped_search_is_at_least_as_good_as_cart(depth: int | None, least: int, encoder: Any) -> None:
    """By the training objective, with the same smallest leaf, against every pruning of CART trees."""
    X, y = noise()
    seen = X if encoder == "auto" else np.asarray(encoder.fit(X, y).transform(X)).astype(float)
    for penalty in (0.01, 0.002):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = OptimalTreeClassifier(depth, penalty, min_samples_leaf=least, time_limit=0.3, encoder=encoder).fit(
                X, y
            )
        for criterion in ("gini", "entropy"):
            cart = DecisionTreeClassifier(
                criterion=criterion, max_depth=depth or 12, min_samples_leaf=least, random_state=0
            ).fit(seen, y)
            assert model.objective_ >= best_pruning(cart.tree_, seen, y, penalty) - 1e-9
        assert np.unique(model.apply(X), return_counts=True)[1].min() >= least
        assert model.bound_ >= model.objective_


def test_without_a_depth_limit_the_first_trees_are_deep() -> None:
    """Sixteen runs of equal classes along a column: the tree with all of them is found at once."""
    X = np.arange(640.0)[:, None]
    y = (X[:, 0] // 40 % 2).astype(int)
    model = OptimalTreeClassifier(None, 0.001, time_limit=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert model.fit(X, y).score(X, y) == 1.0
    assert model.get_n_leaves() == 16


def test_a_path_grows_cart_trees_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three penalties, none proven in time: CART trees are grown for the first and pruned for the others."""
    import accel_oct.estimators.greedy as module

    grown: list[int] = []
    really = module.cart_trees
    monkeypatch.setattr(module, "cart_trees", lambda *given: (grown.append(1), really(*given))[1])
    X, y = noise()
    path = OptimalTreeClassifier(None, time_limit=0.6).path(X, y, leaf_penalties=[0.004, 0.003, 0.002])
    assert [model.status_ for model in path] == ["time_limit"] * 3
    assert len(grown) == 1
