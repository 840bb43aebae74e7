"""Tables and a figure from the rows of benchmarks/fairness_crossval.py."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crossval_methods import METHODS

Row = Mapping[str, str]
CONSTRAINTS = {"parity": "statistical parity", "opportunity": "equal opportunity"}
FIGURES = "accuracy: train | test | gap: train | test | by chance | kept"
COLOURS = {
    "constant": "#999999",
    "cart": "#000000",
    "ours-free": "#1b6ca8",
    "ours": "#1b6ca8",
    "ours-group": "#5fb3e8",
    "streed": "#7b3294",
    "gradient": "#d95f02",
    "gradient-optimal": "#e6ab02",
    "threshold": "#2b9348",
    "cart-tuned": "#000000",
    "ours-tuned": "#1b6ca8",
    "gradient-tuned": "#d95f02",
    "threshold-tuned": "#2b9348",
}


@dataclass(frozen=True)
class Summary:
    """Means over all fits of one method on one problem."""

    data: str
    rows: int
    constraint: str
    limit: str
    method: str
    fits: int
    n_train: float
    means: Mapping[str, float]
    errors: Mapping[str, float]
    chance: float
    kept: float
    seconds: float
    slowest: float
    statuses: Mapping[str, int]
    overlap: float
    pairs: Mapping[tuple[str, str], tuple[float, float]]


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """One for each problem and method; what has no model counts among the statuses only."""
    parts: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("data", "rows", "depth", "folds", "constraint", "limit", "method"))
        parts.setdefault(key, []).append(row)
    if len({key[2:4] for key in parts}) > 1:
        raise ValueError("the file has more than one depth or number of folds: their figures do not mix")
    return sorted((_summary(part) for part in parts.values()), key=_order)


def _order(summary: Summary) -> tuple[Any, ...]:
    limit = float(summary.limit) if summary.limit != "none" else 0.0
    size = summary.rows or math.inf
    order = (list(METHODS).index(summary.method), size) if summary.rows else (size, list(METHODS).index(summary.method))
    return (summary.data, list(CONSTRAINTS).index(summary.constraint), limit, *order)


def _summary(rows: list[Row]) -> Summary:
    first = rows[0]
    done = [row for row in rows if row["test_gap"]]
    names = (
        "train_accuracy",
        "test_accuracy",
        "train_gap",
        "test_gap",
        "train_difference",
        "test_difference",
        "leaves",
    )
    values = {name: np.array([float(row[name]) for row in done]) for name in names}
    n_train, n_test = (np.mean([float(row[name]) for row in rows]) for name in ("n_train", "n_test"))
    overlap = 0.0 if int(first["rows"]) else n_test / n_train
    limit = float(first["limit"]) if first["limit"] != "none" else math.inf
    seconds = [float(row["seconds"]) for row in rows if row["seconds"] != "nan"]
    return Summary(
        first["data"],
        int(first["rows"]),
        first["constraint"],
        first["limit"],
        first["method"],
        len(done),
        float(n_train),
        {name: float(found.mean()) if done else math.nan for name, found in values.items()},
        {name: standard_error(found, float(overlap)) for name, found in values.items()},
        float(np.mean([chance(float(r["train_difference"]), float(r["test_noise"])) for r in done]))
        if done
        else math.nan,
        float(np.mean(values["test_gap"] <= limit + 1e-6)) if done else math.nan,
        float(np.median(seconds)) if seconds else math.nan,
        max(seconds, default=math.nan),
        {status: sum(row["status"] == status for row in rows) for status in sorted({row["status"] for row in rows})},
        float(overlap),
        {(row["repeat"], row["fold"]): (float(row["test_accuracy"]), float(row["test_gap"])) for row in done},
    )


def standard_error(values: Any, overlap: float) -> float:
    """Of a mean over folds.

    Training parts overlap, so that folds are not independent: Nadeau and Bengio's correction adds the ratio of test to
    training rows, `overlap`, to one over the number of folds. With 5 times 5 folds it is 2.7 times the usual one.
    """
    if len(values) < 2:
        return math.nan
    return float(np.sqrt((1 / len(values) + overlap) * np.var(values, ddof=1)))


def chance(difference: float, noise: float) -> float:
    """The gap to expect on a test part when the true difference is that of the training part: the mean of ``|N|``."""
    if noise == 0:
        return abs(difference)
    ratio = difference / noise
    return noise * math.sqrt(2 / math.pi) * math.exp(-(ratio**2) / 2) + difference * math.erf(ratio / math.sqrt(2))


# ---------------------------------------------------------------- tables


def report(rows: Iterable[Row]) -> str:
    """Markdown: a table for each data set, and one for all sizes of the training part."""
    found = summaries(rows)
    folds = [part for part in found if not part.rows]
    return "\n".join([*_folds(folds), *_differences(folds), *_sizes(found)])


def _folds(found: list[Summary]) -> Iterator[str]:
    for data in dict.fromkeys(part.data for part in found):
        some = [part for part in found if part.data == data]
        yield f"### {data}\n"
        yield f"| constraint | limit | method | fits | {FIGURES} | leaves | seconds |"
        yield "| --- | ---: | --- | ---: " + "| ---: " * 8 + "|"
        for part in some:
            limited = part.limit != "none"
            cells = [
                CONSTRAINTS[part.constraint],
                part.limit if limited else "",
                METHODS[part.method].title,
                f"{part.fits}{_not_done(part)}",
                f"{part.means['train_accuracy']:.3f}",
                _with_error(part, "test_accuracy"),
                f"{part.means['train_gap']:.3f}",
                _with_error(part, "test_gap"),
                f"{part.chance:.3f}",
                f"{100 * part.kept:.0f} %" if limited else "",
                f"{part.means['leaves']:.1f}",
                f"{part.seconds:.2f}, {part.slowest:.1f}",
            ]
            yield "| " + " | ".join(cells) + " |"
        yield ""


def _differences(found: list[Summary]) -> Iterator[str]:
    """Ours less each other method with the same limit, fold by fold, over the folds that both have."""
    places = {(part.data, part.constraint, part.limit, part.method): part for part in found}
    ours = [part for part in found if part.method == "ours"]
    others = [name for name, method in METHODS.items() if method.limited and name != "ours"]
    if not ours:
        return
    yield "### Ours less the other, on the same folds: test accuracy; test gap\n"
    yield "| data | constraint | limit | " + " | ".join(METHODS[name].title for name in others) + " |"
    yield "| --- | --- | ---: " + "| ---: " * len(others) + "|"
    for part in ours:
        cells = [part.data, CONSTRAINTS[part.constraint], part.limit]
        for name in others:
            other = places.get((part.data, part.constraint, part.limit, name))
            shared = sorted(part.pairs.keys() & other.pairs.keys()) if other else []
            if other is None or not shared:
                cells.append("")
                continue
            difference = np.array([np.subtract(part.pairs[fold], other.pairs[fold]) for fold in shared])
            told = zip(difference.mean(axis=0), difference.T, strict=True)
            cells.append("; ".join(f"{mean:+.3f} ± {standard_error(each, part.overlap):.3f}" for mean, each in told))
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _sizes(found: list[Summary]) -> Iterator[str]:
    asked = {(part.data, part.constraint, part.limit, part.method) for part in found if part.rows}
    some = [part for part in found if (part.data, part.constraint, part.limit, part.method) in asked]
    if not asked:
        return
    yield "### Rows to train on\n"
    yield f"| data | constraint | limit | method | rows | fits | {FIGURES} |"
    yield "| --- | --- | ---: | --- " + "| ---: " * 8 + "|"
    for part in sorted(some, key=lambda part: (*_order(part)[:3], list(METHODS).index(part.method), part.n_train)):
        yield (
            f"| {part.data} | {CONSTRAINTS[part.constraint]} | {part.limit} | {METHODS[part.method].title} | "
            f"{part.n_train:.0f} | {part.fits}{_not_done(part)} | {part.means['train_accuracy']:.3f} | "
            f"{_with_error(part, 'test_accuracy')} | {part.means['train_gap']:.3f} | {_with_error(part, 'test_gap')} | "
            f"{part.chance:.3f} | {100 * part.kept:.0f} % |"
        )
    yield ""


def _with_error(part: Summary, name: str) -> str:
    return f"{part.means[name]:.3f} ± {part.errors[name]:.3f}"


def _not_done(part: Summary) -> str:
    """Statuses that a reader must know of."""
    told = {"time_limit": "out of time", "killed": "killed", "crashed": "crashed", "not converged": "not converged"}
    marks = [f"{count} {told[status]}" for status, count in part.statuses.items() if status in told]
    return f" ({', '.join(marks)})" if marks else ""


# ---------------------------------------------------------------- figure


def figure(rows: Iterable[Row], path: Path) -> None:
    """Test accuracy against the test gap, a panel for each set and constraint; a thin line comes from training."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    found = [part for part in summaries(rows) if not part.rows and part.fits]
    sets = list(dict.fromkeys(part.data for part in found))
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fairness", "font.size": 8})
    grid, axes = plt.subplots(len(CONSTRAINTS), len(sets), figsize=(3.1 * len(sets), 5.8), squeeze=False)
    for (i, constraint), (j, data) in ((a, b) for a in enumerate(CONSTRAINTS) for b in enumerate(sets)):
        panel = axes[i][j]
        some = [part for part in found if (part.data, part.constraint) == (data, constraint)]
        for limit in sorted({part.limit for part in some if part.limit != "none"}):
            panel.axvline(float(limit), color="#bbbbbb", linewidth=0.8, linestyle=_dashes(limit), zorder=0)
        for part in some:
            _point(panel, part)
        panel.set_title(f"{data}, {CONSTRAINTS[constraint]}", fontsize=8.5)
        panel.set_xlim(left=-0.004)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#eeeeee", linewidth=0.6)
        panel.set_axisbelow(True)
        if j == 0:
            panel.set_ylabel("test accuracy")
        if i == len(CONSTRAINTS) - 1:
            panel.set_xlabel("test gap between the groups")
    shown = [name for name in METHODS if any(part.method == name for part in found)]
    handles = [
        Line2D([], [], color=COLOURS[name], linestyle="", marker=_marker(name, "0.02"), label=METHODS[name].title)
        for name in shown
    ]
    handles += [
        Line2D([], [], color="#666666", marker="o", fillstyle=fill, linestyle=_dashes(limit), label=f"limit {limit}")
        for limit, fill in (("0.02", "full"), ("0.05", "none"))
    ]
    grid.legend(handles=handles, loc="lower center", ncol=4, frameon=False, fontsize=8)
    grid.tight_layout(rect=(0, 0.1, 1, 1))
    grid.savefig(path, metadata={"Date": None})
    plt.close(grid)


def _point(panel: Any, part: Summary) -> None:
    colour, filled = COLOURS[part.method], part.limit != "0.05"
    x, y = part.means["test_gap"], part.means["test_accuracy"]
    panel.plot([part.means["train_gap"], x], [part.means["train_accuracy"], y], color=colour, linewidth=0.5, alpha=0.45)
    panel.errorbar(
        x,
        y,
        xerr=part.errors["test_gap"],
        yerr=part.errors["test_accuracy"],
        color=colour,
        marker=_marker(part.method, part.limit),
        markerfacecolor=colour if filled else "white",
        markersize=5,
        elinewidth=0.7,
        capsize=0,
        zorder=3,
    )


def _marker(method: str, limit: str) -> str:
    return {"constant": "x", "cart": "s", "ours-free": "D", "streed": "v", "threshold": "^"}.get(method, "o")


def _dashes(limit: str) -> str:
    return "-" if limit == "0.02" else "--"
