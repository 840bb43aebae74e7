"""Wrong claims of optimality: peers on small random tables whose optimum is known from trying all trees.

    python -m accel_oct_bench.studies.peer_claims [--count 300] [--seed 0] [--peers gosdt streed ...] [--time-limit 10]

`--count` tables of 0 and 1 and as many of numbers, with tied values, copied columns, repeated rows with other labels, 2
to 4 classes, depth 1 to 4 and penalties from 0 to 0.1, half of them 0 or a whole number of samples (one, of few). Each
peer gets the tables that it takes: one without a penalty gets penalty 0, one without a depth limit is compared with the
optimum over all depths. Leaves may have a single row everywhere. The optimum is computed here in exact integers, the
value of a tree from its predictions and its leaves; what it was claimed to be is not used.

A claim is wrong if the optimum is better by more than 1e-9. Those of at most 1e-4 are counted apart, since some peers
compute in single precision: a penalty of 0.0417 and one error of 24 differ by less. "only the tree" counts wrong claims
of which the value that the peer itself reports is the optimum, and its tree is not that good. Wrong claims of each peer
are made smaller (rows, columns, classes, depth, values) as long as they stay wrong by more than 1e-4, or by 1e-9 if no
claim of the peer is, and the smallest is printed. Every peer runs in a process of its own. Crashes, errors and calls
that had to be killed are counted; they claim nothing. Fairness and other constraints are not covered: see
`accel_oct_bench.studies.fairness_rivals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from accel_oct_bench.peers import PEERS, Peer, PeerError, Problem, measured
from accel_oct_bench.peers.pytrees import PRICED
from accel_oct_bench.studies.common import MarkdownTable, parser_of
from accel_oct_bench.studies.rival_calls import Answer, PeerAnswer, Worker

EXACT = 1e-9
#: Differences up to this may come from single precision or from a tolerance of the peer.
ROUNDING = 1e-4
#: Wrong claims per peer that are made smaller.
SHRUNK = 12

SUBJECTS: dict[str, Peer] = {name: peer for name, peer in {**PEERS, PRICED.name: PRICED}.items() if peer.proves}


@dataclass(frozen=True)
class Case:
    """A problem; no depth is no limit."""

    X: np.ndarray
    y: np.ndarray
    depth: int | None
    penalty: float

    @property
    def size(self) -> tuple[float, ...]:
        depth = 0 if self.depth is None else self.depth
        return self.X.size, len(self.y), len(set(self.y.tolist())), depth, len(f"{self.penalty:.12g}"), self.X.sum()

    def __str__(self) -> str:
        rows = self.X.astype(int).tolist() if self.X.dtype == bool else self.X.tolist()
        return f"X = {rows}, y = {self.y.tolist()}, max_depth = {self.depth}, leaf_penalty = {self.penalty!r}"


# ---------------------------------------------------------------- the optimum


def optimum(case: Case) -> float:
    """Return the largest accuracy minus penalty per leaf of a tree, by trying all."""
    n = len(case.y)
    price = Fraction(case.penalty) * n
    unit, cost = price.denominator, price.numerator
    classes = [_mask(case.y == label) for label in np.unique(case.y)]
    splits = {_mask(column <= value) for column in case.X.T for value in np.unique(column)[:-1]}

    @cache
    def best(rows: int, depth: int) -> int:
        found = max((rows & members).bit_count() for members in classes) * unit - cost
        for split in splits if depth else ():
            low, high = rows & split, rows & ~split
            if low and high:
                found = max(found, _below(low, depth) + _below(high, depth))
        return found

    def _below(rows: int, depth: int) -> int:
        return best(rows, min(depth - 1, rows.bit_count() - 1))  # more levels separate nothing

    return float(Fraction(best((1 << n) - 1, n - 1 if case.depth is None else min(case.depth, n - 1)), unit * n))


def _mask(rows: Any) -> int:
    return sum(1 << int(row) for row in np.flatnonzero(rows))


# ---------------------------------------------------------------- random tables


def cases(count: int, seed: int) -> Iterator[Case]:
    """Yield tables of 0 and 1 and of numbers in turn."""
    for number in range(count):
        for numeric in (False, True):
            rng = np.random.default_rng((seed, number, numeric))
            wide = not numeric and rng.random() < 0.3
            n = int(rng.integers(25, 61) if wide else rng.integers(4, 25))
            n_columns = int(rng.integers(6, 10) if wide else rng.integers(1, 4 if numeric else 6))
            X = rng.integers(0, int(rng.integers(2, 6)) if numeric else 2, (n, n_columns))
            kept = rng.integers(0, n, n // 3)
            X[: len(kept)] = X[kept]
            if n_columns > 1 and rng.random() < 0.3:
                X[:, -1] = X[:, 0] if rng.random() < 0.5 else X[:, 0].max() - X[:, 0]
            y = rng.integers(0, int(rng.integers(2, 5)), n)
            if rng.random() < 0.5:
                y = np.where(rng.random(n) < 0.2, y, (X[:, 0] > X.mean()) ^ (X[:, -1] > 0))
            if len(set(y.tolist())) < 2:
                y[0] += 1
            whole = int(rng.integers(0, max(1, n // 10) + 1)) / n
            penalty = whole if rng.random() < 0.5 else round(float(rng.uniform(0, 0.1)), 4)
            yield _clean(X.astype(float) if numeric else X.astype(bool), y, int(rng.integers(1, 5)), penalty)


def _clean(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float) -> Case:
    """Number the classes from 0 without gaps."""
    return Case(X, np.unique(y, return_inverse=True)[1].ravel().astype(np.int64), depth, penalty)


def for_peer(case: Case, peer: Peer) -> Case:
    """Return the problem that a peer is asked."""
    return replace(case, depth=case.depth if peer.limits_depth else None, penalty=case.penalty if peer.prices else 0.0)


def smaller(case: Case) -> Iterator[Case]:
    """Yield problems that are one step smaller."""
    X, y = case.X, case.y
    for row in range(len(y)):
        if len(set(np.delete(y, row).tolist())) > 1:
            yield _clean(np.delete(X, row, axis=0), np.delete(y, row), case.depth, case.penalty)
    for column in range(X.shape[1] if X.shape[1] > 1 else 0):
        yield replace(case, X=np.delete(X, column, axis=1))
    if case.depth is not None and case.depth > 1:
        yield replace(case, depth=case.depth - 1)
    for label in range(1, int(y.max()) + 1) if y.max() > 1 else ():
        yield _clean(X, np.where(y == label, 0, y), case.depth, case.penalty)
    for penalty in (0.0, round(case.penalty, 1), round(case.penalty, 2), round(case.penalty, 3)):
        if len(str(penalty)) < len(str(case.penalty)):
            yield replace(case, penalty=penalty)
    if X.dtype != bool:
        for row, column in zip(*np.nonzero(X), strict=True):
            lower = X.copy()
            lower[row, column] -= 1
            yield replace(case, X=lower)


def shrunk(case: Case, is_wrong: Callable[[Case], bool]) -> Case:
    """Return a problem that is wrong, and none that is one step smaller is."""
    while True:
        case_or_none = next((each for each in smaller(case) if is_wrong(each)), None)
        if case_or_none is None:
            return case
        case = case_or_none


# ---------------------------------------------------------------- peers


def claim(name: str, X: Any, y: Any, depth: int | None, penalty: float, time_limit: float) -> Answer:
    """Ask a peer, in the process of a `Worker`."""
    row = measured(SUBJECTS[name], Problem(X, y, depth, penalty, time_limit=time_limit))
    return PeerAnswer(row["status"], row["wall_seconds"], row=row)


@dataclass
class Tally:
    """What a peer answered; `wrong` has the shortfall of each wrong claim.

    `only_tree` counts those of which the value that the peer reports is the optimum.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[float, Case]] = field(default_factory=list)
    only_tree: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def beyond(self, least: float) -> list[tuple[float, Case]]:
        return [entry for entry in self.wrong if entry[0] > least]


class Subject:
    """A peer in a process of its own."""

    def __init__(self, name: str, time_limit: float) -> None:
        X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=bool)
        self.peer, self._name, self._limit = SUBJECTS[name], name, time_limit
        self._worker = Worker(
            claim, (name, X, X[:, 0].astype(np.int64), for_peer(Case(X, X, 1, 0.05), self.peer).depth, 0.05)
        )

    def takes(self, case: Case) -> bool:
        few = len(set(case.y.tolist())) == 2 or self._name != "treefarms"
        return few and (self.peer.numbers or case.X.dtype == bool)

    def shortfall(self, case: Case, tally: Tally | None = None) -> float:
        """Return how much better the optimum is than a tree that is claimed to be optimal, or 0 without a claim."""
        answer = self._worker.ask(self._name, case.X, case.y, case.depth, case.penalty, time_limit=self._limit)
        if tally is not None:
            tally.statuses[answer.status] += 1
            if isinstance(answer, PeerAnswer) and answer.status == "error":
                tally.errors[answer.row["error"]] += 1
        if not isinstance(answer, PeerAnswer) or answer.status != "optimal":
            return 0.0  # no claim, or killed
        best = optimum(case)
        short = float(best - answer.row["objective"])
        if tally is not None and short > EXACT:
            own = answer.row["stats"].get("claimed_bound")
            tally.only_tree += own is not None and abs(own - best) <= ROUNDING
        return short

    def stop(self) -> None:
        self._worker.stop()


def examined(name: str, tables: list[Case], time_limit: float) -> tuple[Tally, Case | None, float]:
    """Return what a peer answered, and its smallest wrong claim with its shortfall."""
    subject, tally = Subject(name, time_limit), Tally()
    try:
        for table in tables:
            case = for_peer(table, subject.peer)
            if subject.takes(case):
                short = subject.shortfall(case, tally)
                if short > EXACT:
                    tally.wrong.append((short, case))
        least = ROUNDING if tally.beyond(ROUNDING) else EXACT
        first = sorted((case for _, case in tally.beyond(least)), key=lambda case: case.size)[:SHRUNK]

        def is_wrong(case: Case) -> bool:
            return subject.takes(case) and subject.shortfall(case) > least

        smallest = min((shrunk(case, is_wrong) for case in first), key=lambda case: case.size, default=None)
        return tally, smallest, 0.0 if smallest is None else subject.shortfall(smallest)
    finally:
        subject.stop()


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", nargs="+", choices=sorted(SUBJECTS), default=list(SUBJECTS))
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args()
    tables = list(cases(options.count, options.seed))
    table = MarkdownTable(
        "peer",
        "version",
        "asked",
        "claims",
        "wrong",
        "by at most 1e-4",
        "only the tree",
        "largest",
        "no claim",
        "no answer",
        words=2,
    )
    found: list[tuple[str, Case | None, float, Tally]] = []
    for name in options.peers:
        try:
            SUBJECTS[name].load()
        except PeerError as error:
            print(f"{error}: left out")
            continue
        tally, smallest, short = examined(name, tables, options.time_limit)
        statuses = tally.statuses
        wrong, failed = len(tally.wrong), sum(statuses[each] for each in ("error", "crashed", "killed"))
        table.row(
            name,
            metadata.version(SUBJECTS[name].package.split()[0]),
            statuses.total(),
            statuses["optimal"],
            wrong,
            wrong - len(tally.beyond(ROUNDING)),
            tally.only_tree,
            f"{max((size for size, _ in tally.wrong), default=0.0):.2g}",
            statuses.total() - statuses["optimal"] - failed,
            failed,
        )
        found.append((name, smallest, short, tally))
    for name, smallest, short, tally in found:
        if smallest is not None:
            best = optimum(smallest)
            print(f"\n{name}: {smallest}\n  claimed optimal with {best - short:.6g}; the optimum is {best:.6g}")
        for sentence, times in tally.errors.most_common(3):
            print(f"\n{name}: {times} times {sentence}")


if __name__ == "__main__":
    main()
