"""`accel_oct.near_optimal`: what it returns, what it refuses, and how it stops."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from helpers.estimator_support import mixed_frame
from helpers.progress_support import Events
from oracles.instances import random_instance
from oracles.near_optimal import all_trees
from sklearn.base import clone

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import ForbiddenFeatures, MaxFeatures, MaxLeaves
from accel_oct.data import BinaryDataset
from accel_oct.encoding import TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import InstanceCosts
from accel_oct.support.progress import ProgressEvent
from accel_oct.tree import DecisionTree

SETTINGS = {"max_depth": 2, "leaf_penalty": 0.01, "within": 0.12}


def data(n_samples: int = 60, n_features: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)) < 0.5
    y = np.where(rng.random(n_samples) < 0.4, rng.integers(0, 2, n_samples), X[:, 0] & (X[:, 1] | X[:, 2]))
    return X, y


# ---------------------------------------------------------------- the trees


@pytest.mark.parametrize("seed", range(8))
def test_entries_say_what_their_trees_do(seed: int) -> None:
    """Accuracy, objective, leaves and features of every entry are those of its tree; the first one is optimal."""
    instance = random_instance(np.random.default_rng(seed), max_depth=3)
    dataset, settings = instance.dataset, {"max_depth": instance.max_depth, "leaf_penalty": instance.leaf_penalty}
    trees = accel_oct.near_optimal(dataset, within=0.05, limit=50, **settings)
    assert trees.optimum == pytest.approx(accel_oct.solve(dataset, **settings).objective, abs=1e-9)
    assert trees.threshold == trees.optimum - 0.05 and trees.status == "finished"
    assert len(trees) == len(list(trees)) == min(50, trees.count) and trees.complete is (trees.count <= 50)
    for entry in trees:
        assert isinstance(entry.tree, DecisionTree) and entry.tree.max_depth == instance.max_depth
        assert entry.accuracy == pytest.approx(entry.tree.score(dataset) / dataset.total_weight, abs=1e-12)
        assert entry.objective == pytest.approx(entry.accuracy - instance.leaf_penalty * entry.tree.n_leaves)
        assert entry.n_leaves == entry.tree.n_leaves and entry.features == entry.tree.features_used
        assert entry.columns == tuple(dataset.feature_names[feature] for feature in entry.features)
        assert entry.objective >= trees.threshold - 2e-9
    assert trees[-1] == trees[len(trees) - 1] and trees[:2] == list(trees)[:2]


def test_a_loss_of_exactly_the_limit_counts() -> None:
    """One of a hundred samples at within=0.01: the tree that is wrong about it is there, with a leaf more it is not."""
    X = np.zeros((100, 1), dtype=bool)
    X[99] = True
    y = X[:, 0].astype(int)
    trees = accel_oct.near_optimal(X, y, max_depth=1, leaf_penalty=0.0, within=0.01)
    assert [entry.accuracy for entry in trees] == [1.0, 0.99] and trees.count_by_leaves == {1: 1, 2: 1}
    assert accel_oct.near_optimal(X, y, max_depth=1, leaf_penalty=0.0, within=0.0099).count == 1
    # The price of a leaf is a third of what is allowed: three times a third is not lost to rounding.
    assert accel_oct.near_optimal(X, y, max_depth=1, leaf_penalty=0.02 / 3, within=0.01 - 0.02 / 3).count == 2


def test_copies_and_complements_have_trees_of_their_own() -> None:
    """Two copies and a complement of a column: four times as many stumps; a constant column has none."""
    X = np.array([[0], [0], [1]], dtype=bool)
    wide = np.column_stack([X, X, ~X, X, np.ones(3, dtype=bool)])
    counts = [
        accel_oct.near_optimal(matrix, [0, 0, 1], max_depth=2, leaf_penalty=0.0, within=0.0).count
        for matrix in (X, wide)
    ]
    assert counts == [1, 4]


def test_samples_of_weight_zero_do_not_count() -> None:
    """A column that separates nothing but such a sample splits nothing, and its class is no reason to split."""
    X = np.array([[0, 0], [1, 0], [1, 1]], dtype=bool)
    trees = accel_oct.near_optimal(X, [0, 1, 0], sample_weight=[1, 1, 0], max_depth=2, leaf_penalty=0, within=1)
    # Two leaves alone, and column 0 with different classes below.
    assert trees.count == 4 and all(entry.features in ((), (0,)) for entry in trees)


def test_no_depth_and_one_class() -> None:
    """Without splits there is one tree per class; with one class there is a single tree."""
    X, y = data()
    assert accel_oct.near_optimal(X, y, max_depth=0, leaf_penalty=0.1, within=1.0).count == 2
    for depth in (0, 3):
        trees = accel_oct.near_optimal(X, np.zeros(60), max_depth=depth, leaf_penalty=0.0, within=1.0)
        assert trees.count == 1 and trees[0].objective == 1.0 and trees[0].columns == ()


def test_leaves_that_cost_more_than_everything() -> None:
    """Only single leaves are within reach, and their objective has the price in it."""
    X, y = data()
    trees = accel_oct.near_optimal(X, y, max_depth=3, leaf_penalty=1e9, within=1.0)
    assert trees.count == 2 and trees[0].objective == pytest.approx(trees[0].accuracy - 1e9)


def test_best_labels() -> None:
    """Every listed tree predicts the heaviest class in each leaf, and these are all such trees."""
    X, y = data()
    dataset = BinaryDataset.from_arrays(X, y)
    settings = {**SETTINGS, "limit": None}
    best = accel_oct.near_optimal(X, y, labels="best", **settings)
    every = accel_oct.near_optimal(X, y, **settings)
    assert {entry.tree for entry in best} == {e.tree for e in every if e.tree == e.tree.relabelled(dataset)}
    assert 0 < best.count < every.count


# ---------------------------------------------------------------- choosing


def test_filter_by_function_and_constraint() -> None:
    """The same trees by a rule and by the constraint that says the same; complete only if the list was."""
    X, y = data()
    trees = accel_oct.near_optimal(X, y, limit=None, **SETTINGS)
    few = trees.filter(lambda tree: tree.n_leaves <= 3)
    assert 0 < len(few) < len(trees) and few.count == len(few) and few.complete and few.optimum == trees.optimum
    assert few.count_by_leaves == {leaves: trees.count_by_leaves[leaves] for leaves in few.count_by_leaves}
    assert [entry.tree for entry in trees.filter(MaxLeaves(3))] == [entry.tree for entry in few]
    assert all(len(entry.features) <= 2 for entry in trees.filter(MaxFeatures(2)))
    some = accel_oct.near_optimal(X, y, limit=3, **SETTINGS).filter(lambda tree: True)
    assert (len(some), some.count, some.at_least, some.complete, some.count_by_leaves) == (3, None, 3, False, None)
    with pytest.raises(InvalidInputError, match="rule"):
        trees.filter(3)


def test_groups_of_equal_predictions() -> None:
    """Members of a group predict alike, representatives differ, and nothing is lost."""
    X, y = data()
    trees = accel_oct.near_optimal(X, y, limit=None, **SETTINGS)
    groups = trees.by_predictions()
    assert sum(len(group) for group in groups) == len(trees) > len(groups)
    assert len({tuple(group.representative.tree.predict(X)) for group in groups}) == len(groups)
    for group in groups:
        assert all(np.array_equal(e.tree.predict(X), group.members[0].tree.predict(X)) for e in group.members)
        assert group.representative == min(group.members, key=lambda entry: (-entry.objective, entry.n_leaves))


def shuffled_accuracy(tree: DecisionTree, dataset: BinaryDataset, features: list[int]) -> float:
    """By all pairs of samples, one at a time."""
    right, total = 0.0, dataset.total_weight
    for i in range(dataset.n_samples):
        rows = np.repeat(dataset.X[i : i + 1], dataset.n_samples, axis=0)
        rows[:, features] = dataset.X[:, features]
        hits = tree.predict(rows) == dataset.y[i]
        right += dataset.weights[i] * float(dataset.weights[hits].sum())
    return right / total**2


@pytest.mark.parametrize("weighted", [False, True])
def test_importance_is_what_shuffling_costs(weighted: bool) -> None:
    """Ranges of columns of several features equal those of all pairs of samples."""
    X, y = data(n_samples=24, n_features=4)
    weights = np.random.default_rng(1).integers(0, 4, 24) / 2 if weighted else None
    dataset = BinaryDataset.from_arrays(X, y, weights)
    trees = accel_oct.near_optimal(dataset, limit=20, sources=["a", "b", "a", "c"], **SETTINGS)
    table = trees.importance()
    assert [row.name for row in table] == ["a", "b", "c"] and table.complete is trees.complete and len(table) == 3
    for name, features in (("a", [0, 2]), ("b", [1]), ("c", [3])):
        lost = [entry.accuracy - shuffled_accuracy(entry.tree, dataset, features) for entry in trees]
        used = [name in entry.columns for entry in trees]
        assert table[name].lowest == pytest.approx(min(lost)) and table[name].highest == pytest.approx(max(lost))
        assert table[name].share_used == pytest.approx(np.mean(used))
    assert "the listed 20 trees" in str(table) and table[0] == table["a"]
    with pytest.raises(InvalidInputError, match="column 'z'"):
        table["z"]


# ---------------------------------------------------------------- limits


def test_counting_does_not_depend_on_the_limit() -> None:
    """Lists of any length are the beginning of the whole list, and the count is the same."""
    X, y = data()
    every = accel_oct.near_optimal(X, y, limit=None, **SETTINGS)
    for limit in (1, 7, len(every) - 1, len(every), len(every) + 1):
        some = accel_oct.near_optimal(X, y, limit=limit, **SETTINGS)
        assert some.count == len(every) and some.count_by_leaves == every.count_by_leaves
        assert [entry.tree for entry in some] == [entry.tree for entry in every][:limit]
        assert some.complete is (limit >= len(every))


def test_no_time() -> None:
    """Nothing is known, and nothing is claimed."""
    trees = accel_oct.near_optimal(*data(), time_limit=0, **SETTINGS)
    assert (trees.status, trees.count, trees.at_least, len(trees)) == ("time_limit", None, 0, 0)
    assert trees.optimum is None and trees.threshold is None and not trees.complete
    assert "before the best objective was known" in repr(trees) and "None" not in repr(trees)
    assert np.isnan(trees.importance()[0].lowest) and trees.by_predictions() == []


def test_a_time_limit_leaves_a_lower_bound() -> None:
    """What was listed and counted by then is there."""
    X, y = data(n_samples=400, n_features=40)
    weights = np.random.default_rng(0).random(400)  # values differ, so tables grow: it does not end soon
    began = time.perf_counter()
    trees = accel_oct.near_optimal(
        X, y, max_depth=5, leaf_penalty=0.0001, within=0.3, sample_weight=weights, time_limit=1.0
    )
    assert trees.status == "time_limit" and trees.count is None and time.perf_counter() - began < 20
    assert trees.at_least >= len(trees)


def test_no_memory() -> None:
    """Trees that have no room are not listed, and status and flags say so; the count needs room of its own."""
    X, y = data(n_features=8)
    settings = {**SETTINGS, "max_depth": 3, "within": 0.2}
    whole = accel_oct.near_optimal(X, y, **settings)
    trees = accel_oct.near_optimal(X, y, limit=None, memory_limit=40_000, **settings)
    assert trees.status == "memory_limit" and not trees.complete and len(trees) < whole.count
    assert trees.at_least <= whole.count and trees.count in (None, whole.count)
    for mine, other in zip(trees, whole, strict=False):
        assert mine.tree == other.tree


def test_an_interrupt_returns_what_is_there() -> None:
    """Ctrl-C during the work: the trees listed so far, and an honest status."""
    X, y = data(n_samples=200, n_features=12)

    pressed = []

    def press(event: ProgressEvent) -> None:
        if not pressed and "listed" in event.figures:
            pressed.append(event)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)  # until the main thread has seen it

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when started from a background job
    try:
        trees = accel_oct.near_optimal(X, y, max_depth=3, leaf_penalty=0.0, within=0.2, limit=None, progress=press)
    finally:
        signal.signal(signal.SIGINT, before)
    assert trees.status == "interrupted" and len(trees) == 256 == trees.at_least and trees.count is None


def test_progress_never_falls() -> None:
    """Seconds, listed and counted trees only grow, and end at what is returned."""
    seen = Events()
    trees = accel_oct.near_optimal(
        *data(n_features=9), max_depth=3, leaf_penalty=0.0, within=0.1, limit=600, progress=seen
    )
    states = [(event.seconds, event.figures.get("listed", 0), event.figures.get("counted", 0)) for event in seen]
    assert states == sorted(states) and states[-1][1:] == (len(trees), trees.count)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("within", value) for value in (-0.01, float("nan"), "0.1", None, True, [0.1])),
        *(("limit", value) for value in (0, -1, 1.5, "10", True)),
        *(("memory_limit", value) for value in (0, None, 1.5)),
        *(("time_limit", value) for value in (-1, float("nan"), "1")),
        *(("labels", value) for value in ("all", None)),
        *(("sources", value) for value in ("abcde", ["a"], 3)),
        *(("leaf_penalty", value) for value in (-1, "a", float("inf"))),
        *(("max_depth", value) for value in (-1, 1.5, 21)),
    ],
)
def test_bad_arguments_are_named(argument: str, value: object) -> None:
    """One sentence that names the argument."""
    with pytest.raises(InvalidInputError, match=argument):
        accel_oct.near_optimal(*data(), **{**SETTINGS, argument: value})


def test_values_too_far_apart_are_refused() -> None:
    """Where whole numbers would not fit, the error says which arguments are to record_infeasible."""
    X, y = data()
    weights = np.random.default_rng(0).random(60)
    with pytest.raises(InvalidInputError, match="within, leaf_penalty and max_depth"):
        accel_oct.near_optimal(X, y, sample_weight=weights, max_depth=4, leaf_penalty=1e6, within=1e9)


# ---------------------------------------------------------------- other objectives, and classifiers


@pytest.mark.parametrize("seed", range(6))
def test_trees_near_the_least_cost(seed: int) -> None:
    """All trees by what they cost, against enumeration; their reliance is in units of the score."""
    rng = np.random.default_rng([7, seed])
    instance = random_instance(rng, max_samples=14, max_features=3, max_depth=2)
    data, n_classes = instance.dataset, instance.dataset.n_classes
    costs = rng.integers(0, 4, (data.n_samples, n_classes)).astype(float)
    found = accel_oct.near_optimal(
        data, max_depth=2, leaf_penalty=0.05, within=0.4, limit=None, objective=InstanceCosts(costs)
    )
    kept = data.weights > 0
    paid = [
        (-float(score) / data.total_weight - 0.05 * leaves, leaves)
        for score, leaves, _ in all_trees(data.X[kept], (data.weights[:, None] * costs)[kept], 2)
    ]
    best = max(value for value, _ in paid)
    expected = sorted((value for value, _ in paid if value >= best - 0.4 - 1e-9), reverse=True)
    assert found.count == len(expected) == len(found) and found.optimum == pytest.approx(best)
    np.testing.assert_allclose([entry.objective for entry in found], expected, atol=1e-9)
    for entry in found[:20]:
        assert entry.accuracy == pytest.approx(entry.tree.score(data) / data.total_weight)
        assert entry.objective == pytest.approx(entry.score - 0.05 * entry.n_leaves)


def test_a_ratio_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="objective: near_optimal does not support F1"):
        accel_oct.near_optimal(*data(), objective="f1", **SETTINGS)


def test_trees_of_a_table_are_classifiers() -> None:
    """In the columns of the frame; thresholds of one column are one column; rules by name; each tree can be fitted."""
    frame, y = mixed_frame(150)
    frame = frame[["age", "smoker", "region", "income"]]
    model = OptimalTreeClassifier(2, 0.01, encoder=TableEncoder())
    trees = model.near_optimal(frame, y, within=0.12, limit=200)
    assert not hasattr(model, "tree_") and len(trees) > 5
    fitted = model.fit(frame, y)
    assert trees.optimum == pytest.approx(fitted.objective_) and set(trees[0].columns) <= set(frame.columns)
    for place in (0, 3, len(trees) - 1):
        chosen = trees.model(place)
        accuracy = float(np.mean(chosen.predict(frame) == y))
        assert accuracy == pytest.approx(trees[place].accuracy) and chosen.bound_ == trees.optimum
        assert chosen.objective_ == pytest.approx(accuracy - 0.01 * chosen.get_n_leaves())
        assert chosen.status_ == ("optimal" if chosen.objective_ >= trees.optimum else "gap_limit")
        assert chosen.to_text() and OptimalTreeClassifier.from_json(chosen.to_json()).to_text() == chosen.to_text()
    without = trees.filter(ForbiddenFeatures(["income"]))
    assert 0 < len(without) < len(trees) and all("income" not in entry.columns for entry in without)
    assert {row.name for row in trees.importance()} == set(frame.columns)
    kept = clone(model).set_params(constraints=[ForbiddenFeatures(["income"])]).near_optimal(frame, y, within=0.12)
    # Measured from the best tree that satisfies the rule, so there are more of them.
    assert kept.optimum == without[0].objective < trees.optimum
    assert [entry.tree for entry in kept][: len(without)] == [entry.tree for entry in without]
    with pytest.raises(InvalidInputError, match="model needs trees"):
        accel_oct.near_optimal(*data(), **SETTINGS).model(0)
