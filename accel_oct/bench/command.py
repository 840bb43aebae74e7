"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accel_oct.bench import suites
from accel_oct.bench.instances import PAPER_PENALTIES
from accel_oct.bench.report import machine, report
from accel_oct.bench.runs import Record, warm_up
from accel_oct.errors import AccelOctError, InvalidInputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and return an exit code."""
    parser = argparse.ArgumentParser(prog="accel-oct bench", description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        return execute(options)
    except (AccelOctError, OSError) as error:
        print(f"accel-oct bench: {error}", file=sys.stderr)
        return 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sub-commands ``run`` and ``report``, for this parser or that of ``accel-oct bench``."""
    commands = parser.add_subparsers(dest="bench_command", required=True)
    run = commands.add_parser("run", help="run a suite; one JSON line per run")
    run.add_argument("suite", choices=sorted(suites.SUITES))
    run.add_argument("--data-dir", help="folder with NAME_enc.csv files (default: the variable ACCEL_OCT_DATA)")
    run.add_argument("--data", nargs="+", metavar="NAME", help="only these data sets")
    run.add_argument("--depths", type=int, nargs="+", default=[3, 4])
    run.add_argument("--penalties", type=float, nargs="+", default=list(PAPER_PENALTIES))
    run.add_argument("--backend", default="highs")
    run.add_argument("--preset", default="default")
    run.add_argument("--time-limit", type=float)
    run.add_argument("--threads", type=int, default=1)
    run.add_argument("--out", type=Path, default=Path("results/bench.jsonl"))
    told = commands.add_parser("report", help="tables in Markdown from the lines of one or more runs")
    told.add_argument("files", type=Path, nargs="+")
    grow = commands.add_parser("grow", help=argparse.SUPPRESS)
    grow.add_argument("numbers", type=int, nargs=4)


def execute(options: argparse.Namespace) -> int:
    """Carry out a parsed command."""
    if options.bench_command == "report":
        print(report([record for file in options.files for record in _records(file)]))
        return 0
    if options.bench_command == "grow":
        print(json.dumps(suites.grow(*options.numbers)))
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    start_up = warm_up()
    began = time.perf_counter()
    with options.out.open("w", encoding="utf-8") as lines:
        lines.write(json.dumps({"method": "machine", **machine(), "start_up_seconds": start_up}) + "\n")
        for count, record in enumerate(suites.SUITES[options.suite](options), start=1):
            lines.write(json.dumps(record) + "\n")
            lines.flush()
            _progress(count, record, time.perf_counter() - began)
    print(report(_records(options.out)))
    return 0


def _records(file: Path) -> list[Record]:
    """The lines of a run that `bench run` wrote."""
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise InvalidInputError(f"{file} holds no lines of `bench run`: {error}") from None
    if not all(isinstance(record, dict) and "method" in record for record in records):
        raise InvalidInputError(f"{file} holds no lines of `bench run`")
    return records


def _progress(count: int, record: Record, seconds: float) -> None:
    what = " ".join(str(record.get(key, "")) for key in ("method", "data", "depth", "penalty", "status"))
    print(f"{seconds:8.1f} s  {count:5d}  {what}  {record['seconds']:.2f} s", file=sys.stderr)
