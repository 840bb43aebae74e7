"""Search over ordered columns: arrays in, costs, bounds and trees out.

See ``source/ordered_search.hpp`` for the method and `accel_oct.exact.ordered` for the problem.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_double, c_int32, c_int64
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.native.library import kernels
from accel_oct.native.records import COUNTERS, Array, Kind, Record, written
from accel_oct.native.stopping import StopFlag

SIGNED, LABELLED, GAINS = 0, 1, 2
"""Statistics that are summed over samples; see ``ordered_samples.hpp``."""

IMPOSSIBLE = 2**61
"""A cost above that of every tree."""

_MOST_SAMPLES = {np.dtype(np.int16): 2**15 - 1, np.dtype(np.int32): 2**31 - 1, np.dtype(np.float64): 2**31 - 1}
_MOST_TOTAL = {np.dtype(np.int16): 2**15 - 1, np.dtype(np.int32): 2**31 - 1, np.dtype(np.float64): 2**53}
_MOST_COST = 2**58


@dataclass(eq=False)
class OrderedTable(Record):
    """Samples with ordered columns; values, weights and masses are whole numbers of units."""

    ranks: Annotated[Array, Kind(np.int32, 2)]  # (columns, samples) 0, 1, ..., below the number of samples
    values: Annotated[Array, Kind(None, 2)]  # (1, samples) signed or plain weights, or gains (classes, samples)
    labels: Annotated[Array, Kind(np.int32, 1)]  # (samples,) where LABELLED, else empty
    weights: Annotated[Array, Kind(np.int64, 1)]  # (samples,) most that a sample can cost
    unavoidable: Annotated[Array, Kind(np.int64, 1)]  # (samples,) what no tree avoids, per set of equal samples
    masses: Annotated[Array, Kind(None, 2)]  # (masses, samples)
    least: Annotated[Array, Kind(np.int64, 1)]  # (masses,) of every leaf
    apart: Annotated[Array, Kind(np.uint8, 2)]  # (columns, columns) columns that share no path, or empty

    def check(self) -> None:
        n_columns, n = self.ranks.shape
        self._require(0 < n <= _MOST_SAMPLES[self.counter], f"{n} samples")
        lengths = {self.values.shape[1], self.weights.size, self.unavoidable.size, self.masses.shape[1]}
        self._require(lengths == {n} and self.labels.size in (0, n), "arrays of different lengths")
        self._require(self.least.size == len(self.masses), "least has another length than masses")
        self._require(self.apart.shape in ((0, 0), (n_columns, n_columns)), "apart has another shape")
        inside = not self.ranks.size or (int(self.ranks.min()) >= 0 and int(self.ranks.max()) < n)
        self._require(inside, "ranks must be at least 0 and below the number of samples")
        self._require(not self.labels.size or int(self.labels.min()) >= 0, "labels must not be negative")
        self._require(int(self.weights.min()) >= 0 and int(self.unavoidable.min()) >= 0, "negative weights")
        most = _MOST_TOTAL[self.counter]
        for part in (*self.values, *self.masses, self.weights):
            self._require(float(np.abs(part.astype(np.float64)).sum()) <= most, f"sums beyond those of {self.counter}")


class OrderedState(NamedTuple):
    """State of the search at a moment.

    Attributes
    ----------
    value, bound : int
        Cost of the best tree, and a bound on the cost of all trees of `depth`, in the smallest units.
    depth : int
        Depth of the current search.
    version : int
        Increases with every better tree.
    sets, passes, evaluations, spared : int
        Numbers of sets searched at depth two, passes over one set, thresholds evaluated at larger depth, and of those
        that known sets refuted.
    open : int
        Number of columns of the root with open thresholds.
    out_of_memory : int
    """

    value: int
    bound: int
    depth: int
    version: int
    sets: int
    passes: int
    evaluations: int
    spared: int
    open: int
    out_of_memory: int


class _Options(ctypes.Structure):
    _fields_ = (
        ("statistic", c_int32),
        ("threads", c_int32),
        ("classes", c_int64),
        ("unit", c_int64),
        ("price", c_int64),
        ("max_leaves", c_int64),
        ("memory", c_int64),
        ("start", c_int64),
        ("slack", c_double),
    )


class _State(ctypes.Structure):
    _fields_ = tuple((name, c_int64) for name in OrderedState._fields)


class OrderedSearch:
    """A search over all thresholds of all columns.

    Parameters
    ----------
    table : OrderedTable
    statistic : {SIGNED, LABELLED, GAINS}
    n_classes : int
    unit, price : int
        Cost of a unit of weight, and of a leaf.
    max_leaves : int
        0 means no limit.
    threads : int
        Maximum number of threads that call `work` at the same time.
    memory : int
        Bytes.
    start : int
        Cost of a known tree: only cheaper ones are searched.
    stop : StopFlag
    slack : float
        Excess cost up to which a side is solved exactly, as a share of the interval of thresholds; affects only the
        speed.
    """

    def __init__(
        self,
        table: OrderedTable,
        statistic: int,
        *,
        n_classes: int,
        unit: int,
        price: int,
        stop: StopFlag,
        max_leaves: int = 0,
        threads: int = 1,
        memory: int = 2**30,
        start: int = IMPOSSIBLE,
        slack: float = 0.0,
    ) -> None:
        rows = {SIGNED: 1, LABELLED: 1, GAINS: n_classes}.get(statistic)
        if rows is None or len(table.values) != rows or n_classes < 1 or n_classes >= 2**15:
            raise ValueError("native kernels: values do not fit the statistic")
        if (statistic == LABELLED) != bool(table.labels.size):
            raise ValueError("native kernels: labels are needed for LABELLED and for nothing else")
        if table.labels.size and int(table.labels.max()) >= n_classes:
            raise ValueError("native kernels: labels beyond the classes")
        total = int(table.weights.sum())
        if unit < 1 or price < 0 or max_leaves < 0 or threads < 1 or memory < 1 or not 0 <= slack <= 1:
            raise ValueError("native kernels: options out of range")
        if not 0 <= unit * total <= _MOST_COST or price > _MOST_COST // 64:
            raise ValueError("native kernels: costs out of range")
        self.table, self.stop, self.threads = table, stop, threads  # stored, because the kernels hold pointers to them
        options = _Options(
            statistic, threads, n_classes, unit, price, min(max_leaves, 2**30), memory, min(start, IMPOSSIBLE), slack
        )
        counter = COUNTERS[table.counter]
        self._handle = kernels().ordered_new(counter, table.address, byref(options), stop.address)
        if not self._handle:
            raise MemoryError("native kernels: out of memory")

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            kernels().ordered_free(handle)

    def begin(self, depth: int, lower: int = 0, shallower: int = 0) -> bool:
        """Begin the search for trees of a depth; up to depth two, this call completes it.

        Parameters
        ----------
        depth : int
        lower : int
            A bound on the cost of these trees.
        shallower : int
            A bound on the cost of shallower trees.

        Returns
        -------
        bool
            Whether the call succeeded; False if it was stopped or out of memory.
        """
        return bool(kernels().ordered_begin(self._handle, min(depth, 2**20), lower, shallower))

    def work(self, worker: int = 0) -> None:
        """Search until all intervals are closed or the flag is raised; one thread per worker."""
        if not 0 <= worker < self.threads:
            raise ValueError(f"native kernels: there is no worker {worker}")
        kernels().ordered_work(self._handle, worker)

    def state(self) -> OrderedState:
        """Return the current state; any thread may call this."""
        state = _State()
        kernels().ordered_state(self._handle, byref(state))
        return OrderedState(*(getattr(state, name) for name in OrderedState._fields))

    def tree(self) -> NDArray[np.int32]:
        """Return the best tree: rows (column, rank, left, right, label), the root first; a leaf has column -1.

        Samples with at most that rank go left. Empty if no tree is cheaper than `start`.
        """
        room = 64
        while True:
            rows = np.zeros((room, 5), dtype=np.int32)
            size = kernels().ordered_tree(self._handle, byref(written("rows", rows, np.int32, 2)))
            if size <= room:
                return rows[:size]
            room = size
