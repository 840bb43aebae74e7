"""The paper's comparison, `baseline` against `paper`, on data sets that fit a size-limited Gurobi licence.

    python -m accel_oct_bench.studies.paper_tables --data-dir FOLDER [--time-limit 60] > tables.md

One thread per solve, one solve at a time. The licence that comes with gurobipy takes 2000 columns and 2000 rows; the
equivalent-point inequalities exceed it. Such an instance is reported as skipped, and solved with the largest split set
F* that fits instead, under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from accel_oct import solve
from accel_oct.mip import LicenceError
from accel_oct.solving.config import Config
from accel_oct.solving.result import Result
from accel_oct_bench.data import EncodedData
from accel_oct_bench.studies.common import MarkdownTable, data_sets, parser_of

DATA = [
    *("monk1", "monk3", "hayes-roth", "house-votes-84", "iris_QB_5", "iris_QT_5", "wine_QB_5", "wine_QT_5"),
    *("transfusion_QB_5", "transfusion_QT_5", "banknote_QB_5", "banknote_QT_5"),
]
COMPONENTS = ("benders", "path_bound", "polishing")


@dataclass(frozen=True)
class Run:
    """One instance with one configuration; `result` is None when it was skipped."""

    data: str
    depth: int
    penalty: float
    variant: str
    result: Result | None
    note: str = ""

    @property
    def solved(self) -> bool:
        return self.result is not None and self.result.status == "optimal"

    @property
    def own_share(self) -> float | None:
        """Share of the solver's time that was spent in our own Python; None when no solver was needed."""
        solver = self.result.stats.get("solver") if self.result is not None else None
        return solver["handler_seconds"] / solver["seconds"] if solver else None

    def cells(self) -> list[object]:
        """Return a row of the table."""
        cells: list[object] = [self.data, self.depth, f"{self.penalty:g}", self.variant]
        if self.result is None:
            return [*cells, f"skipped: {self.note}", *[""] * 7]
        stats, share = self.result.stats, self.own_share
        work = [stats.get(name, {"cuts": 0, "seconds": 0.0}) for name in COMPONENTS]
        return [
            *cells,
            "yes" if self.solved else "no",
            f"{self.result.seconds:.2f}",
            f"{100 * self.result.gap:.2f}",
            f"{self.result.objective:.5f}",
            self.result.nodes,
            " / ".join(str(part["cuts"]) for part in work[:2]),
            " / ".join(f"{part['seconds']:.3f}" for part in work),
            "" if share is None else f"{100 * share:.1f}",
        ]


def configurations(preset: str) -> Iterator[tuple[str, Config]]:
    """Yield the preset, and the same with smaller and smaller split sets, down to none."""
    config = Config.preset(preset)
    yield preset, config
    if config.equivalent_points.enabled:
        for size in (1, 0):
            yield f"{preset}, F* <= {size}", _with_points(config, max_split_size=size)
        yield f"{preset}, no EQP", _with_points(config, enabled=False)


def _with_points(config: Config, **changes: object) -> Config:
    return replace(config, equivalent_points=replace(config.equivalent_points, **changes))  # type: ignore[arg-type]


def run(data: EncodedData, depth: int, penalty: float, preset: str, backend: str, time_limit: float) -> Iterator[Run]:
    """Solve, with smaller models as long as the licence is too small; yield all attempts."""
    for variant, config in configurations(preset):
        try:
            result = solve(
                data.X,
                data.y,
                max_depth=depth,
                leaf_penalty=penalty,
                backend=backend,
                config=config,
                time_limit=time_limit,
                threads=1,
            )
        except LicenceError as error:
            yield Run(data.name, depth, penalty, variant, None, _size(error))
            continue
        yield Run(data.name, depth, penalty, variant, result)
        return


def _size(error: LicenceError) -> str:
    text = str(error)
    return text[text.find("(") + 1 : text.find(")")] + " exceed the licence" if "(" in text else text


def print_summary(runs: list[Run], presets: list[str]) -> None:
    """Print one line per preset, over the instances that it ran in any variant; times of those that all solved."""
    final = {(r.data, r.depth, r.penalty, r.variant.split(",")[0]): r for r in runs if r.result is not None}
    instances = {key[:3] for key in final}
    common = [i for i in instances if all((*i, preset) in final and final[(*i, preset)].solved for preset in presets)]
    print()
    table = MarkdownTable(
        "preset", "instances", "solved", "seconds where all solved", "mean gap % unsolved", "largest own share %"
    )
    for preset in presets:
        mine = [final[(*i, preset)] for i in sorted(instances) if (*i, preset) in final]
        gaps = [100 * r.result.gap for r in mine if r.result is not None and not r.solved]
        seconds = sum(r.result.seconds for i in common if (r := final[(*i, preset)]).result is not None)
        shares = [100 * share for r in mine if (share := r.own_share) is not None]
        table.row(
            preset,
            len(mine),
            sum(r.solved for r in mine),
            f"{seconds:.1f} ({len(common)} instances)",
            f"{sum(gaps) / len(gaps):.2f}" if gaps else "-",
            f"{max(shares):.1f}" if shares else "-",
        )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", nargs="+", default=DATA, metavar="NAME")
    parser.add_argument("--depths", nargs="+", type=int, default=[3, 4])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.04, 0.01, 0.002])
    parser.add_argument("--presets", nargs="+", default=["baseline", "paper"])
    parser.add_argument("--backend", default="gurobi")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per instance")
    options = parser.parse_args()
    print(f"Time limit {options.time_limit:g} s, one thread, backend {options.backend}.\n")
    table = MarkdownTable(
        "data", "depth", "penalty", "preset", "solved", "seconds", "gap %", "objective", "nodes",
        "cuts: Benders / path bound", "seconds: Benders / path bound / polishing", "own share %",
    )  # fmt: skip
    runs: list[Run] = []
    for data in data_sets(options.data_dir, options.data):
        for depth, penalty, preset in product(options.depths, options.penalties, options.presets):
            for one in run(data, depth, penalty, preset, options.backend, options.time_limit):
                runs.append(one)
                table.row(*one.cells())
    print_summary(runs, options.presets)


if __name__ == "__main__":
    main()
