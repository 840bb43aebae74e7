"""The section on leaves and probabilities: leaf table, reliability picture, log-loss and Brier score."""

from __future__ import annotations

import math
from typing import Any

from accel_oct.reasons.leaves import Leaf, leaf_table
from accel_oct.report.markup import Content, Markup, element, isolated, percent, readable_text, section, table, terms
from accel_oct.report.scores import Scores
from accel_oct.report.tree import class_mark

_SIZE, _LEFT, _TOP, _BOTTOM, _RIGHT = 320.0, 46.0, 12.0, 40.0, 22.0
_SMALLEST, _LARGEST = 3.0, 9.0


def probabilities_section(model: Any, training: Scores, test: Scores | None) -> Markup:
    """Return the leaf table, the picture and the scores."""
    rows, where = (training, "training") if test is None else (test, "test")
    leaves = leaf_table(model, rows.counts)
    note = (
        "The tree was chosen on these rows, so that observed shares are too good; test data give honest ones."
        if test is None
        else "The tree has not seen these rows: each interval contains the true share in at least 95 % of cases."
    )
    smoothing = (
        f"A leaf of n training samples has the probabilities (n · share + m · share in all training data) / (n + m), "
        f"with m = {model.smoothing_:.3g}."
        if model.smoothing_
        else "Probabilities are the shares of the training samples in the leaf."
    )
    figures: list[tuple[str, Content]] = []
    for name, found in (("training data", training), ("test data", test)):
        if found is not None and found.log_loss is not None and found.brier is not None:
            figures.append((f"log-loss, {name}", f"{found.log_loss:.4f}"))
            figures.append((f"Brier score, {name}", f"{found.brier:.4f}"))
    classes = {label: place for place, label in enumerate(model.classes_.tolist())}
    listed = table(
        "Leaves",
        ("class", "probability", f"right ({where})", "95 % interval", "rule"),
        [_row(leaf, classes[leaf.prediction]) for leaf in leaves],
    )
    return section(
        "probabilities",
        "Leaves and probabilities",
        element(
            "p", f"{smoothing} Right rows and exact (Clopper-Pearson) intervals are those of the {where} data. {note}"
        ),
        terms(figures, "pairs"),
        listed,
        element("h3", "Reliability"),
        element(
            "p",
            f"Each point is a leaf: to the right its probability, upwards the share of the {where} rows that have its "
            "class, with the interval; larger points have more rows. Reliable probabilities lie on the diagonal.",
        ),
        reliability_picture(list(leaves), classes),
    )


def _row(leaf: Leaf, label: int) -> tuple[str, list[Content]]:
    rule: Content = [element("li", readable_text(step)) for step in leaf.rule]
    shown: Content = element("ul", rule, class_="plain") if leaf.rule else "every row"
    right = f"{leaf.n_right:,} of {leaf.n_rows:,}"
    if leaf.n_rows:
        right += f" ({percent(leaf.n_right / leaf.n_rows)})"
    interval = f"{percent(leaf.low)} to {percent(leaf.high)}"
    name = isolated(f"{leaf.prediction}{' *' if leaf.against_majority else ''}")
    return name, [element("span", class_mark(label), " ", percent(leaf.probability)), right, interval, shown]


def reliability_picture(leaves: list[Leaf], classes: dict[Any, int]) -> Markup:
    """Draw the leaves with rows: predicted probability of their class against its share, with intervals."""
    counted = [leaf for leaf in leaves if leaf.n_rows]
    most = max((leaf.n_rows for leaf in counted), default=1)
    inner = _SIZE - _LEFT - _RIGHT

    def x(share: float) -> float:
        return _LEFT + inner * share

    def y(share: float) -> float:
        return _TOP + inner * (1 - share)

    height = _TOP + inner + _BOTTOM
    parts: list[Markup] = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            element(
                "path", d=f"M{x(0):.1f} {y(tick):.1f}H{x(1):.1f}M{x(tick):.1f} {y(0):.1f}V{y(1):.1f}", class_="grid"
            )
        )
        parts.append(element("text", f"{tick:.0%}", x=f"{_LEFT - 5:.1f}", y=f"{y(tick) + 4:.1f}", text_anchor="end"))
        parts.append(element("text", f"{tick:.0%}", x=f"{x(tick):.1f}", y=f"{y(0) + 15:.1f}", text_anchor="middle"))
    parts.append(
        element(
            "text", "probability of the leaf's class", x=f"{x(0.5):.1f}", y=f"{height - 6:.1f}", text_anchor="middle"
        )
    )
    parts.append(element("path", d=f"M{x(0):.1f} {y(0):.1f}L{x(1):.1f} {y(1):.1f}", class_="diagonal"))
    said = []
    for leaf in counted:
        share = leaf.n_right / leaf.n_rows
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(leaf.n_rows / most)
        where = f"{x(leaf.probability):.1f}"
        text = (
            f"{leaf.prediction}: probability {percent(leaf.probability)}, "
            f"observed {percent(share)} of {leaf.n_rows:,} rows"
        )
        said.append(text)
        bar = element("path", d=f"M{where} {y(leaf.low):.1f}V{y(leaf.high):.1f}", class_="interval")
        point = element(
            "circle",
            element("title", text),
            cx=where,
            cy=f"{y(share):.1f}",
            r=f"{radius:.1f}",
            class_=f"k{classes[leaf.prediction]}",
        )
        parts += [bar, point]
    return element(
        "svg",
        element("title", f"Reliability of the probabilities. {'; '.join(said)}."),
        parts,
        viewBox=f"0 0 {_SIZE:g} {height:g}",
        class_="reliability",
        role="img",
    )
