"""Optimal on the table: the default classifier on raw tables, beside CART and beside ConTree.

    python -m accel_oct_bench.studies.raw_tables                              scikit-learn's tables, beside CART
    python -m accel_oct_bench.studies.raw_tables --contree --data-dir FOLDER  raw files, beside pycontree

CART is the best of three criteria and all cost-complexity prunings, by our objective on the training data: accuracy
minus the penalty per leaf. ConTree is exact on continuous features; its penalty per leaf is given per branch node, and
its trees are scored here from its predictions. Both in the same process, one after the other, one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.instances import data_folder
from accel_oct_bench.studies.accuracy_vs_cart import raw_sets

PENALTIES = (0.01, 0.001)
CONTREE_SETS = ("banknote", "wdbc", "wine", "iris", "ionosphere", "parkinsons", "transfusion")


def bundled() -> Iterator[tuple[str, Any, Any]]:
    """iris, wine, breast_cancer, digits, and diabetes in three classes of equal size."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


def best_cart(X: Any, y: Any, depth: int, penalty: float) -> float:
    """The best objective among CART trees of three criteria and their prunings."""
    best = -np.inf
    for criterion in ("gini", "entropy", "log_loss"):
        tree = DecisionTreeClassifier(criterion=criterion, max_depth=depth, random_state=0)
        for alpha in tree.cost_complexity_pruning_path(X, y).ccp_alphas:
            pruned = clone(tree).set_params(ccp_alpha=max(0.0, float(alpha))).fit(X, y)
            best = max(best, pruned.score(X, y) - penalty * pruned.get_n_leaves())
    return float(best)


def beside_cart(depths: list[int]) -> None:
    print("| table | depth | penalty | ours | status | exact | splits | seconds | best CART |")
    print("| --- | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: |")
    worse = exact = cases = exceeded = 0
    for name, X, y in bundled():
        for depth in depths:
            for penalty in PENALTIES:
                began = time.perf_counter()
                model = OptimalTreeClassifier(depth, penalty).fit(X, y)
                seconds = time.perf_counter() - began
                cart = best_cart(X, y, depth, penalty)
                cases, exact = cases + 1, exact + model.exact_
                worse += model.objective_ < cart - 1e-9
                exceeded += model.exact_ and cart > model.bound_ + 1e-9
                print(
                    f"| {name} | {depth} | {penalty} | {model.objective_:.4f} | {model.status_} | "
                    f"{'yes' if model.exact_ else 'no'} | {len(model.encoder_.conditions_)} | {seconds:.2f} | "
                    f"{cart:.4f} |",
                    flush=True,
                )
    print(f"\n{cases} cases: {exact} over all splits, {worse} below CART, {exceeded} exact bounds exceeded by CART.")


def beside_contree(folder: Any, depths: list[int], time_limit: float) -> None:
    from pycontree import ConTree

    print("| table | rows | columns | depth | ours | exact | splits | seconds | ConTree | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for name, _, X, labels in raw_sets(folder):
        if name not in CONTREE_SETS:
            continue
        y = np.unique(labels, return_inverse=True)[1].ravel()
        for depth in depths:
            penalty = 0.01
            began = time.perf_counter()
            model = OptimalTreeClassifier(depth, penalty, time_limit=time_limit).fit(X, y)
            ours = time.perf_counter() - began
            began = time.perf_counter()
            rival = ConTree(max_depth=depth, complexity_cost=penalty, time_limit=time_limit).fit(X, y)
            theirs = time.perf_counter() - began
            predicted = rival.predict(X)
            value = float(np.mean(predicted == y)) - penalty * rival.get_num_leaf_nodes()
            print(
                f"| {name} | {len(y)} | {X.shape[1]} | {depth} | {model.objective_:.4f} | "
                f"{'yes' if model.exact_ else 'no'} | {len(model.encoder_.conditions_)} | {ours:.2f} | {value:.4f} | "
                f"{theirs:.2f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contree", action="store_true")
    parser.add_argument("--data-dir")
    parser.add_argument("--depths", type=int, nargs="+")
    parser.add_argument("--time-limit", type=float, default=120.0)
    options = parser.parse_args()
    if options.contree:
        beside_contree(data_folder(options.data_dir), options.depths or [2, 3], options.time_limit)
    else:
        beside_cart(options.depths or [2, 3, 4])


if __name__ == "__main__":
    main()
