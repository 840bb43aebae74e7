"""The border to the compiled kernels: CPU levels agree, and no input leads a kernel out of its arrays.

`make test-sanitized` runs this file, and tests of what stands on the kernels, with address and undefined-behaviour
sanitizers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from accel_oct import frontier, native, solve
from accel_oct.errors import MissingKernelsError
from accel_oct.native import library, records
from accel_oct.subtree.layout import Layout, layout

KINDS = ["unit", "wide", "real"]


def made(rng: np.random.Generator, kind: str, n_classes: int, n: int = 60, F: int = 40) -> Layout:
    """Samples laid out for counters of 16 bits, of 32 bits, or for real numbers."""
    X, y = rng.random((n, F)) < 0.4, rng.integers(0, n_classes, n)
    weights = {"unit": np.ones(n), "wide": rng.integers(1, 2**13, n).astype(float), "real": rng.integers(1, 9, n) / 8}
    return layout(X, y, weights[kind], n_classes)


def entries_of(spread: Layout) -> native.Entries:
    return native.Entries(spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers)


# ---------------------------------------------------------------- CPU levels


def digest() -> str:
    """What every kernel computes on some data, in short; run in processes of other CPU levels."""
    rng = np.random.default_rng(5)
    seen: list[Any] = []
    for n_classes, scale in [(2, 1), (2, 4000), (3, 1), (3, 0.1)]:
        X, y = rng.random((90, 37)) < 0.4, rng.integers(0, n_classes, 90)
        weights = np.round(rng.integers(1, 4, 90) * scale, 3)
        for depth in (2, 3, 4):
            seen.append(frontier(X, y, max_depth=depth, sample_weight=weights).scores.tolist())
        seen.append(solve(X, y, max_depth=3, leaf_penalty=0.01, sample_weight=weights, preset="paper").objective)
    for kind in KINDS:
        spread = made(rng, kind, 3)
        table = np.zeros(spread.table_shape, spread.dtype)
        native.level_two(np.arange(len(spread.entries)), entries_of(spread), spread.words(), table, 0)
        seen.append(table.tolist())
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def test_all_cpu_levels_agree() -> None:
    """Every library that this machine can run gives the same numbers, bit for bit."""
    names = library.level_names()
    assert names
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_native; print(test_native.digest())"
    found = {
        name: subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(__file__)],
            env=os.environ | {"ACCEL_OCT_CPU": name},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in names
    }
    assert len(set(found.values())) == 1, found


def test_unknown_cpu_level_is_named() -> None:
    """A level that was not built is a sentence, with those that were."""
    done = subprocess.run(
        [sys.executable, "-c", "from accel_oct.native import library; library.kernels()"],
        env=os.environ | {"ACCEL_OCT_CPU": "z80"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "MissingKernelsError: ACCEL_OCT_CPU=z80: no such kernels; there are " in done.stderr


def test_no_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A platform without a wheel and without a compiler: one sentence."""
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    with pytest.raises(MissingKernelsError, match=r"pip install .*ziglang.*CXX"):
        library.level_names()


def test_a_library_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interface numbers that differ are an error, not a crash."""
    monkeypatch.setattr(library, "INTERFACE", -1)
    with pytest.raises(MissingKernelsError, match="another version"):
        library.level_names()


def test_damaged_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A file that is no library is an error that names it."""
    (tmp_path / f"kernels-x86_64_v2{library._SUFFIX}").write_bytes(b"nothing")
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    with pytest.raises(MissingKernelsError, match="cannot be loaded"):
        library.level_names()


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (lambda a: a.astype(np.int32), TypeError),
        (lambda a: a.astype(">i8"), TypeError),
        (lambda a: a[::2], ValueError),
        (lambda a: a.reshape(1, -1), ValueError),
        (lambda a: a.tolist(), TypeError),
        (lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(np.int64), ValueError),
    ],
    ids=["dtype", "byte order", "stride", "axes", "list", "unaligned"],
)
def test_arrays_of_another_kind_are_refused(bad: Any, error: type[Exception]) -> None:
    """Dtype, byte order, stride, number of axes, alignment."""
    numbers = np.arange(8)
    assert records.view("numbers", numbers, np.int64, 1).shape[0] == 8
    with pytest.raises(error, match="numbers"):
        records.view("numbers", bad(numbers), np.int64, 1)


def test_read_only_arrays_are_read_and_not_written() -> None:
    """A kernel that writes refuses a read-only array; one that reads takes it."""
    numbers = np.arange(8)
    numbers.flags.writeable = False
    records.view("numbers", numbers, np.int64, 1)
    with pytest.raises(ValueError, match="read-only"):
        records.written("numbers", numbers, np.int64, 1)


def test_indices_out_of_range_are_refused() -> None:
    """Samples, members, points and columns that there are not."""
    rng = np.random.default_rng(0)
    spread = made(rng, "unit", 2)
    entries, words = entries_of(spread), spread.words()
    table = np.zeros(spread.table_shape, spread.dtype)
    for members in ([-1], [len(spread.entries)], [2**62]):
        with pytest.raises(ValueError, match="members"):
            native.level_two(np.array(members), entries, words, table, 0)
    setup = native.DepthTwo(
        *(spread.by_row, spread.signs, np.zeros(spread.row.size + 1, np.int64), np.zeros((3, 1)), entries, words),
        native.Counts(table, np.zeros((1, spread.width), spread.dtype), np.zeros(1, spread.dtype)),
        native.Scores.of(2, spread.width, spread.dtype),
    )
    assert native.first_tree(np.arange(spread.n_rows), setup, True, 0.0, 2).value > 0
    for samples in ([-1], [spread.n_rows], np.zeros(spread.n_rows + 1, np.int64)):
        with pytest.raises(IndexError):
            native.first_tree(np.asarray(samples), setup, True, 0.0, 2)


def test_tables_of_another_shape_are_refused() -> None:
    """Tables, words and work that belong to other data."""
    rng = np.random.default_rng(0)
    spread, other = made(rng, "unit", 2), made(rng, "unit", 2, F=70)
    members = np.arange(len(spread.entries))
    table = np.zeros(spread.table_shape, spread.dtype)
    with pytest.raises(ValueError, match="beyond"):
        native.level_two(members, entries_of(spread), spread.words(), np.zeros(other.table_shape, np.int16), 0)
    with pytest.raises(ValueError, match="words"):
        native.level_two(members, entries_of(spread), other.words(), table, 0)
    whole = native.Counts(table, np.zeros((1, spread.width), np.int16), np.zeros(1, np.int16))
    level = native.level_three(True, members, entries_of(spread), whole, None, np.zeros((0, 4, spread.width), np.int16))
    with pytest.raises(ValueError, match="work of other data"):
        level(0, table, other.work(), np.zeros(6 * spread.width, np.int16))
    with pytest.raises(ValueError, match="no such feature"):
        level(40, table, spread.work(), np.zeros(6 * spread.width, np.int16))
    with pytest.raises(ValueError, match="splits"):
        native.level_three(True, members, entries_of(spread), whole, None, np.zeros((0, 4, 1), np.int16))
    limits = spread.limits(1.0, None)
    with pytest.raises(ValueError, match="channels"):
        native.pass_block(whole, native.Scores.of(2, spread.width, spread.dtype), 0, True, limits)


def damaged(rng: np.random.Generator, record: Any) -> Any:
    """A record with one array or number changed, or the error that its constructor raised."""
    values = {part.name: getattr(record, part.name) for part in dataclasses.fields(record)}
    name = rng.choice(list(values))
    value = values[name]
    if isinstance(value, records.Record):
        values[name] = damaged(rng, value)
        if isinstance(values[name], Exception):
            return values[name]
    elif isinstance(value, np.ndarray):
        choice = rng.integers(5)
        if choice == 0 and value.ndim:
            axis = rng.integers(value.ndim)
            values[name] = np.ascontiguousarray(np.take(value, np.arange(max(0, value.shape[axis] - 1)), axis=axis))
        elif choice == 1 and value.size:
            values[name] = value.copy()
            values[name].flat[rng.integers(value.size)] = rng.choice([-1, 3, 127, 100])
        elif choice == 2:
            values[name] = value.astype(rng.choice(["i2", "i4", "i8", "f8", "u1"]))
        elif choice == 3:
            values[name] = np.concatenate([value, value])
        else:
            values[name] = value[..., None]
    else:
        values[name] = type(value)(rng.choice([-1, 0, 1, 7, 64]))
    try:
        return type(record)(**values)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        return error


@pytest.mark.parametrize("seed", range(3))
def test_damaged_records_are_refused_or_harmless(seed: int) -> None:
    """Records with changed arrays: an error, or a call that stays within its arrays (seen under sanitizers)."""
    rng = np.random.default_rng(seed)
    refused = 0
    for number in range(400):
        spread = made(rng, KINDS[number % 3], int(rng.integers(2, 4)), n=20, F=int(rng.integers(1, 40)))
        signed = spread.n_channels == 1
        members = np.arange(len(spread.entries))
        table = np.zeros(spread.table_shape, spread.dtype)
        single = np.zeros((spread.n_channels, spread.width), spread.dtype)
        whole = native.Counts(table, single, np.zeros(spread.n_channels, spread.dtype))
        splits = np.zeros((spread.n_features, 4, spread.width), spread.dtype)
        scores = native.Scores.of(2, spread.width, spread.dtype)
        parts: list[Any] = [entries_of(spread), spread.words(), whole, spread.work(), scores]
        place = int(rng.integers(len(parts)))
        parts[place] = damaged(rng, parts[place])
        if isinstance(parts[place], Exception):
            refused += 1
            continue
        entries, words, whole, work, scores = parts
        try:
            native.level_two(members, entries, words, table, 0)
            native.pass_block(whole, scores, 0, signed, None)
            level = native.level_three(signed, members, entries, whole, None, splits)
            level(int(rng.integers(-1, spread.n_features)), table, work, np.zeros(6 * spread.width, spread.dtype))
        except (TypeError, ValueError):
            refused += 1
    assert refused > 200


# ---------------------------------------------------------------- memory


def test_memory_limits_end_an_enumeration() -> None:
    """None from outcomes, MemoryError from counts; with enough memory the same calls go through."""
    rng = np.random.default_rng(1)
    n, F = 40, 8
    X = (rng.random((n, F)) < 0.5).astype(np.uint8)
    gains = rng.random((n, 2))
    rewards = native.Rewards(
        *(X, gains, np.ascontiguousarray(np.stack([gains, rng.random((n, 2))], axis=2).reshape(n, -1))),
        *(np.zeros(2), np.array([1e6]), np.ones(n), np.zeros((F, F), np.uint8), 0.1, 0.0),
    )
    given = np.arange(n), np.arange(F), 2, 5.0
    found = native.outcomes_two(*given, 10**7, rewards, 2**30)
    assert found is not None and found.loss.size > 1000
    assert native.outcomes_two(*given, 10**7, rewards, 10_000) is None
    assert native.outcomes_two(*given, 10, rewards, 2**30) is None
    codes = np.arange(5000)[::-1].copy()
    counts = native.TreeCounts(2**24)
    assert counts.add_joined(codes, np.ones_like(codes), np.zeros(1, np.int64), np.ones(1, np.int64), 0, 3, 0, 10**6)
    values, numbers = counts.sorted()
    assert np.array_equal(values, codes) and (numbers == 3).all()
    with pytest.raises(MemoryError):
        native.TreeCounts(20_000).add_joined(codes, codes, np.zeros(1, np.int64), codes[:1], 0, 1, 0, 10**6)
