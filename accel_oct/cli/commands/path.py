"""``accel-oct path``: the optimal trees of many leaf penalties."""

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
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES
from accel_oct.solving.frontier import solve_path

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
    """A row per penalty."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, telling)
    penalties = search.penalties or list(DEFAULT_PENALTIES)
    with watched(telling, search.model.time_limit) as progress:
        results = solve_path(leaf_penalties=penalties, progress=progress, **search.arguments)
    rows = [
        {
            "leaf_penalty": penalty,
            "leaves": None if result.found is None else result.found.n_leaves,
            "score": None if result.found is None else result.objective + penalty * result.found.n_leaves,
            "objective": result.objective,
            "bound": result.bound,
            "status": result.status,
        }
        for penalty, result in zip(penalties, results, strict=True)
    ]
    cells = [[f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in rows]
    write_table(output, telling, list(rows[0]), cells)
    code = code_of(result.status for result in results)
    scope = str(search.model._scope())
    return tell(telling, "path", code, path=rows, max_depth=search.model.max_depth, scope=scope, output=output.output)
