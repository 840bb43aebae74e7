"""The master problem: its rows describe exactly the trees, and lifting and decoding are inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, instances

from accel_oct.formulation import Master
from accel_oct.formulation.master import solver_scale
from accel_oct.mip import ModelArrays, Rows
from accel_oct.tree import Topology


@settings(max_examples=40, deadline=None)
@given(instances(max_samples=8, max_features=2, min_depth=1, max_depth=2))
def test_lifted_trees_are_feasible_and_worth_their_value(instance: Instance) -> None:
    """Every tree satisfies the master's rows, and its objective there is its value."""
    dataset, price = instance.dataset, instance.leaf_price
    master = Master(dataset, instance.max_depth, price)
    arrays = ModelArrays.of(master.model)
    for tree in enumerate_trees(dataset, instance.max_depth, labels="all"):
        x = master.lift(tree)
        assert arrays.is_feasible(x)
        assert arrays.value(x) == pytest.approx(tree.value(dataset, price) * master.scale)


@settings(max_examples=40, deadline=None)
@given(instances(max_samples=8, max_features=2, min_depth=1, max_depth=2))
def test_decode_inverts_lift(instance: Instance) -> None:
    """Decoding a lifted tree gives the same tree, whatever its labels."""
    dataset = instance.dataset
    master = Master(dataset, instance.max_depth, instance.leaf_price)
    for tree in enumerate_trees(dataset, instance.max_depth, labels="all"):
        assert master.decode(master.lift(tree)) == tree.with_max_depth(instance.max_depth)


@pytest.mark.parametrize(
    ("total", "integral", "scale"), [(50.0, True, 1.0), (1e7, True, 1.0), (2e7, True, 1e-6), (50.0, False, 0.4)]
)
def test_scale_of_the_objective(total: float, integral: bool, scale: float) -> None:
    """Whole weights of a usual size stay as they are, others have a mean of one: solvers' tolerances are absolute."""
    assert solver_scale(total, 20, integral) == pytest.approx(scale)


def test_rows_admit_nothing_but_trees() -> None:
    """Of all 0/1 points (b, p) at depth 2, those that satisfy the rows are the trees, one each."""
    X = np.array([[0], [1]])
    dataset = Instance(X, np.array([0, 1]), None, 0.0, 2).dataset
    master = Master(dataset, 2, 0.0)
    rows = master.model.rows
    structural = rows.take(_without_predictions(master, rows))
    n_columns = master.p.stop
    points = ((np.arange(2**n_columns)[:, None] >> np.arange(n_columns)) & 1).astype(float)
    padded = np.zeros(master.model.n_columns)
    feasible = 0
    for point in points:
        padded[:n_columns] = point
        feasible += bool(np.all(structural.violation(padded) == 0))
    assert feasible == len({tree.feature.tobytes() for tree in enumerate_trees(dataset, 2)})


def _without_predictions(master: Master, rows: Rows) -> np.ndarray:
    """Mask of the rows that hold no w column."""
    holds_w = (rows.columns >= master.w.start) & (rows.columns < master.w.stop)
    with_w = np.zeros(rows.n_rows, dtype=bool)
    with_w[rows.row_of_entry[holds_w]] = True
    return ~with_w


def test_model_has_the_size_of_the_paper() -> None:
    """|B||F| + (|B|+|T|)(1+|K|) + |I| columns and 2|B| + 2|T| rows."""
    rng = np.random.default_rng(0)
    dataset = Instance(rng.integers(0, 2, (9, 4)), np.arange(9) % 3, None, 0.1, 3).dataset
    master = Master(dataset, 3, 0.9)
    nodes = Topology(3)
    assert master.model.n_columns == 7 * 4 + nodes.n_nodes * (1 + 3) + 9
    assert master.model.rows.n_rows == 2 * nodes.n_nodes


def test_predictions_are_integral_on_demand() -> None:
    """w is continuous under the standard cuts and binary under the strengthened ones; b and p are always binary."""
    dataset = Instance(np.array([[0], [1]]), np.array([0, 1]), None, 0.0, 1).dataset
    for integral in (False, True):
        master = Master(dataset, 1, 0.0, integral_predictions=integral)
        integer = master.model.integer
        assert integer[master.b.index].all() and integer[master.p.index].all()
        assert integer[master.w.index].all() == integral and not integer[master.theta.index].any()


def test_branch_priorities_decide_the_root_first() -> None:
    """The root's columns come first; all others are left to the solver."""
    dataset = Instance(np.array([[0, 1], [1, 1]]), np.array([0, 1]), None, 0.0, 3).dataset
    master = Master(dataset, 3, 0.0)
    priorities = master.branch_priorities
    root = np.zeros(master.model.n_columns, dtype=bool)
    root[master.b.index[0]] = root[master.p.index[0]] = True
    assert np.all(priorities[root] == 1) and not priorities[~root].any()
