"""Every row of results checked independently of the solver: one row alone, and rows against each other.

Objectives may differ by `TOLERANCE`: both sides are sums of floats, and two values of different trees on the same data
differ by more in any case that matters (a sample is 1e-7 of ten million).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct_bench.instances import EncodedData
from accel_oct_bench.registry import Registry, fingerprint
from accel_oct_bench.rows import Row, unpacked_labels
from accel_oct_bench.verify.limits import Reached, UnknownLimitError, broken
from accel_oct_bench.verify.trees import BadTreeError, followed

__all__ = ["TOLERANCE", "Checked", "Finding", "check_one", "checked", "compared", "label"]

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Finding:
    """A contradiction: what it is about, the rows, and the figures."""

    kind: str
    rows: tuple[Row, ...]
    text: str

    def __str__(self) -> str:
        where = "\n    ".join(label(row) for row in self.rows)
        return f"{self.kind}: {self.text}\n    {where}"


@dataclass
class Checked:
    """A row and what was counted again.

    Attributes
    ----------
    correct : int or None
        Samples that its tree classifies correctly; None where it has none.
    leaves : int
    holds : bool
        All limits of the instance are kept, as far as they could be counted.
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
        """Of the stored tree, recomputed, for some penalty."""
        assert self.correct is not None
        return self.correct / self.row.instance.n_samples - leaf_penalty * self.leaves


def label(row: Row) -> str:
    """How findings name a row."""
    it = row.instance
    limits = f", {' and '.join(it.constraints)}" if it.constraints else ""
    return f"{row.key[:12]} {it.data}, depth {it.max_depth}, penalty {it.leaf_penalty:g}{limits}, by {row.method.name}"


def checked(rows: Iterable[Row], registry: Registry) -> list[Checked]:
    """Check all rows, each data set loaded once."""
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
    """One row against its data; a text instead of data says why there are none."""
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
    """Objective, bound, gap and status among themselves."""
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
    """Rows against each other: one key twice, proven optima that differ, a bound below what somebody's tree reaches.

    A tree counts for every run on the same data and constraints that allows its depth, at that run's own penalty.
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
    """Suites may share runs, so one run may be there once for each."""
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
    """Bounds, and claims that no tree exists, against the best tree of the others."""
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
    """Of the tree that is there, not of the arrays."""
    assert row.tree is not None
    return max(node for node, answer in enumerate(row.tree["label"], start=1) if answer >= 0).bit_length() - 1
