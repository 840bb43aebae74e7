"""``accel-oct frontier``: the best tree for every number of leaves."""

from __future__ import annotations

from accel_oct.cli.commands.searching import searched
from accel_oct.cli.commands.telling import code_of, tell, watched, write_table
from accel_oct.cli.options import (
    EncoderOptions,
    LimitOptions,
    OutputOptions,
    RuleOptions,
    RunFile,
    TableOptions,
    TargetOptions,
    TellingOptions,
    TreeOptions,
)
from accel_oct.solving.frontier import frontier

__all__ = ["run"]


def run(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    file: RunFile,
    output: OutputOptions,
    telling: TellingOptions,
) -> int:
    """A row per number of leaves."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, telling)
    with watched(telling, search.model.time_limit) as progress:
        found = frontier(progress=progress, **search.arguments)
    rows = [
        {"max_leaves": point.max_leaves, "score": point.score, "bound": point.bound, "proven": point.is_proven}
        for point in found
    ]
    cells = [[row["max_leaves"], f"{row['score']:.6g}", f"{row['bound']:.6g}", row["proven"]] for row in rows]
    write_table(output, telling, list(rows[0]), cells)
    code = code_of([found.status])
    return tell(
        telling,
        "frontier",
        code,
        status=found.status,
        frontier=rows,
        max_depth=search.model.max_depth,
        scope=str(search.model._scope()),
        seconds=found.seconds,
        output=output.output,
    )
