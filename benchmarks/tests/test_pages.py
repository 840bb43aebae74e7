"""The pages of the documentation about benchmarks: their code runs, and their tables are made from the results."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from accel_oct_bench.command import main
from accel_oct_bench.rows import Instance, Method, Row
from accel_oct_bench.suite import suite_names, suite_of

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: str, language: str = "python") -> list[str]:
    """The code of a page."""
    return [part.split("```")[0] for part in page.split(f"```{language}\n")[1:]]


def test_pages_are_made_from_the_results() -> None:
    """`accel-oct bench docs` would change no text."""
    assert main(["docs", str(DOCS / "benchmarks.md"), str(DOCS / "paper-tables.md"), "--check"]) == 0


def test_adding_a_peer() -> None:
    """The example of docs/bench-reports.md passes its own assertions."""
    (code,) = blocks_of((DOCS / "bench-reports.md").read_text(encoding="utf-8"))
    exec(code, {})


def test_running_benchmarks() -> None:
    """What docs/bench.md shows of Python passes its own assertions, and its suite file is one."""
    page = (DOCS / "bench.md").read_text(encoding="utf-8")
    (code,) = blocks_of(page)
    exec(code, {})
    (suite,) = blocks_of(page, "toml")
    assert {method.backend for method in suite_of(suite, "page").methods} == {"highs", "scip", None}
    named = {
        row.split("`")[1] for row in page.split("## Suites")[1].split("Every suite")[0].splitlines() if "| `" in row
    }
    assert named == set(suite_names())
    schema = page.split("A row, schema 1")[1].split("## Many")[0]
    for field in (*fields(Row), *fields(Instance), *fields(Method)):
        assert f"`{field.name}`" in schema, field.name
