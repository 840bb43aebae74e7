"""Scores and values of policies: the formulas, cross-fitting, standard errors, and trials with known truth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from accel_oct import Estimate, OptimalPolicyTree, PolicyValue
from accel_oct.constraints import PositiveBudget
from accel_oct.encoding import Table
from accel_oct.encoding.model_matrix import MOST_CATEGORIES, ModelMatrix
from accel_oct.errors import InvalidInputError


class KnownOutcomes(RegressorMixin, BaseEstimator):
    """Predicts the sum of what it was fitted to, and the first column."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> KnownOutcomes:
        self.sum_ = y.sum()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.sum_ + X[:, 0]


class KnownChances(ClassifierMixin, BaseEstimator):
    """The chances of a trial: 0.2, 0.3 and 0.5 for the three treatments."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> KnownChances:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.tile([0.2, 0.3, 0.5], (len(X), 1))


def known_trial(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A trial with confounding: columns, treatments, outcomes, and the true mean of each row under each treatment.

    "new" brings 1 where the first two columns are at least 0.3 and -0.2, and -1 elsewhere. Who has a large third column
    is treated more often, and does better anyway.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    treated = rng.random(n) < 1 / (1 + np.exp(-X[:, 2]))
    base = X[:, 2] + 0.5 * X[:, 3]
    effect = np.where((X[:, 0] >= 0.3) & (X[:, 1] >= -0.2), 1.0, -1.0)
    means = np.column_stack([base, base + effect])
    outcome = means[np.arange(n), treated.astype(int)] + rng.normal(scale=0.5, size=n)
    return X, np.where(treated, "new", "old"), outcome, means[:, ::-1]  # "new" is first in sorted order


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize("method", ["direct", "inverse_propensity", "doubly_robust"])
def test_scores_are_their_formulas_from_other_folds(method: str) -> None:
    """Each score is recomputed row by row, with models that were fitted on the rows of the other folds alone."""
    rng = np.random.default_rng(0)
    n = 30
    X, treatment, outcome = rng.normal(size=(n, 2)), np.arange(n) % 3, rng.normal(size=n)
    folds = KFold(3, shuffle=True, random_state=0)
    model = OptimalPolicyTree(
        1, method=method, outcome_model=KnownOutcomes(), propensity_model=KnownChances(), cv=folds, clip=0.25
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the chance of 0.2
        model.fit(X, treatment, outcome)
    fold = np.zeros(n, dtype=int)
    for number, (_, held_out) in enumerate(folds.split(X)):
        fold[held_out] = number
    for i in range(n):
        for k in range(3):
            others = [j for j in range(n) if fold[j] != fold[i] and treatment[j] == k]
            score = 0.0 if method == "inverse_propensity" else sum(outcome[others]) + X[i, 0]
            if treatment[i] == k and method != "direct":
                score += (outcome[i] - score) / max([0.2, 0.3, 0.5][k], 0.25)
            assert model.rewards_[i, k] == pytest.approx(score)


def test_values_use_the_models_of_all_training_rows() -> None:
    """On held-out rows, each reward comes from models of the training rows; every method has its formula."""
    rng = np.random.default_rng(1)
    X, treatment, outcome = rng.normal(size=(30, 2)), np.arange(30) % 3, rng.normal(size=30)
    new, received, seen = rng.normal(size=(9, 2)), np.arange(9) % 3, rng.normal(size=9)
    model = OptimalPolicyTree(1, outcome_model=KnownOutcomes(), propensity_model=KnownChances(), method="direct")
    model.fit(X, treatment, outcome)
    means = np.array([[outcome[treatment == k].sum() + row[0] for k in range(3)] for row in new])
    rows, chances = np.arange(9), np.array([0.2, 0.3, 0.5])[received]
    weighed, both = np.zeros((9, 3)), means.copy()
    weighed[rows, received] = seen / chances
    both[rows, received] += (seen - means[rows, received]) / chances
    for method, expected in (("direct", means), ("inverse_propensity", weighed), ("doubly_robust", both)):
        value = model.value(new, received, seen, method=method)
        own = expected[rows, model.predict(new)]
        assert value.estimate == pytest.approx(own.mean())
        assert value.standard_error == pytest.approx(own.std(ddof=1) / 3)
        for k in range(3):
            assert value.constant[k].mean == pytest.approx(expected[:, k].mean())
            assert value.gain[k].standard_error == pytest.approx((own - expected[:, k]).std(ddof=1) / 3)
    with pytest.raises(InvalidInputError, match="method must be one of"):
        model.value(new, received, seen, method="both")
    with pytest.raises(InvalidInputError, match="7 is not among the treatments of fit"):
        model.value(new, np.full(9, 7), seen)
    for arguments in ((new,), (new, received), (new, None, seen)):
        with pytest.raises(InvalidInputError, match="either treatment and outcome, or rewards"):
            model.value(*arguments)


def test_values_of_known_rewards() -> None:
    """Given rewards are averaged over the assigned treatments, with weights; `print` shows every treatment."""
    X, rewards = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 5.0]])
    model = OptimalPolicyTree(1).fit_rewards(X, rewards, ["no", "yes"])
    value = model.value(X, rewards=rewards)
    assert (value.estimate, value.shares, value.n_rows) == (2.75, {"no": 0.5, "yes": 0.5}, 4)
    assert value.gain["yes"].mean == 0.75
    assert model.value(X, rewards=rewards, sample_weight=[1, 1, 0, 2]).estimate == 13 / 4
    assert "no: assigned to 50.0%" in str(value) and "yes: assigned to 50.0%" in str(value)
    with pytest.raises(InvalidInputError, match="a column for each treatment"):
        model.value(X, rewards=np.zeros((4, 3)))


def test_estimates_of_means() -> None:
    """Mean, standard error and interval of plain, weighted and repeated values."""
    values = np.array([1.0, 2.0, 4.0, 9.0])
    plain = Estimate.of(values)
    assert plain.mean == 4.0 and plain.standard_error == pytest.approx(values.std(ddof=1) / 2)
    assert plain.interval[1] - plain.mean == pytest.approx(1.96 * plain.standard_error, rel=1e-4)
    weighed = Estimate.of(values, np.full(4, 7.0))
    assert (weighed.mean, weighed.standard_error) == pytest.approx((plain.mean, plain.standard_error))
    assert Estimate.of(values, np.array([1.0, 0.0, 1.0, 0.0])) == Estimate.of(values[[0, 2]])
    assert np.isnan(Estimate.of(values[:1]).standard_error)


# ---------------------------------------------------------------- models


def test_classifiers_of_outcomes() -> None:
    """A classifier models outcomes of 0 and 1 by its probability of 1, also where an arm has a single outcome."""
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(90, 2)), np.arange(90) % 3
    outcome = np.where(treatment == 2, 1.0, rng.integers(0, 2, 90))
    model = OptimalPolicyTree(1, method="direct", outcome_model=LogisticRegression()).fit(X, treatment, outcome)
    assert ((model.rewards_ >= 0) & (model.rewards_ <= 1)).all() and (model.rewards_[:, 2] == 1).all()


def test_weights_reach_the_models() -> None:
    """A row of weight three is three rows in the models, also in a pipeline; a model without weights is an error."""
    rng = np.random.default_rng(0)
    X, treatment, outcome = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.normal(size=40)
    weights = np.where(np.arange(40) % 4 < 2, 3, 1)
    repeated = np.repeat(np.arange(40), weights)
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), LinearRegression())
    for outcomes in (LinearRegression(), pipeline):
        settings = {"outcome_model": outcomes, "propensity_model": LogisticRegression(tol=1e-9)}
        weighed = OptimalPolicyTree(1, **settings).fit(X, treatment, outcome, sample_weight=weights)
        longer = OptimalPolicyTree(1, **settings).fit(X[repeated], treatment[repeated], outcome[repeated])
        new = rng.normal(size=(6, 2)), np.arange(6) % 2, rng.normal(size=6)
        found, expected = weighed.value(*new), longer.value(*new)
        assert found.constant[1].mean == pytest.approx(expected.constant[1].mean, rel=1e-4)
    with pytest.raises(InvalidInputError, match="KnownOutcomes does not support sample_weight"):
        OptimalPolicyTree(1, outcome_model=KnownOutcomes()).fit(X, treatment, outcome, sample_weight=weights)


def test_splitters_must_hold_out_every_row_once() -> None:
    """Folds that leave rows without scores, or lack a treatment in training, are an error."""
    X, treatment, outcome = np.zeros((8, 1)), np.repeat([0, 1], 4), np.arange(8.0)
    with pytest.raises(InvalidInputError, match="lack a treatment"):
        OptimalPolicyTree(1, cv=KFold(2)).fit(X, treatment, outcome)

    class Half:
        def split(self, X: np.ndarray, y: np.ndarray) -> list:
            return [(np.arange(1, 8), np.arange(1))]

    with pytest.raises(InvalidInputError, match="every row exactly once"):
        OptimalPolicyTree(1, cv=Half()).fit(X, treatment, outcome)


def test_tables_as_matrices() -> None:
    """Numbers stay, missing ones are the median and marked, frequent categories are columns; unseen ones are zeros."""
    names = np.array(["a", "b", "a", None], dtype=object)
    table = Table((np.array([1.0, np.nan, 3.0, 5.0]), names, np.array([True, False, True, True])), None, 4)
    matrix = ModelMatrix.of(table)
    expected = [[1, 0, 1, 0, 0, 1], [3, 1, 0, 1, 0, 0], [3, 0, 1, 0, 0, 1], [5, 0, 0, 0, 1, 1]]
    np.testing.assert_array_equal(matrix.read(table), np.delete(expected, 4, axis=1))
    new = Table((np.array([np.nan]), np.array(["c"], dtype=object), np.array([False])), None, 1)
    np.testing.assert_array_equal(matrix.read(new), [[3, 1, 0, 0, 0]])
    many = Table((np.array([f"{k}" for k in range(MOST_CATEGORIES + 5)], dtype=object),), None, MOST_CATEGORIES + 5)
    assert ModelMatrix.of(many).read(many).shape == (MOST_CATEGORIES + 5, MOST_CATEGORIES)


# ---------------------------------------------------------------- known truth


def test_the_best_policy_is_found() -> None:
    """With enough rows of a confounded study, the policy loses little of what the true optimum brings.

    The direct method loses most: its linear predictions have no jump.
    """
    X, treatment, outcome, _ = known_trial(3000, 0)
    new, *_, means = known_trial(20000, 1)
    best = means.max(axis=1).mean()
    for method, least in (("doubly_robust", 0.02), ("direct", 0.15), ("inverse_propensity", 0.05)):
        model = OptimalPolicyTree(2, method=method, outcome_model=Ridge()).fit(X, treatment, outcome)
        lost = best - model.value(new, rewards=means).estimate
        assert 0 <= lost < least, method
        assert best - means.mean(axis=0).max() > 0.2  # what a constant policy loses


def test_a_budget_treats_those_who_gain_most() -> None:
    """With a budget of a tenth, treatment goes to rows that truly gain."""
    X, treatment, outcome, means = known_trial(600, 2)
    budget = PositiveBudget(0.1, positive="new")
    model = OptimalPolicyTree(2, outcome_model=Ridge(), constraints=[budget], time_limit=20).fit(X, treatment, outcome)
    treated = model.predict(X) == "new"
    assert 0 < treated.mean() <= 0.1
    assert (means[treated, 0] > means[treated, 1]).mean() > 0.9


@pytest.mark.parametrize("wrong", ["outcome", "propensity"])
def test_standard_errors_cover_the_truth(wrong: str) -> None:
    """The 95 % intervals of doubly robust values cover the true value in about 95 % of samples if one model is right.

    A wrong model: all rows have the same chances, or the mean outcome does not depend on the columns.
    """
    X, treatment, outcome, _ = known_trial(4000, 0)
    settings = (
        {"propensity_model": LogisticRegression(), "outcome_model": _Mean()}
        if wrong == "outcome"
        else {"propensity_model": DummyClassifier(), "outcome_model": _Cells()}
    )
    model = OptimalPolicyTree(2, **settings).fit(X, treatment, outcome)
    population, *_, means = known_trial(200_000, 99)
    truth = model.value(population, rewards=means).estimate
    covered, estimates, errors = 0, [], []
    for seed in range(100, 220):
        new, received, seen, _ = known_trial(400, seed)
        value = model.value(new, received, seen)
        low, high = value.interval
        covered += low <= truth <= high
        estimates.append(value.estimate)
        errors.append(value.standard_error)
    assert 0.88 <= covered / 120 <= 1.0
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.3)


class _Mean(RegressorMixin, BaseEstimator):
    """The mean outcome, whatever the columns."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Mean:
        self.mean_ = y.mean()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.mean_)


class _Cells(LinearRegression):
    """The true model of an arm of `known_trial`: linear, and a jump where the treatment works."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Cells:
        return super().fit(_with_jump(X), y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return super().predict(_with_jump(X))


def _with_jump(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, (X[:, 0] >= 0.3) & (X[:, 1] >= -0.2)])


def test_a_naive_comparison_is_biased_here() -> None:
    """The trial is confounded: the plain difference of the arms is far from the true effect, the estimate is not."""
    X, treatment, outcome, means = known_trial(3000, 0)
    truth = (means[:, 0] - means[:, 1]).mean()
    naive = outcome[treatment == "new"].mean() - outcome[treatment == "old"].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OptimalPolicyTree(2, outcome_model=Ridge()).fit(X, treatment, outcome)
    new = known_trial(3000, 1)
    value = model.value(*new[:3])
    estimate = value.constant["new"].mean - value.constant["old"].mean
    assert abs(naive - truth) > 0.4 and abs(estimate - truth) < 0.15
    assert isinstance(value, PolicyValue) and value.gain["old"].mean > 2 * value.gain["old"].standard_error
