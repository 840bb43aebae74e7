"""Tables as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re

from accel_oct_bench.reports.tables import Cell, Table

__all__ = ["html_table", "latex_table", "markdown_table", "without_tags"]

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def markdown_table(table: Table) -> str:
    """A pipe table; what spans several columns is put before each of their names."""
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
    """Text of results for Markdown, in one line: what looks like HTML stays text."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()))


def latex_table(table: Table, label: str = "") -> str:
    """A ``table`` with a ``tabular``; needs no package."""
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
    """A table that scrolls sideways by itself."""
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
    """Columns at which a group begins."""
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
