"""Does the checker catch a wrong solver? Plant faults of bounds, let the solver write certificates, and check them.

    PYTHONPATH=tests python -m programs.wrong_solvers                        all faults
    PYTHONPATH=tests python -m programs.wrong_solvers --count 50 --only seen

Each fault is planted in a copy of the sources (those of kernels are compiled there), of which the solver and the writer
of certificates are both taken; the checker is that of the repository. Instances have 12 to 40 rows; an oracle that
shares no code with the library says which optima are wrong. A wrong optimum may be refused by the checker, or no
certificate of it is written; it must never be accepted. Exit code 1 if one is, or if a fault gave no wrong optimum.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from helpers.fuzz_instances import KINDS, draw
from oracles.exact import exact_value
from oracles.instances import Instance

import accel_oct
import accel_oct_checker
from accel_oct.errors import AccelOctError
from accel_oct.solving.config import Config

ROOT = Path(__file__).resolve().parents[2]
CHAIN = KINDS.index("chain")
SEARCH, LEVELS, SAMPLES = (f"accel_oct/exact/{name}.py" for name in ("price_search", "levels", "samples"))
ORDERED, KERNELS = (f"accel_oct/native/source/{name}.hpp" for name in ("ordered_search", "levels"))

#: Without heuristics, which often find the optimum that a false bound would miss. Where subtrees are searched against a
#: tree that is known, they help a false bound to close them.
BARE = replace(Config.preset("default"), warm_start="leaf", polish_warm_start=False, local_search=False)


@dataclass(frozen=True)
class Planted:
    """A fault: each pair of texts replaces the first by the second, wherever it occurs in the file."""

    name: str
    file: str
    texts: tuple[tuple[str, str], ...]
    depths: tuple[int, ...] = (3, 4)
    every_split: bool = False
    heuristics: bool = False

    @property
    def is_native(self) -> bool:
        return self.file.endswith("pp")


FAULTS = (
    Planted(
        "the leaf price is rounded up to a unit of weight",
        "accel_oct/data/dataset.py",
        (
            (
                "price = penalty * (self.total_weight if norm is None else norm)",
                "price = float(math.ceil(penalty * (norm or self.total_weight)))",
            ),
        ),
    ),
    Planted(
        "a leaf costs a unit more",
        SEARCH,
        (("self.units.price(leaf_price)", "self.units.price(leaf_price + 1)"),),
    ),
    Planted(
        "trees beyond a depth have a leaf more than they need",
        SEARCH,
        (("(known.exact_leaves + 1) * self.price", "(known.exact_leaves + 2) * self.price"),),
    ),
    Planted(
        "what equal points lose is subtracted twice",
        SAMPLES,
        (("float(self.row_ceiling.sum())", "float(2 * self.row_ceiling.sum() - self.total_weight)"),),
    ),
    Planted(
        "ceilings of sides are one row too low",
        SAMPLES,
        (
            (
                "both_sides(self.row_ceiling, self._factor)",
                "np.maximum(both_sides(self.row_ceiling, self._factor) - self.row_ceiling.max(), 0.0)",
            ),
        ),
        depths=(5, 6),
        heuristics=True,
    ),
    Planted(
        "similar support without the weight between",
        SEARCH,
        (("known + self._data.beyond(f, side)", "known + 0 * self._data.beyond(f, side)"),),
        depths=(5, 6),
        heuristics=True,
    ),
    Planted(
        "similar support counts rows instead of weights",
        SAMPLES,
        (("both_sides(self.weights * outside", "both_sides(1.0 * outside"),),
        depths=(5, 6),
        heuristics=True,
    ),
    Planted(
        "the bound of a searched side is a leaf price too low",
        SEARCH,
        (("min(self._upper[f, side], outcome.upper)", "min(self._upper[f, side], outcome.upper - search.price)"),),
        depths=(5, 6),
        heuristics=True,
    ),
    Planted(
        "bounds of root sides are the smaller of two",
        SEARCH,
        (("self._upper = np.maximum(shallow,", "self._upper = np.minimum(shallow,"),),
        depths=(5, 6),
        heuristics=True,
    ),
    Planted(
        "depth two splits one side only",
        LEVELS,
        (("np.stack([one_leaf, two_leaves], axis=-1)", "np.stack([one_leaf, [two_leaves[0], one_leaf[1]]], axis=-1)"),),
        depths=(2, 3),
    ),
    Planted(
        "columns are light up to eight prices",
        SAMPLES,
        (("self.side_ceilings > leaf_price", "self.side_ceilings > 8 * leaf_price"),),
    ),
    Planted(
        "full trees are left out of joined profiles",
        LEVELS,
        (("for i in range(n_left):", "for i in range(max(1, n_left - 1)):"),),
    ),
    Planted(
        "kernel: depth two below one side of a pair",
        KERNELS,
        (
            (
                "fold_over_lanes(work.scores, 2 * side, 2 * side + 1, best.data",
                "if (!side) fold_over_lanes(work.scores, 2 * side, 2 * side + 1, best.data",
            ),
            ("fold(work.scores, side, 2 + side,", "if (!side) fold(work.scores, side, 2 + side,"),
        ),
    ),
    Planted(
        "kernel: trees beyond depth two have six leaves",
        ORDERED,
        (("four = 4 * table.price", "four = 6 * table.price"),),
        every_split=True,
    ),
    Planted(
        "kernel: an interval's bound without the weight between",
        ORDERED,
        (
            ("bracket.above.left - (bracket.above.weight - weight)", "bracket.above.left"),
            ("above.left + below.right - (above.weight - below.weight)", "above.left + below.right"),
        ),
        every_split=True,
    ),
    Planted(
        "kernel: known sides bound others without the weight between",
        ORDERED,
        (
            ("here.end.left + between", "here.end.left"),
            ("here.end.right - between", "here.end.right"),
        ),
        every_split=True,
    ),
)


# ---------------------------------------------------------------- instances, in a process with the faulty library


def _labels(rng: np.random.Generator, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes of a random tree with noise, noise alone, or a decision list without noise."""
    n = len(X)
    if rng.random() < 0.3:
        columns = X[:, rng.integers(0, X.shape[1], int(rng.integers(2, 5)))]
        return np.where(columns.any(axis=1), columns.argmax(axis=1), columns.shape[1]) % n_classes
    if rng.random() < 0.4:
        return rng.integers(0, n_classes, n)
    rule = np.zeros(n, dtype=np.int64)
    for _ in range(4):
        a, b = rng.integers(0, X.shape[1], 2)
        rule += X[:, a] & ~X[:, b]
    return np.where(rng.random(n) < 0.15, rng.integers(0, n_classes, n), rule % n_classes)


def drawn(number: int, depths: Sequence[int], every_split: bool) -> tuple[np.ndarray, Instance]:
    """Return the table of an instance, and the instance over binary features: for a table, its thresholds.

    Of those over features up to depth 4 every third is a decision list whose bounds are tight.
    """
    if not every_split and max(depths) <= 4 and number % 3 == 0:
        chain = draw(CHAIN + len(KINDS) * number)[1]
        return chain.X, chain
    rng = np.random.default_rng([30, number])
    n, n_classes = int(rng.integers(12, 41)), int(rng.choice([2, 2, 3]))
    depth = int(depths[number % len(depths)])
    if every_split:
        table = rng.integers(0, int(rng.integers(3, 9)), (n, int(rng.integers(2, 4))))
        X = np.concatenate([column[:, None] >= np.unique(column)[1:] for column in table.T], axis=1)
        X = X if X.shape[1] else np.zeros((n, 1), dtype=bool)
    else:
        table = X = rng.random((n, int(rng.integers(4, 8)))) < rng.choice([0.3, 0.5])
    weights = rng.integers(1, 6, n).astype(float) if rng.random() < 0.4 else None
    total = n if weights is None else weights.sum()
    penalty = float(rng.choice([0.5, 0.75, 1.0, 1.5, 2.0]) / total)
    return table, Instance(X, _labels(rng, X, n_classes), weights, penalty, depth)


def verdict(number: int, depths: Sequence[int], every_split: bool, config: Config, folder: Path) -> str:
    """Solve an instance, and write and check a certificate of what is called optimal."""
    table, it = drawn(number, depths, every_split)
    proof, data = folder / "proof.json", folder / "table.csv"
    try:
        if every_split:
            model = accel_oct.OptimalTreeClassifier(it.max_depth, it.leaf_penalty)
            model.fit(table, it.y, sample_weight=it.sample_weight)
            found, status, leaves = model.predict(table), model.status_, model.get_n_leaves()
        else:
            result = accel_oct.solve(
                it.X,
                it.y,
                max_depth=it.max_depth,
                leaf_penalty=it.leaf_penalty,
                sample_weight=it.sample_weight,
                config=config,
            )
            found, status, leaves = np.unique(it.y)[result.tree.predict(it.X)], result.status, result.tree.n_leaves
    except (AssertionError, AccelOctError):
        return "failed"
    if status != "optimal":
        return "no claim"
    weights = np.ones(len(it.y)) if it.sample_weight is None else it.sample_weight
    value = weights[found == it.y].sum() / weights.sum() - it.leaf_penalty * leaves
    answer = "right" if value >= exact_value(it) - 1e-9 else "wrong"
    try:
        if every_split:
            model.certificate(proof, table, it.y, it.sample_weight, table=data)
        else:
            result.certificate(proof, table=data)
    except (AssertionError, AccelOctError):
        return f"{answer}, not written"
    try:
        accel_oct_checker.check(str(proof), str(data))
    except accel_oct_checker.Refused:
        return f"{answer}, refused"
    return f"{answer}, accepted"


def counted(count: int, depths: Sequence[int], every_split: bool, heuristics: bool) -> Counter[str]:
    """Return how often each verdict occurs among some instances."""
    warnings.simplefilter("ignore")
    config = Config.preset("default") if heuristics else BARE
    with tempfile.TemporaryDirectory() as folder:
        return Counter(verdict(number, depths, every_split, config, Path(folder)) for number in range(count))


# ---------------------------------------------------------------- faults


class FaultError(Exception):
    """A fault could not be planted or run."""


def planted(fault: Planted | None, tree: Path) -> None:
    """Copy the library into a folder and plant a fault; None plants nothing."""
    shutil.copytree(ROOT / "accel_oct", tree / "accel_oct", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("accel_oct_checker.py", "hatch_build.py"):
        shutil.copy2(ROOT / name, tree / name)
    if fault is None:
        return
    path = tree / fault.file
    text = path.read_text(encoding="utf-8")
    for old, new in fault.texts:
        if old not in text:
            raise FaultError(f"{fault.file} has no {old!r}: the fault {fault.name!r} must be written anew")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    if fault.is_native:
        compiler = {"CXX": "g++"} if shutil.which("g++") else {}
        command = [sys.executable, "hatch_build.py", "--quick"]
        done = subprocess.run(command, cwd=tree, env=compiler | os.environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FaultError(f"the fault {fault.name!r} does not compile: {done.stderr[-1000:]}")


def tried(fault: Planted | None, count: int, depths: Sequence[int] = (3, 4), every_split: bool = False) -> Counter[str]:
    """Return the verdicts on some instances with a fault; without one, for depths and kind as given."""
    depths, every_split = (depths, every_split) if fault is None else (fault.depths, fault.every_split)
    heuristics = fault is not None and fault.heuristics
    with tempfile.TemporaryDirectory() as folder:
        planted(fault, Path(folder))
        given = json.dumps([count, list(depths), every_split, heuristics])
        command = [sys.executable, "-m", "programs.wrong_solvers", "--count-verdicts", given]
        paths = [folder, str(ROOT / "tests"), str(ROOT / "backends")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FaultError(f"the run ended with {done.returncode}: {done.stderr[-2000:]}")
    return Counter(json.loads(done.stdout.splitlines()[-1]))


HEAD = (
    "fault",
    "instances",
    "wrong optima",
    "refused",
    "not written",
    "accepted though wrong",
    "right optima, accepted",
    "right optima, refused or not written",
    "no claim",
)


def line(name: str, found: Counter[str]) -> tuple[str | int, ...]:
    """Return a line of the table."""
    wrong = sum(number for answer, number in found.items() if answer.startswith("wrong"))
    return (
        name,
        found.total(),
        wrong,
        found["wrong, refused"],
        found["wrong, not written"],
        found["wrong, accepted"],
        found["right, accepted"],
        found["right, refused"] + found["right, not written"],
        found["failed"] + found["no claim"],
    )


def lines(faults: Sequence[Planted], count: int) -> Iterator[tuple[str | int, ...]]:
    for fault in faults:
        began = time.perf_counter()
        yield line(fault.name, tried(fault, count))
        print(f"{fault.name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--count", type=int, default=200, help="instances per fault")
    parser.add_argument("--only", default="", help="part of the names of faults")
    parser.add_argument("--count-verdicts", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.count_verdicts is not None:
        print(json.dumps(counted(*json.loads(given.count_verdicts))))
        return 0
    print(f"| {' | '.join(HEAD)} |\n| --- |{' ---: |' * (len(HEAD) - 1)}")
    good = True
    for row in lines([fault for fault in FAULTS if given.only in fault.name], given.count):
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        good = good and row[2] != 0 and row[5] == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
