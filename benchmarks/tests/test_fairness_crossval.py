"""The parts of `studies.fairness_crossval`: measures, splits, and carrying on with a file of results."""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct_bench.studies import crossval_figure, crossval_methods, crossval_report, fairness_crossval
from accel_oct_bench.studies.crossval_methods import Fitted, among, largest_deviation, small_problem
from accel_oct_bench.studies.crossval_results import FIELDS, KEY, Results, accuracy, rates, splits
from accel_oct_bench.studies.rival_calls import Answer

ALL = np.ones(6, dtype=bool)


# ---------------------------------------------------------------- measures


def test_gap_is_the_largest_difference_between_any_two_groups():
    group = np.array(["a", "a", "b", "b", "c", "c"])
    found = rates([1, 0, 1, 1, 0, 0], group, ALL)
    assert found.values.tolist() == [0.5, 1.0, 0.0]
    assert found.gap == 1.0
    assert found.difference == -0.5


def test_opportunity_compares_positive_samples_and_leaves_out_a_group_without_any():
    group, y = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 1, 0, 0])
    found = rates([1, 0, 1, 1, 0, 1], group, among(y, "opportunity"))
    assert found.values.tolist() == [0.5, 1.0]
    assert found.gap == 0.5
    assert rates([1, 0, 1, 1, 0, 1], group, among(y, "parity")).values.tolist() == [2 / 3, 0.5, 1.0]


def test_noise_of_a_tree_is_the_standard_error_of_a_difference_of_shares():
    found = rates([1, 0, 0, 0, 1, 1], np.array([0, 0, 0, 0, 1, 1]), ALL)
    assert found.noise == pytest.approx(np.sqrt(0.25 * 0.75 / 4 + 0))


def test_accuracy_of_a_randomised_prediction_is_that_expected_over_the_draws():
    positive, y = np.array([0.25, 1.0, 0.5]), np.array([1, 1, 0])
    expected = 0.0
    for drawn in itertools.product((0, 1), repeat=3):
        weight = np.prod(np.where(np.array(drawn) == 1, positive, 1 - positive))
        expected += weight * np.mean(np.array(drawn) == y)
    assert accuracy(positive, y) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), min_size=4, max_size=30))
def test_the_bound_on_the_deviation_from_the_mean_is_the_limit_on_the_difference(rows):
    """Two groups differ by L exactly when the one that is further from the mean is as far as the bound for L."""
    predicted, group, y = np.array(rows).T
    for constraint in ("parity", "opportunity"):
        chosen = among(y, constraint)
        if len(np.unique(group[chosen])) == 2:
            found = rates(predicted, group, chosen)
            furthest = np.abs(found.values - predicted[chosen].mean()).max()
            assert largest_deviation(group, y, constraint, found.gap) == pytest.approx(furthest)


def test_three_groups_have_no_such_bound():
    with pytest.raises(ValueError, match="two groups"):
        largest_deviation([0, 1, 2], [1, 1, 1], "parity", 0.1)


@pytest.mark.parametrize(("difference", "noise"), [(0.0, 0.1), (0.02, 0.1), (-0.3, 0.1), (0.05, 0.0), (-0.05, 0.0)])
def test_gap_by_chance_is_the_mean_size_of_a_normal_variable(difference, noise):
    drawn = difference + noise * np.random.default_rng(0).standard_normal(200_000)
    assert crossval_report.chance(difference, noise) == pytest.approx(np.abs(drawn).mean(), abs=1e-3)


def test_standard_error_is_corrected_for_training_parts_that_overlap():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert crossval_report.standard_error(values, 0.0) == pytest.approx(values.std(ddof=1) / 2)
    assert crossval_report.standard_error(values, 0.75) == pytest.approx(values.std(ddof=1))


# ---------------------------------------------------------------- splits


def table():
    rng = np.random.default_rng(1)
    return rng.integers(0, 2, 203), (rng.random(203) < 0.3).astype(int)


def test_every_row_is_tested_once_per_repeat_and_folds_have_the_same_shares():
    y, group = table()
    for repeat in range(2):
        parts = list(splits(y, group, 5, repeat))
        assert [fold for fold, _, _ in parts] == [0, 1, 2, 3, 4]
        assert sorted(np.concatenate([test for _, _, test in parts])) == list(range(203))
        for _, train, test in parts:
            assert sorted([*train, *test]) == list(range(203))
            for label, value in itertools.product((0, 1), (0, 1)):
                members = (y == label) & (group == value)
                assert abs(members[test].sum() - members.sum() / 5) < 1


def test_repeats_differ_and_are_the_same_in_every_run():
    y, group = table()
    first, again, other = (next(iter(splits(y, group, 5, repeat)))[2].tolist() for repeat in (0, 0, 1))
    assert first == again != other


def test_a_number_of_rows_is_drawn_and_all_others_are_tested_on():
    y, group = table()
    for _, train, test in splits(y, group, 3, 0, rows=40):
        assert len(train) == 40
        assert sorted([*train, *test]) == list(range(203))


# ---------------------------------------------------------------- the file


def row(fold, **others):
    key = ("set", 0, 3, 5, "parity", "0.02", "ours", 0, fold)
    return {**dict(zip(KEY, key, strict=True)), "seconds": 0.25, "status": "optimal", **others}


def test_a_file_cut_off_anywhere_is_completed_to_the_same_file(tmp_path):
    """No row is doubled or lost, wherever the last write ended."""
    path = tmp_path / "results.csv"
    results = Results(path)
    rows = [row(fold, test_gap=fold / 7) for fold in range(3)]
    for one in rows:
        results.add(one)
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        results = Results(path)
        for one in rows:
            if tuple(one[name] for name in KEY) not in results:
                results.add(one)
        assert path.read_bytes() == whole
        assert len(Results(path).rows) == 3


def test_a_row_is_not_written_twice(tmp_path):
    results = Results(tmp_path / "results.csv")
    results.add(row(0))
    with pytest.raises(ValueError, match="already"):
        results.add(row(0))
    assert len(Results(tmp_path / "results.csv").rows) == 1


def test_a_file_of_something_else_is_refused_and_kept(tmp_path):
    path = tmp_path / "results.csv"
    for text in ("name,value\na,1\n", ",".join(FIELDS) + "\n1,2\n", "no end of line"):
        path.write_text(text)
        with pytest.raises(ValueError, match="no file of results"):
            Results(path)
        assert path.read_text() == text


def test_two_rows_for_one_fit_are_refused(tmp_path):
    path = tmp_path / "results.csv"
    Results(path).add(row(0))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[-1]]) + "\n")
    with pytest.raises(ValueError, match="two rows"):
        Results(path)


# ---------------------------------------------------------------- a run


class Interrupted(Exception):
    pass


class FakeWorker:
    """Answers at once in this process; is interrupted after some answers; "slow" is out of time."""

    left = 10**6

    def __init__(self, call, first):
        self._slow = call is slow

    def ask(self, group, X, y, test_group, test_X, constraint, limit, depth, time_limit):
        if FakeWorker.left == 0:
            raise Interrupted
        FakeWorker.left -= 1
        if self._slow and limit == 0.02:
            return Answer("killed", time_limit)
        return Fitted("fitted", 0.0, (), np.asarray(y), np.zeros(len(test_X)), 1)

    def stop(self):
        pass


def slow():
    """Stands for a method that is out of time at the tighter limit."""


@pytest.fixture
def options(monkeypatch):
    y, group = table()
    methods = {
        "constant": crossval_methods.METHODS["constant"],
        "streed": crossval_methods.Method(slow, "slow", True),
    }
    monkeypatch.setattr(fairness_crossval, "METHODS", methods)
    monkeypatch.setattr(fairness_crossval, "Worker", FakeWorker)
    monkeypatch.setattr(fairness_crossval, "tables", lambda *_: [("set", group, y[:, None], y.astype(str))])
    return argparse.Namespace(
        data_dir=None, only=[], repeats=2, folds=3, depth=3, limits=[0.02, 0.05], rows=[0, 50], time_limit=1.0
    )


def test_an_interrupted_run_ends_with_the_rows_of_one_that_was_not(options, tmp_path):
    methods = ["constant", "streed"]
    FakeWorker.left = 10**6
    whole = Results(tmp_path / "whole.csv")
    fairness_crossval.run(options, methods, whole)
    # Two sizes, two constraints, three folds; constant and the wider limit have two repeats, "killed" has one.
    assert len(whole.rows) == 2 * 2 * 3 * (2 + 2 + 1)
    for step in (3, 7):
        path = tmp_path / f"parts{step}.csv"
        while True:
            FakeWorker.left = step
            try:
                fairness_crossval.run(options, methods, Results(path))
                break
            except Interrupted:
                pass
        assert sorted(Results(path).rows) == sorted(whole.rows)


def test_more_repeats_add_to_the_file_and_change_nothing_of_it(options, tmp_path):
    FakeWorker.left = 10**6
    path = tmp_path / "results.csv"
    fairness_crossval.run(options, ["constant"], Results(path))
    before = path.read_text()
    options.repeats = 3
    fairness_crossval.run(options, ["constant"], Results(path))
    assert path.read_text().startswith(before)
    assert len(Results(path).rows) == 2 * 2 * 3 * 3


def test_the_report_has_a_line_for_every_method_and_tells_what_was_killed(options, tmp_path):
    FakeWorker.left = 10**6
    results = Results(tmp_path / "results.csv")
    fairness_crossval.run(options, ["constant", "streed"], results)
    text = crossval_report.report(results.rows.values())
    lines = [line for line in text.splitlines() if line.startswith("| statistical parity")]
    assert [line.split("|")[2:5] for line in lines] == [
        ["  ", " constant ", " 6 "],
        [" 0.02 ", " STreeD ", " 0 (3 killed) "],
        [" 0.05 ", " STreeD ", " 6 "],
    ]


@pytest.mark.filterwarnings("error")
def test_figures_of_a_row_come_from_the_predictions_alone():
    group, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    answer = Fitted("fitted", 0.5, (), y, np.array([0, 0, 1, 1]), 2)
    found = fairness_crossval.measured(answer, "parity", (group, y), (group, y))
    assert (found["train_accuracy"], found["train_gap"]) == (1.0, 0.0)
    assert (found["test_accuracy"], found["test_gap"], found["test_difference"]) == (0.5, 1.0, 1.0)
    assert fairness_crossval.measured(Answer("killed", 1.0), "parity", (group, y), (group, y)) == {
        "seconds": 1.0,
        "status": "killed",
    }


@pytest.mark.parametrize("name", ["constant", "cart", "ours-free", "ours", "ours-group"])
def test_methods_that_need_no_rival_answer_with_predictions_of_both_parts(name):
    method = crossval_methods.METHODS[name]
    group, X, y, test_group, test_X, constraint, limit, depth = small_problem(method.limited)
    answer = method.call(group, X, y, test_group[:7], test_X[:7], constraint, limit, depth, 60.0)
    assert isinstance(answer, Fitted)
    assert answer.test.tolist() == answer.train[:7].tolist()
    assert set(answer.train) <= {0, 1}
    if limit is not None:
        assert rates(answer.train, group, among(y, constraint)).gap <= limit + 1e-9
        free = crossval_methods.ours(group, X, y, test_group, test_X, constraint, None, depth, 60.0)
        assert rates(free.train, group, among(y, constraint)).gap > limit
        assert accuracy(answer.train, y) <= accuracy(free.train, y)


@pytest.mark.parametrize(("good", "chosen"), [({0.003}, 0.003), ({0.001, 0.01}, 0.01), (set(), 0.03)])
def test_tuning_takes_the_largest_of_the_best_penalties_and_never_sees_the_test_part(good, chosen):
    y, group = table()
    asked = []

    def call(group, X, y, test_group, test_X, *problem, penalty):
        asked.append((penalty, len(X), test_X))
        right = X_of(test_X) if penalty in good else np.zeros(len(test_X))
        return Fitted("fitted", 0.0, (), y, right, 1)

    def X_of(part):  # the feature is the class
        return part[:, 0]

    outside = np.full((5, 1), 7)
    crossval_methods.Tuned(call)(group, y[:, None], y, group[:5], outside, "parity", 0.02, 3, 1.0)
    assert asked[-1][:2] == (chosen, len(y))
    assert asked[-1][2] is outside
    inner = asked[:-1]
    assert len(inner) == 3 * 4
    assert all(size + len(test) == len(y) and 7 not in test for _, size, test in inner)


def test_the_figure_is_drawn_from_the_rows(options, tmp_path):
    pytest.importorskip("matplotlib")
    FakeWorker.left = 10**6
    results = Results(tmp_path / "results.csv")
    fairness_crossval.run(options, ["constant", "streed"], results)
    crossval_figure.figure(results.rows.values(), tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    assert "set, statistical parity" in drawn
    assert "STreeD" in drawn


def test_a_smaller_figure_says_the_same():
    svg = '<g id="text_1">\n  <path d="M 1.23456 7.1 \nL 2 3"/>\n  <text x="0.98765">0.715</text>\n</g>\n'
    assert crossval_figure.smaller(svg) == '<g>\n<path d="M 1.23 7.1\nL 2 3"/>\n<text x="0.98">0.715</text>\n</g>\n'
