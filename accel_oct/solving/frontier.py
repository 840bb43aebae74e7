"""Accuracy against size: the best tree for every number of leaves in one pass, and every leaf penalty read off it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.mip.options import usable_threads
from accel_oct.solving.config import SubtreeBoundConfig
from accel_oct.solving.proof import PROOF_TOLERANCE
from accel_oct.solving.result import HistoryRow, Progress, Result, Status
from accel_oct.subtree import FrontierTable, frontier_table
from accel_oct.support.arguments import checked_depth
from accel_oct.support.interrupts import run_interruptibly
from accel_oct.tree import DecisionTree


@dataclass(frozen=True)
class FrontierPoint:
    """The best tree with at most some number of leaves.

    Attributes
    ----------
    max_leaves : int
    accuracy : float
        Share of the weight that the tree classifies correctly.
    bound : float
        No tree with at most `max_leaves` leaves has a larger share.
    tree : DecisionTree
        May have fewer leaves, when more do not help.
    """

    max_leaves: int
    accuracy: float
    bound: float
    tree: DecisionTree

    @property
    def is_proven(self) -> bool:
        return self.bound == self.accuracy


class Frontier:
    """The best accuracy for every number of leaves up to ``2**max_depth``; made by `accel_oct.frontier`.

    Indexed by number of leaves, iterated from one leaf on; trees are rebuilt when they are asked for.

    Attributes
    ----------
    accuracies, bounds : float arrays
        Position h - 1 belongs to at most h leaves.
    status : {"optimal", "time_limit", "interrupted"}
        "optimal" when every point is proven.
    seconds : float
    """

    def __init__(self, dataset: BinaryDataset, table: FrontierTable, status: Status, seconds: float) -> None:
        self._dataset = dataset
        self._table = table
        self.status: Status = "optimal" if table.exact else status
        self.seconds = seconds
        self.accuracies = table.scores[1:] / dataset.total_weight
        self.bounds = table.upper_bounds[1:] / dataset.total_weight

    @property
    def max_depth(self) -> int:
        return self._table.max_depth

    @property
    def max_leaves(self) -> int:
        return len(self.accuracies)

    def __len__(self) -> int:
        return self.max_leaves

    def __iter__(self) -> Iterator[FrontierPoint]:
        return (self[leaves] for leaves in range(1, self.max_leaves + 1))

    def __getitem__(self, max_leaves: int) -> FrontierPoint:
        if not 1 <= max_leaves <= self.max_leaves:
            raise IndexError(f"the frontier knows 1 to {self.max_leaves} leaves, not {max_leaves}")
        position = max_leaves - 1
        return FrontierPoint(
            max_leaves, float(self.accuracies[position]), float(self.bounds[position]), self.tree(max_leaves)
        )

    def tree(self, max_leaves: int) -> DecisionTree:
        """The best tree known with at most that many leaves."""
        return self._table.tree(max_leaves)

    def best(self, leaf_penalty: float) -> Result:
        """The optimum of a leaf penalty."""
        began = time.perf_counter()
        dataset = self._dataset
        price = dataset.leaf_price(leaf_penalty)
        value, bound, leaves = self._table.best(price)
        total = dataset.total_weight
        proven = bound <= value + PROOF_TOLERANCE * total
        tree = self.tree(leaves)
        objective = tree.score(dataset) / total - float(leaf_penalty) * tree.n_leaves
        limit = objective if proven else max(bound / total, objective)
        return Result(
            found=tree,
            objective=objective,
            bound=limit,
            status="optimal" if proven else self.status,
            seconds=self.seconds + time.perf_counter() - began,
            nodes=0,
            backend="none",
            stats={"decided_by": "the frontier", "frontier_seconds": self.seconds},
            history=(HistoryRow(self.seconds, objective, limit),),
            feature_names=dataset.feature_names,
            class_names=dataset.class_names,
        )


def frontier(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    sample_weight: Any = None,
    time_limit: float | None = None,
    threads: int = 1,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
) -> Frontier:
    """The best tree for every number of leaves, each with its proof, in one pass.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`.
    max_depth : int
        Exact up to 4 on data of any usual size; deeper where time allows, else with valid bounds.
    time_limit : float, optional
        Seconds; what is not proven by then comes with a valid bound.
    threads : int
        At most as many as there are cores.
    memory_limit : int
        Bytes that the tables may take.
    progress : callable (HistoryRow), optional
        Called during deep searches and at the end, with accuracy and bound for the largest number of leaves.

    Returns
    -------
    Frontier
    """
    began = time.perf_counter()
    dataset = BinaryDataset.of(X, y, sample_weight)
    depth = checked_depth(max_depth)
    return _computed(dataset, depth, time_limit, threads, memory_limit, progress, began)


def _computed(
    dataset: BinaryDataset,
    max_depth: int,
    time_limit: float | None,
    threads: int,
    memory_limit: int,
    progress: Progress | None,
    began: float,
) -> Frontier:
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInputError(f"`time_limit` must be a number of seconds >= 0 or None, got {time_limit!r}")
    usable = usable_threads(threads)
    interrupted = threading.Event()
    merged = dataset.merged()
    tables: list[FrontierTable] = []
    total = dataset.total_weight

    def report(seconds: float, scores: Any, bounds: Any) -> None:
        if progress is not None:
            used = time.perf_counter() - began
            progress(HistoryRow(used, float(np.max(scores[1:])) / total, float(np.max(bounds[1:])) / total))

    def work() -> None:
        used = time.perf_counter() - began
        deadline = None if time_limit is None else time.monotonic() + max(time_limit - used, 0.0)
        tables.append(
            frontier_table(
                merged.X,
                merged.y,
                merged.weights,
                merged.n_classes,
                max_depth,
                threads=usable,
                memory_limit=memory_limit,
                deadline=deadline,
                should_stop=interrupted.is_set,
                progress=report if progress is not None else None,
            )
        )

    run_interruptibly(work, interrupted.set)
    report(0.0, tables[0].scores, tables[0].upper_bounds)
    status: Status = "interrupted" if interrupted.is_set() else "time_limit"
    return Frontier(dataset, tables[0], status, time.perf_counter() - began)


def solve_path(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalties: Iterable[float],
    sample_weight: Any = None,
    time_limit: float | None = None,
    threads: int = 1,
    memory_limit: int = SubtreeBoundConfig().memory_limit,
    progress: Progress | None = None,
) -> list[Result]:
    """The optimum of every leaf penalty, read off one `frontier`.

    Parameters are those of `frontier`; `leaf_penalties` in any order.

    Returns
    -------
    list of Result
        One per penalty, in the order given; `seconds` counts the shared pass in each.
    """
    penalties = [float(penalty) for penalty in _checked_iterable(leaf_penalties)]
    began = time.perf_counter()
    dataset = BinaryDataset.of(X, y, sample_weight)
    depth = checked_depth(max_depth)
    for penalty in penalties:
        dataset.leaf_price(penalty)  # refuses bad ones before any work is done
    table = _computed(dataset, depth, time_limit, threads, memory_limit, progress, began)
    return [table.best(penalty) for penalty in penalties]


def _checked_iterable(leaf_penalties: Any) -> Any:
    try:
        return list(leaf_penalties)
    except TypeError:
        raise InvalidInputError(f"`leaf_penalties` must be several numbers, got {leaf_penalties!r}") from None
