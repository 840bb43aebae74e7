"""Adapters of other packages: objectives are computed here, claims are kept as claims, and every failure is a row."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import accel_oct
from accel_oct.tree import DecisionTree
from accel_oct_bench.peers import PEERS, Peer, PeerError, Problem, measured
from accel_oct_bench.peers.base import Answer, nested_of_arrays, nested_of_paths, routed, tree_of


def problem(n_classes: int = 2, penalty: float = 0.01, depth: int = 2, time_limit: float | None = 20.0) -> Problem:
    rng = np.random.default_rng(n_classes)
    X = rng.random((60, 6)) < 0.5
    y = (X[:, 0] & X[:, 1]) + (n_classes - 2) * 2 * (X[:, 2] & ~X[:, 0])
    y = np.where(rng.random(60) < 0.1, rng.integers(0, n_classes, 60), y).astype(np.int64)
    return Problem(X, y, depth, penalty, time_limit=time_limit)


def peer(answer: Answer | Callable[[], Answer], modules: tuple[str, ...] = ()) -> Peer:
    """A made-up package."""
    look = answer if callable(answer) else lambda: answer
    return Peer("made-up", "made-up-package", modules, lambda _: look, "")


def optimum(given: Problem) -> float:
    result = accel_oct.solve(given.X, given.y, max_depth=given.max_depth, leaf_penalty=given.leaf_penalty)
    assert result.status == "optimal"
    return result.objective


@pytest.mark.parametrize("penalty", [0.0, 0.02])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_peer_that_claims_an_optimum_has_ours(name: str, n_classes: int, penalty: float) -> None:
    """Every package that is installed: no tree is better than the optimum, and a claim is the optimum."""
    try:
        PEERS[name].load()
    except PeerError:
        pytest.skip(f"{PEERS[name].package} is not installed")
    given = problem(n_classes, penalty)
    row = measured(PEERS[name], given)
    if n_classes == 3 and name == "treefarms":
        assert row["status"] == "error" and "two classes" in row["error"]
        return
    if not PEERS[name].limits_depth and row["error"] is not None:
        assert "its tree has depth" in row["error"] and penalty == 0
        return
    best = optimum(given)
    assert row["error"] is None and row["objective"] <= best + 1e-9
    if not PEERS[name].claims(penalty) or (name == "praxis" and not (penalty * given.n_samples).is_integer()):
        assert row["status"] == "finished" and row["bound"] is None
    elif row["status"] != "time_limit":
        assert row["status"] == "optimal" and row["objective"] == pytest.approx(best, abs=1e-9)
    tree = DecisionTree.from_dict(row["tree"])
    value = float(np.mean(tree.predict(given.X) == given.y)) - penalty * tree.n_leaves
    assert row["objective"] == pytest.approx(value) and row["n_leaves"] == tree.n_leaves


@pytest.mark.parametrize("penalty", [0.0, 0.03])
@pytest.mark.parametrize("name", sorted(name for name, each in PEERS.items() if each.numbers))
def test_a_peer_that_takes_numbers_has_our_optimum(name: str, penalty: float) -> None:
    """Over every threshold, with tied values; without a depth limit where it has none."""
    given = PEERS[name]
    try:
        given.load()
    except PeerError:
        pytest.skip(f"{given.package} is not installed")
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 6, 40), rng.normal(size=40).round(1)]).astype(float)
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 0.3) ^ (rng.random(40) < 0.1)).astype(np.int64)
    depth = 2 if given.limits_depth else None
    penalty = penalty if given.limits_depth else 0.05
    row = measured(given, Problem(X, y, depth, penalty, time_limit=20.0))
    ours = accel_oct.OptimalTreeClassifier(depth, penalty).fit(X, y)
    best = ours.score(X, y) - penalty * ours.get_n_leaves()
    assert row["error"] is None and row["tree"] is None
    assert row["status"] == ("optimal" if given.claims(penalty) else "finished")
    assert row["objective"] <= best + 1e-9
    if row["status"] == "optimal":
        assert row["objective"] == pytest.approx(best, abs=1e-9)


def test_numbers_are_refused_by_peers_of_binary_columns() -> None:
    """One sentence, whether or not the package is installed."""
    given = problem()
    for each in PEERS.values():
        if not each.numbers:
            row = measured(each, replace(given, X=given.X.astype(float)))
            assert row["status"] == "error" and "columns of 0 and 1 only" in row["error"]


def test_a_problem_without_a_depth_limit() -> None:
    """It is an error for peers that need one, and any depth is right for the others."""
    unlimited = replace(problem(), max_depth=None)
    with pytest.raises(PeerError, match="needs a depth limit"):
        _ = unlimited.depth_limit
    row = measured(peer(Answer((0, (1, (2, 0, 1), 0), 0))), unlimited)
    assert row["status"] == "finished" and row["n_leaves"] == 4


def test_a_proof_of_errors_alone_is_no_proof_with_a_penalty() -> None:
    """A peer without a penalty, and one that proves nothing."""
    answer = Answer((0, 0, 1), finished=True)
    for made_up, penalty, status in (
        (replace(peer(answer), prices=False), 0.01, "finished"),
        (replace(peer(answer), prices=False), 0.0, "optimal"),
        (replace(peer(answer), proves=False), 0.0, "finished"),
    ):
        row = measured(made_up, problem(penalty=penalty))
        assert row["status"] == status and (row["bound"] is None) == (status == "finished")


def test_trees_of_thresholds_are_routed() -> None:
    """At most the threshold is left; on columns of 0 and 1 a threshold must lie between them."""
    numbers = np.array([[0.5], [1.0], [2.0], [3.0]])
    predicted, n_leaves, depth = routed((0, 1.0, 0, (0, 2.0, 1, 2)), numbers)
    assert (predicted.tolist(), n_leaves, depth) == ([0, 0, 1, 2], 3, 2)
    assert tree_of((0, 0.5, 0, 1)).to_dict() == tree_of((0, 0, 1)).to_dict()
    with pytest.raises(ValueError, match=r"a threshold of 1\.5 on a column"):
        tree_of((0, 1.5, 0, 1))


def test_trees_from_paths_and_arrays() -> None:
    """The forms in which PRAXIS and scikit-learn have trees."""
    assert nested_of_paths([[]], [3]) == 3
    assert nested_of_paths([[1, -2], [1, 2], [-1]], [0, 1, 2]) == (0, 2, (1, 0, 1))
    arrays = SimpleNamespace(
        children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[4, -1, -1], threshold=[0.5, np.nan, np.nan]
    )
    assert nested_of_arrays(arrays, lambda leaf: 10 * leaf) == (4, 0.5, 10, 20)


@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_package_that_is_missing_is_a_row(name: str) -> None:
    """With a sentence that says how to install it."""
    absent = replace(PEERS[name], modules=("no_such_module_here",))
    row = measured(absent, problem())
    assert row["status"] == "error" and row["objective"] is None
    assert f"pip install {PEERS[name].package}" in row["error"]
    assert PEERS[name].meaning.endswith(".")


def test_cart_is_the_best_of_its_trees() -> None:
    """No criterion with any cost-complexity pruning of scikit-learn's own is better by our objective."""
    from sklearn.tree import DecisionTreeClassifier

    given = problem(3, 0.02, depth=3)
    row = measured(PEERS["cart"], given)
    for criterion in ("gini", "entropy", "log_loss"):
        grown = DecisionTreeClassifier(criterion=criterion, max_depth=3, random_state=0)
        for alpha in grown.cost_complexity_pruning_path(given.X, given.y).ccp_alphas:
            model = DecisionTreeClassifier(criterion=criterion, max_depth=3, random_state=0, ccp_alpha=max(alpha, 0.0))
            model.fit(given.X, given.y)
            assert row["objective"] >= model.score(given.X, given.y) - 0.02 * model.get_n_leaves() - 1e-9


def _crash() -> Answer:
    raise RuntimeError("boom\nin two lines")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (_crash, "error", "RuntimeError: boom in two lines"),
        (Answer(), "error", "no tree"),
        (Answer(timed_out=True), "time_limit", "no tree within the time limit"),
        (Answer((0, 0, 1), predicted=np.zeros(60)), "error", "not those of the tree"),
        (Answer((0, (1, (2, 0, 1), 0), 0)), "error", "depth 3, 2 was asked for"),
    ],
)
def test_what_goes_wrong_is_a_row(answer: Answer, status: str, words: str) -> None:
    """One sentence, no exception."""
    row = measured(peer(answer), problem())
    assert row["status"] == status and words in row["error"] and row["objective"] is None


def test_claims_are_kept_and_objectives_are_not() -> None:
    """A proof, a bound, a time-out: each becomes what it is; a bound below its own tree is kept apart."""
    given = problem()
    tree = (0, 0, 1)
    value = float(np.mean(given.X[:, 0] == given.y)) - 0.02
    rows = [
        measured(peer(answer), given)
        for answer in (
            Answer(tree, finished=True, bound=0.99),
            Answer(tree, timed_out=True, bound=0.99),
            Answer(tree, timed_out=True, bound=0.1),
            Answer(tree),
        )
    ]
    assert rows[0]["stats"] == {"claimed_bound": 0.99}
    assert [row["status"] for row in rows] == ["optimal", "time_limit", "time_limit", "finished"]
    assert [row["objective"] for row in rows] == pytest.approx([value] * 4)
    assert [row["bound"] for row in rows[:3]] == pytest.approx([value, 0.99, value]) and rows[3]["bound"] is None
    assert rows[2]["stats"] == {"claimed_bound": 0.1} and rows[1]["gap"] == pytest.approx((0.99 - value) / value)


def test_packages_are_silenced_and_the_output_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    """What native code writes to descriptor 1 is gone; what is printed afterwards is there."""

    def loud() -> Answer:
        os.write(1, b"from native code\n")
        print("from Python")
        return Answer(0)

    assert measured(peer(loud), problem())["status"] == "finished"
    os.write(1, b"after\n")
    print("wards")
    said = capfd.readouterr().out
    assert "from" not in said and "after" in said and "wards" in said
