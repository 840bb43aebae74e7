"""From rows to a report, and a report into files."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import replacing
from accel_oct_bench.reports import figures
from accel_oct_bench.reports.comparing import ABLATED, Clock, Comparison, comparisons
from accel_oct_bench.reports.page import page
from accel_oct_bench.reports.statistics import PairedTest, paired_test
from accel_oct_bench.reports.tables import Table, data_table, failure_table, instance_table, summary_table
from accel_oct_bench.reports.writing import html_table, latex_table, markdown_table, without_tags
from accel_oct_bench.rows import Row, finite

__all__ = [
    "FORMATS",
    "SHIFT",
    "Part",
    "Report",
    "build",
    "detail_markdown",
    "meta_markdown",
    "summary_markdown",
    "write",
]

FORMATS = ("html", "md", "tex", "svg")
#: Seconds that geometric means are shifted by, unless told.
SHIFT = 0.1
#: Beyond so many methods, all are tested against one: `all` where some are left out, else the first.
_ALL_PAIRS = 4
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Part:
    """One comparison with everything that is said about it; `slug` is its name among files."""

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
    """Everything that the rows say.

    Attributes
    ----------
    meta : tuple of str
        Where the figures come from: files, machine, versions, limits.
    """

    title: str
    meta: tuple[str, ...]
    parts: tuple[Part, ...]
    failures: Table | None = None

    def pictures(self) -> dict[str, str]:
        """SVG files by name."""
        found = {}
        for part in self.parts:
            found[f"{part.slug}.svg"] = _standalone(part.panels)
            if part.profile:
                found[f"{part.slug}-profile.svg"] = _standalone(part.profile)
        return found


def build(rows: Sequence[Row], sources: Sequence[str], clock: Clock = "wall", shift: float = SHIFT) -> Report:
    """Make all tables, tests and pictures.

    Parameters
    ----------
    rows : sequence of Row
        One per run.
    sources : sequence of str
        What to say the rows came from.
    clock : {"wall", "cpu"}
    shift : float
        Of geometric means, and in the logarithms that are tested.

    Raises
    ------
    InvalidInputError
        When there are no rows, or the shift is not positive.
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
    """Write a report; returns the files.

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
    """A picture by itself has paper of its own: pages may be dark."""
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
    return page(report.title, report.meta, sections)


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>\n{inner}\n</details>"


# ---------------------------------------------------------------- text


def summary_markdown(report: Report, pictures: str | None = None) -> str:
    """Per comparison the summary, what the tests say, and the picture if there is a folder with pictures."""
    blocks = []
    for part in report.parts:
        title = without_tags(part.comparison.title)
        blocks.append(f"### {title}\n\n{markdown_table(part.summary)}\n\n{part.summary.caption}")
        if part.tests:
            blocks.append("\n".join(f"- {without_tags(str(test))}" for test in part.tests))
        if pictures is not None:
            blocks.append(f"![{title}: solved over time, within a gap]({pictures}{part.slug}.svg)")
    return "\n\n".join(blocks)


def meta_markdown(report: Report) -> str:
    """Where the figures come from, as a list."""
    return "\n".join(f"- {without_tags(line)}" for line in report.meta)


def detail_markdown(report: Report) -> str:
    """The long tables."""
    blocks = []
    for part in report.parts:
        for table in (part.per_data, part.per_instance):
            blocks.append(f"## {without_tags(table.title)}\n\n{table.caption}\n\n{markdown_table(table)}")
    if report.failures:
        blocks.append(f"## {report.failures.title}\n\n{markdown_table(report.failures)}")
    return "\n\n".join(blocks)


def _markdown(report: Report) -> str:
    meta = meta_markdown(report)
    return f"# {without_tags(report.title)}\n\n{meta}\n\n{summary_markdown(report, '')}\n\n{detail_markdown(report)}\n"


def _latex(report: Report) -> str:
    lines = [f"% {' '.join(line.split())}" for line in report.meta]  # a line break would end the comment
    for part in report.parts:
        lines.append(latex_table(part.summary, f"{part.slug}-summary"))
        lines.append(latex_table(part.per_data, f"{part.slug}-data"))
    return "\n\n".join(lines) + "\n"
