"""The phases of a solve: which run, what they leave behind, and what each may claim."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.constrained_solves import FewFeatures
from helpers.search_support import search_for

import accel_oct
from accel_oct.constraints import Linear, MaxLeaves
from accel_oct.data import BinaryDataset, binary_matrix
from accel_oct.data import dataset as dataset_module
from accel_oct.encoding import AutoEncoder
from accel_oct.estimators import fitted
from accel_oct.mip import AUTO, create_backend
from accel_oct.objectives import Accuracy
from accel_oct.solving.phases import IntegerProgram, LastStep, SingleLeaf, SubtreeTables, WarmStart
from accel_oct.solving.problem import Problem
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.tree import DecisionTree, decision_tree


class Recording:
    """A phase that notes that it ran, and ends the solve if told so."""

    def __init__(self, name: str, log: list[str], ends: Status | None = None, applies: bool = True) -> None:
        self.name = name
        self._log = log
        self._ends: Status | None = ends
        self._applies = applies

    def applies(self, search: Search) -> bool:
        return self._applies

    def run(self, search: Search) -> Status | None:
        self._log.append(self.name)
        return self._ends


def test_phases_run_in_order_until_one_ends_the_solve() -> None:
    """Those that do not apply are passed over; what was not proven is not called optimal."""
    log: list[str] = []
    phases = [
        Recording("a", log),
        Recording("b", log, applies=False),
        Recording("c", log, "time_limit"),
        Recording("d", log),
    ]
    result = search_for().solve(phases)
    assert log == ["a", "c"] and result.status == "time_limit" and result.bound > result.objective
    assert result.stats["decided_by"] == "nothing: not proven"
    assert search_for().solve([]).status == "gap_limit"


def test_the_first_proof_ends_the_solve() -> None:
    """The phase that finds it is named."""

    class Proving(Recording):
        def run(self, search: Search) -> Status | None:
            search.tighten(search.incumbent.value)
            return super().run(search)

    log: list[str] = []
    result = search_for().solve([Proving("first", log), Recording("second", log)])
    assert log == ["first"] and result.status == "optimal" and result.stats["decided_by"] == "first"


def test_a_bound_never_rises() -> None:
    """Whatever a phase reports later."""
    search = search_for()
    search.tighten(30.0)
    search.tighten(35.0)
    assert search.bound == 30.0
    bounds = [row.bound for row in search.history]
    assert bounds == sorted(bounds, reverse=True)


def test_when_phases_apply() -> None:
    """Tables by their switch; the last step only where tables can prove something; a leaf where nothing else can be."""
    assert SubtreeTables().applies(search_for()) and not SubtreeTables().applies(search_for(preset="paper"))
    assert LastStep().applies(search_for()) and LastStep().applies(search_for(MaxLeaves(3)))
    assert not LastStep().applies(search_for(FewFeatures(2))) and not LastStep().applies(
        search_for(FewFeatures(2), MaxLeaves(3))
    )
    assert SingleLeaf().applies(search_for(max_depth=0)) and not SingleLeaf().applies(search_for())
    assert WarmStart().applies(search_for(FewFeatures(1)))


def test_tables_bound_what_they_cannot_prove() -> None:
    """Under a constraint the best tree of all is a bound; the incumbent stays a tree that satisfies the constraint."""
    free, limited = search_for(), search_for(FewFeatures(1))
    SubtreeTables().run(free)
    SubtreeTables().run(limited)
    assert free.is_proven and limited.bound == free.incumbent.value
    assert limited.incumbent.tree is not None and len(limited.incumbent.tree.features_used) <= 1
    assert max(row.objective for row in limited.history) <= limited.objective


def test_the_choice_of_auto_is_named_where_there_is_only_one() -> None:
    """With a single backend at hand too, the result says which one it was."""
    search = search_for(preset="baseline")
    search.backend_name = AUTO
    result = search.solve([IntegerProgram([create_backend("highs")])])
    assert result.status == "optimal" and result.backend == "highs"


def test_most_leaves() -> None:
    """Some optimum has no empty leaf, unless a constraint asks for leaves."""
    dataset = BinaryDataset.from_arrays([[0], [1], [1]], [0, 1, 0])
    assert Problem.of(Accuracy().bind(dataset), 4, 0.0, None).most_leaves == 3
    assert Problem.of(Accuracy().bind(dataset), 4, 0.0, [MaxLeaves(5)]).most_leaves == 3
    five = Linear(np.zeros((3, 2)), leaves=1.0, lower=5.0)
    assert Problem.of(Accuracy().bind(dataset), 4, 0.0, [MaxLeaves(5), five]).most_leaves == 16


def test_statistics_are_a_plain_mapping() -> None:
    """Of numbers and words, whatever their types were on the way."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (40, 5)), rng.integers(0, 2, 40)
    for preset, keys in (("default", {"subtree_bounds"}), ("paper", {"benders", "path_bound", "solver", "polishing"})):
        stats = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config=preset).stats
        assert {"warm_start", "decided_by", *keys} <= stats.keys()
        for value in stats.values():
            assert isinstance(value, str) or all(isinstance(number, int | float) for number in value.values())


# ---------------------------------------------------------------- how often the data are looked at


def test_a_fit_validates_its_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The binary matrix is checked when the data set is made, and trusted from then on."""
    from sklearn.datasets import load_iris

    calls: list[str] = []
    really = binary_matrix.as_binary_matrix

    def counting(X: object, *, name: str = "X") -> np.ndarray:
        calls.append(name)
        return really(X, name=name)

    for module in (binary_matrix, dataset_module, decision_tree, fitted):
        monkeypatch.setattr(module, "as_binary_matrix", counting)
    X, y = load_iris(return_X_y=True)
    for preset in ("default", "paper"):
        calls.clear()
        accel_oct.OptimalTreeClassifier(2, config=preset, encoder=AutoEncoder(2)).fit(X, y)
        assert calls == ["encoder output"]


def test_a_data_set_is_taken_as_it_is() -> None:
    """In the place of X; what it holds already must not be given again."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (40, 5)), rng.integers(0, 2, 40)
    dataset = BinaryDataset.from_arrays(X, y)
    plain = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01)
    assert accel_oct.solve(dataset, max_depth=2, leaf_penalty=0.01).objective == plain.objective
    assert accel_oct.frontier(dataset, max_depth=2).best(0.01).objective == plain.objective
    for argument in ({"y": y}, {"sample_weight": np.ones(40)}):
        with pytest.raises(accel_oct.errors.InvalidInputError, match=next(iter(argument))):
            accel_oct.solve(dataset, max_depth=2, leaf_penalty=0.01, **argument)


def test_trusted_and_checked_predictions_agree() -> None:
    """`predictions`, `leaf_of` and `visits` of a data set are what `predict`, `apply` and `route` give for its X."""
    rng = np.random.default_rng(2)
    dataset = BinaryDataset.from_arrays(rng.integers(0, 2, (40, 2)), rng.integers(0, 2, 40))
    tree = DecisionTree(np.array([0, 1, -1, -1, -1, -1, -1]), np.array([-1, -1, 1, 0, 1, -1, -1]))
    assert np.array_equal(tree.predictions(dataset.X), tree.predict(dataset.X))
    assert np.array_equal(tree.leaf_of(dataset.X), tree.apply(dataset.X))
    assert np.array_equal(tree.visits(dataset.X, tree.topology.nodes), tree.route(dataset.X))
