"""The tree as scikit-learn's own: it predicts the same, and scikit-learn's tools take it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers.estimator_support import mixed_frame
from helpers.pieces_support import cut, parquet_folder
from helpers.rules_support import tables
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version
from sklearn.datasets import load_iris
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, export_text, plot_tree

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Recall
from accel_oct.encoding import AllThresholdsEncoder, QuantileBucketEncoder, TableEncoder
from accel_oct.errors import InvalidInputError


def known(columns: Any) -> np.ndarray:
    """Rows without a missing value."""
    dense = columns.toarray() if hasattr(columns, "toarray") else columns
    return np.asarray(~pd.isna(pd.DataFrame(dense)).any(axis=1))


def assert_same(model: OptimalTreeClassifier, other: Any, X: Any) -> None:
    """Predictions, shares and leaves."""
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    tree, columns = (other[-1], other[:-1].transform(X)) if isinstance(other, Pipeline) else (other, X)
    np.testing.assert_array_equal(tree.apply(columns), model.apply(X))
    # Before 1.8, decision_path of scikit-learn sends every missing value to the right, whatever apply does.
    rows = np.ones(len(X), dtype=bool) if Version(sklearn.__version__) >= Version("1.8") else known(columns)
    found, expected = tree.decision_path(columns).toarray(), model.decision_path(X).toarray()
    np.testing.assert_array_equal(found[rows], expected[rows])
    assert (tree.get_depth(), tree.get_n_leaves()) == (model.get_depth(), model.get_n_leaves())


@given(tables(["number", "full", "bit", "truth"]), st.sampled_from(["auto", TableEncoder(AllThresholdsEncoder())]))
def test_numbers_stay_columns(data: Any, encoder: Any) -> None:
    """A tree on the columns themselves, missing values of the training data and new ones included."""
    X, y, weights, new = (part.astype(float) if isinstance(part, pd.DataFrame) else part for part in data)
    X["truth"] = data[0]["truth"]
    model = OptimalTreeClassifier(3, 0.0, encoder=encoder).fit(X, y, weights)
    tree = model.to_sklearn()
    assert type(tree) is DecisionTreeClassifier
    for table in (X.astype(float), new):
        assert_same(model, tree, table)
    if model.encoder_.conditions_:
        assert_same(model, model.to_sklearn(encoded=True), X)
    np.testing.assert_allclose(tree.feature_importances_, model.feature_importances_, atol=1e-12)


@given(tables(), st.sampled_from(["auto", TableEncoder(QuantileBucketEncoder(4))]))
def test_anything_else_is_a_pipeline(data: Any, encoder: Any) -> None:
    """Categories and buckets go through the encoder."""
    X, y, weights, new = data
    model = OptimalTreeClassifier(3, 0.0, encoder=encoder).fit(X, y, weights)
    if not model.encoder_.conditions_:
        with pytest.raises(InvalidInputError, match="encoder gives none"):
            model.to_sklearn()
        return
    pipeline = model.to_sklearn()
    assert isinstance(pipeline, Pipeline)
    for table in (X, new):
        assert_same(model, pipeline, table)
    with pytest.raises(InvalidInputError, match=r"encoded=False is not possible.*is categorical"):
        model.to_sklearn(encoded=False)


@given(st.lists(st.floats(-1e30, 1e30, allow_subnormal=False), min_size=2, max_size=12), st.integers(0, 60))
def test_single_precision_changes_no_answer(values: list[float], near: int) -> None:
    """Where rounding would put a training value on the other side, the tree is on the encoded columns instead."""
    close = [value for start in values for value in (start, start + abs(start) * 2.0**-near)]
    X = np.array(close)[:, None]
    rng = np.random.default_rng(near)
    model = OptimalTreeClassifier(2, 0.0, encoder=AllThresholdsEncoder()).fit(X, rng.integers(0, 2, len(X)))
    tree = model.to_sklearn()
    assert_same(model, tree, X)
    if isinstance(tree, Pipeline):
        with pytest.raises(InvalidInputError, match="single precision"):
            model.to_sklearn(encoded=False)
        raw = [model.encoder_.conditions_[f].low for f in model.tree_.tree.features_used]
        with np.errstate(over="ignore"):
            rounded = X.astype(np.float32).astype(float)
        assert any(((rounded >= low) != (low <= X)).any() for low in raw)


def test_numbers_beyond_single_precision() -> None:
    """They would be infinite for scikit-learn."""
    X = np.array([[1.0], [2.0], [1e300], [2e300]])
    model = OptimalTreeClassifier(1, 0.0).fit(X, [0, 0, 1, 1])
    assert isinstance(model.to_sklearn(), Pipeline)
    assert_same(model, model.to_sklearn(), X)


@pytest.mark.parametrize("large", [[1e300, 2e300, 1e300, 2e300], [1e39] * 4, [-1e39, 0.0, 0.0, -1e39]])
def test_columns_beyond_single_precision_that_the_tree_does_not_ask_about(large: list[float], tmp_path: Path) -> None:
    """scikit-learn refuses rows with such a value anywhere: they go through the encoder, however the model was made."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "large": large})
    model = OptimalTreeClassifier(1, 0.0).fit(X, [0, 0, 1, 1])
    for one in (model, OptimalTreeClassifier.from_json(model.to_json())):
        assert_same(model, one.to_sklearn(), X)
        with pytest.raises(InvalidInputError, match=r"encoded=False.*'large'"):
            one.to_sklearn(encoded=False)
    folder = parquet_folder(tmp_path, cut(X.assign(y=[0, 0, 1, 1]), 2))
    assert_same(model, OptimalTreeClassifier(1, 0.0).fit(folder, "y").to_sklearn(), X)


def test_a_value_at_the_threshold_itself() -> None:
    """In whole numbers the threshold is a value of the data, and it answers yes."""
    X = np.arange(10.0)[:, None]
    model = OptimalTreeClassifier(1, 0.0).fit(X, X[:, 0] >= 5)
    assert [model.encoder_.conditions_[f].low for f in model.tree_.tree.features_used] == [5.0]
    assert_same(model, model.to_sklearn(encoded=False), X)


def test_whether_a_value_is_missing() -> None:
    """As scikit-learn itself writes it: everything that is known is at most infinity."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.nan]})
    model = OptimalTreeClassifier(1, 0.0).fit(X, X["x"].isna())
    tree = model.to_sklearn(encoded=False)
    assert tree.tree_.threshold[0] == np.inf
    assert_same(model, tree, X)


def test_scikit_learns_tools_take_it() -> None:
    """Text, pictures, pickles, pruning paths; the arrays are those that scikit-learn would have made."""
    data = load_iris(as_frame=True)
    y = data.target_names[data.target]
    model = OptimalTreeClassifier(3, 0.01).fit(data.data, y)
    tree = model.to_sklearn()
    assert list(tree.feature_names_in_) == list(data.data.columns) and list(tree.classes_) == list(model.classes_)
    assert "petal" in export_text(tree, feature_names=list(data.data.columns))
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'accel-oct[plot]'").use("Agg")
    assert len(plot_tree(tree)) >= model.tree_.node_count
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tree)).predict(data.data), model.predict(data.data))
    assert len(tree.cost_complexity_pruning_path(data.data, y).ccp_alphas) > 1
    np.testing.assert_allclose(tree.feature_importances_, model.feature_importances_, atol=1e-12)
    for name in ("n_node_samples", "weighted_n_node_samples", "children_left", "children_right", "impurity"):
        np.testing.assert_allclose(getattr(tree.tree_, name), getattr(model.tree_, name), atol=1e-12)
    assert tree.score(data.data, y) == model.score(data.data, y)
    assert tree.tree_.value.sum(axis=2) == pytest.approx(1.0)


def test_leaves_whose_label_is_not_the_largest_share() -> None:
    """Under a constraint a leaf may predict a rare class: an error that names it, or labels without shares."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(120).round(2), "b": rng.random(120).round(2)})
    y = np.where(rng.random(120) < 0.15 + 0.3 * (X["a"] > 0.5), "rare", "usual")
    model = OptimalTreeClassifier(2, 0.0, constraints=[Recall(at_least=0.9, positive="rare")]).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"leaf \d+ predicts 'rare', but 'usual' has the largest probability"):
        model.to_sklearn()
    for encoded in (False, True):
        tree = model.to_sklearn(values="labels", encoded=encoded)
        np.testing.assert_array_equal(tree.predict(X), model.predict(X))
        assert set(np.unique(tree.predict_proba(X))) == {0.0, 1.0}
    root = model.to_sklearn(values="labels").tree_.value[0, 0]
    np.testing.assert_allclose(root, [(model.predict(X) == name).mean() for name in model.classes_])


def test_other_encoders_single_leaves_and_cross_validation() -> None:
    """scikit-learn's encoder stays in the pipeline; a leaf is a tree; the CV classifier has the method too."""
    frame, y = mixed_frame(80)
    small = frame[["region"]]
    model = OptimalTreeClassifier(2, 0.0, encoder=OneHotEncoder()).fit(small, y)
    assert_same(model, model.to_sklearn(), small)
    with pytest.raises(InvalidInputError, match="OneHotEncoder"):
        model.to_sklearn(encoded=False)
    leaf = OptimalTreeClassifier(max_depth=0).fit(frame[["age"]], y)
    assert_same(leaf, leaf.to_sklearn(), frame[["age"]])
    chosen = OptimalTreeClassifierCV(2, leaf_penalties=[0.05], cv=2).fit(frame[["age", "income"]], y)
    assert_same(chosen, chosen.to_sklearn(), frame[["age", "income"]])  # type: ignore[arg-type]
    weighted = OptimalTreeClassifier(2, 0.0, class_weight="balanced").fit(frame[["age", "income"]], y)
    assert_same(weighted, weighted.to_sklearn(), frame[["age", "income"]])
    binary = OptimalTreeClassifier(2, 0.0, encoder=None).fit([[0, 1], [1, 1], [1, 0]], [0, 1, 0])
    assert_same(binary, binary.to_sklearn(encoded=False), np.array([[0, 1], [1, 1], [1, 0]]))


def test_models_from_files() -> None:
    """What float32 does to the training values is stored."""
    frame, y = mixed_frame(80)
    X = frame[["age", "income"]]
    model = OptimalTreeClassifier(2, 0.0).fit(X, y)
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert type(again.to_sklearn()) is DecisionTreeClassifier
    assert_same(model, again.to_sklearn(), X)


@pytest.mark.parametrize(("name", "value"), [("encoded", "yes"), ("encoded", 1), ("values", "counts")])
def test_bad_arguments_are_named(name: str, value: Any) -> None:
    """In one sentence."""
    model = OptimalTreeClassifier(max_depth=0).fit([[1.0]], [0])
    with pytest.raises(InvalidInputError, match=f"{name} must be"):
        model.to_sklearn(**{name: value})
