"""`accel-oct bench verify` finds what is wrong in a copy of real results, and finds nothing in the results."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_support import LIMITED, real_rows, solved, written
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.dynamic_programme import optimal_scores
from oracles.enumeration import best_score_by_leaves
from oracles.instances import instances

import accel_oct_bench.verify.simple_proof as simple_proof
from accel_oct.constraints import bind_all
from accel_oct.data import BinaryDataset
from accel_oct.tree import DecisionTree
from accel_oct_bench.command import main
from accel_oct_bench.data import EncodedData, Registry
from accel_oct_bench.rows import Row, packed_labels, run_key
from accel_oct_bench.verify import checked, compared, proven_again
from accel_oct_bench.verify.limits import Reached, UnknownLimitError, broken
from accel_oct_bench.verify.simple_proof import OutOfTimeError, best_counts, best_objective

Change = Callable[[Row], Row]


def kinds(rows: list[Row]) -> set[str]:
    examined = checked(rows, Registry())
    return {finding.kind for one in examined for finding in one.findings} | {f.kind for f in compared(examined)}


def changed(change: Change, place: int = 0) -> list[Row]:
    rows = list(real_rows())
    rows[place] = change(rows[place])
    return rows


def test_real_results_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is found in what the solver wrote, and every claim up to depth 3 without constraints is proven again."""
    assert {row.status for row in real_rows()} == {"optimal"}
    assert main(["verify", str(written(real_rows(), tmp_path)), "--prove"]) == 0
    said = capsys.readouterr().out
    assert "17 rows, 17 trees recomputed" in said and "no contradiction" in said
    assert "16 of 17 claims of optimality proven again (1 with constraints)" in said


def _worse_tree(row: Row) -> Row:
    """A single leaf instead, with figures that fit it and the claim kept."""
    data = Registry().load(row.instance.data)
    n_nodes = 2 ** (row.instance.max_depth + 1) - 1
    counts = np.unique(data.y, return_counts=True)[1]
    label = int(counts.argmax())
    value = float(counts[label] / counts.sum()) - row.instance.leaf_penalty
    tree = {"feature": [-1] * n_nodes, "label": [label, *[-1] * (n_nodes - 1)]}
    return replace(row, tree=tree, objective=value, bound=value, gap=0.0, n_leaves=1)


def _breaks_recall(row: Row) -> Row:
    """Says class 0 everywhere: no recall of class 1."""
    bad = _worse_tree(row)
    assert bad.tree is not None
    data = Registry().load(row.instance.data)
    label = [0, *bad.tree["label"][1:]]
    value = float(np.mean(data.y == np.unique(data.y)[0])) - row.instance.leaf_penalty
    return replace(bad, tree={**bad.tree, "label": label}, objective=value, bound=value)


@pytest.mark.parametrize(
    ("change", "place", "kind"),
    [
        (lambda row: replace(row, objective=row.objective + 1e-6, bound=row.bound + 1e-6), 0, "objective"),
        (lambda row: replace(row, bound=row.bound - 1e-3, gap=None), 0, "bound"),
        (lambda row: replace(row, bound=row.bound + 1e-3, gap=None), 0, "status"),
        (lambda row: replace(row, gap=0.5), 0, "gap"),
        (lambda row: replace(row, n_leaves=row.n_leaves + 1), 0, "leaves"),
        (lambda row: replace(row, tree=None), 0, "status"),
        (lambda row: replace(row, tree={"feature": [0], "label": [-1]}), 0, "tree"),
        (lambda row: replace(row, tree={"feature": [999, -1, -1], "label": [-1, 0, 1]}), 0, "tree"),
        (lambda row: replace(row, tree={"feature": [-1], "label": [7]}), 0, "tree"),
        (lambda row: replace(row, tree={"feature": [True, -1, -1], "label": [-1, 0, 1]}), 0, "tree"),
        (lambda row: replace(row, tree={"feature": 5, "label": None}), 0, "tree"),
        (lambda row: replace(row, tree=None, predictions="?"), 0, "predictions"),
        (lambda row: replace(row, tree=None, objective=None, bound=None, status="infeasible"), 0, "status"),
        (lambda row: replace(row, instance=replace(row.instance, max_depth=0)), 0, "tree"),
        (lambda row: replace(row, instance=replace(row.instance, fingerprint="0" * 32)), 0, "data"),
        (lambda row: replace(row, instance=replace(row.instance, n_samples=7)), 0, "data"),
        (_worse_tree, 0, "optima"),
        (_worse_tree, 0, "bound"),
        (_breaks_recall, 16, "constraint"),
        (
            lambda row: replace(row, tree=None, objective=None, bound=None, status="infeasible", gap=None),
            0,
            "infeasible",
        ),
        (lambda row: real_rows()[1], 0, "duplicate"),
        (lambda row: replace(row, tree=None, predictions=packed_labels([0, 1])), 0, "predictions"),
    ],
)
def test_each_fault_is_found(change: Change, place: int, kind: str) -> None:
    """One row of real results is changed: a finding of that kind, which names the row."""
    rows = changed(change, place)
    found = checked(rows, Registry())
    told = [finding for one in found for finding in one.findings] + compared(found)
    assert any(finding.kind == kind and rows[place] in finding.rows for finding in told)
    assert all(rows[place].key[:12] in str(finding) for finding in told if rows[place] in finding.rows)


def test_suites_may_share_a_run() -> None:
    """The same run in two suites is no contradiction."""
    rows = real_rows()
    assert not compared(checked([*rows, replace(rows[0], suite="another")], Registry()))


@pytest.mark.parametrize("change", [_worse_tree, lambda row: replace(row, objective=0.99, bound=0.99)])
def test_the_command_fails_and_tells(change: Change, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A planted fault is printed with the row's data and figures, and the exit code is 4."""
    assert main(["verify", str(written(changed(change), tmp_path))]) == 4
    said = capsys.readouterr().out
    assert "gen-monk1, depth 2, penalty 0.04" in said and " contradiction" in said


def test_a_wrong_optimal_that_nobody_contradicts_is_found_by_counting() -> None:
    """Without another row on the data only `--prove` can know, and it does."""
    rows = [_worse_tree(solved("gen-monk1", 3, 0.002))]
    assert kinds(rows) == set()
    proofs = proven_again(rows, Registry(), 20.0)
    assert [finding.kind for finding in proofs.findings] == ["proof"] and proofs.agreed == 0 and proofs.claims == 1


def test_a_tree_is_held_against_other_penalties_and_depths() -> None:
    """A bound below what the tree of a run at another penalty and a smaller depth reaches is found."""
    good, low = solved("gen-monk1", 2, 0.002), solved("gen-monk1", 3, 0.04)
    data = Registry().load("gen-monk1")
    assert good.tree is not None and good.n_leaves is not None
    tree = DecisionTree.from_dict(good.tree)
    reached = float(np.mean(tree.predict(data.X) == np.unique(data.y, return_inverse=True)[1])) - 0.04 * good.n_leaves
    open_row = replace(low, status="time_limit", tree=None, objective=None, gap=None, bound=reached - 1e-6)
    assert kinds([good, open_row]) == {"bound"}
    assert kinds([good, replace(open_row, bound=reached + 1e-6)]) == set()
    shallow = replace(open_row, instance=replace(open_row.instance, max_depth=1))
    assert kinds([good, shallow]) == set()


def test_data_that_are_not_there_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows whose data cannot be loaded are counted, their figures checked among themselves, and the exit code is 3."""
    row = real_rows()[0]
    lost = replace(row, instance=replace(row.instance, data="nowhere"))
    (one,) = checked([lost], Registry())
    assert one.notes and one.correct is None and not one.findings
    assert kinds([replace(lost, bound=0.0)]) == {"bound"}
    assert proven_again([lost], Registry(), 5.0).without_data == 1
    assert main(["verify", str(written([replace(lost, key=run_key(lost.instance, lost.method))], tmp_path))]) == 3
    assert "no contradiction in what could be checked" in capsys.readouterr().out


def test_empty_results_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No row, no verdict."""
    assert main(["verify", str(written([], tmp_path))]) == 2
    assert "there are no rows" in capsys.readouterr().err


# ---------------------------------------------------------------- limits


def _reached(tree: DecisionTree, data: EncodedData) -> Reached:
    from accel_oct_bench.verify.checks import followed

    classes, y = np.unique(data.y, return_inverse=True)
    return followed(tree.to_dict(), data.X, y, classes.tolist(), data.group)


TEXTS = [
    "recall(1, at_least={})",
    "recall(0, at_most={})",
    "specificity(1, at_least={})",
    "false_positive_rate(1, at_most={})",
    "precision(1, at_least={})",
    "positive_budget({}, 1)",
    "positive_budget(5, count=True)",
    "statistical_parity(group, at_most={})",
    "equal_opportunity(group, at_most={})",
    "predictive_equality(group, at_most={})",
    "equalised_odds(group, at_most={}, positive=0)",
    "max_leaves(3)",
    "min_leaf_weight(samples=3)",
    "min_leaf_weight(share={})",
    "forbidden_features([0])",
    "forbidden_pairs([[0, 1]])",
    'forbidden_pairs([[0, 1]], on="tree")',
    "max_features(2)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_limits_are_counted_as_the_library_defines_them(text: str) -> None:
    """On random trees, the two independent definitions say kept or broken alike; both answers occur."""
    from accel_oct_bench.solving import constraints_of, dataset_of

    rng = np.random.default_rng(3)
    answers = set()
    for _ in range(60):
        X = rng.random((14, 3)) < 0.5
        data = EncodedData("made up", X, rng.permutation(np.arange(14) % 2), rng.permutation(np.arange(14) % 3))
        said = text.format(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0]))
        tree = _random_tree(rng, 3)
        (bound,) = bind_all(constraints_of([said], data), dataset_of(data))
        missed = broken(said, _reached(tree, data))
        assert (missed is not None) == (bound.violation(tree) > 0), (said, missed)
        answers.add(missed is None)
    assert answers == {True, False}


def _random_tree(rng: np.random.Generator, depth: int) -> DecisionTree:
    if depth == 0 or rng.random() < 0.25:
        return DecisionTree.leaf(int(rng.integers(2)))
    return DecisionTree.branch(int(rng.integers(3)), _random_tree(rng, depth - 1), _random_tree(rng, depth - 1))


@pytest.mark.parametrize(
    "text",
    [
        "nonsense(1)",
        "recall(",
        "recall(5, at_least=0.1)",
        "recall(what=1)",
        "__import__('os')",
        "forbidden_features({{1}})",
        f"recall(at_least={'-' * 5000}1)",
    ],
)
def test_a_limit_that_is_not_known_is_said(text: str) -> None:
    """It is neither kept nor broken."""
    data = EncodedData("x", np.zeros((2, 1), dtype=bool), np.array([0, 1]))
    with pytest.raises(UnknownLimitError, match="constraint"):
        broken(text, _reached(DecisionTree.leaf(0), data))
    row = solved("gen-monk2", 3, 0.001, LIMITED)
    (one,) = checked([replace(row, instance=replace(row.instance, constraints=("nonsense(1)",)))], Registry())
    assert one.notes and not one.findings


# ---------------------------------------------------------------- the second proof


@settings(max_examples=60, deadline=None)
@given(instances(), st.integers(0, 3))
def test_counting_agrees_with_exhaustive_search(instance: object, depth: int) -> None:
    """For every number of leaves, on data rich in ties: the counts are those of the oracle."""
    X, y = instance.X, instance.y  # type: ignore[attr-defined]
    dataset = BinaryDataset.from_arrays(X, y)
    assert best_counts(X, y, depth) == [int(score) for score in optimal_scores(dataset, depth, 2**depth)]


def test_counting_agrees_with_enumeration() -> None:
    """The same against every single tree, on tiny data."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        X, y = rng.random((12, 3)) < 0.5, np.arange(12) % n_classes
        scores = best_score_by_leaves(BinaryDataset.from_arrays(X, y), 2)
        expected = [max(score for leaves, score in scores.items() if leaves <= k) for k in range(1, 5)]
        assert best_counts(X, y, 2) == expected
        assert best_objective(best_counts(X, y, 2), 12, 0.1) == pytest.approx(
            max(score / 12 - 0.1 * leaves for leaves, score in scores.items())
        )


def test_counting_stops_in_time() -> None:
    """Nothing is claimed when time is up."""
    X = np.random.default_rng(0).random((60, 20)) < 0.5
    with pytest.raises(OutOfTimeError):
        best_counts(X, X[:, 0], 3, time_limit=0.0)
    assert proven_again([solved("gen-monk1", 3, 0.002)], Registry(), 0.0).out_of_time == 1


def test_the_second_proof_is_short_and_alone() -> None:
    """Fewer than 150 lines, and no import of the library."""
    source = Path(simple_proof.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 150
    names = [
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    ]
    assert {name.split(".")[0] for name in names} == {"__future__", "time", "typing", "numpy"}
