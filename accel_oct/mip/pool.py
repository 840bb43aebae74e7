"""Every cut that a solve has seen, each once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accel_oct.mip.exchange import Cuts, Validity
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE, ModelArrays
from accel_oct.mip.rows import FloatArray, IntArray, Rows


class CutPool:
    """Distinct cut rows, numbered in the order in which they came.

    Separation is repeated on many similar points and finds the same rows again; rows are told apart by a 64-bit hash of
    their entries and bounds, computed for a whole batch at once.
    """

    def __init__(self, n_columns: int, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self._column_keys = generator.integers(1, 2**63, size=n_columns, dtype=np.uint64) | np.uint64(1)
        self._batches: list[Rows] = []
        self._joined = Rows.empty()
        self._known: dict[int, int] = {}  # hash of a row: its number
        self._rejecting = np.empty(0, dtype=bool)
        self.replaced = np.empty(0, dtype=bool)
        """Per row: whether a later batch of the same key has made it superfluous."""
        self._numbers_of_key: dict[str, list[int]] = {}

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
        """Add what is new; returns the numbers of the new rows."""
        first = len(self)
        for batch in cuts:
            known, before = self._known, len(self._known)
            numbers = [known.setdefault(key, len(known)) for key in self._hash(batch.rows).tolist()]
            new = np.diff(np.maximum.accumulate([before - 1, *numbers])) > 0  # numbers rise with each new row
            self._rejecting = np.concatenate([self._rejecting, np.zeros(np.count_nonzero(new), dtype=bool)])
            if batch.validity is not Validity.OPTIMALITY:
                self._rejecting[numbers] = True
            self.replaced = np.concatenate([self.replaced, np.zeros(np.count_nonzero(new), dtype=bool)])
            if batch.key is not None:
                self._replace(batch.key, numbers)
            if new.any():
                self._batches.append(batch.rows if new.all() else batch.rows.take(new))
        return np.arange(first, len(self), dtype=np.int64)

    def _replace(self, key: str, numbers: list[int]) -> None:
        self.replaced[self._numbers_of_key.get(key, [])] = True
        self.replaced[numbers] = False
        self._numbers_of_key[key] = numbers

    def violated(self, x: FloatArray, among: npt.NDArray[np.bool_] | None = None) -> IntArray:
        """Numbers of the rows that x violates, in their order, optionally only among some of them."""
        violation = self.rows.violation(x)
        violation[self.replaced] = 0.0
        if among is not None:
            violation[~among] = 0.0
        return np.flatnonzero(violation > FEASIBILITY_TOLERANCE)

    def tight(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        """Per row, whether it holds with equality at x (or is violated)."""
        rows = self.rows
        activity = rows.activity(x)
        result: npt.NDArray[np.bool_] = (activity - rows.lower <= FEASIBILITY_TOLERANCE) | (
            rows.upper - activity <= FEASIBILITY_TOLERANCE
        )
        return result

    def rejects(self, x: FloatArray) -> bool:
        """Whether a known REQUIRED or IMPLIED row makes x infeasible."""
        return len(self) > 0 and bool(np.any(self.rows.violation(x)[self._rejecting] > REJECTION_TOLERANCE))

    def rules_out(self, model: ModelArrays, x: FloatArray) -> bool:
        """Whether x, rounded, breaks a row of the model or is rejected by a known cut.

        An optimum that is integral but for noise may keep a row with large coefficients only before it is rounded.
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
