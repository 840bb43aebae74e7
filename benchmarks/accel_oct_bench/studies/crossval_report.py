"""Tables from the rows of `accel_oct_bench.studies.fairness_crossval`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct_bench.studies.crossval_methods import METHODS

Row = Mapping[str, str]
CONSTRAINTS = {"parity": "statistical parity", "opportunity": "equal opportunity"}
#: Which methods are compared fold by fold.
PAIRS = (
    ("ours", "streed"),
    ("ours", "gradient"),
    ("ours", "threshold"),
    ("ours-group", "threshold"),
    ("ours", "gradient-optimal"),
    ("gradient-optimal", "gradient"),
    ("ours-tuned", "ours"),
    ("ours-tuned", "gradient-tuned"),
    ("ours-tuned", "threshold-tuned"),
)
FIGURES = "accuracy: train | test | gap: train | test | by chance | kept"


@dataclass(frozen=True)
class Summary:
    """Means over all fits of one method on one problem.

    `chance` is the gap to expect if nothing but the sampling of the test part differs, `kept` the share of test
    parts within the limit, `ninth` what nine of ten test gaps are below, `shift` the mean and standard deviation of
    the signed difference on the test part less that on the training part.
    """

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
    shift: tuple[float, float]
    ninth: float
    seconds: float
    slowest: float
    statuses: Mapping[str, int]
    overlap: float
    folds: Mapping[tuple[str, str], float]


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
    shift = values["test_difference"] - values["train_difference"]
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
        (float(shift.mean()), float(shift.std(ddof=1))) if len(done) > 1 else (math.nan, math.nan),
        float(np.quantile(values["test_gap"], 0.9)) if done else math.nan,
        float(np.median(seconds)) if seconds else math.nan,
        max(seconds, default=math.nan),
        {status: sum(row["status"] == status for row in rows) for status in sorted({row["status"] for row in rows})},
        float(overlap),
        {(row["repeat"], row["fold"]): float(row["test_accuracy"]) for row in done},
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
    """One method less another at the same limit, fold by fold, over the folds that both have."""
    places = {(part.data, part.constraint, part.limit, part.method): part for part in found}
    pairs = [
        (a, b) for a, b in PAIRS if any(part.method == a for part in found) and any(part.method == b for part in found)
    ]
    if not pairs:
        return
    yield "### Differences in test accuracy on the same folds\n"
    yield (
        "| data | constraint | limit | "
        + " | ".join(f"{METHODS[a].title} less {METHODS[b].title}" for a, b in pairs)
        + " |"
    )
    yield "| --- | --- | ---: " + "| ---: " * len(pairs) + "|"
    for problem in dict.fromkeys((part.data, part.constraint, part.limit) for part in found if part.limit != "none"):
        data, constraint, limit = problem
        cells = [data, CONSTRAINTS[constraint], limit]
        for one, other in ((places.get((*problem, a)), places.get((*problem, b))) for a, b in pairs):
            shared = sorted(one.folds.keys() & other.folds.keys()) if one and other else []
            if one is None or other is None or not shared:
                cells.append("")
                continue
            each = np.array([one.folds[fold] - other.folds[fold] for fold in shared])
            cells.append(f"{each.mean():+.3f} ± {standard_error(each, one.overlap):.3f}")
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _sizes(found: list[Summary]) -> Iterator[str]:
    asked = {(part.data, part.constraint, part.limit, part.method) for part in found if part.rows}
    some = [part for part in found if (part.data, part.constraint, part.limit, part.method) in asked]
    if not asked:
        return
    yield "### Rows to train on\n"
    yield f"| data | constraint | limit | method | rows | {FIGURES} | nine of ten below | shift: mean | s.d. |"
    yield "| --- | --- | ---: | --- " + "| ---: " * 10 + "|"
    for part in sorted(some, key=lambda part: (*_order(part)[:3], list(METHODS).index(part.method), part.n_train)):
        yield (
            f"| {part.data} | {CONSTRAINTS[part.constraint]} | {part.limit} | {METHODS[part.method].title} | "
            f"{part.n_train:.0f} | {part.means['train_accuracy']:.3f} | "
            f"{_with_error(part, 'test_accuracy')} | {part.means['train_gap']:.3f} | {_with_error(part, 'test_gap')} | "
            f"{part.chance:.3f} | {100 * part.kept:.0f} % | {part.ninth:.3f} | "
            f"{part.shift[0]:+.3f} | {part.shift[1]:.3f} |"
        )
    yield ""


def _with_error(part: Summary, name: str) -> str:
    return f"{part.means[name]:.3f} ± {part.errors[name]:.3f}"


def _not_done(part: Summary) -> str:
    """Statuses that a reader must know of."""
    told = {"time_limit": "out of time", "killed": "killed", "crashed": "crashed", "not converged": "not converged"}
    marks = [f"{count} {told[status]}" for status, count in part.statuses.items() if status in told]
    return f" ({', '.join(marks)})" if marks else ""
