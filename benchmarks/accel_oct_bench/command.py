"""``accel-oct bench``: the command line. Each command imports what it needs when it is called."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from accel_oct.errors import AccelOctError, InvalidInputError, shown

__all__ = ["main"]

app = typer.Typer(
    name="bench",
    help="Measure accel_oct and other solvers of optimal trees, and report what was measured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)

#: Exit codes: interrupted; a contradiction, or a page that is out of date; something could not be checked.
_INTERRUPTED, _CONTRADICTED, _NOT_CHECKED = 130, 4, 3
#: Contradictions that `verify` prints at most.
_SHOWN = 50
Texts = list[str] | None
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with NAME_enc.csv files; else the variable ACCEL_OCT_DATA names it, or none is needed."),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 2 for bad input, 130 after Ctrl-C."""
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
        typer.Option(help="Only this job's share, into parts/: INDEX/COUNT, from 1."),
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
    from accel_oct_bench.runner import array_of, run_suite, shown_progress, time_text  # loads NumPy and more
    from accel_oct_bench.suite import Choice  # as above

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
    began = time.monotonic()
    try:
        with nullcontext() if quiet else shown_progress() as progress:
            done = run_suite(
                suite,
                folder,
                data_dir=data_dir,
                choice=choice,
                jobs=jobs,
                dask=dask,
                array=None if array is None else array_of(array),
                redo=_listed(redo) or (),
                progress=progress,
            )
    except KeyboardInterrupt as error:
        print(f"accel-oct: interrupted: {error}", file=sys.stderr)
        return _INTERRUPTED
    if done.missing:
        print(f"accel-oct: left out, because data are missing: {', '.join(done.missing)}", file=sys.stderr)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(done.statuses.items()))
    seconds = time_text(time.monotonic() - began)
    print(f"{done.planned} runs: {statuses}; {done.made} made now in {seconds}, {done.there} were there")
    print(f"rows: {done.folder}; next: accel-oct bench report {done.folder}")
    return 0


@app.command("list")
def list_suites(
    suite: Annotated[str | None, typer.Argument(help="A suite, to list its runs.")] = None,
    data_dir: DataDir = None,
    data: Annotated[bool, typer.Option("--data", help="The data sets instead of the suites.")] = False,
) -> int:
    """List the suites, the runs of one suite, or the data sets."""
    from accel_oct_bench.data import Registry, data_folder  # loads NumPy
    from accel_oct_bench.rows import run_label  # as above
    from accel_oct_bench.suite import load_suite, planned, suite_names  # as above

    registry = Registry(data_folder(data_dir))
    if data:
        print("\n".join(registry.names()))
        return 0
    if suite is None:
        for name in suite_names():
            print(f"{name:12s} {load_suite(name).description}")
        return 0
    plan = planned(load_suite(suite), registry)
    for task in plan.tasks:
        print(run_label(task.instance, task.method))
    left_out = f"; missing: {', '.join(plan.missing)}" if plan.missing else ""
    print(f"{len(plan.tasks)} runs on {len({task.instance for task in plan.tasks})} instances{left_out}")
    return 0


@app.command()
def merge(folder: Annotated[Path, typer.Argument(help="A folder of results.")]) -> int:
    """Move the rows of array jobs from parts/ into rows.jsonl."""
    from accel_oct_bench.results import merge_parts  # loads NumPy

    merged, left = merge_parts(folder)
    running = f"; {left} parts are still being written to" if left else ""
    print(f"{merged} rows merged{running}")
    return 0


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
    """Write tables, figures and statistical tests as HTML, Markdown, LaTeX and SVG."""
    from accel_oct_bench.reports.report import FORMATS, build, write  # loads NumPy
    from accel_oct_bench.results import all_rows, one_per_run  # as above

    if clock not in ("wall", "cpu"):
        raise InvalidInputError(f"--clock must be wall or cpu, got {clock!r}")
    formats = [name for text in format or FORMATS for name in text.split(",")]
    sources = all_rows(results)
    made = build(one_per_run(sources), [str(source.path) for source in sources], clock, shift)  # type: ignore[arg-type]
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
    from accel_oct_bench.reports.report import fill  # loads NumPy and matplotlib

    changed = [path for page in pages for path in fill(page, write=not check)]
    # Pictures differ with the version of matplotlib.
    stale = [path for path in changed if not check or path.suffix != ".svg"]
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path}")
    return _CONTRADICTED if check and stale else 0


@app.command()
def verify(
    results: Annotated[list[Path], typer.Argument(help="Folders of results, or files of rows (.jsonl, .jsonl.gz).")],
    data_dir: DataDir = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Prove claimed optima again: by certificates, and by counting.")
    ] = False,
    prove_limit: Annotated[
        float,
        typer.Option(
            help="Seconds for the certificate of each row, and for counting each data set and depth.", min=0.0
        ),
    ] = 60.0,
) -> int:
    """Check every row without the solver; exit code 4 for a contradiction, 3 where something could not be checked."""
    from accel_oct_bench.data import Registry, data_folder  # loads NumPy
    from accel_oct_bench.results import all_rows  # as above
    from accel_oct_bench.verify import certified, checked, compared, proven_again  # as above

    rows = [row for source in all_rows(results) for row in source.rows]
    if not rows:
        raise InvalidInputError(f"there are no rows in {', '.join(map(str, results))}")
    registry = Registry(data_folder(data_dir))
    examined = checked(rows, registry)
    findings = [finding for one in examined for finding in one.findings] + compared(examined)
    counted = sum(one.correct is not None for one in examined)
    print(f"{len(rows)} rows, {counted} trees recomputed, {len({row.instance for row in rows})} instances")
    if prove:
        certificates = certified(
            examined, registry, prove_limit, lambda text: print(f"proving {text}", file=sys.stderr)
        )
        findings += certificates.findings
        print(certificates)
        proofs = proven_again(rows, registry, prove_limit, lambda text: print(f"counting {text}", file=sys.stderr))
        findings += proofs.findings
        print(proofs)
    notes = Counter(note for one in examined for note in one.notes)
    for note, count in notes.items():
        print(f"{count} rows: {note}")
    for finding in findings[:_SHOWN]:
        print(finding)
    if len(findings) > _SHOWN:
        print(f"... and {len(findings) - _SHOWN} more")
    if findings:
        print("1 contradiction" if len(findings) == 1 else f"{len(findings)} contradictions")
    else:
        print("no contradiction in what could be checked" if notes else "no contradiction")
    return _CONTRADICTED if findings else _NOT_CHECKED if notes else 0


Number = TypeVar("Number", int, float)


def _listed(texts: Sequence[str] | None) -> list[str] | None:
    """Split texts at commas: ``a,b`` is the same as ``a`` and ``b``."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()] if texts else None


def _numbers(texts: Sequence[str] | None, kind: Callable[[str], Number], option: str) -> list[Number] | None:
    parts = _listed(texts)
    try:
        return None if parts is None else [kind(part) for part in parts]
    except ValueError:
        raise InvalidInputError(f"{option} must be numbers separated by commas, got {shown(parts)}") from None
