"""Optimal trees over every split: accel_oct beside the peers that take numbers, one thread each.

    python -m accel_oct_bench.studies.every_split --data-dir FOLDER --depths 2 3 none \
        --penalties 0.05 0.01 --time-limit 60

The peers are ConTree (pycontree), imodels' FastSmallTreeClassifier, and the ConTree of pytrees-rs, by branch and bound
and by limited discrepancy; those that are not installed are left out. FastSmallTreeClassifier has no depth limit and
runs where none is set, the others where there is one; those of pytrees-rs have no penalty and run where it is 0. Every
objective is recomputed from the tree that was returned; where two that say "optimal" differ, the run ends with an
error. Times are CPU seconds of `fit`, in one process, one after the other; of fits below 0.3 s the fastest of five.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.measurement import timed
from accel_oct_bench.peers import PEERS, Peer, PeerError, Problem, measured
from accel_oct_bench.studies.common import MarkdownTable, bundled_tables, parser_of, raw_sets

TOLERANCE = 1e-9


REPEATS, SHORT = 5, 0.3
"""Fits below SHORT seconds are repeated."""

NOTICEABLE = 0.05
"""Seconds of a peer from which on times are compared in the mean; below, starting up counts most."""


class Run(NamedTuple):
    """The outcome of a method on an instance; seconds are CPU seconds."""

    objective: float
    proven: bool
    seconds: float
    bound: float | None = None


def tables(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield tables of numbers without missing values: raw files, and those of scikit-learn."""
    seen = set()
    for name, _, X, labels in raw_sets(folder):
        try:
            numbers = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            continue
        if not np.isnan(numbers).any():
            seen.add(name)
            yield name, numbers, np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    yield from ((name, X, y) for name, X, y in bundled_tables() if name not in seen)


def ours(X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    model, spent = timed(lambda: OptimalTreeClassifier(depth, penalty, time_limit=limit).fit(X, y))
    value = model.score(X, y) - penalty * model.get_n_leaves()
    return Run(value, model.status_ == "optimal", spent.cpu, model.bound_)


def peer_run(peer: Peer, X: np.ndarray, y: np.ndarray, depth: int | None, penalty: float, limit: float) -> Run:
    """Return the outcome of a peer.

    Raises
    ------
    PeerError
        If it ended without a tree before the limit.
    """
    row = measured(peer, Problem(np.asarray(X, dtype=float), y.astype(np.int64), depth, penalty, time_limit=limit))
    if row["status"] == "time_limit" and row["objective"] is None:
        return Run(-np.inf, False, row["cpu_seconds"])
    if row["error"] is not None:
        raise PeerError(row["error"])
    return Run(row["objective"], row["status"] == "optimal", row["cpu_seconds"], row["bound"])


def takes(peer: Peer, depth: int | None, penalty: float) -> bool:
    """Return whether a peer solves the problem of this depth and penalty."""
    return peer.limits_depth == (depth is not None) and peer.claims(penalty)


def installed() -> dict[str, Peer]:
    """Return the peers that take numbers and are installed."""
    peers = {}
    for name, peer in PEERS.items():
        if not peer.numbers:
            continue
        try:
            peer.load()
            peers[name] = peer
        except PeerError as error:
            print(f"{error}: left out")
    return peers


def repeated(method: Callable[..., Run], *instance: Any) -> Run:
    """Return the fastest of several runs if the first one is short."""
    runs = [method(*instance)]
    while runs[-1].seconds < SHORT and len(runs) < REPEATS:
        runs.append(method(*instance))
    return min(runs, key=lambda run: run.seconds)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--depths", nargs="+", default=["2", "3", "4", "none"])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.05, 0.02, 0.01, 0.005, 0.0])
    parser.add_argument("--tables", nargs="+", default=None)
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = installed()
    methods: dict[str, Callable[..., Run]] = {"ours": ours}
    methods |= {name: partial(peer_run, peer) for name, peer in peers.items()}
    wanted = {name: partial(takes, peer) for name, peer in peers.items()}
    for name, method in methods.items():  # loads all code before anything is measured
        depth = 2 if name == "ours" or peers[name].limits_depth else None
        method(np.arange(8.0)[:, None], np.arange(8) // 4, depth, 0.05, 10.0)
    found: list[tuple[int | None, dict[str, Run]]] = []
    differing: list[str] = []
    columns = [text for name in methods for text in (name, "s")]
    table = MarkdownTable("table", "rows x columns", "depth", "penalty", *columns, words=2)
    for name, X, y in tables(arguments.data_dir):
        if arguments.tables and name not in arguments.tables:
            continue
        for depth in (None if text == "none" else int(text) for text in arguments.depths):
            for penalty in arguments.penalties:
                if depth is None and penalty == 0:
                    continue  # without a limit and without a penalty every tree that tells all rows apart is optimal
                runs = {
                    who: repeated(method, X, y, depth, penalty, arguments.time_limit)
                    for who, method in methods.items()
                    if who == "ours" or wanted[who](depth, penalty)
                }
                found.append((depth, runs))
                proven = {who: run.objective for who, run in runs.items() if run.proven}
                if proven and max(proven.values()) - min(proven.values()) > TOLERANCE:
                    values = ", ".join(f"{who} {value:.6f}" for who, value in proven.items())
                    differing.append(f"{name}, depth {depth}, penalty {penalty}: {values}")
                cells = [cell for who in methods for cell in _cells(runs.get(who))]
                table.row(name, f"{X.shape[0]} x {X.shape[1]}", depth, penalty, *cells)
    for depth in dict.fromkeys(depth for depth, _ in found):
        for peer in list(methods)[1:]:
            summarise(depth, peer, [runs for own, runs in found if own == depth and peer in runs])
    if differing:
        raise SystemExit("\n".join(["optimal trees differ:", *differing]))


def summarise(depth: int | None, peer: str, instances: list[dict[str, Run]]) -> None:
    """Print how many instances of a depth both proved, and their times."""
    if not instances:
        return
    proven = {who: sum(runs[who].proven for runs in instances) for who in ("ours", peer)}
    longer = [runs for runs in instances if runs[peer].seconds > NOTICEABLE]
    both = [runs for runs in instances if runs["ours"].proven and runs[peer].proven]
    slower = sum(runs["ours"].seconds > runs[peer].seconds for runs in both)
    print(
        f"depth {depth}, {peer}: {len(instances)} instances, proven {proven['ours']} by ours and {proven[peer]} by "
        f"{peer}. Our time over its time: {_mean_ratio(longer, peer)} on {len(longer)} where it takes more than "
        f"{NOTICEABLE} s, {_mean_ratio(both, peer)} on {len(both)} that both prove; ours is slower on {slower}."
    )


def _mean_ratio(instances: list[dict[str, Run]], peer: str) -> str:
    ratios = [runs["ours"].seconds / runs[peer].seconds for runs in instances]
    return f"{float(np.exp(np.mean(np.log(ratios)))):.3f} (worst {max(ratios):.2f})" if ratios else "-"


def _cells(run: Run | None) -> tuple[str, str]:
    if run is None:
        return "", ""
    gap = "" if run.proven else " (open)" if run.bound is None else f" (bound {run.bound:.4f})"
    return f"{run.objective:.4f}{gap}", f"{run.seconds:.3f}"


if __name__ == "__main__":
    main()
