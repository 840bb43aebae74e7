"""Equivalent-point inequalities: valid at every tree, detecting what they should, and as tight as promised."""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, random_instance
from scipy.optimize import linprog

import accel_oct
from accel_oct.cuts.equivalent_points import EquivalentPointConfig, EquivalentPointInequalities
from accel_oct.data import BinaryDataset
from accel_oct.data.equivalent_points import equivalent_point_sets
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master
from accel_oct.mip import ModelArrays, Rows
from accel_oct.solving.config import Config
from accel_oct.tree import DecisionTree

VARIANTS = [
    (linking, disaggregated, bounding)
    for linking, disaggregated in [
        ("basic", False),
        ("chain", False),
        ("chain", True),
        ("recursive", False),
        ("recursive", True),
    ]
    for bounding in ("basic", "group_selection")
]
LINKINGS = [variant[:2] for variant in VARIANTS[::2]]


@dataclass
class Built:
    """A master with the inequalities, and the rows that they added."""

    master: Master
    component: EquivalentPointInequalities
    rows: Rows
    first_column: int

    @property
    def arrays(self) -> ModelArrays:
        return ModelArrays.of(self.master.model)

    @property
    def linked(self) -> np.ndarray:
        return np.flatnonzero(self.component.sets.split_sets[:, 0] >= 0)

    @cached_property
    def linking_rows(self) -> tuple[Rows, np.ndarray]:
        """The rows of H, and the place of the only positive entry of each: of the beta that it bounds."""
        theta = self.master.theta
        bounding = np.unique(
            self.rows.row_of_entry[(self.rows.columns >= theta.start) & (self.rows.columns < theta.stop)]
        )
        assert not any(name == "eqp_group" for name in self.master.model.blocks)
        rows = self.rows.take(np.setdiff1d(np.arange(self.rows.n_rows), bounding))
        own = np.flatnonzero(rows.values > 0)
        assert np.array_equal(rows.row_of_entry[own], np.arange(rows.n_rows))
        assert np.all(rows.columns[own] >= self.first_column)
        return rows, own

    @property
    def beta(self) -> np.ndarray:
        """The column beta^G of every linked set."""
        blocks = self.master.model.blocks
        if not self.linked.size:
            return np.empty(0, dtype=int)
        return blocks["eqp_split"].index if "eqp_split" in blocks else blocks["eqp_node"].index[:, 0]


def build(dataset: BinaryDataset, max_depth: int, linking: str, disaggregated: bool, bounding: str, **options) -> Built:
    master = Master(dataset, max_depth, dataset.leaf_price(0.01))
    n_rows, n_columns = master.model.rows.n_rows, master.model.n_columns
    config = EquivalentPointConfig(linking=linking, disaggregated=disaggregated, bounding=bounding, **options)
    component = EquivalentPointInequalities(master, config)
    rows = master.model.rows
    return Built(master, component, rows.take(np.arange(n_rows, rows.n_rows)), n_columns)


@cache
def small_instances(seed: int, count: int) -> list[Instance]:
    """Instances with at least one set, of depth one or more, with two features at most at depth three."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        instance = random_instance(rng, max_samples=12, max_features=3, max_classes=3, max_depth=3)
        if instance.max_depth == 3:
            instance = replace(instance, X=instance.X[:, :2])
        if instance.max_depth > 0 and len(equivalent_point_sets(instance.dataset)):
            found.append(instance)
    return found


_trees: dict[str, list[DecisionTree]] = {}


def some_trees(instance: Instance, limit: int, labels: str = "majority") -> list[DecisionTree]:
    """All trees, or an evenly spread choice of about `limit` of them."""
    key = f"{instance!r} {labels}"
    if key not in _trees:
        _trees[key] = list(enumerate_trees(instance.dataset, instance.max_depth, labels))
    return _trees[key][:: max(1, len(_trees[key]) // limit)]


def largest_beta(built: Built, b: np.ndarray, *, integral: bool) -> np.ndarray:
    """Largest beta^G of every set for fixed b.

    Each linking row bounds one beta by other betas with coefficients of one sign, so the largest values exist together
    and are found by lowering upper bounds until nothing moves.
    """
    x = np.ones(built.master.model.n_columns)
    built.master.b.view(x)[:] = b
    rows, own = built.linking_rows
    coefficient, column = rows.values[own], rows.columns[own]
    integer = built.master.model.integer
    while True:
        slack = coefficient * x[column] - rows.activity(x)
        limit = slack / coefficient
        if integral:
            limit = np.where(integer[column], np.floor(limit + 1e-9), limit)
        lowered = x.copy()
        np.minimum.at(lowered, column, limit)
        if np.allclose(lowered, x, atol=1e-12):
            return x[built.beta]
        x = lowered


def _blocks_of(built: Built, columns: np.ndarray) -> set[str]:
    return {
        name
        for name, block in built.master.model.blocks.items()
        if ((columns >= block.start) & (columns < block.stop)).any()
    }


# --- validity ----------------------------------------------------------------------------------------------


@pytest.mark.daily(8)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("merged", [False, True])
def test_every_row_holds_at_every_tree(variant: tuple[str, bool, str], merged: bool) -> None:
    """Lifted trees, with any labels at all, keep every row, bound and integrality."""
    for instance in small_instances(1, 12):
        dataset = instance.dataset.merged() if merged else instance.dataset
        depth = instance.max_depth
        built = build(dataset, depth, *variant)
        arrays = built.arrays
        labels = "all" if depth < 3 and dataset.n_features < 3 else "majority"
        for tree in some_trees(instance, 100, labels):
            assert arrays.is_feasible(built.master.lift(tree))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_size_is_announced_before_it_is_built(variant: tuple[str, bool, str], caplog: pytest.LogCaptureFixture) -> None:
    """The estimate is what is added, and it is logged."""
    caplog.set_level(logging.INFO, logger="accel_oct")
    for instance in small_instances(2, 5):
        plain = Master(instance.dataset, instance.max_depth, 0.0)
        built = build(instance.dataset, instance.max_depth, *variant)
        size = built.component.size
        assert size.rows == built.rows.n_rows
        assert size.nonzeros == built.rows.n_nonzeros
        assert size.columns == built.master.model.n_columns - plain.model.n_columns
        assert str(size) in caplog.text


# --- H -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linking", LINKINGS, ids=str)
def test_linking_detects_what_it_should(linking: tuple[str, bool]) -> None:
    """Chain and recursive: beta^G may be positive exactly where the set is torn apart; basic: where F* is used."""
    for instance in small_instances(3, 12):
        dataset = instance.dataset
        built = build(dataset, instance.max_depth, *linking, "basic")
        sets = [built.component.sets[int(s)] for s in built.linked]
        for tree in some_trees(instance, 60):
            b = built.master.b.view(built.master.lift(tree))
            leaf_of = tree.apply(dataset.X)
            if linking[0] == "basic":
                expected = [bool(set(s.split_set) & set(tree.features_used)) for s in sets]
            else:
                expected = [len(set(leaf_of[s.samples].tolist())) > 1 for s in sets]
            assert largest_beta(built, b, integral=True).tolist() == [float(torn) for torn in expected]


@pytest.mark.parametrize("linking", LINKINGS, ids=str)
def test_lift_gives_the_largest_beta(linking: tuple[str, bool]) -> None:
    """A lifted tree leaves its scores as free as the tree allows."""
    for instance in small_instances(4, 6):
        built = build(instance.dataset, instance.max_depth, *linking, "basic")
        for tree in some_trees(instance, 30):
            x = built.master.lift(tree)
            assert x[built.beta].tolist() == largest_beta(built, built.master.b.view(x), integral=True).tolist()


@pytest.mark.parametrize("linking", ["chain", "recursive"])
def test_disaggregation_tightens(linking: str) -> None:
    """At fractional b the disaggregated beta^G is at most the aggregated one, and sometimes smaller."""
    rng = np.random.default_rng(5)
    tighter = 0
    for instance in small_instances(6, 12):
        pair = [build(instance.dataset, instance.max_depth, linking, da, "basic") for da in (False, True)]
        trees = some_trees(instance, 100)
        for _ in range(4):
            chosen = [trees[i] for i in rng.integers(0, len(trees), 4)]
            share = rng.dirichlet(np.ones(4))
            b = sum(s * pair[0].master.b.view(pair[0].master.lift(t)) for s, t in zip(share, chosen, strict=True))
            loose, tight = (largest_beta(built, b, integral=False) for built in pair)
            assert np.all(tight <= loose + 1e-9)
            tighter += np.count_nonzero(tight < loose - 1e-6)
    assert tighter > 0


@pytest.mark.parametrize("linking", LINKINGS, ids=str)
def test_largest_beta_agrees_with_a_linear_programme(linking: tuple[str, bool]) -> None:
    """The propagation that the other tests rest on, against HiGHS."""
    rng = np.random.default_rng(7)
    for instance in small_instances(8, 4):
        built = build(instance.dataset, instance.max_depth, *linking, "basic")
        trees = some_trees(instance, 50)
        first, second = (trees[i] for i in rng.integers(0, len(trees), 2))
        b = 0.6 * built.master.b.view(built.master.lift(first)) + 0.4 * built.master.b.view(built.master.lift(second))
        model, rows = built.master.model, built.rows
        dense = np.zeros((rows.n_rows, model.n_columns))
        dense[rows.row_of_entry, rows.columns] = rows.values
        objective = np.zeros(model.n_columns)
        objective[built.beta] = -1.0
        bounds = np.column_stack([model.lower, model.upper])
        bounds[built.master.b.index.ravel()] = b.ravel()[:, None]
        solved = linprog(objective, A_ub=dense, b_ub=rows.upper, bounds=bounds)
        assert solved.status == 0
        assert -solved.fun == pytest.approx(largest_beta(built, b, integral=False).sum(), abs=1e-7)


@pytest.mark.parametrize("linking", LINKINGS, ids=str)
def test_linking_rows_are_the_papers(linking: tuple[str, bool]) -> None:
    """Rows of one set, written out by hand: F* = {1}, the samples agree on x_0 = 0, x_2 = 1 and x_3 = 0."""
    dataset = BinaryDataset.from_arrays([[0, 0, 1, 0], [0, 1, 1, 0]], [0, 1])
    built = build(dataset, 2, *linking, "basic")
    names = built.master.model.column_names()
    rows = built.rows
    written = {
        " ".join(
            f"{rows.values[entry]:+g} {names[rows.columns[entry]]}"
            for entry in range(rows.starts[row], rows.starts[row + 1])
        )
        for row in range(rows.n_rows)
    }
    bound = "+1 theta[0] +1 theta[1] -1 "
    left, right = ("-1 b[0,0] -1 b[0,3]", "-1 b[0,2]")
    expected = {
        ("basic", False): {"-1 b[0,1] -1 b[1,1] -1 b[2,1] +1 eqp_split[0]", bound + "eqp_split[0]"},
        ("chain", False): {
            "-1 b[0,1] +1 eqp_node[0,0]",
            "-1 b[0,0] -1 b[0,3] -1 b[1,1] +2 eqp_node[0,1]",
            "-1 b[0,2] -1 b[2,1] +2 eqp_node[0,2]",
        },
        ("chain", True): {
            "-1 b[0,1] +1 eqp_node[0,0]",
            f"{left} +1 eqp_node[0,1]",
            "-1 b[1,1] +1 eqp_node[0,1]",
            f"{right} +1 eqp_node[0,2]",
            "-1 b[2,1] +1 eqp_node[0,2]",
        },
        ("recursive", False): {
            "-1 b[0,1] +1 eqp_node[0,0] -1 eqp_child[0,0,0] -1 eqp_child[0,0,1]",
            f"{left} -1 eqp_node[0,1] +2 eqp_child[0,0,0]",
            f"{right} -1 eqp_node[0,2] +2 eqp_child[0,0,1]",
        },
        ("recursive", True): {
            "-1 b[0,1] +1 eqp_node[0,0] -1 eqp_child[0,0,0] -1 eqp_child[0,0,1]",
            f"{left} +1 eqp_child[0,0,0]",
            f"{right} +1 eqp_child[0,0,1]",
            "-1 eqp_node[0,1] +1 eqp_child[0,0,0]",
            "-1 eqp_node[0,2] +1 eqp_child[0,0,1]",
        },
    }[linking]
    if linking[0] == "chain":
        total = "-1 eqp_node[0,0] -1 eqp_node[0,1] -1 eqp_node[0,2] +1 eqp_split[0]"
        expected |= {total, bound + "eqp_split[0]"}
    if linking[0] == "recursive":
        expected |= {"-1 b[1,1] +1 eqp_node[0,1]", "-1 b[2,1] +1 eqp_node[0,2]", bound + "eqp_node[0,0]"}
    assert written == expected


# --- G -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounding", ["basic", "group_selection"])
@pytest.mark.parametrize("merged", [False, True])
def test_bounding_lets_one_class_through(bounding: str, merged: bool) -> None:
    """Unsplit, each class of a set may score alone but never all of them; split, everything may score."""
    for instance in small_instances(9, 20):
        dataset = instance.dataset.merged() if merged else instance.dataset
        built = build(dataset, 2, "recursive", True, bounding)
        for number, eqp in enumerate(built.component.sets):
            classes = np.unique(dataset.y[eqp.samples]).tolist()
            for label in classes:
                assert _may_score(built, number, [label], split=False)
            if bounding == "group_selection":
                pairs = itertools.combinations(classes, 2)
                assert not any(_may_score(built, number, list(pair), split=False) for pair in pairs)
            assert not _may_score(built, number, classes, split=False)
            assert _may_score(built, number, classes, split=True) == (len(eqp.split_set) > 0)


def _may_score(built: Built, number: int, classes: list[int], *, split: bool) -> bool:
    """Whether the samples of those classes in a set may be right together, when the set is split or not."""
    samples, y = built.component.sets[number].samples, built.master.dataset.y
    x = np.zeros(built.master.model.n_columns)
    built.master.theta.view(x)[samples] = np.isin(y[samples], classes)
    if number in built.linked:
        x[built.beta[np.searchsorted(built.linked, number)]] = float(split)
    _solve_groups(built, x)
    bounds = [row for row in range(built.rows.n_rows) if _bounds_scores(built, row)]
    return bool(built.rows.take([bounds[number]]).violation(x)[0] <= 1e-9)


def _bounds_scores(built: Built, row: int) -> bool:
    """Whether a row is the one of G that carries beta^G, or would if its set were not inseparable."""
    columns = built.rows.columns[built.rows.starts[row] : built.rows.starts[row + 1]]
    return bool({"theta", "eqp_group"} & _blocks_of(built, columns)) and built.rows.lower[row] == -np.inf


def _solve_groups(built: Built, x: np.ndarray) -> None:
    """Set each G_k such that its own equation holds."""
    block = built.master.model.blocks.get("eqp_group")
    if block is None:
        return
    for row in np.flatnonzero(built.rows.lower == built.rows.upper):
        entries = slice(built.rows.starts[row], built.rows.starts[row + 1])
        columns, values = built.rows.columns[entries], built.rows.values[entries]
        own = columns >= block.start
        assert own.sum() == 1
        x[columns[own]] = -(values[~own] @ x[columns[~own]]) / values[own]
        assert -1e-9 <= x[columns[own]][0] <= 1 + 1e-9


def test_integrality_is_the_papers() -> None:
    """Binary: beta^n of the aggregated chain, beta^{n,l} and beta^{n,r} of the aggregated recursion; nothing else."""
    instance = next(i for i in small_instances(10, 30) if len(build(i.dataset, 2, "basic", True, "basic").linked))
    for linking, disaggregated, bounding in VARIANTS:
        built = build(instance.dataset, 3, linking, disaggregated, bounding)
        integer = built.master.model.integer
        expected = {("chain", False): {"eqp_node"}, ("recursive", False): {"eqp_child"}}.get(
            (linking, disaggregated), set()
        )
        for name, block in built.master.model.blocks.items():
            if name.startswith("eqp"):
                assert np.all(integer[block.index] == (name in expected))


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, 3, 1.5, "two"])
def test_split_size_is_checked(size: object) -> None:
    """Only 0, 1 and 2 can be modelled, and the message says which switch is wrong."""
    dataset = BinaryDataset.from_arrays([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(InvalidInputError, match="max_split_size"):
        EquivalentPointInequalities(Master(dataset, 2, 0.0), EquivalentPointConfig(max_split_size=size))
    with pytest.raises(InvalidInputError, match=r"equivalent_points\.max_split_size"):
        Config.from_mapping({"equivalent_points": {"max_split_size": size}})


@pytest.mark.parametrize("switch", ["linking", "bounding"])
def test_unknown_variants_are_refused(switch: str) -> None:
    """A variant that does not exist is named."""
    dataset = BinaryDataset.from_arrays([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(InvalidInputError, match=f"equivalent_points.{switch}"):
        EquivalentPointInequalities(Master(dataset, 2, 0.0), EquivalentPointConfig(**{switch: "best"}))


def test_huge_requests_are_refused_before_they_are_built(caplog: pytest.LogCaptureFixture) -> None:
    """The message gives the size and the switch to change, and the master is untouched."""
    instance = small_instances(11, 1)[0]
    master = Master(instance.dataset, 3, 0.0)
    n_columns, n_rows = master.model.n_columns, master.model.rows.n_rows
    with pytest.raises(InvalidInputError, match=r"sets, .*rows.*equivalent_points\.max_split_size"):
        EquivalentPointInequalities(master, memory_limit=16)
    assert (master.model.n_columns, master.model.rows.n_rows) == (n_columns, n_rows)


def test_data_without_sets_add_nothing() -> None:
    """Points far apart: no columns, no rows, and a solve that works."""
    X, y = np.eye(4, dtype=bool), [0, 0, 1, 1]
    X = np.column_stack([X, X, X])
    built = build(BinaryDataset.from_arrays(X, y), 2, "recursive", True, "group_selection")
    assert len(built.component.sets) == 0
    assert built.rows.n_rows == 0
    assert accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config="paper").status == "optimal"
