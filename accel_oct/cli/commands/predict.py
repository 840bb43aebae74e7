"""``accel-oct predict``: predict the classes of a table."""

from __future__ import annotations

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, write_errors_named, writing
from accel_oct.cli.commands.tables import read_features
from accel_oct.cli.options import DisplayOptions, ModelFile, OutputOptions, PredictionOptions, TableOptions
from accel_oct.errors import InvalidInputError
from accel_oct.io.tables import is_binary, write_columns, write_csv


def predict(
    file: ModelFile,
    table: TableOptions,
    wanted: PredictionOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Read a table and write predictions. Columns may be in any order; additional ones are ignored."""
    check_output(output, display)
    model = read_model(file, table).model
    if wanted.proba and not hasattr(model, "predict_proba"):
        raise InvalidInputError("--proba: the model is a policy tree, which assigns treatments without probabilities")
    X = read_features(table, display, like=model)
    classes = model.predict(X).tolist()
    names, columns = ["prediction"], [classes]
    shares = model.predict_proba(X, class_weights=not wanted.unweighted) if wanted.proba else None
    if shares is not None:
        names += [f"probability of {label}" for label in model.classes_]
        columns += shares.T.tolist()
    if output.output is not None and is_binary(output.output):
        with write_errors_named(output.output):
            write_columns(output.output, names, columns)
    elif output.output is not None or not display.json:
        with writing(output.output) as written:
            write_csv(written, names, zip(*columns, strict=True), escape_formulas=wanted.escape_formulas)
    return emit(
        display,
        "predict",
        Code.DONE,
        classes=model.classes_,
        predictions=classes,
        probabilities=shares,
        output=output.output,
    )
