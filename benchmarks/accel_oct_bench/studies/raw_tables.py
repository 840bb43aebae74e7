"""Optimal on the table: the default classifier on raw tables, beside CART and beside ConTree.

    python -m accel_oct_bench.studies.raw_tables                              scikit-learn's tables, beside CART
    python -m accel_oct_bench.studies.raw_tables --contree --data-dir FOLDER  raw files, beside pycontree

CART is the best of three criteria and all prunings, by our objective on the training data: accuracy minus the penalty
per leaf. ConTree is exact on continuous features; its trees are scored here from its predictions. Both run in the same
process, one after the other, on one thread.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.studies.common import MarkdownTable, best_cart, bundled_tables, parser_of, raw_sets, timed
from accel_oct_bench.studies.every_split import contree

PENALTIES = (0.01, 0.001)
CONTREE_SETS = ("banknote", "wdbc", "wine", "iris", "ionosphere", "parkinsons", "transfusion")


def beside_cart(depths: list[int]) -> None:
    table = MarkdownTable("table", "depth", "penalty", "ours", "status", "exact", "splits", "seconds", "best CART")
    worse = exact = cases = exceeded = 0
    for name, X, y in bundled_tables():
        for depth, penalty in product(depths, PENALTIES):
            model, cells = fitted(X, y, depth, penalty, None)
            cart = best_cart(X, y, depth, penalty)
            cases, exact = cases + 1, exact + model.exact_
            worse += model.objective_ < cart - 1e-9
            exceeded += model.exact_ and cart > model.bound_ + 1e-9
            table.row(name, depth, penalty, cells[0], model.status_, *cells[1:], f"{cart:.4f}")
    print(f"\n{cases} cases: {exact} over all splits, {worse} below CART, {exceeded} exact bounds exceeded by CART.")


def beside_contree(folder: Path | None, depths: list[int], time_limit: float) -> None:
    table = MarkdownTable(
        "table", "rows", "columns", "depth", "ours", "exact", "splits", "seconds", "ConTree", "seconds"
    )
    for name, _, X, labels in raw_sets(folder):
        if name not in CONTREE_SETS:
            continue
        y = np.unique(labels, return_inverse=True)[1].ravel()
        for depth in depths:
            _, cells = fitted(X, y, depth, 0.01, time_limit)
            rival = contree(X, y, depth, 0.01, time_limit)
            table.row(name, len(y), X.shape[1], depth, *cells, f"{rival.objective:.4f}", f"{rival.seconds:.2f}")


def fitted(
    X: np.ndarray, y: np.ndarray, depth: int, penalty: float, limit: float | None
) -> tuple[OptimalTreeClassifier, list[object]]:
    """Fit our classifier; return it with its objective, whether it is exact, its number of splits, and its seconds."""
    model, spent = timed(lambda: OptimalTreeClassifier(depth, penalty, time_limit=limit).fit(X, y))
    exact = "yes" if model.exact_ else "no"
    return model, [f"{model.objective_:.4f}", exact, len(model.encoder_.conditions_), f"{spent.seconds:.2f}"]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--contree", action="store_true")
    parser.add_argument("--depths", type=int, nargs="+")
    parser.add_argument("--time-limit", type=float, default=120.0)
    options = parser.parse_args()
    if options.contree:
        beside_contree(options.data_dir, options.depths or [2, 3], options.time_limit)
    else:
        beside_cart(options.depths or [2, 3, 4])


if __name__ == "__main__":
    main()
