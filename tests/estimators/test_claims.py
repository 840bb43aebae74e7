"""A claim names what it covers: the splits, the depth, the class of a constraint; a limit of time is no proof."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.report_support import Outline
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, plotting
from accel_oct.cli import main
from accel_oct.constraints import EqualOpportunity, PositiveBudget, Precision, Recall, Specificity
from accel_oct.encoding import QuantileThresholdEncoder
from accel_oct.encoding.auto import AutoEncoder
from accel_oct.errors import NoTreeError, SingleLeafWarning
from accel_oct.estimators import optimal, refining
from accel_oct.export import to_dot, to_html, to_python, to_sql, to_text
from accel_oct.export.view import AGAINST_MAJORITY
from accel_oct.objectives import CostMatrix
from accel_oct.report import html_report

ROOT = Path(__file__).parents[2]
CANCER = load_breast_cancer(as_frame=True)
LABELS = CANCER.target_names[CANCER.target]


def both(recall: float, specificity: float) -> list[Any]:
    return [Recall("malignant", at_least=recall), Specificity("malignant", at_least=specificity)]


def stump_rates() -> np.ndarray:
    """Recall and specificity of every stump of the table, sorted by column; counted without the library."""
    malignant = LABELS == "malignant"
    found = []
    for column in CANCER.data.to_numpy().T:
        for cut in np.unique(column)[1:]:
            for positive in (column >= cut, column < cut):
                found.append((positive[malignant].mean(), (~positive)[~malignant].mean()))
    return np.array(found)


# ---------------------------------------------------------------- "no tree" of chosen splits


def test_a_stump_between_the_chosen_splits_is_found() -> None:
    """`worst perimeter >= 105.3` satisfies both limits, and no split that the encoder chooses first does."""
    positive = CANCER.data["worst perimeter"] >= 105.3
    assert positive[LABELS == "malignant"].mean() >= 0.929 and (~positive)[LABELS == "benign"].mean() >= 0.907
    model = OptimalTreeClassifier(1, 0.0, constraints=both(0.929, 0.907)).fit(CANCER.data, LABELS)
    predicted = model.predict(CANCER.data) == "malignant"
    assert predicted[LABELS == "malignant"].mean() >= 0.929 and (~predicted)[LABELS == "benign"].mean() >= 0.907
    assert model.proof_ == "proven optimal over all splits of the table, depth at most 1"
    rates = stump_rates()
    kept = rates[(rates[:, 0] >= 0.929) & (rates[:, 1] >= 0.907)]
    sizes = np.array([(LABELS == "malignant").mean(), (LABELS == "benign").mean()])
    assert model.objective_ == pytest.approx((kept @ sizes).max())
    assert model.exact_ and model.encoder_.exact_ and len(model.encoder_.conditions_) > 10_000


def test_limits_at_depth_one_are_decided_over_the_whole_table() -> None:
    """Pairs of limits on, and just beyond, what a stump attains: found, or refused, as counting all stumps says."""
    columns = ["worst perimeter", "mean texture", "worst area"]  # few, so that many pairs can be tried
    table = CANCER.data[columns]
    malignant, rng = LABELS == "malignant", np.random.default_rng(0)
    rates = []
    for column in table.to_numpy().T:
        for cut in np.unique(column)[1:]:
            positive = column >= cut
            rates.append((positive[malignant].mean(), (~positive)[~malignant].mean()))
    attained = np.array(rates)
    useful = attained[(attained > 0.6).all(axis=1)]
    for recall, specificity in useful[rng.choice(len(useful), 3, replace=False)]:
        for beyond in (0.0, 1e-3):
            limits = np.array([recall, specificity + beyond])
            exists = bool(((attained >= limits) | (attained > limits - 1e-9)).all(axis=1).any())
            model = OptimalTreeClassifier(1, 0.0, constraints=both(*limits))
            try:
                fitted = model.fit(table, LABELS)
            except NoTreeError as error:
                assert not exists and "over all splits of the table" in str(error)
            else:
                assert exists and fitted.status_ == "optimal"


def test_no_tree_is_said_of_the_splits_and_the_depth_that_were_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proof covers chosen splits the message says how many, and that others may do."""
    constraints = both(0.97, 0.97)
    with pytest.raises(NoTreeError, match="no tree of depth at most 2 over all splits of the table satisfies"):
        OptimalTreeClassifier(2, 0.0, constraints=constraints).fit(CANCER.data, LABELS)
    monkeypatch.setattr(optimal, "table_bound", lambda *given: None)
    with pytest.raises(NoTreeError) as caught:
        OptimalTreeClassifier(2, 0.0, constraints=constraints).fit(CANCER.data, LABELS)
    words = (
        r"no tree of depth at most 2 over (\d+) chosen splits of the table satisfies `Recall of class malignant at "
        r"least 0.97` and `Specificity of class malignant at least 0.97` together; a tree over other splits may"
    )
    said = re.fullmatch(words, str(caught.value))
    assert said and int(said[1]) > 250 and caught.value.status == "infeasible"
    with pytest.raises(NoTreeError, match="over 3 binary features satisfies"):
        _ = accel_oct.solve(
            np.eye(3), [0, 1, 1], max_depth=0, leaf_penalty=0.0, constraints=[Recall(at_least=1), Precision(at_least=1)]
        ).tree


def test_finer_splits_are_tried_at_depth_three() -> None:
    """A tree satisfies both limits over some two hundred splits, and none over the first hundred."""
    first = OptimalTreeClassifier(3, 0.0, encoder=AutoEncoder(3, max_features=100), constraints=both(0.98, 0.98))
    with pytest.raises(NoTreeError, match="chosen splits"):
        first.fit(CANCER.data, LABELS)
    model = OptimalTreeClassifier(3, 0.0, constraints=both(0.98, 0.98)).fit(CANCER.data, LABELS)
    predicted = model.predict(CANCER.data) == "malignant"
    assert predicted[LABELS == "malignant"].mean() >= 0.98 and (~predicted)[LABELS == "benign"].mean() >= 0.98
    assert not model.exact_ and "chosen splits of the table, depth at most 3" in model.proof_
    assert model.proof_ in str(model.constraints_) and model.proof_ in model.constraints_._repr_html_()


def test_a_tree_found_in_our_own_time_is_proven_over_its_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rounds end with a tree and no proof, the optimum is proven over its splits and the first choice."""
    solve = OptimalTreeClassifier._solve
    seen: list[Any] = []

    def stopped(self: Any, data: Any, time_limit: Any, progress: Any = None) -> Any:
        result = solve(self, data, time_limit, progress)
        seen.append(result.status)
        if len(seen) == 2:
            object.__setattr__(result, "status", "time_limit")
        return result

    monkeypatch.setattr(OptimalTreeClassifier, "_solve", stopped)
    model = OptimalTreeClassifier(3, 0.0, constraints=both(0.98, 0.98)).fit(CANCER.data, LABELS)
    assert seen == ["infeasible", "optimal", "optimal"] and model.status_ == "optimal" and not model.exact_
    assert len(model.encoder_.conditions_) < 150
    predicted = model.predict(CANCER.data) == "malignant"
    assert predicted[LABELS == "malignant"].mean() >= 0.98 and (~predicted)[LABELS == "benign"].mean() >= 0.98


def test_stumps_that_were_not_all_checked_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time for more, the claim stays that of the chosen splits."""
    monkeypatch.setattr(refining, "SECONDS", 0.0)
    with pytest.raises(
        NoTreeError, match=r"over \d+ chosen splits of the table satisfies .* a tree over other splits may"
    ):
        OptimalTreeClassifier(1, 0.0, constraints=both(0.929, 0.907)).fit(CANCER.data, LABELS)


def test_no_tree_at_depth_two_is_a_proof_over_all_splits() -> None:
    with pytest.raises(NoTreeError, match="over all splits of the table"):
        OptimalTreeClassifier(2, 0.0, constraints=both(0.99, 0.99)).fit(CANCER.data, LABELS)


def test_a_time_limit_is_not_a_proof() -> None:
    """The message says that the search ended, and not that there is no tree."""
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 8)), rng.integers(0, 2, 300)
    limits = [Recall(at_least=0.9), Specificity(1, at_least=0.9)]
    with pytest.raises(NoTreeError) as caught:
        OptimalTreeClassifier(3, 0.0, constraints=limits, time_limit=1e-3).fit(X, y)
    assert caught.value.status == "time_limit"
    assert "no tree was found" in str(caught.value) and "there is no tree" not in str(caught.value)
    with pytest.raises(NoTreeError) as caught:
        OptimalTreeClassifierCV(3, [0.0], cv=2, constraints=limits, time_limit=1e-3).fit(X, y)
    assert caught.value.status == "time_limit" and "was found" in str(caught.value)


# ---------------------------------------------------------------- what proofs cover


def test_categories_are_split_one_against_the_others_and_the_claim_says_so() -> None:
    """y is `dept in {a, b}`: a split of two categories against two is not searched, so not 'all splits'."""
    table = pd.DataFrame({"dept": list("abcd") * 10})
    y = np.isin(table["dept"], ["a", "b"])
    model = OptimalTreeClassifier(1, 0.0).fit(table, y)
    assert model.objective_ == 0.75 and model.exact_
    words = "proven optimal over every threshold of the table and each category against the others, depth at most 1"
    assert model.proof_ == words
    assert OptimalTreeClassifier.from_json(model.to_json()).proof_ == words
    text = Outline(html_report(model, table, y)).text
    assert "all splits" not in text and "one category against all others" in text
    three = table[table["dept"] != "d"]
    assert "all splits of the table" in OptimalTreeClassifier(1, 0.0).fit(three, three["dept"] == "a").proof_


def test_the_report_does_not_contradict_itself() -> None:
    """Over chosen splits: a tree that splits elsewhere could be better, and the bound holds over these splits."""
    model = OptimalTreeClassifier(2, 0.01, encoder=QuantileThresholdEncoder(3)).fit(CANCER.data, LABELS)
    assert model.table_bound_ is not None and model.table_bound_ > model.bound_ and not model.exact_
    text = " ".join(Outline(html_report(model, CANCER.data, LABELS)).text.split())
    assert (
        f"could be better by {model.table_bound_ - model.objective_:.4g} at most" in text
        and "no tree of depth at most 2 over these splits is better" in text
    )
    assert "no tree of that depth is better" not in text and "no tree is better" not in text


def test_constraints_name_their_class() -> None:
    """Two constraints of one kind differ in name: of a named class, or of the one that is taken by default."""
    y = ["no", "yes", "yes", "no"]
    X = np.array([[0], [1], [1], [1]])
    listed = [Recall("no", at_least=0.1), Recall(at_least=0.1), PositiveBudget(0.9)]
    group = EqualOpportunity(np.array(["f", "m", "f", "m"]), at_most=1.0)
    model = OptimalTreeClassifier(1, 0.0, constraints=[*listed, group]).fit(X, y)
    assert [report.name for report in model.constraints_] == [
        "Recall of class no at least 0.1",
        "Recall of class yes at least 0.1",
        "PositiveBudget of class yes at most 0.9",
        "EqualOpportunity of class yes at most 1",
    ]


# ---------------------------------------------------------------- examples of fairness

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def test_examples_at_a_shell_exclude_the_column_they_protect() -> None:
    """A command that limits a difference between groups of a column does not split on that column."""
    seen = 0
    for page in PAGES:
        for command in re.findall(r"^(?:\$ |    )(accel-oct .*_parity\(.*)$", page.read_text("utf-8"), re.MULTILINE):
            (column,) = re.findall(r"_parity\((\w+)", command)
            assert f"--exclude {column}" in command, f"{page.name}: {command}"
            seen += 1
    assert seen >= 3


def test_the_fair_tree_of_the_readme_does_not_split_on_sex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data and the command of README.md: without the exclusion the tree looks at sex."""
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = re.findall(r"^rng = .*?^paid = .*?$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"np": np, "pd": pd}
    exec(code, names)
    names["loans"].assign(paid=names["paid"]).to_csv(tmp_path / "loans.csv", index=False)
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^    accel-oct (fit loans.csv .*)$", text, re.MULTILINE)
    assert main(shlex.split(command)) == 0
    model = OptimalTreeClassifier.from_json(tmp_path / "model.json")
    assert model.get_n_leaves() > 1 and "sex" not in model.to_text()
    assert main(shlex.split(command.replace(" --exclude sex", ""))) == 0
    assert "sex" in OptimalTreeClassifier.from_json(tmp_path / "model.json").to_text()


# ---------------------------------------------------------------- leaves against their majority

#: 1 of 10 rows with x = 0 and 3 of 10 with x = 1 are positive: no leaf has a positive majority.
RARE_X = pd.DataFrame({"x": [0] * 10 + [1] * 10})
RARE_Y = np.array(["yes"] + ["no"] * 9 + ["yes"] * 3 + ["no"] * 7)


@pytest.mark.parametrize(
    "asked",
    [
        {"constraints": [Recall("yes", at_least=0.7)]},
        {"class_weight": "balanced"},
        {"class_weight": {"yes": 4.0, "no": 1.0}},
        {"objective": CostMatrix([[0, 1], [4, 0]])},
    ],
    ids=["constraint", "balanced", "class weights", "costs"],
)
def test_leaves_that_predict_against_their_majority_are_marked(asked: dict[str, Any]) -> None:
    """In text, HTML, Graphviz, Python, SQL, report and pictures, with a line that explains the mark; after JSON too."""
    fitted = OptimalTreeClassifier(1, 0.001, **asked).fit(RARE_X, RARE_Y)
    assert sorted(fitted.predict(pd.DataFrame({"x": [0, 1]}))) == ["no", "yes"]
    for model in (fitted, OptimalTreeClassifier.from_json(fitted.to_json())):
        lines = to_text(model).splitlines()
        assert [line.split("(")[0].strip() for line in lines if "class " in line][:2] == ["class no", "class yes *"]
        assert lines[-1] == f"* {AGAINST_MAJORITY}"
        assert to_html(model).count("yes *") == 1 and AGAINST_MAJORITY in to_html(model)
        assert 'label="yes *' in to_dot(model) and AGAINST_MAJORITY in to_dot(model)
        assert f"return 'yes'  # {AGAINST_MAJORITY}" in to_python(model)
        assert f"'yes' /* {AGAINST_MAJORITY} */" in to_sql(model)
    text = Outline(html_report(fitted, RARE_X, RARE_Y)).text
    assert "yes *" in text and text.count(AGAINST_MAJORITY) >= 1


def test_pictures_mark_leaves_against_their_majority() -> None:
    """The asterisk stands in the leaf, and the note inside the figure."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the extra accel-oct[plot] is not installed")
    model = OptimalTreeClassifier(1, 0.001, class_weight="balanced").fit(RARE_X, RARE_Y)
    plain = OptimalTreeClassifier(1, 0.001).fit(RARE_X, RARE_X["x"])
    ax = plotting.plot_tree(model)
    ax.figure.canvas.draw()
    texts = {text.get_text(): text for text in ax.texts}
    assert "yes *" in texts and f"* {AGAINST_MAJORITY}" in texts
    drawn = texts[f"* {AGAINST_MAJORITY}"].get_window_extent()
    assert drawn.y0 >= -1 and drawn.y1 <= ax.get_window_extent().y0 + 1
    assert not any("*" in text.get_text() for text in plotting.plot_tree(plain).texts)
    figure = plotting.plot_trees([plain, model])
    assert figure.get_supxlabel() == f"* {AGAINST_MAJORITY}"
    pyplot.close("all")


def test_leaves_with_their_majority_are_not_marked() -> None:
    """Ties and weighted samples included."""
    model = OptimalTreeClassifier(1, 0.0).fit([[0], [0], [1], [1]], [0, 1, 1, 1])
    assert "*" not in model.to_text() and not model.tree_.against_majority.any()
    heavy = OptimalTreeClassifier(1, 0.001).fit(RARE_X, RARE_Y, sample_weight=np.where(RARE_Y == "yes", 4, 1))
    assert "class yes" in heavy.to_text() and "*" not in heavy.to_text()


# ---------------------------------------------------------------- near-optimal trees under constraints, and stopped


def test_near_optimal_trees_are_measured_from_the_constrained_optimum() -> None:
    """The trees that keep a limit and are close to the best of them: as listing all trees and looking at each says."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 4))
    y = (X[:, 0] | X[:, 1]) ^ (rng.random(60) < 0.15)
    limit = PositiveBudget(0.4, positive=True)
    settings: dict[str, Any] = {"max_depth": 2, "leaf_penalty": 0.01}
    model = OptimalTreeClassifier(2, 0.01, encoder=None, constraints=[limit])
    every = accel_oct.near_optimal(X, y, within=np.inf, limit=None, **settings)
    keep = [entry for entry in every if entry.tree.predict(X).mean() <= 0.4 + 1e-9]
    best = max(entry.objective for entry in keep)
    assert best < every.optimum - 0.05
    wanted = [entry.tree for entry in keep if entry.objective >= best - 0.03 - 1e-9]
    found = model.near_optimal(X, y, within=0.03)
    assert found.optimum == pytest.approx(best) == model.fit(X, y).objective_
    assert {entry.tree for entry in found} == set(wanted) and found.count == len(wanted) and found.complete
    assert found.model(0).bound_ == found.optimum and found.threshold == pytest.approx(best - 0.03)
    few = model.near_optimal(X, y, within=0.03, limit=1)
    assert len(few) == 1 and few.count == len(wanted) and not few.complete
    with pytest.raises(NoTreeError, match="no tree of depth at most 2 over all splits"):
        model.set_params(constraints=[limit, Recall(True, at_least=1.0)]).near_optimal(X, y, within=0.03)


def test_near_optimal_trees_that_were_stopped_say_so() -> None:
    """No number of trees within something of None."""
    model = OptimalTreeClassifier(3, 0.001, time_limit=1e-3)
    for constraints in (None, [Recall("malignant", at_least=0.9)]):
        model.set_params(constraints=constraints)
        with pytest.warns(ConvergenceWarning, match="before the best objective was known"):
            trees = model.near_optimal(CANCER.data, LABELS, within=0.01)
        assert trees.status == "time_limit" and trees.optimum is None and trees.count is None and not len(trees)
        assert "None" not in repr(trees) and "time limit" in repr(trees)


# ---------------------------------------------------------------- a single leaf


def test_a_default_fit_that_gives_one_leaf_warns() -> None:
    """Imbalance: the warning names what would give a tree that splits, and what it names does."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    y = np.where((X[:, 0] > 0.8) & (rng.random(400) < 0.3), "rare", "usual")
    with pytest.warns(SingleLeafWarning, match=r"predicts 'usual' .*class_weight='balanced' or a leaf_penalty below"):
        model = OptimalTreeClassifier().fit(X, y)
    assert model.get_n_leaves() == 1 and issubclass(SingleLeafWarning, UserWarning)
    with pytest.warns(SingleLeafWarning) as heard:
        OptimalTreeClassifierCV(2, [0.05], cv=2).fit(X, y)
    assert len([each for each in heard if each.category is SingleLeafWarning]) == 1
    with pytest.warns(SingleLeafWarning, match="a leaf_penalty below 1 may give"):
        OptimalTreeClassifier(2, 1.0, class_weight="balanced").fit(X, y)
    with pytest.warns(SingleLeafWarning, match="worth its leaves$"):
        OptimalTreeClassifier().fit(np.ones((400, 3)), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert OptimalTreeClassifier(class_weight="balanced").fit(X, y).get_n_leaves() > 1
        OptimalTreeClassifier(0).fit(X, y)  # a single leaf was asked for
        OptimalTreeClassifier(max_leaf_nodes=1).fit(X, y)
        OptimalTreeClassifier().fit(X, ["one"] * 400)  # nothing to tell apart


def test_the_command_line_shows_the_warning_of_a_single_leaf(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,y\n" + "\n".join(f"{k},{'rare' if k == 7 else 'usual'}" for k in range(200)), encoding="utf-8")
    assert main(["fit", str(table), "-t", "y", "-q"]) == 0
    assert capsys.readouterr().err.count("accel-oct: warning: the best tree is a single leaf") == 1
