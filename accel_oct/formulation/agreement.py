"""Check the rows and cuts of constraints and components against feasible trees.

A constraint defines the feasible trees twice: by `violation`, which decides, and by its rows. A component may add rows
too, but does not decide. The solver cannot find a tree that the rows exclude, while the tables, the warm start and
polishing do not use the rows: a row that excludes a feasible tree could lead to a wrong "optimal". Every tree known to
be feasible is therefore lifted once, and must satisfy all rows, and all cuts declared REQUIRED or IMPLIED.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.formulation.incumbent import Rule, broken_rules
from accel_oct.formulation.master import Master
from accel_oct.mip import InvalidCutError, Rows
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree

#: Tolerance of sums in floating point, relative to the sum of the absolute values of their terms; `violation` of the
#: built-in constraints uses it too.
ROUNDING = 1e-9

#: Limits on the lifted trees that later cuts are compared with: their number, and their total size.
_MOST_KNOWN, _MOST_NUMBERS = 16, 2**22


def broken_row(rows: Rows, x: FloatArray) -> tuple[int, float] | None:
    """Return the row that x violates most and its violation; None if x satisfies all rows up to rounding.

    The tolerance is that of feasibility, plus `ROUNDING` relative to the terms of the row.
    """
    violation = rows.violation(x)
    suspects = np.flatnonzero(violation > FEASIBILITY_TOLERANCE)
    if not suspects.size:
        return None
    part = rows.take(suspects)
    size = replace(part, values=np.abs(part.values)).activity(np.abs(x))
    excess = violation[suspects] - FEASIBILITY_TOLERANCE - ROUNDING * size
    worst = int(excess.argmax())
    return (int(suspects[worst]), float(violation[suspects[worst]])) if excess[worst] > 0 else None


@dataclass(frozen=True)
class MasterPart:
    """The part of a master that one author added.

    Attributes
    ----------
    author : str
        Start of error messages: the argument and the name.
    rule : Rule or None
        The constraint; None for a component, which must not exclude any tree.
    columns, lifts : range
        Own columns of the model, and places in `Master.lifts`.
    """

    author: str
    rule: Rule | None
    rows: Rows
    columns: range
    lifts: range

    def problem(self, master: Master, x: FloatArray) -> str | None:
        """Return what a lifted tree violates, as a clause; None if it satisfies the part."""
        model, where = master.model, slice(self.columns.start, self.columns.stop)
        own = x[where]
        if not np.isfinite(own).all():
            return "its lift writes a NaN or an infinite value"
        outside = np.maximum(model.lower[where] - own, own - model.upper[where]) > FEASIBILITY_TOLERANCE
        fractional = model.integer[where] & (np.abs(own - np.round(own)) > FEASIBILITY_TOLERANCE)
        unfilled = own.size > 0 and not own.any()
        hint = "; its own columns are all zero there: fill them by `master.add_lift`" if unfilled else ""
        if outside.any() or fractional.any():
            return f"its own columns are out of bounds or fractional{hint}"
        broken = broken_row(self.rows, x)
        return None if broken is None else f"row {broken[0]} is violated by {broken[1]:.3g}{hint}"


class Agreement:
    """The parts of a master, and the trees they were compared with."""

    def __init__(self, master: Master) -> None:
        self.master = master
        self._parts: list[MasterPart] = []
        self._cuts: list[tuple[str, Rows]] = []
        self._known: deque[tuple[DecisionTree, FloatArray]] = deque()
        self._seen: set[bytes] = set()
        self._checked = 0
        self._size = self._size_now

    @property
    def _size_now(self) -> tuple[int, int]:
        model = self.master.model
        return model.n_columns, len(model.row_batches)

    @contextmanager
    def written_by(self, author: str, rule: Rule | None = None) -> Iterator[None]:
        """Record the columns, rows and lifts that are added to the master inside the block as one author's part.

        Raises
        ------
        InvalidInputError
            If a new column has a coefficient in the objective, which would change the value of trees.
        """
        model = self.master.model
        columns, batches, lifts = model.n_columns, len(model.row_batches), len(self.master.lifts)
        self.check_unchanged()
        yield
        self._size = self._size_now
        own = range(columns, model.n_columns)
        if model.objective[columns:].any():
            raise InvalidInputError(
                f"{author} adds columns to the master with a coefficient in the objective: define the value of trees "
                "by objective= (docs/objectives.md)"
            )
        rows = Rows.concatenate([rows for _, rows in model.row_batches[batches:]])
        self._parts.append(MasterPart(author, rule, rows, own, range(lifts, len(self.master.lifts))))

    @contextmanager
    def written_by_the_library(self) -> Iterator[None]:
        """Allow columns and rows to be added inside the block without a check."""
        self.check_unchanged()
        yield
        self._size = self._size_now

    def check_unchanged(self) -> None:
        """Raise InvalidInputError if columns or rows were added outside of any part, so that no tree was compared."""
        if self._size_now != self._size:
            names = ", ".join(part.author for part in self._parts)
            raise InvalidInputError(
                f"columns or rows were added to the master after it was built, by one of {names}: a constraint adds "
                "them in `add_to`, a component in its constructor (docs/write-a-constraint.md)"
            )

    def check_all(self, trees: Sequence[DecisionTree]) -> None:
        """Check a growing list of feasible trees; those of earlier calls are skipped."""
        while self._checked < len(trees):
            self._checked += 1
            self.check(trees[self._checked - 1])

    def check(self, tree: DecisionTree) -> None:
        """Check a feasible tree.

        Raises
        ------
        InvalidInputError
            Naming the author of a row that excludes the tree.
        InvalidCutError
            Naming the author of a cut that excludes the tree.
        """
        self._check(tree, self._parts, allowed=True)

    def probe(self, tree: DecisionTree) -> None:
        """Check any tree: the part of each constraint that it satisfies; components only if it satisfies all."""
        rules = [part.rule for part in self._parts if part.rule is not None]
        broken = {id(rule) for rule in rules if broken_rules([rule], tree)}
        kept = [part for part in self._parts if not broken or (part.rule is not None and id(part.rule) not in broken)]
        self._check(tree, kept, allowed=not broken)

    def check_cuts(self, author: str, rows: Rows) -> None:
        """Check cuts that must hold for every feasible tree, against known and later trees.

        Raises
        ------
        InvalidCutError
            Naming the author.
        """
        rows.check(self.master.model.n_columns, author)
        for tree, x in self._known:
            self._compare(author, rows, tree, x)
        self._cuts.append((author, rows))

    def _check(self, tree: DecisionTree, parts: Sequence[MasterPart], *, allowed: bool) -> None:
        tree = tree.with_max_depth(self.master.topology.depth)
        key = tree.feature.tobytes() + tree.label.tobytes()
        if key in self._seen:
            return
        x = self._lifted(tree)
        for part in parts:
            problem = part.problem(self.master, x)
            if problem is not None:
                raise InvalidInputError(self._sentence(part, tree, problem))
        if not allowed:
            return
        self._seen.add(key)
        for author, rows in self._cuts:
            self._compare(author, rows, tree, x)
        if len(self._known) == max(1, min(_MOST_KNOWN, _MOST_NUMBERS // x.size)):
            self._known.popleft()
        self._known.append((tree, x))

    def _lifted(self, tree: DecisionTree) -> FloatArray:
        """Return the tree as a point; raise if a lift changes the columns of the tree itself."""
        plain, x = self.master.lift_plain(tree), self.master.lift(tree)
        n_own = self.master.theta.stop
        if np.array_equal(plain[:n_own], x[:n_own]):
            return x
        for part in self._parts:
            tried = plain.copy()
            for place in part.lifts:
                self.master.lifts[place](tree, tried)
            if not np.array_equal(plain[:n_own], tried[:n_own]):
                raise InvalidInputError(f"{part.author}: its lift writes into columns of the tree, b, p, w or theta")
        return x

    def _compare(self, author: str, rows: Rows, tree: DecisionTree, x: FloatArray) -> None:
        broken = broken_row(rows, x)
        if broken is not None:
            raise InvalidCutError(
                f"{author} forbid {self._shown(tree)}, which is feasible (row {broken[0]} by {broken[1]:.3g})"
            )

    def _sentence(self, part: MasterPart, tree: DecisionTree, problem: str) -> str:
        if part.rule is not None:
            return (
                f"{part.author}: its rows forbid a tree that its `violation` allows, {self._shown(tree)}: {problem} "
                "(docs/write-a-constraint.md)"
            )
        return (
            f"{part.author} adds rows to the master that forbid a feasible tree, {self._shown(tree)}: {problem}. "
            "Use constraints= to restrict the trees (docs/write-a-constraint.md)"
        )

    def _shown(self, tree: DecisionTree) -> str:
        data = self.master.dataset
        if tree.n_leaves == 1:
            return f"the leaf {data.class_names[int(tree.label[0])]!r}"
        return f"a tree with {tree.n_leaves} leaves and {data.feature_names[int(tree.feature[0])]!r} at its root"
