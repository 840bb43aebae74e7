"""Held-out accuracy and size of optimal trees against scikit-learn's CART, both with tuned penalties.

Nested cross-validation, repeated with other splits: five outer folds measure, five inner folds on each training part
choose the penalty, simplest tree first among ties; CART has one candidate more (no penalty at all). The standard error
of a difference is that over all outer folds; training sets overlap, so it is rather too small. Two tables:

- the same binary columns for both (the paper's encodings), so that only the search for the tree differs;
- raw columns, encoded by the default encoder for us, taken as they are by CART, which may cut anywhere.

    ACCEL_OCT_DATA=... python -m accel_oct_bench.studies.accuracy_vs_cart --output table.md
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifierCV, read_table
from accel_oct.encoding import Table
from accel_oct.encoding.values import as_categories, as_numbers, infer_kind
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES
from accel_oct_bench.instances import data_folder

FOLDS = 5
MISSING = ("?",)


class RawFile(NamedTuple):
    """Where the classes are, which columns are names of the samples, and how the file is laid out."""

    files: tuple[str, ...]
    target: int
    drop: tuple[int, ...] = ()
    separator: str = ","
    header: bool = False


RAW = {
    "ILPD": RawFile(("ILPD.csv",), 10),
    "ann-thyroid": RawFile(("ann-thyroid.train", "ann-thyroid.test"), 21, separator=" "),
    "banknote": RawFile(("banknote.txt",), 4),
    "fertility": RawFile(("fertility.txt",), 9),
    "hepatitis": RawFile(("hepatitis.data",), 0),
    "ionosphere": RawFile(("ionosphere.data",), 34),
    "iris": RawFile(("iris.data",), 4),
    "parkinsons": RawFile(("parkinsons.data",), 17, drop=(0,), header=True),
    "segmentation": RawFile(("segmentation.data", "segmentation.test"), 0),
    "sonar": RawFile(("sonar.all-data",), 60),
    "spambase": RawFile(("spambase.data",), 57),
    "transfusion": RawFile(("transfusion.data",), 4, header=True),
    "wdbc": RawFile(("wdbc.data",), 1, drop=(0,)),
    "wine": RawFile(("wine.data",), 0),
}

#: The default number of quantiles was chosen looking at these; the others had no part in it.
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


def encoded_sets(folder: Path) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, features for us, features for CART, classes; thresholds (QT-5) where there are two encodings."""
    for path in sorted(folder.glob("*_enc.csv")):
        if not path.name.endswith("_QB_5_enc.csv"):
            X, y = read_table(path, target="target", na_values=MISSING)
            binary = np.column_stack(X.columns)
            yield path.name.removesuffix("_enc.csv").removesuffix("_QT_5"), binary, binary, y


def raw_sets(folder: Path) -> Iterator[tuple[str, Any, Any, Any]]:
    """The same from the raw files; CART gets categories one-hot, and numbers as they are."""
    for name, raw in RAW.items():
        parts = [
            read_table(folder / "raw" / f, delimiter=raw.separator, header=raw.header, na_values=MISSING)
            for f in raw.files
        ]
        columns = [np.concatenate([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
        known = [j for j, column in enumerate(columns) if infer_kind(column, str(j)) != "numeric" or _any(column)]
        y = as_categories(columns[raw.target], "target").astype(str)
        kept = [j for j in known if j != raw.target and j not in raw.drop]
        table = Table(tuple(columns[j] for j in kept), tuple(f"x{j}" for j in kept), len(y))
        yield name, table, np.column_stack([_for_cart(column) for column in table.columns]), y


def _any(column: Any) -> bool:
    return not np.isnan(column.astype(float)).all()  # a separator at the end of a line makes an empty column


def _for_cart(column: Any) -> Any:
    if infer_kind(column, "") != "categorical":
        return as_numbers(column, "")[:, None]
    categories = as_categories(column, "")
    return np.column_stack([(categories == value).astype(float) for value in sorted(set(categories) - {None})])


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


def table(rows: list[Measured]) -> str:
    """Markdown, with the means over all data sets and the number of wins."""
    lines = [
        "| data set | rows | columns | ours: accuracy | leaves | CART: accuracy | leaves | difference | s.e. |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.n_samples} | {row.n_columns} | {row.ours:.4f} | {row.ours_leaves:.1f} | "
            f"{row.cart:.4f} | {row.cart_leaves:.1f} | {row.ours - row.cart:+.4f} | {row.error:.4f} |"
        )
    ours, leaves, cart, cart_leaves = np.mean([row[3:7] for row in rows], axis=0)
    lines.append(
        f"| **mean of {len(rows)}** | | | {ours:.4f} | {leaves:.1f} | {cart:.4f} | {cart_leaves:.1f} | "
        f"{ours - cart:+.4f} | |"
    )
    wins = sum(row.ours > row.cart + 1e-12 for row in rows)
    losses = sum(row.cart > row.ours + 1e-12 for row in rows)
    proven = sum(row.proven for row in rows)
    lines += ["", f"Ours is better on {wins}, worse on {losses}, equal on {len(rows) - wins - losses}; "]
    lines[-1] += f"every tree is proven optimal on {proven} of {len(rows)}."
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--columns", nargs="+", choices=("binary", "raw"), default=("binary", "raw"))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = data_folder(options.data_dir)
    warnings.simplefilter("ignore", UserWarning)  # classes with fewer members than folds
    tables: dict[str, list[Measured]] = {}
    for title, sets in (("binary", encoded_sets(folder)), ("raw", raw_sets(folder))):
        tables[title] = []
        if title not in options.columns:
            continue
        for name, X, plain, y in sets:
            if options.data and name not in options.data:
                continue
            began = time.perf_counter()
            tables[title].append(measure(name, X, plain, y, options.depth, options.repeats))
            print(f"{title:7s} {tables[title][-1]} {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    fresh = [row for row in tables["raw"] if row.name not in USED_FOR_THE_DEFAULT]
    parts = [f"Depth {options.depth}, {FOLDS} outer folds repeated {options.repeats} times."]
    if tables["binary"]:
        parts += ["### The same binary columns for both", table(tables["binary"])]
    if tables["raw"]:
        parts += ["### Raw columns", table(tables["raw"])]
    if fresh:
        parts += ["### Raw columns, only data sets that had no part in choosing the default encoder", table(fresh)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
