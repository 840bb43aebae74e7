"""What an adapter of another package is written against.

An adapter fits the package on the binary columns and class indices that our own solver gets and hands back its tree.
Everything that a row of results says about quality is then computed here, from that tree and the data: accuracy
minus the penalty per leaf. Leaves are those of the tree as the package returned it; nothing is pruned or
merged in anybody's favour. What the package says about itself, a proof or a bound, is kept as its claim.
"""

from __future__ import annotations

import importlib
import importlib.metadata
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
#: Bounds that packages give are sums of floats in their own order.
TOLERANCE = 1e-9


class PeerError(AccelOctError):
    """Another package is not there, cannot take the problem, or gave back something that is no tree."""


@dataclass(frozen=True)
class Problem:
    """One instance as a peer gets it.

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
    """A tree and what the package claims about it.

    Attributes
    ----------
    tree : nested tree, or None
        None when there is no tree yet.
    predicted : int array, or None
        Class indices by the package's own `predict`, to check the tree against.
    finished : bool
        The package says that the tree is optimal for our objective.
    timed_out : bool
        Time was up. Neither of both: it ended by itself and claims nothing, as CART does.
    bound : float, or None
        Its upper bound on our objective, where it has one.
    note : str
        For the statistics of the row.
    """

    tree: Nested = None
    predicted: Any = None
    finished: bool = False
    timed_out: bool = False
    bound: float | None = None
    note: str = ""


#: Reads the answer off a fitted model, after the clock was stopped.
Look = Callable[[], Answer]


@dataclass(frozen=True)
class Peer:
    """Another package.

    Attributes
    ----------
    name : str
        What suites call it.
    package : str
        The distribution, for its version.
    modules : tuple of str
        What is imported before the clock starts.
    fit : callable
        From a `Problem` to a function that reads the answer; `fit` itself is measured, reading is not.
    meaning : str
        What its parameters mean differently from ours, and what was done about it.
    """

    name: str
    package: str
    modules: tuple[str, ...]
    fit: Callable[[Problem], Look]
    meaning: str

    def version(self) -> str | None:
        """The installed version; None where it is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def load(self) -> None:
        """Import it.

        Raises
        ------
        PeerError
            In a sentence, when it is not there or does not load.
        """
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise PeerError(f"{self.name} is not installed: pip install {self.package} ({error})") from None
            except Exception as error:
                raise PeerError(f"{self.name} does not load: {_sentence(error)}") from None


def measured(peer: Peer, problem: Problem) -> dict[str, Any]:
    """Fit a peer and return the fields of a row that it decides; errors of the package are rows with a sentence.

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
            stats["claimed_bound"] = bound  # kept, since it contradicts the package's own tree
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
    """A nested tree as our own; a `DecisionTree` stays what it is."""
    if isinstance(nested, DecisionTree):
        return nested
    if isinstance(nested, tuple):
        feature, zero, one = nested
        return DecisionTree.branch(int(feature), tree_of(zero), tree_of(one))
    return DecisionTree.leaf(int(nested))


@contextmanager
def _quiet() -> Iterator[None]:
    """Packages print, from Python and from native code: both are sent to nowhere meanwhile."""
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
