"""Pages of the documentation that are made from result files, by one command.

A page holds blocks

    <!-- bench: results=../benchmarks/results/quick.jsonl.gz details=generated/quick.md -->
    <!-- /bench -->

`fill` replaces what stands between the two lines by the summary of these results, which says what file it is from; the
long tables go to the page that `details` names, with the pictures beside it. Paths are relative to the page; several
results are separated by commas. Everything outside of blocks stays as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import read_text, replacing
from accel_oct_bench.reports.building import SHIFT, Report, build, detail_markdown, meta_markdown, summary_markdown
from accel_oct_bench.reports.writing import without_tags
from accel_oct_bench.sources import all_rows, best_rows

__all__ = ["fill"]

_BLOCK = re.compile(r"(<!-- bench:(?P<options>[^>]*?)-->\n)(?P<body>.*?)(<!-- /bench -->)", re.DOTALL)
_OPTIONS = ("results", "details", "clock", "shift")
_MOST_BYTES = 10**7


def fill(path: Path, write: bool = True) -> list[Path]:
    """Fill in the blocks of a page; returns the files that changed, or would.

    Raises
    ------
    InvalidInputError
        When the page has no block, or a block has an unknown option.
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
    report = build(best_rows(sources), names, clock, float(options.get("shift", SHIFT)))  # type: ignore[arg-type]
    pictures = None
    more = ""
    if "details" in options:
        detail = page.parent / options["details"]
        pictures = f"{os.path.dirname(options['details'])}/".removeprefix("/")
        _details(report, detail, os.path.relpath(page, detail.parent).replace(os.sep, "/"), texts)
        more = f"\n\nEvery data set and instance: [{detail.name}]({options['details']})."
    meta = meta_markdown(report)
    return f"{meta}\n\n{summary_markdown(report, pictures)}{more}\n"


def _details(report: Report, path: Path, back: str, texts: dict[Path, str]) -> None:
    title = without_tags(report.title)
    head = f"# {title}\n\nMade by `accel-oct bench docs`; the summary is in [{Path(back).name}]({back}).\n\n"
    meta = meta_markdown(report)
    texts[path] = f"{head}{meta}\n\n{detail_markdown(report)}\n"
    for name, svg in report.pictures().items():
        texts[path.parent / name] = svg
