"""The section on accuracy by group."""

from __future__ import annotations

from accel_oct.report.markup import Markup, element, isolated, percent, section, table
from accel_oct.report.scores import GroupScore


def groups_section(training: list[GroupScore] | None, test: list[GroupScore] | None) -> Markup | None:
    """Return a table for each part of the data; None without groups."""
    parts = []
    for title, found in (("Training data", training), ("Test data", test)):
        if found:
            rows = [
                (
                    isolated(f"{score.column} = {score.value}"),
                    [f"{score.n_rows:,}", percent(score.accuracy), f"{percent(score.low)} to {percent(score.high)}"],
                )
                for score in found
            ]
            parts += [element("h3", title), table(title, ("group", "rows", "correct", "95 % interval"), rows)]
    if not parts:
        return None
    explanation = (
        "Share of correct predictions in each group, rows counted without weights, with the exact (Clopper-Pearson) "
        "interval. On training data the intervals are too optimistic, because the tree was chosen on these rows."
    )
    return section("groups", "Accuracy by group", element("p", explanation), parts)
