"""The public function."""

from __future__ import annotations

import math
import operator
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from accel_oct.constraints.tallied import tallied_trees
from accel_oct.data import BinaryDataset, Tally
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact.coded import Coded
from accel_oct.exact.near_optimal_search import NearOptimalSearch
from accel_oct.exact.point_counting import CountingProblem
from accel_oct.exact.stopping import DEFAULT_MEMORY_LIMIT, Stopper
from accel_oct.exact.tally_counting import TallyCounting
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.near_optimal.setting import Setting
from accel_oct.near_optimal.trees import Counts, NearOptimalStatus, NearOptimalTrees
from accel_oct.objectives import Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.activity import Figure, Teller, Watcher, activity_listener
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.tallied import checked_tally, refuse_beside_tally
from accel_oct.support.arguments import checked_depth
from accel_oct.support.interrupts import run_interruptibly
from accel_oct.tree import DecisionTree


class NearOptimalProgress(NamedTuple):
    """How far the search has come: seconds, trees that were listed, trees that there are at least."""

    seconds: float
    listed: int
    at_least: int


def near_optimal(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalty: float,
    within: float,
    limit: int | None = 1000,
    labels: str = "any",
    sources: Sequence[str] | None = None,
    sample_weight: Any = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    time_limit: float | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Callable[[NearOptimalProgress], None] | None = None,
    as_model: Callable[[DecisionTree, float, float], Any] | None = None,
    splits: str = "",
) -> NearOptimalTrees:
    """All trees that are almost as good as the best one: how many there are, and the first of them.

    The objective is that of `accel_oct.solve`: ``(weight classified correctly) / (total weight) - leaf_penalty *
    (number of leaves)``. Counted are the trees of depth at most `max_depth` with an objective of at least the optimum
    minus `within`.

    *What a tree is here.* A feature at each branch node and a class at each leaf, any class and not only the heaviest.
    Every split separates the samples that reach it: neither side is empty, and samples of weight zero do not count. No
    two sibling leaves have the same class, for their split would be superfluous. Two trees are the same if they have
    the same features and classes in the same places: trees that predict alike may differ (see
    `NearOptimalTrees.by_predictions`), and equal or complementary columns are different features, each with trees of
    its own.

    *Tolerance.* Objectives are compared exactly, on the grid of weights of `BinaryDataset`; `within` is enlarged by
    1e-9, the tolerance of every proof of this library, so that ``within=0.01`` of 100 samples includes the loss of one.

    *Order.* Best objective first, then fewer leaves; then by the feature of the root, then by the zero side's place in
    the same order on its own samples, then the one side's. Of two leaves of equal weight the smaller class index comes
    first.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`; a `Tally` for accuracy alone.
    max_depth : int
        Up to 4 fast on data of any usual size; deeper as time allows.
    leaf_penalty : float
    within : float
        In units of the objective: 0.01 is one point of accuracy, infinity is all trees.
    limit : int or None
        How many trees are listed, best first; counting does not depend on it. None lists all, as far as the memory
        limit allows: `complete` says whether they are all there.
    labels : {"any", "best"}
        "best" has only trees with the heaviest class in each leaf, the smallest class index of equal ones.
    sources : sequence of str, optional
        One name per feature: the column of the raw table that it was made from; by default what the data know. For
        `NearOptimalTree.columns` and `NearOptimalTrees.importance`.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio. `within` and `leaf_penalty` are in its units.
    solver : Solver or str
        As for `accel_oct.solve`. Its threads are used; no backend runs.
    time_limit : float, optional
        Seconds; what is there by then is returned, with status "time_limit".
    memory_limit : int
        Bytes for each of: tables of best values, what is counted, what is listed. Status "memory_limit" says that it
        was not enough to count all trees, or to list those that were asked for.
    progress : callable (NearOptimalProgress), optional
        Called now and then, from the thread that works. A `Watcher` gets an `Activity` instead.
    as_model : callable (tree, objective, optimum), optional
        What `NearOptimalTrees.model` makes of a tree; `OptimalTreeClassifier.near_optimal` gives one.
    splits : str
        For the summary: what the columns of X are, where they are a choice of all splits of a table.

    Returns
    -------
    NearOptimalTrees

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    """
    began = time.perf_counter()
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth)
    if isinstance(X, Tally):
        refuse_beside_tally(y=y, sample_weight=sample_weight, objective=objective)
        setting = _of_tally(X, leaf_penalty, max_depth, sources)
    else:
        score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
        if isinstance(score, RatioScore):
            raise InvalidInputError(f"objective: near-optimal trees of {score.name}, a ratio, cannot be found")
        setting = Setting.of(score, leaf_penalty, checked_depth(max_depth), sources)
    setting = replace(setting, as_model=as_model, splits=splits)
    slack = _number(within, "within")
    if labels not in ("any", "best"):
        raise InvalidInputError(f"labels must be 'any' or 'best', got {shown(labels)}")
    most, memory = _limit(limit, "limit"), _limit(memory_limit, "memory_limit")
    if memory is None:
        raise InvalidInputError("memory_limit must be a whole number of bytes, got None")
    seconds = None if time_limit is None else _number(time_limit, "time_limit")
    usable = usable_threads(as_solver(solver).n_threads)
    interrupted = threading.Event()
    deadline = None if seconds is None else time.monotonic() + max(0.0, seconds - (time.perf_counter() - began))
    figures: dict[str, Figure] = {}
    watched = activity_listener(progress) is not None
    rows = None if watched else progress
    teller = Teller(cast(Watcher, progress) if watched else None, lambda: time.perf_counter() - began)
    teller.begin("near-optimal trees", lambda: ("", dict(figures)))
    stopper = Stopper(deadline, teller.beating(interrupted.is_set))

    def report(listed: int, at_least: int) -> None:
        figures.update({"listed": listed, "counted": at_least})
        if rows is not None:
            rows(NearOptimalProgress(time.perf_counter() - began, listed, at_least))

    search = _search(setting, slack, labels, stopper, usable, memory, report)
    run_interruptibly(lambda: search.run(most), interrupted.set)
    found = search.found
    status: NearOptimalStatus = "finished" if found.ended == "stopped" else found.ended
    if found.ended == "stopped":
        status = "interrupted" if interrupted.is_set() else "time_limit"
    trees = NearOptimalTrees(
        setting,
        found.trees,
        optimum=None,
        within=slack,
        counts=Counts(found.count, found.counted, found.by_leaves if found.counted else None),
        complete=found.complete,
        status=status,
        seconds=time.perf_counter() - began,
    )
    if len(trees):
        trees.optimum = trees[0].objective
    report(len(trees), trees.at_least)
    teller.doing("")
    return trees


def _of_tally(tally: Tally, leaf_penalty: Any, max_depth: int, sources: Any) -> Setting:
    depth = checked_tally(tally, max_depth)
    return Setting.of_tally(tallied_trees(tally), leaf_penalty, depth, sources)


def _search(
    setting: Setting,
    within: float,
    labels: str,
    stopper: Stopper,
    threads: int,
    memory_limit: int,
    report: Callable[[int, int], None],
) -> NearOptimalSearch:
    slack = within * setting.score.norm + PROOF_TOLERANCE * setting.score.rows.total_weight
    numbers = setting.leaf_price, setting.max_depth, slack, labels == "any"
    problem: Coded
    if setting.tallied is not None:
        problem = TallyCounting.of(setting.tallied, *numbers)
    else:
        problem = CountingProblem.of(setting.X, setting.gains, *numbers)
    return NearOptimalSearch(
        problem, should_stop=stopper, threads=threads, memory_limit=memory_limit, on_progress=report
    )


def _number(value: Any, argument: str) -> float:
    """Not negative, maybe infinite."""
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 0:
        raise InvalidInputError(f"{argument} must be a number that is not negative, got {shown(value)}")
    return number


def _limit(value: Any, argument: str) -> int | None:
    """A whole number of at least one, or None."""
    if value is None:
        return None
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidInputError(f"{argument} must be a whole number of at least 1, got {shown(value)}")
    return number
