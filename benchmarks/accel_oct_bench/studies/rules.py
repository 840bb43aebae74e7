"""Ten rules that are Python functions of a tree: by enumeration, and by branch and cut.

    python -m accel_oct_bench.studies.rules --data-dir FOLDER [--only NAME ...] [--depths 2 3 4]
        [--penalties 0.01 0.002] [--rules NAME ...] [--ways enumeration highs scip gurobi] [--time-limit 60]

FOLDER holds the encoded data sets. One thread. A way is "enumeration", the default of `solve`, or the name of a
backend: branch and cut with all techniques of the default but the enumeration. The summary has, for each rule and way,
the number of instances that were proven, and the median of the seconds; where two ways prove different objectives the
run ends with an error.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import accel_oct
from accel_oct.constraints import Constraint, PredictionRule, TreeRule
from accel_oct.data import BinaryDataset
from accel_oct.solving.config import Config
from accel_oct.tree import DecisionTree
from accel_oct_bench.data import EncodedData
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of

#: Proofs by a solver have this tolerance.
TOLERANCE = 1e-5

ENUMERATION = "enumeration"

SMALL = (
    *("soybean-small", "monk1", "monk2", "monk3", "hayes-roth", "house-votes-84", "iris_QB_5", "hepatitis_QT_5"),
    *("fertility_QB_5", "wine_QT_5", "breast-cancer", "transfusion_QB_5", "tic-tac-toe", "balance-scale"),
    *("banknote_QT_5",),
)
"""Data sets of the default run."""


# ---------------------------------------------------------------- rules


def same_feature(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Both children of the root branch on the same feature; a tree without a split is allowed."""
    features = tree.feature
    return bool(features[0] < 0 or (len(features) > 1 and features[1] == features[2]))


def lighter_left(tree: DecisionTree, data: BinaryDataset) -> bool:
    """The zero side has no more leaves than the one side."""
    return bool(tree.feature[0] < 0 or tree.subtree(2).n_leaves <= tree.subtree(3).n_leaves)


def monotone(tree: DecisionTree, data: BinaryDataset) -> bool:
    """For any point, changing feature 0 from 0 to 1 does not lower the class."""
    leaves = [(dict(tree.path(leaf)), int(tree.label[leaf - 1])) for leaf in tree.leaves.tolist()]
    for path, label in leaves:
        for other, lower in leaves if path.get(0, 0) == 0 else ():
            if lower < label and other.get(0, 1) == 1:
                shared = path.keys() & other.keys() - {0}
                if all(path[feature] == other[feature] for feature in shared):
                    return False
    return True


def class_one_reads_feature_zero(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Every leaf of class 1 has feature 0 on its path."""
    leaves = tree.leaves[tree.label[tree.leaves - 1] == 1].tolist()
    return all(0 in dict(tree.path(leaf)) for leaf in leaves)


def no_feature_twice(tree: DecisionTree, data: BinaryDataset) -> bool:
    """No feature is used at two nodes."""
    return len(tree.features_used) == tree.n_leaves - 1


def ten_rows_right(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Ten rows, spread over the table, are classified correctly."""
    rows = np.linspace(0, data.n_samples - 1, 10).astype(int)
    return bool(np.all(tree.predictions(data.X[rows]) == data.y[rows]))


def two_per_column(tree: DecisionTree, data: BinaryDataset) -> bool:
    """At most two different features of a column, which stands for four neighbouring features here."""
    columns = Counter(feature // 4 for feature in tree.features_used)
    return max(columns.values(), default=0) <= 2


def even_leaves(tree: DecisionTree, data: BinaryDataset) -> bool:
    """The number of leaves is even."""
    return tree.n_leaves % 2 == 0


def fixed_order(tree: DecisionTree, data: BinaryDataset) -> bool:
    """Features increase on every path."""
    paths = [[feature for feature, _ in tree.path(leaf)] for leaf in tree.leaves.tolist()]
    return all(path == sorted(path) for path in paths)


def calibrated(predicted: Any, data: BinaryDataset) -> bool:
    """In both groups (the values of the last feature) the share of the last class is predicted up to 0.1."""
    last, is_last = predicted == data.classes[-1], data.y == data.n_classes - 1
    groups = [data.X[:, -1], ~data.X[:, -1]]
    return all(abs(last[group].mean() - is_last[group].mean()) <= 0.1 for group in groups if group.any())


def _hereditary(rule: Callable[[DecisionTree, BinaryDataset], bool]) -> Constraint:
    """Return a rule that holds for every subtree of an allowed tree, and so refuses subtrees."""
    return TreeRule(rule, refuses=lambda tree, data: not rule(tree, data))


RULES: dict[str, Constraint] = {
    **{
        rule.__name__: TreeRule(rule)
        for rule in (same_feature, lighter_left, class_one_reads_feature_zero, ten_rows_right, even_leaves)
    },
    **{rule.__name__: _hereditary(rule) for rule in (monotone, no_feature_twice, two_per_column, fixed_order)},
    calibrated.__name__: PredictionRule(calibrated),
}


# ---------------------------------------------------------------- runs


class Run(NamedTuple):
    """The outcome of a way on an instance."""

    proven: bool
    objective: float
    bound: float
    seconds: float
    trees: int


def solved(data: EncodedData, depth: int, penalty: float, rule: Constraint, way: str, limit: float) -> Run:
    """Solve an instance in one way."""
    config = Config.preset("default")
    began = time.perf_counter()
    result = accel_oct.solve(
        data.X,
        data.y,
        max_depth=depth,
        leaf_penalty=penalty,
        constraints=[rule],
        solver="highs" if way == ENUMERATION else way,
        config=config if way == ENUMERATION else replace(config, enumeration=False),
        time_limit=limit,
    )
    seconds = time.perf_counter() - began
    trees = result.stats.get("enumeration", {}).get("trees", 0)
    proven = result.status in ("optimal", "infeasible")
    return Run(proven, result.objective, result.bound, seconds, trees)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", default=list(SMALL))
    parser.add_argument("--depths", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.01, 0.002])
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--ways", nargs="+", default=[ENUMERATION])
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    found: dict[tuple[str, str, int], list[Run]] = {}
    wrong = 0
    for data in data_sets(options.data_dir, options.only):
        for depth in options.depths:
            for penalty in options.penalties:
                for name in options.rules:
                    runs = {
                        way: solved(data, depth, penalty, RULES[name], way, options.time_limit) for way in options.ways
                    }
                    for way, run in runs.items():
                        found.setdefault((name, way, depth), []).append(run)
                    proven = [run.objective for run in runs.values() if run.proven]
                    wrong += bool(proven) and max(proven) - min(proven) > TOLERANCE
                    print(data.name, depth, penalty, name, *map(_text, runs.values()), sep="  ", flush=True)
    _summarise(found, options.depths)
    if wrong:
        raise SystemExit(f"{wrong} instances with different proven objectives")


def _text(run: Run) -> str:
    state = f"{run.objective:.4f}" if run.proven else f"{run.objective:.4f} to {run.bound:.4f}"
    return f"{state} ({run.seconds:.2f} s, {run.trees} trees)"


def _summarise(found: dict[tuple[str, str, int], list[Run]], depths: Sequence[int]) -> None:
    table = MarkdownTable("rule", "way", *(f"depth {depth}: proven, median s" for depth in depths), words=2)
    for name, way in dict.fromkeys((name, way) for name, way, _ in found):
        cells = []
        for depth in depths:
            runs = found[name, way, depth]
            median = float(np.median([run.seconds for run in runs]))
            cells.append(f"{sum(run.proven for run in runs)} of {len(runs)}, {median:.2f}")
        table.row(name, way, *cells)
    runs = [run for group in found.values() for run in group]
    print(f"{sum(run.proven for run in runs)} of {len(runs)} proven, most trees {max(run.trees for run in runs)}")


if __name__ == "__main__":
    main()
