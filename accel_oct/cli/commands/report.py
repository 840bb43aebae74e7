"""``accel-oct report``: report on a model and its data."""

from __future__ import annotations

from dataclasses import replace

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, printed, write_errors_named
from accel_oct.cli.commands.tables import read_training
from accel_oct.cli.options import (
    DisplayOptions,
    ModelFile,
    OutputOptions,
    ReportOptions,
    TableOptions,
    TargetOptions,
)
from accel_oct.errors import InvalidInputError
from accel_oct.report import write_report
from accel_oct.solving.parsing import constraint, objective


def report(
    file: ModelFile,
    table: TableOptions,
    columns: TargetOptions,
    wanted: ReportOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write the report."""
    if output.output is None or output.output == "-":
        raise InvalidInputError("--output is needed: the file for the report, such as report.html")
    check_output(output, display)
    stored = read_model(file, table, policies="reports are about classifiers; `show` draws it")
    model = stored.model
    if stored.objective is not None:
        model.objective, _ = objective(stored.objective)
    model.constraints = [constraint(text)[0] for text in stored.texts("constraints")] or None
    named = stored.columns(columns)
    data = read_training(table, named, display, like=model)
    test = None
    if wanted.test is not None:
        held_out = read_training(replace(table, data=wanted.test), named, display, like=model)
        test = held_out.X, held_out.y
    with write_errors_named(output.output):
        write_report(
            model,
            output.output,
            data.X,
            data.y,
            sample_weight=data.weights,
            test=test,
            near_optimal=wanted.near_optimal,
            certificate=wanted.certificate,
            title=wanted.title,
        )
    printed(display, output, f"wrote {output.output}")
    return emit(display, "report", Code.DONE, output=output.output)
