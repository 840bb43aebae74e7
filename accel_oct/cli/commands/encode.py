"""``accel-oct encode``: encode a table as binary columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.output import check_output, emit, write_table
from accel_oct.cli.commands.tables import read_features, read_training
from accel_oct.cli.commands.training import estimator_encoder, table_encoder
from accel_oct.cli.options import DisplayOptions, EncoderOptions, OutputOptions, TableOptions, TargetOptions
from accel_oct.encoding.auto import AutoEncoder
from accel_oct.errors import InvalidInputError


def encode(
    table: TableOptions,
    columns: TargetOptions,
    encoder: EncoderOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write binary columns, with the target last if it is given."""
    check_output(output, display)
    if encoder.encoder == "none":
        raise InvalidInputError("--encoder none leaves a table as it is: there is nothing to encode")
    # Thresholds of trees need the classes; without them, use quantiles.
    name = encoder.encoder or ("quantile-thresholds" if columns.target is None else "auto")
    if columns.target is None:
        if name == "auto" or columns.sample_weight is not None:
            raise InvalidInputError("--encoder auto and --sample-weight need --target")
        X, y, weights = read_features(table, display), None, None
    else:
        data = read_training(table, columns, display)
        X, y, weights = data.X, data.y, data.weights
    if estimator_encoder(replace(encoder, encoder=name)) == "auto":
        fitted: Any = AutoEncoder(missing=encoder.missing or "category").fit(X, y, sample_weight=weights)
    else:
        fitted = table_encoder(replace(encoder, encoder=name)).fit(X, y)
    names = [str(name) for name in fitted.get_feature_names_out()]
    rows = fitted.transform(X).astype(int).tolist()
    if y is not None:
        names.append(str(columns.target))
        rows = [[*row, label] for row, label in zip(rows, y.tolist(), strict=True)]
    write_table(output, display, names, rows)
    return emit(
        display,
        "encode",
        Code.DONE,
        columns=names,
        rows=rows,
        exact=bool(getattr(fitted, "exact_", False)),
        output=output.output,
    )
