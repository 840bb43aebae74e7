"""``accel-oct certify``: write a certificate of a model's optimality."""

from __future__ import annotations

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, printed, write_errors_named
from accel_oct.cli.commands.tables import read_training
from accel_oct.cli.options import (
    CertificateOptions,
    DisplayOptions,
    ModelFile,
    OutputOptions,
    TableOptions,
    TargetOptions,
)
from accel_oct.errors import InvalidInputError
from accel_oct.solving.parsing import constraint, objective


def certify(
    file: ModelFile,
    table: TableOptions,
    columns: TargetOptions,
    wanted: CertificateOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write the certificate."""
    if output.output is None or output.output == "-":
        raise InvalidInputError("--output is needed: the file for the certificate, such as proof.json")
    check_output(output, display)
    stored = read_model(file, table, policies="certificates are about classifiers")
    model = stored.model
    if stored.objective is not None:
        model.objective, _ = objective(stored.objective)
    model.constraints = [constraint(text)[0] for text in stored.texts("constraints")] or None
    data = read_training(table, stored.columns(columns), display, like=model)
    if stored.fingerprint not in (None, data.fingerprint):
        raise InvalidInputError("the data are not those of the training, of which alone the optimum is proven")
    named = stored.columns(columns)
    with write_errors_named(output.output):
        found = model.certificate(
            output.output,
            data.X,
            data.y,
            data.weights,
            table=wanted.table,
            target=named.target,
            weight=named.sample_weight,
            time_limit=wanted.time_limit,
        )
    printed(display, output, f"wrote {output.output}: {found.lemmas} lemmas, {found.size} bytes")
    return emit(
        display,
        "certify",
        Code.DONE,
        output=output.output,
        table=wanted.table,
        fingerprint=found.fingerprint,
        data_fingerprint=found.data_fingerprint,
        lemmas=found.lemmas,
        size=found.size,
        seconds=found.seconds,
    )
