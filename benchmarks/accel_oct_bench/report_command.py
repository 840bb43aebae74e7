"""``accel-oct bench report`` and ``accel-oct bench docs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accel_oct.errors import InvalidInputError
from accel_oct_bench.command import app

__all__ = ["docs", "report"]


@app.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Folders of results, or files of rows (.jsonl, .jsonl.gz).")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder to write to; by default report/ in the first results.")
    ] = None,
    format: Annotated[list[str] | None, typer.Option(help="html, md, tex or svg; repeat. All by default.")] = None,
    clock: Annotated[str, typer.Option(help="wall or cpu.")] = "wall",
    shift: Annotated[float, typer.Option(help="Seconds that geometric means are shifted by.")] = 0.1,
) -> int:
    """Tables, figures and tests: HTML, Markdown, LaTeX, SVG."""
    from accel_oct_bench.reports import FORMATS, build, write  # loads NumPy
    from accel_oct_bench.sources import all_rows, best_rows  # as above

    if clock not in ("wall", "cpu"):
        raise InvalidInputError(f"--clock must be wall or cpu, got {clock!r}")
    formats = [name for text in format or FORMATS for name in text.split(",")]
    sources = all_rows(results)
    made = build(best_rows(sources), [str(source.path) for source in sources], clock, shift)  # type: ignore[arg-type]
    first = sources[0].path
    folder = output or (first if first.is_dir() else first.parent) / "report"
    for part in made.parts:
        solved = "; ".join(f"{row[0].text} {row[1].text}" for row in part.summary.rows)
        print(f"{part.comparison.title}: solved {solved}")
        for test in part.tests:
            print(f"  {test}")
    for path in write(made, folder, formats):
        print(path)
    return 0


@app.command()
def docs(
    pages: Annotated[list[Path], typer.Argument(help="Markdown pages with blocks `<!-- bench: ... -->`.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 4 if a page is out of date.")
    ] = False,
) -> int:
    """Fill in the blocks of pages that are made from result files."""
    from accel_oct_bench.reports.documents import fill  # loads NumPy and matplotlib

    changed = [path for page in pages for path in fill(page, write=not check)]
    # Pictures differ with the version of matplotlib, and follow from the same rows.
    stale = [path for path in changed if not check or path.suffix != ".svg"]
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path}")
    return 4 if check and stale else 0
