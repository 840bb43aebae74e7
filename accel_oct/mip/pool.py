"""Every cut that a solve has seen, each once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accel_oct.mip.exchange import Cuts
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
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
        self._known: set[int] = set()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def rows(self) -> Rows:
        if self._batches:
            self._joined = Rows.concatenate([self._joined, *self._batches])
            self._batches = []
        return self._joined

    def add(self, cuts: tuple[Cuts, ...]) -> IntArray:
        """Add what is new; returns the numbers of the new rows."""
        first = len(self)
        for batch in cuts:
            new = np.zeros(batch.rows.n_rows, dtype=bool)
            for position, key in enumerate(self._hash(batch.rows).tolist()):
                if key not in self._known:
                    self._known.add(key)
                    new[position] = True
            if new.any():
                self._batches.append(batch.rows if new.all() else batch.rows.take(new))
        return np.arange(first, len(self), dtype=np.int64)

    def violated(self, x: FloatArray, among: npt.NDArray[np.bool_] | None = None) -> IntArray:
        """Numbers of the rows that x violates, worst first, optionally only among some of them."""
        violation = self.rows.violation(x)
        if among is not None:
            violation[~among] = 0.0
        found = np.flatnonzero(violation > FEASIBILITY_TOLERANCE)
        return found[np.argsort(-violation[found], kind="stable")]

    def _hash(self, rows: Rows) -> npt.NDArray[np.uint64]:
        value_bits = (rows.values + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 the same
        entries = _mixed(value_bits ^ self._column_keys[rows.columns])
        result = np.zeros(rows.n_rows, dtype=np.uint64)
        filled = rows.starts[:-1] < rows.starts[1:]
        if filled.any():
            result[filled] = np.add.reduceat(entries, rows.starts[:-1][filled])
        lower, upper = ((bound + 0.0).view(np.uint64) for bound in (rows.lower, rows.upper))
        return _mixed(_mixed(result ^ lower) + upper)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every input bit over the word (a multiply-and-shift finaliser), modulo 2**64."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return bits ^ (bits >> np.uint64(32))
