"""What stands in a report: figures against an independent computation, names escaped, rows left out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.estimator_support import REPOSITORY, mixed_frame
from helpers.report_support import Outline
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix, precision_score, recall_score
from sklearn.preprocessing import KBinsDiscretizer

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Recall, StatisticalParity
from accel_oct.encoding.tables import table_fingerprint
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import CostMatrix
from accel_oct.report import html_report, write_report
from accel_oct.report.markup import decimals, element, percent, script_data
from accel_oct.report.performance import confusion
from accel_oct.report.proof import convergence_picture
from accel_oct.solving.result import HistoryRow


@pytest.fixture(scope="module")
def fitted() -> tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]:
    X, y = mixed_frame()
    X = X[["age", "income", "smoker", "region", "plan", "grade"]]
    return OptimalTreeClassifier(3, 0.005).fit(X, y), X, y


# ---------------------------------------------------------------- markup


def test_text_is_escaped_and_markup_is_not() -> None:
    """In content and in attributes; what HTML cannot hold becomes a replacement character."""
    made = element(
        "p", "<b>&\"'", element("br"), None, [1, "\x00"], title="\"'<>&", hidden=True, class_=None, lang=False
    )
    assert made == '<p title="&quot;&#x27;&lt;&gt;&amp;" hidden>&lt;b&gt;&amp;"\'<br>1\ufffd</p>'
    assert element("g", aria_label="\ud800") == '<g aria-label="\ufffd"></g>'


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "\u2028\u2029", "&lt;", "]]>", "é"]
)
def test_data_for_the_script_cannot_end_it(text: str) -> None:
    """JSON that reads back as it was, without a character that HTML looks at."""
    inside = re.fullmatch(
        r'<script type="application/json" id="data">(.*)</script>', script_data("data", {"name": text})
    )
    assert inside and not re.search("[<>&\u2028\u2029]", inside[1])
    assert json.loads(inside[1]) == {"name": text}


def test_no_share_is_rounded_to_all_or_nothing() -> None:
    """0% and 100% are claims."""
    assert [percent(share) for share in (0.0, 1e-6, 0.5, 0.99999, 1.0)] == ["0%", "< 0.1%", "50.0%", "> 99.9%", "100%"]
    assert [decimals(value) for value in (1.0, 0.123456, -0.5)] == ["1.00", "0.123456", "\u22120.50"]


# ---------------------------------------------------------------- figures


def test_the_confusion_matrix_is_that_of_scikit_learn(fitted: Any) -> None:
    """Counts, recall and precision, with weights, and with a class that fitting did not see."""
    model, X, y = fitted
    rng = np.random.default_rng(0)
    truth, weights = rng.choice(["high", "low", "other"], len(y)), rng.integers(1, 5, len(y))
    found = confusion(model, X, truth, weights)
    names, guess = ["high", "low", "other"], model.predict(X)
    np.testing.assert_array_equal(
        found.counts, confusion_matrix(truth, guess, labels=names, sample_weight=weights)[:, :2]
    )
    expected = recall_score(truth, guess, labels=names, average=None, sample_weight=weights, zero_division=0)
    assert found.recall == pytest.approx(expected.tolist())
    expected = precision_score(truth, guess, labels=names[:2], average=None, sample_weight=weights)
    assert found.precision == pytest.approx(expected.tolist())
    assert found.accuracy == pytest.approx(np.average(guess == truth, weights=weights))
    assert found.names == ("high", "low", "other (not in training)") and found.weighted


def test_the_report_says_what_the_model_says(fitted: Any) -> None:
    """Proof, objective, bound, accuracies, settings and the fingerprint are in the text, and markup is well formed."""
    model, X, y = fitted
    text = Outline(html_report(model, X, y, test=(X[:50], y[:50]), title="A title")).text
    for part in (
        "A title",
        "Proven optimal over",
        f"accuracy {decimals(model.score(X, y))} \u2212 {model.get_n_leaves()} \u00d7 0.005",
        decimals(model.bound_),
        f"Training data: {percent(model.score(X, y))} correct of 200 rows",
        f"Test data: {percent(model.score(X[:50], y[:50]))} correct of 50 rows",
        "leaf_penalty",
        table_fingerprint(X, y),
        table_fingerprint(X[:50], y[:50]),
    ):
        assert part in text, part
    assert "not the training data of the tree" not in text


def test_the_same_in_the_same_out(fitted: Any) -> None:
    """The file does not depend on when, where and how often it is written."""
    model, X, y = fitted
    assert html_report(model, X, y, near_optimal=0.002) == html_report(model, X, y, near_optimal=0.002)


def test_other_data_are_noticed(fitted: Any) -> None:
    """Counts in the tree and in the matrices are of different rows then, which is said; weights of 0 are no rows."""
    model, X, y = fitted
    assert "not the training data of the tree" in html_report(model, X[:100], y[:100])
    more, labels = pd.concat([X, X[:5]]), np.append(y, y[:5])
    weights = np.append(np.ones(200), np.zeros(5))
    assert "not the training data of the tree" not in html_report(model, more, labels, sample_weight=weights)


def test_constraints_are_told(fitted: Any) -> None:
    """Limit, value, slack and price of each, as `constraints_` has them; none, no section."""
    _, X, y = fitted
    model = OptimalTreeClassifier(
        2, 0.01, constraints=[StatisticalParity("region", at_most=0.1), Recall("high", at_least=0.5)]
    )
    text = Outline(html_report(model.fit(X, y), X, y)).text
    assert "that satisfies the constraints is better" in html_report(model, X, y)
    for report in model.constraints_:
        assert report.name in text and f"{report.value:.4g}" in text and f"{report.slack:.4g}" in text
    assert "Constraints" not in Outline(html_report(fitted[0], X, y)).text
    stored = OptimalTreeClassifier.from_json(model.to_json())
    told = Outline(html_report(stored, X, y, near_optimal=0.01)).text
    assert model.constraints_[0].name in told and "the constraints are not stored" in told


def test_alternatives_are_those_of_near_optimal(fitted: Any) -> None:
    """Their number, objectives and text; given as a distance or as they are."""
    model, X, y = fitted
    trees = model.near_optimal(X, y, within=0.002, limit=200)
    page = html_report(model, X, y, near_optimal=0.002)
    assert page == html_report(model, X, y, near_optimal=trees)
    text = Outline(page).text
    assert f"{trees.count:,} tree" in text and "the tree of this report" in text
    assert " ".join(trees.model(0).to_text().split("  (")[0].split()) in text
    assert "Other nearly optimal trees" not in html_report(model, X, y)
    other = OptimalTreeClassifier.from_json(model.to_json()).set_params(leaf_penalty=0.1)
    assert "Not listed" in html_report(other, X, y, near_optimal=0.002)


def test_every_kind_of_model_has_a_report(fitted: Any) -> None:
    """Cross-validated, from JSON, with a foreign encoder, a single leaf, weights, classes that are numbers."""
    model, X, y = fitted
    data = load_iris()
    chosen = OptimalTreeClassifierCV(2, [0.1, 0.01], cv=2, encoder=None).fit(data.data > 2, data.target)
    text = Outline(html_report(chosen, data.data > 2, data.target, near_optimal=0.01)).text
    assert "leaf_penalty_ (chosen)" in text and "nearly optimal trees" in text
    stored = OptimalTreeClassifier.from_json(model.to_json())
    assert html_report(stored, X, y).split("<script>")[0] == html_report(model, X, y).split("<script>")[0]
    foreign = OptimalTreeClassifier(2, encoder=KBinsDiscretizer(3, encode="onehot-dense")).fit(data.data, data.target)
    assert "of another library" in Outline(html_report(foreign, data.data, data.target)).text
    leaf = OptimalTreeClassifier(0).fit(X, y)
    assert "every row is low" in Outline(html_report(leaf, X, y)).text
    weighted = OptimalTreeClassifier(2).fit(X, y, sample_weight=np.linspace(1, 2, len(y)))
    assert "weight 300" in Outline(html_report(weighted, X, y, sample_weight=np.linspace(1, 2, len(y)))).text


def test_only_accuracy_is_called_accuracy(fitted: Any) -> None:
    """Other objectives by their names; costs, whose name a stored model does not have, are a score."""
    _, X, y = fitted
    costs = OptimalTreeClassifier(2, 0.01, objective=CostMatrix([[0, 5], [1, 0]])).fit(X, y)
    for model in (costs, OptimalTreeClassifier.from_json(costs.to_json())):
        text = Outline(html_report(model, X, y)).text
        score = decimals(model.objective_ + 0.01 * model.get_n_leaves())
        assert f"= score {score} \u2212" in text and "accuracy" not in text.split("Settings")[0]
    assert "Not listed" in html_report(model, X, y, near_optimal=0.01)
    balanced = OptimalTreeClassifier(2, 0.01, objective="balanced_accuracy").fit(X, y)
    assert "= balanced accuracy " in Outline(html_report(balanced, X, y)).text
    weighted = OptimalTreeClassifier(2, 0.01, class_weight="balanced").fit(X, y)
    assert "= weighted accuracy " in Outline(html_report(weighted, X, y)).text


def test_alternatives_under_constraints_are_told_apart(fitted: Any) -> None:
    """The optimum is that of the trees that satisfy the constraints, and those are counted."""
    _, X, y = fitted
    X = X[["smoker", "region", "plan", "grade"]]
    model = OptimalTreeClassifier(2, 0.01, max_leaf_nodes=2).fit(X, y)
    trees = model.near_optimal(X, y, within=0.2, limit=200)
    text = Outline(html_report(model, X, y, near_optimal=trees)).text
    assert f"The best objective of all trees that satisfy the constraints is {decimals(trees.optimum)}" in text
    assert f"{trees.at_least:,} trees satisfy them" in text and all(tree.n_leaves <= 2 for tree in trees)
    stored = OptimalTreeClassifier.from_json(model.to_json())
    assert "that satisfy the constraints" in html_report(stored, X, y, near_optimal=0.2)


# ---------------------------------------------------------------- safety


def test_nothing_is_loaded_and_the_policy_forbids_it(fitted: Any) -> None:
    """No address in any attribute, no attribute with code or style, and a policy with the hashes of both parts."""
    page = html_report(*fitted)
    found = Outline(page)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert "src" not in attributes and re.match("#|data:,$", attributes.get("href") or "#"), tag
    (policy,) = (a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert (
        policy and policy.startswith("default-src 'none'") and policy.count("sha256-") == 2 and "unsafe" not in policy
    )
    script = (REPOSITORY / "accel_oct/report/report.js").read_text(encoding="utf-8")
    assert "</script" not in script and "innerHTML" not in script and "eval(" not in script


def test_no_cell_of_the_table_is_in_the_file() -> None:
    """Values of columns that the tree does not ask for, categories included, and numbers that are no thresholds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(60).round(9), "code": [f"secret-{k}" for k in range(60)], "z": rng.random(60)})
    y = X["x"].to_numpy() >= 0.5
    page = html_report(OptimalTreeClassifier(2, encoder="auto", exclude=["code"]).fit(X, y), X, y)
    assert "secret-" not in page and "code" in page
    cells = {repr(value) for column in ("x", "z") for value in X[column].tolist()}
    assert not [cell for cell in cells if cell in page]


def test_a_report_that_fails_leaves_the_old_one(fitted: Any, tmp_path: Path) -> None:
    """The file is replaced as a whole, or not at all; the path comes back."""
    model, X, y = fitted
    target = tmp_path / "report.html"
    target.write_text("old")
    with pytest.raises(InvalidInputError, match="near_optimal"):
        write_report(model, target, X, y, near_optimal=-1)
    assert target.read_text() == "old"
    assert model.report(target, X, y) == target and write_report(model, str(target), X, y) == target
    assert target.read_text(encoding="utf-8") == html_report(model, X, y)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"test": 3}, "test must be a pair"),
        ({"test": (1, 2, 3)}, "test must be a pair"),
        ({"near_optimal": True}, "near_optimal must be"),
        ({"near_optimal": float("nan")}, "near_optimal must be"),
        ({"near_optimal": "0.1"}, "near_optimal must be"),
        ({"title": 3}, "title must be"),
        ({"sample_weight": [1]}, "sample_weight"),
    ],
)
def test_arguments_are_checked(fitted: Any, wrong: dict[str, Any], words: str) -> None:
    """One sentence that names the argument."""
    with pytest.raises(InvalidInputError, match=words):
        html_report(*fitted, **wrong)


def test_labels_must_fit_the_rows(fitted: Any) -> None:
    """Those of the training data and of the test data, each by its name."""
    model, X, y = fitted
    with pytest.raises(InvalidInputError, match="y: "):
        html_report(model, X, y[:7])
    with pytest.raises(InvalidInputError, match="the y of test: "):
        html_report(model, X, y, test=(X, y[:7]))


# ---------------------------------------------------------------- fingerprints


def test_equal_tables_have_equal_fingerprints() -> None:
    """Whichever library holds them, whether whole numbers are floats, and in whichever unit times are kept."""
    days = pd.to_datetime(["2024-01-01", "2024-02-01", None])
    frame = pd.DataFrame({"n": [1, 2, 3], "f": [0.5, np.nan, -0.0], "t": ["a", None, "b"], "d": days})
    given = table_fingerprint(frame, ["x", "y", "x"])
    assert given == table_fingerprint(frame.assign(n=[1.0, 2.0, 3.0], f=[0.5, np.nan, 0.0]), np.array(["x", "y", "x"]))
    assert given == table_fingerprint(frame.assign(d=days.as_unit("s")), ["x", "y", "x"])
    same = pl.DataFrame({"n": [1, 2, 3], "f": [0.5, float("nan"), 0.0], "t": ["a", None, "b"], "d": days.to_numpy()})
    assert given == table_fingerprint(same, ["x", "y", "x"])
    assert re.fullmatch("[0-9a-f]{64}", given)


def test_different_tables_have_different_fingerprints() -> None:
    """Another cell, type of missing, name, order, class or weight; and texts cannot run into each other."""
    frame = pd.DataFrame({"n": [1, 2], "t": ["ab", "c"], "big": [2**60, 1]})
    tables = [
        (frame,),
        (frame, [0, 1]),
        (frame, [1, 0]),
        (frame, [0, 1], [1, 1]),
        (frame, [0, 1], [1, 2]),
        (frame[::-1],),
        (frame[["t", "n", "big"]],),
        (frame.rename(columns={"n": "m"}),),
        (frame.assign(t=["a", "bc"]),),
        (frame.assign(t=["ab", None]),),
        (frame.assign(t=["ab", ""]),),
        (frame.assign(big=[2**60 + 1, 1]),),
        (frame.assign(n=[1, np.nan]),),
    ]
    assert len({table_fingerprint(*table) for table in tables}) == len(tables)


def test_the_fingerprint_is_the_documented_one() -> None:
    """Computed here from the description, so that others can do so too, and later versions do not change it."""
    import hashlib
    import struct

    whole = struct.Struct("<q").pack
    parts = [b"accel_oct table 1", whole(2), whole(2)]
    parts += [whole(1), b"n", b"n", struct.pack("<2d", 1.0, float("nan"))]
    parts += [whole(1), b"t", b"t", whole(2), whole(-1), "é".encode()]
    parts += [whole(1), b"y", b"t", whole(1), whole(1), b"ab"]
    expected = hashlib.sha256(b"".join(parts)).hexdigest()
    assert table_fingerprint(pd.DataFrame({"n": [1, None], "t": ["é", None]}), ["a", "b"]) == expected


# ---------------------------------------------------------------- small things


def test_a_curve_needs_two_moments() -> None:
    """And is drawn also where the first moments know no tree, and where nothing changes."""
    inf = float("inf")
    assert convergence_picture([], 1.0) is None
    assert convergence_picture([HistoryRow(0.1, 0.5, 0.5)], 0.1) is None
    assert convergence_picture([HistoryRow(0.0, -inf, inf), HistoryRow(0.1, -inf, 1.0)], 0.2) is None
    late = [HistoryRow(0.0, -inf, 1.0), HistoryRow(0.5, 0.7, 1.0), HistoryRow(1.0, 0.8, 0.8)]
    for rows in (late, [HistoryRow(0.0, 0.5, 0.5)] * 2, [HistoryRow(k / 9, k / 1e4, 1.0) for k in range(2000)]):
        drawn = convergence_picture(rows, 1.0)
        assert drawn is not None and "nan" not in drawn and len(drawn) < 50_000


@pytest.mark.slow  # a wheel has the kernels of all CPU levels, which `make test-slow` compiles
def test_the_wheel_has_style_and_script(tmp_path: Path) -> None:
    """A report of an installed library needs both files."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"accel_oct/report/report.css", "accel_oct/report/report.js"} <= set(names)
