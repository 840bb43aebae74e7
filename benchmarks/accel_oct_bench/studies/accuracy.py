"""Accuracy on new rows: optimal trees and CART, both tuned by nested cross-validation.

    python -m accel_oct_bench.studies.accuracy --data-dir FOLDER run --out accuracy.jsonl [--tables iris wine]
    python -m accel_oct_bench.studies.accuracy --data-dir FOLDER report accuracy.jsonl [--figure accuracy.svg]

*Tables.* Every raw table of the data folder, its binary fairness tables without the protected group, scikit-learn's
digits and diabetes (in three classes), and generated tables. Rows with a missing value are left out, categories are
one-hot, and of a large table `--rows` rows are drawn. Both methods have the same matrix of numbers.

*Halves.* The tables in alphabetical order, alternating: those at even places are for choosing defaults, those at odd
places for reporting.

*Protocol.* Outer splits measure, inner folds of the training part select, the selected candidate is fitted again on
the whole training part. Both methods have the same outer splits, inner folds, and candidates: depth 2, 3, 4 or no
limit, each with ten values of the size penalty (the default penalties and zero; for CART `ccp_alpha`), and leaves of at
least 1 or 5 rows. CART's candidates are all combinations; ours are the pairs of depth and smallest leaf in `SHAPES`.
Without a depth limit a penalty of zero is replaced by the smallest positive one. Each path of penalties of ours may
take `--time-limit` CPU seconds; a search that reaches its part keeps its best tree.

*Results.* One JSON line per table and outer split, with the scores of all candidates in the inner folds and on the
held-out rows, so that `report` evaluates any rule of selection without another run (`OURS`, `CART`, `RULES`). A run
goes on where a previous one ended.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifier
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES
from accel_oct_bench.data import DATA_VARIABLE, RAW_FILES, Registry
from accel_oct_bench.studies.common import MarkdownTable, numeric_table, registry_at

SHAPES: tuple[tuple[int | None, int], ...] = ((2, 1), (3, 1), (4, 1), (None, 1), (3, 5), (None, 5))
"""Depth and smallest leaf of our candidates."""

DEPTHS: tuple[int | None, ...] = (2, 3, 4, None)
LEAVES = (1, 5)
PENALTIES = (*DEFAULT_PENALTIES, 0.0)
LARGE = 250
"""Number of rows from which on a table counts as large."""

_GENERATED = {
    "gen-hidden-300": "gen-hidden-300x12",
    "gen-hidden-900": "gen-hidden-900x12",
    "gen-chain": "gen-chain-8",
}
_NUMERIC = {"gen-numeric-200": 200, "gen-numeric-600": 600, "gen-numeric-1200": 1200}

Matrix = NDArray[np.float64]
Split = tuple[NDArray[Any], NDArray[Any]]


class Candidate(NamedTuple):
    """A setting of a method."""

    max_depth: int | None
    min_samples_leaf: int
    penalty: float


class Rule(NamedTuple):
    """How a candidate is selected."""

    depths: Sequence[int | None] = DEPTHS
    leaves: Sequence[int] = LEAVES
    errors: float = 0.0
    """Standard errors below the best mean score within which the smallest tree is selected."""

    smooth: bool = False
    """Whether scores are averaged with those of the neighbouring penalties."""


OURS = Rule(depths=(2, 3, None), smooth=True)
"""Our rule: depths and smoothing chosen on the tables for choosing."""

CART = Rule(smooth=True)
"""CART's rule: the same, over all its depths."""

RULES = {
    "depths 2, 3, no limit; leaf 1 or 5; smooth (reported)": OURS,
    "leaf 1 alone (the default)": OURS._replace(leaves=(1,)),
    "not smooth": OURS._replace(smooth=False),
    "one standard error": OURS._replace(smooth=False, errors=1.0),
    "depth 4 too": OURS._replace(depths=DEPTHS),
    "no depth limit alone": OURS._replace(depths=(None,)),
    "depth 3 alone": OURS._replace(depths=(3,)),
}
"""Our rules that the report compares."""


# ---------------------------------------------------------------- tables


def table_names(registry: Registry) -> list[str]:
    """Return the names of all tables, in alphabetical order."""
    assert registry.folder is not None
    raw = [name for name, files in RAW_FILES.items() if files.is_in(registry.folder)]
    return sorted([*raw, *registry.grouped, "diabetes", "digits", *_GENERATED, *_NUMERIC])


def load(registry: Registry, name: str, most_rows: int) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the columns of a table as numbers, and its classes; of a large table some rows."""
    X, y = _complete(registry, name)
    y = np.unique(y, return_inverse=True)[1].reshape(-1)
    kept = np.sort(np.random.default_rng(0).permutation(len(y))[:most_rows])
    return X[kept], y[kept]


def _complete(registry: Registry, name: str) -> tuple[Matrix, NDArray[Any]]:
    if name in RAW_FILES:
        assert registry.folder is not None
        raw = RAW_FILES[name]
        cells = raw.read(registry.folder)
        parts = []
        for place in range(cells.shape[1]):
            column = cells[:, place]
            if place == raw.target or place in raw.dropped or (column == "").all():
                continue
            if raw.categories is None or place in raw.categories:
                values = np.unique(column)
                parts.append((column[:, None] == (values[1:] if len(values) == 2 else values)).astype(float))
            else:
                parts.append(column.astype(float)[:, None])
        return np.hstack(parts), cells[:, raw.target]
    if name in _NUMERIC:
        return numeric_table(_NUMERIC[name], 6, np.float64)
    if name == "digits":
        X, y = datasets.load_digits(return_X_y=True)
        return X, y
    if name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True)
        return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    data = registry.load(_GENERATED.get(name, name))
    return data.X.astype(float), data.y


# ---------------------------------------------------------------- measuring


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Make time limits count CPU seconds of this process, so that other load does not change the results."""
    wall = time.perf_counter, time.monotonic
    time.perf_counter = time.monotonic = time.process_time
    try:
        yield
    finally:
        time.perf_counter, time.monotonic = wall


def cart_scores(X: Matrix, y: Any, train: Any, test: Any) -> list[tuple[float, int]]:
    """Return held-out accuracy and number of leaves of each of CART's candidates."""
    found = []
    for each in cart_candidates():
        tree = DecisionTreeClassifier(
            max_depth=each.max_depth,
            min_samples_leaf=each.min_samples_leaf,
            ccp_alpha=each.penalty,
            random_state=0,
        ).fit(X[train], y[train])
        found.append((float(tree.score(X[test], y[test])), int(tree.get_n_leaves())))
    return found


def our_scores(X: Matrix, y: Any, train: Any, test: Any, limit: float) -> list[tuple[float, int]]:
    """Return held-out accuracy and number of leaves of each of our candidates."""
    found = []
    for max_depth, least in SHAPES:
        model = OptimalTreeClassifier(max_depth, min_samples_leaf=least, time_limit=limit)
        penalties = [each.penalty for each in our_candidates() if each[:2] == (max_depth, least)]
        for fitted in model.path(X[train], y[train], leaf_penalties=penalties):
            found.append((float(np.mean(fitted.predict(X[test]) == y[test])), int(fitted.get_n_leaves())))
    return found


def our_candidates() -> list[Candidate]:
    """Return our candidates, in the order of `our_scores`."""
    return [
        Candidate(depth, least, penalty or (PENALTIES[-2] if depth is None else 0.0))
        for depth, least in SHAPES
        for penalty in PENALTIES
    ]


def cart_candidates() -> list[Candidate]:
    """Return CART's candidates, in the order of `cart_scores`."""
    return [Candidate(depth, least, alpha) for depth in DEPTHS for least in LEAVES for alpha in PENALTIES]


def measure(X: Matrix, y: Any, split: Split, folds: int, limit: float) -> dict[str, Any]:
    """Return the scores of all candidates in the inner folds and on the held-out rows of an outer split."""
    train, test = split
    inner = list(StratifiedKFold(folds, shuffle=True, random_state=1).split(X[train], y[train]))
    parts = [(train[part], train[rest]) for part, rest in inner] + [(train, test)]
    result: dict[str, Any] = {}
    for name in ("ours", "cart"):
        began = time.process_time()
        scores = [
            our_scores(X, y, rows, held_out, limit) if name == "ours" else cart_scores(X, y, rows, held_out)
            for rows, held_out in parts
        ]
        found = np.array(scores)  # parts, candidates, (score, leaves)
        result[name] = {
            "inner": found[:-1, :, 0].T.round(5).tolist(),
            "size": found[:-1, :, 1].mean(axis=0).round(2).tolist(),
            "held_out": found[-1, :, 0].round(5).tolist(),
            "leaves": found[-1, :, 1].tolist(),
            "seconds": round(time.process_time() - began, 2),
        }
    return result


def run(options: argparse.Namespace) -> None:
    """Measure all tables that the output does not have yet."""
    registry = registry_at(options.data_dir)
    names = table_names(registry)
    unknown = sorted(set(options.tables or ()) - set(names))
    if unknown:
        raise InvalidInputError(f"no table {', '.join(unknown)}; there are {', '.join(names)}")
    done = {(row["table"], row["split"]) for row in read(options.out)} if options.out.exists() else set()
    n_splits = options.folds * options.repeats
    chosen = [name for name in names if name in (options.tables or names) and name in half_of(names, options.half)]
    chosen = chosen[options.part[0] :: options.part[1]]
    with options.out.open("a", encoding="utf-8") as file:
        for place, (number, name) in product(range(n_splits), enumerate(chosen)):
            if (name, place) in done:
                continue
            X, y = load(registry, name, options.rows)
            splitter = RepeatedStratifiedKFold(n_splits=options.folds, n_repeats=options.repeats, random_state=0)
            split = list(splitter.split(X, y))[place]
            with cpu_clock():
                row = measure(X, y, split, options.inner, options.time_limit)
            file.write(json.dumps({"table": name, "rows": len(y), "split": place, **row}) + "\n")
            file.flush()
            print(
                f"split {place + 1} of {n_splits}, table {number + 1} of {len(chosen)}, {name}: "
                f"{row['ours']['seconds']:.1f} s, CART {row['cart']['seconds']:.1f} s",
                file=sys.stderr,
                flush=True,
            )


def read(*paths: Path) -> list[dict[str, Any]]:
    """Read the results of runs."""
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


# ---------------------------------------------------------------- reporting


def chosen_candidate(candidates: Sequence[Candidate], scores: dict[str, Any], rule: Rule) -> int:
    """Return the place of the selected candidate: the best mean score, the fewest leaves among equal ones."""
    inner = np.array(scores["inner"])
    mean = inner.mean(axis=1)
    error = inner.std(axis=1, ddof=1) / math.sqrt(inner.shape[1])
    if rule.smooth:
        blocks = mean.reshape(-1, len(PENALTIES))
        padded = np.pad(blocks, ((0, 0), (1, 1)), mode="edge")
        mean = (0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:]).ravel()
    allowed = [
        place
        for place, each in enumerate(candidates)
        if each.max_depth in rule.depths and each.min_samples_leaf in rule.leaves
    ]
    best = max(allowed, key=lambda place: mean[place])
    enough = mean[best] - rule.errors * error[best] - 1e-12
    size = scores["size"]
    return min(
        (place for place in allowed if mean[place] >= enough),
        key=lambda place: (size[place], _order(candidates[place].max_depth), -candidates[place].penalty),
    )


def _order(depth: int | None) -> float:
    return math.inf if depth is None else depth


class Compared(NamedTuple):
    """Accuracy of both methods on a table, in points, over its outer splits."""

    table: str
    rows: int
    ours: float
    leaves: float
    cart: float
    cart_leaves: float
    difference: float
    error: float


def compare(rows: Sequence[dict[str, Any]], ours: Rule, cart: Rule) -> list[Compared]:
    """Return the comparison of both methods by table, each with its rule of selection."""
    found = []
    for table in sorted({row["table"] for row in rows}):
        own = [row for row in rows if row["table"] == table]
        values = []
        for row in own:
            first = chosen_candidate(our_candidates(), row["ours"], ours)
            second = chosen_candidate(cart_candidates(), row["cart"], cart)
            scores = 100 * row["ours"]["held_out"][first], 100 * row["cart"]["held_out"][second]
            values.append((scores[0], row["ours"]["leaves"][first], scores[1], row["cart"]["leaves"][second]))
        array = np.array(values)
        difference = array[:, 0] - array[:, 2]
        error = float(difference.std(ddof=1) / math.sqrt(len(difference))) if len(own) > 1 else math.nan
        a, our_leaves, b, cart_leaves = array.mean(axis=0).tolist()
        found.append(Compared(table, own[0]["rows"], a, our_leaves, b, cart_leaves, float(difference.mean()), error))
    return found


def half_of(names: Sequence[str], half: str) -> set[str]:
    """Return the tables of a half: "choosing", "reporting" or "all"."""
    return set({"choosing": names[::2], "reporting": names[1::2], "all": names}[half])


def mean_of(found: Sequence[Compared]) -> tuple[float, float]:
    """Return the mean difference over tables and its standard error."""
    values = np.array([each.difference for each in found])
    if not values.size:
        return math.nan, math.nan
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _means(found: Sequence[Compared]) -> str:
    """Return the means of large and small tables, with standard errors, as cells."""
    parts = [each for each in found if each.rows >= LARGE], [each for each in found if each.rows < LARGE]
    return " | ".join("{:+.2f} ± {:.2f}".format(*mean_of(part)) for part in parts)


def report(options: argparse.Namespace) -> None:
    """Print the table of a half, and draw the figure."""
    rows = read(*options.results)
    rows = [row for row in rows if row["table"] in half_of(table_names(registry_at(options.data_dir)), options.half)]
    found = compare(rows, OURS, CART)
    table = MarkdownTable("table", "rows", "ours", "leaves", "CART", "leaves", "points over CART", "s.e.")
    for each in found:
        cells = f"{each.ours:.1f}", f"{each.leaves:.1f}", f"{each.cart:.1f}", f"{each.cart_leaves:.1f}"
        table.row(each.table, each.rows, *cells, f"{each.difference:+.1f}", f"{each.error:.1f}")
    for title, part in (
        (f"{LARGE} rows or more", [each for each in found if each.rows >= LARGE]),
        (f"fewer than {LARGE} rows", [each for each in found if each.rows < LARGE]),
        ("all", found),
    ):
        mean, error = mean_of(part)
        table.row(f"**mean, {title} ({len(part)})**", "", "", "", "", "", f"**{mean:+.2f}**", f"{error:.2f}")
    clear = [each for each in found if abs(each.difference) > 2 * each.error]
    for word, sign in (("better", 1), ("worse", -1)):
        names = ", ".join(each.table for each in clear if sign * each.difference > 0)
        print(f"\n{word.capitalize()} by more than two standard errors: {names or 'none'}.")
    print(f"\n| our rule | points over CART, {LARGE} rows or more | fewer rows |\n| --- | ---: | ---: |")
    for title, rule in RULES.items():
        print(f"| {title} | {_means(compare(rows, rule, CART))} |")
    print(f"\n| depth limit of both | points over CART, {LARGE} rows or more | fewer rows |\n| --- | ---: | ---: |")
    for depth in DEPTHS:
        same = compare(rows, OURS._replace(depths=(depth,)), CART._replace(depths=(depth,)))
        print(f"| {'none' if depth is None else depth} | {_means(same)} |")
    if options.figure is not None:
        draw(found, options.figure)


def draw(found: Sequence[Compared], path: Path) -> None:
    """Draw the differences with two standard errors, largest tables on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.26 * len(found) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, each in enumerate(sorted(found, key=lambda each: each.rows)):
        colour = "#1b6e8c" if each.rows >= LARGE else "#9aa5ad"
        axes.errorbar(each.difference, place, xerr=2 * each.error, fmt="o", color=colour, capsize=2, markersize=4)
    axes.axvline(0, color="black", linewidth=0.8)
    order = sorted(found, key=lambda each: each.rows)
    axes.set_yticks(range(len(order)), [f"{each.table} ({each.rows})" for each in order], fontsize=8)
    axes.set_xlabel("points of accuracy over tuned CART, with two standard errors")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help=f"data folder (default: the variable {DATA_VARIABLE})")
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="measure")
    runner.add_argument("--out", type=Path, required=True, help="JSON lines; a run adds what is missing")
    runner.add_argument("--tables", nargs="+", help="only these tables")
    runner.add_argument("--half", choices=("choosing", "reporting", "all"), default="all")
    runner.add_argument("--folds", type=int, default=3, help="outer folds")
    runner.add_argument("--repeats", type=int, default=1, help="repetitions of the outer folds with other splits")
    runner.add_argument("--inner", type=int, default=4, help="inner folds")
    runner.add_argument("--rows", type=int, default=1000, help="most rows of a table")
    runner.add_argument("--time-limit", type=float, default=0.4, help="CPU seconds of a path of penalties")
    runner.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("K", "N"), help="part K of N of the tables"
    )
    runner.set_defaults(function=run)
    reporter = commands.add_parser("report", help="print the table of results")
    reporter.add_argument("results", type=Path, nargs="+")
    reporter.add_argument("--half", choices=("choosing", "reporting", "all"), default="reporting")
    reporter.add_argument("--figure", type=Path, help="picture of the table")
    reporter.set_defaults(function=report)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer members than folds, searches that reach their limit
        options.function(options)


if __name__ == "__main__":
    main()
