"""What constraints came to."""

from __future__ import annotations

from typing import Any

from accel_oct.report.markup import Markup, element

__all__ = ["constraints_section"]

_HEAD = ("constraint", "at least", "at most", "value", "slack", "price")


def constraints_section(model: Any) -> Markup | None:
    """A table; None without constraints."""
    reports = getattr(model, "constraints_", ())
    if not reports:
        return None
    rows = [
        element(
            "tr",
            element("th", element("bdi", report.name), scope="row"),
            (
                element("td", "\u2013" if number is None else f"{number:.4g}".replace("-", "\u2212"))
                for number in (report.lower, report.upper, report.value, report.slack, report.multiplier)
            ),
        )
        for report in reports
    ]
    table = element(
        "table",
        element("thead", element("tr", (element("th", text, scope="col") for text in _HEAD))),
        element("tbody", rows),
    )
    said = (
        "On the training data. Slack is how far the tree is from breaking the constraint. The price is what the "
        "objective would gain, to first order, from one unit more of the limit; it is left open where it was not "
        "computed."
    )
    return element(
        "section",
        element("h2", "Constraints", id="constraints-title"),
        element("p", said),
        element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Constraints"),
        id="constraints-section",
        aria_labelledby="constraints-title",
    )
