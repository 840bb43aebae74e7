"""Objective and bound over time, as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from accel_oct.report.markup import Markup, element
from accel_oct.report.wording import decimals
from accel_oct.solving.result import HistoryRow

__all__ = ["convergence_picture"]

_WIDTH, _HEIGHT = 560.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 12.0, 34.0
#: Points of a line; more cannot be told apart.
_MOST = 400


def convergence_picture(history: Sequence[HistoryRow], seconds: float) -> Markup | None:
    """Two lines with what is between them; None where there are no two moments to draw."""
    rows = [row for row in history if math.isfinite(row.bound)]
    known = [row for row in rows if math.isfinite(row.objective)]
    end = max([seconds, *(row.seconds for row in rows)], default=0.0)
    if len(rows) < 2 or not known or end <= 0:
        return None
    if len(rows) > _MOST:
        rows = [rows[k * (len(rows) - 1) // (_MOST - 1)] for k in range(_MOST)]
        known = [row for row in rows if math.isfinite(row.objective)]
    levels = [row.objective for row in known] + [row.bound for row in rows]
    low, high = min(levels), max(levels)
    room = (high - low) * 0.06 or 0.01
    low, high = low - room, high + room

    def x(moment: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * max(moment, 0.0) / end

    def y(level: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - level) / (high - low)

    above = _steps([(row.seconds, row.bound) for row in rows], end, x, y)
    below = _steps([(row.seconds, row.objective) for row in known], end, x, y)
    corners = [p for p in above if p[0] >= below[0][0]]
    first = (below[0][0], next(p[1] for p in reversed(above) if p[0] <= below[0][0]))
    area = _path([*below, *reversed([first, *corners])]) + "Z"
    last = rows[-1]
    said = f"After {end:.3g} seconds the objective is {decimals(last.objective)} and the bound {decimals(last.bound)}."
    return element(
        "svg",
        element("title", "Objective and bound over time. " + said),
        _axes(x, y, low, high, end),
        element("path", d=area, class_="gap"),
        element("path", d=_path(above), class_="bound"),
        element("path", d=_path(below), class_="objective"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="curve",
        role="img",
    )


def _axes(
    x: Callable[[float], float], y: Callable[[float], float], low: float, high: float, end: float
) -> list[Markup]:
    parts = []
    for level in _ticks(low, high):
        parts.append(element("path", d=f"M{_LEFT} {y(level):.1f}H{_WIDTH - _RIGHT}", class_="grid"))
        parts.append(element("text", _short(level), x=_LEFT - 8, y=f"{y(level) + 4:.1f}", class_="tick end"))
    for moment in _ticks(0.0, end):
        parts.append(element("text", _short(moment), x=f"{x(moment):.1f}", y=_HEIGHT - 16, class_="tick middle"))
    parts.append(element("text", "seconds", x=_WIDTH - _RIGHT, y=_HEIGHT - 2, class_="tick end"))
    return parts


def _steps(
    points: Sequence[tuple[float, float]], end: float, x: Callable[[float], float], y: Callable[[float], float]
) -> list[tuple[float, float]]:
    """The corners of a line that keeps its level until the next point."""
    corners: list[tuple[float, float]] = []
    for moment, level in points:
        if corners:
            corners.append((x(moment), corners[-1][1]))
        corners.append((x(moment), y(level)))
    return [*corners, (x(end), corners[-1][1])]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers in a range."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(factor for factor in (5, 2, 1) if (high - low) / (factor * step) >= 2.5 or factor == 1)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "\u2212")
