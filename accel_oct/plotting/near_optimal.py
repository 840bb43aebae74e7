"""Pictures of many trees that are nearly as good as the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.plotting.common import BLUE, GREY, RED, axes, needs, pyplot

__all__ = ["plot_importance_range", "plot_near_optimal"]

#: How far points of one number of leaves are moved sideways, and by which share of that from one to the next.
_JITTER, _GOLDEN = 0.32, 0.6180339887


def plot_near_optimal(near: Any, *, y: str = "objective", ax: Any = None) -> Any:
    """All nearly optimal trees: how good against how large, coloured by how many columns they use.

    Parameters
    ----------
    near : object
        Iterates over trees with `objective`, `accuracy`, `n_leaves` and `columns`, and has `optimum`, `within`, `count`
        and `complete`.
    y : {"objective", "accuracy"}
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Notes
    -----
    Points are moved sideways a little, so that equal ones do not hide each other. The two lines are those of the
    objective: the optimum, and the least that was asked for.
    """
    if y not in ("objective", "accuracy"):
        raise InvalidInputError(f"y must be 'objective' or 'accuracy', got {y!r}")
    needs(near, "near", "optimum", "within", "count", "complete")
    entries = list(near)
    if not entries:
        raise InvalidInputError("near has no trees to plot")
    for entry in entries:
        needs(entry, "every entry of near", y, "n_leaves", "columns")
    plt = pyplot()
    ax = axes(ax)
    leaves = np.array([entry.n_leaves for entry in entries], dtype=float)
    height = np.array([getattr(entry, y) for entry in entries], dtype=float)
    columns = np.array([len(set(entry.columns)) for entry in entries])
    steps = np.arange(columns.min(), columns.max() + 2) - 0.5
    colours = plt.get_cmap("viridis_r", len(steps) - 1)
    points = ax.scatter(
        leaves + _sideways(leaves, height),
        height,
        c=columns,
        cmap=colours,
        vmin=steps[0],
        vmax=steps[-1],
        s=max(8.0, min(36.0, 4000.0 / len(entries))),
        linewidths=0.3,
        edgecolors="white",
        zorder=2,
    )
    bar = ax.figure.colorbar(points, ax=ax, ticks=_whole_ticks(columns.min(), columns.max()), pad=0.02)
    bar.set_label("columns used")
    bar.outline.set_visible(False)
    if y == "objective":
        low, high = near.optimum - near.within, near.optimum
        room = 0.14 * (high - min(low, height.min()) or 1.0)
        ax.set_ylim(min(low, height.min()) - room, high + room)
        for level, text, colour, side in ((high, "optimum", RED, 1), (low, f"optimum - {near.within:.3g}", GREY, -1)):
            ax.axhline(level, color=colour, linewidth=1.0, linestyle="--", zorder=1)
            ax.annotate(
                text,
                (0.01, level),
                xycoords=ax.get_yaxis_transform(),
                xytext=(0, 2 * side),
                textcoords="offset points",
                va="bottom" if side > 0 else "top",
                fontsize="small",
                color=colour,
            )
    ax.set_title(_title(near, len(entries)), fontsize="medium", loc="left")
    ax.set_xlabel("leaves")
    ax.set_ylabel("accuracy minus penalty" if y == "objective" else "accuracy")
    ax.set_xlim(leaves.min() - 0.6, leaves.max() + 0.6)
    ax.set_xticks(_whole_ticks(int(leaves.min()), int(leaves.max())))
    return ax


def plot_importance_range(table: Any, *, ax: Any = None) -> Any:
    """How much each column may matter: from the lowest to the highest importance in any of the trees.

    Parameters
    ----------
    table : iterable
        Rows with `name`, `lowest`, `highest` and `share_used`, the share of the trees that use the column.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    rows = list(table)
    if not rows:
        raise InvalidInputError("table has no rows to plot")
    for row in rows:
        needs(row, "every row of table", "name", "lowest", "highest", "share_used")
    ax = axes(ax, (6.0, 0.8 + 0.3 * len(rows)))
    end = max(float(row.highest) for row in rows) or 1.0
    for place, row in enumerate(rows):
        ax.plot([row.lowest, row.highest], [place] * 2, color=BLUE, linewidth=4.5, alpha=0.35, solid_capstyle="round")
        ax.plot([row.lowest, row.highest], [place] * 2, color=BLUE, marker="o", markersize=4.5, linestyle="none")
        ax.text(1.02, place, f"{row.share_used:.0%}", transform=ax.get_yaxis_transform(), va="center", fontsize="small")
    ax.text(1.02, -0.75, "used by", transform=ax.get_yaxis_transform(), va="center", fontsize="small", color=GREY)
    ax.set_yticks(range(len(rows)), [str(row.name) for row in rows])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(-0.03 * end, 1.03 * end)
    ax.set_xlabel("importance, lowest to highest")
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _sideways(leaves: Any, height: Any) -> Any:
    """The same for the same trees: points of one number of leaves go to places of the golden ratio, by height."""
    moved = np.zeros(len(leaves))
    for number in np.unique(leaves):
        group = np.flatnonzero(leaves == number)
        group = group[np.argsort(-height[group], kind="stable")]
        moved[group] = _JITTER * (2 * ((0.5 + _GOLDEN * np.arange(len(group))) % 1.0) - 1)
    return moved


def _whole_ticks(low: int, high: int) -> Sequence[int]:
    return range(int(low), int(high) + 1, max(1, (int(high) - int(low)) // 10))


def _title(near: Any, listed: int) -> str:
    count = max(listed, near.count or 0)
    at_least = "" if near.complete else "at least "
    text = f"{at_least}{count} tree{'' if count == 1 else 's'} within {near.within:.3g} of the optimum"
    return text if count == listed else f"{text}, {listed} shown"
