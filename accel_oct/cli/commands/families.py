"""``accel-oct path``, ``frontier`` and ``near-optimal``: several trees of one table."""

from __future__ import annotations

import time
from typing import Any

from accel_oct.cli.commands.models import model_text
from accel_oct.cli.commands.output import code_of, emit, printed, watched, write_table, writing
from accel_oct.cli.commands.training import searched
from accel_oct.cli.options import (
    DisplayOptions,
    EncoderOptions,
    LimitOptions,
    NearOptions,
    OutputOptions,
    RuleOptions,
    RunFile,
    TableOptions,
    TargetOptions,
    TreeOptions,
)
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES
from accel_oct.export import to_text


def path(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    file: RunFile,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write one row per leaf penalty, with its optimal tree."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, display)
    penalties = search.penalties or list(DEFAULT_PENALTIES)
    model, data = search.model, search.data
    with watched(display, model.time_limit) as model.progress:
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
    write_table(output, display, list(rows[0]), cells)
    code = code_of(each.status_ for each in found)
    scope = str(found[-1].result_.scope)
    return emit(display, "path", code, path=rows, max_depth=model.max_depth, scope=scope, output=output.output)


def frontier(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    file: RunFile,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write one row per number of leaves, with the best tree."""
    search = searched(table, columns, tree, rules, encoder, limits, file, output, display)
    model, data = search.model, search.data
    began = time.perf_counter()
    with watched(display, model.time_limit) as model.progress:
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
    write_table(output, display, list(rows[0]), cells)
    statuses = [each.status_ for each in found]
    code = code_of(statuses)
    return emit(
        display,
        "frontier",
        code,
        status=next((status for status in statuses if status != "optimal"), "optimal"),
        frontier=rows,
        max_depth=model.max_depth,
        scope=str(found[-1].result_.scope),
        seconds=time.perf_counter() - began,
        output=output.output,
    )


def near_optimal(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    wanted: NearOptions,
    file: RunFile,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Write one row per tree, best first, or one tree as a model."""
    if wanted.pick is not None and not 1 <= wanted.pick <= wanted.limit:
        raise InvalidInputError(f"--pick must lie between 1 and --limit {wanted.limit}, got {wanted.pick}")
    if wanted.pick is not None and output.output is None:
        raise InvalidInputError("--pick needs --output, the file for the model")
    search = searched(table, columns, tree, rules, encoder, limits, file, output, display)
    data = search.data
    with watched(display, search.model.time_limit) as search.model.progress:
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
        printed(display, output, to_text(picked))
    else:
        names = ["rank", "objective", "score", "accuracy", "leaves", "columns"]
        cells = [
            [r["rank"], *(f"{r[name]:.6f}" for name in names[1:4]), r["leaves"], " ".join(r["columns"])] for r in rows
        ]
        write_table(output, display, names, cells)
    if output.output not in (None, "-"):
        printed(display, output, f"# {trees.summary}")
    return emit(
        display,
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
