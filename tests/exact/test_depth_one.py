"""Trees of depth one: one pass over the columns, and no table of pairs of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import MaxLeaves, MinLeafWeight
from accel_oct.encoding import AllThresholdsEncoder
from accel_oct.exact import samples
from accel_oct.exact.counts import ProductCounts


def best_stump(X: np.ndarray, y: np.ndarray, weights: np.ndarray, penalty: float, least: float = 0.0) -> float:
    """The objective of the best tree of depth one, by trying every column."""

    def score(rows: np.ndarray) -> float:
        if weights[rows].sum() < least:
            return -np.inf
        return max(weights[rows & (y == k)].sum() for k in np.unique(y))

    values = [score(np.ones(len(y), dtype=bool)) / weights.sum() - penalty]
    for column in X.T:
        ones = column == 1
        values.append((score(ones) + score(~ones)) / weights.sum() - 2 * penalty)
    return max(values)


@pytest.fixture
def without_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting pairs of columns is an error."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("pairs of columns were counted")

    monkeypatch.setattr(samples, "CompiledCounts", refuse)
    monkeypatch.setattr(ProductCounts, "_in_steps", refuse)


@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.01, 0.2]), st.booleans())
def test_the_best_stump(seed: int, n_classes: int, penalty: float, weighted: bool) -> None:
    """Against every column, with and without weights, with a least weight of leaves, and for every number of leaves."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (25, 5)), rng.integers(0, n_classes, 25)
    y[:n_classes] = np.arange(n_classes)
    weights = rng.integers(1, 9, 25) / 8 if weighted else np.ones(25)
    found = accel_oct.solve(X, y, max_depth=1, leaf_penalty=penalty, sample_weight=weights)
    assert found.status == "optimal" and found.objective == pytest.approx(best_stump(X, y, weights, penalty), abs=1e-12)
    heavy = accel_oct.solve(
        X, y, max_depth=1, leaf_penalty=penalty, sample_weight=weights, constraints=[MinLeafWeight(amount=6.0)]
    )
    assert heavy.objective == pytest.approx(best_stump(X, y, weights, penalty, 6.0), abs=1e-12)
    frontier = accel_oct.frontier(X, y, max_depth=1, sample_weight=weights)
    assert frontier.best(penalty).objective == pytest.approx(best_stump(X, y, weights, penalty), abs=1e-12)


@pytest.mark.usefixtures("without_pairs")
@pytest.mark.parametrize("weighted", [False, True])
def test_no_pairs_are_counted(weighted: bool) -> None:
    """Two numbers in 400 rows give 798 thresholds: their 318,000 pairs say nothing about trees of depth one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    weights = rng.random(400) if weighted else None
    model = OptimalTreeClassifier(1, 0.01, encoder=AllThresholdsEncoder()).fit(X, y, sample_weight=weights)
    assert model.status_ == "optimal" and len(model.encoder_.conditions_) == 798
    binary = model.encoder_.transform(X)
    assert accel_oct.solve(
        binary, y, max_depth=1, leaf_penalty=0.01, sample_weight=weights, constraints=[MaxLeaves(2)]
    ).objective == pytest.approx(model.objective_, abs=1e-12)
    assert accel_oct.frontier(binary, y, max_depth=1, sample_weight=weights).best(0.01).objective == pytest.approx(
        model.objective_, abs=1e-12
    )
