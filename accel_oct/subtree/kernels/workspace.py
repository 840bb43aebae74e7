"""Work arrays of the compiled kernels, one set per thread, so that nothing is allocated while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.subtree.layout import Layout

Array = NDArray[Any]

SHARED_SWEEP = 4
"""Features f that share one sweep over the tables of all g."""

_BLOCK_WORDS = 512


class Workspace:
    """Arrays one thread writes to while it counts and passes."""

    def __init__(self, spread: Layout, n_tables: int = 0) -> None:
        rows = min(_BLOCK_WORDS, spread.entries.shape[0] // 16 + 1)
        self.words = np.zeros((rows, spread.width), dtype=spread.word_dtype)
        self.masks = np.zeros(rows, dtype=spread.word_dtype)
        if n_tables == 0:
            return
        self.chosen = np.zeros((SHARED_SWEEP, spread.entries.shape[0] + 1), dtype=np.int64)
        self.chosen2 = np.zeros(spread.entries.shape[0] + 1, dtype=np.int64)
        self.tables: list[Array] = [np.zeros(spread.table_shape, dtype=spread.dtype) for _ in range(n_tables)]
        self.singles: Array = np.zeros((4, spread.n_channels, spread.width), dtype=spread.dtype)
        self.sums: Array = np.zeros((4, spread.n_channels), dtype=spread.dtype)
        self.one_leaf: Array = np.zeros((8, spread.width), dtype=spread.dtype)
        self.two_leaves: Array = np.zeros((8, spread.width), dtype=spread.dtype)
        self.scratch: Array = np.zeros(3 * spread.width, dtype=spread.dtype)

    def counting(self, spread: Layout) -> tuple[Array, ...]:
        """Arguments that every counting kernel takes after the list of entries."""
        return (
            spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers, self.words, self.masks,
        )  # fmt: skip

    def passing(self) -> tuple[Array, ...]:
        """Arguments of the passes."""
        return self.singles, self.sums, self.one_leaf, self.two_leaves, self.scratch
