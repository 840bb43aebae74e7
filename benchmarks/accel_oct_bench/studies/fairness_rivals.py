"""Fair trees, side by side with STreeD and with ODTlearn's FairOCT, in one run.

    python -m accel_oct_bench.studies.fairness_rivals --data-dir FOLDER [--rivals streed odtlearn] [--only NAME ...]
        [--depths 2 3 4] [--columns 10 20] [--time-limit 60]

Data sets and groups are those of `studies.constraints`. Statistical parity and equal opportunity, at most 0.01,
0.05 and 0.1, leaf penalty 0, one thread. ODTlearn's models must fit the licence that comes with gurobipy: depth 1
and 2, and of the four fairness sets as many evenly spaced rows as fit (109 and 46), with the first 10 and
the first 20 columns that vary on them: with more it needs longer, and proves less.

Measured is the call of `solve` or `fit`, with data in memory, after a first call on something small, so that loading
code does not count. The rivals run in another process, which is killed GRACE seconds after the limit.

Compared are the number of correct samples, counted from the predictions of each tree, and whether the tree keeps the
limit, in rational numbers; no figures of the solvers are used. The problems are the same:

* The limit is kept with equality. STreeD compares sums of floating-point rates with it and forgives nothing, so that
  it may refuse a tree which is exactly at the limit; we forgive 1e-9, and give STreeD the limit plus 1e-9. Gurobi
  forgives 1e-6.
* Positive is the second class. STreeD's sensitive column is the first, and it does not split on it.
* A group without a positive sample has no rate of opportunity. We leave it out, STreeD divides by zero; such sets
  (hepatitis_QB_5) are asked for parity only.
* With penalty 0 all count misclassified samples. Neither STreeD's `max_num_nodes` (by default what the depth allows)
  nor its `min_leaf_node_size` (1) excludes a best tree; ODTlearn's `_lambda` is 0.

Where both say "optimal", the numbers should be equal. They are not always: STreeD calls trees optimal that are not.
In its source a partial solution is dropped for another one that is as good to within 1e-4 in both rates (one of
adult's samples is less than that), and there is more, as it happens on tables of six rows:

    group, x1 x2 x3 and y: 0 000 0, 1 111 1, 0 000 0, 1 100 1, 0 010 1, 0 011 1

Depth 2, equal opportunity at most 0.05: STreeD 1.4.0 answers 4 correct and "optimal" (at most 1, no limit at all:
5), but "x1 or x2" has 6. So "ours better" means: our tree satisfies the limit and has more correct samples.
"ours worse" would be an error of ours, and makes this program fail.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from importlib import metadata
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import accel_oct
from accel_oct.constraints import EqualOpportunity, StatisticalParity
from accel_oct_bench.studies.common import MarkdownTable, parser_of
from accel_oct_bench.studies.constraints import FAIRNESS, LIMITS, tables
from accel_oct_bench.studies.rival_calls import Answer, Worker, missing, most_rows, odtlearn, streed

KINDS = {"parity": StatisticalParity, "opportunity": EqualOpportunity}
RIVALS = {"streed": (streed, "pystreed"), "odtlearn": (odtlearn, "odtlearn")}
#: What we want at most of our time over the rival's: STreeD at depth 3, ODTlearn everywhere.
GOALS = {"streed": 0.05, "odtlearn": 0.01}


class Problem(NamedTuple):
    name: str
    group: Any
    X: Any
    y: Any
    constraint: str
    limit: float
    depth: int
    part: str


class Row(NamedTuple):
    """One problem: both answers, and the correct samples of each, None where the tree breaks the limit or is none."""

    problem: Problem
    ours: Answer
    theirs: Answer
    correct: tuple[int | None, int | None]

    @property
    def ratio(self) -> float:
        return self.ours.seconds / self.theirs.seconds

    @property
    def verdict(self) -> str:
        ours, theirs = self.correct
        if ours is None:
            return "ours worse"
        if theirs is None:
            return "theirs breaks the limit" if len(self.theirs.predicted) else "theirs has no tree"
        if ours > theirs:
            return "ours better"
        if ours == theirs:
            return "equal"
        return "ours worse" if self.ours.status == "optimal" else "not proven, theirs ahead"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rivals", nargs="*", choices=list(RIVALS), default=list(RIVALS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--depths", nargs="*", type=int, default=[2, 3, 4], help="for STreeD")
    parser.add_argument("--columns", nargs="*", type=int, default=[10, 20], help="for ODTlearn")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solve")
    options = parser.parse_args()
    wrong = 0
    for rival in options.rivals:
        call, package = RIVALS[rival]
        lacking = [name for name in (package, *(["gurobipy"] if rival == "odtlearn" else [])) if missing(name)]
        if lacking:
            print(f"{rival} is left out: install {' and '.join(lacking)} (pip install 'accel-oct-bench[rivals]').")
            continue
        print(f"## {rival} ({package} {metadata.version(package)}), {options.time_limit:g} s each\n")
        rows = compare(problems(rival, options), Worker(call), options.time_limit)
        print_summary(rival, rows)
        wrong += sum(row.verdict == "ours worse" for row in rows)
    if wrong:
        raise SystemExit(f"{wrong} answers of ours are wrong")


def problems(rival: str, options: argparse.Namespace) -> Iterator[Problem]:
    """Yield every set at every depth; for ODTlearn some rows and columns of the fairness sets."""
    if rival == "streed":
        for depth in options.depths:
            for name, group, X, y in tables(options.data_dir, options.only):
                yield from limited(name, group, X, y, depth, f"Depth {depth}")
        return
    for depth, columns in product((1, 2), options.columns):
        for name, group, X, y in tables(options.data_dir, options.only):
            if name in FAIRNESS:
                rows = np.unique(np.linspace(0, len(y) - 1, most_rows(depth)).astype(int))
                few = X[rows][:, np.flatnonzero(np.ptp(X[rows], axis=0))[:columns]]
                yield from limited(name, group[rows], few, y[rows], depth, f"Depth {depth}, {columns} columns")


def limited(name: str, group: Any, X: Any, y: Any, depth: int, part: str) -> Iterator[Problem]:
    """Yield both constraints at every limit, if both groups have a rate."""
    for constraint in KINDS:
        problem = Problem(name, group, X, np.unique(y, return_inverse=True)[1], constraint, 1.0, depth, part)
        if all(members.any() for members in compared(problem)):
            yield from (problem._replace(limit=limit) for limit in LIMITS)


def compared(problem: Problem) -> list[Any]:
    """Return the rows of either group whose predictions are compared."""
    counted = (problem.constraint == "parity") | (problem.y == 1)
    return [counted & (problem.group == value) for value in (0, 1)]


def compare(asked: Iterator[Problem], worker: Worker, time_limit: float) -> list[Row]:
    """Solve every problem by us and by the rival, in turn."""
    table = MarkdownTable(
        "data", "n x F", "depth", "constraint", "ours", "correct", "s", "theirs", "correct", "s", "ours / theirs", ""
    )
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 8))
    flips = rng.random((2, 400)) < 0.2
    for depth in (1, 2, 3, 4):  # loads all code before anything is measured
        solved(Problem("", X[:, 0] ^ flips[0], X, (X[:, 0] & X[:, 1]) ^ flips[1], "parity", 0.01, depth, ""), 60.0)
    rows = []
    for problem in asked:
        ours = at_the_limit(solved(problem, time_limit), time_limit)
        theirs = at_the_limit(worker.ask(*problem[1:-1], time_limit=time_limit), time_limit)
        rows.append(Row(problem, ours, theirs, (correct(problem, ours), correct(problem, theirs))))
        table.row(*cells(rows[-1]))
    worker.stop()
    return rows


def at_the_limit(answer: Answer, time_limit: float) -> Answer:
    """Count a time-out at the limit, however late it came."""
    return answer if answer.status == "optimal" else replace(answer, seconds=min(answer.seconds, time_limit))


def solved(problem: Problem, time_limit: float) -> Answer:
    constraint = KINDS[problem.constraint](problem.group, problem.limit)
    began = time.perf_counter()
    result = accel_oct.solve(
        problem.X,
        problem.y,
        max_depth=problem.depth,
        leaf_penalty=0.0,
        constraints=[constraint],
        time_limit=time_limit,
    )
    seconds = time.perf_counter() - began
    predicted = () if result.tree is None else result.tree.predictions(problem.X.astype(bool))
    return Answer(result.status, seconds, predicted)


def correct(problem: Problem, answer: Answer) -> int | None:
    """Return the correct samples of a tree that satisfies the limit; None otherwise."""
    if len(answer.predicted) == 0:
        return None
    one, other = (Fraction(int(answer.predicted[members].sum()), int(members.sum())) for members in compared(problem))
    if abs(one - other) > Fraction(str(problem.limit)):
        return None
    return int((answer.predicted == problem.y).sum())


def cells(row: Row) -> list[object]:
    problem = row.problem
    ours, theirs = ("none" if number is None else number for number in row.correct)
    n, features = problem.X.shape
    first = [problem.name, f"{n} x {features}", problem.depth, f"{problem.constraint} {problem.limit:g}"]
    both = [row.ours.status, ours, f"{row.ours.seconds:.3g}", row.theirs.status, theirs, f"{row.theirs.seconds:.3g}"]
    return [*first, *both, f"{row.ratio:.3g}", row.verdict]


def print_summary(rival: str, rows: list[Row]) -> None:
    """Print counts and means; time-outs count at the limit, crashes have no time and are left out of the means."""
    print()
    for part in dict.fromkeys(row.problem.part for row in rows):
        some = [row for row in rows if row.problem.part == part]
        both = [row for row in some if row.ours.status == row.theirs.status == "optimal"]
        verdicts = [row.verdict for row in both]
        timed = [row for row in some if np.isfinite(row.ratio)]
        long = [row for row in timed if row.theirs.seconds >= 1]
        print(
            f"{part}: of {len(some)} proven {sum(row.ours.status == 'optimal' for row in some)} by us, "
            f"{sum(row.theirs.status == 'optimal' for row in some)} by {rival} "
            f"({sum(row.theirs.status == 'crashed' for row in some)} crashed), {len(both)} by both; of these "
            f"{verdicts.count('equal')} equal, ours better {verdicts.count('ours better')}, ours worse "
            f"{verdicts.count('ours worse')}. Geometric mean of ours / theirs {mean(timed):.3g} (time-outs at the "
            f"limit), on the {len(long)} that take it a second or more {mean(long):.3g}; "
            f"goal {GOALS[rival]:g}{' at depth 3' if rival == 'streed' else ''}."
        )
    print()


def mean(rows: list[Row]) -> float:
    return float(np.exp(np.mean([np.log(row.ratio) for row in rows]))) if rows else float("nan")


if __name__ == "__main__":
    main()
