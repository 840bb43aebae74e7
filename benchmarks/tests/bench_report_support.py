"""Real rows for the tests of reports and of verify: solved here, in this process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from accel_oct_bench.registry import Registry
from accel_oct_bench.rows import Method, Row, run_key
from accel_oct_bench.solving_one import solve_task
from accel_oct_bench.tasks import Task, instance_of

LIMITED = ("recall(1, at_least=0.9)", "max_leaves(4)")


@cache
def solved(
    data: str, depth: int = 2, penalty: float = 0.01, constraints: tuple[str, ...] = (), **method: object
) -> Row:
    """A row as `bench run` writes it."""
    loaded = Registry().load(data)
    instance = instance_of(loaded, depth, penalty, constraints)
    how = Method(**{"name": "default", **method})  # type: ignore[arg-type]
    found = solve_task(Task("test", instance, how), loaded)
    shared = {"versions": {"accel_oct": "0"}, "machine": {"cpu": "a", "cores": 1}, "started": "2026-01-31T12:00:00Z"}
    return Row(run_key(instance, how), "test", instance, how, **shared, **found)  # type: ignore[arg-type]


@cache
def real_rows() -> tuple[Row, ...]:
    """Two methods on eight instances, one of them with constraints."""
    rows = []
    for preset in ("default", "frontier"):
        for data in ("gen-monk1", "gen-chain-6"):
            for penalty in (0.04, 0.002):
                for depth in (2, 3):
                    rows.append(solved(data, depth, penalty, name=preset, preset=preset))
    rows.append(solved("gen-monk2", 3, 0.001, LIMITED))
    return tuple(rows)


def written(rows: tuple[Row, ...] | list[Row], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(row.to_json() + "\n" for row in rows), encoding="utf-8")
    return folder
