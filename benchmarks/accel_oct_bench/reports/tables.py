"""Tables of reports, and their text as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel_oct_bench.reports.comparison import Comparison, is_solved, shifted_geometric_mean
from accel_oct_bench.rows import Row

__all__ = [
    "Cell",
    "Table",
    "data_table",
    "failure_table",
    "html_table",
    "instance_table",
    "latex_table",
    "markdown_table",
    "number",
    "summary_table",
    "without_tags",
]


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    groups : list of (str, int), or empty
        A line above the header: texts, and the number of columns that each spans.
    words : int
        Number of columns from the left that are words; the others are numbers.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    caption: str = ""
    groups: Sequence[tuple[str, int]] = ()
    words: int = 1


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with three digits; a dash for None."""
    if value is None or not np.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def summary_table(comparison: Comparison, shift: float) -> Table:
    """Return one line per method: solved, times, gaps, best trees, failures."""
    lines, sort = [], []
    for method in comparison.methods:
        rows, solved, gaps = comparison.of(method), comparison.solved(method), comparison.gaps(method)
        seconds = comparison.seconds(method)
        unsolved = gaps[~solved & np.isfinite(gaps)]
        failed = sum(row.status in ("error", "crashed", "memory_limit", "interrupted") for row in rows)
        mean = shifted_geometric_mean(seconds, shift)
        sort.append((-int(solved.sum()), mean))
        lines.append(
            [
                method,
                f"{int(solved.sum())}/{len(rows)}",
                number(mean),
                number(float(np.median(seconds))),
                number(float(seconds.max())),
                number(100 * float(unsolved.mean()) if len(unsolved) else None),
                str(comparison.best_found(method)),
                str(failed),
            ]
        )
    best = min(sort)
    header = ["method", "solved", "mean s", "median s", "longest s", "gap %", "best tree", "failed"]
    caption = (
        f"{len(comparison.instances)} instances, the same for all. Solved: a proof is claimed. Mean: geometric, "
        f"shifted by {shift:g} s. In all three times, what is not solved counts at the limit, and what ended without a "
        "claim as it is. Gap: mean of the unsolved that have a bound. Best tree: instances on which no method has a "
        "better one. Bold: most solved, then the smaller mean."
    )
    cells = [[Cell(text, key == best) for text in line] for line, key in zip(lines, sort, strict=True)]
    return Table(f"{comparison.title}: summary", header, cells, caption)


def data_table(comparison: Comparison) -> Table:
    """Return the paper's table: per data set and method the number solved, their mean time, the gap of others."""
    names = list(dict.fromkeys(comparison.families))
    place = np.array([names.index(name) for name in comparison.families])
    lines = []
    for position, name in enumerate([*names, "all"]):
        mine = place == position if position < len(names) else np.ones(len(place), dtype=bool)
        triples = [_triple(comparison, method, mine) for method in comparison.methods]
        best = min((-solved, time if time is not None else np.inf, gap or 0.0) for solved, time, gap in triples)
        line = [Cell(name), Cell(str(int(mine.sum())))]
        for solved, time, gap in triples:
            bold = len(triples) > 1 and (-solved, time if time is not None else np.inf, gap or 0.0) == best
            percent = None if gap is None else 100 * gap
            line += [Cell(text, bold) for text in (str(solved), number(time), number(percent))]
        lines.append(line)
    caption = (
        "Solved: instances with a claimed proof. Time: mean seconds of the solved. Gap: mean gap of the others in %; "
        "those without a bound or a tree are left out of it. Bold: most solved, then the shorter time, then the "
        "smaller gap."
    )
    header = ["data", "instances", *(["solved", "time", "gap"] * len(comparison.methods))]
    groups = [("", 2), *((method, 3) for method in comparison.methods)]
    return Table(f"{comparison.title}: per data set", header, lines, caption, groups)


def _triple(comparison: Comparison, method: str, mine: object) -> tuple[int, float | None, float | None]:
    solved, gaps, seconds = comparison.solved(method), comparison.gaps(method), comparison.seconds(method)
    inside = np.asarray(mine, dtype=bool)
    done, open_ = seconds[inside & solved], gaps[inside & ~solved & np.isfinite(gaps)]
    time = float(done.mean()) if len(done) else None
    return int((inside & solved).sum()), time, float(open_.mean()) if len(open_) else None


def instance_table(comparison: Comparison) -> Table:
    """Return the seconds or the status of each method on every instance."""
    lines = []
    for instance in comparison.instances:
        rows = [comparison.runs[method, instance] for method in comparison.methods]
        it = rows[0].instance
        seconds = [comparison.taken(row) if is_solved(row) else np.inf for row in rows]
        cells = [Cell(it.data), Cell(str(it.max_depth)), Cell(f"{it.leaf_penalty:g}")]
        cells += [
            Cell(_outcome(row, comparison), len(rows) > 1 and np.isfinite(second) and second == min(seconds))
            for row, second in zip(rows, seconds, strict=True)
        ]
        lines.append(cells)
    header = ["data", "depth", "penalty", *comparison.methods]
    caption = "Seconds where solved; else the status and the gap in %. Bold: the shortest."
    return Table(f"{comparison.title}: every instance", header, lines, caption, words=1)


def _outcome(row: Row, comparison: Comparison) -> str:
    if is_solved(row):
        return number(comparison.taken(row))
    gap = "" if row.gap is None else f" {number(100 * row.gap)}"
    return f"{row.status.replace('_', ' ')}{gap}"


def failure_table(rows: Sequence[Row]) -> Table | None:
    """Return the errors of runs with their numbers, the most frequent first; None if there are none."""
    counts = Counter((row.method.name, row.status, row.error or "") for row in rows if row.error)
    if not counts:
        return None
    lines = [
        [Cell(name), Cell(status), Cell(error), Cell(str(count))]
        for (name, status, error), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Table("Runs with an error", ["method", "status", "error", "runs"], lines, words=3)


# ---------------------------------------------------------------- text

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def markdown_table(table: Table) -> str:
    """Return a pipe table; the text of a group is put before the names of its columns."""
    header = list(table.header)
    if table.groups:
        spans = [text for text, width in table.groups for _ in range(width)]
        header = [f"{text}: {name}" if text else name for text, name in zip(spans, header, strict=True)]
    rules = ["---" if place < table.words else "---:" for place in range(len(header))]
    lines = [_piped([_md(Cell(name)) for name in header]), _piped(rules)]
    lines += [_piped([f"**{_md(cell)}**" if cell.bold else _md(cell) for cell in row]) for row in table.rows]
    return "\n".join(lines)


def _piped(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _md(cell: Cell) -> str:
    return re.sub(r"([\\|*`])", r"\\\1", without_tags(cell.text))


def without_tags(text: str) -> str:
    """Return text for Markdown in one line, tags of HTML escaped."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()))


def latex_table(table: Table, label: str = "") -> str:
    """Return a ``table`` with a ``tabular``; needs no package."""
    columns = "".join("l" if place < table.words else "r" for place in range(len(table.header)))
    lines = [r"\begin{table}[htb!]", r"  \centering", rf"  \begin{{tabular}}{{{columns}}}", r"    \hline"]
    if table.groups:
        spans = [rf"\multicolumn{{{width}}}{{c}}{{{_tex(text)}}}" for text, width in table.groups]
        lines.append(f"    {' & '.join(spans)} \\\\")
    lines += [f"    {' & '.join(map(_tex, table.header))} \\\\", r"    \hline"]
    for row in table.rows:
        cells = [rf"\textbf{{{_tex(cell.text)}}}" if cell.bold else _tex(cell.text) for cell in row]
        lines.append(f"    {' & '.join(cells)} \\\\")
    lines += [r"    \hline", r"  \end{tabular}", rf"  \caption{{{_tex(f'{table.title}. {table.caption}')}}}"]
    if label:
        lines.append(rf"  \label{{tab:{label}}}")
    return "\n".join([*lines, r"\end{table}"])


def _tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def html_table(table: Table) -> str:
    """Return a table that scrolls sideways."""
    head = ""
    if table.groups:
        spans = "".join(
            f'<th colspan="{width}" scope="colgroup">{html.escape(text)}</th>' for text, width in table.groups
        )
        head = f'<tr class="groups">{spans}</tr>'
    starts = _starts(table)
    names = "".join(
        f'<th scope="col"{_classes(place, table, starts)}>{html.escape(name)}</th>'
        for place, name in enumerate(table.header)
    )
    body = "\n".join(
        "<tr>" + "".join(_html_cell(cell, place, table, starts) for place, cell in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    caption = f'<p class="caption">{html.escape(table.caption)}</p>' if table.caption else ""
    inner = f"<table><thead>{head}<tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{inner}</div>{caption}'


def _starts(table: Table) -> set[int]:
    """Return the columns at which a group begins."""
    places, at = set(), 0
    for _, width in table.groups:
        places.add(at)
        at += width
    return places - {0}


def _classes(place: int, table: Table, starts: set[int]) -> str:
    names = ["word"] if place < table.words else []
    names += ["start"] if place in starts else []
    return f' class="{" ".join(names)}"' if names else ""


def _html_cell(cell: Cell, place: int, table: Table, starts: set[int]) -> str:
    text = html.escape(cell.text)
    inner = f"<b>{text}</b>" if cell.bold else text
    if place == 0:
        return f'<th scope="row" class="word">{inner}</th>'
    return f"<td{_classes(place, table, starts)}>{inner}</td>"
