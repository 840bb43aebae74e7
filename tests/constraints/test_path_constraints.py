"""Groups of columns on a path, the first split and the order of splits: against recursion over all trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracles.path_rules import Path, best_on_paths

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV, Tally
from accel_oct.constraints import FirstSplit, InteractionGroups, MaxLeaves, MinLeafWeight, SplitOrder
from accel_oct.constraints.paths import pairs_suffice
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError

CYCLE = [[0, 1], [1, 2], [0, 2]]


def tables(seed: int, n_features: int = 5, n_rows: int = 60, classes: int = 2) -> tuple[Any, Any, Any]:
    """Random rows with many ties: few features that repeat, and classes that follow three of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, n_features))
    X[:, -1] = X[:, 0] if rng.random() < 0.3 else 1 - X[:, -1]
    y = (X[:, 0] + X[:, 1] * X[:, 2] + X[:, -2] + (rng.random(n_rows) < 0.15)) % classes
    y[:classes] = np.arange(classes)
    weight = rng.integers(0, 4, n_rows) if rng.random() < 0.5 else np.ones(n_rows)
    weight[:classes] = 1
    return X, y, weight


def random_groups(rng: np.random.Generator, n: int) -> list[list[int]]:
    return [np.flatnonzero(rng.random(n) < 0.5).tolist() for _ in range(int(rng.integers(0, 5)))]


def in_a_group(groups: list[list[int]], n: int) -> Any:
    """Whether a path lies in a group, in plain sets; columns in no group form one more."""
    sets = [set(group) for group in groups]
    sets.append(set(range(n)) - set().union(*sets))
    return lambda path: any(set(path) <= group for group in sets)


def random_rule(rng: np.random.Generator, n: int, kind: int) -> tuple[Any, Any]:
    """A constraint of one of six kinds, and what it says of a path."""
    if kind == 0:
        chosen = np.flatnonzero(rng.random(n) < 0.4).tolist() or [0]
        return FirstSplit(chosen), lambda path: path[0] in chosen
    if kind == 1:
        mixed = rng.permutation(n).tolist()
        before, after = mixed[: n // 2], mixed[n // 2 : n - 1]
        return SplitOrder(
            before, after
        ), lambda path: not any(path[i] in after and path[j] in before for i, j in combinations(range(len(path)), 2))
    if kind in (2, 3):
        words = {1: "no_interactions", 2: "pairwise"}
        return InteractionGroups(words[kind - 1]), lambda path: len(set(path)) <= kind - 1
    groups = random_groups(rng, n) if kind == 4 else CYCLE
    return InteractionGroups(groups), in_a_group(groups, n)


def check(seed: int, depths: Sequence[int] = (2, 3, 3), **options: Any) -> str:
    """Solve a random instance; status, objective and bound against the recursion."""
    rng = np.random.default_rng([seed, 1])
    X, y, weight = tables(seed, classes=int(rng.integers(2, 4)))
    depth, penalty = int(rng.choice(depths)), float(rng.choice([0.0, 0.01, 0.03]))
    constraint, allows = random_rule(rng, X.shape[1], seed % 6)
    data = BinaryDataset.from_arrays(X, y, weight)
    best = best_on_paths(data, depth, penalty, allows)
    result = accel_oct.solve(
        X, y, sample_weight=weight, max_depth=depth, leaf_penalty=penalty, constraints=[constraint], **options
    )
    assert result.status == "optimal" and result.objective == pytest.approx(best, abs=1e-9), (seed, constraint)
    assert all(row.bound >= best - 1e-9 and row.objective <= best + 1e-9 for row in result.history), seed
    for leaf in result.tree.leaves.tolist():
        path: Path = tuple(feature for feature, _ in result.tree.path(leaf))
        assert all(allows(path[: end + 1]) for end in range(len(path))), seed
    return str(result.stats["decided_by"])


def test_solves_agree_with_recursion_over_all_trees() -> None:
    """Every kind of rule at depth two and three, decided by the tables and by enumeration."""
    assert {check(seed) for seed in range(18)} >= {"enumeration", "root by root", "subtree bounds"}


@pytest.mark.long
def test_many_solves_agree_with_recursion_over_all_trees() -> None:
    for seed in range(18, 1500):
        check(seed)


@pytest.mark.slow
def test_branch_and_cut_agrees_with_recursion_over_all_trees() -> None:
    """The rows of the master, where neither tables nor the enumeration decide."""
    for seed in range(7000, 7012):
        check(seed, depths=(1, 2), config="baseline")


# ---------------------------------------------------------------- groups and pairs


def test_pairs_suffice_exactly_if_every_clique_lies_in_a_group() -> None:
    """The criterion agrees with the definition, over all sets of columns."""
    rng, found = np.random.default_rng(0), set()
    for _ in range(400):
        n, m = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        groups = rng.random((m, n)) < rng.choice([0.4, 0.6, 0.8])
        lies = [[bool(groups[:, list(s)].all(axis=1).any()) for s in combinations(range(n), k)] for k in range(n + 1)]
        pairs = {pair for pair, good in zip(combinations(range(n), 2), lies[2] if n > 1 else [], strict=True) if good}
        exact = all(
            good
            for k in range(3, n + 1)
            for good, s in zip(lies[k], combinations(range(n), k), strict=True)
            if set(combinations(s, 2)) <= pairs
        )
        assert pairs_suffice(groups) == exact, groups
        found.add(exact)
    assert found == {True, False}


@pytest.mark.parametrize(
    ("groups", "local"),
    [
        ([[0, 1], [2, 3]], True),
        ([[0, 1], [1, 2]], True),
        (CYCLE, False),
        ([*CYCLE, [0, 1, 2, 3]], True),
        ("no_interactions", True),
        ("pairwise", False),
        ([], True),
    ],
)
def test_groups_are_local_where_pairs_say_all(groups: Any, local: bool) -> None:
    """A relaxation by pairs is never declared as the constraint itself."""
    X, y, _ = tables(0)
    traits = InteractionGroups(groups).bind(BinaryDataset.from_arrays(X, y)).traits
    assert (traits.local is not None) == local and (traits.relaxed is None) == local


def test_pairs_alone_would_allow_a_path_in_no_group() -> None:
    """With the groups AB, BC, AC a tree on A, B, C is better, and is not the answer."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 2)
    y = X.sum(axis=1) % 2
    free = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0)
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=[InteractionGroups(CYCLE)])
    assert free.objective == 1.0 and result.status == "optimal" and result.objective == 0.5


# ---------------------------------------------------------------- tables of the user


def frame(seed: int = 0, n: int = 150) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.normal(30, 10, n).round(1),
            "debt": rng.integers(0, 9, n),
        }
    )
    y = ((table.age > 40) & (table.income > 30)) | ((table.debt > 5) & (table.sex == "f")) ^ (rng.random(n) < 0.1)
    return table, np.where(y, "yes", "no")


def paths(model: Any) -> list[list[str]]:
    """Columns of the splits on every path, from the root on."""
    tree, conditions = model.tree_.tree, model.encoder_.conditions_
    names = model.feature_names_in_
    return [[names[conditions[f].column] for f, _ in tree.path(leaf)] for leaf in tree.leaves.tolist()]


def test_interaction_cst_names_columns_and_is_exact_over_every_split() -> None:
    """Names and positions mean the same; the search over every split applies disjoint groups."""
    X, y = frame()
    groups = [["age", "income"], ["debt"]]
    named = OptimalTreeClassifier(3, 0.005, interaction_cst=groups).fit(X, y)
    placed = OptimalTreeClassifier(3, 0.005, interaction_cst=[[0, 2], [3]]).fit(X, y)
    assert named.exact_ and named.status_ == "optimal" and named.objective_ == placed.objective_
    assert all(set(path) <= {"age", "income"} or len(set(path)) < 2 for path in paths(named))
    stated = OptimalTreeClassifier(3, 0.005, constraints=[InteractionGroups(groups)]).fit(X, y)
    free = OptimalTreeClassifier(3, 0.005).fit(X, y)
    assert stated.objective_ == named.objective_ < free.objective_
    assert len(named.constraints_) == 1
    unnamed = OptimalTreeClassifier(3, 0.005, interaction_cst=[[0, 1], [2]]).fit(X[["age", "income", "debt"]].values, y)
    assert unnamed.status_ == "optimal" and unnamed.exact_


def test_overlapping_groups_are_searched_over_chosen_splits() -> None:
    X, y = frame()
    model = OptimalTreeClassifier(2, 0.01, interaction_cst="pairwise", min_samples_leaf=5).fit(X, y)
    assert model.status_ == "optimal" and all(len(set(path)) <= 2 for path in paths(model))
    deep = OptimalTreeClassifier(3, 0.01, constraints=[SplitOrder("sex", ["age", "income"])]).fit(X, y)
    assert deep.status_ == "optimal" and not deep.exact_
    assert all("sex" not in path[1:] or set(path[: path.index("sex")]) <= {"sex", "debt"} for path in paths(deep))
    first = OptimalTreeClassifier(2, 0.01, constraints=[FirstSplit("debt")]).fit(X, y)
    assert first.status_ == "optimal" and all(path[:1] in ([], ["debt"]) for path in paths(first))


def test_cross_validation_and_clones_keep_the_groups() -> None:
    X, y = frame(n=60)
    model = OptimalTreeClassifierCV(2, [0.02], cv=2, interaction_cst="no_interactions").fit(X, y)
    assert model.best_estimator_.interaction_cst == "no_interactions"
    assert all(len(set(path)) <= 1 for path in paths(model.best_estimator_))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("all", "interaction_cst must be 'pairwise'"),
        ([["age", "hight"]], "interaction_cst: X has no column 'hight'"),
        ([[0, 9]], "interaction_cst: X has no column 9"),
        ([0, 1], "interaction_cst must hold lists of columns"),
        (7, "interaction_cst must hold lists"),
    ],
)
def test_errors_of_interaction_cst_name_the_argument(value: Any, message: str) -> None:
    X, y = frame(n=30)
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier(2, interaction_cst=value).fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InteractionGroups("some"), "InteractionGroups: groups must be"),
        (lambda: InteractionGroups([0]), r"InteractionGroups: groups\[0\] must be a list"),
        (lambda: InteractionGroups([["z"]]), "InteractionGroups: groups: no column has the name 'z'"),
        (lambda: SplitOrder(0, [0, 1]), "before and after have 'x0' in common"),
        (lambda: SplitOrder(9, 0), "SplitOrder: before: there is no column 9"),
        (lambda: FirstSplit([]), "FirstSplit: columns must not be empty"),
        (lambda: FirstSplit(1.5), "FirstSplit: columns must be a list"),
    ],
)
def test_errors_of_constraints_name_the_argument(make: Any, message: str) -> None:
    X, y, _ = tables(0)
    with pytest.raises(InvalidInputError, match=message):
        accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.0, constraints=[make()])


# ---------------------------------------------------------------- tallies, frontiers


def test_tallies_allow_the_same_trees() -> None:
    """Groups by tables, groups by enumeration, the first split and the order, on a tally as on rows."""
    for seed in range(4):
        X, y, weight = tables(seed)
        tally = Tally.of(X, y, depth=3, sample_weight=weight)
        for constraint in (
            *(InteractionGroups([[0, 1], [2, 3]]), InteractionGroups(CYCLE), FirstSplit([2, 4])),
            SplitOrder([1], [0, 2]),
        ):
            arguments: dict[str, Any] = {"max_depth": 3, "leaf_penalty": 0.01, "constraints": [constraint]}
            rows = accel_oct.solve(X, y, sample_weight=weight, **arguments)
            found = accel_oct.solve(tally, **arguments)
            assert rows.status == found.status == "optimal" and found.objective == pytest.approx(rows.objective)


def test_a_frontier_takes_groups_that_pairs_state() -> None:
    """The best tree of every size; groups beyond pairs are refused with their name."""
    X, y, weight = tables(3)
    groups = [[0, 1], [2, 3]]
    found = accel_oct.frontier(X, y, sample_weight=weight, max_depth=3, constraints=[InteractionGroups(groups)])
    best = best_on_paths(BinaryDataset.from_arrays(X, y, weight), 3, 0.01, in_a_group(groups, 5))
    assert found.best(0.01).objective == pytest.approx(best)
    with pytest.raises(InvalidInputError, match="paths within 4 groups"):
        accel_oct.frontier(X, y, max_depth=3, constraints=[InteractionGroups(CYCLE)])


def test_other_constraints_apply_too() -> None:
    """A limit on leaves and a least weight of leaves beside a rule on paths, at the root of a small tree."""
    X, y, _ = tables(5)
    data = BinaryDataset.from_arrays(X, y)
    for constraint in (InteractionGroups(CYCLE), FirstSplit([3, 4]), SplitOrder([0, 1], [2])):
        arguments: dict[str, Any] = {"max_depth": 3, "leaf_penalty": 0.0}
        more = [constraint, MaxLeaves(4), MinLeafWeight(samples=4)]
        result = accel_oct.solve(X, y, constraints=more, **arguments)
        assert result.status == "optimal" and result.tree.n_leaves <= 4
        assert result.tree.sample_counts(data)[np.isin(result.tree.nodes, result.tree.leaves)].min() >= 4
        alone = accel_oct.solve(X, y, constraints=more[:1], **arguments)
        assert result.objective <= alone.objective
