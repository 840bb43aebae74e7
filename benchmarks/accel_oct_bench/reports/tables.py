"""Tables as values: cells that may be bold; written as Markdown, LaTeX and HTML elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel_oct_bench.reports.comparing import Comparison, is_solved
from accel_oct_bench.reports.statistics import shifted_geometric_mean
from accel_oct_bench.rows import Row

__all__ = ["Cell", "Table", "data_table", "failure_table", "instance_table", "number", "summary_table"]


@dataclass(frozen=True)
class Cell:
    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    groups : list of (str, int), or empty
        A line above the header: a text and how many columns it spans.
    words : int
        So many columns from the left are words, the others numbers.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    caption: str = ""
    groups: Sequence[tuple[str, int]] = ()
    words: int = 1


def number(value: float | None, digits: int = 3) -> str:
    """Three figures; a dash for none."""
    if value is None or not np.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def summary_table(comparison: Comparison, shift: float) -> Table:
    """One line per method: solved, times, gaps, best trees, failures."""
    lines, sort = [], []
    for method in comparison.methods:
        rows, solved, gaps = comparison.of(method), comparison.solved(method), comparison.gaps(method)
        seconds = comparison.seconds(method)
        unsolved = gaps[~solved & np.isfinite(gaps)]
        failed = sum(row.status in ("error", "crashed", "memory_limit", "interrupted") for row in rows)
        mean = shifted_geometric_mean(seconds, shift)
        sort.append((-int(solved.sum()), mean))
        lines.append(
            [
                method,
                f"{int(solved.sum())}/{len(rows)}",
                number(mean),
                number(float(np.median(seconds))),
                number(float(seconds.max())),
                number(100 * float(unsolved.mean()) if len(unsolved) else None),
                str(comparison.best_found(method)),
                str(failed),
            ]
        )
    best = min(sort)
    header = ["method", "solved", "mean s", "median s", "longest s", "gap %", "best tree", "failed"]
    caption = (
        f"{len(comparison.instances)} instances, the same for all. Solved: a proof is claimed. Mean: geometric, "
        f"shifted by {shift:g} s. In all three times, what is not solved counts at the limit, and what ended without a "
        "claim as it is. Gap: mean of the unsolved that have a bound. Best tree: instances on which no method has a "
        "better one. Bold: most solved, then the smaller mean."
    )
    cells = [[Cell(text, key == best) for text in line] for line, key in zip(lines, sort, strict=True)]
    return Table(f"{comparison.title}: summary", header, cells, caption)


def data_table(comparison: Comparison) -> Table:
    """The paper's table: per data set and method the number solved, their mean time, the mean gap of the others."""
    names = list(dict.fromkeys(comparison.families))
    place = np.array([names.index(name) for name in comparison.families])
    lines = []
    for position, name in enumerate([*names, "all"]):
        mine = place == position if position < len(names) else np.ones(len(place), dtype=bool)
        triples = [_triple(comparison, method, mine) for method in comparison.methods]
        best = min((-solved, time if time is not None else np.inf, gap or 0.0) for solved, time, gap in triples)
        line = [Cell(name), Cell(str(int(mine.sum())))]
        for solved, time, gap in triples:
            bold = len(triples) > 1 and (-solved, time if time is not None else np.inf, gap or 0.0) == best
            percent = None if gap is None else 100 * gap
            line += [Cell(text, bold) for text in (str(solved), number(time), number(percent))]
        lines.append(line)
    caption = (
        "Solved: instances with a claimed proof. Time: mean seconds of the solved. Gap: mean gap of the others in %; "
        "those without a bound or a tree are left out of it. Bold: most solved, then the shorter time, then the "
        "smaller gap."
    )
    header = ["data", "instances", *(["solved", "time", "gap"] * len(comparison.methods))]
    groups = [("", 2), *((method, 3) for method in comparison.methods)]
    return Table(f"{comparison.title}: per data set", header, lines, caption, groups)


def _triple(comparison: Comparison, method: str, mine: object) -> tuple[int, float | None, float | None]:
    solved, gaps, seconds = comparison.solved(method), comparison.gaps(method), comparison.seconds(method)
    inside = np.asarray(mine, dtype=bool)
    done, open_ = seconds[inside & solved], gaps[inside & ~solved & np.isfinite(gaps)]
    time = float(done.mean()) if len(done) else None
    return int((inside & solved).sum()), time, float(open_.mean()) if len(open_) else None


def instance_table(comparison: Comparison) -> Table:
    """Every instance: seconds of each method, or how it ended."""
    lines = []
    for instance in comparison.instances:
        rows = [comparison.runs[method, instance] for method in comparison.methods]
        it = rows[0].instance
        seconds = [comparison.taken(row) if is_solved(row) else np.inf for row in rows]
        cells = [Cell(it.data), Cell(str(it.max_depth)), Cell(f"{it.leaf_penalty:g}")]
        cells += [
            Cell(_outcome(row, comparison), len(rows) > 1 and np.isfinite(second) and second == min(seconds))
            for row, second in zip(rows, seconds, strict=True)
        ]
        lines.append(cells)
    header = ["data", "depth", "penalty", *comparison.methods]
    caption = "Seconds where solved; else the status and the gap in %. Bold: the shortest."
    return Table(f"{comparison.title}: every instance", header, lines, caption, words=1)


def _outcome(row: Row, comparison: Comparison) -> str:
    if is_solved(row):
        return number(comparison.taken(row))
    gap = "" if row.gap is None else f" {number(100 * row.gap)}"
    return f"{row.status.replace('_', ' ')}{gap}"


def failure_table(rows: Sequence[Row]) -> Table | None:
    """What ended without a result, with the sentence of each, commonest first; None where nothing did."""
    counts = Counter((row.method.name, row.status, row.error or "") for row in rows if row.error)
    if not counts:
        return None
    lines = [
        [Cell(name), Cell(status), Cell(error), Cell(str(count))]
        for (name, status, error), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Table("Runs with an error", ["method", "status", "error", "runs"], lines, words=3)
