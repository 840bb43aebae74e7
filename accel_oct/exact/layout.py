"""The rows of a data set as the counting kernels read them: which counters are wide enough, which bits go where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct import native
from accel_oct.support.arrays import Array, BoolArray, FloatArray, IntArray

_MAX_PLANES = 14


@dataclass(frozen=True)
class Layout:
    """Arrays the kernels read: one entry per row and bit of its weight, entries grouped by channel and bit.

    A *channel* is a table of counts: one signed table for two classes, else one per class; then one per mass of the
    local rules. With real weights there are no bits: one entry per row, and `numbers` takes the place of the words.
    """

    entries: NDArray[np.uint8]  # (E, P)
    channel: NDArray[np.int32]  # (E,)
    plane: NDArray[np.int32]  # (E,)
    marked: NDArray[np.uint8]  # (E,) class 0 of a signed table
    signs: FloatArray  # (E,) weight of the entry in its channel
    row: IntArray  # (E,) the row it belongs to
    n_rows: int
    n_channels: int
    n_features: int
    width: int  # P
    dtype: Any

    @classmethod
    def without_entries(cls, n_channels: int, n_features: int) -> Layout:
        """What kernels write to, where counts come from a tally: real numbers."""
        dtype = np.dtype(np.float64)
        lanes = lanes_of(dtype)
        width = max(1, -(-n_features // lanes)) * lanes
        none = np.zeros(0, dtype=np.int32)
        return cls(
            entries=np.zeros((0, width), dtype=np.uint8),
            channel=none,
            plane=none,
            marked=np.zeros(0, dtype=np.uint8),
            signs=np.zeros(0),
            row=np.zeros(0, dtype=np.int64),
            n_rows=0,
            n_channels=n_channels,
            n_features=n_features,
            width=width,
            dtype=dtype,
        )

    @cached_property
    def numbers(self) -> FloatArray:
        """Signed weight times the features (E, P) for real weights, else empty; made when it is first needed."""
        bits = self.dtype != np.float64
        return np.zeros((0, self.width)) if bits else self.entries * self.signs[:, None]

    @property
    def by_row(self) -> IntArray:
        """Entry (n, bits) of every row for each bit of its weight, -1 where there is none."""
        result = np.full((self.n_rows, int(self.plane.max(initial=0)) + 1), -1, dtype=np.int64)
        result[self.row, self.plane] = np.arange(self.row.size)
        return result

    @property
    def table_shape(self) -> tuple[int, int, int, int]:
        """Shape of a table of pair counts, see `counts`."""
        lanes = lanes_of(self.dtype)
        return self.n_channels, self.width // lanes, self.n_features, lanes

    def words(self) -> native.Words:
        """Room for packed samples."""
        return native.Words.of(self.entries.shape[0], self.width, self.dtype.itemsize)

    def work(self) -> native.Work:
        """Room that one thread needs on the deeper levels."""
        return native.Work.of(self.entries.shape[0], self.table_shape, self.dtype)

    def limits(self, least: float, apart: BoolArray | None, total: float | None = None) -> native.Limits:
        """Local rules of one mass as the kernels read them; `total` of all weights, where the layout has no entries."""
        dtype, F = self.dtype, self.n_features
        never = np.inf if dtype == np.float64 else np.iinfo(dtype).max
        total = float(np.abs(self.signs).sum()) if total is None else total
        enough = least if dtype == np.float64 else min(np.ceil(least), never)
        _, blocks, _, lanes = self.table_shape
        rows = np.full((F, self.width), never, dtype=dtype)
        rows[:, :F] = enough if apart is None else np.where(apart, never, enough)
        below = np.full(self.width, never, dtype=dtype)
        below[:F] = enough
        # Negative when added to any score; doubled it still fits into the counters.
        lowest = -2 * total - 1 if dtype == np.float64 else np.iinfo(dtype).min // 2
        blocked = np.ascontiguousarray(rows.reshape(F, blocks, lanes).transpose(1, 0, 2))
        return native.Limits(blocked, rows, below, np.array([enough], dtype), np.array([lowest], dtype))


def lanes_of(dtype: Any) -> int:
    """Counters of a block, see `accel_oct.native`."""
    return native.BLOCK_BYTES // int(np.dtype(dtype).itemsize)


def layout(X: Array, y: IntArray, weights: FloatArray, n_classes: int, masses: FloatArray | None = None) -> Layout:
    """Choose counters wide enough for exact sums and spread the rows out for them.

    With `masses` (J, n) of local rules, sums of two numbers that stand for "not allowed" fit into the counters too.
    """
    n_rows, n_features = X.shape
    dtype = counter_type(weights, masses)
    bits = dtype is not np.float64
    lanes = lanes_of(dtype)
    width = max(1, -(-n_features // lanes)) * lanes
    signed = n_classes == 2
    class_channel = np.zeros(n_rows, dtype=np.int64) if signed else y
    n_channels = 1 if signed else n_classes
    row, plane, amount = _spread(weights, bits)
    channel = class_channel[row]
    marked = (y[row] == 0) & signed
    for place, mass in enumerate(() if masses is None else masses):
        rows, planes, parts = _spread(mass, bits)
        row, plane, amount = np.append(row, rows), np.append(plane, planes), np.append(amount, parts)
        channel = np.append(channel, np.full(rows.size, n_channels + place))
        marked = np.append(marked, np.zeros(rows.size, dtype=bool))
    order = np.lexsort((row, plane, channel))
    row, plane, amount = row[order], plane[order], amount[order]
    channel, marked = channel[order], marked[order]
    entries = np.zeros((row.size, width), dtype=np.uint8)
    entries[:, :n_features] = X[row]
    return Layout(
        entries=entries,
        channel=channel.astype(np.int32),
        plane=plane.astype(np.int32),
        marked=marked.astype(np.uint8),
        signs=np.where(marked, -amount, amount),
        row=row,
        n_rows=n_rows,
        n_channels=n_channels + (0 if masses is None else len(masses)),
        n_features=n_features,
        width=width,
        dtype=np.dtype(dtype),
    )


def counter_type(weights: FloatArray, masses: FloatArray | None = None) -> Any:
    """The narrowest type whose sums are exact; real weights are added as they are."""
    amounts = weights[None] if masses is None else np.concatenate([weights[None], masses])
    total = float(amounts.sum(axis=1).max())
    integral = bool(np.all(amounts == np.floor(amounts)))
    heaviest = int(amounts.max()) if integral and amounts.size else 0
    spare = 0 if masses is None else 1
    if not integral or total >= 2 ** (31 - spare) or heaviest >= 2**_MAX_PLANES:
        return np.float64
    return np.int16 if total < 2 ** (15 - spare) else np.int32


def _spread(amounts: FloatArray, bits: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Row, bit and amount of every entry."""
    if not bits:
        return np.arange(amounts.size), np.zeros(amounts.size, dtype=np.int64), amounts
    whole = amounts.astype(np.int64)
    heaviest = int(whole.max(initial=0))
    rows = [np.flatnonzero((whole >> bit) & 1) for bit in range(max(1, heaviest.bit_length()))]
    plane = np.repeat(np.arange(len(rows)), [part.size for part in rows])
    return np.concatenate(rows), plane, np.exp2(plane)
