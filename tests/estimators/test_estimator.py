"""OptimalTreeClassifier as a data scientist meets it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from helpers.progress_support import Rows
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import OneHotEncoder

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, Solver
from accel_oct.encoding import AllThresholdsEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.mip import UnknownBackendError
from accel_oct.solving.config import Config


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def fitted(iris: tuple[pd.DataFrame, np.ndarray]) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=2).fit(*iris)


def test_a_mixed_frame_is_learned_as_it_comes() -> None:
    """Twenty columns with strings, booleans and missing values; the rule behind the labels is found and proven."""
    frame, y = mixed_frame()
    model = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.005).fit(frame, y)
    assert frame.shape[1] == 20
    assert model.status_ == "optimal"
    assert model.score(frame, y) > 0.95
    for said in ("smoker", "income is missing", "age"):
        assert said in model.to_text()


def test_splits_are_in_the_users_terms(fitted: OptimalTreeClassifier) -> None:
    """Everywhere: text, result, never the number of a feature."""
    for text in (fitted.to_text(), fitted.result_.show()):
        assert "petal" in text
        assert "(cm) >= " in text
        assert "virginica" in text


def test_the_objective_is_that_of_solve(iris: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """The estimator adds encoding and names, nothing else."""
    X, y = iris
    result = accel_oct.solve(fitted.encoder_.transform(X), y, max_depth=2, leaf_penalty=0.01)
    assert fitted.objective_ == pytest.approx(result.objective, abs=1e-12)
    assert fitted.objective_ == pytest.approx(fitted.score(X, y) - 0.01 * fitted.get_n_leaves(), abs=1e-12)
    assert (fitted.status_, fitted.gap_, fitted.bound_) == ("optimal", 0.0, fitted.objective_)


def test_the_tree_arrays_are_consistent(iris: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """Walking children_left/right by feature and threshold gives what apply, predict and decision_path give."""
    X, y = iris
    tree, binary = fitted.tree_, fitted.encoder_.transform(X)
    node = np.zeros(len(X), dtype=int)
    path = np.zeros((len(X), tree.node_count), dtype=int)
    for _ in range(tree.max_depth + 1):
        path[np.arange(len(X)), node] = 1
        inner = tree.children_left[node] >= 0
        left = binary[np.arange(len(X)), np.maximum(tree.feature[node], 0)] <= tree.threshold[node]
        node = np.where(inner, np.where(left, tree.children_left[node], tree.children_right[node]), node)
    np.testing.assert_array_equal(node, fitted.apply(X))
    np.testing.assert_array_equal(path, fitted.decision_path(X).toarray())
    np.testing.assert_array_equal(tree.n_node_samples, path.sum(axis=0))
    for leaf in np.unique(node):
        shares = [(y[node == leaf] == label).mean() for label in fitted.classes_]
        np.testing.assert_allclose(tree.predict(binary)[node == leaf], [shares] * np.count_nonzero(node == leaf))
    assert tree.n_leaves == fitted.get_n_leaves() == np.count_nonzero(tree.children_left < 0)


def test_importances_are_per_column_and_sum_to_one(fitted: OptimalTreeClassifier) -> None:
    """Columns of X, not binary features."""
    assert fitted.feature_importances_.shape == (4,)
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    assert fitted.feature_importances_[2:].sum() > 0.9


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-1, 7]),
        np.array([0.0, 1.0]),
        np.array(["a", "b"], "O"),
    ],
)
def test_labels_of_any_type_come_back(labels: np.ndarray) -> None:
    """Same values, same kind."""
    X = pd.DataFrame({"x": np.arange(20)})
    y = np.asarray(labels)[(X["x"] >= 10).astype(int)]
    predicted = OptimalTreeClassifier(max_depth=1).fit(X, y).predict(X)
    np.testing.assert_array_equal(predicted, y)


def test_one_class_and_useless_columns_give_a_leaf() -> None:
    """A right answer rather than an error."""
    one_class = OptimalTreeClassifier().fit([[0.0], [1.0]], ["a", "a"])
    assert one_class.get_n_leaves() == 1
    constant = OptimalTreeClassifier().fit(np.ones((5, 2)), [0, 1, 1, 0, 1])
    assert constant.get_depth() == 0
    assert constant.predict(np.ones((2, 2))).tolist() == [1, 1]
    assert constant.feature_importances_.tolist() == [0.0, 0.0]
    assert OptimalTreeClassifier(max_depth=0).fit([[0.0], [1.0]], [0, 1]).get_n_leaves() == 1


def test_a_constant_column_changes_nothing(
    iris: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier
) -> None:
    """Same objective with it."""
    X, y = iris
    assert OptimalTreeClassifier(max_depth=2).fit(X.assign(constant=1.0), y).objective_ == fitted.objective_


def test_a_warning_tells_the_gap_when_not_proven() -> None:
    """ConvergenceWarning at a time limit of zero; none once it is proven."""
    rng = np.random.default_rng(0)
    X, y = rng.random((80, 6)), rng.integers(0, 2, 80)
    with pytest.warns(ConvergenceWarning, match=r"not proven.*gap of [0-9.]+%"):
        model = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.001, time_limit=0.0, config="baseline").fit(X, y)
    assert model.status_ == "time_limit"
    assert model.bound_ > model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        OptimalTreeClassifier(max_depth=2).fit(X, y)


def test_class_weight_moves_the_tree_to_the_rare_class() -> None:
    """ "balanced" and explicit weights, together with sample weights."""
    X = pd.DataFrame({"x": np.arange(100)})
    y = np.where((X["x"] >= 90) & (X["x"] % 2 == 0), 1, 0)
    plain = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, y)
    balanced = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, class_weight="balanced").fit(X, y)
    explicit = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, class_weight={0: 1, 1: 20}).fit(X, y)
    assert plain.predict(X).sum() == 0
    assert balanced.predict(X)[y == 1].all()
    assert explicit.predict(X)[y == 1].all()


def test_balanced_weights_keep_the_total() -> None:
    """Half of the weight for each of two classes, in scikit-learn's units, however the tree was solved."""
    X, y = np.arange(21.0)[:, None], np.array([0] * 14 + [1] * 7)
    for weights in (None, np.full(21, 0.3)):
        model = OptimalTreeClassifier(max_depth=1, class_weight="balanced").fit(X, y, weights)
        total = 21 if weights is None else weights.sum()
        np.testing.assert_allclose(model.tree_.class_weights[0], [total / 2, total / 2])


def test_other_encoders() -> None:
    """None for binary columns, one of ours, one of scikit-learn's (sparse output included)."""
    X = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5})
    y = (X["a"] & X["b"]).to_numpy()
    for encoder in (None, AllThresholdsEncoder(), TableEncoder(), OneHotEncoder()):
        model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.001, encoder=encoder).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
    assert "if a:" in OptimalTreeClassifier(max_depth=2, leaf_penalty=0.001, encoder=None).fit(X, y).to_text()
    with pytest.raises(InvalidInputError, match=r"0 and 1.*'a', row 1 holds 2"):
        OptimalTreeClassifier(encoder=None).fit(pd.DataFrame({"a": [0, 2]}), [0, 1])


def test_columns_at_predict(iris: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """Another order, missing columns and further columns are errors that name them."""
    X, _ = iris
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="now missing"):
        fitted.predict(X[X.columns[:2]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        fitted.predict(X.assign(more=1))


def test_unseen_categories_and_new_missing_values_at_predict() -> None:
    """They are none of the known categories; the tree has an answer."""
    X = pd.DataFrame({"colour": ["red", "green", "blue"] * 10})
    model = OptimalTreeClassifier(max_depth=1).fit(X, X["colour"] == "red")
    assert model.predict(pd.DataFrame({"colour": ["violet", None, "red"]})).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("X", "y", "parameters", "message"),
    [
        ([[0.0], [1.0]], [0.0, np.nan], {}, "y has a missing"),
        ([[0.0], [1.0]], ["a", None], {}, "y has a missing"),
        ([[0.0], [1.0]], [0, 1, 1], {}, "inconsistent"),
        ([[0.0], [1.0]], [0.5, 1.5], {}, "Unknown label type"),
        ([[0.0], [1.0]], None, {}, "requires y"),
        (pd.DataFrame(), [], {}, "0 feature"),
        ([[np.nan], [1.0]], [0, 1], {"missing": "error"}, "missing value"),
        ([[0.0], [1.0]], [0, 1], {"missing": "drop"}, "missing must be"),
        ([[0.0], [1.0]], [0, 1], {"max_depth": -1}, "max_depth"),
        ([[0.0], [1.0]], [0, 1], {"max_depth": 1.5}, "max_depth"),
        ([[0.0], [1.0]], [0, 1], {"leaf_penalty": -0.1}, "leaf_penalty"),
        ([[0.0], [1.0]], [0, 1], {"leaf_penalty": "big"}, "leaf_penalty"),
        ([[0.0], [1.0]], [0, 1], {"encoder": "magic"}, "encoder"),
        ([[0.0], [1.0]], [0, 1], {"encoder": 3}, "encoder"),
        ([[0.0], [1.0]], [0, 1], {"config": "fastest"}, "preset"),
        ([[0.0], [1.0]], [0, 1], {"solver": 0}, "solver"),
        ([[0.0], [1.0]], [0, 1], {"time_limit": -1.0}, "time_limit"),
        ([[0.0], [1.0]], [0, 1], {"time_limit": float("nan")}, "time_limit"),
    ],
)
def test_bad_input_is_named(X: object, y: object, parameters: dict[str, object], message: str) -> None:
    """Each with the argument that is wrong."""
    with pytest.raises(ValueError, match=message):
        OptimalTreeClassifier(**parameters).fit(X, y)  # type: ignore[arg-type]


def test_an_unknown_backend_is_named() -> None:
    """With those that are known."""
    with pytest.raises(UnknownBackendError, match="abacus"):
        OptimalTreeClassifier(solver="abacus").fit([[0.0], [1.0]], [0, 1])


def test_sample_weights_are_checked() -> None:
    """Negative ones, all zero, a wrong number of them."""
    for weights in ([-1.0, 1.0], [0.0, 0.0], [1.0]):
        with pytest.raises(ValueError, match="sample_weight"):
            OptimalTreeClassifier().fit([[0.0], [1.0]], [0, 1], sample_weight=weights)


def test_before_fit() -> None:
    """NotFittedError from everything that needs a tree."""
    model = OptimalTreeClassifier()
    for call in (model.get_depth, model.get_n_leaves, model.to_text, model.to_json, lambda: model.predict([[1.0]])):
        with pytest.raises(NotFittedError):
            call()


def test_pickle_and_parameters(iris: tuple[pd.DataFrame, np.ndarray], fitted: OptimalTreeClassifier) -> None:
    """As any estimator."""
    X, _ = iris
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    assert copy.get_params()["max_depth"] == 2
    changed = OptimalTreeClassifier(solver=Solver("scip", gap=0.5)).set_params(config=Config(), solver__seed=3)
    assert changed.get_params()["solver"] == Solver("scip", gap=0.5, seed=3) == clone(changed).solver
    assert changed.get_params()["solver__seed"] == 3
    assert OptimalTreeClassifier().set_params(solver__threads=2).solver == Solver(threads=2)
    with pytest.raises(ValueError, match="solver__colour"):
        changed.set_params(solver__colour="red")


def test_progress_is_reported(iris: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Rows of (seconds, objective, bound), the last one proven."""
    rows = Rows()
    OptimalTreeClassifier(max_depth=2, progress=rows).fit(*iris)
    assert rows[-1].objective == pytest.approx(rows[-1].bound)


def test_the_notebook_view_escapes_names() -> None:
    """HTML in a column name or a label stays text; before fit there is only scikit-learn's own diagram."""
    X = pd.DataFrame({"<script>alert(1)</script>": np.arange(20)})
    y = np.where(X.iloc[:, 0] >= 10, "<b>yes</b>", "no")
    model = OptimalTreeClassifier(max_depth=1).fit(X, y)
    shown = model._repr_mimebundle_()["text/html"]
    assert "proven optimal" in shown
    assert "<script>alert" not in shown
    assert "<b>yes</b>" not in shown
    assert "proven optimal" not in OptimalTreeClassifier()._repr_mimebundle_()["text/html"]


# ---------------------------------------------------------------- the penalty by cross-validation


def test_cross_validation_chooses_penalty_and_depth(iris: tuple[pd.DataFrame, np.ndarray]) -> None:
    """The best mean accuracy, the simplest among ties; the curve goes from small trees to large ones."""
    X, y = iris
    model = OptimalTreeClassifierCV(max_depth=[1, 2], leaf_penalties=[0.5, 0.05, 0.005], cv=3).fit(X, y)
    results = model.cv_results_
    assert results["split_test_scores"].shape == (6, 3)
    chosen = (results["max_depth"] == model.max_depth_) & (results["leaf_penalty"] == model.leaf_penalty_)
    assert results["mean_test_score"][chosen][0] == results["mean_test_score"].max()
    assert (model.max_depth_, model.best_estimator_.leaf_penalty) == (2, model.leaf_penalty_)
    assert np.all(np.diff(model.curve_[:, 0]) >= 0)
    assert model.status_ == "optimal"
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))


def test_each_fold_is_scored_by_trees_it_did_not_see(iris: tuple[pd.DataFrame, np.ndarray]) -> None:
    """The path gives the same trees' accuracy as fitting a classifier per fold and penalty, encoding included."""
    X, y = iris
    rows = np.arange(len(y))
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    penalties = [0.2, 0.02]
    model = OptimalTreeClassifierCV(max_depth=1, leaf_penalties=penalties, cv=folds).fit(X, y)
    for place, penalty in enumerate(penalties):
        for fold, (train, test) in enumerate(folds):
            single = OptimalTreeClassifier(1, penalty).fit(X.iloc[train], y[train])
            objective = accel_oct.solve(
                single.encoder_.transform(X.iloc[train]), y[train], max_depth=1, leaf_penalty=penalty
            ).objective
            assert single.objective_ == pytest.approx(objective)
            assert model.cv_results_["split_test_scores"][place, fold] == pytest.approx(
                single.score(X.iloc[test], y[test])
            )


def test_one_standard_error_prefers_the_smaller_tree(iris: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Never more leaves on average than the best."""
    leaves = {}
    for rule in ("best", "one_standard_error"):
        model = OptimalTreeClassifierCV(max_depth=2, cv=3, rule=rule).fit(*iris)
        results = model.cv_results_
        leaves[rule] = results["mean_n_leaves"][results["leaf_penalty"] == model.leaf_penalty_][0]
    assert leaves["one_standard_error"] <= leaves["best"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"leaf_penalties": []}, "leaf_penalties"),
        ({"leaf_penalties": [-1]}, "leaf_penalties"),
        ({"max_depth": []}, "max_depth"),
        ({"rule": "?"}, "rule"),
        ({"cv": []}, "cv"),
    ],
)
def test_bad_cross_validation_parameters(parameters: dict[str, object], message: str) -> None:
    """Named."""
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifierCV(**parameters).fit([[0.0], [1.0]] * 10, [0, 1] * 10)
