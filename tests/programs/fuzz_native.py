"""Changed arguments for the compiled kernels, and data at the ends of their counters: right or a sentence, no crash.

    python -m programs.fuzz_native --count 100000                 rounds 0 to 99,999
    python -m programs.fuzz_native --start 5000 --count 1         one of them again

A round changes one argument of a kernel, or draws data for which counters are just wide enough. Round number i is the
same in every run. Rounds run in a process of their own, so that a crash is reported with its round. Under
`make test-sanitized` an access outside of an array is a crash too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from helpers.native_calls import Call, calls, entries_of, same

from accel_oct import frontier, native
from accel_oct.errors import InvalidInputError
from accel_oct.exact.counts import layout
from accel_oct.exact.d2s import DepthTwoSolver

REFUSED = (TypeError, ValueError, IndexError, OverflowError, MemoryError, InvalidInputError)
"""Errors that the binding raises."""

_BATCH = 2000
"""Rounds of one process."""

Rng = np.random.Generator

# ---------------------------------------------------------------- changed arguments


def _unaligned(array: Any) -> Any:
    room = np.zeros(array.nbytes + 1, np.uint8)
    result = room[1:].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def _strided(array: Any) -> Any:
    room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    room[..., ::2] = array
    return room[..., ::2]


def _read_only(array: Any) -> Any:
    result = array.copy()
    result.flags.writeable = False
    return result


#: The same numbers in another form: the result must be the same, or the form is refused.
FORMS: dict[str, Callable[[Any], Any]] = {
    "stride": _strided,
    "order": lambda array: array.copy(order="F"),
    "read-only": _read_only,
    "byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "unaligned": _unaligned,
    "wide": lambda array: array.astype(np.float64 if array.dtype.kind == "f" else np.int64),
}

_NUMBERS = (-1, 1, 2, 3, 7, 100, 127)
_INDICES = (*_NUMBERS, -(2**31), 2**15, 2**31)


def _cut(rng: Rng, array: Any) -> Any:
    axis = int(rng.integers(array.ndim))
    return np.ascontiguousarray(np.take(array, np.arange(max(0, array.shape[axis] - 1)), axis=axis))


def _empty(rng: Rng, array: Any) -> Any:
    shape = list(array.shape)
    shape[int(rng.integers(array.ndim))] = 0
    return np.zeros(shape, array.dtype)


def _spoilt(rng: Rng, array: Any) -> Any:
    result = array.copy()
    if result.size:
        # Counts stay small: sums of others would overflow, which sanitizers report and which harms nothing else.
        whole = _INDICES if result.dtype.itemsize == 8 else _NUMBERS
        number = rng.choice([np.nan, np.inf, -np.inf, 1e300]) if result.dtype.kind == "f" else rng.choice(whole)
        result.flat[int(rng.integers(result.size))] = np.asarray(number).astype(result.dtype)
    return result


#: Other numbers or shapes: anything may come out that is not a crash.
DAMAGE: dict[str, Callable[[Rng, Any], Any]] = {
    "cut": _cut,
    "zero rows or columns": _empty,
    "another number": _spoilt,
    "twice": lambda rng, array: np.concatenate([array, array]),
    "another axis": lambda rng, array: array[..., None],
    "another dtype": lambda rng, array: array.astype(rng.choice(["i2", "i4", "i8", "f4", "f8", "u1", "u8"])),
}


def changed(rng: Rng, call: Call) -> str:
    """Change one argument of a call; returns what happened."""
    name = str(rng.choice(list(call.arguments)))
    value = call.arguments[name]
    if isinstance(value, np.ndarray):
        if rng.random() < 0.4:
            form = str(rng.choice(list(FORMS)))
            try:
                found = call(**{name: FORMS[form](value)})
            except REFUSED:
                return "refused"
            assert same(found, call()), f"{call.name}: {name} in another form ({form}) gives another result"
            return "right"
        other = DAMAGE[str(rng.choice(list(DAMAGE)))](rng, value)
    elif isinstance(value, bool):
        other = not value
    elif isinstance(value, int):
        other = int(rng.choice([-1, 0, 1, 2, 7, 64, 1000]))
    elif isinstance(value, float):
        other = float(rng.choice([-1.0, 0.0, 1e300, np.inf, -np.inf, np.nan]))
    else:
        return "kept"
    try:
        call(**{name: other})
    except REFUSED as error:
        assert str(error), f"{call.name}: {name}: an error without a sentence"
        return "refused"
    return "accepted"


# ---------------------------------------------------------------- the ends of the counters

#: Total weights around which the kernels change from 16 to 32 bits, and to real numbers.
BORDERS = (2**15, 2**16, 2**30, 2**31, 2**32, 2**45)


def borders(rng: Rng) -> str:
    """Counts of pairs and a tree of depth two where the sum of the weights is near the end of a type."""
    n, F, n_classes = int(rng.integers(2, 40)), int(rng.integers(1, 9)), int(rng.integers(2, 4))
    total = int(rng.choice(BORDERS)) + int(rng.integers(-2, 3))
    cuts = np.sort(rng.integers(0, total + 1, n - 1))
    weights = np.diff(cuts, prepend=0, append=total).astype(np.int64)
    if rng.random() < 0.3:
        weights = np.where(np.arange(n) == rng.integers(n), total, 0)
    X, y = rng.random((n, F)) < rng.choice([0.1, 0.5, 0.9, 1.0]), rng.integers(0, n_classes, n)
    # A grid below one: real numbers, still exact.
    scale = float(rng.choice([1.0, 2.0**-20, 0.5]))
    check_counts(X, y, weights, n_classes, scale)
    check_tree(X, y, weights, n_classes, scale)
    return "right"


def check_counts(X: Any, y: Any, weights: Any, n_classes: int, scale: float) -> None:
    spread = layout(X, y, weights * scale, n_classes)
    table = np.zeros(spread.table_shape, spread.dtype)
    native.level_two(np.arange(len(spread.entries)), entries_of(spread), spread.words(), table, 0)
    channels, blocks, F, lanes = table.shape
    found = table.transpose(0, 2, 1, 3).reshape(channels, F, blocks * lanes)[:, :, :F]
    for k in range(channels):
        signed = np.where(y == 1, weights, -weights) if n_classes == 2 else np.where(y == k, weights, 0)
        expected = X.T.astype(np.int64) @ (X * signed[:, None])
        assert np.array_equal(found[k] / scale, expected), "counts of pairs"


def check_tree(X: Any, y: Any, weights: Any, n_classes: int, scale: float) -> None:
    """The best score of depth two, by trying all trees in whole numbers."""

    def leaf(rows: Any) -> int:
        return max(int(weights[rows & (y == label)].sum()) for label in range(n_classes))

    def stump(rows: Any) -> int:
        return max([leaf(rows), *(leaf(rows & column) + leaf(rows & ~column) for column in X.T)])

    everyone = np.ones(len(X), bool)
    expected = max([leaf(everyone), *(stump(column) + stump(~column) for column in X.T)])
    found = DepthTwoSolver(X, y, weights * scale, n_classes).solve(everyone, 0.0)
    assert found.value == expected * scale, "the best tree of depth two"


def many_values(rng: Rng) -> str:
    """More than 65,536 different values of trees, and counts beyond 32 bits."""
    n_zero, n_one = 300, 300
    zero = np.sort(rng.choice(10**6, n_zero, replace=False))[::-1].copy()
    one = np.sort(rng.choice(10**6, n_one, replace=False))[::-1].copy()
    counts = rng.integers(1, 2**20, (2, n_zero))
    store = native.TreeCounts(2**30)
    store.add_joined(zero, counts[0].copy(), one, counts[1].copy(), 0, 3)
    values, numbers = store.sorted()
    sums, place = np.unique(zero[:, None] + one, return_inverse=True)
    expected = np.zeros(sums.size, np.int64)
    np.add.at(expected, place.ravel(), (3 * counts[0][:, None] * counts[1]).ravel())
    assert sums.size > 65_536 and np.array_equal(values, sums[::-1]) and np.array_equal(numbers, expected[::-1])
    return "right"


def many_rows(rng: Rng) -> str:
    """More rows than 16 bits can number."""
    n = int(rng.integers(65_530, 70_000))
    X, y = rng.random((n, 3)) < 0.3, rng.integers(0, 2, n)
    check_counts(X, y, np.ones(n, np.int64), 2, 1.0)
    check_tree(X, y, np.ones(n, np.int64), 2, 1.0)
    return "right"


# ---------------------------------------------------------------- the library

#: Other forms of the data of a caller.
TABLES: dict[str, Callable[[Any], Any]] = {
    **{name: FORMS[name] for name in ("stride", "order", "read-only", "unaligned")},
    "list": lambda X: X.tolist(),
    "bytes": lambda X: X.astype(np.uint8),
    "reals": lambda X: X.astype(np.float64),
    "byte order": lambda X: X.astype(">i4"),
    "zero rows": lambda X: X[:0],
    "zero columns": lambda X: X[:, :0],
}


def library(rng: Rng) -> str:
    """`frontier` on the same data in another form."""
    n, F, n_classes = int(rng.integers(1, 30)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    X, y = rng.random((n, F)) < 0.5, rng.integers(0, n_classes, n)
    form, depth = str(rng.choice(list(TABLES))), int(rng.integers(0, 5))
    try:
        found = frontier(TABLES[form](X), y, max_depth=depth)
    except REFUSED as error:
        assert str(error), f"frontier on {form}: an error without a sentence"
        return "refused"
    assert form == "zero columns" or same(found.scores, frontier(X, y, max_depth=depth).scores), form
    return "right"


# ---------------------------------------------------------------- rounds


def one_round(number: int) -> str:
    rng = np.random.default_rng([number, 26])
    if number % 500 == 1:
        return f"many values: {many_values(rng)}"
    if number % 500 == 2:
        return f"many rows: {many_rows(rng)}"
    if number % 10 == 3:
        return f"borders: {borders(rng)}"
    if number % 10 == 4:
        return f"library: {library(rng)}"
    made = calls(rng)
    outcomes = [changed(rng, made[str(name)]) for name in rng.choice(list(made), 3)]
    return f"arguments: {outcomes[-1]}"


def rounds(start: int, count: int, place: Path) -> Counter[str]:
    """Run some rounds, and keep the number of the current one in a file."""
    seen: Counter[str] = Counter()
    with place.open("wb", buffering=0) as file:
        for number in range(start, start + count):
            os.pwrite(file.fileno(), b"%12d" % number, 0)
            with np.errstate(all="ignore"):
                seen[one_round(number)] += 1
    return seen


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.place is not None:
        for what, times in sorted(rounds(chosen.start, chosen.count, chosen.place).items()):
            print(times, what)
        return 0
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "round"
        for start in range(chosen.start, chosen.start + chosen.count, _BATCH):
            count = min(_BATCH, chosen.start + chosen.count - start)
            options = ["--start", str(start), "--count", str(count), "--place", str(place)]
            command = [sys.executable, "-m", "programs.fuzz_native", *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"round {place.read_text()} ended with {done.returncode}\n{done.stderr[-4000:]}")
                return 1
            for line in done.stdout.splitlines():
                times, what = line.split(" ", 1)
                seen[what] += int(times)
    for what, times in sorted(seen.items()):
        print(f"{times:8} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
