"""Leaves, reliability, groups, stability, reasons of a typed row, and the model card, against independent figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.report_support import PHONE, WIDE, Outline, opened, started_browser
from scipy.stats import beta
from sklearn.metrics import log_loss

from accel_oct import OptimalTreeClassifier
from accel_oct.errors import InvalidInputError
from accel_oct.report import html_report, model_card, write_report
from accel_oct.report.markup import percent
from accel_oct.report.scores import group_scores, scores_on

EXPLAINED = """rows => rows.map(row => {
    for (const box of document.querySelectorAll("[data-fixed]")) box.checked = row.fixed.includes(box.dataset.fixed);
    for (const [column, text] of Object.entries(row.values)) {
        const field = document.getElementById("column-" + column);
        if (field) field.value = text;
    }
    document.getElementById("row").requestSubmit();
    const change = document.getElementById("change");
    return [change.dataset.leaf ?? null, [...change.querySelectorAll("li")].map(item => item.textContent)];
})"""


def table(n_rows: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, categories, an order, booleans and times, with missing values."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": pd.Series(rng.integers(18, 70, n_rows)).where(rng.random(n_rows) > 0.1),
            "rate": rng.random(n_rows).round(2),
            "town": pd.Series(rng.choice(["Bonn", "Ulm", "Trier"], n_rows), dtype=object).where(
                rng.random(n_rows) > 0.1
            ),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n_rows), ["low", "mid", "high"], ordered=True),
            "member": rng.random(n_rows) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
        }
    )
    votes = (
        (frame["age"].fillna(30) > 44).astype(int)
        + (frame["rate"] > 0.4).astype(int)
        + (frame["town"] == "Ulm").astype(int)
        + (frame["grade"].cat.codes > 0).astype(int)
        + frame["member"].astype(int)
        + (frame["since"] > "2021-06-01").astype(int)
    )
    return frame, np.where(votes + rng.normal(0, 0.5, n_rows) > 3, "yes <b>", "no")


@pytest.fixture(scope="module")
def fitted() -> tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]:
    frame, y = table()
    return OptimalTreeClassifier(4, 0.0).fit(frame[:110], y[:110]), frame, y


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found


def typed(value: Any, kind: str, categories: list[str]) -> str:
    """A cell as a reader types it."""
    if value is None or value != value:
        return ""
    if kind == "boolean":
        return "true" if value else "false"
    if kind in ("categorical", "ordered"):
        return f"={categories.index(value)}"
    return str(value.date()) if kind == "datetime" else str(value)


@pytest.mark.parametrize(
    ("size", "columns", "kinds"),
    [
        (WIDE, ["age", "rate", "town", "grade"], {"numeric", "categorical", "ordered"}),
        (PHONE, ["since", "member", "age"], {"numeric", "boolean", "datetime"}),
    ],
    ids=["wide", "phone"],
)
def test_the_page_finds_the_same_smallest_change(
    browser: Any, tmp_path: Path, size: dict[str, int], columns: list[str], kinds: set[str]
) -> None:
    """For every row, with and without fixed columns, the leaf and the new values of `explain`."""
    frame, y = table()
    frame = frame[columns]
    model = OptimalTreeClassifier(4, 0.0).fit(frame[:110], y[:110])
    path = write_report(model, tmp_path / "report.html", frame[:110], y[:110])
    encoder = model.encoder_
    listed = {j: list(known) for j, known in encoder.categories_.items()}
    listed |= {j: list(scale.categories) for j, scale in encoder.scales_.items() if scale.kind == "ordered"}
    used = sorted({encoder.conditions_[feature].column for feature in model.tree_.tree.features_used})
    assert {encoder.kinds_[column] for column in used} == kinds
    rows, expected = [], []
    for fixed in ([], used[:1], used[:2]):
        found = model.explain(frame[:60], fixed=fixed)
        for row, explanation in enumerate(found):
            cells = {str(j): typed(frame.iloc[row, j], encoder.kinds_[j], listed.get(j, [])) for j in used}
            rows.append({"values": cells, "fixed": [str(column) for column in fixed]})
            change = explanation.change
            edits = [] if change is None else [f"{edit.column} becomes {edit.new}" for edit in change.edits]
            expected.append([None if change is None else str(change.leaf), edits])
    with opened(browser, path, size) as page:
        assert page.evaluate(EXPLAINED, rows) == expected
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_page_gives_the_same_reasons(
    fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray], browser: Any, tmp_path: Path
) -> None:
    """Answers and effects of `explain`, in percentage points."""
    model, frame, y = fitted
    path = write_report(model, tmp_path / "report.html", frame[:110], y[:110])
    encoder = model.encoder_
    listed = {j: list(known) for j, known in encoder.categories_.items()}
    listed |= {j: list(scale.categories) for j, scale in encoder.scales_.items() if scale.kind == "ordered"}
    used = {encoder.conditions_[feature].column for feature in model.tree_.tree.features_used}
    (explanation,) = model.explain(frame[:1])
    cells = {str(j): typed(frame.iloc[0, j], encoder.kinds_[j], listed.get(j, [])) for j in used}
    with opened(browser, path) as page:
        page.evaluate(EXPLAINED, [{"values": cells, "fixed": []}])
        said = page.locator("#answer").inner_text()
    assert f"Probability {100 * explanation.probability:.1f}%" in said
    for reason in explanation.reasons:
        words = " and ".join(reason.conditions).replace(" >= ", " ≥ ").replace(" != ", " ≠ ")
        assert f"{words} +{100 * reason.effect:.1f}%" in said


def test_leaves_and_scores_in_the_report(fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]) -> None:
    """Counts and intervals are those of the test rows, by scipy; log-loss is scikit-learn's; names are escaped."""
    model, frame, y = fitted
    test = frame[110:], y[110:]
    text = html_report(model, frame[:110], y[:110], test=test)
    said = Outline(text).text
    leaves, shares = model.apply(test[0]), model.predict_proba(test[0])
    for leaf in np.unique(leaves):
        own = test[1][leaves == leaf]
        right = int((own == model.predict(test[0])[leaves == leaf]).sum())
        assert f"{right} of {len(own)} ({percent(right / len(own))})" in said
        low = 0.0 if right == 0 else beta.ppf(0.025, right, len(own) - right + 1)
        high = 1.0 if right == len(own) else beta.ppf(0.975, right + 1, len(own) - right)
        assert f"{percent(float(low))} to {percent(float(high))}" in said
    assert f"log-loss, test data{log_loss(test[1], shares):.4f}" in said.replace("data ", "data")
    brier = ((shares - (test[1][:, None] == model.classes_)) ** 2).sum(axis=1).mean()
    assert f"{brier:.4f}" in said
    assert "yes <b>:" in said  # in titles of points, escaped in the markup
    assert "yes <b>" not in text


def test_scores_with_unknown_classes() -> None:
    """Rows of a class that training did not have count as wrong, and have no part in log-loss and leaf counts."""
    X = pd.DataFrame({"x": np.arange(20)})
    model = OptimalTreeClassifier(1, 0.0).fit(X, X["x"] >= 10)
    found = scores_on(model, X, np.array([*(X["x"][:19] >= 10), 7], dtype=object))
    assert (found.n_rows, found.n_right, int(found.counts.sum())) == (20, 19, 19)
    assert found.log_loss == pytest.approx(-np.log(model.predict_proba(X)[:19].max(axis=1)).mean())


def test_accuracy_by_group(fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]) -> None:
    """For each value of a column, missing ones too: rows, correct ones, exact interval; shown in the report."""
    model, frame, y = fitted
    found = group_scores(model, frame, y, ["town"])
    town = frame["town"].fillna("missing")
    assert {score.value: score.n_rows for score in found} == town.value_counts().to_dict()
    right = model.predict(frame) == y
    for score in found:
        own = right[town == score.value]
        assert score.n_right == own.sum()
        assert score.low == pytest.approx(beta.ppf(0.025, own.sum(), len(own) - own.sum() + 1))
    said = Outline(html_report(model, frame[:110], y[:110], groups=["town", "grade"])).text
    assert "Accuracy by group" in said
    assert "town = missing" in said
    given = {"shift": np.where(np.arange(110) < 50, "day", "night")}
    assert "shift = night" in Outline(html_report(model, frame[:110], y[:110], groups=(given, None))).text


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("town", "groups must be a list of columns"),
        (["towm"], "groups: X has no column 'towm'; did you mean 'town'"),
        (["rate"], "'rate' has .* values, more than"),
        ({"shift": ["day"]}, "'shift' must have one value per row"),
    ],
)
def test_invalid_groups(
    fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray], groups: Any, message: str
) -> None:
    """A sentence that names the argument."""
    model, frame, y = fitted
    with pytest.raises(InvalidInputError, match=message):
        html_report(model, frame[:110], y[:110], groups=groups)


def test_stability_and_importance_are_shown(fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]) -> None:
    """The section is there only if it was asked for; every split and its share is in it."""
    frame, y = fitted[1][:110], fitted[2][:110]
    model = OptimalTreeClassifier(2, 0.02).fit(frame, y)
    assert 'id="stability-section"' not in html_report(model, frame, y)
    stability = model.stability(frame, y, n_samples=5, seed=2)
    said = Outline(html_report(model, frame, y, stability=stability, near_optimal=0.0)).text
    for split in stability.splits:
        assert split.question.replace(" >= ", " ≥ ") in said
        assert f"{percent(split.share)}" in said
    assert "Importance over nearly optimal trees" in said
    with pytest.raises(InvalidInputError, match=r"stability must be the result of model\.stability"):
        html_report(model, frame, y, stability=5)  # type: ignore[arg-type]


def test_the_model_card(fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    """Every section with its figures; names cannot act as Markdown or HTML; the same input gives the same text."""
    model, frame, y = fitted
    arguments: dict[str, Any] = {"test": (frame[110:], y[110:]), "groups": ["town"], "title": "Loans | <i>2024</i>"}
    card = model_card(model, frame[:110], y[:110], **arguments)
    assert card == model_card(model, frame[:110], y[:110], **arguments)
    headings = re.findall(r"^## (.*)$", card, re.MULTILINE)
    assert headings == [
        *("Intended use", "Tree", "Proof", "Data", "Accuracy and probabilities", "Leaves"),
        *("Accuracy by group (test rows)", "Constraints", "Settings"),
    ]
    assert card.startswith("# Loans \\| \\<i\\>2024\\</i\\>")
    outside = re.sub(r"```.*?```", "", card, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<", outside)
    assert f"{model.score(frame[110:], y[110:]):.1%}" in card
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in outside.splitlines() if line.startswith("|")]
    assert min(widths) >= 3
    path = model.model_card(tmp_path / "card.md", frame[:110], y[:110], **arguments)
    assert path.read_text(encoding="utf-8") == card


def test_a_model_card_of_other_rows_says_so(fitted: tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]) -> None:
    """Rows that are not those of training are found by the counts at the nodes."""
    model, frame, y = fitted
    assert "not the one of the tree" in model_card(model, frame[:90], y[:90])
