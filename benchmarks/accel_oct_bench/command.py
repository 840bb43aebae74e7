"""``accel-oct bench``: a thin layer of commands over `run_suite` and its kin, which are loaded when they are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from accel_oct.errors import AccelOctError, InvalidInputError, shown

__all__ = ["app", "main"]

app = typer.Typer(
    name="bench",
    help="Measure, and report what was measured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)

_INTERRUPTED = 130
Texts = list[str] | None
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with NAME_enc.csv files; else the variable ACCEL_OCT_DATA names it, or none is needed."),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 2 for bad input, 130 after Ctrl-C."""
    for module in ("report_command", "verify_command"):  # they register themselves
        import_module(f"accel_oct_bench.{module}")
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        code = app(given, prog_name="accel-oct bench", standalone_mode=False)
        return int(code or 0)
    except (AccelOctError, OSError) as error:
        message = str(error)
    except Exception as error:
        if not hasattr(error, "format_message"):  # of the command line itself, whatever its class is called
            raise
        said = " ".join(error.format_message().split()).rstrip(".")
        if not said:  # the help was shown instead
            return 2
        message = f"{said[:1].lower()}{said[1:]}; see 'accel-oct bench --help'"
    print(f"accel-oct: error: {message}", file=sys.stderr)
    return 2


@app.command()
def run(
    suite: Annotated[str, typer.Argument(help="Name of a suite ('accel-oct bench list'), or the path of a TOML file.")],
    out: Annotated[Path | None, typer.Option(help="Folder of results; by default results/SUITE.")] = None,
    data_dir: DataDir = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time on this machine.", min=1)] = 1,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on a dask cluster: the scheduler's address, or 'local'."),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(help="Only this job's share, into parts/: INDEX/COUNT from 1, or 'slurm'."),
    ] = None,
    redo: Annotated[
        Texts, typer.Option(help="Make runs with this status again: failed, time_limit, error, ...")
    ] = None,
    data: Annotated[Texts, typer.Option(help="Only these data sets; repeat, or separate by commas.")] = None,
    methods: Annotated[Texts, typer.Option(help="Only these methods of the suite.")] = None,
    depths: Annotated[Texts, typer.Option(help="Instead of the suite's.")] = None,
    penalties: Annotated[Texts, typer.Option(help="Instead of the suite's.")] = None,
    preset: Annotated[Texts, typer.Option(help="Instead of the suite's methods.")] = None,
    backend: Annotated[Texts, typer.Option(help="Instead of the suite's.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds per run.")] = None,
    memory_limit: Annotated[float | None, typer.Option(help="MB per run.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads per run.")] = None,
    seed: Annotated[int | None, typer.Option()] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> int:
    """Make the runs of a suite that the folder of results does not have yet."""
    from accel_oct_bench.plans import Choice  # loads NumPy and more
    from accel_oct_bench.progress import shown_progress, time_text  # as above
    from accel_oct_bench.runner import array_of, run_suite  # as above

    choice = Choice(
        data=_listed(data),
        methods=_listed(methods),
        depths=_numbers(depths, int, "--depths"),
        penalties=_numbers(penalties, float, "--penalties"),
        presets=_listed(preset),
        backends=_listed(backend),
        threads=threads,
        seed=seed,
        time_limit=time_limit,
        memory_limit_mb=memory_limit,
    )
    folder = Path("results") / Path(suite).stem if out is None else out
    seconds = 0.0

    def watched(step: Any) -> None:
        nonlocal seconds
        seconds = step.seconds
        if bar is not None:
            bar(step)

    bar = None if quiet else shown_progress()
    try:
        with bar or nullcontext():
            done = run_suite(
                suite,
                folder,
                data_dir=data_dir,
                choice=choice,
                jobs=jobs,
                dask=dask,
                array=None if array is None else array_of(array),
                redo=_listed(redo) or (),
                progress=watched,
            )
    except KeyboardInterrupt as error:
        print(f"accel-oct: interrupted: {error}", file=sys.stderr)
        return _INTERRUPTED
    if done.missing:
        print(f"accel-oct: left out, for the data are not there: {', '.join(done.missing)}", file=sys.stderr)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(done.statuses.items()))
    print(f"{done.planned} runs: {statuses}; {done.made} made now in {time_text(seconds)}, {done.there} were there")
    print(f"rows: {done.folder}; next: accel-oct bench report {done.folder}")
    return 0


@app.command("list")
def list_suites(
    suite: Annotated[str | None, typer.Argument(help="A suite, to see its instances.")] = None,
    data_dir: DataDir = None,
    data: Annotated[bool, typer.Option("--data", help="The data sets instead of the suites.")] = False,
) -> int:
    """The suites; the instances and methods of one; or the data sets."""
    from accel_oct_bench.instances import DATA_VARIABLE  # loads NumPy
    from accel_oct_bench.plans import planned  # as above
    from accel_oct_bench.registry import Registry  # as above
    from accel_oct_bench.suite_files import load_suite, suite_names  # as above

    registry = Registry(data_dir or os.environ.get(DATA_VARIABLE) or None)
    if data:
        print("\n".join(registry.names()))
        return 0
    if suite is None:
        for name in suite_names():
            print(f"{name:12s} {load_suite(name).description}")
        return 0
    plan = planned(load_suite(suite), registry)
    for task in plan.tasks:
        print(task.label)
    left_out = f"; not there: {', '.join(plan.missing)}" if plan.missing else ""
    print(f"{len(plan.tasks)} runs on {len({task.instance for task in plan.tasks})} instances{left_out}")
    return 0


@app.command()
def merge(folder: Annotated[Path, typer.Argument(help="A folder of results.")]) -> int:
    """Move the rows of array jobs from parts/ into rows.jsonl."""
    from accel_oct_bench.store import merge_parts  # loads NumPy

    merged, left = merge_parts(folder)
    running = f"; {left} parts are still being written to" if left else ""
    print(f"{merged} rows merged{running}")
    return 0


Number = TypeVar("Number", int, float)


def _listed(texts: Sequence[str] | None) -> list[str] | None:
    """``a,b`` and ``a`` ``b`` are the same."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()] if texts else None


def _numbers(texts: Sequence[str] | None, kind: Callable[[str], Number], option: str) -> list[Number] | None:
    parts = _listed(texts)
    try:
        return None if parts is None else [kind(part) for part in parts]
    except ValueError:
        raise InvalidInputError(f"{option} must be numbers separated by commas, got {shown(parts)}") from None
