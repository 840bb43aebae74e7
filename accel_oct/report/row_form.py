"""A form for one row of the table, and the tree in values that the page's script can evaluate.

The script gives the answer of `predict`. It compares as `Condition.holds` does, on the values that encoders make of
cells: numbers as doubles, whole numbers without a point exactly, times and durations as whole nanoseconds, categories
as text, ordered ones by their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.export.view import TreeView
from accel_oct.report.markup import Markup, element
from accel_oct.report.wording import isolated

__all__ = ["column_data", "condition_data", "row_section"]

#: Columns with more categories get a field to type in: such lists are long, and may be names of people.
_MOST_LISTED = 50
#: Values of the select for a category that fitting did not see; no category is empty and begins with it.
_OTHER = "other"


def row_section(model: Any, tree: TreeView) -> Markup:
    """The form, or why there is none."""
    head = element("h2", "Try a row", id="row-title")
    columns = _asked(tree)
    if not isinstance(model.encoder_, BinaryEncoder):
        kind = type(model.encoder_).__name__
        said = f"The columns were encoded by a {kind} of another library, whose answers this page cannot compute."
        return element("section", head, element("p", said), id="row-section", aria_labelledby="row-title")
    if not columns:
        always = [
            "The tree is a single leaf: every row is ",
            element("bdi", tree.class_names[tree.nodes[0].label]),
            ".",
        ]
        return element("section", head, element("p", always), id="row-section", aria_labelledby="row-title")
    fields = [_field(model.encoder_, tree, column) for column in columns]
    others = len(tree.column_names) - len(columns)
    note = f" The other {others} of {len(tree.column_names)} columns do not change the answer." if others else ""
    empty = "" if model.encoder_.missing == "error" else " Leave a field empty where the value is missing."
    return element(
        "section",
        head,
        element("p", f"Type the values of a row to see its way through the tree.{empty}{note}"),
        element(
            "form",
            element("div", fields, class_="fields"),
            element(
                "p", element("button", "Show its way", type="submit"), " ", element("button", "Clear", type="reset")
            ),
            id="row",
            novalidate=True,
            autocomplete="off",
        ),
        element("div", id="answer", role="status"),
        id="row-section",
        class_="screen",
        aria_labelledby="row-title",
    )


def condition_data(condition: Condition | None) -> dict[str, Any] | None:
    """A condition for the script; limits are text, since whole numbers may be too large for JavaScript's numbers."""
    if condition is None:
        return None
    per = NANOSECONDS.get(condition.scale.unit, 1) if condition.scale is not None else None
    return {
        "column": condition.column,
        "test": condition.test,
        "low": _limit(condition.low, per),
        "high": _limit(condition.high, per),
        "value": condition.value if isinstance(condition.value, str) else _limit(condition.value, None),
        "values": None if condition.values is None else list(condition.values),
        "missing": condition.holds_if_missing,
    }


def column_data(model: Any, tree: TreeView) -> dict[str, dict[str, Any]]:
    """How to read the fields of the columns that the tree asks for; by position."""
    if not isinstance(model.encoder_, BinaryEncoder):
        return {}
    scales: dict[int, Scale] = model.encoder_.scales_
    return {
        str(column): {
            "name": isolated(tree.column_names[column]),
            "kind": tree.kinds[column],
            "listed": _categories(model.encoder_, column),
            "zone": column in scales and scales[column].zone is not None,
            "missing": model.encoder_.missing != "error",
        }
        for column in _asked(tree)
    }


def _limit(limit: float | str | None, per: int | None) -> str | None:
    """A number as text: with `per`, so many nanoseconds (or places in an order) each, as a whole number."""
    if limit is None:
        return None
    if per is not None:
        return f"{int(limit) * per}"
    return repr(limit)


def _asked(tree: TreeView) -> list[int]:
    return sorted({node.condition.column for node in tree.nodes if node.condition is not None})


def _categories(encoder: Any, column: int) -> Sequence[str] | None:
    """Those to choose from; None where the value is to be typed."""
    scale = encoder.scales_.get(column)
    if scale is not None:
        known: Sequence[str] = scale.categories
    else:
        known = getattr(encoder, "categories_", {}).get(column, ())
    return known if 0 < len(known) <= _MOST_LISTED else None


def _field(encoder: Any, tree: TreeView, column: int) -> Markup:
    name = f"column-{column}"
    label = element("label", tree.column_names[column], for_=name, dir="auto")
    error = element("p", id=f"{name}-error", class_="error", hidden=True)
    return element("div", label, _input(encoder, tree.kinds[column], column, name), error, class_="field")


def _input(encoder: Any, kind: str, column: int, name: str) -> Markup:
    shared = {"id": name, "name": name, "data_column": column, "aria_describedby": f"{name}-error"}
    categories = _categories(encoder, column)
    if kind == "boolean":
        return element("select", _empty(encoder), _options(("true", "yes"), ("false", "no")), **shared)
    if categories is not None:
        options = [
            (f"={place}", text if text.strip() else f"\u201c{text}\u201d") for place, text in enumerate(categories)
        ]
        if getattr(encoder, "unknown_", getattr(encoder, "unknown", "ignore")) != "error":
            options.append((_OTHER, "\u2014 another one \u2014"))
        return element("select", _empty(encoder), _options(*options), **shared)
    hint = "" if encoder.missing == "error" else "missing"
    scale = encoder.scales_.get(column)
    if kind == "datetime" and scale.zone is None and scale.unit in ("D", "s", "ms"):
        step = {"D": None, "s": "1", "ms": "0.001"}[scale.unit]
        return element("input", type="date" if scale.unit == "D" else "datetime-local", step=step, **shared)
    if kind == "datetime":
        hint = "2024-01-31 12:30:00" + ("+00:00" if scale.zone is not None else "")
    elif kind == "duration":
        hint = "2 days 12:30:00"
    mode = "decimal" if kind == "numeric" else None
    return element("input", type="text", inputmode=mode, placeholder=hint, spellcheck="false", dir="auto", **shared)


def _empty(encoder: Any) -> Markup:
    return element("option", "\u2014" if encoder.missing == "error" else "missing", value="")


def _options(*options: tuple[str, str]) -> list[Markup]:
    return [element("option", text, value=value) for value, text in options]
