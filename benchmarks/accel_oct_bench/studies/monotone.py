"""Monotone trees on four tables, beside scikit-learn's.

    python -m accel_oct_bench.studies.monotone [--data-dir FOLDER] [--only NAME ...] [--depths 3 4] [--penalty 0.002]
        [--time-limit 120]

Tables: german-credit and adult of the folder, whose bucket columns are joined to columns of numbers again;
scikit-learn's breast-cancer, with all 30 columns constrained; "heloc-like", generated numbers with noise. 30% of the
rows are test rows. The rival is `DecisionTreeClassifier(max_depth, monotonic_cst=...)`. Violations are counted on
100,000 random pairs of points that differ in one constrained column. Times are CPU seconds of `fit`. One thread.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accel_oct import OptimalTreeClassifier, read_table
from accel_oct.encoding import Table
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, parser_of, registry_at

PAIRS = 100_000

GERMAN_CREDIT = {
    "Account Balance": 1,
    "Duration of Credit (month)": -1,
    "Credit Amount": -1,
    "Length of current employment": 1,
    "Instalment per cent": -1,
}
ADULT = {"Age": 1, "Education Num<10": -1, "Hours per Week": 1}
HELOC_LIKE = {"risk estimate": 1, "months since delinquency": 1, "trades": 1, "inquiries": -1, "burden": -1}


class Columns:
    """A table of numbers with names, classes 0 and 1, and the sign of each constrained column."""

    def __init__(self, name: str, names: Sequence[str], X: Any, y: Any, signs: dict[str, int]) -> None:
        self.name, self.names, self.X, self.y, self.signs = name, tuple(names), X, y, signs

    def table(self, rows: Any) -> Table:
        """Return some rows as a table with names."""
        return Table(tuple(np.ascontiguousarray(self.X[rows].T)), self.names, len(rows))

    @property
    def by_place(self) -> list[int]:
        """Signs in the order of the columns."""
        return [self.signs.get(name, 0) for name in self.names]


def tables(folder: Path | None, names: Sequence[str]) -> Iterator[Columns]:
    """Yield the tables with these names."""
    for name, signs in (("german-credit", GERMAN_CREDIT), ("adult", ADULT)):
        if name in names:
            root = registry_at(folder).folder
            assert root is not None
            read = read_table(root / "fairness" / f"{name}.csv", header=True)
            *X, y = (column.astype(int) for column in read.columns)
            yield _joined(name, list(read.names or ())[:-1], np.column_stack(X), y, signs)
    if "breast-cancer" in names:
        from sklearn.datasets import load_breast_cancer

        found = load_breast_cancer()
        yield Columns(
            *("breast-cancer", found.feature_names.tolist(), found.data, found.target),
            dict.fromkeys(found.feature_names.tolist(), -1),
        )
    if "heloc-like" in names:
        yield heloc_like()


def _joined(name: str, features: Sequence[str], X: Any, y: Any, signs: dict[str, int]) -> Columns:
    """Return a table in which the buckets of a column, such as ``Age<25`` and ``Age=25-60``, are its lower ends."""
    values: dict[str, Any] = {}
    for place, feature in enumerate(features):
        bucket = re.fullmatch(r"(.+?)(<|=|>=)(\d+)(-\d+)?", feature)
        alone = (
            bucket is None or sum(other.startswith(f"{bucket[1]}{sign}") for other in features for sign in "<=>") < 2
        )
        if bucket is None or alone:
            values[feature] = X[:, place].astype(float)
        else:
            low = 0.0 if bucket[2] == "<" else float(bucket[3])
            values[bucket[1]] = values.get(bucket[1], 0.0) + low * X[:, place]
    return Columns(name, list(values), np.column_stack(list(values.values())), y, signs)


def heloc_like(n_rows: int = 5000) -> Columns:
    """Return generated credit lines: a score that is monotone in five of ten columns, with noise."""
    rng = np.random.default_rng(0)
    names = [*HELOC_LIKE, "months in file", "revolving share", "instalment trades", "high use", "months since inquiry"]
    risk = rng.normal(72, 10, n_rows).round()
    delinquency = rng.exponential(30, n_rows).round().clip(0, 90)
    count, inquiries = rng.poisson(20, n_rows), rng.poisson(1.5, n_rows)
    burden = rng.beta(1.5, 3, n_rows).round(2) * 100
    others = rng.normal(0, 1, (n_rows, 5)).round(2)
    score = (risk - 72) / 10 + (delinquency > 24) + 0.03 * (count - 20) - 0.4 * inquiries - 0.02 * (burden - 33)
    score += 0.3 * others[:, 0] * others[:, 1] + rng.logistic(0, 1.2, n_rows)
    X = np.column_stack([risk, delinquency, count, inquiries, burden, others])
    return Columns("heloc-like", names, X, (score > 0).astype(int), HELOC_LIKE)


def violations(columns: Columns, predict: Any, seed: int = 0) -> int:
    """Return the number of random pairs of points, in one constrained column apart, that are in the wrong order."""
    rng = np.random.default_rng(seed)
    low, high = columns.X.min(axis=0), columns.X.max(axis=0)
    points = rng.uniform(low, high, (PAIRS, len(low)))
    known = columns.X[rng.integers(0, len(columns.X), points.shape), np.arange(len(low))]
    points = np.where(rng.random(points.shape) < 0.5, points, known)  # between the values, and values that occur
    binary = np.array([set(np.unique(column)) <= {0.0, 1.0} for column in columns.X.T])
    points[:, binary] = known[:, binary]
    constrained = np.flatnonzero(columns.by_place)
    chosen = rng.choice(constrained, PAIRS)
    rows = np.arange(PAIRS)
    other = points.copy()
    other[rows, chosen] = known[rng.permutation(PAIRS), chosen]
    grows = other[rows, chosen] - points[rows, chosen]
    change = predict(other).astype(int) - predict(points).astype(int)
    return int(np.sum(np.sign(grows) * np.array(columns.by_place)[chosen] * change < 0))


def main() -> None:
    names = ("german-credit", "adult", "breast-cancer", "heloc-like")
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--depths", nargs="+", type=int, default=[3, 4])
    parser.add_argument("--penalty", type=float, default=0.002)
    parser.add_argument("--time-limit", type=float, default=120.0)
    options = parser.parse_args()
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    warnings.simplefilter("ignore")
    table = MarkdownTable(
        *("table", "depth", "status", "seconds", "parts refused", "cost"),
        *("violations", "train", "test", "scikit-learn train", "test", "free train", "test"),
        words=1,
    )
    for data in tables(options.data_dir, options.only):
        train, test = train_test_split(np.arange(len(data.y)), test_size=0.3, random_state=0, stratify=data.y)
        X, unseen = data.table(train), data.table(test)
        for depth in options.depths:
            unfitted = OptimalTreeClassifier(
                depth, options.penalty, monotonic_cst=data.signs, time_limit=options.time_limit
            )
            model, spent = timed(partial(unfitted.fit, X, data.y[train]))
            stats = model.result_.stats
            cost = max(0.0, stats["relaxed_objective"] - model.objective_) if "relaxed_objective" in stats else np.nan
            everything = Columns(data.name, data.names, data.X, data.y, data.signs)
            wrong = violations(everything, lambda points, model=model: model.predict(points))
            free = OptimalTreeClassifier(depth, options.penalty, time_limit=options.time_limit)
            free.fit(X, data.y[train])
            cart = DecisionTreeClassifier(max_depth=depth, random_state=0, monotonic_cst=data.by_place)
            cart.fit(data.X[train], data.y[train])
            table.row(
                *(data.name, depth, model.status_, f"{spent.cpu:.1f}"),
                *(stats.get("enumeration", {}).get("refused_parts", 0), f"{cost:.4f}", wrong),
                *(
                    f"{each.score(*rows):.3f}"
                    for each in (model,)
                    for rows in ((X, data.y[train]), (unseen, data.y[test]))
                ),
                *(f"{cart.score(data.X[rows], data.y[rows]):.3f}" for rows in (train, test)),
                *(f"{free.score(*rows):.3f}" for rows in ((X, data.y[train]), (unseen, data.y[test]))),
            )


if __name__ == "__main__":
    main()
