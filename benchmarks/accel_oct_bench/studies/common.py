"""Shared by the studies: data, CART as a yardstick, and tables that are printed row by row."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel_oct import read_table
from accel_oct.encoding import Table
from accel_oct.encoding.values import as_categories, as_numbers, infer_kind
from accel_oct.errors import InvalidInputError
from accel_oct_bench.data import DATA_VARIABLE, RAW_FILES, EncodedData, Registry, data_folder
from accel_oct_bench.peers.cart import CRITERIA

__all__ = [
    "MarkdownTable",
    "best_cart",
    "bundled_tables",
    "data_sets",
    "numeric_table",
    "parser_of",
    "raw_sets",
    "registry_at",
]


def parser_of(doc: str | None, data_dir: bool = True) -> argparse.ArgumentParser:
    """Return a parser of arguments whose help is the docstring of a module, with the option ``--data-dir``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data_dir:
        parser.add_argument("--data-dir", type=Path, help=f"data folder (default: the variable {DATA_VARIABLE})")
    return parser


# ---------------------------------------------------------------- data


def registry_at(folder: Path | None) -> Registry:
    """Return the registry of a folder, or of the one that ACCEL_OCT_DATA names; without either it is an error."""
    chosen = data_folder(folder)
    if chosen is None:
        raise InvalidInputError(f"no data folder: give --data-dir, or set the environment variable {DATA_VARIABLE}")
    return Registry(chosen)


def data_sets(folder: Path | None, names: Sequence[str] = ()) -> Iterator[EncodedData]:
    """Yield the encoded data sets of a folder, smallest file first; only those named, if any are."""
    registry = registry_at(folder)
    unknown = sorted(set(names) - set(registry.encoded))
    if unknown:
        raise InvalidInputError(f"no data set {', '.join(unknown)} in {registry.folder}")
    yield from (registry.load(name) for name in registry.encoded if not names or name in names)


def raw_sets(folder: Path | None, every: bool = False) -> Iterator[tuple[str, Table, np.ndarray, np.ndarray]]:
    """Yield the raw tables with numbers: name, columns, the same as floats with one-hot categories, and classes.

    With `every`, also those of categories alone, and ozone-one.
    """
    raw_folder = registry_at(folder).folder
    assert raw_folder is not None
    for name in sorted(name for name, raw in RAW_FILES.items() if every or (raw.numeric and name != "ozone-one")):
        raw = RAW_FILES[name]
        parts = [
            read_table(raw_folder / "raw" / file, delimiter=raw.separator or " ", header=raw.header, na_values=("?",))
            for file in raw.files
        ]
        columns = [np.concatenate([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
        y = as_categories(columns[raw.target], "target").astype(str)
        left_out = (raw.target, *raw.dropped)
        kept = [j for j, column in enumerate(columns) if j not in left_out and not _is_empty(column)]
        table = Table(tuple(columns[j] for j in kept), tuple(f"x{j}" for j in kept), len(y))
        yield name, table, np.column_stack([_as_floats(column) for column in table.columns]), y


def _is_empty(column: Any) -> bool:
    """Return whether a column has no value: a separator at the end of each line makes one."""
    return infer_kind(column, "") == "numeric" and bool(np.isnan(column.astype(float)).all())


def _as_floats(column: Any) -> Any:
    if infer_kind(column, "") != "categorical":
        return as_numbers(column, "")[:, None]
    categories = as_categories(column, "")
    return np.column_stack([(categories == value).astype(float) for value in sorted(set(categories) - {None})])


def bundled_tables() -> Iterator[tuple[str, Any, Any]]:
    """Yield scikit-learn's iris, wine, breast_cancer and digits, and diabetes in three classes of equal size."""
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


def numeric_table(n_samples: int, n_columns: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Return normal columns and a class, ``(a > 0.3) xor (b + c > 0.2), or d > 1``, of which a tenth is flipped."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_samples, n_columns)).astype(dtype)
    a, b, c, d = table.T[:4]
    y = ((a > 0.3) ^ (b + c > 0.2) | (d > 1)) ^ (rng.random(n_samples) < 0.1)
    return table, y.astype(int)


# ---------------------------------------------------------------- CART


def best_cart(X: Any, y: Any, depth: int, penalty: float) -> float:
    """Return the best objective of CART on a table of numbers: three criteria, each tree pruned to our objective.

    Pruning is exact: of all trees that result from turning branch nodes into leaves, the best.
    """
    from sklearn.tree import DecisionTreeClassifier

    def pruned(fitted: Any, node: int = 0) -> float:
        share = fitted.weighted_n_node_samples[node] / len(y)
        leaf = float(fitted.value[node, 0].max() * share) - penalty
        if fitted.children_left[node] < 0:
            return leaf
        return max(leaf, pruned(fitted, fitted.children_left[node]) + pruned(fitted, fitted.children_right[node]))

    models = (DecisionTreeClassifier(criterion=name, max_depth=depth, random_state=0) for name in CRITERIA)
    return max(pruned(model.fit(X, y).tree_) for model in models)


# ---------------------------------------------------------------- tables


class MarkdownTable:
    """A Markdown table that is printed while it is made; the first `words` columns are words, the others numbers."""

    def __init__(self, *columns: str, words: int = 1) -> None:
        self.row(*columns)
        self.row(*("---" if place < words else "---:" for place in range(len(columns))))

    def row(self, *cells: object) -> None:
        """Print a row."""
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
