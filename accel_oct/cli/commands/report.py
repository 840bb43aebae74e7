"""``accel-oct report``: report on a model and its data."""

from __future__ import annotations

from dataclasses import replace

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, printed, watched, write_errors_named
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
from accel_oct.report import write_card, write_report
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
    if output.output == "-" or (output.output is None and wanted.card is None):
        raise InvalidInputError("--output is needed: the file for the report, such as report.html; or --card")
    for path in (output.output, wanted.card):
        check_output(OutputOptions(path), display)
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
    stability = None
    if wanted.bootstrap is not None:
        with watched(display, wanted.time_limit) as watch:
            stability = model.stability(
                data.X,
                data.y,
                n_samples=wanted.bootstrap,
                seed=wanted.seed,
                time_limit=wanted.time_limit,
                sample_weight=data.weights,
                progress=watch,
            )
    shared = {
        "sample_weight": data.weights,
        "test": test,
        "groups": wanted.groups,
        "stability": stability,
        "title": wanted.title,
    }
    if output.output is not None:
        with write_errors_named(output.output):
            write_report(
                model,
                output.output,
                data.X,
                data.y,
                near_optimal=wanted.near_optimal,
                certificate=wanted.certificate,
                **shared,
            )
        printed(display, output, f"wrote {output.output}")
    if wanted.card is not None:
        with write_errors_named(wanted.card):
            write_card(model, wanted.card, data.X, data.y, **shared)
        printed(display, output, f"wrote {wanted.card}")
    return emit(display, "report", Code.DONE, output=output.output, card=wanted.card)
