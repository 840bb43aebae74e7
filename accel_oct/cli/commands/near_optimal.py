"""``accel-oct near-optimal``: list all trees close to the optimum."""

from __future__ import annotations

from typing import Any

from accel_oct.cli.commands.models import model_text
from accel_oct.cli.commands.output import code_of, printed, tell, watched, write_table, writing
from accel_oct.cli.commands.training import searched
from accel_oct.cli.options import (
    EncoderOptions,
    LimitOptions,
    NearOptions,
    OutputOptions,
    RuleOptions,
    RunFile,
    TableOptions,
    TargetOptions,
    TellingOptions,
    TreeOptions,
)
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_text


def run(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    wanted: NearOptions,
    file: RunFile,
    output: OutputOptions,
    telling: TellingOptions,
) -> int:
    """Write one row per tree, best first, or one tree as a model."""
    if wanted.pick is not None and not 1 <= wanted.pick <= wanted.limit:
        raise InvalidInputError(f"--pick must lie between 1 and --limit {wanted.limit}, got {wanted.pick}")
    if wanted.pick is not None and output.output is None:
        raise InvalidInputError("--pick needs --output, the file for the model")
    search = searched(table, columns, tree, rules, encoder, limits, file, output, telling)
    data = search.data
    with watched(telling, search.model.time_limit) as search.model.progress:
        trees = search.model.near_optimal(
            data.X, data.y, within=wanted.within, limit=wanted.limit, sample_weight=data.weights
        )
    listed = list(trees)
    rows: list[dict[str, Any]] = [
        {
            "rank": rank,
            "objective": each.objective,
            "score": each.score,
            "accuracy": each.accuracy,
            "leaves": each.n_leaves,
            "columns": list(each.columns),
        }
        for rank, each in enumerate(listed, start=1)
    ]
    if wanted.pick is not None:
        if wanted.pick > len(listed):
            raise InvalidInputError(f"--pick {wanted.pick}: only {len(listed)} trees were listed")
        picked = trees.model(wanted.pick - 1)
        with writing(output.output) as written:
            written.write(model_text(picked, data, search.columns, search.texts))
        printed(telling, output, to_text(picked))
    else:
        names = ["rank", "objective", "score", "accuracy", "leaves", "columns"]
        cells = [
            [r["rank"], *(f"{r[name]:.6f}" for name in names[1:4]), r["leaves"], " ".join(r["columns"])] for r in rows
        ]
        write_table(output, telling, names, cells)
    if output.output not in (None, "-"):
        printed(telling, output, f"# {trees.summary}")
    return tell(
        telling,
        "near-optimal",
        code_of([trees.status]),
        status=trees.status,
        optimum=trees.optimum,
        within=trees.within,
        count=trees.count,
        at_least=trees.at_least,
        complete=trees.complete,
        trees=rows,
        output=output.output,
    )
