"""Pictures: the tree, the convergence of a solve, accuracy against size. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.export.palette import class_colour
from accel_oct.export.view import TreeView, view
from accel_oct.solving.result import HistoryRow

__all__ = ["plot_convergence", "plot_path", "plot_tree"]

_LINE_WIDTH = 28
_INCHES_PER_LEAF, _INCHES_PER_LEVEL = 2.1, 1.25


def plot_tree(model: Any, *, ax: Any = None, filled: bool = True, font_size: float = 9.0) -> Any:
    """Draw a fitted tree; "no" goes left and "yes" goes right.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    ax : matplotlib axes, optional
        By default a new figure that is large enough to read.
    filled : bool
        Colour nodes by class, paler where the class is less sure.
    font_size : float

    Returns
    -------
    matplotlib axes
    """
    tree = view(model)
    places = _places(tree)
    n_leaves = sum(node.is_leaf for node in tree.nodes)
    depth = max(node.depth for node in tree.nodes)
    if ax is None:
        size = (max(3.0, _INCHES_PER_LEAF * n_leaves), max(1.8, _INCHES_PER_LEVEL * (depth + 1)))
        _, ax = _pyplot().subplots(figsize=size, layout="constrained")
    for node in tree.nodes:
        for answer, child in (("no", node.left), ("yes", node.right)):
            if child >= 0:
                _draw_edge(ax, places[node.index], places[child], answer, font_size)
    for node in tree.nodes:
        colour = class_colour(node.label, node.share, len(tree.class_names)) if filled else "white"
        if node.is_leaf:
            text = f"{fill(tree.class_names[node.label], _LINE_WIDTH)}\n{node.share:.1%} of {node.samples}"
        else:
            text = f"{fill(node.yes, _LINE_WIDTH)}?\n{node.samples} samples"
        shape = "round,pad=0.45" if node.is_leaf else "square,pad=0.45"
        box = {"boxstyle": shape, "facecolor": colour, "edgecolor": "#444444", "linewidth": 0.8}
        x, y = places[node.index]
        # Names are the user's own: a dollar sign in them is no mathematics.
        ax.text(x, y, text, ha="center", va="center", fontsize=font_size, bbox=box, zorder=3, parse_math=False)
    ax.set_xlim(-0.6, n_leaves - 0.4)
    ax.set_ylim(-depth - 0.45, 0.45)
    ax.set_axis_off()
    return ax


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
    ax = _axes(ax)
    ax.fill_between(seconds, objective, bound, step="post", color="#E69F00", alpha=0.15, linewidth=0)
    ax.step(seconds, bound, where="post", color="#E69F00", label="bound")
    ax.step(seconds, objective, where="post", color="#0072B2", label="objective")
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
    ax = _axes(ax)
    ax.errorbar(leaves, accuracy, yerr=error, color="#0072B2", marker="o", markersize=4, linewidth=1.2, capsize=2)
    results = model.cv_results_
    chosen = (results["max_depth"] == model.max_depth_) & (results["leaf_penalty"] == model.leaf_penalty_)
    place = int(np.flatnonzero(chosen)[0])
    ax.plot(
        results["mean_n_leaves"][place],
        results["mean_test_score"][place],
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor="#D55E00",
        markeredgewidth=1.8,
        linestyle="none",
        label=f"chosen: leaf penalty {model.leaf_penalty_:.4g}",
    )
    ax.set_xlabel("leaves (mean over the folds)")
    ax.set_ylabel("accuracy on held-out data")
    ax.legend(loc="best", frameon=False)
    return ax


def _places(tree: TreeView) -> dict[int, tuple[float, float]]:
    """Leaves side by side, each branch node above the middle of its children."""
    places: dict[int, tuple[float, float]] = {}
    next_leaf = 0

    def place(index: int) -> float:
        nonlocal next_leaf
        node = tree.nodes[index]
        if node.is_leaf:
            x = float(next_leaf)
            next_leaf += 1
        else:
            x = (place(node.left) + place(node.right)) / 2
        places[index] = (x, -float(node.depth))
        return x

    place(0)
    return places


def _draw_edge(ax: Any, start: tuple[float, float], end: tuple[float, float], answer: str, size: float) -> None:
    ax.plot([start[0], end[0]], [start[1], end[1]], color="#888888", linewidth=1.0, zorder=1)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    clear = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(x, y, answer, ha="center", va="center", fontsize=size - 1, color="#555555", bbox=clear, zorder=2)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return _pyplot().subplots(figsize=(6.0, 3.6), layout="constrained")[1]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise AccelOctError("plots need matplotlib: pip install 'accel-oct[plot]'") from None
    return plt
