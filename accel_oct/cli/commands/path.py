"""``accel-oct path``: optimal tree for each leaf penalty."""

from __future__ import annotations

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
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES


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
    """Write one row per penalty."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, telling)
    penalties = search.penalties or list(DEFAULT_PENALTIES)
    model, data = search.model, search.data
    with watched(telling, model.time_limit) as model.progress:
        found = model.path(data.X, data.y, leaf_penalties=penalties, sample_weight=data.weights)
    rows = [
        {
            "leaf_penalty": penalty,
            "leaves": each.get_n_leaves(),
            "score": each.objective_ + penalty * each.get_n_leaves(),
            "objective": each.objective_,
            "bound": each.bound_,
            "status": each.status_,
        }
        for penalty, each in zip(penalties, found, strict=True)
    ]
    cells = [[f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in rows]
    write_table(output, telling, list(rows[0]), cells)
    code = code_of(each.status_ for each in found)
    scope = str(found[-1].result_.scope)
    return tell(telling, "path", code, path=rows, max_depth=model.max_depth, scope=scope, output=output.output)
