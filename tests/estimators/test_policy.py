"""Policy trees against exhaustive search; the arguments, the fitted attributes and the conventions of the estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from oracles.policies import all_policies, best_policy, mean_reward, thresholds
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.utils import estimator_checks

import accel_oct
from accel_oct import OptimalPolicyTree, OptimalTreeClassifier
from accel_oct.constraints import (
    EqualisedOdds,
    Linear,
    MinLeafWeight,
    PositiveBudget,
    Recall,
    StatisticalParity,
)
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.export import to_dot, to_html, to_python, to_sql, to_table
from accel_oct.export.stored_model import read_json

ROUNDING = 1e-9


def numeric_case(seed: int, n_treatments: int) -> tuple[np.ndarray, np.ndarray]:
    """Twelve rows with two columns of few values, and rewards of both signs."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, (12, 2)).astype(float), rng.normal(size=(12, n_treatments)) * 10.0 ** rng.integers(-3, 4)


def binary_case(seed: int, n_treatments: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twelve rows with four binary columns, rewards, and a group of each row."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (12, 4))
    return X, rng.normal(size=(12, n_treatments)) + 0.5, rng.permutation(np.arange(12) % 2)


def trial(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A trial of two treatments in which "b" is better above zero of the first column."""
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 3)), rng.choice(["a", "b"], n)
    return X, treatment, (treatment == "b") * np.sign(X[:, 0]) + 0.1 * rng.normal(size=n)


# ---------------------------------------------------------------- against exhaustive search


@pytest.mark.parametrize("n_treatments", [2, 3])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_tree_over_any_split_has_a_larger_mean_reward(n_treatments: int, depth: int, weighted: bool) -> None:
    """Objective, bound and the assigned rewards are the optimum of all trees over all thresholds, at every penalty."""
    for seed in range(4):
        X, rewards = numeric_case(seed, n_treatments)
        weights = np.random.default_rng(seed).integers(1, 4, 12).astype(float) if weighted else None
        policies = all_policies(thresholds(X), 12, n_treatments, depth)
        scale = np.abs(rewards).max()
        for penalty in (0.0, 0.05 * scale, 0.3 * scale):
            model = OptimalPolicyTree(depth, penalty).fit_rewards(X, rewards, sample_weight=weights)
            best = best_policy(policies, rewards, penalty, weights)
            own = mean_reward(rewards, model.predict(X), weights) - penalty * model.get_n_leaves()
            assert model.status_ == "optimal" and model.exact_
            assert model.objective_ == model.bound_ == pytest.approx(best, abs=ROUNDING * scale)
            assert own == pytest.approx(best, abs=ROUNDING * scale)


@pytest.mark.parametrize("n_treatments", [2, 3])
@pytest.mark.parametrize("limit", [0.0, 0.2, 0.5])
def test_budget_against_exhaustive_search(n_treatments: int, limit: float) -> None:
    """Under a budget for one treatment, the tree is the best of all trees that keep it."""
    for seed in range(4):
        X, rewards, _ = binary_case(seed, n_treatments)
        policies = all_policies(list(X.T.astype(bool)), 12, n_treatments, 2)
        best = best_policy(policies, rewards, 0.02, allows=lambda assigned: (assigned == 1).sum() <= limit * 12)
        budget = PositiveBudget(limit, positive=1)
        model = OptimalPolicyTree(2, 0.02, encoder=None, constraints=[budget]).fit_rewards(X, rewards)
        assert model.status_ == "optimal" and model.objective_ == pytest.approx(best, abs=ROUNDING)
        assert (model.predict(X) == 1).mean() <= limit
        assert mean_reward(rewards, model.predict(X)) - 0.02 * model.get_n_leaves() == pytest.approx(best)


@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_fairness_against_exhaustive_search(limit: float) -> None:
    """Treatment rates of groups differ by at most the limit, and no such tree is better; alone and with a budget."""
    for seed in range(4):
        X, rewards, group = binary_case(seed, 2)
        policies = all_policies(list(X.T.astype(bool)), 12, 2, 2)

        def is_fair(assigned: np.ndarray, group: np.ndarray = group) -> bool:
            return bool(abs(assigned[group == 0].mean() - assigned[group == 1].mean()) <= limit + 1e-12)

        parity = StatisticalParity(at_most=limit)
        for constraints, allows in (
            ([parity], is_fair),
            ([parity, PositiveBudget(0.4)], lambda assigned: is_fair(assigned) and assigned.sum() <= 0.4 * 12),
        ):
            model = OptimalPolicyTree(2, 0.02, encoder=None, constraints=constraints)
            model.fit_rewards(X, rewards, sensitive_features=group)
            best = best_policy(policies, rewards, 0.02, allows=allows)
            assert allows(model.predict(X))
            assert model.status_ == "optimal" and model.objective_ == pytest.approx(best, abs=ROUNDING)


def test_rows_whose_treatments_are_equal_count_for_a_budget() -> None:
    """Splits beside rows for which all treatments bring the same are used: a constraint counts these rows."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, rewards = rng.integers(0, 4, (12, 2)).astype(float), rng.integers(-2, 3, (12, 2)).astype(float)
        rewards[rng.random(12) < 0.5] = rng.integers(-2, 3)
        best = best_policy(all_policies(thresholds(X), 12, 2, 2), rewards, allows=lambda assigned: assigned.sum() <= 3)
        model = OptimalPolicyTree(2, constraints=[PositiveBudget(0.25)]).fit_rewards(X, rewards)
        assert model.exact_ and model.objective_ == pytest.approx(best, abs=ROUNDING), seed


def test_rows_whose_treatments_are_equal_count_for_parity() -> None:
    """The best tree splits between rows with different treatments and rows for which both bring the same."""
    X = np.array([[0], [0], [1], [1], [2], [2]])
    rewards = np.array([[1, 0], [1, 0], [5, 5], [5, 5], [0, 1], [0, 1]])
    group = np.array([0, 1, 0, 0, 1, 1])
    # Treatment 1 from 2 on: 0/3 and 2/3 of the groups; from 1 on: 2/3 of both.
    model = OptimalPolicyTree(1, constraints=[StatisticalParity(group, at_most=0.1)]).fit_rewards(X, rewards)
    assert model.predict(X).tolist() == [0, 0, 1, 1, 1, 1]
    assert model.objective_ == pytest.approx(14 / 6)


def test_bound_over_every_split_under_a_budget() -> None:
    """Under a budget, the bound for the whole table is no smaller than the optimum over every threshold."""
    for seed in range(4):
        X, rewards = numeric_case(seed, 2)
        rewards /= np.abs(rewards).max()
        policies = all_policies(thresholds(X), 12, 2, 2)
        best = best_policy(policies, rewards, allows=lambda assigned: assigned.sum() <= 3)
        model = OptimalPolicyTree(2, constraints=[PositiveBudget(0.25)]).fit_rewards(X, rewards)
        assert model.objective_ <= best + ROUNDING
        assert model.table_bound_ is None or model.table_bound_ >= best - ROUNDING
        assert not model.exact_ or model.objective_ == pytest.approx(best, abs=ROUNDING)


def test_costs_as_a_linear_limit() -> None:
    """A limit on the cost of all treatments, by row, gives the best of all trees that cost no more."""
    X, rewards, _ = binary_case(5, 3)
    costs = np.random.default_rng(0).integers(0, 5, (12, 3)).astype(float)
    policies = all_policies(list(X.T.astype(bool)), 12, 3, 2)
    model = OptimalPolicyTree(2, encoder=None, constraints=[Linear(costs, upper=18.0, name="cost")])
    model.fit_rewards(X, rewards)
    best = best_policy(policies, rewards, allows=lambda each: costs[np.arange(12), each].sum() <= 18)
    assert model.objective_ == pytest.approx(best, abs=ROUNDING)
    assert costs[np.arange(12), model.predict(X)].sum() <= 18


@pytest.mark.parametrize("scale", [1e-9, 1e12])
def test_the_unit_of_rewards_does_not_matter(scale: float) -> None:
    """Rewards in a unit that is much smaller or larger give the same policy, with a scaled objective."""
    X, rewards = numeric_case(1, 3)
    rewards /= np.abs(rewards).max()
    plain, other = OptimalPolicyTree(2).fit_rewards(X, rewards), OptimalPolicyTree(2).fit_rewards(X, rewards * scale)
    assert other.objective_ == pytest.approx(plain.objective_ * scale, rel=1e-9)
    assert mean_reward(rewards, other.predict(X)) == pytest.approx(plain.objective_, rel=1e-9)


# ---------------------------------------------------------------- the fitted policy


def test_treatments_are_sorted_with_their_rewards() -> None:
    """Columns of rewards may be in any order, by name of a frame or by `treatments`: each keeps its treatment."""
    X, rewards = numeric_case(0, 2)
    frame = pd.DataFrame(rewards, columns=["new", "control"])
    by_name = OptimalPolicyTree(2).fit_rewards(X, frame)
    listed = OptimalPolicyTree(2).fit_rewards(X, rewards, ["new", "control"])
    assert by_name.treatments_.tolist() == ["control", "new"]
    np.testing.assert_array_equal(by_name.rewards_, rewards[:, ::-1])
    assigned = by_name.predict(X)
    np.testing.assert_array_equal(assigned, listed.predict(X))
    assert np.where(assigned == "new", rewards[:, 0], rewards[:, 1]).mean() == pytest.approx(by_name.objective_)
    three = pd.DataFrame(numeric_case(1, 3)[1], columns=["c", "a", "b"])
    model = OptimalPolicyTree(2).fit_rewards(X, three)
    np.testing.assert_array_equal(model.rewards_, three[["a", "b", "c"]])
    own = [row[label] for (_, row), label in zip(three.iterrows(), model.predict(X), strict=True)]
    assert model.value(X, rewards=three).estimate == pytest.approx(np.mean(own)) == pytest.approx(model.objective_)


def test_mean_rewards_at_every_node() -> None:
    """`tree_.rewards` is the weighted mean of the rewards of the rows at each node, and texts show it at leaves."""
    X, rewards = numeric_case(2, 3)
    weights = np.arange(1.0, 13.0)
    model = OptimalPolicyTree(2).fit_rewards(X, rewards, sample_weight=weights)
    np.testing.assert_allclose(model.tree_.rewards[0], np.average(rewards, axis=0, weights=weights))
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        here = leaves == leaf
        mean = np.average(rewards[here], axis=0, weights=weights[here])
        np.testing.assert_allclose(model.tree_.rewards[leaf], mean)
        label = model.predict(X)[here][0]
        assert f"treatment {label}  (mean reward {mean[label]:.4g}" in model.to_text()


def test_exports_of_a_policy() -> None:
    """Every export speaks of the treatments; Python code and scikit-learn's tree assign the same ones as `predict`."""
    X, treatment, outcome = trial()
    model = OptimalPolicyTree(1, outcome_model=Ridge()).fit(X, treatment, outcome)
    assert "mean reward" in to_html(model) and "mean reward" in to_dot(model)
    assert "'b'" in to_sql(model)
    found: dict = {}
    exec(to_python(model), found)  # code of the library's own
    rows = [dict(zip(["x0", "x1", "x2"], row, strict=True)) for row in X.tolist()]
    predict = next(value for name, value in found.items() if callable(value) and name.startswith("predict"))
    assert [predict(row) for row in rows] == model.predict(X).tolist()
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))


def test_decision_tables_of_a_policy() -> None:
    """They have mean rewards, not the shares of the treatments that were received."""
    X = np.array([[0.0], [1.0]] * 20)
    treatment = np.array((["a"] * 18 + ["b"] * 2) * 2)
    outcome = np.where(treatment == "b", np.where(X[:, 0] == 1, 2.5, -1.0), 0.0)
    model = OptimalPolicyTree(1, outcome_model=LinearRegression(), cv=2).fit(X, treatment, outcome)
    table = to_table(model)
    assert "probability" not in str(table) + table.to_csv() + table.to_html()
    assert table.to_csv().splitlines()[0] == "x0,treatment,mean reward,samples,share,mean reward of a,mean reward of b"
    place = {row.label: row for row in table.rows}
    assert set(place) == {"a", "b"} and place["b"].probabilities == (0.0, 1.0)
    expected = model.rewards_[model.predict(X) == "b"].mean(axis=0)
    assert place["b"].rewards == pytest.approx(tuple(expected))


def test_a_picture_of_a_policy() -> None:
    """`plot_tree` draws a policy, with the mean rewards of its leaves."""
    from accel_oct.plotting import plot_tree

    X, treatment, outcome = trial()
    ax = plot_tree(OptimalPolicyTree(1, outcome_model=Ridge()).fit(X, treatment, outcome))
    assert any("mean reward" in text.get_text() for text in ax.texts)


def test_stored_and_read_back() -> None:
    """A policy that is read from JSON assigns the same treatments, with the same attributes and parameters."""
    X, treatment, outcome = trial()
    model = OptimalPolicyTree(
        2, 0.01, method="direct", outcome_model=Ridge(), treatment_costs={"b": 0.2}, minimise=True, cv=4, random_state=7
    ).fit(X, treatment, outcome)
    text = model.to_json()
    read = OptimalPolicyTree.from_json(text)
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    np.testing.assert_array_equal(read.tree_.rewards, model.tree_.rewards)
    assert read.to_text() == model.to_text() and read.proof_ == model.proof_
    kept = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    assert {name: read.get_params()[name] for name in kept} == {**kept, "treatment_costs": [0.0, 0.2]}
    assert read.to_json() == text
    assert read.value(X, treatment, outcome).n_rows == len(X)  # models are cross-fitted on these rows


_NOT_STORED = {"outcome_model", "propensity_model", "progress", "constraints"}


def test_files_of_the_other_estimator_are_refused() -> None:
    """Each estimator names the kind of file that it was given instead of its own; damaged rewards are found."""
    X, rewards = numeric_case(0, 2)
    policy = OptimalPolicyTree(1).fit_rewards(X, rewards).to_json()
    classes = OptimalTreeClassifier(1, 0.0).fit(X, X[:, 0] > 1).to_json()
    with pytest.raises(InvalidInputError, match=r"no accel_oct.OptimalTreeClassifier"):
        OptimalTreeClassifier.from_json(policy)
    with pytest.raises(InvalidInputError, match=r"no accel_oct.OptimalPolicyTree"):
        OptimalPolicyTree.from_json(classes)
    with pytest.raises(InvalidInputError, match="minimise"):
        OptimalPolicyTree.from_json(policy.replace('"minimise": false', '"minimise": 3'))
    with pytest.raises(InvalidInputError, match="rewards"):
        OptimalPolicyTree.from_json(policy.replace('"rewards": [', '"rewards": [[1.0, 2.0], ', 1))
    with pytest.raises(InvalidInputError, match="no accel_oct"):
        read_json(policy)


# ---------------------------------------------------------------- arguments


def test_columns_by_name() -> None:
    """Treatment and outcome may be names of columns, which are then no features; `value` takes the same frame."""
    X, treatment, outcome = trial()
    frame = pd.DataFrame(X, columns=["age", "dose", "noise"]).assign(arm=treatment, result=outcome)
    settings = {"max_depth": 1, "outcome_model": LinearRegression()}
    named = OptimalPolicyTree(**settings).fit(frame, "arm", "result")
    plain = OptimalPolicyTree(**settings).fit(X, treatment, outcome)
    assert named.feature_names_in_.tolist() == ["age", "dose", "noise"]
    np.testing.assert_array_equal(named.rewards_, plain.rewards_)
    assert named.value(frame, "arm", "result").estimate == plain.value(X, treatment, outcome).estimate
    np.testing.assert_array_equal(named.predict(frame[["age", "dose", "noise"]]), plain.predict(X))


def test_excluded_columns_are_still_confounders() -> None:
    """A column that no split may use is seen by the models of outcome and propensity."""
    X, treatment, outcome = trial()
    model = OptimalPolicyTree(1, exclude=[0], outcome_model=Ridge()).fit(X, treatment, outcome)
    free = OptimalPolicyTree(1, outcome_model=Ridge()).fit(X, treatment, outcome)
    np.testing.assert_array_equal(model.rewards_, free.rewards_)
    assert "x0" in free.to_text() and "x0" not in model.to_text()


def test_costs_and_the_direction() -> None:
    """Rewards are outcomes minus costs; with `minimise`, minus outcomes minus costs; by label or in order."""
    X, treatment, outcome = trial()
    settings = {"max_depth": 1, "outcome_model": Ridge()}
    plain = OptimalPolicyTree(**settings).fit(X, treatment, outcome).rewards_
    cost = np.array([0.0, 0.25])
    for given in ({"b": 0.25}, [0.0, 0.25]):
        paid = OptimalPolicyTree(**settings, treatment_costs=given).fit(X, treatment, outcome).rewards_
        np.testing.assert_allclose(paid, plain - cost)
    least = OptimalPolicyTree(**settings, treatment_costs=[0.0, 0.25], minimise=True).fit(X, treatment, outcome)
    np.testing.assert_allclose(least.rewards_, -plain - cost)
    value = least.value(X, treatment, outcome)
    gross = OptimalPolicyTree(**settings, minimise=True).fit(X, treatment, outcome).value(X, treatment, outcome)
    assert value.constant["b"].mean == pytest.approx(gross.constant["b"].mean - 0.25)


def test_mixed_columns_and_missing_values() -> None:
    """Text, booleans, categories and missing values reach the models as numbers, and the tree as they are."""
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "region": rng.choice(np.array(["north", "south", None], dtype=object), n),
            "smoker": rng.random(n) < 0.5,
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "grade": pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "high"], ordered=True),
        }
    )
    treatment = rng.integers(0, 2, n)
    outcome = treatment * np.where(frame["region"] == "north", 1.0, -1.0)
    model = OptimalPolicyTree(1, outcome_model=LinearRegression()).fit(frame, treatment, outcome)
    assert "region" in model.to_text()
    np.testing.assert_array_equal(model.predict(frame), (frame["region"] == "north").astype(int))


SMALL, ARMS, Y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2, np.arange(10.0)


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        ((SMALL, np.zeros(10, int), Y), {}, "single value"),
        ((SMALL, np.arange(10) == 3, Y), {}, r"True has fewer rows \(1\) than the 5 folds"),
        ((SMALL, np.linspace(0, 1, 10), Y), {}, "treatment holds numbers that are not whole"),
        ((SMALL, [None, *ARMS[1:]], Y), {}, "treatment has a missing"),
        ((SMALL, ARMS[1:], Y), {}, "treatment"),
        ((SMALL, ARMS, np.where(Y == 2, np.nan, Y)), {}, "outcome holds a NaN"),
        ((SMALL, ARMS, Y[1:]), {}, "outcome must have the shape"),
        ((SMALL, ARMS, [str(each) + "!" for each in Y]), {}, "outcome must hold numbers"),
        ((SMALL, "arm", Y), {}, "no names of columns"),
        ((pd.DataFrame(SMALL, columns=["a", "b"]), "arm", Y), {}, "treatment: the table has no column 'arm'"),
        ((pd.DataFrame(SMALL, columns=["a", "b"]), ARMS, "y"), {}, "outcome: the table has no column 'y'"),
        ((SMALL, ARMS, Y), {"method": "doubly robust"}, "method must be one of"),
        ((SMALL, ARMS, Y), {"clip": 0.7}, "clip"),
        ((SMALL, ARMS, Y), {"cv": 1}, "cv"),
        ((SMALL, ARMS, Y), {"outcome_model": "ridge"}, "outcome_model must be"),
        ((SMALL, ARMS, Y), {"outcome_model": LogisticRegression()}, "outcomes of 0 and 1"),
        ((SMALL, ARMS, Y), {"propensity_model": Ridge()}, "propensity_model must be"),
        ((SMALL, ARMS, Y), {"treatment_costs": {"x": 1.0}}, "treatment_costs names 'x'"),
        ((SMALL, ARMS, Y), {"treatment_costs": [1.0]}, "treatment_costs must have the shape"),
        ((SMALL, ARMS, Y), {"constraints": [Recall(at_least=0.5)]}, "Recall compares predictions with true classes"),
        ((SMALL, ARMS, Y), {"constraints": [EqualisedOdds("a", 0.1)]}, "EqualisedOdds compares"),
        (("table.csv", ARMS, Y), {}, "X"),
    ],
)
def test_invalid_arguments_of_fit(arguments: tuple, parameters: dict, message: str) -> None:
    """An argument that cannot be used is an error that names it."""
    with pytest.raises(InvalidInputError, match=message):
        OptimalPolicyTree(1, **parameters).fit(*arguments)


@pytest.mark.parametrize(
    ("rewards", "treatments", "message"),
    [
        (np.zeros((10, 1)), None, "at least two treatments"),
        (np.zeros((9, 2)), None, "10 in all"),
        (np.zeros(10), None, "at least two treatments"),
        (np.full((10, 2), np.inf), None, "rewards holds a NaN"),
        (np.zeros((10, 2)), ["a"], "treatments"),
        (np.zeros((10, 2)), ["a", "a"], "treatments must be distinct"),
        ([["x", "y"]] * 10, None, "rewards must hold numbers"),
    ],
)
def test_invalid_rewards(rewards: object, treatments: object, message: str) -> None:
    """Rewards of the wrong shape or kind are an error that names them."""
    with pytest.raises(InvalidInputError, match=message):
        OptimalPolicyTree(1).fit_rewards(SMALL, rewards, treatments)


def test_a_treatment_without_weight() -> None:
    """Rows of weight 0 are no rows of a treatment: models could not be fitted to them."""
    X, treatment, outcome = trial()
    weights = (treatment == "a").astype(float)
    with pytest.raises(InvalidInputError, match=r"'b' has fewer rows of positive weight \(0\) than the 5 folds"):
        OptimalPolicyTree(1).fit(X, treatment, outcome, sample_weight=weights)
    with pytest.raises(InvalidInputError, match="give it no weight"):
        OptimalPolicyTree(1, cv=KFold(2)).fit(X, treatment, outcome, sample_weight=weights)


def test_a_propensity_of_zero() -> None:
    """A treatment received against a probability of 0 is an error without clipping; clipped rows are warned of."""
    X = np.column_stack([np.repeat([0.0, 1.0], 50), np.tile([0.0, 1.0], 50)])
    treatment, outcome = (np.arange(100) >= 50).astype(int), np.arange(100.0)
    with pytest.warns(UserWarning, match="extrapolated"):
        OptimalPolicyTree(1, outcome_model=Ridge(), propensity_model=LogisticRegression(C=1e6)).fit(
            X, treatment, outcome
        )
    with pytest.raises(InvalidInputError, match="probability of 0"), pytest.warns(UserWarning, match="extrapolated"):
        OptimalPolicyTree(1, outcome_model=Ridge(), propensity_model=_Wrong(), clip=0.0).fit(X, treatment, outcome)


class _Wrong(LogisticRegression):
    """Says that the first treatment was impossible for everyone."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.tile([0.0, 1.0], (len(X), 1))


def test_limits_that_no_policy_keeps() -> None:
    """Constraints that no tree satisfies are a NoTreeError, and rules about leaves hold."""
    X, rewards, _ = binary_case(0, 2)
    with pytest.raises(NoTreeError):
        OptimalPolicyTree(1, constraints=[Linear(np.ones((12, 2)), upper=5.0)]).fit_rewards(X, rewards)
    model = OptimalPolicyTree(2, constraints=[MinLeafWeight(samples=4)]).fit_rewards(X, rewards)
    assert np.bincount(model.apply(X))[np.unique(model.apply(X))].min() >= 4


# ---------------------------------------------------------------- conventions

#: Checks of scikit-learn that call no `fit`. The others call ``fit(X, y)``, and a policy is fitted to a treatment *and*
#: an outcome.
CHECKS = [
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_repr",
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_checks(name: str) -> None:
    """scikit-learn's own checks of parameters, clones and tags hold."""
    getattr(estimator_checks, name)("OptimalPolicyTree", OptimalPolicyTree())


def test_conventions_of_fit() -> None:
    """fit returns the estimator and changes no parameter; a clone is unfitted; pickles keep everything."""
    X, treatment, outcome = trial()
    model = OptimalPolicyTree(1, outcome_model=Ridge(alpha=2.0), constraints=[PositiveBudget(0.3, positive="b")])
    before = model.get_params()
    assert model.fit(X, treatment, outcome) is model
    assert model.get_params() == before
    assert not hasattr(clone(model), "tree_") and clone(model).outcome_model.alpha == 2.0
    model.set_params(constraints__0__at_most=0.1, outcome_model__alpha=3.0)
    assert model.constraints[0].at_most == 0.1 and model.outcome_model.alpha == 3.0
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    assert copied.value(X, treatment, outcome) == model.value(X, treatment, outcome)
    assert not is_classifier(model) and not is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert accel_oct.OptimalPolicyTree is OptimalPolicyTree


def test_the_same_seed_gives_the_same_rewards() -> None:
    """Folds and default models depend on `random_state` alone."""
    X, treatment, outcome = trial(80)
    first, again = (OptimalPolicyTree(1, cv=2).fit(X, treatment, outcome).rewards_ for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = OptimalPolicyTree(1, cv=2, random_state=1).fit(X, treatment, outcome).rewards_
    assert (first != other).any()
