"""ONNX models give the classes and probabilities of the tree, on every kind of cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.format_support import ALL_KINDS, random_model

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, TableEncoder
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.export import onnx_inputs, to_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'accel-oct[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'accel-oct[test]'")
MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


def outputs(model: OptimalTreeClassifier, X: Any, missing_text: str = MARK) -> list[Any]:
    session = onnxruntime.InferenceSession(to_onnx(model, missing_text=missing_text))
    return session.run(None, onnx_inputs(model, X, missing_text=missing_text))


def stump(X: Any, y: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(1, 0.0, encoder=TableEncoder(AllThresholdsEncoder())).fit(X, y)


@pytest.mark.filterwarnings("ignore::accel_oct.errors.SingleLeafWarning")
@pytest.mark.daily(25, "slow")
@pytest.mark.parametrize("seed", range(300))
def test_onnx_agrees_on_random_tables(seed: int) -> None:
    """Classes of every type and probabilities, bit for bit, on known rows, neighbours of thresholds and new texts."""
    model, tables = random_model(seed, ALL_KINDS)
    for X in tables:
        labels, shares = outputs(model, X)
        assert labels.tolist() == model.predict(X).tolist()
        np.testing.assert_array_equal(shares, model.predict_proba(X))


def test_numbers_are_compared_as_doubles() -> None:
    """Two neighbours in double precision, equal in single precision, on both sides of a threshold."""
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]] * 5)
    model = stump(X, [0, 1] * 5)
    assert outputs(model, X)[0].tolist() == [0, 1] * 5


def test_whole_numbers_beyond_doubles() -> None:
    """The input is of 64-bit integers; its least value is missing, and a fraction is an error."""
    X = pd.DataFrame({"x": pd.array([2**60, 2**60 + 1, None] * 5, dtype="Int64")})
    model = stump(X, [0, 1, 1] * 5)
    assert onnx_inputs(model, X)["x"].dtype == np.int64
    assert onnx_inputs(model, X)["x"][2, 0] == -(2**63)
    assert outputs(model, X)[0].tolist() == model.predict(X).tolist() == [0, 1, 1] * 5
    with pytest.raises(InvalidInputError, match="whole numbers of 64 bits"):
        onnx_inputs(model, pd.DataFrame({"x": np.array([0.5], dtype=object)}))


def test_names_of_inputs_and_outputs() -> None:
    """Names of outputs and empty ones are changed, others kept; each input says what it holds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["label", "", "column", "and"])
    y = (X["label"] > 0).astype(int) + 2 * ((X[""] > 0) ^ (X["column"] > 0)) * (X["and"] > 0)
    model = OptimalTreeClassifier(4, 0.0).fit(X, y)
    graph = onnx.load_from_string(to_onnx(model)).graph
    assert [given.name for given in graph.input] == ["label_2", "column", "column_2", "and"]
    assert [given.doc_string for given in graph.input] == ["number; NaN is missing"] * 4
    assert [given.name for given in graph.output] == ["label", "probabilities"]
    assert outputs(model, X)[0].tolist() == model.predict(X).tolist()


def test_the_class_of_a_leaf_against_its_majority() -> None:
    """The class of the tree, not the one with the largest probability."""
    X, y = np.array([[0.0]] * 10 + [[1.0]] * 10), [0] * 10 + [0] * 6 + [1] * 4
    model = OptimalTreeClassifier(1, 0.0, class_weight={0: 1.0, 1: 9.0}, smoothing=0.0).fit(X, y)
    model.tree_.class_weights[:] = model.tree_.class_weights[:, ::-1]  # the probabilities say the opposite everywhere
    labels, shares = outputs(model, X)
    assert labels.tolist() == model.predict(X).tolist() == [0] * 10 + [1] * 10
    assert (shares.argmax(axis=1) != labels).all()


def test_a_tree_without_a_split() -> None:
    """One class for as many rows as there are."""
    model = OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], ["a", "a"])
    labels, shares = outputs(model, np.zeros((3, 1)))
    assert labels.tolist() == ["a"] * 3 and shares.tolist() == [[1.0]] * 3


def test_the_text_of_missing_cells() -> None:
    """It is no category that is asked for, and no cell holds it."""
    X = pd.DataFrame({"c": ["", "b", None, "d"] * 5})
    model = stump(X, [0, 1, 1, 1] * 5)
    with pytest.raises(InvalidInputError, match="missing_text is a category"):
        to_onnx(model)
    with pytest.raises(InvalidInputError, match="give another missing_text"):
        onnx_inputs(model, X, missing_text="b")
    with pytest.raises(InvalidInputError, match="must be a text"):
        to_onnx(model, missing_text=None)  # type: ignore[arg-type]
    assert outputs(model, X)[0].tolist() == model.predict(X).tolist()


def test_what_onnx_cannot_hold_is_refused() -> None:
    """Lone surrogates, and whole numbers of more than 64 bits; NUL is a character like any other."""
    X = pd.DataFrame({"c": np.array(["\ud800", "b", "c"] * 5, dtype=object)}, dtype=object)
    with pytest.raises(InvalidInputError, match="lone surrogate"):
        to_onnx(stump(X, [0, 1, 1] * 5))
    with pytest.raises(InvalidInputError, match="exceeds 64 bits"):
        to_onnx(stump(pd.DataFrame({"x": np.array([2**70, 2**70 + 1] * 5, dtype=object)}), [0, 1] * 5))
    X = pd.DataFrame({"c": ["a\0b", "a", "c"] * 5})
    model = stump(X, [0, 1, 1] * 5)
    assert outputs(model, X)[0].tolist() == model.predict(X).tolist()


def test_the_file_is_the_model(tmp_path: Path) -> None:
    """What is returned is written, the classes are in the metadata, and old operator sets suffice."""
    model = OptimalTreeClassifier(1, 0.0).fit([[0.0], [1.0]] * 5, ["a", "b"] * 5)
    content = model.to_onnx(tmp_path / "tree.onnx")
    assert (tmp_path / "tree.onnx").read_bytes() == content
    read = onnx.load_from_string(content)
    assert {entry.key: entry.value for entry in read.metadata_props} == {"classes": '["a", "b"]', "missing_text": ""}
    assert {entry.domain: entry.version for entry in read.opset_import} == {"": 15, "ai.onnx.ml": 2}


def test_the_extra_is_named_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence with the command to install it."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(AccelOctError, match=r"accel-oct\[onnx\]"):
        to_onnx(OptimalTreeClassifier(max_depth=0).fit([[1.0]], [0]))
