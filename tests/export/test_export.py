"""Exports say the same as the tree, and JSON reads back exactly or not at all."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.encoding import QuantileBucketEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.export import SCHEMA_VERSION, to_dot, to_html, to_json, to_python, to_sql, to_text
from accel_oct.solving.config import Config


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    return mixed_frame()


@pytest.fixture(scope="module")
def fitted(mixed: tuple[pd.DataFrame, np.ndarray]) -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=3, leaf_penalty=0.002).fit(*mixed)


@pytest.fixture(scope="module")
def awkward() -> tuple[pd.DataFrame, OptimalTreeClassifier]:
    """Every kind of condition, and names that need quoting."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            'it\'s a "name"': rng.random(200),
            "c'at": rng.choice(["o'ne", 't"wo', "three", "4"], 200),
            "b": rng.random(200) < 0.5,
        }
    )
    X.iloc[:30, 0] = np.nan
    inside = (X.iloc[:, 0] > 0.4) & (X.iloc[:, 0] < 0.6)
    y = np.where(inside | (X["c'at"] == "o'ne") & X["b"] | X.iloc[:, 0].isna(), "it's", "no")
    encoder = TableEncoder(QuantileBucketEncoder(5))
    return X, OptimalTreeClassifier(3, 0.001, encoder=encoder).fit(X, y)


def rows_of(X: pd.DataFrame) -> list[dict[str, Any]]:
    return [{key: None if pd.isna(value) else value for key, value in row.items()} for row in X.to_dict("records")]


def test_python_rules_predict_the_same(
    mixed: tuple[pd.DataFrame, np.ndarray],
    fitted: OptimalTreeClassifier,
    awkward: tuple[pd.DataFrame, OptimalTreeClassifier],
) -> None:
    """The generated function, on every training row, missing values included."""
    for X, model in ((mixed[0], fitted), awkward):
        namespace: dict[str, Any] = {}
        exec(to_python(model, function_name="classify"), namespace)
        assert [namespace["classify"](row) for row in rows_of(X)] == model.predict(X).tolist()


def test_sql_rules_predict_the_same(
    mixed: tuple[pd.DataFrame, np.ndarray],
    fitted: OptimalTreeClassifier,
    awkward: tuple[pd.DataFrame, OptimalTreeClassifier],
) -> None:
    """The CASE expression in SQLite, where NULL goes to ELSE."""
    for X, model in ((mixed[0], fitted), awkward):
        connection = sqlite3.connect(":memory:")
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in X.columns)
        connection.execute(f"CREATE TABLE data ({quoted})")
        marks = ", ".join("?" * X.shape[1])
        values = [[v.item() if isinstance(v, np.generic) else v for v in row.values()] for row in rows_of(X)]
        connection.executemany(f"INSERT INTO data VALUES ({marks})", values)
        answers = connection.execute(f"SELECT {to_sql(model, column='class')} FROM data").fetchall()
        assert [answer for (answer,) in answers] == model.predict(X).tolist()
        connection.close()


def test_text_names_every_leaf(fitted: OptimalTreeClassifier) -> None:
    """One line per leaf, two per branch node."""
    lines = to_text(fitted).splitlines()
    assert sum("class " in line for line in lines) == fitted.get_n_leaves()
    assert sum(line.lstrip().startswith("if ") for line in lines) == 2 * (fitted.get_n_leaves() - 1)
    assert "(" not in to_text(fitted, show_counts=False)


def test_dot_is_well_formed(awkward: tuple[pd.DataFrame, OptimalTreeClassifier]) -> None:
    """Nodes and edges of the tree; quotes are escaped, which Graphviz confirms where it is installed."""
    model = awkward[1]
    text = to_dot(model)
    assert text.count(" -> ") == 2 * (model.get_n_leaves() - 1)
    assert text.count("fillcolor=") == model.tree_.node_count + 1
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)


def test_exports_of_a_single_leaf() -> None:
    """The smallest tree has every form too."""
    model = OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], [3, 3])
    assert to_sql(model) == "3"
    assert "return 3" in to_python(model)
    assert to_text(model).startswith("class 3")
    assert "n0" in to_dot(model)
    assert "proven optimal" in to_html(model)


def test_rules_need_an_encoder_that_can_be_written() -> None:
    """Others are named in the error; text still works."""
    from sklearn.preprocessing import OneHotEncoder

    X = pd.DataFrame({"a": ["p", "q"] * 10})
    model = OptimalTreeClassifier(1, encoder=OneHotEncoder()).fit(X, X["a"])
    assert "a_p" in to_text(model) or "a_q" in to_text(model)
    for write in (to_python, to_sql, to_json):
        with pytest.raises(InvalidInputError, match="OneHotEncoder"):
            write(model)
    with pytest.raises(InvalidInputError, match="function_name"):
        to_python(OptimalTreeClassifier(max_depth=0).fit([[1.0]], [0]), function_name="import os; x")


# ---------------------------------------------------------------- persistence


def test_json_round_trips_exactly(
    mixed: tuple[pd.DataFrame, np.ndarray],
    fitted: OptimalTreeClassifier,
    awkward: tuple[pd.DataFrame, OptimalTreeClassifier],
    tmp_path: Path,
) -> None:
    """Predictions, probabilities, parameters, results, and the text itself; from text and from a file."""
    for X, model in ((mixed[0], fitted), awkward):
        text = model.to_json(tmp_path / "model.json")
        for copy in (OptimalTreeClassifier.from_json(text), OptimalTreeClassifier.from_json(tmp_path / "model.json")):
            np.testing.assert_array_equal(copy.predict(X), model.predict(X))
            np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(copy.decision_path(X).toarray(), model.decision_path(X).toarray())
            np.testing.assert_array_equal(copy.feature_importances_, model.feature_importances_)
            assert (copy.objective_, copy.bound_, copy.status_) == (model.objective_, model.bound_, model.status_)
            assert str(copy.get_params()) == str(model.get_params())
            assert copy.to_json() == text
            assert copy.to_text() == model.to_text()


@pytest.mark.parametrize("labels", [["a", "b"], [True, False], [3, -1], [1.0, 2.0]])
def test_json_keeps_the_type_of_the_labels(labels: list[Any]) -> None:
    """Strings, booleans, integers, floats."""
    X = np.arange(20.0)[:, None]
    y = np.array(labels * 10)
    model = OptimalTreeClassifier(max_depth=1, config=Config(), class_weight={y[0]: 2.0, y[1]: 1.0}).fit(X, y)
    copy = OptimalTreeClassifier.from_json(model.to_json())
    assert copy.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.class_weight == model.class_weight
    assert copy.config == Config()


def test_the_cross_validated_tree_is_stored_as_a_plain_one(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    """With the penalty that was chosen."""
    X, y = mixed
    model = OptimalTreeClassifierCV(max_depth=2, leaf_penalties=[0.05, 0.01], cv=2).fit(X, y)
    copy = OptimalTreeClassifier.from_json(model.to_json())
    assert copy.leaf_penalty == model.leaf_penalty_
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def changed(text: str, *path: Any, to: Any) -> str:
    """The document with one entry replaced."""
    document = json.loads(text)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), SCHEMA_VERSION + 1, f"schema {SCHEMA_VERSION + 1}.*upgrade"),
        (("schema",), "1", "schema must be a whole number"),
        (("format",), "something", "is no accel_oct"),
        (("tree", "feature", 0), 10_000, "asks for feature 10000"),
        (("tree", "feature", 0), -7, "below -1"),
        (("tree", "feature", 0), 1.5, "whole numbers"),
        (("tree", "feature", 0), 10**30, "whole numbers"),
        (("tree", "feature"), [0, 1], "entries|length"),
        (("tree", "label", -1), 99, "node|class"),
        (("nodes", "samples"), [1], "must describe"),
        (("nodes", "samples", 0), -1, "negative"),
        (("nodes", "class_weights", 0), [1.0], "equal length"),
        (("classes", "values"), ["low", "high"], "increasing"),
        (("classes", "values"), [1, 2], "type str"),
        (("classes", "type"), "object", "classes.type"),
        (("columns", "kinds", 0), "pickle", "kinds"),
        (("columns", "names"), ["a"], "one string per column"),
        (("encoder", "name"), "os.system", "unknown encoder"),
        (("encoder", "parameters"), {"shell": True}, "no parameter 'shell'"),
        (("encoder", "conditions", 0, "column"), 999, "column 999"),
        (("encoder", "conditions", 0, "test"), "exec", "test must be"),
        (("encoder", "conditions", 0, "missing"), 1, "missing must be"),
        (("encoder", "conditions"), {}, "list"),
        (("encoder", "inexact"), [10_000], "inexact"),
        (("encoder", "oversized"), [10_000], "oversized"),
        (("parameters",), [], "object"),
        (("parameters", "class_weight"), "heavy", "class_weight"),
        (("parameters", "config"), {"warm": 1}, "no key 'warm'"),
        (("result", "status"), "certain", "status"),
        (("result", "objective"), "1", "number"),
        (("result", "history"), [[1, 2]], "three numbers"),
    ],
)
def test_tampered_json_is_refused(
    fitted: OptimalTreeClassifier, path: tuple[Any, ...], value: Any, message: str
) -> None:
    """With an error that says what is wrong; newer schemas and wrong node indices among them."""
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier.from_json(changed(fitted.to_json(), *path, to=value))


def test_indices_one_too_large_are_refused(fitted: OptimalTreeClassifier) -> None:
    """The first feature and the first class that are not there, and a class that is there twice."""
    text = fitted.to_json()
    document = json.loads(text)
    features, labels = document["tree"]["feature"], document["tree"]["label"]
    leaf = next(node for node, label in enumerate(labels) if label >= 0)
    n_features, classes = len(document["encoder"]["conditions"]), document["classes"]["values"]
    for path, value, message in (
        (("tree", "feature", features.index(max(features))), n_features, f"asks for feature {n_features}"),
        (("tree", "label", leaf), len(classes), f"names class {len(classes)}"),
        (("classes", "values"), [classes[0]] * len(classes), "distinct"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            OptimalTreeClassifier.from_json(changed(text, *path, to=value))


def test_damaged_files_are_refused(fitted: OptimalTreeClassifier, tmp_path: Path) -> None:
    """Cut off anywhere, not JSON, not text, not there, without an entry, nested without end, NaN."""
    text = fitted.to_json()
    for cut in (1, len(text) // 3, len(text) - 2):
        with pytest.raises(InvalidInputError, match="cut off"):
            OptimalTreeClassifier.from_json(text[:cut])
    for key in json.loads(text):
        document = json.loads(text)
        del document[key]
        if key != "library":
            with pytest.raises(InvalidInputError, match=key):
                OptimalTreeClassifier.from_json(json.dumps(document))
    for broken, message in (("[" * 200_000, "deep|cut off"), ("[]", "object"), ('{"format": NaN}', "NaN")):
        with pytest.raises(InvalidInputError, match=message):
            OptimalTreeClassifier.from_json(broken)
    binary = tmp_path / "model.pkl"
    binary.write_bytes(b"\x80\x04\x95\xff\xfe")
    with pytest.raises(InvalidInputError, match="not a text file"):
        OptimalTreeClassifier.from_json(binary)
    with pytest.raises(InvalidInputError, match="cannot read"):
        OptimalTreeClassifier.from_json(tmp_path / "absent.json")


def test_a_huge_file_is_refused_unread(fitted: OptimalTreeClassifier, tmp_path: Path) -> None:
    """By its size alone: a sparse file of 10 GB costs nothing."""
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InvalidInputError, match="bytes, more than"):
        OptimalTreeClassifier.from_json(huge)
    with pytest.raises(InvalidInputError, match="bytes, more than"):
        OptimalTreeClassifier.from_json(fitted.to_json(), max_bytes=100)
