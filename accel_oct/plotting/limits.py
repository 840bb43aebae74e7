"""Pictures of constraints: what a limit costs, and how much of each limit a tree uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accel_oct.errors import InvalidInputError
from accel_oct.plotting.common import AMBER, BLUE, GREY, RED, axes, needs
from accel_oct.plotting.wrapping import shorten

__all__ = ["plot_constraints", "plot_trade_off"]

#: A limit of which less than this share is left is binding.
_BINDING = 1e-9


def plot_trade_off(trade_off: Any, *, ax: Any = None) -> Any:
    """What a limit costs: the best score against the limit.

    A filled marker is proven; a hollow one is not, and the line above it reaches up to what no tree exceeds. Limits
    that no tree over the splits of the model's encoder keeps are shaded.

    Parameters
    ----------
    trade_off : object
        With `name`, `score_name` and `points`; a point has `limit`, `value`, `score`, `bound` and `status`, and for
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
    # Between two limits the tree of the stricter one is known to be allowed.
    where = "pre" if worth and worth[0] > worth[-1] else "post"
    ax.step([p.limit for p in proven], [p.score for p in proven], where=where, color=BLUE, linewidth=1.3, zorder=2)
    for point in found:
        if point.status != "optimal" and _is_finite(point.bound):
            # The bound is on the objective, in which leaves are paid for.
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
    """Shade from each run of infeasible limits to half-way to its neighbours."""
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
        text = "no tree over these splits keeps " + ("this limit" if end - place == 1 else "these limits")
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
    """How much of each limit a tree uses; limits without slack are marked as binding.

    A bar is the value between the lower and the upper limit, or as a share of the only one. The text below it
    has the value, its limits, and the multiplier where there is one: what the objective gains from one unit more.

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
        for text, side, largest in ((str(report.name), -1, 9.0), (_said(report, binding), 1, 8.0)):
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
    """How near the value is to its nearest limit, 1 at the limit; None where that has no scale."""
    lower, upper = getattr(report, "lower", None), getattr(report, "upper", None)
    value, slack = getattr(report, "value", None), float(report.slack)
    if _is_binding(report):
        return 1.0
    if value is None:
        return None
    if lower is not None and upper is not None:
        half = (upper - lower) / 2
        return None if not half > 0 else max(0.0, 1.0 - slack / half)
    if upper is None and lower is None:  # the slack alone tells where the limit is
        upper = value + slack
    if upper is not None:
        return max(0.0, value / upper) if upper > 0 and value >= 0 else None
    assert lower is not None
    return max(0.0, lower / value) if value > 0 else None


def _said(report: Any, binding: bool) -> str:
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
