"""The interface of adapters of other packages.

An adapter fits the package on the same binary columns and class indices as our own solver, and returns its tree. The
objective of the row, accuracy minus the penalty per leaf, is computed here from that tree and the data. Leaves are
counted in the tree as the package returned it; nothing is pruned or merged. A proof or a bound of the package is kept
as its claim.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import AccelOctError
from accel_oct.tree import DecisionTree

__all__ = ["Answer", "Look", "Nested", "Peer", "PeerError", "Problem", "measured", "tree_of"]

#: A tree as plain values: a class index, or (feature, where it is 0, where it is 1).
Nested = Any
#: Packages add up the floats of their bounds in another order.
TOLERANCE = 1e-9


class PeerError(AccelOctError):
    """Another package is not installed, cannot take the problem, or did not return a tree."""


@dataclass(frozen=True)
class Problem:
    """An instance as peers receive it.

    Attributes
    ----------
    X : bool array (n_samples, n_features)
    y : int array
        Class indices in the sorted order of the labels.
    """

    X: NDArray[np.bool_]
    y: NDArray[np.int64]
    max_depth: int
    leaf_penalty: float
    threads: int = 1
    time_limit: float | None = None
    seed: int = 0

    @property
    def n_samples(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Answer:
    """A tree, and the claims of the package about it.

    Attributes
    ----------
    tree : nested tree, or None
        None if there is no tree.
    predicted : int array, or None
        Class indices by the package's own `predict`, to check the tree against.
    finished : bool
        Whether the package claims that the tree is optimal for our objective.
    timed_out : bool
        Whether it reached the time limit. If neither is set, it ended by itself without a claim, as CART does.
    bound : float, or None
        Its upper bound on our objective, if it has one.
    note : str
        For the statistics of the row.
    """

    tree: Nested = None
    predicted: Any = None
    finished: bool = False
    timed_out: bool = False
    bound: float | None = None
    note: str = ""


#: Reads the answer from a fitted model, after the clock was stopped.
Look = Callable[[], Answer]


@dataclass(frozen=True)
class Peer:
    """Another package.

    Attributes
    ----------
    name : str
        The name in suites.
    package : str
        The distribution.
    modules : tuple of str
        Modules that are imported before the clock starts.
    fit : callable
        From a `Problem` to a function that reads the answer; only `fit` is measured.
    meaning : str
        How the meaning of its parameters differs from ours, and how they are set here.
    """

    name: str
    package: str
    modules: tuple[str, ...]
    fit: Callable[[Problem], Look]
    meaning: str

    def load(self) -> None:
        """Import it.

        Raises
        ------
        PeerError
            If it is not installed or does not load.
        """
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise PeerError(f"{self.name} is not installed: pip install {self.package} ({error})") from None
            except Exception as error:
                raise PeerError(f"{self.name} does not load: {_sentence(error)}") from None


def measured(peer: Peer, problem: Problem) -> dict[str, Any]:
    """Fit a peer and return the fields of its row; an error of the package becomes a sentence in the row.

    Returns
    -------
    dict
        status, objective, bound, gap, n_leaves, tree, cpu_seconds, wall_seconds, nodes, stats, error.
    """
    row: dict[str, Any] = dict.fromkeys(("objective", "bound", "gap", "n_leaves", "tree", "predictions", "error"))
    row |= {"status": "error", "cpu_seconds": 0.0, "wall_seconds": 0.0, "nodes": 0, "stats": {}}
    try:
        peer.load()
    except PeerError as error:
        return row | {"error": str(error)}
    with _quiet():
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            look = peer.fit(problem)
        except Exception as error:
            return row | _seconds(wall, cpu) | {"error": f"{peer.name}: {_sentence(error)}"}
        row |= _seconds(wall, cpu)
        try:
            answer = look()
            return row | _judged(peer, problem, answer, row["wall_seconds"])
        except Exception as error:
            return row | {"error": f"{peer.name}: {_sentence(error)}"}


def _seconds(wall: float, cpu: float) -> dict[str, float]:
    return {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def _judged(peer: Peer, problem: Problem, answer: Answer, seconds: float) -> dict[str, Any]:
    stats: dict[str, Any] = {"note": answer.note} if answer.note else {}
    if answer.tree is None:
        late = answer.timed_out or (problem.time_limit is not None and seconds >= problem.time_limit)
        status, error = ("time_limit", "no tree within the time limit") if late else ("error", "no tree")
        return {"status": status, "stats": stats, "bound": answer.bound, "error": f"{peer.name}: {error}"}
    tree = tree_of(answer.tree)
    if tree.depth > problem.max_depth:
        raise PeerError(f"its tree has depth {tree.depth}, {problem.max_depth} was asked for")
    predicted = tree.predict(problem.X)
    if answer.predicted is not None and not np.array_equal(predicted, np.asarray(answer.predicted)):
        raise PeerError("its predictions are not those of the tree that it gives")
    objective = float(np.mean(predicted == problem.y)) - problem.leaf_penalty * tree.n_leaves
    bound = objective if answer.finished else answer.bound
    if bound is not None and bound < objective:
        if bound < objective - TOLERANCE:
            stats["claimed_bound"] = bound  # it contradicts the tree of the package
        bound = objective
    gap = None if bound is None else (bound - objective) / max(abs(objective), 1e-12)
    return {
        "status": "optimal" if answer.finished else "time_limit" if answer.timed_out else "finished",
        "objective": objective,
        "bound": bound,
        "gap": gap,
        "n_leaves": tree.n_leaves,
        "tree": tree.with_max_depth(problem.max_depth).to_dict(),
        "stats": stats,
    }


def tree_of(nested: Nested) -> DecisionTree:
    """Convert a nested tree to a `DecisionTree`; one that is a `DecisionTree` already is returned."""
    if isinstance(nested, DecisionTree):
        return nested
    if isinstance(nested, tuple):
        feature, zero, one = nested
        return DecisionTree.branch(int(feature), tree_of(zero), tree_of(one))
    return DecisionTree.leaf(int(nested))


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard what packages print, from Python and from native code."""
    with redirect_stdout(StringIO()), open(os.devnull, "wb") as nowhere:
        kept = os.dup(1)
        try:
            os.dup2(nowhere.fileno(), 1)
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _sentence(error: BaseException) -> str:
    """One line of at most 300 characters."""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}"[:300]
