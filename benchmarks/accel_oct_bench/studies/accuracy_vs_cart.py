"""Held-out accuracy and size of optimal trees against scikit-learn's CART, both with tuned penalties.

    python -m accel_oct_bench.studies.accuracy_vs_cart --data-dir FOLDER [--columns binary raw] > table.md

Nested cross-validation, repeated with other splits: five outer folds measure, five inner folds on each training part
choose the penalty, the simplest tree among ties; CART has one more candidate (no penalty). The standard error of a
difference is taken over all outer folds; training sets overlap, so it is too small. Two tables:

- the same binary columns for both (the paper's encodings), so that only the search for the tree differs;
- raw columns, encoded by the default encoder for us, and as they are for CART, which may cut anywhere.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifierCV
from accel_oct.encoding import Table
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES
from accel_oct_bench.studies.common import MarkdownTable, parser_of, raw_sets, registry_at, timed

FOLDS = 5

#: The default number of quantiles was chosen on these; the others had no part in it.
USED_FOR_THE_DEFAULT = frozenset({"iris", "wine", "wdbc", "banknote", "transfusion", "parkinsons", "sonar"})


class Measured(NamedTuple):
    """Means over the outer folds."""

    name: str
    n_samples: int
    n_columns: int
    ours: float
    ours_leaves: float
    cart: float
    cart_leaves: float
    error: float
    proven: bool


def encoded_sets(folder: Path | None) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield name, features for us, features for CART, classes; thresholds (QT-5) if there are two encodings."""
    registry = registry_at(folder)
    for name in sorted(registry.encoded):
        if not name.endswith("_QB_5"):
            data = registry.load(name)
            yield name.removesuffix("_QT_5"), data.X, data.X, data.y


def measure(name: str, X: Any, plain: Any, y: Any, depth: int, repeats: int) -> Measured:
    """Nested cross-validation of both methods on one data set."""
    found, proven = [], True
    for train, test in RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=0).split(plain, y):
        inner = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
        ours = OptimalTreeClassifierCV(depth, cv=inner).fit(_rows(X, train), y[train])
        grid = {"ccp_alpha": [*DEFAULT_PENALTIES, 0.0]}
        search = GridSearchCV(DecisionTreeClassifier(max_depth=depth, random_state=0), grid, cv=inner)
        cart = search.fit(plain[train], y[train]).best_estimator_
        found.append(
            (
                ours.score(_rows(X, test), y[test]),
                ours.get_n_leaves(),
                cart.score(plain[test], y[test]),
                cart.get_n_leaves(),
            )
        )
        proven = proven and ours.status_ == "optimal"
    values = np.array(found)
    difference = values[:, 0] - values[:, 2]
    error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    ours_score, ours_leaves, cart_score, cart_leaves = values.mean(axis=0).tolist()
    return Measured(name, len(y), np.shape(X)[1], ours_score, ours_leaves, cart_score, cart_leaves, error, proven)


def _rows(X: Any, chosen: Any) -> Any:
    return X.rows(chosen) if isinstance(X, Table) else X[chosen]


def print_table(title: str, rows: list[Measured]) -> None:
    """Print a table with the means over all data sets and the number of wins."""
    print(f"\n### {title}\n")
    table = MarkdownTable(
        "data set", "rows", "columns", "ours: accuracy", "leaves", "CART: accuracy", "leaves", "difference", "s.e."
    )
    for row in rows:
        cells = (f"{row.ours:.4f}", f"{row.ours_leaves:.1f}", f"{row.cart:.4f}", f"{row.cart_leaves:.1f}")
        table.row(row.name, row.n_samples, row.n_columns, *cells, f"{row.ours - row.cart:+.4f}", f"{row.error:.4f}")
    ours, leaves, cart, cart_leaves = np.mean([row[3:7] for row in rows], axis=0)
    means = (f"{ours:.4f}", f"{leaves:.1f}", f"{cart:.4f}", f"{cart_leaves:.1f}", f"{ours - cart:+.4f}")
    table.row(f"**mean of {len(rows)}**", "", "", *means, "")
    wins = sum(row.ours > row.cart + 1e-12 for row in rows)
    losses = sum(row.cart > row.ours + 1e-12 for row in rows)
    print(
        f"\nOurs is better on {wins}, worse on {losses}, equal on {len(rows) - wins - losses}; "
        f"every tree is proven optimal on {sum(row.proven for row in rows)} of {len(rows)}."
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--columns", nargs="+", choices=("binary", "raw"), default=("binary", "raw"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # classes with fewer members than folds
    tables: dict[str, list[Measured]] = {"binary": [], "raw": []}
    for title in options.columns:
        for name, X, plain, y in (encoded_sets if title == "binary" else raw_sets)(options.data_dir):
            if not options.data or name in options.data:
                row, spent = timed(partial(measure, name, X, plain, y, options.depth, options.repeats))
                tables[title].append(row)
                print(f"{title:7s} {row} {spent.seconds:.1f} s", file=sys.stderr, flush=True)
    print(f"Depth {options.depth}, {FOLDS} outer folds repeated {options.repeats} times.")
    fresh = [row for row in tables["raw"] if row.name not in USED_FOR_THE_DEFAULT]
    for title, rows in (
        ("The same binary columns for both", tables["binary"]),
        ("Raw columns", tables["raw"]),
        ("Raw columns, only data sets that had no part in choosing the default encoder", fresh),
    ):
        if rows:
            print_table(title, rows)


if __name__ == "__main__":
    main()
