"""The border to the compiled kernels: CPU levels agree, and no input leads a kernel out of its arrays.

`make test-sanitized` runs this file, and tests of what stands on the kernels, with address and undefined-behaviour
sanitizers.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native_calls import KINDS, Call, calls, entries_of, same
from helpers.native_calls import spread_of as made
from programs import fuzz_native

from accel_oct import native
from accel_oct.errors import MissingKernelsError
from accel_oct.native import library, records
from accel_oct.native.digest import source_digest

ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- CPU levels


@pytest.mark.slow
def test_all_cpu_levels_agree() -> None:
    """Every library that this machine can run gives the same numbers, bit for bit; `make test-slow` compiles all."""
    names = library.level_names()
    level = library._machine_level()
    assert len(names) == (1 if level == 1 else level - 1)
    code = "from helpers.native_calls import digest; print(digest())"
    found = {
        name: subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT / "tests",
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


def test_a_library_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the sources are there, one byte that differs is an error that says what to run; a wheel has no sources."""
    for path in library._SOURCES.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(library, "_SOURCES", tmp_path)
    assert source_digest(tmp_path) == library._loaded(library.level_names()[0]).built_from().decode()
    (tmp_path / "levels.cpp").write_bytes((tmp_path / "levels.cpp").read_bytes() + b"\n")
    with pytest.raises(MissingKernelsError, match=r"sources.*hatch_build"):
        library.kernels.__wrapped__()
    monkeypatch.setattr(library, "_SOURCES", tmp_path / "gone")
    assert library.kernels.__wrapped__()


def test_damaged_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A file that is no library is an error that names it."""
    monkeypatch.delenv("ACCEL_OCT_CPU", raising=False)  # that of `make test-sanitized`
    best = library.level_names()[0]
    (tmp_path / f"cpu{library._SUFFIX}").write_bytes(b"nothing")
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    with pytest.raises(MissingKernelsError, match=r"cpu.* cannot be loaded"):
        library.kernels.__wrapped__()
    monkeypatch.setenv("ACCEL_OCT_CPU", best)
    (tmp_path / f"kernels-{best}{library._SUFFIX}").write_bytes(b"nothing")
    with pytest.raises(MissingKernelsError, match=f"kernels-{best}.* cannot be loaded"):
        library.kernels.__wrapped__()


def test_kernels_of_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that this processor cannot run are not loaded: a sentence names its level and what there is."""
    best = library.level_names()[0]
    monkeypatch.setattr(library, "_machine_level", lambda: 0)
    with pytest.raises(MissingKernelsError, match="needs an x86-64 processor of level v2"):
        library.level_names()
    monkeypatch.setattr(library, "_machine_level", lambda: 1 if best.startswith("x86") else 2)
    with pytest.raises(MissingKernelsError, match=f"no kernels for this processor .* there are .*{best}"):
        # Other levels of this architecture may be installed too.
        monkeypatch.setattr(library, "_path", lambda name: Path("none"))
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
    level = native.level_three(True, members, entries_of(spread), whole, None)
    with pytest.raises(ValueError, match="work of other data"):
        level(0, table, other.work(), np.zeros(6 * spread.width, np.int16))
    with pytest.raises(ValueError, match="no such feature"):
        level(40, table, spread.work(), np.zeros(6 * spread.width, np.int16))
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
            level = native.level_three(signed, members, entries, whole, None)
            level(int(rng.integers(-1, spread.n_features)), table, work, np.zeros(6 * spread.width, spread.dtype))
        except (TypeError, ValueError):
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("start", [0, 500, 1000])
def test_changed_arguments_and_extreme_data(start: int, tmp_path: Path) -> None:
    """Some rounds of the fuzzer: other forms, damaged arrays, ends of the counters, forms of the caller's data."""
    seen = fuzz_native.rounds(start, 60, tmp_path / "round")
    kinds = Counter(what.split(":")[0] for what in seen.elements())
    assert kinds["borders"] == kinds["library"] == 6 and kinds["many values"] == kinds["many rows"] == 1
    assert seen["arguments: refused"] > 10


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
    counts.add_joined(codes, np.ones_like(codes), np.zeros(1, np.int64), np.ones(1, np.int64), 0, 3)
    values, numbers = counts.sorted()
    assert np.array_equal(values, codes) and (numbers == 3).all()
    # While the table grows there are the old arrays, of 196,608 bytes, and new ones of 65,536, 65,536 and 262,144.
    for limit in (20_000, 500_000, 589_000):
        with pytest.raises(MemoryError):
            native.TreeCounts(limit).add_joined(codes, codes, np.zeros(1, np.int64), codes[:1], 0, 1)


# ---------------------------------------------------------------- kernels and plain loops


@pytest.mark.parametrize("seed", range(20))
def test_pairs_come_best_first(seed: int) -> None:
    """All pairs within the slack that satisfy the limits, also one that uses a limit up; ties by place."""
    rng = np.random.default_rng(seed)
    sizes, n_limits = rng.integers(3, 9, 2), int(rng.integers(0, 3))
    losses = [np.sort(rng.integers(0, 5, size)).astype(float) for size in sizes]
    results = [rng.integers(0, 3, (size, 1 + n_limits)).astype(float) for size in sizes]
    slack, limits = float(rng.integers(2, 9)), rng.integers(2, 4, n_limits).astype(float)
    sums = {
        (i, j): results[0][i] + results[1][j] for i, j in np.ndindex(*sizes) if losses[0][i] + losses[1][j] <= slack
    }
    expected = sorted((-total[0], *place) for place, total in sums.items() if (total[1:] <= limits).all())
    found: list[tuple[float, int, int]] = []
    last = (np.inf, -1, -1)
    while len(found) <= len(expected):
        value, i, j, _ = native.best_pair(losses[0], results[0], losses[1], results[1], slack, limits, -1.0, last)
        if i < 0:
            break
        last = (value, i, j)
        found.append((-value, i, j))
    assert found == expected


def best_below(gains: Any, columns: Any, price: int, any_label: bool) -> tuple[int, int | None]:
    """Best value of a leaf or a stump on some samples, and of a stump alone; gains (n, K), columns (n, C)."""

    def labels(sums: Any) -> list[int]:
        return [*range(len(sums))] if any_label else [int(sums.argmax())]

    stumps = [
        int(zero[k] + one[m]) - 2 * price
        for zero, one in ((gains[~column].sum(axis=0), gains[column].sum(axis=0)) for column in columns.T)
        for k in labels(zero)
        for m in labels(one)
        if k != m and zero.sum() and one.sum()
    ]
    return max([int(gains.sum(axis=0).max()) - price, *stumps]), max(stumps, default=None)


@pytest.mark.parametrize("seed", range(20))
def test_sides_of_columns_by_plain_loops(seed: int) -> None:
    """Best trees on both sides of every column, and of both together, where siblings never have the same class."""
    rng = np.random.default_rng(seed)
    n, C, K = 6, int(rng.integers(1, 4)), int(rng.integers(2, 4))
    price, any_label = int(rng.integers(0, 3)), seed % 2 == 0
    columns, gains = rng.random((n, C)) < 0.5, rng.integers(0, 3, (n, K))
    both = np.einsum("nk,nc,nd->kcd", gains, columns, columns).astype(np.int64)
    none = -(10**9)
    found = native.two_sides(native.SetGains.of_pairs(gains.sum(axis=0), both), price, any_label, none)
    for c, column in enumerate(columns.T):
        parts = [gains[~column], gains[column]]
        sides = [best_below(gains[rows], columns[rows], price, any_label) for rows in (~column, column)]
        assert found[:2, c].tolist() == [best for best, _ in sides]
        values = [sides[1 - side][0] + stump for side, (_, stump) in enumerate(sides) if stump is not None]
        sums = [part.sum(axis=0) for part in parts]
        first = [int(total.argmax()) for total in sums]
        values += [
            int(sums[0][k] + sums[1][m]) - 2 * price
            for k, m in np.ndindex(K, K)
            if k != m and (any_label or [k, m] == first)
        ]
        assert found[2, c] == max(values) if values else found[2, c] < none // 2


# ---------------------------------------------------------------- stopping

#: Kernels that end within a few milliseconds on any data that they are given.
SHORT = {"pass_block", "best_set"}


@pytest.fixture
def often() -> Iterator[None]:
    """Kernels ask after every step whether to go on."""
    library.kernels().set_poll_interval(0)
    yield
    library.kernels().set_poll_interval(20_000_000)


class Question:
    """A `should_stop` that counts how often it is asked, and answers yes, or raises, at one of these times."""

    def __init__(self, last: int | None = None, error: Exception | None = None) -> None:
        self.asked, self.last, self.error = 0, last, error

    def __call__(self) -> bool:
        self.asked += 1
        if self.asked == self.last and self.error is not None:
            raise self.error
        return self.asked == self.last


def stoppable(seed: int) -> list[Call]:
    rng = np.random.default_rng(seed)
    spread = made(rng, KINDS[seed % 3], 2 + seed % 2, F=20)
    return [call for name, call in calls(rng, spread).items() if name not in {*SHORT, "first_tree"}]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(6))
def test_kernels_return_as_soon_as_they_are_told_to(seed: int) -> None:
    """Every kernel, wherever it asks: it raises `Stopped`, asks no more, and leaves nothing behind."""
    asked: Counter[str] = Counter()
    for call in stoppable(seed):
        expected, never = call(), Question()
        assert same(call(never), expected), call.name
        asked[call.name] = never.asked
        for last in {1, 2, never.asked // 2, never.asked} & {*range(1, never.asked + 1)}:
            question = Question(last)
            with pytest.raises(native.Stopped):
                call(question)
            assert question.asked == last, call.name
        assert same(call(), expected), call.name
    assert sum(map(bool, asked.values())) >= 12, asked


@pytest.mark.usefixtures("often")
def test_every_long_kernel_asks() -> None:
    """On some data each of them does: none was forgotten."""
    asked: Counter[str] = Counter()
    for seed in range(12):
        for call in stoppable(seed):
            question = Question()
            call(question)
            asked[call.name] += question.asked
    assert all(asked.values()), asked


@pytest.mark.usefixtures("often")
def test_errors_while_a_kernel_asks_are_raised() -> None:
    """An error of `should_stop` ends the kernel, and the call raises it."""
    for call in stoppable(0):
        question = Question()
        call(question)
        if question.asked:
            with pytest.raises(KeyError, match="asked"):
                call(Question(question.asked, KeyError("asked")))


@pytest.mark.usefixtures("often")
def test_kernels_may_be_called_while_a_kernel_asks() -> None:
    """A search may make steps of its own before it answers: other kernels, or the same one with arrays of its own."""
    for call in stoppable(1):
        expected, asked = call(), Question()

        def answer(call: Call = call, expected: Any = expected, asked: Question = asked) -> bool:
            asked()
            assert asked.asked > 2 or same(call(), expected)
            return False

        assert same(call(answer), expected), call.name


def slow_call(n_masks: int) -> Any:
    """Best sides of columns that take seconds."""
    words = np.random.default_rng(0).integers(0, 2**63, (1200, 50)).astype(np.uint64)
    masks = np.full((n_masks, 50), 2**64 - 1, np.uint64)
    label, both = np.zeros(n_masks, np.int64), np.zeros((1, 0, 0), np.int64)
    gains = native.SetGains(np.array([3200 * n_masks]), both, words, masks, label, label + 1)
    return lambda **more: native.two_sides(gains, 1, True, -(2**60), **more)


def test_long_calls_ask_many_times_a_second() -> None:
    """The work between two questions takes some 20 ms of this thread; sanitizers make it fifty times that."""
    asked: list[float] = []

    def should_stop() -> bool:
        asked.append(time.thread_time())
        return len(asked) > 10

    with pytest.raises(native.Stopped):
        slow_call(100)(should_stop=should_stop)
    assert np.median(np.diff(asked)) < (2.0 if os.environ.get("ACCEL_OCT_CPU") == "sanitized" else 0.2)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_ctrl_c_ends_a_running_kernel() -> None:
    """The handler runs while the kernel does: KeyboardInterrupt, long before the kernel would have ended."""
    call = slow_call(1000)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs aside without one
    began = time.perf_counter()
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - began < 30  # of some minutes


# ---------------------------------------------------------------- building


def test_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    """A platform without a wheel and without a compiler: `pip install .` ends with one sentence."""
    copy = tmp_path / "project"
    (copy / "accel_oct" / "native").mkdir(parents=True)
    shutil.copy(ROOT / "hatch_build.py", copy)
    for name in ("digest.py", "source"):
        source = ROOT / "accel_oct" / "native" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / "accel_oct" / "native" / name)
    (tmp_path / "ziglang.py").write_text("raise ModuleNotFoundError('No module named ziglang')")
    plain = {name: value for name, value in os.environ.items() if name not in ("CXX", "ACCEL_OCT_TARGET")}
    environments = [
        (plain | {"PYTHONPATH": str(tmp_path)}, "no compiler: pip install ziglang, or set CXX to a C++20 compiler"),
        (plain | {"CXX": "no-such-compiler"}, "the compiler no-such-compiler cannot be started"),
        (plain | {"ACCEL_OCT_TARGET": "linux-z80"}, "no native kernels for linux-z80; there are linux-x86_64"),
    ]
    for environment, sentence in environments:
        done = subprocess.run(
            [sys.executable, "hatch_build.py"], cwd=copy, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 1 and done.stderr.startswith("accel_oct: ") and sentence in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1 and not (copy / "accel_oct" / "native" / "lib").exists()
