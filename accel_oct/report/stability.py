"""The section on stability: splits of resampled trees, and the range of importance over near-optimal trees."""

from __future__ import annotations

from accel_oct.reasons.stability import Stability
from accel_oct.report.markup import Markup, count, element, isolated, percent, readable_text, section, table
from accel_oct.solving.near_optimal import NearOptimalTrees


def stability_section(stability: Stability | None, trees: NearOptimalTrees | None) -> Markup | None:
    """Return the tables; None if neither was asked for."""
    parts = [] if stability is None else _resampled(stability)
    importance = _importance(trees)
    if not parts and importance is None:
        return None
    return section("stability", "Stability", parts, importance)


def _resampled(found: Stability) -> list[Markup]:
    failed = f"; {count(found.n_failed, 'sample')} had no tree" if found.n_failed else ""
    words = (
        f"The tree was fitted again on {count(found.n_trees, 'bootstrap sample')} of the training rows "
        f"({found.n_wanted} were asked for, seed {found.seed}{failed}). On average they give "
        f"{percent(found.agreement)} of the training rows the class of this tree."
    )
    splits = [
        (
            readable_text(split.question),
            [percent(split.share), percent(split.column_share), readable_text(split.near)],
        )
        for split in found.splits
    ]
    columns = [(isolated(name), [percent(share)]) for name, share in found.columns.items()]
    return [
        element("p", words),
        table(
            "Splits in resampled trees",
            ("split of this tree", "comes back", "column used", "counted as the same"),
            splits,
        ),
        element("h3", "Columns in resampled trees"),
        table("Columns in resampled trees", ("column", "used by"), columns),
    ]


def _importance(trees: NearOptimalTrees | None) -> Markup | None:
    """Return the range of importance; None without a list of trees over rows."""
    if trees is None or trees.optimum is None or not len(trees):
        return None
    found = trees.importance()
    rows = [
        (isolated(row.name), [f"{row.lowest:.4f}", f"{row.highest:.4f}", percent(row.share_used)])
        for row in found
        if row.share_used > 0
    ]
    listed = "all" if found.complete else "the listed"
    return element(
        "div",
        element("h3", "Importance over nearly optimal trees"),
        element(
            "p",
            f"{found.score_name.capitalize()} lost when the values of a column are shuffled: least and largest over "
            f"{listed} {count(found.n_trees, 'tree')} within {trees.within:g} of the best.",
        ),
        table("Importance over nearly optimal trees", ("column", "lowest", "highest", "used by"), rows),
    )
