"""Trees and bounds over time, on instances that no table closes at once, beside CART.

    python -m accel_oct_bench.studies.anytime --data-dir FOLDER [--limits 1 3 10 30] [--only NAME ...]
        [--penalty 0.0001] [--rivals]

FOLDER holds the encoded data sets. Every limit is a run of its own, one thread, after all code was loaded.
The column "gap over time" is the mean over the run of (best objective known - objective now) / best known: the
primal integral over the limit. CART is scikit-learn's, on the same binary columns and of the same depth, with gini,
entropy and log_loss, pruned to the best value of our objective; the best of the three counts. `--rivals` adds the tree
that STreeD has after the same time (`pip install pystreed`, best in an environment of its own).

Instances besides data sets of the folder: *digits*, scikit-learn's 8 x 8 pictures, a column for every distinct decile
of every pixel; *numeric 200k*, 200,000 samples of 30 independent normal columns in deciles, whose class is
``(a > 0.3) xor (b + c > 0.2), or d > 1``, a tenth of it turned around (seed 0).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import accel_oct
import accel_oct.exact
from accel_oct.data import BinaryDataset
from accel_oct_bench.machine import machine
from accel_oct_bench.peers.cart import best_cart
from accel_oct_bench.studies.common import MarkdownTable, data_sets, numeric_table, parser_of, timed

FROM_FOLDER = ("sonar_QB_5", "ozone-one_QB_5", "ozone-one_QT_5")


@dataclass
class Instance:
    """A binary table, and the depths that are tried on it."""

    name: str
    X: Any
    y: Any
    depths: tuple[int, ...]


@dataclass
class Row:
    """The outcome of a run; `history` has pairs of seconds and objective."""

    limit: float
    seconds: float
    objective: float
    bound: float | None = None
    history: list[tuple[float, float]] = field(default_factory=list)

    def gap_over_time(self, best: float) -> float:
        """Return the mean distance to the best known objective, relative to it, over the limit."""
        moments = [0.0, *(min(moment, self.limit) for moment, _ in self.history), self.limit]
        values = [0.0, *(value for _, value in self.history)]
        return sum((end - begin) * (best - max(value, 0.0)) for begin, end, value in _spans(moments, values)) / (
            self.limit * best
        )


def _spans(moments: Sequence[float], values: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    return zip(moments[:-1], moments[1:], values, strict=True)


def instances(folder: Path | None) -> Iterator[Instance]:
    yield digits()
    for data in data_sets(folder, FROM_FOLDER):
        yield Instance(data.name, data.X, data.y, (5, 6))
    yield numeric()


def digits() -> Instance:
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)
    return Instance("digits", deciles(pixels), y, (4, 5))


def numeric() -> Instance:
    table, y = numeric_table(200_000, 30)
    return Instance("numeric 200k", deciles(table), y, (4,))


def deciles(table: Any) -> Any:
    columns = [
        column > threshold for column in table.T for threshold in np.unique(np.quantile(column, np.arange(1, 10) / 10))
    ]
    return np.column_stack([column for column in columns if 0 < column.sum() < len(column)])


def solve(instance: Instance, depth: int, penalty: float, limit: float) -> Row:
    history: list[tuple[float, float]] = []
    result, spent = timed(
        lambda: accel_oct.solve(
            instance.X,
            instance.y,
            max_depth=depth,
            leaf_penalty=penalty,
            time_limit=limit,
            progress=lambda event: history.append((event.seconds, event.objective)) if event.changed else None,
        )
    )
    return Row(limit, spent.seconds, result.objective, result.bound, history)


def cart(instance: Instance, depth: int, penalty: float) -> Row:
    """Return the best tree of three criteria, and their time together."""
    dataset = BinaryDataset.from_arrays(instance.X, instance.y)
    price = dataset.leaf_price(penalty)
    tree, spent = timed(lambda: best_cart(dataset, depth, price))
    return Row(0.0, spent.seconds, tree.value(dataset, price) / dataset.total_weight)


def streed(instance: Instance, depth: int, penalty: float, limit: float) -> Row:
    from pystreed import STreeDClassifier

    _, classes = np.unique(instance.y, return_inverse=True)
    table = instance.X.astype(np.int32)
    model = STreeDClassifier("cost-complex-accuracy", max_depth=depth, cost_complexity=penalty, time_limit=limit)
    began = time.perf_counter()
    objective = float("nan")
    try:
        model.fit(table, classes)
        objective = float(np.mean(model.predict(table) == classes)) - penalty * model.get_n_leaves()
    except Exception as error:  # it has no tree when the time is up: raises one thing or another
        print(f"STreeD, {instance.name}, depth {depth}, {limit:g} s: {error}", flush=True)
    return Row(limit, time.perf_counter() - began, objective)


def load_code() -> None:
    """Load all code before anything is measured."""
    rng = np.random.default_rng(0)
    for n_samples, n_classes in ((300, 2), (300, 3), (40_000, 2)):
        X, y = rng.integers(0, 2, (n_samples, 30)), rng.integers(0, n_classes, n_samples)
        accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.0001)
        dataset = BinaryDataset.from_arrays(X, y)
        solver = accel_oct.exact.DepthTwoSolver(dataset.X, dataset.y, dataset.weights, n_classes)
        solver.solve(np.arange(n_samples), 1.0)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--limits", nargs="*", type=float, default=[1.0, 3.0, 10.0, 30.0])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--penalty", type=float, default=0.0001)
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    load_code()
    print(machine(), flush=True)
    header = ["data", "depth", "limit s", "took s", "objective", "bound", "gap over time", "best CART"]
    table = MarkdownTable(*header, *(["STreeD"] if options.rivals else []))
    for instance in instances(options.data_dir):
        if options.only and instance.name not in options.only:
            continue
        for depth in instance.depths:
            greedy = cart(instance, depth, options.penalty)
            rows = [solve(instance, depth, options.penalty, limit) for limit in options.limits]
            others = [streed(instance, depth, options.penalty, limit) for limit in options.limits if options.rivals]
            best = np.nanmax([row.objective for row in (greedy, *rows, *others)])
            for place, row in enumerate(rows):
                table.row(
                    instance.name,
                    depth,
                    f"{row.limit:g}",
                    f"{row.seconds:.1f}",
                    f"{row.objective:.4f}",
                    f"{row.bound:.4f}",
                    f"{row.gap_over_time(best):.3f}",
                    f"{greedy.objective:.4f} ({greedy.seconds:.1f} s)",
                    *([f"{others[place].objective:.4f}"] if others else []),
                )


if __name__ == "__main__":
    main()
