"""The default classifier is optimal over every split of a raw table: against exhaustive search over all of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from helpers.progress_support import Rows
from oracles.raw_tables import best_value, random_table
from programs.fuzz_tables import check, check_case, fitted
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

from accel_oct import OptimalTreeClassifier, Solver
from accel_oct.constraints import (
    BoundConstraint,
    Constraint,
    ForbiddenFeatures,
    ForbiddenPairs,
    MaxLeaves,
    MinLeafWeight,
    Recall,
    Specificity,
    Traits,
)
from accel_oct.data import BinaryDataset
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder
from accel_oct.encoding.conditions import missing_values
from accel_oct.encoding.orders import TableOrders
from accel_oct.errors import InvalidInputError, NoTreeError
from accel_oct.estimators import every_split
from accel_oct.estimators.greedy import GreedyTrees
from accel_oct.estimators.training import CheckedRows
from accel_oct.exact import LocalRules
from accel_oct.exact.ordered import OrderedTree
from accel_oct.mip import SolveOptions
from accel_oct.objectives import CostMatrix, InstanceCosts
from accel_oct.solving import every_split as solving_every_split
from accel_oct.support.stopping import Clock
from accel_oct.tree import DecisionTree


@pytest.fixture(autouse=True)
def without_tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are searched over orders too, where the tables of binary features would be faster."""
    if request.node.name == "test_tables_search_columns_of_few_values":
        return
    monkeypatch.setattr(every_split, "_suits_tables", lambda model, orders: False)


@pytest.mark.parametrize("seed", range(72))
def test_the_default_classifier_is_optimal_over_every_split(seed: int) -> None:
    """Ties, repeated and constant columns, gaps, categories, dates, large numbers; weights, classes, depths, limits."""
    check_case(seed)


@pytest.mark.parametrize("seed", range(15))
def test_costs_and_rules_about_columns(seed: int) -> None:
    """Cost matrices, costs of samples, class weights, forbidden columns and pairs, a least weight of leaves."""
    rng = np.random.default_rng(1000 + seed)
    n, depth = int(rng.integers(3, 10)), int(rng.integers(1, 4))
    table, splits = random_table(rng, n, 3)
    table.columns = ["a", "b", "c"]
    y = rng.integers(0, 3, n)
    y[:3] = [0, 1, 2]
    w = rng.random(n) + 0.1
    kind = seed % 3
    costs = None
    if kind == 0:
        matrix = rng.integers(0, 5, (3, 3)).astype(float)
        goal: dict[str, Any] = {"objective": CostMatrix(matrix)}
        gains = -matrix[y] * (w / w.sum())[:, None]
    elif kind == 1:
        costs = rng.integers(0, 4, (n, 3)).astype(float)
        goal = {"objective": InstanceCosts()}
        gains = -costs * (w / w.sum())[:, None]
    else:
        factor = {0: 1.0, 1: 3.0, 2: 0.5}
        goal = {"class_weight": factor}
        own = w * np.array([factor[k] for k in y.tolist()])
        gains = np.zeros((n, 3))
        gains[np.arange(n), y] = own / own.sum()
    rules: list[Any] = [ForbiddenPairs([("a", "b")]), MinLeafWeight(share=0.15), MaxLeaves(4)]
    if seed % 2:
        rules.append(ForbiddenFeatures(["c"]))
        splits = [split for split in splits if split[0] != 2]
    apart = frozenset([frozenset((0, 1))])
    best = best_value(splits, gains, 0.01, depth, counts=w, least=0.15 * w.sum() - 1e-9, most_leaves=4, apart=apart)
    model = OptimalTreeClassifier(depth, 0.01, constraints=rules, **goal)
    fitted(model, table, y, sample_weight=w, costs=costs)
    check(model, best)
    assert all(report.slack >= 0 for report in model.constraints_)


def test_columns_may_have_the_names_that_features_have_by_default() -> None:
    """Named x1 and x0 in this order, forbidding one forbade both."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3))
    y = (values[:, 0] + values[:, 1] > 0).astype(int)
    found = []
    for names in (["x1", "x0", "c"], ["p", "q", "c"]):
        rule = ForbiddenFeatures(names[:1])
        model = OptimalTreeClassifier(3, 0.002, constraints=[rule]).fit(pd.DataFrame(values, columns=names), y)
        assert model.result_.stats["decided_by"] == "search over every split"
        found.append(model.objective_)
    assert found[0] == found[1]


@dataclass(frozen=True)
class ManyRows(Constraint, BoundConstraint):
    """Every leaf receives at least this number of rows; rows with weight zero count."""

    least: int
    dataset: BinaryDataset | None = None
    name = "many rows"

    def bind(self, dataset: BinaryDataset) -> ManyRows:
        return ManyRows(self.least, dataset)

    def violation(self, tree: DecisionTree) -> float:
        assert self.dataset is not None
        return self.least - min(int((tree.apply(self.dataset.X) == leaf).sum()) for leaf in tree.leaves.tolist())

    @property
    def traits(self) -> Traits:
        assert self.dataset is not None
        return Traits(local=LocalRules.leaves(np.ones(self.dataset.n_samples), self.least), reads={"rows"})


@pytest.mark.parametrize("weightless", [False, True])
def test_a_rule_of_ones_own_about_leaves(weightless: bool) -> None:
    """It is kept over every split, unless it counts rows that the search does not have."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 3))
    y = (values[:, 0] * values[:, 1] > 0).astype(int)
    weights = np.ones(200)
    weights[:5] = 0.0 if weightless else 1.0
    model = OptimalTreeClassifier(2, 0.002, constraints=[ManyRows(40)]).fit(values, y, sample_weight=weights)
    assert (model.result_.stats["decided_by"] == "search over every split") is not weightless
    assert model.status_ == "optimal"
    leaves, sizes = np.unique(model.apply(values), return_counts=True)
    assert sizes.min() >= 40 and len(leaves) > 1


# ---------------------------------------------------------------- orders of a table


def test_a_column_without_values_in_the_only_row_of_positive_weight() -> None:
    """Its answers are the same in every row that counts: there is no split."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Series([None, None, False], dtype=object)})
    model = fitted(OptimalTreeClassifier(2, 0.1), table, [1, 1, 0], sample_weight=[2.0, 0.0, 0.0])
    assert model.status_ == "optimal" and model.get_n_leaves() == 1
    orders = TableOrders.of(table, np.array([2.0, 0.0, 0.0]), missing="category", ignored=frozenset())
    assert orders is not None and not orders.orders


def test_every_cut_of_an_order_is_a_condition_that_separates_its_rows() -> None:
    """Also between two neighbouring floats, and where values are missing."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        table, _ = random_table(rng, 9, 3)
        orders = TableOrders.of(table, np.ones(9), missing="category", ignored=frozenset())
        assert orders is not None
        values = {column.index: column.values for column in orders.columns}
        for order in orders.orders:
            for rank in range(order.n_cuts):
                condition, right = order.condition_of(rank)
                answers = condition.holds(values[order.column])
                assert (answers == ((order.ranks > rank) == right)).all()
            if order.missing:
                assert missing_values(values[order.column]).any()


# ---------------------------------------------------------------- depth


def test_no_depth_limit_is_proven_and_says_how_deep_it_looked() -> None:
    X, y = load_wine(return_X_y=True)
    free = OptimalTreeClassifier(None, 0.02).fit(X, y)
    depth = free.result_.stats["searched_depth"]
    assert free.status_ == "optimal" and free.proof_.endswith(f"any depth (searched to depth {depth})")
    deeper = OptimalTreeClassifier(depth + 1, 0.02).fit(X, y)
    assert free.objective_ == deeper.objective_ and free.get_depth() <= depth
    assert OptimalTreeClassifier.from_json(free.to_json()).proof_ == free.proof_


def test_no_depth_limit_needs_another_limit() -> None:
    """With nothing that bounds the depth: an error that names the argument. A limit on leaves bounds it."""
    X, y = load_wine(return_X_y=True)
    with pytest.raises(InvalidInputError, match="max_depth=None needs a leaf_penalty above 0 or a limit on leaves"):
        OptimalTreeClassifier(None, 0.0).fit(X, y)
    model = OptimalTreeClassifier(None, 0.0, max_leaf_nodes=3).fit(X, y)
    assert model.status_ == "optimal" and model.get_n_leaves() == 3
    with pytest.raises(InvalidInputError, match="max_depth=None needs rows in memory, an objective that is a sum"):
        OptimalTreeClassifier(None, 0.1, objective="f1").fit(X, y == 0)
    with pytest.raises(InvalidInputError, match="max_depth must be a whole number, got 'deep'"):
        OptimalTreeClassifier("deep").fit(X, y)


def test_binary_features_without_a_depth_limit() -> None:
    """With a binary table, and with an encoder of one's own."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (40, 5))
    y = (X[:, 0] ^ X[:, 1] ^ X[:, 2]) + 0
    for encoder in ("auto", None):
        model = OptimalTreeClassifier(None, 0.01, encoder=encoder).fit(X, y)
        assert model.status_ == "optimal" and model.get_depth() == 3 and model.score(X, y) == 1.0
        assert model.objective_ == pytest.approx(1 - 0.08)


def test_deeper_is_never_worse() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    found = [OptimalTreeClassifier(depth, 0.005, time_limit=20).fit(X, y).objective_ for depth in range(4)]
    assert found == sorted(found)


# ---------------------------------------------------------------- limits of time, Ctrl-C, gap


def hard() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((1500, 30)), rng.integers(0, 2, 1500)


@pytest.mark.parametrize("seconds", [0.0, 1e-6, 0.05, 1.0])
def test_a_tree_is_at_hand_at_every_time_limit(seconds: float) -> None:
    X, y = hard()
    with pytest.warns(ConvergenceWarning):
        model = OptimalTreeClassifier(4, 0.0, time_limit=seconds).fit(X, y)
    assert model.status_ == "time_limit" and model.exact_
    assert max(y.mean(), 1 - y.mean()) <= model.objective_ <= model.bound_ <= 1
    assert model.score(X, y) == pytest.approx(model.objective_)
    assert "over all splits of the table" in model.proof_


def test_a_gap_ends_the_search() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = OptimalTreeClassifier(3, 0.01, solver=Solver(gap=0.05)).fit(X, y)
    assert model.gap_ <= 0.05 and model.status_ in ("gap_limit", "optimal")


def test_progress_hears_the_rows_of_the_history() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    rows = Rows()
    model = OptimalTreeClassifier(3, 0.01, progress=rows).fit(X, y)
    assert len(rows) >= 3 and rows[-1] == model.result_.history[-1]
    bounds, values = [row.bound for row in rows], [row.objective for row in rows]
    assert bounds == pytest.approx(sorted(bounds, reverse=True)) and values == pytest.approx(sorted(values))


# ---------------------------------------------------------------- bad input


def test_a_rule_that_no_leaf_keeps() -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.raises(NoTreeError, match="over all splits of the table satisfies"):
        OptimalTreeClassifier(2, 0.01, constraints=[MinLeafWeight(amount=1000.0)]).fit(X, y)


def test_all_values_equal() -> None:
    model = fitted(OptimalTreeClassifier(), np.ones((20, 3)), np.arange(20) % 2)
    assert model.status_ == "optimal" and model.get_n_leaves() == 1 and model.exact_


def test_infinite_values_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="infinite value"):
        OptimalTreeClassifier().fit([[1.0], [np.inf]], [0, 1])


def test_one_split_of_many_rows_needs_no_feature_per_threshold() -> None:
    """Depth one on 10,000 rows of two numbers: 19,998 thresholds, of which the fitted encoder asks one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 2))
    y = X[:, 0] + rng.normal(size=10_000) > 0
    model = OptimalTreeClassifier(1, 0.0).fit(X, y)
    assert model.status_ == "optimal"
    assert model.exact_
    assert len(model.encoder_.conditions_) == 1


@pytest.mark.slow
def test_a_million_distinct_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.permutation(1_000_000) / 7.0
    y = (x >= 100_000) & (x < 120_000)
    model = OptimalTreeClassifier(2, 0.001, time_limit=60).fit(x[:, None], y)
    assert model.status_ == "optimal" and model.score(x[:, None], y) == 1.0 and model.get_n_leaves() == 3


def test_a_penalty_beyond_all_scores() -> None:
    X, y = load_wine(return_X_y=True)
    model = fitted(OptimalTreeClassifier(3, 1e9), X, y)
    assert model.get_n_leaves() == 1 and model.status_ == "optimal"


# ---------------------------------------------------------------- bounds over every split, where splits are chosen


def outcomes(splits: list[Any], y: np.ndarray, depth: int) -> set[tuple[int, int, int, int]]:
    """(right positives, right negatives, leaves) of every tree: sets of rows, two classes."""

    @cache
    def below(rows: frozenset[int], depth: int) -> frozenset[tuple[int, int, int]]:
        positives = sum(int(y[row]) for row in rows)
        found = {(positives, 0, 1), (0, len(rows) - positives, 1)}
        for _, side in splits if depth else ():
            one, two = rows & side, rows - side
            if one and two:
                for a in below(one, depth - 1):
                    found |= {(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for b in below(two, depth - 1)}
        return frozenset(found)

    return set(below(frozenset(range(len(y))), depth))


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_over_every_split_holds_under_limits(seed: int) -> None:
    """Recall and specificity of at least something, few quantiles: no tree over any split exceeds `table_bound_`."""
    rng = np.random.default_rng(2000 + seed)
    n, depth = int(rng.integers(6, 11)), 1 + seed % 2
    table, splits = random_table(rng, n, 2)
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    recall, specificity = rng.choice([0.3, 0.5, 0.8, 1.0], 2)
    penalty = 0.02
    n_yes, n_no = int(y.sum()), int((1 - y).sum())
    values = [
        (a + b) / n - penalty * leaves
        for a, b, leaves in outcomes(splits, y, depth)
        if a >= recall * n_yes - 1e-9 and b >= specificity * n_no - 1e-9
    ]
    best = max(values, default=-math.inf)
    limits = [Recall(1, at_least=float(recall)), Specificity(1, at_least=float(specificity))]
    encoder = TableEncoder(QuantileThresholdEncoder(2))
    model = OptimalTreeClassifier(depth, penalty, encoder=encoder, constraints=limits)
    try:
        fitted(model, table, y)
    except NoTreeError as error:
        assert best == -math.inf or "other splits may" in str(error)
        return
    assert best > -math.inf
    bound = model.table_bound_
    assert bound is not None and model.objective_ <= best + 1e-9 <= bound + 2e-9
    if model.exact_:
        assert model.objective_ == pytest.approx(best) and "chosen" not in model.proof_
    else:
        assert f"better by {bound - model.objective_:.4g} at most" in model.proof_
        assert OptimalTreeClassifier.from_json(model.to_json()).proof_ == model.proof_


def test_an_encoder_of_ones_own_gets_the_bound_too() -> None:
    X, y = load_wine(return_X_y=True)
    best = OptimalTreeClassifier(2, 0.01).fit(X, y)
    model = OptimalTreeClassifier(2, 0.01, encoder=QuantileThresholdEncoder(3)).fit(X, y)
    assert model.status_ == "optimal" and not model.exact_
    assert model.objective_ < best.objective_ <= model.table_bound_ + 1e-9
    assert best.table_bound_ == best.bound_


def test_tables_search_columns_of_few_values() -> None:
    """At depth four the tables of binary features are many times faster on them; numbers are searched as orders."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 30))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(300) < 0.1)
    searched = {
        name: fitted(OptimalTreeClassifier(depth, 0.02), table, y).result_.stats["decided_by"]
        for name, table, depth in (("few", (X > 0.5) * 1, 4), ("numbers", X[:, :3], 4))
    }
    assert searched["few"] != "search over every split"
    assert searched["numbers"] == "search over every split"


# ---------------------------------------------------------------- paths and frontiers of a table


@pytest.mark.parametrize("tables", [True, False])
def test_a_path_is_a_classifier_per_penalty(tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as if fitted alone, by either search; the classifier itself stays as it is."""
    monkeypatch.setattr(every_split, "_suits_tables", lambda model, orders: tables and model.max_depth is not None)
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    penalties = [0.2, 0.005, 0.05]
    model = OptimalTreeClassifier(2, min_samples_leaf=5)
    found = model.path(X, y, leaf_penalties=penalties)
    assert not hasattr(model, "tree_") and [each.leaf_penalty for each in found] == penalties
    for each in found:
        alone = fitted(OptimalTreeClassifier(2, each.leaf_penalty, min_samples_leaf=5), X, y)
        assert each.objective_ == pytest.approx(alone.objective_) and each.status_ == "optimal" and each.exact_
        right = each.score(X, y) - each.leaf_penalty * each.get_n_leaves()
        assert right == pytest.approx(each.objective_)
    with pytest.raises(InvalidInputError, match="leaf_penalties must be finite"):
        model.path(X, y, leaf_penalties=[-1.0])


@pytest.mark.parametrize("tables", [True, False])
def test_a_frontier_is_a_classifier_per_number_of_leaves(tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best score for each number of leaves, by either search."""
    monkeypatch.setattr(every_split, "_suits_tables", lambda model, orders: tables and model.max_depth is not None)
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    found = OptimalTreeClassifier(2).frontier(X, y)
    assert len(found) == 4 and [each.max_leaf_nodes for each in found] == [1, 2, 3, 4]
    for leaves, each in enumerate(found, start=1):
        alone = fitted(OptimalTreeClassifier(2, 0.0, max_leaf_nodes=leaves), X, y)
        assert each.objective_ == pytest.approx(alone.objective_) and each.status_ == "optimal"
        assert each.score(X, y) == pytest.approx(each.objective_) and each.get_n_leaves() <= leaves
    assert len(OptimalTreeClassifier(2, max_leaf_nodes=3).frontier(X, y)) == 3
    assert len(OptimalTreeClassifier(None, max_leaf_nodes=3).frontier(X, y)) == 3
    with pytest.raises(InvalidInputError, match="max_depth=None needs max_leaf_nodes"):
        OptimalTreeClassifier(None).frontier(X, y)
    with pytest.raises(InvalidInputError, match="couples subtrees"):
        OptimalTreeClassifier(2, constraints=[Recall(0, at_least=0.5)]).frontier(X, y)


def test_splits_lie_in_the_middle_of_their_rows() -> None:
    """Of the cuts that separate the rows of a node alike, the one in the middle: as CART does."""
    x = np.array([0.0, 10.0, -5.0, 1.0, 2.0, 3.0, 4.0, 15.0])
    z = np.array([0.0, 0, 1, 1, 1, 1, 1, 1])
    y = np.array([0, 1, 2, 2, 2, 2, 2, 2])
    model = OptimalTreeClassifier(2, 0.01).fit(np.c_[x, z], y)
    assert model.score(np.c_[x, z], y) == 1.0
    assert model.encoder_.get_feature_names_out().tolist() == ["x0 >= 4", "x1 = 1"]  # between 3 and 4, not 0 and 1


def test_near_optimal_trees_say_that_splits_were_chosen() -> None:
    X, y = load_wine(return_X_y=True)
    encoder = QuantileThresholdEncoder(3)
    trees = OptimalTreeClassifier(1, 0.01, encoder=encoder).near_optimal(X, y, within=0.01)
    assert f"over {len(encoder.fit(X).conditions_)} chosen splits of the table" in trees.summary
    assert "chosen" not in OptimalTreeClassifier(1, 0.01).near_optimal(X, y, within=0.01).summary


def generated(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, ((X[:, 0] > 0.3) ^ (X[:, 1] < -0.2)).astype(int)


def test_greedy_trees_of_short_searches_are_grown_on_a_sample() -> None:
    """Growing them is not interrupted, so the sample shrinks with the time limit; a tree is found all the same."""
    X, y = generated(20_000, 12)
    model = OptimalTreeClassifier(3, 0.001)
    search = every_split.TableSearch.of(model, cast(CheckedRows, model._source(X, y, (None, None, None))))
    assert search is not None
    sizes = [GreedyTrees(search.space, 1, seconds)._most_cells for seconds in (None, 1000.0, 1.0, 0.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > X.size > sizes[-1] > 0
    for greedy in (GreedyTrees(search.space), GreedyTrees(search.space, 1, 0.0)):
        assert greedy.is_sampled == (greedy.seconds == 0.0)
        assert max(search.space.objective(tree, 0.001) for tree in greedy.pruned(0.001)) > 0.75


@pytest.mark.parametrize("seed", range(48))
def test_searches_that_start_from_a_sample_are_optimal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving_every_split, "_LARGE", 1)
    monkeypatch.setattr(solving_every_split, "_SAMPLE", 9)
    check_case(seed)


def test_a_search_that_is_stopped_has_the_tree_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search over all rows is stopped before it begins."""
    X, y = generated(20_000, 12)
    model = OptimalTreeClassifier(2, 0.001)
    search = every_split.TableSearch.of(model, cast(CheckedRows, model._source(X, y, (None, None, None))))
    assert search is not None
    monkeypatch.setattr(solving_every_split.EverySplitRun, "_is_enough", lambda run: True)
    values = []
    for least in (10**9, 1):
        monkeypatch.setattr(solving_every_split, "_LARGE", least)
        outcome = search.space.solve(0.001, SolveOptions(gap=0.1), Clock(time.perf_counter(), None))
        assert outcome.objective == pytest.approx(search.space.objective(cast(OrderedTree, outcome.tree), 0.001))
        values.append(outcome.objective)
    assert values[0] < 0.8 < 0.98 < values[1] <= outcome.bound
