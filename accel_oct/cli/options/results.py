"""Options that say where results come from and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from typer import Argument, Option

from accel_oct.cli.options.groups import Group

__all__ = [
    "DrawingOptions",
    "ModelFile",
    "NearOptions",
    "OutputOptions",
    "PredictionOptions",
    "PresetName",
    "ReportOptions",
    "RunFile",
    "TellingOptions",
]


@dataclass(frozen=True)
class ModelFile(Group):
    """A fitted model."""

    model: Annotated[str, Argument(metavar="MODEL", help="JSON of `accel-oct fit -o`; - is standard input.")]


@dataclass(frozen=True)
class RunFile(Group):
    """A file with the rest."""

    config: Annotated[
        str | None,
        Option("--config", metavar="RUN.TOML", help="A whole run as TOML; options given here win.", show_default=False),
    ] = None


@dataclass(frozen=True)
class OutputOptions(Group):
    """Where the result goes."""

    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.", show_default=False),
    ] = None


@dataclass(frozen=True)
class TellingOptions(Group):
    """How much is told, and in which form."""

    json: Annotated[bool, Option("--json", help="One JSON document on standard output.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress on standard error.")] = False
    verbose: Annotated[bool, Option("--verbose", "-v", help="All figures of the search on standard error.")] = False
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class PredictionOptions(Group):
    """What `predict` writes."""

    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False
    escape_formulas: Annotated[
        bool, Option("--escape-formulas", help="Put ' before text that a spreadsheet would run as a formula.")
    ] = False


@dataclass(frozen=True)
class DrawingOptions(Group):
    """What `show` makes of a tree."""

    format: Annotated[
        Literal["text", "dot", "svg", "png", "html", "python", "sql"] | None,
        Option("--format", "-f", help="By the ending of --output if not given, else text.", show_default=False),
    ] = None


@dataclass(frozen=True)
class NearOptions(Group):
    """Which trees `near-optimal` lists."""

    within: Annotated[float, Option("--within", help="How much less the objective may be.")] = 0.01
    limit: Annotated[int, Option("--limit", help="Most trees that are listed.")] = 100
    pick: Annotated[
        int | None,
        Option(
            "--pick", metavar="RANK", help="Write this tree (1 is the best) as a model to --output.", show_default=False
        ),
    ] = None


@dataclass(frozen=True)
class ReportOptions(Group):
    """What a report shows besides the tree."""

    test: Annotated[
        str | None, Option("--test", metavar="FILE", help="Rows that the tree was not fitted on.", show_default=False)
    ] = None
    near_optimal: Annotated[
        float | None,
        Option("--near-optimal", metavar="WITHIN", help="Also trees that are almost as good.", show_default=False),
    ] = None
    title: Annotated[str | None, Option("--title", help="Of the page.", show_default=False)] = None


@dataclass(frozen=True)
class PresetName(Group):
    """A named configuration."""

    preset: Annotated[str, Argument(metavar="PRESET", help="Such as default, baseline or paper.")] = "default"
