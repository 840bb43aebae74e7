"""Checks of rows that do not use the solver: each row alone, and rows against each other.

Objectives may differ by `TOLERANCE`: both sides are sums of floats, and the values of trees with different counts
differ by more (one sample of ten million is 1e-7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct_bench.data import EncodedData, Registry, fingerprint
from accel_oct_bench.rows import Row, run_label, unpacked_labels
from accel_oct_bench.verify.limits import Reached, UnknownLimitError, broken

__all__ = ["TOLERANCE", "BadTreeError", "Checked", "Finding", "check_one", "checked", "compared", "followed"]

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Finding:
    """A contradiction: its kind, the rows, and a sentence with the numbers."""

    kind: str
    rows: tuple[Row, ...]
    text: str

    def __str__(self) -> str:
        where = "\n    ".join(f"{row.key[:12]} {run_label(row.instance, row.method)}" for row in self.rows)
        return f"{self.kind}: {self.text}\n    {where}"


@dataclass
class Checked:
    """A row, and what was recomputed for it.

    Attributes
    ----------
    correct : int or None
        Samples that its tree classifies correctly; None without a tree.
    leaves : int
    holds : bool
        Whether the tree satisfies all limits of the instance that could be checked.
    findings : list of Finding
    notes : list of str
        What could not be checked, and why.
    """

    row: Row
    correct: int | None = None
    leaves: int = 0
    holds: bool = True
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def objective_at(self, leaf_penalty: float) -> float:
        """Return the recomputed objective of the stored tree at some penalty."""
        assert self.correct is not None
        return self.correct / self.row.instance.n_samples - leaf_penalty * self.leaves


def checked(rows: Iterable[Row], registry: Registry) -> list[Checked]:
    """Check each row alone; each data set is loaded once."""
    known: dict[str, EncodedData | str] = {}
    return [check_one(row, _loaded(row.instance.data, registry, known)) for row in rows]


def _loaded(name: str, registry: Registry, known: dict[str, EncodedData | str]) -> EncodedData | str:
    if name not in known:
        try:
            known[name] = registry.load(name)
        except AccelOctError as error:
            known[name] = str(error)
    return known[name]


def check_one(row: Row, data: EncodedData | str) -> Checked:
    """Check one row against its data; a text instead of data says why they are missing."""
    result = Checked(row)

    def found(kind: str, text: str) -> None:
        result.findings.append(Finding(kind, (row,), text))

    for kind, text in _figures(row):
        found(kind, text)
    if isinstance(data, str):
        result.notes.append(f"data not checked: {data}")
        return result
    if not _same_data(row, data, found):
        return result
    classes, y = np.unique(data.y, return_inverse=True)
    y = y.reshape(-1)
    if row.tree is not None:
        try:
            reached = followed(row.tree, data.X, y, classes.tolist(), data.group)
        except BadTreeError as error:
            found("tree", str(error))
            return result
        _against_tree(row, reached, result, found)
    elif row.predictions is not None:
        try:
            predicted = unpacked_labels(row.predictions, len(y))
        except InvalidInputError as error:
            found("predictions", str(error))
            return result
        result.correct, result.leaves = int((predicted == y).sum()), int(row.n_leaves or 1)
    if result.correct is not None:
        _objective(row, result, found)
    return result


def _figures(row: Row) -> Iterator[tuple[str, str]]:
    """Compare objective, bound, gap and status of a row."""
    objective, bound, gap = row.objective, row.bound, row.gap
    if row.status in ("optimal", "finished") and (objective is None or (row.tree is None and row.predictions is None)):
        yield "status", f"it says {row.status!r} without an objective or a tree"
    if row.status == "infeasible" and row.tree is not None:
        yield "status", "it says 'infeasible' and has a tree"
    if row.status == "infeasible" and not row.instance.constraints:
        yield "status", "it says 'infeasible' without constraints, which a single leaf would keep"
    if row.status == "optimal" and bound is None:
        yield "status", "it says 'optimal' without a bound"
    if objective is None or bound is None:
        return
    if objective > bound + TOLERANCE:
        yield "bound", f"objective {objective:.9f} is above bound {bound:.9f}"
    if row.status == "optimal" and bound > objective + TOLERANCE:
        yield "status", f"it says 'optimal' with objective {objective:.9f} and bound {bound:.9f}"
    expected = max(bound - objective, 0.0) / max(abs(objective), TOLERANCE)
    if gap is not None and abs(gap - expected) > 1e-6 * max(1.0, expected):
        yield "gap", f"it says {gap:.9f}, objective {objective:.9f} and bound {bound:.9f} make {expected:.9f}"


def _same_data(row: Row, data: EncodedData, found: Any) -> bool:
    it = row.instance
    here = (data.X.shape[0], data.X.shape[1], len(np.unique(data.y)))
    there = (it.n_samples, it.n_features, it.n_classes)
    if here != there:
        found("data", f"samples, features and classes are {here} here and {there} in the row")
        return False
    if fingerprint(data) != it.fingerprint:
        found("data", f"the fingerprint is {fingerprint(data)[:12]} here and {it.fingerprint[:12]} in the row")
        return False
    return True


def _against_tree(row: Row, reached: Reached, result: Checked, found: Any) -> None:
    result.correct, result.leaves = int((reached.predicted == reached.y).sum()), len(reached.leaves)
    depth = max(map(len, reached.paths))
    if depth > row.instance.max_depth:
        found("tree", f"its depth is {depth}, {row.instance.max_depth} was allowed")
        result.holds = False
    if row.n_leaves is not None and row.n_leaves != result.leaves:
        found("leaves", f"it says {row.n_leaves}, the tree has {result.leaves}")
    for text in row.instance.constraints:
        try:
            missed = broken(text, reached)
        except UnknownLimitError as error:
            result.notes.append(str(error))
            continue
        if missed:
            found("constraint", missed)
            result.holds = False


def _objective(row: Row, result: Checked, found: Any) -> None:
    real = result.objective_at(row.instance.leaf_penalty)
    if row.objective is None:
        found("objective", f"it says none, the tree has {real:.9f}")
    elif abs(row.objective - real) > TOLERANCE:
        found("objective", f"it says {row.objective:.9f}, the tree has {real:.9f}")


def compared(rows: list[Checked]) -> list[Finding]:
    """Compare rows: duplicates, proven optima that differ, bounds below the value of another row's tree.

    A tree is compared with every run on the same data and constraints that allows its depth, at that run's penalty.
    """
    findings = list(_doubled([one.row for one in rows]))
    by_data: dict[Any, list[Checked]] = {}
    for one in rows:
        by_data.setdefault((one.row.instance.fingerprint, one.row.instance.constraints), []).append(one)
    for group in by_data.values():
        findings += _optima(group)
        findings += _beaten(group)
    return findings


def _doubled(rows: list[Row]) -> Iterator[Finding]:
    """Yield runs with several rows; several suites may share a run."""
    by_key: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_key.setdefault((row.suite, row.key), []).append(row)
    for (_, key), same in by_key.items():
        if len(same) > 1:
            said = "; ".join(f"{row.status} {row.objective}" for row in same)
            yield Finding("duplicate", tuple(same), f"the run {key[:12]} has {len(same)} rows: {said}")


def _optima(group: list[Checked]) -> Iterator[Finding]:
    by_instance: dict[Any, list[Row]] = {}
    for one in group:
        if one.row.status == "optimal" and one.row.objective is not None:
            it = one.row.instance
            by_instance.setdefault((it.max_depth, it.leaf_penalty), []).append(one.row)
    for rows in by_instance.values():
        low, high = (choose(rows, key=lambda row: row.objective or 0.0) for choose in (min, max))
        assert low.objective is not None and high.objective is not None
        if high.objective - low.objective > TOLERANCE:
            yield Finding("optima", (low, high), f"proven optima differ: {low.objective:.9f} and {high.objective:.9f}")


def _beaten(group: list[Checked]) -> Iterator[Finding]:
    """Compare bounds, and claims that no tree exists, with the best tree of all rows."""
    trees = [one for one in group if one.correct is not None and one.holds and one.row.tree is not None]
    if not trees:
        return
    share = np.array([one.objective_at(0.0) for one in trees])
    leaves = np.array([one.leaves for one in trees])
    depth = np.array([_depth(one.row) for one in trees])
    for one in group:
        it, bound = one.row.instance, one.row.bound
        if bound is None and one.row.status != "infeasible":
            continue
        values = np.where(depth <= it.max_depth, share - it.leaf_penalty * leaves, -np.inf)
        best = int(values.argmax())
        if not np.isfinite(values[best]):
            continue
        if one.row.status == "infeasible":
            yield Finding("infeasible", (one.row, trees[best].row), "a tree keeps what it says no tree can")
        elif bound is not None and values[best] > bound + TOLERANCE:
            text = f"its bound {bound:.9f} is below {values[best]:.9f}, which the tree of the second row reaches"
            yield Finding("bound", (one.row, trees[best].row), text)


def _depth(row: Row) -> int:
    """Return the depth of the tree, which may be less than that of its arrays."""
    assert row.tree is not None
    return max(node for node, answer in enumerate(row.tree["label"], start=1) if answer >= 0).bit_length() - 1


# ---------------------------------------------------------------- trees


class BadTreeError(Exception):
    """The lists do not describe a tree for these data."""


def followed(
    tree: Mapping[str, Any], X: NDArray[np.bool_], y: NDArray[np.int64], classes: list[Any], group: Any = None
) -> Reached:
    """Apply a stored tree: node n, at position n - 1, has the children 2n (feature is 0) and 2n + 1 (feature is 1).

    Raises
    ------
    BadTreeError
        If the lists do not describe a tree.
    """
    feature, label = (found if isinstance(found := tree.get(key), list) else [] for key in ("feature", "label"))
    if not feature or len(feature) != len(label) or any(type(value) is not int for value in feature + label):
        raise BadTreeError("feature and label are not two lists of whole numbers of one length")
    predicted, leaf = np.full(len(X), -1), np.zeros(len(X), dtype=np.int64)
    leaves: list[int] = []
    paths: list[tuple[int, ...]] = []
    todo: list[tuple[int, NDArray[np.int64], tuple[int, ...]]] = [(1, np.arange(len(X)), ())]
    while todo:
        node, rows, path = todo.pop()
        if node > len(feature):
            raise BadTreeError(f"node {node} is missing")
        here, answer = feature[node - 1], label[node - 1]
        if (here >= 0) == (answer >= 0):
            raise BadTreeError(f"node {node} is not either a branch node or a leaf")
        if answer >= 0:
            if answer >= len(classes):
                raise BadTreeError(f"node {node} predicts class {answer}, there are {len(classes)}")
            predicted[rows], leaf[rows] = answer, node
            leaves.append(node)
            paths.append(path)
            continue
        if here >= X.shape[1]:
            raise BadTreeError(f"node {node} branches on column {here}, there are {X.shape[1]}")
        ones = X[rows, here]
        todo += [(2 * node, rows[~ones], (*path, here)), (2 * node + 1, rows[ones], (*path, here))]
    return Reached(y, predicted, classes, leaf, leaves, paths, group)
