"""Pictures of solves: convergence, accuracy against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.plotting.common import AMBER, BLUE, RED, axes
from accel_oct.solving.result import HistoryRow

__all__ = ["plot_convergence", "plot_path"]


def plot_convergence(result: Any, *, ax: Any = None) -> Any:
    """Objective and bound over time.

    Parameters
    ----------
    result : Result, fitted OptimalTreeClassifier, or rows (seconds, objective, bound)
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    result = getattr(result, "result_", result)
    rows: Sequence[HistoryRow] = getattr(result, "history", result)
    if len(rows) == 0:
        raise InvalidInputError("result has no history to plot")
    seconds, objective, bound = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    end = max(float(getattr(result, "seconds", seconds[-1])), float(seconds[-1]))
    seconds, objective, bound = (
        np.append(seconds, end),
        np.append(objective, objective[-1]),
        np.append(bound, bound[-1]),
    )
    ax = axes(ax)
    ax.fill_between(seconds, objective, bound, step="post", color=AMBER, alpha=0.15, linewidth=0)
    ax.step(seconds, bound, where="post", color=AMBER, label="bound")
    ax.step(seconds, objective, where="post", color=BLUE, label="objective")
    ax.set_xlabel("seconds")
    ax.set_ylabel("accuracy minus penalty")
    ax.margins(x=0.02)
    ax.legend(loc="best", frameon=False)
    return ax


def plot_path(model: Any, *, ax: Any = None) -> Any:
    """Cross-validated accuracy against the number of leaves, with standard errors; the choice is marked.

    Parameters
    ----------
    model : fitted OptimalTreeClassifierCV
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not hasattr(model, "curve_"):
        raise InvalidInputError("model must be a fitted OptimalTreeClassifierCV")
    leaves, accuracy, error = model.curve_.T
    ax = axes(ax)
    ax.errorbar(leaves, accuracy, yerr=error, color=BLUE, marker="o", markersize=4, linewidth=1.2, capsize=2)
    results = model.cv_results_
    chosen = (results["max_depth"] == model.max_depth_) & (results["leaf_penalty"] == model.leaf_penalty_)
    place = int(np.flatnonzero(chosen)[0])
    ax.plot(
        results["mean_n_leaves"][place],
        results["mean_test_score"][place],
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=RED,
        markeredgewidth=1.8,
        linestyle="none",
        label=f"chosen: leaf penalty {model.leaf_penalty_:.4g}",
    )
    ax.set_xlabel("leaves (mean over the folds)")
    ax.set_ylabel("accuracy on held-out data")
    ax.legend(loc="best", frameon=False)
    return ax
