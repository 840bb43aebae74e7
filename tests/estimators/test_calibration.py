"""The parameters `smoothing` and `calibrate`, `predict_interval`, `leaf_table` and `stability` of the classifier."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from scipy.stats import beta
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Recall
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.calibration import CANDIDATES


@pytest.fixture(scope="module")
def noisy() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 3)).round(2), columns=["a", "b", "c"])
    return X, np.where(X["a"] + rng.normal(0, 1.5, 150) > 0.5, "yes", "no")


def test_calibrate_takes_the_amount_of_least_held_out_loss(noisy: tuple[pd.DataFrame, np.ndarray]) -> None:
    """The folds by hand: the trees of the training parts, the m-estimate of their leaves, the sum of log-losses."""
    X, y = noisy
    model = OptimalTreeClassifier(3, 0.0, calibrate=4).fit(X, y)
    losses = np.zeros(len(CANDIDATES))
    for train, test in StratifiedKFold(4).split(X, y):
        fold = OptimalTreeClassifier(3, 0.0).fit(X.iloc[train], y[train])
        for place, amount in enumerate(CANDIDATES):
            fold.smoothing_ = amount
            shares = fold.predict_proba(X.iloc[test])
            own = shares[np.arange(len(test)), np.searchsorted(fold.classes_, y[test])]
            losses[place] -= np.log(own).sum()
    assert model.smoothing_ == CANDIDATES[int(losses.argmin())]
    assert 0.1 < model.smoothing_ < 1000
    plain = OptimalTreeClassifier(3, 0.0).fit(X, y)
    assert plain.smoothing_ == 5.0
    np.testing.assert_array_equal(model.tree_.tree.feature, plain.tree_.tree.feature)


def test_calibrate_with_weights_classes_and_missing_values() -> None:
    """Weights, class weights, text and missing values pass through the folds; a class of few rows may lack in some."""
    X, y = mixed_frame(90)
    y = np.asarray(y).astype(str)
    y[:3] = "third"
    weights = np.where(np.arange(90) % 3 == 0, 2.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OptimalTreeClassifier(2, 0.0, calibrate=5, class_weight="balanced").fit(X, y, sample_weight=weights)
    assert model.smoothing_ in CANDIDATES
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_calibrate_without_a_fold_with_a_tree() -> None:
    """If the constraints hold on all rows but in no fold, the parameter `smoothing` stands, with a warning."""
    y = np.arange(60) % 2
    X = pd.DataFrame({"x": np.where(np.arange(60) < 10, 0, y)})  # the first ten rows cannot be told apart
    model = OptimalTreeClassifier(
        *(1, 0.0),
        calibrate=[(np.arange(10), np.arange(10, 60))],
        smoothing=2.0,
        constraints=[Recall(0, at_least=0.8), Recall(1, at_least=0.8)],
    )
    with pytest.warns(UserWarning, match="calibrate: no fold has a tree"):
        model.fit(X, y)
    assert model.smoothing_ == 2.0


def test_parameters_are_checked_and_kept(noisy: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Invalid values are errors; clones, cross-validation and JSON keep both parameters and the amount."""
    X, y = noisy
    for arguments, message in (
        ({"smoothing": -1}, "smoothing must be"),
        ({"calibrate": 1}, "calibrate"),
        ({"calibrate": "five"}, "calibrate"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            OptimalTreeClassifier(1, **arguments).fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="calibrate="):
        OptimalTreeClassifier(1, calibrate=3).fit(OptimalTreeClassifier(1).encode(X, y))
    model = OptimalTreeClassifier(2, 0.01, smoothing=3.0, calibrate=3).fit(X, y)
    assert clone(model).get_params()["calibrate"] == 3
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert (again.smoothing, again.calibrate, again.smoothing_) == (3.0, 3, model.smoothing_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    chosen = OptimalTreeClassifierCV(2, [0.05, 0.01], cv=3, calibrate=3).fit(X, y)
    assert chosen.smoothing_ == chosen.best_estimator_.smoothing_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["nodes"].update(smoothing=-1), "smoothing"),
        (lambda d: d["nodes"]["class_counts"][0].__setitem__(0, 1.5), "whole numbers"),
        (lambda d: d["nodes"]["class_counts"][0].__setitem__(0, 1), "sums"),
        (lambda d: d["columns"]["spreads"].clear(), "each ordered column"),
        (lambda d: d["columns"]["spreads"][0].__setitem__(1, 0), "spread must be"),
        (lambda d: d["columns"]["spreads"][0].__setitem__(2, 99), "decimals must be"),
        (lambda d: d["columns"]["spreads"][0].__setitem__(3, "x"), "spreads must hold"),
        (lambda d: d.update(schema=1), "schema 1, which lacks what predict_proba needs"),
    ],
)
def test_damaged_files_are_refused(noisy: tuple[pd.DataFrame, np.ndarray], change: Any, message: str) -> None:
    """What probabilities and explanations need is checked on reading."""
    document = json.loads(OptimalTreeClassifier(1, 0.0).fit(*noisy).to_json())
    change(document)
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier.from_json(json.dumps(document))


def test_probabilities_without_class_weights(noisy: tuple[pd.DataFrame, np.ndarray]) -> None:
    """On request they are those of the same tree without factors."""
    X, y = noisy
    model = OptimalTreeClassifier(2, 0.0, class_weight={"no": 1, "yes": 3}, smoothing=0).fit(X, y)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        share = (y[leaves == leaf] == "yes").mean()
        np.testing.assert_allclose(model.predict_proba(X, class_weights=False)[leaves == leaf, 1], share)
        assert (model.predict_proba(X)[leaves == leaf, 1] >= share - 1e-12).all()


def test_intervals_of_rows_and_leaves(noisy: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Clopper-Pearson of training counts; the table also counts other rows, and agrees with its frame and text."""
    X, y = noisy
    model = OptimalTreeClassifier(2, 0.0).fit(X[:100], y[:100], sample_weight=np.linspace(0.5, 2, 100))
    leaves = model.apply(X)
    limits = model.predict_interval(X, confidence=0.9)
    assert limits.shape == (150, 2, 2)
    for rows, table in ((slice(100), model.leaf_table()), (slice(100, 150), model.leaf_table(X[100:], y[100:]))):
        for leaf in table:
            own = y[rows][leaves[rows] == leaf.leaf]
            assert (leaf.n_rows, leaf.n_right) == (len(own), (own == leaf.prediction).sum())
            if 0 < leaf.n_right < leaf.n_rows:
                assert leaf.low == pytest.approx(beta.ppf(0.025, leaf.n_right, leaf.n_rows - leaf.n_right + 1))
                assert leaf.high == pytest.approx(beta.ppf(0.975, leaf.n_right + 1, leaf.n_rows - leaf.n_right))
            assert leaf.prediction in str(table)
        assert table.to_frame()["right"].tolist() == [leaf.n_right for leaf in table]
    for leaf in np.unique(leaves):
        hits, n = int((y[:100][leaves[:100] == leaf] == "yes").sum()), int((leaves[:100] == leaf).sum())
        if 0 < hits < n:
            expected = [beta.ppf(0.05, hits, n - hits + 1), beta.ppf(0.95, hits + 1, n - hits)]
            np.testing.assert_allclose(limits[leaves == leaf, 1], [expected] * int((leaves == leaf).sum()))


def test_a_strong_split_always_comes_back() -> None:
    """The split of a clean rule is in all resampled trees, one of noise in few; the same seed gives the same result."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"clean": rng.random(120).round(3), "town": rng.choice(["x", "y", "z"], 120)})
    y = np.where(X["clean"] > 0.5, 1, 0)
    model = OptimalTreeClassifier(1, 0.0).fit(X, y)
    found = model.stability(X, y, n_samples=6, seed=3)
    assert (found.n_trees, found.n_wanted, found.n_failed) == (6, 6, 0)
    assert [split.share for split in found.splits] == [1.0]
    assert found.columns == {"clean": 1.0}
    assert found.agreement > 0.95
    assert found == model.stability(X, y, n_samples=6, seed=3)
    assert "clean >= 0.5" in str(found)
    events: list[Any] = []
    stopped = model.stability(X, y, n_samples=50, time_limit=0.0, progress=events.append)
    assert stopped.n_trees == 0
    assert events
    with pytest.raises(InvalidInputError, match="n_samples"):
        model.stability(X, y, n_samples=0)


def test_rows_that_a_leaf_table_cannot_count() -> None:
    """Labels of another type are no classes of the model; without y there is nothing to count."""
    X, y = np.arange(10.0).reshape(-1, 1), np.array([0, 1] * 5)
    model = OptimalTreeClassifier(1, 0.0).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"no class of the model, which are \[0, 1\]; its first value is '0'"):
        model.leaf_table(X, y.astype(str))
    with pytest.raises(InvalidInputError, match="needs y beside X"):
        model.leaf_table(X)
    assert sum(leaf.n_rows for leaf in model.leaf_table(X, np.r_[y[:9], 7])) == 9


def test_smoothing_beyond_floats() -> None:
    """A whole number that no float can hold is refused like infinity."""
    with pytest.raises(InvalidInputError, match="smoothing must be a finite number"):
        OptimalTreeClassifier(1, smoothing=10**400).fit([[0], [1]], [0, 1])
