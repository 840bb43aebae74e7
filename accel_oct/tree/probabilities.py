"""Class probabilities at the nodes of a fitted tree, and exact intervals for shares."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.special import betaincinv

from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import FloatArray
from accel_oct.tree.fitted_tree import FittedTree

DEFAULT_SMOOTHING = 5.0
"""Default of `smoothing`; ``docs/probabilities.md`` has the figures."""

_STRICT = 1e-9
"""Relative margin by which the class of a leaf stays ahead."""


def checked_smoothing(smoothing: Any) -> float:
    """Return the amount of smoothing as a float; raise unless it is a finite number >= 0."""
    number = isinstance(smoothing, int | float | np.integer | np.floating) and not isinstance(smoothing, bool)
    if not number or not 0 <= smoothing <= sys.float_info.max:
        raise InvalidInputError(f"smoothing must be a finite number >= 0, got {shown(smoothing)}")
    return float(smoothing)


def node_probabilities(tree: FittedTree, smoothing: float, class_weights: bool = True) -> FloatArray:
    """Return the probability of each class at each node: (node_count, n_classes).

    The m-estimate ``(n * share + m * prior) / (n + m)``: n is the number of training samples at the node, `share` the
    share of the class in their weight, `prior` its share in the weight of all training samples, and m is `smoothing`.

    Parameters
    ----------
    tree : FittedTree
    smoothing : float
        m >= 0; 0 gives the shares.
    class_weights : bool
        Whether shares use the weights with the factors of ``class_weight``.

    Notes
    -----
    In a leaf whose label has the largest share, m is lowered until the label also has the largest probability: the
    prior does not overrule the samples of the leaf. A leaf without samples has the prior, with the probability of its
    label raised to the largest.

    n is the sum of the sample weights if these are whole numbers, which count repeated samples. Other weights are
    scaled to mean 1, so that their unit does not change the result.
    """
    weights = tree.class_weights if class_weights else tree.plain_weights
    amount = _amounts(tree)[:, None]
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
    prior = shares[:1] if totals[0, 0] > 0 else np.full_like(shares[:1], 1.0 / shares.shape[1])
    empty = totals[:, 0] == 0
    strength = np.minimum(smoothing, _strongest(shares, prior, np.where(empty[:, None], 0.0, amount), tree.label))
    known = ~empty
    result = np.repeat(prior, len(shares), axis=0)
    towards = (strength / (amount[:, 0] + np.where(known, strength, 1.0)))[known, None]
    result[known] = shares[known] + towards * (prior - shares[known])  # exactly the shares without smoothing
    for leaf in np.flatnonzero(empty & (tree.label >= 0)).tolist():
        if smoothing == 0:
            result[leaf] = np.eye(shares.shape[1])[tree.label[leaf]]
        else:
            result[leaf, tree.label[leaf]] = result[leaf].max() * (1 + _STRICT)
            result[leaf] /= result[leaf].sum()
    return result


def _amounts(tree: FittedTree) -> FloatArray:
    """Return the number of samples at each node: the weight if weights are whole, else the weight scaled to mean 1."""
    cells, weights = tree.plain_weights, tree.plain_weights.sum(axis=1)
    whole = np.rint(cells)
    if np.all((np.abs(cells - whole) <= 1e-9 * np.maximum(whole, 1.0)) & ((whole > 0) == (cells > 0))):
        return np.asarray(weights)
    return np.asarray(weights * (tree.class_counts[0].sum() / weights[0]))


def _strongest(shares: FloatArray, prior: FloatArray, amount: FloatArray, label: Any) -> FloatArray:
    """Return, for each node, the largest m for which the class of a leaf keeps the largest probability."""
    own = np.maximum(label, 0)
    rows = np.arange(len(shares))
    lead = amount * (shares[rows, own][:, None] - shares)
    lag = prior - prior[0, own][:, None]
    limit = np.divide(lead, lag, out=np.full_like(lead, np.inf), where=lag > 0).min(axis=1) * (1 - _STRICT)
    keeps = (label >= 0) & (lead.min(axis=1) >= 0)
    return np.where(keeps, np.maximum(limit, 0.0), np.inf)


def checked_confidence(confidence: Any) -> float:
    """Return the confidence level; raise unless it is between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must be a number between 0 and 1, got {shown(confidence)}")
    return float(confidence)


def exact_interval(successes: Any, trials: Any, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the exact binomial (Clopper-Pearson) interval of a share: lower and upper limits.

    The interval contains the share with at least this probability for any number of trials, which must be independent
    and not have chosen what they are counted for.

    Parameters
    ----------
    successes, trials : int arrays of the same shape
    confidence : float
    """
    hits, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1 - checked_confidence(confidence)) / 2
    # scipy.stats.beta.ppf without the import of scipy.stats, which is slow.
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, tail), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - tail), 1.0)
    return low, high
