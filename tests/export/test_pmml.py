"""PMML documents give the classes and probabilities of the tree, by an evaluator written after the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.format_support import random_model
from helpers.pmml_support import PmmlTree

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, TableEncoder
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_pmml
from accel_oct.export.inputs import MISSING_WHOLE, inputs_of
from accel_oct.export.view import view


def rows(model: OptimalTreeClassifier, tree: PmmlTree, X: Any) -> list[dict[str, Any]]:
    """The cells of the fields; None is missing."""
    inputs, table = inputs_of(view(model), str), Table.read(X)
    columns = [
        [
            None if cell is None or cell != cell or cell == MISSING_WHOLE else cell
            for cell in given.cells(table).tolist()
        ]
        for given in inputs
    ]
    return [dict(zip(tree.fields, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * len(table)


@pytest.mark.filterwarnings("ignore::accel_oct.errors.SingleLeafWarning")
@pytest.mark.daily(25, "slow")
@pytest.mark.parametrize("seed", range(300))
def test_pmml_agrees_on_random_tables(seed: int) -> None:
    """Classes of every type and probabilities, bit for bit; missing cells, unseen categories, hostile names."""
    model, tables = random_model(seed)
    tree = PmmlTree(to_pmml(model))
    assert tree.classes == model.classes_.tolist()
    for X in tables:
        found = [tree.evaluate(row) for row in rows(model, tree, X)]
        assert [label for label, _ in found] == model.predict(X).tolist()
        np.testing.assert_array_equal([shares for _, shares in found], model.predict_proba(X))


def stump(X: Any, y: Any) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(1, 0.0, encoder=TableEncoder(AllThresholdsEncoder())).fit(X, y)


def test_names_of_fields() -> None:
    """Names of the target and of outputs are changed, empty ones too."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["class", "", "label", "probability(1)"])
    y = (X["class"] > 0).astype(int) + 2 * ((X[""] > 0) ^ (X["label"] > 0)) * (X["probability(1)"] > 0)
    model = OptimalTreeClassifier(4, 0.0).fit(X, y)
    assert PmmlTree(to_pmml(model)).fields == ["class_2", "column", "label_2", "probability(1)_2"]


@pytest.mark.parametrize("text", ["a\0", "\x1b", "\ud800", "\ufffe"])
def test_characters_that_xml_cannot_hold_are_refused(text: str) -> None:
    """In a category, a class and a name."""
    X = pd.DataFrame({"c": np.array([text, "b", "c"] * 5, dtype=object)}, dtype=object)
    with pytest.raises(InvalidInputError, match="XML cannot hold"):
        to_pmml(stump(X, [0, 1, 1] * 5))
    with pytest.raises(InvalidInputError, match="XML cannot hold"):
        to_pmml(stump([[0.0], [1.0]] * 5, [text + "x", "b"] * 5))
    with pytest.raises(InvalidInputError, match="XML cannot hold"):
        to_pmml(stump(pd.DataFrame([[0.0], [1.0]] * 5, columns=pd.Index([text], dtype=object)), [0, 1] * 5))


def test_thresholds_that_doubles_cannot_hold_are_refused() -> None:
    """Whole numbers beyond 2**53, and times in nanoseconds."""
    large = pd.DataFrame({"x": [2**60, 2**60 + 1] * 5})
    fine = pd.DataFrame(
        {"x": np.array(["2021-01-01T00:00:00.000000001", "2021-01-01T00:00:00.000000003"] * 5, "M8[ns]")}
    )
    for X in (large, fine):
        with pytest.raises(InvalidInputError, match=r"exceeds 2\*\*53"):
            to_pmml(stump(X, [0, 1] * 5))


def test_the_file_is_the_document(tmp_path: Path) -> None:
    """What is returned is written."""
    model = stump([[0.0], [1.0]] * 5, ["ä", "b"] * 5)
    assert model.to_pmml(tmp_path / "tree.pmml") == (tmp_path / "tree.pmml").read_text(encoding="utf-8")


def test_a_tree_without_a_split() -> None:
    """One node, no fields."""
    model = OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], ["a", "a"])
    assert PmmlTree(to_pmml(model)).evaluate({}) == ("a", [1.0])
