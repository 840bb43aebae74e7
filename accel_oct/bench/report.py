"""Tables from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean, median
from typing import Any

import numpy as np

from accel_oct.bench.machine import machine

__all__ = ["machine", "markdown", "report"]

Record = dict[str, Any]


def report(records: list[Record]) -> str:
    """Every table that the records have figures for."""
    parts = []
    for record in records:
        if record["method"] == "machine":
            parts.append(
                f"Machine: {record['cpu']}, {record['cores']} cores, {record['system']}, Python {record['python']}. "
                f"Start-up of a process (imports, compiled code loaded): {record['start_up_seconds']:.1f} s, "
                "not counted below."
            )
    tables: dict[str, Callable[[list[Record]], str]] = {
        "solve": _solve_tables,
        "path": _path_table,
        "frontier": _frontier_table,
        "growth": _growth_table,
    }
    for method, table in tables.items():
        chosen = [record for record in records if record["method"] == method]
        if chosen:
            parts.append(table(chosen))
    if len({record["backend"] for record in records if record["method"] == "solve"}) > 1:
        parts.append(_backend_table([record for record in records if record["method"] == "solve"]))
    streed = [record for record in records if record["method"] == "streed"]
    ours = [record for record in records if record["method"] == "solve"]
    if streed and ours:
        parts.append(_streed_table(ours, streed))
    return "\n\n".join(parts)


def markdown(header: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; numbers are right-aligned by their own width only."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return str(value)


def _grouped(records: list[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return groups


def _spread(group: list[Record]) -> list[Any]:
    times = np.array([record["seconds"] for record in group])
    proven = sum(record["status"] == "optimal" for record in group)
    quantiles = (median(times), float(np.quantile(times, 0.95)), float(times.max()), float(times.sum()))
    return [f"{proven}/{len(group)}", *map(float, quantiles)]


def _solve_tables(records: list[Record]) -> str:
    header = ["backend", "preset", "depth", "proven", "median s", "95 % s", "max s", "sum s"]
    rows = [[*key, *_spread(group)] for key, group in _grouped(records, "backend", "preset", "depth").items()]
    everything = ["all", "", "", *_spread(records)]
    detail_header = [
        "data",
        "samples",
        "features",
        "classes",
        "depth",
        "proven",
        "median s",
        "95 % s",
        "max s",
        "sum s",
    ]
    detail = _grouped(records, "data", "samples", "features", "classes", "depth")
    return "\n\n".join(
        [
            markdown(header, [*rows, everything]),
            markdown(detail_header, ([*key, *_spread(group)] for key, group in detail.items())),
        ]
    )


def _backend_table(records: list[Record]) -> str:
    """Backends side by side: solved, times over instances that all solve, nodes and cuts over all."""
    rows = []
    for (preset,), group in _grouped(records, "preset").items():
        by_backend = _grouped(group, "backend")
        solved = {
            backend: {_instance(record): record for record in runs if record["status"] == "optimal"}
            for (backend,), runs in by_backend.items()
        }
        for (backend,), runs in by_backend.items():
            finished = [record for record in runs if not record["status"].startswith("error")]
            common = [key for key in solved[backend] if all(key in others for others in solved.values())]
            cuts = [sum(part.get("cuts", 0) for part in record["components"].values()) for record in finished]
            rows.append(
                [
                    preset,
                    backend,
                    f"{len(solved[backend])}/{len(runs)}",
                    len(common),
                    _geometric_mean([solved[backend][key]["seconds"] for key in common]),
                    *(f"{_ratio(solved, backend, other):.2f}" for other in ("gurobi", "scip") if other in solved),
                    mean(record["nodes"] for record in finished),
                    mean(cuts),
                ]
            )
    against = [f"time / {other}, both solve" for other in ("gurobi", "scip")]
    header = ["preset", "backend", "solved", "solved by all", "geometric mean s on those", *against, "nodes", "cuts"]
    return markdown(header, rows)


def _instance(record: Record) -> tuple[Any, ...]:
    return record["data"], record["depth"], record["penalty"]


def _geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def _ratio(solved: dict[str, dict[tuple[Any, ...], Record]], backend: str, other: str) -> float:
    both = solved[backend].keys() & solved[other].keys()
    return _geometric_mean([solved[backend][key]["seconds"] / solved[other][key]["seconds"] for key in both])


def _path_table(records: list[Record]) -> str:
    rows = []
    for key, group in _grouped(records, "data", "samples", "features", "classes", "depth").items():
        proven = sum(record["status"] == "optimal" for record in group)
        rows.append([*key, f"{proven}/{len(group)}", sum(record["seconds"] for record in group)])
    total = sum(record["seconds"] for record in records)
    proven = sum(record["status"] == "optimal" for record in records)
    rows.append(["all", "", "", "", "", f"{proven}/{len(records)}", total])
    return markdown(["data", "samples", "features", "classes", "depth", "proven", "path s"], rows)


def _frontier_table(records: list[Record]) -> str:
    header = ["data", "samples", "features", "classes", "depth", "status", "seconds", "accuracy", "bound"]
    rows = [[record[key] for key in header] for record in records]
    proven = sum(record["status"] == "optimal" for record in records)
    traces = [
        f"- {record['data']}, depth {record['depth']}: "
        + "; ".join(f"{s:.0f} s: {accuracy:.4f} <= {bound:.4f}" for s, accuracy, bound in record["trace"])
        for record in records
        if record["status"] != "optimal" and record["trace"]
    ]
    parts = [markdown(header, rows), f"{proven} of {len(records)} frontiers proven."]
    if traces:
        parts.append("Accuracy and bound over time where the limit was reached:\n\n" + "\n".join(traces))
    return "\n\n".join(parts)


def _growth_table(records: list[Record]) -> str:
    header = ["samples", "features", "depth", "threads", "seconds", "peak_gib"]
    return markdown(header, ([record[key] for key in header] for record in records))


def _streed_table(ours: list[Record], theirs: list[Record]) -> str:
    """Ratios of seconds, instance by instance; a time-out of theirs counts with the time it had."""
    pairs = []
    known = {(record["data"], record["depth"], record["penalty"]): record for record in ours}
    for record in theirs:
        mine = known.get((record["data"], record["depth"], record["penalty"]))
        if mine is not None:
            pairs.append((mine, record))
    lines = []
    for threshold in (0.0, 0.1, 1.0):
        chosen = [(mine, other) for mine, other in pairs if other["seconds"] > threshold]
        if chosen:
            ratios = np.array([mine["seconds"] / other["seconds"] for mine, other in chosen])
            lines.append([f"> {threshold:g} s", len(chosen), float(np.exp(np.log(ratios).mean())), float(ratios.max())])
    finished = [(mine, other) for mine, other in pairs if other["status"] == "optimal"]
    worse = sum(mine["objective"] < other["objective"] - 1e-9 for mine, other in pairs)
    better = sum(mine["objective"] > other["objective"] + 1e-9 for mine, other in pairs)
    depths = sorted({record["depth"] for record in theirs})
    return (
        f"Side by side with STreeD, depth {', '.join(map(str, depths))}: {len(finished)} of {len(pairs)} instances "
        f"finished by it (mean {mean(other['seconds'] for _, other in pairs):.2f} s against "
        f"{mean(mine['seconds'] for mine, _ in pairs):.2f} s). Objectives: ours better {better}, worse {worse}, "
        f"equal {len(pairs) - better - worse}.\n\n"
        + markdown(["instances that take it", "number", "geometric mean of ours / its", "largest ratio"], lines)
    )
