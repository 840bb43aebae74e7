"""Retraining close to an old model: what the estimator finds, says, clones and stores."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from accel_oct import OptimalTreeClassifier, closest_tree
from accel_oct.constraints import MaxLeaves
from accel_oct.errors import InvalidInputError
from accel_oct.tree import DecisionTree


def table(seed: int, n: int = 120) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(18, 40, n), "debt": rng.integers(0, 6, n), "paid": rng.integers(0, 2, n)})
    y = ((X.age > 28) & (X.debt < 4)) ^ (rng.random(n) < 0.2)
    return X, np.where(y, "good", "bad")


X, Y = table(0)
OLD = OptimalTreeClassifier(2, 0.01).fit(*table(1))


def test_the_tree_agrees_more_and_is_near_the_optimum() -> None:
    """More slack, more agreement; the objective never falls below the optimum minus the slack."""
    free = OptimalTreeClassifier(2, 0.005).fit(X, Y)
    before = np.mean(free.predict(X) == OLD.predict(X))
    last = -1.0
    for within in (0.0, 0.02, 0.1):
        model = OptimalTreeClassifier(2, 0.005, close_to=OLD, within=within).fit(X, Y)
        found = model.closest_
        assert found.status == "optimal" and found.optimum is not None
        assert model.objective_ == found.objective >= found.optimum - within - 2e-9
        assert found.agreement == pytest.approx(np.mean(model.predict(X) == OLD.predict(X)))
        assert model.proof_.startswith(f"proven to agree most with the old model within {within:g} of the optimum")
        assert model.bound_ == pytest.approx(found.optimum) and found.agreement >= last
        last = found.agreement
    assert last > before


def test_the_answer_is_that_of_the_binary_features() -> None:
    """With given features the estimator and the function agree; a tree over the features is an old model too."""
    rng = np.random.default_rng(3)
    B, y = rng.integers(0, 2, (80, 4)), rng.integers(0, 2, 80)
    tree = DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1))
    model = OptimalTreeClassifier(
        2, 0.01, encoder=None, close_to=tree, within=0.05, constraints=[MaxLeaves(3)], min_samples_leaf=2
    ).fit(B, y)
    limits: dict[str, Any] = {"constraints": model._all_constraints(model._prepare(model._source(B, y, (None,) * 3)))}
    found = closest_tree(B, y, close_to=tree, max_depth=2, leaf_penalty=0.01, within=0.05, **limits)
    assert (model.closest_.agreement, model.objective_) == (found.agreement, found.objective)
    assert len(model.constraints_) == 2


def test_any_classifier_with_predict_is_an_old_model() -> None:
    old = LogisticRegression().fit(*table(1))
    model = OptimalTreeClassifier(2, 0.005, close_to=old, within=0.03).fit(X, Y)
    assert model.closest_.agreement == pytest.approx(np.mean(model.predict(X) == old.predict(X)))


def test_clones_keep_the_old_model_and_stored_models_do_not() -> None:
    """A clone has the fitted old model; a pickle or JSON of the fitted classifier has none."""
    model = OptimalTreeClassifier(2, 0.01, close_to=OLD, within=0.03)
    copy = clone(model)
    assert copy.close_to is OLD and copy.within == 0.03 and not hasattr(copy, "tree_")
    assert pickle.loads(pickle.dumps(model)).close_to is not None
    fitted = model.fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.close_to is None and fitted.close_to is OLD and again.closest_.agreement == fitted.closest_.agreement
    stored = OptimalTreeClassifier.from_json(fitted.to_json())
    assert stored.close_to is None and np.array_equal(stored.predict(X), fitted.predict(X))
    assert np.isfinite(cross_val_score(model, X, Y, cv=2)).all()
    assert not hasattr(fitted.set_params(close_to=None).fit(X, Y), "closest_")


def test_a_stopped_search_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="not proven to agree most with the old model"):
        OptimalTreeClassifier(3, 0.0, close_to=OLD, within=0.05, time_limit=1e-6).fit(X, Y)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"close_to": 3}, "close_to must be a fitted classifier or a DecisionTree"),
        ({"close_to": OptimalTreeClassifier}, "close_to must be a fitted classifier"),
        ({"within": -0.1}, "within must be"),
        ({"max_depth": None}, "close_to needs a limit on the depth"),
        ({"objective": "f1"}, "objective: a tree close to an old model"),
        ({"close_to": LogisticRegression().fit(table(1)[0], np.arange(120) % 2)}, "close_to predicts no class of y"),
    ],
)
def test_errors_name_the_argument(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier(**{"max_depth": 1, "close_to": OLD, **changed}).fit(X, Y)


def test_an_encoded_table_needs_a_tree_over_its_features() -> None:
    encoded = OptimalTreeClassifier(2).encode(X, Y)
    with pytest.raises(InvalidInputError, match="close_to must be a DecisionTree where X is an EncodedTable"):
        OptimalTreeClassifier(2, close_to=OLD).fit(encoded)
    tree = DecisionTree.branch(0, DecisionTree.leaf(0), DecisionTree.leaf(1))
    assert OptimalTreeClassifier(2, close_to=tree, within=0.1).fit(encoded).closest_.status == "optimal"


# ---------------------------------------------------------------- splits


def questions(model: OptimalTreeClassifier, frame: pd.DataFrame) -> list[tuple[str, bytes]]:
    """The column of each inner node's split, and how it divides the rows: the first row is on side 0."""
    encoded, arrays = model._encoded(frame), model.tree_
    found = []
    for feature in arrays.feature[arrays.children_left >= 0].tolist():
        division = encoded[:, feature] ^ encoded[0, feature]
        found.append((str(frame.columns[model.encoder_.conditions_[feature].column]), division.tobytes()))
    return found


def test_splits_of_an_old_classifier_are_shared() -> None:
    """The share is counted from the questions of both classifiers; more slack shares more; `proof_` says it."""
    last, old = -1.0, Counter(questions(OLD, X))
    for within in (0.0, 0.02, 0.1):
        model = OptimalTreeClassifier(3, 0.005, close_to=OLD, within=within, agreement="splits").fit(X, Y)
        found = model.closest_
        assert found.status == "optimal" and found.optimum is not None
        assert found.agreement == pytest.approx((Counter(questions(model, X)) & old).total() / old.total())
        assert model.objective_ == found.objective >= found.optimum - within - 2e-9 and found.agreement >= last
        assert model.proof_.startswith(f"proven to share most splits with the old model within {within:g}")
        last = found.agreement
    assert last == 1.0
    assert clone(model).agreement == "splits"


def test_splits_on_other_columns_are_not_shared() -> None:
    """A column that divides the rows in the same way is another split for an old classifier."""
    frame = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 0, 1, 1] * 5, "c": [0, 1, 0, 1] * 5})
    y = (frame.a ^ frame.c).to_numpy()
    old = OptimalTreeClassifier(2, 0.01, exclude=["a"]).fit(frame, y)
    free = OptimalTreeClassifier(2, 0.01, close_to=old, within=0.0, agreement="splits").fit(frame, y)
    assert free.closest_.agreement == 1.0
    bound = OptimalTreeClassifier(2, 0.01, close_to=old, within=0.0, agreement="splits", exclude=["b"]).fit(frame, y)
    expected = Counter(questions(old, frame)) & Counter(questions(bound, frame))
    assert bound.closest_.agreement == pytest.approx(expected.total() / 3) and bound.closest_.agreement < 1.0


def test_a_tree_of_features_shares_splits() -> None:
    """With given features the estimator and the function agree."""
    rng = np.random.default_rng(3)
    B, y = rng.integers(0, 2, (80, 4)), rng.integers(0, 2, 80)
    tree = DecisionTree.branch(1, DecisionTree.leaf(0), DecisionTree.leaf(1))
    model = OptimalTreeClassifier(2, 0.01, encoder=None, close_to=tree, within=0.05, agreement="splits").fit(B, y)
    found = closest_tree(B, y, close_to=tree, max_depth=2, leaf_penalty=0.01, within=0.05, agreement="splits")
    assert (model.closest_.agreement, model.objective_) == (found.agreement, found.objective)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agreement": "both"}, "agreement must be"),
        ({"close_to": LogisticRegression().fit(*table(1))}, "needs a fitted classifier of accel_oct"),
        ({"close_to": OptimalTreeClassifier()}, "not fitted"),
        ({"constraints": [MaxLeaves(2)]}, "cannot be combined with constraints"),
        ({"min_samples_leaf": 3}, "cannot be combined with constraints"),
    ],
)
def test_errors_about_splits(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message) as raised:
        OptimalTreeClassifier(2, 0.01, **{"close_to": OLD, "agreement": "splits", **changed}).fit(X, Y)
    assert isinstance(raised.value, ValueError)
