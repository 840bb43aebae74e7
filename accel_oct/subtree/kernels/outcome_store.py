# mypy: disable-error-code="no-untyped-def,no-untyped-call"
"""A growing table of outcomes in which equal uses meet: of those the best value is kept.

An outcome is a row of results (value, then what is used of every limit) with its loss and a row of numbers that tell
how it came about. Uses are equal when they are the same number of grains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.compiled.jit import kernel

Array = NDArray[Any]


class Store(NamedTuple):
    """Room for outcomes, and the open-addressing table that finds them by their uses."""

    loss: Array  # (room,)
    results: Array  # (room, 1 + J)
    choice: Array  # (room, numbers that tell how)
    keys: Array  # (room, J) uses in grains
    slots: Array  # (a power of two,) place + 1, or 0


@kernel
def new_store(room, n_results, n_choices):
    return Store(
        np.empty(room),
        np.empty((room, n_results)),
        np.empty((room, n_choices), dtype=np.int32),
        np.empty((room, n_results - 1)),
        np.zeros(4 * room, dtype=np.int64),
    )


@kernel
def _slot(slots, key):
    """Where the search for a key begins."""
    h = np.uint64(1469598103934665603)
    for j in range(key.size):
        h ^= np.uint64(np.int64(key[j]))
        h *= np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return np.int64(h & np.uint64(slots.size - 1))


@kernel
def _find(store, key):
    """The slot of a key: its own, or the free one where it belongs."""
    slots, keys = store.slots, store.keys
    slot = _slot(slots, key)
    while slots[slot] > 0:
        place = slots[slot] - 1
        same = True
        for j in range(key.size):
            if keys[place, j] != key[j]:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & (slots.size - 1)
    return slot


@kernel
def with_room(store, size):
    """The store, or one with twice the room if it is full."""
    if size < store.loss.size:
        return store
    bigger = new_store(2 * store.loss.size, store.results.shape[1], store.choice.shape[1])
    for place in range(size):
        bigger.loss[place] = store.loss[place]
        for j in range(store.results.shape[1]):
            bigger.results[place, j] = store.results[place, j]
        for j in range(store.choice.shape[1]):
            bigger.choice[place, j] = store.choice[place, j]
        for j in range(store.keys.shape[1]):
            bigger.keys[place, j] = store.keys[place, j]
        bigger.slots[_find(bigger, bigger.keys[place])] = place + 1
    return bigger


@kernel
def insert(store, size, loss, result, choice, per_grain, key):
    """Add an outcome, or keep the better one of equal uses; there must be room. Returns how many there are then."""
    for j in range(key.size):
        key[j] = np.rint(result[j + 1] * per_grain[j])
    slot = _find(store, key)
    place = store.slots[slot] - 1
    if place < 0:
        place = size
        size += 1
        store.slots[slot] = place + 1
        for j in range(key.size):
            store.keys[place, j] = key[j]
    elif result[0] <= store.results[place, 0]:
        return size
    store.loss[place] = loss
    for j in range(result.size):
        store.results[place, j] = result[j]
    for j in range(choice.size):
        store.choice[place, j] = choice[j]
    return size


@kernel
def order_by_loss(loss, size):
    """Places of the outcomes, least loss first: a shell sort, which takes numba no time to compile."""
    order = np.empty(size, dtype=np.int64)
    for place in range(size):
        order[place] = place
    gap = size // 2
    while gap > 0:
        for place in range(gap, size):
            moved, hole = order[place], place
            while hole >= gap and loss[order[hole - gap]] > loss[moved]:
                order[hole] = order[hole - gap]
                hole -= gap
            order[hole] = moved
        gap = gap // 2 if gap != 2 else 1
    return order
