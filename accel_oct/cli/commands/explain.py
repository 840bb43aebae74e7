"""``accel-oct explain``: reasons of predictions, and the smallest changes that alter them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, printed, write_errors_named, writing
from accel_oct.cli.commands.tables import read_features
from accel_oct.cli.options import DisplayOptions, ExplanationOptions, ModelFile, OutputOptions, TableOptions
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io.tables import is_binary, write_columns, write_csv
from accel_oct.reasons.explanations import NAMES

_SIGNS = {"up": 1, "down": -1}


def explain(
    file: ModelFile,
    table: TableOptions,
    wanted: ExplanationOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Print an explanation of each row; with --output, write a table with one line per row."""
    check_output(output, display)
    model = read_model(file, table, policies="explanations are about classifiers; `show` prints its rules").model
    X = read_features(table, display, like=model)
    found = model.explain(
        X, fixed=wanted.fixed or (), direction=_directions(wanted.direction or ()), to=_label(wanted.to, model)
    )
    rows = [list(explanation.cells().values()) for explanation in found]
    if output.output is not None and is_binary(output.output):
        with write_errors_named(output.output):
            write_columns(output.output, list(NAMES), [list(column) for column in zip(*rows, strict=True)])
    elif output.output is not None:
        with writing(output.output) as written:
            write_csv(written, list(NAMES), rows, escape_formulas=wanted.escape_formulas)
    else:
        printed(display, output, str(found))
    return emit(display, "explain", Code.DONE, explanations=found.to_dicts(), output=output.output)


def _directions(entries: Iterable[str]) -> dict[str, int]:
    found = {}
    for entry in entries:
        name, mark, way = entry.rpartition("=")
        if not mark or way not in _SIGNS:
            raise InvalidInputError(f"--direction must be COLUMN=up or COLUMN=down, got {shown(entry)}")
        found[name] = _SIGNS[way]
    return found


def _label(text: str | None, model: Any) -> Any:
    """Return the class with this text."""
    if text is None:
        return None
    named = {str(label): label for label in model.classes_.tolist()}
    if text not in named:
        raise InvalidInputError(f"--to must be a class of the model, {shown(list(named))}, got {shown(text)}")
    return named[text]
