"""Class probabilities of leaves by hand, and exact intervals by scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from accel_oct.errors import InvalidInputError
from accel_oct.tree import DecisionTree
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import checked_smoothing, exact_interval, node_probabilities


def stump(counts: list[list[float]], labels: tuple[int, int], **others: object) -> FittedTree:
    """A tree of two leaves with these class weights at the leaves."""
    leaves = np.array(counts, dtype=np.float64)
    weights = np.array([leaves.sum(axis=0), *leaves])
    tree = DecisionTree.branch(0, DecisionTree.leaf(labels[0]), DecisionTree.leaf(labels[1]))
    whole = others.pop("samples", weights)
    samples = np.array(whole, dtype=np.int64)
    return FittedTree(tree, weights, samples.sum(axis=1), 1, samples, **others)  # type: ignore[arg-type]


def test_the_m_estimate_by_hand() -> None:
    """(n * share + m * prior) / (n + m): 8 of 10 and 2 of 10 with prior one half and m = 5."""
    tree = stump([[8, 2], [2, 8]], (0, 1))
    expected = [[0.5, 0.5], [(8 + 2.5) / 15, (2 + 2.5) / 15], [(2 + 2.5) / 15, (8 + 2.5) / 15]]
    np.testing.assert_allclose(node_probabilities(tree, 5.0), expected, rtol=1e-14)


def test_without_smoothing_shares_are_exact() -> None:
    """m = 0 gives the shares of `value` bit for bit."""
    tree = stump([[1, 2], [6, 1]], (1, 0))
    np.testing.assert_array_equal(node_probabilities(tree, 0.0), tree.value[:, 0])


def test_the_prior_does_not_overrule_the_majority_of_a_leaf() -> None:
    """A leaf of 1 and 2 under a prior of 101 to 2 keeps its class first, with nearly equal probabilities."""
    tree = stump([[1, 2], [100, 0]], (1, 0))
    shares = node_probabilities(tree, 5.0)
    # The largest m with 2 + m * 2/103 >= 1 + m * 101/103 is 103/99.
    m = 103 / 99
    np.testing.assert_allclose(shares[1], [(1 + m * 101 / 103) / (3 + m), (2 + m * 2 / 103) / (3 + m)], rtol=1e-8)
    assert shares[1].argmax() == 1
    np.testing.assert_allclose(shares[2], [(100 + 5 * 101 / 103) / 105, 5 * 2 / 103 / 105], rtol=1e-12)


def test_a_leaf_against_its_majority_has_the_full_smoothing() -> None:
    """A constraint made the first leaf predict the rarer class: its probabilities are those of its samples."""
    tree = stump([[6, 4], [2, 8]], (1, 1))
    np.testing.assert_allclose(node_probabilities(tree, 10.0)[1], [(6 + 4) / 20, (4 + 6) / 20], rtol=1e-14)


@pytest.mark.parametrize("labels", [(0, 1), (1, 0), (2, 2)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3, 5.0, 1e6])
def test_rows_are_probabilities_and_majorities_stay(labels: tuple[int, int], smoothing: float) -> None:
    """Over random counts: sums of 1, nothing negative, and a class with the most samples keeps the largest share."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 6, (2, 3)).astype(float)
        tree = stump(counts.tolist(), labels)
        shares = node_probabilities(tree, smoothing)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
        assert (shares >= 0).all()
        for place in (0, 1):
            own = counts[place, labels[place]]
            if own > np.delete(counts[place], labels[place]).max():
                assert shares[1 + place].argmax() == labels[place]


def test_an_empty_leaf_has_the_prior_with_its_class_first() -> None:
    """Without samples nothing but the prior is known."""
    shares = node_probabilities(stump([[0, 0], [9, 1]], (1, 0)), 5.0)
    np.testing.assert_allclose(shares[1], [0.5, 0.5], rtol=1e-8)
    assert shares[1].argmax() == 1


def test_class_weights_and_their_absence() -> None:
    """Factors of ``class_weight`` change the shares but not the number of samples that stands against the prior."""
    factors = np.array([1.0, 9.0])
    tree = stump([[8, 1 * 9], [1, 0]], (1, 0), samples=[[9, 1], [8, 1], [1, 0]], class_factors=factors)
    np.testing.assert_allclose(node_probabilities(tree, 1.0)[1], [(9 * 8 / 17 + 0.5) / 10, (9 * 9 / 17 + 0.5) / 10])
    plain = node_probabilities(tree, 1.0, class_weights=False)
    np.testing.assert_allclose(plain[1], [(8 + 0.9) / 10, (1 + 0.1) / 10])


def test_the_unit_of_weights_has_no_effect() -> None:
    """Weights that are no counts are scaled to mean 1: a tenth of every weight gives the same probabilities."""
    samples = [[10, 10], [8, 2], [2, 8]]
    small = stump([[0.8, 0.2], [0.2, 0.8]], (0, 1), samples=samples)
    np.testing.assert_allclose(
        node_probabilities(small, 5.0), node_probabilities(stump([[8, 2], [2, 8]], (0, 1)), 5.0), rtol=1e-12
    )


def test_intervals_are_those_of_scipy() -> None:
    """Clopper-Pearson by quantiles of the beta distribution, with 0 and 1 at the ends, for every count up to 30."""
    for trials in range(31):
        hits = np.arange(trials + 1)
        for confidence in (0.5, 0.95, 0.999):
            low, high = exact_interval(hits, np.full_like(hits, trials), confidence)
            tail = (1 - confidence) / 2
            np.testing.assert_allclose(low[1:], beta.ppf(tail, hits[1:], trials - hits[1:] + 1), rtol=1e-9)
            np.testing.assert_allclose(high[:-1], beta.ppf(1 - tail, hits[:-1] + 1, trials - hits[:-1]), rtol=1e-9)
            assert low[0] == 0.0
            assert high[-1] == 1.0


def test_intervals_cover() -> None:
    """The exact probability that the interval holds the true share is at least the confidence."""
    hits = np.arange(21)
    low, high = exact_interval(hits, np.full(21, 20), 0.9)
    for share in np.linspace(0.01, 0.99, 99):
        inside = (low <= share) & (share <= high)
        assert binom.pmf(hits, 20, share)[inside].sum() >= 0.9


@pytest.mark.parametrize("smoothing", [-1, float("nan"), float("inf"), "5", None, True])
def test_invalid_smoothing(smoothing: object) -> None:
    """A sentence that names the argument."""
    with pytest.raises(InvalidInputError, match="smoothing must be a finite number"):
        checked_smoothing(smoothing)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, "95", True])
def test_invalid_confidence(confidence: object) -> None:
    """A sentence that names the argument."""
    with pytest.raises(InvalidInputError, match="confidence must be a number between 0 and 1"):
        exact_interval([1], [2], confidence)  # type: ignore[arg-type]
