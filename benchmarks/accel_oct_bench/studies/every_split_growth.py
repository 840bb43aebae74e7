"""Time, memory, bounds and trees of the search over every split: as tables grow, and as time passes.

    python -m accel_oct_bench.studies.every_split_growth growth [--time-limit 60] [--figure FILE]
    python -m accel_oct_bench.studies.every_split_growth anytime --data-dir FOLDER [--limits 1 3] [--penalty 0.001]

`growth` fits generated tables: independent normal columns; the class follows a planted tree of depth 3 on the first
seven columns, and one row in ten has the other class (seed 0). All other columns are irrelevant.

`anytime` stops the search on *digits* (scikit-learn), *spambase* (a raw file in FOLDER) and *numeric 200k* (the table
of `studies.anytime` before it is cut into deciles). "Gap over time" is the primal integral over the limit: the mean
over the run of (best objective known - objective now) / best known. CART is the best of three criteria, each pruned to
the best value of our objective. ConTree (`pip install pycontree`) is left out where it is not installed.

Every fit has a process of its own with one thread, after all code was loaded. Seconds are those of `fit`; peak memory
is that of the process, imports and table included.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.measurement import machine, peak_mb, timed, versions
from accel_oct_bench.peers import PEERS
from accel_oct_bench.studies.anytime import Row
from accel_oct_bench.studies.common import MarkdownTable, best_cart, numeric_table, parser_of
from accel_oct_bench.studies.every_split import peer_run

DEPTHS = (2, 3)
ROWS = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = (10, 30, 100, 300, 500)
NOISE = 0.1
#: Seconds beyond its limit after which a fit is ended from outside: of ours, and of ConTree.
GRACE, RIVAL_GRACE = 240.0, 60.0

Table = tuple[np.ndarray, np.ndarray]


class Fit(NamedTuple):
    """The outcome of one fit. ConTree reports no bound, no status and no history."""

    seconds: float
    cpu: float
    memory: float
    objective: float
    bound: float = float("nan")
    status: str = ""
    history: tuple[tuple[float, float], ...] = ()

    @property
    def gap(self) -> float:
        return self.bound - self.objective


def planted(rows: int, columns: int) -> Table:
    """Return a table whose classes follow a full tree of depth 3, except for a share of `NOISE`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    thresholds = np.array([0.2, -0.3, 0.4, 0.1, -0.5, 0.3, -0.1])
    node = np.zeros(rows, dtype=int)
    for _ in range(3):
        node = 2 * node + 1 + (X[np.arange(rows), node] > thresholds[node])
    y = np.array([0, 1, 1, 0, 0, 1, 0, 1])[node - 7] ^ (rng.random(rows) < NOISE)
    return X, y


def digits() -> Table:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, y


def spambase(folder: Path) -> Table:
    table = np.loadtxt(folder / "spambase.data", delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)


def numeric() -> Table:
    return numeric_table(200_000, 30)


def ours(make: Callable[..., Table], given: tuple[Any, ...], depth: int, penalty: float, limit: float) -> Fit:
    X, y = make(*given)
    warnings.simplefilter("ignore")  # the status says that a limit was reached
    OptimalTreeClassifier(depth, penalty, time_limit=1.0).fit(X[:100], y[:100])  # loads all code
    model, spent = timed(lambda: OptimalTreeClassifier(depth, penalty, time_limit=limit).fit(X, y))
    memory = peak_mb()
    objective = model.score(X, y) - penalty * model.get_n_leaves()
    history = tuple((row.seconds, row.objective) for row in model.result_.history)
    return Fit(*spent, memory, objective, model.bound_, model.status_, history)


def contree(make: Callable[..., Table], given: tuple[Any, ...], depth: int, penalty: float, limit: float) -> Fit:
    X, y = make(*given)
    run, spent = timed(lambda: peer_run(PEERS["contree"], X, y, depth, penalty, limit))
    return Fit(run.seconds, spent.cpu, peak_mb(), run.objective)


def alone(
    fit: Callable[..., Fit],
    make: Callable[..., Table],
    given: tuple[Any, ...],
    depth: int,
    penalty: float,
    limit: float,
) -> Fit | None:
    """Run a fit in a process of its own. Return None if it has to be ended."""
    grace = GRACE if fit is ours else RIVAL_GRACE
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(fit, (make, given, depth, penalty, limit)).get(limit + grace)
        except multiprocessing.TimeoutError:
            return None


def growth(limit: float, figure: Path | None) -> None:
    sizes = [(rows, 20) for rows in ROWS] + [(1000, columns) for columns in COLUMNS]
    table = MarkdownTable(
        "rows", "columns", "depth", "seconds", "CPU seconds", "peak MB", "status", "objective", "bound", "gap", words=0
    )
    found: dict[tuple[int, int, int], Fit] = {}
    for rows, columns in sizes:
        for depth in DEPTHS:
            fit = alone(ours, planted, (rows, columns), depth, 0.01, limit)
            if fit is None:
                table.row(f"{rows:,}", columns, depth, f"ended after {limit + GRACE:g} s")
                continue
            found[rows, columns, depth] = fit
            spent = (f"{fit.seconds:.2f}", f"{fit.cpu:.2f}", f"{fit.memory:.0f}", fit.status)
            values = (f"{fit.objective:.4f}", f"{fit.bound:.4f}", f"{fit.gap:.4f}")
            table.row(f"{rows:,}", columns, depth, *spent, *values)
    if figure is not None:
        draw(found, limit, figure)


def draw(found: dict[tuple[int, int, int], Fit], limit: float, path: Path) -> None:
    """Write CPU seconds against rows and against columns; fits without a proof are hollow."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "accel_oct"
    figure, panels = plt.subplots(1, 2, figsize=(8.0, 3.4), sharey=True, layout="constrained")
    series: list[tuple[str, Callable[[int, int], int | None]]] = [
        ("rows (20 columns)", lambda rows, columns: rows if columns == 20 else None),
        ("columns (1000 rows)", lambda rows, columns: columns if rows == 1000 else None),
    ]
    for axes, (name, size) in zip(panels, series, strict=True):
        for depth, colour in zip(DEPTHS, ("C0", "C1"), strict=True):
            fits = {size(key[0], key[1]): fit for key, fit in found.items() if key[2] == depth}
            points = sorted((at, fit.cpu, fit.status == "optimal") for at, fit in fits.items() if at is not None)
            axes.loglog([at for at, *_ in points], [cpu for _, cpu, _ in points], "-", color=colour)
            for proven, face in ((True, colour), (False, "white")):
                chosen = [(at, cpu) for at, cpu, is_proven in points if is_proven == proven]
                label = f"depth {depth}, {'proven' if proven else f'not proven, limit {limit:g} s'}"
                if chosen:
                    axes.loglog(*zip(*chosen, strict=True), "o", color=colour, markerfacecolor=face, label=label)
        axes.set(xlabel=name)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    panels[0].set(ylabel="CPU seconds of the fit")
    figure.savefig(path, metadata={"Date": None})


def instances(folder: Path) -> Iterator[tuple[str, Callable[..., Table], tuple[Any, ...], int]]:
    yield "spambase", spambase, (folder,), 4
    yield "digits", digits, (), 4
    yield "numeric 200k", numeric, (), 3
    yield "digits", digits, (), 5
    yield "numeric 200k", numeric, (), 4


def anytime(folder: Path, limits: list[float], penalty: float, only: list[str]) -> None:
    rivals = "pycontree" in versions()
    table = MarkdownTable(
        "data", "depth", "limit s", "took s", "CPU s", "objective", "bound", "gap", "gap over time", "CART", "ConTree",
        "s",
    )  # fmt: skip
    for name, make, given, depth in instances(folder):
        if only and f"{name} {depth}" not in only:
            continue
        greedy = best_cart(*make(*given), depth, penalty)
        fits = {limit: alone(ours, make, given, depth, penalty, limit) for limit in limits}
        others = {limit: alone(contree, make, given, depth, penalty, limit) for limit in limits if rivals}
        best = max(greedy, *(fit.objective for fit in (*fits.values(), *others.values()) if fit is not None))
        for limit, fit in fits.items():
            if fit is None:
                table.row(name, depth, f"{limit:g}", f"ended after {limit + GRACE:g} s")
                continue
            row = Row(limit, fit.seconds, fit.objective, fit.bound, list(fit.history))
            spent = (f"{limit:g}", f"{fit.seconds:.1f}", f"{fit.cpu:.1f}")
            values = (f"{fit.objective:.4f}", f"{fit.bound:.4f}", f"{fit.gap:.4f}", f"{row.gap_over_time(best):.3f}")
            table.row(name, depth, *spent, *values, f"{greedy:.4f}", *_rival(others, limit))


def _rival(others: dict[float, Fit | None], limit: float) -> tuple[str, str]:
    if limit not in others:
        return "", ""
    fit = others[limit]
    if fit is None:
        return "none", f"ended after {limit + RIVAL_GRACE:g}"
    return f"{fit.objective:.4f}", f"{fit.seconds:.1f}"


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("what", choices=["growth", "anytime"])
    parser.add_argument("--time-limit", type=float, default=60.0, help="growth: seconds per fit")
    parser.add_argument("--figure", type=Path, help="growth: write an SVG of CPU seconds against size")
    parser.add_argument("--data-dir", type=Path, help="anytime: folder of spambase.data")
    parser.add_argument("--limits", nargs="+", type=float, default=[1.0, 3.0, 10.0, 30.0])
    parser.add_argument("--penalty", type=float, default=0.001, help="anytime: leaf penalty; growth has 0.01")
    parser.add_argument("--only", nargs="*", default=[], help='anytime: data and depth, as in "digits 4"')
    options = parser.parse_args()
    print(machine(), versions(), flush=True)
    if options.what == "growth":
        growth(options.time_limit, options.figure)
    else:
        anytime(options.data_dir or Path(), options.limits, options.penalty, options.only)


if __name__ == "__main__":
    main()
