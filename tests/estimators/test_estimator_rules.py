"""What estimators ask of a tree: constraints by name of column, limits, objectives, excluded columns; trade-offs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import KBinsDiscretizer

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import (
    EqualOpportunity,
    FeatureCosts,
    ForbiddenFeatures,
    ForbiddenPairs,
    Linear,
    MaxFeatures,
    MaxLeaves,
    MinLeafWeight,
    Recall,
    StatisticalParity,
)
from accel_oct.encoding import TableEncoder
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.estimators.training import attached
from accel_oct.objectives import Accuracy, CostMatrix, FBeta, InstanceCosts


def loans(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, categories, a protected column that decides in part, and a name per row."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 1, n).round(1),
            "region": rng.choice(["north", "south", "east"], n),
            "name": [f"person {i}" for i in range(n)],
        }
    )
    good = ((frame.income > 25000) & (frame.age > 30)) | ((frame.sex == "m") & (frame.age > 60))
    return frame, np.where(good ^ (rng.random(n) < 0.05), "good", "bad")


X, Y = loans()


def parity(predicted: np.ndarray, sex: Any) -> float:
    """The difference in the share of "good" between the groups."""
    rates = [float(np.mean(predicted[np.asarray(sex) == group] == "good")) for group in ("f", "m")]
    return abs(rates[0] - rates[1])


def model(**arguments: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(**{"max_depth": 3, "leaf_penalty": 0.004, "exclude": ["name"], **arguments})


def columns_used(fitted: Any) -> set[int]:
    return {fitted.encoder_.conditions_[f].column for f in fitted.tree_.tree.features_used}


# ---------------------------------------------------------------- constraints


def test_a_column_of_the_frame_is_a_group() -> None:
    """The limit holds for the predictions, binds, and is reported with its training value."""
    free = model(exclude=["name", "sex"]).fit(X, Y)
    limit = parity(free.predict(X), X.sex) / 2
    fair = model(exclude=["name", "sex"], constraints=[StatisticalParity("sex", at_most=limit)]).fit(X, Y)
    reached = parity(fair.predict(X), X.sex)
    assert fair.status_ == "optimal" and reached <= limit + 1e-9 and fair.objective_ < free.objective_
    (report,) = fair.constraints_
    assert report.value == pytest.approx(reached) and report.upper == limit and report.lower is None
    assert report.slack == pytest.approx(limit - reached) and report.name.startswith(
        "StatisticalParity of class good (sex)"
    )
    assert not columns_used(fair) & {0, 4}


@pytest.mark.parametrize(
    "form",
    [
        lambda sex: sex,
        lambda sex: sex.to_numpy(),
        lambda sex: sex.tolist(),
        lambda sex: sex.to_frame(),
        lambda sex: {"sex": sex.to_numpy()},
        lambda sex: sex.to_numpy().reshape(-1, 1),
    ],
)
def test_sensitive_features_come_in_many_forms(form: Any) -> None:
    """With and without names, they are the groups of a constraint that names none."""
    named = model(constraints=[EqualOpportunity("sex", at_most=0.02)], exclude=["name", "sex"]).fit(X, Y)
    passed = model(constraints=[EqualOpportunity(at_most=0.02)]).fit(
        X.drop(columns="sex"), Y, sensitive_features=form(X.sex)
    )
    assert passed.objective_ == named.objective_ and passed.constraints_[0].value == named.constraints_[0].value


def test_sensitive_features_have_names_of_their_own() -> None:
    """A constraint may name one of several; one that names none compares all combinations."""
    groups = pd.DataFrame({"gender": X.sex, "where": X.region})
    frame = X[["age", "income"]]
    one = OptimalTreeClassifier(2, 0.01, constraints=[StatisticalParity("gender", at_most=0.05)])
    both = OptimalTreeClassifier(2, 0.01, constraints=[StatisticalParity(at_most=0.3)])
    one.fit(frame, Y, sensitive_features=groups)
    both.fit(frame, Y, sensitive_features=groups)
    assert parity(one.predict(frame), X.sex) <= 0.05 + 1e-9
    predicted = both.predict(frame) == "good"
    rates = [predicted[((X.sex == s) & (X.region == r)).to_numpy()].mean() for s in ("f", "m") for r in set(X.region)]
    assert (
        both.constraints_[0].value == pytest.approx(max(rates) - min(rates)) and max(rates) - min(rates) <= 0.3 + 1e-9
    )


def test_all_thresholds_of_a_column_are_one_feature() -> None:
    """For limits, prices, forbidden columns and forbidden pairs."""
    band = np.where((X.age > 30) & (X.age < 60) & (X.income > 9000), "in", "out")
    one = model(max_features_used=1).fit(X, band)
    assert len(columns_used(one)) == 1 and len(one.tree_.tree.features_used) > 1
    assert (
        model(constraints=[MaxFeatures(1)]).fit(X, band).objective_ == one.objective_ < model().fit(X, band).objective_
    )
    cheap = model(constraints=[FeatureCosts({"income": 5.0, "age": 1.0}, at_most=4.0)]).fit(X, Y)
    assert 2 not in columns_used(cheap)
    without = model(constraints=[ForbiddenFeatures(["income"])]).fit(X, Y)
    assert 2 not in columns_used(without)
    apart = model(constraints=[ForbiddenPairs([("age", "income")])]).fit(X, Y)
    for leaf in apart.tree_.tree.leaves.tolist():
        path = {apart.encoder_.conditions_[f].column for f, _ in apart.tree_.tree.path(leaf)}
        assert not {1, 2} <= path


def test_scikit_learns_names_mean_what_they_mean_there() -> None:
    """min_samples_leaf counts samples, whatever their weight; a share is rounded up; max_leaf_nodes limits leaves."""
    weights = np.where(np.arange(len(Y)) % 3 == 0, 10.0, 0.5)
    for value, least in ((40, 40), (0.151, 46)):
        fitted = model(leaf_penalty=0.0, min_samples_leaf=value).fit(X, Y, weights)
        leaves = fitted.tree_.children_left < 0
        assert fitted.tree_.n_node_samples[leaves].min() >= least and fitted.status_ == "optimal"
    loose = model(leaf_penalty=0.0, min_samples_leaf=1).fit(X, Y, weights)
    assert loose.objective_ > fitted.objective_
    assert model(leaf_penalty=0.0, max_leaf_nodes=3).fit(X, Y).get_n_leaves() <= 3


def test_a_sample_without_weight_is_no_sample_of_a_leaf() -> None:
    """As in scikit-learn, where it might as well not be there."""
    frame = pd.DataFrame({"x": [0, 0, 0, 1, 1, 1, 1]})
    y, weights = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([1, 1, 1, 1, 1, 0, 0])
    assert OptimalTreeClassifier(1, 0.0, min_samples_leaf=2).fit(frame, y, weights).get_n_leaves() == 2
    assert OptimalTreeClassifier(1, 0.0, min_samples_leaf=3).fit(frame, y, weights).get_n_leaves() == 1
    assert OptimalTreeClassifier(1, 0.0, min_samples_leaf=70).fit(frame, y, weights).get_n_leaves() == 1


def test_excluded_columns_are_not_even_read() -> None:
    """Whatever is in them, in fit and in predict; by name and by position, with every encoder of ours."""
    odd = X.assign(when=np.array([object() for _ in range(len(X))], dtype=object))
    odd["when"] = pd.Series(pd.date_range("2020-01-01", periods=len(X)))
    plain = model(exclude=["name"]).fit(X, Y)
    fitted = model(exclude=["name", "when"]).fit(odd, Y)
    assert fitted.objective_ == plain.objective_ and fitted.encoder_.kinds_[-2:] == ("ignored", "ignored")
    assert np.array_equal(fitted.predict(odd), plain.predict(X))
    quantiles = model(encoder=TableEncoder()).fit(X, Y)
    assert model(exclude=[4, 5], encoder=TableEncoder()).fit(odd, Y).objective_ == quantiles.objective_
    binary = np.column_stack([np.asarray(Y == "good"), np.asarray(X.sex == "m"), np.full(len(Y), 7)])
    assert OptimalTreeClassifier(1, 0.0, encoder=None, exclude=[0, 2]).fit(binary, Y).objective_ < 1.0


def test_infeasible_limits_are_an_error_and_not_a_tree() -> None:
    impossible = [Recall("good", at_least=1.0), Recall("bad", at_least=1.0)]
    with pytest.raises(NoTreeError, match="satisfies `Recall of class good at least 1` and `Recall of class bad"):
        model(max_depth=1, constraints=impossible).fit(X, Y)
    with pytest.raises(NoTreeError, match="no tree of depth at most 1 over all splits of the columns that are not"):
        model(max_depth=1, constraints=impossible, objective="f1").fit(X, Y)


# ---------------------------------------------------------------- objectives


def test_objectives_are_what_scikit_learn_measures() -> None:
    free = {"leaf_penalty": 0.0, "max_depth": 2}
    balanced = model(objective="balanced_accuracy", **free).fit(X, Y)
    assert balanced.objective_ == pytest.approx(balanced_accuracy_score(Y, balanced.predict(X)))
    assert balanced.objective_ == pytest.approx(model(class_weight="balanced", **free).fit(X, Y).objective_)
    f1 = model(objective="f1", **free).fit(X, Y)
    assert f1.objective_ == pytest.approx(f1_score(Y, f1.predict(X), pos_label="good"))
    costs = np.where(Y[:, None] == np.array(["bad", "good"]), 0.0, 1.0) * np.arange(1, len(Y) + 1)[:, None]
    cheap = model(objective=InstanceCosts(), **free).fit(X, Y, costs=costs)
    paid = costs[np.arange(len(Y)), (cheap.predict(X) == "good").astype(int)]
    assert cheap.objective_ == pytest.approx(-paid.mean())


def test_class_weights_count_in_the_objective_alone() -> None:
    """What constraints limit are rates of the samples as they are."""
    weights = {"good": 1.0, "bad": 8.0}
    fitted = model(class_weight=weights, constraints=[StatisticalParity("sex", at_most=0.1)]).fit(X, Y)
    assert fitted.constraints_[0].value == pytest.approx(parity(fitted.predict(X), X.sex))
    assert fitted.tree_.class_weights[0].tolist() == [8.0 * np.sum(Y == "bad"), np.sum(Y == "good")]


# ---------------------------------------------------------------- parameters


def test_limits_are_parameters() -> None:
    """get_params, set_params and clone; constraints themselves never change."""
    first = model(constraints=[StatisticalParity("sex", at_most=0.1)], objective=FBeta(2.0, "good"))
    known = first.get_params()
    assert known["constraints__0__at_most"] == 0.1 and known["objective__beta"] == 2.0
    assert "constraints__0__at_most" not in first.get_params(deep=False)
    copy = clone(first).set_params(constraints__0__at_most=0.3, objective__beta=0.5, max_depth=2)
    assert copy.constraints[0].at_most == 0.3 and copy.objective.beta == 0.5 and copy.max_depth == 2
    assert first.constraints[0].at_most == 0.1 and first.objective.beta == 2.0
    both = clone(first).set_params(constraints=[Recall("good", at_least=0.5)], constraints__0__at_least=0.6)
    assert both.constraints[0].at_least == 0.6
    for name in ("constraints__1__at_most", "constraints__0__most", "objective__gamma", "constraints__x"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            clone(first).set_params(**{name: 1})


def test_grid_search_over_limits() -> None:
    grid = GridSearchCV(
        model(max_depth=2, constraints=[StatisticalParity("sex", at_most=0.1)]),
        {"constraints__0__at_most": [0.03, 0.2]},
        cv=3,
    ).fit(X, Y)
    assert set(grid.cv_results_["param_constraints__0__at_most"]) == {0.03, 0.2}
    assert parity(grid.predict(X), X.sex) <= grid.best_params_["constraints__0__at_most"] + 1e-9


@pytest.mark.parametrize("routing", [False, True])
def test_sensitive_features_are_routed(routing: bool) -> None:
    """To the folds of scikit-learn's own tools, with metadata routing and without."""
    estimator = model(max_depth=2, constraints=[StatisticalParity(at_most=0.1)], exclude=["name", "sex"])
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            estimator.set_fit_request(sensitive_features=True)
        found = cross_validate(estimator, X, Y, cv=3, params={"sensitive_features": X.sex.to_numpy()})
    assert np.isfinite(found["test_score"]).all()


def test_what_is_stored_comes_back() -> None:
    """Limits, excluded columns and what came of constraints; the constraints themselves stay behind."""
    fitted = model(
        constraints=[StatisticalParity("sex", at_most=0.05)], min_samples_leaf=0.05, max_leaf_nodes=5, objective="f1"
    ).fit(X, Y)
    copy = OptimalTreeClassifier.from_json(fitted.to_json())
    for name in ("min_samples_leaf", "max_leaf_nodes", "max_features_used", "exclude", "objective"):
        assert getattr(copy, name) == getattr(fitted, name)
    assert copy.constraints_ == fitted.constraints_ and copy.constraints is None
    assert np.array_equal(copy.predict(X), fitted.predict(X))


def test_the_table_of_constraints_reads_well() -> None:
    fitted = model(constraints=[StatisticalParity("sex", at_most=0.05)], max_leaf_nodes=5).fit(X, Y)
    *lines, claim = str(fitted.constraints_).splitlines()
    assert claim == f"{fitted.proof_}, among trees that satisfy the constraints"
    assert len(lines) == 3 and len(set(map(len, lines))) == 1 and "0.05" in lines[1] and "5" in lines[2]
    frame = fitted.constraints_.to_frame()
    assert frame["at most"].tolist() == [0.05, 5.0]
    named = model(constraints=[Linear(leaves=1.0, upper=9.0, name="<b>")]).fit(X, Y)
    assert "&lt;b&gt;" in named.constraints_._repr_html_()


# ---------------------------------------------------------------- cross-validation


def test_cross_validation_scores_what_is_asked_for() -> None:
    """By default the objective itself; or any scorer of scikit-learn's."""
    common: dict[str, Any] = {"max_depth": 2, "leaf_penalties": [0.01], "cv": 3, "exclude": ["name"]}
    costs = CostMatrix({("bad", "good"): 5.0, ("good", "bad"): 1.0})
    paid = OptimalTreeClassifierCV(objective=costs, **common).fit(X, Y).cv_results_["mean_test_score"][0]
    assert -5.0 <= paid < 0.0
    plain = OptimalTreeClassifierCV(**common).fit(X, Y).cv_results_["mean_test_score"][0]
    accuracy = OptimalTreeClassifierCV(scoring="accuracy", **common).fit(X, Y).cv_results_["mean_test_score"][0]
    assert plain == pytest.approx(accuracy)
    balanced = OptimalTreeClassifierCV(class_weight="balanced", **common).fit(X, Y)
    asked = OptimalTreeClassifierCV(class_weight="balanced", scoring="balanced_accuracy", **common).fit(X, Y)
    assert balanced.cv_results_["mean_test_score"] == pytest.approx(asked.cv_results_["mean_test_score"])
    own = OptimalTreeClassifierCV(scoring=lambda estimator, X, y: 0.25, **common).fit(X, Y)
    assert own.cv_results_["mean_test_score"][0] == 0.25


def test_cross_validation_keeps_constraints_in_every_fold() -> None:
    """Groups follow their rows; limits and excluded columns reach the folds and the last fit."""
    fitted = OptimalTreeClassifierCV(
        2, [0.05, 0.01], cv=3, constraints=[StatisticalParity(at_most=0.05)], exclude=["name", "sex"], max_leaf_nodes=3
    ).fit(X, Y, sensitive_features=X.sex)
    assert parity(fitted.predict(X), X.sex) <= 0.05 + 1e-9 and fitted.get_n_leaves() <= 3
    assert (fitted.cv_results_["mean_n_leaves"] <= 3).all() and len(fitted.constraints_) == 2


def test_cross_validation_where_no_tree_is_allowed() -> None:
    with pytest.raises(NoTreeError, match="every fold"):
        OptimalTreeClassifierCV(
            1, [0.01], cv=3, exclude=["name"], constraints=[Recall("good", at_least=1.0), Recall("bad", at_least=1.0)]
        ).fit(X, Y)


# ---------------------------------------------------------------- trade-offs


def test_a_trade_off_is_a_curve_of_proven_points() -> None:
    """Looser limits never score less; every point is what a fit with that limit gives; infeasible ones say so."""
    base = model(max_depth=2, leaf_penalty=0.0, constraints=[StatisticalParity("sex", at_most=1.0)])
    curve = accel_oct.trade_off(base, X, Y, limits=[0.1, 0.02, 0.05], cv=3)
    assert [point.limit for point in curve] == [0.02, 0.05, 0.1]
    scores = [point.score for point in curve]
    assert scores == sorted(scores)
    for point in curve:
        alone = clone(base).set_params(constraints__0__at_most=point.limit).fit(X, Y)
        assert point.status == "optimal" and point.objective == point.bound == alone.objective_
        assert point.value == pytest.approx(parity(point.model.predict(X), X.sex)) and point.value <= point.limit + 1e-9
        assert point.test_score is not None and 0 <= point.test_value <= 1
    assert base.constraints[0].at_most == 1.0 and not hasattr(base, "tree_")
    assert str(curve).splitlines()[4:] == [f"status: among trees {curve.scope}"] and len(curve.to_frame()) == 3
    recall = model(max_depth=1, constraints=[Recall("bad", at_least=0.9), Recall("good", at_least=0.5)])
    broken = accel_oct.trade_off(recall, X, Y, limits=[0.2, 1.0], constraint=1)
    assert [point.status for point in broken] == ["optimal", "infeasible"] and broken[1].model is None


def test_a_number_of_samples_is_a_limit_that_can_be_varied() -> None:
    base = model(max_depth=2, constraints=[MinLeafWeight(samples=1)])
    curve = accel_oct.trade_off(base, X, Y, limits=[1, 60, 120])
    assert all(point.value >= point.limit for point in curve) and curve[0].score >= curve[2].score


def test_a_trade_off_on_held_out_rows_is_that_of_the_folds() -> None:
    """Against a loop by hand."""
    base = model(max_depth=2, constraints=[StatisticalParity("sex", at_most=1.0)])
    half = np.arange(len(Y)) < 150
    folds = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    (point,) = accel_oct.trade_off(base, X, Y, limits=[0.02], cv=folds)
    scores, gaps = [], []
    for train, test in folds:
        fitted = clone(base).set_params(constraints__0__at_most=0.02).fit(X.iloc[train], Y[train])
        predicted = fitted.predict(X.iloc[test])
        scores.append(np.mean(predicted == Y[test]))
        gaps.append(parity(predicted, X.sex.iloc[test]))
    assert point.test_score == pytest.approx(np.mean(scores)) and point.test_value == pytest.approx(np.mean(gaps))
    assert point.test_score_error == pytest.approx(np.std(scores, ddof=1) / np.sqrt(2))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"constraints": [StatisticalParity("gender", at_most=0.1)]},
            "StatisticalParity: group: there is no column 'gender'",
        ),
        ({"constraints": [StatisticalParity(at_most=0.1)]}, "group must be given, here or in fit"),
        ({"constraints": [StatisticalParity("income", at_most=0.1)]}, "has .* distinct values; at most 50"),
        ({"constraints": StatisticalParity("sex", at_most=0.1)}, "constraints must be a list"),
        ({"constraints": [ForbiddenFeatures(["salary"])]}, "no column has the name 'salary'"),
        ({"exclude": ["salary"]}, "exclude: X has no column 'salary'"),
        ({"exclude": "name"}, "exclude must be a list"),
        ({"exclude": [17]}, "exclude must hold"),
        ({"exclude": list(range(5))}, "exclude leaves no column"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be"),
        ({"min_samples_leaf": 1.5}, "min_samples_leaf must be"),
        ({"min_samples_leaf": True}, "min_samples_leaf must be"),
        ({"max_leaf_nodes": 0}, "max_leaf_nodes must be"),
        ({"max_features_used": 1.5}, "max_features_used must be"),
        ({"objective": "gini"}, "objective must be one of"),
        ({"objective": CostMatrix([[0, 1, 2]])}, "CostMatrix: costs must have the shape"),
        ({"objective": CostMatrix([[0, float("nan")], [1, 0]])}, "CostMatrix: costs holds a NaN"),
        ({"objective": "f1", "class_weight": "balanced"}, "class_weight cannot be combined with objective 'f1'"),
        ({"objective": InstanceCosts()}, "InstanceCosts: costs must be given"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        model(**{"exclude": ["name"], **arguments}).fit(X, Y)


def test_what_comes_with_the_rows_must_fit_them() -> None:
    fair = model(constraints=[StatisticalParity(at_most=0.1)])
    with pytest.raises(
        InvalidInputError, match="sensitive_features must have one value per row of X, 300 in all, got 2"
    ):
        fair.fit(X, Y, sensitive_features=["f", "m"])
    with pytest.raises(InvalidInputError, match=r"sensitive_features\['a'\]"):
        fair.fit(X, Y, sensitive_features={"a": np.zeros((300, 2))})
    with pytest.raises(InvalidInputError, match="sensitive_features has no column"):
        fair.fit(X, Y, sensitive_features={})
    with pytest.raises(InvalidInputError, match="costs must have one row per sample"):
        model(objective=InstanceCosts()).fit(X, Y, costs=np.zeros((2, 2)))


def test_what_nothing_uses_is_told() -> None:
    """Costs without an objective that takes them are a mistake, groups without constraints may be one."""
    with pytest.raises(InvalidInputError, match="costs are not used by objective 'f1'"):
        model(objective="f1").fit(X, Y, costs=np.zeros((300, 2)))
    with pytest.warns(UserWarning, match="sensitive_features are not used"):
        model().fit(X, Y, sensitive_features=X.sex)
    with pytest.raises(InvalidInputError, match="max_features_used must be a whole number of at least 0"):
        model(max_features_used=-1).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"the classes are \['bad', 'good'\]"):
        model(objective=CostMatrix({("bad", "god"): 1.0})).fit(X, Y)


def test_what_comes_with_the_rows_follows_them() -> None:
    """Into folds: groups by name, all of them together, and costs."""
    given = attached({"a": np.arange(6), "b": np.array(list("uvwxyz"))}, np.arange(12).reshape(6, 2), 6)
    some = given.of_rows(np.array([4, 1]))
    assert some.sensitive["a"].tolist() == [4, 1] and some.sensitive["b"].tolist() == ["y", "v"]
    assert some.group.tolist() == ["4, y", "1, v"] and some.costs.tolist() == [[8, 9], [2, 3]]


def test_an_objective_of_accuracy_does_not_conflict_with_class_weights() -> None:
    assert model(objective=Accuracy(), class_weight="balanced").fit(X, Y).status_ == "optimal"


def test_arrays_over_rows_are_refused_where_rows_are_split() -> None:
    sex = X.sex.to_numpy()
    for arguments, words in (
        ({"constraints": [StatisticalParity(sex, at_most=0.1)]}, r"constraints\[0\]: group"),
        ({"objective": InstanceCosts(np.zeros((300, 2)))}, "objective: costs"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            OptimalTreeClassifierCV(1, cv=3, exclude=["name"], **arguments).fit(X, Y)


@pytest.mark.parametrize(
    ("limits", "constraint", "words"),
    [
        ([], 0, "limits"),
        ([float("nan")], 0, "limits"),
        (0.1, 0, "limits"),
        ([0.1], 3, "constraint must be"),
        ([0.1], "a", "constraint"),
    ],
)
def test_bad_trade_offs_are_named(limits: Any, constraint: Any, words: str) -> None:
    base = model(constraints=[StatisticalParity("sex", at_most=1.0)])
    with pytest.raises(InvalidInputError, match=words):
        accel_oct.trade_off(base, X, Y, limits=limits, constraint=constraint)


def test_a_trade_off_needs_a_constraint() -> None:
    """A classifier without constraints has no limit to vary."""
    with pytest.raises(InvalidInputError, match="constraints: the classifier has none"):
        accel_oct.trade_off(model(), X, Y, limits=[0.1])


def test_trade_offs_say_what_they_cannot_vary() -> None:
    """A model that is none, and arrays over rows where rows are split; numbers of NumPy's are numbers."""
    rule = [StatisticalParity(X.sex.to_numpy(), at_most=1.0)]
    with pytest.raises(InvalidInputError, match="model must be an OptimalTreeClassifier"):
        accel_oct.trade_off(OptimalTreeClassifierCV(1, constraints=rule), X, Y, limits=[0.1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"constraints\[0\]: group"):
        accel_oct.trade_off(model(constraints=rule), X, Y, limits=[0.1], cv=3)
    leaves = accel_oct.trade_off(model(max_depth=2, constraints=[MaxLeaves(4)]), X, Y, limits=np.arange(1, 4))
    assert [point.model.get_n_leaves() for point in leaves] == [1, 2, 3]


def test_columns_without_a_feature_may_have_a_price() -> None:
    """Excluded, or constant in these rows: no tree can use them; what is no column is refused."""
    frame = X.assign(constant=1)
    prices = {"name": 1.0, "constant": 1.0, "income": 5.0}
    fitted = model(constraints=[FeatureCosts(prices, at_most=4.0)]).fit(frame, Y)
    assert 2 not in columns_used(fitted)
    with pytest.raises(InvalidInputError, match="there is no column 'salary'"):
        model(constraints=[FeatureCosts({"salary": 1.0}, at_most=4.0)]).fit(frame, Y)


@pytest.mark.parametrize("rule", [ForbiddenFeatures(["a"]), FeatureCosts({"a": 5.0}, at_most=1.0)])
def test_columns_behind_an_unknown_encoder_are_not_taken_for_unused(rule: Any) -> None:
    """Which features a column became is not known there; with ours a column may have none."""
    frame = pd.DataFrame({"a": np.where(Y == "good", 1.0, 0.0), "b": np.arange(len(Y)) % 2})
    bins = KBinsDiscretizer(2, encode="onehot-dense", strategy="uniform")
    with pytest.raises(InvalidInputError, match="column"):
        OptimalTreeClassifier(1, 0.0, encoder=bins, constraints=[rule]).fit(frame.to_numpy(), Y)
    with pytest.raises(InvalidInputError, match="column"):
        OptimalTreeClassifier(1, 0.0, encoder=bins, constraints=[rule]).fit(frame, Y)
    assert OptimalTreeClassifier(1, 0.0, constraints=[rule]).fit(frame * 0, Y).get_n_leaves() == 1


def test_nothing_is_said_that_need_not_be() -> None:
    """No warning on the way from a frame to a fair tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(constraints=[StatisticalParity("sex", at_most=0.1)]).fit(X, Y)
