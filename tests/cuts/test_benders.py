"""Benders cuts: the paper's example, validity at every tree, exactness at fractional points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from accel_oct_backends.mock import MockBackend
from hypothesis import given
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, instances

from accel_oct.cuts.benders import BendersCuts, all_path_rows, path_rows, separate_fractional
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Incumbent, Master, TreeHandler
from accel_oct.mip import Event, Rows, Validity
from accel_oct.tree import DecisionTree, Topology

# The paper's example: x = (0, 1, 1, 0) of class 2, among samples that make both classes and all features appear.
SAMPLE = 0
EXAMPLE = BinaryDataset.from_arrays([[0, 1, 1, 0], [1, 0, 0, 1]], [2, 1])


def _tree(max_depth: int, branches: dict[int, int], leaves: dict[int, int]) -> DecisionTree:
    feature = np.full(Topology(max_depth).n_nodes, -1)
    label = feature.copy()
    for node, chosen in branches.items():
        feature[node - 1] = chosen - 1  # the paper numbers features and classes from one
    for node, chosen in leaves.items():
        label[node - 1] = chosen - 1
    return DecisionTree(feature, label)


def _reply_of_mock(tree: DecisionTree, *, strengthened: bool = False) -> tuple[Master, Rows, Validity]:
    """What the handler answers when a backend shows the tree with every theta at one."""
    master = Master(EXAMPLE, 3, 0.0, integral_predictions=strengthened)
    x = master.lift(tree)
    master.theta.view(x)[:] = 0.0
    master.theta.view(x)[SAMPLE] = 1.0
    handler = TreeHandler(
        master,
        [BendersCuts(master, strengthened=strengthened)],
        Incumbent(EXAMPLE, 0.0),
        on_bound=lambda bound: False,
    )
    backend = MockBackend(script=[(Event.CANDIDATE, x)])
    backend.load(master.model)
    backend.solve(handler=handler)
    reply = backend.replies[0]
    assert reply is not None and len(reply.cuts) == 1
    return master, reply.cuts[0].rows, reply.cuts[0].validity


def _as_dict(master: Master, rows: Rows) -> dict[str, float]:
    """One row as {name: coefficient}, in the paper's numbering."""
    names = {}
    for node, feature in np.ndindex(*master.b.shape):
        names[int(master.b.index[node, feature])] = f"b{node + 1},{feature + 1}"
    for node, label in np.ndindex(*master.w.shape):
        names[int(master.w.index[node, label])] = f"w{node + 1},{label + 1}"
    for sample in range(master.theta.size):
        names[int(master.theta.index[sample])] = f"theta{sample}"
    assert rows.n_rows == 1 and rows.upper[0] == 0.0 and rows.lower[0] == -np.inf
    return {names[int(column)]: float(value) for column, value in zip(rows.columns, rows.values, strict=True)}


def _expected(terms: str) -> dict[str, float]:
    """'b1,2 b1,3 0.5*w9,2' on the right-hand side, theta0 on the left."""
    result = {"theta0": 1.0}
    for term in terms.split():
        factor, _, name = term.rpartition("*")
        result[name] = -float(factor or 1)
    return result


def test_worked_example_of_section_4() -> None:
    """b11, b22, w_1^3, w_2^4, w_1^5: the sample falls into node 5, and the cut is the paper's last display."""
    tree = _tree(3, {1: 1, 2: 2}, {3: 1, 4: 2, 5: 1})
    master, rows, validity = _reply_of_mock(tree)
    assert validity is Validity.REQUIRED
    # The display's b_4f stand for node 5, as the text and the equation before it say.
    assert _as_dict(master, rows) == _expected(
        "b1,2 b1,3 w1,2  b2,1 b2,4 w2,2  b5,1 b5,2 b5,3 b5,4 w5,2",
    )


def test_terminal_leaf_has_no_branch_terms_of_its_own() -> None:
    """A sample in terminal node 11 (left, right, right): branch terms of its ancestors only."""
    tree = _tree(3, {1: 1, 2: 2, 5: 3}, {3: 1, 4: 1, 10: 2, 11: 1})
    master, rows, _ = _reply_of_mock(tree)
    assert _as_dict(master, rows) == _expected("b1,2 b1,3 b2,1 b2,4 b5,1 b5,4 w1,2 w2,2 w5,2 w11,2")


def test_leaf_at_the_root() -> None:
    """A misclassified sample at the root: any branch, or the right prediction, frees theta."""
    master, rows, _ = _reply_of_mock(_tree(3, {}, {1: 1}))
    assert _as_dict(master, rows) == _expected("b1,1 b1,2 b1,3 b1,4 w1,2")


def test_strengthened_cut_on_a_right_child() -> None:
    """Node 11 is the right child of 5; its sibling 10 is wrong too: parent's terms and the sibling's are halved."""
    tree = _tree(3, {1: 1, 2: 2, 5: 3}, {3: 1, 4: 1, 10: 1, 11: 1})
    master, rows, _ = _reply_of_mock(tree, strengthened=True)
    assert _as_dict(master, rows) == _expected("b1,2 b1,3 b2,1 b2,4 0.5*b5,1 0.5*b5,4 w1,2 w2,2 w5,2 w11,2 0.5*w10,2")


def test_strengthened_cut_on_a_left_child() -> None:
    """Node 10 is the left child of 5; features at one lead to the sibling 11."""
    tree = _tree(3, {1: 1, 2: 2, 5: 4}, {3: 1, 4: 1, 10: 1, 11: 1})
    master, rows, _ = _reply_of_mock(tree, strengthened=True)
    assert _as_dict(master, rows) == _expected("b1,2 b1,3 b2,1 b2,4 0.5*b5,2 0.5*b5,3 w1,2 w2,2 w5,2 w10,2 0.5*w11,2")


def test_standard_cut_where_the_sibling_is_right() -> None:
    """With a sibling that predicts the class the halved cut would not cut the point off: the standard one is used."""
    tree = _tree(3, {1: 1, 2: 2, 5: 3}, {3: 1, 4: 1, 10: 2, 11: 1})
    master, rows, _ = _reply_of_mock(tree, strengthened=True)
    assert _as_dict(master, rows) == _expected("b1,2 b1,3 b2,1 b2,4 b5,1 b5,4 w1,2 w2,2 w5,2 w11,2")


def _all_path_rows(master: Master) -> Rows:
    samples, topology = np.arange(master.dataset.n_samples), master.topology
    batches = [path_rows(master, master.claims, samples, np.full(samples.size, leaf)) for leaf in topology.nodes]
    everyone = np.ones(samples.size, dtype=bool)
    batches += [
        path_rows(master, master.claims, samples, np.full(samples.size, leaf), strengthened=everyone)
        for leaf in topology.terminal
    ]
    return Rows.concatenate(batches)


@given(instances(max_samples=6, max_features=2, max_classes=2, min_depth=1, max_depth=2))
def test_every_cut_holds_at_every_tree(instance: Instance) -> None:
    """All standard and strengthened cuts of all samples and leaves hold at all labelled trees."""
    dataset = instance.dataset
    master = Master(dataset, instance.max_depth, instance.leaf_price)
    rows = _all_path_rows(master)
    for tree in enumerate_trees(dataset, instance.max_depth, labels="all"):
        assert np.all(rows.violation(master.lift(tree)) <= 1e-12)


@given(instances(max_samples=6, max_features=2, max_classes=2, min_depth=1, max_depth=2))
def test_cuts_define_theta(instance: Instance) -> None:
    """At every tree, raising any misclassified theta, however little, violates a cut: theta is exactly the score."""
    dataset = instance.dataset
    master = Master(dataset, instance.max_depth, instance.leaf_price)
    for strengthened in (False, True):
        component = BendersCuts(master, strengthened=strengthened)
        for tree in enumerate_trees(dataset, instance.max_depth, labels="all"):
            for raised in (1.0, 0.5, 0.01):
                x = master.lift(tree)
                wrong = master.theta.view(x) == 0.0
                master.theta.view(x)[wrong] = raised
                rows = component._separate_candidate(_point(master, x))
                assert rows.n_rows == np.count_nonzero(wrong)
                assert np.all(rows.violation(x) == raised)


def _point(master: Master, x: np.ndarray):
    from accel_oct.formulation import TreePoint
    from accel_oct.mip import Point

    return TreePoint(master, Point(Event.CANDIDATE, x, 0.0, None, np.inf, 0.0))


def _random_fractional(master: Master, dataset: BinaryDataset, depth: int, rng: np.random.Generator) -> np.ndarray:
    """A convex combination of some trees, with theta raised at random."""
    trees = list(enumerate_trees(dataset, depth, labels="all"))
    picked = rng.choice(len(trees), size=3)
    share = rng.dirichlet(np.ones(3))
    x = sum(s * master.lift(trees[i]) for s, i in zip(share, picked, strict=True))
    theta = master.theta.view(x)
    theta[:] = np.minimum(1.0, theta + rng.random(theta.size) * rng.integers(0, 2, theta.size))
    return x


def test_all_path_rows_are_one_per_sample_and_node() -> None:
    """With every row in it the master needs no handler: thetas are bounded at every tree of both labels."""
    master = Master(EXAMPLE, 2, 0.0)
    rows = all_path_rows(master)
    assert rows.n_rows == EXAMPLE.n_samples * Topology(2).n_nodes
    for tree in enumerate_trees(EXAMPLE, 1, labels="all"):
        x = master.lift(tree.with_max_depth(2))
        assert np.all(rows.violation(x) == 0)
        master.theta.view(x)[:] = 1.0
        assert np.any(rows.violation(x) == 1.0) == (tree.score(EXAMPLE) < EXAMPLE.total_weight)


@pytest.mark.parametrize("seed", range(12))
def test_fractional_separation_finds_the_most_violated_cut(seed: int) -> None:
    """Against all cuts of all connected node sets that hold the root: same violation, and valid at every tree."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (5, 2))
    y = np.concatenate([[0, 1], rng.integers(0, 2, 3)])
    dataset = Instance(X, y, None, 0.0, 2).dataset
    master = Master(dataset, 2, 0.0)
    x = _random_fractional(master, dataset, 2, rng)
    rows = separate_fractional(master, master.claims, x)
    found = dict.fromkeys(range(5), 0.0)
    theta_columns = {int(c): i for i, c in enumerate(master.theta.index)}
    for row, violation in enumerate(rows.violation(x)):
        entries = slice(rows.starts[row], rows.starts[row + 1])
        sample = next(theta_columns[int(c)] for c in rows.columns[entries] if int(c) in theta_columns)
        found[sample] = violation
    for sample in range(5):
        best = _most_violated(master, x, sample)
        assert found[sample] == pytest.approx(best if best > 1e-4 else 0.0, abs=1e-9)
    for tree in enumerate_trees(dataset, 2, labels="all"):
        assert np.all(rows.violation(master.lift(tree)) <= 1e-12)


def _most_violated(master: Master, x: np.ndarray, sample: int) -> float:
    """By brute force over all subtrees S that hold the root of the depth-two tree."""
    b, w, theta = master.b.view(x), master.w.view(x), master.theta.view(x)
    features, label = master.dataset.X[sample], master.dataset.y[sample]
    best = 0.0
    for inside in product([False, True], repeat=6):
        chosen = {1} | {node for node, taken in zip(range(2, 8), inside, strict=True) if taken}
        if any(node // 2 not in chosen for node in chosen - {1}):
            continue
        allowed = sum(w[node - 1, label] for node in chosen)
        for node in chosen & {1, 2, 3}:
            for child, leads in ((2 * node, ~features), (2 * node + 1, features)):
                if child not in chosen:
                    allowed += b[node - 1, leads].sum()
        best = max(best, theta[sample] - allowed)
    return best


def test_fractional_separation_agrees_with_the_paths_at_integral_points() -> None:
    """At a candidate the minimum cuts are the rows of Algorithm-style path separation."""
    tree = _tree(3, {1: 1, 2: 2}, {3: 1, 4: 2, 5: 1})
    master = Master(EXAMPLE, 3, 0.0)
    x = master.lift(tree)
    master.theta.view(x)[:] = 1.0
    rows = separate_fractional(master, master.claims, x)
    assert _as_dict(master, rows) == _as_dict(
        master, path_rows(master, master.claims, np.array([SAMPLE]), np.array([5]))
    )
