"""The rows of a data set as the counting kernels read them: which counters are wide enough, which bits go where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

VECTOR_BYTES = 64
_MAX_PLANES = 14


@dataclass(frozen=True)
class Layout:
    """Arrays the kernels read: one entry per row and bit of its weight, entries grouped by channel and bit.

    A *channel* is a table of counts: one signed table for two classes, else one per class. With real weights there are
    no bits: one entry per row, and `numbers` takes the place of the words.
    """

    entries: NDArray[np.uint8]  # (E, P)
    channel: NDArray[np.int32]  # (E,)
    plane: NDArray[np.int32]  # (E,)
    marked: NDArray[np.uint8]  # (E,) class 0 of a signed table
    signs: Floats  # (E,) weight of the entry in its channel
    row: Ints  # (E,) the row it belongs to
    n_rows: int
    n_channels: int
    n_features: int
    width: int  # P
    dtype: Any

    @cached_property
    def numbers(self) -> Floats:
        """Signed weight times the features (E, P) for real weights, else empty; made when it is first needed."""
        bits = self.dtype != np.float64
        return np.zeros((0, self.width)) if bits else self.entries * self.signs[:, None]

    @property
    def by_row(self) -> Ints:
        """Entry (n, bits) of every row for each bit of its weight, -1 where there is none."""
        result = np.full((self.n_rows, int(self.plane.max(initial=0)) + 1), -1, dtype=np.int64)
        result[self.row, self.plane] = np.arange(self.row.size)
        return result

    @property
    def table_shape(self) -> tuple[int, int, int, int]:
        """Shape of a table of pair counts, see `counts`."""
        lanes = VECTOR_BYTES // self.dtype.itemsize
        return self.n_channels, self.width // lanes, self.n_features, lanes

    @property
    def word_dtype(self) -> Any:
        """Unsigned words as wide as the counters."""
        return np.uint32 if self.dtype == np.int32 else np.uint16


def layout(X: NDArray[Any], y: Ints, weights: Floats, n_classes: int) -> Layout:
    """Choose counters wide enough for exact sums and spread the rows out for them."""
    n_rows, n_features = X.shape
    total = float(weights.sum())
    integral = bool(np.all(weights == np.floor(weights)))
    heaviest = int(weights.max()) if integral and weights.size else 0
    bits = integral and total < 2**31 and heaviest < 2**_MAX_PLANES
    dtype: Any = (np.int16 if total < 2**15 else np.int32) if bits else np.float64
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    width = max(1, -(-n_features // lanes)) * lanes
    signed = n_classes == 2
    class_channel = np.zeros(n_rows, dtype=np.int64) if signed else y
    row_parts: list[Ints] = []
    plane_parts: list[Ints] = []
    if bits:
        whole = weights.astype(np.int64)
        for bit in range(max(1, heaviest.bit_length())):
            rows = np.flatnonzero((whole >> bit) & 1)
            row_parts.append(rows)
            plane_parts.append(np.full(rows.size, bit))
        row = np.concatenate(row_parts)
        plane = np.concatenate(plane_parts)
        amount = np.exp2(plane)
    else:
        row = np.arange(n_rows)
        plane = np.zeros(n_rows, dtype=np.int64)
        amount = weights
    order = np.lexsort((row, plane, class_channel[row]))
    row, plane, amount = row[order], plane[order], amount[order]
    entries = np.zeros((row.size, width), dtype=np.uint8)
    entries[:, :n_features] = X[row]
    marked = (y[row] == 0) & signed
    return Layout(
        entries=entries,
        channel=class_channel[row].astype(np.int32),
        plane=plane.astype(np.int32),
        marked=marked.astype(np.uint8),
        signs=np.where(marked, -amount, amount),
        row=row,
        n_rows=n_rows,
        n_channels=1 if signed else n_classes,
        n_features=n_features,
        width=width,
        dtype=np.dtype(dtype),
    )
