"""One self-contained HTML page: no script, nothing from a network, light and dark, readable on a phone."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["page"]

_CSS = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #59636e; --line: #d5dae0; --paper: #ffffff; --tint: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7eb; --soft: #9aa5b1; --line: #39424d; --paper: #14181d; --tint: #1c2229; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.2rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--line); }
p, ul { margin: .5rem 0; }
li { margin: .25rem 0; }
.meta, .caption { color: var(--soft); font-size: .86rem; }
.caption { margin-top: .4rem; }
.verdicts { padding-left: 1.2rem; }
.fine { display: block; color: var(--soft); font-size: .86rem; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 52rem; color: var(--ink); }
figure.wide { overflow-x: auto; }
figure.wide svg { min-width: 36rem; }
figure.narrow svg { max-width: 34rem; }
@media (prefers-color-scheme: dark) { svg [style*="#0072b2"] { stroke: #4aa3df !important; } }
figcaption { color: var(--soft); font-size: .86rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .28rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
td.word { white-space: normal; min-width: 5rem; }
tbody tr:last-child > * { border-bottom: 0; }
.word { text-align: left; }
thead th { background: var(--tint); font-weight: 600; }
tr.groups th { text-align: center; border-left: 1px solid var(--line); }
tr.groups th:first-child { border-left: 0; }
.start { border-left: 1px solid var(--line); }
th[scope=row] { font-weight: 500; position: sticky; left: 0; background: var(--paper); }
td b, th b { font-weight: 700; }
details { margin: .7rem 0; }
summary { cursor: pointer; font-weight: 600; padding: .25rem 0; }
@media print { details > *:not(summary) { display: block; } }
"""


def page(title: str, meta: Sequence[str], sections: Sequence[str]) -> str:
    """The whole page; `meta` lines are escaped here, sections are HTML already."""
    first, *others = (f'<p class="meta">{html.escape(line)}</p>\n' for line in meta)
    lines = f"{first}<details><summary>Machine, versions, limits</summary>\n{''.join(others)}</details>\n"
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{lines}{body}\n</body>\n</html>\n"
    )
