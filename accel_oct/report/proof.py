"""The sections on the proof and on constraints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.export.view import TreeView
from accel_oct.report.markup import Content, Markup, count, decimals, element, percent, section, table, terms
from accel_oct.solving.result import HistoryRow

#: Size and margins of the convergence picture.
_WIDTH, _HEIGHT = 560.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 12.0, 34.0
#: Number of points of a line at this width.
_MOST = 400
#: Far below the weight of a row, far above rounding errors.
_TOLERANCE = 1e-7
_ENDED = {
    "gap_limit": "the requested gap was reached",
    "time_limit": "the time limit was reached",
    "node_limit": "the node limit was reached",
    "interrupted": "it was interrupted",
    "stopped": "it was stopped",
    "solver_failed": "the solver failed",
}


def convergence_picture(history: Sequence[HistoryRow], seconds: float) -> Markup | None:
    """Draw objective and bound over time as SVG; None with fewer than two points."""
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
    """Return the corners of a step function, constant until the next point."""
    corners: list[tuple[float, float]] = []
    for moment, level in points:
        if corners:
            corners.append((x(moment), corners[-1][1]))
        corners.append((x(moment), y(level)))
    return [*corners, (x(end), corners[-1][1])]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _ticks(low: float, high: float) -> list[float]:
    """Return three to seven round numbers in a range."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(factor for factor in (5, 2, 1) if (high - low) / (factor * step) >= 2.5 or factor == 1)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "\u2212")


def verdict(model: Any) -> str:
    """Return the proof status as a sentence."""
    words = str(model.proof_).replace("_", " ")
    return words[:1].upper() + words[1:] + "."


def proof_section(model: Any, tree: TreeView) -> Markup:
    """Return the figures, the scope of the search, and the curve."""
    result = model.result_
    picture = convergence_picture(result.history, result.seconds)
    seconds = f"{result.seconds:.3g} s"
    if picture is None:
        curve: Content = element("p", f"There is no curve: the solve took {seconds} and a single step.")
        if not result.history:
            curve = element("p", "The history of the solve is not stored with this model.")
    else:
        caption = [
            element("span", "bound", class_="key bound"),
            " no tree over the same splits is better; ",
            element("span", "objective", class_="key objective"),
            f" of the best tree so far. {seconds} in all.",
        ]
        curve = element("figure", picture, element("figcaption", caption))
    return section(
        "proof",
        "Proof",
        element("p", element("strong", verdict(model)), " ", _scope(model)),
        element("div", _figures(model), curve, class_="beside"),
        _questions(model, tree),
    )


def gap_of(model: Any) -> str:
    """Return the relative gap in percent."""
    return percent(model.gap_) if model.gap_ < 10 else "above 1000%"


def _scope(model: Any) -> str:
    """Return which trees the proof covers, and why the search ended early."""
    splits = model._scope(model.result_).splits
    over = f"The search was over {splits}"
    if model.exact_:
        over += ": a threshold between any two neighbouring values, one category against all others."
    else:
        bound = model.table_bound_
        most = "" if bound is None else f" by {bound - model.objective_:.4g} at most"
        over += f"; a tree that splits elsewhere could be better{most}."
    if model.status_ == "optimal":
        return over
    ended = _ENDED.get(model.status_, model.status_)
    return f"The search ended before a proof was complete: {ended}. {over}"


def _figures(model: Any) -> Markup:
    result, leaves = model.result_, model.get_n_leaves()
    # Cross-validation chooses leaf_penalty_.
    penalty = float(model.leaf_penalty_ if hasattr(model, "leaf_penalty_") else model.leaf_penalty)
    score = model.objective_ + penalty * leaves
    made_of = f"{_score_name(model, score)} {decimals(score)}"
    if penalty:
        made_of += f" \u2212 {leaves} \u00d7 {penalty:g}"
    scope = model._scope(model.result_)
    others = f"no tree of {scope.depth} over these splits"
    if model.constraints_:
        others += " that satisfies the constraints"
    pairs: list[tuple[str, Content]] = [
        ("Objective", [decimals(model.objective_), element("small", f" = {made_of}")]),
        ("Bound", [decimals(model.bound_), element("small", f" {others} is better")]),
        ("Gap", gap_of(model)),
        ("Status", model.status_.replace("_", " ")),
        ("Splits", scope.splits),
        ("Size", f"{count(leaves, 'leaf')}, depth {model.get_depth()}"),
        ("Seconds", f"{result.seconds:.3g}"),
    ]
    decided = result.stats.get("decided_by")
    if isinstance(decided, str) and model.status_ == "optimal":
        pairs.append(("Decided by", decided.replace("_", " ")))
    return terms(pairs, "figures")


def _score_name(model: Any, score: float) -> str:
    """Return the name of the objective; a stored model may lack it, then the counts decide."""
    if isinstance(model.objective, str):
        return model.objective.replace("_", " ")
    arrays = model.tree_
    leaves = np.flatnonzero(arrays.children_left < 0)
    weights = arrays.class_weights[leaves]
    right = weights[np.arange(len(leaves)), arrays.label[leaves]].sum() / weights.sum()
    if model.objective is not None or abs(right - score) > _TOLERANCE:
        return "score"
    return "accuracy" if model.class_weight is None else "weighted accuracy"


def _questions(model: Any, tree: TreeView) -> Markup | None:
    """Return the number of candidate splits of each column; None if every split was searched."""
    if not isinstance(model.encoder_, BinaryEncoder) or "every_split" in model.result_.stats:
        return None
    asked = Counter(condition.column for condition in model.encoder_.conditions_)
    used = {node.condition.column for node in tree.nodes if node.condition is not None}
    rows = [(name, (asked[column], "yes" if column in used else "no")) for column, name in enumerate(tree.column_names)]
    return element(
        "details",
        element("summary", "Questions that could be asked, by column"),
        table("Questions by column", ("column", "questions", "in the tree"), rows),
    )


def constraints_section(model: Any) -> Markup | None:
    """Return limits, values and prices of the constraints as a table; None without constraints."""
    reports = getattr(model, "constraints_", ())
    if not reports:
        return None
    rows = [
        (
            report.name,
            (
                "\u2013" if number is None else _short(number)
                for number in (report.lower, report.upper, report.value, report.slack, report.multiplier)
            ),
        )
        for report in reports
    ]
    explanation = (
        "On the training data. Slack is the distance of the value from the limit. The price is the gain of the "
        "objective, to first order, per unit by which the limit is relaxed; it is empty if it was not computed."
    )
    head = ("constraint", "at least", "at most", "value", "slack", "price")
    return section("constraints", "Constraints", element("p", explanation), table("Constraints", head, rows))
