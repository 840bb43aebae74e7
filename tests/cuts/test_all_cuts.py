"""All cuts at once keep an optimum: on thousands of small data sets rich in ties, with and without a solver.

The fast test needs no solver. It makes the path-bound cuts of *every* path that the data set allows, and asks whether
some optimal tree keeps all of them together with every equivalent-point row. With consistent tie-breaking the first
optimal tree of the library's order does; with inconsistent tie-breaking there are data sets on which none does, and two
such rules are tried to show that the test would notice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.path_support import all_paths, cache_for
from oracles.dynamic_programme import optimal_value
from oracles.enumeration import to_decision_tree
from oracles.instances import Instance, random_instance
from oracles.optimal_trees import n_leaves, optimal_trees

import accel_oct
from accel_oct.cuts.equivalent_points import EquivalentPointInequalities
from accel_oct.cuts.path_bound import PathBoundCuts
from accel_oct.data import BinaryDataset
from accel_oct.exact import DepthTwoSolver, Subtree, SubtreeCache
from accel_oct.formulation import Master
from accel_oct.mip import ModelArrays, Rows
from accel_oct.solving.config import BendersConfig, Config, EquivalentPointConfig, PathBoundConfig

#: Optimal trees that are looked at before a data set is given up as undecided.
MOST_TREES = 3000


def tied_instances(seed: int, count: int, max_depth: int = 4) -> Iterator[Instance]:
    """Random instances of depth two and more, with few features at depth four; every other one hides a tree."""
    rng = np.random.default_rng(seed)
    while count:
        depth = int(rng.integers(2, max_depth + 1))
        n_features = {2: 5, 3: 4, 4: 3}[depth]
        if count % 2:
            instance = hidden_tree_instance(rng, n_features)
        else:
            instance = random_instance(rng, max_samples=16, max_features=n_features, max_classes=3, max_depth=depth)
        if len(np.unique(instance.y)) > 1:
            count -= 1
            yield replace(instance, max_depth=depth)


def hidden_tree_instance(rng: np.random.Generator, n_features: int) -> Instance:
    """Classes that follow a parity or a cell of two or three features, which then appear twice or complemented.

    The best trees have several leaves and there are many of them: what nested and symmetric paths can disagree on.
    """
    n_base = int(rng.integers(2, n_features + 1))
    base = rng.random((int(rng.integers(8, 21)), n_base)) < 0.5
    used = base[:, rng.permutation(n_base)[:3]]
    n_classes = int(rng.integers(2, 4))
    cell = used @ (1 << np.arange(used.shape[1]))
    y = rng.integers(0, n_classes, 8)[cell] if rng.random() < 0.5 else used.sum(axis=1) % n_classes
    noisy = rng.random(y.size) < 0.1
    y = np.where(noisy, rng.integers(0, n_classes, y.size), y)
    X = base
    while X.shape[1] < n_features:
        column = X[:, rng.integers(n_base)]
        X = np.column_stack([X, column if rng.random() < 0.6 else ~column])
    weight = rng.integers(1, 4, y.size).astype(float) if rng.random() < 0.3 else None
    total = y.size if weight is None else weight.sum()
    return Instance(X[:, rng.permutation(n_features)], y, weight, float(rng.choice([0.25, 0.5, 1, 1, 2])) / total, 0)


def random_eqp(rng: np.random.Generator) -> EquivalentPointConfig:
    return EquivalentPointConfig(
        enabled=True,
        linking=str(rng.choice(["basic", "chain", "recursive"])),
        disaggregated=bool(rng.integers(2)),
        bounding=str(rng.choice(["basic", "group_selection"])),
        max_split_size=int(rng.integers(3)),
    )


# --- without a solver --------------------------------------------------------------------------------------


def keeps_an_optimum(instance: Instance, dataset: BinaryDataset, cache: SubtreeCache, seed: int = 0) -> bool | None:
    """Whether some optimal tree keeps every cut of every path, and every model row; None: too many trees to tell."""
    switches = random_eqp(np.random.default_rng(seed))
    master = Master(dataset, instance.max_depth, instance.leaf_price)
    EquivalentPointInequalities(master, switches)
    cuts = PathBoundCuts(master, cache, PathBoundConfig(bound=True, negative_samples=True, structure=True))
    rows = Rows.concatenate([cuts.rows(path) for path in all_paths(dataset.n_features, instance.max_depth)])
    arrays = ModelArrays.of(master.model)
    trees = optimal_trees(dataset, instance.max_depth, instance.leaf_price)
    for nested in itertools.islice(trees, MOST_TREES):
        x = master.lift(to_decision_tree(nested, instance.max_depth))
        assert arrays.is_feasible(x)  # equivalent-point rows hold at every tree
        if rows.violation(x).max(initial=0.0) <= 1e-9:
            return True
    return False if next(trees, None) is None else None


def check_all_kept(instances: Iterable[Instance]) -> None:
    for seed, instance in enumerate(instances):
        dataset = instance.dataset.merged() if seed % 2 else instance.dataset
        assert keeps_an_optimum(instance, dataset, cache_for(dataset), seed) is True, instance


@pytest.mark.slow
def test_all_cuts_together_keep_an_optimum() -> None:
    """All paths, nested and symmetric, all kinds of cuts, all kinds of ties."""
    check_all_kept(tied_instances(1, 300))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_all_cuts_together_keep_an_optimum_at_length(seed: int) -> None:
    """The same on ten times six hundred data sets."""
    check_all_kept(tied_instances(100 + seed, 600))


class LargestFeatureCache(SubtreeCache):
    """Breaks ties by the smallest feature on even paths and by the largest on odd ones: inconsistent."""

    def __init__(self, dataset: BinaryDataset) -> None:
        super().__init__(cache_for(dataset).solver)
        self._mirrored = DepthTwoSolver(dataset.X[:, ::-1], dataset.y, dataset.weights, dataset.n_classes)

    def lookup(self, literals, leaf_price, samples=None, *, max_depth=2) -> Subtree:
        literals = frozenset(literals)
        if len(literals) % 2 == 0:
            return super().lookup(literals, leaf_price, samples, max_depth=max_depth)
        subtree = self._mirrored.solve(self.solver.select(literals), leaf_price, max_depth=max_depth)
        feature = np.where(subtree.feature >= 0, self.solver.n_features - 1 - subtree.feature, -1)
        return replace(subtree, feature=feature, _predicted=self.solver._correct)


class MostLeavesCache(SubtreeCache):
    """Breaks ties by the order on even paths and by the largest number of leaves on odd ones: inconsistent."""

    def __init__(self, dataset: BinaryDataset) -> None:
        super().__init__(cache_for(dataset).solver)
        self._dataset = dataset

    def lookup(self, literals, leaf_price, samples=None, *, max_depth=2) -> Subtree:
        literals = frozenset(literals)
        subtree = super().lookup(literals, leaf_price, samples, max_depth=max_depth)
        if len(literals) % 2 == 0 or not subtree.samples.size:
            return subtree
        data, chosen = self._dataset, subtree.samples
        part = replace(data, X=data.X[chosen], y=data.y[chosen], weights=data.weights[chosen])
        largest = max(itertools.islice(optimal_trees(part, max_depth, leaf_price), 500), key=n_leaves)
        tree = to_decision_tree(largest, 2)
        score = subtree.value + leaf_price * tree.n_leaves
        return replace(subtree, score=score, feature=tree.feature, label=tree.label)


@pytest.mark.slow
@pytest.mark.parametrize("inconsistent", [LargestFeatureCache, MostLeavesCache])
def test_inconsistent_ties_are_noticed(inconsistent: type[SubtreeCache]) -> None:
    """The test above is able to fail: with another tie-break on every other level, data sets lose every optimum."""
    lost = 0
    for instance in tied_instances(2, 100):
        dataset = instance.dataset
        lost += keeps_an_optimum(instance, dataset, inconsistent(dataset)) is False
    assert lost > 0


# --- with a solver -----------------------------------------------------------------------------------------


def random_config(rng: np.random.Generator) -> Config:
    """Everything on in some variant; without heuristics half of the time, which would hide a lost optimum."""
    helped = bool(rng.integers(2))
    kinds = rng.permutation([True, bool(rng.integers(2)), bool(rng.integers(2))])
    strengthened = bool(rng.integers(4) == 0)
    return Config(
        merge_duplicates=bool(rng.integers(2)),
        warm_start="cart" if helped else "leaf",
        polish_warm_start=helped,
        polishing=helped,
        benders=BendersConfig(strengthened=strengthened, fractional=bool(rng.integers(2))),
        equivalent_points=random_eqp(rng),
        path_bound=PathBoundConfig(
            enabled=True,
            bound=bool(kinds[0]),
            negative_samples=bool(kinds[1]),
            structure=bool(kinds[2]),
            paths=str(rng.choice(["all", "end_points"])),
            fractional=bool(rng.integers(2)),
            empty_path=bool(rng.integers(2)),
        ),
    )


def check_solves(backend: str, seed: int, count: int, max_depth: int = 4) -> None:
    skip_unless_available(backend)
    rng = np.random.default_rng(seed)
    for instance in tied_instances(seed, count, max_depth):
        config = Config.preset("paper") if rng.random() < 0.2 else random_config(rng)
        solved = accel_oct.solve(
            instance.X,
            instance.y,
            max_depth=instance.max_depth,
            leaf_penalty=instance.leaf_penalty,
            sample_weight=instance.sample_weight,
            solver=backend,
            config=config,
        )
        dataset = instance.dataset
        best = optimal_value(dataset, instance.max_depth, instance.leaf_price) / dataset.total_weight
        assert solved.status == "optimal", (instance, config)
        assert solved.objective == pytest.approx(best, abs=1e-9), (instance, config)
        assert solved.tree.score(dataset) / dataset.total_weight - instance.leaf_penalty * solved.tree.n_leaves == (
            pytest.approx(solved.objective, abs=1e-12)
        )


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "count"), [("highs", 30), ("gurobi", 60)])
def test_solves_with_all_cuts_are_optimal(backend: str, count: int) -> None:
    """Every variant of everything, against the dynamic programme."""
    check_solves(backend, 3, count, max_depth=3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("backend", ["highs", "gurobi"])
def test_solves_with_all_cuts_are_optimal_at_length(backend: str, seed: int) -> None:
    """The same on five thousand data sets per solver, up to depth four."""
    check_solves(backend, 1000 + seed, 200)
