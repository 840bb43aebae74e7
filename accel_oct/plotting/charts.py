"""Charts of solves, constraints and nearly optimal trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_oct.errors import AccelOctError, InvalidInputError, shown
from accel_oct.plotting.layout import shorten
from accel_oct.solving.result import HistoryRow

#: A constraint whose relative slack is below this is binding.
_BINDING = 1e-9
#: Largest sideways shift of points with equal numbers of leaves, and the share of it from one point to the next.
_JITTER, _GOLDEN = 0.32, 0.6180339887

BLUE, AMBER, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"


def axes(ax: Any, size: tuple[float, float] = (6.0, 3.6)) -> Any:
    """Return the given axes, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=size, layout="constrained")[1]


def pyplot() -> Any:
    """Import matplotlib.pyplot; the error names the extra to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise AccelOctError("plots need matplotlib: pip install 'accel-oct[plot]'") from None
    return plt


def needs(thing: Any, what: str, *names: str) -> None:
    """Raise unless the object has the attributes `names`."""
    for name in names:
        if not hasattr(thing, name):
            raise InvalidInputError(f"{what} must have {name!r}, got {shown(thing)}")


def plot_convergence(result: Any, *, ax: Any = None) -> Any:
    """Plot objective and bound over time.

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
    """Plot cross-validated accuracy against the number of leaves, with standard errors and the chosen model.

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


def plot_trade_off(trade_off: Any, *, ax: Any = None) -> Any:
    """Plot the best score against the limit of a constraint.

    Filled markers are proven optimal. The line above a hollow marker ends at its bound. Limits that no tree over the
    splits of the model's encoder satisfies are shaded.

    Parameters
    ----------
    trade_off : object
        Has `name`, `score_name` and `points`; a point has `limit`, `value`, `score`, `bound` and `status`, and for
        held-out data `test_score` and `test_score_error`.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    needs(trade_off, "trade_off", "name", "score_name", "points")
    points = sorted(trade_off.points, key=lambda point: float(point.limit))
    if not points:
        raise InvalidInputError("trade_off has no points to plot")
    for point in points:
        needs(point, "every point of trade_off", "limit", "score", "bound", "status")
    ax = axes(ax)
    found = [p for p in points if p.status != "infeasible" and _is_finite(p.score)]
    proven = [p for p in found if p.status == "optimal"]
    worth = [getattr(p, "objective", p.score) for p in proven]
    # Between two limits, the tree of the stricter one is feasible.
    where = "pre" if worth and worth[0] > worth[-1] else "post"
    ax.step([p.limit for p in proven], [p.score for p in proven], where=where, color=BLUE, linewidth=1.3, zorder=2)
    for point in found:
        if point.status != "optimal" and _is_finite(point.bound):
            # The bound is on the objective, which includes the leaf penalty.
            top = point.bound + (point.score - getattr(point, "objective", point.score))
            ax.plot([point.limit] * 2, [point.score, top], color=AMBER, linewidth=5, alpha=0.5, zorder=1)
            ax.plot(point.limit, top, marker="_", markersize=9, color=AMBER, zorder=1)
    _markers(ax, proven, "proven optimal", BLUE)
    _markers(ax, [p for p in found if p.status != "optimal"], "not proven: bar up to the bound", "white")
    tested = [p for p in points if getattr(p, "test_score", None) is not None]
    if tested:
        ax.errorbar(
            [p.limit for p in tested],
            [p.test_score for p in tested],
            yerr=[getattr(p, "test_score_error", None) or 0.0 for p in tested],
            color=RED,
            marker="s",
            markersize=3.5,
            linewidth=1.0,
            linestyle="--",
            capsize=2,
            label="held-out data, \u00b1 1 standard error",
            zorder=3,
        )
    _shade_infeasible(ax, points)
    ax.set_xlabel(f"limit on {trade_off.name}", parse_math=False)
    ax.set_ylabel(f"{trade_off.score_name}", parse_math=False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", frameon=False)
    return ax


def _markers(ax: Any, points: Sequence[Any], label: str, fill: str) -> None:
    if points:
        ax.plot(
            [p.limit for p in points],
            [p.score for p in points],
            marker="o",
            markersize=5.5,
            linestyle="none",
            markerfacecolor=fill,
            markeredgecolor=BLUE,
            markeredgewidth=1.3,
            label=label,
            zorder=4,
        )


def _shade_infeasible(ax: Any, points: Sequence[Any]) -> None:
    """Shade each run of infeasible limits, up to the middle between it and its neighbours."""
    limits = [float(p.limit) for p in points]
    step = (limits[-1] - limits[0]) / max(1, len(limits) - 1) or 1.0
    place = 0
    while place < len(points):
        end = place
        while end < len(points) and points[end].status == "infeasible":
            end += 1
        if end == place:
            place += 1
            continue
        low = (limits[place - 1] + limits[place]) / 2 if place else limits[0] - step / 2
        high = (limits[end - 1] + limits[end]) / 2 if end < len(limits) else limits[-1] + step / 2
        ax.axvspan(low, high, color="#dddddd", linewidth=0, zorder=0)
        text = "no tree over these splits satisfies " + ("this limit" if end - place == 1 else "these limits")
        ax.text(
            (low + high) / 2,
            0.5,
            text,
            transform=ax.get_xaxis_transform(),
            rotation=90,
            ha="center",
            va="center",
            color="#444444",
            fontsize="small",
        )
        place = end


def plot_constraints(source: Any, *, ax: Any = None) -> Any:
    """Plot how close the value of each constraint is to its limit; binding constraints are marked.

    A bar is the value between the lower and the upper limit, or as a share of the only limit. The text below it has
    the value, the limits, and the multiplier, if any: the gain of the objective per unit of the limit.

    Parameters
    ----------
    source : Result, fitted OptimalTreeClassifier, or reports
        A report has `name`, `value`, `slack` and `multiplier`, and may have `lower` and `upper`.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    reports = getattr(source, "constraints_", getattr(source, "constraints", source))
    reports = list(reports) if isinstance(reports, list | tuple) else []
    if not reports:
        raise InvalidInputError("source has no constraints to plot")
    for report in reports:
        needs(report, "every report of source", "name", "slack")
    ax = axes(ax, (5.0, 0.7 + 0.62 * len(reports)))
    # matplotlib is an extra
    from accel_oct.plotting.picture import text_width

    room = 72 * ax.get_window_extent().width / ax.figure.dpi
    for place, report in enumerate(reports):
        used = _used(report)
        binding = _is_binding(report)
        ax.barh(place, 1.0, height=0.3, color="#eeeeee", zorder=0)
        if used is None:
            ax.barh(place, 1.0, height=0.3, facecolor="none", edgecolor="#bbbbbb", hatch="////", linewidth=0, zorder=1)
        else:
            ax.barh(place, min(used, 1.0), height=0.3, color=RED if binding else BLUE, zorder=1)
        for text, side, largest in ((str(report.name), -1, 9.0), (_summary(report, binding), 1, 8.0)):
            size = max(5.0, min(largest, room / text_width(text, False)))
            line = shorten(text, room / size, lambda part: text_width(part, False))
            ax.text(
                0.0,
                place + 0.18 * side,
                line,
                va="bottom" if side < 0 else "top",
                fontsize=size,
                color="#1a1a1a" if side < 0 else "#4d4d4d",
                parse_math=False,
            )
    ax.axvline(1.0, color=GREY, linewidth=1.0)
    ax.set_yticks([])
    ax.set_ylim(len(reports) - 0.45, -0.55)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([0.0, 0.5, 1.0], ["0", "half of the limit", "limit"])
    ax.get_xticklabels()[2].set_ha("right")
    ax.get_xticklabels()[0].set_ha("left")
    for border in ("top", "right", "left"):
        ax.spines[border].set_visible(False)
    return ax


def _is_binding(report: Any) -> bool:
    return bool(report.slack <= _BINDING * max(1.0, abs(getattr(report, "value", None) or 0.0)))


def _used(report: Any) -> float | None:
    """Return the value as a share of its nearest limit, 1 at the limit; None if that is not defined."""
    lower, upper = getattr(report, "lower", None), getattr(report, "upper", None)
    value, slack = getattr(report, "value", None), float(report.slack)
    if _is_binding(report):
        return 1.0
    if value is None:
        return None
    if lower is not None and upper is not None:
        half = (upper - lower) / 2
        return None if not half > 0 else max(0.0, 1.0 - slack / half)
    if upper is None and lower is None:  # the slack gives the limit
        upper = value + slack
    if upper is not None:
        return max(0.0, value / upper) if upper > 0 and value >= 0 else None
    assert lower is not None
    return max(0.0, lower / value) if value > 0 else None


def _summary(report: Any, binding: bool) -> str:
    lower, upper = getattr(report, "lower", None), getattr(report, "upper", None)
    value, multiplier = getattr(report, "value", None), getattr(report, "multiplier", None)
    text = f"slack {report.slack:.3g}" if value is None else f"{value:.4g}"
    if value is not None and lower is not None and upper is not None:
        text += f" within {lower:.4g} to {upper:.4g}"
    elif value is not None and upper is not None:
        text += f" of at most {upper:.4g}"
    elif value is not None and lower is not None:
        text += f", at least {lower:.4g}"
    text += ", binding" if binding else ""
    return text if multiplier is None else f"{text}, multiplier {multiplier:.3g}"


def _is_finite(number: Any) -> bool:
    return number is not None and math.isfinite(number)


def plot_near_optimal(near: Any, *, y: str = "objective", ax: Any = None) -> Any:
    """Plot nearly optimal trees: objective against leaves, coloured by the number of columns they use.

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
    Points are shifted sideways, so that equal ones do not hide each other. The two lines are the optimum and the
    least objective of the search.
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
    """Plot the range of importance of each column over nearly optimal trees.

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
    """Return deterministic shifts: points with equal numbers of leaves, ordered by height, by the golden ratio."""
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
