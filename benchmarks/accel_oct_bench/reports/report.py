"""Reports from rows: built once, written as HTML, Markdown, LaTeX and SVG, or filled into pages of the documentation.

A page of the documentation holds blocks

    <!-- bench: results=../benchmarks/results/quick.jsonl.gz details=generated/quick.md -->
    <!-- /bench -->

`fill` replaces the text between the two lines by the summary of these results. The long tables go to the page that
`details` names, with the pictures beside it. Paths are relative to the page; several results are separated by commas.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import read_text, replacing
from accel_oct_bench.reports import figures
from accel_oct_bench.reports.comparison import ABLATED, Clock, Comparison, PairedTest, comparisons, paired_test
from accel_oct_bench.reports.tables import (
    Table,
    data_table,
    failure_table,
    html_table,
    instance_table,
    latex_table,
    markdown_table,
    summary_table,
    without_tags,
)
from accel_oct_bench.results import all_rows, one_per_run
from accel_oct_bench.rows import Row, finite

__all__ = ["FORMATS", "SHIFT", "Part", "Report", "build", "fill", "write"]

FORMATS = ("html", "md", "tex", "svg")
#: Default shift of geometric means, in seconds.
SHIFT = 0.1
#: With more methods than this, all are tested against one: `all` in an ablation, else the first.
_ALL_PAIRS = 4
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Part:
    """One comparison with its tables, tests and pictures; `slug` is its name in names of files."""

    slug: str
    comparison: Comparison
    summary: Table
    per_data: Table
    per_instance: Table
    tests: tuple[PairedTest, ...]
    panels: str
    profile: str | None


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes
    ----------
    meta : tuple of str
        The origin of the numbers: files, machine, versions, limits.
    """

    title: str
    meta: tuple[str, ...]
    parts: tuple[Part, ...]
    failures: Table | None = None

    def pictures(self) -> dict[str, str]:
        """Return the SVG files by name."""
        found = {}
        for part in self.parts:
            found[f"{part.slug}.svg"] = _standalone(part.panels)
            if part.profile:
                found[f"{part.slug}-profile.svg"] = _standalone(part.profile)
        return found


def build(rows: Sequence[Row], sources: Sequence[str], clock: Clock = "wall", shift: float = SHIFT) -> Report:
    """Build a report.

    Parameters
    ----------
    rows : sequence of Row
        One per run.
    sources : sequence of str
        Names of the files of the rows.
    clock : {"wall", "cpu"}
    shift : float
        Of geometric means, and of the logarithms in tests.

    Raises
    ------
    InvalidInputError
        If there are no rows, or the shift is not positive.
    """
    if not rows:
        raise InvalidInputError(f"there are no rows in {', '.join(sources)}")
    if not shift > 0:
        raise InvalidInputError(f"shift must be a positive number of seconds, got {shift}")
    parts: dict[str, Part] = {}
    for comparison in comparisons(rows, clock):
        slug = re.sub(r"[^a-z0-9]+", "-", comparison.title.lower()).strip("-")[:_LONGEST_NAME]
        slug = slug if slug not in parts else f"{slug}-{len(parts) + 1}"
        parts[slug] = _part(slug, comparison, shift)
    suites = ", ".join(dict.fromkeys(row.suite for row in rows))
    return Report(
        f"accel_oct benchmarks: {suites}",
        tuple(_meta(rows, sources, clock)),
        tuple(parts.values()),
        failure_table(rows),
    )


def _part(slug: str, comparison: Comparison, shift: float) -> Part:
    methods = [method for method in comparison.methods if comparison.claims(method)] or list(comparison.methods[:1])
    reference = "all" if any(method.startswith(ABLATED) for method in methods) and "all" in methods else methods[0]
    against = [(method, reference) for method in methods if method != reference]
    pairs = list(combinations(methods, 2)) if len(methods) <= _ALL_PAIRS else against
    return Part(
        slug,
        comparison,
        summary_table(comparison, shift),
        data_table(comparison),
        instance_table(comparison),
        tuple(paired_test(comparison, first, second, shift) for first, second in pairs),
        figures.panels(comparison),
        figures.profile(comparison) if len(comparison.methods) > 1 else None,
    )


def _meta(rows: Sequence[Row], sources: Sequence[str], clock: Clock) -> Iterator[str]:
    instances = len({row.instance for row in rows})
    yield f"{len(rows)} runs on {instances} instances, from {', '.join(sources)}."
    for said in {json.dumps(finite(row.machine), sort_keys=True): row.machine for row in rows}.values():
        yield f"Machine: {said.get('cpu', 'unknown')}, {said.get('cores', '?')} cores, {said.get('system', '?')}."
    versions: dict[str, list[str]] = {}
    for row in rows:
        for name, version in row.versions.items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    yield "Versions: " + ", ".join(f"{name} {' and '.join(found)}" for name, found in sorted(versions.items())) + "."
    limits = sorted({row.method.time_limit for row in rows if row.method.time_limit is not None})
    threads = sorted({row.method.threads for row in rows})
    days = sorted({row.started[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    limit = f"Time limit {', '.join(f'{value:g}' for value in limits)} s. " if limits else "No time limit. "
    yield f"{limit}Threads: {', '.join(map(str, threads))}. {'CPU' if clock == 'cpu' else 'Wall'} time. Run on {when}."
    yield "A proof by another package is its own claim; `accel-oct bench verify` checks what can be checked."


def write(report: Report, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a report and return the files.

    ``report.html``, ``report.md`` (with the pictures beside it), ``tables.tex``, and one SVG per picture.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InvalidInputError(f"there is no format {unknown[0]!r}; known are {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    if "html" in formats:
        texts["report.html"] = _html(report)
    if "md" in formats:
        texts["report.md"] = _markdown(report)
    if "tex" in formats:
        texts["tables.tex"] = _latex(report)
    if "svg" in formats or "md" in formats:
        texts |= report.pictures()
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text)
    return [folder / name for name in texts]


def _standalone(svg: str) -> str:
    """Give a picture a white background, for dark pages."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace(
        "<svg ", '<svg style="background:#fff;color:#1c2126" ', 1
    )


# ---------------------------------------------------------------- HTML


def _html(report: Report) -> str:
    sections = []
    for part in report.parts:
        title = html.escape(part.comparison.title)
        tests = "".join(
            f'<li>{html.escape(test.verdict)} <span class="fine">{html.escape(test.details)}</span></li>'
            for test in part.tests
        )
        verdicts = f'<ul class="verdicts">{tests}</ul>' if tests else ""
        sections.append(f"<h2>{title}</h2>\n{html_table(part.summary)}\n{verdicts}")
        sections.append(f'<figure class="wide">{part.panels}</figure>')
        if part.profile:
            inner = (
                f'<figure class="narrow">{part.profile}<figcaption>Performance profile: the share of instances solved '
                "within a factor of the fastest method's time.</figcaption></figure>"
            )
            sections.append(_folded("Performance profile", inner))
        sections.append(_folded("Per data set", html_table(part.per_data)))
        sections.append(_folded(f"Every instance ({len(part.comparison.instances)})", html_table(part.per_instance)))
    if report.failures:
        sections.append(f"<h2>Errors</h2>{_folded('Runs that ended with an error', html_table(report.failures))}")
    return _page(report.title, report.meta, sections)


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>\n{inner}\n</details>"


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


def _page(title: str, meta: Sequence[str], sections: Sequence[str]) -> str:
    """Return a page without scripts that loads nothing; `meta` is text, `sections` are HTML."""
    first, *others = (f'<p class="meta">{html.escape(line)}</p>\n' for line in meta)
    lines = f"{first}<details><summary>Machine, versions, limits</summary>\n{''.join(others)}</details>\n"
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{lines}{body}\n</body>\n</html>\n"
    )


# ---------------------------------------------------------------- text


def _summary_markdown(report: Report, pictures: str | None = None) -> str:
    """Return the summary and the tests of each comparison, and the picture if there is a folder with pictures."""
    blocks = []
    for part in report.parts:
        title = without_tags(part.comparison.title)
        blocks.append(f"### {title}\n\n{markdown_table(part.summary)}\n\n{part.summary.caption}")
        if part.tests:
            blocks.append("\n".join(f"- {without_tags(str(test))}" for test in part.tests))
        if pictures is not None:
            blocks.append(f"![{title}: solved over time, within a gap]({pictures}{part.slug}.svg)")
    return "\n\n".join(blocks)


def _meta_markdown(report: Report) -> str:
    """Return the origin of the numbers as a list."""
    return "\n".join(f"- {without_tags(line)}" for line in report.meta)


def _detail_markdown(report: Report) -> str:
    """Return the long tables."""
    blocks = []
    for part in report.parts:
        for table in (part.per_data, part.per_instance):
            blocks.append(f"## {without_tags(table.title)}\n\n{table.caption}\n\n{markdown_table(table)}")
    if report.failures:
        blocks.append(f"## {report.failures.title}\n\n{markdown_table(report.failures)}")
    return "\n\n".join(blocks)


def _markdown(report: Report) -> str:
    head = f"# {without_tags(report.title)}\n\n{_meta_markdown(report)}"
    return f"{head}\n\n{_summary_markdown(report, '')}\n\n{_detail_markdown(report)}\n"


def _latex(report: Report) -> str:
    lines = [f"% {' '.join(line.split())}" for line in report.meta]  # a line break would end the comment
    for part in report.parts:
        lines.append(latex_table(part.summary, f"{part.slug}-summary"))
        lines.append(latex_table(part.per_data, f"{part.slug}-data"))
    return "\n\n".join(lines) + "\n"


# ---------------------------------------------------------------- pages

_BLOCK = re.compile(r"(<!-- bench:(?P<options>[^>]*?)-->\n)(?P<body>.*?)(<!-- /bench -->)", re.DOTALL)
_OPTIONS = ("results", "details", "clock", "shift")
_MOST_BYTES = 10**7


def fill(path: Path, write: bool = True) -> list[Path]:
    """Fill in the blocks of a page; return the files that changed, or would change.

    Raises
    ------
    InvalidInputError
        If the page has no block, or a block has an unknown option.
    """
    text = read_text(path, _MOST_BYTES, "page")
    if not _BLOCK.search(text):
        raise InvalidInputError(f"{path} has no block `<!-- bench: results=... -->` ... `<!-- /bench -->`")
    texts: dict[Path, str] = {}
    texts[path] = _BLOCK.sub(lambda match: match[1] + _body(match["options"], path, texts) + match[4], text)
    changed = [file for file, content in texts.items() if not file.exists() or file.read_text("utf-8") != content]
    if write:
        for file in changed:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as target:
                target.write(texts[file])
    return changed


def _body(given: str, page: Path, texts: dict[Path, str]) -> str:
    options = dict(part.partition("=")[::2] for part in given.split())
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown or "results" not in options:
        raise InvalidInputError(f"{page}: a block takes {', '.join(_OPTIONS)} and needs results, got {given.strip()!r}")
    files = [page.parent / name for name in options["results"].split(",")]
    sources = all_rows(files)
    clock = "cpu" if options.get("clock") == "cpu" else "wall"
    names = [os.path.relpath(file, page.parent.parent).replace(os.sep, "/") for file in files]
    report = build(one_per_run(sources), names, clock, float(options.get("shift", SHIFT)))  # type: ignore[arg-type]
    pictures = None
    more = ""
    if "details" in options:
        detail = page.parent / options["details"]
        pictures = f"{os.path.dirname(options['details'])}/".removeprefix("/")
        _details(report, detail, os.path.relpath(page, detail.parent).replace(os.sep, "/"), texts)
        more = f"\n\nEvery data set and instance: [{detail.name}]({options['details']})."
    meta = _meta_markdown(report)
    return f"{meta}\n\n{_summary_markdown(report, pictures)}{more}\n"


def _details(report: Report, path: Path, back: str, texts: dict[Path, str]) -> None:
    title = without_tags(report.title)
    head = f"# {title}\n\nMade by `accel-oct bench docs`; the summary is in [{Path(back).name}]({back}).\n\n"
    meta = _meta_markdown(report)
    texts[path] = f"{head}{meta}\n\n{_detail_markdown(report)}\n"
    for name, svg in report.pictures().items():
        texts[path.parent / name] = svg
