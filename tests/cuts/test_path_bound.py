"""Path-bound cuts: what each row says about a tree, which paths are found, and when cuts are returned."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from helpers.path_support import all_paths, cache_for
from oracles.instances import Instance, random_instance

from accel_oct.cuts.path_bound import PathBoundCuts
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, Site, TreePath, TreePoint
from accel_oct.mip import Event, Point, Rows, Validity
from accel_oct.solving.config import PathBoundConfig
from accel_oct.tree import DecisionTree

KINDS = ("bound", "negative_samples", "structure")


def cuts_for(dataset: BinaryDataset, max_depth: int, leaf_price: float, *kinds: str, **options) -> PathBoundCuts:
    switches = {kind: kind in kinds for kind in KINDS}
    return PathBoundCuts(
        Master(dataset, max_depth, leaf_price), cache_for(dataset), PathBoundConfig(**switches, **options)
    )


def random_tree(rng: np.random.Generator, dataset: BinaryDataset, max_depth: int, share: float) -> DecisionTree:
    """Random branches and labels; `share` is the probability of branching."""
    feature = np.full(2 ** (max_depth + 1) - 1, -1)
    label = feature.copy()
    todo = [1]
    while todo:
        node = todo.pop()
        if 2 * node < len(feature) and rng.random() < share:
            feature[node - 1] = rng.integers(dataset.n_features)
            todo += [2 * node, 2 * node + 1]
        else:
            label[node - 1] = rng.integers(dataset.n_classes)
    return DecisionTree(feature, label)


def point_of(cuts: PathBoundCuts, x: np.ndarray, event: Event = Event.CANDIDATE) -> TreePoint:
    return TreePoint(cuts.master, Point(event, x, 0.0, None, np.inf, 0.0))


def random_instances(seed: int, count: int, max_features: int, min_depth: int, max_depth: int) -> list[Instance]:
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        instance = random_instance(rng, max_samples=14, max_features=max_features, max_classes=3, max_depth=max_depth)
        if instance.max_depth >= min_depth:
            found.append(instance)
    return found


# --- what the rows say -------------------------------------------------------------------------------------


class PathReader:
    """What a path and a tree have to do with each other, read off the tree."""

    def __init__(self, dataset: BinaryDataset, cuts: PathBoundCuts, path: TreePath) -> None:
        self.dataset, self.path = dataset, path
        height = cuts.master.topology.height(path.end)
        self.best = cuts.cache.lookup(path.literals, cuts.master.leaf_price, max_depth=min(2, height))

    def is_relaxed(self, tree: DecisionTree) -> bool:
        """Another branch or a leaf on the path, or a leaf deep below it."""
        if any(tree.feature[n - 1] != f for n, f in zip(self.path.nodes, self.path.features, strict=True)):
            return True
        return tree.subtree(self.path.end).depth > 2

    def violated(self, tree: DecisionTree, right: np.ndarray, kind: str) -> bool:
        """Whether the tree, with scores that may be too high, breaks what the cut of that kind demands."""
        if self.is_relaxed(tree):
            return False
        if kind == "bound":
            return float(self.dataset.weights[self.best.samples][right[self.best.samples]].sum()) > self.best.score
        if kind == "negative_samples":
            return bool((right & (self.dataset.weights > 0))[self.best.wrong].any())
        best = DecisionTree(self.best.feature, self.best.label)
        return tree.subtree(self.path.end).with_max_depth(2) != best


@pytest.mark.daily(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_rows_say_what_they_should(kind: str, depth: int) -> None:
    """A tree violates a row exactly when it takes the path, stays shallow, and departs from the subtree."""
    rng = np.random.default_rng(depth)
    seen = {True: 0, False: 0}
    for instance in random_instances(depth, 10, 3 if depth < 4 else 2, 0, 3):
        dataset = instance.dataset
        cuts = cuts_for(dataset, depth, instance.leaf_price, kind)
        trees = [random_tree(rng, dataset, depth, share) for share in (0.5, 0.7, 0.9) for _ in range(15)]
        for path in all_paths(dataset.n_features, depth):
            rows, reader = cuts.rows(path), PathReader(dataset, cuts, path)
            rows.check(cuts.master.model.n_columns)
            planted = DecisionTree(reader.best.feature, reader.best.label)
            for tree in [*trees, *(_planted(tree, path, planted) for tree in trees[::15])]:
                x = cuts.master.lift(tree)
                theta = cuts.master.theta.view(x)
                if rng.random() < 0.5:
                    theta[rng.random(theta.size) < 0.7] = 1.0
                expected = reader.violated(tree, theta > 0, kind)
                assert (rows.violation(x).max(initial=0.0) > 1e-9) == expected
                seen[expected] += 1
    assert min(seen.values()) > 20


def _planted(tree: DecisionTree, path: TreePath, subtree: DecisionTree) -> DecisionTree:
    """The tree with the path's branches and then the given subtree, where there is room for it."""
    if tree.max_depth < 2:
        return tree
    feature, label = tree.feature.copy(), tree.label.copy()
    for node, taken in zip(path.nodes, path.features, strict=True):
        if feature[node - 1] < 0:
            feature[node - 1], label[node - 1] = taken, -1
            label[[2 * node - 1, 2 * node]] = 0
        feature[node - 1] = taken
    return DecisionTree(feature, label).with_subtree(path.end, subtree)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_papers(kind: str) -> None:
    """Coefficients of one path, written out by hand from the paper's equations."""
    X = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=bool)
    y = np.array([0, 1, 1, 0, 0, 1])
    weights = np.array([1.0, 2.0, 3.0, 2.0, 5.0, 4.0])
    dataset = BinaryDataset.from_arrays(X, y, weights)
    cuts = cuts_for(dataset, 4, 0.5, kind)
    master, path = cuts.master, TreePath(2, (0,))
    # Samples 0, 1, 2, 3 and 5 go left; the best subtree is one leaf of class 1 (score 9 of 12) or branches on 1 and 2.
    best = cuts.cache.lookup(path.literals, 0.5)
    assert best.feature.tolist() == [1, -1, 2, -1, -1, -1, -1] and best.label.tolist() == [-1, 1, -1, -1, -1, 1, 0]
    row = np.zeros(master.model.n_columns)
    rows = cuts.rows(path)
    row[rows.columns] = rows.values
    b, p, w, theta = (block.view(row) for block in (master.b, master.p, master.w, master.theta))
    slack = {"bound": 1.0, "negative_samples": 1.0, "structure": 5.0}[kind]
    expected = np.zeros_like(row)
    eb, ep, ew, et = (block.view(expected) for block in (master.b, master.p, master.w, master.theta))
    eb[0, [1, 2]] = -slack
    ep[0] = -slack
    ep[15:23] = -slack  # three levels below node 2: the terminal nodes 16 to 23
    if kind == "bound":
        et[[0, 1, 2, 3, 5]] = weights[[0, 1, 2, 3, 5]]
    elif kind == "negative_samples":
        et[0] = 1.0
    else:
        eb[1, [0, 2]] = ep[1] = 1.0
        eb[3, :] = ew[3, 0] = 1.0
        eb[4, [0, 1]] = ep[4] = 1.0
        eb[9, :] = ew[9, 0] = 1.0
        eb[10, :] = ew[10, 1] = 1.0
    for found, wanted in ((b, eb), (p, ep), (w, ew), (theta, et)):
        assert found.tolist() == wanted.tolist()
    assert rows.upper.tolist() == [11.0 if kind == "bound" else 0.0]
    assert rows.lower.tolist() == [-np.inf]


def test_contradictory_and_repeated_literals() -> None:
    """A path may lead nowhere, or say the same twice."""
    dataset = BinaryDataset.from_arrays([[0, 1], [1, 0], [1, 1]], [0, 1, 0])
    cuts = cuts_for(dataset, 4, 0.1, *KINDS)
    nowhere, twice = TreePath(5, (0, 0)), TreePath(7, (0, 0))
    assert cuts.cache.lookup(nowhere.literals, 0.1).samples.size == 0
    assert cuts.cache.lookup(twice.literals, 0.1).samples.tolist() == [1, 2]
    rows = cuts.rows(nowhere)
    assert rows.n_rows == 1  # only the structure is left to say anything: a leaf of the first class
    taken = DecisionTree.leaf(0, 4)
    for node in (1, 2):
        taken = taken.with_subtree(node, DecisionTree([0, -1, -1], [-1, 0, 0]))
    assert rows.violation(cuts.master.lift(taken)).max() == 0
    other = taken.with_subtree(5, DecisionTree.leaf(1))
    assert rows.violation(cuts.master.lift(other)).max() == 1


# --- Algorithm 2 -------------------------------------------------------------------------------------------


def test_integral_paths() -> None:
    """Paths follow whole branches only and end where a subtree of depth two fits."""
    dataset = BinaryDataset.from_arrays([[0, 1, 0], [1, 0, 1], [1, 1, 0]], [0, 1, 0])
    every = cuts_for(dataset, 4, 0.1, "bound")
    b = np.zeros((15, 3))
    b[0, 1] = 1.0
    b[1, 2] = 1.0
    b[2] = [0.5, 0.5, 0.0]
    b[3, 0] = 1.0  # at height two: no subtree of depth two fits below
    below_two = [TreePath(4, (1, 2)), TreePath(5, (1, 2))]
    assert sorted(every.integral_paths(b)) == [TreePath(1, ()), TreePath(2, (1,)), TreePath(3, (1,)), *below_two]
    paper = cuts_for(dataset, 4, 0.1, "bound", empty_path=False)
    assert sorted(paper.integral_paths(b)) == [TreePath(2, (1,)), TreePath(3, (1,)), *below_two]
    ends = cuts_for(dataset, 4, 0.1, "bound", paths="end_points")
    assert sorted(ends.integral_paths(b)) == [TreePath(3, (1,)), *below_two]
    b[0] = [0.0, 0.9, 0.1]
    assert every.integral_paths(b) == [TreePath(1, ())]
    assert paper.integral_paths(b) == []


def test_a_path_knows_its_nodes_and_literals() -> None:
    """Read from the root, with the directions of the walk."""
    path = TreePath(1, ()).child(4, 1).child(2, 0)
    assert path == TreePath(6, (4, 2))
    assert path.nodes == (1, 3)
    assert path.literals == {(4, 1), (2, 0)}


@pytest.mark.parametrize("event", list(Event))
def test_overestimated_scores_are_cut_off(event: Event) -> None:
    """A tree with every theta at one is cut exactly on the paths where that beats D2S, and cuts are not repeated."""
    rng = np.random.default_rng(3)
    returned = 0
    for instance in random_instances(8, 30, 4, 2, 4):
        dataset, depth = instance.dataset, instance.max_depth
        cuts = cuts_for(dataset, depth, instance.leaf_price, *KINDS)
        x = cuts.master.lift(random_tree(rng, dataset, depth, 0.8))
        cuts.master.theta.view(x)[:] = 1.0
        point = point_of(cuts, x, event)
        expected = []
        for path in cuts.integral_paths(point.b):
            best = cuts.cache.lookup(path.literals, instance.leaf_price)
            below = cuts.master.topology.subtree(path.end).tolist()
            value = dataset.weights[best.samples].sum() - instance.leaf_price * point.p[np.array(below) - 1].sum()
            if value > best.value + 1e-6 * dataset.total_weight:
                expected.append(cuts.rows(path))
        response = cuts.respond(point)
        rows = Rows.concatenate(expected)
        assert (response is None) == (rows.n_rows == 0)
        if response is None:
            continue
        returned += 1
        assert response.cuts[0].validity is Validity.OPTIMALITY
        assert response.cuts[0].rows.values.tolist() == rows.values.tolist()
        again = cuts.respond(point)
        if again is not None:
            assert event is Event.CANDIDATE
            assert again.cuts[0].rows.violation(x).max() > 1e-6
    assert returned > 5


def test_true_scores_of_the_returned_subtrees_are_not_cut() -> None:
    """A tree whose tails are D2S's own gives no cut on the paths into them."""
    for instance in random_instances(9, 20, 4, 2, 2):
        dataset = instance.dataset
        cuts = cuts_for(dataset, 2, instance.leaf_price, *KINDS)
        best = cuts.cache.lookup((), instance.leaf_price)
        assert cuts.respond(point_of(cuts, cuts.master.lift(DecisionTree(best.feature, best.label)))) is None


def test_memory_of_remembered_cuts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting changes nothing but the work."""
    monkeypatch.setattr("accel_oct.cuts.path_bound._MEMORY_LIMIT", 1)
    test_overestimated_scores_are_cut_off(Event.RELAXATION)


def test_needs() -> None:
    """Relaxations only when asked for; OPTIMALITY cuts only."""
    dataset = BinaryDataset.from_arrays([[0], [1]], [0, 1])
    assert cuts_for(dataset, 2, 0.1, "bound", fractional=False).needs.events == {Event.CANDIDATE}
    assert cuts_for(dataset, 2, 0.1, "bound", fractional=True).needs.events == set(Event)
    assert cuts_for(dataset, 2, 0.1, "bound").needs.cuts == {Validity.OPTIMALITY}


# --- bad input ---------------------------------------------------------------------------------------------


def test_no_cut_at_all_is_refused() -> None:
    """Switched on, but with every kind of cut switched off."""
    dataset = BinaryDataset.from_arrays([[0], [1]], [0, 1])
    with pytest.raises(InvalidInputError, match=r"path_bound\.bound"):
        cuts_for(dataset, 2, 0.1)
    with pytest.raises(InvalidInputError, match=r"path_bound\.paths"):
        cuts_for(dataset, 2, 0.1, "bound", paths="some")


def test_coupled_subtrees_are_refused() -> None:
    """Once a constraint ties subtrees together the cuts raise, before and during a solve."""
    dataset = BinaryDataset.from_arrays([[0], [1]], [0, 1])
    master = Master(dataset, 2, 0.1)
    assert master.subtrees_are_independent
    cuts = PathBoundCuts(master, cache_for(dataset))
    master.couple_subtrees("a limit on leaves")
    assert not master.subtrees_are_independent
    with pytest.raises(InvalidInputError, match=r"a limit on leaves.*path_bound\.enabled"):
        PathBoundCuts(master, cache_for(dataset))
    with pytest.raises(InvalidInputError, match="a limit on leaves"):
        cuts.respond(point_of(cuts, master.lift(DecisionTree.leaf(0, 2))))


def test_the_family_switches_off_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    """A coupled master gets no path-bound cuts, and the log says why."""
    dataset = BinaryDataset.from_arrays([[0, 1], [1, 0], [1, 1]], [0, 1, 0])
    master = Master(dataset, 2, 0.01)
    site = Site(master, cache_for(dataset))
    assert isinstance(PathBoundCuts.build(site, PathBoundConfig(enabled=True)), PathBoundCuts)
    master.couple_subtrees("a feature budget")
    with caplog.at_level(logging.WARNING, logger="accel_oct"):
        assert PathBoundCuts.build(site, PathBoundConfig(enabled=True)) is None
    assert "a feature budget" in caplog.text


def test_algorithm_two_alone_needs_relaxations() -> None:
    """Without candidates, and on a backend that shows no relaxations, there is nothing to separate."""
    dataset = BinaryDataset.from_arrays([[0, 1], [1, 0], [1, 1]], [0, 1, 0])
    as_published = PathBoundConfig(enabled=True, candidates=False, empty_path=False)
    site = Site(Master(dataset, 3, 0.01), cache_for(dataset))
    cuts = PathBoundCuts.build(site, as_published)
    assert cuts is not None and cuts.needs.events == {Event.RELAXATION}
    assert PathBoundCuts.build(replace(site, shows_relaxations=False), as_published) is None
    with pytest.raises(InvalidInputError, match="candidates"):
        PathBoundCuts(site.master, site.subtrees, PathBoundConfig(fractional=False, candidates=False))
