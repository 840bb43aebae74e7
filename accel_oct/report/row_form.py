"""A form for one row, and the tree as values for the script of the page, which computes the result of `predict`.

The script compares as `Condition.holds` does, on values as encoders make them: numbers as doubles, whole numbers
exactly, times and durations as whole nanoseconds, categories as text, ordered categories by their position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.export.view import TreeView
from accel_oct.report.markup import Markup, element, isolated, section

#: Columns with more categories get a text field: long lists are hard to use, and may be names of people.
_MOST_LISTED = 50
#: Option for a category that is not in the training data; values of known ones begin with "=".
_OTHER = "other"


def row_section(model: Any, tree: TreeView) -> Markup:
    """Return the form, or the reason why there is none."""
    columns = _asked(tree)
    if not isinstance(model.encoder_, BinaryEncoder):
        kind = type(model.encoder_).__name__
        reason = f"The columns were encoded by a {kind} of another library, which this page cannot compute."
        return section("row", "Try a row", element("p", reason))
    if not columns:
        name = element("bdi", tree.class_names[tree.nodes[0].label])
        return section("row", "Try a row", element("p", "The tree is a single leaf: every row is ", name, "."))
    fields = [_field(model.encoder_, tree, column) for column in columns]
    others = len(tree.column_names) - len(columns)
    note = f" The other {others} of {len(tree.column_names)} columns do not change the prediction." if others else ""
    empty = "" if model.encoder_.missing == "error" else " Leave a field empty if the value is missing."
    buttons = [element("button", "Show its path", type="submit"), " ", element("button", "Clear", type="reset")]
    return section(
        "row",
        "Try a row",
        element(
            "p",
            f"Type the values of a row to see its path through the tree, the reasons for its class, and the smallest "
            f"change that leads to another class.{empty}{note}",
        ),
        element(
            "form",
            element("div", fields, class_="fields"),
            element("p", buttons),
            id="row",
            novalidate=True,
            autocomplete="off",
        ),
        element("div", id="answer", role="status"),
        element("noscript", element("p", "This form needs JavaScript.")),
        class_="screen",
    )


def condition_data(condition: Condition | None) -> dict[str, Any] | None:
    """Return a condition for the script; limits are text, because whole numbers may exceed JavaScript's doubles."""
    if condition is None:
        return None
    per = NANOSECONDS.get(condition.scale.unit, 1) if condition.scale is not None else None
    return {
        "column": condition.column,
        "test": condition.test,
        "low": number_text(condition.low, per),
        "high": number_text(condition.high, per),
        "value": condition.value if isinstance(condition.value, str) else number_text(condition.value, None),
        "values": None if condition.values is None else list(condition.values),
        "missing": condition.holds_if_missing,
    }


def column_data(model: Any, tree: TreeView) -> dict[str, dict[str, Any]]:
    """Return, by position, how to read the fields of the columns that the tree uses."""
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


def number_text(limit: float | str | None, per: int | None) -> str | None:
    """Return a number as text; `per` is the unit of a measured column, in nanoseconds or positions."""
    if limit is None:
        return None
    return repr(limit) if per is None else f"{int(limit) * per}"


def _asked(tree: TreeView) -> list[int]:
    return sorted({node.condition.column for node in tree.nodes if node.condition is not None})


def _categories(encoder: Any, column: int) -> Sequence[str] | None:
    """Return the categories to choose from; None for a text field."""
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
    said = f"{tree.column_names[column]} cannot change"
    fixed = element("input", type="checkbox", data_fixed=column, aria_label=said)
    kept = element("label", fixed, " cannot change", class_="fixed quiet")
    return element("div", label, _input(encoder, tree.kinds[column], column, name), kept, error, class_="field")


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
