"""The tree as a decision table: one row per leaf, one column per column of X that the tree asks about."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.values import format_number
from accel_oct.export.inputs import unique_name
from accel_oct.export.palette import class_colour
from accel_oct.export.view import NodeView, TreeView, class_probabilities, codable_view

_ANY = "any"
#: Categories that are written in quotes: these words, and those with one of these marks (a leading sign starts a
#: formula in spreadsheets).
_WORDS = {"", _ANY, "missing", "known", "none"}
_MARKS = {",", '"'}
_SIGNS = "=+-@"

_STYLE = "border:1px solid #ccc;padding:2px 8px"
_TABLE_STYLE = "border-collapse:collapse"

Limit = float | None


@dataclass(frozen=True)
class Cell:
    """The values of one column with which rows reach a leaf.

    Attributes
    ----------
    intervals : tuple of (low, high)
        Of numbers, times (in units of `scale`) and ordered categories (positions): ``low <= x < high``; None is no
        limit. Empty for other columns. A category that was not seen in training is below all others of an order.
    categories : tuple of str
        Of all other columns; "true" and "false" for booleans.
    others : bool
        Whether the values are all but `categories`.
    missing : bool
        Whether rows without a value reach the leaf.
    text : str
        All of this in words, "any" for all values; missing values are named if the column had some in training.
    """

    intervals: tuple[tuple[Limit, Limit], ...] = ()
    categories: tuple[str, ...] = ()
    others: bool = False
    missing: bool = True
    text: str = _ANY


@dataclass(frozen=True)
class LeafRow:
    """A row of a decision table.

    Attributes
    ----------
    leaf : int
        Index of the leaf in ``tree_``, as `apply` returns it.
    cells : tuple of Cell
        In the order of the columns of the table.
    label : str, number or bool
        The class that is predicted.
    probabilities : tuple of float
        As `predict_proba` returns them; of a policy tree, 1 for the treatment.
    samples : int
        Number of training samples.
    share : float
        Share of the training samples (of their weight, if they are weighted).
    against_majority : bool
        Whether the class is not that of most samples; an asterisk marks it.
    rewards : tuple of float
        Of a policy tree: mean reward of the training samples under each treatment; else empty.
    """

    leaf: int
    cells: tuple[Cell, ...]
    label: Any
    class_index: int
    probabilities: tuple[float, ...]
    samples: int
    share: float
    against_majority: bool
    rewards: tuple[float, ...] = ()


@dataclass(frozen=True)
class DecisionTable:
    """A decision table; every row of X matches exactly one of its rows.

    Attributes
    ----------
    columns : tuple of str
        The columns that the tree asks about.
    rows : tuple of LeafRow
        In the order of `to_text`.
    classes : tuple
    note : str
        Explanation of the asterisk; empty if no class has one.
    """

    columns: tuple[str, ...]
    rows: tuple[LeafRow, ...]
    classes: tuple[Any, ...]
    note: str = ""

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self) -> str:
        """Return aligned columns of plain text."""
        lines = [[_printable(text) for text in line] for line in [self._header(), *map(self._shown, self.rows)]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        n_left = len(self.columns) + 1
        lines.insert(1, ["-" * width for width in widths])
        aligned = (
            [
                text.ljust(w) if j < n_left else text.rjust(w)
                for j, (text, w) in enumerate(zip(line, widths, strict=True))
            ]
            for line in lines
        )
        return "\n".join(["  ".join(line).rstrip() for line in aligned] + ([self.note] if self.note else []))

    def to_csv(self) -> str:
        """Return CSV with a header line; each class has a column of probabilities, each treatment one of rewards."""
        taken, figure = set(self.columns), self._figure
        names = [self._output, figure, "samples", "share", *(f"{figure} of {label}" for label in self.classes)]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*self.columns, *(unique_name(name, taken) for name in names)])
        for row in self.rows:
            figures = row.rewards or row.probabilities
            numbers = [figures[row.class_index], row.samples, row.share, *figures]
            writer.writerow([*(cell.text for cell in row.cells), row.label, *numbers])
        return file.getvalue()

    def to_html(self) -> str:
        """Return an HTML table without scripts; all text is escaped."""
        head = "".join(f'<th style="{_STYLE};text-align:left">{escape(name)}</th>' for name in self._header())
        body = []
        for row in self.rows:
            texts = self._shown(row)
            colour = class_colour(row.class_index, row.probabilities[row.class_index], len(self.classes))
            styles = [_STYLE] * len(texts)
            styles[len(self.columns)] += f";background:{colour};color:#000"
            cells = (f'<td style="{style}">{escape(t)}</td>' for style, t in zip(styles, texts, strict=True))
            body.append(f"<tr>{''.join(cells)}</tr>")
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        table = f'<table style="{_TABLE_STYLE}"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
        return f'<div style="font-family:sans-serif;font-size:13px">{table}{note}</div>'

    @property
    def _is_policy(self) -> bool:
        return bool(self.rows[0].rewards)

    @property
    def _output(self) -> str:
        return "treatment" if self._is_policy else "class"

    @property
    def _figure(self) -> str:
        return "mean reward" if self._is_policy else "probability"

    def _header(self) -> list[str]:
        return [*self.columns, self._output, self._figure, "samples", "share"]

    def _shown(self, row: LeafRow) -> list[str]:
        mark = " *" if row.against_majority else ""
        place = row.class_index
        figure = f"{row.rewards[place]:.4g}" if row.rewards else f"{row.probabilities[place]:.1%}"
        numbers = [figure, str(row.samples), f"{row.share:.1%}"]
        return [*(cell.text for cell in row.cells), f"{row.label}{mark}", *numbers]


def to_table(model: Any) -> DecisionTable:
    """Return the tree as a decision table: `to_text`, `to_csv` and `to_html` of the result render it.

    The questions of a path are merged to one set of values per column, with all digits of thresholds.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier or OptimalPolicyTree
        The table of a policy tree has treatments and mean rewards instead of classes and probabilities.
    """
    tree = codable_view(model, "to_table")
    columns = sorted({node.condition.column for node in tree.nodes if node.condition is not None})
    # Columns whose missing values are named: as in the text of the tree.
    can_miss = {
        node.condition.column
        for node in tree.nodes
        if node.condition is not None and (node.missing is not None or node.condition.test == "is_missing")
    }
    shares, rewards, rows = class_probabilities(model), model.tree_.rewards, []
    for leaf, path in _paths(tree):
        cells = []
        for column in columns:
            asked = [(condition, answer) for condition, answer in path if condition.column == column]
            cells.append(_cell(asked, tree.kinds[column], column in can_miss))
        row = _row(tree, leaf, tuple(cells), tuple(shares[leaf.index].tolist()))
        rows.append(row if rewards is None else replace(row, rewards=tuple(rewards[leaf.index].tolist())))
    return DecisionTable(tuple(tree.column_names[column] for column in columns), tuple(rows), tree.classes, tree.note)


def _row(tree: TreeView, leaf: NodeView, cells: tuple[Cell, ...], probabilities: tuple[float, ...]) -> LeafRow:
    total = tree.nodes[0].weight
    return LeafRow(
        leaf=leaf.index,
        cells=cells,
        label=tree.classes[leaf.label],
        class_index=leaf.label,
        probabilities=probabilities,
        samples=leaf.samples,
        share=leaf.weight / total if total else 0.0,
        against_majority=leaf.against_majority,
    )


def _paths(tree: TreeView) -> list[tuple[NodeView, list[tuple[Condition, bool]]]]:
    """Return each leaf with the conditions on its path and their answers, "no" before "yes"."""
    found = []
    stack: list[tuple[int, list[tuple[Condition, bool]]]] = [(0, [])]
    while stack:
        index, path = stack.pop()
        node = tree.nodes[index]
        if node.condition is None:
            found.append((node, path))
            continue
        stack.append((node.right, [*path, (node.condition, True)]))
        stack.append((node.left, [*path, (node.condition, False)]))
    return found


def _cell(asked: Sequence[tuple[Condition, bool]], kind: str, can_miss: bool) -> Cell:
    if not asked:
        return Cell()
    if kind in ("categorical", "boolean"):
        return _category_cell(asked, kind, can_miss)
    return _interval_cell(asked, can_miss)


def _agree(asked: Sequence[tuple[Condition, bool]], values: NDArray[Any]) -> list[bool]:
    """Return which values get the given answers."""
    result = np.ones(len(values), dtype=bool)
    for condition, answer in asked:
        result &= condition.holds(values) == answer
    return [bool(agrees) for agrees in result]


def _category_cell(asked: Sequence[tuple[Condition, bool]], kind: str, can_miss: bool) -> Cell:
    if kind == "boolean":
        *kept, missing = _agree(asked, np.array([1.0, 0.0, math.nan]))
        known = tuple(text for text, agrees in zip(("true", "false"), kept, strict=True) if agrees)
        return Cell((), known, False, missing, _described(list(known), len(known) == 2, missing, can_miss))
    named: dict[str, None] = {}
    for condition, _ in asked:
        named |= dict.fromkeys([condition.value] if isinstance(condition.value, str) else condition.values or ())
    unseen = "?" + max(named, key=len, default="")
    *kept, others, missing = _agree(asked, np.array([*named, unseen, None], dtype=object))
    texts = tuple(text for text, agrees in zip(named, kept, strict=True) if agrees != others)
    if others:
        parts = [f"not {', '.join(map(_quoted, texts))}"] if texts else []
        return Cell((), texts, True, missing, _described(parts, not texts, missing, can_miss))
    parts = [", ".join(map(_quoted, texts))] if texts else []
    return Cell((), texts, False, missing, _described(parts, False, missing, can_miss))


def _interval_cell(asked: Sequence[tuple[Condition, bool]], can_miss: bool) -> Cell:
    limits: set[Any] = {limit for c, _ in asked for limit in (c.low, c.high) if limit is not None}
    for condition, _ in asked:
        if isinstance(condition.value, float):
            limits |= {condition.value, math.nextafter(condition.value, math.inf)}
    starts: list[Any] = [-math.inf, *sorted(limits)]
    dtype = object if any(isinstance(limit, int) for limit in limits) else np.float64
    *kept, missing = _agree(asked, np.array([*starts, math.nan], dtype=dtype))
    intervals: list[tuple[Limit, Limit]] = []
    for place, agrees in enumerate(kept):
        low = None if place == 0 else starts[place]
        high = starts[place + 1] if place + 1 < len(starts) else None
        if agrees and intervals and place and intervals[-1][1] == low:
            intervals[-1] = (intervals[-1][0], high)
        elif agrees:
            intervals.append((low, high))
    scale = next((condition.scale for condition, _ in asked if condition.scale is not None), None)
    texts = [_interval_text(low, high, scale) for low, high in intervals]
    text = _described(texts, intervals == [(None, None)], missing, can_miss)
    return Cell(tuple(intervals), (), False, missing, text)


def _interval_text(low: Limit, high: Limit, scale: Scale | None) -> str:
    def shown(limit: float) -> str:
        return format_number(limit) if scale is None else scale.text(limit)

    if low is not None and high is not None:
        if high == math.nextafter(low, math.inf):
            return shown(low)
        return f">= {shown(low)} and < {shown(high)}"
    return f">= {shown(low)}" if low is not None else f"< {shown(high)}" if high is not None else ""


def _described(parts: list[str], every: bool, missing: bool, can_miss: bool) -> str:
    """Join the parts of a cell; `every` is True if all known values are in it."""
    if every:
        return _ANY if missing or not can_miss else "known"
    return " or ".join([*parts, *(["missing"] if missing and can_miss else [])]) or "none"


def _quoted(text: str) -> str:
    marked = bool(_MARKS & set(text)) or " or " in text or text.strip() != text or text.startswith(("not ", *_SIGNS))
    return json.dumps(text, ensure_ascii=False) if marked or text in _WORDS else text


def _printable(text: str) -> str:
    """Write control characters as escape sequences, so that each row is one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
