"""`ties`: another of the equally good trees, with the same objective and proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import MinLeafWeight
from accel_oct.errors import InvalidInputError


def tied(n: int = 40, binary: bool = False, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of few values and noisy classes: several trees are equally good."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2 if binary else 6, (n, 6)).astype(float)
    return X, (X[:, 0] + X[:, 1] + rng.integers(0, 2, n) > (1 if binary else 5)).astype(int)


def impurity(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The Gini impurities of the leaves, weighted by their rows."""
    leaf = model.apply(X)
    total = 0.0
    for each in np.unique(leaf):
        shares = np.bincount(y[leaf == each]) / (leaf == each).sum()
        total += (leaf == each).sum() * (1 - (shares**2).sum())
    return total


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3, None])
def test_the_objective_does_not_depend_on_ties(depth: int | None, binary: bool) -> None:
    """Same objective, bound and status for all criteria; "purity" has the purer leaves, "support" the larger ones."""
    for seed in range(8):
        X, y = tied(binary=binary, seed=seed)
        encoder = None if binary else "auto"
        models = {
            ties: OptimalTreeClassifier(depth, 0.03, ties=ties, encoder=encoder).fit(X, y)
            for ties in ("first", "purity", "support")
        }
        proofs = {(model.objective_, model.bound_, model.status_) for model in models.values()}
        assert len(proofs) == 1 and "optimal" in proofs.pop()
        assert impurity(models["purity"], X, y) <= impurity(models["first"], X, y) + 1e-9
        smallest = {ties: np.unique(model.apply(X), return_counts=True)[1].min() for ties, model in models.items()}
        assert smallest["support"] >= smallest["first"]
        for ties in ("purity", "support"):
            if models[ties].get_n_leaves() > 1:
                note = models[ties].result_.stats["ties"]
                assert note["criterion"] == ties and note["complete"]


def test_the_criterion_chooses_among_binary_features() -> None:
    """Each feature makes two errors; one has two impure leaves, the other a pure one, and it is taken in any order."""
    first = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1])
    second = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    y = np.repeat([1, 0], 6)
    for pure, X in ((1, np.column_stack([first, second])), (0, np.column_stack([second, first]))):
        model = OptimalTreeClassifier(1, 0.0, encoder=None).fit(X, y)
        assert model.objective_ == 10 / 12
        assert model.tree_.feature[0] == pure


def test_a_path_has_the_trees_of_single_fits() -> None:
    """The criterion applies to each penalty of a path as to a fit, and the result is the same every time."""
    X, y = tied(60)
    penalties = [0.1, 0.05, 0.02]
    path = OptimalTreeClassifier(2).path(X, y, leaf_penalties=penalties)
    again = OptimalTreeClassifier(2).path(X, y, leaf_penalties=penalties)
    for one, other, penalty in zip(path, again, penalties, strict=True):
        single = OptimalTreeClassifier(2, penalty).fit(X, y)
        assert one.objective_ == single.objective_
        np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_constraints_hold_after_an_exchange() -> None:
    """Each leaf keeps the least weight, and the report of the constraint is about the tree that is returned."""
    for seed in range(6):
        X, y = tied(seed=seed)
        for encoder in ("auto", None):
            table = X if encoder == "auto" else (X > 2).astype(int)
            limit = MinLeafWeight(amount=7.0)
            model = OptimalTreeClassifier(2, 0.0, encoder=encoder, constraints=[limit]).fit(table, y)
            smallest = np.unique(model.apply(table), return_counts=True)[1].min()
            assert smallest >= 7
            assert model.result_.constraints[0].slack >= 0


@pytest.mark.parametrize("ties", ["best", 3, None, ["purity"]])
@pytest.mark.parametrize("kind", [OptimalTreeClassifier, OptimalTreeClassifierCV])
def test_a_mistaken_value_is_an_error_that_names_ties(kind: Any, ties: Any) -> None:
    """The values are purity, support and first."""
    with pytest.raises(InvalidInputError, match="ties must be one of 'purity', 'support', 'first'"):
        kind(2, ties=ties).fit(*tied())


def test_cross_validation_passes_ties_on() -> None:
    """The fit on all data uses the criterion of the cross-validated classifier."""
    X, y = tied(80)
    model = OptimalTreeClassifierCV(2, [0.02], cv=3, ties="support").fit(X, y)
    assert model.best_estimator_.ties == "support"
    assert model.result_.stats["ties"]["criterion"] == "support"


def test_json_keeps_ties(tmp_path: Path) -> None:
    """A stored model has its criterion; files without one are of the first tree; another value is an error."""
    model = OptimalTreeClassifier(2, 0.02, ties="support").fit(*tied())
    document = json.loads(model.to_json(tmp_path / "model.json") or (tmp_path / "model.json").read_text())
    assert OptimalTreeClassifier.from_json(json.dumps(document)).ties == "support"
    del document["parameters"]["ties"]
    assert OptimalTreeClassifier.from_json(json.dumps(document)).ties == "first"
    for wrong in ("best", ["purity"], None):
        document["parameters"]["ties"] = wrong
        with pytest.raises(InvalidInputError, match=r"parameters\.ties"):
            OptimalTreeClassifier.from_json(json.dumps(document))
