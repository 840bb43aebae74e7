"""The LP of the cut loop and of branch and cut, and the pool of cuts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accel_oct.mip.certificates import LinearProgram
from accel_oct.mip.engine import BranchingEngine, EngineRun, LoopEngine
from accel_oct.mip.exchange import Cuts, Duals, Event, SearchNode, Validity
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE, ModelArrays
from accel_oct.mip.rows import Rows
from accel_oct.mip.session import SolveSession, Verdict
from accel_oct.support.arrays import FloatArray, IntArray


class CutPool:
    """Distinct cut rows, numbered in the order of their arrival.

    Separation at similar points finds the same rows again; rows are identified by a 64-bit hash of their entries and
    bounds, computed for a whole batch at once.
    """

    def __init__(self, n_columns: int, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self._column_keys = generator.integers(1, 2**63, size=n_columns, dtype=np.uint64) | np.uint64(1)
        self._batches: list[Rows] = []
        self._joined = Rows.empty()
        self._known: dict[int, int] = {}  # hash of a row: its number
        self._rejecting = np.empty(0, dtype=bool)
        self.replaced = np.empty(0, dtype=bool)
        """Per row: whether a later batch of the same key has replaced it."""
        self._numbers_of_key: dict[str, list[int]] = {}
        self._local = np.empty(0, dtype=bool)
        self.closed = np.empty(0, dtype=bool)
        """Per row: whether it is local and does not hold in the current node."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def rows(self) -> Rows:
        """All rows of the pool, as one batch."""
        if self._batches:
            self._joined = Rows.concatenate([self._joined, *self._batches])
            self._batches = []
        return self._joined

    def add(self, cuts: tuple[Cuts, ...]) -> IntArray:
        """Add new rows; returns their numbers."""
        first = len(self)
        self._add(cuts)
        return np.arange(first, len(self), dtype=np.int64)

    def add_local(self, cuts: tuple[Cuts, ...]) -> IntArray:
        """Add local rows, which hold in the current node; returns the numbers of all, known ones included."""
        numbers = self._add(cuts)
        self.closed[numbers] = False
        return numbers

    def open_local(self, numbers: IntArray) -> None:
        """Enter a node in which of all local rows only these hold."""
        self.closed = self._local.copy()
        self.closed[numbers] = False

    def _add(self, cuts: tuple[Cuts, ...]) -> IntArray:
        every: list[int] = []
        for batch in cuts:
            known, before = self._known, len(self._known)
            numbers = [known.setdefault(key, len(known)) for key in self._hash(batch.rows).tolist()]
            new = np.diff(np.maximum.accumulate([before - 1, *numbers])) > 0  # numbers rise with each new row
            added = np.zeros(np.count_nonzero(new), dtype=bool)
            self._rejecting = np.concatenate([self._rejecting, added])
            self.replaced = np.concatenate([self.replaced, added])
            self._local = np.concatenate([self._local, added | batch.local])
            self.closed = np.concatenate([self.closed, added | batch.local])
            if not batch.local:  # a known local row holds everywhere from now on
                self._local[numbers] = self.closed[numbers] = False
                if batch.validity is not Validity.OPTIMALITY:
                    self._rejecting[numbers] = True
            if batch.key is not None:
                self._replace(batch.key, numbers)
            if new.any():
                self._batches.append(batch.rows if new.all() else batch.rows.take(new))
            every += numbers
        return np.array(every, dtype=np.int64)

    def _replace(self, key: str, numbers: list[int]) -> None:
        self.replaced[self._numbers_of_key.get(key, [])] = True
        self.replaced[numbers] = False
        self._numbers_of_key[key] = numbers

    def violated(self, x: FloatArray, among: npt.NDArray[np.bool_] | None = None) -> IntArray:
        """Return the numbers of the rows of this node that x violates, optionally only among some of them."""
        violation = self.rows.violation(x)
        violation[self.replaced | self.closed] = 0.0
        if among is not None:
            violation[~among] = 0.0
        return np.flatnonzero(violation > FEASIBILITY_TOLERANCE)

    def tight(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        """Return per row whether it holds with equality at x, or is violated."""
        rows = self.rows
        activity = rows.activity(x)
        result: npt.NDArray[np.bool_] = (activity - rows.lower <= FEASIBILITY_TOLERANCE) | (
            rows.upper - activity <= FEASIBILITY_TOLERANCE
        )
        return result

    def rejects(self, x: FloatArray) -> bool:
        """Return whether a known REQUIRED or IMPLIED row makes x infeasible."""
        return len(self) > 0 and bool(np.any(self.rows.violation(x)[self._rejecting] > REJECTION_TOLERANCE))

    def rules_out(self, model: ModelArrays, x: FloatArray) -> bool:
        """Return whether x, rounded, violates a row of the model or a known cut.

        An optimum that is integral up to noise may satisfy a row with large coefficients only before rounding.
        """
        rounded = model.rounded(x)
        return self.rejects(rounded) or not model.keeps_rows(rounded)

    def _hash(self, rows: Rows) -> npt.NDArray[np.uint64]:
        # Multilinear: a sum of (mixed coefficient) x (random odd key of its column), modulo 2**64.
        entries = (rows.values + 0.0).view(np.uint64)  # a copy; + 0.0 makes -0.0 and 0.0 the same
        _mix(entries)
        entries *= self._column_keys[rows.columns]
        result = np.zeros(rows.n_rows, dtype=np.uint64)
        filled = rows.starts[:-1] < rows.starts[1:]
        if filled.any():
            result[filled] = np.add.reduceat(entries, rows.starts[:-1][filled])
        for bound in (rows.lower, rows.upper):
            _mix(result)
            result ^= (bound + 0.0).view(np.uint64)
        _mix(result)
        return result


def _mix(bits: npt.NDArray[np.uint64]) -> None:
    """Spread the input bits over the word in place: multiply and shift, modulo 2**64."""
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(29)


#: A row is dropped from the LP after it was slack in this many consecutive relaxations.
_ROUNDS_UNTIL_DROPPED = 5


class CutRelaxation:
    """The LP relaxation with some rows of the pool; the claims of its runs are checked.

    A row is added when a point violates it and dropped when it has been slack for long; the pool keeps it, and it is
    added again when a later point violates it.

    Attributes
    ----------
    present : int array
        Pool numbers of the cut rows in the LP, in its order.
    """

    def __init__(self, session: SolveSession, engine: LoopEngine, pool: CutPool) -> None:
        self._session = session
        self._engine = engine
        self._pool = pool
        self.present: IntArray = np.empty(0, dtype=np.int64)
        self._slack_rounds = np.empty(0, dtype=np.int64)
        self._lower, self._upper = session.model.lower.copy(), session.model.upper.copy()
        self._rows: Rows | None = None

    def solve(self) -> EngineRun:
        """Solve the LP; an INFEASIBLE run and the bound of an OPTIMAL one are proven."""
        session = self._session
        session.statistics.rounds += 1
        run = self._engine.solve_relaxation(session.seconds_left)
        return self._program().checked(run, session.seconds_left)

    def _program(self) -> LinearProgram:
        if self._rows is None:
            self._rows = Rows.concatenate([self._session.model.rows, self._pool.rows.take(self.present)])
        model = self._session.model
        return LinearProgram(model.objective, model.sign, self._rows, self._lower, self._upper)

    def duals(self, run: EngineRun) -> Duals | None:
        """Return the duals of a run that `solve` returned, if they are proven."""
        program, model = self._program(), self._session.model
        duals = program.duals(run)
        if duals is None:
            return None
        n_rows = model.rows.n_rows
        cuts = program.rows.take(np.arange(n_rows, program.rows.n_rows))
        # The duals of the user's rows, which were scaled up.
        rows = np.ldexp(duals[:n_rows], model.exponents)
        return Duals(rows, program.reduced_costs(duals), cuts, duals[n_rows:])

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns, on a `BranchingEngine`."""
        assert isinstance(self._engine, BranchingEngine)
        self._engine.set_relaxation_bounds(columns, lower, upper)
        self._lower[columns], self._upper[columns] = lower, upper

    def consult(self, run: EngineRun, x: FloatArray, depth: int = 0) -> Verdict:
        """Show the handler the optimum x of a run as a relaxation, with what it needs to know of node and LP."""
        needs = self._session.needs
        node = SearchNode(depth, self._lower, self._upper) if needs.node_bounds else None
        duals = self.duals(run) if needs.duals else None
        return self._session.consult(Event.RELAXATION, x, node=node, duals=duals)

    def add(self, numbers: IntArray) -> None:
        """Add rows of the pool."""
        self._engine.add_relaxation_rows(self._pool.rows.take(numbers))
        self.present = np.concatenate([self.present, numbers])
        self._slack_rounds = np.concatenate([self._slack_rounds, np.zeros(numbers.size, dtype=np.int64)])
        self._rows = None

    def enter(self, local: IntArray) -> None:
        """Enter a node with these local rows of the pool; others leave the LP."""
        self._pool.open_local(local)
        self._drop(self._pool.closed[self.present])

    def _drop(self, gone: npt.NDArray[np.bool_]) -> None:
        if gone.any():
            self._engine.drop_relaxation_rows(np.flatnonzero(gone))
            self.present, self._slack_rounds = self.present[~gone], self._slack_rounds[~gone]
            self._rows = None

    def exchange(self, x: FloatArray, *, drop: bool = True, count: bool = True) -> bool:
        """Add every known row that the optimum x of the LP violates, and drop stale rows; return whether any was added.

        With ``drop=False`` no row is dropped, so that repeated exchanges terminate: optima of equal value could
        otherwise drop and add the same rows for ever. Use ``count=False`` for an x that was passed before.
        """
        pool = self._pool
        if count:
            slack = ~pool.tight(x)[self.present]
            self._slack_rounds = np.where(slack, self._slack_rounds + 1, 0)
        absent = np.ones(len(pool), dtype=bool)
        absent[self.present] = False
        new = pool.violated(x, among=absent)
        if not new.size:
            return False
        stale = (self._slack_rounds >= _ROUNDS_UNTIL_DROPPED) | pool.replaced[self.present]
        if drop:
            self._drop(stale)
        self.add(new)
        return True

    def tight(self, x: FloatArray) -> IntArray:
        """Return the pool numbers of the rows in the LP that are tight at x and not replaced."""
        keep: IntArray = self.present[self._pool.tight(x)[self.present] & ~self._pool.replaced[self.present]]
        return keep
