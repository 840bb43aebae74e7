"""encoder="auto": every threshold where that can be afforded, and never worse than CART where it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.data import BinaryDataset
from accel_oct.encoding import AllThresholdsEncoder, AutoEncoder, TableEncoder
from accel_oct.encoding.auto import estimated_seconds
from accel_oct.errors import InvalidInputError
from accel_oct.tree import DecisionTree

TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def best_cart(X: np.ndarray, y: np.ndarray, depth: int, penalty: float, seed: int = 0) -> float:
    """The best objective among CART trees of three criteria and all their cost-complexity prunings."""
    best = -np.inf
    for criterion in ("gini", "entropy", "log_loss"):
        tree = DecisionTreeClassifier(criterion=criterion, max_depth=depth, random_state=seed)
        for alpha in tree.cost_complexity_pruning_path(X, y).ccp_alphas:
            pruned = clone(tree).set_params(ccp_alpha=max(0.0, alpha)).fit(X, y)
            best = max(best, pruned.score(X, y) - penalty * pruned.get_n_leaves())
    return best


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("depth", "penalty"), [(2, 0.01), (2, 0.001), (4, 0.01)])
def test_never_worse_than_cart(name: str, depth: int, penalty: float) -> None:
    """With little to spend too; where every threshold is there, no CART tree exceeds the bound."""
    X, y = TABLES[name](return_X_y=True)
    cart = best_cart(X, y, depth, penalty)
    for budget in (0.001, 0.2):
        model = OptimalTreeClassifier(depth, penalty, encoder=AutoEncoder(depth, budget=budget)).fit(X, y)
        assert model.status_ == "optimal" and model.objective_ >= cart - 1e-12
        assert not model.exact_ or cart <= model.bound_ + 1e-12


def test_never_worse_than_cart_when_time_is_up() -> None:
    """The trees whose thresholds were taken are offered before anything else is done."""
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="not proven"):
        model = OptimalTreeClassifier(5, 0.001, time_limit=1e-9).fit(X, y)
    assert model.status_ == "time_limit" and model.objective_ >= best_cart(X, y, 5, 0.001) - 1e-12


def test_all_thresholds_where_they_fit() -> None:
    """The same features as `AllThresholdsEncoder`, hence the optimum on the raw table: 0.94 for iris at depth 3."""
    X, y = load_iris(return_X_y=True)
    encoder = AutoEncoder(3).fit(X, y)
    assert encoder.exact_ and encoder.conditions_ == AllThresholdsEncoder().fit(X).conditions_ and not encoder.greedy_
    model = OptimalTreeClassifier(3, 0.01).fit(X, y)
    assert model.exact_ and model.objective_ == pytest.approx(0.94)
    assert model.proof_ == "proven optimal over all splits of the table, depth at most 3"
    assert model.proof_ in model._repr_html_inner()
    part = OptimalTreeClassifier(3, 0.01, exclude=[2]).fit(X, y)
    words = "proven optimal over all splits of the columns that are not excluded, depth at most 3"
    assert part.exact_ and part.proof_ == words
    part.gap_, part.status_ = 1e-5, "time_limit"
    assert "gap below 0.01%" in part.proof_


def test_thresholds_between_values_of_one_class_can_matter() -> None:
    """At depth two: z decides on the left of x >= 2 and u on the right, with class c on both sides of the threshold."""
    rows = [[x, z, u, (z, u)[x == 3]] for x in (0, 3) for z in (0, 1) for u in (0, 1)] + [[1, 0, 1, 0], [2, 1, 0, 0]]
    X, y = np.array(rows)[:, :3], np.array(rows)[:, 3]
    encoder = AllThresholdsEncoder().fit(X)
    binary = encoder.transform(X)
    needed = encoder.get_feature_names_out().tolist().index("x0 >= 2")
    assert accel_oct.solve(binary, y, max_depth=2, leaf_penalty=0.0).objective == 1.0
    without = accel_oct.solve(np.delete(binary, needed, axis=1), y, max_depth=2, leaf_penalty=0.0)
    assert without.status == "optimal" and without.objective == 0.9
    assert OptimalTreeClassifier(2, 0.0).fit(X, y).objective_ == 1.0


def test_what_is_chosen_is_said() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = OptimalTreeClassifier(2, 0.01, encoder=AutoEncoder(2, budget=0.001)).fit(X, y)
    assert model.exact_ and not model.encoder_.exact_  # the bound over every split shows that no other is needed
    assert model.proof_ == "proven optimal over all splits of the table, depth at most 2"
    model = OptimalTreeClassifier(2, 0.001, encoder=AutoEncoder(2, budget=1e-6)).fit(X[:, :3], y)
    count, more = len(model.encoder_.conditions_), model.table_bound_ - model.objective_
    assert not model.exact_ and model.proof_ == (
        f"proven optimal over {count} chosen splits of the table, depth at most 2; a tree over other splits of the "
        f"table is better by {more:.4g} at most"
    )
    copy = OptimalTreeClassifier.from_json(model.to_json())
    assert not copy.exact_ and copy.proof_ == model.proof_
    exact = OptimalTreeClassifier(1, 0.01, encoder=TableEncoder()).fit(X, y)
    assert not exact.exact_
    assert OptimalTreeClassifier(1, 0.01, encoder=None).fit(X.mean(axis=0) < X, y).exact_


def test_ordered_categories_that_are_cut_at_quantiles_are_not_exact() -> None:
    """Eighty of them: some cannot be told apart. Twenty can."""
    codes = np.random.default_rng(0).integers(0, 80, 300)
    names = [f"c{i:02d}" for i in range(80)]
    for many, size in ((True, 80), (False, 20)):
        column = pd.Categorical([names[c % size] for c in codes], categories=names[:size], ordered=True)
        encoder = AutoEncoder(1).fit(pd.DataFrame({"o": column}), codes > 40)
        assert encoder.exact_ is not many


def test_more_to_spend_never_hurts() -> None:
    """Fewer thresholds are among more of them, but for quantiles that move; the budget is kept."""
    X, y = load_wine(return_X_y=True)
    sizes = []
    for budget in (0.0, 0.001, 0.01, 0.1, 10.0):
        encoder = AutoEncoder(3, budget=budget).fit(X, y)
        sizes.append(len(encoder.conditions_))
        coarse = len(AutoEncoder(3, budget=0.0).fit(X, y).conditions_)
        assert sizes[-1] == coarse or estimated_seconds(sizes[-1], len(y), 3, 3) <= budget
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] == len(AllThresholdsEncoder().fit(X).conditions_)
    assert len(AutoEncoder(3, max_features=60).fit(X, y).conditions_) < sizes[-1]


def test_the_trees_are_those_of_cart() -> None:
    """Each is over the encoder's features and predicts what scikit-learn's tree on the raw table predicts."""
    frame, y = mixed_frame(200)
    encoder = AutoEncoder(3, budget=0.0)
    binary = encoder.fit_transform(frame, y)
    assert encoder.greedy_
    data = BinaryDataset.from_arrays(binary, y)

    def tree(nested: object) -> DecisionTree:
        if not isinstance(nested, tuple):
            return DecisionTree.leaf(int(nested))  # type: ignore[call-overload]
        return DecisionTree.branch(nested[0], tree(nested[1]), tree(nested[2]))

    scores = [tree(nested).score(data) / len(y) for nested in encoder.greedy_]
    X, target = load_wine(return_X_y=True)
    encoder = AutoEncoder(3, budget=0.0)
    data = BinaryDataset.from_arrays(encoder.fit_transform(X, target), target)
    found = {tuple(tree(nested).predictions(data.X).tolist()) for nested in encoder.greedy_}
    for criterion in ("gini", "entropy"):
        cart = DecisionTreeClassifier(criterion=criterion, max_depth=3, random_state=0).fit(X, target)
        assert tuple(cart.predict(X).tolist()) in found
    assert min(scores) > 0.7


def test_missing_values_categories_and_weights() -> None:
    """A sample of weight two is two samples, of weight zero none; missing values reach the greedy trees."""
    frame, y = mixed_frame(120)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    for budget in (0.0, 5.0):
        weighted = AutoEncoder(2, budget=budget).fit(frame, y, sample_weight=weights)
        repeated = AutoEncoder(2, budget=budget).fit(frame.iloc[rows], y[rows])
        assert weighted.conditions_ == repeated.conditions_ and weighted.greedy_ == repeated.greedy_
    model = OptimalTreeClassifier(2, 0.01, encoder=AutoEncoder(2, budget=0.0)).fit(frame, y, sample_weight=weights)
    assert model.status_ == "optimal"


def test_without_labels_there_are_quantiles() -> None:
    X, _ = load_wine(return_X_y=True)
    assert AutoEncoder(3, budget=0.0).fit(X).conditions_ == AutoEncoder(3, budget=0.0).fit(X).conditions_


def test_constraints_leave_fewer_thresholds() -> None:
    """Limits need an enumeration that grows fast with the features."""
    X, y = load_wine(return_X_y=True)
    free = OptimalTreeClassifier(2, 0.01).fit(X, y)
    limited = OptimalTreeClassifier(2, 0.01, max_features_used=1).fit(X, y)
    assert free.exact_ and not limited.exact_ and len(limited.encoder_.conditions_) < 150
    small = pd.DataFrame({"a": np.arange(20), "b": np.arange(20) % 3})
    assert OptimalTreeClassifier(2, 0.01, max_features_used=1).fit(small, np.arange(20) % 2).exact_


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": -1.0}, "budget"),
        ({"budget": "much"}, "budget"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_features": 1.5}, "max_features"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        AutoEncoder(**arguments).fit(np.arange(8).reshape(4, 2))  # type: ignore[arg-type]


def test_bad_starts_are_named() -> None:
    X, y = np.eye(3, dtype=int), np.array([0, 1, 0])
    deep = DecisionTree.branch(
        0, DecisionTree.leaf(0), DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1))
    )
    for start, words in (
        (deep, "start must be a list"),
        ([3], r"start\[0\] must be a DecisionTree"),
        ([deep], r"start\[0\] has depth 2"),
        ([DecisionTree.leaf(5)], r"start\[0\] names a feature or a class"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.0, start=start)
