"""``accel-oct frontier``: best tree for each number of leaves."""

from __future__ import annotations

import time

from accel_oct.cli.commands.output import code_of, tell, watched, write_table
from accel_oct.cli.commands.training import searched
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
    """Write one row per number of leaves."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, telling)
    model, data = search.model, search.data
    began = time.perf_counter()
    with watched(telling, model.time_limit) as model.progress:
        found = model.frontier(data.X, data.y, sample_weight=data.weights)
    rows = [
        {
            "max_leaves": leaves,
            "score": each.objective_,
            "bound": each.bound_,
            "proven": each.status_ == "optimal",
        }
        for leaves, each in enumerate(found, start=1)
    ]
    cells = [[row["max_leaves"], f"{row['score']:.6g}", f"{row['bound']:.6g}", row["proven"]] for row in rows]
    write_table(output, telling, list(rows[0]), cells)
    statuses = [each.status_ for each in found]
    code = code_of(statuses)
    return tell(
        telling,
        "frontier",
        code,
        status=next((status for status in statuses if status != "optimal"), "optimal"),
        frontier=rows,
        max_depth=model.max_depth,
        scope=str(found[-1].result_.scope),
        seconds=time.perf_counter() - began,
        output=output.output,
    )
