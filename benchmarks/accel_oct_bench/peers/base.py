"""The interface of adapters of other packages.

An adapter fits the package on the same columns and class indices as our own solver, and returns its tree. Suites have
binary columns; studies also give tables of numbers to the packages that take them. The
objective of the row, accuracy minus the penalty per leaf, is computed here from that tree and the data. Leaves are
counted in the tree as the package returned it; nothing is pruned or merged. A proof or a bound of the package is kept
as its claim.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import AccelOctError
from accel_oct.tree import DecisionTree

__all__ = [
    "FOREVER",
    "Answer",
    "Look",
    "Nested",
    "Peer",
    "PeerError",
    "Problem",
    "measured",
    "nested_of_arrays",
    "nested_of_paths",
    "quiet",
    "routed",
    "tree_of",
]

#: A tree as plain values: a class index, (feature, where it is 0, where it is 1), or (feature, threshold, where it is
#: at most the threshold, where it is above).
Nested = Any
#: Seconds of a week, for packages whose time limit must be a number.
FOREVER = 604_800.0
#: Packages add up the floats of their bounds in another order.
TOLERANCE = 1e-9
#: Some keep the value of the tree that they prove in single precision.
SINGLE = 1e-6


class PeerError(AccelOctError):
    """Another package is not installed, cannot take the problem, or did not return a tree."""


@dataclass(frozen=True)
class Problem:
    """An instance as peers receive it.

    Attributes
    ----------
    X : array (n_samples, n_features)
        bool, or floats without missing values for peers that take numbers.
    y : int array
        Class indices in the sorted order of the labels.
    max_depth : int or None
        None, no limit, for peers that have none.
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    max_depth: int | None
    leaf_penalty: float
    threads: int = 1
    time_limit: float | None = None
    seed: int = 0

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @property
    def depth_limit(self) -> int:
        """The depth, for packages that need one.

        Raises
        ------
        PeerError
            If there is none.
        """
        if self.max_depth is None:
            raise PeerError("it needs a depth limit")
        return self.max_depth

    @property
    def seconds(self) -> float:
        """The time limit, or `FOREVER`."""
        return FOREVER if self.time_limit is None else self.time_limit


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
        Its upper bound on our objective, if it has one; of a finished search the value that it claims for its tree.
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
    numbers : bool
        Whether it takes numbers as they are, with all thresholds.
    limits_depth : bool
        Whether it takes a depth limit; otherwise its tree may be too deep, which is an error in the row.
    prices : bool
        Whether it minimises errors plus a penalty per leaf; otherwise a proof counts only where the penalty is 0.
    proves : bool
        Whether it claims that trees are optimal.
    """

    name: str
    package: str
    modules: tuple[str, ...]
    fit: Callable[[Problem], Look]
    meaning: str
    numbers: bool = False
    limits_depth: bool = True
    prices: bool = True
    proves: bool = True

    def claims(self, leaf_penalty: float) -> bool:
        """Return whether a finished search of it is a proof for our objective."""
        return self.proves and (self.prices or leaf_penalty == 0)

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
    if problem.X.dtype != np.bool_ and not peer.numbers:
        return row | {"error": f"{peer.name}: it takes columns of 0 and 1 only"}
    try:
        peer.load()
    except PeerError as error:
        return row | {"error": str(error)}
    with quiet():
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
    predicted, n_leaves, depth = routed(answer.tree, problem.X)
    if problem.max_depth is not None and depth > problem.max_depth:
        raise PeerError(f"its tree has depth {depth}, {problem.max_depth} was asked for")
    if answer.predicted is not None and not np.array_equal(predicted, np.asarray(answer.predicted)):
        raise PeerError("its predictions are not those of the tree that it gives")
    objective = float(np.mean(predicted == problem.y)) - problem.leaf_penalty * n_leaves
    proven = answer.finished and peer.claims(problem.leaf_penalty)
    bound = (
        objective if proven else None if answer.finished else answer.bound
    )  # what it finished may be another problem
    if proven and answer.bound is not None and abs(answer.bound - objective) > SINGLE:
        stats["claimed_bound"] = answer.bound  # it is not the value of the tree of the package
    if bound is not None and bound < objective:
        if bound < objective - TOLERANCE:
            stats["claimed_bound"] = bound  # it contradicts the tree of the package
        bound = objective
    gap = None if bound is None else (bound - objective) / max(abs(objective), 1e-12)
    return {
        "status": "optimal" if proven else "time_limit" if answer.timed_out else "finished",
        "objective": objective,
        "bound": bound,
        "gap": gap,
        "n_leaves": n_leaves,
        "tree": _stored(answer.tree, problem),
        "stats": stats,
    }


def routed(tree: Nested, X: NDArray[Any]) -> tuple[NDArray[np.int64], int, int]:
    """Return the class indices that a tree predicts, the number of its leaves, and its depth."""
    if isinstance(tree, DecisionTree):
        return tree.predict(X), tree.n_leaves, tree.depth
    predicted = np.empty(len(X), dtype=np.int64)
    return predicted, *_route(tree, X, np.arange(len(X)), predicted)


def _route(tree: Nested, X: NDArray[Any], rows: NDArray[np.intp], predicted: NDArray[np.int64]) -> tuple[int, int]:
    """Write the classes of some rows; return leaves and depth."""
    if not isinstance(tree, tuple):
        predicted[rows] = int(tree)
        return 1, 0
    feature, *threshold, low, high = tree
    above = X[rows, feature] > (threshold[0] if threshold else 0.5)
    low_leaves, low_depth = _route(low, X, rows[~above], predicted)
    high_leaves, high_depth = _route(high, X, rows[above], predicted)
    return low_leaves + high_leaves, 1 + max(low_depth, high_depth)


def _stored(tree: Nested, problem: Problem) -> dict[str, Any] | None:
    """Return the tree as rows keep it; rows have no form for thresholds on numbers."""
    if problem.X.dtype != np.bool_:
        return None
    kept = tree_of(tree)
    return (kept if problem.max_depth is None else kept.with_max_depth(problem.max_depth)).to_dict()


def tree_of(nested: Nested) -> DecisionTree:
    """Convert a nested tree over columns of 0 and 1 to a `DecisionTree`; one that is a `DecisionTree` is returned."""
    if isinstance(nested, DecisionTree):
        return nested
    if not isinstance(nested, tuple):
        return DecisionTree.leaf(int(nested))
    feature, *threshold, zero, one = nested
    if threshold and not 0.0 <= float(threshold[0]) < 1.0:
        raise ValueError(f"a threshold of {threshold[0]} on a column of 0 and 1")  # it splits nothing off
    return DecisionTree.branch(int(feature), tree_of(zero), tree_of(one))


def nested_of_arrays(fitted: Any, label: Callable[[int], int], node: int = 0) -> Nested:
    """Return a tree that is stored in scikit-learn's arrays; `label` gives the class of a leaf by its index."""
    low, high = int(fitted.children_left[node]), int(fitted.children_right[node])
    if low < 0:
        return label(node)
    split = int(fitted.feature[node]), float(fitted.threshold[node])
    return *split, nested_of_arrays(fitted, label, low), nested_of_arrays(fitted, label, high)


def nested_of_paths(paths: Sequence[Sequence[int]], labels: Sequence[int]) -> Nested:
    """Return a tree from the paths to its leaves: entry f is column f - 1 being 1, entry -f the same column being 0."""
    if not paths[0]:
        (label,) = labels
        return int(label)
    feature = abs(int(paths[0][0]))
    sides: dict[int, tuple[list[Sequence[int]], list[int]]] = {-feature: ([], []), feature: ([], [])}
    for (first, *rest), label in zip(paths, labels, strict=True):
        sides[int(first)][0].append(rest)
        sides[int(first)][1].append(label)
    return feature - 1, nested_of_paths(*sides[-feature]), nested_of_paths(*sides[feature])


@contextmanager
def quiet() -> Iterator[None]:
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
